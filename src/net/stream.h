/* Streams: bytes to and from the other end of a TCP connection, on the event loop.
 *
 * What is to be sent is put into `out` and leaves with net_flush, at best in one system call for a
 * whole turn of the loop.  What the other end does not take is kept and sent when it does. */
#ifndef CV_NET_STREAM_H
#define CV_NET_STREAM_H

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "base/bytes.h"

struct net_stream {
    uv_tcp_t tcp;
    union { /* what is dialed is not written to yet */
        uv_connect_t connect;
        uv_write_t write;
    };
    struct bytes out;            /* to be sent */
    struct bytes sending;        /* handed to the system, which has not taken it all */
    bool reading, closing, over; /* over: close when all is sent */
    struct tls_session *tls;     /* NULL: bytes go as they are; see net/tls.h */
    /* Of one that was dialed, first of all: 0, or a libuv error; then it is to be closed. */
    void (*on_connected)(struct net_stream *stream, int error);
    void (*on_bytes)(struct net_stream *stream, const unsigned char *bytes, size_t size);
    /* With TLS, before the first byte: all is well, or on_end is next, and why */
    void (*on_secured)(struct net_stream *stream, const char *failure);
    void (*on_drained)(struct net_stream *stream); /* what could not be sent at once has been */
    void (*on_end)(struct net_stream *stream); /* the other end has gone, or all is sent: close */
    void (*on_closed)(struct net_stream *stream); /* last of all: its memory may go */
};

struct net_listener {
    uv_tcp_t tcp;
    uv_loop_t *loop;
    void *owner;
    void (*on_connection)(struct net_listener *listener);
};

/* A loop with what its streams share. */
int net_open(uv_loop_t *loop);
void net_shut(uv_loop_t *loop);

/* Listens; `port` 0 takes a free one, *port says which.  Returns 0 or a libuv error. */
int net_listen(uv_loop_t *loop, struct net_listener *listener, const char *host, int32_t *port,
               int backlog);
/* The same in two steps, for who has a look at the address in between.  The first one waits. */
int net_resolve(const char *host, int32_t port, struct sockaddr_storage *address);
int net_listen_at(uv_loop_t *loop, struct net_listener *listener, const struct sockaddr *address,
                  int32_t *port, int backlog);
/* Takes the connection that a listener was told of. */
int net_accept(struct net_listener *listener, struct net_stream *stream);
/* Connects, and calls on_connected when that is done.  An error is one that came before that; the
 * stream is to be closed then as well. */
int net_dial(uv_loop_t *loop, struct net_stream *stream, const struct sockaddr *address);
/* Only this machine can be there. */
bool net_is_loopback(const struct sockaddr *address);

void net_read(struct net_stream *stream, bool wanted);
void net_flush(struct net_stream *stream);
static inline size_t net_unsent(const struct net_stream *stream) {
    return stream->out.used + stream->sending.used;
}
/* Empties what has been sent: a connection that is idle keeps little. */
void net_shrink(struct bytes *bytes);
void net_close(struct net_stream *stream);
/* Reads no more, and calls on_end once what is to be sent has been. */
void net_close_after(struct net_stream *stream);

#endif
