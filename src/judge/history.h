/* The judge of histories: what several clients did to shared objects, and when, and whether one
 * copy of each object could have given them these answers.
 *
 * Linearizable: there is one order of all operations on a key, each at some moment between its
 * start and its end, in which every answer is right.  Sequential: the same, but a read may show an
 * older state, as ZooKeeper's do.  It comes after what its client did before, so that nobody goes
 * back in time and everybody sees what he wrote, and it knows nothing of what begins after its
 * end.  Each key is judged alone: a history is linearizable when each of its objects is (Herlihy
 * and Wing, 1990).
 *
 * A key names a node, as ZooKeeper has them: absent at first, version 0 when it is created, one
 * more with each write.  It also names a lock, which is another object: free at first, then held by
 * one client at a time.
 *
 *   struct history_operation o = history_begin(client, key, HISTORY_CAS, now);
 *   o.value = 7, o.expected = 3;
 *   ...when the answer comes:
 *   o.end = now, o.outcome = HISTORY_OK, o.version = 4;
 *   history_add(&history, &o);
 *
 * An operation without an answer is added too, with the outcome HISTORY_UNKNOWN: it takes effect at
 * any time after its start, or never.  So does what nobody asked for: for a session that ends, add
 * such a delete of its ephemeral node, or such a release of its lock. */
#ifndef CV_JUDGE_HISTORY_H
#define CV_JUDGE_HISTORY_H

#include <stddef.h>

#include "judge/judge.h"

enum history_action {
    HISTORY_INITIAL,   /* no operation: the node had this value and version when all began */
    HISTORY_READ,      /* OK, NO_NODE */
    HISTORY_WRITE,     /* OK, NO_NODE */
    HISTORY_CAS,       /* a write if the version is `expected`: OK, NO_NODE, BAD_VERSION */
    HISTORY_CAS_VALUE, /* a write if the value is `expected`: the same */
    HISTORY_CREATE,    /* OK, EXISTS */
    HISTORY_DELETE,    /* if the version is `expected`: OK, NO_NODE, BAD_VERSION */
    HISTORY_ACQUIRE,   /* OK; REFUSED: somebody holds it */
    HISTORY_RELEASE,   /* OK; REFUSED: the client does not hold it */
    HISTORY_ACTIONS
};

enum history_outcome {
    HISTORY_UNKNOWN,
    HISTORY_OK,
    HISTORY_NO_NODE,
    HISTORY_EXISTS,
    HISTORY_BAD_VERSION,
    HISTORY_REFUSED,
    HISTORY_OUTCOMES
};

enum { HISTORY_ANY = -1 }; /* a value, version or token that is not known, or may be any */

struct history_operation {
    int64_t start, end; /* in any unit; one that ends when another starts is beside it */
    int64_t value;      /* to be written, or that was read; numbers from 0 */
    int64_t version;    /* of what was read, or after the write */
    int64_t expected;
    int64_t token; /* of an acquire: each is above those before it */
    uint32_t client, key;
    enum history_action action;
    enum history_outcome outcome;
};

/* One that has just begun: nothing is known of how it ends. */
static inline struct history_operation history_begin(uint32_t client, uint32_t key,
                                                     enum history_action action, int64_t start) {
    return (struct history_operation){.start = start,
                                      .end = start,
                                      .value = HISTORY_ANY,
                                      .version = HISTORY_ANY,
                                      .expected = HISTORY_ANY,
                                      .token = HISTORY_ANY,
                                      .client = client,
                                      .key = key,
                                      .action = action,
                                      .outcome = HISTORY_UNKNOWN};
}

struct history { /* all zero: empty */
    struct history_operation *operation;
    size_t count, room;
    /* By number, for whom reads the explanation; NULL: the numbers themselves. */
    const char *const *client_name, *const *key_name, *const *value_name;
};

/* Adds it, in any order of time, and returns its place: it may be completed there later.  Of
 * operations of one client that start together, the first to be added came first. */
size_t history_add(struct history *history, const struct history_operation *operation);
void history_clear(struct history *history); /* empty again; the memory stays */
void history_close(struct history *history);

/* What is wrong with an operation in itself, e.g. an end before its start; NULL: nothing. */
const char *history_refuse(const struct history_operation *operation);

struct history_rules {
    bool sequential;
    uint64_t work_most; /* for each object: steps tried and words kept; 0: HISTORY_WORK */
};
#define HISTORY_WORK 20000000 /* a second or so, and some hundred MB at most */

struct history_result {
    struct verdict verdict; /* UNKNOWN: some key was too much work and no other is violated */
    uint32_t key;           /* that the verdict is about, unless it held */
    uint64_t work;
    /* When violated: as many operations as could be put in order, and those that should have been
     * next and could not; places in the history. */
    size_t *order, *stuck;
    size_t ordered, stuck_count;
};

/* Every operation must be one that history_refuse has nothing against. */
void history_judge(const struct history *history, const struct history_rules *rules,
                   struct history_result *result);
void history_result_close(struct history_result *result);

enum { HISTORY_TEXT_MAX = 240 };
/* "client 3 reads 7, version 2 [10, 20]". */
char *history_describe(const struct history *history, size_t place, char *text);
/* Why one of those that are stuck could not follow the order: "the value is 8". */
char *history_why(const struct history *history, const struct history_result *result, size_t place,
                  char *text);

#endif
