/* conclave compare --elections */
#include "cli/compare_elections.h"

#include <math.h>
#include <stdlib.h>

#include "cli/cli.h"
#include "lab/experiments/compare_elections.h"
#include "lab/experiments/plot.h"
#include "language/language.h"

enum { SIZES = 8 };
static const uint64_t sizes[SIZES] = {4, 16, 64, 256, 1024, 4096, 16384, 65536};

struct table {
    struct election_cost *rows;
    size_t count;
};

static json_t *to_json(const struct table *table) {
    json_t *report = json_array();
    for (size_t i = 0; i < table->count; i++) {
        const struct election_cost *row = &table->rows[i];
        json_array_append_new(
            report,
            json_pack("{s:s, s:I, s:I, s:s, s:o, s:f, s:[f, f], s:f, s:f, s:f, s:I}", "algorithm",
                      row->algorithm->name, "processes", (json_int_t)row->processes, "runs",
                      (json_int_t)row->runs, "formula", row->algorithm->cost, "formula_value",
                      real_or_null(row->formula), "messages", row->messages.mean, "interval_95",
                      row->messages.low, row->messages.high, "messages_max", row->messages.max,
                      "time_hops", row->hops.mean, "rounds_max", row->rounds.max, "violated",
                      (json_int_t)row->violated));
    }
    return report;
}

static void print(const struct table *table) {
    const struct cv_algorithm *last = NULL;
    printf("%-*s %8s %*s %*s %*s %*s %*s %*s\n", COLUMN(20, _("election")), "N",
           COLUMN(6, _("runs")), COLUMN(12, _("messages")), COLUMN(12, _("formula")),
           COLUMN(8, _("ratio")), COLUMN(12, _("time (hops)")), COLUMN(7, _("rounds")));
    for (size_t i = 0; i < table->count; i++) {
        const struct election_cost *row = &table->rows[i];
        char expected[32] = "", ratio[32] = "", rounds[32] = "";
        if (!isnan(row->formula)) {
            snprintf(expected, sizeof expected, "%.0f", row->formula);
            snprintf(ratio, sizeof ratio, "%.3f", row->messages.mean / row->formula);
        }
        if (row->rounds.max > 0) snprintf(rounds, sizeof rounds, "%.0f", row->rounds.max);
        printf("%-20s %8llu %6zu %12.1f %12s %8s %12.1f %7s", row->algorithm->name,
               (unsigned long long)row->processes, row->runs, row->messages.mean, expected, ratio,
               row->hops.mean, rounds);
        if (row->violated) printf(_("  %zu violated"), row->violated);
        if (row->algorithm != last) printf("  %s", _(row->algorithm->cost));
        putchar('\n');
        last = row->algorithm;
    }
    puts(_("\nAll processes initiate; random ids on rings and networks; a message takes one hop of "
           "time.\n"
           "Means over the runs; rounds: the maximum over the runs."));
    for (size_t i = 0; i < table->count; i++) {
        const struct cv_algorithm *algorithm = table->rows[i].algorithm;
        const char *text = election_note(algorithm);
        bool first = i == 0 || table->rows[i - 1].algorithm != algorithm;
        if (text && first) printf("%s: %s.\n", algorithm->name, _(text));
    }
}

static void plot(const struct table *table, const char *path, bool force) {
    struct plot_series series[32];
    double *x = calloc(2 * table->count + 1, sizeof *x), *y = x ? x + table->count : NULL;
    size_t count = 0;
    if (!x) system_error("out of memory");
    for (size_t i = 0; i < table->count; i++) {
        x[i] = (double)table->rows[i].processes, y[i] = table->rows[i].messages.mean;
        bool first = i == 0 || table->rows[i].algorithm != table->rows[i - 1].algorithm;
        if (first && count < 32)
            series[count++] = (struct plot_series){
                .name = table->rows[i].algorithm->name, .x = x + i, .y = y + i, .dots = true};
        series[count - 1].count++;
    }
    FILE *out = open_output(path, force);
    plot_write(&(struct plot){.title = _("Messages of an election"),
                              .x = {.label = _("processes"), .logarithmic = true},
                              .y = {.label = _("messages"), .logarithmic = true},
                              .series = series,
                              .series_count = count},
               out);
    close_output(out, path);
    free(x);
}

int compare_elections(const struct cv_algorithm *const *chosen, size_t count, uint64_t seed,
                      bool as_json, const char *plot_path, bool force) {
    struct table table = {calloc(count * SIZES, sizeof *table.rows), 0};
    progress_fn *progress = progress_bar();
    struct sim sim;
    if (!table.rows || sim_open(&sim) != 0) system_error("out of memory");
    for (size_t a = 0; a < count; a++) {
        if (chosen[a]->problem != CV_ELECTION) continue;
        for (int s = 0; s < SIZES && size_is_possible(chosen[a], sizes[s]); s++) {
            struct election_cost *row = &table.rows[table.count++];
            if (progress) progress(table.count, count * SIZES);
            election_measure(&sim, chosen[a], sizes[s], seed, row);
            if (!election_affordable(row, s ? row - 1 : NULL)) break;
        }
    }
    if (progress) progress(table.count, table.count);
    sim_close(&sim);
    if (as_json)
        print_json(to_json(&table));
    else
        print(&table);
    if (plot_path) plot(&table, plot_path, force);
    free(table.rows);
    return EXIT_OK;
}
