/* hirschberg-sinclair: on a two-way ring, each candidate probes neighbourhoods of doubling size.
 *
 *   active    in phase k = 0, 1, 2...  --OUT(own id, 2^k hops)--> both ways
 *             IN from both sides: nobody within 2^k hops is better; the next phase
 *             OUT with its own id: it went round, so it leads  --LEADER--> round the ring
 *   any       OUT of a better candidate: passive from now on, and passes it on; where its hops end,
 *             sends IN back the way it came
 *             OUT of a worse one: lets it end
 *             IN of another: passes it on
 *
 * A process that is woken by a message joins as active, unless that message is of a better
 * candidate.
 *
 * Of 2^(k-1) + 1 neighbours at most one enters phase k, and it causes 4 * 2^k messages there: less
 * than 8N in each phase.  Cost: at most 8N (1 + ceil(log2 N)) messages, and N for LEADER;
 * ceil(log2 N) + 1 phases, in O(N) time.  It needs to know neither N nor which way is which, but
 * messages carry their direction, because with two processes both ways lead to the same one.
 *
 * Candidates are compared by weight, then by id.
 *
 * What it takes for granted: reliable channels, in whatever order.  What breaks it: a crash breaks
 * the ring, and the election stops where it is. */
#include "algorithms/election/election.h"

enum { OUT, IN, LEADER, KINDS };
enum { BOTH_WAYS = 1 << TO_THE_RIGHT | 1 << TO_THE_LEFT, PHASE_MAX = 31 };

#define OUT_FIELDS(F, R)                                                                           \
    F(R, id, id, SHOWN)                                                                            \
    F(R, u64, weight, INNER)                                                                       \
    F(R, u32, hops, SHOWN) /* still to go, including this one */                                   \
    F(R, u16, phase, SHOWN)                                                                        \
    F(R, u16, leftwards, INNER)
#define IN_FIELDS(F, R)                                                                            \
    F(R, id, id, SHOWN)                                                                            \
    F(R, u32, phase, SHOWN)                                                                        \
    F(R, u32, leftwards, INNER)
#define LEADER_FIELDS(F, R) F(R, id, id, SHOWN)
#define STATE_FIELDS(F, R)                                                                         \
    F(R, id, leader, SHOWN)                                                                        \
    F(R, u32, phase, SHOWN)                                                                        \
    F(R, u8, active, NAMED("no|yes"))                                                              \
    F(R, u8, passive, INNER)                                                                       \
    F(R, u16, back, INNER) /* bit per direction: the IN that goes that way has come */

CV_RECORD(out_message, OUT_FIELDS);
CV_RECORD(in_message, IN_FIELDS);
CV_RECORD(leader, LEADER_FIELDS);
CV_RECORD(state, STATE_FIELDS);

static uint32_t direction_of(uint32_t leftwards) { return leftwards ? TO_THE_LEFT : TO_THE_RIGHT; }

static uint32_t opposite(uint32_t direction) {
    return direction == TO_THE_LEFT ? TO_THE_RIGHT : TO_THE_LEFT;
}

static void send_out(const struct cv_env *env, uint32_t direction, const struct out_message *m,
                     uint32_t hops, struct cv_out *out) {
    cv_send(out, ring_neighbour(env, direction), OUT, out_message, .id = m->id, .weight = m->weight,
            .hops = hops, .phase = m->phase, .leftwards = direction == TO_THE_LEFT);
}

static void send_in(const struct cv_env *env, uint32_t direction, uint64_t id, uint32_t phase,
                    struct cv_out *out) {
    cv_send(out, ring_neighbour(env, direction), IN, in_message, .id = id, .phase = phase,
            .leftwards = direction == TO_THE_LEFT);
}

static void ask(struct state *s, const struct cv_env *env, struct cv_out *out) {
    struct out_message mine = {.id = env->id, .weight = env->weight, .phase = (uint16_t)s->phase};
    s->active = 1;
    s->back = 0;
    cv_tell(out, CV_ROUND, s->phase + 1);
    send_out(env, TO_THE_RIGHT, &mine, 1u << s->phase, out);
    send_out(env, TO_THE_LEFT, &mine, 1u << s->phase, out);
}

static void give_up(struct state *s) {
    s->active = 0;
    s->passive = 1;
}

static void lead(struct state *s, const struct cv_env *env, struct cv_out *out) {
    if (s->leader == env->id) return; /* it went round the other way too */
    give_up(s);
    s->leader = env->id;
    cv_tell(out, CV_ELECTED, env->id);
    if (env->degree) cv_send(out, ring_neighbour(env, TO_THE_RIGHT), LEADER, leader, .id = env->id);
}

static void campaign(struct state *s, const struct cv_env *env, struct cv_out *out) {
    if (s->active || s->passive) return;
    if (env->degree == 0)
        lead(s, env, out);
    else
        ask(s, env, out);
}

static void on_out(struct state *s, const struct cv_env *env, const struct out_message *m,
                   struct cv_out *out) {
    uint32_t direction = direction_of(m->leftwards);
    if (m->id == env->id) {
        lead(s, env, out);
    } else if (better_candidate(m->weight, m->id, env->weight, env->id)) {
        give_up(s);
        if (m->hops > 1)
            send_out(env, direction, m, m->hops - 1, out);
        else
            send_in(env, opposite(direction), m->id, m->phase, out);
    } else {
        campaign(s, env, out);
    }
}

static void on_in(struct state *s, const struct cv_env *env, const struct in_message *m,
                  struct cv_out *out) {
    uint32_t direction = direction_of(m->leftwards);
    if (m->id != env->id) {
        send_in(env, direction, m->id, m->phase, out);
        return;
    }
    if (!s->active || m->phase != s->phase) return;
    s->back |= (uint16_t)(1u << direction);
    if (s->back != BOTH_WAYS || s->phase == PHASE_MAX) return;
    s->phase++;
    ask(s, env, out);
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
    if (e->type == CV_CALL && e->arg == CV_CAMPAIGN) {
        campaign(state, env, out);
    } else if (e->type == CV_RECV && env->degree) {
        if (e->kind == OUT) on_out(state, env, e->body, out);
        if (e->kind == IN) on_in(state, env, e->body, out);
        if (e->kind == LEADER) on_leader(state, env, e->body, out);
    }
}

static const struct cv_record state_table = CV_TABLE("state", state);
static const struct cv_record messages[KINDS] = {
    CV_TABLE("OUT", out_message), CV_TABLE("IN", in_message), CV_TABLE("LEADER", leader)};

CV_ALGORITHM(hirschberg_sinclair) = {
    .name = "hirschberg-sinclair",
    .summary = "on a two-way ring, candidates probe neighbourhoods that double in size",
    .paper = "Hirschberg & Sinclair, Decentralized extrema-finding in circular configurations, "
             "CACM 1980",
    .cost = "at most 8N (1 + ceil(log2 N)) + N",
    .delay = "O(N)",
    .tolerates = "duplicates and disorder; no crash, no loss",
    CV_MACHINE_WITH(bare_layout),
    .problem = CV_ELECTION,
    .topology = CV_TWO_WAY_RING,
    .preference = CV_HIGHEST,
};
