/* How long to wait for an answer, given what waiting and what a mistake cost.
 *
 * Waiting T costs E*T.  Who stops waiting although the answer is only late makes a mistake, which
 * costs C; that happens with p(T), the probability that a delay is above T.  The lecture's rule:
 * wait as long as C*p(T) > E*T.  So the best T is the first at which the expected mistake costs no
 * more than the wait; beside it stands the T at which the two cost least together. */
#ifndef CV_LAB_TIMEOUT_H
#define CV_LAB_TIMEOUT_H

#include <stdio.h>

#include "base/distribution.h"

enum { TIMEOUT_ERROR_MAX = 512, TIMEOUT_CURVE_MAX = 20 };

struct delays {
    struct distribution model;
    double *sample_us; /* ascending, owned */
    size_t count;      /* 0: the model counts */
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
 * comment.  Returns 0, or -1 and a sentence that names the place. */
int delays_read(struct delays *delays, FILE *file, const char *name, char error[TIMEOUT_ERROR_MAX]);
void delays_free(struct delays *delays);
/* The probability that a delay is above so many microseconds. */
double delays_above(const struct delays *delays, double us);

struct timeout_point timeout_at(const struct timeout_problem *problem, double us);
static inline double timeout_total(const struct timeout_point *point) {
    return point->mistake_cost + point->wait_cost;
}

struct timeout_point timeout_best(const struct timeout_problem *problem);
struct timeout_point timeout_least_total(const struct timeout_problem *problem);

/* From 0 to beyond both, in microseconds: what is worth showing. */
double timeout_range(const struct timeout_point *best, const struct timeout_point *least_total);
/* The costs at round times over that range, and at both.  Returns how many points. */
size_t timeout_curve(const struct timeout_problem *problem, const struct timeout_point *best,
                     const struct timeout_point *least_total,
                     struct timeout_point curve[TIMEOUT_CURVE_MAX]);

/* Draws both costs, their sum and where they are best. */
void timeout_plot(const struct timeout_problem *problem, const struct timeout_point *best,
                  const struct timeout_point *least_total, FILE *out);

#endif
