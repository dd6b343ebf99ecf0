/* bully and bully-stable: the best process that is up takes the lead.
 *
 *   candidate                               those that are better
 *     asking    --ELECTION--> each          answer, and become candidates themselves
 *     answered  <--ANSWER--                 so one of them will win: wait for it
 *     announced --COORDINATOR--> all        nobody answered within T = 2 Tt + Tp: it wins
 *
 * Better is who has more weight, and with equal weight the higher id; everyone knows both of
 * everyone.  Who starts: whoever hears from a failure detector that its leader is down, whoever is
 * told to campaign, and whoever restarts, which may then take the lead from one that is well.  An
 * answered candidate waits T for the election of the better one and 2 Tt for what is on the way;
 * then it starts again, for the better one has died.  A leader answers ELECTION with COORDINATOR,
 * and sends it to whoever comes back.
 *
 * Cost: N-2 messages when the second best finds out and the detector knows that the best is down;
 * O(N^2) when the worst does, for then everyone asks everyone above it.
 *
 * bully-stable adds the standing: how many periods a process has been up without a break.  It
 * counts before the weight, travels on every message, and is nothing after a crash.  Since nobody
 * knows the standing of the others, a candidate asks them all; a leader that is well keeps the lead
 * whoever asks.  So a process that keeps crashing and coming back follows.  Standings are compared
 * as they were when an election began, or two that count at different moments would each find the
 * other one better.
 *
 * What breaks it: messages slower than Tt, for then the slow are taken for dead and two lead until
 * one hears of the other; a partition, for then each side has a leader; a crashed process that
 * comes back, with its id, while another that saw it down announces itself.  For as long as
 * COORDINATOR is on the way to a leader that is replaced, both lead: with the option `handover` the
 * new one waits that long.  A lost COORDINATOR leaves a process without a leader, or with a dead
 * one, until somebody starts again. */
#include "election/election.h"

enum { ELECTION, ANSWER, COORDINATOR, KINDS };
enum { TRANSMISSION, PROCESSING, HANDOVER, PERIOD, OPTIONS }; /* bully has no period: it reads 0 */
enum { ELECTION_TIMER, UPTIME_TIMER, TIMERS };
enum { CALM, ASKING, ANSWERED, ANNOUNCED }; /* a leader and those who follow it are calm */

#define CANDIDATE_FIELDS(F, R) F(R, u64, id, SHOWN)
#define VETERAN_FIELDS(F, R)                                                                       \
    F(R, u64, id, SHOWN)                                                                           \
    F(R, u64, standing, SHOWN)
#define STATE_FIELDS(F, R)                                                                         \
    F(R, pid, leader, SHOWN)                                                                       \
    F(R, u32, phase, NAMED("calm|asking|answered|announced"))                                      \
    F(R, u64, uptime, INNER)   /* in periods */                                                    \
    F(R, u64, standing, INNER) /* the uptime when the election began that it is in */
#define ROW_FIELDS(F, R) F(R, u8, down, INNER) /* as the failure detector says */

CV_RECORD(candidate, CANDIDATE_FIELDS);
CV_RECORD(veteran, VETERAN_FIELDS);
CV_RECORD(state, STATE_FIELDS);
CV_RECORD(row, ROW_FIELDS);

static struct row *row_of(struct state *s, cv_pid p) { return (struct row *)(s + 1) + (p - 1); }

static bool is_stable(const struct cv_env *env) { return env->option[PERIOD] != 0; }

/* A message there and back, and the time to answer it. */
static uint64_t answer_us(const struct cv_env *env) {
    return 2 * env->option[TRANSMISSION] + env->option[PROCESSING];
}

static uint64_t standing_of(const struct state *s) {
    return s->phase == CALM ? s->uptime : s->standing;
}

static void say(const struct state *s, const struct cv_env *env, cv_pid to, uint16_t kind,
                struct cv_out *out) {
    if (is_stable(env))
        cv_send(out, to, kind, veteran, .id = env->id, .standing = standing_of(s));
    else
        cv_send(out, to, kind, candidate, .id = env->id);
}

/* ---- Who is better ---- */

static bool outranks(const struct cv_env *env, cv_pid p, cv_pid other) {
    return better_candidate(env->weights[p], env->ids[p], env->weights[other], env->ids[other]);
}

static bool beats_sender(const struct state *s, const struct cv_env *env,
                         const struct cv_event *e) {
    if (is_stable(env)) {
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
    s->phase = CALM;
    if (s->leader == env->self) return;
    s->leader = env->self;
    cv_tell(out, CV_ELECTED, env->id);
}

static void announce(struct state *s, const struct cv_env *env, struct cv_out *out) {
    for (cv_pid p = 1; p <= env->processes; p++)
        if (p != env->self && !row_of(s, p)->down) say(s, env, p, COORDINATOR, out);
    if (s->leader == env->self || !env->option[HANDOVER]) {
        take_lead(s, env, out);
    } else {
        s->phase = ANNOUNCED;
        cv_timer(out, ELECTION_TIMER, env->option[HANDOVER], env->option[HANDOVER]);
    }
}

static void start_election(struct state *s, const struct cv_env *env, struct cv_out *out) {
    bool asked = false;
    s->standing = s->uptime;
    s->phase = ASKING;
    for (cv_pid p = 1; p <= env->processes; p++) {
        if (p == env->self || row_of(s, p)->down) continue;
        if (!is_stable(env) && !outranks(env, p, env->self)) continue;
        say(s, env, p, ELECTION, out);
        asked = true;
    }
    if (asked)
        cv_timer(out, ELECTION_TIMER, answer_us(env), answer_us(env));
    else
        announce(s, env, out);
}

static void on_timeout(struct state *s, const struct cv_env *env, struct cv_out *out) {
    if (s->phase == ASKING)
        announce(s, env, out);
    else if (s->phase == ANSWERED)
        start_election(s, env, out);
    else if (s->phase == ANNOUNCED)
        take_lead(s, env, out);
}

/* ---- What the others say ---- */

static void follow(struct state *s, const struct cv_env *env, cv_pid p, struct cv_out *out) {
    if (s->phase != CALM) cv_timer_cancel(out, ELECTION_TIMER);
    s->phase = CALM;
    if (s->leader == p) return;
    s->leader = p;
    cv_tell(out, CV_FOLLOWS, env->ids[p]);
}

static void on_answer(struct state *s, const struct cv_env *env, struct cv_out *out) {
    if (s->phase != ASKING) return;
    uint64_t wait_us = answer_us(env) + 2 * env->option[TRANSMISSION];
    s->phase = ANSWERED;
    cv_timer(out, ELECTION_TIMER, wait_us, wait_us);
}

static void on_election(struct state *s, const struct cv_env *env, const struct cv_event *e,
                        struct cv_out *out) {
    if (leads(s, env)) {
        say(s, env, e->from, COORDINATOR, out);
    } else if (beats_sender(s, env, e)) {
        say(s, env, e->from, ANSWER, out);
        if (s->phase == CALM) start_election(s, env, out);
    } else {
        on_answer(s, env, out); /* a better one is up, whether it was asked or not */
    }
}

/* A worse one announces itself: a leader contradicts, and a bully takes it as a challenge. */
static void on_coordinator(struct state *s, const struct cv_env *env, const struct cv_event *e,
                           struct cv_out *out) {
    bool better = beats_sender(s, env, e);
    if (leads(s, env) && better)
        announce(s, env, out);
    else if (!better || is_stable(env))
        follow(s, env, e->from, out);
    else if (s->phase == CALM)
        start_election(s, env, out);
}

static void on_message(struct state *s, const struct cv_env *env, const struct cv_event *e,
                       struct cv_out *out) {
    if (e->kind == ELECTION) on_election(s, env, e, out);
    if (e->kind == ANSWER) on_answer(s, env, out);
    if (e->kind == COORDINATOR) on_coordinator(s, env, e, out);
}

/* ---- Events ---- */

static void give_up_leader(struct state *s, const struct cv_env *env, struct cv_out *out) {
    if (s->leader) cv_tell(out, CV_LEADERLESS, 0);
    s->leader = CV_NOBODY;
    if (s->phase == CALM) start_election(s, env, out);
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
        if (s->phase == CALM && s->leader != env->self) give_up_leader(s, env, out);
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
        row_of(s, e->arg)->down = 0;
        if (leads(s, env)) say(s, env, e->arg, COORDINATOR, out);
    }
}

static void layout(const struct cv_env *env, struct cv_layout *layout) {
    layout->rows = env->processes;
    layout->first = 1;
    layout->sends = 2 * env->processes + CV_SENDS_USUAL;
}

static const struct cv_record state_table = CV_TABLE_ROWS("state", state, row);
static const struct cv_record messages[KINDS] = {CV_TABLE("ELECTION", candidate),
                                                 CV_TABLE("ANSWER", candidate),
                                                 CV_TABLE("COORDINATOR", candidate)};
static const struct cv_record messages_stable[KINDS] = {
    CV_TABLE("ELECTION", veteran), CV_TABLE("ANSWER", veteran), CV_TABLE("COORDINATOR", veteran)};
static const struct cv_option options[OPTIONS] = {
    [TRANSMISSION] = {"transmission", "Tt: the most that a message may take", CV_DURATION, 10000, 0,
                      1000000000000},
    [PROCESSING] = {"processing", "Tp: the most that a process may take to answer", CV_DURATION,
                    1000, 0, 1000000000000},
    [HANDOVER] = {"handover", "announce, then wait this long before leading", CV_DURATION, 0, 0,
                  1000000000000},
    [PERIOD] = {"period", "each of these without a break raises the standing by one", CV_DURATION,
                100000, 1, 1000000000000},
};

#define BULLY                                                                                      \
    .state = &state_table, .message_count = KINDS, .options = options, .timers = TIMERS,           \
    .layout = layout, .step = step, .problem = CV_ELECTION, .topology = CV_COMPLETE

const struct cv_algorithm cv_bully = {
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
const struct cv_algorithm cv_bully_stable = {
    .name = "bully-stable",
    .summary = "a bully by uninterrupted uptime: who comes back follows",
    .paper = "the lecture's stable bully; after Aguilera et al., Stable leader election, DISC 2001",
    .tolerates = "crashes and restarts while messages keep to Tt; no loss, no partition",
    .cost = "2N .. O(N^2)",
    .delay = "T .. 2T",
    BULLY,
    .messages = messages_stable,
    .option_count = OPTIONS,
    .preference = CV_ANYONE,
    .traits = CV_USES_DETECTOR | CV_NEVER_RESTS | CV_GROWS,
};
