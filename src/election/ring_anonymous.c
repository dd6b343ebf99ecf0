/* ring-anonymous: a vote that comes round elects, among processes that have no ids.
 *
 *   follower   wants an election: candidate  --VOTE_FOR_ME--> right
 *              passes VOTE_FOR_ME on
 *   candidate  VOTE_FOR_ME: it is back, it seems: elected  --WE_HAVE_A_LEADER--> right
 *   elected    WE_HAVE_A_LEADER: it is back, it seems: installed
 *   follower   WE_HAVE_A_LEADER: follows, and passes it on
 *   candidate  the same: somebody was faster
 *   elected and installed processes let a VOTE_FOR_ME end.
 *
 * Cost: 2N messages and 2N message times with one candidate.
 *
 * What breaks it: two that are candidates at the same time.  Each takes the other's vote for its
 * own, because nothing tells them apart, and both are elected.  No algorithm whose steps are
 * determined can do better without ids (Angluin, STOC 1980); itai-rodeh draws lots.  It also needs
 * reliable FIFO channels, and processes that do not crash. */
#include "election/election.h"

enum { VOTE_FOR_ME, WE_HAVE_A_LEADER, KINDS };

/* The hops are for the reader of a trace: a process that counted them would have to know N. */
#define PLAIN_FIELDS(F, R) F(R, u64, hops, SHOWN)
#define STATE_FIELDS(F, R)                                                                         \
    F(R, u8, candidate, NAMED("no|yes"))                                                           \
    F(R, u8, elected, NAMED("no|yes"))                                                             \
    F(R, u8, installed, NAMED("no|yes"))                                                           \
    F(R, u8, follows, INNER) /* it knows that there is a leader */

CV_RECORD(plain, PLAIN_FIELDS);
CV_RECORD(state, STATE_FIELDS);

static void send(const struct cv_env *env, uint16_t kind, uint64_t hops, struct cv_out *out) {
    cv_send(out, ring_neighbour(env, TO_THE_RIGHT), kind, plain, .hops = hops);
}

static void lead(struct state *s, struct cv_out *out) {
    s->candidate = 0;
    s->elected = 1;
    cv_tell(out, CV_ELECTED, 0);
}

static void campaign(struct state *s, const struct cv_env *env, struct cv_out *out) {
    if (s->candidate || s->elected || s->follows) return;
    if (env->degree == 0) {
        lead(s, out);
        s->installed = 1;
    } else {
        s->candidate = 1;
        send(env, VOTE_FOR_ME, 1, out);
    }
}

static void on_vote(struct state *s, const struct cv_env *env, const struct plain *m,
                    struct cv_out *out) {
    if (s->candidate) {
        lead(s, out);
        send(env, WE_HAVE_A_LEADER, 1, out);
    } else if (!s->elected) {
        send(env, VOTE_FOR_ME, m->hops + 1, out);
    }
}

static void on_leader(struct state *s, const struct cv_env *env, const struct plain *m,
                      struct cv_out *out) {
    if (s->elected) {
        s->installed = 1;
        return;
    }
    s->candidate = 0;
    if (!s->follows) cv_tell(out, CV_FOLLOWS, 0);
    s->follows = 1;
    send(env, WE_HAVE_A_LEADER, m->hops + 1, out);
}

static void step(void *state, const struct cv_env *env, const struct cv_event *e,
                 struct cv_out *out) {
    if (e->type == CV_CALL && e->arg == CV_CAMPAIGN) {
        campaign(state, env, out);
    } else if (e->type == CV_RECV && env->degree) {
        if (e->kind == VOTE_FOR_ME) on_vote(state, env, e->body, out);
        if (e->kind == WE_HAVE_A_LEADER) on_leader(state, env, e->body, out);
    }
}

static const struct cv_record state_table = CV_TABLE("state", state);
static const struct cv_record messages[KINDS] = {CV_TABLE("VOTE_FOR_ME", plain),
                                                 CV_TABLE("WE_HAVE_A_LEADER", plain)};

const struct cv_algorithm cv_ring_anonymous = {
    .name = "ring-anonymous",
    .summary = "a vote that comes round elects; without ids two that start together both win",
    .paper =
        "the lecture's first ring; Angluin, Local and global properties in networks, STOC 1980",
    .cost = "2N with one candidate",
    .delay = "2N",
    .tolerates = "nothing: not even two candidates",
    CV_MACHINE_WITH(bare_layout),
    .problem = CV_ELECTION,
    .traits = CV_ANONYMOUS,
    .topology = CV_RING,
    .preference = CV_ANYONE,
};
