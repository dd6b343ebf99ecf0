/* chang-roberts: ids race round a one-way ring, and a better one stops those behind it.
 *
 *   idle   wants an election: takes part  --ELECTION(own id)--> right
 *   any    ELECTION of a better candidate: takes part, and passes it on
 *          ELECTION of a worse one: if idle, takes part and sends its own id instead;
 *          if it takes part already, a better one has passed here, so this one ends
 *          ELECTION with its own id: it has beaten everybody, and leads  --ELECTED--> right
 *          ELECTED: takes part no more, follows, and passes it on until it is back
 *
 * Cost: with ids in random order and all initiating, N H(N) + N messages on average, of which the
 * last N tell everybody.  The worst, N(N+1)/2 + N, are ids that fall along the direction of travel:
 * the id k travels k hops.  One initiator costs 3N - 1 at the most: N - 1 until its message reaches
 * the best, N for that one's id, and N for ELECTED.
 *
 * Candidates are compared by weight, then by id.  An election may be repeated at any time; who
 * comes back from a crash does so, because that tells it who leads.
 *
 * What it takes for granted: reliable channels, and FIFO ones where elections are repeated.  What
 * breaks it: a crash during an election swallows the messages that pass there, and those who take
 * part wait for ever; a dead leader is noticed by nobody, and breaks the ring for the election that
 * would replace it. */
#include "election/election.h"

enum { ELECTION, ELECTED, KINDS };

#define ELECTION_FIELDS(F, R)                                                                      \
    F(R, u64, id, SHOWN)                                                                           \
    F(R, u64, weight, INNER)
#define ELECTED_FIELDS(F, R) F(R, u64, id, SHOWN)
#define STATE_FIELDS(F, R)                                                                         \
    F(R, u64, leader, SHOWN)                                                                       \
    F(R, u64, participant, NAMED("no|yes"))

CV_RECORD(election, ELECTION_FIELDS);
CV_RECORD(elected, ELECTED_FIELDS);
CV_RECORD(state, STATE_FIELDS);

static void follow(struct state *s, const struct cv_env *env, uint64_t leader, struct cv_out *out) {
    s->participant = 0;
    if (s->leader == leader) return;
    s->leader = leader;
    cv_tell(out, leader == env->id ? CV_ELECTED : CV_FOLLOWS, leader);
}

static void pass_on(struct state *s, const struct cv_env *env, uint64_t id, uint64_t weight,
                    struct cv_out *out) {
    s->participant = 1;
    cv_send(out, ring_neighbour(env, TO_THE_RIGHT), ELECTION, election, .id = id, .weight = weight);
}

static void campaign(struct state *s, const struct cv_env *env, struct cv_out *out) {
    if (env->degree == 0)
        follow(s, env, env->id, out);
    else if (!s->participant)
        pass_on(s, env, env->id, env->weight, out);
}

static void on_election(struct state *s, const struct cv_env *env, const struct election *m,
                        struct cv_out *out) {
    if (m->id == env->id) {
        follow(s, env, env->id, out);
        cv_send(out, ring_neighbour(env, TO_THE_RIGHT), ELECTED, elected, .id = env->id);
    } else if (better_candidate(m->weight, m->id, env->weight, env->id)) {
        pass_on(s, env, m->id, m->weight, out);
    } else if (!s->participant) {
        pass_on(s, env, env->id, env->weight, out);
    }
}

static void on_elected(struct state *s, const struct cv_env *env, const struct elected *m,
                       struct cv_out *out) {
    if (m->id == env->id) return; /* it has been everywhere */
    follow(s, env, m->id, out);
    cv_send(out, ring_neighbour(env, TO_THE_RIGHT), ELECTED, elected, .id = m->id);
}

static void step(void *state, const struct cv_env *env, const struct cv_event *e,
                 struct cv_out *out) {
    if (e->type == CV_RESTART || (e->type == CV_CALL && e->arg == CV_CAMPAIGN)) {
        campaign(state, env, out);
    } else if (e->type == CV_RECV && env->degree) {
        if (e->kind == ELECTION) on_election(state, env, e->body, out);
        if (e->kind == ELECTED) on_elected(state, env, e->body, out);
    }
}

static const struct cv_record state_table = CV_TABLE("state", state);
static const struct cv_record messages[KINDS] = {CV_TABLE("ELECTION", election),
                                                 CV_TABLE("ELECTED", elected)};

const struct cv_algorithm cv_chang_roberts = {
    .name = "chang-roberts",
    .summary = "ids race round a one-way ring; a better one stops those behind it",
    .paper = "Chang & Roberts, An improved algorithm for decentralized extrema-finding, CACM 1979",
    .cost = "N H(N) + N on average, at most N(N+1)/2 + N; one initiator: at most 3N-1",
    .delay = "2N .. 3N-1",
    .tolerates = "duplicates, disorder, restarts between elections; no crash in one, no loss",
    CV_MACHINE_WITH(bare_layout),
    .problem = CV_ELECTION,
    .topology = CV_RING,
    .preference = CV_HIGHEST,
};
