/* A lock: the steps of recipe/lock_steps.h, with the client's requests as their hands. */
#ifndef CV_CLIENT_RECIPE_LOCK_H
#define CV_CLIENT_RECIPE_LOCK_H

#include "client/engine.h"
#include "client/recipe/follow.h"
#include "recipe/lock_steps.h"
#include "recipe/note.h"

enum { OWNER_SIZE = 32, SEQUENCE_MAX = 12 };

struct cv_lock {
    struct cv_client *client;
    char *path;
    char owner[OWNER_SIZE + 1]; /* chosen anew for each attempt */
    enum contend_kind kind;
    enum contend_recipe recipe;
    bool mixes;
    int32_t slots, margin;
    cv_lock_fn *on_change;
    void *arg;
    char *resumed; /* the name of a node from before; NULL: none, or used */

    struct lock_steps steps;
    struct note note;
    enum cv_lock_state state;
    int error;          /* why it ended, or is lost */
    int64_t token;      /* 0: to be read from the node before it counts as held */
    char *node, *mark;  /* paths of ours */
    char *blocker;      /* path; see contend_judge */
    bool waited;        /* the first look did not find it free */
    bool node_was_gone; /* when it was to be deleted */
    bool converted;     /* what a conversion has come to, when `converting` is over */
    bool converting;
    uint32_t deleting; /* answers to wait for */
    enum lock_result deleted;
    bool postponed;      /* one of the deletions: to be tried again after a pause */
    size_t parents;      /* the same */
    bool parent_reached; /* one of them was there, or was made */
    int parent_error;    /* why one of them could not be made */
    struct followers followers;

    struct client_timer lease, settle, leave_again;
    struct client_listener listener;
    struct client_task notify, end;
    bool notify_posted, notifying;
    bool closing;
    uint32_t references; /* of callbacks to come */
};

/* All of these with the client's lock. */
void lock_feed(struct cv_lock *lock, enum lock_event event);
void lock_answer(struct cv_lock *lock, enum lock_event event, int error);
void lock_feed_input(struct cv_lock *lock, struct lock_input *in);
void lock_open_io(struct cv_lock *lock);
/* Sends what a step wants. */
void lock_perform(struct cv_lock *lock, uint32_t out, const struct lock_input *in);
/* Takes over what a list says of our nodes. */
void lock_adopt(struct cv_lock *lock, const struct contend_verdict *verdict);
void lock_watch_own(struct cv_lock *lock);
/* After what a step tells, or an answer: see lock.c. */
void lock_tell(struct cv_lock *lock, uint32_t out);
void lock_become_held(struct cv_lock *lock);
void lock_check_lease(struct cv_lock *lock);
void lock_unreference(struct cv_lock *lock);
/* "path/name", to be freed. */
char *lock_child(const struct cv_lock *lock, const char *name);

#endif
