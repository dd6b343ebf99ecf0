/* central-elected: the leader of an election is the coordinator of the lock.
 *
 *   competitor                      leader
 *     idle     a bully elects one, when somebody wants the lock and knows no leader
 *     waiting  --REQUEST-->         queues it; while nobody holds the lock,
 *     inside   <--GRANT--           it goes to the first in the queue
 *     idle     --RELEASE-->         the lock is free, and goes to the next in the queue
 *
 *     follows another leader        has led for T, in which all may tell it where they are
 *     waiting  --REQUEST-->         and then grants
 *     inside   --HOLDING-->         counts it as the holder
 *     idle     --RELEASE-->         if it has ever asked
 *
 * Every process competes, and every process may lead; the election is that of `bully`, with its
 * messages and its state.  A leader that fails is replaced, so no crash blocks the others: when the
 * failure detector reports the holder, the leader takes the lock back.
 *
 * Each leadership is an epoch, higher than every epoch that the new leader has heard of, and one
 * that no other process can begin.  All messages carry the epoch of their sender, and a grant of an
 * older one is not taken.  Epoch and number of a grant make its fencing token.
 *
 * Cost: 3 messages per entry and exit, none for the leader's own; an election before the first and
 * after each failure.
 *
 * What breaks it: a partition.  Each side elects a leader, each leader grants, and two are inside.
 * The same happens when a message takes longer than Tt, or when a detector takes a slow process for
 * dead.  The lock cannot prevent it, for no side can tell that there is another; but one of the two
 * leaders has the higher epoch, so a resource that checks fencing tokens refuses what the other one
 * has granted.  If both were elected at once, that need not be the newer one: to have a single
 * leader, an election needs a majority. */
#include "algorithms/election/bully.h"
#include "algorithms/mutex/mutex.h"

enum { ELECTION, ANSWER, COORDINATOR, REQUEST, GRANT, RELEASE, HOLDING, KINDS };
enum { RECOVERY_TIMER = BULLY_TIMERS, TIMERS };
enum { PROCESSES_MAX = 1000 }; /* an election takes place on the stack */

#define CANDIDATE_FIELDS(F, R)                                                                     \
    F(R, id, id, SHOWN)                                                                            \
    F(R, u64, epoch, SHOWN)
#define NUMBERED_FIELDS(F, R)                                                                      \
    F(R, u64, number, SHOWN)                                                                       \
    F(R, u64, epoch, SHOWN)
#define GRANT_FIELDS(F, R)                                                                         \
    F(R, u64, number, SHOWN)                                                                       \
    F(R, u64, epoch, SHOWN)                                                                        \
    F(R, u64, fence, SHOWN)
#define STATE_FIELDS(F, R)                                                                         \
    F(R, u64, number, INNER) /* of my last request */                                              \
    F(R, u64, epoch, SHOWN)  /* the newest heard of; durable up to here */                         \
    BULLY_STATE_FIELDS(F, R)                                                                       \
    F(R, u64, led_epoch, INNER) /* the one in which I lead */                                      \
    F(R, u64, grants, INNER)    /* of that epoch */                                                \
    F(R, u32, wish, NAMED("idle|waiting|inside"))                                                  \
    F(R, u32, recovered, INNER) /* the leader: all have told it where they are */                  \
    F(R, pid, holder, IF_SET)                                                                      \
    F(R, pid, granter, INNER) /* who let me in, or has taken over from it */                       \
    F(R, queue, queue, IF_SET)
#define ROW_FIELDS(F, R)                                                                           \
    F(R, link, link, INNER)                                                                        \
    F(R, u64, number, INNER) /* the newest request seen */                                         \
    F(R, u64, down, INNER)   /* according to the failure detector */

CV_RECORD(candidate, CANDIDATE_FIELDS);
CV_RECORD(numbered, NUMBERED_FIELDS);
CV_RECORD(grant, GRANT_FIELDS);
CV_RECORD(state, STATE_FIELDS);
CV_RECORD(row, ROW_FIELDS);

static struct row *row_of(struct state *s, cv_pid p) { return (struct row *)(s + 1) + (p - 1); }

static struct cv_links links(struct state *s) {
    return (struct cv_links){(unsigned char *)(s + 1), sizeof(struct row), 1};
}

static void hear_of(struct state *s, uint64_t epoch, struct cv_out *out) {
    if (epoch <= s->epoch) return;
    s->epoch = epoch;
    cv_save(out);
}

/* ---- The competitor ---- */

static void enter(struct state *s, cv_pid granter, uint64_t fence, struct cv_out *out) {
    s->wish = INSIDE;
    s->granter = granter;
    cv_tell(out, CV_ENTERED, fence);
}

/* Whoever waits asks anew, so that no earlier grant is taken for the answer. */
static void report_to(struct state *s, cv_pid leader, struct cv_out *out) {
    if (s->wish == WAITING) {
        s->number++;
        cv_save(out);
        cv_send(out, leader, REQUEST, numbered, .number = s->number, .epoch = s->epoch);
    } else if (s->wish == INSIDE) {
        cv_send(out, leader, HOLDING, numbered, .number = s->number, .epoch = s->epoch);
        s->granter = leader;
    } else if (s->number) { /* it may still believe the contrary */
        cv_send(out, leader, RELEASE, numbered, .number = s->number, .epoch = s->epoch);
    }
}

/* A grant of an older epoch is not taken; its leader learns of the newer one when it is asked anew.
 * One that is not wanted, as after a crash, is given back. */
static void on_grant(struct state *s, cv_pid from, const struct grant *m, struct cv_out *out) {
    bool answer = m->number == s->number && s->wish == WAITING;
    if (answer && m->epoch >= s->epoch)
        enter(s, from, m->fence, out);
    else if (answer && from == s->leader)
        report_to(s, from, out);
    else if (m->number != s->number || s->wish != INSIDE)
        cv_send(out, from, RELEASE, numbered, .number = m->number, .epoch = s->epoch);
}

/* ---- The leader ---- */

static bool leads(const struct state *s, const struct cv_env *env) {
    return s->leader == env->self;
}

/* A leader that hears of a newer epoch, as after a partition, begins one that is newer still. */
static void begin_epoch(struct state *s, const struct cv_env *env, struct cv_out *out) {
    hear_of(s, next_epoch(s->epoch, env), out);
    s->led_epoch = s->epoch;
    s->grants = 0;
}

/* Its own request may have been answered by the leader before it. */
static cv_pid next_in_queue(struct state *s, const struct cv_env *env) {
    cv_pid p = cv_queue_pop(&s->queue, links(s));
    if (p == env->self && s->wish != WAITING) p = cv_queue_pop(&s->queue, links(s));
    return p;
}

static void grant_next(struct state *s, const struct cv_env *env, struct cv_out *out) {
    if (s->holder || !s->recovered) return;
    s->holder = next_in_queue(s, env);
    if (!s->holder) return;
    if (s->led_epoch != s->epoch || s->grants + 1 == TOKENS_PER_EPOCH) begin_epoch(s, env, out);
    uint64_t fence = fencing_token(s->epoch, ++s->grants);
    if (s->holder == env->self)
        enter(s, env->self, fence, out);
    else
        cv_send(out, s->holder, GRANT, grant, .number = row_of(s, s->holder)->number,
                .epoch = s->epoch, .fence = fence);
}

static void on_request(struct state *s, const struct cv_env *env, cv_pid p, uint64_t number,
                       struct cv_out *out) {
    if (number <= row_of(s, p)->number) return; /* a duplicate */
    row_of(s, p)->number = number;
    if (s->holder == p) s->holder = CV_NOBODY; /* it asks again, so its RELEASE was lost */
    if (!cv_queued(&s->queue, links(s), p)) cv_queue_push(&s->queue, links(s), p);
    grant_next(s, env, out);
}

static void on_release(struct state *s, const struct cv_env *env, cv_pid p, uint64_t number,
                       struct cv_out *out) {
    if (s->holder == p && row_of(s, p)->number == number) s->holder = CV_NOBODY;
    if (row_of(s, p)->number < number) row_of(s, p)->number = number;
    grant_next(s, env, out);
}

static void on_holding(struct state *s, cv_pid p, uint64_t number) {
    if (number <= row_of(s, p)->number) return;
    row_of(s, p)->number = number;
    if (!s->holder) s->holder = p;
}

static void forget_dead(struct state *s, const struct cv_env *env, cv_pid p, struct cv_out *out) {
    if (cv_queued(&s->queue, links(s), p)) cv_queue_remove(&s->queue, links(s), p);
    if (s->holder == p) s->holder = CV_NOBODY;
    row_of(s, p)->number = 0;
    grant_next(s, env, out);
}

/* ---- One leader after another ---- */

/* A leader knows nothing of what another has granted. */
static void clear_desk(struct state *s, const struct cv_env *env) {
    while (cv_queue_pop(&s->queue, links(s))) continue;
    for (cv_pid p = 1; p <= env->processes; p++) row_of(s, p)->number = 0;
    s->holder = CV_NOBODY;
    s->recovered = 0;
}

static void take_office(struct state *s, const struct cv_env *env, struct cv_out *out) {
    clear_desk(s, env);
    if (s->wish == WAITING) on_request(s, env, env->self, s->number, out);
    if (s->wish == INSIDE) on_holding(s, env->self, s->number), s->granter = env->self;
    cv_timer(out, RECOVERY_TIMER, bully_answer_us(env), bully_answer_us(env));
}

/* ---- The election ---- */

/* bully as it is, with a copy of its state.  Ids are process numbers, and all weigh the same. */
struct ballot {
    struct cv_env env;
    uint64_t ids[PROCESSES_MAX + 1], weights[PROCESSES_MAX + 1];
    _Alignas(8) unsigned char state[64 + PROCESSES_MAX];
    _Alignas(8) unsigned char sends[(2 * PROCESSES_MAX + CV_SENDS_DEFAULT) *
                                    (sizeof(struct cv_send) + 8)];
};

static void copy_in(struct ballot *b, struct state *s, const struct cv_env *env) {
    size_t head = offsetof(struct state, led_epoch) - offsetof(struct state, leader);
    cv_assert(cv_bully.state->size == head && cv_bully.state->row_size == 1);
    memcpy(b->state, &s->leader, head);
    for (cv_pid p = 1; p <= env->processes; p++) {
        b->state[head + p - 1] = (unsigned char)row_of(s, p)->down;
        b->ids[p] = p;
        b->weights[p] = 1;
    }
    b->env = *env;
    b->env.id = env->self, b->env.weight = 1;
    b->env.ids = b->ids, b->env.weights = b->weights;
}

static void copy_out(const struct ballot *b, struct state *s, const struct cv_env *env) {
    size_t head = cv_bully.state->size;
    memcpy(&s->leader, b->state, head);
    for (cv_pid p = 1; p <= env->processes; p++) row_of(s, p)->down = b->state[head + p - 1];
}

/* The election's messages go out with the epoch, its timers as they are. */
static void pass_on(const struct state *s, const struct cv_env *env, const struct cv_out *from,
                    struct cv_out *out) {
    for (uint32_t at = 0; at < from->used;) {
        const struct cv_send *send = (const struct cv_send *)(const void *)(from->sends + at);
        cv_send(out, send->to, send->kind, candidate, .id = env->self, .epoch = s->epoch);
        at += (uint32_t)sizeof *send + ((send->size + 7) & ~7u);
    }
    for (unsigned timer = 0; timer < BULLY_TIMERS; timer++) {
        if (from->timers_set & 1u << timer)
            cv_timer(out, timer, from->timer[timer].min_us, from->timer[timer].max_us);
        if (from->timers_cancelled & 1u << timer) cv_timer_cancel(out, timer);
    }
}

static void vote(struct state *s, const struct cv_env *env, const struct cv_event *e,
                 struct cv_out *out) {
    struct ballot b;
    struct cv_out ballots = {.room = sizeof b.sends, .sends = b.sends};
    cv_pid before = s->leader;
    copy_in(&b, s, env);
    cv_bully.step(b.state, &b.env, e, &ballots);
    copy_out(&b, s, env);
    if (s->leader != before && leads(s, env)) begin_epoch(s, env, out);
    pass_on(s, env, &ballots, out);
    if (s->leader == before) return;
    if (before == env->self) {
        cv_timer_cancel(out, RECOVERY_TIMER);
        clear_desk(s, env);
    }
    if (leads(s, env))
        take_office(s, env, out);
    else if (s->leader)
        report_to(s, s->leader, out);
}

static void campaign(struct state *s, const struct cv_env *env, struct cv_out *out) {
    vote(s, env, &(struct cv_event){.type = CV_CALL, .arg = CV_CAMPAIGN}, out);
}

/* A leader that makes itself known again may have forgotten us, when it took us for dead. */
static void on_election(struct state *s, const struct cv_env *env, const struct cv_event *e,
                        struct cv_out *out) {
    const struct candidate *m = e->body;
    struct cv_event event = *e;
    cv_pid before = s->leader;
    event.size = sizeof m->id; /* what bully knows of it */
    hear_of(s, m->epoch, out);
    vote(s, env, &event, out);
    if (e->kind == COORDINATOR && before == e->from && s->leader == e->from)
        report_to(s, e->from, out);
}

/* ---- Events ---- */

static void acquire(struct state *s, const struct cv_env *env, struct cv_out *out) {
    s->wish = WAITING;
    if (s->leader && !leads(s, env)) {
        report_to(s, s->leader, out);
        return;
    }
    s->number++;
    cv_save(out);
    if (leads(s, env))
        on_request(s, env, env->self, s->number, out);
    else
        campaign(s, env, out);
}

static void release(struct state *s, const struct cv_env *env, struct cv_out *out) {
    s->wish = IDLE;
    cv_tell(out, CV_LEFT, 0);
    if (leads(s, env))
        on_release(s, env, env->self, s->number, out);
    else if (s->granter != env->self)
        cv_send(out, s->granter, RELEASE, numbered, .number = s->number, .epoch = s->epoch);
}

static void on_message(struct state *s, const struct cv_env *env, const struct cv_event *e,
                       struct cv_out *out) {
    const struct numbered *m = e->body;
    if (e->kind < REQUEST) {
        on_election(s, env, e, out);
        return;
    }
    hear_of(s, m->epoch, out);
    if (e->kind == GRANT) on_grant(s, e->from, e->body, out);
    if (!leads(s, env) || row_of(s, e->from)->down) return; /* if it lives, it will ask again */
    if (e->kind == REQUEST) on_request(s, env, e->from, m->number, out);
    if (e->kind == RELEASE) on_release(s, env, e->from, m->number, out);
    if (e->kind == HOLDING) on_holding(s, e->from, m->number);
}

static void step(void *state, const struct cv_env *env, const struct cv_event *e,
                 struct cv_out *out) {
    struct state *s = state;
    if (e->type == CV_RECV) {
        on_message(s, env, e, out);
    } else if (e->type == CV_CALL && e->arg == CV_ACQUIRE) {
        if (s->wish == IDLE) acquire(s, env, out);
    } else if (e->type == CV_CALL && e->arg == CV_RELEASE) {
        if (s->wish == INSIDE) release(s, env, out);
    } else if (e->type == CV_TIMEOUT && e->arg == RECOVERY_TIMER) {
        s->recovered = leads(s, env);
        if (leads(s, env)) grant_next(s, env, out);
    } else if (e->type != CV_CALL) {
        vote(s, env, e, out);
        if (e->type == CV_DOWN && leads(s, env)) forget_dead(s, env, e->arg, out);
    }
}

static const char *refuse(const struct cv_env *env) {
    return env->processes > PROCESSES_MAX ? "at most 1000 processes can elect their coordinator"
                                          : NULL;
}

static void layout(const struct cv_env *env, struct cv_layout *layout) {
    layout->rows = env->processes;
    layout->first = 1;
    layout->durable = offsetof(struct state, leader);
    layout->sends = 2 * env->processes + CV_SENDS_DEFAULT;
}

static const struct cv_record state_table = CV_TABLE_ROWS("state", state, row);
static const struct cv_record messages[KINDS] = {
    CV_TABLE("ELECTION", candidate),    CV_TABLE("ANSWER", candidate),
    CV_TABLE("COORDINATOR", candidate), CV_TABLE("REQUEST", numbered),
    CV_TABLE("GRANT", grant),           CV_TABLE("RELEASE", numbered),
    CV_TABLE("HOLDING", numbered),
};
static const struct cv_option options[BULLY_OPTIONS] = {BULLY_OPTION_ROWS};

CV_ALGORITHM(central_elected) = {
    .name = "central-elected",
    .summary = "the leader that a bully elects is the coordinator, and is replaced when it fails",
    .tolerates = "with a detector crashes and restarts; a partition only with fencing",
    .paper = "the lecture's coordinator below the lecture's election; Garcia-Molina, 1982",
    .cost = "3, and an election",
    .delay = "2",
    CV_MACHINE,
    CV_OPTIONS,
    .timers = TIMERS,
    .refuse = refuse,
    .problem = CV_MUTEX,
    .traits = CV_FENCED | CV_USES_DETECTOR,
};
