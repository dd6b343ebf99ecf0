/* How long to wait for an answer, given what waiting and what a mistake cost.
 *
 * Waiting T costs E*T.  To stop waiting although the answer is only late is a mistake, which costs
 * C and happens with p(T), the probability that a delay is above T.  The lecture's rule: wait as
 * long as C*p(T) > E*T.  So they break even at the first T at which the expected mistake costs no
 * more than the wait; the least total is at the T that minimizes their sum. */
#ifndef CV_LAB_EXPERIMENTS_TIMEOUT_H
#define CV_LAB_EXPERIMENTS_TIMEOUT_H

#include <stdio.h>

#include "base/distribution.h"

enum { TIMEOUT_ERROR_MAX = 512, TIMEOUT_CURVE_MAX = 20 };

struct delays {
    struct distribution model;
    double *sample_us; /* ascending, owned */
    size_t count;      /* 0: the model is used */
};

struct timeout_problem {
    double wait_cost, mistake_cost; /* E per second, C per mistake; both above 0 */
    struct delays delays;
};

struct timeout_point {
    double timeout_us, mistake_probability;
    double mistake_cost, wait_cost; /* C*p(T) and E*T */
};

/* Reads measured delays: one to a line, "12.5ms" or a bare number of milliseconds; '#' begins a
 * comment.  Returns 0, or -1 and a sentence with name and line. */
int delays_read(struct delays *delays, FILE *file, const char *name, char error[TIMEOUT_ERROR_MAX]);
void delays_free(struct delays *delays);
/* The probability that a delay is above `us` microseconds. */
double delays_above(const struct delays *delays, double us);

struct timeout_point timeout_at(const struct timeout_problem *problem, double us);
static inline double timeout_total(const struct timeout_point *point) {
    return point->mistake_cost + point->wait_cost;
}

struct timeout_point timeout_break_even(const struct timeout_problem *problem);
struct timeout_point timeout_least_total(const struct timeout_problem *problem);

/* The end of the range from 0 that is worth showing, in microseconds: beyond both. */
double timeout_range(const struct timeout_point *break_even,
                     const struct timeout_point *least_total);
/* The costs at round times over that range, and at both.  Returns how many points. */
size_t timeout_curve(const struct timeout_problem *problem, const struct timeout_point *break_even,
                     const struct timeout_point *least_total,
                     struct timeout_point curve[TIMEOUT_CURVE_MAX]);

/* Draws both costs, their sum, where they are even and where the sum is least. */
void timeout_plot(const struct timeout_problem *problem, const struct timeout_point *break_even,
                  const struct timeout_point *least_total, FILE *out);

#endif
