/* itai-rodeh: the cure for ring-anonymous: processes without ids draw lots until one is left.
 *
 *   active    in each round draws a lot from 1 to N  --LOT(round, lot, 1 hop, unique)--> right
 *             LOT after N hops: its own.  If it is still unique, it leads  --LEADER--> round the
 *             ring; else the next round
 *             LOT that is better, by round and then by lot: passive, and passes it on
 *             LOT that is equal: passes it on as not unique
 *             LOT that is worse: lets it end
 *   passive   passes everything on; so does a process that never took part
 *
 * It is possible because N is known: a process recognises its own LOT by the number of its hops,
 * and then knows that it has been everywhere.  A process that waits for its draw has lot 0, the
 * worst, so any process that has drawn before it wins.
 *
 * Cost: O(N log N) messages on average, and N for LEADER.  A round leaves one with a probability of
 * 1/2 or more, so it ends with probability 1, in 2 rounds or less on average, but within no bound.
 *
 * What it takes for granted: reliable channels, in whatever order, and lots that are independent.
 * What breaks it: a wrong N; a crash breaks the ring, and the election stops where it is. */
#include "algorithms/election/election.h"

enum { LOT, LEADER, KINDS };

#define LOT_FIELDS(F, R)                                                                           \
    F(R, u32, round, SHOWN)                                                                        \
    F(R, u32, lot, SHOWN)                                                                          \
    F(R, u32, hops, SHOWN)                                                                         \
    F(R, u32, unique, NAMED("no|yes"))
#define LEADER_FIELDS(F, R) F(R, u64, hops, INNER)
#define STATE_FIELDS(F, R)                                                                         \
    F(R, u32, round, SHOWN)                                                                        \
    F(R, u32, lot, SHOWN) /* 0: not drawn yet */                                                   \
    F(R, u8, active, NAMED("no|yes"))                                                              \
    F(R, u8, passive, INNER)                                                                       \
    F(R, u16, decided, INNER)

CV_RECORD(lot, LOT_FIELDS);
CV_RECORD(leader, LEADER_FIELDS);
CV_RECORD(state, STATE_FIELDS);

static void next_round(struct state *s, const struct cv_env *env, struct cv_out *out) {
    s->active = 1;
    s->round++;
    s->lot = 0;
    cv_tell(out, CV_ROUND, s->round);
    cv_choose(out, env->processes);
}

static void give_up(struct state *s) {
    s->active = 0;
    s->passive = 1;
}

static void lead(struct state *s, const struct cv_env *env, struct cv_out *out) {
    give_up(s);
    s->decided = 1;
    cv_tell(out, CV_ELECTED, 0);
    if (env->degree) cv_send(out, ring_neighbour(env, TO_THE_RIGHT), LEADER, leader, .hops = 1);
}

static void campaign(struct state *s, const struct cv_env *env, struct cv_out *out) {
    if (s->active || s->passive) return;
    if (env->degree == 0)
        lead(s, env, out);
    else
        next_round(s, env, out);
}

static void on_choice(struct state *s, const struct cv_env *env, uint32_t choice,
                      struct cv_out *out) {
    if (!s->active || s->lot) return; /* it became passive meanwhile */
    s->lot = choice + 1;
    cv_send(out, ring_neighbour(env, TO_THE_RIGHT), LOT, lot, .round = s->round, .lot = s->lot,
            .hops = 1, .unique = 1);
}

static void pass_on(const struct cv_env *env, const struct lot *m, bool unique,
                    struct cv_out *out) {
    cv_send(out, ring_neighbour(env, TO_THE_RIGHT), LOT, lot, .round = m->round, .lot = m->lot,
            .hops = m->hops + 1, .unique = unique);
}

static void on_lot(struct state *s, const struct cv_env *env, const struct lot *m,
                   struct cv_out *out) {
    bool same = m->round == s->round && m->lot == s->lot;
    bool better = m->round != s->round ? m->round > s->round : m->lot > s->lot;
    if (m->hops >= env->processes) { /* its own */
        if (!s->active || !same) return;
        if (m->unique)
            lead(s, env, out);
        else
            next_round(s, env, out);
    } else if (!s->active || better) {
        give_up(s);
        pass_on(env, m, m->unique, out);
    } else if (same) {
        pass_on(env, m, false, out);
    }
}

static void on_leader(struct state *s, const struct cv_env *env, const struct leader *m,
                      struct cv_out *out) {
    if (s->decided || m->hops >= env->processes) return; /* it has been everywhere */
    give_up(s);
    s->decided = 1;
    cv_tell(out, CV_FOLLOWS, 0);
    cv_send(out, ring_neighbour(env, TO_THE_RIGHT), LEADER, leader, .hops = m->hops + 1);
}

static void step(void *state, const struct cv_env *env, const struct cv_event *e,
                 struct cv_out *out) {
    if (e->type == CV_CALL && e->arg == CV_CAMPAIGN) {
        campaign(state, env, out);
    } else if (e->type == CV_CHOICE && env->degree) {
        on_choice(state, env, e->arg, out);
    } else if (e->type == CV_RECV && env->degree) {
        if (e->kind == LOT) on_lot(state, env, e->body, out);
        if (e->kind == LEADER) on_leader(state, env, e->body, out);
    }
}

static const struct cv_record state_table = CV_TABLE("state", state);
static const struct cv_record messages[KINDS] = {CV_TABLE("LOT", lot), CV_TABLE("LEADER", leader)};

CV_ALGORITHM(itai_rodeh) = {
    .name = "itai-rodeh",
    .summary = "without ids on a ring of known size: draw lots, round by round, until one is left",
    .paper =
        "Itai & Rodeh, Symmetry breaking in distributed networks, FOCS 1981, Inf. & Comp. 1990",
    .cost = "O(N log N) on average, then N",
    .delay = "N a round, then N",
    .tolerates = "duplicates and disorder; no crash, no loss",
    CV_MACHINE_WITH(bare_layout),
    .problem = CV_ELECTION,
    .traits = CV_ANONYMOUS | CV_UNBOUNDED | CV_DRAWS,
    .topology = CV_RING,
    .preference = CV_ANYONE,
};
