#include "lab/sim/replay.h"

#include <stdlib.h>

#include "lab/sim/internal.h"
#include "language/language.h"

enum { SHOWN_MAX = 24, STATE_BYTES = 512 };

int replay_open(struct replay *replay, const struct sim_config *config) {
    struct trace *trace = &replay->trace;
    *replay = (struct replay){.config = *config};
    if (sim_open(&replay->sim) != 0) return -1;
    trace_open(trace, config);
    sim_run(&replay->sim, config, trace);
    replay->first = calloc(trace->count + 2, sizeof *replay->first);
    cv_assert(replay->first);
    for (size_t i = 1; i < trace->count; i++)
        if (i == 1 || trace->entry[i].event != trace->entry[i - 1].event)
            replay->first[++replay->steps] = i;
    replay->first[replay->steps + 1] = trace->count;
    return 0;
}

void replay_close(struct replay *replay) {
    trace_close(&replay->trace);
    sim_close(&replay->sim);
    free(replay->first);
}

/* ---- Processes ---- */

static bool takes_part(const struct replay *replay, size_t step, cv_pid p) {
    for (size_t i = replay->first[step]; i < replay->first[step + 1]; i++)
        if (replay->trace.entry[i].process == p) return true;
    return false;
}

static const char *condition(const struct sim *sim, cv_pid p) {
    static const char *const phases[] = {
        [APP_IDLE] = "", [APP_WAITING] = N_("waits"), [APP_INSIDE] = N_("INSIDE")};
    if (sim->process[p].crashed) return _("CRASHED");
    if (sim->process[p].paused) return _("PAUSED");
    return sim->algorithm->problem == CV_MUTEX ? _(phases[sim->process[p].app]) : "";
}

static void show_timers(const struct sim *sim, cv_pid p, FILE *out) {
    const struct machine *machine = &sim->machine[ALGORITHM];
    for (unsigned t = 0; t < machine->code->timers; t++) {
        uint32_t event = machine->timer[(size_t)p * machine->code->timers + t];
        if (!event) continue;
        if (machine->code->timers > 1)
            fprintf(out, _("; timer %u"), t);
        else
            fputs(_("; timer"), out);
        if (!(sim->event[event].flags & (EVENT_ARMED | EVENT_PARKED)))
            fprintf(out, _(" at %.3f ms"), (double)sim->event[event].node.time / 1e3);
    }
}

static void show_fields(const struct sim *sim, const struct cv_record *record, cv_pid p,
                        const struct cv_layout *layout, FILE *out) {
    char text[STATE_BYTES];
    int length = record_print(text, sizeof text, record, sim_state(sim, p, ALGORITHM), layout->rows,
                              layout->first, CV_INNER, &sim->roster);
    fprintf(out, " %s%s", text, length >= STATE_BYTES ? "..." : "");
}

/* A state without the columns of its rows, but for the links, by which queues are printed. */
static struct cv_record head_of(const struct cv_record *state) {
    struct cv_record head = *state;
    head.row_field_count = 0;
    for (unsigned i = 0; i < state->row_field_count; i++)
        if (state->row_fields[i].type == CV_LINK)
            head.row_fields = &state->row_fields[i], head.row_field_count = 1;
    return head;
}

/* The head and the rows of the state apart, for a field of one may be called as one of the other.
 */
static void show_process(struct replay *replay, cv_pid p, bool acts, FILE *out) {
    struct sim *sim = &replay->sim;
    struct cv_layout layout = {0};
    struct cv_env env = sim->env;
    struct cv_record head = head_of(sim->algorithm->state), rows = *sim->algorithm->state;
    char name[ROSTER_NAME_MAX];
    env.self = p;
    if (sim->algorithm->problem == CV_ELECTION) topology_env(&sim->topology, p, &env);
    sim->algorithm->layout(&env, &layout);
    rows.field_count = 0;
    fprintf(out, "%s %-12s %-8s", acts ? " *" : "  ", roster_name(&sim->roster, p, name),
            condition(sim, p));
    show_fields(sim, &head, p, &layout, out);
    if (layout.rows) show_fields(sim, &rows, p, &layout, out);
    show_timers(sim, p, out);
    fputc('\n', out);
}

/* Of many processes those are shown that take part, and the first. */
static void show_processes(struct replay *replay, size_t step, FILE *out) {
    uint32_t n = replay->sim.roster.processes, shown = 0;
    fputs(_("Processes:\n"), out);
    for (cv_pid p = 1; p <= n; p++) {
        bool acts = takes_part(replay, step, p);
        if (!acts && shown >= SHOWN_MAX) continue;
        show_process(replay, p, acts, out);
        shown++;
    }
    if (shown < n) fprintf(out, _("   and %u more\n"), n - shown);
}

/* ---- Messages ---- */

static void show_messages(const struct replay *replay, size_t step, FILE *out) {
    const struct trace *trace = &replay->trace;
    size_t end = replay->first[step + 1], shown = 0;
    for (size_t i = 1; i < end; i++) {
        const struct trace_entry *entry = &trace->entry[i];
        char from[ROSTER_NAME_MAX], to[ROSTER_NAME_MAX], message[256];
        if (entry->type != TR_SEND || (entry->match && entry->match < end)) continue;
        if (shown++ == 0) fputs(_("On the way:\n"), out);
        if (shown > SHOWN_MAX) continue;
        fprintf(out, "   %s -> %s  %s\n", roster_name(&trace->roster, entry->process, from),
                roster_name(&trace->roster, entry->peer, to),
                trace_message(trace, entry, message, sizeof message));
    }
    if (shown > SHOWN_MAX) fprintf(out, _("   and %zu more\n"), shown - SHOWN_MAX);
    if (!shown) fputs(_("Nothing is on the way.\n"), out);
}

void replay_show(struct replay *replay, size_t step, FILE *out) {
    replay->config.event_limit = replay->trace.entry[replay->first[step]].event;
    sim_run(&replay->sim, &replay->config, NULL);
    fprintf(out, _("Step %zu of %zu:\n"), step, replay->steps);
    for (size_t i = replay->first[step]; i < replay->first[step + 1]; i++)
        trace_write_entry(&replay->trace, i, out);
    show_processes(replay, step, out);
    show_messages(replay, step, out);
}
