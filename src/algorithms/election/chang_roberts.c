/* chang-roberts: ids race round a one-way ring, and a better process stops the ids of worse ones.
 *
 *   idle   wants an election: takes part  --ELECTION(own id)--> right
 *   any    ELECTION of a better candidate: takes part, and passes it on
 *          ELECTION of a worse one: if idle, takes part and sends its own id instead;
 *          if it takes part already, a better one has passed here, so this one ends
 *          ELECTION with its own id: it has beaten everybody, and leads  --ELECTED--> right
 *          ELECTED: takes part no more, follows, and passes it on until it is back
 *
 * Cost: with ids in random order and all initiating, N H(N) + N messages on average, of which the
 * last N tell everybody.  The worst case, N(N+1)/2 + N, is ids that fall along the direction of
 * travel: the id k travels k hops.  One initiator costs 3N - 1 at the most: N - 1 until its
 * message reaches the best, N for that one's id, and N for ELECTED.
 *
 * Candidates are compared by weight, then by id; a weight of 0 cannot lead.  An election may be
 * repeated at any time; a process that comes back from a crash does so, because that tells it who
 * leads.  A leader that passes a better candidate on leads no more.
 *
 * With a failure detector the dead are skipped, and whoever hears that its leader is dead wants an
 * election.  Messages may have died with a process, so the one before it sends its id again:
 *   any    next on the ring died, or came back  --AGAIN(own id)--> right
 *          AGAIN: as ELECTION, but those that take part send their own id instead of a worse one
 *          ELECTION, AGAIN or ELECTED of one that it skips: --AGAIN(own id)--> right
 *
 * What it takes for granted: reliable channels, and FIFO ones where elections are repeated.
 *
 * What breaks it: without a failure detector a crash during an election swallows the messages that
 * pass there, and those that take part wait for ever; nobody notices a dead leader.  With one, a
 * wrong suspicion: a leader that is skipped leads on beside the one that the others elect, until
 * it is trusted again.  A process that is back at once can lead beside one that was elected
 * meanwhile, until its id has gone round. */
#include "algorithms/election/election.h"

enum { ELECTION, ELECTED, AGAIN, KINDS };

#define ELECTION_FIELDS(F, R)                                                                      \
    F(R, id, id, SHOWN)                                                                            \
    F(R, u64, weight, INNER)
#define STATE_FIELDS(F, R)                                                                         \
    F(R, id, leader, SHOWN)                                                                        \
    F(R, u32, participant, NAMED("no|yes"))                                                        \
    F(R, u32, down, INNER) /* a bit for each of the next to the right */

CV_RECORD(election, ELECTION_FIELDS);
CV_RECORD(state, STATE_FIELDS);

static void follow(struct state *s, const struct cv_env *env, uint64_t leader, struct cv_out *out) {
    s->participant = 0;
    if (s->leader == leader) return;
    s->leader = leader;
    cv_tell(out, leader == env->id ? CV_ELECTED : CV_FOLLOWS, leader);
}

static void give_up_leader(struct state *s, struct cv_out *out) {
    s->leader = 0;
    cv_tell(out, CV_LEADERLESS, 0);
}

/* What was sent earlier, by another way, can come later: it is out of date.  The search is for a
 * leader that is replaced alone; a state without its weight keeps a ring of a million fast. */
static bool knows_better(const struct state *s, const struct cv_env *env, uint64_t weight,
                         uint64_t id) {
    if (!s->leader || s->leader == id) return false;
    cv_pid leader = env->processes;
    while (leader && env->ids[leader] != s->leader) leader--;
    return better_candidate(env->weights[leader], s->leader, weight, id);
}

static void announce(const struct state *s, const struct cv_env *env, uint64_t id, uint64_t weight,
                     struct cv_out *out) {
    cv_pid next = ring_next(env, s->down);
    if (next) cv_send(out, next, ELECTED, election, .id = id, .weight = weight);
}

/* Its id has been everywhere, or there is nobody else. */
static void win(struct state *s, const struct cv_env *env, struct cv_out *out) {
    if (knows_better(s, env, env->weight, env->id)) return;
    s->participant = 0;
    if (!env->weight) return;
    follow(s, env, env->id, out);
    announce(s, env, env->id, env->weight, out);
}

static void pass_on(struct state *s, const struct cv_env *env, uint16_t kind, uint64_t id,
                    uint64_t weight, struct cv_out *out) {
    cv_pid next = ring_next(env, s->down);
    s->participant = 1;
    if (next)
        cv_send(out, next, kind, election, .id = id, .weight = weight);
    else
        win(s, env, out);
}

static void stand(struct state *s, const struct cv_env *env, uint16_t kind, struct cv_out *out) {
    pass_on(s, env, kind, env->id, env->weight, out);
}

static void on_election(struct state *s, const struct cv_env *env, uint16_t kind,
                        const struct election *m, struct cv_out *out) {
    bool dead = env->detector && ring_skips(env, s->down, m->id);
    if (m->id == env->id) {
        win(s, env, out);
    } else if (dead) {
        stand(s, env, AGAIN, out);
    } else if (better_candidate(m->weight, m->id, env->weight, env->id)) {
        if (env->detector && s->leader == env->id) give_up_leader(s, out);
        pass_on(s, env, kind, m->id, m->weight, out);
    } else if (kind == AGAIN || !s->participant) {
        stand(s, env, kind, out);
    }
}

static void on_elected(struct state *s, const struct cv_env *env, const struct election *m,
                       struct cv_out *out) {
    if (m->id == env->id || knows_better(s, env, m->weight, m->id))
        return; /* it has been everywhere */
    if (ring_skips(env, s->down, m->id)) {
        stand(s, env, AGAIN, out);
        return;
    }
    if (!ring_has(env, s->down, m->id)) follow(s, env, m->id, out);
    announce(s, env, m->id, m->weight, out);
}

/* ---- The failure detector ---- */

static void on_down(struct state *s, const struct cv_env *env, cv_pid p, struct cv_out *out) {
    bool led = s->leader == env->ids[p], awake = s->leader || s->participant;
    bool was_next = ring_next(env, s->down) == p;
    s->down |= ring_bit(env, p);
    if (led) give_up_leader(s, out);
    if (led || (was_next && awake))
        stand(s, env, was_next || s->participant ? AGAIN : ELECTION, out);
}

static void on_up(struct state *s, const struct cv_env *env, cv_pid p, struct cv_out *out) {
    s->down &= ~ring_bit(env, p);
    bool is_next = ring_next(env, s->down) == p;
    if (s->participant || (s->leader && is_next)) stand(s, env, AGAIN, out);
}

static void step(void *state, const struct cv_env *env, const struct cv_event *e,
                 struct cv_out *out) {
    struct state *s = state;
    if (e->type == CV_RECV && env->degree) {
        if (e->kind == ELECTED)
            on_elected(s, env, e->body, out);
        else
            on_election(s, env, e->kind, e->body, out);
    } else if (e->type == CV_RESTART || (e->type == CV_CALL && e->arg == CV_CAMPAIGN)) {
        if (!s->participant) stand(s, env, ELECTION, out);
    } else if (e->type == CV_DOWN) {
        on_down(s, env, e->arg, out);
    } else if (e->type == CV_UP) {
        on_up(s, env, e->arg, out);
    }
}

static const struct cv_record state_table = CV_TABLE("state", state);
static const struct cv_record messages[KINDS] = {
    CV_TABLE("ELECTION", election), CV_TABLE("ELECTED", election), CV_TABLE("AGAIN", election)};

CV_ALGORITHM(chang_roberts) = {
    .name = "chang-roberts",
    .summary = "ids race round a one-way ring; a better process stops the ids of worse ones",
    .paper = "Chang & Roberts, An improved algorithm for decentralized extrema-finding, CACM 1979",
    .cost = "N H(N) + N on average, at most N(N+1)/2 + N; one initiator: at most 3N-1",
    .delay = "2N .. 3N-1",
    .tolerates = "with a detector crashes and restarts, else those between elections; no loss",
    CV_MACHINE_WITH(bare_layout),
    .problem = CV_ELECTION,
    .topology = CV_RING,
    .preference = CV_HIGHEST,
    .traits = CV_USES_DETECTOR,
};
