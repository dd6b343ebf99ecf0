#include "lab/experiments/compare_elections.h"

#include "language/language.h"

#include <math.h>
#include <stdio.h>

enum { RUNS_MAX = 200, RUNS_MIN = 3 };
#define MESSAGES_MAX 2e6

/* ---- The formulas, with all processes initiating ---- */

static double harmonic(double n) {
    double sum = 0;
    for (double i = n; i >= 1; i--) sum += 1 / i;
    return sum;
}

static double rounds_of_halving(double n) { return floor(log2(n)) + 1; }

static double of_chang_roberts(double n) { return n * harmonic(n) + n; }
static double of_franklin(double n) { return 2 * n * rounds_of_halving(n) + n; }
static double of_hirschberg(double n) { return 8 * n * (1 + ceil(log2(n))) + n; }
static double of_peterson(double n) { return 2 * n * rounds_of_halving(n) + n; }
static double of_list(double n) { return n * n + n; }
static double of_ring_coordinator(double n) { return 2 * n * n; }
static double of_bully(double n) { return n * (n - 1) + n - 1; }

static const struct {
    const char *name;
    double (*messages)(double n); /* NULL: it gives no number */
    const char *note;
} formulas[] = {
    {"ring-anonymous", NULL, N_("all start, so all are elected, which is what it demonstrates")},
    {"ring-list", of_list, N_("the formula is N^2 + N")},
    {"ring-coordinator", of_ring_coordinator, N_("the formula is 2N for each of N initiators")},
    {"chang-roberts", of_chang_roberts, N_("the formula is the mean, N H(N) + N")},
    {"franklin", of_franklin, N_("the formula is the bound, 2N (floor(log2 N) + 1) + N")},
    {"hirschberg-sinclair", of_hirschberg,
     N_("the formula is the bound, 8N (1 + ceil(log2 N)) + N")},
    {"peterson", of_peterson, N_("the formula is the bound, 2N (floor(log2 N) + 1) + N")},
    {"bully", of_bully,
     N_("the formula is N(N-1) + N-1: each process asks all above it, and is answered")},
    {"majority-terms", NULL,
     N_("all stand at once, so votes split and terms are repeated, with heartbeats")},
    {"raft", NULL,
     N_("all stand at once, as in majority-terms; entries of the log come with heartbeats")},
    {"invitation", NULL, N_("everyone begins as a group of one, and groups merge")},
    {"yo-yo", NULL, N_("on random networks with four neighbours on average")},
};

static double formula(const struct cv_algorithm *algorithm, double n) {
    for (size_t i = 0; i < sizeof formulas / sizeof formulas[0]; i++)
        if (strcmp(formulas[i].name, algorithm->name) == 0 && formulas[i].messages)
            return formulas[i].messages(n);
    return NAN;
}

/* ---- Measuring ---- */

static void configure(struct sim_config *config, uint64_t processes) {
    config->processes = processes;
    config->settle = 1; /* measures the election, not the heartbeats of the leader */
    if (config->algorithm->topology ==
        CV_GRAPH) { /* a sparse network: four neighbours on average */
        double p = processes > 5 ? 4.0 / (double)(processes - 1) : 1;
        char text[32], error[SIM_ERROR_MAX];
        snprintf(text, sizeof text, "random:%.12f", p);
        setting_apply(config, setting_find("topology"), text, error);
    }
}

static size_t runs_for(double messages) {
    double runs = MESSAGES_MAX / (messages > 1 ? messages : 1);
    return runs > RUNS_MAX ? RUNS_MAX : runs < RUNS_MIN ? RUNS_MIN : (size_t)runs;
}

bool size_is_possible(const struct cv_algorithm *algorithm, uint64_t processes) {
    struct sim_config config;
    char error[SIM_ERROR_MAX];
    config_init(&config, algorithm);
    config.processes = processes;
    bool possible = !algorithm->refuse || config_check(&config, error) == 0;
    config_free(&config);
    return possible;
}

void election_measure(struct sim *sim, const struct cv_algorithm *algorithm, uint64_t processes,
                      uint64_t seed, struct election_cost *cost) {
    double messages[RUNS_MAX], hops[RUNS_MAX], rounds[RUNS_MAX];
    struct sim_config config;
    size_t runs = 1;
    config_init(&config, algorithm);
    configure(&config, processes);
    *cost = (struct election_cost){.algorithm = algorithm, .processes = processes};
    for (size_t i = 0; i < runs; i++) {
        config.seed = seed + i;
        sim_run(sim, &config, NULL);
        messages[i] = (double)sim->result.messages;
        hops[i] = (double)sim->result.decided_us / distribution_mean(&config.delay);
        rounds[i] = (double)sim->result.rounds;
        cost->violated += sim_violated(sim);
        if (i == 0) runs = runs_for(messages[0]);
    }
    cost->runs = runs;
    cost->messages = stats_of(messages, runs);
    cost->hops = stats_of(hops, runs);
    cost->rounds = stats_of(rounds, runs);
    cost->formula = formula(algorithm, (double)processes);
    config_free(&config);
}

bool election_affordable(const struct election_cost *cost, const struct election_cost *before) {
    double growth = before ? cost->messages.mean / before->messages.mean : 16;
    return cost->messages.mean * growth <= 3 * MESSAGES_MAX;
}

const char *election_note(const struct cv_algorithm *algorithm) {
    for (size_t i = 0; i < sizeof formulas / sizeof formulas[0]; i++)
        if (strcmp(formulas[i].name, algorithm->name) == 0) return formulas[i].note;
    return NULL;
}
