/* Peers: locks and leaders among processes that talk to each other over TCP, with no server.
 *
 * A program takes part in a group as one of its processes, by any algorithm of `conclave list`; the
 * others may be such programs, too, or `conclave peer`.  All have the same list of peers and the
 * same options, as `conclave peer --help` describes them.  A first program:
 *
 *     struct cv_peer *peer;
 *     struct cv_peer_options options = {
 *         .algorithm = "ricart-agrawala", .peers = "peers.conf", .id = 2};
 *     if (cv_peer_open(&peer, &options) != CV_OK) ... cv_peer_explain says why
 *     if (cv_peer_acquire(peer, CV_FOREVER) == CV_OK) {
 *         ... nobody else of the group is here
 *         cv_peer_release(peer);
 *     }
 *     cv_peer_finish(peer, CV_FOREVER);   the others may need this one for longer
 *     cv_peer_close(peer);
 *
 * There is no lease: a process that is cut off keeps the lock that it has, and the others wait.
 * What a crash breaks depends on the algorithm (`conclave explain NAME`).
 *
 * Results.  Functions return CV_OK (0) or a negative enum cv_error of conclave.h.  CV_LOST: this
 * peer cannot go on, because its disk has failed, or because it was away for so long that what was
 * sent to it could not be kept; cv_peer_explain says which.  It has to be closed and opened again,
 * which is a restart to the others.  Both callbacks tell it, once, whatever the peer was doing:
 * on_lock with CV_LOST_LOCK, on_leader with CV_PEER_LOST, and they tell nothing after that.  With
 * CV_PEER_OWN_LOOP cv_peer_fd becomes readable, also without callbacks, and cv_peer_process returns
 * it from then on.
 *
 * Threads.  The network is served by a thread of the peer's own, which blocks all signals: the
 * others get their answers whatever the program does meanwhile.  Every function but cv_peer_close
 * may be called from any thread.  Callbacks come one at a time from the peer's thread, with no lock
 * held, and may call everything that does not wait; what waits returns CV_WOULD_DEADLOCK there.
 * With CV_PEER_OWN_LOOP they come from cv_peer_process instead, which the program's own loop calls
 * when cv_peer_fd is readable; then they may wait, too.
 *
 * What is worth a warning is written to standard error. */
#ifndef CONCLAVE_PEER_H
#define CONCLAVE_PEER_H

#include <conclave.h>

#ifdef __cplusplus
extern "C" {
#endif

struct cv_peer;

enum cv_peer_flags {
    CV_PEER_OWN_LOOP = 1, /* callbacks come from cv_peer_process */
    CV_PEER_INSECURE = 2, /* without a key or certificates whoever reaches the port is believed */
    CV_PEER_STAYS = 4,    /* it serves on when all are done: cv_peer_finish never ends by itself */
};

/* CV_PEER_LEADERLESS passes; CV_PEER_LOST: this peer cannot go on, and knows of no leader. */
enum cv_peer_role { CV_PEER_LEADERLESS, CV_PEER_FOLLOWS, CV_PEER_LEADS, CV_PEER_LOST };

/* Of a lock: CV_WAITING, CV_HELD, CV_IDLE, or CV_LOST_LOCK when the peer cannot go on. */
typedef void cv_peer_lock_fn(struct cv_peer *peer, enum cv_lock_state state, void *arg);
/* The leader is an id of the list of peers, 0 if it is not known; terms are 0 where the algorithm
 * has none. */
typedef void cv_peer_leader_fn(struct cv_peer *peer, enum cv_peer_role role, uint64_t leader,
                               uint32_t term, void *arg);

struct cv_peer_options {
    const char *algorithm; /* a name of `conclave list`, or a file that ends in .so */
    const char *peers;     /* the file with the list of all peers */
    uint32_t id;           /* which of them this is: 1, 2, 3, ... */
    uint32_t flags;
    /* Options of the algorithm, "name=value" each, or "name" for one without a value; NULL is the
     * last.  NULL: all have their defaults. */
    const char *const *options;
    const char *data;   /* the directory of what survives a restart; NULL: conclave-peer-ID, beside
                           the   list */
    const char *record; /* a file for `conclave trace`; NULL: none */
    const char *detector;     /* "fixed:1s", "adaptive:K", "phi:X" or "none"; NULL: the usual one */
    int32_t heartbeat;        /* of the detector, ms.  100 */
    const char *key;          /* file of a secret that all share; NULL: made beside the list, if all
                                 addresses are those of loopback */
    const struct cv_tls *tls; /* certificates instead of a key: all three files */
    cv_peer_lock_fn *on_lock;
    cv_peer_leader_fn *on_leader;
    void *arg; /* of both */
};

/* Starts the process of the group; it does not wait for the others.  On failure *peer is still set,
 * unless there is no memory, so that cv_peer_explain can be asked; close it in any case. */
CV_API int cv_peer_open_sized(struct cv_peer **peer, const struct cv_peer_options *options,
                              size_t size);
static inline int cv_peer_open(struct cv_peer **peer, const struct cv_peer_options *options) {
    return cv_peer_open_sized(peer, options, sizeof *options);
}
/* One line on why it could not be opened, or cannot go on; empty if it could and can, or is NULL.
 * Copied to `text`; returns it. */
CV_API const char *cv_peer_explain(struct cv_peer *peer, char *text, size_t size);

/* ---- Locks ---- */

/* Waits for the lock.  CV_BUSY: another thread of this program holds it or waits for it.
 * CV_OPERATION_TIMEOUT: it was not to be had in time.  Most algorithms cannot take a request back,
 * so one that comes too late is released by itself, at once.  CV_UNIMPLEMENTED: the algorithm gives
 * no locks, or this peer is one that serves them. */
CV_API int cv_peer_acquire(struct cv_peer *peer, int32_t timeout);
/* Does not wait: on_lock tells. */
CV_API int cv_peer_start(struct cv_peer *peer);
/* Also gives up waiting.  CV_NOT_HELD: neither.  Does not wait for anybody. */
CV_API int cv_peer_release(struct cv_peer *peer);
CV_API enum cv_lock_state cv_peer_state(struct cv_peer *peer);
/* The fencing token, which grows with each grant; 0: not held, or the algorithm has none. */
CV_API uint64_t cv_peer_token(struct cv_peer *peer);

/* ---- Elections ---- */

/* Stands for election: on_leader tells, now and whenever it changes.  CV_UNIMPLEMENTED: the
 * algorithm elects nobody. */
CV_API int cv_peer_campaign(struct cv_peer *peer);
/* Who leads, as far as this peer knows; both pointers may be NULL. */
CV_API enum cv_peer_role cv_peer_leader(struct cv_peer *peer, uint64_t *leader, uint32_t *term);

/* ---- The end ---- */

/* This peer wants nothing more.  It serves the others until all of them have said the same, which
 * is waited for.  CV_OPERATION_TIMEOUT: not all have; call it again, or go on serving. */
CV_API int cv_peer_finish(struct cv_peer *peer, int32_t timeout);
/* Releases what it holds, and ends.  To others that have not finished it is away until it is opened
 * again with the same data; where a lock does not wait for who is away, and in elections, this is a
 * crash.  Not from a callback, and no other thread may use the peer any more. */
CV_API void cv_peer_close(struct cv_peer *peer);

/* ---- The program's own loop, with CV_PEER_OWN_LOOP ---- */

CV_API int cv_peer_fd(struct cv_peer *peer); /* -1 without it */
/* Calls back what has happened since; does not wait.  CV_LOST: the peer cannot go on. */
CV_API int cv_peer_process(struct cv_peer *peer);

#ifdef __cplusplus
}
#endif
#endif
