/* yo-yo: any connected network; the process with the lowest id leads (of those with the least
 * weight, if there are weights; a weight of 0 cannot lead).
 *
 * Set-up: each process sends its ID to its neighbours, and each edge is directed from the lower to
 * the higher.  Then, round by round, with sources (no edge in), sinks (none out) and the others:
 *   YO-  Sources send their id down; a process that has heard from all edges in sends the least on.
 *   -YO  At a sink the answers start: yes on the edges in on which the least came, no on the
 *        others, and no on all when an answer from below was no.  A no turns its edge round, so
 *        only sources that heard nothing but yes are sources again.
 *
 * Pruning, which makes it terminate: of several edges in that brought the same value all but one
 * are cut, for they say nothing new; a sink with a single edge in is cut off.  The answer says so
 * besides yes or no, and turns nothing; the edge that is kept for the same value does.  A process
 * that becomes a sink by the answers from below is cut off in the same round.  At
 * last one source is left without edges: it leads.  The edge by which a process was cut off leads
 * to its parent, and LEADER goes down the tree of these edges.
 *
 * Messages carry their round: a neighbour may be one round ahead, so one value of the next round is
 * kept for each edge, and duplicates and messages that overtake others do no harm.
 *
 * Cost: 2M messages to set up, at most 2M a round, of which there are at most log2(sources) + 1,
 * and N-1 to announce: O(M log N).
 *
 * What breaks it: a lost message or a crash stops it for good, and a split network elects a leader
 * in each part.  It elects once. */
#include "algorithms/election/election.h"

enum { ID, YO, ANSWER, LEADER, KINDS };
enum { UNKNOWN_WAY, INWARD, OUTWARD, CUT };
enum { KEPT, REDUNDANT, LEAF }; /* what an answer does to its edge */

#define CANDIDATE_FIELDS(F, R)                                                                     \
    F(R, u64, weight, INNER)                                                                       \
    F(R, id, id, SHOWN)
#define YO_FIELDS(F, R)                                                                            \
    F(R, u64, weight, INNER)                                                                       \
    F(R, id, id, SHOWN)                                                                            \
    F(R, u64, round, SHOWN)
#define ANSWER_FIELDS(F, R)                                                                        \
    F(R, u32, round, SHOWN)                                                                        \
    F(R, u16, answer, NAMED("no|yes"))                                                             \
    F(R, u16, edge, NAMED("kept|redundant|leaf"))
#define LEADER_FIELDS(F, R) F(R, id, id, SHOWN)
#define STATE_FIELDS(F, R)                                                                         \
    F(R, id, leader_id, SHOWN)                                                                     \
    F(R, u64, weight, INNER) /* of the least candidate of this round */                            \
    F(R, id, id, INNER)                                                                            \
    F(R, u32, round, SHOWN)   /* 0: set-up */                                                      \
    F(R, u32, inward, SHOWN)  /* edges */                                                          \
    F(R, u32, outward, SHOWN) /* edges */                                                          \
    F(R, u32, missing, INNER) /* IDs, values or answers that this process waits for */             \
    F(R, u32, refused, INNER) /* an answer of this round was no */                                 \
    F(R, u32, awake, INNER)
#define ROW_FIELDS(F, R)                                                                           \
    F(R, u64, weight, INNER) /* the value that came in */                                          \
    F(R, id, id, INNER)                                                                            \
    F(R, u32, value_round, INNER)                                                                  \
    F(R, u32, answer_round, INNER)                                                                 \
    F(R, u32, sorted, INNER) /* the port of the neighbour with the i-th lowest number */           \
    F(R, u8, way, DRAWN("unknown|in|out|cut"))                                                     \
    F(R, u8, yes, INNER)                                                                           \
    F(R, u8, cut, INNER)                                                                           \
    F(R, u8, child, INNER)

CV_RECORD(candidate, CANDIDATE_FIELDS);
CV_RECORD(yo, YO_FIELDS);
CV_RECORD(answer, ANSWER_FIELDS);
CV_RECORD(leader, LEADER_FIELDS);
CV_RECORD(state, STATE_FIELDS);
CV_RECORD(row, ROW_FIELDS);

static struct row *port(struct state *s, uint32_t i) { return (struct row *)(s + 1) + i; }

static bool same(uint64_t weight, uint64_t id, const struct row *row) {
    return row->weight == weight && row->id == id;
}

/* ---- Which port a neighbour is at ---- */

static void sort_ports(struct state *s, const struct cv_env *env) {
    for (uint32_t i = 0; i < env->degree; i++) port(s, i)->sorted = i;
    for (uint32_t gap = env->degree / 2; gap; gap = gap == 2 ? 1 : gap * 5 / 11)
        for (uint32_t i = gap; i < env->degree; i++) {
            uint32_t moved = port(s, i)->sorted, j = i;
            for (; j >= gap; j -= gap) {
                uint32_t before = port(s, j - gap)->sorted;
                if (env->neighbours[before] < env->neighbours[moved]) break;
                port(s, j)->sorted = before;
            }
            port(s, j)->sorted = moved;
        }
}

static struct row *port_of(struct state *s, const struct cv_env *env, cv_pid p) {
    uint32_t low = 0, high = env->degree;
    while (low < high) {
        uint32_t middle = (low + high) / 2;
        if (env->neighbours[port(s, middle)->sorted] < p)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == env->degree) return NULL;
    uint32_t i = port(s, low)->sorted;
    return env->neighbours[i] == p ? port(s, i) : NULL;
}

/* ---- The end ---- */

static void announce(struct state *s, const struct cv_env *env, uint64_t leader_id,
                     struct cv_out *out) {
    s->leader_id = leader_id;
    cv_tell(out, leader_id == env->id ? CV_ELECTED : CV_FOLLOWS, leader_id);
    for (uint32_t i = 0; i < env->degree; i++)
        if (port(s, i)->child) cv_send(out, env->neighbours[i], LEADER, leader, .id = leader_id);
}

/* ---- -YO: answers go up ---- */

/* An earlier edge in has brought the same value, so this one says nothing new. */
static bool is_redundant(struct state *s, uint32_t i) {
    const struct row *row = port(s, i);
    for (uint32_t j = 0; j < i; j++)
        if (port(s, j)->value_round == s->round && same(row->weight, row->id, port(s, j)))
            return true;
    return false;
}

/* One value came in, and no edge out is left: the process is a sink, or has just become one. */
static bool is_leaf(struct state *s, const struct cv_env *env) {
    for (uint32_t i = 0; i < env->degree; i++) {
        const struct row *row = port(s, i);
        if (row->way == INWARD && !same(s->weight, s->id, row)) return false;
        if (row->way == OUTWARD && !row->cut) return false;
    }
    return !s->refused;
}

/* Whether the value that it passed on is not the least somewhere below. */
static bool is_beaten(struct state *s, const struct cv_env *env) {
    bool beaten = s->refused;
    for (uint32_t i = 0; i < env->degree; i++)
        beaten |= port(s, i)->answer_round == s->round && !port(s, i)->yes;
    return beaten;
}

/* On an edge that is cut a no is for the reader: were it obeyed, a process that is left without an
 * edge in would become a source. */
static void answer(struct state *s, const struct cv_env *env, uint32_t i, bool leaf, bool beaten,
                   struct cv_out *out) {
    struct row *row = port(s, i);
    uint16_t cut = is_redundant(s, i) ? REDUNDANT : leaf ? LEAF : KEPT;
    bool yes = !(cut ? beaten : s->refused) && same(s->weight, s->id, row);
    cv_send(out, env->neighbours[i], ANSWER, answer, .round = s->round, .answer = yes, .edge = cut);
    row->way = cut ? CUT : yes ? INWARD : OUTWARD;
}

static void take_answer(struct row *row) {
    row->way = row->cut ? CUT : row->yes ? OUTWARD : INWARD;
    row->child = row->cut == LEAF;
}

static void begin_round(struct state *s, const struct cv_env *env, struct cv_out *out);

static void end_round(struct state *s, const struct cv_env *env, struct cv_out *out) {
    bool leaf = is_leaf(s, env), beaten = is_beaten(s, env);
    for (uint32_t i = 0; i < env->degree; i++) {
        if (port(s, i)->way == OUTWARD)
            take_answer(port(s, i));
        else if (port(s, i)->way == INWARD)
            answer(s, env, i, leaf, beaten, out);
    }
    begin_round(s, env, out);
}

/* ---- YO-: values go down ---- */

static void send_down(struct state *s, const struct cv_env *env, struct cv_out *out) {
    s->missing = s->outward;
    for (uint32_t i = 0; i < env->degree; i++)
        if (port(s, i)->way == OUTWARD)
            cv_send(out, env->neighbours[i], YO, yo, .weight = s->weight, .id = s->id,
                    .round = s->round);
    if (!s->missing) end_round(s, env, out);
}

static void pass_on_least(struct state *s, const struct cv_env *env, struct cv_out *out) {
    bool first = true;
    for (uint32_t i = 0; i < env->degree; i++) {
        const struct row *row = port(s, i);
        if (row->way != INWARD) continue;
        if (first || lower_candidate(row->weight, row->id, s->weight, s->id))
            s->weight = row->weight, s->id = row->id;
        first = false;
    }
    send_down(s, env, out);
}

static void begin_round(struct state *s, const struct cv_env *env, struct cv_out *out) {
    bool was_source = s->inward == 0;
    s->round++;
    s->inward = s->outward = s->missing = s->refused = 0;
    for (uint32_t i = 0; i < env->degree; i++) {
        const struct row *row = port(s, i);
        s->outward += row->way == OUTWARD;
        s->inward += row->way == INWARD;
        s->missing += row->way == INWARD && row->value_round != s->round;
    }
    if (s->inward + s->outward == 0) { /* it is cut off, or all others are */
        if (was_source && env->weight) announce(s, env, env->id, out);
        return;
    }
    cv_tell(out, CV_ROUND, s->round);
    if (s->inward == 0) {
        s->weight = env->weight, s->id = env->id;
        send_down(s, env, out);
    } else if (!s->missing) {
        pass_on_least(s, env, out);
    }
}

/* ---- Events ---- */

static void wake(struct state *s, const struct cv_env *env, struct cv_out *out) {
    if (s->awake) return;
    s->awake = 1;
    s->missing = env->degree;
    for (uint32_t i = 0; i < env->degree; i++)
        cv_send(out, env->neighbours[i], ID, candidate, .weight = env->weight, .id = env->id);
    if (!s->missing) begin_round(s, env, out);
}

static void on_id(struct state *s, const struct cv_env *env, struct row *row,
                  const struct candidate *m, struct cv_out *out) {
    if (row->way != UNKNOWN_WAY) return;
    row->way = lower_candidate(env->weight, env->id, m->weight, m->id) ? OUTWARD : INWARD;
    s->inward += row->way == INWARD;
    if (--s->missing == 0) begin_round(s, env, out);
}

static void on_yo(struct state *s, const struct cv_env *env, struct row *row, const struct yo *m,
                  struct cv_out *out) {
    bool now = m->round == s->round && row->way == INWARD, next = m->round == s->round + 1u;
    if (row->way == CUT || row->value_round == m->round || !(now || next)) return;
    row->weight = m->weight, row->id = m->id;
    row->value_round = (uint32_t)m->round;
    if (now && --s->missing == 0) pass_on_least(s, env, out);
}

static void on_answer(struct state *s, const struct cv_env *env, struct row *row,
                      const struct answer *m, struct cv_out *out) {
    if (row->way != OUTWARD || m->round != s->round || row->answer_round == s->round) return;
    row->answer_round = s->round;
    row->yes = m->answer != 0;
    row->cut = (uint8_t)m->edge;
    s->refused |= !m->answer && !m->edge;
    if (--s->missing == 0) end_round(s, env, out);
}

static void on_message(struct state *s, const struct cv_env *env, const struct cv_event *e,
                       struct cv_out *out) {
    struct row *row = port_of(s, env, e->from);
    if (!row) return;
    wake(s, env, out);
    if (e->kind == ID) on_id(s, env, row, e->body, out);
    if (e->kind == YO) on_yo(s, env, row, e->body, out);
    if (e->kind == ANSWER) on_answer(s, env, row, e->body, out);
    if (e->kind == LEADER && !s->leader_id)
        announce(s, env, ((const struct leader *)e->body)->id, out);
}

static void step(void *state, const struct cv_env *env, const struct cv_event *e,
                 struct cv_out *out) {
    struct state *s = state;
    if (e->type == CV_RECV)
        on_message(s, env, e, out);
    else if (e->type == CV_CALL && e->arg == CV_CAMPAIGN)
        wake(s, env, out);
    else if (e->type == CV_START || e->type == CV_RESTART)
        sort_ports(s, env);
}

static void layout(const struct cv_env *env, struct cv_layout *layout) {
    layout->rows = env->degree;
    layout->first = 1;
    layout->sends = 4 * env->degree + CV_SENDS_DEFAULT;
}

static const struct cv_record state_table = CV_TABLE_ROWS("state", state, row);
static const struct cv_record messages[KINDS] = {CV_TABLE("ID", candidate), CV_TABLE("YO-", yo),
                                                 CV_TABLE("-YO", answer),
                                                 CV_TABLE("LEADER", leader)};

CV_ALGORITHM(yo_yo) = {
    .name = "yo-yo",
    .tolerates = "duplicates and disorder; no crash, no loss",
    .summary = "values go down and answers up a network of any shape until one source is left",
    .paper = "Santoro, Design and Analysis of Distributed Algorithms, 2006, 3.8.3",
    .cost = "O(M log N)",
    .delay = "O(D log N)",
    CV_MACHINE,
    .problem = CV_ELECTION,
    .topology = CV_GRAPH,
    .preference = CV_LOWEST,
};
