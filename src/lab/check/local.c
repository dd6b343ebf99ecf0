/* One step of one process: the algorithm's step function, run on a copy of the local state. */
#include "lab/check/system.h"

#include "process/contract.h"

static cv_pid process_of_id(const struct check_model *model, uint64_t id) {
    const uint64_t *ids = model->env[1].ids;
    for (cv_pid p = 1; ids && p <= model->processes; p++)
        if (ids[p] == id) return p;
    return CV_NOBODY;
}

/* ---- Effects ---- */

static void apply_sends(struct system *system, cv_pid from) {
    const struct cv_out *out = &system->out;
    for (uint32_t at = 0; at < out->used;) {
        const struct cv_send *send = (const void *)(out->sends + at);
        struct message_text text;
        text.head = (struct message){from, send->kind, (uint16_t)send->size};
        cv_assert(send->size <= MESSAGE_MAX &&
                  send->kind < system->model->algorithm->message_count);
        memcpy(text.body, send + 1, send->size);
        uint32_t number = message_put(system, &text);
        cv_pid first = send->to, last = send->to;
        if (send->to >= CV_SERVERS) {
            first = 1;
            last = send->to == CV_SERVERS ? system->model->servers : system->model->processes;
        }
        for (cv_pid to = first; to <= last; to++)
            if (to != from) draft_send(system, to, number);
        at += (uint32_t)sizeof *send + ((send->size + 7) & ~7u);
    }
}

static void told_leader(struct system *system, struct trial *trial, struct local *local,
                        const struct cv_tell *tell) {
    bool leads = tell->what == CV_ELECTED;
    bool led = local->flags & LOCAL_LEADS && local->term == tell->term;
    local->flags &= (uint8_t) ~(LOCAL_LEADS | LOCAL_DECIDED);
    local->leader = CV_NOBODY;
    local->term = 0;
    if (tell->what == CV_LEADERLESS) return;
    local->flags |= leads ? LOCAL_LEADS | LOCAL_DECIDED : LOCAL_DECIDED;
    local->leader = tell->arg ? process_of_id(system->model, tell->arg) : CV_NOBODY;
    local->term = tell->term;
    if (leads && !led) trial->outcome.flags |= OUT_ELECTED, trial->outcome.value = tell->term;
}

/* Tokens are numbered in order of appearance, so that few bits suffice. */
static uint32_t token_number(struct system *system, uint64_t token) {
    uint32_t i = 0;
    while (i < system->tokens && system->token[i] != token) i++;
    cv_assert(i < TOKENS_MAX);
    if (i == system->tokens) system->token[system->tokens++] = token;
    return i;
}

static void apply_tell(struct system *system, struct trial *trial, struct local *local,
                       const struct cv_tell *tell) {
    if (tell->what == CV_WOKEN || tell->what == CV_ROUND) return;
    trial->outcome.flags &= (uint16_t)~OUT_INVISIBLE;
    if (tell->what == CV_ENTERED) {
        if (local->phase == APP_INSIDE) contract_inside(system->model->algorithm, local->self);
        local->phase = APP_INSIDE;
        trial->outcome.flags |= OUT_ENTERED;
        if (system->model->fencing)
            local->token = trial->outcome.value = token_number(system, tell->arg);
    } else if (tell->what == CV_LEFT) {
        local->phase = APP_IDLE;
        local->token = 0;
        local->flags &= (uint8_t)~LOCAL_SUPERSEDED;
    } else {
        told_leader(system, trial, local, tell);
    }
}

static void apply(struct system *system, struct trial *trial, struct local *local) {
    const struct cv_out *out = &system->out;
    const struct local_layout *layout = &system->layout[local->self];
    if (out->save && layout->saved)
        memcpy((unsigned char *)local + layout->saved, local_state(local), layout->durable);
    local->timers = (uint8_t)((local->timers | out->timers_set) & ~out->timers_cancelled);
    if (out->timers_set | out->timers_cancelled) trial->outcome.flags |= OUT_TIMER_CHANGED;
    apply_sends(system, local->self);
    for (unsigned i = 0; i < out->tells; i++) apply_tell(system, trial, local, &out->tell[i]);
}

/* ---- The step ---- */

/* A choice is part of the step that asked for it: every answer is another result of it. */
static void choose(struct system *system, const struct trial *asked, uint32_t answers) {
    unsigned depth = asked->move.choices;
    size_t sends = system->drafts.sends;
    cv_assert(depth < CHECK_CHOICES_MAX && answers <= UINT8_MAX);
    for (uint32_t answer = 0; answer < answers; answer++) {
        struct trial trial = *asked;
        struct cv_event event = {.type = CV_CHOICE, .arg = answer};
        trial.move.choice[trial.move.choices++] = (uint8_t)answer;
        memcpy(local_scratch(system, depth + 1), local_scratch(system, depth), system->local_size);
        /* Each result sends what was sent so far. */
        uint32_t first = (uint32_t)system->drafts.sends;
        for (size_t i = asked->first_send; i < sends; i++)
            draft_send(system, system->drafts.send[i].to, system->drafts.send[i].message);
        trial.first_send = first;
        local_step(system, &trial, &event);
    }
}

/* The judge of logs looks at it. */
static void log_changed(const struct system *system, struct trial *trial) {
    if (!system->model->algorithm->log) return;
    trial->outcome.flags &= (uint16_t)~OUT_INVISIBLE;
    trial->outcome.flags |= OUT_LOG_CHANGED;
}

void local_step(struct system *system, struct trial *trial, const struct cv_event *event) {
    struct local *local = local_scratch(system, trial->move.choices);
    const struct cv_algorithm *code = system->model->algorithm;
    struct cv_out *out = &system->out;
    struct cv_log before = {0}, after = {0};
    cv_out_reset(out);
    if (code->log) code->log(local_state(local), &before);
    contract_step(code, local_state(local), &system->model->env[local->self], event, out);
    if (code->log) code->log(local_state(local), &after);
    if (out->save || before.last != after.last || before.commit != after.commit ||
        before.leads != after.leads)
        log_changed(system, trial);
    uint32_t answers = out->choose;
    apply(system, trial, local);
    if (answers)
        choose(system, trial, answers);
    else
        draft_end(system, trial, local);
}
