/* What a step of a recorded run means for the trace and for the judges: the words of the
 * simulator's loads, for what really happened. */
#include "lab/peers/internal.h"

static uint32_t note(struct play *play, enum trace_type type, cv_pid p, cv_pid peer, uint64_t arg,
                     uint32_t cause) {
    return trace_add(&play->merge->trace, (struct trace_entry){.type = type,
                                                               .process = p,
                                                               .peer = peer,
                                                               .arg = arg,
                                                               .cause = cause,
                                                               .time_us = play->now_us});
}

static uint32_t note_message(struct play *play, enum trace_type type, cv_pid p, cv_pid peer,
                             uint16_t kind, const void *body, uint32_t size, uint32_t cause) {
    uint32_t entry =
        trace_add(&play->merge->trace, (struct trace_entry){.type = type,
                                                            .process = p,
                                                            .peer = peer,
                                                            .kind = kind,
                                                            .cause = cause,
                                                            .match = type == TR_RECEIVE ? cause : 0,
                                                            .time_us = play->now_us});
    trace_body(&play->merge->trace, entry, body, size);
    return entry;
}

/* ---- Events ---- */

static uint32_t note_call(struct play *play, cv_pid p, uint32_t what) {
    if (what == CV_ACQUIRE) mutex_judge_request(&play->merge->mutex, play->now_us, p);
    return note(play,
                what == CV_ACQUIRE   ? TR_ASK
                : what == CV_RELEASE ? TR_DONE
                                     : TR_CAMPAIGN,
                p, CV_NOBODY, 0, 0);
}

static uint32_t note_restart(struct play *play, cv_pid p) {
    const struct record_run *run = play->lane[p].repeat.run;
    play->merge->result.restarts++;
    if (play->merge->records->group.algorithm->problem == CV_ELECTION)
        election_judge_recover(&play->merge->election, p);
    return note(play, TR_RECOVER, p, CV_NOBODY, (run->flags & RECORD_AMNESIA) != 0, 0);
}

static uint32_t note_event(struct play *play, cv_pid p) {
    const struct lane *lane = &play->lane[p];
    const struct cv_event *event = &lane->repeat.event;
    uint32_t sent = lane->awaited == NO_MESSAGE ? 0 : play->message[lane->awaited].entry;
    switch (event->type) {
    case CV_START:
        return p <= play->merge->roster.servers ? note(play, TR_START, p, CV_NOBODY, 0, 0) : 0;
    case CV_RESTART: return note_restart(play, p);
    case CV_RECV:
        return note_message(play, TR_RECEIVE, p, event->from, event->kind, event->body, event->size,
                            sent);
    case CV_TIMEOUT:
        return note(play, TR_TIMER, p, CV_NOBODY, event->arg, lane->timer_cause[event->arg]);
    case CV_CALL: return note_call(play, p, event->arg);
    case CV_CHOICE: return note(play, TR_CHOICE, p, CV_NOBODY, event->arg, lane->cause);
    case CV_DOWN: return note(play, TR_SUSPECT, p, event->arg, 0, 0);
    case CV_UP: return note(play, TR_TRUST, p, event->arg, 0, 0);
    case CV_HAND_ON: return 0; /* what it does is seen */
    }
    return 0;
}

/* ---- Effects ---- */

static void note_sends(struct play *play, cv_pid p, uint32_t cause) {
    const struct repeat *repeat = &play->lane[p].repeat;
    struct repeat_send send = {0};
    while (repeat_next_send(repeat, &send)) {
        size_t index = play->first[play->lane[p].run] + (size_t)(send.record - repeat->run->sent);
        struct message *message = &play->message[index];
        const void *body = send.send + 1;
        message->entry =
            note_message(play, TR_SEND, p, send.to, send.send->kind, body, send.send->size, cause);
        message->hash = hash_long(body, send.send->size, send.send->kind);
        message->sent = true;
        play->merge->result.messages++;
    }
}

static void lock_told(struct play *play, cv_pid p, const struct cv_tell *tell, uint32_t cause) {
    struct mutex_judge *judge = &play->merge->mutex;
    if (tell->what == CV_ENTERED) {
        note(play, TR_ENTER, p, CV_NOBODY, tell->arg, cause);
        mutex_judge_enter(judge, play->now_us, p, tell->arg);
    } else if (tell->what == CV_LEFT) {
        note(play, TR_LEAVE, p, CV_NOBODY, 0, cause);
        mutex_judge_leave(judge, play->now_us, p);
    }
}

static void election_told(struct play *play, cv_pid p, const struct cv_tell *tell, uint32_t cause) {
    struct merge *merge = play->merge;
    election_judge_told(&merge->election, play->now_us, p, tell);
    if (tell->what != CV_ELECTED && tell->what != CV_FOLLOWS && tell->what != CV_LEADERLESS) return;
    bool follows = tell->what == CV_FOLLOWS;
    uint32_t entry =
        note(play,
             follows                    ? TR_FOLLOWS
             : tell->what == CV_ELECTED ? TR_ELECTED
                                        : TR_LEADERLESS,
             p, follows ? merge_bearer(merge, tell->arg) : CV_NOBODY, tell->arg, cause);
    if (entry) merge->trace.entry[entry].term = tell->term;
}

/* Of a server where there are some, else of anyone: as in the simulator. */
static void show_state(struct play *play, cv_pid p, uint32_t cause) {
    const struct repeat *repeat = &play->lane[p].repeat;
    if (!cause || (play->merge->roster.servers && p > play->merge->roster.servers)) return;
    trace_state(&play->merge->trace, cause, repeat->state, repeat->layout.rows,
                repeat->layout.first);
}

void told_step(struct play *play, cv_pid p) {
    struct lane *lane = &play->lane[p];
    const struct cv_out *out = &lane->repeat.out;
    bool election = play->merge->records->group.algorithm->problem == CV_ELECTION;
    play->merge->trace.event = ++play->merge->result.steps;
    uint32_t cause = note_event(play, p);
    lane->cause = cause;
    show_state(play, p, cause);
    for (unsigned t = 0; t < CV_TIMERS_MAX; t++)
        if (out->timers_set & 1u << t) lane->timer_cause[t] = cause;
    note_sends(play, p, cause);
    for (unsigned i = 0; i < out->tells; i++)
        if (election)
            election_told(play, p, &out->tell[i], cause);
        else
            lock_told(play, p, &out->tell[i], cause);
}

void told_crash(struct play *play, cv_pid p) {
    struct merge *merge = play->merge;
    note(play, TR_CRASH, p, CV_NOBODY, 0, 0);
    if (merge->records->group.algorithm->problem == CV_ELECTION)
        election_judge_crash(&merge->election, p);
    else
        mutex_judge_crash(&merge->mutex, play->now_us, p);
}
