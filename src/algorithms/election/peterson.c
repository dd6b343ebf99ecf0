/* peterson: franklin's rounds on a one-way ring, each process standing in for its left neighbour.
 *
 * On a one-way ring nobody hears its right neighbour.  So an active process holds a value, at first
 * its own id, and in each round does for the value of its left active neighbour what franklin does
 * for its own: it learns that value and the one before it.
 *
 *   active    --FIRST(value)--> right
 *             FIRST(a): the neighbour's value  --SECOND(the better of a and its own)--> right
 *             SECOND(b): if a is better than its own value and not worse than b, it holds a from
 *             now on, and goes on to the next round; else: passive
 *   passive   passes everything on
 *   any       FIRST or SECOND with its own id: that has passed everybody, so its owner leads,
 *             active or passive  --LEADER--> round the ring
 *
 * The best value moves on from process to process and is dropped by none; but its owner is
 * elected, not the process that holds it.  A process that is woken by a message joins as active,
 * unless that message carries a better value than its id.
 *
 * Of two active neighbours at most one goes on.  Cost: at most floor(log2 N) + 1 rounds, each of 2N
 * messages, and N for LEADER.  Candidates are compared by weight, then by id.
 *
 * What it takes for granted: reliable FIFO channels, which make FIRST and SECOND alternate and keep
 * a value from overtaking a better one.  Where messages overtake each other or come twice, the
 * election can stop, and can elect two.  What breaks it besides: a crash breaks the ring. */
#include "algorithms/election/election.h"

enum { FIRST, SECOND, LEADER, KINDS };
enum { ASLEEP, AWAITS_FIRST, AWAITS_SECOND, PASSIVE };

#define VALUE_FIELDS(F, R)                                                                         \
    F(R, id, id, SHOWN)                                                                            \
    F(R, u64, weight, INNER)                                                                       \
    F(R, u64, round, SHOWN)
#define LEADER_FIELDS(F, R) F(R, id, id, SHOWN)
#define STATE_FIELDS(F, R)                                                                         \
    F(R, id, leader, SHOWN)                                                                        \
    F(R, id, value, SHOWN) /* that it holds */                                                     \
    F(R, u64, value_weight, INNER)                                                                 \
    F(R, id, left, INNER) /* of the left active neighbour */                                       \
    F(R, u64, left_weight, INNER)                                                                  \
    F(R, u32, round, SHOWN)                                                                        \
    F(R, u16, active, NAMED("no|yes"))                                                             \
    F(R, u16, phase, INNER)

CV_RECORD(value, VALUE_FIELDS);
CV_RECORD(leader, LEADER_FIELDS);
CV_RECORD(state, STATE_FIELDS);

static void send(const struct cv_env *env, uint16_t kind, uint64_t id, uint64_t weight,
                 uint64_t round, struct cv_out *out) {
    cv_send(out, ring_neighbour(env, TO_THE_RIGHT), kind, value, .id = id, .weight = weight,
            .round = round);
}

static void next_round(struct state *s, const struct cv_env *env, uint64_t value, uint64_t weight,
                       struct cv_out *out) {
    s->active = 1;
    s->phase = AWAITS_FIRST;
    s->round++;
    s->value = value, s->value_weight = weight;
    cv_tell(out, CV_ROUND, s->round);
    send(env, FIRST, value, weight, s->round, out);
}

static void give_up(struct state *s) {
    s->active = 0;
    s->phase = PASSIVE;
}

static void lead(struct state *s, const struct cv_env *env, struct cv_out *out) {
    if (s->leader == env->id) return;
    give_up(s);
    s->leader = env->id;
    cv_tell(out, CV_ELECTED, env->id);
    if (env->degree) cv_send(out, ring_neighbour(env, TO_THE_RIGHT), LEADER, leader, .id = env->id);
}

static void campaign(struct state *s, const struct cv_env *env, struct cv_out *out) {
    if (s->phase != ASLEEP) return;
    if (env->degree == 0)
        lead(s, env, out);
    else
        next_round(s, env, env->id, env->weight, out);
}

static void on_first(struct state *s, const struct cv_env *env, const struct value *m,
                     struct cv_out *out) {
    bool better = better_candidate(m->weight, m->id, s->value_weight, s->value);
    s->left = m->id, s->left_weight = m->weight;
    s->phase = AWAITS_SECOND;
    send(env, SECOND, better ? m->id : s->value, better ? m->weight : s->value_weight, s->round,
         out);
}

static void on_second(struct state *s, const struct cv_env *env, const struct value *m,
                      struct cv_out *out) {
    bool beats_mine = better_candidate(s->left_weight, s->left, s->value_weight, s->value);
    bool beaten = better_candidate(m->weight, m->id, s->left_weight, s->left);
    if (beats_mine && !beaten)
        next_round(s, env, s->left, s->left_weight, out);
    else
        give_up(s);
}

static void on_value(struct state *s, const struct cv_env *env, uint16_t kind,
                     const struct value *m, struct cv_out *out) {
    if (m->id == env->id) {
        lead(s, env, out);
        return;
    }
    if (s->phase == ASLEEP) {
        if (better_candidate(m->weight, m->id, env->weight, env->id))
            give_up(s);
        else
            campaign(s, env, out);
    }
    if (s->phase == PASSIVE)
        send(env, kind, m->id, m->weight, m->round, out);
    else if (kind == FIRST && s->phase == AWAITS_FIRST && m->round == s->round)
        on_first(s, env, m, out);
    else if (kind == SECOND && s->phase == AWAITS_SECOND && m->round == s->round)
        on_second(s, env, m, out);
}

static void on_leader(struct state *s, const struct cv_env *env, const struct leader *m,
                      struct cv_out *out) {
    if (m->id == s->leader) return; /* it has been everywhere */
    give_up(s);
    s->leader = m->id;
    cv_tell(out, CV_FOLLOWS, m->id);
    cv_send(out, ring_neighbour(env, TO_THE_RIGHT), LEADER, leader, .id = m->id);
}

static void step(void *state, const struct cv_env *env, const struct cv_event *e,
                 struct cv_out *out) {
    if (e->type == CV_CALL && e->arg == CV_CAMPAIGN)
        campaign(state, env, out);
    else if (e->type == CV_RECV && env->degree && e->kind == LEADER)
        on_leader(state, env, e->body, out);
    else if (e->type == CV_RECV && env->degree)
        on_value(state, env, e->kind, e->body, out);
}

static const struct cv_record state_table = CV_TABLE("state", state);
static const struct cv_record messages[KINDS] = {
    CV_TABLE("FIRST", value), CV_TABLE("SECOND", value), CV_TABLE("LEADER", leader)};

CV_ALGORITHM(peterson) = {
    .name = "peterson",
    .summary = "franklin's rounds on a one-way ring: values move on, their owner is elected",
    .paper = "Peterson, ACM TOPLAS 4(4), 1982; Dolev, Klawe & Rodeh, J. of Algorithms 3(3), 1982",
    .cost = "at most 2N (floor(log2 N) + 1) + N",
    .delay = "at most 2N a round, then N",
    .tolerates = "nothing: no crash, no loss, no disorder",
    CV_MACHINE_WITH(bare_layout),
    .problem = CV_ELECTION,
    .topology = CV_RING,
    .preference = CV_HIGHEST,
};
