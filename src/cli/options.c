#include "cli/options.h"

#include <stdlib.h>

void option_table_open(struct option_table *table, size_t own) {
    size_t most = sim_setting_count + SETTING_GROUPS + CV_OPTIONS_MAX + own + 3;
    *table = (struct option_table){calloc(most, sizeof *table->options),
                                   calloc(most, sizeof *table->docs), 0};
    if (!table->options || !table->docs) system_error("out of memory");
}

void option_table_close(struct option_table *table) {
    free(table->options);
    free(table->docs);
}

void option_add(struct option_table *table, struct argp_option option, const char *usual) {
    char *doc = table->docs[table->count];
    snprintf(doc, sizeof *table->docs, usual && *usual ? "%s (%s)" : "%s", option.doc, usual);
    option.doc = doc;
    table->options[table->count++] = option;
}

void option_add_setting(struct option_table *table, const struct setting *s, int group,
                        const struct cv_algorithm *algorithm) {
    struct sim_config usual;
    char value[64];
    bool foreign = algorithm && !(s->problems & algorithm->problem);
    bool told = algorithm && s->kind != SET_FLAG && s->kind != SET_RATE;
    if (told) {
        config_init(&usual, algorithm);
        setting_format(&usual, s, value, sizeof value);
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
                          int group) {
    struct sim_config usual;
    char value[64];
    config_init(&usual, algorithm);
    snprintf(value, sizeof value, "Options of %s:", algorithm->name);
    if (algorithm->option_count)
        option_add(table, (struct argp_option){.doc = value, .group = group}, NULL);
    for (unsigned i = 0; i < algorithm->option_count; i++) {
        const struct cv_option *o = &algorithm->options[i];
        const char *argument = o->type == CV_FLAG ? NULL : o->type == CV_NUMBER ? "K" : "TIME";
        option_format(&usual, o, value, sizeof value);
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

enum trace_format require_format(const char *name) {
    static const char *const names[] = {"text", "mermaid", "json", "svg"};
    for (int i = 0; i < 4; i++)
        if (strcmp(names[i], name) == 0) return (enum trace_format)i;
    usage_error("trace: '%s' is not text, mermaid, json or svg", name);
}
