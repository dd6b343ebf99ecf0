/* conclave compare */
#include <math.h>
#include <stdlib.h>

#include "algorithms/catalogue.h"
#include "base/parse.h"
#include "cli/cli.h"
#include "cli/compare_elections.h"
#include "cli/compare_load.h"
#include "lab/experiments/compare.h"
#include "lab/experiments/compare_elections.h"
#include "language/language.h"

enum {
    SIZES_MAX = 16,
    COMPARE_PROCESSES_MAX = 2000,
    CHOSEN_MAX = 32,
    KEY_FORCE = 0x100,
    KEY_SERVICE
};

struct request {
    bool json, elections, load, force;
    uint64_t service_us; /* 0: not given */
    const char *plot;
    uint64_t sizes[SIZES_MAX];
    int size_count;
    uint64_t seed;
    const struct cv_algorithm *chosen[CHOSEN_MAX];
    size_t chosen_count; /* 0: all */
};

static void add_sizes(struct request *request, char *list) {
    for (char *word; (word = strsep(&list, ","));) {
        uint64_t n;
        if (parse_u64(word, &n) != 0 || n < 1 || n > COMPARE_PROCESSES_MAX)
            usage_error("processes: '%s' is not a whole number from 1 to %d", word,
                        COMPARE_PROCESSES_MAX);
        if (request->size_count == SIZES_MAX)
            usage_error("processes: at most %d sizes at a time", SIZES_MAX);
        request->sizes[request->size_count++] = n;
    }
}

static void choose(struct request *request, const char *name) {
    const struct cv_algorithm *algorithm = require_algorithm(name);
    if (request->chosen_count == CHOSEN_MAX)
        usage_error("compare: at most %d at a time", CHOSEN_MAX);
    if (request->chosen_count && algorithm->problem != request->chosen[0]->problem)
        usage_error("compare: locks with locks, and elections with elections");
    request->chosen[request->chosen_count++] = algorithm;
}

static int parse(int key, char *text, struct argp_state *state) {
    struct request *request = state->input;
    switch (key) {
    case 'j': request->json = true; return 0;
    case KEY_LANG: return language_option(text);
    case 'p': add_sizes(request, text); return 0;
    case 'e': request->elections = true; return 0;
    case 'l': request->load = true; return 0;
    case 'o': request->plot = text; return 0;
    case KEY_SERVICE:
        if (parse_duration(text, &request->service_us) != 0 || request->service_us == 0)
            usage_error("service-time: '%s' is not a time above 0, such as 1ms", text);
        return 0;
    case KEY_FORCE: request->force = true; return 0;
    case 's':
        if (parse_u64(text, &request->seed) != 0)
            usage_error("seed: '%s' is not a whole number", text);
        return 0;
    case ARGP_KEY_ARG: choose(request, text); return 0;
    default: return ARGP_ERR_UNKNOWN;
    }
}

static json_t *row_json(const struct compare_row *row) {
    return json_pack("{s:s, s:I, s:s, s:I, s:s, s:o, s:o, s:s, s:o, s:o, s:o, s:o, s:s}",
                     "algorithm", row->algorithm->name, "processes", (json_int_t)row->processes,
                     "load", compare_load_name[row->load], "entries",
                     (json_int_t)row->result.entries, "messages_formula", row->algorithm->cost,
                     "messages_formula_value", real_or_null(row->formula_per_entry),
                     "messages_per_entry", real_or_null(row->per_entry), "delay_formula",
                     row->algorithm->delay, "delay_formula_value", real_or_null(row->formula_delay),
                     "delay_hops_mean", real_or_null(row->delay_hops), "attempts",
                     real_or_null(row->attempts), "idle_hops", real_or_null(row->idle_hops),
                     "footnote", row->footnote);
}

/* "3 = 3" is shortened to "3". */
static void formula_text(const char *formula, double value, char *buffer, size_t size) {
    char number[32];
    snprintf(number, sizeof number, "%.5g", value);
    if (isnan(value) || strcmp(number, formula) == 0)
        snprintf(buffer, size, "%s", formula);
    else
        snprintf(buffer, size, "%s = %s", formula, number);
}

static void print_row(const struct compare_row *row, int footnote) {
    char messages[64], delay[64], mark[16] = "";
    formula_text(_(row->algorithm->cost), row->formula_per_entry, messages, sizeof messages);
    formula_text(_(row->algorithm->delay), row->formula_delay, delay, sizeof delay);
    if (footnote) snprintf(mark, sizeof mark, "[%d]", footnote);
    printf("%-24s %5llu  %-*s %-*s %10.5g  %-*s %10.4g  %s\n", row->algorithm->name,
           (unsigned long long)row->processes, COLUMN(6, _(compare_load_name[row->load])),
           COLUMN(28, messages), row->per_entry, COLUMN(24, delay), row->delay_hops, mark);
}

/* The number of the footnote of a row, 0 for none; equal footnotes are printed once. */
static int footnote_of(const struct compare_row *rows, size_t row, bool *is_new) {
    int number = 0;
    *is_new = *rows[row].footnote != 0;
    for (size_t i = 0; i < row; i++) {
        bool first = *rows[i].footnote != 0;
        for (size_t k = 0; k < i; k++) first = first && strcmp(rows[k].footnote, rows[i].footnote);
        number += first;
        if (*rows[i].footnote && strcmp(rows[i].footnote, rows[row].footnote) == 0)
            return *is_new = false, number;
    }
    return *is_new ? number + 1 : 0;
}

static void print_table(const struct compare_row *rows, size_t count) {
    bool is_new;
    printf("%-24s %5s  %-6s %-*s %10s  %-*s %10s\n", "", "", "",
           COLUMN(28, _("messages per entry")), "", COLUMN(24, _("delay (message times)")), "");
    printf("%-*s %5s  %-*s %-*s %*s  %-*s %*s\n", COLUMN(24, _("lock")), "N", COLUMN(6, _("load")),
           COLUMN(28, _("formula")), COLUMN(10, _("measured")), COLUMN(24, _("formula")),
           COLUMN(10, _("measured")));
    for (size_t i = 0; i < count; i++) print_row(&rows[i], footnote_of(rows, i, &is_new));
    puts(
        _("\nN processes compete; quorum and voting have n = N coordinators.  Light: nearly always "
          "one\n"
          "process at a time wants in.  Heavy: all want in all the time.  Delay: from wanted and "
          "free to\n"
          "entered."));
    for (size_t i = 0; i < count; i++) {
        int number = footnote_of(rows, i, &is_new);
        if (is_new) printf("[%d] %s.\n", number, rows[i].footnote);
    }
}

static int compare_locks(const struct request *request, const struct cv_algorithm *const *locks,
                         size_t lock_count) {
    struct sim sim;
    size_t count = 0;
    struct compare_row *rows =
        calloc(lock_count * (size_t)request->size_count * COMPARE_LOADS, sizeof *rows);
    if (!rows || sim_open(&sim) != 0) system_error("out of memory");
    for (size_t a = 0; a < lock_count; a++)
        for (int s = 0; locks[a]->problem == CV_MUTEX && s < request->size_count; s++)
            for (int load = 0; load < COMPARE_LOADS; load++)
                compare_measure(&sim, locks[a], request->sizes[s], (enum compare_load)load,
                                request->seed, &rows[count++]);
    json_t *report = json_array();
    for (size_t i = 0; i < count; i++) json_array_append_new(report, row_json(&rows[i]));
    if (request->json)
        print_json(report);
    else
        json_decref(report), print_table(rows, count);
    sim_close(&sim);
    free(rows);
    return EXIT_OK;
}

static void check_sizes(const struct request *request, const struct cv_algorithm *const *locks,
                        size_t count) {
    for (size_t a = 0; a < count; a++)
        for (int s = 0; locks[a]->problem == CV_MUTEX && s < request->size_count; s++)
            if (!size_is_possible(locks[a], request->sizes[s]))
                usage_error("processes: %s does not run with %llu", locks[a]->name,
                            (unsigned long long)request->sizes[s]);
}

static void check(struct request *request) {
    static const uint64_t usual[] = {3, 8, 32}, growing[] = {2, 4, 8, 16, 32, 64, 128, 256};
    bool named = request->chosen_count != 0;
    bool elections = named && request->chosen[0]->problem == CV_ELECTION;
    if (named && request->elections && !elections)
        usage_error("elections: %s is a lock", request->chosen[0]->name);
    request->elections |= elections;
    if (request->elections && request->size_count)
        usage_error("processes: elections are measured at sizes of their own, from 4 to 65536");
    if (request->load && request->elections) usage_error("load: it is of locks");
    if (request->plot && !request->elections && !request->load)
        usage_error("plot: goes with --elections or --load");
    if (request->service_us && !request->load) usage_error("service-time: goes with --load");
    if (!request->service_us) request->service_us = 1000;
    if (request->size_count) return;
    memcpy(request->sizes, request->load ? growing : usual,
           request->load ? sizeof growing : sizeof usual);
    request->size_count = (request->load ? sizeof growing : sizeof usual) / sizeof usual[0];
}

int cmd_compare(int argc, char **argv) {
    static const struct argp_option options[] = {
        {"processes", 'p', "N,...", 0,
         "Numbers of processes that compete (3,8,32; with --load 2 to 256)", 0},
        {"seed", 's', "S", 0, "Seed of the random numbers (1)", 0},
        {"elections", 'e', 0, 0, "Compare the elections, from 4 to 65536 processes", 0},
        {"load", 'l', 0, 0,
         "Show where locks saturate as N grows, when each message costs its receiver time", 0},
        {"service-time", KEY_SERVICE, "TIME", 0, "With --load: what a message costs (1ms)", 0},
        {"plot", 'o', "FILE", 0,
         "With --elections: plot messages over processes, as SVG; with --load: entries per second "
         "and the delay before entry",
         0},
        {"force", KEY_FORCE, 0, 0, "Overwrite a file that is there", 0},
        {"json", 'j', 0, 0, "Report in JSON", 0},
        LANG_OPTION(0),
        {0}};
    static const struct argp argp = {
        options,
        parse,
        "[ALGORITHM...]",
        "Compare the messages per entry and the delay before entry of every lock, or of those that "
        "are named, measured in the simulator, with the formulas.  Footnotes explain from the run "
        "why the two differ.\v"
        "Examples:\n"
        "  conclave compare --processes 3,8,32\n"
        "  conclave compare --elections --plot elections.svg\n"
        "  conclave compare --load central ricart-agrawala raymond --plot load.svg\n"
        "  conclave compare central mine/mine.so\n",
        0,
        0,
        0};
    struct request request = {.seed = 1};
    argp_parse(&argp, argc, argv, 0, 0, &request);
    if (request.json) language_choose(ENGLISH);
    check(&request);
    require_output(request.plot, request.force);
    const struct cv_algorithm *const *chosen = request.chosen_count ? request.chosen : catalogue;
    size_t count = request.chosen_count ? request.chosen_count : catalogue_count;
    if (request.elections)
        return compare_elections(chosen, count, request.seed, request.json, request.plot,
                                 request.force);
    check_sizes(&request, chosen, count);
    if (request.load)
        return compare_load(&(struct compare_load_request){
            .locks = chosen,
            .lock_count = count,
            .sizes = request.sizes,
            .size_count = (size_t)request.size_count,
            .service_us = request.service_us,
            .seed = request.seed,
            .json = request.json,
            .force = request.force,
            .plot = request.plot,
        });
    return compare_locks(&request, chosen, count);
}
