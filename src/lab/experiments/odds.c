/* The odds of a broken quorum. */
#include "lab/experiments/odds.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "algorithms/catalogue.h"
#include "lab/experiments/stats.h"
#include "lab/sim/sim.h"

#define LN_10 2.302585092994045684017991454684364208L

#define ROW(N, M, SECONDS, BOUND)                                                                  \
    { {N, M, SECONDS / 3600.0}, #SECONDS "s/hour", BOUND }
const struct odds_row odds_table[ODDS_ROWS] = {
    ROW(8, 5, 3, -5),   ROW(8, 6, 3, -11),    ROW(16, 9, 3, -4),   ROW(16, 12, 3, -21),
    ROW(32, 17, 3, -4), ROW(32, 24, 3, -43),  ROW(8, 5, 30, -3),   ROW(8, 6, 30, -7),
    ROW(16, 9, 30, -2), ROW(16, 12, 30, -13), ROW(32, 17, 30, -2), ROW(32, 24, 30, -27),
};

/* ---- The formula ---- */

/* A long sum of numbers of either sign, with the rounding errors summed beside it (Kahan). */
struct exact_sum {
    long double sum, error;
};

static void exact_add(struct exact_sum *s, long double x) {
    long double corrected = x - s->error, sum = s->sum + corrected;
    s->error = (sum - s->sum) - corrected;
    s->sum = sum;
}

/* The logarithm of a sum of numbers that are given by their logarithms. */
struct log_sum {
    long double greatest, relative; /* the sum is relative * e^greatest */
};

static void log_add(struct log_sum *s, long double log) {
    if (log > s->greatest) {
        s->relative = s->relative * expl(s->greatest - log) + 1;
        s->greatest = log;
    } else {
        s->relative += expl(log - s->greatest);
    }
}

/* Goes through the terms of the sum by their logarithms, from k = 2m-n on; 0 < p < 1. */
struct terms {
    long double log_p, log_not_p;
    struct exact_sum term; /* the logarithm of C(m,k) p^k (1-p)^(m-k) */
    uint64_t k, m;
};

static void next_term(struct terms *t) {
    exact_add(&t->term, logl((long double)(t->m - t->k) / (long double)(t->k + 1)));
    exact_add(&t->term, t->log_p);
    exact_add(&t->term, -t->log_not_p);
    t->k++;
}

static struct terms first_term(const struct odds_case *c) {
    struct terms t = {.log_p = logl(c->p), .log_not_p = log1pl(-(long double)c->p), .m = c->m};
    exact_add(&t.term, (long double)c->m * t.log_not_p);
    while (t.k < odds_needed(c)) next_term(&t);
    return t;
}

long double odds_log10(const struct odds_case *c) {
    if (c->p <= 0) return -INFINITY;
    if (c->p >= 1) return 0;
    struct terms t = first_term(c);
    struct log_sum all = {-INFINITY, 0};
    for (;; next_term(&t)) {
        log_add(&all, t.term.sum);
        if (t.k == t.m) break;
    }
    long double log10 = (all.greatest + logl(all.relative)) / LN_10;
    return log10 < 0 ? log10 : 0; /* rounding must not exceed probability 1 */
}

size_t odds_terms(const struct odds_case *c, long double *log10, size_t room) {
    uint64_t needed = odds_needed(c), all = c->m - needed + 1;
    size_t count = all < room ? (size_t)all : room;
    if (c->p <= 0 || c->p >= 1) {
        for (size_t i = 0; i < count; i++)
            log10[i] = c->p >= 1 && needed + i == c->m ? 0 : -INFINITY;
        return count;
    }
    struct terms t = first_term(c);
    for (size_t i = 0; i < count; i++) {
        log10[i] = t.term.sum / LN_10;
        if (t.k < t.m) next_term(&t);
    }
    return count;
}

char *odds_format(char *buffer, size_t size, long double log10) {
    if (log10 == -INFINITY || log10 == 0) {
        snprintf(buffer, size, "%d", log10 == 0);
        return buffer;
    }
    long double exponent = floorl(log10), mantissa = powl(10, log10 - exponent);
    if (mantissa >= 9.9995L) mantissa = 1, exponent++; /* it would be printed as 10.000 */
    snprintf(buffer, size, "%.3Lfe%+03.0Lf", mantissa, exponent);
    return buffer;
}

/* ---- One run of the real lock ---- */

enum {
    DEFAULT_DELAY_US = 5000, /* after p1 has entered */
    RESTARTS_US = 10000,
    SECOND_ASKS_US = 20000,
    END_US = 100000,
    NEVER_US = 10 * END_US,
};

static struct sim_action *add(struct sim_config *config, uint64_t at_us, enum sim_action_type type,
                              cv_pid process) {
    struct sim_action *action = &config->actions[config->action_count++];
    *action = (struct sim_action){.at_us = at_us, .type = type, .process = process};
    return action;
}

static void set_option(struct sim_config *config, const char *name, uint64_t value) {
    config->option[option_find(config->algorithm, name) - config->algorithm->options] = value;
}

/* The beginning of all runs: p1 enters with the grants of the first m coordinators, because its
 * requests to the others are late, and stays inside to the end. */
static int prepare(struct sim_config *config, const struct odds_case *c) {
    const cv_pid n = (cv_pid)c->n, p1 = n + 1;
    config_init(config, catalogue_find("quorum"));
    config->processes = 2;
    config->time_limit = END_US;
    set_option(config, "n", c->n);
    set_option(config, "m", c->m);
    set_option(config, "give-up", 0);
    config->actions = calloc(2 * c->n + 3, sizeof *config->actions);
    if (!config->actions) return -1;
    for (cv_pid coordinator = (cv_pid)c->m + 1; coordinator <= n; coordinator++) {
        struct sim_action *late = add(config, 0, ACT_DELAY, p1);
        late->other = coordinator;
        late->delay = (struct distribution){CONSTANT, NEVER_US, 0};
    }
    add(config, 0, ACT_ACQUIRE, p1)->amount = NEVER_US;
    add(config, DEFAULT_DELAY_US, ACT_DELAY, SIM_ANY_PID)->default_delay = true;
    return 0;
}

/* Restarts each of the m with the given probability, then lets p2 ask.  Returns the number of
 * restarts. */
static uint64_t schedule_restarts(struct sim_config *config, const struct odds_case *c,
                                  double probability, struct rng *rng) {
    uint64_t restarts = 0, at = RESTARTS_US;
    for (cv_pid coordinator = 1; coordinator <= c->m; coordinator++) {
        if (!rng_chance(rng, probability)) continue;
        add(config, at++, ACT_CRASH, coordinator);
        add(config, at++, ACT_RECOVER, coordinator)->amnesia = true;
        restarts++;
    }
    add(config, SECOND_ASKS_US, ACT_ACQUIRE, (cv_pid)c->n + 2);
    return restarts;
}

/* ---- Many runs ---- */

/* The probability of restarts in the runs, which makes the fewest restarts that violate exclusion
 * typical.  It stays inside (0, 1), so that every number of restarts can be drawn. */
static double sampling_probability(const struct odds_case *c) {
    double m = (double)c->m, tilted = (double)odds_needed(c) / m, max = 1 - 1 / (2 * m);
    if (c->p <= 0 || c->p >= 1) return c->p;
    if (tilted > max) tilted = max;
    return c->p > tilted ? c->p : tilted;
}

/* The logarithm of the likelihood ratio of a run with this many restarts: truth to sampling. */
static long double log_weight(const struct odds_case *c, double q, uint64_t restarts) {
    if (q == c->p) return 0;
    long double log_ratio = logl(c->p) - logl(q);
    long double log_ratio_not = log1pl(-(long double)c->p) - log1pl(-(long double)q);
    return (long double)restarts * log_ratio + (long double)(c->m - restarts) * log_ratio_not;
}

static long double to_log10(long double relative, long double log_scale) {
    return relative > 0 ? (logl(relative) + log_scale) / LN_10 : -INFINITY;
}

/* `violated[f]`: runs with f restarts whose exclusion was violated. */
static void sum_up(const struct odds_case *c, const uint64_t *violated, struct odds_estimate *e) {
    const long double runs = (long double)e->runs, z = 1.959964L;
    const double q = e->sampling_probability;
    long double scale = -INFINITY, mean = 0, squares = 0;
    for (uint64_t f = 0; f <= c->m; f++) {
        long double weight = log_weight(c, q, f);
        e->violated_runs += violated[f];
        if (violated[f] && weight > scale) scale = weight;
    }
    for (uint64_t f = 0; f <= c->m; f++) {
        if (!violated[f]) continue;
        long double weight = expl(log_weight(c, q, f) - scale);
        mean += (long double)violated[f] * weight / runs;
        squares += (long double)violated[f] * weight * weight / runs;
    }
    long double variance = (squares - mean * mean) / (runs - 1);
    long double error = variance > 0 ? sqrtl(variance) : 0;
    struct proportion plain = proportion_of(e->violated_runs, e->runs);
    bool weighted = q != c->p;
    e->log10 = to_log10(mean, scale);
    e->error_log10 = to_log10(error, scale);
    e->low_log10 = weighted ? to_log10(mean - z * error, scale) : to_log10(plain.low, 0);
    e->high_log10 = weighted ? to_log10(mean + z * error, scale) : to_log10(plain.high, 0);
    long double formula = odds_log10(c);
    e->formula_inside = e->low_log10 <= formula && formula <= e->high_log10;
}

/* Calls `progress` ten times a second, from half a second on. */
struct reporter {
    void (*progress)(size_t done, size_t all);
    double next_s;
    bool called;
};

static double now_s(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static void report(struct reporter *reporter, size_t done, size_t all) {
    if (!reporter->progress) return;
    double now = now_s();
    if (done == all ? !reporter->called : now < reporter->next_s) return;
    reporter->progress(done, all);
    reporter->next_s = now + 0.1;
    reporter->called = true;
}

static void run_all(struct sim *sim, struct sim_config *config, const struct odds_case *c,
                    struct odds_estimate *e, uint64_t *violated, struct reporter *reporter) {
    const size_t prepared = config->action_count;
    struct rng rng;
    rng_seed(&rng, config->seed);
    for (uint64_t run = 0; run < e->runs; run++) {
        config->action_count = prepared;
        uint64_t restarts = schedule_restarts(config, c, e->sampling_probability, &rng);
        sim_run(sim, config, NULL);
        cv_assert(sim->judge.of[c->n + 1].inside); /* else p2 could not violate exclusion */
        violated[restarts] += sim->judge.verdict[EXCLUSION].value == VIOLATED;
        report(reporter, run + 1, e->runs);
    }
}

int odds_simulate(const struct odds_case *c, uint64_t runs, uint64_t seed,
                  void (*progress)(size_t done, size_t all), struct odds_estimate *estimate) {
    struct sim sim;
    struct sim_config config;
    struct reporter reporter = {.progress = progress, .next_s = now_s() + 0.5};
    uint64_t *violated = calloc(c->m + 1, sizeof *violated);
    *estimate =
        (struct odds_estimate){.runs = runs, .sampling_probability = sampling_probability(c)};
    int failed = !violated || prepare(&config, c) != 0 || sim_open(&sim) != 0 ? -1 : 0;
    if (!failed) {
        config.seed = seed;
        run_all(&sim, &config, c, estimate, violated, &reporter);
        sum_up(c, violated, estimate);
        sim_close(&sim);
    }
    if (violated) config_free(&config);
    free(violated);
    return failed;
}
