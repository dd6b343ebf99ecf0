#include "lab/compare.h"

#include <math.h>
#include <stdio.h>

const char *const compare_load_name[COMPARE_LOADS] = {"light", "heavy"};

/* What the catalogue says of a lock, and what of a run explains a difference. */
struct formula {
    const char *name;
    void (*expect)(struct compare_row *row, double n);
};

static double per_entry(const struct compare_row *row, unsigned kind) {
    return (double)row->result.by_kind[kind] / (double)row->result.entries;
}

static void expect_central(struct compare_row *row, double n) {
    (void)n;
    row->formula_per_entry = 3;
    row->formula_delay = 2;
}

/* Its first kind of message is the token. */
static void expect_token_ring(struct compare_row *row, double n) {
    row->idle_hops = per_entry(row, 0) - 1;
    if (row->idle_hops < 0) row->idle_hops = 0;
    snprintf(row->footnote, sizeof row->footnote,
             "%.4g of %.4g hops per entry found nobody waiting; a full round is %g", row->idle_hops,
             per_entry(row, 0), n);
}

/* Each attempt of quorum and voting begins with a REQUEST, the first kind, to each of n. */
static void expect_quorum(struct compare_row *row, double n) {
    row->attempts = per_entry(row, 0) / n;
    row->formula_per_entry = 3 * n;
    row->formula_delay = 2;
    double granted = per_entry(row, 1) / n / row->attempts;
    if (fabs(row->per_entry - row->formula_per_entry) > 0.005 * row->formula_per_entry)
        snprintf(row->footnote, sizeof row->footnote,
                 "%.3g attempts per entry; %.3g%% of the requests were granted, the others were "
                 "released while still queued",
                 row->attempts, 100 * granted);
}

static void expect_voting(struct compare_row *row, double n) {
    double k = row->attempts = per_entry(row, 0) / n;
    row->formula_per_entry = 2 * k * n + (k - 1) * n / 2 + n;
    row->formula_delay = 2 * k * n + (k - 1) * n / 2;
    double given_back = k > 1 ? (per_entry(row, 2) - n) / (k - 1) : 0;
    if (k > 1)
        snprintf(row->footnote, sizeof row->footnote,
                 "k = %.4g attempts per entry; a failed one gave back %.3g votes, not n/2 = %.3g; "
                 "votes are asked for at once, and rests between attempts count",
                 k, given_back > 0 ? given_back : 0, n / 2);
    else
        snprintf(row->footnote, sizeof row->footnote,
                 "k = 1 attempt per entry; the formula's delay sends one message after the other, "
                 "here all are sent at once");
}

static const struct formula formulas[] = {
    {"central", expect_central},       {"central-lease", expect_central},
    {"token-ring", expect_token_ring}, {"quorum", expect_quorum},
    {"voting", expect_voting},
};

static void configure(struct sim_config *config, uint64_t processes, enum compare_load load,
                      uint64_t seed) {
    const struct cv_algorithm *algorithm = config->algorithm;
    config->processes = processes;
    config->seed = seed;
    config->entries = processes * 10 > 500 ? processes * 10 : 500;
    double hop = distribution_mean(&config->delay);
    config->think = load == LIGHT
                        ? (struct distribution){EXPONENTIAL, 200 * hop * (double)processes, 0}
                        : (struct distribution){CONSTANT, 0, 0};
    const struct cv_option *n = option_find(algorithm, "n");
    if (n) config->option[n - algorithm->options] = processes; /* as in the formulas */
    const struct cv_option *lease = option_find(algorithm, "lease");
    if (lease) config->option[lease - algorithm->options] = 1000000;
}

void compare_measure(struct sim *sim, const struct cv_algorithm *algorithm, uint64_t processes,
                     enum compare_load load, uint64_t seed, struct compare_row *row) {
    struct sim_config config;
    config_init(&config, algorithm);
    configure(&config, processes, load, seed);
    sim_run(sim, &config, NULL);
    *row = (struct compare_row){.algorithm = algorithm,
                                .processes = processes,
                                .seed = seed,
                                .load = load,
                                .result = sim->result,
                                .formula_per_entry = NAN,
                                .formula_delay = NAN,
                                .attempts = NAN,
                                .idle_hops = NAN,
                                .violated = sim_violated(sim)};
    row->per_entry = (double)sim->result.messages / (double)sim->result.entries;
    row->delay_hops = sim_delay_hops(&sim->result, &config);
    for (size_t i = 0; i < sizeof formulas / sizeof formulas[0]; i++)
        if (strcmp(formulas[i].name, algorithm->name) == 0)
            formulas[i].expect(row, (double)processes);
}
