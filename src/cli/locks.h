/* Locks as people look at them: who holds each, who waits, and how long that may take. */
#ifndef CV_CLI_LOCKS_H
#define CV_CLI_LOCKS_H

#include "cli/remote.h"
#include "recipe/name.h"
#include "recipe/waits.h"

/* The path of a lock, to be freed. */
char *locks_path(const char *name);
/* 0, or EINVAL after one line. */
int locks_check_name(const char *name);

/* What is seen of a lock without asking about everybody who waits. */
struct locks_row {
    const char *name;
    int error;                    /* CV_NO_AUTH: we may not look at it; gone ones are not told */
    struct cv_contender *holders; /* the first LOCKS_HOLDERS_MAX of them */
    size_t holder_count, waiting;
    char **nodes; /* names of those that may hold it */
    size_t node_count, contenders;
    char **inner; /* its children that are no contenders: locks whose names begin with its name */
    size_t inner_count;
};
enum { LOCKS_HOLDERS_MAX = 16, LOCKS_PAGE = 1000 };

/* Looks at all locks in the order of their names: a lock comes before those in it, and these before
 * the next. */
struct locks_walk {
    struct remote *remote;
    const char *after; /* only those that come after this one; NULL: all */
    size_t page;       /* how many to ask about at once; 0: LOCKS_PAGE */
    int (*each)(const struct locks_row *row, void *arg); /* not 0: that is the end */
    void *arg;
};
/* 0, what `each` has returned, or the exit code after one line. */
int locks_walk(const struct locks_walk *walk);

/* "nightly report (db1:4711)", or what is known. */
const char *locks_who(const struct cv_contender *contender, char *text, size_t size);
/* A moment of the wall clock, and how long ago it was. */
const char *locks_moment(int64_t ms, char *text, size_t size);
const char *locks_ago(int64_t ms, char *text, size_t size);
int64_t locks_now(void); /* wall clock, ms */
json_t *locks_json(const struct cv_contender *contender);

/* Watches locks until a signal comes. */
int locks_watch(struct remote *remote, const char *name, size_t limit);
/* Names the circles in which sessions wait for each other. */
int locks_deadlocks(struct remote *remote);

/* One lock and its queue, with estimates if `waits` (may be NULL) knows enough. */
void locks_print_one(const char *name, const struct cv_contender *contenders, size_t count,
                     const struct waits *waits);
json_t *locks_json_one(const char *name, const struct cv_contender *contenders, size_t count,
                       const struct waits *waits);

#endif
