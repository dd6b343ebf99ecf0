/* What the recipes use of a client beyond conclave.h.
 *
 * The client's lock guards their state, too.  It may be taken again by who has it, so that cv_start
 * and the like can be called with it; callbacks (of operations, watches, timers, listeners, tasks)
 * are called without it, one after another. */
#ifndef CV_CLIENT_ENGINE_H
#define CV_CLIENT_ENGINE_H

#include "conclave.h"

void client_lock(struct cv_client *client);
void client_unlock(struct cv_client *client);

/* In a callback of this client: what waits must not be called. */
bool client_in_callback(struct cv_client *client);

/* ---- Waiting ---- */

/* Waits until over(arg) is true or the moment `until` (CV_FOREVER: none) has come, and returns
 * CV_OK, CV_OPERATION_TIMEOUT, CV_CLOSING or CV_WOULD_DEADLOCK.  Called with the lock, taken once;
 * `over` is called with it. */
int client_wait(struct cv_client *client, bool (*over)(void *arg), void *arg, int64_t until);
/* Who waits looks again. */
void client_wake(struct cv_client *client);

/* ---- Timers ---- */

struct client_timer {
    int64_t at; /* by cv_now */
    void (*fire)(struct client_timer *timer);
    struct client_timer *next, *before;
    bool set;
};

/* Also moves one that is set. */
void client_timer_set(struct cv_client *client, struct client_timer *timer, int64_t at);
/* It may be firing just now. */
void client_timer_cancel(struct cv_client *client, struct client_timer *timer);

/* ---- Changes of the client's state ---- */

struct client_listener {
    void (*changed)(struct client_listener *listener, enum cv_state state);
    struct client_listener *next, *before;
};

void client_listen(struct cv_client *client, struct client_listener *listener);
/* It may be called just now. */
void client_unlisten(struct cv_client *client, struct client_listener *listener);

/* ---- Tasks ---- */

/* Run once, after the callback that runs now; so it can free what that one uses.  To be safe from
 * all callbacks: cancel timers, unlisten, remove watches (CV_OP_REMOVE_WATCH), and free the rest in
 * a task.  With the client's end the tasks that are left are run. */
struct client_task {
    void (*run)(struct client_task *task);
    struct client_task *next;
};

void client_post(struct cv_client *client, struct client_task *task);

/* ---- Writes ---- */

/* What is started between these two, by this thread with the lock held, leaves in one write. */
void client_cork(struct cv_client *client);
void client_uncork(struct cv_client *client);

#endif
