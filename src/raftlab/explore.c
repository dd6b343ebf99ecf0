/* Breadth first over states.  A state is the numbers of its nodes, of the set of messages that were
 * sent, and what the judges remember; whatever has a number is kept once. */
#include "raftlab/explore.h"

#include <stdarg.h>
#include <string.h>

#include "base/grow.h"
#include "base/hash.h"
#include "base/table.h"
#include "raft/raft.h"

/* ---- What is kept once ---- */

struct pool { /* records of any size, by number from 1 */
    unsigned char *bytes;
    size_t used, room;
    size_t *end; /* of each */
    size_t count, end_room;
    struct table table;
};

static const void *pool_at(const struct pool *pool, uint32_t number, size_t *size) {
    size_t begin = pool->end[number - 1];
    if (size) *size = pool->end[number] - begin;
    return pool->bytes + begin;
}

/* The number of a record; *is_new: it was not there. */
static uint32_t pool_put(struct pool *pool, const void *record, size_t size, bool *is_new) {
    uint32_t hash = hash_bytes(record, size, 0), number;
    for (struct probe p = table_probe(&pool->table, hash);
         (number = table_next(&pool->table, &p));) {
        size_t old_size;
        const void *old = pool_at(pool, number, &old_size);
        if (is_new) *is_new = false;
        if (old_size == size && memcmp(old, record, size) == 0) return number;
    }
    pool->bytes = grown(pool->bytes, &pool->room, pool->used + size, 1);
    memcpy(pool->bytes + pool->used, record, size);
    pool->used += size;
    pool->end = grown(pool->end, &pool->end_room, pool->count + 2, sizeof *pool->end);
    if (!pool->count) pool->end[0] = 0;
    number = (uint32_t)++pool->count;
    pool->end[number] = pool->used;
    table_add(&pool->table, hash, number);
    if (is_new) *is_new = true;
    return number;
}

static void pool_close(struct pool *pool) {
    free(pool->bytes);
    free(pool->end);
    table_close(&pool->table);
}

static size_t pool_bytes(const struct pool *pool) {
    return pool->room + pool->end_room * sizeof *pool->end +
           pool->table.slots * sizeof *pool->table.slot;
}

/* ---- States ---- */

struct durable { /* of a log: the terms of its entries, from the first on */
    uint8_t last, term[EXPLORE_ENTRIES_MAX + 1];
};

enum { RUNS = EXPLORE_TERMS_MAX };

struct node { /* what of a core is used here: its members never change */
    unsigned char head[offsetof(struct raft, config)];
    struct raft_peer peer[EXPLORE_NODES];
    struct raft_run run[RUNS];
    unsigned char tail[sizeof(struct raft) - offsetof(struct raft, runs)];
    struct durable durable;
};

struct state {
    uint32_t node[EXPLORE_NODES], sent;
    uint8_t leader_of[EXPLORE_TERMS_MAX + 1];    /* by term */
    struct durable decided;                      /* what the judges have seen to be, */
    uint8_t decided_in[EXPLORE_ENTRIES_MAX + 1]; /* and in which term first */
    uint8_t crashes;
};

enum { SENT_MAX = 1000 };
struct sent {
    uint32_t count, at[SENT_MAX]; /* in order */
};

struct explorer {
    const struct explore_bounds *bounds;
    struct explore_result *result;
    struct raft_config config;
    struct pool nodes, messages, sets, states;
    struct origin {
        uint32_t state, event;
    } * origin; /* of states, by number */
    size_t origin_room;
    /* The event under way. */
    struct origin from;
    struct state next;
    struct raft raft;
    struct durable durable;
    struct sent sent;
    struct raft_out out;
};

static void pack(struct explorer *x, uint32_t place) {
    struct node node;
    struct raft *raft = &x->raft;
    memset(&node, 0, sizeof node);
    /* Nobody looks at these here. */
    raft->silent = raft->leased = 0;
    for (uint32_t i = 0; i < EXPLORE_NODES; i++) raft->peer[i].heard = raft->peer[i].due = 0;
    /* Nor at these, when they say nothing more than others do. */
    if (raft->role == RAFT_LEADER || raft->pledge <= raft->committed) raft->pledge = 0;
    for (uint32_t i = 0; i < EXPLORE_NODES; i++) {
        struct raft_peer *peer = &raft->peer[i];
        peer->told = raft_peer_decided(peer);
        if (peer->pledge < peer->told) peer->pledge = peer->told;
    }
    memcpy(node.head, raft, sizeof node.head);
    memcpy(node.peer, raft->peer, sizeof node.peer);
    memcpy(node.run, raft->run, sizeof node.run);
    memcpy(node.tail, &raft->runs, sizeof node.tail);
    node.durable = x->durable;
    x->next.node[place] = pool_put(&x->nodes, &node, sizeof node, NULL);
}

/* The rest of the record is the same for all. */
static void unpack(struct explorer *x, uint32_t number) {
    const unsigned char *node = pool_at(&x->nodes, number, NULL);
    struct raft *raft = &x->raft;
    memcpy(raft, node + offsetof(struct node, head), offsetof(struct raft, config));
    memcpy(raft->peer, node + offsetof(struct node, peer), EXPLORE_NODES * sizeof *raft->peer);
    memcpy(raft->run, node + offsetof(struct node, run), RUNS * sizeof *raft->run);
    memcpy(&raft->runs, node + offsetof(struct node, tail), sizeof((struct node *)0)->tail);
    memcpy(&x->durable, node + offsetof(struct node, durable), sizeof x->durable);
    raft->silent = 1;
}

/* ---- Judges ---- */

static void broken(struct explorer *x, const char *format, ...) {
    va_list args;
    if (x->result->broken[0]) return;
    va_start(args, format);
    vsnprintf(x->result->broken, sizeof x->result->broken, format, args);
    va_end(args);
}

/* Of a leader: all that was decided in terms before its own. */
static bool has_decided(const struct raft *raft, const struct state *state) {
    for (uint32_t i = 1; i <= state->decided.last && state->decided_in[i] < raft->term; i++)
        if (i > raft->last || raft_term_of(raft, i) != state->decided.term[i]) return false;
    return true;
}

/* Entries of one place and term are the same, as long as there is one leader in a term. */
static void judge_decided(struct explorer *x) {
    struct raft *raft = &x->raft;
    struct durable *decided = &x->next.decided;
    bool more = raft->committed > decided->last;
    for (uint64_t i = 1; i <= raft->committed; i++) {
        uint8_t term = (uint8_t)raft_term_of(raft, i);
        if (i > decided->last) {
            decided->term[decided->last = (uint8_t)i] = term;
            x->next.decided_in[i] = (uint8_t)raft->term;
        } else if (decided->term[i] != term)
            broken(x, "entry %llu is decided in two ways", (unsigned long long)i);
    }
    if (!more) return;
    if (x->result->decided < decided->last) x->result->decided = decided->last;
    struct raft self = *raft;
    struct durable durable = x->durable;
    for (uint32_t other = 0; other < EXPLORE_NODES; other++) {
        if (other + 1u == self.self) continue;
        unpack(x, x->next.node[other]);
        if (raft->role == RAFT_LEADER && !has_decided(raft, &x->next))
            broken(x, "%u leads without an entry that %u decides", raft->self, self.self);
    }
    *raft = self;
    x->durable = durable;
}

static void judge(struct explorer *x) {
    struct raft *raft = &x->raft;
    if (raft->role == RAFT_LEADER) {
        uint8_t *leader = &x->next.leader_of[raft->term];
        if (*leader && *leader != raft->self)
            broken(x, "%u and %u lead in term %llu", *leader, raft->self,
                   (unsigned long long)raft->term);
        if (!*leader && !has_decided(raft, &x->next))
            broken(x, "%u leads without an entry that is decided", raft->self);
        *leader = raft->self;
        x->result->leaders++;
    }
    judge_decided(x);
}

/* ---- Events ---- */

/* Says how far somebody is, as the one before it did, which is as good as lost then. */
static bool is_news(const struct raft_message *m) {
    return (m->type == RAFT_APPENDED && !(m->flags & RAFT_REJECTED)) ||
           (m->type == RAFT_APPEND && !m->count);
}

static void replace_news(struct explorer *x, const struct raft_message *m) {
    uint32_t left = 0;
    for (uint32_t i = 0; i < x->sent.count; i++) {
        const struct raft_message *old = pool_at(&x->messages, x->sent.at[i], NULL);
        bool same = is_news(old) && old->type == m->type && old->from == m->from &&
                    old->to == m->to && old->term == m->term;
        if (!same) x->sent.at[left++] = x->sent.at[i];
    }
    x->sent.count = left;
}

static void post(struct explorer *x, const struct raft_message *m) {
    if (m->type == RAFT_VOTED && !(m->flags & RAFT_GRANTED)) return; /* as good as lost */
    if (is_news(m)) replace_news(x, m);
    uint32_t number = pool_put(&x->messages, m, sizeof *m, NULL), at = x->sent.count;
    for (uint32_t i = 0; i < x->sent.count; i++)
        if (x->sent.at[i] == number) return;
    cv_assert(x->sent.count < SENT_MAX);
    for (; at && x->sent.at[at - 1] > number; at--) x->sent.at[at] = x->sent.at[at - 1];
    x->sent.at[at] = number;
    x->sent.count++;
}

/* Whether a message can change nothing at its receiver any more, whatever happens: what makes it so
 * is durable, or lasts as long as the term does. */
static bool is_idle(const struct raft *raft, const struct raft_message *m) {
    const struct raft_peer *peer = raft_peer(raft, m->from);
    if (m->term != raft->term) return m->term < raft->term;
    switch (m->type) {
    case RAFT_VOTE: return raft->vote;
    case RAFT_VOTED: return raft->role != RAFT_CANDIDATE || peer->ballot == RAFT_YES;
    case RAFT_APPENDED:
        return raft->role != RAFT_LEADER || (peer->mode == RAFT_STREAM && m->index <= peer->match);
    case RAFT_APPEND:
        return raft->saved >= m->index + m->count && raft->agreed >= m->index + m->count &&
               raft->committed >= m->other &&
               (raft->committed >= m->pledge || raft->pledge >= m->pledge);
    default: return false;
    }
}

static void forget(struct explorer *x) {
    uint32_t left = 0;
    for (uint32_t i = 0; i < x->sent.count; i++) {
        const struct raft_message *m = pool_at(&x->messages, x->sent.at[i], NULL);
        if (m->to != x->raft.self || !is_idle(&x->raft, m)) x->sent.at[left++] = x->sent.at[i];
    }
    x->sent.count = left;
}

/* What follows an event: what the core wants, messages, and a state, if it is new. */
static void conclude(struct explorer *x, uint32_t place) {
    struct raft_message m;
    bool is_new;
    for (uint32_t i = 0; i < x->out.messages; i++) post(x, &x->out.message[i]);
    for (uint8_t id = 1; id <= EXPLORE_NODES; id++)
        while (raft_append_for(&x->raft, id, UINT64_MAX, &m)) {
            if (m.count) m.other = m.pledge = 0; /* what is decided is told by itself */
            raft_sent(&x->raft, &m);
            if (!x->bounds->pledges) m.pledge = 0;
            if (m.other || m.pledge || !(m.flags & RAFT_NEWS)) post(x, &m);
        }
    forget(x);
    judge(x);
    pack(x, place);
    x->next.sent = pool_put(&x->sets, &x->sent, sizeof x->sent.count + x->sent.count * 4, NULL);
    uint32_t number = pool_put(&x->states, &x->next, sizeof x->next, &is_new);
    x->result->transitions++;
    if (!is_new) return;
    x->origin = grown(x->origin, &x->origin_room, number + 1, sizeof *x->origin);
    x->origin[number] = x->from;
}

/* Events of a node, by number; those above are the messages. */
enum { STAND, PROPOSE, SAVE, CRASH, RECEIVE };

static void come_back(struct explorer *x, struct raft_out *out) {
    struct durable durable = x->durable;
    uint64_t term = x->raft.term;
    uint8_t self = x->raft.self, vote = x->raft.vote;
    raft_open(&x->raft, self, term, vote);
    raft_restore_base(&x->raft, 0, 0, &x->config);
    for (uint32_t i = 1; i <= durable.last; i++)
        raft_restore(&x->raft, i, 1, durable.term[i], NULL);
    raft_begin(&x->raft, 0, out);
}

static void save_one(struct explorer *x, struct raft_out *out) {
    uint64_t index = x->raft.saved + 1, term = raft_term_of(&x->raft, index);
    x->durable.term[index] = (uint8_t)term;
    memset(x->durable.term + index + 1, 0, EXPLORE_ENTRIES_MAX - index);
    x->durable.last = (uint8_t)index;
    raft_saved(&x->raft, index, term, out);
}

/* Whether it can happen; then it has. */
static bool happen(struct explorer *x, uint32_t event, struct raft_out *out) {
    struct raft *raft = &x->raft;
    uint64_t term = raft->term;
    uint8_t vote = raft->vote;
    switch (event) {
    case STAND:
        if (raft->role == RAFT_LEADER || raft->term >= x->bounds->terms) return false;
        if (raft->last >= x->bounds->entries) return false; /* no room for its first entry */
        raft_campaign(raft, false, out);
        break;
    case PROPOSE:
        if (raft->last >= x->bounds->entries || !raft_propose(raft, 1)) return false;
        break;
    case SAVE:
        if (raft->saved == raft->last) return false;
        save_one(x, out);
        break;
    case CRASH:
        if (x->next.crashes >= x->bounds->crashes) return false;
        x->next.crashes++;
        come_back(x, out);
        break;
    default: raft_receive(raft, pool_at(&x->messages, event - RECEIVE + 1, NULL), NULL, out); break;
    }
    /* Who does not save its term or vote has lost it when it comes back: see come_back. */
    if (!out->save_vote && (raft->term != term || raft->vote != vote))
        broken(x, "%u does not save", raft->self);
    return true;
}

static void try(struct explorer *x, uint32_t number, uint32_t place, uint32_t event) {
    size_t size;
    memcpy(&x->next, pool_at(&x->states, number, NULL), sizeof x->next);
    unpack(x, x->next.node[place]);
    x->from = (struct origin){number, event * EXPLORE_NODES + place};
    memset(&x->out, 0, offsetof(struct raft_out, message));
    if (!happen(x, event, &x->out)) return;
    const void *sent = pool_at(&x->sets, x->next.sent, &size);
    memcpy(&x->sent, sent, size);
    conclude(x, place);
}

static bool are_alike(const struct explore_bounds *bounds) {
    for (uint32_t i = 1; i < EXPLORE_NODES; i++)
        if (strcmp(bounds->start[0], bounds->start[i]) != 0) return false;
    return true;
}

static void expand(struct explorer *x, uint32_t number) {
    struct state state;
    struct sent sent;
    size_t size;
    memcpy(&state, pool_at(&x->states, number, NULL), sizeof state);
    const void *at = pool_at(&x->sets, state.sent, &size);
    memcpy(&sent, at, size);
    /* When nobody can be told from another, the first to do something is number 1. */
    uint32_t places = number == 1 && are_alike(x->bounds) ? 1 : EXPLORE_NODES;
    for (uint32_t place = 0; place < places; place++)
        for (uint32_t event = STAND; event < RECEIVE; event++) try(x, number, place, event);
    for (uint32_t i = 0; i < sent.count; i++) {
        const struct raft_message *m = pool_at(&x->messages, sent.at[i], NULL);
        try(x, number, m->to - 1u, RECEIVE + sent.at[i] - 1);
    }
}

/* ---- The whole ---- */

static void begin(struct explorer *x) {
    bool is_new;
    for (uint32_t place = 0; place < EXPLORE_NODES; place++) {
        const char *log = x->bounds->start[place];
        struct raft_out out = {0};
        memset(&x->durable, 0, sizeof x->durable);
        raft_open(&x->raft, (uint8_t)(place + 1), 0, 0);
        raft_restore_base(&x->raft, 0, 0, &x->config);
        for (uint32_t i = 1; log[i - 1]; i++) {
            raft_restore(&x->raft, i, 1, (uint64_t)(log[i - 1] - '0'), NULL);
            x->durable.term[x->durable.last = (uint8_t)i] = (uint8_t)(log[i - 1] - '0');
        }
        raft_begin(&x->raft, 0, &out);
        pack(x, place);
    }
    x->next.sent = pool_put(&x->sets, &x->sent, sizeof x->sent.count, NULL);
    pool_put(&x->states, &x->next, sizeof x->next, &is_new);
    x->origin = grown(x->origin, &x->origin_room, 2, sizeof *x->origin);
    x->origin[1] = (struct origin){0};
}

static void print_path(struct explorer *x, struct origin from, FILE *trace) {
    static const char *const names[] = {"stands", "is given an entry", "saves an entry", "crashes"};
    if (!from.state) return;
    print_path(x, x->origin[from.state], trace);
    uint32_t event = from.event / EXPLORE_NODES, place = from.event % EXPLORE_NODES;
    fprintf(trace, "%u ", place + 1);
    if (event < RECEIVE) {
        fprintf(trace, "%s\n", names[event]);
        return;
    }
    const struct raft_message *m = pool_at(&x->messages, event - RECEIVE + 1, NULL);
    fprintf(trace,
            "receives from %u: type %u, flags %u, term %llu, index %llu (%llu), %u of %llu\n",
            m->from, m->type, m->flags, (unsigned long long)m->term, (unsigned long long)m->index,
            (unsigned long long)m->index_term, m->count, (unsigned long long)m->entries_term);
}

void lab_explore(const struct explore_bounds *bounds, FILE *trace, struct explore_result *result) {
    struct explorer *x = calloc(1, sizeof *x);
    cv_assert(x && bounds->terms <= EXPLORE_TERMS_MAX && bounds->entries <= EXPLORE_ENTRIES_MAX);
    *result = (struct explore_result){0};
    x->bounds = bounds;
    x->result = result;
    x->config = (struct raft_config){.mark = 1, .count = EXPLORE_NODES};
    for (uint32_t i = 0; i < EXPLORE_NODES; i++)
        x->config.at[i] = (struct raft_member){.id = (uint8_t)(i + 1), .weight = 1};
    begin(x);
    for (uint32_t number = 1; number <= x->states.count && !result->broken[0]; number++)
        expand(x, number);
    if (result->broken[0] && trace) {
        print_path(x, x->from, trace);
        fprintf(trace, "%s\n", result->broken);
    }
    result->states = x->states.count;
    result->bytes = pool_bytes(&x->nodes) + pool_bytes(&x->messages) + pool_bytes(&x->sets) +
                    pool_bytes(&x->states) + x->origin_room * sizeof *x->origin;
    pool_close(&x->nodes);
    pool_close(&x->messages);
    pool_close(&x->sets);
    pool_close(&x->states);
    free(x->origin);
    free(x);
}
