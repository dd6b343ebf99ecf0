/* ring-coordinator: a list goes round the live processes, then the best of it is announced.
 *
 *   wants an election     --ELECTION(itself)--> the next on the ring that is not known to be dead
 *   ELECTION without me   adds itself and passes it on
 *   ELECTION with me      it has been everywhere  --COORDINATOR(the list)--> round the ring once
 *   COORDINATOR           the best of the list that is not known to be dead leads
 *
 * The ring is the order of the processes, closed; anyone can reach anyone, so the dead are skipped.
 * A process starts an election when it hears that its leader is dead, when it restarts, and when
 * its successor changes because a process died or came back: a message may have died with the old
 * successor, and the new one may know no leader.  Lists that were made at different times may
 * differ; everyone keeps to the best leader that it has heard of and does not know to be dead.
 *
 * Cost: 2N messages of a length up to N, and 2N message times, for each initiator; 2N^2 when the
 * death of a leader makes everyone an initiator.  Candidates are compared by weight, then by id;
 * a weight of 0 cannot lead.
 *
 * What breaks it: a message that is lost without a crash.  A wrong suspicion: the others elect
 * another while the old leader, alive, leads on; they come back to it when they trust it again.
 * A leader that restarts at once can lead beside the one elected meanwhile, until its list has gone
 * round.  The best of all takes the lead back whenever it comes back, which is E1, not stability.
 * Without a failure detector a dead process swallows all that is sent to it. */
#include "algorithms/election/election.h"

enum { ELECTION, COORDINATOR, KINDS };

#define ELECTION_FIELDS(F, R)                                                                      \
    F(R, pid, process, SHOWN) /* the initiator; the rows are the processes that it met */
#define COORDINATOR_FIELDS(F, R)                                                                   \
    F(R, u32, hops, INNER) /* still to go; it must end even when its sender is dead */
#define MEMBER_FIELDS(F, R) F(R, pid, process, SHOWN)
#define STATE_FIELDS(F, R)                                                                         \
    F(R, pid, leader, SHOWN)                                                                       \
    F(R, u16, awake, INNER)            /* it has taken part in an election */                      \
    F(R, u16, joined, NAMED("no|yes")) /* it takes part in one now */
#define ROW_FIELDS(F, R) F(R, u8, down, INNER)

CV_RECORD(election, ELECTION_FIELDS);
CV_RECORD(coordinator, COORDINATOR_FIELDS);
CV_RECORD(member, MEMBER_FIELDS);
CV_RECORD(state, STATE_FIELDS);
CV_RECORD(row, ROW_FIELDS);

static struct row *row_of(struct state *s, cv_pid p) { return (struct row *)(s + 1) + (p - 1); }

static cv_pid successor(struct state *s, const struct cv_env *env) {
    cv_pid p = env->self;
    do p = p % env->processes + 1;
    while (p != env->self && row_of(s, p)->down);
    return p;
}

static bool better(const struct cv_env *env, cv_pid a, cv_pid b) {
    return better_candidate(env->weights[a], env->ids[a], env->weights[b], env->ids[b]);
}

/* Of those that it does not know to be dead: they may have died after they were met. */
static cv_pid best_of(struct state *s, const struct cv_env *env, const struct member *list,
                      uint32_t length) {
    cv_pid best = CV_NOBODY;
    for (uint32_t i = 0; i < length; i++) {
        cv_pid p = list[i].process;
        if (!env->weights[p] || row_of(s, p)->down) continue;
        if (!best || better(env, p, best)) best = p;
    }
    return best;
}

static void follow(struct state *s, const struct cv_env *env, cv_pid leader, struct cv_out *out) {
    bool keeps = s->leader && !better(env, leader, s->leader); /* an older list can come later */
    s->joined = 0;
    if (keeps || !env->weights[leader]) return;
    s->leader = leader;
    cv_tell(out, leader == env->self ? CV_ELECTED : CV_FOLLOWS, env->ids[leader]);
}

static void start(struct state *s, const struct cv_env *env, struct cv_out *out) {
    cv_pid next = successor(s, env);
    s->awake = s->joined = 1;
    if (next == env->self)
        follow(s, env, env->self, out);
    else
        cv_send_rows(out, next, ELECTION, election, member, 0, .process = env->self);
}

/* ---- The list ---- */

static void pass_on(struct state *s, const struct cv_env *env, const struct election *m,
                    const struct member *met, uint32_t count, struct cv_out *out) {
    cv_pid next = successor(s, env);
    if (next == env->self) {
        follow(s, env, env->self, out); /* all processes that it met have died since */
        return;
    }
    struct member *rows =
        cv_send_rows(out, next, ELECTION, election, member, count + 1, .process = m->process);
    memcpy(rows, met, count * sizeof *met);
    rows[count].process = env->self;
}

static void announce(struct state *s, const struct cv_env *env, const struct election *m,
                     const struct member *met, uint32_t count, struct cv_out *out) {
    cv_pid next = successor(s, env);
    if (next == env->self) {
        follow(s, env, env->self, out);
        return;
    }
    struct member *rows =
        cv_send_rows(out, next, COORDINATOR, coordinator, member, count + 1, .hops = count + 1);
    rows[0].process = m->process;
    memcpy(rows + 1, met, count * sizeof *met);
    follow(s, env, best_of(s, env, rows, count + 1), out);
}

/* The list reaches the old leader before the winner is announced, so two never lead at once. */
static void step_down(struct state *s, const struct cv_env *env, const struct election *m,
                      const struct member *met, uint32_t count, struct cv_out *out) {
    cv_pid best = best_of(s, env, met, count);
    bool beaten = best && better(env, best, env->self);
    beaten |= m->process && better(env, m->process, env->self);
    if (!beaten) return;
    s->leader = CV_NOBODY;
    cv_tell(out, CV_LEADERLESS, 0);
}

static void on_election(struct state *s, const struct cv_env *env, const struct election *m,
                        uint32_t count, struct cv_out *out) {
    const struct member *met = (const void *)(m + 1);
    bool complete = m->process == env->self;
    for (uint32_t i = 0; i < count; i++) complete |= met[i].process == env->self;
    if (count >= env->processes) return; /* a longer list is of another ring */
    s->awake = s->joined = 1;
    if (s->leader == env->self) step_down(s, env, m, met, count, out);
    if (complete)
        announce(s, env, m, met, count, out);
    else
        pass_on(s, env, m, met, count, out);
}

static void on_coordinator(struct state *s, const struct cv_env *env, const struct coordinator *m,
                           uint32_t count, struct cv_out *out) {
    const struct member *list = (const void *)(m + 1);
    cv_pid next = successor(s, env), best = best_of(s, env, list, count);
    s->awake = 1;
    if (best) follow(s, env, best, out);
    if (m->hops <= 1 || m->hops > count || next == env->self) return;
    memcpy(cv_send_rows(out, next, COORDINATOR, coordinator, member, count, .hops = m->hops - 1),
           list, count * sizeof *list);
}

/* ---- The failure detector ---- */

static void on_down(struct state *s, const struct cv_env *env, cv_pid p, struct cv_out *out) {
    bool led = s->leader == p, was_successor = successor(s, env) == p;
    row_of(s, p)->down = 1;
    if (led) {
        s->leader = CV_NOBODY;
        cv_tell(out, CV_LEADERLESS, 0);
    }
    if (s->awake && (led || was_successor)) start(s, env, out);
}

static void on_up(struct state *s, const struct cv_env *env, cv_pid p, struct cv_out *out) {
    row_of(s, p)->down = 0;
    if (s->awake && (!s->leader || successor(s, env) == p)) start(s, env, out);
}

static void step(void *state, const struct cv_env *env, const struct cv_event *e,
                 struct cv_out *out) {
    struct state *s = state;
    if (e->type == CV_CALL && e->arg == CV_CAMPAIGN) {
        if (!s->leader && !s->joined) start(s, env, out);
    } else if (e->type == CV_RECV && e->kind == ELECTION) {
        uint32_t bytes = e->size - (uint32_t)sizeof(struct election);
        on_election(s, env, e->body, bytes / (uint32_t)sizeof(struct member), out);
    } else if (e->type == CV_RECV && e->kind == COORDINATOR) {
        uint32_t bytes = e->size - (uint32_t)sizeof(struct coordinator);
        on_coordinator(s, env, e->body, bytes / (uint32_t)sizeof(struct member), out);
    } else if (e->type == CV_RESTART) {
        start(s, env, out);
    } else if (e->type == CV_DOWN) {
        on_down(s, env, e->arg, out);
    } else if (e->type == CV_UP) {
        on_up(s, env, e->arg, out);
    }
}

static void layout(const struct cv_env *env, struct cv_layout *layout) {
    layout->rows = env->processes;
    layout->first = 1;
    layout->message_rows = env->processes;
}

static const struct cv_record state_table = CV_TABLE_ROWS("state", state, row);
static const struct cv_record messages[KINDS] = {
    CV_TABLE_ROWS("ELECTION", election, member),
    CV_TABLE_ROWS("COORDINATOR", coordinator, member),
};

CV_ALGORITHM(ring_coordinator) = {
    .name = "ring-coordinator",
    .summary = "a list goes round the live processes, then the best of it is announced",
    .paper = "Tanenbaum & van Steen, Distributed Systems, 5.4: election in a ring",
    .cost = "2N for each initiator, of a length up to N",
    .delay = "2N",
    .tolerates = "crashes and restarts, with a right detector; no loss, no partition",
    CV_MACHINE,
    .problem = CV_ELECTION,
    .traits = CV_USES_DETECTOR,
    .topology = CV_COMPLETE,
    .preference = CV_HIGHEST,
};
