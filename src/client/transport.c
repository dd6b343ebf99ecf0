/* A socket that does not block, and bytes through it. */
#include "client/transport.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <unistd.h>

static int fail(struct transport *transport, int error) {
    snprintf(transport->reason, sizeof transport->reason, "%s",
             error == ECONNREFUSED   ? "connection refused"
             : error == ETIMEDOUT    ? "timed out"
             : error == ECONNRESET   ? "connection reset"
             : error == EPIPE        ? "the server has closed the connection"
             : error == ENETUNREACH  ? "network unreachable"
             : error == EHOSTUNREACH ? "host unreachable"
                                     : strerror(error));
    return -1;
}

/* Waits for room, too, or no longer. */
static void await_room(struct transport *transport, bool blocked) {
    if (transport->blocked == blocked) return;
    struct epoll_event event = {.events = EPOLLIN | (blocked ? EPOLLOUT : 0u),
                                .data.u32 = SOURCE_SOCKET};
    transport->blocked = blocked;
    epoll_ctl(transport->epoll, EPOLL_CTL_MOD, transport->fd, &event);
}

int transport_dial(struct transport *transport, const struct address *address) {
    int on = 1;
    transport->reason[0] = 0;
    transport->blocked = true;
    transport->fd = socket(address->at.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (transport->fd < 0) return fail(transport, errno);
    setsockopt(transport->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    int status = connect(transport->fd, (const struct sockaddr *)&address->at, address->size);
    struct epoll_event event = {.events = EPOLLIN | EPOLLOUT, .data.u32 = SOURCE_SOCKET};
    if ((status == 0 || errno == EINPROGRESS) &&
        epoll_ctl(transport->epoll, EPOLL_CTL_ADD, transport->fd, &event) == 0)
        return 0;
    fail(transport, errno);
    transport_close(transport);
    return -1;
}

/* ---- Plain bytes ---- */

ssize_t transport_send(struct transport *transport, const void *bytes, size_t size) {
    for (;;) {
        ssize_t part = send(transport->fd, bytes, size, MSG_NOSIGNAL);
        if (part < 0 && errno == EINTR) continue;
        bool full = part < 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
        if (part < 0 && !full) return fail(transport, errno);
        await_room(transport, full || (size_t)part < size);
        return full ? 0 : part;
    }
}

ssize_t transport_receive(struct transport *transport, void *bytes, size_t size) {
    for (;;) {
        ssize_t part = recv(transport->fd, bytes, size, 0);
        if (part < 0 && errno == EINTR) continue;
        if (part < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return 0;
        if (part == 0) return fail(transport, EPIPE);
        return part > 0 ? part : fail(transport, errno);
    }
}

/* ---- Plain or not ---- */

int transport_connected(struct transport *transport) {
    struct sockaddr_storage peer;
    socklen_t size = sizeof peer, error_size = sizeof(int);
    int error = 0;
    if (transport->tls && tls_client_is_begun(transport->tls))
        return tls_client_shake_hands(transport);
    if (getsockopt(transport->fd, SOL_SOCKET, SO_ERROR, &error, &error_size) != 0) error = errno;
    if (error) return fail(transport, error);
    if (getpeername(transport->fd, (struct sockaddr *)&peer, &size) != 0)
        return errno == ENOTCONN ? 0 : fail(transport, errno);
    await_room(transport, false);
    return transport->tls ? tls_client_shake_hands(transport) : 1;
}

ssize_t transport_write(struct transport *transport, const void *bytes, size_t size) {
    return transport->tls ? tls_client_write(transport, bytes, size)
                          : transport_send(transport, bytes, size);
}

ssize_t transport_read(struct transport *transport, void *bytes, size_t size) {
    return transport->tls ? tls_client_read(transport, bytes, size)
                          : transport_receive(transport, bytes, size);
}

void transport_abandon(struct transport *transport) {
    struct linger at_once = {.l_onoff = 1};
    if (transport->fd >= 0)
        setsockopt(transport->fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
}

void transport_close(struct transport *transport) {
    if (transport->tls) tls_client_end(transport->tls);
    transport->tls = NULL;
    if (transport->fd >= 0) close(transport->fd);
    transport->fd = -1;
}
