/* Committed entries: applied to the tree, notified to watchers, and answered, one by one. */
#include "service/server/internal.h"

/* ---- Watchers ---- */

enum {
    TOLD_MAX = 1 << 19 /* notifications of an entry, for which all others wait */
};

struct notification {
    struct server *server;
    const struct tree_event *event;
    size_t steps;
};

/* Of an entry that tells too much, those are not told on that it has told more than their share. */
static bool is_told_too_much(const struct connection *c) {
    const struct server *s = c->server;
    size_t share = TOLD_MAX / ((size_t)s->connections.count + 1);
    return s->applying.told >= TOLD_MAX && c->told > share;
}

static void notify(void *context, uint32_t number, int32_t type, struct zk_text path) {
    struct notification *n = context;
    struct server *s = n->server;
    struct connection *c = s->connections.at[number];
    n->steps += tree_steps((size_t)path.size);
    if (!c || c->misses_events) return; /* it has ended, or is about to */
    if (c->told_commit != s->statistics.commits) c->told = 0;
    c->told_commit = s->statistics.commits;
    if (is_told_too_much(c)) {
        connection_miss_events(c);
        return;
    }
    s->applying.told++;
    c->told++;
    struct zk_clients identities = connection_identities(c);
    bool about_parent = type == ZK_NODE_CHILDREN_CHANGED;
    uint32_t acl = about_parent ? n->event->parent_acl : n->event->acl;
    if (!acl_allows(&s->tree, acl, ACL_READ, &identities)) return;
    connection_notify(c, type, path);
}

/* Of the events from one on, each a step, and each notification another; returns how many are done.
 */
static size_t notify_some(struct server *s, size_t from, size_t *steps) {
    size_t count = tree_certain_events(&s->tree), i = from;
    if (!s->watches.watches && !s->is_observed) return count;
    for (; i < count && *steps; i++) {
        const struct tree_event *event = &s->tree.event[i];
        struct zk_text path = tree_event_path(&s->tree, event);
        struct notification n = {s, event, tree_steps((size_t)path.size)};
        if (s->is_observed) s->admin->changed(s, event->type, path);
        watches_fire(&s->watches, event->type, path, notify, &n);
        *steps -= n.steps < *steps ? n.steps : *steps;
    }
    return i;
}

void notify_watchers(struct server *s) {
    size_t all = SIZE_MAX;
    notify_some(s, 0, &all);
}

/* ---- Entries ---- */

/* The reply is made in a buffer of its own: events that the entry causes are sent before it. */
static void answer(struct server *s, struct connection *c, const struct proposal *p,
                   int64_t session, int32_t err) {
    if (p->op == ZK_OP_CREATE_SESSION || p->op == TREE_OP_ATTACH) {
        session_connected(c, session, err);
        return;
    }
    if (p->op == ZK_OP_RECONFIG && !err) { /* answered when the change has ended */
        c->awaits_change = true;
        c->reconfig_xid = p->xid;
        return;
    }
    if (err == ZK_QUOTAEXCEEDED && p->op != ZK_OP_ERROR) s->statistics.refused[REFUSED_quota]++;
    size_t reply = reply_begin(c);
    bytes_add(&c->stream.out, s->reply.at, s->reply.used);
    reply_end(c, reply, p->xid, s->tree.zxid, err);
    uint64_t us = s->clock.monotonic_us - p->proposed_us;
    tally_add(&c->latency, us, 1);
    summary_add(&s->statistics.writes, us, 1);
    if (p->op == ZK_OP_CLOSE_SESSION)
        connection_end_after(c);
    else
        connection_answered(c);
}

/* The connection that proposed an entry, if it is still there. */
static struct connection *proposer_of(struct server *s, const struct tree_entry *entry,
                                      struct proposal *p) {
    if (!ensemble_take_proposal(s->ensemble, entry, p) || !p->connection) return NULL;
    struct connection *c = s->connections.at[p->connection];
    return c && c->serial == p->serial && !c->stream.closing ? c : NULL;
}

/* What follows from an entry that is applied, and of which watchers are notified. */
static void finish(struct server *s, const struct tree_entry *entry, uint32_t slot, int32_t err) {
    struct proposal p = {0};
    struct connection *c = proposer_of(s, entry, &p);
    s->statistics.commits++;
    if (slot && !session_find(&s->tree, entry->session)) session_ended(s, slot);
    bool opens = entry->op == TREE_OP_ATTACH || entry->op == ZK_OP_CREATE_SESSION;
    if (opens && !err) session_moved(s, entry->session, c);
    if (entry->op == ZK_OP_RECONFIG && !err) ensemble_change_applied(s->ensemble, entry);
    if (c && !c->stream.closing) answer(s, c, &p, entry->session, err);
    if (!p.connection && p.serial) s->admin->answered(s, p.serial, err, &s->reply);
}

/* Applies some of an entry to the tree, and notifies the watchers of it; false: not all yet. */
static bool apply_some(struct server *s, uint64_t term, const struct tree_entry *entry,
                       size_t *steps) {
    struct applying *a = &s->applying;
    if (!a->begun) {
        bool ends = entry->op == ZK_OP_CLOSE_SESSION;
        *a = (struct applying){.begun = true,
                               .slot = ends ? session_find(&s->tree, entry->session) : 0};
        s->reply.used = 0;
    }
    for (;;) {
        if (!a->notifying) {
            if (!*steps) return false;
            a->err =
                tree_apply_some(&s->tree, tree_next_zxid(&s->tree, term), entry, &s->reply, steps);
            a->applied = a->err != TREE_UNFINISHED;
            a->notified = 0;
            if (a->err == TREE_OUT_OF_SEQUENCE) return true;
            a->notifying = true;
        }
        a->notified = notify_some(s, a->notified, steps);
        if (a->notified < tree_certain_events(&s->tree)) return false;
        a->notifying = false;
        if (a->applied) return true;
    }
}

enum ensemble_applied apply_entry(struct server *s, const struct raft_entry *raw) {
    struct tree_entry entry;
    struct zk_in in = zk_in_of(raw->bytes, raw->size);
    size_t all = SIZE_MAX, *steps = s->stopping ? &all : &s->steps.apply;
    bool begun = s->applying.begun, others_first = s->connections.delaying || s->entries_yield;
    if (!*steps || reading_is_on(s) || (!begun && (others_first || memory_holds_entries(s))))
        return begun ? ENSEMBLE_UNFINISHED : ENSEMBLE_LATER;
    bool read = tree_read_entry(&in, &entry);
    cv_assert(read); /* it was checked when it was received */
    if (!apply_some(s, raw->term, &entry, steps)) return ENSEMBLE_UNFINISHED;
    struct applying done = s->applying;
    s->applying = (struct applying){0};
    s->entries_yield = begun && s->connections.deferred && !s->stopping;
    /* If it is out of sequence, it was committed twice. */
    if (done.err != TREE_OUT_OF_SEQUENCE) finish(s, &entry, done.slot, done.err);
    return ENSEMBLE_APPLIED;
}

/* ---- Reconfigs ---- */

void answer_reconfigs(struct server *s) {
    int32_t error;
    /* In the middle of an entry its zxid is there, and its events are not. */
    if (s->applying.begun || !ensemble_change_ended(s->ensemble, &error)) return;
    for (uint32_t i = 1; i <= s->connections.slots; i++) {
        struct connection *c = s->connections.at[i];
        if (!c || !c->awaits_change) continue;
        c->awaits_change = false;
        union zk_request config = {.get_data = {zk_text_of("/zookeeper/config"), false}};
        struct zk_clients identities = connection_identities(c);
        size_t reply = reply_begin(c);
        int32_t err = error;
        if (!err)
            err = tree_read(&s->tree, ZK_OP_GET_DATA, &config, c->session_id, &identities,
                            &c->stream.out);
        reply_end(c, reply, c->reconfig_xid, s->tree.zxid, err);
        connection_answered(c);
    }
}
