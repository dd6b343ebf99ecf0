#include "lab/sim/config.h"

#include <stdio.h>
#include <stdlib.h>

#include "algorithms/detectors.h"
#include "base/parse.h"
#include "lab/sim/topology.h"

#define AT(MEMBER) offsetof(struct sim_config, MEMBER)
enum { LOCKS = CV_MUTEX, ELECTIONS = CV_ELECTION, BOTH = CV_MUTEX | CV_ELECTION };
const struct setting sim_settings[] = {
    {"processes", "N", "number of processes that compete", SET_COUNT, FOR_RUN, BOTH, AT(processes),
     1, SIM_PROCESSES_MAX},
    {"first", "0|1", "number of the first process in names and ids: p1, or p0", SET_COUNT, FOR_RUN,
     BOTH, AT(first), 0, 1},
    {"seed", "S", "seed of the random numbers", SET_COUNT, FOR_RUN, BOTH, AT(seed), 0, INT64_MAX},
    {"entries", "K", "end after this many entries in total", SET_COUNT, FOR_RUN, LOCKS, AT(entries),
     0, UINT64_MAX},
    {"time-limit", "TIME",
     "end at this virtual time (60s where faults or suspicions never let an election end)",
     SET_DURATION, FOR_RUN, BOTH, AT(time_limit), 0, 0},
    {"event-limit", "K", "end after this many events", SET_COUNT, FOR_RUN, BOTH, AT(event_limit), 1,
     UINT64_MAX},
    {"scripted", NULL, "timers fire and applications ask only when the schedule says so", SET_FLAG,
     FOR_RUN, BOTH, AT(scripted), 0, 0},
    {"settle", "TIME", "end when all have followed one leader for this long", SET_DURATION, FOR_RUN,
     ELECTIONS, AT(settle), 0, 0},

    {"think", "TIME", "time from leaving to the next request (closed loop)", SET_SPREAD, FOR_LOAD,
     LOCKS, AT(think), 0, 0},
    {"hold", "TIME", "how long a process stays inside", SET_SPREAD, FOR_LOAD, LOCKS, AT(hold), 0,
     0},
    {"arrivals", "RATE", "requests per process at this rate (0.5/s), not in a closed loop",
     SET_RATE, FOR_LOAD, LOCKS, AT(arrivals), 0, 0},
    {"initiators", "K", "number of processes, drawn at random, that start the election; 0: all",
     SET_COUNT, FOR_LOAD, ELECTIONS, AT(initiators), 0, SIM_PROCESSES_MAX},
    {"start", "TIME", "when each initiator starts", SET_SPREAD, FOR_LOAD, ELECTIONS, AT(start), 0,
     0},
    {"ids", "HOW", "ascending, descending, random, or a list: 3,1,2", SET_TEXT, FOR_LOAD, ELECTIONS,
     AT(ids), 0, 0},
    {"attribute", "NAME=V,...", "what candidates are compared by before their ids; 0 cannot lead",
     SET_TEXT, FOR_LOAD, ELECTIONS, AT(attribute), 0, 0},

    {"delay", "TIME", "delay of a message: " DISTRIBUTION_SYNTAX, SET_SPREAD, FOR_NETWORK, BOTH,
     AT(delay), 0, 0},
    {"reorder", NULL, "messages on one channel may overtake each other", SET_FLAG, FOR_NETWORK,
     BOTH, AT(reorder), 0, 0},
    {"loss", "P", "probability that a message is lost", SET_PROBABILITY, FOR_NETWORK, BOTH,
     AT(loss), 0, 0},
    {"duplicate", "P", "probability that a message arrives twice", SET_PROBABILITY, FOR_NETWORK,
     BOTH, AT(duplicate), 0, 0},
    {"service-time", "TIME",
     "what a process needs for each message that it receives, while others wait; the report has "
     "the load",
     SET_DURATION, FOR_NETWORK, BOTH, AT(service_time), 0, 0},
    {"topology", "SHAPE", "complete, ring, line, star, grid or random:P", SET_TEXT, FOR_NETWORK,
     ELECTIONS, AT(topology), 0, 0},
    {"edges", "A-B,...", "the network, edge by edge", SET_EDGES, FOR_NETWORK, ELECTIONS,
     AT(network), 0, 0},
    {"graph", "FILE", "the network from a file: two names a line, or Graphviz", SET_GRAPH,
     FOR_NETWORK, ELECTIONS, AT(network), 0, 0},

    {"crash-rate", "RATE", "crashes per process (1/min)", SET_RATE, FOR_FAULTS, BOTH,
     AT(crash_rate), 0, 0},
    {"recover", NULL, "crashed processes recover after --recover-after", SET_FLAG, FOR_FAULTS, BOTH,
     AT(recover), 0, 0},
    {"recover-after", "TIME", "how long a crashed process stays down", SET_SPREAD, FOR_FAULTS, BOTH,
     AT(recover_after), 0, 0},
    {"amnesia", NULL, "crashed processes recover without their durable state", SET_FLAG, FOR_FAULTS,
     BOTH, AT(amnesia), 0, 0},
    {"pause-rate", "RATE", "pauses per process: it stops, then resumes", SET_RATE, FOR_FAULTS, BOTH,
     AT(pause_rate), 0, 0},
    {"pause-for", "TIME", "how long a pause lasts", SET_SPREAD, FOR_FAULTS, BOTH, AT(pause_for), 0,
     0},
    {"partition-rate", "RATE", "partitions of the network into two sides", SET_RATE, FOR_FAULTS,
     BOTH, AT(partition_rate), 0, 0},
    {"partition-for", "TIME", "how long a partition lasts", SET_SPREAD, FOR_FAULTS, BOTH,
     AT(partition_for), 0, 0},
    {"drift", "P", "clocks run faster or slower by up to this fraction", SET_PROBABILITY,
     FOR_FAULTS, BOTH, AT(drift), 0, 0},
    {"detector", "KIND",
     "how processes learn of failures: from an oracle after a time (20ms), or from "
     "heartbeats by fixed:50ms, adaptive:4 or phi:8",
     SET_DETECTOR, FOR_FAULTS, BOTH, AT(detector), 0, 0},
    {"heartbeat", "TIME", "interval of the heartbeats of a detector", SET_DURATION, FOR_FAULTS,
     BOTH, AT(detector.option[DETECTOR_INTERVAL]), 0, 0},

    {"fencing", NULL, "the resource refuses fencing tokens older than one it has seen", SET_FLAG,
     FOR_JUDGE, LOCKS, AT(fencing), 0, 0},
    {"wait-bound", "K", "at most K entries of others during one wait", SET_COUNT, FOR_JUDGE, LOCKS,
     AT(wait_bound), 1, UINT64_MAX},
    {"starved-after", "K", "this many entries of others during one wait are starvation", SET_COUNT,
     FOR_JUDGE, LOCKS, AT(starved_after), 1, UINT64_MAX},
    {"patience", "TIME",
     "end when there was no progress for this long although a process waits (1min, and more for "
     "long delays or faults)",
     SET_DURATION, FOR_JUDGE, BOTH, AT(progress_timeout), 0, 0},
};
const char *const setting_group_name[SETTING_GROUPS] = {
    [FOR_RUN] = "The run:",   [FOR_LOAD] = "The load:",   [FOR_NETWORK] = "The network:",
    [FOR_FAULTS] = "Faults:", [FOR_JUDGE] = "The judge:",
};
const size_t sim_setting_count = sizeof sim_settings / sizeof sim_settings[0];

void config_init(struct sim_config *config, const struct cv_algorithm *algorithm) {
    *config = (struct sim_config){
        .algorithm = algorithm,
        .processes = 5,
        .first = 1,
        .entries = 100,
        .seed = 1,
        .delay = {CONSTANT, 1000, 0},
        .think = {EXPONENTIAL, 10000, 0},
        .hold = {CONSTANT, 1000, 0},
        .partition_for = {EXPONENTIAL, 1000000, 0},
        .recover_after = {EXPONENTIAL, 100000, 0},
        .pause_for = {EXPONENTIAL, 100000, 0},
        .event_limit = UINT64_MAX,
        .settle = 1000000,
        .detector = {.option = {[DETECTOR_INTERVAL] = 10000}},
    };
    for (unsigned i = 0; i < algorithm->option_count; i++)
        config->option[i] = algorithm->options[i].default_value;
}

void config_free(struct sim_config *config) {
    for (size_t i = 0; i < config->action_count; i++) {
        free(config->actions[i].side);
        free(config->actions[i].text);
    }
    free(config->actions);
    free(config->names);
    free(config->topology);
    free(config->ids);
    free(config->attribute);
    graph_free(&config->network);
    config->actions = NULL, config->names = NULL, config->action_count = 0;
    config->topology = config->ids = config->attribute = NULL;
}

const struct setting *setting_find(const char *name) {
    for (size_t i = 0; i < sim_setting_count; i++)
        if (strcmp(sim_settings[i].name, name) == 0) return &sim_settings[i];
    return NULL;
}

static const char *const wanted[] = {
    [SET_COUNT] = "a whole number",
    [SET_DURATION] = DURATION_SYNTAX,
    [SET_PROBABILITY] = "a number from 0 to 1",
    [SET_RATE] = "a rate such as 0.5/s or 3/min",
    [SET_SPREAD] = DISTRIBUTION_SYNTAX,
    [SET_TEXT] = "something to remember",
    [SET_DETECTOR] = "a time such as 20ms, fixed:TIME, adaptive:K or phi:X",
};

static int text_apply(char **at, const char *text) {
    free(*at);
    *at = strdup(text);
    return *at ? 0 : -1;
}

static int detector_apply(struct sim_detector *detector, const char *text) {
    struct sim_detector asked = {0};
    if (strlen(text) >= sizeof asked.text) return -1;
    strcpy(asked.text, text);
    asked.code = detector_parse(text, &asked.option[DETECTOR_LIMIT]);
    if (!asked.code && (parse_duration(text, &asked.oracle_us) != 0 || asked.oracle_us == 0))
        return -1;
    asked.option[DETECTOR_INTERVAL] = detector->option[DETECTOR_INTERVAL];
    *detector = asked;
    return 0;
}

/* The network determines the number and the names of the processes. */
static int network_apply(struct sim_config *config, const struct setting *setting, const char *text,
                         char error[SIM_ERROR_MAX]) {
    char why[GRAPH_ERROR_MAX];
    uint64_t id;
    graph_free(&config->network);
    int failed = setting->kind == SET_GRAPH ? graph_read(&config->network, text, why)
                                            : graph_parse(&config->network, text, why);
    if (failed) {
        snprintf(error, SIM_ERROR_MAX, "%s: %s", setting->name, why);
        return -1;
    }
    if (config->processes_given && config->processes != config->network.vertices) {
        snprintf(error, SIM_ERROR_MAX, "%s: has %u processes, not %llu", setting->name,
                 config->network.vertices, (unsigned long long)config->processes);
        return -1;
    }
    size_t size = (config->network.vertices + 1) * sizeof *config->names;
    free(config->names);
    config->names = malloc(size);
    if (!config->names) return snprintf(error, SIM_ERROR_MAX, "out of memory"), -1;
    memcpy(config->names, config->network.names, size);
    config->processes = config->network.vertices;
    config->network_names_ids = true;
    for (uint32_t p = 1; p <= config->network.vertices; p++)
        if (parse_u64(config->names[p], &id) != 0) config->network_names_ids = false;
    config_settle(config);
    return 0;
}

int setting_apply(struct sim_config *config, const struct setting *setting, const char *text,
                  char error[SIM_ERROR_MAX]) {
    void *at = (char *)config + setting->offset;
    int failed = -1;
    if (!(setting->problems & config->algorithm->problem)) {
        snprintf(error, SIM_ERROR_MAX, "%s: not for %s, which is %s", setting->name,
                 config->algorithm->name,
                 config->algorithm->problem == CV_MUTEX ? "a lock" : "an election");
        return -1;
    }
    if (at == &config->processes) config->processes_given = true;
    switch (setting->kind) {
    case SET_COUNT:
        return count_parse(setting->name, text, setting->min, setting->max, at, error,
                           SIM_ERROR_MAX);
    case SET_DURATION: failed = parse_duration(text, at); break;
    case SET_PROBABILITY: failed = parse_probability(text, at); break;
    case SET_RATE: failed = parse_rate(text, at); break;
    case SET_SPREAD: failed = distribution_parse(text, at); break;
    case SET_FLAG: *(bool *)at = true; return 0;
    case SET_TEXT: failed = text_apply(at, text); break;
    case SET_DETECTOR: failed = detector_apply(at, text); break;
    case SET_EDGES:
    case SET_GRAPH: return network_apply(config, setting, text, error);
    }
    if (failed)
        snprintf(error, SIM_ERROR_MAX, "%s: '%.40s' is not %s", setting->name, text,
                 wanted[setting->kind]);
    return failed;
}

int option_apply(struct sim_config *config, const struct cv_option *option, const char *text,
                 char error[SIM_ERROR_MAX]) {
    uint64_t *at = &config->option[option - config->algorithm->options];
    return option_value(option, text, at, error, SIM_ERROR_MAX);
}

/* Edges introduce the processes in their order; a process that they would introduce too late, or
 * not at all, is named by itself. */
static void network_format(const struct graph *graph, char *buffer, size_t size) {
    size_t used = 0;
    uint32_t seen = 0;
    *buffer = 0;
    for (size_t i = 0; i <= graph->edge_count && used < size; i++) {
        bool edge = i < graph->edge_count;
        uint32_t a = edge ? graph->edges[i][0] : 0, b = edge ? graph->edges[i][1] : 0;
        uint32_t before = !edge ? graph->vertices : a == seen + 1 && b == a + 1 ? seen : b - 1;
        while (seen < before && used < size)
            used += (size_t)snprintf(buffer + used, size - used, "%s%s", used ? "," : "",
                                     graph->names[++seen]);
        if (edge && used < size)
            used += (size_t)snprintf(buffer + used, size - used, "%s%s-%s", used ? "," : "",
                                     graph->names[a], graph->names[b]);
        if (seen < b) seen = b;
    }
}

char *setting_format(const struct sim_config *config, const struct setting *setting, char *buffer,
                     size_t size) {
    const void *at = (const char *)config + setting->offset;
    switch (setting->kind) {
    case SET_COUNT:
        snprintf(buffer, size, "%llu", (unsigned long long)*(const uint64_t *)at);
        break;
    case SET_DURATION: format_us(buffer, size, *(const uint64_t *)at); break;
    case SET_PROBABILITY: format_real(buffer, size, *(const double *)at); break;
    case SET_RATE:
        format_real(buffer, size - 2, *(const double *)at);
        strcat(buffer, "/s");
        break;
    case SET_SPREAD: distribution_format(buffer, size, at); break;
    case SET_FLAG: snprintf(buffer, size, "%s", *(const bool *)at ? "yes" : ""); break;
    case SET_TEXT: {
        const char *typed = *(char *const *)at;
        snprintf(buffer, size, "%s", typed ? typed : "");
        break;
    }
    case SET_DETECTOR: snprintf(buffer, size, "%s", ((const struct sim_detector *)at)->text); break;
    case SET_EDGES: network_format(&config->network, buffer, size); break;
    case SET_GRAPH: snprintf(buffer, size, "%s", ""); break; /* its edges are formatted instead */
    }
    return buffer;
}

char *option_format(const struct sim_config *config, const struct cv_option *option, char *buffer,
                    size_t size) {
    uint64_t value = config->option[option - config->algorithm->options];
    if (option->type == CV_FLAG || value == CV_UNSET)
        snprintf(buffer, size, "%s", option->type == CV_FLAG && value ? "yes" : "");
    else if (option->type == CV_DURATION)
        format_us(buffer, size, value);
    else
        snprintf(buffer, size, "%llu", (unsigned long long)value);
    return buffer;
}

void config_words(const struct sim_config *config,
                  void (*take)(void *context, const struct config_word *word), void *context) {
    enum { VALUE_MAX_BYTES = 1 << 16 };
    struct sim_config defaults;
    char *mine = malloc(VALUE_MAX_BYTES), other[64];
    if (!mine) return;
    config_init(&defaults, config->algorithm);
    for (size_t i = 0; i < sim_setting_count; i++) {
        const struct setting *s = &sim_settings[i];
        if (!(s->problems & config->algorithm->problem)) continue;
        if (config->network.vertices && s->offset == AT(processes)) continue;
        setting_format(config, s, mine, VALUE_MAX_BYTES);
        bool same = strcmp(mine, setting_format(&defaults, s, other, sizeof other)) == 0;
        take(context, &(struct config_word){s->name, mine, s->kind == SET_FLAG, same});
    }
    for (unsigned i = 0; i < config->algorithm->option_count; i++) {
        const struct cv_option *o = &config->algorithm->options[i];
        option_format(config, o, mine, VALUE_MAX_BYTES);
        bool same = strcmp(mine, option_format(&defaults, o, other, sizeof other)) == 0;
        take(context, &(struct config_word){o->name, mine, o->type == CV_FLAG, same});
    }
    free(mine);
}

static void write_word(void *out, const struct config_word *word) {
    bool plain = word->value[strcspn(word->value, " \t'\"$&;|<>()*?#~\\")] == 0;
    if (word->is_default && strcmp(word->name, "seed") != 0) return;
    if (word->flag)
        fprintf(out, " --%s", word->name);
    else
        fprintf(out, plain ? " --%s %s" : " --%s '%s'", word->name, word->value);
}

void config_command(const struct sim_config *config, FILE *out) {
    fprintf(out, "%s", config->algorithm->name);
    config_words(config, write_word, out);
    for (size_t i = 0; i < config->action_count; i++)
        write_word(out, &(struct config_word){.name = "at", .value = config->actions[i].text});
}

/* Whether an id is written as 0. */
static bool ids_from_zero(const struct sim_config *config) {
    const char *ids = config->ids;
    bool named = ids ? strcmp(ids, "names") == 0 : config->network_names_ids;
    uint64_t names = config->processes; /* a number that comes later is refused, but not yet */
    if (config->settled_processes && config->settled_processes < names)
        names = config->settled_processes;
    for (uint32_t p = 1; named && config->names && p <= names; p++)
        if (strspn(config->names[p], "0") == strlen(config->names[p])) return true;
    if (named) return false;
    if (!ids || !strchr("0123456789", *ids)) return config->first == 0;
    for (size_t length; *ids; ids += length + (ids[length] == ',')) {
        length = strcspn(ids, ",");
        if (length && strspn(ids, "0") == length) return true;
    }
    return false;
}

struct roster config_roster(const struct sim_config *config) {
    const struct cv_algorithm *algorithm = config->algorithm;
    uint32_t servers = algorithm->servers ? algorithm->servers(config->option) : 0;
    return (struct roster){.processes = (uint32_t)config->processes + servers,
                           .servers = servers,
                           .server_name = algorithm->server_name,
                           .names = config->names,
                           .names_from_zero = config->first == 0,
                           .ids_from_zero = ids_from_zero(config)};
}

void config_settle(struct sim_config *config) {
    struct roster roster = config_roster(config);
    config->settled_processes = roster.processes;
    config->settled_servers = roster.servers;
    config->settled_first = config->first;
}

bool config_keeps_failing(const struct sim_config *config) {
    return config->crash_rate > 0 || config->pause_rate > 0 || config->partition_rate > 0;
}

bool config_schedules(const struct sim_config *config, enum sim_action_type type) {
    for (size_t i = 0; i < config->action_count; i++)
        if (config->actions[i].type == type) return true;
    return false;
}

static int refuse(char error[SIM_ERROR_MAX], const char *why) {
    snprintf(error, SIM_ERROR_MAX, "%s", why);
    return -1;
}

/* Builds the network once, to find out whether that is possible. */
static int network_check(const struct sim_config *config, char error[SIM_ERROR_MAX]) {
    struct topology topology;
    struct arena arena;
    if (arena_open(&arena, (uint64_t)64 << 30) != 0) return refuse(error, "out of address space");
    int failed = topology_build(&topology, config, &arena, error);
    arena_close(&arena);
    return failed;
}

int config_check(const struct sim_config *config, char error[SIM_ERROR_MAX]) {
    const struct cv_algorithm *algorithm = config->algorithm;
    struct roster roster = config_roster(config);
    struct cv_env env = {.self = 1,
                         .processes = roster.processes,
                         .servers = roster.servers,
                         .option = config->option};
    for (unsigned i = 0; i < algorithm->option_count; i++)
        if (setting_find(algorithm->options[i].name))
            return refuse(error, "an option of the algorithm has the name of a setting");
    if (roster.servers > SIM_PROCESSES_MAX)
        return refuse(error, "the algorithm wants more servers than there can be processes");
    const char *why = algorithm->refuse ? algorithm->refuse(&env) : NULL;
    if (why) {
        const char *before = " (";
        int used = snprintf(error, SIM_ERROR_MAX, "%s: %s", algorithm->name, why);
        for (unsigned i = 0; i < algorithm->option_count && used < SIM_ERROR_MAX; i++) {
            char value[64];
            if (algorithm->options[i].type != CV_NUMBER) continue;
            option_format(config, &algorithm->options[i], value, sizeof value);
            used += snprintf(error + used, (size_t)(SIM_ERROR_MAX - used), "%s%s = %s", before,
                             algorithm->options[i].name, *value ? value : "unset");
            before = ", ";
        }
        if (*before == ',' && used < SIM_ERROR_MAX)
            snprintf(error + used, (size_t)(SIM_ERROR_MAX - used), ")");
        return -1;
    }
    if (config->settled_processes && (config->settled_processes != roster.processes ||
                                      config->settled_servers != roster.servers)) {
        snprintf(
            error, SIM_ERROR_MAX,
            "processes: names and actions were given for %u with %u servers, not for %u with %u",
            config->settled_processes, config->settled_servers, roster.processes, roster.servers);
        return -1;
    }
    if (config->settled_processes && config->settled_first != config->first)
        return refuse(error, "first: must come before the actions that name processes");
    if (config->initiators > config->processes)
        return refuse(error, "initiators: there are not as many processes");
    if (config->topology && config->network.vertices)
        return refuse(error, "topology: the network is already given by its edges");
    if (config->fencing && !(algorithm->traits & CV_FENCED))
        return refuse(error, "fencing: this algorithm has no fencing tokens");
    if (*config->detector.text && !(algorithm->traits & CV_USES_DETECTOR) &&
        algorithm->problem != CV_ELECTION)
        return refuse(error, "detector: this algorithm does not use a failure detector");
    if (config->amnesia && !config->recover)
        return refuse(error, "amnesia: is for processes that come back; it needs --recover, or in "
                             "a schedule 'p1 recover amnesia'");
    if (config->recover && config->crash_rate == 0)
        return refuse(error, "recover: nothing crashes without --crash-rate");
    if (config->detector.option[DETECTOR_INTERVAL] < 4)
        return refuse(error, "heartbeat: must be at least 4us");
    if (config->detector.code && config->processes > 1000)
        return refuse(error, "detector: heartbeats of more than 1000 processes are too many");
    if (config->scripted && config->detector.code)
        return refuse(error, "scripted: heartbeats need timers that fire by themselves");
    if (config->drift >= 1) return refuse(error, "drift: must be below 1");
    return algorithm->problem == CV_ELECTION ? network_check(config, error) : 0;
}
