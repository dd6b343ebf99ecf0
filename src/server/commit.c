/* The end of a turn: everything that was put forward in it is written to the log at once, and then
 * applied, told to whoever watches, and answered, entry by entry. */
#include "server/server.h"

/* ---- Putting forward ---- */

enum { AROUND_A_REQUEST = 1024 }; /* the rest of its entry, and of the message that brings it */
_Static_assert(SETTINGS_PACKET_MAX + CONNECTION_IDENTITIES_MAX + AROUND_A_REQUEST <= LINK_FRAME_MAX,
               "other servers can be told of everything that a client can ask for");

static struct pending *add_pending(struct server *s) {
    if (s->pending_count == s->pending_room) { /* a power of two */
        size_t room = s->pending_room ? 2 * s->pending_room : 256;
        struct pending *larger = malloc(room * sizeof *larger);
        cv_assert(larger);
        for (size_t i = 0; i < s->pending_count; i++)
            larger[i] = s->pending[(s->pending_first + i) & (s->pending_room - 1)];
        free(s->pending);
        s->pending = larger;
        s->pending_room = room;
        s->pending_first = 0;
    }
    return &s->pending[(s->pending_first + s->pending_count++) & (s->pending_room - 1)];
}

static struct pending take_pending(struct server *s) {
    cv_assert(s->pending_count);
    struct pending first = s->pending[s->pending_first];
    s->pending_first = (s->pending_first + 1) & (s->pending_room - 1);
    s->pending_count--;
    return first;
}

static void propose(struct server *s, struct connection *c, int64_t session, int32_t xid,
                    int32_t op, struct zk_in body, int32_t rules) {
    struct replica *r = &s->replica;
    struct tree_entry entry = {
        .time = s->now_ms,
        .life = r->life,
        .number = window_last(&r->outbox) + 1,
        .session = session,
        .identities = c ? connection_identities(c) : (struct zk_clients){0},
        .rules = s->tree.rules | rules,
        .op = op,
        .body = body,
    };
    size_t size = tree_entry_size(&entry);
    tree_store_entry(replica_room(s, size), &entry);
    *add_pending(s) = (struct pending){.connection = c ? c->number : 0,
                                       .serial = c ? c->serial : 0,
                                       .xid = xid,
                                       .op = op,
                                       .begun_us = s->clock_us};
    s->statistics.proposals++;
    replica_propose(s, size);
}

void commit_propose(struct server *s, struct connection *c, int64_t session, int32_t xid,
                    int32_t op, struct zk_in body) {
    propose(s, c, session, xid, op, body, 0);
}

void commit_propose_own(struct server *s, int32_t op, struct zk_in body) {
    propose(s, NULL, 0, 0, op, body, TREE_OWN);
}

void commit_expire(struct server *s, uint32_t place) {
    const struct session *session = &s->tree.sessions.at[place];
    struct tree_expiry expiry = {(int64_t)s->replica.raft.term, (int32_t)session->moves};
    unsigned char body[TREE_EXPIRY_SIZE];
    tree_store_expiry(body, &expiry);
    propose(s, NULL, session->id, 0, ZK_OP_CLOSE_SESSION, zk_in_of(body, sizeof body),
            TREE_EXPIRES);
}

void commit_forget(struct server *s, uint64_t number) {
    while (s->replica.outbox.after < number) {
        take_pending(s);
        window_trim(&s->replica.outbox, s->replica.outbox.after + 1);
    }
}

/* ---- Telling ---- */

struct telling {
    struct server *server;
    const struct tree_event *event;
};

static void tell(void *context, uint32_t number, int32_t type, struct zk_text path) {
    const struct telling *telling = context;
    struct server *s = telling->server;
    struct connection *c = s->connection[number];
    struct zk_clients identities = connection_identities(c);
    bool about_parent = type == ZK_NODE_CHILDREN_CHANGED;
    uint32_t acl = about_parent ? telling->event->parent_acl : telling->event->acl;
    if (!acl_allows(&s->tree, acl, ACL_READ, &identities)) return;
    connection_notify(c, type, path);
}

void commit_tell_watchers(struct server *s) {
    for (size_t i = 0; i < s->tree.events; i++) {
        const struct tree_event *event = &s->tree.event[i];
        struct telling telling = {s, event};
        watches_fire(&s->watches, event->type, tree_event_path(&s->tree, event), tell, &telling);
    }
}

/* ---- Applying ---- */

/* A reply is made in a buffer of its own: events that the entry causes go out before it. */
static void answer(struct server *s, struct connection *c, const struct pending *p, int64_t session,
                   int32_t err) {
    if (p->op == ZK_OP_CREATE_SESSION || p->op == TREE_OP_ATTACH) {
        session_joined(c, session, err);
        return;
    }
    if (p->op == ZK_OP_RECONFIG && !err) { /* it is answered when it is done */
        c->awaits_change = true;
        c->change_xid = p->xid;
        return;
    }
    size_t reply = reply_begin(c);
    bytes_add(&c->stream.out, s->reply.at, s->reply.used);
    reply_end(c, reply, p->xid, s->tree.zxid, err);
    uint64_t us = s->clock_us - p->begun_us;
    tally_add(&c->latency, us, 1);
    summary_add(&s->statistics.writes, us, 1);
    if (p->op == ZK_OP_CLOSE_SESSION)
        connection_end_after(c);
    else
        connection_answered(c);
}

/* What one of our own numbers has come to: whoever asked for it is told. */
static struct connection *asked_by(struct server *s, const struct tree_entry *entry,
                                   struct pending *p) {
    struct replica *r = &s->replica;
    *p = (struct pending){0};
    if (entry->life != r->life) return NULL;
    cv_assert(entry->number == r->outbox.after + 1);
    *p = take_pending(s);
    window_trim(&r->outbox, entry->number);
    r->fed_us = s->clock_us;
    struct connection *c = p->connection ? s->connection[p->connection] : NULL;
    return c && c->serial == p->serial && !c->stream.closing ? c : NULL;
}

void commit_apply(struct server *s, const struct raft_entry *raw) {
    struct tree_entry entry;
    struct zk_in in = zk_in_of(raw->bytes, raw->size);
    struct pending p;
    cv_assert(tree_read_entry(&in, &entry)); /* it was looked at before it was taken */
    uint32_t place = entry.op == ZK_OP_CLOSE_SESSION ? session_find(&s->tree, entry.session) : 0;
    s->reply.used = 0;
    int32_t err = tree_apply(&s->tree, tree_next_zxid(&s->tree, raw->term), &entry, &s->reply);
    if (err == TREE_AGAIN) return;
    struct connection *c = asked_by(s, &entry, &p);
    s->statistics.commits++;
    commit_tell_watchers(s);
    if (place && !session_find(&s->tree, entry.session)) session_ended(s, place);
    bool opens = entry.op == TREE_OP_ATTACH || entry.op == ZK_OP_CREATE_SESSION;
    if (opens && !err) session_moved(s, entry.session, c);
    if (entry.op == ZK_OP_RECONFIG && !err) err = change_begin(s, entry.body);
    if (c && !c->stream.closing) answer(s, c, &p, entry.session, err);
}

/* ---- The turn ---- */

/* Whether to look once more for what has come before the disk is asked.  Clients that were just
 * told what they wanted to read are likely to write next (that is how a lock changes hands), and
 * to share one wait is worth half a wait.  Without such clients there is nothing to wait for. */
static bool expects_company(struct server *s) {
    enum { PATIENCE_US_MAX = 100 };
    const struct replica *r = &s->replica;
    uint64_t entries = r->raft.last - r->raft.saved + window_last(&r->outbox) - r->fed;
    uint64_t now_us = uv_hrtime() / 1000;
    bool reads = s->statistics.reads.all.count != s->reads_before;
    s->reads_before = s->statistics.reads.all.count;
    if (!entries || s->saving || s->stopping || s->save_us > (uint64_t)s->settings.sync_wait_us)
        return false;
    if (s->held_entries) { /* it has been waited for: until it came, or for long enough */
        if (entries == s->held_entries && now_us < s->held_until_us) return true;
        s->held_entries = 0;
        return false;
    }
    if (!reads) return false;
    uint64_t patience_us = s->save_us / 2;
    s->held_entries = entries;
    s->held_until_us = now_us + (patience_us < PATIENCE_US_MAX ? patience_us : PATIENCE_US_MAX);
    return true;
}

void commit_turn(struct server *s) {
    connections_flush(s); /* what was answered at once does not wait for the disk */
    if (expects_company(s)) return;
    replica_turn(s);
    connections_unhold(s);
    connections_flush(s);
    server_rest(s);
}
