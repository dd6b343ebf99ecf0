/* conclave sim: one run, or many. */
#include <stdlib.h>
#include <unistd.h>

#include "base/parse.h"
#include "catalogue/catalogue.h"
#include "cli/options.h"
#include "cli/report.h"
#include "sim/scenario.h"

enum {
    KEY_SCENARIO = KEY_OWN,
    KEY_AT,
    KEY_TRACE,
    KEY_OUTPUT,
    KEY_CUT,
    KEY_RUNS,
    KEY_JOBS,
    KEY_SHARE,
    KEY_JUDGE,
    KEY_GAPS,
};

enum { RUNS_MAX = 1000000000, JOBS_MAX = 256 };

struct request {
    struct scenario scenario; /* its config is the run's, with or without a file */
    const char *path;         /* of the scenario, or NULL */
    const char *trace_name, *output, *gaps;
    enum trace_format format;
    const char *at[64];
    int at_count;
    bool json, cut, judge_detector;
    uint64_t runs, jobs;
    uint32_t share, shares;
};

/* ---- Reading the command line ---- */

static void set_share(struct request *request, const char *text) {
    unsigned share, shares;
    char behind;
    if (sscanf(text, "%u/%u%c", &share, &shares, &behind) != 2 || !share || share > shares)
        usage_error("share: '%s' is not I/N with I from 1 to N, such as 2/8", text);
    request->share = share, request->shares = shares;
}

static void set_count(const char *name, const char *text, uint64_t *result) {
    if (parse_u64(text, result) != 0 || *result == 0)
        usage_error("%s: '%s' is not a whole number above 0", name, text);
}

static void set_algorithm(struct request *request, const char *name) {
    const struct cv_algorithm *algorithm = require_algorithm(name);
    const struct cv_algorithm *of_file = request->scenario.config.algorithm;
    if (!of_file)
        config_init(&request->scenario.config, algorithm);
    else if (algorithm != of_file && request->path)
        usage_error("%s is about %s, not %s", request->path, of_file->name, name);
    else if (algorithm != of_file)
        usage_error("one algorithm at a time: %s or %s", of_file->name, name);
}

static _Noreturn void ask_for_algorithm(void) {
    usage_error("sim: which algorithm? For instance: conclave sim central; see conclave list");
}

static int parse(int key, char *text, struct argp_state *state) {
    struct request *request = state->input;
    struct sim_config *config = &request->scenario.config;
    if (key >= KEY_SETTING && key < KEY_OWN && !config->algorithm) ask_for_algorithm();
    if (option_parse(config, key, text)) return 0;
    switch (key) {
    case 'j': request->json = true; break;
    case KEY_SCENARIO: break; /* it was read before all others */
    case KEY_AT:
        if (request->at_count == 64) usage_error("at: too many; write a scenario file");
        request->at[request->at_count++] = text;
        break;
    case KEY_TRACE:
        request->trace_name = text;
        request->format = require_format(text);
        break;
    case KEY_OUTPUT: request->output = text; break;
    case KEY_CUT: request->cut = true; break;
    case KEY_RUNS: set_count("runs", text, &request->runs); break;
    case KEY_JOBS: set_count("jobs", text, &request->jobs); break;
    case KEY_SHARE: set_share(request, text); break;
    case KEY_JUDGE:
        if (strcmp(text, "detector") != 0) usage_error("judge: only 'detector' can be asked for");
        request->judge_detector = true;
        break;
    case KEY_GAPS: request->gaps = text; break;
    case ARGP_KEY_ARG: set_algorithm(request, text); break;
    default: return ARGP_ERR_UNKNOWN;
    }
    return 0;
}

static void add_settings(struct option_table *table, const struct cv_algorithm *algorithm) {
    for (int group = 0; group < SETTING_GROUPS; group++) {
        option_add(table,
                   (struct argp_option){.doc = setting_group_name[group], .group = 1 + group},
                   NULL);
        for (size_t i = 0; i < sim_setting_count; i++)
            if ((int)sim_settings[i].group == group)
                option_add_setting(table, &sim_settings[i], 1 + group, algorithm);
    }
}

static struct option_table make_options(const struct cv_algorithm *algorithm) {
    enum { RUN = SETTING_GROUPS + 2, SHOW };
    static const struct argp_option own[] = {
        {0, 0, 0, 0, "What to run:", RUN},
        {"scenario", KEY_SCENARIO, "FILE", 0, "replay a scenario and check what it expects", RUN},
        {"at", KEY_AT, "'TIME WHAT'", 0, "schedule what happens, e.g. --at '5ms p2 crash'", RUN},
        {"runs", KEY_RUNS, "K", 0, "run K seeds, from --seed on, and sum them up", RUN},
        {"jobs", KEY_JOBS, "J", 0, "how many at a time (all cores)", RUN},
        {"share", KEY_SHARE, "I/N", 0, "run one N-th of the seeds; see conclave merge", RUN},
        {0, 0, 0, 0, "What to show:", SHOW},
        {"trace", KEY_TRACE, "FORMAT", 0, "show what happened: text, mermaid, json or svg", SHOW},
        {"output", KEY_OUTPUT, "FILE", 0, "where the trace goes (standard output)", SHOW},
        {"judge", KEY_JUDGE, "detector", 0, "insist on the judge of failure detectors", SHOW},
        {"gaps", KEY_GAPS, "FILE", 0,
         "write the gaps between heartbeats there; see conclave timeout --delays", SHOW},
        {"cut", KEY_CUT, 0, 0, "cut the trace down to what led to the violation", SHOW},
        {"json", 'j', 0, 0, "report in JSON", SHOW},
    };
    size_t own_count = sizeof own / sizeof own[0];
    struct option_table table;
    option_table_open(&table, own_count);
    add_settings(&table, algorithm);
    if (algorithm) option_add_algorithm(&table, algorithm, SETTING_GROUPS + 1);
    for (size_t i = 0; i < own_count; i++) option_add(&table, own[i], NULL);
    return table;
}

/* The scenario decides the settings that the other options change, and with the algorithm, which
 * options there are; so both are looked for first. */
static void look_ahead(struct request *request, int argc, char **argv) {
    char error[SCENARIO_ERROR_MAX];
    for (int i = 1; i < argc; i++) {
        if (strncmp(argv[i], "--scenario=", 11) == 0)
            request->path = argv[i] + 11;
        else if (strcmp(argv[i], "--scenario") == 0 && i + 1 < argc)
            request->path = argv[i + 1];
    }
    if (request->path && scenario_read(&request->scenario, request->path, error) != 0)
        usage_error("%s", error);
    for (int i = 1; i < argc && !request->scenario.config.algorithm; i++)
        if (catalogue_find(argv[i])) set_algorithm(request, argv[i]);
    if (!request->scenario.config.algorithm && argc > 1 && argv[1][0] != '-')
        set_algorithm(request, argv[1]); /* which says what is near */
}

static void check(struct request *request) {
    struct sim_config *config = &request->scenario.config;
    char error[SIM_ERROR_MAX];
    if (!config->algorithm) ask_for_algorithm();
    if (config_check(config, error) != 0) usage_error("%s", error);
    if (request->runs > RUNS_MAX || config->seed > INT64_MAX - RUNS_MAX)
        usage_error("runs: at most %d, of seeds below 2^63 - %d", RUNS_MAX, RUNS_MAX);
    if (request->jobs > JOBS_MAX) usage_error("jobs: at most %d", JOBS_MAX);
    if (request->runs && request->scenario.expectation_count)
        usage_error("runs: %s says what must come out of one run", request->path);
    for (int i = 0; i < request->at_count; i++)
        if (action_parse(config, request->at[i], error) != 0)
            usage_error("at '%s': %s", request->at[i], error);
    if (request->runs && request->trace_name)
        usage_error("trace: shows one run; leave out --runs, and give the --seed");
    if ((request->judge_detector || request->gaps) && !config->detector.code)
        usage_error("%s: wants a detector by heartbeat, such as --detector phi:8",
                    request->gaps ? "gaps" : "judge");
    if (request->gaps && request->runs) usage_error("gaps: are of one run; leave out --runs");
    if (request->shares && !request->runs) usage_error("share: shares --runs, which is missing");
    if ((request->cut || request->output) && !request->trace_name)
        usage_error("%s: goes with --trace", request->cut ? "cut" : "output");
    if (request->json && request->trace_name &&
        (!request->output || strcmp(request->output, "-") == 0))
        usage_error("trace: both it and --json want standard output; give --output FILE");
}

/* ---- Running ---- */

static void print_replay(const struct request *request) {
    const struct sim_config *config = &request->scenario.config;
    fputs("Replay: conclave sim ", stdout);
    if (request->path)
        printf("--scenario %s --seed %llu", request->path, (unsigned long long)config->seed);
    else
        config_command(config, stdout);
    putchar('\n');
}

static int run_many(struct request *request) {
    struct sim_config *config = &request->scenario.config;
    struct batch batch = {.config = config, .runs = request->runs, .share = 1, .shares = 1};
    struct batch_summary summary;
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    batch.jobs = request->jobs ? (unsigned)request->jobs : cores > 0 ? (unsigned)cores : 1;
    if (request->shares) batch.share = request->share, batch.shares = request->shares;
    if (batch_run(&batch, progress_bar()) != 0 ||
        batch_summarize(batch.rows, batch.count, distribution_mean(&config->delay),
                        (double)config->processes, &summary) != 0)
        system_error("out of memory");
    json_t *head = batch_head(&batch);
    if (request->json) {
        print_json(report_batch_json(head, batch.rows, batch.count, &summary));
    } else {
        report_batch_text(head, batch.count, &summary, stdout);
        if (summary.first_failing_any) {
            config->seed = summary.first_failing_any->seed;
            print_replay(request);
        }
    }
    bool failed = summary.first_failing_any != NULL;
    json_decref(head);
    free(batch.rows);
    return failed ? EXIT_VIOLATED : EXIT_OK;
}

static void cut_trace(struct trace *trace, const struct sim *sim) {
    if (sim->algorithm->problem == CV_ELECTION)
        trace_cut_election(trace, &sim->election);
    else
        trace_cut_lock(trace, &sim->judge);
}

/* The run is repeated while somebody looks: it is the same run, so looking changes nothing. */
static void show_what_led_here(struct sim *sim) {
    enum { LOOK_BACK = 200000 };
    struct trace trace;
    uint64_t event = sim->result.violation_event;
    trace_open(&trace, sim->config);
    trace.from_event = event > LOOK_BACK ? event - LOOK_BACK : 0;
    sim_run(sim, sim->config, &trace);
    cut_trace(&trace, sim);
    puts("\nWhat led here:");
    trace_write_text(&trace, stdout);
    trace_close(&trace);
}

static void write_gaps(const char *path, const struct detector_judge *judge) {
    FILE *out = open_output(path);
    for (size_t i = 0; i < judge->gap_count; i++)
        fprintf(out, "%.3fms\n", (double)judge->gap_us[i] / 1e3);
    close_output(out, path);
}

static void write_trace(const struct request *request, struct trace *trace, const struct sim *sim) {
    const char *path = request->output ? request->output : "-";
    const char *title = request->scenario.title;
    if (request->cut) {
        if (!sim->result.violation_event) usage_error("cut: nothing was violated");
        cut_trace(trace, sim);
    }
    FILE *out = open_output(path);
    trace_write(trace, request->format, *title ? title : sim->algorithm->name, out);
    close_output(out, path);
}

/* Returns whether the scenario came out as expected. */
static bool check_scenario(const struct request *request, const struct sim *sim,
                           const struct trace *trace, FILE *out) {
    size_t unmet = scenario_check(&request->scenario, request->path, sim, trace, out);
    if (unmet == 0)
        fprintf(out, "  %-20s all %zu expectations were met\n", "scenario",
                request->scenario.expectation_count);
    return unmet == 0;
}

static int run_one(struct request *request) {
    struct sim_config *config = &request->scenario.config;
    bool traced = request->trace_name || request->path;
    struct trace trace;
    struct sim sim;
    if (sim_open(&sim) != 0) system_error("out of address space");
    trace_open(&trace, config);
    sim_run(&sim, config, traced ? &trace : NULL);
    bool on_stdout = request->trace_name && (!request->output || !strcmp(request->output, "-"));
    FILE *out = on_stdout || request->json ? stderr : stdout;
    bool violated = sim_violated(&sim), expected = !violated;
    if (request->trace_name) write_trace(request, &trace, &sim);
    if (request->gaps) write_gaps(request->gaps, &sim.detectors);
    if (!request->json) report_run_text(&sim, out);
    if (request->scenario.expectation_count) expected = check_scenario(request, &sim, &trace, out);
    if (request->json) {
        json_t *report = report_run_json(&sim);
        if (request->scenario.expectation_count)
            json_object_set_new(report, "as_expected", json_boolean(expected));
        print_json(report);
    }
    trace_close(&trace);
    if (violated && !request->json && !request->trace_name) {
        show_what_led_here(&sim);
        print_replay(request);
    }
    sim_close(&sim);
    return expected ? EXIT_OK : EXIT_VIOLATED;
}

int cmd_sim(int argc, char **argv) {
    struct request request = {0};
    look_ahead(&request, argc, argv);
    struct option_table table = make_options(request.scenario.config.algorithm);
    const struct argp argp = {
        table.options,
        parse,
        "ALGORITHM",
        "Run a lock or an election in a deterministic simulator, and judge it.  'conclave sim "
        "ALGORITHM --help' shows the settings that fit the algorithm, and its own options.\v"
        "Examples:\n"
        "  conclave sim central --processes 5 --entries 100\n"
        "  conclave sim central-lease --pause-rate 1/s --lease 20ms\n"
        "  conclave sim token-ring --trace svg --entries 4 --output ring.svg\n"
        "  conclave sim quorum --n 5 --crash-rate 1/s --recover --amnesia --runs 1000\n"
        "  conclave sim bully --detector phi:8 --crash-rate 0.1/s --recover --time-limit 60s\n"
        "  conclave sim --scenario scenarios/quorum-amnesia.scenario --trace mermaid\n",
        0,
        0,
        0};
    argp_parse(&argp, argc, argv, 0, 0, &request);
    check(&request);
    int status = request.runs ? run_many(&request) : run_one(&request);
    scenario_free(&request.scenario);
    option_table_close(&table);
    return status;
}
