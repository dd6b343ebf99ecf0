/* bully and bully-stable: the best process that is up takes the lead.
 *
 *   candidate                               those that are better
 *     asking    --ELECTION--> each          answer, and become candidates themselves
 *     answered  <--ANSWER--                 so one of them will win: wait for it
 *     announced --COORDINATOR--> all        nobody answered within T = 2 Tt + Tp: it wins
 *
 * The better of two processes has more weight, or with equal weight the higher id; everyone knows
 * both of everyone.  A weight of 0 cannot lead.  An election is started by a process whose failure
 * detector says that its leader is down, by one that is told to campaign, and by one that restarts,
 * which may then take the lead from a leader that is well.  An answered candidate waits T for the
 * election of the better one and 2 Tt for what is on the way; then it starts again, for the better
 * one has died. A leader answers ELECTION with COORDINATOR, and sends it to any process that comes
 * back.
 *
 * A process that was slow, and not dead, may still lead when it is trusted again, and not know who
 * follows another by now.  So whoever follows a worse one asks it.  COORDINATOR of a process that
 * is taken for dead is out of date, and so is that of a worse one than the leader that is trusted.
 *
 * Cost: N-2 messages when the second best finds out and the detector knows that the best is down;
 * O(N^2) when the worst does, for then everyone asks everyone above it.
 *
 * bully-stable adds the standing: how many periods a process has been up without a break.  It
 * counts before the weight, travels on every message, and is nothing after a crash.  Since nobody
 * knows the standing of the others, a candidate asks them all; a leader that is well keeps the
 * lead, whoever asks.  So a process that keeps crashing and coming back follows.  A leader that
 * comes to follow another, after a wrong suspicion, asks all: who is asked by its own leader has
 * none any more.  Standings are compared as they were when an election began; else two processes
 * that count at different moments would each find the other one better.
 *
 * What breaks it: messages slower than Tt, for then the slow are taken for dead and two lead until
 * one hears of the other; a partition, for then each side has a leader; a crashed process that
 * comes back, with its id, while another that saw it down announces itself.  As long as
 * COORDINATOR is on the way to a leader that is replaced, both lead; with the option `handover` the
 * new one waits that long.  A lost COORDINATOR leaves a process without a leader, or with a dead
 * one, until somebody starts again. */
#include "algorithms/election/bully.h"
#include "algorithms/election/election.h"

enum { ELECTION, ANSWER, COORDINATOR, KINDS };
enum { PERIOD = BULLY_OPTIONS, OPTIONS }; /* bully has no period; it is 0 */
enum { ELECTION_TIMER, UPTIME_TIMER, TIMERS };
enum { NORMAL, ASKING, ANSWERED, ANNOUNCED }; /* a leader and its followers are NORMAL */

#define CANDIDATE_FIELDS(F, R) F(R, id, id, SHOWN)
#define VETERAN_FIELDS(F, R)                                                                       \
    F(R, id, id, SHOWN)                                                                            \
    F(R, u64, standing, SHOWN)
#define STATE_FIELDS(F, R) BULLY_STATE_FIELDS(F, R)
#define ROW_FIELDS(F, R)   F(R, u8, down, INNER) /* according to the failure detector */

CV_RECORD(candidate, CANDIDATE_FIELDS);
CV_RECORD(veteran, VETERAN_FIELDS);
CV_RECORD(state, STATE_FIELDS);
CV_RECORD(row, ROW_FIELDS);

static struct row *row_of(struct state *s, cv_pid p) { return (struct row *)(s + 1) + (p - 1); }

static bool is_stable(const struct cv_env *env) { return env->option[PERIOD] != 0; }

static uint64_t standing_of(const struct state *s) {
    return s->phase == NORMAL ? s->uptime : s->standing;
}

static void send(const struct state *s, const struct cv_env *env, cv_pid to, uint16_t kind,
                 struct cv_out *out) {
    if (is_stable(env))
        cv_send(out, to, kind, veteran, .id = env->id, .standing = standing_of(s));
    else
        cv_send(out, to, kind, candidate, .id = env->id);
}

/* ---- Comparing candidates ---- */

static bool outranks(const struct cv_env *env, cv_pid p, cv_pid other) {
    return better_candidate(env->weights[p], env->ids[p], env->weights[other], env->ids[other]);
}

static bool beats_sender(const struct state *s, const struct cv_env *env,
                         const struct cv_event *e) {
    if (is_stable(env) && env->weight && env->weights[e->from]) {
        const struct veteran *m = e->body;
        if (m->standing != standing_of(s)) return standing_of(s) > m->standing;
    }
    return outranks(env, env->self, e->from);
}

/* ---- A candidate ---- */

static bool leads(const struct state *s, const struct cv_env *env) {
    return s->leader == env->self || s->phase == ANNOUNCED;
}

static void take_lead(struct state *s, const struct cv_env *env, struct cv_out *out) {
    s->phase = NORMAL;
    if (s->leader == env->self) return;
    s->leader = env->self;
    cv_tell(out, CV_ELECTED, env->id);
}

static void announce(struct state *s, const struct cv_env *env, struct cv_out *out) {
    if (!env->weight) {
        s->phase = NORMAL; /* nobody that may lead is up */
        return;
    }
    for (cv_pid p = 1; p <= env->processes; p++)
        if (p != env->self && !row_of(s, p)->down) send(s, env, p, COORDINATOR, out);
    if (s->leader == env->self || !env->option[BULLY_HANDOVER]) {
        take_lead(s, env, out);
    } else {
        s->phase = ANNOUNCED;
        cv_timer(out, ELECTION_TIMER, env->option[BULLY_HANDOVER], env->option[BULLY_HANDOVER]);
    }
}

static void start_election(struct state *s, const struct cv_env *env, struct cv_out *out) {
    bool asked = false;
    s->standing = s->uptime;
    s->phase = ASKING;
    for (cv_pid p = 1; p <= env->processes; p++) {
        if (p == env->self || row_of(s, p)->down) continue;
        if (!is_stable(env) && !outranks(env, p, env->self)) continue;
        send(s, env, p, ELECTION, out);
        asked = true;
    }
    if (asked)
        cv_timer(out, ELECTION_TIMER, bully_answer_us(env), bully_answer_us(env));
    else
        announce(s, env, out);
}

static void give_up_leader(struct state *s, const struct cv_env *env, struct cv_out *out) {
    if (s->leader) cv_tell(out, CV_LEADERLESS, 0);
    s->leader = CV_NOBODY;
    if (s->phase == NORMAL) start_election(s, env, out);
}

static void on_timeout(struct state *s, const struct cv_env *env, struct cv_out *out) {
    if (s->phase == ASKING)
        announce(s, env, out);
    else if (s->phase == ANSWERED)
        start_election(s, env, out);
    else if (s->phase == ANNOUNCED)
        take_lead(s, env, out);
}

/* ---- Messages ---- */

static void follow(struct state *s, const struct cv_env *env, cv_pid p, struct cv_out *out) {
    if (s->phase != NORMAL) cv_timer_cancel(out, ELECTION_TIMER);
    s->phase = NORMAL;
    if (s->leader == p) return;
    s->leader = p;
    cv_tell(out, CV_FOLLOWS, env->ids[p]);
}

static void on_answer(struct state *s, const struct cv_env *env, struct cv_out *out) {
    if (s->phase != ASKING) return;
    uint64_t wait_us = bully_answer_us(env) + 2 * env->option[BULLY_TRANSMISSION];
    s->phase = ANSWERED;
    cv_timer(out, ELECTION_TIMER, wait_us, wait_us);
}

static void on_election(struct state *s, const struct cv_env *env, const struct cv_event *e,
                        struct cv_out *out) {
    if (s->leader == e->from) give_up_leader(s, env, out); /* it asks, so it leads no more */
    if (leads(s, env)) {
        send(s, env, e->from, COORDINATOR, out);
    } else if (beats_sender(s, env, e)) {
        send(s, env, e->from, ANSWER, out);
        if (s->phase == NORMAL) start_election(s, env, out);
    } else {
        on_answer(s, env, out); /* a better one is up, whether it was asked or not */
    }
}

/* Others may follow me.  Nobody knows who is better, so all must hear, after what I have announced,
 * that I lead no more; even those that I take for dead. */
static void resign(struct state *s, const struct cv_env *env, struct cv_out *out) {
    start_election(s, env, out);
    for (cv_pid p = 1; p <= env->processes; p++)
        if (row_of(s, p)->down) send(s, env, p, ELECTION, out);
}

/* The announcement of a worse process than the leader that it trusts is older than that one's, or
 * else the detector will say soon that the leader is down. */
static bool is_late(struct state *s, const struct cv_env *env, cv_pid p) {
    return !is_stable(env) && env->detector && s->phase == NORMAL && s->leader &&
           !row_of(s, s->leader)->down && outranks(env, s->leader, p);
}

/* When a worse process announces itself, a leader contradicts, and a bully starts an election.  One
 * that is taken for dead is not followed: it is dead, or will be trusted again soon. */
static void on_coordinator(struct state *s, const struct cv_env *env, const struct cv_event *e,
                           struct cv_out *out) {
    bool led = leads(s, env), better = beats_sender(s, env, e);
    if (led && better) {
        announce(s, env, out);
    } else if (!better || is_stable(env)) {
        if (row_of(s, e->from)->down || is_late(s, env, e->from)) return;
        follow(s, env, e->from, out);
        if (led && is_stable(env)) resign(s, env, out);
    } else if (s->phase == NORMAL) {
        start_election(s, env, out);
    }
}

static void on_message(struct state *s, const struct cv_env *env, const struct cv_event *e,
                       struct cv_out *out) {
    if (e->kind == ELECTION) on_election(s, env, e, out);
    if (e->kind == ANSWER) on_answer(s, env, out);
    if (e->kind == COORDINATOR) on_coordinator(s, env, e, out);
}

/* ---- Events ---- */

/* It was slow, or has restarted.  If it leads, it need not know that I do not follow it. */
static void on_up(struct state *s, const struct cv_env *env, cv_pid p, struct cv_out *out) {
    bool asks = s->leader ? !is_stable(env) && outranks(env, p, s->leader)
                          : is_stable(env) || outranks(env, p, env->self);
    row_of(s, p)->down = 0;
    if (leads(s, env))
        send(s, env, p, COORDINATOR, out);
    else if (asks)
        send(s, env, p, ELECTION, out);
}

static void count_uptime(const struct cv_env *env, struct cv_out *out) {
    if (is_stable(env)) cv_timer(out, UPTIME_TIMER, env->option[PERIOD], env->option[PERIOD]);
}

static void step(void *state, const struct cv_env *env, const struct cv_event *e,
                 struct cv_out *out) {
    struct state *s = state;
    if (e->type == CV_RECV) {
        on_message(s, env, e, out);
    } else if (e->type == CV_CALL && e->arg == CV_CAMPAIGN) {
        if (s->phase == NORMAL && s->leader != env->self) give_up_leader(s, env, out);
    } else if (e->type == CV_TIMEOUT && e->arg == ELECTION_TIMER) {
        on_timeout(s, env, out);
    } else if (e->type == CV_TIMEOUT && e->arg == UPTIME_TIMER) {
        s->uptime++;
        count_uptime(env, out);
    } else if (e->type == CV_START || e->type == CV_RESTART) {
        count_uptime(env, out);
        if (e->type == CV_RESTART) start_election(s, env, out);
    } else if (e->type == CV_DOWN) {
        row_of(s, e->arg)->down = 1;
        if (e->arg == s->leader) give_up_leader(s, env, out);
    } else if (e->type == CV_UP) {
        on_up(s, env, e->arg, out);
    }
}

static void layout(const struct cv_env *env, struct cv_layout *layout) {
    layout->rows = env->processes;
    layout->first = 1;
    layout->sends = 2 * env->processes + CV_SENDS_DEFAULT;
}

static const struct cv_record state_table = CV_TABLE_ROWS("state", state, row);
static const struct cv_record messages[KINDS] = {CV_TABLE("ELECTION", candidate),
                                                 CV_TABLE("ANSWER", candidate),
                                                 CV_TABLE("COORDINATOR", candidate)};
static const struct cv_record messages_stable[KINDS] = {
    CV_TABLE("ELECTION", veteran), CV_TABLE("ANSWER", veteran), CV_TABLE("COORDINATOR", veteran)};
static const struct cv_option options[OPTIONS] = {
    BULLY_OPTION_ROWS,
    [PERIOD] = {"period", "time up without a break that raises the standing by one", CV_DURATION,
                100000, 1, 1000000000000},
};

#define BULLY                                                                                      \
    .state = &state_table, .message_count = KINDS, .options = options, .timers = TIMERS,           \
    .layout = layout, .step = step, .problem = CV_ELECTION, .topology = CV_COMPLETE

CV_ALGORITHM(bully) = {
    .name = "bully",
    .summary = "the best process that is up takes the lead, from whoever has it",
    .paper = "Garcia-Molina, Elections in a distributed computing system, IEEE ToC 1982",
    .tolerates = "crashes and restarts while messages keep to Tt; no loss, no partition",
    .cost = "N-2 .. O(N^2)",
    .delay = "1 .. 2T",
    BULLY,
    .messages = messages,
    .option_count = PERIOD,
    .preference = CV_HIGHEST,
    .traits = CV_USES_DETECTOR,
};
CV_ALGORITHM(bully_stable) = {
    .name = "bully-stable",
    .summary = "a bully by uninterrupted uptime: a process that comes back follows",
    .paper = "the lecture's stable bully; after Aguilera et al., Stable leader election, DISC 2001",
    .tolerates = "crashes and restarts while messages keep to Tt; no loss, no partition",
    .cost = "2N .. O(N^2)",
    .delay = "T .. 2T",
    BULLY,
    .messages = messages_stable,
    .option_count = OPTIONS,
    .preference = CV_ANYONE,
    .traits = CV_USES_DETECTOR | CV_NEVER_QUIESCENT | CV_UNBOUNDED,
};
