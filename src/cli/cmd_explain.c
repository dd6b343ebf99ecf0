/* conclave explain */
#include "algorithms/module.h"
#include "cli/cli.h"
#include "cli/explanations.h"
#include "lab/sim/config.h"
#include "language/language.h"
#include "process/roster.h"

enum { TEXT_MAX = 1 << 14, NAME_MAX_BYTES = 128 };

struct request {
    const struct cv_algorithm *algorithm;
    bool json;
};

static int parse(int key, char *text, struct argp_state *state) {
    struct request *request = state->input;
    switch (key) {
    case 'j': request->json = true; return 0;
    case KEY_LANG: return language_option(text);
    case ARGP_KEY_ARG:
        if (request->algorithm) usage_error("explain: one algorithm at a time");
        request->algorithm = require_algorithm(text);
        return 0;
    default: return ARGP_ERR_UNKNOWN;
    }
}

/* The opening comment of a source, as scripts/explanations.awk has it; 0 when there is none. */
static size_t read_opening_comment(const char *path, char *text, size_t size) {
    FILE *file = fopen(path, "r");
    char line[512];
    size_t used = 0;
    bool inside = file && fgets(line, sizeof line, file) && strncmp(line, "/*", 2) == 0;
    for (bool more = inside; more; more = inside && fgets(line, sizeof line, file)) {
        char *end = strstr(line, "*/"), *begin = line;
        if (end) *end = 0, inside = false;
        if (strncmp(begin, "/*", 2) == 0 || strncmp(begin, " *", 2) == 0)
            begin += begin[2] == ' ' ? 3 : 2;
        size_t length = strlen(begin);
        while (length && strchr(" \n\r", begin[length - 1])) length--;
        if (length + 2 > size - used) break;
        memcpy(text + used, begin, length);
        used += length;
        text[used++] = '\n';
    }
    if (file) fclose(file);
    text[used] = 0;
    return used;
}

/* That of an algorithm from a file is looked for in the source beside it. */
static const char *text_of(const struct cv_algorithm *algorithm, char *text, size_t size) {
    char source[4096];
    for (const struct explanation *e = explanations; e->algorithm; e++)
        if (strcmp(e->algorithm, algorithm->name) == 0)
            return language_chosen() == PORTUGUESE && e->portuguese ? e->portuguese : e->text;
    module_source(algorithm, source, sizeof source);
    if (!read_opening_comment(source, text, size))
        snprintf(text, size, "%s: %s\n", algorithm->name, _(algorithm->summary));
    return text;
}

static bool is_about(const struct shipped_scenario *scenario,
                     const struct cv_algorithm *algorithm) {
    return strcmp(scenario->algorithm, algorithm->name) == 0;
}

static void print_fields(const struct cv_field *fields, unsigned count, const char *what) {
    for (unsigned i = 0; i < count; i++)
        printf("%s%s", i ? ", " : what, language_name(fields[i].name));
}

/* With the name that programs know it by, where readers have another. */
static const char *message_title(const char *name, char title[NAME_MAX_BYTES]) {
    const char *shown = language_name(name);
    if (strcmp(shown, name) == 0) return name;
    snprintf(title, NAME_MAX_BYTES, "%s (%s)", shown, name);
    return title;
}

static void print_messages(const struct cv_algorithm *algorithm) {
    char title[NAME_MAX_BYTES];
    int width = 12; /* of the column of names */
    for (unsigned i = 0; i < algorithm->message_count; i++) {
        int length = language_columns(message_title(algorithm->messages[i].name, title));
        if (length > width) width = length;
    }
    for (unsigned i = 0; i < algorithm->message_count; i++) {
        const struct cv_record *message = &algorithm->messages[i];
        const char *name = message_title(message->name, title);
        printf("  %-*s  ", COLUMN(width, name));
        print_fields(message->fields, message->field_count, "");
        print_fields(message->row_fields, message->row_field_count, _("; and a list of: "));
        putchar('\n');
    }
}

static void print_text(const struct cv_algorithm *algorithm) {
    struct sim_config defaults;
    char value[64], text[TEXT_MAX];
    config_init(&defaults, algorithm);
    printf(_("%s\nMessages:\n"), text_of(algorithm, text, sizeof text));
    print_messages(algorithm);
    if (algorithm->option_count) puts(_("\nOptions:"));
    for (unsigned i = 0; i < algorithm->option_count; i++) {
        const struct cv_option *o = &algorithm->options[i];
        option_format(&defaults, o, value, sizeof value);
        printf("  --%-18s %s%s%s%s\n", o->name, _(o->summary), *value ? " (" : "", value,
               *value ? ")" : "");
    }
    if (algorithm->problem == CV_MUTEX)
        puts(algorithm->traits & CV_FENCED
                 ? _("\nFencing token: yes, it grows from entry to entry (CONCLAVE_TOKEN)")
                 : _("\nFencing token: none, so nothing keeps a holder that was late away"));
    if (*algorithm->paper) printf(_("\nPaper: %s\n"), _(algorithm->paper));
    printf(_("\nTry:\n  conclave sim %s\n"), algorithm->name);
    for (const struct shipped_scenario *s = shipped_scenarios; s->algorithm; s++)
        if (is_about(s, algorithm))
            printf("  conclave sim --scenario %s%s   # %s\n", s->path, language_words(),
                   _(s->title));
}

static json_t *to_json(const struct cv_algorithm *algorithm) {
    char text[TEXT_MAX];
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
                     algorithm->summary, "text", text_of(algorithm, text, sizeof text), "messages",
                     messages, "options", options, "scenarios", scenarios, "paper",
                     algorithm->paper);
}

int cmd_explain(int argc, char **argv) {
    static const struct argp_option options[] = {
        {"json", 'j', 0, 0, "Report in JSON", 0}, LANG_OPTION(0), {0}};
    static const struct argp argp = {
        options,
        parse,
        "ALGORITHM",
        "Explain an algorithm: how it works, its messages, what breaks it, and commands "
        "that show it.\v"
        "Examples:\n  conclave explain quorum\n  conclave explain mine/mine.so\n",
        0,
        0,
        0};
    struct request request = {0};
    argp_parse(&argp, argc, argv, 0, 0, &request);
    if (request.json) language_choose(ENGLISH);
    if (!request.algorithm)
        usage_error("explain: which algorithm? For instance: conclave explain quorum");
    if (request.json)
        print_json(to_json(request.algorithm));
    else
        print_text(request.algorithm);
    return EXIT_OK;
}
