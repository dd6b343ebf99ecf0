/* A web server for the files of the laboratory's page, and nothing else: one request a connection,
 * few connections, and no names of files but those of a table. */
#include "cli/lab_server.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>

#include "cli/pages.h"
#include "fence/http.h"

enum { VISITORS_MAX = 64, PATIENCE_MS = 30000 };

/* Nothing but what is served here, and the module. */
#define POLICY                                                                                     \
    "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; style-src 'self'; img-src 'self' "  \
    "data: blob:; connect-src 'self'; worker-src 'self'; base-uri 'none'; form-action 'none'; "    \
    "frame-ancestors 'none'"

#define PACKED "Content-Encoding: gzip\r\n"

struct lab {
    uv_loop_t loop;
    uv_tcp_t listener;
    uv_signal_t signal[2];
    const char *host;
    struct visitor *first, *last; /* in the order in which they came */
    unsigned visitors;
};

struct visitor {
    uv_tcp_t socket;
    uv_timer_t patience;
    uv_write_t write;
    struct lab *lab;
    struct visitor *before, *after;
    unsigned open; /* handles */
    size_t size;
    unsigned char request[HTTP_HEAD_MAX];
    char head[1024];
};

/* ---- Visitors ---- */

static void enter(struct lab *lab, struct visitor *visitor) {
    visitor->lab = lab;
    visitor->before = lab->last;
    *(lab->last ? &lab->last->after : &lab->first) = visitor;
    lab->last = visitor;
    lab->visitors++;
}

static void handle_closed(uv_handle_t *handle) {
    struct visitor *visitor = handle->data;
    if (--visitor->open == 0) free(visitor);
}

static void leave(struct visitor *visitor) {
    struct lab *lab = visitor->lab;
    if (uv_is_closing((uv_handle_t *)&visitor->socket)) return;
    *(visitor->before ? &visitor->before->after : &lab->first) = visitor->after;
    *(visitor->after ? &visitor->after->before : &lab->last) = visitor->before;
    lab->visitors--;
    uv_close((uv_handle_t *)&visitor->socket, handle_closed);
    uv_close((uv_handle_t *)&visitor->patience, handle_closed);
}

static void patience_ended(uv_timer_t *timer) { leave(timer->data); }
static void written(uv_write_t *write, int status) {
    (void)status;
    leave(write->data);
}

static const char *reason(int status) {
    switch (status) {
    case 200: return "OK";
    case 404: return "Not Found";
    case 405: return "Method Not Allowed";
    case 421: return "Misdirected Request";
    case 431: return "Request Header Fields Too Large";
    case 505: return "HTTP Version Not Supported";
    default: return "Bad Request";
    }
}

static void answer(struct visitor *visitor, int status, const struct asset *page, bool head_only) {
    char said[64];
    int length = snprintf(said, sizeof said, "%d %s\n", status, reason(status));
    uv_buf_t body = page ? uv_buf_init((char *)page->begin, (unsigned)(page->end - page->begin))
                         : uv_buf_init(said, (unsigned)length);
    bool packed = page && page->encoding;
    int size = snprintf(visitor->head, sizeof visitor->head,
                        "HTTP/1.1 %d %s\r\nContent-Type: %s\r\nContent-Length: %zu\r\n%s"
                        "Connection: close\r\nCache-Control: no-store\r\n"
                        "X-Content-Type-Options: nosniff\r\nReferrer-Policy: no-referrer\r\n"
                        "Cross-Origin-Resource-Policy: same-origin\r\n"
                        "Cross-Origin-Opener-Policy: same-origin\r\n"
                        "Content-Security-Policy: " POLICY "\r\n\r\n",
                        status, reason(status), page ? page->type : "text/plain", body.len,
                        packed ? PACKED : "");
    if (!page && !head_only) { /* it ends with this function, and the head does not */
        memcpy(visitor->head + size, said, (size_t)length);
        size += length;
    }
    uv_buf_t parts[2] = {uv_buf_init(visitor->head, (unsigned)size), body};
    visitor->write.data = visitor;
    uv_read_stop((uv_stream_t *)&visitor->socket);
    if (uv_write(&visitor->write, (uv_stream_t *)&visitor->socket, parts,
                 page && !head_only ? 2 : 1, written) != 0)
        leave(visitor);
}

static void make_room(uv_handle_t *handle, size_t suggested, uv_buf_t *buffer) {
    struct visitor *visitor = handle->data;
    (void)suggested;
    *buffer = uv_buf_init((char *)visitor->request + visitor->size,
                          (unsigned)(sizeof visitor->request - visitor->size));
}

static void received(uv_stream_t *stream, ssize_t size, const uv_buf_t *buffer) {
    struct visitor *visitor = stream->data;
    const struct asset *page;
    bool head_only;
    (void)buffer;
    if (size < 0) {
        leave(visitor);
        return;
    }
    visitor->size += (size_t)size;
    int status = lab_answer(visitor->request, visitor->size, visitor->lab->host, &page, &head_only);
    if (!status && visitor->size == sizeof visitor->request) status = 431;
    if (status) answer(visitor, status, page, head_only);
}

static void came(uv_stream_t *listener, int status) {
    struct lab *lab = listener->data;
    struct visitor *visitor = status == 0 ? calloc(1, sizeof *visitor) : NULL;
    if (!visitor) return;
    if (lab->visitors == VISITORS_MAX) leave(lab->first); /* who asks is served at once */
    enter(lab, visitor);
    visitor->open = 2;
    visitor->socket.data = visitor->patience.data = visitor;
    uv_tcp_init(&lab->loop, &visitor->socket);
    uv_timer_init(&lab->loop, &visitor->patience);
    if (uv_accept(listener, (uv_stream_t *)&visitor->socket) != 0 ||
        uv_timer_start(&visitor->patience, patience_ended, PATIENCE_MS, 0) != 0 ||
        uv_read_start((uv_stream_t *)&visitor->socket, make_room, received) != 0)
        leave(visitor);
}

/* ---- The server ---- */

static void stop(uv_signal_t *signal, int number) {
    (void)number;
    uv_stop(signal->loop);
}

static void close_all(uv_handle_t *handle, void *context) {
    struct lab *lab = context;
    if (uv_is_closing(handle)) return;
    bool own = handle == (uv_handle_t *)&lab->listener ||
               handle == (uv_handle_t *)&lab->signal[0] || handle == (uv_handle_t *)&lab->signal[1];
    if (own)
        uv_close(handle, NULL);
    else
        leave(handle->data);
}

/* The address of what is bound, in brackets if it is one of IPv6. */
static void name_page(const struct lab *lab, char url[128]) {
    struct sockaddr_storage bound;
    char host[64] = "";
    int size = sizeof bound;
    uv_tcp_getsockname(&lab->listener, (struct sockaddr *)&bound, &size);
    bool six = bound.ss_family == AF_INET6;
    uv_ip_name((struct sockaddr *)&bound, host, sizeof host);
    unsigned port = ntohs(six ? ((struct sockaddr_in6 *)&bound)->sin6_port
                              : ((struct sockaddr_in *)&bound)->sin_port);
    snprintf(url, 128, six ? "http://[%s]:%u/" : "http://%s:%u/", host, port);
}

static int listen_at(struct lab *lab, const struct lab_address *address) {
    struct sockaddr_storage where;
    int error = uv_ip4_addr(address->host, address->port, (struct sockaddr_in *)&where);
    if (error) error = uv_ip6_addr(address->host, address->port, (struct sockaddr_in6 *)&where);
    if (!error) error = uv_tcp_bind(&lab->listener, (struct sockaddr *)&where, 0);
    return error ? error : uv_listen((uv_stream_t *)&lab->listener, VISITORS_MAX, came);
}

int lab_serve(const struct lab_address *address, void (*listens)(const char *url)) {
    struct lab lab = {.host = address->host};
    char url[128];
    int error = uv_loop_init(&lab.loop);
    if (error) return error;
    lab.listener.data = &lab;
    uv_tcp_init(&lab.loop, &lab.listener);
    for (int i = 0; i < 2; i++) {
        uv_signal_init(&lab.loop, &lab.signal[i]);
        uv_signal_start(&lab.signal[i], stop, i ? SIGTERM : SIGINT);
    }
    error = listen_at(&lab, address);
    if (!error) {
        name_page(&lab, url);
        listens(url);
        uv_run(&lab.loop, UV_RUN_DEFAULT);
    }
    uv_walk(&lab.loop, close_all, &lab);
    uv_run(&lab.loop, UV_RUN_DEFAULT);
    uv_loop_close(&lab.loop);
    return error;
}
