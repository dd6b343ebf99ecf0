/* The end of a turn: everything that was put forward in it is written to the log at once, and then
 * applied, told to whoever watches, and answered, entry by entry. */
#include "server/server.h"

/* ---- Putting forward ---- */

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

void commit_propose(struct server *s, struct connection *c, int64_t session, int32_t xid,
                    int32_t op, struct zk_in body) {
    struct tree_entry entry = {
        .time = s->now_ms,
        .session = session,
        .identities = c ? connection_identities(c) : (struct zk_clients){0},
        .rules = s->tree.rules,
        .op = op,
        .body = body,
    };
    size_t size = tree_entry_size(&entry);
    tree_store_entry(alone_room(&s->raft, size), &entry);
    alone_propose(&s->raft, size);
    *add_pending(s) = (struct pending){.connection = c ? c->number : 0,
                                       .serial = c ? c->serial : 0,
                                       .xid = xid,
                                       .op = op,
                                       .begun_us = s->clock_us};
    s->statistics.proposals++;
    if (!s->saving && !s->stopping && !uv_is_active((uv_handle_t *)&s->more))
        uv_idle_start(&s->more, server_more);
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

static void tell_watchers(struct server *s) {
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
    if (p->op == ZK_OP_CREATE_SESSION) {
        session_joined(c, session, err);
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

static void apply(struct server *s, const struct raft_entry *raw) {
    struct tree_entry entry;
    struct zk_in in = zk_in_of(raw->bytes, raw->size);
    struct pending p = take_pending(s);
    struct connection *c = p.connection ? s->connection[p.connection] : NULL;
    if (c && c->serial != p.serial) c = NULL;
    cv_assert(tree_read_entry(&in, &entry));
    uint32_t place = entry.op == ZK_OP_CLOSE_SESSION ? session_find(&s->tree, entry.session) : 0;
    s->reply.used = 0;
    int32_t err = tree_apply(&s->tree, tree_next_zxid(&s->tree, raw->term), &entry, &s->reply);
    s->statistics.commits++;
    tell_watchers(s);
    if (place) session_ended(s, place);
    if (c && !c->stream.closing) answer(s, c, &p, entry.session, err);
}

/* ---- The turn ----
 *
 * A disk that answers at once is waited for: that is quicker than to ask a thread.  When it has
 * been slow, the next batch is left to a thread, and reads go on meanwhile. */

static void write_batch(uv_work_t *work) {
    struct server *s = work->data;
    uint64_t begun = uv_hrtime();
    s->save_failed = log_append(&s->log, &s->batch) != 0;
    s->save_us = (uv_hrtime() - begun) / 1000;
}

static void finish(struct server *s) {
    struct raft_entry entry;
    if (s->save_failed) {
        server_say("error", "%s; what was not acknowledged may be lost, nothing else is",
                   s->log.message);
        _exit(SERVER_EXIT_DISK); /* nothing may be said to anybody any more */
    }
    server_read_clock(s);
    summary_add(&s->statistics.syncs, s->save_us, 1);
    s->statistics.log_bytes += s->batch.size;
    if (s->save_us > (uint64_t)s->settings.sync_warning_ms * 1000) {
        s->statistics.slow_syncs++;
        server_say("warning", "the disk is slow: writing %u entries took %llu ms", s->batch.count,
                   (unsigned long long)s->save_us / 1000);
    }
    alone_saved(&s->raft, s->batch.first + s->batch.count - 1);
    while (alone_committed(&s->raft, &entry)) apply(s, &entry);
    store_snapshot(s, false);
    store_trim(s);
}

static void batch_written(uv_work_t *work, int status) {
    struct server *s = work->data;
    (void)status;
    s->saving = false;
    finish(s);
    commit_turn(s);
}

/* Whether to look once more for what has come before the disk is asked.  Clients that were just
 * told what they wanted to read are likely to write next (that is how a lock changes hands), and
 * to share one wait is worth half a wait.  Without such clients there is nothing to wait for. */
static bool expects_company(struct server *s) {
    enum { PATIENCE_US_MAX = 100 };
    uint64_t entries = s->raft.last - s->raft.saved, now_us = uv_hrtime() / 1000;
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
    if (!s->saving && alone_to_save(&s->raft, &s->batch)) {
        s->save.data = s;
        if (s->save_us <= (uint64_t)s->settings.sync_wait_us || s->stopping) {
            write_batch(&s->save);
            finish(s);
        } else {
            s->saving = true;
            uv_queue_work(&s->loop, &s->save, write_batch, batch_written);
        }
    }
    connections_flush(s);
    if (s->saving || !s->raft.open.used) uv_idle_stop(&s->more);
}
