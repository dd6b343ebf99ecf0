/* The little that several elections share. */
#ifndef CV_ALGORITHMS_ELECTION_ELECTION_H
#define CV_ALGORITHMS_ELECTION_ELECTION_H

#include "process/process.h"

/* The layout of a state without rows and without a durable prefix. */
static inline void bare_layout(const struct cv_env *env, struct cv_layout *layout) {
    (void)env, (void)layout;
}

/* On rings: the direction of a message.  The neighbour to the right is the first, to the left the
 * second; with two processes both are the same one, so messages that go both ways carry their
 * direction. */
enum { TO_THE_RIGHT, TO_THE_LEFT };

static inline cv_pid ring_neighbour(const struct cv_env *env, uint32_t direction) {
    return env->neighbours[direction];
}

/* Candidates are compared by their weight, and where that is equal by their id.  A weight of 0 is
 * not eligible: it is the worst, and does not lead even when nobody else is there. */
static inline bool better_candidate(uint64_t weight, uint64_t id, uint64_t than_weight,
                                    uint64_t than_id) {
    return weight != than_weight ? weight > than_weight : id > than_id;
}

/* The same where the least is wanted; 0 wraps around, and so comes last here, too. */
static inline bool lower_candidate(uint64_t weight, uint64_t id, uint64_t than_weight,
                                   uint64_t than_id) {
    return better_candidate(than_weight - 1, than_id, weight - 1, id);
}

/* ---- One-way rings with a failure detector, whose dead are skipped ---- */

/* A process keeps a bit for each of the next RING_SIGHT to its right: whether it is down.  So a
 * ring of a million needs no more memory than one of three, and 32 dead in a row break it. */
enum { RING_SIGHT = 32 };

static inline uint32_t ring_sight(const struct cv_env *env) {
    return env->processes - 1 < RING_SIGHT ? env->processes - 1 : RING_SIGHT;
}

/* How many are skipped, because they and all before them are down. */
static inline uint32_t ring_skipped(uint32_t down) {
    return ~down ? (uint32_t)__builtin_ctz(~down) : RING_SIGHT;
}

/* The next to the right that is not known to be down, or CV_NOBODY.  Without a failure detector the
 * state is not read, because on a ring of a million that takes longer than all the rest. */
#define ring_next(ENV, DOWN) ((ENV)->detector ? ring_next_up(ENV, DOWN) : ring_next_of_all(ENV))
static inline cv_pid ring_next_of_all(const struct cv_env *env) {
    return env->processes > 1 ? env->neighbours[0] : (cv_pid)CV_NOBODY;
}
static inline cv_pid ring_next_up(const struct cv_env *env, uint32_t down) {
    uint32_t skipped = ring_skipped(down);
    return skipped < env->processes - 1 ? env->neighbours[skipped] : (cv_pid)CV_NOBODY;
}

/* The bit of a process; 0 when it is out of sight. */
static inline uint32_t ring_bit(const struct cv_env *env, cv_pid p) {
    for (uint32_t i = 0; i < ring_sight(env); i++)
        if (env->neighbours[i] == p) return 1u << i;
    return 0;
}

/* Whether the process with that id is among those to the right that these bits stand for. */
static inline bool ring_has(const struct cv_env *env, uint32_t bits, uint64_t id) {
    for (; bits; bits &= bits - 1)
        if (env->ids[env->neighbours[__builtin_ctz(bits)]] == id) return true;
    return false;
}

/* Whether a message for the process with that id would pass it by. */
static inline bool ring_skips(const struct cv_env *env, uint32_t down, uint64_t id) {
    uint32_t skipped = ring_skipped(down);
    return skipped && ring_has(env, UINT32_MAX >> (RING_SIGHT - skipped), id);
}

#endif
