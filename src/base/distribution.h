/* Random durations: what a message takes, how long a process thinks, holds or stays down. */
#ifndef CV_BASE_DISTRIBUTION_H
#define CV_BASE_DISTRIBUTION_H

#include <stddef.h>
#include <stdint.h>

#include "base/rng.h"

enum distribution_kind { CONSTANT, UNIFORM, EXPONENTIAL, LOGNORMAL };

struct distribution {
    enum distribution_kind kind;
    double a, b; /* microseconds: value; min, max; mean; median, and sigma of the logarithm */
};

#define DISTRIBUTION_SYNTAX "1ms, uniform:1ms,5ms, exponential:2ms or lognormal:2ms,0.8"

/* Reads the forms above; "constant:1ms" is the long form of the first.  Returns 0 or -1. */
int distribution_parse(const char *text, struct distribution *result);
/* Writes the form that distribution_parse reads. */
char *distribution_format(char *buffer, size_t size, const struct distribution *d);
double distribution_mean(const struct distribution *d);
/* The probability that a draw is above x microseconds. */
double distribution_above(const struct distribution *d, double x);

/* Whole microseconds, at most thirty years, so that sums of them cannot overflow. */
uint64_t distribution_clamp(double us);
uint64_t distribution_draw_slow(const struct distribution *d, struct rng *rng);
static inline uint64_t distribution_draw(const struct distribution *d, struct rng *rng) {
    return d->kind == CONSTANT ? (uint64_t)d->a : distribution_draw_slow(d, rng);
}

#endif
