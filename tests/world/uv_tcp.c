/* libuv's streams, on wires. */
#include <arpa/inet.h>

#include "uv_parts.h"
#include "wire/net/stream.h"

/* The socket of a stream, and the write that is under way. */
static struct socket *socket_of(const uv_tcp_t *tcp) { return tcp->u.reserved[0]; }
static uv_write_t *write_of(const uv_tcp_t *tcp) { return tcp->u.reserved[1]; }

static void changed(void *owner) { task_wake(owner); }

static void adopt(uv_tcp_t *tcp, struct socket *socket) {
    tcp->u.reserved[0] = socket;
    socket->owner = uv_machine(tcp->loop)->task;
    socket->changed = changed;
}

static int host_of(const struct sockaddr *address, int *port) {
    const struct sockaddr_in *four = (const struct sockaddr_in *)address;
    cv_assert(address->sa_family == AF_INET);
    *port = ntohs(four->sin_port);
    return (int)(ntohl(four->sin_addr.s_addr) & 0xff) - 1;
}

static void address_of(int host, int port, struct sockaddr *to, int *size) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    address.sin_addr.s_addr = htonl(0x7f000001u + (uint32_t)host);
    memcpy(to, &address, sizeof address);
    *size = sizeof address;
}

int uv_tcp_init(uv_loop_t *loop, uv_tcp_t *tcp) {
    uv_begin_handle(loop, (uv_handle_t *)tcp, UV_TCP);
    tcp->u.reserved[0] = tcp->u.reserved[1] = NULL;
    tcp->write_queue_size = 0;
    tcp->connect_req = NULL;
    tcp->connection_cb = NULL;
    tcp->read_cb = NULL;
    return 0;
}

int uv_tcp_nodelay(uv_tcp_t *tcp, int on) { return (void)tcp, (void)on, 0; }
size_t uv_stream_get_write_queue_size(const uv_stream_t *stream) {
    return stream->write_queue_size;
}

/* ---- Listening ---- */

int uv_tcp_bind(uv_tcp_t *tcp, const struct sockaddr *address, unsigned flags) {
    int port, host = host_of(address, &port);
    (void)flags;
    cv_assert(host == (int)uv_machine(tcp->loop)->number - 1 && port);
    struct socket *socket = wire_listen(host, port);
    if (!socket) return UV_EADDRINUSE;
    adopt(tcp, socket);
    return 0;
}

int uv_listen(uv_stream_t *stream, int backlog, uv_connection_cb call) {
    (void)backlog;
    stream->connection_cb = call;
    stream->flags |= UV_ACTIVE;
    return 0;
}

int uv_accept(uv_stream_t *server, uv_stream_t *client) {
    struct socket *socket = wire_accept(socket_of((uv_tcp_t *)server));
    if (!socket) return UV_EAGAIN;
    adopt((uv_tcp_t *)client, socket);
    return 0;
}

int uv_tcp_getsockname(const uv_tcp_t *tcp, struct sockaddr *name, int *size) {
    address_of(socket_of(tcp)->host, socket_of(tcp)->port, name, size);
    return 0;
}

int uv_tcp_getpeername(const uv_tcp_t *tcp, struct sockaddr *name, int *size) {
    if (!socket_of(tcp)) return UV_ENOTCONN;
    address_of(socket_of(tcp)->to_host, socket_of(tcp)->to_port, name, size);
    return 0;
}

/* ---- Connecting ---- */

int uv_tcp_connect(uv_connect_t *request, uv_tcp_t *tcp, const struct sockaddr *address,
                   uv_connect_cb call) {
    enum { USER_TIMEOUT_S = 5 }; /* as wire/net/stream.c sets it for what it dials */
    int port, host = host_of(address, &port);
    struct socket *socket = wire_connect((int)uv_machine(tcp->loop)->number - 1, host, port);
    socket->user_timeout = USER_TIMEOUT_S * SECOND;
    adopt(tcp, socket);
    request->cb = call;
    request->handle = (uv_stream_t *)tcp;
    tcp->connect_req = request;
    tcp->flags |= UV_ACTIVE;
    return 0;
}

static void finish_connect(uv_tcp_t *tcp, int error) {
    uv_connect_t *request = tcp->connect_req;
    tcp->connect_req = NULL;
    request->cb(request, error);
}

/* ---- Reading ---- */

int uv_read_start(uv_stream_t *stream, uv_alloc_cb alloc, uv_read_cb read) {
    stream->alloc_cb = alloc;
    stream->read_cb = read;
    stream->flags |= UV_ACTIVE | UV_READING;
    return 0;
}

int uv_read_stop(uv_stream_t *stream) {
    stream->flags &= ~(unsigned)UV_READING;
    return 0;
}

/* For the judges: notes that a server has heard from a user. */
static void note_heard(const uv_tcp_t *tcp) {
    const struct socket *socket = socket_of(tcp);
    int user = socket->to_host - (int)world->servers;
    if (user < 0 || socket->port != CLIENT_PORT) return;
    if (world->user[user].socket != socket->other || !world->user[user].attached) return;
    world->user[user].heard_by[uv_machine(tcp->loop)->number] = world->now;
}

static void read_some(uv_tcp_t *tcp) {
    struct socket *socket = socket_of(tcp);
    uv_stream_t *stream = (uv_stream_t *)tcp;
    uv_buf_t buffer;
    size_t unread = wire_unread(socket);
    if (unread) {
        size_t max = rng_chance(&world->net, 0.1) ? 1 + rng_below(&world->net, unread) : unread;
        tcp->alloc_cb((uv_handle_t *)tcp, 65536, &buffer);
        if (max > buffer.len) max = buffer.len;
        size_t size = wire_read(socket, buffer.base, max);
        note_heard(tcp);
        stream->read_cb(stream, (ssize_t)size, &buffer);
        return;
    }
    uv_read_stop(stream);
    buffer = uv_buf_init(NULL, 0);
    stream->read_cb(stream, socket->error ? socket->error : UV_EOF, &buffer);
}

/* ---- Writing ---- */

bool __wrap_net_flow(const struct net_stream *stream, struct net_flow *flow);

/* What a closed window holds back waits here in libuv, and elsewhere in the system's own buffer. */
bool __wrap_net_flow(const struct net_stream *stream, struct net_flow *flow) {
    const struct socket *s = socket_of(&stream->tcp);
    *flow = (struct net_flow){.acknowledged = s->acknowledged,
                              .queued = s->out.used + s->delivered - s->acknowledged +
                                        stream->tcp.write_queue_size,
                              .bytes_per_s = wire_bytes_per_s(s)};
    return true;
}

int uv_try_write(uv_stream_t *stream, const uv_buf_t buffers[], unsigned count) {
    uv_tcp_t *tcp = (uv_tcp_t *)stream;
    struct socket *socket = socket_of(tcp);
    cv_assert(count == 1);
    if (tcp->connect_req || write_of(tcp)) return UV_EAGAIN;
    if (socket->error) return socket->error == UV_ECONNRESET ? UV_EPIPE : socket->error;
    size_t size = buffers[0].len;
    if (size > 1 && rng_chance(&world->net, 0.02)) size = 1 + rng_below(&world->net, size);
    size = wire_send(socket, buffers[0].base, size);
    return size ? (int)size : UV_EAGAIN;
}

int uv_write(uv_write_t *request, uv_stream_t *stream, const uv_buf_t buffers[], unsigned count,
             uv_write_cb call) {
    uv_tcp_t *tcp = (uv_tcp_t *)stream;
    cv_assert(count == 1 && !write_of(tcp));
    request->cb = call;
    request->handle = stream;
    request->bufsml[0] = buffers[0];
    tcp->u.reserved[1] = request;
    tcp->write_queue_size = buffers[0].len;
    tcp->flags |= UV_ACTIVE;
    return 0;
}

static void finish_write(uv_tcp_t *tcp, int error) {
    uv_write_t *request = write_of(tcp);
    tcp->u.reserved[1] = NULL;
    tcp->write_queue_size = 0;
    request->cb(request, error);
}

static void write_more(uv_tcp_t *tcp) {
    struct socket *socket = socket_of(tcp);
    uv_buf_t *left = &write_of(tcp)->bufsml[0];
    if (socket->error) {
        finish_write(tcp, socket->error);
        return;
    }
    size_t size = wire_send(socket, left->base, left->len);
    left->base += size;
    left->len -= size;
    tcp->write_queue_size = left->len;
    if (!left->len) finish_write(tcp, 0);
}

/* ---- What the loop asks ---- */

bool uv_tcp_is_ready(const uv_tcp_t *tcp) {
    const struct socket *socket = socket_of(tcp);
    if (!socket) return false;
    if (tcp->connection_cb) return socket->queue != NULL;
    if (tcp->connect_req) return socket->error || socket->state == SOCKET_OPEN;
    if (write_of(tcp) && (socket->error || wire_room(socket))) return true;
    return tcp->flags & UV_READING && (wire_unread(socket) || socket->ended || socket->error);
}

void uv_tcp_dispatch(uv_tcp_t *tcp) {
    struct socket *socket = socket_of(tcp);
    if (tcp->connection_cb) {
        tcp->connection_cb((uv_stream_t *)tcp, 0);
    } else if (tcp->connect_req) {
        finish_connect(tcp, socket->error);
    } else if (tcp->flags & UV_READING && (wire_unread(socket) || socket->ended || socket->error)) {
        read_some(tcp);
    }
    if (!uv_is_closing((uv_handle_t *)tcp) && write_of(tcp) && (socket->error || wire_room(socket)))
        write_more(tcp);
}

void uv_tcp_shut(uv_tcp_t *tcp) {
    tcp->flags &= ~(unsigned)UV_READING;
    if (socket_of(tcp)) wire_close(socket_of(tcp));
}

void uv_tcp_cancel(uv_tcp_t *tcp) {
    if (tcp->connect_req) finish_connect(tcp, UV_ECANCELED);
    if (write_of(tcp)) finish_write(tcp, UV_ECANCELED);
}
