/* conclave compare --load */
#include "cli/compare_load.h"

#include <stdlib.h>

#include "base/parse.h"
#include "cli/cli.h"
#include "lab/experiments/plot.h"
#include "lab/experiments/saturation.h"
#include "language/language.h"

enum { LOCKS_MAX = 32 };

struct table {
    struct saturation_row *rows;
    size_t count, locks, sizes; /* a lock has as many rows as there are sizes */
};

static const struct saturation_row *rows_of(const struct table *table, size_t lock) {
    return table->rows + lock * table->sizes;
}

static json_t *to_json(const struct table *table) {
    json_t *report = json_array();
    for (size_t i = 0; i < table->count; i++) {
        const struct saturation_row *row = &table->rows[i];
        json_array_append_new(
            report, json_pack("{s:s, s:I, s:f, s:o, s:o, s:s, s:f, s:s?}", "algorithm",
                              row->algorithm->name, "processes", (json_int_t)row->processes,
                              "entries_per_second", row->per_second, "wait_ms_mean",
                              real_or_null(row->wait_us / 1e3), "messages_per_entry",
                              real_or_null(row->messages), "busiest", row->busiest, "busy",
                              row->busy, "failed", row->failed));
    }
    return report;
}

static void print_saturation(const struct saturation_row *rows, size_t count) {
    struct saturation found = saturation_find(rows, count);
    const struct saturation_row *from = found.from, *last = found.last;
    const char *name = rows->algorithm->name;
    for (size_t i = 0; i < count; i++)
        if (rows[i].failed) {
            printf(_("%s: from N = %llu on these are no figures of a lock: %s.\n"), name,
                   (unsigned long long)rows[i].processes, _(rows[i].failed));
            break;
        }
    if (!last) return;
    if (!from) {
        printf(_("%s: more processes still get more at N = %llu.\n"), name,
               (unsigned long long)last->processes);
        return;
    }
    printf(_("%s: saturated from N = %llu on, at %.4g entries/s; "), name,
           (unsigned long long)from->processes, from->per_second);
    if (from->busy >= 0.5)
        printf(_("%s is %.0f%% busy"), from->busiest, 100 * from->busy);
    else
        printf(_("nobody is more than %.0f%% busy: handing over takes the time"), 100 * from->busy);
    if (last->per_second < 0.8 * found.best->per_second)
        printf(_(", and at N = %llu only %.4g are left"), (unsigned long long)last->processes,
               last->per_second);
    puts(".");
}

static void print(const struct table *table, uint64_t service_us) {
    char wait[32], service[32];
    printf("%-24s %5s %*s %*s %*s  %-*s %*s\n", _("lock"), "N", COLUMN(12, _("entries/s")),
           COLUMN(12, _("wait")), COLUMN(14, _("messages/entry")), COLUMN(14, _("busiest")),
           COLUMN(6, _("busy")));
    for (size_t i = 0; i < table->count; i++) {
        const struct saturation_row *row = &table->rows[i];
        printf("%-24s %5llu %12.4g %12s %14.4g  %-14s %5.0f%%%s\n", row->algorithm->name,
               (unsigned long long)row->processes, row->per_second,
               format_duration(wait, sizeof wait, row->wait_us), row->messages, row->busiest,
               100 * row->busy, row->failed ? _(" (failed)") : "");
    }
    format_duration(service, sizeof service, (double)service_us);
    printf(
        _("\nEvery message costs its receiver %s, and others wait meanwhile.  It is under way for "
          "a tenth\nof that.  A process wants in again after a hundred times that on average, and "
          "leaves at once.\n\n"),
        service);
    for (size_t i = 0; i < table->locks; i++) print_saturation(rows_of(table, i), table->sizes);
}

/* ---- The plot ---- */

static void plot(const struct table *table, const char *path, bool force) {
    struct plot_series throughput[LOCKS_MAX], wait[LOCKS_MAX];
    double *numbers = calloc(3 * table->count + 1, sizeof *numbers);
    double *x = numbers, *per_second = numbers + table->count, *ms = numbers + 2 * table->count;
    if (!numbers) system_error("out of memory");
    for (size_t i = 0; i < table->count; i++) {
        x[i] = (double)table->rows[i].processes;
        per_second[i] = table->rows[i].per_second;
        ms[i] = table->rows[i].wait_us / 1e3;
    }
    for (size_t i = 0; i < table->locks; i++) {
        size_t at = i * table->sizes;
        throughput[i] = (struct plot_series){rows_of(table, i)->algorithm->name, x + at,
                                             per_second + at, table->sizes, true};
        wait[i] = throughput[i];
        wait[i].y = ms + at;
    }
    const struct plot plots[] = {
        {.title = _("Entries per second"),
         .x = {.label = _("processes"), .logarithmic = true},
         .y = {.label = _("entries per second")},
         .series = throughput,
         .series_count = table->locks},
        {.title = _("Delay before entry"),
         .x = {.label = _("processes"), .logarithmic = true},
         .y = {.label = _("ms from the request"), .logarithmic = true},
         .series = wait,
         .series_count = table->locks},
    };
    FILE *out = open_output(path, force);
    plot_write_all(plots, 2, out);
    close_output(out, path);
    free(numbers);
}

int compare_load(const struct compare_load_request *request) {
    struct table table = {.sizes = request->size_count};
    progress_fn *progress = progress_bar();
    size_t most = request->lock_count * request->size_count;
    struct sim sim;
    table.rows = calloc(most + 1, sizeof *table.rows);
    if (!table.rows || sim_open(&sim) != 0) system_error("out of memory");
    for (size_t a = 0; a < request->lock_count && table.locks < LOCKS_MAX; a++) {
        if (request->locks[a]->problem != CV_MUTEX) continue;
        table.locks++;
        for (size_t s = 0; s < request->size_count; s++) {
            if (progress) progress(table.count, most);
            saturation_measure(&sim, request->locks[a], request->sizes[s], request->service_us,
                               request->seed, &table.rows[table.count++]);
        }
    }
    if (progress) progress(most, most);
    sim_close(&sim);
    if (request->json)
        print_json(to_json(&table));
    else
        print(&table, request->service_us);
    if (request->plot) plot(&table, request->plot, request->force);
    free(table.rows);
    return EXIT_OK;
}
