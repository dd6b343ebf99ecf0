/* conclave merge: the results of a sweep that was run in shares, merged exactly. */
#include <stdlib.h>

#include "algorithms/catalogue.h"
#include "cli/report.h"
#include "language/language.h"

struct request {
    bool json;
    char **paths;
    int count;
};

static int parse(int key, char *text, struct argp_state *state) {
    struct request *request = state->input;
    switch (key) {
    case 'j': request->json = true; return 0;
    case KEY_LANG: return language_option(text);
    case ARGP_KEY_ARGS:
        request->paths = state->argv + state->next;
        request->count = state->argc - state->next;
        return 0;
    default: return ARGP_ERR_UNKNOWN;
    }
}

static json_t *load(const char *path) {
    json_error_t error;
    json_t *report = json_load_file(path, 0, &error);
    if (!report) usage_error("%s:%d: %s", path, error.line, error.text);
    const char *algorithm = json_string_value(json_object_get(report, "algorithm"));
    if (!json_is_array(json_object_get(report, "results")) || !algorithm ||
        !catalogue_find(algorithm) || !json_is_integer(json_object_get(report, "processes")) ||
        !json_is_integer(json_object_get(report, "runs")) ||
        !json_is_number(json_object_get(report, "hop_us")))
        usage_error("%s: not a result of 'conclave sim --runs K --json'", path);
    return report;
}

/* What was run, which must be the same in all files. */
static json_t *head_of(json_t *report) {
    static const char *const keys[] = {"algorithm", "processes", "servers", "seed",
                                       "settings",  "runs",      "hop_us"};
    json_t *head = json_object();
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++)
        json_object_set(head, keys[i], json_object_get(report, keys[i]));
    return head;
}

static void append(struct batch_row **rows, size_t *count, json_t *report, const char *path) {
    json_t *results = json_object_get(report, "results");
    size_t more = json_array_size(results);
    *rows = realloc(*rows, (*count + more + 1) * sizeof **rows);
    if (!*rows) system_error("out of memory");
    for (size_t i = 0; i < more; i++)
        if (batch_row_read(report, json_array_get(results, i), *rows + (*count)++) != 0)
            usage_error("%s: row %zu of the results is damaged", path, i + 1);
}

static int by_seed(const void *a, const void *b) {
    uint64_t x = ((const struct batch_row *)a)->seed, y = ((const struct batch_row *)b)->seed;
    return (x > y) - (x < y);
}

static int merge(const struct request *request) {
    struct batch_row *rows = NULL;
    struct batch_summary summary;
    size_t count = 0;
    json_t *head = NULL;
    for (int i = 0; i < request->count; i++) {
        json_t *report = load(request->paths[i]), *other = head_of(report);
        if (head && !json_equal(head, other))
            usage_error("%s: it is of another sweep than %s", request->paths[i], request->paths[0]);
        append(&rows, &count, report, request->paths[i]);
        json_decref(head);
        head = other;
        json_decref(report);
    }
    if (count) qsort(rows, count, sizeof *rows, by_seed);
    for (size_t i = 1; i < count; i++)
        if (rows[i].seed == rows[i - 1].seed)
            usage_error("seed %llu is in the results twice", (unsigned long long)rows[i].seed);
    double hop_us = json_real_value(json_object_get(head, "hop_us"));
    double processes = (double)json_integer_value(json_object_get(head, "processes"));
    if (batch_summarize(rows, count, hop_us, processes, &summary) != 0)
        system_error("out of memory");
    if (request->json)
        print_json(report_batch_json(head, rows, count, &summary));
    else
        report_batch_text(head, count, &summary, stdout);
    free(rows);
    json_decref(head);
    return summary.first_failing_any ? EXIT_VIOLATED : EXIT_OK;
}

int cmd_merge(int argc, char **argv) {
    static const struct argp_option options[] = {
        {"json", 'j', 0, 0, "Report in JSON", 0}, LANG_OPTION(0), {0}};
    static const struct argp argp = {
        options,
        parse,
        "FILE...",
        "Merge the JSON results of 'conclave sim --runs K --share I/N --json'.  The outcome is, "
        "byte for byte, that of the same sweep without shares.\v"
        "Each of four machines runs one share, 1/4 to 4/4, and one machine merges them.\n\n"
        "Examples:\n"
        "  conclave sim quorum --runs 100000 --share 1/4 --json > 1.json\n"
        "  conclave merge 1.json 2.json 3.json 4.json\n",
        0,
        0,
        0};
    struct request request = {0};
    argp_parse(&argp, argc, argv, 0, 0, &request);
    if (request.json) language_choose(ENGLISH);
    if (request.count == 0) usage_error("merge: which files? See conclave merge --help");
    return merge(&request);
}
