/* ring-list: a list of ids grows round a one-way ring; who finds itself in it knows them all.
 *
 *   wants an election   --LIST(own id)--> right
 *   LIST without me     adds itself and passes it on
 *   LIST with me        it has been everywhere: chooses the smallest, and passes it on, so that the
 *                       complete list goes on to those who did not start one themselves; who has
 *                       chosen already lets it end
 *
 * Cost: N messages of a length up to N for each of k initiators, and N in all for everyone to know:
 * (k + 1) N, so N^2 + N when all start together.  2N message times.
 *
 * The smallest is the candidate with the least weight, then with the least id.  Who comes back from
 * a crash asks by a list of its own.
 *
 * What it takes for granted: reliable channels; the order of messages is of no account.  What
 * breaks it: a crash breaks the ring and loses the lists that pass there.  A leader that dies is
 * noticed by nobody. */
#include "election/election.h"

enum { LIST, KINDS };

#define MEMBER_FIELDS(F, R)                                                                        \
    F(R, u64, id, SHOWN)                                                                           \
    F(R, u64, weight, INNER)
#define STATE_FIELDS(F, R)                                                                         \
    F(R, u64, leader, SHOWN)                                                                       \
    F(R, u64, joined, INNER) /* it is in a list, its own or another's */

CV_RECORD(member, MEMBER_FIELDS); /* the head is the initiator, the rows are those it met */
CV_RECORD(state, STATE_FIELDS);

static void follow(struct state *s, const struct cv_env *env, uint64_t leader, struct cv_out *out) {
    s->leader = leader;
    cv_tell(out, leader == env->id ? CV_ELECTED : CV_FOLLOWS, leader);
}

static void campaign(struct state *s, const struct cv_env *env, struct cv_out *out) {
    if (s->leader || s->joined) return;
    s->joined = 1;
    if (env->degree == 0)
        follow(s, env, env->id, out);
    else
        cv_send_rows(out, ring_neighbour(env, TO_THE_RIGHT), LIST, member, member, 0, .id = env->id,
                     .weight = env->weight);
}

static struct member smallest(const struct member *list, uint32_t length) {
    struct member least = list[0];
    for (uint32_t i = 1; i < length; i++)
        if (better_candidate(least.weight, least.id, list[i].weight, list[i].id)) least = list[i];
    return least;
}

static bool contains(const struct member *list, uint32_t length, uint64_t id) {
    for (uint32_t i = 0; i < length; i++)
        if (list[i].id == id) return true;
    return false;
}

/* Sends the list on, with room for `added` members more, which are returned. */
static struct member *pass_on(const struct cv_env *env, const struct member *list, uint32_t length,
                              uint32_t added, struct cv_out *out) {
    struct member *rows =
        cv_send_rows(out, ring_neighbour(env, TO_THE_RIGHT), LIST, member, member,
                     length - 1 + added, .id = list[0].id, .weight = list[0].weight);
    memcpy(rows, list + 1, (length - 1) * sizeof *rows);
    return rows + length - 1;
}

static void on_list(struct state *s, const struct cv_env *env, const struct member *list,
                    uint32_t length, struct cv_out *out) {
    if (contains(list, length, env->id)) {
        if (s->leader) return;
        follow(s, env, smallest(list, length).id, out);
        pass_on(env, list, length, 0, out);
    } else if (length < env->processes) { /* a longer one is of another ring */
        s->joined = 1;
        *pass_on(env, list, length, 1, out) = (struct member){env->id, env->weight};
    }
}

static void step(void *state, const struct cv_env *env, const struct cv_event *e,
                 struct cv_out *out) {
    if (e->type == CV_RESTART || (e->type == CV_CALL && e->arg == CV_CAMPAIGN))
        campaign(state, env, out);
    else if (e->type == CV_RECV && env->degree)
        on_list(state, env, e->body, e->size / (uint32_t)sizeof(struct member), out);
}

static void layout(const struct cv_env *env, struct cv_layout *layout) {
    layout->message_rows = env->processes;
}

static const struct cv_record state_table = CV_TABLE("state", state);
static const struct cv_record messages[KINDS] = {CV_TABLE_ROWS("LIST", member, member)};

const struct cv_algorithm cv_ring_list = {
    .name = "ring-list",
    .summary = "a list of all ids grows round a one-way ring; the smallest leads",
    .paper = "the lecture's second ring; Le Lann, Distributed systems, IFIP Congress 1977",
    .cost = "(k + 1) N for k initiators, of a length up to N",
    .delay = "2N",
    .tolerates = "duplicates, disorder, restarts between elections; no crash in one, no loss",
    CV_MACHINE,
    .problem = CV_ELECTION,
    .topology = CV_RING,
    .preference = CV_LOWEST,
};
