#include "cli/check_report.h"

#include <stdlib.h>

#include "base/parse.h"
#include "cli/report.h"
#include "lab/experiments/counterexample.h"
#include "lab/judge/election.h"
#include "lab/judge/mutex.h"
#include "language/language.h"

/* A counterexample, replayed in the simulator to be shown. */
struct replay {
    struct scenario scenario;
    struct sim sim;
    struct trace trace;
    bool made;
};

static void replay_open(struct replay *replay, const struct check_request *request,
                        const struct check_result *result) {
    char error[SIM_ERROR_MAX];
    *replay = (struct replay){0};
    if (result->violated < 0) return;
    if (counterexample_scenario(&replay->scenario, &request->config, &request->model,
                                &result->path[result->violated], result->violated, error) != 0)
        system_error("%s", error);
    if (sim_open(&replay->sim) != 0) system_error("out of address space");
    trace_open(&replay->trace, &replay->scenario.config);
    sim_run(&replay->sim, &replay->scenario.config, &replay->trace);
    replay->made = true;
    bool repeats = result->path[result->violated].cycle < result->path[result->violated].count;
    bool simulator_agrees = sim_verdicts(&replay->sim)[result->violated].value == VIOLATED;
    cv_assert(repeats || simulator_agrees); /* else one of the two is wrong */
}

static void replay_close(struct replay *replay) {
    if (!replay->made) return;
    trace_close(&replay->trace);
    sim_close(&replay->sim);
    scenario_free(&replay->scenario);
}

static const char *property_name(const struct check_request *request, int property) {
    return sim_properties(request->model.algorithm).name[property];
}

static bool is_decided(const struct check_request *request, int property) {
    bool asked = request->search.judged & 1u << BOUNDED_WAIT || request->model.wait_bound ||
                 request->model.starved_after;
    return request->model.algorithm->problem == CV_ELECTION || property != BOUNDED_WAIT || asked;
}

/* ---- Files ---- */

static void write_files(const struct check_request *request, int violated,
                        const struct replay *replay) {
    if (request->scenario) {
        FILE *out = open_output(request->scenario, request->force);
        scenario_write(&replay->scenario, out);
        close_output(out, request->scenario);
    }
    if (request->traced) {
        const char *path = request->output ? request->output : "-";
        char title[SCENARIO_TITLE_MAX];
        snprintf(title, sizeof title, _("%s: %s violated"), request->model.algorithm->name,
                 _(property_name(request, violated)));
        FILE *out = open_output(path, request->force);
        trace_write(&replay->trace, request->format, title, 1, out);
        close_output(out, path);
    }
}

/* ---- What is not known, and why ---- */

static bool is_likely(const struct check_request *request, const struct check_result *result,
                      int property) {
    return result->ends_likely && request->model.algorithm->problem == CV_ELECTION &&
           (property == LIVENESS || property == TERMINATION) && result->doubt[property];
}

static char *why_unknown(const struct check_request *request, const struct check_result *result,
                         int property, char *buffer, size_t size) {
    unsigned long long depth = request->search.depth, timeouts = request->model.timeouts;
    switch (result->doubt[property]) {
    case NO_DOUBT: *buffer = 0; break;
    case NOT_ASKED: snprintf(buffer, size, _("not asked for")); break;
    case AFTER_THE_FIRST: snprintf(buffer, size, _("not violated before the search ended")); break;
    case BEYOND_DEPTH:
        snprintf(buffer, size,
                 depth == 1 ? _("not violated within %llu step")
                            : _("not violated within %llu steps"),
                 depth);
        break;
    case BEYOND_MEMORY: snprintf(buffer, size, _("not violated before the memory limit")); break;
    case BEYOND_TIMEOUTS:
        snprintf(buffer, size,
                 timeouts == 1 ? _("not violated within %llu timeout")
                               : _("not violated within %llu timeouts"),
                 timeouts);
        break;
    case REDUCED:
        snprintf(buffer, size, _("who waits is not told with --reduce and --compact"));
        break;
    case ALL_ENTRIES_USED:
        snprintf(buffer, size, _("others can use up all of their entries, %d, during one wait"),
                 result->overtakes);
        break;
    case CYCLES_UNSEEN:
        snprintf(buffer, size,
                 _("states may repeat, and %s does not tell whether somebody waits for ever"),
                 request->search.compact ? "--compact" : "--reduce symmetry");
        break;
    }
    if (is_likely(request, result, property))
        snprintf(buffer + strlen(buffer), size - strlen(buffer),
                 _("; with probability 1 it holds: from every state of the first %llu steps some "
                   "draws lead to an end"),
                 (unsigned long long)result->ends_likely);
    return buffer;
}

/* ---- JSON ---- */

static const char *const end_words[] = {[CHECK_COMPLETE] = "complete",
                                        [CHECK_VIOLATED] = "violated",
                                        [CHECK_MEMORY] = "memory",
                                        [CHECK_DEPTH] = "depth"};

static json_t *bounds_json(const struct check_model *model) {
    json_t *bounds = json_object();
    bool lock = model->algorithm->problem == CV_MUTEX;
    if (lock) json_object_set_new(bounds, "entries", json_integer(model->entries));
    if (!lock) json_object_set_new(bounds, "initiators", json_integer(model->initiators));
    json_object_set_new(bounds, "crashes", json_integer(model->crashes));
    json_object_set_new(bounds, "amnesia", json_boolean(model->amnesia));
    json_object_set_new(bounds, "recover", json_boolean(model->recovers));
    json_object_set_new(bounds, "loss", json_integer(model->losses));
    json_object_set_new(bounds, "suspicions",
                        model->detector ? json_integer(model->suspicions) : json_null());
    json_object_set_new(bounds, "timeouts",
                        model->timeouts == CHECK_FOREVER ? json_null()
                                                         : json_integer(model->timeouts));
    json_object_set_new(bounds, "late", json_integer(model->late));
    json_object_set_new(bounds, "fifo", json_boolean(model->fifo));
    json_object_set_new(bounds, "fencing", json_boolean(model->fencing));
    return bounds;
}

static json_t *counterexample_json(const struct check_request *request,
                                   const struct check_result *result, const struct replay *replay) {
    if (!replay->made) return json_null();
    const struct check_path *path = &result->path[result->violated];
    char *text = NULL;
    size_t size = 0;
    FILE *memory = open_memstream(&text, &size);
    if (!memory) system_error("out of memory");
    trace_write_json(&replay->trace, replay->scenario.title, memory);
    fclose(memory);
    json_t *trace = json_loads(text, 0, NULL);
    free(text);
    json_t *report =
        json_pack("{s:s, s:I, s:s}", "property", property_name(request, result->violated), "steps",
                  (json_int_t)path->count, "why", sim_verdicts(&replay->sim)[result->violated].why);
    json_object_set_new(report, "repeats_from",
                        path->cycle < path->count ? json_integer((json_int_t)path->cycle + 1)
                                                  : json_null());
    json_object_set_new(report, "trace", trace ? trace : json_null());
    return report;
}

static json_t *verdicts_json(const struct check_request *request,
                             const struct check_result *result) {
    json_t *verdicts = json_object();
    struct properties properties = sim_properties(request->model.algorithm);
    for (int i = 0; i < properties.count; i++)
        if (is_decided(request, i))
            json_object_set_new(verdicts, properties.name[i],
                                json_string(verdict_word(result->verdict[i])));
    return verdicts;
}

static json_t *unknown_json(const struct check_request *request,
                            const struct check_result *result) {
    json_t *reasons = json_object();
    struct properties properties = sim_properties(request->model.algorithm);
    char why[240];
    for (int i = 0; i < properties.count; i++)
        if (is_decided(request, i) && result->verdict[i] == UNKNOWN)
            json_object_set_new(reasons, properties.name[i],
                                json_string(why_unknown(request, result, i, why, sizeof why)));
    return reasons;
}

static json_t *likely_json(const struct check_request *request, const struct check_result *result) {
    json_t *names = json_array();
    struct properties properties = sim_properties(request->model.algorithm);
    for (int i = 0; i < properties.count; i++)
        if (is_likely(request, result, i))
            json_array_append_new(names, json_string(properties.name[i]));
    return names;
}

static json_t *report_json(const struct check_request *request, const struct check_result *result,
                           const struct replay *replay) {
    const struct check_model *model = &request->model;
    json_t *report = json_pack("{s:s, s:i, s:i, s:o}", "algorithm", model->algorithm->name,
                               "processes", (int)(model->processes - model->servers), "servers",
                               (int)model->servers, "bounds", bounds_json(model));
    json_object_set_new(report, "states", json_integer((json_int_t)result->states));
    json_object_set_new(report, "transitions", json_integer((json_int_t)result->transitions));
    json_object_set_new(report, "depth", json_integer((json_int_t)result->depth));
    json_object_set_new(report, "seconds", json_real(result->seconds));
    json_object_set_new(report, "memory", json_integer((json_int_t)result->memory));
    json_object_set_new(report, "memory_visited", json_integer((json_int_t)result->memory_visited));
    json_object_set_new(report, "end", json_string(end_words[result->end]));
    json_object_set_new(report, "timers_left", json_boolean(result->timers_left));
    if (is_decided(request, BOUNDED_WAIT) && model->algorithm->problem == CV_MUTEX)
        json_object_set_new(report, "overtakes",
                            result->overtakes < 0 ? json_null() : json_integer(result->overtakes));
    if (request->search.compact)
        json_object_set_new(report, "omission", json_real(result->omission));
    json_object_set_new(report, "verdicts", verdicts_json(request, result));
    json_object_set_new(report, "unknown", unknown_json(request, result));
    json_object_set_new(report, "with_probability_1", likely_json(request, result));
    json_object_set_new(report, "counterexample", counterexample_json(request, result, replay));
    return report;
}

/* ---- Text ---- */

static const char *const end_sentences[] = {
    [CHECK_COMPLETE] = N_("everything within these bounds was explored"),
    [CHECK_VIOLATED] = N_("ended with the first violation; --keep-going decides the rest"),
    [CHECK_MEMORY] = N_("the memory limit was reached: what is unknown may still be violated"),
    [CHECK_DEPTH] = N_("the depth limit was reached: nothing beyond it was explored"),
};

/* What holds, holds for so many entries: more of them may show what these do not. */
static void held_text(const struct check_request *request, const struct check_result *result,
                      int property, FILE *out) {
    const struct check_model *model = &request->model;
    char entries[80] = "", omission[80] = "", overtakes[120] = "";
    bool lock = model->algorithm->problem == CV_MUTEX;
    if (lock && property == BOUNDED_WAIT)
        snprintf(overtakes, sizeof overtakes,
                 result->overtakes == 1 ? _(": others enter at most %d time during one wait")
                                        : _(": others enter at most %d times during one wait"),
                 result->overtakes);
    if (lock)
        snprintf(entries, sizeof entries,
                 model->entries == 1 ? _(" for %u entry of each process")
                                     : _(" for %u entries of each process"),
                 model->entries);
    if (request->search.compact)
        snprintf(omission, sizeof omission, _(", but for an omission of probability %.2g"),
                 result->omission);
    figure(out, _(property_name(request, property)), "%s%s%s%s\n", _("held"), entries, omission,
           overtakes);
}

/* What the model leaves out unless it is asked for, and may break what holds without it. */
static void left_out_text(const struct check_model *model, FILE *out) {
    const struct {
        bool is;
        const char *name;
    } left_out[] = {
        {!model->crashes, N_("crashes")},
        {!model->losses, N_("losses")},
        {!model->late && model->algorithm->timers, N_("late timers")},
        {!model->suspicions && model->algorithm->traits & CV_USES_DETECTOR, N_("wrong suspicions")},
    };
    char text[200] = "";
    for (size_t i = 0; i < sizeof left_out / sizeof *left_out; i++)
        if (left_out[i].is)
            snprintf(text + strlen(text), sizeof text - strlen(text), "%s%s", *text ? ", " : "",
                     _(left_out[i].name));
    if (*text) figure(out, _("without"), "%s\n", text);
}

static void verdict_text(const struct check_request *request, const struct check_result *result,
                         const struct replay *replay, int property, FILE *out) {
    const char *name = property_name(request, property);
    const struct check_path *path = &result->path[property];
    enum verdict_value value = result->verdict[property];
    if (value == UNKNOWN) {
        char why[240];
        figure(out, _(name), _("unknown: %s\n"),
               why_unknown(request, result, property, why, sizeof why));
    } else if (value == HELD) {
        held_text(request, result, property, out);
    } else if (path->cycle < path->count) {
        figure(out, _(name),
               _("violated after %zu steps: the last %zu of them can repeat for ever\n"),
               path->count, path->count - path->cycle);
    } else {
        bool shown = property == result->violated;
        const char *why = shown ? sim_verdicts(&replay->sim)[property].why : "";
        figure(out, _(name), _("violated after %zu steps%s%s\n"), path->count, *why ? ": " : "",
               why);
    }
}

static void report_text(const struct check_request *request, const struct check_result *result,
                        const struct replay *replay, FILE *out) {
    const struct check_model *model = &request->model;
    struct properties properties = sim_properties(model->algorithm);
    char memory[32], time[32];
    fprintf(out, _("%s, %u processes"), model->algorithm->name, model->processes - model->servers);
    if (model->servers)
        fprintf(out, model->servers == 1 ? _(" and %u server") : _(" and %u servers"),
                model->servers);
    fputs(":\n", out);
    figure(out, _("states"), "%llu\n", (unsigned long long)result->states);
    figure(out, _("transitions"), "%llu\n", (unsigned long long)result->transitions);
    figure(out, _("depth"), "%llu\n", (unsigned long long)result->depth);
    figure(out, _("time"), "%s\n", format_duration(time, sizeof time, result->seconds * 1e6));
    figure(out, _("memory"), "%s\n", format_bytes(memory, sizeof memory, (double)result->memory));
    figure(out, _("search"), "%s\n", _(end_sentences[result->end]));
    left_out_text(model, out);
    if (request->search.compact)
        figure(out, _("omission"), _("%.2g: the probability that a state was omitted\n"),
               result->omission);
    if (result->timers_left)
        figure(out, _("timeouts"),
               _("some timers were left when --timeouts was used up: what they would do was not "
                 "explored\n"));
    for (int i = 0; i < properties.count; i++)
        if (is_decided(request, i)) verdict_text(request, result, replay, i, out);
}

static void show_how(const struct check_request *request, const struct check_result *result,
                     const struct replay *replay) {
    printf(_("\nA counterexample to %s, one step per millisecond:\n"),
           _(property_name(request, result->violated)));
    trace_write_text(&replay->trace, stdout);
    if (!request->scenario)
        puts(_("Save it with --save-scenario FILE, and replay it with: "
               "conclave sim --scenario FILE"));
}

int check_report(const struct check_request *request, const struct check_result *result) {
    struct replay replay;
    replay_open(&replay, request, result);
    bool on_stdout =
        request->traced && replay.made && (!request->output || strcmp(request->output, "-") == 0);
    if (replay.made)
        write_files(request, result->violated, &replay);
    else if (request->traced || request->scenario)
        fprintf(stderr,
                _("conclave: nothing was violated, so there is no counterexample to write\n"));
    if (request->json) {
        print_json(report_json(request, result, &replay));
    } else {
        report_text(request, result, &replay, on_stdout ? stderr : stdout);
        if (replay.made && !request->traced) show_how(request, result, &replay);
    }
    replay_close(&replay);
    if (result->violated >= 0) return EXIT_VIOLATED;
    return result->end == CHECK_MEMORY ? EXIT_LIMIT : EXIT_OK;
}
