/* The scheduled actions of a run: "5ms p2 crash". */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/parse.h"
#include "lab/sim/config.h"

enum { WORDS_MAX = 64 };

struct words {
    char text[1024];
    char *at[WORDS_MAX];
    int count;
};

static int split(struct words *words, const char *text) {
    words->count = 0;
    if (strlen(text) >= sizeof words->text) return -1;
    strcpy(words->text, text);
    for (char *next = words->text, *word; (word = strsep(&next, " \t"));) {
        if (!*word) continue;
        if (words->count == WORDS_MAX) return -1;
        words->at[words->count++] = word;
    }
    return 0;
}

__attribute__((format(printf, 2, 3))) static int fail(char error[SIM_ERROR_MAX], const char *format,
                                                      ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(error, SIM_ERROR_MAX, format, arguments);
    va_end(arguments);
    return -1;
}

static int find(const struct roster *roster, const char *name, cv_pid *result, char *error) {
    *result = roster_find(roster, name);
    return *result ? 0 : fail(error, "there is no process '%.40s'", name);
}

static int find_or_any(const struct roster *roster, const char *name, cv_pid *result, char *error) {
    if (strcmp(name, "*") == 0) return *result = SIM_ANY_PID, 0;
    return find(roster, name, result, error);
}

/* partition p1 p2 | p3: a process that is not named is on the first side. */
static int parse_partition(struct sim_action *action, const struct roster *roster,
                           const struct words *w, char *error) {
    unsigned char side = 0;
    action->side = calloc(2 * ((size_t)roster->processes + 1), 1);
    if (!action->side) return fail(error, "out of memory");
    unsigned char *named = action->side + roster->processes + 1;
    for (int i = 2; i < w->count; i++) {
        cv_pid p;
        if (strcmp(w->at[i], "|") == 0) {
            side++;
        } else {
            if (find(roster, w->at[i], &p, error) != 0) return -1;
            if (named[p]++) return fail(error, "partition: '%s' is there twice", w->at[i]);
            action->side[p] = side;
        }
    }
    return side ? 0 : fail(error, "partition: name the sides, for instance 'p1 p2 | p3'");
}

static int parse_channel(struct sim_action *action, const struct roster *roster,
                         const struct words *w, char *error) {
    bool delays = action->type == ACT_DELAY;
    action->once = delays && w->count == 6;
    if (w->count - action->once != 5)
        return fail(error, "%s: expected FROM TO %s", w->at[1],
                    delays ? "TIME or 'usual', and perhaps 'once'" : "HOW-MANY");
    if (action->once && strcmp(w->at[5], "once") != 0)
        return fail(error, "delay: only 'once' may follow");
    if (find_or_any(roster, w->at[2], &action->process, error) != 0) return -1;
    if (find_or_any(roster, w->at[3], &action->other, error) != 0) return -1;
    if (!delays)
        return parse_u64(w->at[4], &action->amount) == 0
                   ? 0
                   : fail(error, "lose: '%.40s' is not a whole number", w->at[4]);
    action->default_delay = strcmp(w->at[4], "usual") == 0;
    if (!action->default_delay && distribution_parse(w->at[4], &action->delay) != 0)
        return fail(error, "delay: '%.40s' is not " DISTRIBUTION_SYNTAX, w->at[4]);
    return 0;
}

static const struct verb {
    const char *name;
    enum sim_action_type type;
    int min, max; /* words after it */
} verbs[] = {
    {"acquire", ACT_ACQUIRE, 0, 2}, {"campaign", ACT_CAMPAIGN, 0, 0}, {"crash", ACT_CRASH, 0, 0},
    {"recover", ACT_RECOVER, 0, 1}, {"pause", ACT_PAUSE, 0, 1},       {"resume", ACT_RESUME, 0, 0},
    {"drift", ACT_DRIFT, 1, 1},     {"suspects", ACT_SUSPECT, 1, 1},  {"trusts", ACT_TRUST, 1, 1},
    {"timeout", ACT_TIMEOUT, 0, 1}, {"chooses", ACT_CHOOSE, 1, 1},
};

static int parse_arguments(struct sim_action *action, const struct roster *roster,
                           const struct cv_algorithm *algorithm, const struct words *w,
                           char *error) {
    const char *first = w->count > 3 ? w->at[3] : NULL;
    enum cv_problem problem = (enum cv_problem)algorithm->problem;
    switch (action->type) {
    case ACT_CAMPAIGN:
        return problem == CV_ELECTION ? 0 : fail(error, "campaign: is for elections");
    case ACT_ACQUIRE:
        if (problem != CV_MUTEX) return fail(error, "acquire: is for locks");
        if (action->process <= roster->servers)
            return fail(error, "%s is a server and does not compete", w->at[1]);
        if (!first) return 0;
        if (strcmp(first, "hold") != 0 || w->count != 5 ||
            parse_duration(w->at[4], &action->amount) != 0)
            return fail(error, "acquire: only 'hold TIME' may follow");
        return 0;
    case ACT_RECOVER:
        action->amnesia = first != NULL;
        return !first || strcmp(first, "amnesia") == 0
                   ? 0
                   : fail(error, "recover: only 'amnesia' may follow");
    case ACT_PAUSE:
        return !first || parse_duration(first, &action->amount) == 0
                   ? 0
                   : fail(error, "pause: '%.40s' is not a time", first);
    case ACT_DRIFT:
        return parse_real(first, &action->factor) == 0 && action->factor > 0
                   ? 0
                   : fail(error, "drift: '%.40s' is not a factor above 0", first);
    case ACT_SUSPECT:
    case ACT_TRUST: return find(roster, first, &action->other, error);
    case ACT_TIMEOUT:
        if (!algorithm->timers) return fail(error, "timeout: %s has no timer", algorithm->name);
        return !first || (parse_u64(first, &action->amount) == 0 &&
                          action->amount < algorithm->timers)
                   ? 0
                   : fail(error, "timeout: '%.40s' is not a timer of %s: 0 to %u", first,
                          algorithm->name, algorithm->timers - 1u);
    case ACT_CHOOSE:
        return parse_u64(first, &action->amount) == 0 && action->amount <= UINT32_MAX
                   ? 0
                   : fail(error, "chooses: '%.40s' is not a choice, of which the first is 0",
                          first);
    default: return 0;
    }
}

static int parse_words(struct sim_action *action, const struct roster *roster,
                       const struct cv_algorithm *algorithm, const struct words *w, char *error) {
    if (w->count < 2)
        return fail(error, "expected a time and an action, for instance '5ms p2 crash'");
    if (parse_duration(w->at[0], &action->at_us) != 0)
        return fail(error, "'%.40s' is not a time such as 5ms", w->at[0]);
    const char *head = w->at[1];
    if (strcmp(head, "heal") == 0) {
        action->type = ACT_HEAL;
        return w->count == 2 ? 0 : fail(error, "heal: nothing may follow");
    }
    if (strcmp(head, "partition") == 0) {
        action->type = ACT_PARTITION;
        return parse_partition(action, roster, w, error);
    }
    if (strcmp(head, "delay") == 0 || strcmp(head, "lose") == 0) {
        action->type = *head == 'd' ? ACT_DELAY : ACT_LOSE;
        return parse_channel(action, roster, w, error);
    }
    if (find(roster, head, &action->process, error) != 0) return -1;
    if (w->count < 3) return fail(error, "what does %s do?", head);
    for (size_t i = 0; i < sizeof verbs / sizeof verbs[0]; i++) {
        if (strcmp(verbs[i].name, w->at[2]) != 0) continue;
        if (w->count - 3 < verbs[i].min || w->count - 3 > verbs[i].max)
            return fail(error, "%s: wrong number of words after it", w->at[2]);
        action->type = verbs[i].type;
        return parse_arguments(action, roster, algorithm, w, error);
    }
    return fail(error,
                "unknown '%.40s'; known: acquire, campaign, crash, recover, pause, resume, drift, "
                "suspects, trusts, timeout, chooses; and without a process before them partition, "
                "heal, delay FROM TO TIME, lose FROM TO K",
                w->at[2]);
}

int action_parse(struct sim_config *config, const char *text, char error[SIM_ERROR_MAX]) {
    struct sim_action action = {0};
    struct roster roster = config_roster(config);
    struct words words;
    if (split(&words, text) != 0) return fail(error, "too long");
    int failed = parse_words(&action, &roster, config->algorithm, &words, error);
    if (!failed && config->action_count &&
        action.at_us < config->actions[config->action_count - 1].at_us)
        failed = fail(error, "%s is in the past: the action before it is later", words.at[0]);
    if (!failed && !(action.text = strdup(text))) failed = fail(error, "out of memory");
    struct sim_action *grown =
        failed ? NULL : realloc(config->actions, (config->action_count + 1) * sizeof action);
    if (!grown) {
        free(action.side);
        free(action.text);
        return failed ? -1 : fail(error, "out of memory");
    }
    config->actions = grown;
    config->actions[config->action_count++] = action;
    config_settle(config);
    return 0;
}
