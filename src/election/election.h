/* The election algorithms, and the little that several of them share. */
#ifndef CV_ELECTION_H
#define CV_ELECTION_H

#include "process/process.h"

/* Every election there is: E(name) for each cv_name. */
#define RING_ELECTIONS(E)                                                                          \
    E(ring_anonymous)                                                                              \
    E(ring_list)                                                                                   \
    E(ring_coordinator)                                                                            \
    E(chang_roberts) E(franklin) E(hirschberg_sinclair) E(peterson) E(itai_rodeh)
#define NETWORK_ELECTIONS(E)                                                                       \
    E(bully) E(bully_stable) E(majority_terms) E(invitation) E(filtered_gossip) E(yo_yo)

#define E(NAME) extern const struct cv_algorithm cv_##NAME;
RING_ELECTIONS(E)
NETWORK_ELECTIONS(E)
#undef E

/* The layout of a state without rows, of which nothing must survive a crash. */
static inline void bare_layout(const struct cv_env *env, struct cv_layout *layout) {
    (void)env, (void)layout;
}

/* On rings: where a message is to go.  The neighbour to the right is the first, to the left the
 * second; with two processes both are the same one, so messages that go both ways say which way
 * they go. */
enum { TO_THE_RIGHT, TO_THE_LEFT };

static inline cv_pid ring_neighbour(const struct cv_env *env, uint32_t direction) {
    return env->neighbours[direction];
}

/* Candidates are compared by their weight, and where that is equal by their id. */
static inline bool better_candidate(uint64_t weight, uint64_t id, uint64_t than_weight,
                                    uint64_t than_id) {
    return weight != than_weight ? weight > than_weight : id > than_id;
}

#endif
