/* voting: n coordinators answer at once, yes or no; m > n/2 yes are enough to enter.
 *
 *   competitor                           each coordinator
 *     idle    --REQUEST--> all n         if its vote is free: yes, and the vote is taken; else no
 *     waiting <--VOTE--
 *     inside  at m yes; afterwards  --RELEASE--> those that said yes
 *     backing off  when m yes are out of reach: --RELEASE--> those that said yes; it tries again
 *                  after a random pause
 *
 * Cost for k attempts among n coordinators: 2kn + (k-1)n/2 + n messages, 2kn + (k-1)n/2 message
 * times when sent one after the other.  The formula assumes that half of the votes are yes in a
 * failed attempt.
 *
 * What breaks it: under contention nobody may reach m for a long time (starvation, even livelock);
 * a coordinator that forgets its vote (a crash with amnesia) votes twice.  The vote is the durable
 * prefix. */
#include "algorithms/mutex/mutex.h"

enum { REQUEST, VOTE, RELEASE, KINDS };
enum { ANSWER = M + 1, PAUSE, OPTIONS };
enum { TIMER, TIMERS };

#define NUMBERED_FIELDS(F, R) F(R, u64, number, SHOWN)
#define VOTE_FIELDS(F, R)                                                                          \
    F(R, u64, number, SHOWN)                                                                       \
    F(R, u64, yes, NAMED("no|yes"))
#define STATE_FIELDS(F, R)                                                                         \
    F(R, u64, number, INNER) /* of my last request; at a coordinator, of the holder's */           \
    F(R, pid, holder, SHOWN) /* durable up to here */                                              \
    F(R, u32, phase, INNER)                                                                        \
    F(R, u32, yes, INNER)                                                                          \
    F(R, u32, no, INNER)                                                                           \
    F(R, u64, attempts, INNER)
#define ROW_FIELDS(F, R)                                                                           \
    F(R, u64, number, INNER) /* the request this coordinator answered */                           \
    F(R, u64, yes, INNER)

CV_RECORD(numbered, NUMBERED_FIELDS);
CV_RECORD(vote, VOTE_FIELDS);
CV_RECORD(state, STATE_FIELDS);
CV_RECORD(row, ROW_FIELDS);

/* ---- A coordinator ---- */

static void on_request(struct state *s, cv_pid p, uint64_t number, struct cv_out *out) {
    if (s->holder == p && number <= s->number) return; /* a duplicate */
    bool yes = s->holder == CV_NOBODY || s->holder == p;
    if (yes) {
        s->holder = p;
        s->number = number;
        cv_save(out);
    }
    cv_send(out, p, VOTE, vote, .number = number, .yes = yes);
}

static void on_release(struct state *s, cv_pid p, uint64_t number, struct cv_out *out) {
    if (s->holder != p || s->number != number) return;
    s->holder = CV_NOBODY;
    cv_save(out);
}

static void serve(struct state *s, const struct cv_env *env, const struct cv_event *e,
                  struct cv_out *out) {
    if (e->type != CV_RECV || e->from <= env->servers) return;
    const struct numbered *m = e->body;
    if (e->kind == REQUEST) on_request(s, e->from, m->number, out);
    if (e->kind == RELEASE) on_release(s, e->from, m->number, out);
}

/* ---- A competitor ---- */

static struct row *row_of(struct state *s, cv_pid coordinator) {
    return (struct row *)(s + 1) + (coordinator - 1);
}

static void give_back(struct state *s, const struct cv_env *env, struct cv_out *out) {
    for (cv_pid p = 1; p <= env->servers; p++) {
        const struct row *row = row_of(s, p);
        if (row->number == s->number && row->yes)
            cv_send(out, p, RELEASE, numbered, .number = s->number);
    }
}

static void attempt(struct state *s, const struct cv_env *env, struct cv_out *out) {
    s->phase = WAITING;
    s->yes = s->no = 0;
    s->attempts++;
    s->number++;
    cv_save(out);
    cv_timer(out, TIMER, env->option[ANSWER], env->option[ANSWER]);
    cv_send(out, CV_SERVERS, REQUEST, numbered, .number = s->number);
}

static void fail(struct state *s, const struct cv_env *env, struct cv_out *out) {
    s->phase = BACKING_OFF;
    give_back(s, env, out);
    back_off(out, TIMER, s->attempts < 7 ? (uint32_t)s->attempts : 7, env->option[PAUSE]);
}

static void count(struct state *s, const struct cv_env *env, struct cv_out *out) {
    if (s->phase != WAITING) return;
    if (s->yes >= quorum_size(env)) {
        s->phase = INSIDE;
        s->attempts = 0;
        cv_timer_cancel(out, TIMER);
        cv_tell(out, CV_ENTERED, 0);
    } else if (env->servers - s->no < quorum_size(env)) {
        fail(s, env, out);
    }
}

static void on_vote(struct state *s, const struct cv_env *env, cv_pid p, const struct vote *m,
                    struct cv_out *out) {
    bool wanted = m->number == s->number && (s->phase == WAITING || s->phase == INSIDE);
    if (!wanted) { /* it came too late for its attempt */
        if (m->yes) cv_send(out, p, RELEASE, numbered, .number = m->number);
        return;
    }
    struct row *row = row_of(s, p);
    if (row->number == m->number) return; /* a duplicate: one coordinator, one vote */
    *row = (struct row){.number = m->number, .yes = m->yes};
    s->yes += m->yes != 0;
    s->no += m->yes == 0;
    count(s, env, out);
}

static void compete(struct state *s, const struct cv_env *env, const struct cv_event *e,
                    struct cv_out *out) {
    if (e->type == CV_CALL && e->arg == CV_ACQUIRE && s->phase == IDLE) {
        attempt(s, env, out);
    } else if (e->type == CV_CALL && e->arg == CV_RELEASE && s->phase == INSIDE) {
        s->phase = IDLE;
        cv_tell(out, CV_LEFT, 0);
        give_back(s, env, out);
    } else if (e->type == CV_RECV && e->kind == VOTE && e->from <= env->servers) {
        on_vote(s, env, e->from, e->body, out);
    } else if (e->type == CV_TIMEOUT && s->phase == WAITING) {
        fail(s, env, out); /* no answer counts as a no */
    } else if (e->type == CV_TIMEOUT && s->phase == BACKING_OFF) {
        attempt(s, env, out);
    } else if (e->type == CV_RESTART && s->number) { /* gives back what it held before the crash */
        cv_send(out, CV_SERVERS, RELEASE, numbered, .number = s->number);
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
    layout->rows = cv_serves(env) ? 0 : env->servers;
    layout->first = 1;
    layout->durable = offsetof(struct state, phase);
    layout->sends = env->servers + CV_SENDS_DEFAULT;
}

static const struct cv_record state_table = CV_TABLE_ROWS("state", state, row);
static const struct cv_record messages[KINDS] = {
    CV_TABLE("REQUEST", numbered),
    CV_TABLE("VOTE", vote),
    CV_TABLE("RELEASE", numbered),
};
static const struct cv_option options[OPTIONS] = {
    [N] = OPTION_N,
    [M] = OPTION_M,
    [ANSWER] = {"answer", "no answer within this time counts as a no", CV_DURATION, 100000, 1,
                1000000000000},
    [PAUSE] = {"pause", "back off up to this long after the first failed attempt", CV_DURATION,
               10000, 1, 1000000000000},
};

CV_ALGORITHM(voting) = {
    .name = "voting",
    .summary =
        "n coordinators that answer at once; below m > n/2 votes: give back, back off, retry",
    .tolerates = "crashes of a minority of coordinators; restarts, not amnesia",
    .paper = "Lin, Lian, Chen & Zhang, A practical distributed mutual exclusion protocol, 2004",
    .cost = "2kn + (k-1)n/2 + n",
    .delay = "2kn + (k-1)n/2",
    .server_name = "c",
    CV_MACHINE,
    CV_OPTIONS,
    .timers = TIMERS,
    .servers = quorum_servers,
    .refuse = refuse_quorum,
    .problem = CV_MUTEX,
    .traits = CV_SYMMETRIC | CV_UNBOUNDED,
};
