/* conclave explain */
#include "catalogue/catalogue.h"
#include "cli/cli.h"
#include "cli/explanations.h"
#include "process/roster.h"
#include "sim/config.h"

struct request {
    const struct cv_algorithm *algorithm;
    bool json;
};

static int parse(int key, char *text, struct argp_state *state) {
    struct request *request = state->input;
    switch (key) {
    case 'j': request->json = true; return 0;
    case ARGP_KEY_ARG:
        if (request->algorithm) usage_error("explain: one algorithm at a time");
        request->algorithm = require_algorithm(text);
        return 0;
    default: return ARGP_ERR_UNKNOWN;
    }
}

static const char *text_of(const struct cv_algorithm *algorithm) {
    for (const struct explanation *e = explanations; e->algorithm; e++)
        if (strcmp(e->algorithm, algorithm->name) == 0) return e->text;
    return "";
}

static bool is_about(const struct shipped_scenario *scenario,
                     const struct cv_algorithm *algorithm) {
    return strcmp(scenario->algorithm, algorithm->name) == 0;
}

static void print_fields(const struct cv_field *fields, unsigned count, const char *what) {
    for (unsigned i = 0; i < count; i++) printf("%s%s", i ? ", " : what, fields[i].name);
}

static void print_text(const struct cv_algorithm *algorithm) {
    struct sim_config usual;
    char value[64];
    config_init(&usual, algorithm);
    printf("%s\nMessages:\n", text_of(algorithm));
    for (unsigned i = 0; i < algorithm->message_count; i++) {
        const struct cv_record *message = &algorithm->messages[i];
        printf("  %-14s", message->name);
        print_fields(message->fields, message->field_count, "");
        print_fields(message->row_fields, message->row_field_count, "; for each in a list: ");
        putchar('\n');
    }
    if (algorithm->option_count) puts("\nOptions:");
    for (unsigned i = 0; i < algorithm->option_count; i++) {
        const struct cv_option *o = &algorithm->options[i];
        option_format(&usual, o, value, sizeof value);
        printf("  --%-18s %s%s%s%s\n", o->name, o->summary, *value ? " (" : "", value,
               *value ? ")" : "");
    }
    printf("\nPaper: %s\n\nTry:\n  conclave sim %s\n", algorithm->paper, algorithm->name);
    for (const struct shipped_scenario *s = shipped_scenarios; s->algorithm; s++)
        if (is_about(s, algorithm))
            printf("  conclave sim --scenario %s   # %s\n", s->path, s->title);
}

static json_t *to_json(const struct cv_algorithm *algorithm) {
    json_t *messages = json_object(), *options = json_object(), *scenarios = json_array();
    for (unsigned i = 0; i < algorithm->message_count; i++) {
        json_t *fields = json_array();
        for (unsigned f = 0; f < algorithm->messages[i].field_count; f++)
            json_array_append_new(fields, json_string(algorithm->messages[i].fields[f].name));
        json_object_set_new(messages, algorithm->messages[i].name, fields);
    }
    for (unsigned i = 0; i < algorithm->option_count; i++)
        json_object_set_new(options, algorithm->options[i].name,
                            json_string(algorithm->options[i].summary));
    for (const struct shipped_scenario *s = shipped_scenarios; s->algorithm; s++)
        if (is_about(s, algorithm)) json_array_append_new(scenarios, json_string(s->path));
    return json_pack("{s:s, s:s, s:s, s:o, s:o, s:o, s:s}", "algorithm", algorithm->name, "summary",
                     algorithm->summary, "text", text_of(algorithm), "messages", messages,
                     "options", options, "scenarios", scenarios, "paper", algorithm->paper);
}

int cmd_explain(int argc, char **argv) {
    static const struct argp_option options[] = {{"json", 'j', 0, 0, "Report in JSON", 0}, {0}};
    static const struct argp argp = {
        options,
        parse,
        "ALGORITHM",
        "What an algorithm does, its messages, what breaks it, and the "
        "commands that show it.\v"
        "Example:\n  conclave explain quorum\n",
        0,
        0,
        0};
    struct request request = {0};
    argp_parse(&argp, argc, argv, 0, 0, &request);
    if (!request.algorithm)
        usage_error("explain: which algorithm? For instance: conclave explain quorum");
    if (request.json)
        print_json(to_json(request.algorithm));
    else
        print_text(request.algorithm);
    return EXIT_OK;
}
