/* Statistics of many measurements. */
#ifndef CV_LAB_EXPERIMENTS_STATS_H
#define CV_LAB_EXPERIMENTS_STATS_H

#include <stddef.h>

struct stats {
    size_t count;
    double mean, low, high; /* of the mean, 95% interval */
    double min, p50, p90, p99, max;
};

/* Sorts `values`, which must not contain NAN. */
struct stats stats_of(double *values, size_t count);

struct proportion {
    double rate, low, high; /* 95% interval (Wilson), sensible at 0 and 1 too */
};
struct proportion proportion_of(size_t hits, size_t count);

#endif
