/* conclave list */
#include "catalogue/catalogue.h"
#include "cli/cli.h"

static int parse(int key, char *argument, struct argp_state *state) {
    (void)argument;
    if (key == 'j') return *(bool *)state->input = true, 0;
    return ARGP_ERR_UNKNOWN;
}

static const char *const topologies[] = {[CV_COMPLETE] = "complete",
                                         [CV_RING] = "ring",
                                         [CV_TWO_WAY_RING] = "ring, both ways",
                                         [CV_GRAPH] = "any connected"};

static json_t *to_json(const struct cv_algorithm *algorithm) {
    return json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:s}", "algorithm", algorithm->name,
                     "problem", algorithm->problem == CV_MUTEX ? "lock" : "election", "summary",
                     algorithm->summary, "topology", topologies[algorithm->topology], "cost",
                     algorithm->cost, "delay", algorithm->delay, "tolerates", algorithm->tolerates,
                     "paper", algorithm->paper);
}

static void print(const struct cv_algorithm *algorithm) {
    printf("  %-24s %s\n", algorithm->name, algorithm->summary);
    printf("  %-24s %s network; messages: %s", "", topologies[algorithm->topology],
           algorithm->cost);
    printf(*algorithm->delay ? "; delay: %s\n" : "\n", algorithm->delay);
    printf("  %-24s tolerates: %s\n", "", algorithm->tolerates);
    printf("  %-24s %s\n", "", algorithm->paper);
}

int cmd_list(int argc, char **argv) {
    static const struct argp_option options[] = {{"json", 'j', 0, 0, "Report in JSON", 0}, {0}};
    static const struct argp argp = {options,
                                     parse,
                                     "",
                                     "The algorithms: what they need, cost and tolerate.\v"
                                     "Example:\n  conclave list\n",
                                     0,
                                     0,
                                     0};
    bool as_json = false;
    argp_parse(&argp, argc, argv, 0, 0, &as_json);
    json_t *rows = json_array();
    enum cv_problem last = 0;
    for (size_t i = 0; i < catalogue_count; i++) {
        const struct cv_algorithm *algorithm = catalogue[i];
        json_array_append_new(rows, to_json(algorithm));
        if (as_json) continue;
        if (algorithm->problem != last)
            puts(algorithm->problem == CV_MUTEX ? "Locks" : "\nElections");
        last = algorithm->problem;
        print(algorithm);
    }
    if (as_json)
        print_json(rows);
    else
        json_decref(rows);
    return EXIT_OK;
}
