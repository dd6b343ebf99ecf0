/* conclave sim: one run, or many. */
#include <stdlib.h>
#include <unistd.h>

#include "base/parse.h"
#include "cli/options.h"
#include "cli/report.h"
#include "cli/step.h"
#include "lab/sim/scenario.h"
#include "language/language.h"

enum {
    KEY_SCENARIO = KEY_OWN,
    KEY_AT,
    KEY_TRACE,
    KEY_OUTPUT,
    KEY_PAGE,
    KEY_CUT,
    KEY_RUNS,
    KEY_JOBS,
    KEY_SHARE,
    KEY_JUDGE,
    KEY_GAPS,
    KEY_SAVE_SCENARIO,
    KEY_FORCE,
    KEY_STEP,
    KEY_COORDINATOR,
};

enum { RUNS_MAX = 1000000000, JOBS_MAX = 256 };

struct request {
    struct scenario scenario; /* its config is that of the run, with or without a file */
    const char *path;         /* of the scenario, or NULL */
    const char *trace_name, *output, *gaps, *saved;
    enum trace_format format;
    const char *at[64];
    int at_count;
    bool json, cut, judge_detector, force, step;
    uint64_t runs, jobs, page;
    uint32_t share, shares;
};

/* ---- Reading the command line ---- */

static void set_share(struct request *request, const char *text) {
    unsigned share, shares;
    char trailing;
    if (sscanf(text, "%u/%u%c", &share, &shares, &trailing) != 2 || !share || share > shares)
        usage_error("share: '%s' is not I/N with I from 1 to N, such as 2/8", text);
    request->share = share, request->shares = shares;
}

static void set_algorithm(struct request *request, const char *name) {
    const struct cv_algorithm *algorithm = require_algorithm(name);
    const struct cv_algorithm *of_file = request->scenario.config.algorithm;
    if (!of_file)
        config_init(&request->scenario.config, algorithm);
    else if (algorithm != of_file && request->path)
        usage_error("%s is a scenario of %s, not %s", request->path, of_file->name, name);
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
    case KEY_LANG: return language_option(text);
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
    case KEY_PAGE: set_count("page", text, &request->page); break;
    case KEY_CUT: request->cut = true; break;
    case KEY_RUNS: set_count("runs", text, &request->runs); break;
    case KEY_JOBS: set_count("jobs", text, &request->jobs); break;
    case KEY_SHARE: set_share(request, text); break;
    case KEY_JUDGE:
        if (strcmp(text, "detector") != 0) usage_error("judge: only 'detector' can be asked for");
        request->judge_detector = true;
        break;
    case KEY_GAPS: request->gaps = text; break;
    case KEY_SAVE_SCENARIO: request->saved = text; break;
    case KEY_FORCE: request->force = true; break;
    case KEY_STEP: request->step = true; break;
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
        {"scenario", KEY_SCENARIO, "FILE", 0, "replay a scenario and check its expectations", RUN},
        {"coordinator", KEY_COORDINATOR, "KIND", 0, COORDINATOR_HELP, RUN},
        {"at", KEY_AT, "'TIME WHAT'", 0, "schedule an action, e.g. --at '5ms p2 crash'", RUN},
        {"runs", KEY_RUNS, "K", 0, "run K seeds, from --seed on, and summarize them", RUN},
        {"jobs", KEY_JOBS, "J", 0, "number of threads (all cores)", RUN},
        {"share", KEY_SHARE, "I/N", 0, "run one N-th of the seeds; see conclave merge", RUN},
        {0, 0, 0, 0, "What to show:", SHOW},
        {"trace", KEY_TRACE, "FORMAT", 0,
         "write the trace as text, mermaid, json, svg (a space-time diagram) or graph (drawings of "
         "the network, stage by stage)",
         SHOW},
        {"page", KEY_PAGE, "N", 0, "of a picture that has several pages (1)", SHOW},
        {"output", KEY_OUTPUT, "FILE", 0, "where the trace goes (standard output)", SHOW},
        {"judge", KEY_JUDGE, "detector", 0, "require that failure detectors are judged", SHOW},
        {"gaps", KEY_GAPS, "FILE", 0,
         "write the gaps between heartbeats to a file; see conclave timeout --delays", SHOW},
        {"save-scenario", KEY_SAVE_SCENARIO, "FILE", 0,
         "write the run down as a scenario, for --scenario", SHOW},
        {"force", KEY_FORCE, 0, 0, FORCE_HELP, SHOW},
        {"step", KEY_STEP, 0, 0,
         "walk through the run: Enter goes on, b back, a number there, q ends it", SHOW},
        {"cut", KEY_CUT, 0, 0, "cut the trace down to what led to the violation", SHOW},
        {"json", 'j', 0, 0, "report in JSON", SHOW},
        LANG_OPTION(SHOW),
    };
    size_t own_count = sizeof own / sizeof own[0];
    struct option_table table;
    option_table_open(&table, own_count);
    add_settings(&table, algorithm);
    if (algorithm) option_add_algorithm(&table, algorithm, NULL, SETTING_GROUPS + 1);
    for (size_t i = 0; i < own_count; i++) option_add(&table, own[i], NULL);
    return table;
}

/* The scenario sets what the other options change, and the algorithm determines which options there
 * are, so both are looked up first. */
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
    if (request->scenario.config.algorithm) return;
    const struct cv_algorithm *algorithm = algorithm_among(argc, argv);
    if (algorithm) config_init(&request->scenario.config, algorithm);
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
        usage_error("runs: the expectations of %s are for one run", request->path);
    for (int i = 0; i < request->at_count; i++)
        if (action_parse(config, request->at[i], error) != 0)
            usage_error("at '%s': %s", request->at[i], error);
    if (request->runs && request->trace_name)
        usage_error("trace: it shows one run; leave out --runs, and give its --seed");
    if ((request->judge_detector || request->gaps) && !config->detector.code)
        usage_error("%s: needs a heartbeat detector, such as --detector phi:8",
                    request->gaps ? "gaps" : "judge");
    if (request->gaps && request->runs) usage_error("gaps: they are of one run; leave out --runs");
    if (request->shares && !request->runs) usage_error("share: goes with --runs");
    if ((request->cut || request->output || request->page) && !request->trace_name)
        usage_error("%s: goes with --trace", request->cut      ? "cut"
                                             : request->output ? "output"
                                                               : "page");
    if (request->page && request->format != TRACE_SVG && request->format != TRACE_GRAPH)
        usage_error("page: only svg and graph have pages");
    if (request->step && (request->runs || request->trace_name || request->json))
        usage_error("step: it shows one run on standard output; leave out --%s",
                    request->runs   ? "runs"
                    : request->json ? "json"
                                    : "trace");
    if (request->json && request->trace_name &&
        (!request->output || strcmp(request->output, "-") == 0))
        usage_error("trace: both it and --json want standard output; give --output FILE");
    if (request->saved && request->runs)
        usage_error("save-scenario: it is of one run; leave out --runs, and give its --seed");
    require_output(request->output, request->force);
    require_output(request->gaps, request->force);
    require_output(request->saved, request->force);
    require_two_files("save-scenario", request->saved, "output", request->output);
    require_two_files("save-scenario", request->saved, "gaps", request->gaps);
    require_two_files("gaps", request->gaps, "output", request->output);
}

/* ---- Running ---- */

static void print_replay(const struct request *request) {
    const struct sim_config *config = &request->scenario.config;
    fputs(_("Replay: conclave sim "), stdout);
    if (request->path)
        printf("--scenario %s --seed %llu", request->path, (unsigned long long)config->seed);
    else
        config_command(config, stdout);
    puts(language_words());
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

/* Repeats the run with a trace, which does not change it. */
static void show_what_led_here(struct sim *sim) {
    enum { LOOK_BACK = 200000 };
    struct trace trace;
    uint64_t event = sim->result.violation_event;
    trace_open(&trace, sim->config);
    trace.from_event = event > LOOK_BACK ? event - LOOK_BACK : 0;
    sim_run(sim, sim->config, &trace);
    cut_trace(&trace, sim);
    puts(_("\nWhat led here:"));
    trace_write_text(&trace, stdout);
    trace_close(&trace);
}

static void write_gaps(const struct request *request, const struct detector_judge *judge) {
    const char *path = request->gaps;
    FILE *out = open_output(path, request->force);
    for (size_t i = 0; i < judge->gap_count; i++)
        fprintf(out, "%.3fms\n", (double)judge->gap_us[i] / 1e3);
    close_output(out, path);
}

static void save_scenario(const struct request *request) {
    FILE *out = open_output(request->saved, request->force);
    scenario_write(&request->scenario, out);
    close_output(out, request->saved);
}

/* What was expected and did not happen, below the picture of a run in which nothing is violated. */
static void tell_unmet(const struct request *request, const struct sim *sim, struct trace *trace) {
    FILE *out = *trace->violated ? NULL : fmemopen(trace->violated, TRACE_VIOLATED_MAX, "w");
    if (!out) return;
    trace->violated_us = UINT64_MAX; /* at no moment */
    scenario_check(&request->scenario, request->path, sim, trace, out);
    fclose(out);
}

static void write_trace(const struct request *request, struct trace *trace, const struct sim *sim) {
    const char *path = request->output ? request->output : "-";
    const char *title = request->scenario.title;
    if (request->cut) {
        if (!sim->result.violation_event) usage_error("cut: nothing was violated");
        cut_trace(trace, sim);
    }
    tell_unmet(request, sim, trace);
    FILE *out = open_output(path, request->force);
    trace_write(trace, request->format, *title ? _(title) : sim->algorithm->name,
                request->page ? request->page : 1, out);
    close_output(out, path);
}

/* Returns whether the scenario came out as expected. */
static bool check_scenario(const struct request *request, const struct sim *sim,
                           const struct trace *trace, FILE *out) {
    size_t unmet = scenario_check(&request->scenario, request->path, sim, trace, out);
    if (unmet == 0)
        figure(out, _("scenario"),
               request->scenario.expectation_count == 1 ? _("its expectation was met\n")
                                                        : _("all %zu expectations were met\n"),
               request->scenario.expectation_count);
    return unmet == 0;
}

static int run_one(struct request *request) {
    struct sim_config *config = &request->scenario.config;
    bool traced = request->trace_name || request->path;
    struct trace trace;
    struct sim sim;
    if (request->step) step_through(config);
    if (sim_open(&sim) != 0) system_error("out of address space");
    trace_open(&trace, config);
    sim_run(&sim, config, traced ? &trace : NULL);
    bool on_stdout = request->trace_name && (!request->output || !strcmp(request->output, "-"));
    FILE *out = on_stdout || request->json ? stderr : stdout;
    bool violated = sim_violated(&sim), expected = !violated;
    if (request->trace_name) write_trace(request, &trace, &sim);
    if (request->gaps) write_gaps(request, &sim.detectors);
    if (request->saved) save_scenario(request);
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
    argc = option_coordinator(argc, argv);
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
        "  conclave sim central --coordinator elected:bully --partition-rate 1/s --detector "
        "fixed:20ms\n"
        "  conclave sim token-ring --trace svg --entries 4 --output ring.svg\n"
        "  conclave sim quorum --n 5 --crash-rate 1/s --recover --amnesia --runs 1000\n"
        "  conclave sim bully --detector phi:8 --crash-rate 0.1/s --recover --time-limit 60s\n"
        "  conclave sim --scenario scenarios/quorum-amnesia.scenario --trace mermaid\n"
        "  conclave sim lamport --processes 3 --entries 3 --step\n",
        0,
        0,
        0};
    argp_parse(&argp, argc, argv, 0, 0, &request);
    if (request.json || (request.trace_name && request.format == TRACE_JSON))
        language_choose(ENGLISH);
    check(&request);
    int status = request.runs ? run_many(&request) : run_one(&request);
    scenario_free(&request.scenario);
    option_table_close(&table);
    return status;
}
