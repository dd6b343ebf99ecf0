/* conclave trace: what peers and servers have recorded, joined, replayed and judged. */
#include <stdlib.h>

#include "algorithms/catalogue.h"
#include "cli/options.h"
#include "cli/report.h"
#include "cli/trace_servers.h"
#include "lab/peers/merge.h"
#include "lab/sim/sim.h"
#include "language/language.h"

enum { KEY_ALGORITHM = KEY_OWN, KEY_TRACE, KEY_OUTPUT, KEY_CUT, KEY_FORCE, KEY_PAGE };

struct request {
    bool replay;
    const struct cv_algorithm *algorithm; /* NULL: as the records say */
    const char *trace_name, *output;
    enum trace_format format;
    uint64_t page; /* 0: the first */
    bool json, cut, force;
    char **paths; /* the first word is what to do */
    int count;
};

/* A record must not decide which code is run: a file of code is loaded only if it is given on the
 * command line. */
static const struct cv_algorithm *find(const char *name) {
    for (size_t i = 0; i < catalogue_count; i++)
        if (strcmp(catalogue[i]->name, name) == 0) return catalogue[i];
    return NULL;
}

static const struct argp_option options[] = {
    {"trace", KEY_TRACE, "FORMAT", 0, "write the trace as text, mermaid, json, svg or graph", 1},
    {"page", KEY_PAGE, "N", 0, "of a picture that has several pages (1)", 1},
    {"output", KEY_OUTPUT, "FILE", 0, "where the trace goes (standard output)", 1},
    {"force", KEY_FORCE, 0, 0, FORCE_HELP, 1},
    {"cut", KEY_CUT, 0, 0, "cut the trace down to what led to the violation", 1},
    {"algorithm", KEY_ALGORITHM, "FILE", 0, "the algorithm, if it is not one of conclave list", 1},
    {"json", 'j', 0, 0, "report in JSON", 1},
    LANG_OPTION(1),
    {0}};

static const char doc[] =
    "Joins what peers have recorded ('conclave peer --record FILE') to one run, and judges it.  "
    "Does the same for what servers have recorded of their consensus ('conclave serve --record "
    "FILE').\v"
    "What is done is one of:\n\n"
    "  merge FILE...     replays the records of all in an order that their messages allow, and "
    "judges\n"
    "  replay FILE...    replays each record by itself, of all or of some\n\n"
    "A replay gives the recorded events to the algorithm again, the same object file that the "
    "simulator runs.  Each step has to end in the state that was recorded, and every message that "
    "was received has to have been sent.\n\n"
    "A message is sent before it arrives, and each process does one thing after the other: that "
    "decides the order, and clocks only choose among what may come next.  Exclusion holds if no "
    "order that the messages allow has two inside at once; else the order that is shown has.  A "
    "peer that was killed is taken to have been gone after what it has recorded, and a stay that "
    "ends with the run of its process to have ended when its clock says.\n\n"
    "The record of a server has the steps of its consensus core.  Each is given to the core again "
    "and has to have the same effects and end in the same state.  'merge' also judges election "
    "safety, log matching, leader completeness and state machine safety over the records of all "
    "servers that are given, and whether each has voted once in a term.  Of a server whose record "
    "has two files, name FILE.1 before FILE.  A trace of servers joins them by their messages; "
    "steps are recorded without their times, so a millisecond there is a step.\n\n"
    "Examples:\n"
    "  conclave peer --algorithm lamport --id 1 --peers peers.conf --record 1.record lock -- "
    "./job\n"
    "  conclave trace merge 1.record 2.record 3.record\n"
    "  conclave trace merge --trace svg --output run.svg *.record\n"
    "  conclave serve --record server.record\n"
    "  conclave trace replay server.record\n"
    "  conclave trace merge --trace svg --output servers.svg server*.record\n\n"
    "Exit status: 0 nothing is violated, 1 a property is, 2 wrong usage, or the records do not fit "
    "together or to the algorithm.\n";

static int parse(int key, char *text, struct argp_state *state) {
    struct request *request = state->input;
    switch (key) {
    case KEY_TRACE:
        request->trace_name = text;
        request->format = require_format(text);
        break;
    case KEY_OUTPUT: request->output = text; break;
    case KEY_PAGE: set_count("page", text, &request->page); break;
    case KEY_CUT: request->cut = true; break;
    case KEY_FORCE: request->force = true; break;
    case KEY_ALGORITHM: request->algorithm = require_algorithm(text); break;
    case 'j': request->json = true; break;
    case KEY_LANG: return language_option(text);
    case ARGP_KEY_ARGS:
        request->paths = state->argv + state->next;
        request->count = state->argc - state->next;
        break;
    default: return ARGP_ERR_UNKNOWN;
    }
    return 0;
}

static void check(struct request *request) {
    const char *what = request->count ? request->paths[0] : "";
    request->replay = strcmp(what, "replay") == 0;
    if (!request->replay && strcmp(what, "merge") != 0)
        usage_error("trace: 'merge FILE...' or 'replay FILE...'; see conclave trace --help");
    if (request->count < 2) usage_error("%s: which records?", what);
    if (request->replay && request->trace_name) usage_error("trace: goes with merge");
    if ((request->cut || request->output || request->page) && !request->trace_name)
        usage_error("%s: goes with --trace", request->cut      ? "cut"
                                             : request->output ? "output"
                                                               : "page");
    if (request->page && request->format != TRACE_SVG && request->format != TRACE_GRAPH)
        usage_error("page: only svg and graph have pages");
    if (request->json && request->trace_name &&
        (!request->output || strcmp(request->output, "-") == 0))
        usage_error("trace: both it and --json want standard output; give --output FILE");
    require_output(request->output, request->force);
}

/* ---- The report ---- */

static void print_report(const struct request *request, const struct merge *merge, FILE *out) {
    const struct merge_result *result = &merge->result;
    const struct cv_algorithm *code = merge->records->group.algorithm;
    struct properties properties = sim_properties(code);
    fprintf(out, _("%s, %u processes: %llu steps replayed, each to the state that was recorded\n"),
            code->name, merge->roster.processes, (unsigned long long)result->steps);
    if (result->torn)
        figure(out, _("records"),
               result->torn == 1 ? _("the end of %llu record is torn, and left out\n")
                                 : _("the end of %llu records is torn, and left out\n"),
               (unsigned long long)result->torn);
    if (request->replay) return;
    figure(out, _("messages"), "%llu\n", (unsigned long long)result->messages);
    if (code->problem == CV_MUTEX)
        figure(out, _("entries"), "%llu\n", (unsigned long long)result->entries);
    if (result->restarts)
        figure(out, _("restarts"), "%llu\n", (unsigned long long)result->restarts);
    if (result->unsent)
        figure(out, _("messages of nobody"),
               _("%llu, which a record that ends early does not have\n"),
               (unsigned long long)result->unsent);
    for (int i = 0; i < properties.count; i++) {
        const struct verdict *v = &result->verdict[i];
        figure(out, _(properties.name[i]), "%s",
               v->value == VIOLATED ? _("VIOLATED") : _(verdict_word(v->value)));
        fprintf(out, *v->why ? ": %s\n" : "\n", v->why);
    }
}

static void print_json_report(const struct request *request, const struct merge *merge) {
    const struct merge_result *result = &merge->result;
    const struct cv_algorithm *code = merge->records->group.algorithm;
    struct properties properties = sim_properties(code);
    json_t *verdicts = json_object(), *why = json_object();
    for (int i = 0; i < properties.count && !request->replay; i++) {
        const struct verdict *v = &result->verdict[i];
        json_object_set_new(verdicts, properties.name[i], json_string(verdict_word(v->value)));
        if (*v->why) json_object_set_new(why, properties.name[i], json_string(v->why));
    }
    json_object_set_new(verdicts, "why", why);
    json_t *report =
        json_pack("{s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "algorithm", code->name, "processes",
                  (json_int_t)merge->roster.processes, "steps", (json_int_t)result->steps,
                  "messages", (json_int_t)result->messages, "entries", (json_int_t)result->entries,
                  "restarts", (json_int_t)result->restarts, "unsent", (json_int_t)result->unsent,
                  "torn", (json_int_t)result->torn);
    if (request->replay)
        json_decref(verdicts);
    else
        json_object_set_new(report, "verdicts", verdicts);
    print_json(report);
}

static void write_trace(const struct request *request, struct merge *merge) {
    const char *path = request->output ? request->output : "-";
    if (request->cut) {
        if (!merge_violated(merge)) usage_error("cut: nothing was violated");
        merge_cut(merge);
    }
    FILE *out = open_output(path, request->force);
    trace_write(&merge->trace, request->format, merge->records->group.algorithm->name,
                request->page ? request->page : 1, out);
    close_output(out, path);
}

static int run(const struct request *request) {
    struct records records = {.algorithm = request->algorithm, .find = find};
    struct merge merge = {0};
    char error[RECORD_ERROR_MAX];
    for (int i = 1; i < request->count; i++)
        if (records_read(&records, request->paths[i], error) != 0) usage_error("%s", error);
    records_sort(&records);
    int failed = request->replay ? merge_replay(&merge, &records, error)
                                 : merge_run(&merge, &records, error);
    if (failed) usage_error("%s", error);
    bool violated = !request->replay && merge_violated(&merge);
    bool on_stdout = request->trace_name && (!request->output || !strcmp(request->output, "-"));
    if (request->trace_name) write_trace(request, &merge);
    if (request->json)
        print_json_report(request, &merge);
    else
        print_report(request, &merge, on_stdout ? stderr : stdout);
    if (violated && !request->json && !request->trace_name) {
        merge_cut(&merge);
        puts(_("\nWhat led here:"));
        trace_write_text(&merge.trace, stdout);
    }
    merge_close(&merge);
    records_free(&records);
    return violated ? EXIT_VIOLATED : EXIT_OK;
}

int cmd_trace(int argc, char **argv) {
    static const struct argp argp = {options, parse, "merge|replay FILE...", doc, 0, 0, 0};
    struct request request = {0};
    argp_parse(&argp, argc, argv, 0, 0, &request);
    if (request.json || (request.trace_name && request.format == TRACE_JSON))
        language_choose(ENGLISH);
    check(&request);
    if (trace_is_of_server(request.paths[1])) {
        if (request.cut || request.algorithm)
            usage_error("%s: goes with records of peers", request.cut ? "cut" : "algorithm");
        language_choose(ENGLISH);
        return trace_servers(&(struct trace_servers){.paths = request.paths + 1,
                                                     .count = request.count - 1,
                                                     .replay = request.replay,
                                                     .json = request.json,
                                                     .picture = request.trace_name != NULL,
                                                     .format = request.format,
                                                     .page = request.page ? request.page : 1,
                                                     .output = request.output,
                                                     .force = request.force});
    }
    return run(&request);
}
