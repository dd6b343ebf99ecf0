/* A peer on a loop and a thread of its own, for an application that waits elsewhere. */
#ifndef CV_PEER_THREAD_H
#define CV_PEER_THREAD_H

#include "peer/peer.h"

/* How peers prove themselves: by a key that they share, by certificates (all three), or by nothing.
 */
struct peer_credentials {
    const char *key, *certificate, *certificate_key, *authorities;
};

struct peer_thread;

/* Starts it; `config` needs no loop, no TLS and no callbacks.  `wake` is called from the thread
 * whenever there is something to look at.  NULL: why not is in `error`. */
struct peer_thread *peer_thread_open(const struct peer_config *config,
                                     const struct peer_credentials *credentials,
                                     void (*wake)(void *arg), void *arg,
                                     char error[PEER_ERROR_MAX]);
void peer_thread_call(struct peer_thread *thread, uint32_t what);
void peer_thread_abandon(struct peer_thread *thread);
/* Cuts the network to another process, or mends it; see peer_part. */
void peer_thread_part(struct peer_thread *thread, cv_pid p, bool cut);
void peer_thread_done(struct peer_thread *thread, bool stays);
/* Has `wake` called from the thread. */
void peer_thread_look(struct peer_thread *thread);
/* What can be seen of the peer now: waits until its thread has looked. */
void peer_thread_view(struct peer_thread *thread, struct peer_view *view);
/* Takes the next thing that the application was told; false: there is none now. */
bool peer_thread_next(struct peer_thread *thread, struct cv_tell *tell);
/* Everybody is done. */
bool peer_thread_is_over(struct peer_thread *thread);
/* Why the peer cannot go on; NULL: it can. */
const char *peer_thread_failure(struct peer_thread *thread);
/* Whether this is called from the thread itself, from `wake`: calls then take effect at once. */
bool peer_thread_is_own(const struct peer_thread *thread);
/* It is about to end: the others get what it holds for all and what it has said.  Those that do not
 * answer are not waited for. */
void peer_thread_farewell(struct peer_thread *thread);
/* 0, or why the peer will not go on where it was, though it could have. */
int peer_thread_close(struct peer_thread *thread);

#endif
