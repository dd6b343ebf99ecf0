/* quorum: n coordinators, each with a queue; m > n/2 grants are enough to enter.
 *
 *   competitor                           each coordinator
 *     idle    --REQUEST--> all n         queues it; when its vote is free,
 *     waiting <--GRANT-- m of them       the first in the queue gets it
 *     inside  --RELEASE--> all n         frees the vote, or takes the sender out of the queue
 *
 * Cost: 3n messages per entry and exit, 2 message times before the entry.
 *
 * Votes can split so that nobody reaches m.  So a competitor that waits longer than `give-up`
 * releases all n and tries again after a random back-off, which can starve it.  Every request has
 * a number, so that what was sent for one attempt is never taken for another.
 *
 * What breaks it: a coordinator that forgets its grant (a crash with amnesia) votes twice.  When
 * all coordinators that two quorums share forget, two processes are inside.  The grant is the
 * durable prefix: without amnesia, exclusion holds.  The queue is not durable: a competitor that
 * was in it comes back after giving up. */
#include "algorithms/mutex/mutex.h"

enum { REQUEST, GRANT, RELEASE, KINDS };
enum { GIVE_UP = M + 1, PAUSE, OPTIONS };
enum { TIMER, TIMERS };

#define NUMBERED_FIELDS(F, R) F(R, u64, number, SHOWN)
#define STATE_FIELDS(F, R)                                                                         \
    F(R, u64, number, INNER) /* of my last request; at a coordinator, of the holder's */           \
    F(R, pid, holder, SHOWN) /* durable up to here */                                              \
    F(R, u32, phase, INNER)                                                                        \
    F(R, queue, queue, SHOWN)                                                                      \
    F(R, u32, grants, INNER) /* for my request */                                                  \
    F(R, u32, attempts, INNER)
#define ROW_FIELDS(F, R)                                                                           \
    F(R, link, link, INNER)                                                                        \
    F(R, u64, number, INNER) /* newest seen from a competitor; newest granted by a coordinator */

CV_RECORD(numbered, NUMBERED_FIELDS);
CV_RECORD(state, STATE_FIELDS);
CV_RECORD(row, ROW_FIELDS);

/* A coordinator keeps rows about the competitors, a competitor about the coordinators. */
static cv_pid first_row(const struct cv_env *env) { return cv_serves(env) ? env->servers + 1 : 1; }

static struct row *row_of(struct state *s, const struct cv_env *env, cv_pid p) {
    return (struct row *)(s + 1) + (p - first_row(env));
}

static struct cv_links links(struct state *s, const struct cv_env *env) {
    return (struct cv_links){(unsigned char *)(s + 1), sizeof(struct row), first_row(env)};
}

/* ---- A coordinator ---- */

static void grant_next(struct state *s, const struct cv_env *env, struct cv_out *out) {
    if (s->holder || !s->queue.first) return;
    s->holder = cv_queue_pop(&s->queue, links(s, env));
    s->number = row_of(s, env, s->holder)->number;
    cv_save(out);
    cv_send(out, s->holder, GRANT, numbered, .number = s->number);
}

static void free_vote(struct state *s, struct cv_out *out) {
    s->holder = CV_NOBODY;
    cv_save(out);
}

static void on_request(struct state *s, const struct cv_env *env, cv_pid p, uint64_t number,
                       struct cv_out *out) {
    struct row *row = row_of(s, env, p);
    if (number <= row->number) return; /* a duplicate, or released already */
    if (s->holder == p && number <= s->number) return;
    row->number = number;
    if (s->holder == p) free_vote(s, out); /* it asks again, so its RELEASE was lost */
    if (!cv_queued(&s->queue, links(s, env), p)) cv_queue_push(&s->queue, links(s, env), p);
    grant_next(s, env, out);
}

static void on_release(struct state *s, const struct cv_env *env, cv_pid p, uint64_t number,
                       struct cv_out *out) {
    struct row *row = row_of(s, env, p);
    if (s->holder == p && s->number == number)
        free_vote(s, out);
    else if (cv_queued(&s->queue, links(s, env), p) && row->number <= number)
        cv_queue_remove(&s->queue, links(s, env), p);
    if (row->number < number) row->number = number; /* its REQUEST may still be on the way */
    grant_next(s, env, out);
}

static void serve(struct state *s, const struct cv_env *env, const struct cv_event *e,
                  struct cv_out *out) {
    if (e->type != CV_RECV || e->from <= env->servers) return;
    const struct numbered *m = e->body;
    if (e->kind == REQUEST) on_request(s, env, e->from, m->number, out);
    if (e->kind == RELEASE) on_release(s, env, e->from, m->number, out);
}

/* ---- A competitor ---- */

static void release_all(struct state *s, uint32_t phase, struct cv_out *out) {
    s->phase = phase;
    cv_timer_cancel(out, TIMER);
    cv_send(out, CV_SERVERS, RELEASE, numbered, .number = s->number);
}

static void attempt(struct state *s, const struct cv_env *env, struct cv_out *out) {
    s->phase = WAITING;
    s->grants = 0;
    s->attempts++;
    s->number++;
    cv_save(out);
    if (env->option[GIVE_UP]) cv_timer(out, TIMER, env->option[GIVE_UP], 2 * env->option[GIVE_UP]);
    cv_send(out, CV_SERVERS, REQUEST, numbered, .number = s->number);
}

static void on_grant(struct state *s, const struct cv_env *env, cv_pid p, uint64_t number,
                     struct cv_out *out) {
    bool mine = number == s->number && (s->phase == WAITING || s->phase == INSIDE);
    if (!mine) { /* for an attempt that is over, or from before a crash: give it back */
        cv_send(out, p, RELEASE, numbered, .number = number);
        return;
    }
    struct row *row = row_of(s, env, p);
    if (row->number == number) return; /* a duplicate: one coordinator, one vote */
    row->number = number;
    if (s->phase == WAITING && ++s->grants == quorum_size(env)) {
        s->phase = INSIDE;
        s->attempts = 0;
        cv_timer_cancel(out, TIMER);
        cv_tell(out, CV_ENTERED, 0);
    }
}

static void on_timeout(struct state *s, const struct cv_env *env, struct cv_out *out) {
    if (s->phase == WAITING) {
        release_all(s, BACKING_OFF, out);
        back_off(out, TIMER, s->attempts, env->option[PAUSE]);
    } else if (s->phase == BACKING_OFF) {
        attempt(s, env, out);
    }
}

static void compete(struct state *s, const struct cv_env *env, const struct cv_event *e,
                    struct cv_out *out) {
    if (e->type == CV_CALL && e->arg == CV_ACQUIRE && s->phase == IDLE) {
        attempt(s, env, out);
    } else if (e->type == CV_CALL && e->arg == CV_RELEASE && s->phase == INSIDE) {
        cv_tell(out, CV_LEFT, 0);
        release_all(s, IDLE, out);
    } else if (e->type == CV_RECV && e->kind == GRANT && e->from <= env->servers) {
        const struct numbered *m = e->body;
        on_grant(s, env, e->from, m->number, out);
    } else if (e->type == CV_TIMEOUT) {
        on_timeout(s, env, out);
    } else if (e->type == CV_RESTART && s->number) {
        release_all(s, IDLE, out); /* what it asked for or held before the crash */
    }
}

static void step(void *state, const struct cv_env *env, const struct cv_event *e,
                 struct cv_out *out) {
    if (cv_serves(env))
        serve(state, env, e, out);
    else
        compete(state, env, e, out);
}

static void layout(const struct cv_env *env, struct cv_layout *layout) {
    layout->rows = cv_serves(env) ? env->processes - env->servers : env->servers;
    layout->first = first_row(env);
    layout->durable = offsetof(struct state, phase);
}

static const struct cv_record state_table = CV_TABLE_ROWS("state", state, row);
static const struct cv_record messages[KINDS] = {
    CV_TABLE("REQUEST", numbered),
    CV_TABLE("GRANT", numbered),
    CV_TABLE("RELEASE", numbered),
};
static const struct cv_option options[OPTIONS] = {
    [N] = OPTION_N,
    [M] = OPTION_M,
    [GIVE_UP] = {"give-up", "wait this long (up to twice) before trying again, 0: for ever",
                 CV_DURATION, 200000, 0, 1000000000000},
    [PAUSE] = {"pause", "back off up to this long after the first failed attempt", CV_DURATION,
               10000, 1, 1000000000000},
};

CV_ALGORITHM(quorum) = {
    .name = "quorum",
    .summary = "n queueing coordinators, of which m > n/2 must grant",
    .tolerates = "crashes of a minority of coordinators; restarts, not amnesia",
    .paper = "the lecture's quorum of coordinators; Gifford, Weighted voting, SOSP 1979",
    .cost = "3n",
    .delay = "2",
    .server_name = "c",
    CV_MACHINE,
    CV_OPTIONS,
    .timers = TIMERS,
    .servers = quorum_servers,
    .refuse = refuse_quorum,
    .problem = CV_MUTEX,
    .traits = CV_SYMMETRIC | CV_UNBOUNDED,
};
