/* An election on a one-way ring, as a lecture has it: whoever sees its own id again leads.
 *
 *   wants an election  --ELECTION(own id)--> right
 *   ELECTION of a higher id: passes it on; of a lower one: it ends here
 *   ELECTION with its own id: it has beaten everybody, and leads
 *
 * What is wrong: the others never learn of it. */
#include <conclave/algorithm.h>

/* ---- What is sent and what is remembered ---- */

enum { ELECTION, KINDS };

#define CANDIDATE_FIELDS(F, R) F(R, u64, id, SHOWN)
CV_RECORD(candidate, CANDIDATE_FIELDS);

#define STATE_FIELDS(F, R)                                                                         \
    F(R, u64, leader, SHOWN)                                                                       \
    F(R, u64, takes_part, NAMED("no|yes"))
CV_RECORD(state, STATE_FIELDS);

/* ---- What happens ---- */

/* On a ring the first neighbour is to the right. */
static cv_pid right(const struct cv_env *env) { return env->neighbours[0]; }

static void follow(struct state *s, const struct cv_env *env, uint64_t leader, struct cv_out *out) {
    if (s->leader == leader) return;
    s->leader = leader;
    cv_tell(out, leader == env->id ? CV_ELECTED : CV_FOLLOWS, leader);
}

static void on_election(struct state *s, const struct cv_env *env, uint64_t id,
                        struct cv_out *out) {
    if (id == env->id) {
        follow(s, env, id, out); /* it has been everywhere, so it is the greatest */
    } else if (id > env->id) {
        s->takes_part = 1;
        cv_send(out, right(env), ELECTION, candidate, .id = id);
    } else if (!s->takes_part) {
        s->takes_part = 1;
        cv_send(out, right(env), ELECTION, candidate, .id = env->id);
    }
}

static void step(void *state, const struct cv_env *env, const struct cv_event *e,
                 struct cv_out *out) {
    struct state *s = state;
    if (e->type == CV_CALL && e->arg == CV_CAMPAIGN && env->degree == 0) {
        follow(s, env, env->id, out); /* it is alone */
    } else if (e->type == CV_CALL && e->arg == CV_CAMPAIGN && !s->takes_part) {
        s->takes_part = 1;
        cv_send(out, right(env), ELECTION, candidate, .id = env->id);
    } else if (e->type == CV_RECV) {
        const struct candidate *m = e->body;
        if (e->kind == ELECTION) on_election(s, env, m->id, out);
    }
}

/* ---- The description ---- */

static void layout(const struct cv_env *env, struct cv_layout *layout) { (void)env, (void)layout; }

static const struct cv_record state_table = CV_TABLE("state", state);
static const struct cv_record messages[KINDS] = {
    CV_TABLE("ELECTION", candidate),
};

CV_ALGORITHM(announced) = {
    .name = "announced",
    .summary = "whoever sees its own id again leads, and nobody else knows",
    .tolerates = "nothing",
    .paper = "Chang & Roberts, CACM 1979, without its last round",
    .cost = "N(N+1)/2",
    .delay = "2N",
    CV_MACHINE,
    .problem = CV_ELECTION,
    .topology = CV_RING,
    .preference = CV_HIGHEST,
};
