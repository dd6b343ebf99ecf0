/* conclave list */
#include "algorithms/catalogue.h"
#include "cli/cli.h"
#include "lab/sim/config.h"
#include "language/language.h"

static int parse(int key, char *argument, struct argp_state *state) {
    if (key == 'j') return *(bool *)state->input = true, 0;
    if (key == KEY_LANG) return language_option(argument);
    return ARGP_ERR_UNKNOWN;
}

static const char *const topologies[] = {[CV_COMPLETE] = N_("complete"),
                                         [CV_RING] = N_("ring"),
                                         [CV_TWO_WAY_RING] = N_("ring, both ways"),
                                         [CV_GRAPH] = N_("any connected")};

/* The options of its own, with the values that they have when they are not given. */
static json_t *options_json(const struct cv_algorithm *algorithm) {
    static const char *const kinds[] = {
        [CV_NUMBER] = "number", [CV_DURATION] = "time", [CV_FLAG] = "flag"};
    struct sim_config defaults;
    json_t *options = json_array();
    char value[64];
    config_init(&defaults, algorithm);
    for (unsigned i = 0; i < algorithm->option_count; i++) {
        const struct cv_option *o = &algorithm->options[i];
        option_format(&defaults, o, value, sizeof value);
        json_array_append_new(options,
                              json_pack("{s:s, s:s, s:s, s:s}", "name", o->name, "kind",
                                        kinds[o->type], "value", value, "summary", o->summary));
    }
    config_free(&defaults);
    return options;
}

static json_t *to_json(const struct cv_algorithm *algorithm) {
    return json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:o}", "algorithm", algorithm->name,
                     "problem", algorithm->problem == CV_MUTEX ? "lock" : "election", "summary",
                     algorithm->summary, "topology", topologies[algorithm->topology], "cost",
                     algorithm->cost, "delay", algorithm->delay, "tolerates", algorithm->tolerates,
                     "paper", algorithm->paper, "options", options_json(algorithm));
}

static void print(const struct cv_algorithm *algorithm) {
    printf("  %-24s %s\n", algorithm->name, _(algorithm->summary));
    printf(_("  %-24s %s network; messages: %s"), "", _(topologies[algorithm->topology]),
           _(algorithm->cost));
    printf(*algorithm->delay ? _("; delay: %s\n") : "\n", _(algorithm->delay));
    printf(_("  %-24s tolerates: %s\n"), "", _(algorithm->tolerates));
    printf("  %-24s %s\n", "", _(algorithm->paper));
}

int cmd_list(int argc, char **argv) {
    static const struct argp_option options[] = {
        {"json", 'j', 0, 0, "Report in JSON", 0}, LANG_OPTION(0), {0}};
    static const struct argp argp = {options,
                                     parse,
                                     NULL,
                                     "List the algorithms: what they need, cost and tolerate.\v"
                                     "Examples:\n  conclave list\n",
                                     0,
                                     0,
                                     0};
    bool as_json = false;
    argp_parse(&argp, argc, argv, 0, 0, &as_json);
    if (as_json) language_choose(ENGLISH);
    json_t *rows = json_array();
    enum cv_problem last = 0;
    for (size_t i = 0; i < catalogue_count; i++) {
        const struct cv_algorithm *algorithm = catalogue[i];
        json_array_append_new(rows, to_json(algorithm));
        if (as_json) continue;
        if (algorithm->problem != last)
            puts(algorithm->problem == CV_MUTEX ? _("Locks") : _("\nElections"));
        last = algorithm->problem;
        print(algorithm);
    }
    if (as_json)
        print_json(rows);
    else
        json_decref(rows);
    return EXIT_OK;
}
