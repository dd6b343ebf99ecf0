/* central and central-lease: one coordinator with a queue.
 *
 *   competitor                      coordinator
 *     idle    --REQUEST-->          queues it; while nobody holds the lock,
 *     waiting <--GRANT--            it goes to the first in the queue
 *     inside  --RELEASE-->          the lock is free, and goes to the next in the queue
 *     idle    <--RELEASED--         only with the option `reply`
 *
 * Cost: 3 messages per entry and exit, 2 message times before the entry.
 *
 * central-lease takes a grant back when it was not released within the lease, so a dead holder
 * blocks nobody.  But a holder that is only slow then shares the critical section, and no lease is
 * long enough to rule that out.  The cure is a fencing token that grows with each grant, and a
 * resource that refuses an older one.
 *
 * What breaks central: a crash of the coordinator or of the holder blocks everyone for good.  A
 * coordinator that restarts remembers its grant but not its queue, so the processes that waited
 * wait on.  With amnesia it grants again while the first holder is inside. */
#include "algorithms/mutex/mutex.h"

enum { REQUEST, GRANT, RELEASE, RELEASED, KINDS };
enum { REPLY, LEASE, OPTIONS }; /* central has only the first; its lease is 0: none */
enum { LEASE_TIMER, TIMERS };

#define NUMBERED_FIELDS(F, R) F(R, u64, number, SHOWN)
#define GRANT_FIELDS(F, R)                                                                         \
    F(R, u64, number, SHOWN)                                                                       \
    F(R, u64, fence, SHOWN)
#define STATE_FIELDS(F, R)                                                                         \
    F(R, u64, number, INNER) /* of my last request; at the coordinator, of the holder's */         \
    F(R, u64, fence, INNER)                                                                        \
    F(R, pid, holder, SHOWN)                                                                       \
    F(R, u32, phase, INNER) /* the durable prefix ends before it */                                \
    F(R, queue, queue, SHOWN)
#define ROW_FIELDS(F, R)                                                                           \
    F(R, link, link, INNER)                                                                        \
    F(R, u64, number, INNER) /* the newest request seen from this competitor */

CV_RECORD(numbered, NUMBERED_FIELDS);
CV_RECORD(grant, GRANT_FIELDS);
CV_RECORD(state, STATE_FIELDS);
CV_RECORD(row, ROW_FIELDS);

static const cv_pid coordinator = 1;

static struct row *row_of(struct state *s, const struct cv_env *env, cv_pid p) {
    return (struct row *)(s + 1) + (p - env->servers - 1);
}

static struct cv_links links(struct state *s, const struct cv_env *env) {
    return (struct cv_links){(unsigned char *)(s + 1), sizeof(struct row), env->servers + 1};
}

/* ---- The coordinator ---- */

static void grant_next(struct state *s, const struct cv_env *env, struct cv_out *out) {
    if (s->holder || !s->queue.first) return;
    s->holder = cv_queue_pop(&s->queue, links(s, env));
    s->number = row_of(s, env, s->holder)->number;
    s->fence++;
    cv_save(out);
    if (env->option[LEASE]) cv_timer(out, LEASE_TIMER, env->option[LEASE], env->option[LEASE]);
    cv_send(out, s->holder, GRANT, grant, .number = s->number, .fence = s->fence);
}

static void take_back(struct state *s, const struct cv_env *env, struct cv_out *out) {
    s->holder = CV_NOBODY;
    cv_save(out);
    if (env->option[LEASE]) cv_timer_cancel(out, LEASE_TIMER);
}

static void on_request(struct state *s, const struct cv_env *env, cv_pid p, uint64_t number,
                       struct cv_out *out) {
    struct row *row = row_of(s, env, p);
    if (number <= row->number) return; /* a duplicate */
    row->number = number;
    if (s->holder == p) take_back(s, env, out); /* it asks again, so its RELEASE was lost */
    if (!cv_queued(&s->queue, links(s, env), p)) cv_queue_push(&s->queue, links(s, env), p);
    grant_next(s, env, out);
}

static void on_release(struct state *s, const struct cv_env *env, cv_pid p, uint64_t number,
                       struct cv_out *out) {
    struct row *row = row_of(s, env, p);
    if (s->holder == p && s->number == number) {
        if (env->option[REPLY]) cv_send(out, p, RELEASED, numbered, .number = number);
        take_back(s, env, out);
        grant_next(s, env, out);
    } else if (cv_queued(&s->queue, links(s, env), p) && row->number == number) {
        cv_queue_remove(&s->queue, links(s, env), p); /* it waited, crashed and came back */
    }
    if (row->number < number) row->number = number; /* its REQUEST may still be on the way */
}

static void serve(struct state *s, const struct cv_env *env, const struct cv_event *e,
                  struct cv_out *out) {
    if (e->type == CV_RECV && e->from > env->servers) {
        const struct numbered *m = e->body;
        if (e->kind == REQUEST) on_request(s, env, e->from, m->number, out);
        if (e->kind == RELEASE) on_release(s, env, e->from, m->number, out);
    } else if (e->type == CV_TIMEOUT && s->holder) {
        take_back(s, env, out);
        grant_next(s, env, out);
    } else if (e->type == CV_RESTART && s->holder && env->option[LEASE]) {
        cv_timer(out, LEASE_TIMER, env->option[LEASE], env->option[LEASE]);
    }
}

/* ---- The competitor ---- */

static void acquire(struct state *s, struct cv_out *out) {
    s->phase = WAITING;
    s->number++;
    cv_save(out);
    cv_send(out, coordinator, REQUEST, numbered, .number = s->number);
}

static void release(struct state *s, struct cv_out *out) {
    s->phase = IDLE;
    cv_tell(out, CV_LEFT, 0);
    cv_send(out, coordinator, RELEASE, numbered, .number = s->number);
}

static void compete(struct state *s, const struct cv_event *e, struct cv_out *out) {
    if (e->type == CV_CALL && e->arg == CV_ACQUIRE && s->phase == IDLE) {
        acquire(s, out);
    } else if (e->type == CV_CALL && e->arg == CV_RELEASE && s->phase == INSIDE) {
        release(s, out);
    } else if (e->type == CV_RECV && e->kind == GRANT && e->from == coordinator) {
        const struct grant *m = e->body;
        if (s->phase != WAITING || m->number != s->number) return;
        s->phase = INSIDE;
        cv_tell(out, CV_ENTERED, m->fence);
    } else if (e->type == CV_RESTART) {
        s->phase = IDLE;
        if (s->number) /* gives back what it asked for or held before the crash */
            cv_send(out, coordinator, RELEASE, numbered, .number = s->number);
    }
}

static void step(void *state, const struct cv_env *env, const struct cv_event *e,
                 struct cv_out *out) {
    if (cv_serves(env))
        serve(state, env, e, out);
    else
        compete(state, e, out);
}

static void layout(const struct cv_env *env, struct cv_layout *layout) {
    layout->rows = cv_serves(env) ? env->processes - env->servers : 0;
    layout->first = env->servers + 1;
    layout->durable = offsetof(struct state, phase);
    layout->patient = !env->option[LEASE];
}

static const struct cv_record state_table = CV_TABLE_ROWS("state", state, row);
static const struct cv_record messages[KINDS] = {
    CV_TABLE("REQUEST", numbered),
    CV_TABLE("GRANT", grant),
    CV_TABLE("RELEASE", numbered),
    CV_TABLE("RELEASED", numbered),
};
static const struct cv_option options[OPTIONS] = {
    [REPLY] = {"reply", "the coordinator answers the RELEASE of the holder, too", CV_FLAG, 0, 0, 1},
    [LEASE] = {"lease", "the coordinator takes a grant back after this time", CV_DURATION, 50000, 1,
               UINT64_MAX},
};

#define CENTRAL                                                                                    \
    .server_name = "coordinator", .state = &state_table, .messages = messages,                     \
    .message_count = KINDS, .options = options, .servers = one_server, .layout = layout,           \
    .step = step, .problem = CV_MUTEX, .cost = "3", .delay = "2", .timers = TIMERS

CV_ALGORITHM(central) = {
    .name = "central",
    .summary = "one coordinator with a first-come-first-served queue",
    .tolerates = "duplicates and disorder; no crash",
    .paper = "the lecture's coordinator; Tanenbaum & van Steen, Distributed Systems, 5.3",
    CENTRAL,
    .traits = CV_FENCED | CV_SYMMETRIC,
    .option_count = LEASE,
};
CV_ALGORITHM(central_lease) = {
    .name = "central-lease",
    .summary = "a coordinator that takes a grant back after a time, with fencing tokens",
    .tolerates = "a dead holder; a slow one only with fencing",
    .paper = "Gray & Cheriton, Leases, SOSP 1989; the lecture's coordinator with a timeout",
    CENTRAL,
    .traits = CV_FENCED | CV_SYMMETRIC,
    .option_count = OPTIONS,
};
