#include "cli/fetch.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "service/admin/admin.h"

enum { ANSWER_MAX = 1 << 20 };

uint64_t fetch_now_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

const char *fetch_resolve(const char *text, struct fetch_address *address) {
    char host[256];
    struct addrinfo *found, hints = {.ai_socktype = SOCK_STREAM};
    const char *colon = strrchr(text, ':');
    size_t size = colon ? (size_t)(colon - text) : 0;
    if (!size || !colon[1] || size >= sizeof host)
        return "it is not an address such as 127.0.0.1:8080";
    bool brackets = *text == '[' && text[size - 1] == ']';
    snprintf(host, sizeof host, "%.*s", (int)(brackets ? size - 2 : size), text + brackets);
    int error = getaddrinfo(host, colon + 1, &hints, &found);
    if (error) return gai_strerror(error);
    *address = (struct fetch_address){0};
    memcpy(&address->at, found->ai_addr, found->ai_addrlen);
    address->size = found->ai_addrlen;
    freeaddrinfo(found);
    return NULL;
}

static void fail(struct fetch *f, int error) {
    fetch_end(f);
    f->state = FETCH_FAILED;
    f->error = error;
}

static int connect_in(const char *data, int socket_) {
    struct sockaddr_un at;
    int directory = open(data, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (directory < 0) return -1;
    admin_socket_address(data, directory, &at);
    int result = connect(socket_, (const struct sockaddr *)&at, sizeof at), error = errno;
    close(directory);
    errno = error;
    return result;
}

static int connect_to(const struct fetch_address *address, int socket_) {
    if (address->data) return connect_in(address->data, socket_);
    return connect(socket_, (const struct sockaddr *)&address->at, address->size);
}

void fetch_begin(struct fetch *f, const struct fetch_address *address, const char *method,
                 const char *path) {
    /* Servers of protocol version 3 and before want the header Conclave. */
    static const char version[] = " HTTP/1.0\r\nConclave: 1\r\nContent-Length: 0\r\n";
    static const char bearer[] = "Authorization: Bearer ";
    fetch_end(f);
    f->request.used = f->answer.used = f->sent = 0;
    bytes_add(&f->request, method, strlen(method));
    bytes_add(&f->request, " ", 1);
    bytes_add(&f->request, path, strlen(path));
    bytes_add(&f->request, version, sizeof version - 1);
    if (address->token && strcmp(method, "POST") == 0) { /* to read takes none */
        bytes_add(&f->request, bearer, sizeof bearer - 1);
        bytes_add(&f->request, address->token->at, address->token->size);
        bytes_add(&f->request, "\r\n", 2);
    }
    bytes_add(&f->request, "\r\n", 2);
    int family = address->data ? AF_UNIX : address->at.ss_family;
    f->socket = socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    f->state = FETCH_UNDER_WAY;
    if (f->socket < 0 || (connect_to(address, f->socket) != 0 && errno != EINPROGRESS))
        fail(f, errno);
}

short fetch_events(const struct fetch *f) {
    if (f->state != FETCH_UNDER_WAY) return 0;
    return f->sent < f->request.used ? POLLOUT : POLLIN;
}

static void read_answer(struct fetch *f) {
    bytes_add(&f->answer, "", 1);
    char *text = (char *)f->answer.at, *body = strstr(text, "\r\n\r\n");
    if (sscanf(text, "HTTP/1.%*1[01] %3u", &f->status) != 1 || !body) {
        fail(f, 0);
        return;
    }
    f->body = body + 4;
    f->state = FETCH_DONE;
    close(f->socket);
    f->socket = -1;
}

void fetch_go_on(struct fetch *f) {
    char part[4096];
    if (f->state != FETCH_UNDER_WAY) return;
    ssize_t size = f->sent < f->request.used ? send(f->socket, f->request.at + f->sent,
                                                    f->request.used - f->sent, MSG_NOSIGNAL)
                                             : recv(f->socket, part, sizeof part, 0);
    if (size < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (size < 0)
        fail(f, errno);
    else if (f->sent < f->request.used)
        f->sent += (size_t)size;
    else if (size == 0)
        read_answer(f);
    else if (f->answer.used + (size_t)size > ANSWER_MAX)
        fail(f, 0);
    else
        bytes_add(&f->answer, part, (size_t)size);
}

void fetch_end(struct fetch *f) {
    if (f->state == FETCH_UNDER_WAY && f->socket >= 0) close(f->socket);
    f->state = FETCH_IDLE;
    f->socket = -1;
    f->error = 0;
    f->body = NULL;
}

void fetch_close(struct fetch *f) {
    fetch_end(f);
    bytes_close(&f->request);
    bytes_close(&f->answer);
}

void fetch_wait(struct fetch *f, int timeout_ms) {
    uint64_t deadline = fetch_now_ms() + (uint64_t)timeout_ms;
    while (f->state == FETCH_UNDER_WAY) {
        struct pollfd ready = {f->socket, fetch_events(f), 0};
        uint64_t now = fetch_now_ms();
        if (now >= deadline)
            fail(f, ETIMEDOUT);
        else if (poll(&ready, 1, (int)(deadline - now)) > 0)
            fetch_go_on(f);
    }
}
