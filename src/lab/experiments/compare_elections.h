/* The measured cost of every election beside its formula, over sizes. */
#ifndef CV_LAB_EXPERIMENTS_COMPARE_ELECTIONS_H
#define CV_LAB_EXPERIMENTS_COMPARE_ELECTIONS_H

#include "lab/experiments/stats.h"
#include "lab/sim/sim.h"

struct election_cost {
    const struct cv_algorithm *algorithm;
    uint64_t processes;
    size_t runs;
    struct stats messages, hops, rounds; /* hops: until all had decided, in message times */
    double formula;                      /* NAN: it gives no number */
    size_t violated;                     /* runs that violated a property */
};

/* Whether it can be of that size. */
bool size_is_possible(const struct cv_algorithm *algorithm, uint64_t processes);
/* Runs one election at one size, all processes initiating, over as many seeds as is reasonable. */
void election_measure(struct sim *sim, const struct cv_algorithm *algorithm, uint64_t processes,
                      uint64_t seed, struct election_cost *cost);
/* Whether the next size ends in reasonable time, if it grows as from `before` (NULL: none). */
bool election_affordable(const struct election_cost *cost, const struct election_cost *before);
/* A remark on these figures, or NULL. */
const char *election_note(const struct cv_algorithm *algorithm);

#endif
