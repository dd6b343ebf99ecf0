/* What several recipes share. */
#ifndef CV_CLIENT_RECIPE_RECIPE_H
#define CV_CLIENT_RECIPE_RECIPE_H

#include "client/engine.h"
#include "recipe/note.h"

/* Random hexadecimal digits that tell an attempt from all others, and NUL. */
enum { GUID_SIZE = 32 };
void recipe_guid(char guid[GUID_SIZE + 1]);

/* Who we are: host, process, and the time on the wall. */
void recipe_note(struct note *note, const char *label);
int64_t recipe_wall_clock(void);

/* "path/name", or "path/name" and a number; to be freed.  NULL: there is no memory. */
char *recipe_child(const char *path, const char *name);
/* The last part of a path. */
const char *recipe_name(const char *path);

/* Whether an answer says that nothing of ours is left on the servers. */
static inline bool recipe_is_over(int error) {
    return error == CV_SESSION_EXPIRED || error == CV_CLOSING || error == CV_AUTH_FAILED;
}
/* Whether a request may have taken effect or not, or was not sent. */
static inline bool recipe_is_lost(int error) {
    return error == CV_CONNECTION_LOSS || error == CV_NO_SERVER || error == CV_SESSION_MOVED ||
           error == CV_OPERATION_TIMEOUT || error == CV_REQUEST_TIMEOUT;
}
/* Whether a server cannot do it now, and later one can: what is ours must not stay for that. */
static inline bool recipe_is_postponed(int error) {
    return error == CV_NOT_READ_ONLY || error == CV_THROTTLED;
}
enum { RECIPE_PAUSE = 250 }; /* before it is asked again */

/* The error of a request that was repeated: after an answer was lost nobody knows that it had no
 * effect. */
static inline int recipe_after_loss(bool lost, int error) {
    return lost && error == CV_NO_SERVER ? CV_CONNECTION_LOSS : error;
}

/* The moment that is so many milliseconds away; CV_FOREVER stays that. */
static inline int64_t recipe_until(int32_t timeout) {
    return timeout == CV_FOREVER ? CV_FOREVER : cv_now() + timeout;
}

/* Creates a node, whose parents are made if they are missing: a container if the server has
 * these, else a persistent one.  Waits. */
int recipe_make_container(struct cv_client *client, const char *path);

/* Waits for one of several watches: an event that stays noted until it is waited for. */
struct recipe_signal;
struct recipe_signal *recipe_signal_new(struct cv_client *client);
/* Waits for an event after the last wait; `until` as for client_wait. */
int recipe_signal_wait(struct recipe_signal *signal, int64_t until);
/* Whether one of its events has ever been that a node was created. */
bool recipe_signal_saw_creation(const struct recipe_signal *signal);
/* Removes its watches, too. */
void recipe_signal_free(struct recipe_signal *signal);
/* A read that is watched by the signal, and its answer. */
int recipe_call_watching(struct cv_client *client, struct recipe_signal *signal, struct cv_op op,
                         struct cv_result **result);

#endif
