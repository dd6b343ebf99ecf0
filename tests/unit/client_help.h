/* For tests of the client library: a server, and proxies that break the connection to it. */
#ifndef CV_TESTS_UNIT_CLIENT_HELP_H
#define CV_TESTS_UNIT_CLIENT_HELP_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "conclave.h"
#include "patience.h"

/* $CONCLAVE, or the program that was built beside this test. */
static inline void name_program(void) {
    char path[4096];
    ssize_t size = readlink("/proc/self/exe", path, sizeof path - 20);
    if (getenv("CONCLAVE") || size <= 0) return;
    path[size] = 0;
    for (int up = 0; up < 2; up++) *strrchr(path, '/') = 0;
    strcat(path, "/conclave");
    setenv("CONCLAVE", path, 1);
}

/* Waits until the expression is true. */
#define AWAIT(EXPRESSION)                                                                          \
    for (int64_t end_ = cv_now() + PATIENCE_MS; !(EXPRESSION);) {                                  \
        if (cv_now() > end_) fail_msg("not in time: %s", #EXPRESSION);                             \
        usleep(1000);                                                                              \
    }

/* ---- Proxies ---- */

enum proxy_mode { PROXY_PASSES, PROXY_CUTS, PROXY_FREEZES, PROXY_DEAF /* to answers */ };
enum { PROXY_PAIRS = 16 };

struct proxy {
    int listener, port;
    struct sockaddr_in target;
    pthread_t thread;
    atomic_int mode;
    atomic_int turns; /* that it has begun */
    atomic_bool over;
    atomic_int connections; /* that there have been */
    struct {
        int here, there;
    } pair[PROXY_PAIRS];
    int pairs;
    char address[32];
};

static inline int dial(const struct sockaddr_in *at) {
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (connect(fd, (const struct sockaddr *)at, sizeof *at) == 0) return fd;
    close(fd);
    return -1;
}

static inline int listen_anywhere(int *port) {
    struct sockaddr_in at = {.sin_family = AF_INET};
    socklen_t size = sizeof at;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&at, sizeof at), 0);
    assert_int_equal(listen(fd, 64), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&at, &size), 0);
    *port = ntohs(at.sin_port);
    return fd;
}

static inline bool proxy_pass(int from, int to) {
    char bytes[65536];
    ssize_t size = recv(from, bytes, sizeof bytes, MSG_DONTWAIT);
    if (size < 0) return errno == EAGAIN || errno == EINTR;
    return size > 0 && send(to, bytes, (size_t)size, MSG_NOSIGNAL) == size;
}

static inline void proxy_accept(struct proxy *proxy) {
    int here = accept4(proxy->listener, NULL, NULL, SOCK_CLOEXEC), there;
    if (here < 0) return;
    if (proxy->mode == PROXY_CUTS || proxy->pairs == PROXY_PAIRS ||
        (there = dial(&proxy->target)) < 0) {
        close(here);
        return;
    }
    proxy->pair[proxy->pairs].here = here;
    proxy->pair[proxy->pairs++].there = there;
    proxy->connections++;
}

static inline void proxy_drop(struct proxy *proxy, int i) {
    close(proxy->pair[i].here);
    close(proxy->pair[i].there);
    proxy->pair[i] = proxy->pair[--proxy->pairs];
}

static inline void *proxy_run(void *arg) {
    struct proxy *proxy = arg;
    while (!proxy->over) {
        struct pollfd fds[1 + 2 * PROXY_PAIRS] = {{.fd = proxy->listener, .events = POLLIN}};
        proxy->turns++;
        int mode = proxy->mode, count = proxy->pairs;
        for (int i = 0; i < count; i++) {
            bool passes = mode == PROXY_PASSES;
            fds[1 + 2 * i] =
                (struct pollfd){passes || mode == PROXY_DEAF ? proxy->pair[i].here : -1, POLLIN, 0};
            fds[2 + 2 * i] = (struct pollfd){passes ? proxy->pair[i].there : -1, POLLIN, 0};
        }
        poll(fds, (nfds_t)(1 + 2 * count), 5);
        for (int i = count; i-- > 0;)
            if (proxy->mode == PROXY_CUTS ||
                (fds[1 + 2 * i].revents &&
                 !proxy_pass(proxy->pair[i].here, proxy->pair[i].there)) ||
                (fds[2 + 2 * i].revents && !proxy_pass(proxy->pair[i].there, proxy->pair[i].here)))
                proxy_drop(proxy, i);
        if (fds[0].revents) proxy_accept(proxy);
    }
    while (proxy->pairs) proxy_drop(proxy, 0);
    close(proxy->listener);
    return NULL;
}

/* Returns when what is sent from now on meets that mode. */
static inline void proxy_becomes(struct proxy *proxy, enum proxy_mode mode) {
    proxy->mode = mode;
    int now = proxy->turns;
    AWAIT(proxy->turns - now > 1);
}

/* Whether a request has reached the proxy, which has not passed it on. */
static inline bool proxy_has_some(const struct proxy *proxy) {
    int size = 0;
    return ioctl(proxy->pair[0].here, FIONREAD, &size) == 0 && size > 0;
}

static inline struct proxy *proxy_open(const char *target) {
    struct proxy *proxy = calloc(1, sizeof *proxy);
    char host[64];
    snprintf(host, sizeof host, "%.*s", (int)strcspn(target, ":"), target);
    proxy->target.sin_family = AF_INET;
    proxy->target.sin_port = htons((uint16_t)atoi(strrchr(target, ':') + 1));
    if (inet_pton(AF_INET, host, &proxy->target.sin_addr) != 1) /* localhost */
        proxy->target.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    proxy->listener = listen_anywhere(&proxy->port);
    snprintf(proxy->address, sizeof proxy->address, "127.0.0.1:%d", proxy->port);
    assert_int_equal(pthread_create(&proxy->thread, NULL, proxy_run, proxy), 0);
    return proxy;
}

static inline void proxy_close(struct proxy *proxy) {
    proxy->over = true;
    pthread_join(proxy->thread, NULL);
    free(proxy);
}

#endif
