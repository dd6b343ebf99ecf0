#include "lab/sim/scenario.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <unistd.h>

#include "algorithms/catalogue.h"
#include "algorithms/module.h"
#include "base/parse.h"
#include "lab/sim/internal.h"
#include "language/language.h"

enum { LINE_MAX_BYTES = 1 << 16, FILE_MAX_BYTES = 1 << 26 };

const char *const expectation_name[] = {
    [EXPECT_ENTRIES] = "entries", [EXPECT_MESSAGES] = "messages", [EXPECT_OVERLAPS] = "overlaps",
    [EXPECT_REFUSED] = "refused", [EXPECT_ROUNDS] = "rounds",     [EXPECT_COMMITTED] = "committed",
    [EXPECT_LEADER] = "leader",   [EXPECT_ORDER] = "order"};

struct reader {
    struct scenario *scenario;
    const char *path;
    char *error;
    int line;
    char *servers, *processes; /* the names as written, until all are known */
    int servers_line, processes_line, setting_line;
};

__attribute__((format(printf, 2, 3))) static int fail(struct reader *r, const char *format, ...) {
    int used = snprintf(r->error, SCENARIO_ERROR_MAX, "%s:%d: ", r->path, r->line);
    va_list arguments;
    va_start(arguments, format);
    if (used < SCENARIO_ERROR_MAX)
        vsnprintf(r->error + used, (size_t)(SCENARIO_ERROR_MAX - used), format, arguments);
    va_end(arguments);
    return -1;
}

/* Splits "word rest of the line"; the rest may be empty. */
static char *rest_of(char *line) {
    char *rest = line + strcspn(line, " \t");
    if (*rest) *rest++ = 0;
    return rest + strspn(rest, " \t");
}

/* ---- First pass: the algorithm, the settings, the names ---- */

/* A file is looked for beside the scenario, then where the program runs. */
static const struct cv_algorithm *find_algorithm(const struct reader *r, const char *name,
                                                 char error[CATALOGUE_ERROR_MAX]) {
    const char *slash = strrchr(r->path, '/');
    char beside[4096];
    if (!module_is_named(name) || *name == '/' || !slash) return catalogue_open(name, error);
    snprintf(beside, sizeof beside, "%.*s/%s", (int)(slash - r->path), r->path, name);
    return catalogue_open(access(beside, F_OK) == 0 ? beside : name, error);
}

static int read_algorithm(struct reader *r, const char *name) {
    char error[CATALOGUE_ERROR_MAX];
    if (r->scenario->config.algorithm) return fail(r, "the algorithm was already named");
    const struct cv_algorithm *algorithm = find_algorithm(r, name, error);
    if (!algorithm) return fail(r, "%s", error);
    config_init(&r->scenario->config, algorithm);
    return 0;
}

static int read_setting(struct reader *r, const char *word, const char *value) {
    struct sim_config *config = &r->scenario->config;
    char error[SIM_ERROR_MAX];
    if (!config->algorithm) return fail(r, "name the algorithm first");
    const struct setting *setting = setting_find(word);
    const struct cv_option *option = option_find(config->algorithm, word);
    if (!setting && !option)
        return fail(r, "unknown word '%.40s': not a setting, nor an option of %s", word,
                    config->algorithm->name);
    r->setting_line = r->line;
    bool flag = setting ? setting->kind == SET_FLAG : option->type == CV_FLAG;
    if (flag && *value) return fail(r, "%s takes no value", word);
    int failed = setting ? setting_apply(config, setting, value, error)
                         : option_apply(config, option, value, error);
    return failed ? fail(r, "%s", error) : 0;
}

static int read_head(struct reader *r, char *word, char *rest) {
    if (strcmp(word, "at") == 0 || strcmp(word, "expect") == 0) return 0;
    if (strcmp(word, "title") == 0) {
        if (strlen(rest) >= sizeof r->scenario->title)
            return fail(r, "a title has at most %zu bytes", sizeof r->scenario->title - 1);
        snprintf(r->scenario->title, sizeof r->scenario->title, "%s", rest);
        return 0;
    }
    if (strcmp(word, "algorithm") == 0) return read_algorithm(r, rest);
    if (strcmp(word, "servers") == 0) {
        free(r->servers);
        r->servers = strdup(rest);
        r->servers_line = r->line;
        return r->servers ? 0 : fail(r, "out of memory");
    }
    if (strcmp(word, "processes") == 0 && !isdigit((unsigned char)*rest)) {
        uint64_t count = 0;
        for (const char *at = rest; *at; at += strspn(at, " \t"), count++) at += strcspn(at, " \t");
        if (!r->scenario->config.algorithm) return fail(r, "name the algorithm first");
        if (!count) return fail(r, "processes: expected names, or a number");
        if (r->scenario->config.network.vertices) return fail(r, "the network has names already");
        r->scenario->config.processes = count;
        r->processes_line = r->line;
        free(r->processes);
        r->processes = strdup(rest);
        return r->processes ? 0 : fail(r, "out of memory");
    }
    return read_setting(r, word, rest);
}

static int name_processes(struct reader *r, char *list, cv_pid first, cv_pid last) {
    char(*names)[ROSTER_NAME_MAX] = r->scenario->config.names;
    cv_pid p = first;
    for (char *name; list && (name = strsep(&list, " \t"));) {
        if (!*name) continue;
        if (p > last) return fail(r, "more names than there are processes of that kind");
        if (strlen(name) >= ROSTER_NAME_MAX)
            return fail(r, "'%.40s' cannot be a name: it has more than %d bytes", name,
                        ROSTER_NAME_MAX - 1);
        if (strpbrk(name, "|*\"<>&;:#"))
            return fail(r, "'%.40s' cannot be a name: it has one of |*\"<>&;:#", name);
        strcpy(names[p++], name);
    }
    return p == last + 1
               ? 0
               : fail(r, "names: %u, but processes of that kind: %u", p - first, last + 1 - first);
}

/* Compares each given name with all others: few names are given, even for a million processes. */
static int check_names(struct reader *r, const struct roster *roster, cv_pid first, cv_pid last) {
    for (cv_pid p = first; p <= last; p++)
        for (cv_pid q = 1; q <= roster->processes; q++)
            if (q != p && strcmp(r->scenario->config.names[p], r->scenario->config.names[q]) == 0)
                return fail(r, "the name '%s' is given twice", r->scenario->config.names[p]);
    return 0;
}

static int settle_names(struct reader *r) {
    struct sim_config *config = &r->scenario->config;
    char error[SIM_ERROR_MAX];
    r->line = r->setting_line ? r->setting_line : 1;
    if (!config->algorithm) return fail(r, "the scenario names no algorithm");
    if (config_check(config, error) != 0) return fail(r, "%s", error);
    struct roster roster = config_roster(config);
    if (!r->servers && !r->processes) return 0;
    char(*names)[ROSTER_NAME_MAX] = calloc((size_t)roster.processes + 1, sizeof *names);
    if (!names) return fail(r, "out of memory");
    for (cv_pid p = 1; p <= roster.processes; p++) roster_name(&roster, p, names[p]);
    free(config->names);
    config->names = names;
    r->line = r->servers_line;
    if (r->servers && (name_processes(r, r->servers, 1, roster.servers) != 0 ||
                       check_names(r, &roster, 1, roster.servers) != 0))
        return -1;
    r->line = r->processes_line;
    if (r->processes &&
        (name_processes(r, r->processes, roster.servers + 1, roster.processes) != 0 ||
         check_names(r, &roster, roster.servers + 1, roster.processes) != 0))
        return -1;
    config_settle(config);
    return 0;
}

/* ---- Second pass: actions and expectations ---- */

static int read_order(struct reader *r, struct expectation *e, char *list) {
    struct roster roster = config_roster(&r->scenario->config);
    e->type = EXPECT_ORDER;
    e->order = calloc(strlen(list) + 1, sizeof *e->order);
    if (!e->order) return fail(r, "out of memory");
    for (char *name; list && (name = strsep(&list, " \t"));) {
        if (!*name) continue;
        cv_pid p = roster_find(&roster, name);
        if (!p) return fail(r, "there is no process '%.40s'", name);
        e->order[e->order_count++] = p;
    }
    return 0;
}

static int read_leader(struct reader *r, struct expectation *e, const char *name) {
    struct roster roster = config_roster(&r->scenario->config);
    e->type = EXPECT_LEADER;
    e->leader = strcmp(name, "nobody") == 0 ? CV_NOBODY : roster_find(&roster, name);
    if (e->leader || strcmp(name, "nobody") == 0) return 0;
    return fail(r, "there is no process '%.40s'", name);
}

static int read_expectation(struct reader *r, struct expectation *e, char *text) {
    struct properties properties = sim_properties(r->scenario->config.algorithm);
    char *value = rest_of(text);
    if (strcmp(text, expectation_name[EXPECT_ORDER]) == 0) return read_order(r, e, value);
    bool election = r->scenario->config.algorithm->problem == CV_ELECTION;
    if (strcmp(text, expectation_name[EXPECT_LEADER]) == 0 && election)
        return read_leader(r, e, value);
    if (strcmp(text, "rounds") == 0 && !election)
        return fail(r, "rounds: only elections have rounds");
    if (strcmp(text, "committed") == 0 && !r->scenario->config.algorithm->log)
        return fail(r, "committed: %s has no log", r->scenario->config.algorithm->name);
    for (int i = EXPECT_ENTRIES; i <= EXPECT_COMMITTED; i++) {
        if (strcmp(text, expectation_name[i]) != 0) continue;
        e->type = (enum expectation_type)i;
        return parse_u64(value, &e->number) == 0
                   ? 0
                   : fail(r, "%s: '%.40s' is not a whole number", text, value);
    }
    for (int i = 0; i < properties.count; i++) {
        if (strcmp(text, properties.name[i]) != 0) continue;
        e->property = i;
        for (int v = UNKNOWN; v <= VIOLATED; v++)
            if (strcmp(value, verdict_word((enum verdict_value)v)) == 0)
                return e->value = (enum verdict_value)v, 0;
        return fail(r, "%s is held, violated or unknown, not '%.40s'", text, value);
    }
    return fail(
        r,
        "cannot expect '%.40s'; known: messages, a verdict; for locks order, entries, overlaps "
        "and refused; for elections leader and rounds; for a log committed",
        text);
}

static int read_body(struct reader *r, char *word, char *rest) {
    struct scenario *s = r->scenario;
    char error[SIM_ERROR_MAX];
    if (strcmp(word, "at") == 0)
        return action_parse(&s->config, rest, error) == 0 ? 0 : fail(r, "%s", error);
    if (strcmp(word, "expect") != 0) return 0;
    struct expectation *grown =
        realloc(s->expectations, (s->expectation_count + 1) * sizeof *grown);
    if (!grown) return fail(r, "out of memory");
    s->expectations = grown;
    struct expectation *e = &grown[s->expectation_count++];
    *e = (struct expectation){.line = r->line};
    return read_expectation(r, e, rest);
}

/* ---- Reading ---- */

/* Calls a function for each line of the text, which stays as it is. */
static int each_line(struct reader *r, const char *text,
                     int (*take)(struct reader *, char *, char *)) {
    char line[LINE_MAX_BYTES];
    r->line = 0;
    for (const char *end; *text; text = *end ? end + 1 : end) {
        end = text + strcspn(text, "\n");
        r->line++;
        size_t length = (size_t)(end - text);
        if (length >= sizeof line) return fail(r, "the line is too long");
        memcpy(line, text, length);
        line[length] = 0;
        line[strcspn(line, "#\r")] = 0;
        for (size_t at = strlen(line); at && isspace((unsigned char)line[at - 1]);) line[--at] = 0;
        char *word = line + strspn(line, " \t");
        if (*word && take(r, word, rest_of(word)) != 0) return -1;
    }
    return 0;
}

/* The whole file, which may be a pipe; NULL when it cannot be read. */
static char *slurp(const char *path) {
    FILE *file = fopen(path, "r");
    char *text = file ? calloc(1, FILE_MAX_BYTES + 1) : NULL;
    size_t length = text ? fread(text, 1, FILE_MAX_BYTES, file) : 0;
    if (text && (ferror(file) || strlen(text) != length || !feof(file))) {
        if (!ferror(file)) errno = EFBIG; /* or it contains NUL bytes */
        free(text);
        text = NULL;
    }
    int why = errno;
    if (file) fclose(file);
    errno = why;
    return text;
}

int scenario_read(struct scenario *scenario, const char *path, char error[SCENARIO_ERROR_MAX]) {
    struct reader r = {.scenario = scenario, .path = path, .error = error};
    *scenario = (struct scenario){0};
    char *text = slurp(path);
    if (!text) {
        snprintf(error, SCENARIO_ERROR_MAX, "%s: %s", path,
                 errno == EFBIG ? "not a scenario: too large, or not text" : strerror(errno));
        return -1;
    }
    int failed = each_line(&r, text, read_head);
    if (!failed) failed = settle_names(&r);
    if (!failed) failed = each_line(&r, text, read_body);
    free(text);
    free(r.servers);
    free(r.processes);
    if (failed) scenario_free(scenario);
    return failed;
}

void scenario_free(struct scenario *scenario) {
    for (size_t i = 0; i < scenario->expectation_count; i++) free(scenario->expectations[i].order);
    free(scenario->expectations);
    config_free(&scenario->config);
    *scenario = (struct scenario){0};
}

/* ---- Checking ---- */

static bool order_met(const struct expectation *e, const struct trace *trace) {
    size_t seen = 0;
    for (size_t i = 1; i < trace->count; i++) {
        if (trace->entry[i].type != TR_ENTER) continue;
        if (seen == e->order_count || e->order[seen] != trace->entry[i].process) return false;
        seen++;
    }
    return seen == e->order_count;
}

/* The longest prefix of a log that a process that is up knows to be committed. */
static uint64_t committed(const struct sim *sim) {
    uint64_t most = 0;
    struct cv_log log;
    for (cv_pid p = 1; sim->algorithm->log && p <= sim->roster.processes; p++) {
        if (sim->process[p].crashed) continue;
        sim->algorithm->log(sim_state(sim, p, ALGORITHM), &log);
        if (most < log.commit) most = log.commit;
    }
    return most;
}

size_t scenario_check(const struct scenario *scenario, const char *path, const struct sim *sim,
                      const struct trace *trace, FILE *out) {
    const uint64_t numbers[] = {
        [EXPECT_ENTRIES] = sim->result.entries,  [EXPECT_MESSAGES] = sim->result.messages,
        [EXPECT_OVERLAPS] = sim->judge.overlaps, [EXPECT_REFUSED] = sim->judge.writes_refused,
        [EXPECT_ROUNDS] = sim->result.rounds,    [EXPECT_COMMITTED] = committed(sim)};
    size_t unmet = 0;
    for (size_t i = 0; i < scenario->expectation_count; i++) {
        const struct expectation *e = &scenario->expectations[i];
        if (e->type == EXPECT_VERDICT) {
            const struct verdict *verdict = &sim_verdicts(sim)[e->property];
            if (verdict->value == e->value) continue;
            fprintf(out, _("%s:%d: %s: %s, not %s as expected\n"), path, e->line,
                    _(sim_properties(sim->algorithm).name[e->property]),
                    _(verdict_word(verdict->value)), _(verdict_word(e->value)));
        } else if (e->type == EXPECT_LEADER) {
            char is[ROSTER_NAME_MAX], wanted[ROSTER_NAME_MAX];
            cv_pid leader = election_judge_leader(&sim->election);
            if (leader == e->leader) continue;
            fprintf(out, _("%s:%d: %s leads, not %s as expected\n"), path, e->line,
                    _(roster_name(&sim->roster, leader, is)),
                    _(roster_name(&sim->roster, e->leader, wanted)));
        } else if (e->type == EXPECT_ORDER) {
            if (order_met(e, trace)) continue;
            fprintf(out, _("%s:%d: the processes entered in another order than expected\n"), path,
                    e->line);
        } else {
            if (numbers[e->type] == e->number) continue;
            fprintf(out, _("%s:%d: %llu %s, not %llu as expected\n"), path, e->line,
                    (unsigned long long)numbers[e->type], _(expectation_name[e->type]),
                    (unsigned long long)e->number);
        }
        unmet++;
    }
    return unmet;
}
