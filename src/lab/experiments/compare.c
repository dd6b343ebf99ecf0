#include "lab/experiments/compare.h"

#include "language/language.h"

#include <math.h>
#include <stdio.h>

const char *const compare_load_name[COMPARE_LOADS] = {N_("light"), N_("heavy")};

/* The formulas of a lock, and how a run explains a difference. */
struct formula {
    const char *name;
    void (*expect)(struct compare_row *row, double n);
};

static double per_entry(const struct compare_row *row, unsigned kind) {
    return (double)row->result.by_kind[kind] / (double)row->result.entries;
}

/* The number of messages of that name per entry. */
static double named_per_entry(const struct compare_row *row, const char *name) {
    for (unsigned kind = 0; kind < row->algorithm->message_count; kind++)
        if (strcmp(row->algorithm->messages[kind].name, name) == 0) return per_entry(row, kind);
    return 0;
}

static bool differ(double measured, double formula) {
    return fabs(measured - formula) > 0.005 * formula;
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
             _("%.4g of %.4g hops per entry found nobody waiting; a full round is %g"),
             row->idle_hops, per_entry(row, 0), n);
}

/* Each attempt of quorum and voting begins with a REQUEST, the first kind, to each of n. */
static void expect_quorum(struct compare_row *row, double n) {
    row->attempts = per_entry(row, 0) / n;
    row->formula_per_entry = 3 * n;
    row->formula_delay = 2;
    double granted = per_entry(row, 1) / n / row->attempts;
    if (differ(row->per_entry, row->formula_per_entry))
        snprintf(row->footnote, sizeof row->footnote,
                 _("%.3g attempts per entry; %.3g%% of the requests were granted, the others were "
                   "released while still queued"),
                 row->attempts, 100 * granted);
}

static void expect_voting(struct compare_row *row, double n) {
    double k = row->attempts = per_entry(row, 0) / n;
    row->formula_per_entry = 2 * k * n + (k - 1) * n / 2 + n;
    row->formula_delay = 2 * k * n + (k - 1) * n / 2;
    double given_back = k > 1 ? (per_entry(row, 2) - n) / (k - 1) : 0;
    if (k > 1)
        snprintf(
            row->footnote, sizeof row->footnote,
            _("k = %.4g attempts per entry; a failed one gave back %.3g votes, not n/2 = %.3g; "
              "votes are requested at once, and the delay includes the back-offs"),
            k, given_back > 0 ? given_back : 0, n / 2);
    else
        snprintf(
            row->footnote, sizeof row->footnote,
            _("k = 1 attempt per entry; the formula's delay sends one message after the other, "
              "here all are sent at once"));
}

static void expect_lamport(struct compare_row *row, double n) {
    row->formula_per_entry = 3 * (n - 1);
    row->formula_delay = 2;
    if (differ(row->delay_hops, 2))
        snprintf(
            row->footnote, sizeof row->footnote,
            _("the delay was %.3g and not 2: a waiting process had the ACKs before the section was "
              "free, and only the %s was missing"),
            row->delay_hops, language_name("RELEASE"));
}

static void expect_ricart_agrawala(struct compare_row *row, double n) {
    row->formula_per_entry = 2 * (n - 1);
    row->formula_delay = 2 * (n - 1);
    if (differ(row->delay_hops, row->formula_delay))
        snprintf(
            row->footnote, sizeof row->footnote,
            _("the formula's delay sends one message after the other; here all are sent at once, "
              "which makes it 2, or 1 when only the OK of the one inside is still missing"));
}

static void expect_roucairol_carvalho(struct compare_row *row, double n) {
    snprintf(row->footnote, sizeof row->footnote,
             _("of %g permissions, %.4g had to be fetched per entry; the others were still there"),
             n - 1, named_per_entry(row, "OK"));
}

static void expect_suzuki_kasami(struct compare_row *row, double n) {
    double fetched = named_per_entry(row, "TOKEN");
    row->formula_per_entry = n * fetched;
    snprintf(
        row->footnote, sizeof row->footnote,
        _("%.4g%% of the entries fetched the token for N messages, the others found it in place"),
        100 * fetched);
}

static void expect_central_elected(struct compare_row *row, double n) {
    (void)n;
    double granted = named_per_entry(row, "GRANT");
    double rest = row->per_entry - granted - named_per_entry(row, "REQUEST") -
                  named_per_entry(row, "RELEASE");
    snprintf(row->footnote, sizeof row->footnote,
             _("%.4g%% of the entries were the leader's own, which need no message; the others "
               "take 3, and the election took %.3g for each entry"),
             100 * (1 - granted), rest);
}

static void expect_raymond(struct compare_row *row, double n) {
    snprintf(row->footnote, sizeof row->footnote,
             _("per entry the token crossed %.3g edges, after %.3g REQUESTs; log2(N) = %.3g"),
             named_per_entry(row, "TOKEN"), named_per_entry(row, "REQUEST"), log2(n));
}

/* Each entry asks the other K-1 members of a quorum. */
static void expect_one_vote(struct compare_row *row, const char *refusal, const char *vote) {
    double others = named_per_entry(row, "REQUEST");
    snprintf(
        row->footnote, sizeof row->footnote,
        _("K = %g, so 3(K-1) = %g; beyond that, per entry: %.3g %s, %.3g INQUIRE, %.3g YIELD and "
          "%.3g more %s"),
        others + 1, 3 * others, named_per_entry(row, refusal), language_name(refusal),
        named_per_entry(row, "INQUIRE"), named_per_entry(row, "YIELD"),
        fmax(0, named_per_entry(row, vote) - others), language_name(vote));
}

static void expect_maekawa(struct compare_row *row, double n) {
    (void)n;
    expect_one_vote(row, "FAILED", "GRANT");
    row->formula_delay = 2;
}

static void expect_majority(struct compare_row *row, double n) {
    (void)n;
    expect_one_vote(row, "NOT-OK", "OK");
    row->formula_delay = 2;
}

/* A client that finds the lock taken watches it; w is how often, per entry. */
static void expect_watching(struct compare_row *row, double per_watch) {
    double watches = named_per_entry(row, "WATCH");
    row->formula_per_entry = 3 + per_watch * watches;
    snprintf(row->footnote, sizeof row->footnote,
             _("w = %.4g watches per entry; a release woke %.4g clients on average"), watches,
             (double)row->result.woken / (double)row->result.entries);
}

static void expect_tree_lock(struct compare_row *row, double n) {
    (void)n;
    expect_watching(row, 4); /* EXISTS, WATCH, DELETED, and CREATE once more */
}

static void expect_tree_lock_queue(struct compare_row *row, double n) {
    (void)n;
    expect_watching(row, 2); /* WATCH, DELETED */
    row->formula_delay = 2;
}

static const struct formula formulas[] = {
    {"central", expect_central},
    {"central-lease", expect_central},
    {"central-elected", expect_central_elected},
    {"token-ring", expect_token_ring},
    {"quorum", expect_quorum},
    {"voting", expect_voting},
    {"lamport", expect_lamport},
    {"ricart-agrawala", expect_ricart_agrawala},
    {"ricart-agrawala-majority", expect_majority},
    {"roucairol-carvalho", expect_roucairol_carvalho},
    {"maekawa", expect_maekawa},
    {"suzuki-kasami", expect_suzuki_kasami},
    {"raymond", expect_raymond},
    {"tree-lock-naive", expect_tree_lock},
    {"tree-lock", expect_tree_lock},
    {"tree-lock-queue", expect_tree_lock_queue},
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
    if (n) config->option[n - algorithm->options] = processes; /* n = N, as in the formulas */
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
                                .idle_hops = NAN};
    row->per_entry = (double)sim->result.messages / (double)sim->result.entries;
    row->delay_hops = sim_delay_hops(&sim->result, &config);
    for (size_t i = 0; i < sizeof formulas / sizeof formulas[0]; i++)
        if (strcmp(formulas[i].name, algorithm->name) == 0)
            formulas[i].expect(row, (double)processes);
}
