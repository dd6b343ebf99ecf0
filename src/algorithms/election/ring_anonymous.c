/* ring-anonymous: a vote that comes round elects, among processes that have no ids.
 *
 *   follower   wants an election: candidate  --VOTE_FOR_ME--> right
 *              passes VOTE_FOR_ME on
 *   candidate  VOTE_FOR_ME: it seems to be back: elected  --WE_HAVE_A_LEADER--> right
 *   elected    WE_HAVE_A_LEADER: it seems to be back: installed
 *   follower   WE_HAVE_A_LEADER: follows, and passes it on
 *   candidate  the same: somebody was faster
 *   elected and installed processes let a VOTE_FOR_ME end.
 *
 * Cost: 2N messages and 2N message times with one candidate.
 *
 * With a failure detector the dead are skipped.  Nobody knows who leads, so nobody knows whether
 * the leader is dead, or whose message died with a process; the one before it asks:
 *   follower   the next on the ring died, or came back: seeks  --IS_THERE_A_LEADER--> right
 *              passes IS_THERE_A_LEADER on
 *   seeking    IS_THERE_A_LEADER: it seems to be back, and nobody leads: elected
 *   candidate  IS_THERE_A_LEADER: its own vote may be lost  --VOTE_FOR_ME--> right
 *   elected    either, or the next died or came back  --THERE_IS_A_LEADER--> right
 *   follower   THERE_IS_A_LEADER: as WE_HAVE_A_LEADER, which may be of one that died; seeks no more
 * A message that has made 2N hops is of a process that died, and ends.
 *
 * What breaks it: two processes that are candidates, or seek, at the same time.  Each takes the
 * other's message for its own, because nothing tells them apart, and both are elected.  No
 * deterministic algorithm can do better without ids (Angluin, STOC 1980); itai-rodeh draws lots.
 * It also needs reliable FIFO channels, and without a failure detector processes that do not
 * crash. */
#include "algorithms/election/election.h"

enum { VOTE_FOR_ME, WE_HAVE_A_LEADER, IS_THERE_A_LEADER, THERE_IS_A_LEADER, KINDS };

/* The hops are for the reader of a trace, and for messages that nobody else would end. */
#define PLAIN_FIELDS(F, R) F(R, u64, hops, SHOWN)
#define STATE_FIELDS(F, R)                                                                         \
    F(R, u8, candidate, NAMED("no|yes"))                                                           \
    F(R, u8, elected, NAMED("no|yes"))                                                             \
    F(R, u8, installed, NAMED("no|yes"))                                                           \
    F(R, u8, follows, INNER) /* it knows that there is a leader */                                 \
    F(R, u32, seeking, INNER)                                                                      \
    F(R, u32, down, INNER) /* a bit for each of the next to the right */

CV_RECORD(plain, PLAIN_FIELDS);
CV_RECORD(state, STATE_FIELDS);

static void lead(struct state *s, struct cv_out *out) {
    s->candidate = s->seeking = 0;
    s->elected = 1;
    cv_tell(out, CV_ELECTED, 0);
}

static void send(struct state *s, const struct cv_env *env, uint16_t kind, uint64_t hops,
                 struct cv_out *out) {
    cv_pid next = ring_next(env, s->down);
    if (next) {
        if (hops <= 2 * (uint64_t)env->processes) cv_send(out, next, kind, plain, .hops = hops);
        return;
    }
    if (!s->elected) lead(s, out); /* there is nobody else */
    s->installed = 1;
}

static void campaign(struct state *s, const struct cv_env *env, struct cv_out *out) {
    if (s->candidate || s->elected || s->follows) return;
    s->candidate = 1;
    send(s, env, VOTE_FOR_ME, 1, out);
}

static void on_vote(struct state *s, const struct cv_env *env, const struct plain *m,
                    struct cv_out *out) {
    if (s->candidate) {
        lead(s, out);
        send(s, env, WE_HAVE_A_LEADER, 1, out);
    } else if (!s->elected) {
        send(s, env, VOTE_FOR_ME, m->hops + 1, out);
    }
}

static void on_leader(struct state *s, const struct cv_env *env, uint16_t kind,
                      const struct plain *m, struct cv_out *out) {
    if (s->elected) {
        s->installed = 1;
        return;
    }
    s->candidate = 0;
    if (kind == THERE_IS_A_LEADER) s->seeking = 0;
    if (!s->follows) cv_tell(out, CV_FOLLOWS, 0);
    s->follows = 1;
    send(s, env, kind, m->hops + 1, out);
}

static void on_question(struct state *s, const struct cv_env *env, const struct plain *m,
                        struct cv_out *out) {
    if (s->seeking) lead(s, out);
    if (s->elected)
        send(s, env, THERE_IS_A_LEADER, 1, out);
    else if (s->candidate)
        send(s, env, VOTE_FOR_ME, 1, out);
    else
        send(s, env, IS_THERE_A_LEADER, m->hops + 1, out);
}

/* The next on the ring is another one: a message may be lost, or the leader, or it may be new. */
static void on_other_next(struct state *s, const struct cv_env *env, struct cv_out *out) {
    if (s->elected) {
        send(s, env, THERE_IS_A_LEADER, 1, out);
    } else if (s->candidate) {
        send(s, env, VOTE_FOR_ME, 1, out);
    } else {
        s->seeking = 1;
        send(s, env, IS_THERE_A_LEADER, 1, out);
    }
}

static void step(void *state, const struct cv_env *env, const struct cv_event *e,
                 struct cv_out *out) {
    struct state *s = state;
    if (e->type == CV_CALL && e->arg == CV_CAMPAIGN) {
        campaign(s, env, out);
    } else if (e->type == CV_RECV && env->degree) {
        if (e->kind == VOTE_FOR_ME) on_vote(s, env, e->body, out);
        if (e->kind == IS_THERE_A_LEADER) on_question(s, env, e->body, out);
        if (e->kind == WE_HAVE_A_LEADER || e->kind == THERE_IS_A_LEADER)
            on_leader(s, env, e->kind, e->body, out);
    } else if (e->type == CV_DOWN || e->type == CV_UP) {
        cv_pid before = ring_next(env, s->down);
        uint32_t bit = ring_bit(env, e->arg);
        s->down = e->type == CV_DOWN ? s->down | bit : s->down & ~bit;
        if (ring_next(env, s->down) != before) on_other_next(s, env, out);
    }
}

static const struct cv_record state_table = CV_TABLE("state", state);
static const struct cv_record messages[KINDS] = {
    CV_TABLE("VOTE_FOR_ME", plain), CV_TABLE("WE_HAVE_A_LEADER", plain),
    CV_TABLE("IS_THERE_A_LEADER", plain), CV_TABLE("THERE_IS_A_LEADER", plain)};

CV_ALGORITHM(ring_anonymous) = {
    .name = "ring-anonymous",
    .summary = "a vote that comes round elects; without ids two that start together both win",
    .paper =
        "the lecture's first ring; Angluin, Local and global properties in networks, STOC 1980",
    .cost = "2N with one candidate",
    .delay = "2N",
    .tolerates = "with a detector a crash at a time; not even two candidates",
    CV_MACHINE_WITH(bare_layout),
    .problem = CV_ELECTION,
    .traits = CV_ANONYMOUS | CV_USES_DETECTOR,
    .topology = CV_RING,
    .preference = CV_ANYONE,
};
