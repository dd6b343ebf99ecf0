#include "lab/peers/repeat.h"

#include <stdio.h>
#include <stdlib.h>

#include "process/contract.h"
#include "process/roster.h"

static int fail(const struct repeat *repeat, char *error, const char *why) {
    snprintf(error, RECORD_ERROR_MAX, "%.200s: process %u, step %zu: %s", repeat->run->path,
             repeat->run->self, repeat->next + 1, why);
    return -1;
}

void repeat_close(struct repeat *repeat) {
    free(repeat->state);
    free(repeat->saved);
    free(repeat->saved_before);
    free(repeat->out.sends);
    free(repeat->body);
    *repeat = (struct repeat){0};
}

/* ---- The beginning of a run ---- */

static void *room(size_t size) {
    void *memory = calloc(1, size + 8);
    cv_assert(memory);
    return memory;
}

static void lay_out(struct repeat *repeat, const struct records *records, cv_pid self) {
    const struct cv_algorithm *code = records->group.algorithm;
    repeat->records = records;
    repeat->env = group_env(&records->group, self);
    repeat->layout = contract_layout(code, &repeat->env);
    repeat->codec = (struct codec){code->messages, code->message_count, repeat->env.processes,
                                   repeat->layout.message_rows};
    repeat->size = code->state->size + (size_t)repeat->layout.rows * code->state->row_size;
    repeat->state = room(repeat->size);
    repeat->saved = room(repeat->layout.durable);
    repeat->saved_before = room(repeat->layout.durable);
    repeat->out.room = cv_out_room(code, &repeat->layout);
    repeat->out.sends = room(repeat->out.room);
    repeat->body = room(codec_room(&repeat->codec));
}

/* A process that comes back has what it had saved last; what it was about to save when it was
 * killed may be missing. */
static int find_prefix(struct repeat *repeat, char *error) {
    const struct record_run *run = repeat->run;
    uint32_t size = repeat->layout.durable;
    if (!(run->flags & RECORD_AGAIN) || run->flags & RECORD_AMNESIA) memset(repeat->saved, 0, size);
    if (hash_long(repeat->saved, size, 0) == run->prefix) return 0;
    if (run->flags & RECORD_AGAIN && hash_long(repeat->saved_before, size, 0) == run->prefix)
        return memcpy(repeat->saved, repeat->saved_before, size), 0;
    return fail(
        repeat, error,
        "it begins with other durable data than it had saved, or the run before is missing");
}

int repeat_open(struct repeat *repeat, const struct records *records, const struct record_run *run,
                char error[RECORD_ERROR_MAX]) {
    if (!repeat->state) lay_out(repeat, records, run->self);
    repeat->run = run;
    repeat->next = 0;
    repeat->armed = 0;
    repeat->choosing = false;
    repeat->application = IDLE;
    repeat->env.detector = run->flags & RECORD_DETECTOR;
    if (find_prefix(repeat, error) != 0) return -1;
    memcpy(repeat->saved_before, repeat->saved, repeat->layout.durable);
    memset(repeat->state, 0, repeat->size);
    memcpy(repeat->state, repeat->saved, repeat->layout.durable);
    return 0;
}

/* ---- Whether an event can have happened ---- */

static const char *check_call(struct repeat *repeat, uint32_t what) {
    const struct cv_algorithm *code = repeat->records->group.algorithm;
    bool lock = code->problem == CV_MUTEX;
    if (cv_serves(&repeat->env) || (what == CV_CAMPAIGN) == lock || !what || what > CV_CAMPAIGN)
        return "its application asks for what it cannot have";
    if (what == CV_ACQUIRE && repeat->application != IDLE)
        return "its application asks for the lock twice";
    if (what == CV_RELEASE && repeat->application != INSIDE && repeat->application != LEFT_EARLY)
        return "its application is done with a lock that it does not have";
    if (what == CV_ACQUIRE) repeat->application = WAITING;
    if (what == CV_RELEASE) repeat->application = repeat->application == INSIDE ? LEAVING : IDLE;
    return NULL;
}

static const char *check_event(struct repeat *repeat, const struct record_step *step) {
    const struct cv_algorithm *code = repeat->records->group.algorithm;
    const struct group *group = &repeat->records->group;
    uint32_t arg = step->event.arg;
    if (repeat->choosing != (step->event.type == CV_CHOICE)) return "a choice is out of place";
    switch (step->event.type) {
    case CV_START:
    case CV_RESTART:
        if ((step->event.type == CV_RESTART) != !!(repeat->run->flags & RECORD_AGAIN))
            return "it starts otherwise than its record says";
        return NULL;
    case CV_RECV:
        if (!group_reaches(group, step->event.from, repeat->env.self))
            return "a message is not of a neighbour";
        repeat->event.body = repeat->body;
        return codec_read(&repeat->codec, step->event.kind, step->body, step->event.size,
                          repeat->body);
    case CV_TIMEOUT:
        if (arg >= code->timers || !(repeat->armed & 1u << arg))
            return "a timer runs out that was not set";
        repeat->armed &= (uint8_t) ~(1u << arg);
        return NULL;
    case CV_CALL: return check_call(repeat, arg);
    case CV_CHOICE: return arg < repeat->out.choose ? NULL : "a choice is out of range";
    case CV_DOWN:
    case CV_UP:
        if (!arg || arg > group->processes || arg == repeat->env.self ||
            !(code->traits & CV_USES_DETECTOR) || !repeat->env.detector)
            return "a suspicion is out of place";
        return NULL;
    case CV_HAND_ON:
        if (!arg || arg > group->processes || arg == repeat->env.self ||
            !(code->traits & CV_HANDS_ON))
            return "it hands on what it holds to nobody";
        return NULL;
    }
    return "an event is of a kind that does not exist";
}

/* ---- Steps ---- */

static void take_effects(struct repeat *repeat) {
    const struct cv_out *out = &repeat->out;
    if (out->save) {
        memcpy(repeat->saved_before, repeat->saved, repeat->layout.durable);
        memcpy(repeat->saved, repeat->state, repeat->layout.durable);
    }
    repeat->armed = (uint8_t)((repeat->armed | out->timers_set) & ~out->timers_cancelled);
    repeat->choosing = out->choose;
    for (unsigned i = 0; i < out->tells; i++) {
        bool inside = repeat->application == INSIDE; /* it has not asked to leave, as of a lease */
        if (out->tell[i].what == CV_ENTERED) repeat->application = INSIDE;
        if (out->tell[i].what == CV_LEFT) repeat->application = inside ? LEFT_EARLY : IDLE;
    }
}

int repeat_step(struct repeat *repeat, char error[RECORD_ERROR_MAX]) {
    const struct cv_algorithm *code = repeat->records->group.algorithm;
    const struct record_step *step = &repeat->run->step[repeat->next];
    repeat->event = step->event;
    const char *wrong = check_event(repeat, step);
    if (wrong) return fail(repeat, error, wrong);
    cv_out_reset(&repeat->out);
    contract_step(code, repeat->state, &repeat->env, &repeat->event, &repeat->out);
    if (record_hash(repeat->state, repeat->size, &repeat->out) != step->hash)
        return fail(repeat, error, "the algorithm does something else here than what was recorded");
    take_effects(repeat);
    repeat->next++;
    struct repeat_send send = {0};
    while (repeat_next_send(repeat, &send)) continue;
    if (send.sent == step->sent_count) return 0;
    repeat->next--;
    return fail(repeat, error, "it has sent what the algorithm does not send here");
}

/* The receivers of the send at which `send` is, one by one; false: it has no more. */
static bool next_receiver(const struct repeat *repeat, struct repeat_send *send) {
    const struct group *group = &repeat->records->group;
    uint32_t to = send->send->to;
    bool one = to < CV_SERVERS;
    if (one && send->begun) return false;
    send->to = one ? to : send->begun ? send->to + 1 : 1;
    send->begun = true;
    return one || send->to <= (to == CV_SERVERS ? group->servers : group->processes);
}

bool repeat_next_send(const struct repeat *repeat, struct repeat_send *send) {
    const struct record_step *step = &repeat->run->step[repeat->next - 1];
    while (send->sent < step->sent_count && send->at < repeat->out.used) {
        send->send = (const void *)(repeat->out.sends + send->at);
        while (next_receiver(repeat, send)) {
            send->record = &repeat->run->sent[step->sent + send->sent];
            if (send->record->to == send->to) return send->sent++, true;
        }
        send->begun = false;
        send->at += (uint32_t)sizeof *send->send + ((send->send->size + 7) & ~7u);
    }
    return false;
}
