/* What many measurements say together. */
#ifndef CV_LAB_STATS_H
#define CV_LAB_STATS_H

#include <stddef.h>

struct stats {
    size_t count;
    double mean, low, high; /* of the mean, 95% interval */
    double least, p50, p90, p99, most;
};

/* Sorts `values`; those that are NAN must have been left out. */
struct stats stats_of(double *values, size_t count);

struct proportion {
    double rate, low, high; /* 95% interval (Wilson), sensible at 0 and 1 too */
};
struct proportion proportion_of(size_t hits, size_t count);

#endif
