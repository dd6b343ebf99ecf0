/* Where a lock saturates as ever more processes want it, when every message costs its receiver
 * time. */
#ifndef CV_LAB_EXPERIMENTS_SATURATION_H
#define CV_LAB_EXPERIMENTS_SATURATION_H

#include "lab/sim/sim.h"

struct saturation_row {
    const struct cv_algorithm *algorithm;
    uint64_t processes;
    double per_second;             /* entries */
    double wait_us;                /* from the request to the entry, on average */
    double messages;               /* per entry */
    char busiest[ROSTER_NAME_MAX]; /* the process with most messages */
    double busy;                   /* the part of the time that it needed for them */
    const char *failed;            /* NULL, or why these figures are not those of a lock */
};

/* The point from which on more processes do not get more out of a lock. */
struct saturation {
    const struct saturation_row *from; /* NULL: more still helped at the largest size */
    const struct saturation_row *best, *last;
};

/* Runs one lock at one size: messages take a tenth of the service time, processes think for a
 * hundred times that between two requests, and stay inside for no time. */
void saturation_measure(struct sim *sim, const struct cv_algorithm *algorithm, uint64_t processes,
                        uint64_t service_us, uint64_t seed, struct saturation_row *row);
/* Of the rows of one lock, in order of size, up to the first that has failed; all are NULL if that
 * is the first. */
struct saturation saturation_find(const struct saturation_row *rows, size_t count);

#endif
