#include "cli/options.h"
#include "base/parse.h"

#include <stdlib.h>

#include "base/parse.h"

void option_table_open(struct option_table *table, size_t own) {
    size_t max = sim_setting_count + SETTING_GROUPS + CV_OPTIONS_MAX + own + 3;
    *table = (struct option_table){calloc(max, sizeof *table->options),
                                   calloc(max, sizeof *table->docs), 0};
    if (!table->options || !table->docs) system_error("out of memory");
}

void option_table_close(struct option_table *table) {
    free(table->options);
    free(table->docs);
}

void option_add(struct option_table *table, struct argp_option option, const char *default_value) {
    char *doc = table->docs[table->count];
    snprintf(doc, sizeof *table->docs, default_value && *default_value ? "%s (%s)" : "%s",
             option.doc, default_value);
    option.doc = doc;
    table->options[table->count++] = option;
}

void option_add_setting(struct option_table *table, const struct setting *s, int group,
                        const struct cv_algorithm *algorithm) {
    struct sim_config defaults;
    char value[64];
    bool foreign = algorithm && !(s->problems & algorithm->problem);
    bool told = algorithm && s->kind != SET_FLAG && s->kind != SET_RATE;
    if (told) {
        config_init(&defaults, algorithm);
        setting_format(&defaults, s, value, sizeof value);
        if (strcmp(value, "0us") == 0 || strcmp(value, "0") == 0 || strlen(value) > 19)
            told = false;
    }
    int key = KEY_SETTING + (int)(s - sim_settings);
    option_add(
        table,
        (struct argp_option){s->name, key, s->value, foreign ? OPTION_HIDDEN : 0, s->help, group},
        told ? value : NULL);
}

void option_add_algorithm(struct option_table *table, const struct cv_algorithm *algorithm,
                          const uint64_t *values, int group) {
    struct sim_config defaults;
    char value[64];
    config_init(&defaults, algorithm);
    if (values) memcpy(defaults.option, values, sizeof defaults.option);
    snprintf(value, sizeof value, "Options of %s:", algorithm->name);
    if (algorithm->option_count)
        option_add(table, (struct argp_option){.doc = value, .group = group}, NULL);
    for (unsigned i = 0; i < algorithm->option_count; i++) {
        const struct cv_option *o = &algorithm->options[i];
        const char *argument = o->type == CV_FLAG ? NULL : o->type == CV_NUMBER ? "K" : "TIME";
        option_format(&defaults, o, value, sizeof value);
        option_add(
            table,
            (struct argp_option){o->name, KEY_OPTION + (int)i, argument, 0, o->summary, group},
            value);
    }
}

bool option_parse(struct sim_config *config, int key, const char *text) {
    char error[SIM_ERROR_MAX];
    int failed = 0;
    if (key >= KEY_SETTING && key < KEY_OPTION)
        failed = setting_apply(config, &sim_settings[key - KEY_SETTING], text, error);
    else if (key >= KEY_OPTION && key < KEY_OWN)
        failed = option_apply(config, &config->algorithm->options[key - KEY_OPTION], text, error);
    else
        return false;
    if (failed) usage_error("%s", error);
    return true;
}

/* How many of the words that are left an option --coordinator takes; its value is `value`. */
static int coordinator_words(int left, char **word, const char **value) {
    static const char name[] = "--coordinator";
    size_t length = sizeof name - 1;
    if (strncmp(*word, name, length) != 0) return 0;
    if ((*word)[length] == '=') return *value = *word + length + 1, 1;
    if ((*word)[length] || left < 2) return 0; /* another option, or argp says what is missing */
    return *value = word[1], 2;
}

int option_coordinator(int argc, char **argv) {
    const char *value = NULL;
    int at = 1, taken = 0;
    while (at < argc && !(taken = coordinator_words(argc - at, &argv[at], &value))) at++;
    if (!taken) return argc;
    if (strcmp(value, "elected:bully") != 0)
        usage_error("coordinator: '%s' is not elected:bully", value);
    memmove(&argv[at], &argv[at + taken], (size_t)(argc - at - taken + 1) * sizeof *argv);
    argc -= taken;
    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], "central") == 0) return argv[i] = "central-elected", argc;
    usage_error("coordinator: only that of central can be elected");
}

void set_count(const char *name, const char *text, uint64_t *result) {
    if (parse_u64(text, result) != 0 || *result == 0)
        usage_error("%s: '%s' is not a whole number above 0", name, text);
}

enum trace_format require_format(const char *name) {
    static const char *const names[TRACE_FORMATS] = {"text", "mermaid", "json", "svg", "graph"};
    for (int i = 0; i < TRACE_FORMATS; i++)
        if (strcmp(names[i], name) == 0) return (enum trace_format)i;
    usage_error("trace: '%s' is not text, mermaid, json, svg or graph", name);
}
