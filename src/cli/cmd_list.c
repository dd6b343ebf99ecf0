/* conclave list */
#include "catalogue/catalogue.h"
#include "cli/cli.h"

static int parse(int key, char *argument, struct argp_state *state) {
    (void)argument;
    if (key == 'j') return *(bool *)state->input = true, 0;
    return ARGP_ERR_UNKNOWN;
}

static json_t *to_json(const struct cv_algorithm *algorithm) {
    return json_pack("{s:s, s:s, s:s, s:s, s:s, s:s}", "algorithm", algorithm->name, "problem",
                     algorithm->problem == CV_MUTEX ? "lock" : "election", "summary",
                     algorithm->summary, "messages_per_entry", algorithm->cost, "delay",
                     algorithm->delay, "paper", algorithm->paper);
}

int cmd_list(int argc, char **argv) {
    static const struct argp_option options[] = {{"json", 'j', 0, 0, "Report in JSON", 0}, {0}};
    static const struct argp argp = {options,
                                     parse,
                                     "",
                                     "The algorithms, and what they cost per entry.\v"
                                     "Example:\n  conclave list\n",
                                     0,
                                     0,
                                     0};
    bool as_json = false;
    argp_parse(&argp, argc, argv, 0, 0, &as_json);
    json_t *rows = json_array();
    for (size_t i = 0; i < catalogue_count; i++) {
        const struct cv_algorithm *algorithm = catalogue[i];
        json_array_append_new(rows, to_json(algorithm));
        if (!as_json)
            printf("%-14s %s\n%-14s messages per entry: %s; delay: %s\n%-14s %s\n", algorithm->name,
                   algorithm->summary, "", algorithm->cost, algorithm->delay, "", algorithm->paper);
    }
    if (as_json)
        print_json(rows);
    else
        json_decref(rows);
    return EXIT_OK;
}
