/* franklin: on a two-way ring, a process that beats both nearest rivals goes on to the next round.
 *
 *   active    sends its id both ways, and waits for one message from each side: from the nearest
 *             active process there.  If it is better than both: the next round.  Else: passive.
 *             If its own id comes from both sides, no other process is active, so it leads
 *             --LEADER--> round the ring
 *   passive   passes everything on, each message in its direction
 *
 * A process that is woken by a message joins as active, unless that message is of a better
 * candidate.
 *
 * Of two active neighbours at least one is beaten, so each round leaves at most half of them.
 * Cost: at most floor(log2 N) + 1 rounds of 2N messages, and N for LEADER.
 *
 * An active neighbour can be one round ahead but never two, because for that it needs a message of
 * the round that this process is still in.  So one early message from each side is kept; a process
 * that is beaten meanwhile passes it on.  Messages carry their direction, because with two
 * processes both ways lead to the same one, and their round, so nothing depends on the order in
 * which they arrive.
 *
 * Candidates are compared by weight, then by id.
 *
 * What it takes for granted: reliable channels.  What breaks it: a crash breaks the ring, and the
 * election stops where it is. */
#include "algorithms/election/election.h"

enum { VALUE, LEADER, KINDS };
enum { BOTH_WAYS = 1 << TO_THE_RIGHT | 1 << TO_THE_LEFT };

enum { BEST, BEATEN, ALONE }; /* the outcome of the round so far */

#define VALUE_FIELDS(F, R)                                                                         \
    F(R, id, id, SHOWN)                                                                            \
    F(R, u64, weight, INNER)                                                                       \
    F(R, u32, round, SHOWN)                                                                        \
    F(R, u32, leftwards, INNER)
#define LEADER_FIELDS(F, R) F(R, id, id, SHOWN)
#define STATE_FIELDS(F, R)                                                                         \
    F(R, id, leader, SHOWN)                                                                        \
    F(R, id, early_right_id, INNER) /* of the next round, going right; 0: none */                  \
    F(R, u64, early_right_weight, INNER)                                                           \
    F(R, id, early_left_id, INNER)                                                                 \
    F(R, u64, early_left_weight, INNER)                                                            \
    F(R, u32, round, SHOWN)                                                                        \
    F(R, u8, active, NAMED("no|yes"))                                                              \
    F(R, u8, passive, INNER)                                                                       \
    F(R, u8, heard, INNER) /* bit per direction: that message has come in this round */            \
    F(R, u8, outcome, INNER)

CV_RECORD(value, VALUE_FIELDS);
CV_RECORD(leader, LEADER_FIELDS);
CV_RECORD(state, STATE_FIELDS);

static void send(const struct cv_env *env, uint32_t direction, uint64_t id, uint64_t weight,
                 uint32_t round, struct cv_out *out) {
    cv_send(out, ring_neighbour(env, direction), VALUE, value, .id = id, .weight = weight,
            .round = round, .leftwards = direction == TO_THE_LEFT);
}

static void next_round(struct state *s, const struct cv_env *env, struct cv_out *out) {
    s->active = 1;
    s->round++;
    s->heard = 0;
    s->outcome = BEST;
    cv_tell(out, CV_ROUND, s->round);
    send(env, TO_THE_RIGHT, env->id, env->weight, s->round, out);
    send(env, TO_THE_LEFT, env->id, env->weight, s->round, out);
}

static void lead(struct state *s, const struct cv_env *env, struct cv_out *out) {
    s->active = 0;
    s->passive = 1;
    s->leader = env->id;
    cv_tell(out, CV_ELECTED, env->id);
    if (env->degree) cv_send(out, ring_neighbour(env, TO_THE_RIGHT), LEADER, leader, .id = env->id);
}

static void campaign(struct state *s, const struct cv_env *env, struct cv_out *out) {
    if (s->active || s->passive) return;
    if (env->degree == 0)
        lead(s, env, out);
    else
        next_round(s, env, out);
}

/* ---- A round ---- */

static void hear(struct state *s, const struct cv_env *env, uint32_t direction, uint64_t id,
                 uint64_t weight) {
    s->heard |= (uint8_t)(1u << direction);
    if (better_candidate(weight, id, env->weight, env->id))
        s->outcome = BEATEN;
    else if (id == env->id)
        s->outcome = ALONE;
}

static void give_up(struct state *s, const struct cv_env *env, struct cv_out *out) {
    s->active = 0;
    s->passive = 1;
    if (s->early_right_id)
        send(env, TO_THE_RIGHT, s->early_right_id, s->early_right_weight, s->round + 1, out);
    if (s->early_left_id)
        send(env, TO_THE_LEFT, s->early_left_id, s->early_left_weight, s->round + 1, out);
    s->early_right_id = s->early_left_id = 0;
}

static void go_on(struct state *s, const struct cv_env *env, struct cv_out *out) {
    next_round(s, env, out);
    if (s->early_right_id) hear(s, env, TO_THE_RIGHT, s->early_right_id, s->early_right_weight);
    if (s->early_left_id) hear(s, env, TO_THE_LEFT, s->early_left_id, s->early_left_weight);
    s->early_right_id = s->early_left_id = 0;
}

static void end_round(struct state *s, const struct cv_env *env, struct cv_out *out) {
    if (s->outcome == BEATEN)
        give_up(s, env, out);
    else if (s->outcome == ALONE)
        lead(s, env, out);
    else
        go_on(s, env, out);
}

static void keep_early(struct state *s, uint32_t direction, const struct value *m) {
    if (direction == TO_THE_RIGHT)
        s->early_right_id = m->id, s->early_right_weight = m->weight;
    else
        s->early_left_id = m->id, s->early_left_weight = m->weight;
}

static void on_value(struct state *s, const struct cv_env *env, const struct value *m,
                     struct cv_out *out) {
    uint32_t direction = m->leftwards ? TO_THE_LEFT : TO_THE_RIGHT;
    if (!s->active && !s->passive) {
        if (better_candidate(m->weight, m->id, env->weight, env->id))
            s->passive = 1;
        else
            next_round(s, env, out);
    }
    if (s->passive) {
        if (m->id != env->id) send(env, direction, m->id, m->weight, m->round, out);
        return;
    }
    if (m->round == s->round + 1) keep_early(s, direction, m);
    if (m->round != s->round) return;
    hear(s, env, direction, m->id, m->weight);
    while (s->active && s->heard == BOTH_WAYS) end_round(s, env, out);
}

static void on_leader(struct state *s, const struct cv_env *env, const struct leader *m,
                      struct cv_out *out) {
    if (m->id == s->leader) return; /* it has been everywhere */
    s->active = 0;
    s->passive = 1;
    s->leader = m->id;
    cv_tell(out, CV_FOLLOWS, m->id);
    cv_send(out, ring_neighbour(env, TO_THE_RIGHT), LEADER, leader, .id = m->id);
}

static void step(void *state, const struct cv_env *env, const struct cv_event *e,
                 struct cv_out *out) {
    if (e->type == CV_CALL && e->arg == CV_CAMPAIGN) {
        campaign(state, env, out);
    } else if (e->type == CV_RECV && env->degree) {
        if (e->kind == VALUE) on_value(state, env, e->body, out);
        if (e->kind == LEADER) on_leader(state, env, e->body, out);
    }
}

static const struct cv_record state_table = CV_TABLE("state", state);
static const struct cv_record messages[KINDS] = {CV_TABLE("VALUE", value),
                                                 CV_TABLE("LEADER", leader)};

CV_ALGORITHM(franklin) = {
    .name = "franklin",
    .summary = "on a two-way ring, a process that beats the nearest rival on each side goes on",
    .paper = "Franklin, On an improved algorithm for decentralized extrema finding, CACM 1982",
    .cost = "at most 2N (floor(log2 N) + 1) + N",
    .delay = "at most N a round, then N",
    .tolerates = "duplicates and disorder; no crash, no loss",
    CV_MACHINE_WITH(bare_layout),
    .problem = CV_ELECTION,
    .topology = CV_TWO_WAY_RING,
    .preference = CV_HIGHEST,
};
