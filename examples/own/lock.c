/* mine: one coordinator with a queue.
 *
 *   competitor                 coordinator
 *     idle    --REQUEST-->     queues it; while nobody holds the lock,
 *     waiting <--GRANT--       it goes to the first in the queue
 *     inside  --RELEASE-->     the lock is free, and goes to the next in the queue
 *
 * Cost: 3 messages per entry, 2 message times before the entry.
 *
 * What breaks it: a crash of the holder blocks the others.  A coordinator that crashes and comes
 * back has forgotten whom it let in, and lets in another.  A message that arrives twice does harm,
 * too.  These commands show each of them:
 *
 *   conclave check mine.so --crashes 1 --property deadlock
 *   conclave check mine.so --crashes 1 --property exclusion
 *   conclave sim mine.so --duplicate 0.1
 *
 * `conclave explain mine.so` prints this comment. */
#include <conclave/algorithm.h>

/* ---- 1. What is sent and what is remembered: one list of fields for each record ----
 *
 * Types: u8, u16, u32, u64, pid (a process), queue (of processes; its links are in the rows).
 * SHOWN: a reader of traces sees it.  NAMED("no|yes"): so too, with a name for each value.
 * There are no gaps: let the sizes of a record's fields add up to a multiple of 8. */

enum { REQUEST, GRANT, RELEASE, KINDS };

#define NUMBERED_FIELDS(F, R) F(R, u64, number, SHOWN) /* of a competitor's request */
CV_RECORD(numbered, NUMBERED_FIELDS);

enum { IDLE, WAITING, INSIDE };

#define STATE_FIELDS(F, R)                                                                         \
    F(R, u64, number, INNER) /* of my requests so far */                                           \
    F(R, u32, phase, NAMED("idle|waiting|inside"))                                                 \
    F(R, pid, holder, SHOWN)  /* the coordinator: who is inside */                                 \
    F(R, queue, queue, SHOWN) /* the coordinator: who waits */
#define ROW_FIELDS(F, R)                                                                           \
    F(R, link, link, INNER)                                                                        \
    F(R, u64, number, INNER) /* of its newest request */
CV_RECORD(state, STATE_FIELDS);
CV_RECORD(row, ROW_FIELDS); /* the coordinator has one for each competitor */

/* Processes are numbered from 1, servers first; 0 is nobody. */
static const cv_pid coordinator = 1;

static struct row *row_of(struct state *s, const struct cv_env *env, cv_pid p) {
    return (struct row *)(s + 1) + (p - env->servers - 1);
}

static struct cv_links links(struct state *s, const struct cv_env *env) {
    cv_pid first = env->servers + 1;
    return (struct cv_links){(unsigned char *)&row_of(s, env, first)->link, sizeof(struct row),
                             first};
}

/* ---- 2. What happens: one step for each event ---- */

static void grant_next(struct state *s, const struct cv_env *env, struct cv_out *out) {
    if (s->holder) return; /* without this line two are inside: try it */
    s->holder = cv_queue_pop(&s->queue, links(s, env));
    if (s->holder)
        cv_send(out, s->holder, GRANT, numbered, .number = row_of(s, env, s->holder)->number);
}

static void coordinate(struct state *s, const struct cv_env *env, const struct cv_event *e,
                       struct cv_out *out) {
    if (e->type != CV_RECV || e->from == coordinator) return;
    const struct numbered *m = e->body;
    if (e->kind == REQUEST && !cv_queued(&s->queue, links(s, env), e->from)) {
        row_of(s, env, e->from)->number = m->number;
        cv_queue_push(&s->queue, links(s, env), e->from);
    }
    if (e->kind == RELEASE && s->holder == e->from) s->holder = CV_NOBODY;
    grant_next(s, env, out);
}

static void compete(struct state *s, const struct cv_event *e, struct cv_out *out) {
    if (e->type == CV_CALL && e->arg == CV_ACQUIRE && s->phase == IDLE) {
        s->phase = WAITING;
        s->number++;
        cv_send(out, coordinator, REQUEST, numbered, .number = s->number);
    } else if (e->type == CV_RECV && e->kind == GRANT && s->phase == WAITING) {
        s->phase = INSIDE;
        cv_tell(out, CV_ENTERED, 0); /* the application is in the critical section */
    } else if (e->type == CV_CALL && e->arg == CV_RELEASE && s->phase == INSIDE) {
        s->phase = IDLE;
        cv_tell(out, CV_LEFT, 0);
        cv_send(out, coordinator, RELEASE, numbered, .number = s->number);
    }
}

static void step(void *state, const struct cv_env *env, const struct cv_event *e,
                 struct cv_out *out) {
    if (cv_serves(env))
        coordinate(state, env, e, out);
    else
        compete(state, e, out);
}

/* ---- 3. The description ---- */

static uint32_t servers(const uint64_t *option) {
    (void)option;
    return 1;
}

/* How large the state of a process is; layout->durable would be what a crash leaves of it. */
static void layout(const struct cv_env *env, struct cv_layout *layout) {
    layout->rows = cv_serves(env) ? env->processes - env->servers : 0;
    layout->first = env->servers + 1;
}

static const struct cv_record state_table = CV_TABLE_ROWS("state", state, row);
static const struct cv_record messages[KINDS] = {
    CV_TABLE("REQUEST", numbered),
    CV_TABLE("GRANT", numbered),
    CV_TABLE("RELEASE", numbered),
};

CV_ALGORITHM(mine) = {
    .name = "mine",
    .summary = "one coordinator with a queue",
    .tolerates = "disorder; no crash, no duplicates",
    .paper = "Tanenbaum & van Steen, Distributed Systems, 5.3",
    .cost = "3",
    .delay = "2",
    .server_name = "coordinator",
    .servers = servers,
    CV_MACHINE,
    .problem = CV_MUTEX,
    .traits = CV_SYMMETRIC, /* competitors are alike: no process is preferred for its number */
};
