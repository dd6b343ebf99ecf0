/* The measured cost of every lock beside its formula. */
#ifndef CV_LAB_EXPERIMENTS_COMPARE_H
#define CV_LAB_EXPERIMENTS_COMPARE_H

#include "lab/sim/sim.h"

enum compare_load {
    LIGHT, /* nearly always one process at a time wants in */
    HEAVY, /* all processes want in all the time */
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
    double attempts;                         /* per entry; NAN: this lock never retries */
    double idle_hops;                        /* messages per entry that let nobody in; NAN: none */
    char footnote[240];                      /* why they differ, from this run; "": they do not */
};

/* Runs one algorithm at one size under one load. */
void compare_measure(struct sim *sim, const struct cv_algorithm *algorithm, uint64_t processes,
                     enum compare_load load, uint64_t seed, struct compare_row *row);

#endif
