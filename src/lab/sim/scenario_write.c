#include "lab/sim/scenario.h"

struct writer {
    FILE *out;
    bool named; /* names are written, which give the number of processes */
};

static void write_word(void *context, const struct config_word *word) {
    const struct writer *w = context;
    if (word->is_default || (w->named && strcmp(word->name, "processes") == 0)) return;
    if (word->flag)
        fprintf(w->out, "%s\n", word->name);
    else
        fprintf(w->out, "%s %s\n", word->name, word->value);
}

static void write_name(const struct roster *roster, cv_pid p, FILE *out) {
    char name[ROSTER_NAME_MAX];
    fprintf(out, " %s", roster_name(roster, p, name));
}

static void write_names(const struct roster *roster, const char *word, cv_pid first, cv_pid last,
                        FILE *out) {
    if (first > last) return;
    fputs(word, out);
    for (cv_pid p = first; p <= last; p++) write_name(roster, p, out);
    putc('\n', out);
}

static void write_expectation(const struct scenario *scenario, const struct expectation *e,
                              FILE *out) {
    struct roster roster = config_roster(&scenario->config);
    struct properties properties = sim_properties(scenario->config.algorithm);
    fputs("expect", out);
    if (e->type == EXPECT_VERDICT)
        fprintf(out, " %s %s", properties.name[e->property], verdict_word(e->value));
    else
        fprintf(out, " %s", expectation_name[e->type]);
    if (e->type == EXPECT_LEADER)
        write_name(&roster, e->leader, out);
    else if (e->type == EXPECT_ORDER)
        for (size_t i = 0; i < e->order_count; i++) write_name(&roster, e->order[i], out);
    else if (e->type != EXPECT_VERDICT)
        fprintf(out, " %llu", (unsigned long long)e->number);
    putc('\n', out);
}

void scenario_write(const struct scenario *scenario, FILE *out) {
    const struct sim_config *config = &scenario->config;
    struct roster roster = config_roster(config);
    struct writer w = {out, config->names && !config->network.vertices};
    if (*scenario->title) fprintf(out, "title %s\n", scenario->title);
    fprintf(out, "algorithm %s\n", config->algorithm->name);
    if (w.named) {
        write_names(&roster, "servers", 1, roster.servers, out);
        write_names(&roster, "processes", roster.servers + 1, roster.processes, out);
    }
    config_words(config, write_word, &w);
    for (size_t i = 0; i < config->action_count; i++)
        fprintf(out, "at %s\n", config->actions[i].text);
    for (size_t i = 0; i < scenario->expectation_count; i++)
        write_expectation(scenario, &scenario->expectations[i], out);
}
