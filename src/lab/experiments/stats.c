#include "lab/experiments/stats.h"

#include <math.h>
#include <stdlib.h>

/* Two-sided 95% quantiles of Student's t for 1 to 30 degrees of freedom. */
static const double student[] = {12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306,
                                 2.262,  2.228, 2.201, 2.179, 2.160, 2.145, 2.131, 2.120,
                                 2.110,  2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064,
                                 2.060,  2.056, 2.052, 2.048, 2.045, 2.042};
static const double normal = 1.959964;

static double quantile_95(size_t freedom) {
    size_t known = sizeof student / sizeof student[0];
    return freedom <= known ? student[freedom - 1] : normal * (1 + 1 / (2.0 * (double)freedom));
}

static int ascending(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The smallest value that at least this part of all values do not exceed. */
static double percentile(const double *sorted, size_t count, double part) {
    size_t rank = (size_t)ceil(part * (double)count);
    return sorted[rank ? rank - 1 : 0];
}

struct stats stats_of(double *values, size_t count) {
    struct stats s = {.count = count};
    if (count == 0) return (struct stats){0, NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN};
    qsort(values, count, sizeof *values,
          ascending); /* so that sums do not depend on the order of the runs */
    double sum = 0, squares = 0;
    for (size_t i = 0; i < count; i++) sum += values[i];
    s.mean = s.low = s.high = sum / (double)count;
    for (size_t i = 0; i < count; i++) squares += (values[i] - s.mean) * (values[i] - s.mean);
    if (count > 1) {
        double error = sqrt(squares / (double)(count - 1) / (double)count);
        s.low -= quantile_95(count - 1) * error;
        s.high += quantile_95(count - 1) * error;
    }
    s.min = values[0], s.max = values[count - 1];
    s.p50 = percentile(values, count, 0.50);
    s.p90 = percentile(values, count, 0.90);
    s.p99 = percentile(values, count, 0.99);
    return s;
}

struct proportion proportion_of(size_t hits, size_t count) {
    double n = (double)count, rate = n > 0 ? (double)hits / n : 0, z = normal;
    if (count == 0) return (struct proportion){0, 0, 1};
    double centre = (rate + z * z / (2 * n)) / (1 + z * z / n);
    double half = z / (1 + z * z / n) * sqrt(rate * (1 - rate) / n + z * z / (4 * n * n));
    return (struct proportion){rate, hits ? centre - half : 0, hits < count ? centre + half : 1};
}
