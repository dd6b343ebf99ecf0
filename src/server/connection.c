/* Connections: frames as they come in, and which of them wait for which.
 *
 * In the buffer of a connection lie, one behind the other,
 *
 *   [answered ... done) [waiting for the log, and reads behind those ... ahead) [not looked at ...
 *
 * Writes are put into the log's batch as soon as they are met, so a client that sends many at once
 * has them written at once.  A read behind a write is passed over, and answered when the writes
 * before it have been applied and before the next one is. */
#include <arpa/inet.h>
#include <stdlib.h>

#include "server/server.h"

enum { UNSENT_MAX = 1 << 20, UNSENT_HOPELESS = 64 << 20, KEPT = 1 << 14 };

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
    if (err) out->used = reply + sizeof(int32_t) + REPLY_HEADER;
    zk_store_reply_header(out->at + reply + sizeof(int32_t), &header);
    tally_add(&c->server->statistics.responses, out->used - reply - sizeof(int32_t), 1);
    if (!zk_frame_end(out, reply)) /* larger than any frame can be */
        zk_reply(out, xid, zxid, ZK_SYSTEMERROR);
    c->sent++;
    c->server->statistics.sent++;
    c->last_zxid = zxid;
    connection_dirty(c);
}

void connection_notify(struct connection *c, int32_t type, struct zk_text path) {
    struct statistics *statistics = &c->server->statistics;
    size_t before = c->stream.out.used;
    zk_notify(&c->stream.out, &(struct zk_watcher_event){type, ZK_SYNC_CONNECTED, path});
    statistics->watch_bytes += c->stream.out.used - before;
    statistics->sent++;
    c->sent++;
    connection_dirty(c);
}

void connection_dirty(struct connection *c) {
    struct server *s = c->server;
    if (c->dirty) return;
    c->dirty = true;
    s->dirty = grown(s->dirty, &s->dirty_room, s->dirties + 1, sizeof *s->dirty);
    s->dirty[s->dirties++] = c->number;
}

void connections_flush(struct server *s) {
    for (size_t i = 0; i < s->dirties; i++) {
        struct connection *c = s->connection[s->dirty[i]];
        if (!c || !c->dirty) continue; /* it has ended, and another may have its number */
        c->dirty = false;
        net_flush(&c->stream);
        if (c->stream.closing) continue;
        if (net_unsent(&c->stream) > UNSENT_HOPELESS)
            connection_end(c);
        else if (c->state != CONNECTION_ENDING)
            connection_go_on(c); /* what waited for room, if anything did */
    }
    s->dirties = 0;
}

/* ---- Who it is ---- */

struct zk_clients connection_identities(const struct connection *c) {
    return (struct zk_clients){c->identities.at, c->identities.used, c->identity_count};
}

bool connection_add_identity(struct connection *c, const char *scheme, struct zk_text id) {
    struct zk_client known, added = {zk_text_of(scheme), id};
    for (struct zk_clients left = connection_identities(c); zk_clients_next(&left, &known);)
        if (zk_text_equal(known.scheme, added.scheme) && zk_text_equal(known.user, added.user))
            return true;
    if (c->identities.used + zk_size_client(&added) > CONNECTION_IDENTITIES_MAX) return false;
    zk_write_client(&c->identities, &added);
    c->identity_count++;
    return true;
}

/* ---- The requests ---- */

/* The frame at a place of the buffer: 1, or 0: it is not all there, or -1: it cannot be. */
static int frame_at(const struct connection *c, size_t at, struct zk_in *frame) {
    struct zk_in received = zk_in_of(c->in.at + at, c->in.used - at);
    return zk_next_frame(&received, c->server->settings.packet_bytes_max, frame);
}

static size_t end_of(const struct connection *c, const struct zk_in *frame) {
    return (size_t)(frame->end - c->in.at);
}

/* A barrier does so in an ensemble: what it waits for may be on its way to another server. */
static bool goes_through_log(const struct server *s, const struct zk_op *op) {
    return op && (op->kind == ZK_KIND_WRITE || op->number == ZK_OP_CLOSE_SESSION ||
                  (op->kind == ZK_KIND_BARRIER && s->replica.links));
}

/* There is no end to what clients can ask for, but there is one to memory. */
static bool is_full(struct server *s) {
    enum { OUTBOX_MAX = 16 << 20 };
    if (window_bytes(&s->replica.outbox) <= OUTBOX_MAX) return false;
    return s->held = true;
}

static bool reads_are_fresh(const struct server *s) {
    return s->settings.linearizable && s->replica.links;
}

static bool may_be_passed(const struct server *s, const struct zk_op *op) {
    bool is_read = op && (op->kind == ZK_KIND_READ || op->kind == ZK_KIND_BARRIER);
    return op && ((is_read && !reads_are_fresh(s)) || op->number == ZK_OP_PING);
}

/* A read that is to be fresh waits for a question to the leader that was asked after it came. */
static bool may_be_read(struct connection *c, const struct zk_op *op) {
    struct server *s = c->server;
    if (!op || op->kind != ZK_KIND_READ || !reads_are_fresh(s) || c->read_only) return true;
    if (c->ticket && c->ahead < c->ticket_covers) return fresh_is_done(s, c->ticket);
    c->ticket = fresh_ticket(s);
    c->ticket_covers = c->in.used;
    return false;
}

void connections_freshen(struct server *s) {
    for (uint32_t i = 1; i <= s->connection_places; i++) {
        struct connection *c = s->connection[i];
        if (c && c->ticket && c->state == CONNECTION_OPEN && fresh_is_done(s, c->ticket))
            connection_go_on(c);
    }
}

static void note_request(struct connection *c, const struct zk_request_header *header) {
    c->received++;
    c->server->statistics.received++;
    c->last_op = header->type;
    if (header->xid >= 0) c->last_xid = header->xid; /* others are the client library's own */
    c->last_answer_us = c->server->clock_us;
}

/* Deals with the frame at `ahead`; false when nothing behind it may be looked at yet. */
static bool take(struct connection *c, struct zk_in *frame) {
    struct zk_request_header header;
    size_t end = end_of(c, frame);
    if (!zk_read_request_header(frame, &header)) {
        connection_end(c);
        return false;
    }
    const struct zk_op *op = zk_op_of(header.type);
    if (c->changing) return false; /* that takes its time, and all behind it waits */
    if (goes_through_log(c->server, op) && c->read_only) {
        note_request(c, &header);
        reply_end(c, reply_begin(c), header.xid, c->server->tree.zxid, ZK_NOTREADONLY);
        if (header.type == ZK_OP_CLOSE_SESSION) connection_end_after(c);
        c->done = end;
    } else if (goes_through_log(c->server, op)) {
        if (c->waiting >= (uint32_t)c->server->settings.outstanding_max) return false;
        if (is_full(c->server)) return false;
        note_request(c, &header);
        commit_propose(c->server, c, c->session_id, header.xid, header.type, *frame);
        c->waiting++;
        c->changing = header.type == ZK_OP_RECONFIG;
        if (header.type == ZK_OP_CLOSE_SESSION) c->state = CONNECTION_LEAVING;
    } else if (c->waiting) {
        if (!may_be_passed(c->server, op)) return false;
    } else if (!may_be_read(c, op)) {
        return false;
    } else {
        note_request(c, &header);
        if (!request_answer(c, &header, frame)) connection_end_after(c);
        c->done = end;
    }
    c->ahead = end;
    return true;
}

/* Reads are timed together, from when the last bytes came: a clock for each would cost more than
 * some of them do. */
static void time_reads(struct connection *c) {
    if (!c->untimed) return;
    uint64_t us = uv_hrtime() / 1000 - c->came_us;
    tally_add(&c->latency, us, c->untimed);
    summary_add(&c->server->statistics.reads, us, c->untimed);
    c->untimed = 0;
}

/* Gives room back, and stops reading while there is too much that waits. */
static void tidy(struct connection *c) {
    if (c->done == c->in.used) {
        c->in.used = c->done = c->ahead = c->ticket_covers = 0;
        if (c->in.room > KEPT) bytes_close(&c->in);
    } else if (c->done > c->in.used / 2) {
        memmove(c->in.at, c->in.at + c->done, c->in.used - c->done);
        c->in.used -= c->done;
        c->ahead -= c->done;
        c->ticket_covers -= c->ticket_covers < c->done ? c->ticket_covers : c->done;
        c->done = 0;
    }
    size_t most = 2 * (size_t)c->server->settings.packet_bytes_max;
    bool full = c->in.used - c->done > most || net_unsent(&c->stream) > UNSENT_MAX;
    if (c->state != CONNECTION_ENDING) net_read(&c->stream, !full && !c->server->leaving_us);
}

void connection_go_on(struct connection *c) {
    while ((c->state == CONNECTION_NEW || c->state == CONNECTION_OPEN) &&
           net_unsent(&c->stream) <= UNSENT_MAX) { /* who takes no answers is not asked for more */
        struct zk_in frame;
        if (c->state == CONNECTION_NEW && c->in.used >= 4 && word_answer(c, c->in.at)) return;
        int status = frame_at(c, c->ahead, &frame);
        if (status < 0) {
            connection_end(c);
            return;
        }
        if (status == 0) break;
        if (c->state == CONNECTION_NEW) {
            c->done = c->ahead = end_of(c, &frame);
            session_connect(c, &frame);
        } else if (!take(c, &frame)) {
            break;
        }
    }
    time_reads(c);
    if (!c->stream.closing) tidy(c);
}

void connection_answered(struct connection *c) {
    struct zk_in frame;
    struct zk_request_header header;
    cv_assert(c->waiting && frame_at(c, c->done, &frame) == 1);
    c->waiting--;
    c->changing = false;
    c->done = end_of(c, &frame);
    while (c->done < c->ahead && frame_at(c, c->done, &frame) == 1) {
        size_t end = end_of(c, &frame);
        zk_read_request_header(&frame, &header);
        if (goes_through_log(c->server, zk_op_of(header.type))) return;
        note_request(c, &header);
        if (!request_answer(c, &header, &frame)) connection_end_after(c);
        c->done = end;
        if (net_unsent(&c->stream) > UNSENT_HOPELESS) connection_end(c);
        if (c->stream.closing) return;
    }
    connection_go_on(c);
}

void connection_rest(struct connection *c) {
    bool quiet = c->received == c->received_before;
    c->received_before = c->received;
    if (!quiet) return;
    if (!c->in.used) bytes_close(&c->in);
    if (!c->stream.out.used) bytes_close(&c->stream.out);
}

void connections_unhold(struct server *s) {
    if (!s->held || is_full(s)) return;
    s->held = false;
    for (uint32_t i = 1; i <= s->connection_places; i++)
        if (s->connection[i] && s->connection[i]->state == CONNECTION_OPEN)
            connection_go_on(s->connection[i]);
}

/* ---- Coming and going ---- */

static void bytes_came(struct net_stream *stream, const unsigned char *bytes, size_t size) {
    struct connection *c = (struct connection *)stream;
    server_read_clock(c->server);
    c->came_us = c->server->clock_us;
    c->server->statistics.bytes_received += size;
    session_touch(c); /* also when it waits behind a write that takes its time */
    bytes_add(&c->in, bytes, size);
    connection_go_on(c);
}

/* The first bytes to a port that takes both kinds. */
static void first_bytes_came(struct net_stream *stream, const unsigned char *bytes, size_t size) {
    struct connection *c = (struct connection *)stream;
    stream->on_bytes = bytes_came;
    if (bytes[0] != TLS_FIRST_BYTE)
        bytes_came(stream, bytes, size);
    else if (tls_begin(c->server->tls, stream))
        tls_receive(stream, bytes, size);
    else
        connection_end(c);
}

/* Whoever fails is told of once in a second, however many there are. */
static void handshake_failed(struct connection *c, const char *why) {
    struct server *s = c->server;
    server_read_clock(s);
    s->statistics.handshakes_failed++;
    if (s->now_ms - s->tls_said_ms < 1000 && s->now_ms >= s->tls_said_ms) return;
    s->tls_said_ms = s->now_ms;
    server_say("warning", "TLS refused address=%s failed=%llu: %s", c->address,
               (unsigned long long)s->statistics.handshakes_failed, why);
}

static void secured(struct net_stream *stream, const char *failure) {
    struct connection *c = (struct connection *)stream;
    struct bytes subject = {0};
    if (failure)
        handshake_failed(c, failure);
    else if (tls_subject(stream, &subject))
        connection_add_identity(c, "x509",
                                (struct zk_text){(const char *)subject.at, (int32_t)subject.used});
    bytes_close(&subject);
}

static void drained(struct net_stream *stream) {
    struct connection *c = (struct connection *)stream;
    if (c->state != CONNECTION_ENDING) connection_go_on(c);
}

static void other_end_gone(struct net_stream *stream) {
    struct connection *c = (struct connection *)stream;
    if (c->state == CONNECTION_OPEN) c->server->statistics.dropped++;
    connection_end(c);
}

static void stream_closed(struct net_stream *stream) {
    struct connection *c = (struct connection *)stream;
    bytes_close(&c->in);
    bytes_close(&c->identities);
    free(c);
}

void connection_end(struct connection *c) {
    struct server *s = c->server;
    if (c->stream.closing) return;
    c->state = CONNECTION_ENDING;
    if (c->session && session_live(s, c->session)->connection == c->number)
        session_live(s, c->session)->connection = 0;
    if (s->connection[c->number] == c) {
        watches_forget(&s->watches, c->number);
        s->connection[c->number] = NULL;
        s->free_number = grown(s->free_number, &s->free_number_room, s->free_numbers + 1,
                               sizeof *s->free_number);
        s->free_number[s->free_numbers++] = c->number;
        s->connections--;
    }
    net_close(&c->stream);
}

void connection_end_after(struct connection *c) {
    if (c->stream.closing) return;
    if (c->state != CONNECTION_ENDING) c->ending_ms = c->server->now_ms;
    c->state = CONNECTION_ENDING;
    net_close_after(&c->stream);
}

void connection_count_anew(struct connection *c) {
    c->received = c->sent = c->last_answer_us = 0;
    c->last_op = ZK_OP_ERROR;
    c->last_xid = -1;
    c->last_zxid = -1;
    c->latency = (struct tally){0};
}

static void read_address(struct connection *c) {
    struct sockaddr_storage peer;
    int size = sizeof peer;
    if (uv_tcp_getpeername(&c->stream.tcp, (struct sockaddr *)&peer, &size) != 0) return;
    if (peer.ss_family == AF_INET6) {
        const struct sockaddr_in6 *six = (const struct sockaddr_in6 *)&peer;
        const char *text = inet_ntop(AF_INET6, &six->sin6_addr, c->address, sizeof c->address);
        if (text && strncmp(text, "::ffff:", 7) == 0)
            memmove(c->address, c->address + 7, strlen(c->address) - 6);
        c->port = ntohs(six->sin6_port);
    } else {
        const struct sockaddr_in *four = (const struct sockaddr_in *)&peer;
        inet_ntop(AF_INET, &four->sin_addr, c->address, sizeof c->address);
        c->port = ntohs(four->sin_port);
    }
}

static bool is_too_many(const struct server *s, const char *address) {
    int32_t most = s->settings.connections_per_address_max, same = 0;
    if (s->settings.connections_max && s->connections >= (uint32_t)s->settings.connections_max)
        return true;
    for (uint32_t i = 1; most && i <= s->connection_places; i++)
        if (s->connection[i] && strcmp(s->connection[i]->address, address) == 0) same++;
    return most && same >= most;
}

/* The lowest number that is free is taken, so one above these says that all of them are used.  The
 * rest is for files, other servers and HTTP, without which nobody would be served. */
static bool is_beyond_descriptors(struct server *s, const struct connection *c) {
    enum { SAY_MS = 60000 };
    uv_os_fd_t own;
    if (uv_fileno((const uv_handle_t *)&c->stream.tcp, &own) != 0 || own < s->client_descriptors)
        return false;
    if (!s->descriptors_said_ms || s->now_ms - s->descriptors_said_ms >= SAY_MS) {
        s->descriptors_said_ms = s->now_ms;
        server_say("warning", "connections are refused: only %d open files are for them",
                   s->client_descriptors);
    }
    return true;
}

static uint32_t take_number(struct server *s) {
    if (s->free_numbers) return s->free_number[--s->free_numbers];
    s->connection =
        grown(s->connection, &s->connection_room, s->connection_places + 2, sizeof *s->connection);
    s->connection[s->connection_places + 1] = NULL;
    return ++s->connection_places;
}

static void accept_one(struct net_listener *listener, bool with_tls) {
    struct server *s = listener->owner;
    struct connection *c = calloc(1, sizeof *c);
    cv_assert(c);
    c->server = s;
    c->stream.on_bytes = s->settings.same_port && !with_tls ? first_bytes_came : bytes_came;
    c->stream.on_secured = secured;
    c->stream.on_drained = drained;
    c->stream.on_end = other_end_gone;
    c->stream.on_closed = stream_closed;
    server_read_clock(s);
    int error = net_accept(listener, &c->stream);
    read_address(c);
    bool refused = error || s->leaving_us || is_beyond_descriptors(s, c) ||
                   is_too_many(s, c->address) || (with_tls && !tls_begin(s->tls, &c->stream));
    if (refused) {
        s->statistics.refused++;
        c->state = CONNECTION_ENDING;
        net_close(&c->stream);
        return;
    }
    c->number = take_number(s);
    c->serial = ++s->serial;
    c->established_ms = s->now_ms;
    connection_count_anew(c);
    s->connection[c->number] = c;
    s->connections++;
    connection_add_identity(c, "ip", zk_text_of(c->address));
    net_read(&c->stream, true);
}

void connection_accept(struct net_listener *listener) { accept_one(listener, false); }
void connection_accept_tls(struct net_listener *listener) { accept_one(listener, true); }
