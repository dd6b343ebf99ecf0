#include "lab/experiments/counterexample.h"

#include <stdarg.h>
#include <stdlib.h>

enum { FAR_MS = 3600000 }; /* long after the end */

struct script {
    struct scenario *scenario;
    const struct check_model *model;
    const struct check_path *path;
    struct roster roster;
    bool rests; /* the violation is that nothing more can happen, so everything in flight arrives */
    char *error;
};

typedef char name_text[ROSTER_NAME_MAX];

static const char *name_of(const struct script *s, cv_pid p, char *buffer) {
    return roster_name(&s->roster, p, buffer);
}

/* ---- The configuration of the model ---- */

struct copying {
    struct sim_config *config;
    char *error;
    int failed;
};

static void copy_word(void *context, const struct config_word *word) {
    static const char *const kept[] = {"processes", "first",      "seed",
                                       "ids",       "attribute",  "topology",
                                       "edges",     "wait-bound", "starved-after"};
    struct copying *copy = context;
    const struct setting *setting = setting_find(word->name);
    bool wanted = !setting;
    for (size_t i = 0; i < sizeof kept / sizeof kept[0]; i++)
        wanted = wanted || strcmp(word->name, kept[i]) == 0;
    if (word->is_default || !wanted || copy->failed) return;
    copy->failed =
        setting ? setting_apply(copy->config, setting, word->value, copy->error)
                : option_apply(copy->config, option_find(copy->config->algorithm, word->name),
                               word->value, copy->error);
}

static int copy_config(struct sim_config *to, const struct sim_config *from, char *error) {
    struct copying copy = {.config = to, .error = error};
    config_init(to, from->algorithm);
    config_words(from, copy_word, &copy);
    if (copy.failed || !from->names || to->names) return copy.failed;
    size_t size = (config_roster(from).processes + 1) * sizeof *to->names;
    to->names = malloc(size);
    if (!to->names) return snprintf(error, SIM_ERROR_MAX, "out of memory"), -1;
    memcpy(to->names, from->names, size);
    return 0;
}

/* ---- The schedule ---- */

/* Adds an action to the schedule, at the time of a move. */
__attribute__((format(printf, 3, 4))) static int at(const struct script *s, size_t move,
                                                    const char *format, ...) {
    char text[256];
    int used = snprintf(text, sizeof text, "%zums ", move);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text + used, sizeof text - (size_t)used, format, arguments);
    va_end(arguments);
    return action_parse(&s->scenario->config, text, s->error);
}

/* The move that ends the flight of a message, even by a loss; 0: none does.  A connection breaks
 * with its receiver, which ends all flights on it; else they would block what is sent later. */
static size_t end_of(const struct script *s, const struct check_flight *flight) {
    bool fifo = s->model->fifo, down = false;
    if (flight->ended) return flight->ended;
    for (size_t i = 1; i <= s->path->count; i++) {
        const struct check_move *move = &s->path->move[i - 1];
        if (i == flight->sent && down && fifo) return i;
        if (move->process != flight->to) continue;
        if (move->type == MOVE_CRASH && i > flight->sent && fifo) return i;
        down = move->type == MOVE_CRASH || (down && move->type != MOVE_RECOVER);
    }
    return down || s->rests ? s->path->count + 1 : 0;
}

static int add_flight(const struct script *s, const struct check_flight *flight) {
    name_text from, to;
    size_t end = end_of(s, flight);
    name_of(s, flight->from, from);
    name_of(s, flight->to, to);
    if (flight->lost) return at(s, flight->sent, "lose %s %s 1", from, to);
    return at(s, flight->sent, "delay %s %s %zums once", from, to,
              end ? end - flight->sent : (size_t)FAR_MS);
}

/* How long the application that asks with this move stays inside. */
static size_t hold_ms(const struct check_path *path, size_t asked) {
    size_t entered = 0;
    for (size_t i = asked; i <= path->count; i++) {
        const struct check_move *move = &path->move[i - 1];
        if (move->process != path->move[asked - 1].process) continue;
        if (move->type == MOVE_CRASH) break;
        if (move->type == MOVE_RELEASE) return i - entered;
        if (move->entered && !entered) entered = i;
    }
    return FAR_MS;
}

static int add_move(const struct script *s, size_t i) {
    const struct check_move *move = &s->path->move[i - 1];
    name_text name, peer;
    name_of(s, move->process, name);
    name_of(s, move->peer, peer);
    for (unsigned k = 0; k < move->choices; k++)
        if (at(s, i, "%s chooses %u", name, move->choice[k]) != 0) return -1;
    switch (move->type) {
    case MOVE_RECEIVE:
    case MOVE_LOSE:
    case MOVE_MISS:
    case MOVE_RELEASE: return 0; /* the flight or the hold covers it */
    case MOVE_TIMEOUT: return at(s, i, "%s timeout %u", name, move->arg);
    case MOVE_ACQUIRE: return at(s, i, "%s acquire hold %zums", name, hold_ms(s->path, i));
    case MOVE_CAMPAIGN: return at(s, i, "%s campaign", name);
    case MOVE_CRASH: return at(s, i, "%s crash", name);
    case MOVE_RECOVER:
        return at(s, i, s->model->amnesia ? "%s recover amnesia" : "%s recover", name);
    case MOVE_SUSPECT: return at(s, i, "%s suspects %s", name, peer);
    case MOVE_TRUST: return at(s, i, "%s trusts %s", name, peer);
    }
    return -1;
}

/* The delays of the messages of a move, and its choices, are scheduled before the move. */
static int add_moves(const struct script *s) {
    size_t flight = 0;
    for (size_t i = 0; i <= s->path->count; i++) {
        for (; flight < s->path->flight_count && s->path->flight[flight].sent == i; flight++)
            if (add_flight(s, &s->path->flight[flight]) != 0) return -1;
        if (i && add_move(s, i) != 0) return -1;
    }
    return 0;
}

static int expect_violation(struct scenario *scenario, int property, char *error) {
    scenario->expectations = malloc(sizeof *scenario->expectations);
    if (!scenario->expectations) return snprintf(error, SIM_ERROR_MAX, "out of memory"), -1;
    scenario->expectations[0] =
        (struct expectation){.type = EXPECT_VERDICT, .property = property, .value = VIOLATED};
    scenario->expectation_count = 1;
    return 0;
}

int counterexample_scenario(struct scenario *scenario, const struct sim_config *config,
                            const struct check_model *model, const struct check_path *path,
                            int property, char error[SIM_ERROR_MAX]) {
    bool lock = config->algorithm->problem == CV_MUTEX, endless = path->cycle < path->count;
    struct script script = {scenario, model, path, .error = error};
    *scenario = (struct scenario){0};
    struct sim_config *to = &scenario->config;
    int failed = copy_config(to, config, error);
    script.roster = config_roster(to);
    script.rests = !endless && !path->goes_on &&
                   (lock ? property == DEADLOCK || property == STARVATION
                         : property != UNIQUENESS && property < STABILITY);
    to->scripted = true;
    to->reorder = !model->fifo;
    to->fencing = model->fencing;
    if (!script.rests) to->time_limit = (path->count + 1) * 1000;
    if (property >= 0)
        snprintf(scenario->title, sizeof scenario->title, "%s: %s violated",
                 config->algorithm->name, sim_properties(config->algorithm).name[property]);
    else
        snprintf(scenario->title, sizeof scenario->title, "%s: a walk through its states",
                 config->algorithm->name);
    if (!failed) failed = config_check(to, error);
    if (!failed) failed = add_moves(&script);
    if (!failed && !endless && property >= 0) failed = expect_violation(scenario, property, error);
    if (failed) scenario_free(scenario);
    return failed;
}
