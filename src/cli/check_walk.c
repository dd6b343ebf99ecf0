#include "cli/check_walk.h"

#include <stdlib.h>

#include "base/grow.h"
#include "base/parse.h"
#include "lab/check/walk.h"
#include "lab/experiments/counterexample.h"
#include "language/language.h"

/* A walk, and all that it shows as entries of a trace. */
struct view {
    const struct check_request *request;
    struct check_walk walk;
    struct trace trace;
    uint32_t walked, processes, flights, steps; /* the first entry of each */
};

static size_t parse_steps(const char *text, uint32_t **steps) {
    char *copy = strdup(text), *rest = copy;
    size_t count = 0, room = 0;
    uint64_t number;
    if (!copy) system_error("out of memory");
    for (char *word; strcmp(text, "0") != 0 && (word = strsep(&rest, ","));) {
        if (parse_u64(word, &number) != 0 || !number || number > UINT32_MAX)
            usage_error("walk: '%s' is not the number of a step; give for instance 2,1,4, or 0",
                        word);
        *steps = grown(*steps, &room, count + 1, sizeof **steps);
        (*steps)[count++] = (uint32_t)number;
    }
    free(copy);
    return count;
}

/* ---- As entries ---- */

static enum trace_type type_of(enum check_move_type type) {
    static const enum trace_type types[] = {
        [MOVE_RECEIVE] = TR_RECEIVE, [MOVE_LOSE] = TR_LOST,         [MOVE_MISS] = TR_LOST,
        [MOVE_TIMEOUT] = TR_TIMER,   [MOVE_ACQUIRE] = TR_ASK,       [MOVE_RELEASE] = TR_DONE,
        [MOVE_CRASH] = TR_CRASH,     [MOVE_CAMPAIGN] = TR_CAMPAIGN, [MOVE_RECOVER] = TR_RECOVER,
        [MOVE_SUSPECT] = TR_SUSPECT, [MOVE_TRUST] = TR_TRUST,
    };
    return types[type];
}

static void add_steps(struct view *view, const struct walk_step *steps, size_t count) {
    for (size_t i = 0; i < count; i++) {
        const struct check_move *move = &steps[i].move;
        bool recovers = move->type == MOVE_RECOVER;
        uint32_t entry = trace_add(
            &view->trace,
            (struct trace_entry){.type = type_of(move->type),
                                 .process = move->process,
                                 .peer = move->peer,
                                 .kind = steps[i].message.kind,
                                 .arg = recovers ? view->request->model.amnesia : move->arg});
        if (steps[i].message.body)
            trace_body(&view->trace, entry, steps[i].message.body, steps[i].message.size);
    }
}

/* The state of a server where there are some, else of anyone, as in traces. */
static void add_processes(struct view *view) {
    uint32_t servers = view->request->model.servers;
    for (cv_pid p = 1; p <= view->request->model.processes; p++) {
        const struct walk_process *process = &view->walk.process[p];
        uint32_t entry = trace_add(&view->trace, (struct trace_entry){.process = p});
        if (!process->down && (!servers || p <= servers))
            trace_state(&view->trace, entry, process->state, process->rows, process->first);
    }
}

static void add_flights(struct view *view) {
    for (size_t i = 0; i < view->walk.flight_count; i++) {
        const struct walk_message *message = &view->walk.flight[i];
        uint32_t entry = trace_add(&view->trace, (struct trace_entry){.type = TR_SEND,
                                                                      .process = message->from,
                                                                      .peer = message->to,
                                                                      .kind = message->kind});
        trace_body(&view->trace, entry, message->body, message->size);
    }
}

static void view_open(struct view *view) {
    trace_open(&view->trace, &view->request->config);
    view->walked = (uint32_t)view->trace.count;
    add_steps(view, view->walk.walked, view->walk.walked_count);
    view->processes = (uint32_t)view->trace.count;
    add_processes(view);
    view->flights = (uint32_t)view->trace.count;
    add_flights(view);
    view->steps = (uint32_t)view->trace.count;
    add_steps(view, view->walk.step, view->walk.step_count);
}

static void view_close(struct view *view) {
    trace_close(&view->trace);
    check_walk_free(&view->walk);
}

/* ---- JSON ---- */

/* What entry number `i` of a list has beside what every entry of a trace has. */
typedef void about_fn(const struct view *view, size_t i, FILE *out);

static void list_json(const struct view *view, const char *name, uint32_t from, size_t count,
                      about_fn *about, FILE *out) {
    fprintf(out, ",\n\"%s\":[", name);
    for (size_t i = 0; i < count; i++) {
        fputs(i ? ",\n{\"entry\":" : "\n{\"entry\":", out);
        trace_write_entry_json(&view->trace, from + i, out);
        if (about) about(view, i, out);
        fputc('}', out);
    }
    fputc(']', out);
}

static void properties_json(const struct view *view, unsigned broken, FILE *out) {
    struct properties properties = sim_properties(view->request->model.algorithm);
    const char *before = "";
    fputs(",\"violates\":[", out);
    for (int i = 0; i < properties.count; i++) {
        if (!(broken & 1u << i)) continue;
        fprintf(out, "%s\"%s\"", before, properties.name[i]);
        before = ",";
    }
    fputc(']', out);
}

static void step_json(const struct view *view, const struct walk_step *step, FILE *out) {
    fputs(",\"choices\":[", out);
    for (unsigned i = 0; i < step->move.choices; i++)
        fprintf(out, "%s%u", i ? "," : "", step->move.choice[i]);
    fputc(']', out);
    properties_json(view, step->broken, out);
}

static void about_walked(const struct view *view, size_t i, FILE *out) {
    step_json(view, &view->walk.walked[i], out);
}

static void about_step(const struct view *view, size_t i, FILE *out) {
    step_json(view, &view->walk.step[i], out);
}

static const char *standing_of(const struct walk_process *process) {
    return process->down     ? "down"
           : process->inside ? "inside"
           : process->waits  ? "waits"
           : process->leads  ? "leads"
                             : "";
}

static void about_process(const struct view *view, size_t i, FILE *out) {
    fprintf(out, ",\"standing\":\"%s\"", standing_of(&view->walk.process[i + 1]));
}

static void write_json(const struct view *view, FILE *out) {
    const struct check_walk *walk = &view->walk;
    fprintf(out, "{\"algorithm\":\"%s\"", view->request->model.algorithm->name);
    list_json(view, "walked", view->walked, walk->walked_count, about_walked, out);
    list_json(view, "processes", view->processes, view->request->model.processes, about_process,
              out);
    list_json(view, "flights", view->flights, walk->flight_count, NULL, out);
    list_json(view, "steps", view->steps, walk->step_count, about_step, out);
    fprintf(out, ",\n\"final\":%s", walk->final ? "true" : "false");
    properties_json(view, walk->broken, out);
    fputs("}\n", out);
}

/* ---- Text ---- */

static void violations_text(const struct view *view, unsigned broken, FILE *out) {
    struct properties properties = sim_properties(view->request->model.algorithm);
    for (int i = 0; i < properties.count; i++)
        if (broken & 1u << i) fprintf(out, _("  (violates %s)"), _(properties.name[i]));
}

static void step_text(const struct view *view, const struct walk_step *step, uint32_t entry,
                      FILE *out) {
    trace_describe(&view->trace, entry, out);
    for (unsigned i = 0; i < step->move.choices; i++)
        fprintf(out, "%s%u", i ? "," : "  ? ", step->move.choice[i]);
    violations_text(view, step->broken, out);
    fputc('\n', out);
}

static void processes_text(const struct view *view, FILE *out) {
    for (cv_pid p = 1; p <= view->request->model.processes; p++) {
        const struct walk_process *process = &view->walk.process[p];
        const struct trace_entry *entry = &view->trace.entry[view->processes + p - 1];
        char name[ROSTER_NAME_MAX];
        fprintf(out, "  %-12s  %s%s\n", roster_name(&view->trace.roster, p, name),
                process->down     ? _("is down")
                : process->inside ? _("is inside  ")
                : process->waits  ? _("waits  ")
                : process->leads  ? _("leads  ")
                                  : "",
                entry->note ? view->trace.text + entry->note : "");
    }
}

static void write_text(const struct view *view, FILE *out) {
    const struct check_walk *walk = &view->walk;
    fprintf(out, walk->walked_count == 1 ? _("%s, after %zu step\n") : _("%s, after %zu steps\n"),
            view->request->model.algorithm->name, walk->walked_count);
    for (size_t i = 0; i < walk->walked_count; i++) {
        fputs("  ", out);
        step_text(view, &walk->walked[i], view->walked + (uint32_t)i, out);
    }
    fputs(_("the processes:\n"), out);
    processes_text(view, out);
    if (walk->flight_count) fputs(_("in flight:\n"), out);
    for (size_t i = 0; i < walk->flight_count; i++) {
        trace_describe(&view->trace, view->flights + (uint32_t)i, out);
        fputc('\n', out);
    }
    fputs(walk->step_count ? _("what can happen:\n") : _("nothing can happen any more\n"), out);
    for (size_t i = 0; i < walk->step_count; i++) {
        fprintf(out, "%4zu  ", i + 1);
        step_text(view, &walk->step[i], view->steps + (uint32_t)i, out);
    }
    if (walk->broken) {
        fputs(_("this is an end"), out);
        violations_text(view, walk->broken, out);
        fputc('\n', out);
    }
}

/* ---- The whole ---- */

static void save_scenario(const struct view *view) {
    const struct check_request *request = view->request;
    struct scenario scenario;
    char error[SIM_ERROR_MAX];
    if (counterexample_scenario(&scenario, &request->config, &request->model, &view->walk.path, -1,
                                error) != 0)
        system_error("%s", error);
    FILE *out = open_output(request->scenario, request->force);
    scenario_write(&scenario, out);
    close_output(out, request->scenario);
    scenario_free(&scenario);
}

int check_walk_report(const struct check_request *request, const char *text) {
    struct view view = {.request = request};
    uint32_t *steps = NULL;
    size_t count = parse_steps(text, &steps);
    int wrong = check_walk(&request->model, steps, count, &view.walk);
    free(steps);
    if (wrong < 0) system_error("out of address space");
    if (wrong)
        usage_error("walk: there are %zu steps from the state where number %d of yours is taken",
                    view.walk.step_count, wrong);
    view_open(&view);
    if (request->scenario)
        save_scenario(&view);
    else if (request->json)
        write_json(&view, stdout);
    else
        write_text(&view, stdout);
    view_close(&view);
    return 0;
}
