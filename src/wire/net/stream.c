#include "wire/net/stream.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include "wire/net/tls.h"

enum { ROOM = 1 << 16 };

int net_open(uv_loop_t *loop) {
    int error = uv_loop_init(loop);
    if (!error)
        loop->data = malloc(ROOM); /* shared by all: what is read is handled before the next read */
    return error ? error : loop->data ? 0 : UV_ENOMEM;
}

void net_shut(uv_loop_t *loop) {
    free(loop->data);
    uv_loop_close(loop);
}

/* ---- Listening ---- */

static void iteration_ended(uv_check_t *check);

static void accept_now(struct net_listener *listener) {
    if (listener->at_once && !listener->accepted++)
        uv_check_start(&listener->iteration, iteration_ended);
    listener->on_connection(listener);
}

static void iteration_ended(uv_check_t *check) {
    struct net_listener *listener = check->data;
    bool waits = listener->waits;
    uv_check_stop(check);
    listener->accepted = 0;
    listener->waits = false;
    if (waits) accept_now(listener);
}

/* One that is not accepted stops libuv from looking for others until it is. */
static void connection_received(uv_stream_t *tcp, int status) {
    struct net_listener *listener = (struct net_listener *)tcp;
    if (status != 0) return;
    listener->waits = listener->at_once && listener->accepted == listener->at_once;
    if (!listener->waits) accept_now(listener);
}

void net_accept_at_once(struct net_listener *listener, unsigned at_once) {
    listener->at_once = at_once;
    uv_check_init(listener->loop, &listener->iteration);
    listener->iteration.data = listener;
}

int net_resolve(const char *host, int32_t port, struct sockaddr_storage *address) {
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE}, *found;
    char service[16];
    snprintf(service, sizeof service, "%d", (int)port);
    bool all = strcmp(host, "*") == 0;
    if (getaddrinfo(all ? NULL : host, service, &hints, &found) != 0) return UV_EAI_NONAME;
    memcpy(address, found->ai_addr, found->ai_addrlen);
    freeaddrinfo(found);
    return 0;
}

int net_listen_at(uv_loop_t *loop, struct net_listener *listener, const struct sockaddr *address,
                  int32_t *port, int backlog) {
    struct sockaddr_storage bound = {0};
    int size = sizeof bound;
    listener->loop = loop;
    uv_tcp_init(loop, &listener->tcp);
    int error = uv_tcp_bind(&listener->tcp, address, 0);
    if (!error)
        error = uv_listen((uv_stream_t *)&listener->tcp, backlog > 0 ? backlog : 1024,
                          connection_received);
    if (!error) error = uv_tcp_getsockname(&listener->tcp, (struct sockaddr *)&bound, &size);
    if (!error)
        *port = ntohs(bound.ss_family == AF_INET6 ? ((struct sockaddr_in6 *)&bound)->sin6_port
                                                  : ((struct sockaddr_in *)&bound)->sin_port);
    return error;
}

/* Connections by IPv4 come with addresses that IPv6 has for them.  False: this machine has no
 * IPv6. */
static bool every_address(int32_t port, struct sockaddr_storage *address) {
    struct sockaddr_in6 all = {
        .sin6_family = AF_INET6, .sin6_port = htons((uint16_t)port), .sin6_addr = IN6ADDR_ANY_INIT};
    struct sockaddr_in6 free_port = all;
    free_port.sin6_port = 0;
    int probe = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool possible =
        probe >= 0 && bind(probe, (const struct sockaddr *)&free_port, sizeof free_port) == 0;
    if (probe >= 0) close(probe);
    if (possible) memcpy(address, &all, sizeof all);
    return possible;
}

int net_listen(uv_loop_t *loop, struct net_listener *listener, const char *host, int32_t *port,
               int backlog) {
    struct sockaddr_storage address = {0};
    bool all = strcmp(host, "*") == 0 && every_address(*port, &address);
    int error = all ? 0 : net_resolve(host, *port, &address);
    if (error) return error;
    return net_listen_at(loop, listener, (struct sockaddr *)&address, port, backlog);
}

int net_accept(struct net_listener *listener, struct net_stream *stream) {
    uv_tcp_init(listener->loop, &stream->tcp);
    int error = uv_accept((uv_stream_t *)&listener->tcp, (uv_stream_t *)&stream->tcp);
    if (!error) uv_tcp_nodelay(&stream->tcp, 1);
    return error;
}

/* ---- Dialing ---- */

/* Data that is not acknowledged within that time ends the connection: the system would retransmit
 * for a quarter of an hour, ever more rarely, and miss the moment when the network is back. */
enum { UNACKNOWLEDGED_MS = 5000 };

/* Bytes that the system takes before it can send them.  What is urgent waits for those. */
enum { NOT_SENT_MAX = 128 << 10 };

static void connected(uv_connect_t *connect, int error) {
    struct net_stream *stream = (struct net_stream *)connect->handle;
    unsigned timeout_ms = UNACKNOWLEDGED_MS, not_sent = NOT_SENT_MAX;
    int socket;
    if (stream->closing) return;
    if (!error) error = uv_tcp_nodelay(&stream->tcp, 1);
    if (!error) error = uv_fileno((uv_handle_t *)&stream->tcp, &socket);
    if (!error) setsockopt(socket, IPPROTO_TCP, TCP_USER_TIMEOUT, &timeout_ms, sizeof timeout_ms);
    if (!error) setsockopt(socket, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &not_sent, sizeof not_sent);
    stream->on_connected(stream, error);
}

int net_dial(uv_loop_t *loop, struct net_stream *stream, const struct sockaddr *address) {
    uv_tcp_init(loop, &stream->tcp);
    return uv_tcp_connect(&stream->connect, &stream->tcp, address, connected);
}

bool net_is_loopback(const struct sockaddr *address) {
    static const unsigned char mapped[12] = {[10] = 0xff, [11] = 0xff};
    if (address->sa_family == AF_INET) {
        const struct sockaddr_in *four = (const struct sockaddr_in *)address;
        return ntohl(four->sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
    }
    if (address->sa_family != AF_INET6) return false;
    const struct in6_addr *six = &((const struct sockaddr_in6 *)address)->sin6_addr;
    bool four_in_six = memcmp(six->s6_addr, mapped, sizeof mapped) == 0;
    return IN6_IS_ADDR_LOOPBACK(six) || (four_in_six && six->s6_addr[12] == IN_LOOPBACKNET);
}

/* ---- Receiving ---- */

static void give_room(uv_handle_t *handle, size_t suggested, uv_buf_t *buffer) {
    struct net_stream *stream = (struct net_stream *)handle;
    size_t room = stream->on_room ? stream->on_room(stream) : ROOM;
    (void)suggested;
    *buffer = uv_buf_init(handle->loop->data, (unsigned)(room < ROOM ? room : ROOM));
}

static void bytes_received(uv_stream_t *tcp, ssize_t size, const uv_buf_t *buffer) {
    struct net_stream *stream = (struct net_stream *)tcp;
    if (size > 0 && stream->on_handshake)
        stream->on_handshake(stream, (const unsigned char *)buffer->base, (size_t)size);
    else if (size > 0 && stream->tls)
        tls_receive(stream, (const unsigned char *)buffer->base, (size_t)size);
    else if (size > 0)
        stream->on_bytes(stream, (const unsigned char *)buffer->base, (size_t)size);
    else if (size == UV_ENOBUFS)
        net_read(stream, false);
    else if (size < 0)
        stream->on_end(stream);
}

void net_read(struct net_stream *stream, bool wanted) {
    if (stream->reading == wanted || stream->closing) return;
    stream->reading = wanted;
    if (wanted)
        uv_read_start((uv_stream_t *)&stream->tcp, give_room, bytes_received);
    else
        uv_read_stop((uv_stream_t *)&stream->tcp);
}

/* ---- Sending ---- */

void net_shrink(struct bytes *bytes) {
    enum { KEPT = 1 << 14 }; /* for the next loop iteration */
    bytes->used = 0;
    if (bytes->room > KEPT) bytes_close(bytes);
}

static void write_done(uv_write_t *write, int status) {
    struct net_stream *stream = write->data;
    net_shrink(&stream->sending);
    if (stream->closing) return;
    if (status != 0) {
        stream->on_end(stream);
        return;
    }
    net_flush(stream);
    if (!stream->closing && !net_unsent(stream) && stream->on_drained) stream->on_drained(stream);
}

void net_flush(struct net_stream *stream) {
    struct bytes *out = &stream->out;
    if (stream->closing || stream->sending.used) return;
    if (stream->tls && !(out = tls_seal(stream))) {
        stream->on_end(stream);
        return;
    }
    if (out->used) {
        uv_buf_t buffer = uv_buf_init((char *)out->at, (unsigned)out->used);
        int sent = uv_try_write((uv_stream_t *)&stream->tcp, &buffer, 1);
        if (sent < 0 && sent != UV_EAGAIN) {
            stream->on_end(stream);
            return;
        }
        stream->handed += out->used;
        if (sent == (int)out->used) {
            net_shrink(out);
        } else {
            stream->sending = *out;
            *out = (struct bytes){0};
            size_t done = sent > 0 ? (size_t)sent : 0;
            buffer = uv_buf_init((char *)stream->sending.at + done,
                                 (unsigned)(stream->sending.used - done));
            stream->write.data = stream;
            uv_write(&stream->write, (uv_stream_t *)&stream->tcp, &buffer, 1, write_done);
        }
    }
    if (stream->over && !net_unsent(stream)) stream->on_end(stream);
}

bool net_flow(const struct net_stream *stream, struct net_flow *flow) {
    int socket;
    return uv_fileno((const uv_handle_t *)&stream->tcp, &socket) == 0 && flow_of(socket, flow);
}

bool net_has_ended(const struct net_stream *stream) {
    int socket;
    char next;
    if (uv_fileno((const uv_handle_t *)&stream->tcp, &socket) != 0) return true;
    ssize_t count = recv(socket, &next, 1, MSG_PEEK | MSG_DONTWAIT);
    return count == 0 || (count < 0 && errno != EAGAIN && errno != EINTR);
}

/* ---- Closing ---- */

static void closed(uv_handle_t *handle) {
    struct net_stream *stream = (struct net_stream *)handle;
    tls_end(stream);
    bytes_close(&stream->out);
    bytes_close(&stream->sending);
    stream->on_closed(stream);
}

void net_close(struct net_stream *stream) {
    if (stream->closing) return;
    stream->closing = true;
    uv_close((uv_handle_t *)&stream->tcp, closed);
}

void net_close_after(struct net_stream *stream) {
    net_read(stream, false);
    stream->over = true;
    net_flush(stream);
}
