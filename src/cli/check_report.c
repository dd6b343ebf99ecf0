#include "cli/check_report.h"

#include <stdarg.h>
#include <stdlib.h>

#include "base/parse.h"
#include "judge/mutex.h"
#include "lab/counterexample.h"

/* A counterexample, replayed in the simulator, which is where it is shown from. */
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
    cv_assert(repeats || simulator_agrees); /* or one of the two is wrong */
}

static void replay_close(struct replay *replay) {
    if (!replay->made) return;
    trace_close(&replay->trace);
    sim_close(&replay->sim);
    scenario_free(&replay->scenario);
}

static const char *property_name(const struct check_request *request, int property) {
    return sim_properties(request->model.algorithm->problem).name[property];
}

static bool is_decided(const struct check_request *request, int property) {
    return request->model.algorithm->problem == CV_ELECTION || property != BOUNDED_WAIT;
}

/* ---- Files ---- */

static void write_files(const struct check_request *request, const struct replay *replay) {
    if (request->scenario) {
        FILE *out = open_output(request->scenario);
        scenario_write(&replay->scenario, out);
        close_output(out, request->scenario);
    }
    if (request->traced) {
        const char *path = request->output ? request->output : "-";
        FILE *out = open_output(path);
        trace_write(&replay->trace, request->format, replay->scenario.title, out);
        close_output(out, path);
    }
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
    struct properties properties = sim_properties(request->model.algorithm->problem);
    for (int i = 0; i < properties.count; i++)
        if (is_decided(request, i))
            json_object_set_new(verdicts, properties.name[i],
                                json_string(verdict_word(result->verdict[i])));
    return verdicts;
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
    json_object_set_new(report, "timers_left", json_boolean(result->cut));
    if (request->search.compact)
        json_object_set_new(report, "omission", json_real(result->omission));
    json_object_set_new(report, "verdicts", verdicts_json(request, result));
    json_object_set_new(report, "counterexample", counterexample_json(request, result, replay));
    return report;
}

/* ---- Text ---- */

static const char *const end_sentences[] = {
    [CHECK_COMPLETE] = "everything within these bounds was explored",
    [CHECK_VIOLATED] = "ended with the first violation; --keep-going decides the rest",
    [CHECK_MEMORY] = "the memory limit was reached: what is unknown may still be violated",
    [CHECK_DEPTH] = "nothing beyond the depth asked for was explored",
};

static void figure(FILE *out, const char *name, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static void figure(FILE *out, const char *name, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    fprintf(out, "  %-20s ", name);
    vfprintf(out, format, arguments);
    fputc('\n', out);
    va_end(arguments);
}

static void verdict_text(const struct check_request *request, const struct check_result *result,
                         const struct replay *replay, int property, FILE *out) {
    const char *name = property_name(request, property);
    const struct check_path *path = &result->path[property];
    enum verdict_value value = result->verdict[property];
    if (value != VIOLATED) {
        figure(out, name, "%s", verdict_word(value));
    } else if (path->cycle < path->count) {
        figure(out, name, "violated after %zu steps: the last %zu of them can repeat for ever",
               path->count, path->count - path->cycle);
    } else {
        bool shown = property == result->violated;
        const char *why = shown ? sim_verdicts(&replay->sim)[property].why : "";
        figure(out, name, "violated after %zu steps%s%s", path->count, *why ? ": " : "", why);
    }
}

static void report_text(const struct check_request *request, const struct check_result *result,
                        const struct replay *replay, FILE *out) {
    const struct check_model *model = &request->model;
    struct properties properties = sim_properties(model->algorithm->problem);
    char memory[32], time[32];
    fprintf(out, "%s, %u processes", model->algorithm->name, model->processes - model->servers);
    if (model->servers)
        fprintf(out, " and %u that serve%s", model->servers, model->servers == 1 ? "s" : "");
    fputs(":\n", out);
    figure(out, "states", "%llu", (unsigned long long)result->states);
    figure(out, "transitions", "%llu", (unsigned long long)result->transitions);
    figure(out, "depth", "%llu", (unsigned long long)result->depth);
    figure(out, "time", "%s", format_duration(time, sizeof time, result->seconds * 1e6));
    figure(out, "memory", "%s", format_bytes(memory, sizeof memory, (double)result->memory));
    figure(out, "search", "%s", end_sentences[result->end]);
    if (request->search.compact)
        figure(out, "omission", "%.2g: how likely it is that a state was taken for another",
               result->omission);
    if (result->cut)
        figure(out, "timeouts",
               "timers were left that would have fired beyond --timeouts: no end is known there");
    for (int i = 0; i < properties.count; i++)
        if (is_decided(request, i)) verdict_text(request, result, replay, i, out);
}

static void show_how(const struct check_request *request, const struct check_result *result,
                     const struct replay *replay) {
    printf("\nHow %s comes to be violated, a step a millisecond:\n",
           property_name(request, result->violated));
    trace_write_text(&replay->trace, stdout);
    if (!request->scenario)
        puts("Save it with --scenario FILE, and replay it with: conclave sim --scenario FILE");
}

int check_report(const struct check_request *request, const struct check_result *result) {
    struct replay replay;
    replay_open(&replay, request, result);
    bool on_stdout =
        request->traced && replay.made && (!request->output || strcmp(request->output, "-") == 0);
    if (replay.made)
        write_files(request, &replay);
    else if (request->traced || request->scenario)
        fprintf(stderr, "conclave: nothing was violated, so there is no counterexample to write\n");
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
