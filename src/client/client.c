#include "client/client.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

enum { PATIENCE_S = 30, SESSION_MS = 30000, PASSWORD_SIZE = 16, PIECE = 1 << 16 };
enum { ANSWER_MAX = 1 << 30 };

__attribute__((format(printf, 2, 3))) static int fail(struct client *client, const char *format,
                                                      ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(client->message, sizeof client->message, format, arguments);
    va_end(arguments);
    return -1;
}

/* ---- Bytes ---- */

static int send_all(struct client *client) {
    size_t done = 0;
    while (done < client->out.used) {
        ssize_t part =
            send(client->socket, client->out.at + done, client->out.used - done, MSG_NOSIGNAL);
        if (part < 0 && errno == EINTR) continue;
        if (part <= 0) return fail(client, "the server takes no more: %s", strerror(errno));
        done += (size_t)part;
    }
    client->out.used = 0;
    return 0;
}

static int next_frame(struct client *client, struct zk_in *frame) {
    struct bytes *in = &client->in;
    if (send_all(client) != 0) return -1;
    if (client->taken) memmove(in->at, in->at + client->taken, in->used - client->taken);
    in->used -= client->taken;
    client->taken = 0;
    for (;;) {
        struct zk_in received = zk_in_of(in->at, in->used);
        int status = zk_next_frame(&received, ANSWER_MAX, frame);
        if (status < 0) return fail(client, "what the server sends is not the protocol");
        if (status > 0) return client->taken = in->used - zk_left(&received), 0;
        ssize_t part = recv(client->socket, bytes_reserve(in, PIECE), PIECE, 0);
        if (part < 0 && errno == EINTR) continue;
        if (part < 0) return fail(client, "no answer from the server: %s", strerror(errno));
        if (part == 0) return fail(client, "the server has closed the connection");
        in->used += (size_t)part;
    }
}

/* ---- Connecting ---- */

static int connect_to(struct client *client, const struct addrinfo *at) {
    struct timeval patience = {.tv_sec = PATIENCE_S};
    int on = 1;
    client->socket = socket(at->ai_family, at->ai_socktype | SOCK_CLOEXEC, at->ai_protocol);
    if (client->socket < 0) return -1;
    setsockopt(client->socket, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    setsockopt(client->socket, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
    setsockopt(client->socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    if (connect(client->socket, at->ai_addr, at->ai_addrlen) == 0) return 0;
    int error = errno;
    close(client->socket);
    client->socket = -1;
    errno = error;
    return -1;
}

static int find(struct client *client, const char *address) {
    char host[256];
    struct addrinfo wanted = {.ai_socktype = SOCK_STREAM}, *found, *at;
    const char *colon = strrchr(address, ':');
    size_t size = colon ? (size_t)(colon - address) : 0;
    if (colon && address[0] == '[' && size > 2 && address[size - 1] == ']') address++, size -= 2;
    if (!size || size >= sizeof host || !colon[1])
        return fail(client, "'%s' is not an address such as 127.0.0.1:2181", address);
    snprintf(host, sizeof host, "%.*s", (int)size, address);
    int error = getaddrinfo(host, colon + 1, &wanted, &found);
    if (error) return fail(client, "%s: %s", address, gai_strerror(error));
    for (at = found; at && connect_to(client, at) != 0; at = at->ai_next) {
    }
    freeaddrinfo(found);
    return at ? 0 : fail(client, "%s: %s", address, strerror(errno));
}

static int open_session(struct client *client) {
    static const char nobody[PASSWORD_SIZE];
    struct zk_connect_request request = {
        .timeout = SESSION_MS, .passwd = {nobody, sizeof nobody}, .read_only = 0};
    struct zk_connect_response response;
    struct zk_in frame;
    size_t begin = zk_frame_begin(&client->out);
    zk_write_connect_request(&client->out, &request);
    zk_frame_end(&client->out, begin);
    if (next_frame(client, &frame) != 0) return -1;
    if (!zk_read_connect_response(&frame, &response) || !response.session_id)
        return fail(client, "the server opens no session");
    return 0;
}

int client_open(struct client *client, const char *address) {
    *client = (struct client){.socket = -1};
    if (find(client, address) != 0) return -1;
    if (open_session(client) == 0) return 0;
    client_close(client);
    return -1;
}

int client_authenticate(struct client *client, const char *secret) {
    struct zk_auth_request request = {0, zk_text_of("digest"), zk_text_of(secret)};
    struct zk_in body;
    int32_t err;
    client_send(client, ZK_OP_AUTH, &request);
    if (client_receive(client, &err, &body) != 0) return -1;
    return err ? fail(client, "the server does not accept the user") : 0;
}

void client_close(struct client *client) {
    struct zk_in body;
    int32_t err;
    if (client->socket >= 0) {
        client_send(client, ZK_OP_CLOSE_SESSION, NULL);
        client_receive(client, &err, &body);
        close(client->socket);
    }
    bytes_close(&client->out);
    bytes_close(&client->in);
}

/* ---- Requests and answers ---- */

void client_send_body(struct client *client, int32_t op, const struct bytes *body) {
    size_t frame = zk_frame_begin(&client->out);
    zk_write_request_header(&client->out, &(struct zk_request_header){++client->xid, op});
    bytes_add(&client->out, body->at, body->used);
    zk_frame_end(&client->out, frame);
}

void client_send(struct client *client, int32_t op, const void *record) {
    struct bytes body = {0};
    if (record) zk_op_of(op)->request->write(&body, record);
    client_send_body(client, op, &body);
    bytes_close(&body);
}

int client_receive(struct client *client, int32_t *err, struct zk_in *body) {
    struct zk_reply_header header;
    if (next_frame(client, body) != 0) return -1;
    if (!zk_read_reply_header(body, &header))
        return fail(client, "what the server sends is not the protocol");
    *err = header.err;
    return 0;
}
