/* conclave check: every interleaving. */
#include <stdlib.h>
#include <unistd.h>

#include "base/parse.h"
#include "catalogue/catalogue.h"
#include "check/check.h"
#include "cli/check_report.h"
#include "cli/options.h"

enum {
    KEY_ENTRIES = KEY_OWN,
    KEY_CRASHES,
    KEY_AMNESIA,
    KEY_LOSS,
    KEY_FIFO,
    KEY_SUSPICIONS,
    KEY_TIMEOUTS,
    KEY_LATE,
    KEY_INITIATORS,
    KEY_DEPTH,
    KEY_DEPTH_FIRST,
    KEY_REDUCE,
    KEY_COMPACT,
    KEY_KEEP_GOING,
    KEY_PROPERTY,
    KEY_JOBS,
    KEY_MEMORY,
    KEY_TRACE,
    KEY_OUTPUT,
    KEY_SCENARIO,
};

enum { JOBS_MAX = 64 };
#define STATE_BYTES    24.0 /* about; see bench/check */
#define EXPLORED_PER_S 1e6

/* ---- Reading the command line ---- */

static void set_bound(const char *name, const char *text, uint64_t least, uint64_t most,
                      uint8_t *result) {
    uint64_t value;
    if (parse_u64(text, &value) != 0 || value < least || value > most)
        usage_error("%s: '%s' is not a whole number from %llu to %llu", name, text,
                    (unsigned long long)least, (unsigned long long)most);
    *result = (uint8_t)value;
}

static void set_count(const char *name, const char *text, uint64_t *result) {
    if (parse_u64(text, result) != 0 || *result == 0)
        usage_error("%s: '%s' is not a whole number above 0", name, text);
}

static void set_reduction(struct check_search *search, const char *text) {
    bool all = strcmp(text, "all") == 0;
    if (!all && strcmp(text, "symmetry") != 0 && strcmp(text, "order") != 0)
        usage_error("reduce: '%s' is not symmetry, order or all", text);
    search->symmetry |= all || *text == 's';
    search->order |= all || *text == 'o';
}

static void set_property(struct check_request *request, const char *name) {
    struct properties properties = sim_properties(request->config.algorithm->problem);
    for (int i = 0; i < properties.count; i++)
        if (strcmp(properties.name[i], name) == 0) {
            request->search.judged |= 1u << i;
            return;
        }
    char known[256] = "";
    for (int i = 0; i < properties.count; i++)
        if (strcmp(properties.name[i], "bounded_wait") != 0)
            snprintf(known + strlen(known), sizeof known - strlen(known), "%s%s", i ? ", " : "",
                     properties.name[i]);
    usage_error("property: '%s' is not one of %s", name, known);
}

static int parse(int key, char *text, struct argp_state *state) {
    struct check_request *request = state->input;
    struct check_model *model = &request->model;
    struct check_search *search = &request->search;
    uint64_t jobs;
    bool about_it = key >= KEY_SETTING && key < KEY_OWN;
    if ((about_it || key == KEY_PROPERTY) && !request->config.algorithm)
        usage_error("check: which algorithm? For instance: conclave check central; see conclave "
                    "list");
    if (option_parse(&request->config, key, text)) return 0;
    switch (key) {
    case 'j': request->json = true; break;
    case KEY_ENTRIES: set_bound("entries", text, 1, CHECK_ENTRIES_MAX, &model->entries); break;
    case KEY_CRASHES: set_bound("crashes", text, 0, CHECK_FAULTS_MAX, &model->crashes); break;
    case KEY_AMNESIA: model->amnesia = true; break;
    case KEY_LOSS: set_bound("loss", text, 0, CHECK_FAULTS_MAX, &model->losses); break;
    case KEY_FIFO: model->fifo = true; break;
    case KEY_SUSPICIONS:
        set_bound("suspicions", text, 0, CHECK_FAULTS_MAX, &model->suspicions);
        model->detector = true;
        break;
    case KEY_TIMEOUTS: set_bound("timeouts", text, 0, CHECK_TIMEOUTS_MAX, &model->timeouts); break;
    case KEY_LATE: set_bound("late", text, 0, CHECK_FAULTS_MAX, &model->late); break;
    case KEY_INITIATORS:
        set_bound("initiators", text, 1, CHECK_PROCESSES_MAX, &model->initiators);
        break;
    case KEY_DEPTH: set_count("depth", text, &search->depth); break;
    case KEY_DEPTH_FIRST: search->depth_first = true; break;
    case KEY_REDUCE: set_reduction(search, text); break;
    case KEY_COMPACT: search->compact = true; break;
    case KEY_KEEP_GOING: search->keep_going = true; break;
    case KEY_PROPERTY: set_property(request, text); break;
    case KEY_JOBS:
        set_count("jobs", text, &jobs);
        if (jobs > JOBS_MAX) usage_error("jobs: at most %d", JOBS_MAX);
        search->threads = (unsigned)jobs;
        break;
    case KEY_MEMORY:
        if (parse_bytes(text, &search->memory) != 0 || !search->memory)
            usage_error("memory: '%s' is not an amount such as 8G or 512M", text);
        break;
    case KEY_TRACE:
        request->traced = true;
        request->format = require_format(text);
        break;
    case KEY_OUTPUT: request->output = text; break;
    case KEY_SCENARIO: request->scenario = text; break;
    case ARGP_KEY_ARG:
        if (request->config.algorithm != require_algorithm(text))
            usage_error("one algorithm at a time: %s or %s", request->config.algorithm->name, text);
        break;
    default: return ARGP_ERR_UNKNOWN;
    }
    return 0;
}

static struct option_table make_options(const struct cv_algorithm *algorithm) {
    enum { BOUNDS = 1, NETWORK, OF_ALGORITHM, SEARCH, SHOW };
    static const char *const settings[] = {"topology", "edges", "graph", "ids", "attribute"};
    static const struct argp_option bounds[] = {
        {"entries", KEY_ENTRIES, "K", 0, "how often each process may enter (1)", BOUNDS},
        {"crashes", KEY_CRASHES, "K", 0, "crashes in all; who crashed may come back", BOUNDS},
        {"amnesia", KEY_AMNESIA, 0, 0, "they come back having forgotten everything", BOUNDS},
        {"loss", KEY_LOSS, "K", 0, "messages that are lost, in all", BOUNDS},
        {"suspicions", KEY_SUSPICIONS, "K", 0,
         "with a failure detector, which tells of every crash and is wrong K times", BOUNDS},
        {"timeouts", KEY_TIMEOUTS, "K", 0, "how often timers fire, in all (as often as they may)",
         BOUNDS},
        {"late", KEY_LATE, "K", 0,
         "timers that fire although a message, or a holder, would have come first", BOUNDS},
        {"initiators", KEY_INITIATORS, "K", 0, "how many processes start the election (all)",
         BOUNDS},
        {"depth", KEY_DEPTH, "D", 0, "nothing beyond this many steps", BOUNDS},
        {"fifo", KEY_FIFO, 0, 0,
         "channels keep their order, and break with a crash (else any message may overtake any)",
         BOUNDS},
    };
    static const struct argp_option own[] = {
        {0, 0, 0, 0, "How to search:", SEARCH},
        {"depth-first", KEY_DEPTH_FIRST, 0, 0, "not breadth first: on one core", SEARCH},
        {"reduce", KEY_REDUCE, "WHAT", 0,
         "symmetry (who is who makes no difference), order (when steps happen that nobody "
         "notices), or all",
         SEARCH},
        {"compact", KEY_COMPACT, 0, 0,
         "keep 4 bytes of each state, and say how likely it is that one was overlooked; depth "
         "first",
         SEARCH},
        {"keep-going", KEY_KEEP_GOING, 0, 0, "after the first violation", SEARCH},
        {"property", KEY_PROPERTY, "NAME", 0, "decide this one; may be given several times",
         SEARCH},
        {"jobs", KEY_JOBS, "J", 0, "how many threads (all cores)", SEARCH},
        {"memory", KEY_MEMORY, "SIZE", 0, "stop there, e.g. 8G (half of the machine's)", SEARCH},
        {0, 0, 0, 0, "What to show:", SHOW},
        {"trace", KEY_TRACE, "FORMAT", 0, "the counterexample as text, mermaid, json or svg", SHOW},
        {"output", KEY_OUTPUT, "FILE", 0, "where the trace goes (standard output)", SHOW},
        {"scenario", KEY_SCENARIO, "FILE", 0, "save the counterexample for conclave sim --scenario",
         SHOW},
        {"json", 'j', 0, 0, "report in JSON", SHOW},
    };
    struct option_table table;
    option_table_open(&table, sizeof bounds / sizeof bounds[0] + sizeof own / sizeof own[0] + 2);
    option_add(&table, (struct argp_option){.doc = "What may happen:", .group = BOUNDS}, NULL);
    const struct setting *processes = setting_find("processes");
    option_add(&table,
               (struct argp_option){processes->name, KEY_SETTING + (int)(processes - sim_settings),
                                    processes->value, 0, processes->help, BOUNDS},
               "3");
    for (size_t i = 0; i < sizeof bounds / sizeof bounds[0]; i++)
        option_add(&table, bounds[i], NULL);
    option_add_setting(&table, setting_find("fencing"), BOUNDS, algorithm);
    option_add(&table, (struct argp_option){.doc = "Elections:", .group = NETWORK}, NULL);
    for (size_t i = 0; i < sizeof settings / sizeof settings[0]; i++)
        option_add_setting(&table, setting_find(settings[i]), NETWORK, algorithm);
    if (algorithm) option_add_algorithm(&table, algorithm, OF_ALGORITHM);
    for (size_t i = 0; i < sizeof own / sizeof own[0]; i++) option_add(&table, own[i], NULL);
    return table;
}

/* ---- The model ---- */

static void refuse_nonsense(const struct check_request *request) {
    const struct check_model *model = &request->model;
    bool lock = model->algorithm->problem == CV_MUTEX;
    if (!lock && model->entries)
        usage_error("entries: not for %s, which is an election", model->algorithm->name);
    if (lock && model->initiators)
        usage_error("initiators: not for %s, which is a lock", model->algorithm->name);
    if (lock && model->detector && !(model->algorithm->traits & CV_USES_DETECTOR))
        usage_error("suspicions: %s does not listen to a failure detector", model->algorithm->name);
    if (model->amnesia && !model->crashes) usage_error("amnesia: goes with --crashes");
    if (request->output && !request->traced) usage_error("output: goes with --trace");
    if (request->json && request->traced && (!request->output || strcmp(request->output, "-") == 0))
        usage_error("trace: both it and --json want standard output; give --output FILE");
}

/* Half of the machine. */
static uint64_t usual_memory(void) {
    long pages = sysconf(_SC_PHYS_PAGES), size = sysconf(_SC_PAGESIZE);
    return pages > 0 && size > 0 ? (uint64_t)pages * (uint64_t)size / 2 : (uint64_t)1 << 32;
}

static void build_model(struct check_request *request, struct arena *arena) {
    struct check_model *model = &request->model;
    struct sim_config *config = &request->config;
    struct roster roster = config_roster(config);
    struct topology topology = {0};
    char error[SIM_ERROR_MAX];
    if (config_check(config, error) != 0) usage_error("%s", error);
    model->algorithm = config->algorithm;
    if (roster.processes > CHECK_PROCESSES_MAX)
        usage_error("processes: at most %d can be checked, with those that serve",
                    CHECK_PROCESSES_MAX);
    refuse_nonsense(request);
    model->processes = roster.processes;
    model->servers = roster.servers;
    model->fencing = config->fencing;
    if (!model->entries) model->entries = 1;
    if (!model->initiators || model->initiators > model->processes)
        model->initiators = (uint8_t)model->processes;
    bool election = model->algorithm->problem == CV_ELECTION;
    if (election && topology_build(&topology, config, arena, error) != 0) usage_error("%s", error);
    struct cv_env *env = arena_take(arena, (model->processes + 1) * sizeof *env);
    for (cv_pid p = 1; p <= model->processes; p++) {
        env[p] = (struct cv_env){.self = p,
                                 .processes = model->processes,
                                 .servers = model->servers,
                                 .option = config->option,
                                 .ids = topology.ids,
                                 .weights = topology.weights};
        if (election) topology_env(&topology, p, &env[p]);
    }
    model->env = env;
    if (!request->search.memory) request->search.memory = usual_memory();
    const char *why = check_refuse(model, &request->search);
    if (why) usage_error("%s: %s", model->algorithm->name, why);
}

/* ---- Checking ---- */

static void warn(const struct check_request *request) {
    double states = check_estimate(&request->model, &request->search);
    char needed[32], limit[32], time[32];
    format_duration(time, sizeof time, states / EXPLORED_PER_S * 1e6);
    format_bytes(needed, sizeof needed, states * STATE_BYTES);
    format_bytes(limit, sizeof limit, (double)request->search.memory);
    if (!request->search.compact && states * STATE_BYTES > (double)request->search.memory)
        fprintf(stderr,
                "conclave: warning: at least about %.2g states are to be expected, which take %s; "
                "the limit is %s.  Fewer processes or entries, --reduce or --compact may help.\n",
                states, needed, limit);
    else if (states / EXPLORED_PER_S > 600)
        fprintf(stderr,
                "conclave: warning: at least about %.2g states are to be expected, which may take "
                "%s\n",
                states, time);
}

static void show_progress(void *context, const struct check_progress *p) {
    char memory[32];
    (void)context;
    fprintf(stderr, "\r%.3g million states (%.2g million/s), depth %llu, frontier %llu, %s \033[K",
            (double)p->states / 1e6, p->seconds > 0 ? (double)p->states / p->seconds / 1e6 : 0,
            (unsigned long long)p->depth, (unsigned long long)p->frontier,
            format_bytes(memory, sizeof memory, (double)p->memory));
    fflush(stderr);
}

static int run(struct check_request *request) {
    struct check_result result;
    bool watched = isatty(STDERR_FILENO);
    warn(request);
    if (watched) request->search.progress = show_progress;
    if (check_run(&request->model, &request->search, &result) != 0)
        system_error("out of address space");
    if (watched) fputs("\r\033[K", stderr);
    int status = check_report(request, &result);
    check_free(&result);
    return status;
}

int cmd_check(int argc, char **argv) {
    struct check_request request = {.model = {.timeouts = CHECK_FOREVER}};
    struct arena arena;
    for (int i = 1; i < argc && !request.config.algorithm; i++)
        if (catalogue_find(argv[i])) config_init(&request.config, catalogue_find(argv[i]));
    if (!request.config.algorithm && argc > 1 && argv[1][0] != '-')
        require_algorithm(argv[1]); /* which says what is near */
    request.config.processes = 3;
    struct option_table table = make_options(request.config.algorithm);
    const struct argp argp = {
        table.options,
        parse,
        "ALGORITHM",
        "Explore every order in which messages, timers, calls, crashes, losses and wrong "
        "suspicions can come, and decide what the algorithm promises.  What is violated is shown "
        "by a shortest counterexample.  Time is only an order here: a timer fires when nothing "
        "else is under way, unless --late lets it come early.\v"
        "Exit status: 0 when all holds within the bounds, 1 when something is violated, 4 when "
        "the memory limit came first.\n\n"
        "Examples:\n"
        "  conclave check ricart-agrawala --processes 3 --entries 2\n"
        "  conclave check quorum --processes 2 --crashes 1 --amnesia --timeouts 1\n"
        "  conclave check central-lease --processes 2 --late 1 --scenario late.scenario\n"
        "  conclave check majority-terms --initiators 1 --timeouts 2 --crashes 1 --reduce order\n"
        "  conclave check yo-yo --edges 1-2,2-3,3-1 --reduce order\n",
        0,
        0,
        0};
    argp_parse(&argp, argc, argv, 0, 0, &request);
    if (!request.config.algorithm)
        usage_error("check: which algorithm? For instance: conclave check central; see conclave "
                    "list");
    if (arena_open(&arena, (size_t)1 << 30) != 0) system_error("out of address space");
    build_model(&request, &arena);
    int status = run(&request);
    arena_close(&arena);
    config_free(&request.config);
    option_table_close(&table);
    return status;
}
