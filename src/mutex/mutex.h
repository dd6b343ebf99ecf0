/* The lock algorithms, and the little that several of them share. */
#ifndef CV_MUTEX_H
#define CV_MUTEX_H

#include "process/process.h"

extern const struct cv_algorithm cv_central, cv_central_lease, cv_lamport, cv_maekawa, cv_quorum,
    cv_raymond, cv_ricart_agrawala, cv_ricart_agrawala_majority, cv_roucairol_carvalho,
    cv_suzuki_kasami, cv_token_ring, cv_tree_lock, cv_tree_lock_naive, cv_tree_lock_queue,
    cv_voting;

/* Where a competitor stands. */
enum {
    IDLE,
    WAITING,
    INSIDE,
    RESTING, /* between two attempts */
    GONE,    /* back from a crash, without what it would have to know to take part again */
};

/* Requests in one order for all: by logical clock, and those of the same clock by process. */
static inline bool precedes(uint64_t clock, cv_pid p, uint64_t other_clock, cv_pid other) {
    return clock != other_clock ? clock < other_clock : p < other;
}

/* Arms a timer for a random rest that doubles in range from attempt to attempt, 64 times at most,
 * so that those who collided do not collide for ever. */
static inline void rest(struct cv_out *out, unsigned timer, uint32_t attempts, uint64_t pause_us) {
    unsigned doublings = attempts < 7 ? attempts - 1 : 6;
    cv_timer(out, timer, 1, pause_us << doublings);
}

static inline uint32_t one_server(const uint64_t *option) {
    (void)option;
    return 1;
}

/* Quorums: n coordinators, of which m decide.  Any two sets of m must meet. */
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
        return "m must be more than n/2, or two quorums need not meet";
    return NULL;
}

#endif
