/* mine: ids race round a one-way ring, and a higher process stops the ids of lower ones.
 *
 *   idle   wants an election: takes part  --ELECTION(own id)--> right
 *   any    ELECTION of a higher id: takes part, and passes it on
 *          ELECTION of a lower id: if idle, takes part and sends its own instead; else it ends here
 *          ELECTION with its own id: it has beaten everybody, and leads  --ELECTED--> right
 *          ELECTED: follows, and passes it on until it is back
 *
 * Cost: N(N+1)/2 + N messages at the most, N H(N) + N on average.
 *
 * What breaks it: a crash or a lost message during the election; those that take part wait for
 * ever.  This command shows it:
 *
 *   conclave check mine.so --loss 1 --property termination
 *
 * `conclave explain mine.so` prints this comment. */
#include <conclave/algorithm.h>

/* ---- 1. What is sent and what is remembered: one list of fields for each record ----
 *
 * Types: u8, u16, u32, u64, pid (a process), queue (of processes; its links are in the rows).
 * SHOWN: a reader of traces sees it.  NAMED("no|yes"): so too, with a name for each value.
 * There are no gaps: let the sizes of a record's fields add up to a multiple of 8. */

enum { ELECTION, ELECTED, KINDS };

#define CANDIDATE_FIELDS(F, R) F(R, u64, id, SHOWN)
CV_RECORD(candidate, CANDIDATE_FIELDS);

#define STATE_FIELDS(F, R)                                                                         \
    F(R, u64, leader, SHOWN)                                                                       \
    F(R, u64, takes_part, NAMED("no|yes"))
CV_RECORD(state, STATE_FIELDS);

/* ---- 2. What happens: one step for each event ---- */

/* On a ring the first neighbour is to the right; alone there is none. */
static cv_pid right(const struct cv_env *env) { return env->neighbours[0]; }

static void follow(struct state *s, const struct cv_env *env, uint64_t leader, struct cv_out *out) {
    s->takes_part = 0;
    if (s->leader == leader) return;
    s->leader = leader;
    cv_tell(out, leader == env->id ? CV_ELECTED : CV_FOLLOWS, leader);
}

static void propose(struct state *s, const struct cv_env *env, uint64_t id, struct cv_out *out) {
    s->takes_part = 1;
    cv_send(out, right(env), ELECTION, candidate, .id = id);
}

static void on_election(struct state *s, const struct cv_env *env, uint64_t id,
                        struct cv_out *out) {
    if (id == env->id) {
        follow(s, env, id, out);
        cv_send(out, right(env), ELECTED, candidate, .id = id);
    } else if (id > env->id) { /* with < in place of >, the lowest leads: try it */
        propose(s, env, id, out);
    } else if (!s->takes_part) {
        propose(s, env, env->id, out);
    }
}

static void on_elected(struct state *s, const struct cv_env *env, uint64_t id, struct cv_out *out) {
    if (id == env->id) return; /* it has been everywhere */
    follow(s, env, id, out);
    cv_send(out, right(env), ELECTED, candidate, .id = id);
}

static void step(void *state, const struct cv_env *env, const struct cv_event *e,
                 struct cv_out *out) {
    struct state *s = state;
    if (e->type == CV_CALL && e->arg == CV_CAMPAIGN && env->degree == 0) {
        follow(s, env, env->id, out); /* it is alone */
    } else if (e->type == CV_CALL && e->arg == CV_CAMPAIGN && !s->takes_part) {
        propose(s, env, env->id, out);
    } else if (e->type == CV_RECV) {
        const struct candidate *m = e->body;
        if (e->kind == ELECTION) on_election(s, env, m->id, out);
        if (e->kind == ELECTED) on_elected(s, env, m->id, out);
    }
}

/* ---- 3. The description ---- */

/* How large the state of a process is: it has no rows, and a crash leaves nothing of it. */
static void layout(const struct cv_env *env, struct cv_layout *layout) { (void)env, (void)layout; }

static const struct cv_record state_table = CV_TABLE("state", state);
static const struct cv_record messages[KINDS] = {
    CV_TABLE("ELECTION", candidate),
    CV_TABLE("ELECTED", candidate),
};

CV_ALGORITHM(mine) = {
    .name = "mine",
    .summary = "ids race round a one-way ring; a higher process stops the ids of lower ones",
    .tolerates = "duplicates; no crash, no loss",
    .paper = "Chang & Roberts, An improved algorithm for decentralized extrema-finding, CACM 1979",
    .cost = "N H(N) + N on average",
    .delay = "2N .. 3N-1",
    CV_MACHINE,
    .problem = CV_ELECTION,
    .topology = CV_RING,
    .preference = CV_HIGHEST,
};
