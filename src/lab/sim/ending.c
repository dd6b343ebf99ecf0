/* How a run ended, for its pictures: what was violated, and in a deadlock who waits for whom. */
#include <stdlib.h>
#include <string.h>

#include "lab/sim/internal.h"
#include "language/language.h"

enum { WAITING_MAX = 64 }; /* processes whose waits somebody would look at */

/* ---- What was violated ---- */

static bool same_reason(const struct verdict *a, const struct verdict *b) {
    return a->value == VIOLATED && b->value == VIOLATED && strcmp(a->why, b->why) == 0;
}

/* "deadlock, starvation violated: p1 waits for ever": properties with the same reason share it. */
static void tell_violated(struct sim *sim) {
    struct properties properties = sim_properties(sim->algorithm);
    const struct verdict *verdict = sim_verdicts(sim);
    char *text = sim->trace->violated;
    size_t used = 0, size = TRACE_VIOLATED_MAX;
    for (int i = 0; i < properties.count; i++) {
        int first = 0;
        while (!same_reason(&verdict[first], &verdict[i]) && first < i) first++;
        if (first < i || verdict[i].value != VIOLATED) continue;
        if (!used || verdict[i].at_us < sim->trace->violated_us)
            sim->trace->violated_us = verdict[i].at_us;
        for (int k = i; k < properties.count && used < size; k++)
            if (same_reason(&verdict[k], &verdict[i]))
                used += (size_t)snprintf(text + used, size - used, "%s%s", k == i ? "" : ", ",
                                         _(properties.name[k]));
        if (used < size)
            used += (size_t)snprintf(text + used, size - used, _(" violated%s%s\n"),
                                     *verdict[i].why ? ": " : "", verdict[i].why);
        if (used >= size) return;
    }
}

/* ---- Who waits for whom ---- */

/* What passed between a process that waits and each other one since it asked. */
struct asked {
    bool *sent, *answered; /* by pid */
};

static void ask_again(const struct sim *sim, cv_pid p, struct asked *asked) {
    const struct trace *trace = sim->trace;
    size_t since = trace->count;
    memset(asked->sent, 0, sim->roster.processes + 1);
    memset(asked->answered, 0, sim->roster.processes + 1);
    while (since > 1 &&
           !(trace->entry[since - 1].type == TR_ASK && trace->entry[since - 1].process == p))
        since--;
    for (size_t i = since; i < trace->count; i++) {
        const struct trace_entry *entry = &trace->entry[i];
        if (entry->process != p) continue;
        if (entry->type == TR_SEND) {
            asked->sent[entry->peer] = true;
            asked->answered[entry->peer] = false;
        }
        if (entry->type == TR_RECEIVE) asked->answered[entry->peer] = true;
    }
}

static bool is_queued(const struct sim *sim, cv_pid p, cv_pid at) {
    struct cv_env env = sim->env;
    struct cv_layout layout = {0};
    env.self = at;
    sim->algorithm->layout(&env, &layout);
    return !sim->process[at].crashed &&
           record_queues(sim->algorithm->state, sim_state(sim, at, ALGORITHM), layout.first, p);
}

static void add_wait(struct sim *sim, cv_pid p, cv_pid at) {
    struct trace *trace = sim->trace;
    struct trace_wait wait = {p, at, CV_NOBODY};
    cv_pid holder = sim->process[at].crashed
                        ? CV_NOBODY
                        : record_shown_pid(sim->algorithm->state, sim_state(sim, at, ALGORITHM));
    if (holder && holder != p && holder != at) wait.whom = holder, wait.at = at;
    for (size_t i = 0; i < trace->wait_count; i++)
        if (trace->wait[i].who == p && trace->wait[i].whom == wait.whom) return;
    trace->wait[trace->wait_count++] = wait;
}

/* It waits for those in whose queues it is, or for whomever these serve, and for those that cannot
 * answer any more.  If there is nobody of the kind, it waits for the only one that has not. */
static void find_waits_of(struct sim *sim, cv_pid p, struct asked *asked) {
    uint32_t n = sim->roster.processes, silent = 0;
    cv_pid last = CV_NOBODY;
    size_t before = sim->trace->wait_count;
    ask_again(sim, p, asked);
    for (cv_pid q = 1; q <= n; q++) {
        bool unanswered = asked->sent[q] && !asked->answered[q];
        if ((asked->sent[q] && is_queued(sim, p, q)) || (unanswered && sim->process[q].crashed))
            add_wait(sim, p, q);
        silent += unanswered;
        if (unanswered) last = q;
    }
    if (sim->trace->wait_count == before && silent == 1) add_wait(sim, p, last);
}

static void find_waits(struct sim *sim) {
    uint32_t n = sim->roster.processes, found = 0;
    struct asked asked = {calloc(n + 1, 1), calloc(n + 1, 1)};
    sim->trace->wait = calloc((size_t)WAITING_MAX * n + 1, sizeof *sim->trace->wait);
    cv_assert(asked.sent && asked.answered && sim->trace->wait);
    for (cv_pid p = 1; p <= n && found < WAITING_MAX; p++) {
        if (!sim->judge.of[p].waiting) continue;
        find_waits_of(sim, p, &asked);
        found++;
    }
    free(asked.sent);
    free(asked.answered);
}

/* ---- The tree ---- */

static void find_tree(struct sim *sim) {
    const struct cv_record *record = sim->algorithm->state;
    const struct cv_field *toward = NULL;
    for (unsigned i = 0; i < record->field_count; i++)
        if (record->fields[i].type == CV_PID && strcmp(record->fields[i].name, "toward") == 0)
            toward = &record->fields[i];
    if (!toward) return;
    cv_pid *of = calloc(sim->roster.processes + 1, sizeof *of);
    cv_assert(of);
    for (cv_pid p = 1; p <= sim->roster.processes; p++)
        of[p] = (cv_pid)record_number(toward, sim_state(sim, p, ALGORITHM));
    sim->trace->network.toward = of;
}

void ending_record(struct sim *sim) {
    tell_violated(sim);
    find_tree(sim);
    bool lock = sim->algorithm->problem != CV_ELECTION;
    if (lock && sim->judge.verdict[DEADLOCK].value == VIOLATED) find_waits(sim);
}
