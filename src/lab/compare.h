/* Measured cost beside the formula, for every lock there is. */
#ifndef CV_LAB_COMPARE_H
#define CV_LAB_COMPARE_H

#include "sim/sim.h"

enum compare_load {
    LIGHT, /* one wants in at a time, nearly always */
    HEAVY, /* everyone wants in all the time */
    COMPARE_LOADS
};
extern const char *const compare_load_name[COMPARE_LOADS];

struct compare_row {
    const struct cv_algorithm *algorithm;
    uint64_t processes, seed;
    enum compare_load load;
    struct sim_result result;
    double per_entry, delay_hops;            /* measured */
    double formula_per_entry, formula_delay; /* NAN: the formula is a range, or unknown */
    double attempts;                         /* per entry; NAN: this lock never tries again */
    double idle_hops;                        /* messages per entry that let nobody in; NAN */
    char footnote[240];                      /* why they differ, from this run; "" */
};

/* Runs one algorithm at one size under one load. */
void compare_measure(struct sim *sim, const struct cv_algorithm *algorithm, uint64_t processes,
                     enum compare_load load, uint64_t seed, struct compare_row *row);

#endif
