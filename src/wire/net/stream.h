/* Streams: bytes to and from the other end of a TCP connection, on the event loop.
 *
 * What is to be sent is appended to `out` and sent by net_flush, at best in one system call for a
 * whole loop iteration.  What the system does not take at once is kept and sent when it does. */
#ifndef CV_WIRE_NET_STREAM_H
#define CV_WIRE_NET_STREAM_H

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "base/bytes.h"
#include "wire/net/flow.h"

struct net_stream {
    uv_tcp_t tcp;
    union { /* a stream is not written to before it is connected */
        uv_connect_t connect;
        uv_write_t write;
    };
    struct bytes out;            /* to be sent */
    struct bytes sending;        /* handed to the system, which has not taken it all */
    uint64_t handed;             /* bytes, ever */
    bool reading, closing, over; /* over: close when all is sent */
    struct tls_session *tls;     /* NULL: plain; see wire/net/tls.h */
    /* The first callback of a stream that was dialed.  After an error (libuv's) close it. */
    void (*on_connected)(struct net_stream *stream, int error);
    /* Unless NULL, how much is taken now; 0: reading stops, until it is wanted again. */
    size_t (*on_room)(struct net_stream *stream);
    void (*on_bytes)(struct net_stream *stream, const unsigned char *bytes, size_t size);
    /* With TLS, before the first byte.  NULL: secured; otherwise why not, and on_end is next. */
    void (*on_secured)(struct net_stream *stream, const char *failure);
    /* Unless NULL, it gets all that arrives, and passes it on to tls_receive when it likes. */
    void (*on_handshake)(struct net_stream *stream, const unsigned char *bytes, size_t size);
    void (*on_drained)(struct net_stream *stream); /* what could not be sent at once has been */
    void (*on_end)(struct net_stream *stream); /* the other end has closed, or all is sent: close */
    void (*on_closed)(struct net_stream *stream); /* the last callback: free its memory */
};

struct net_listener {
    uv_tcp_t tcp;
    uv_loop_t *loop;
    void *owner;
    void (*on_connection)(struct net_listener *listener);
    unsigned at_once; /* connections in an iteration of the loop; 0: all that come */
    unsigned accepted;
    bool waits; /* one has come, and is accepted in the next iteration */
    uv_check_t iteration;
};

/* Opens a loop with the receive buffer that its streams share. */
int net_open(uv_loop_t *loop);
void net_shut(uv_loop_t *loop);

/* Listens; port 0 takes a free one and stores it in *port.  The host * is every address, of IPv6
 * and of IPv4.  Returns 0 or a libuv error. */
int net_listen(uv_loop_t *loop, struct net_listener *listener, const char *host, int32_t *port,
               int backlog);
/* The same in two steps, so that the address can be checked in between.  net_resolve blocks. */
int net_resolve(const char *host, int32_t port, struct sockaddr_storage *address);
int net_listen_at(uv_loop_t *loop, struct net_listener *listener, const struct sockaddr *address,
                  int32_t *port, int backlog);
/* Accepts the connection that on_connection announced. */
int net_accept(struct net_listener *listener, struct net_stream *stream);
/* However many come, the loop goes on to other things after so many. */
void net_accept_at_once(struct net_listener *listener, unsigned at_once);
/* Connects, and calls on_connected when that is done.  Returns 0 or a libuv error; then there is no
 * such call, and the stream is to be closed. */
int net_dial(uv_loop_t *loop, struct net_stream *stream, const struct sockaddr *address);
bool net_is_loopback(const struct sockaddr *address);

void net_read(struct net_stream *stream, bool wanted);
void net_flush(struct net_stream *stream);
static inline size_t net_unsent(const struct net_stream *stream) {
    return stream->out.used + stream->sending.used;
}
/* The memory that takes: with TLS what is to be sent is there twice while it is encrypted. */
static inline size_t net_kept(const struct net_stream *stream) {
    return (stream->tls ? 2 : 1) * stream->out.used + stream->sending.used;
}
/* Bytes that the system has taken, ever: it takes more as the other end does. */
static inline uint64_t net_taken(const struct net_stream *stream) {
    return stream->handed - stream->tcp.write_queue_size;
}
/* Empties a buffer, and frees it if it is large: an idle connection keeps little memory. */
void net_shrink(struct bytes *bytes);

/* Of what is sent; false: the system does not tell. */
bool net_flow(const struct net_stream *stream, struct net_flow *flow);

/* Whether the other end has closed it, and has sent no more before that is not read. */
bool net_has_ended(const struct net_stream *stream);

void net_close(struct net_stream *stream);
/* Stops reading, and calls on_end once all is sent. */
void net_close_after(struct net_stream *stream);

#endif
