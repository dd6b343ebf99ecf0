/* The probability that restarts break a quorum: by the formula, and measured with the real lock.
 *
 * A competitor is inside with the grants of m of n coordinators.  Each of the m restarts within the
 * window, and forgets its grant, with probability p.  A second competitor can enter as soon as 2m-n
 * of them have: together with the n-m that never granted, they are m again.
 *
 * Probabilities are kept as decimal logarithms, because they are often too small for a double. */
#ifndef CV_LAB_EXPERIMENTS_ODDS_H
#define CV_LAB_EXPERIMENTS_ODDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { ODDS_N_MAX = 1000000, ODDS_SIMULATED_N_MAX = 1000, ODDS_RUNS_MIN = 30 };

struct odds_case { /* n/2 < m <= n <= ODDS_N_MAX, 0 <= p <= 1 */
    uint64_t n, m;
    double p;
};

/* How many of the m must forget; at least one. */
static inline uint64_t odds_needed(const struct odds_case *c) { return 2 * c->m - c->n; }

/* log10 of the probability that exclusion is violated: the sum over k = 2m-n .. m of
 * C(m,k) p^k (1-p)^(m-k).  -INFINITY when that is impossible. */
long double odds_log10(const struct odds_case *c);

/* The logarithms of the first terms of that sum: P[k], that k of the m forget, from k = 2m-n on.
 * Returns how many there are room for. */
size_t odds_terms(const struct odds_case *c, long double *log10, size_t room);

/* Writes 10^log10 as "6.933e-06", however small it is; 0 and 1 as "0" and "1". */
char *odds_format(char *buffer, size_t size, long double log10);

/* A row of the lecture's table, which claims that the probability is below 10^bound. */
struct odds_row {
    struct odds_case of;
    const char *p_text;
    int bound;
};
enum { ODDS_ROWS = 12 };
extern const struct odds_row odds_table[ODDS_ROWS];

struct odds_estimate {
    uint64_t runs, violated_runs;
    double sampling_probability;       /* of a restart, in the runs */
    long double log10;                 /* of the estimate */
    long double error_log10;           /* of its standard error */
    long double low_log10, high_log10; /* 95% interval */
    bool formula_inside;
};

/* Measures the same in simulated runs of the `quorum` lock, whose judge decides what was violated.
 * Restarts are drawn more often than they occur, and the runs weighted back (importance sampling).
 * Takes n up to ODDS_SIMULATED_N_MAX and at least ODDS_RUNS_MIN runs.  `progress` may be NULL; it
 * is called now and then if this takes long, and once more at the end.  Returns 0, or -1 when
 * memory runs out. */
int odds_simulate(const struct odds_case *c, uint64_t runs, uint64_t seed,
                  void (*progress)(size_t done, size_t all), struct odds_estimate *estimate);

#endif
