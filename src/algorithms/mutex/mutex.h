/* The little that several locks share. */
#ifndef CV_ALGORITHMS_MUTEX_MUTEX_H
#define CV_ALGORITHMS_MUTEX_MUTEX_H

#include "process/process.h"

/* The phase of a competitor. */
enum {
    IDLE,
    WAITING,
    INSIDE,
    BACKING_OFF, /* between two attempts */
    GONE,        /* back from a crash, without the state that it needs to take part again */
};
#define PHASES "idle|waiting|inside|backing off|gone"

/* The total order of requests: by logical clock, then by process. */
static inline bool precedes(uint64_t clock, cv_pid p, uint64_t other_clock, cv_pid other) {
    return clock != other_clock ? clock < other_clock : p < other;
}

/* Arms a timer for a random back-off whose range doubles from attempt to attempt, up to 64 times,
 * so that processes that collided do not collide for ever. */
static inline void back_off(struct cv_out *out, unsigned timer, uint32_t attempts,
                            uint64_t pause_us) {
    unsigned doublings = attempts < 7 ? attempts - 1 : 6;
    cv_timer(out, timer, 1, pause_us << doublings);
}

/* Epochs order those who hand out the lock one after another.  Each process has epochs of its own,
 * so that no two hand it out in the same one. */
static inline uint64_t next_epoch(uint64_t epoch, const struct cv_env *env) {
    uint64_t mine = epoch - epoch % env->processes + (env->self - 1);
    return mine > epoch ? mine : mine + env->processes;
}

/* Whoever hands out the lock begins another epoch before it has used up the tokens of this one. */
enum { TOKENS_PER_EPOCH = 1000000 }; /* so that people can read fencing tokens */

static inline uint64_t fencing_token(uint64_t epoch, uint64_t number) {
    return epoch * TOKENS_PER_EPOCH + number;
}

static inline uint32_t one_server(const uint64_t *option) {
    (void)option;
    return 1;
}

/* Quorums: n coordinators, of which m decide.  Any two sets of m must intersect. */
enum { N, M }; /* the first two options */
#define OPTION_N                                                                                   \
    { "n", "coordinators", CV_NUMBER, 3, 1, 1000000 }
#define OPTION_M                                                                                   \
    { "m", "votes that are enough to enter (a majority)", CV_NUMBER, CV_UNSET, 1, 1000000 }

static inline uint32_t quorum_servers(const uint64_t *option) { return (uint32_t)option[N]; }

static inline uint64_t quorum_size(const struct cv_env *env) {
    return env->option[M] == CV_UNSET ? env->option[N] / 2 + 1 : env->option[M];
}

static inline const char *refuse_quorum(const struct cv_env *env) {
    if (quorum_size(env) > env->option[N]) return "m cannot be more than n";
    if (2 * quorum_size(env) <= env->option[N])
        return "m must be more than n/2, or two quorums need not intersect";
    return NULL;
}

#endif
