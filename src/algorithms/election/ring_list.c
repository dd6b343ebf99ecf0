/* ring-list: a list of ids grows round a one-way ring; a process that finds itself in it has all.
 *
 *   wants an election   --LIST(own id)--> right
 *   LIST without me     adds itself and passes it on
 *   LIST with me        it has been everywhere: chooses the smallest, and passes it on, so that the
 *                       complete list reaches those that did not start one themselves; a process
 *                       that has chosen already lets it end
 *
 * Cost: N messages of a length up to N for each of k initiators, and N in all for everyone to know:
 * (k + 1) N, so N^2 + N when all start together.  2N message times.
 *
 * The smallest is the candidate with the least weight, then with the least id; a weight of 0 cannot
 * lead.  A process that comes back from a crash asks by a list of its own.
 *
 * With a failure detector the dead are skipped.  A list may have died with a process, and somebody
 * may wait for it, so whoever repairs the ring asks by a list that everybody hears the end of:
 *   leader died, next on the ring died or came back, or a list has a process that it skips
 *                       --AGAIN(own id)--> right
 *   AGAIN without me    as LIST
 *   AGAIN with me       --LEADER(the smallest)--> round the ring once
 * Lists that were made at different times may differ: everyone keeps to the best leader that it has
 * heard of and does not know to be dead.
 *
 * What it takes for granted: reliable channels; the order of messages does not matter.  What
 * breaks it: without a failure detector a crash breaks the ring and loses the lists that pass
 * there, and nobody notices that a leader dies.  With one, a wrong suspicion: a leader that is
 * skipped leads on beside another until it is trusted again.  A process that is back at once can
 * lead beside one that was elected meanwhile, until its list has gone round. */
#include "algorithms/election/election.h"

enum { LIST, AGAIN, LEADER, KINDS };

#define MEMBER_FIELDS(F, R)                                                                        \
    F(R, id, id, SHOWN)                                                                            \
    F(R, u64, weight, INNER)
#define LEADER_FIELDS(F, R)                                                                        \
    F(R, id, id, SHOWN)                                                                            \
    F(R, u64, weight, INNER)                                                                       \
    F(R, u64, hops, INNER) /* still to go */
#define STATE_FIELDS(F, R)                                                                         \
    F(R, id, leader, SHOWN)                                                                        \
    F(R, u64, leader_weight, INNER)                                                                \
    F(R, u32, joined, DRAWN("no|yes")) /* it is in a list, its own or another's */                 \
    F(R, u32, down, INNER)             /* a bit for each of the next to the right */

/* In a list the head is the initiator, and the rows are the processes that it met. */
CV_RECORD(member, MEMBER_FIELDS);
CV_RECORD(leader, LEADER_FIELDS);
CV_RECORD(state, STATE_FIELDS);

/* Whether it leads better than the one that is followed, if any. */
static bool is_news(const struct state *s, const struct member *m) {
    return lower_candidate(m->weight, m->id, s->leader_weight, s->leader);
}

static void follow(struct state *s, const struct cv_env *env, const struct member *leader,
                   struct cv_out *out) {
    s->leader = leader->id;
    s->leader_weight = leader->weight;
    cv_tell(out, leader->id == env->id ? CV_ELECTED : CV_FOLLOWS, leader->id);
}

static void give_up_leader(struct state *s, struct cv_out *out) {
    s->leader = s->leader_weight = 0;
    cv_tell(out, CV_LEADERLESS, 0);
}

static void start(struct state *s, const struct cv_env *env, uint16_t kind, struct cv_out *out) {
    struct member self = {env->id, env->weight};
    cv_pid next = ring_next(env, s->down);
    s->joined = 1;
    if (next)
        cv_send_rows(out, next, kind, member, member, 0, .id = self.id, .weight = self.weight);
    else if (is_news(s, &self))
        follow(s, env, &self, out);
}

/* The smallest that may lead and is not known to be dead; its id is 0 when there is none. */
static struct member smallest(const struct state *s, const struct cv_env *env,
                              const struct member *list, uint32_t length) {
    struct member best = {0};
    for (uint32_t i = 0; i < length; i++)
        if (lower_candidate(list[i].weight, list[i].id, best.weight, best.id) &&
            !ring_has(env, s->down, list[i].id))
            best = list[i];
    return best;
}

static bool contains(const struct member *list, uint32_t length, uint64_t id) {
    for (uint32_t i = 0; i < length; i++)
        if (list[i].id == id) return true;
    return false;
}

/* It has a process that this one skips: it was made before that one died. */
static bool is_outdated(const struct state *s, const struct cv_env *env, const struct member *list,
                        uint32_t length) {
    for (uint32_t i = 0; s->down && i < length; i++)
        if (ring_skips(env, s->down, list[i].id)) return true;
    return false;
}

/* Sends the list on, and returns the `added` rows at its end for the caller to fill in. */
static struct member *pass_on(cv_pid next, uint16_t kind, const struct member *list,
                              uint32_t length, uint32_t added, struct cv_out *out) {
    struct member *rows = cv_send_rows(out, next, kind, member, member, length - 1 + added,
                                       .id = list[0].id, .weight = list[0].weight);
    memcpy(rows, list + 1, (length - 1) * sizeof *rows);
    return rows + length - 1;
}

static void on_complete(struct state *s, const struct cv_env *env, uint16_t kind, cv_pid next,
                        const struct member *list, uint32_t length, struct cv_out *out) {
    struct member best = smallest(s, env, list, length);
    bool news = is_news(s, &best);
    if (news) follow(s, env, &best, out);
    if (kind == AGAIN && best.id)
        cv_send(out, next, LEADER, leader, .id = best.id, .weight = best.weight, .hops = length);
    else if (kind == LIST && news)
        pass_on(next, kind, list, length, 0, out);
}

/* A leader that meets a better one leads no more, before that one hears that it leads. */
static void step_down(struct state *s, const struct cv_env *env, const struct member *list,
                      uint32_t length, struct cv_out *out) {
    struct member best = smallest(s, env, list, length);
    if (is_news(s, &best)) give_up_leader(s, out);
}

static void on_list(struct state *s, const struct cv_env *env, uint16_t kind,
                    const struct member *list, uint32_t length, struct cv_out *out) {
    cv_pid next = ring_next(env, s->down);
    if (!next || is_outdated(s, env, list, length)) {
        start(s, env, AGAIN, out);
    } else if (contains(list, length, env->id)) {
        on_complete(s, env, kind, next, list, length, out);
    } else if (length < env->processes) { /* a longer one is of another ring */
        if (s->leader == env->id) step_down(s, env, list, length, out);
        s->joined = 1;
        *pass_on(next, kind, list, length, 1, out) = (struct member){env->id, env->weight};
    }
}

static void on_leader(struct state *s, const struct cv_env *env, const struct leader *m,
                      struct cv_out *out) {
    struct member leader = {m->id, m->weight};
    cv_pid next = ring_next(env, s->down);
    if (!next || ring_skips(env, s->down, m->id)) {
        start(s, env, AGAIN, out);
        return;
    }
    if (is_news(s, &leader) && !ring_has(env, s->down, m->id)) follow(s, env, &leader, out);
    if (m->hops > 1 && m->hops <= env->processes)
        cv_send(out, next, LEADER, leader, .id = m->id, .weight = m->weight, .hops = m->hops - 1);
}

/* ---- The failure detector ---- */

static void on_down(struct state *s, const struct cv_env *env, cv_pid p, struct cv_out *out) {
    bool led = s->leader == env->ids[p], awake = s->leader || s->joined;
    bool was_next = ring_next(env, s->down) == p;
    s->down |= ring_bit(env, p);
    if (led) give_up_leader(s, out);
    if (led || (was_next && awake)) start(s, env, AGAIN, out);
}

static void on_up(struct state *s, const struct cv_env *env, cv_pid p, struct cv_out *out) {
    s->down &= ~ring_bit(env, p);
    bool is_next = ring_next(env, s->down) == p;
    if (s->joined && (is_next || !s->leader)) start(s, env, AGAIN, out);
}

static void step(void *state, const struct cv_env *env, const struct cv_event *e,
                 struct cv_out *out) {
    struct state *s = state;
    if (e->type == CV_RESTART || (e->type == CV_CALL && e->arg == CV_CAMPAIGN)) {
        if (!s->leader && !s->joined) start(s, env, LIST, out);
    } else if (e->type == CV_RECV && env->degree && e->kind == LEADER) {
        on_leader(s, env, e->body, out);
    } else if (e->type == CV_RECV && env->degree) {
        on_list(s, env, e->kind, e->body, e->size / (uint32_t)sizeof(struct member), out);
    } else if (e->type == CV_DOWN) {
        on_down(s, env, e->arg, out);
    } else if (e->type == CV_UP) {
        on_up(s, env, e->arg, out);
    }
}

static void layout(const struct cv_env *env, struct cv_layout *layout) {
    layout->message_rows = env->processes;
}

static const struct cv_record state_table = CV_TABLE("state", state);
static const struct cv_record messages[KINDS] = {CV_TABLE_ROWS("LIST", member, member),
                                                 CV_TABLE_ROWS("AGAIN", member, member),
                                                 CV_TABLE("LEADER", leader)};

CV_ALGORITHM(ring_list) = {
    .name = "ring-list",
    .summary = "a list of all ids grows round a one-way ring; the smallest leads",
    .paper = "the lecture's second ring; Le Lann, Distributed systems, IFIP Congress 1977",
    .cost = "(k + 1) N for k initiators, of a length up to N",
    .delay = "2N",
    .tolerates = "with a detector crashes and restarts, else those between elections; no loss",
    CV_MACHINE,
    .problem = CV_ELECTION,
    .topology = CV_RING,
    .preference = CV_LOWEST,
    .traits = CV_USES_DETECTOR,
};
