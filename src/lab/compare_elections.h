/* Measured cost of every election beside its formula, over sizes. */
#ifndef CV_LAB_COMPARE_ELECTIONS_H
#define CV_LAB_COMPARE_ELECTIONS_H

#include "lab/stats.h"
#include "sim/sim.h"

struct election_cost {
    const struct cv_algorithm *algorithm;
    uint64_t processes;
    size_t runs;
    struct stats messages, hops, rounds; /* hops: until all had decided, in message times */
    double formula;                      /* NAN: none that gives a number */
    size_t violated;                     /* runs that did not come out right */
};

/* Runs one election at one size, all processes initiating, over as many seeds as is reasonable. */
void election_measure(struct sim *sim, const struct cv_algorithm *algorithm, uint64_t processes,
                      uint64_t seed, struct election_cost *cost);
/* Whether the next size, growing as from the size before (NULL: none), ends in reasonable time. */
bool election_affordable(const struct election_cost *cost, const struct election_cost *before);
/* What one should know of these figures; NULL: nothing. */
const char *election_note(const struct cv_algorithm *algorithm);

#endif
