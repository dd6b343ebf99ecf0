/* conclave odds */
#include <math.h>
#include <unistd.h>

#include "base/parse.h"
#include "cli/cli.h"
#include "lab/experiments/odds.h"
#include "language/language.h"

struct request {
    struct odds_case of;
    const char *n_text, *m_text, *p_text;
    bool table, json;
    uint64_t runs, seed; /* runs: 0, when nothing is to be simulated */
};

static const struct argp_option options[] = {
    {"n", 'n', "N", 0, "Number of coordinators", 0},
    {"m", 'm', "M", 0, "Number of grants that are needed: more than N/2", 0},
    {"p", 'p', "P", 0,
     "Probability that a coordinator restarts and forgets its grant while the lock is held: "
     "a number from 0 to 1, or a part of the time such as 3s/hour or 1min/10d",
     0},
    {"table", 't', 0, 0, "The lecture's table of twelve cases, with its bounds", 0},
    {"simulate", 's', "RUNS", 0, "Measure it too, in this many runs of the quorum lock", 0},
    {"seed", 'S', "S", 0, "Seed of the random numbers (1)", 0},
    {"json", 'j', 0, 0, "Report in JSON", 0},
    LANG_OPTION(0),
    {0}};

static const char doc[] =
    "The probability that restarts break a quorum: that two processes are inside although each has "
    "the grants of M of N coordinators, because those in both quorums forgot the first grant.\v"
    "Rare violations are simulated by importance sampling: restarts are drawn more often than they "
    "occur, and each run is weighted by its likelihood ratio.\n\n"
    "Examples:\n"
    "  conclave odds --n 8 --m 5 --p 3s/hour\n"
    "  conclave odds --n 32 --m 24 --p 1e-4 --simulate 2000\n"
    "  conclave odds --table\n";

/* ---- The command line ---- */

static uint64_t whole(const char *option, const char *text, uint64_t min, uint64_t max) {
    uint64_t value;
    if (parse_u64(text, &value) != 0) usage_error("--%s: '%s' is not a whole number", option, text);
    if (value < min || value > max)
        usage_error("--%s: %s is not between %llu and %llu", option, text, (unsigned long long)min,
                    (unsigned long long)max);
    return value;
}

static int parse(int key, char *argument, struct argp_state *state) {
    struct request *request = state->input;
    switch (key) {
    case 'n': request->n_text = argument; return 0;
    case 'm': request->m_text = argument; return 0;
    case 'p': request->p_text = argument; return 0;
    case 't': request->table = true; return 0;
    case 's': request->runs = whole("simulate", argument, ODDS_RUNS_MIN, 1000000000); return 0;
    case 'S': request->seed = whole("seed", argument, 0, INT64_MAX); return 0;
    case 'j': request->json = true; return 0;
    case KEY_LANG: return language_option(argument);
    default: return ARGP_ERR_UNKNOWN;
    }
}

static void read_case(struct request *request) {
    struct odds_case *c = &request->of;
    if (!request->n_text || !request->m_text || !request->p_text)
        usage_error(
            "missing:%s%s%s; for instance: conclave odds --n 8 --m 5 --p 3s/hour, or --table",
            request->n_text ? "" : " --n", request->m_text ? "" : " --m",
            request->p_text ? "" : " --p");
    c->n = whole("n", request->n_text, 1, ODDS_N_MAX);
    c->m = whole("m", request->m_text, 1, ODDS_N_MAX);
    if (c->m > c->n)
        usage_error("--m: %s is more than the %s coordinators", request->m_text, request->n_text);
    if (2 * c->m <= c->n)
        usage_error("--m: %s is not more than half of %s, so two quorums need not intersect",
                    request->m_text, request->n_text);
    if (parse_fraction(request->p_text, &c->p) != 0)
        usage_error(
            "--p: '%s' is not a probability from 0 to 1 or a part of the time such as 3s/hour",
            request->p_text);
    if (request->runs && c->n > ODDS_SIMULATED_N_MAX)
        usage_error("--simulate: takes n up to %d, not %s", ODDS_SIMULATED_N_MAX, request->n_text);
}

static void simulate(const struct request *request, const struct odds_case *c,
                     struct odds_estimate *estimate) {
    if (odds_simulate(c, request->runs, request->seed, progress_bar(), estimate) != 0)
        system_error("out of memory for the simulation");
}

/* ---- JSON ---- */

static json_t *number(long double log10) { return json_real((double)exp10l(log10)); }

static json_t *logarithm(long double log10) {
    return log10 == -INFINITY ? json_null() : json_real((double)log10);
}

static json_t *estimate_json(const struct odds_estimate *e, uint64_t seed) {
    return json_pack("{s:I, s:I, s:I, s:o, s:o, s:o, s:o, s:o, s:f, s:b}", "runs",
                     (json_int_t)e->runs, "seed", (json_int_t)seed, "violated_runs",
                     (json_int_t)e->violated_runs, "estimate", number(e->log10), "log10",
                     logarithm(e->log10), "standard_error", number(e->error_log10), "low",
                     number(e->low_log10), "high", number(e->high_log10), "sampling_probability",
                     e->sampling_probability, "formula_inside", (int)e->formula_inside);
}

enum { TERMS_SHOWN = 16, TERMS_MAX = 1000 };

/* The terms of the sum, the first thousand. */
static json_t *terms_json(const struct odds_case *c) {
    long double log10[TERMS_MAX];
    json_t *terms = json_array();
    size_t count = odds_terms(c, log10, TERMS_MAX);
    for (size_t i = 0; i < count; i++) {
        uint64_t k = odds_needed(c) + i;
        json_array_append_new(terms, json_pack("{s:I, s:o, s:o}", "k", (json_int_t)k, "probability",
                                               number(log10[i]), "log10", logarithm(log10[i])));
    }
    return terms;
}

static json_t *case_json(const struct odds_case *c) {
    long double log10 = odds_log10(c);
    return json_pack("{s:I, s:I, s:f, s:o, s:o}", "n", (json_int_t)c->n, "m", (json_int_t)c->m, "p",
                     c->p, "violation", number(log10), "log10", logarithm(log10));
}

/* ---- Text ---- */

/* "one of 144238 windows" */
static char *how_often(char *buffer, size_t size, long double log10) {
    char windows[32];
    if (log10 == 0)
        snprintf(buffer, size, _("every window"));
    else if (log10 > -1)
        snprintf(buffer, size, _("%.4Lg%% of all windows"), 100 * exp10l(log10));
    else if (log10 > -9)
        snprintf(buffer, size, _("one of %.0Lf windows"), exp10l(-log10));
    else
        snprintf(buffer, size, _("one of %s windows"),
                 odds_format(windows, sizeof windows, -log10));
    return buffer;
}

static void print_meaning(const struct odds_case *c, long double log10) {
    char often[64];
    if (log10 == -INFINITY)
        printf(_("Exclusion is never violated: no coordinator forgets its grant.\n"));
    else
        printf(_("Exclusion is violated in %s: when %llu or more of the %llu\n"
                 "coordinators that granted restart and forget it while the lock is held.\n"),
               how_often(often, sizeof often, log10), (unsigned long long)odds_needed(c),
               (unsigned long long)c->m);
}

static void print_estimate(const struct odds_case *c, const struct odds_estimate *e) {
    char estimate[32], error[32], low[32], high[32];
    printf(_("\nsimulated    %s, standard error %s\n"),
           odds_format(estimate, sizeof estimate, e->log10),
           odds_format(error, sizeof error, e->error_log10));
    printf(_("95%%          %s to %s: the formula lies %s\n"),
           odds_format(low, sizeof low, e->low_log10),
           odds_format(high, sizeof high, e->high_log10),
           e->formula_inside ? _("inside") : _("OUTSIDE"));
    printf(_("runs         %llu, of which %llu violated exclusion\n"), (unsigned long long)e->runs,
           (unsigned long long)e->violated_runs);
    printf(_("restarts     drawn with probability %.4g%s\n"), e->sampling_probability,
           e->sampling_probability == c->p ? "" : _(", each run weighted back to p"));
}

/* "P[2]         6.925e-06 = C(5,2) p^2 (1-p)^3" */
static void print_terms(const struct odds_case *c) {
    long double log10[TERMS_SHOWN];
    size_t count = odds_terms(c, log10, TERMS_SHOWN);
    for (size_t i = 0; i < count; i++) {
        unsigned long long k = odds_needed(c) + i, m = c->m;
        char name[32], value[32];
        snprintf(name, sizeof name, "P[%llu]", k);
        printf("%-12s %-10s = C(%llu,%llu) p^%llu (1-p)^%llu\n", name,
               odds_format(value, sizeof value, log10[i]), m, k, k, m - k);
    }
    if (odds_needed(c) + count <= c->m)
        printf(_("...          and so on to P[%llu]\n"), (unsigned long long)c->m);
}

static void print_case(const struct request *request) {
    const struct odds_case *c = &request->of;
    const bool part_of_time = strchr(request->p_text, '/') != NULL;
    char violation[32], decimal[32];
    long double log10 = odds_log10(c);
    snprintf(decimal, sizeof decimal, "%.7Lg", log10);
    printf(_("n            %llu coordinators\n"), (unsigned long long)c->n);
    printf(_("m            %llu grants to enter\n"), (unsigned long long)c->m);
    printf(_("2m-n         %llu in any two quorums\n"), (unsigned long long)odds_needed(c));
    printf("p            %.6g%s%s\n", c->p, part_of_time ? " = " : "",
           part_of_time ? request->p_text : "");
    print_terms(c);
    printf(_("violation    %s, the sum\n"), odds_format(violation, sizeof violation, log10));
    printf("log10        %s\n\n", log10 == -INFINITY ? _("none") : decimal);
    print_meaning(c, log10);
}

static int report_case(const struct request *request) {
    struct odds_estimate estimate;
    if (request->runs) simulate(request, &request->of, &estimate);
    if (request->json) {
        json_t *report = case_json(&request->of);
        json_object_set_new(report, "terms", terms_json(&request->of));
        if (request->runs)
            json_object_set_new(report, "simulated", estimate_json(&estimate, request->seed));
        print_json(report);
    } else {
        print_case(request);
        if (request->runs) print_estimate(&request->of, &estimate);
    }
    return EXIT_OK;
}

/* ---- The table ---- */

static void print_row(const struct odds_row *row, const struct odds_estimate *e) {
    char violation[32], bound[32], estimate[32], low[32], high[32];
    long double log10 = odds_log10(&row->of);
    snprintf(bound, sizeof bound, "< 1e%03d", row->bound);
    printf("%4llu %4llu  %-9s %10s  %s %s", (unsigned long long)row->of.n,
           (unsigned long long)row->of.m, row->p_text,
           odds_format(violation, sizeof violation, log10), bound,
           log10 < row->bound ? _("holds") : _("FAILS"));
    if (e)
        printf("  %10s  %10s to %10s  %s", odds_format(estimate, sizeof estimate, e->log10),
               odds_format(low, sizeof low, e->low_log10),
               odds_format(high, sizeof high, e->high_log10),
               e->formula_inside ? _("inside") : _("OUTSIDE"));
    putchar('\n');
}

static json_t *row_json(const struct odds_row *row, const struct odds_estimate *e, uint64_t seed) {
    json_t *object = case_json(&row->of);
    json_object_set_new(object, "bound", number(row->bound));
    json_object_set_new(object, "bound_holds", json_boolean(odds_log10(&row->of) < row->bound));
    if (e) json_object_set_new(object, "simulated", estimate_json(e, seed));
    return object;
}

static int report_table(const struct request *request) {
    struct odds_estimate estimate, *e = request->runs ? &estimate : NULL;
    json_t *rows = json_array();
    if (!request->json)
        printf("%4s %4s  %-9s %*s  %s%s\n", "n", "m", "p", COLUMN(10, _("violation")), _("lecture"),
               e ? _("         simulated  95% interval             formula") : "");
    for (int i = 0; i < ODDS_ROWS; i++) {
        if (e) simulate(request, &odds_table[i].of, e);
        if (request->json)
            json_array_append_new(rows, row_json(&odds_table[i], e, request->seed));
        else
            print_row(&odds_table[i], e);
    }
    if (request->json)
        print_json(json_pack("{s:o}", "table", rows));
    else
        json_decref(rows);
    return EXIT_OK;
}

int cmd_odds(int argc, char **argv) {
    static const struct argp argp = {options, parse, NULL, doc, 0, 0, 0};
    struct request request = {.seed = 1};
    argp_parse(&argp, argc, argv, 0, 0, &request);
    if (request.json) language_choose(ENGLISH);
    if (!request.table) {
        read_case(&request);
        return report_case(&request);
    }
    if (request.n_text || request.m_text || request.p_text)
        usage_error("--table has its own n, m and p");
    return report_table(&request);
}
