/* A process of an algorithm among others, over TCP: the third runtime, beside the simulator and the
 * model checker, of the same object files.
 *
 * It keeps what the algorithms rely on (process/process.h, docs/decisions/0003): channels are
 * reliable and first in, first out, and broken with a crash; what cv_save keeps is durable before
 * anything is sent; failure detectors hear real heartbeats.  All of it is on the owner's loop. */
#ifndef CV_PEER_PEER_H
#define CV_PEER_PEER_H

#include <uv.h>

#include "peer/group.h"

struct tls;

enum { PEER_ERROR_MAX = 640 };
enum { PEER_TOKEN_RUN = 40 }; /* the bit of a fencing token from which the run's number is */

struct peer_config {
    uv_loop_t *loop; /* of net_open */
    const struct group *group;
    cv_pid self;
    const char *data;   /* the directory of what it keeps */
    const char *record; /* where its run is recorded; NULL: nowhere */
    bool amnesia;       /* it comes back without what it has kept, as after the loss of its disk */
    struct tls
        *tls;      /* how peers prove themselves; NULL: plain.  Must outlive the loop's handles. */
    bool insecure; /* plain links to other machines are allowed */
    const struct cv_algorithm *detector; /* NULL: none */
    uint64_t detector_option[CV_OPTIONS_MAX];

    /* Called from the loop.  All of them may call all functions here but peer_close. */
    void *owner;
    void (*told)(void *owner, const struct cv_tell *tell); /* a leader's id is known */
    void (*suspects)(void *owner, cv_pid p, bool down);    /* what the detector says; may be NULL */
    void (*all_done)(void *owner); /* everybody has called peer_done, and knows that of us */
    void (*failed)(void *owner,
                   const char *why); /* it must end now: what it has promised is lost */
};

struct peer;

/* Opens a file of the data of a process, whose directory is made if there is none; -1 and errno. */
int peer_data_open(const char *data, const char *name, int flags);

/* Starts the process.  NULL: why not is in `error`. */
struct peer *peer_open(const struct peer_config *config, char error[PEER_ERROR_MAX]);
/* What the application asks for: CV_ACQUIRE, CV_RELEASE or CV_CAMPAIGN. */
void peer_call(struct peer *peer, uint32_t what);
/* It wants nothing more, and serves the others until all of them are done; if it stays, even then.
 */
void peer_done(struct peer *peer, bool stays);
/* Whoever wanted the lock, or has it, does not any more: it is given back when it comes. */
void peer_abandon(struct peer *peer);
/* If nobody is inside, and the algorithm is patient: writes down where it is, so that the next
 * peer_open goes on there.  It must be closed at once then.  0, or why that failed. */
int peer_suspend(struct peer *peer);
/* It is about to end: those that are there get what it holds for all, where the algorithm can. */
void peer_hand_on(struct peer *peer);
/* Cuts the network between it and another process, from this side, or mends it again. */
void peer_part(struct peer *peer, cv_pid p, bool cut);
/* How many messages of other processes it has taken. */
uint64_t peer_messages(const struct peer *peer);
/* What can be seen of it from outside. */
enum {
    PEER_CONNECTED = 1, /* both links are up */
    PEER_SUSPECTED = 2,
    PEER_BEHIND = 4, /* it is connected, and has not got what was sent to it before the hand-on */
};
struct peer_view {
    void *state; /* a copy, which the caller frees */
    uint32_t rows;
    cv_pid first;                           /* the first row is about that process */
    uint8_t other[GROUP_PROCESSES_MAX + 1]; /* by pid */
};
void peer_look(const struct peer *peer, struct peer_view *view);
/* Sends what was written since; at the end of each iteration of the loop that is done anyway. */
void peer_flush(struct peer *peer);
/* Ends its links; the memory is freed while the loop runs on. */
void peer_close(struct peer *peer);

/* Whether all processes of a group are at loopback addresses. */
bool peer_is_local(const struct group *group);

#endif
