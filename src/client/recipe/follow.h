/* Following nodes: a read with a watch, whose answer and event find their way to an owner that may
 * have lost interest, or be gone, meanwhile. */
#ifndef CV_CLIENT_RECIPE_FOLLOW_H
#define CV_CLIENT_RECIPE_FOLLOW_H

#include "client/engine.h"

struct follow;

struct followers { /* an owner's */
    struct cv_client *client;
    void *owner;
    /* All with the client's lock.  The owner must be there for the answers. */
    void (*answered)(void *owner, int tag, const char *path, const struct cv_result *result);
    void (*fired)(void *owner, int tag, const char *path, enum cv_watch_type type);
    struct follow *first;
};

/* Both with the client's lock.  After CV_OK there will be an answer, and after a good answer an
 * event, unless it is forgotten. */
int follow_start(struct followers *followers, const char *path, int tag);
/* Those whose answer has come. */
void follow_forget(struct followers *followers);

#endif
