/* conclave compare */
#include <math.h>
#include <stdlib.h>

#include "base/parse.h"
#include "catalogue/catalogue.h"
#include "cli/cli.h"
#include "cli/compare_elections.h"
#include "lab/compare.h"

enum { SIZES_MAX = 16, COMPARE_PROCESSES_MAX = 2000 };

struct request {
    bool json, elections;
    const char *plot;
    uint64_t sizes[SIZES_MAX];
    int size_count;
    uint64_t seed;
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

static int parse(int key, char *text, struct argp_state *state) {
    struct request *request = state->input;
    switch (key) {
    case 'j': request->json = true; return 0;
    case 'p': add_sizes(request, text); return 0;
    case 'e': request->elections = true; return 0;
    case 'o': request->plot = text; return 0;
    case 's':
        if (parse_u64(text, &request->seed) != 0)
            usage_error("seed: '%s' is not a whole number", text);
        return 0;
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

/* "3 = 3" would say it twice. */
static char *formula_text(const char *formula, double value, char *buffer, size_t size) {
    char number[32];
    snprintf(number, sizeof number, "%.5g", value);
    if (isnan(value) || strcmp(number, formula) == 0)
        snprintf(buffer, size, "%s", formula);
    else
        snprintf(buffer, size, "%s = %s", formula, number);
    return buffer;
}

static void print_row(const struct compare_row *row, int footnote) {
    char messages[64], delay[64], mark[16] = "";
    if (footnote) snprintf(mark, sizeof mark, "[%d]", footnote);
    printf("%-24s %5llu  %-6s %-28s %10.5g  %-24s %10.4g  %s\n", row->algorithm->name,
           (unsigned long long)row->processes, compare_load_name[row->load],
           formula_text(row->algorithm->cost, row->formula_per_entry, messages, sizeof messages),
           row->per_entry,
           formula_text(row->algorithm->delay, row->formula_delay, delay, sizeof delay),
           row->delay_hops, mark);
}

/* The number of a row's footnote; what was said before is not said again. */
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
    printf("%-24s %5s  %-6s %-28s %10s  %-24s %10s\n", "", "", "", "messages per entry", "",
           "delay (message times)", "");
    printf("%-24s %5s  %-6s %-28s %10s  %-24s %10s\n", "lock", "N", "load", "formula", "measured",
           "formula", "measured");
    for (size_t i = 0; i < count; i++) print_row(&rows[i], footnote_of(rows, i, &is_new));
    puts("\nN processes compete; quorum and voting have n = N coordinators.  Light: nearly always "
         "one\n"
         "wants in at a time.  Heavy: everyone wants in all the time.  Delay: from wanted and free "
         "to\n"
         "entered.");
    for (size_t i = 0; i < count; i++) {
        int number = footnote_of(rows, i, &is_new);
        if (is_new) printf("[%d] %s.\n", number, rows[i].footnote);
    }
}

int cmd_compare(int argc, char **argv) {
    static const struct argp_option options[] = {
        {"processes", 'p', "N,...", 0, "How many processes compete (3,8,32)", 0},
        {"seed", 's', "S", 0, "The runs' random numbers (1)", 0},
        {"elections", 'e', 0, 0, "Compare the elections, from 4 to 65536 processes", 0},
        {"plot", 'o', "FILE", 0, "With --elections: draw messages over processes, as SVG", 0},
        {"json", 'j', 0, 0, "Report in JSON", 0},
        {0}};
    static const struct argp argp = {
        options,
        parse,
        "",
        "Messages per entry and delay before entry of every lock, measured in the simulator, "
        "beside "
        "the formulas.  Footnotes say from the run why the two differ.\v"
        "Examples:\n"
        "  conclave compare --processes 3,8,32\n"
        "  conclave compare --elections --plot elections.svg\n",
        0,
        0,
        0};
    struct request request = {.seed = 1};
    struct sim sim;
    size_t count = 0;
    argp_parse(&argp, argc, argv, 0, 0, &request);
    if (request.elections && request.size_count)
        usage_error("processes: with --elections the sizes are 4 to 65536");
    if (request.plot && !request.elections) usage_error("plot: goes with --elections");
    if (request.elections) return compare_elections(request.seed, request.json, request.plot);
    if (!request.size_count) request.sizes[0] = 3, request.sizes[1] = 8, request.sizes[2] = 32;
    if (!request.size_count) request.size_count = 3;
    struct compare_row *rows =
        calloc(catalogue_count * (size_t)request.size_count * COMPARE_LOADS, sizeof *rows);
    if (!rows || sim_open(&sim) != 0) system_error("out of memory");
    for (size_t a = 0; a < catalogue_count; a++)
        for (int s = 0; catalogue[a]->problem == CV_MUTEX && s < request.size_count; s++)
            for (int load = 0; load < COMPARE_LOADS; load++)
                compare_measure(&sim, catalogue[a], request.sizes[s], (enum compare_load)load,
                                request.seed, &rows[count++]);
    json_t *report = json_array();
    for (size_t i = 0; i < count; i++) json_array_append_new(report, row_json(&rows[i]));
    if (request.json)
        print_json(report);
    else
        json_decref(report), print_table(rows, count);
    sim_close(&sim);
    free(rows);
    return EXIT_OK;
}
