/* Connections that come and go. */
#include <arpa/inet.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "base/logger.h"
#include "service/server/internal.h"

/* ---- Streams ---- */

static void bytes_received(struct net_stream *stream, const unsigned char *bytes, size_t size) {
    connection_receive((struct connection *)stream, bytes, size);
}

static bool begin_tls(struct connection *c) {
    c->secure = tls_begin(c->server->tls, &c->stream);
    c->server->connections.secure += c->secure;
    return c->secure;
}

/* A part of a handshake may take longer than most requests, so it waits for its turn. */
static void handshake_received(struct net_stream *stream, const unsigned char *bytes, size_t size) {
    struct connection *c = (struct connection *)stream;
    clock_read(&c->server->clock);
    if (!c->in.used) c->met_us = c->server->clock.monotonic_us;
    bytes_add(&c->in, bytes, size);
    c->shakes_hands = true;
    net_read(stream, false);
    connection_process(c);
}

/* Whoever is new has its turn after those that wait; who has given up meanwhile needs no signature.
 */
void connection_shake_hands(struct connection *c) {
    size_t *steps = &c->server->steps.handshakes;
    struct bytes received = c->in;
    if (!c->server->connections.resuming || !*steps) {
        connection_wait(c);
        return;
    }
    --*steps;
    c->in = (struct bytes){0};
    c->shakes_hands = false;
    net_read(&c->stream, true);
    if (!net_has_ended(&c->stream) && (c->stream.tls || begin_tls(c)))
        tls_receive(&c->stream, received.at, received.used);
    else
        connection_end(c);
    bytes_close(&received);
}

/* The first bytes at a port for both plain connections and TLS. */
static void first_bytes_received(struct net_stream *stream, const unsigned char *bytes,
                                 size_t size) {
    stream->on_bytes = bytes_received;
    if (bytes[0] == TLS_FIRST_BYTE) stream->on_handshake = handshake_received;
    (stream->on_handshake ? handshake_received : bytes_received)(stream, bytes, size);
}

/* Failures are logged once in a second, however many there are. */
static void tls_failed(struct connection *c, const char *why) {
    struct server *s = c->server;
    clock_read(&s->clock);
    s->statistics.refused[REFUSED_tls]++;
    if (s->tls_logged_us && s->clock.monotonic_us - s->tls_logged_us < 1000000) return;
    s->tls_logged_us = s->clock.monotonic_us;
    logger_warning("TLS refused a client", LOGGER_STRING("address", c->address),
                   LOGGER_UINT("handshakes_failed", s->statistics.refused[REFUSED_tls]),
                   LOGGER_STRING("reason", why));
}

static void secured(struct net_stream *stream, const char *failure) {
    struct connection *c = (struct connection *)stream;
    struct bytes subject = {0};
    stream->on_handshake = NULL;
    if (failure)
        tls_failed(c, failure);
    else if (tls_subject(stream, &subject))
        connection_add_identity(c, "x509",
                                (struct zk_text){(const char *)subject.at, (int32_t)subject.used});
    bytes_close(&subject);
}

static void drained(struct net_stream *stream) {
    struct connection *c = (struct connection *)stream;
    connection_count_unsent(c, net_kept(stream));
    if (c->state != CONNECTION_ENDING) connection_process(c);
}

static void stream_ended(struct net_stream *stream) {
    struct connection *c = (struct connection *)stream;
    if (c->state == CONNECTION_OPEN) c->server->statistics.dropped++;
    connection_end(c);
}

static void stream_closed(struct net_stream *stream) {
    struct connection *c = (struct connection *)stream;
    c->server->connections.discarded -= c->discarded;
    c->server->connections.secure -= c->secure;
    bytes_close(&c->in);
    bytes_close(&c->identities);
    free(c);
}

/* ---- The end ---- */

static void release_number(struct connections *all, uint32_t number) {
    all->free_number =
        grown(all->free_number, &all->free_room, all->free_count + 1, sizeof *all->free_number);
    all->free_number[all->free_count++] = number;
}

/* Its number is used again when no watch has it any more. */
static void forget(struct server *s, uint32_t number) {
    struct connections *all = &s->connections;
    if (watches_forget(&s->watches, number, &s->steps.forget)) {
        release_number(all, number);
        return;
    }
    all->ended = grown(all->ended, &all->ended_room, all->ended_count + 1, sizeof *all->ended);
    all->ended[all->ended_count++] = number;
}

void connection_end(struct connection *c) {
    struct server *s = c->server;
    if (c->stream.closing) return;
    c->state = CONNECTION_ENDING;
    c->discarded = net_kept(&c->stream);
    s->connections.discarded += c->discarded;
    connection_count_unsent(c, 0);
    connection_count_received(c, 0);
    connection_count_delay(c, false);
    if (c->session && session_tracked(s, c->session)->connection == c->number)
        session_tracked(s, c->session)->connection = 0;
    if (s->connections.at[c->number] == c) {
        if (s->reading.connection == c->number) reading_drop(s);
        s->connections.at[c->number] = NULL;
        s->connections.count--;
        crowd_leave(&s->connections.crowds, c->network);
        forget(s, c->number);
    }
    net_close(&c->stream);
}

void connections_forget(struct server *s) {
    struct connections *all = &s->connections;
    while (all->ended_count &&
           watches_forget(&s->watches, all->ended[all->ended_count - 1], &s->steps.forget))
        release_number(all, all->ended[--all->ended_count]);
}

void connection_end_after(struct connection *c) {
    if (c->stream.closing) return;
    if (c->state != CONNECTION_ENDING) c->ending_us = c->server->clock.monotonic_us;
    c->state = CONNECTION_ENDING;
    net_close_after(&c->stream);
}

void connection_reset_statistics(struct connection *c) {
    c->received = c->sent = c->last_answer_us = 0;
    c->last_op = ZK_OP_ERROR;
    c->last_xid = -1;
    c->last_zxid = -1;
    c->latency = (struct tally){0};
}

/* ---- Admission ---- */

static void read_address(struct connection *c) {
    struct sockaddr_storage peer;
    int size = sizeof peer;
    if (uv_tcp_getpeername(&c->stream.tcp, (struct sockaddr *)&peer, &size) != 0) return;
    c->network = crowd_network((struct sockaddr *)&peer);
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

/* The system gives the lowest free descriptor, so one above the limit says that all below are used.
 * The rest is for files, other servers and HTTP, without which nobody would be served. */
static bool is_beyond_descriptors(struct server *s, const struct connection *c) {
    enum { LOG_US = 60000000 };
    uv_os_fd_t own;
    if (uv_fileno((const uv_handle_t *)&c->stream.tcp, &own) != 0 ||
        own < s->connections.descriptors_max)
        return false;
    if (!s->connections.descriptors_logged_us ||
        s->clock.monotonic_us - s->connections.descriptors_logged_us >= LOG_US) {
        s->connections.descriptors_logged_us = s->clock.monotonic_us;
        logger_warning("connections are refused, because all file descriptors for clients are in "
                       "use; raise the limit (ulimit -n, LimitNOFILE=)",
                       LOGGER_INT("descriptors", s->connections.descriptors_max));
    }
    return true;
}

/* REFUSAL_KINDS: it may stay. */
static enum refusal judge(struct server *s, const struct connection *c) {
    uint32_t all_max = (uint32_t)s->settings.connections_max;
    uint32_t same_max = (uint32_t)s->settings.connections_per_address_max;
    if (s->leaving_us) return REFUSED_stopping;
    if (is_beyond_descriptors(s, c)) return REFUSED_descriptors;
    if (all_max && s->connections.count >= all_max) return REFUSED_connections;
    if (same_max && crowd_count(&s->connections.crowds, c->network) >= same_max)
        return REFUSED_address;
    if (memory_allows_connection(s)) return REFUSAL_KINDS;
    memory_measure(s); /* much may have been freed */
    return memory_allows_connection(s) ? REFUSAL_KINDS : REFUSED_memory;
}

static uint32_t take_number(struct connections *all) {
    if (all->free_count) return all->free_number[--all->free_count];
    all->at = grown(all->at, &all->room, all->slots + 2, sizeof *all->at);
    all->at[all->slots + 1] = NULL;
    return ++all->slots;
}

static void accept_one(struct net_listener *listener, bool with_tls) {
    struct server *s = listener->owner;
    struct connection *c = calloc(1, sizeof *c);
    cv_assert(c);
    c->server = s;
    c->stream.on_bytes = s->settings.same_port && !with_tls ? first_bytes_received : bytes_received;
    c->stream.on_handshake = with_tls ? handshake_received : NULL;
    c->stream.on_secured = secured;
    c->stream.on_room = connection_room;
    c->stream.on_drained = drained;
    c->stream.on_end = stream_ended;
    c->stream.on_closed = stream_closed;
    clock_read(&s->clock);
    int error = net_accept(listener, &c->stream);
    read_address(c);
    enum refusal refusal = error ? REFUSED_descriptors : judge(s, c);
    if (refusal < REFUSAL_KINDS) {
        s->statistics.refused[refusal]++;
        logger_debug("a connection was refused", LOGGER_STRING("address", c->address),
                     LOGGER_UINT("connections", s->connections.count));
        c->state = CONNECTION_ENDING;
        net_close(&c->stream);
        return;
    }
    c->number = take_number(&s->connections);
    c->serial = ++s->connections.serial;
    c->established_ms = s->clock.now_ms;
    c->established_us = s->clock.monotonic_us;
    connection_reset_statistics(c);
    s->connections.at[c->number] = c;
    s->connections.count++;
    crowd_join(&s->connections.crowds, c->network);
    connection_add_identity(c, "ip", zk_text_of(c->address));
    net_read(&c->stream, true);
}

void connection_accept(struct net_listener *listener) { accept_one(listener, false); }
void connection_accept_tls(struct net_listener *listener) { accept_one(listener, true); }

/* As many descriptors as the system allows, of which clients' sockets leave some to the server. */
void connections_claim_descriptors(struct server *s) {
    enum { OWN_MAX = 256 };
    struct rlimit limit = {INT32_MAX, INT32_MAX};
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
        struct rlimit max = {limit.rlim_max, limit.rlim_max};
        if (setrlimit(RLIMIT_NOFILE, &max) == 0) limit = max;
    }
    int all = limit.rlim_cur < INT32_MAX ? (int)limit.rlim_cur : INT32_MAX;
    s->connections.descriptors_max = all - (all / 4 < OWN_MAX ? all / 4 : OWN_MAX);
}

/* ---- Now and then ---- */

/* An idle connection keeps no buffers. */
static void release_buffers(struct connection *c) {
    bool idle = c->received == c->received_before;
    c->received_before = c->received;
    if (!idle) return;
    if (!c->in.used) bytes_close(&c->in);
    connection_count_received(c, c->in.room);
    if (!c->stream.out.used) bytes_close(&c->stream.out);
}

/* Connections that never ask for a session, or never take their last answer, are ended. */
void connections_check(struct server *s) {
    for (uint32_t i = 1; i <= s->connections.slots; i++) {
        struct connection *c = s->connections.at[i];
        if (!c) continue;
        release_buffers(c);
        if (connection_is_deaf(c)) {
            s->statistics.refused[REFUSED_deafness]++;
            connection_end(c);
            continue;
        }
        if (c->state != CONNECTION_NEW && c->state != CONNECTION_ENDING) continue;
        uint64_t since_us = c->state == CONNECTION_NEW ? c->established_us : c->ending_us;
        if (c->unsent && c->taken_us > since_us) since_us = c->taken_us;
        if (s->clock.monotonic_us - since_us <= CONNECTION_HANDSHAKE_MS * 1000) continue;
        s->statistics.refused[REFUSED_silence]++;
        connection_end(c);
    }
    connections_bound_unsent(s);
}

void connections_end(struct server *s) {
    for (uint32_t i = 1; i <= s->connections.slots; i++)
        if (s->connections.at[i]) connection_end(s->connections.at[i]);
}

void connections_close(struct connections *all) {
    crowds_close(&all->crowds);
    free(all->at);
    free(all->dirty);
    free(all->free_number);
    free(all->ended);
}
