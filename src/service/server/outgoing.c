/* What goes to a client, and what becomes of it if the client does not take it. */
#include "service/server/internal.h"

/* ---- Replies ---- */

enum { REPLY_HEADER = 16 };

size_t reply_begin(struct connection *c) {
    size_t reply = zk_frame_begin(&c->stream.out);
    bytes_extend(&c->stream.out, REPLY_HEADER);
    return reply;
}

void reply_end(struct connection *c, size_t reply, int32_t xid, int64_t zxid, int32_t err) {
    struct bytes *out = &c->stream.out;
    struct zk_reply_header header = {xid, zxid, err};
    if (c->misses_events) { /* it would take the answer to have all that came before */
        out->used = reply;
        return;
    }
    if (err) out->used = reply + sizeof(int32_t) + REPLY_HEADER;
    zk_store_reply_header(out->at + reply + sizeof(int32_t), &header);
    tally_add(&c->server->statistics.responses, out->used - reply - sizeof(int32_t), 1);
    if (!zk_frame_end(out, reply)) /* larger than any frame can be */
        zk_reply(out, xid, zxid, ZK_SYSTEMERROR);
    c->sent++;
    c->server->statistics.sent++;
    if (err == ZK_NOAUTH) c->server->statistics.refused[REFUSED_permission]++;
    c->last_zxid = zxid;
    connection_dirty(c);
}

/* ---- What clients do not take ----
 *
 * An answer may be as long as what it tells of, and its client takes its time; but what waits for
 * clients that take nothing is bounded. */

enum {
    TAKEN_MIN = 1 << 16, /* bytes; with less, a client only looks alive */
    DEAF_MS = 60000,     /* the least that tells of a client that takes little, step by step */
};

static void note_taken(struct connection *c) {
    uint64_t taken = net_taken(&c->stream);
    if (c->unsent && taken - c->taken < TAKEN_MIN) return;
    c->taken = taken;
    c->acknowledged_known = false;
    c->taken_us = c->server->clock.monotonic_us;
}

void connection_count_unsent(struct connection *c, size_t unsent) {
    note_taken(c);
    c->server->connections.unsent += unsent - c->unsent;
    c->unsent = unsent;
    if (!unsent) c->events = 0;
}

/* What the system has taken is not yet with the client, who may take long for it, and is alive.  It
 * is asked rarely, for that takes a system call. */
static void note_acknowledged(struct connection *c) {
    struct net_flow flow;
    if (!net_flow(&c->stream, &flow)) return;
    if (c->acknowledged_known && flow.acknowledged - c->acknowledged < TAKEN_MIN) return;
    if (c->acknowledged_known) c->taken_us = c->server->clock.monotonic_us;
    c->acknowledged = flow.acknowledged;
    c->acknowledged_known = true;
}

static size_t share_of(const struct connections *all) {
    size_t share = all->unsent_max / ((size_t)all->count + 1);
    return share < CONNECTION_UNSENT_MAX ? share : CONNECTION_UNSENT_MAX;
}

/* No connection's events may be a large part of what all may have; and when all together have too
 * much, none more than its share. */
static bool takes_too_little(const struct connection *c) {
    const struct connections *all = &c->server->connections;
    size_t events = c->events < c->unsent ? c->events : c->unsent;
    return events > all->unsent_max / 4 ||
           (events > share_of(all) && all->unsent > all->unsent_max);
}

bool connection_is_deaf(struct connection *c) {
    if (!c->unsent) return false;
    note_taken(c);
    note_acknowledged(c);
    return c->unsent > c->server->connections.unsent_max / 4 &&
           c->server->clock.monotonic_us - c->taken_us > DEAF_MS * 1000;
}

/* When all together have too much: of those with more than their share, the one that has taken
 * nothing for the longest.  The last of them has no more than an answer, and may keep it. */
static struct connection *deafest(const struct connections *all) {
    struct connection *deafest = NULL;
    size_t share = share_of(all);
    unsigned many = 0;
    for (uint32_t i = 1; i <= all->slots; i++) {
        struct connection *c = all->at[i];
        if (!c || c->unsent <= share) continue;
        many++;
        note_taken(c);
        if (!deafest || c->taken_us < deafest->taken_us) deafest = c;
    }
    return many > 1 ? deafest : NULL;
}

void connections_bound_unsent(struct server *s) {
    enum { AT_A_TIME = 16 }; /* to find one takes as long as there are connections */
    const struct connections *all = &s->connections;
    struct connection *c;
    for (int i = 0; i < AT_A_TIME && all->unsent > all->unsent_max && (c = deafest(all)); i++) {
        s->statistics.refused[REFUSED_deafness]++;
        connection_end(c);
    }
}

/* Answers are sent at the end of an iteration, all together; but no more of them wait for that than
 * may wait at all. */
void connection_bound_answers(struct connection *c) {
    const struct connections *all = &c->server->connections;
    if (c->stream.closing) return;
    connection_count_unsent(c, net_kept(&c->stream));
    if (all->unsent <= all->unsent_max || c->unsent <= share_of(all)) return;
    net_flush(&c->stream);
    if (c->stream.closing) return;
    connection_count_unsent(c, net_kept(&c->stream));
    connections_bound_unsent(c->server);
}

/* A client that takes no answers has to wait; if others had to wait with it, it is ended. */
bool connection_takes_answers(struct connection *c) {
    size_t max = c->waiting ? c->server->connections.unsent_max / 4 : (size_t)CONNECTION_UNSENT_MAX;
    if (net_unsent(&c->stream) <= max) return true;
    net_flush(&c->stream);
    if (c->stream.closing || net_unsent(&c->stream) <= max) return !c->stream.closing;
    if (!c->waiting) return false;
    c->server->statistics.refused[REFUSED_deafness]++;
    connection_end(c);
    return false;
}

/* ---- Events ---- */

/* It is ended, reconnects, and learns then what has changed. */
void connection_miss_events(struct connection *c) {
    c->misses_events = true;
    connection_dirty(c);
}

/* A client that takes nothing is not kept in the server's memory. */
void connection_notify(struct connection *c, int32_t type, struct zk_text path) {
    struct statistics *statistics = &c->server->statistics;
    size_t before = c->stream.out.used;
    if (c->misses_events || takes_too_little(c)) {
        connection_miss_events(c);
        return;
    }
    zk_notify(&c->stream.out, &(struct zk_watcher_event){type, ZK_SYNC_CONNECTED, path});
    statistics->watch_bytes += c->stream.out.used - before;
    statistics->sent++;
    c->sent++;
    connection_count_unsent(c, c->unsent + c->stream.out.used - before);
    c->events += c->stream.out.used - before;
    connection_dirty(c);
}

/* ---- Sending ---- */

void connection_dirty(struct connection *c) {
    struct server *s = c->server;
    if (c->dirty) return;
    c->dirty = true;
    struct connections *all = &s->connections;
    all->dirty = grown(all->dirty, &all->dirty_room, all->dirty_count + 1, sizeof *all->dirty);
    all->dirty[all->dirty_count++] = c->number;
}

void connections_flush(struct server *s) {
    struct connections *all = &s->connections;
    size_t none = SIZE_MAX, *steps = s->stopping ? &none : &s->steps.send, i = 0;
    if (!all->dirty_count || !*steps) return;
    enum busy_kind before = busy_with(&s->work, BUSY_SENDING);
    for (; i < all->dirty_count && *steps; i++) {
        struct connection *c = all->at[all->dirty[i]];
        if (!c || !c->dirty) continue; /* it has ended, or another has its number now */
        --*steps;
        c->dirty = false;
        net_flush(&c->stream);
        if (c->stream.closing) continue;
        connection_count_unsent(c, net_kept(&c->stream));
        if (c->misses_events) {
            s->statistics.refused[REFUSED_deafness]++;
            connection_end(c);
        } else if (c->state != CONNECTION_ENDING)
            connection_process(c); /* with what waited for room, if anything did */
    }
    all->dirty_count -= i;
    if (all->dirty_count)
        memmove(all->dirty, all->dirty + i, all->dirty_count * sizeof *all->dirty);
    connections_bound_unsent(s);
    busy_with(&s->work, before);
}
