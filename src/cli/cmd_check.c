/* conclave check: every interleaving. */
#include <stdlib.h>
#include <unistd.h>

#include "base/parse.h"
#include "cli/check_walk.h"
#include "cli/options.h"
#include "lab/check/check.h"
#include "language/language.h"

enum {
    KEY_ENTRIES = KEY_OWN,
    KEY_CRASHES,
    KEY_AMNESIA,
    KEY_RECOVER,
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
    KEY_SAVE_SCENARIO,
    KEY_FORCE,
    KEY_COORDINATOR,
    KEY_WALK,
};

enum { JOBS_MAX = 64 };
#define STATE_BYTES    24.0 /* about; see bench/check */
#define EXPLORED_PER_S 1e6

/* ---- Reading the command line ---- */

static void set_bound(const char *name, const char *text, uint64_t min, uint64_t max,
                      uint8_t *result) {
    uint64_t value;
    if (parse_u64(text, &value) != 0 || value < min || value > max)
        usage_error("%s: '%s' is not a whole number from %llu to %llu", name, text,
                    (unsigned long long)min, (unsigned long long)max);
    *result = (uint8_t)value;
}

static void set_reduction(struct check_search *search, const char *text) {
    bool all = strcmp(text, "all") == 0;
    if (!all && strcmp(text, "symmetry") != 0 && strcmp(text, "order") != 0)
        usage_error("reduce: '%s' is not symmetry, order or all", text);
    search->symmetry |= all || *text == 's';
    search->order |= all || *text == 'o';
}

static void set_property(struct check_request *request, const char *name) {
    struct properties properties = sim_properties(request->config.algorithm);
    for (int i = 0; i < properties.count; i++)
        if (strcmp(properties.name[i], name) == 0) {
            request->search.judged |= 1u << i;
            return;
        }
    char known[256] = "";
    for (int i = 0; i < properties.count; i++)
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
    case KEY_LANG: return language_option(text);
    case KEY_ENTRIES: set_bound("entries", text, 1, CHECK_ENTRIES_MAX, &model->entries); break;
    case KEY_CRASHES: set_bound("crashes", text, 0, CHECK_FAULTS_MAX, &model->crashes); break;
    case KEY_AMNESIA: model->amnesia = true; break;
    case KEY_RECOVER: model->recovers = true; break;
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
    case KEY_SCENARIO:
        usage_error("scenario: conclave sim reads one; --save-scenario FILE keeps the "
                    "counterexample");
    case KEY_SAVE_SCENARIO: request->scenario = text; break;
    case KEY_FORCE: request->force = true; break;
    case KEY_WALK: request->walk = text; break;
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
    static const char *const settings[] = {"first", "topology", "edges",
                                           "graph", "ids",      "attribute"};
    static const char *const judging[] = {"fencing", "wait-bound", "starved-after"};
    static const struct argp_option bounds[] = {
        {"entries", KEY_ENTRIES, "K", 0, "entries of each process (1)", BOUNDS},
        {"crashes", KEY_CRASHES, "K", 0,
         "crashes in total; what a crashed process has sent may be lost, and it may recover",
         BOUNDS},
        {"amnesia", KEY_AMNESIA, 0, 0, "a crashed process recovers without its durable state",
         BOUNDS},
        {"recover", KEY_RECOVER, 0, 0, "crashed processes recover at some time", BOUNDS},
        {"loss", KEY_LOSS, "K", 0, "messages that are lost, in total", BOUNDS},
        {"suspicions", KEY_SUSPICIONS, "K", 0,
         "run a failure detector, which reports every crash and is wrong K times", BOUNDS},
        {"timeouts", KEY_TIMEOUTS, "K", 0, "firings of timers, in total (no limit)", BOUNDS},
        {"late", KEY_LATE, "K", 0,
         "firings of a timer although the message or the holder that it waits for would still have "
         "come, in total (0)",
         BOUNDS},
        {"initiators", KEY_INITIATORS, "K", 0, "number of processes that start the election (all)",
         BOUNDS},
        {"depth", KEY_DEPTH, "D", 0, "explore no further than this many steps", BOUNDS},
        {"fifo", KEY_FIFO, 0, 0,
         "FIFO channels that break with a crash (else any message may overtake any other)", BOUNDS},
    };
    static const struct argp_option own[] = {
        {"coordinator", KEY_COORDINATOR, "KIND", 0, COORDINATOR_HELP, BOUNDS},
        {0, 0, 0, 0, "How to search:", SEARCH},
        {"depth-first", KEY_DEPTH_FIRST, 0, 0,
         "search depth first, on one core, instead of breadth first", SEARCH},
        {"reduce", KEY_REDUCE, "WHAT", 0,
         "symmetry (permutations of processes), order (partial-order reduction of invisible "
         "steps), or all",
         SEARCH},
        {"compact", KEY_COMPACT, 0, 0,
         "hash compaction: keep 4 bytes of each state, and report the omission probability; "
         "depth first",
         SEARCH},
        {"keep-going", KEY_KEEP_GOING, 0, 0, "go on after the first violation", SEARCH},
        {"property", KEY_PROPERTY, "NAME", 0, "decide this property; may be given several times",
         SEARCH},
        {"jobs", KEY_JOBS, "J", 0, "number of threads (all cores)", SEARCH},
        {"memory", KEY_MEMORY, "SIZE", 0, "stop at this limit, e.g. 8G (half of the machine)",
         SEARCH},
        {0, 0, 0, 0, "What to show:", SHOW},
        {"trace", KEY_TRACE, "FORMAT", 0, "the counterexample as text, mermaid, json, svg or graph",
         SHOW},
        {"output", KEY_OUTPUT, "FILE", 0, "where the trace goes (standard output)", SHOW},
        {"save-scenario", KEY_SAVE_SCENARIO, "FILE", 0,
         "save the counterexample for conclave sim --scenario", SHOW},
        {"walk", KEY_WALK, "STEPS", 0,
         "search nothing, but take these steps, such as 2,1,4 (0: none), and show the state that "
         "they lead to and the steps from there; --save-scenario keeps them",
         SHOW},
        {"scenario", KEY_SCENARIO, "FILE", OPTION_HIDDEN, 0, SHOW},
        {"force", KEY_FORCE, 0, 0, FORCE_HELP, SHOW},
        {"json", 'j', 0, 0, "report in JSON", SHOW},
        LANG_OPTION(SHOW),
    };
    struct option_table table;
    option_table_open(&table, sizeof bounds / sizeof bounds[0] + sizeof own / sizeof own[0] + 4);
    option_add(&table, (struct argp_option){.doc = "Bounds of the model:", .group = BOUNDS}, NULL);
    const struct setting *processes = setting_find("processes");
    option_add(&table,
               (struct argp_option){processes->name, KEY_SETTING + (int)(processes - sim_settings),
                                    processes->value, 0, processes->help, BOUNDS},
               "3");
    for (size_t i = 0; i < sizeof bounds / sizeof bounds[0]; i++)
        option_add(&table, bounds[i], NULL);
    for (size_t i = 0; i < sizeof judging / sizeof judging[0]; i++)
        option_add_setting(&table, setting_find(judging[i]), BOUNDS, algorithm);
    option_add(&table, (struct argp_option){.doc = "Elections:", .group = NETWORK}, NULL);
    for (size_t i = 0; i < sizeof settings / sizeof settings[0]; i++)
        option_add_setting(&table, setting_find(settings[i]), NETWORK, algorithm);
    if (algorithm) option_add_algorithm(&table, algorithm, NULL, OF_ALGORITHM);
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
        usage_error("suspicions: %s does not use a failure detector", model->algorithm->name);
    if (model->amnesia && !model->crashes) usage_error("amnesia: goes with --crashes");
    if (model->recovers && !model->crashes) usage_error("recover: goes with --crashes");
    const struct check_search *search = &request->search;
    bool waits = !search->judged || search->judged & (1u << STARVATION | 1u << BOUNDED_WAIT);
    if (lock && !waits && (request->config.wait_bound || request->config.starved_after))
        usage_error("property: leaves out the waits that --wait-bound and --starved-after are for");
    if (request->walk && (search->symmetry || search->order || search->compact))
        usage_error("walk: goes step by step, not with --reduce or --compact");
    if (request->walk && request->traced)
        usage_error("walk: --save-scenario FILE, and conclave sim draws it");
    if (request->output && !request->traced) usage_error("output: goes with --trace");
    if (request->json && request->traced && (!request->output || strcmp(request->output, "-") == 0))
        usage_error("trace: both it and --json want standard output; give --output FILE");
    require_output(request->output, request->force);
    require_output(request->scenario, request->force);
    require_two_files("save-scenario", request->scenario, "output", request->output);
}

/* Half of the memory of the machine; a module in a browser does not know it. */
static uint64_t default_memory(void) {
#ifdef __wasm__
    return (uint64_t)256 << 20;
#endif
    long pages = sysconf(_SC_PHYS_PAGES), size = sysconf(_SC_PAGESIZE);
    return pages > 0 && size > 0 ? (uint64_t)pages * (uint64_t)size / 2 : (uint64_t)1 << 32;
}

/* More entries than a check can have are as good as no bound. */
static uint32_t bound_of(uint64_t entries) { return entries < UINT16_MAX ? (uint32_t)entries : 0; }

static void build_model(struct check_request *request, struct arena *arena) {
    struct check_model *model = &request->model;
    struct sim_config *config = &request->config;
    struct roster roster = config_roster(config);
    struct topology topology = {0};
    char error[SIM_ERROR_MAX];
    if (config_check(config, error) != 0) usage_error("%s", error);
    model->algorithm = config->algorithm;
    if (roster.processes > CHECK_PROCESSES_MAX)
        usage_error("processes: at most %d can be checked, including servers", CHECK_PROCESSES_MAX);
    refuse_nonsense(request);
    model->processes = roster.processes;
    model->servers = roster.servers;
    model->fencing = config->fencing;
    model->wait_bound = bound_of(config->wait_bound);
    model->starved_after = bound_of(config->starved_after);
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
                                 .weights = topology.weights,
                                 .detector = model->detector};
        if (election) topology_env(&topology, p, &env[p]);
    }
    model->env = env;
    if (!request->search.memory) request->search.memory = default_memory();
    struct check_search search = request->search;
    if (request->walk && !search.depth) { /* its steps are its bound */
        search.depth = UINT32_MAX;
        search.depth_first = false;
    }
    const char *why = check_refuse(model, &search);
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
                "conclave: warning: about %.2g states or more are expected, which take %s; "
                "the limit is %s.  Fewer processes or entries, --reduce or --compact may help.\n",
                states, needed, limit);
    else if (states / EXPLORED_PER_S > 600)
        fprintf(stderr,
                "conclave: warning: about %.2g states or more are expected, which may take %s\n",
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
    argc = option_coordinator(argc, argv);
    const struct cv_algorithm *algorithm = algorithm_among(argc, argv);
    if (algorithm) config_init(&request.config, algorithm);
    request.config.processes = 3;
    struct option_table table = make_options(request.config.algorithm);
    const struct argp argp = {
        table.options,
        parse,
        "ALGORITHM",
        "Model-check an algorithm: explore every order of messages, timers, calls, crashes, losses "
        "and wrong suspicions, and decide its properties.  A violation is shown by a shortest "
        "counterexample.  Time is only an order here: a timer fires when nothing else is under "
        "way, unless --late lets it fire sooner.\v"
        "Exit status: 0 when nothing is violated within the bounds, 1 when a property is, 4 when "
        "the memory limit was reached first.\n\n"
        "Examples:\n"
        "  conclave check ricart-agrawala --processes 3 --entries 2\n"
        "  conclave check quorum --processes 2 --crashes 1 --amnesia --timeouts 1\n"
        "  conclave check central-lease --processes 2 --late 1 --save-scenario late.scenario\n"
        "  conclave check majority-terms --initiators 1 --timeouts 2 --crashes 1 --reduce order\n"
        "  conclave check yo-yo --edges 1-2,2-3,3-1 --reduce order\n"
        "  conclave check raft --walk 1,1,2\n",
        0,
        0,
        0};
    argp_parse(&argp, argc, argv, 0, 0, &request);
    if (request.json || (request.traced && request.format == TRACE_JSON)) language_choose(ENGLISH);
    if (!request.config.algorithm)
        usage_error("check: which algorithm? For instance: conclave check central; see conclave "
                    "list");
    if (arena_open(&arena, (size_t)1 << 30) != 0) system_error("out of address space");
    build_model(&request, &arena);
    int status = request.walk ? check_walk_report(&request, request.walk) : run(&request);
    arena_close(&arena);
    config_free(&request.config);
    option_table_close(&table);
    return status;
}
