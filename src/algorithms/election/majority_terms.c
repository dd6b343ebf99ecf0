/* majority-terms: more than half of the weight elects, term by term.
 *
 *   follower       hears nothing for an election timeout, and asks whether it should stand:
 *   pre-candidate  --PRE_VOTE--> all, <--PRE_ANSWER--; with more than half of the weight it
 *   candidate      opens the next term, votes for itself: --VOTE--> all, <--ANSWER--; with more
 *   leader         than half of the weight it leads: --HEARTBEAT--> all, <--ALIVE--
 *
 * Any two majorities share a process, and a process votes once in a term and remembers its vote
 * over a crash: so no term has two leaders.  Every message carries a term; a message of an older
 * term counts for nothing, one of a newer term makes its receiver a follower in it.  Two may
 * believe that they lead, the older one in an older term: a leader that does not hear from more
 * than half of the weight within an election timeout steps down.
 *
 * PRE_VOTE changes nothing at its receivers, which agree only when they have not heard from a
 * leader for an election timeout themselves.  So a process that was cut off cannot depose a leader
 * that the others hear.  Pre-answers carry the receiver's term; else a process in an older term
 * would ask for ever.
 *
 * The first half of an election timeout is the leader's lease, and the second is random, so that
 * processes that wait seldom stand together.
 *
 * Cost: 4(N-1) messages per election, 4 message times after the timeout; 2(N-1) for each heartbeat.
 *
 * What breaks it: amnesia, for a process that forgets its vote gives it twice.  Nobody leads while
 * no part of the network has more than half of the weight, nor while messages take longer than the
 * election timeout.  A leader that is only slow is replaced, and so is one that has lost touch
 * with its majority. */
#include "algorithms/election/election.h"

enum { PRE_VOTE, PRE_ANSWER, VOTE, ANSWER, HEARTBEAT, ALIVE, KINDS };
enum { ELECTION_TIMEOUT, HEARTBEAT_INTERVAL, OPTIONS };
enum { ELECTION_TIMER, HEARTBEAT_TIMER, TIMERS };
enum { FOLLOWER, PRE_CANDIDATE, CANDIDATE, LEADER };

#define CALL_FIELDS(F, R) F(R, u32, term, SHOWN)
#define REPLY_FIELDS(F, R)                                                                         \
    F(R, u32, term, SHOWN)                                                                         \
    F(R, u32, yes, NAMED("no|yes"))
#define STATE_FIELDS(F, R)                                                                         \
    F(R, u32, term, SHOWN)                                                                         \
    F(R, pid, vote, SHOWN) /* in this term; durable up to here */                                  \
    F(R, pid, leader, SHOWN)                                                                       \
    F(R, u16, role, NAMED("follower|pre-candidate|candidate|leader"))                              \
    F(R, u16, in_lease, INNER) /* heard from a leader, or voted, within the election timeout */    \
    F(R, u64, votes, INNER)    /* weight of those that said yes */                                 \
    F(R, u64, total, INNER)    /* weight of all */
#define ROW_FIELDS(F, R)                                                                           \
    F(R, u8, yes, INNER)   /* its answer to my last VOTE or PRE_VOTE */                            \
    F(R, u8, heard, INNER) /* since the last quorum check */

CV_RECORD(call, CALL_FIELDS);
CV_RECORD(reply, REPLY_FIELDS);
CV_RECORD(state, STATE_FIELDS);
CV_RECORD(row, ROW_FIELDS);

static struct row *row_of(struct state *s, cv_pid p) { return (struct row *)(s + 1) + (p - 1); }

/* ---- Rules: weights, terms, votes, pre-votes ---- */

/* Weights are clamped so that their sum over all processes does not overflow. */
static uint64_t weight_of(const struct cv_env *env, cv_pid p) {
    const uint64_t max = (uint64_t)1 << 40;
    return env->weights[p] < max ? env->weights[p] : max;
}

static bool is_majority(const struct state *s, uint64_t weight) { return weight > s->total / 2; }

static bool may_vote_for(const struct state *s, cv_pid p, uint32_t term) {
    return term == s->term && (s->vote == CV_NOBODY || s->vote == p);
}

static bool would_vote_for(const struct state *s, uint32_t term) {
    return term == s->term && !s->in_lease && s->role != LEADER;
}

static void give_vote(struct state *s, cv_pid p, struct cv_out *out) {
    s->vote = p;
    cv_save(out);
}

static void enter_term(struct state *s, uint32_t term, struct cv_out *out) {
    s->term = term;
    s->vote = CV_NOBODY;
    cv_save(out);
}

/* ---- Waiting and stepping down ---- */

static void wait_without_lease(struct state *s, const struct cv_env *env, struct cv_out *out) {
    uint64_t timeout_us = env->option[ELECTION_TIMEOUT];
    s->in_lease = 0;
    cv_timer(out, ELECTION_TIMER, timeout_us, 2 * timeout_us);
}

static void wait_with_lease(struct state *s, const struct cv_env *env, struct cv_out *out) {
    s->role = FOLLOWER;
    s->in_lease = 1;
    cv_timer(out, ELECTION_TIMER, env->option[ELECTION_TIMEOUT], env->option[ELECTION_TIMEOUT]);
}

static void give_up_leader(struct state *s, struct cv_out *out) {
    if (s->leader) cv_tell(out, CV_LEADERLESS, 0);
    s->leader = CV_NOBODY;
}

static void step_down(struct state *s, const struct cv_env *env, struct cv_out *out) {
    if (s->role == LEADER) cv_timer_cancel(out, HEARTBEAT_TIMER);
    give_up_leader(s, out);
    s->role = FOLLOWER;
    wait_without_lease(s, env, out);
}

/* ---- Elections and leading ---- */

static void send_heartbeats(const struct state *s, const struct cv_env *env, struct cv_out *out) {
    cv_send(out, CV_OTHERS, HEARTBEAT, call, .term = s->term);
    cv_timer(out, HEARTBEAT_TIMER, env->option[HEARTBEAT_INTERVAL],
             env->option[HEARTBEAT_INTERVAL]);
}

static void forget_rows(struct state *s, const struct cv_env *env) {
    memset(s + 1, 0, env->processes * sizeof(struct row));
}

static void take_lead(struct state *s, const struct cv_env *env, struct cv_out *out) {
    s->role = LEADER;
    s->leader = env->self;
    forget_rows(s, env);
    cv_timer(out, ELECTION_TIMER, env->option[ELECTION_TIMEOUT], env->option[ELECTION_TIMEOUT]);
    send_heartbeats(s, env, out);
    cv_tell_term(out, CV_ELECTED, env->id, s->term);
}

/* A (pre-)candidate counts its own vote first. */
static void request_votes(struct state *s, const struct cv_env *env, uint16_t role,
                          struct cv_out *out) {
    s->role = role;
    s->votes = weight_of(env, env->self);
    forget_rows(s, env);
    wait_without_lease(s, env, out);
    cv_send(out, CV_OTHERS, role == CANDIDATE ? VOTE : PRE_VOTE, call, .term = s->term);
}

static void start_election(struct state *s, const struct cv_env *env, struct cv_out *out) {
    if (s->term == UINT32_MAX) return; /* terms are exhausted */
    enter_term(s, s->term + 1, out);
    give_vote(s, env->self, out);
    cv_tell(out, CV_ROUND, s->term);
    request_votes(s, env, CANDIDATE, out);
    if (is_majority(s, s->votes)) take_lead(s, env, out);
}

static void start_pre_vote(struct state *s, const struct cv_env *env, struct cv_out *out) {
    give_up_leader(s, out);
    if (!env->weight) {
        wait_without_lease(s, env, out); /* it only follows */
        return;
    }
    request_votes(s, env, PRE_CANDIDATE, out);
    if (is_majority(s, s->votes)) start_election(s, env, out);
}

static void on_vote_granted(struct state *s, const struct cv_env *env, cv_pid p,
                            struct cv_out *out) {
    if (row_of(s, p)->yes) return; /* a duplicate: one process, one vote */
    row_of(s, p)->yes = 1;
    s->votes += weight_of(env, p);
    if (!is_majority(s, s->votes)) return;
    if (s->role == PRE_CANDIDATE)
        start_election(s, env, out);
    else
        take_lead(s, env, out);
}

static void check_quorum(struct state *s, const struct cv_env *env, struct cv_out *out) {
    uint64_t heard = weight_of(env, env->self);
    for (cv_pid p = 1; p <= env->processes; p++)
        if (row_of(s, p)->heard) heard += weight_of(env, p);
    forget_rows(s, env);
    if (is_majority(s, heard))
        cv_timer(out, ELECTION_TIMER, env->option[ELECTION_TIMEOUT], env->option[ELECTION_TIMEOUT]);
    else
        step_down(s, env, out);
}

/* ---- Events ---- */

static void on_vote(struct state *s, const struct cv_env *env, cv_pid p, uint32_t term,
                    struct cv_out *out) {
    bool yes = may_vote_for(s, p, term);
    if (yes) {
        give_vote(s, p, out);
        wait_with_lease(s, env, out);
    }
    cv_send(out, p, ANSWER, reply, .term = s->term, .yes = yes);
}

static void on_heartbeat(struct state *s, const struct cv_env *env, cv_pid p, uint32_t term,
                         struct cv_out *out) {
    cv_send(out, p, ALIVE, call, .term = s->term);
    if (term != s->term || s->role == LEADER) return;
    wait_with_lease(s, env, out);
    if (s->leader == p) return;
    s->leader = p;
    cv_tell_term(out, CV_FOLLOWS, env->ids[p], s->term);
}

static void on_message(struct state *s, const struct cv_env *env, const struct cv_event *e,
                       struct cv_out *out) {
    const struct reply *m = e->body; /* every message begins with its term */
    if (m->term > s->term) {
        step_down(s, env, out);
        enter_term(s, m->term, out);
    }
    bool current = m->term == s->term;
    switch (e->kind) {
    case PRE_VOTE:
        cv_send(out, e->from, PRE_ANSWER, reply, .term = s->term,
                .yes = would_vote_for(s, m->term));
        break;
    case PRE_ANSWER:
        if (s->role == PRE_CANDIDATE && current && m->yes) on_vote_granted(s, env, e->from, out);
        break;
    case VOTE: on_vote(s, env, e->from, m->term, out); break;
    case ANSWER:
        if (s->role == CANDIDATE && current && m->yes) on_vote_granted(s, env, e->from, out);
        break;
    case HEARTBEAT: on_heartbeat(s, env, e->from, m->term, out); break;
    case ALIVE:
        if (s->role == LEADER && current) row_of(s, e->from)->heard = 1;
        break;
    }
}

static void on_election_timeout(struct state *s, const struct cv_env *env, struct cv_out *out) {
    if (s->role == LEADER) {
        check_quorum(s, env, out);
    } else if (s->in_lease) {
        s->in_lease = 0;
        cv_timer(out, ELECTION_TIMER, 1, env->option[ELECTION_TIMEOUT]);
    } else {
        start_pre_vote(s, env, out);
    }
}

static void step(void *state, const struct cv_env *env, const struct cv_event *e,
                 struct cv_out *out) {
    struct state *s = state;
    if (e->type == CV_RECV) {
        on_message(s, env, e, out);
    } else if (e->type == CV_TIMEOUT && e->arg == ELECTION_TIMER) {
        on_election_timeout(s, env, out);
    } else if (e->type == CV_TIMEOUT && s->role == LEADER) {
        send_heartbeats(s, env, out);
    } else if (e->type == CV_CALL && e->arg == CV_CAMPAIGN && s->role == FOLLOWER) {
        start_pre_vote(s, env, out);
    } else if (e->type == CV_START || e->type == CV_RESTART) {
        for (cv_pid p = 1; p <= env->processes; p++) s->total += weight_of(env, p);
        wait_without_lease(s, env, out);
    }
}

static const char *refuse(const struct cv_env *env) {
    if (env->option[HEARTBEAT_INTERVAL] >= env->option[ELECTION_TIMEOUT])
        return "heartbeat-interval must be shorter than election-timeout, or a leader loses its "
               "followers";
    return NULL;
}

static void layout(const struct cv_env *env, struct cv_layout *layout) {
    layout->rows = env->processes;
    layout->first = 1;
    layout->durable = offsetof(struct state, leader);
}

static const struct cv_record state_table = CV_TABLE_ROWS("state", state, row);
static const struct cv_record messages[KINDS] = {
    CV_TABLE("PRE_VOTE", call), CV_TABLE("PRE_ANSWER", reply), CV_TABLE("VOTE", call),
    CV_TABLE("ANSWER", reply),  CV_TABLE("HEARTBEAT", call),   CV_TABLE("ALIVE", call),
};
static const struct cv_option options[OPTIONS] = {
    [ELECTION_TIMEOUT] = {"election-timeout",
                          "stand for election after hearing nothing for this long (up to twice)",
                          CV_DURATION, 150000, 2, 1000000000000},
    [HEARTBEAT_INTERVAL] = {"heartbeat-interval", "how often a leader sends a heartbeat",
                            CV_DURATION, 30000, 1, 1000000000000},
};

CV_ALGORITHM(majority_terms) = {
    .name = "majority-terms",
    .summary = "more than half of the weight elects, term by term: the election of Raft",
    .paper = "Ongaro & Ousterhout, In search of an understandable consensus algorithm, ATC 2014",
    .tolerates = "crashes of less than half the weight, partitions, loss; restarts, not amnesia",
    .cost = "4(N-1), and 2(N-1) per heartbeat",
    .delay = "4 after the timeout",
    CV_MACHINE,
    CV_OPTIONS,
    .timers = TIMERS,
    .refuse = refuse,
    .problem = CV_ELECTION,
    .topology = CV_COMPLETE,
    .preference = CV_ANYONE,
    .traits = CV_TERMS | CV_NEVER_QUIESCENT | CV_UNBOUNDED,
};
