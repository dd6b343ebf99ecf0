#include "load.h"

#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "base/grow.h"

enum {
    IN_ROOM = 1 << 16,
    READY_MAX = 1024,
    /* Connections that greet at a time: fewer than a server lets wait before it accepts them. */
    GREETING = 32,
};
static const uint64_t second = 1000000000;

/* ---- Latencies ---- */

static uint64_t read_clock(clockid_t clock) {
    struct timespec now;
    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * second + (uint64_t)now.tv_nsec;
}

uint64_t clock_ns(void) { return read_clock(CLOCK_MONOTONIC); }

static unsigned bucket_of(uint64_t ns) {
    if (ns < 1 << STEP_BITS) return (unsigned)ns;
    unsigned doublings = 63 - (unsigned)__builtin_clzll(ns) - STEP_BITS;
    return (doublings << STEP_BITS) + (unsigned)(ns >> doublings);
}

static uint64_t bucket_end(unsigned bucket) {
    if (bucket < 1 << STEP_BITS) return bucket;
    unsigned doublings = (bucket >> STEP_BITS) - 1;
    return ((uint64_t)bucket - (doublings << STEP_BITS) + 1) << doublings;
}

void latencies_add(struct latencies *latencies, uint64_t ns) {
    latencies->counts[bucket_of(ns)]++;
    latencies->count++;
    if (ns > latencies->max) latencies->max = ns;
}

double latencies_quantile(const struct latencies *latencies, double part) {
    double wanted = (double)latencies->count * part;
    uint64_t seen = 0;
    for (unsigned i = 0; i < BUCKETS; i++) {
        seen += latencies->counts[i];
        if (seen && (double)seen >= wanted) {
            uint64_t end = bucket_end(i);
            return (double)(end < latencies->max ? end : latencies->max) / 1e3;
        }
    }
    return 0;
}

/* ---- Connections ---- */

void keep_rest(struct connection *c, const struct zk_in *received) {
    c->in_used = zk_left(received);
    if (c->in_used) memmove(c->in, received->at, c->in_used);
}

/* A server that is just starting may accept a connection and never answer: hence the timeout. */
bool dial(const struct load *load, struct connection *c, unsigned timeout_ms) {
    struct timeval timeout = {timeout_ms / 1000, timeout_ms % 1000 * 1000};
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)c->port)};
    if (inet_pton(AF_INET, load->host, &address.sin_addr) != 1) die("no address: %s", load->host);
    c->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (c->fd < 0) return false;
    if (connect(c->fd, (struct sockaddr *)&address, sizeof address) != 0) {
        close(c->fd);
        return false;
    }
    setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
    setsockopt(c->fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof timeout);
    c->in_used = 0;
    if (load->protocol->greet) load->protocol->greet(c);
    if (flush_all(c)) return true;
    close(c->fd);
    return false;
}

bool await_greeting(const struct load *load, struct connection *c) {
    if (!load->protocol->greet) return true;
    for (;;) {
        struct zk_in received = zk_in_of(c->in, c->in_used);
        if (load->protocol->greeted(c, &received)) {
            keep_rest(c, &received);
            return true;
        }
        if (receive(c, 0)) continue;
        close(c->fd);
        return false;
    }
}

static void connection_init(struct load *load, struct connection *c, unsigned index) {
    *c = (struct connection){
        .index = index, .port = load->ports[index % load->port_count], .in = malloc(IN_ROOM)};
    c->slots = calloc(load->outstanding, sizeof *c->slots);
    cv_assert(c->in && c->slots);
}

void await_server(struct load *load) {
    struct connection c;
    uint64_t end = clock_ns() + (uint64_t)(load->seconds * 1e9);
    connection_init(load, &c, 0);
    while (!dial(load, &c, 200) || !await_greeting(load, &c)) {
        if (clock_ns() > end) die("no server answers on port %u", c.port);
        nanosleep(&(struct timespec){.tv_nsec = 200000}, NULL);
    }
    close(c.fd);
}

void open_connections(struct load *load, unsigned count) {
    load->all = calloc(count, sizeof *load->all);
    cv_assert(load->all);
    for (unsigned greeted = 0; load->opened < count || greeted < count;) {
        if (load->opened < count && load->opened - greeted < GREETING) {
            struct connection *c = &load->all[load->opened];
            connection_init(load, c, load->opened++);
            if (!dial(load, c, 10000))
                die("connection %u to %s:%u: %s", c->index, load->host, c->port, strerror(errno));
        } else if (!await_greeting(load, &load->all[greeted++])) {
            die("connection %u: no greeting from the server", greeted - 1);
        }
    }
}

void close_connections(struct load *load) {
    for (unsigned i = 0; load->protocol->farewell && i < load->opened; i++) {
        load->protocol->farewell(&load->all[i]);
        flush_all(&load->all[i]);
    }
    for (unsigned i = 0; i < load->opened; i++) {
        struct connection *c = &load->all[i];
        if (load->protocol->farewell)
            while (receive(c, 0)) c->in_used = 0;
        close(c->fd);
    }
}

/* ---- Bytes ---- */

static void watch_for(struct load *load, struct connection *c, int action) {
    struct epoll_event event = {.events = EPOLLIN | (c->blocked ? EPOLLOUT : 0), .data.ptr = c};
    if (epoll_ctl(load->epoll, action, c->fd, &event) != 0) die("epoll: %s", strerror(errno));
}

/* The rest of `out` is moved to its front; false: the connection has ended. */
static bool push(struct connection *c, int flags) {
    size_t sent = 0;
    while (sent < c->out.used) {
        ssize_t n = send(c->fd, c->out.at + sent, c->out.used - sent, flags | MSG_NOSIGNAL);
        if (n < 0 && errno == EAGAIN) break;
        if (n < 0) {
            c->out.used = 0;
            return false;
        }
        sent += (size_t)n;
    }
    c->out.used -= sent;
    if (c->out.used) memmove(c->out.at, c->out.at + sent, c->out.used);
    return true;
}

void flush(struct load *load, struct connection *c) {
    if (!push(c, MSG_DONTWAIT)) die("connection %u: the server ended it", c->index);
    if (__builtin_expect(c->blocked == (c->out.used > 0), 1)) return;
    c->blocked = !c->blocked;
    watch_for(load, c, EPOLL_CTL_MOD);
}

bool flush_all(struct connection *c) { return push(c, 0); }

bool receive(struct connection *c, int flags) {
    if (c->in_used == IN_ROOM) die("an answer of more than %u bytes", IN_ROOM);
    ssize_t n = recv(c->fd, c->in + c->in_used, IN_ROOM - c->in_used, flags);
    if (n == 0) errno = ECONNRESET;
    if (n <= 0) return false;
    c->in_used += (size_t)n;
    return true;
}

/* ---- Cycles ---- */

static void begin_cycle(struct load *load, struct connection *c, unsigned slot) {
    if (load->now >= load->end || (load->requests && load->begun == load->requests)) return;
    load->begun++;
    load->going++;
    c->slots[slot].began = load->now;
    load->operation->begin(load, c, slot);
}

void cycle_done(struct load *load, struct connection *c, unsigned slot) {
    uint64_t began = c->slots[slot].began;
    load->going--;
    if (load->now >= load->start && load->now <= load->end) load->done++;
    if (began >= load->start) latencies_add(&load->latencies, load->now - began);
    begin_cycle(load, c, slot);
}

void cycle_failed(struct load *load, struct connection *c, unsigned slot) {
    load->going--;
    load->errors++;
    begin_cycle(load, c, slot);
}

static void serve(struct load *load, struct connection *c) {
    struct reply reply;
    if (!receive(c, MSG_DONTWAIT)) {
        if (errno == EAGAIN || errno == EINTR) return;
        die("connection %u: the server ended it", c->index);
    }
    load->now = clock_ns();
    struct zk_in received = zk_in_of(c->in, c->in_used);
    while (load->protocol->next(load, c, &received, &reply))
        load->operation->answer(load, c, &reply);
    keep_rest(c, &received);
}

static void begin_run(struct load *load) {
    unsigned beginning = load->operation->directed ? 1 : load->opened;
    load->epoll = epoll_create1(EPOLL_CLOEXEC);
    for (unsigned i = 0; i < load->opened; i++) watch_for(load, &load->all[i], EPOLL_CTL_ADD);
    load->now = clock_ns();
    load->start = load->now + (uint64_t)(load->warm * 1e9);
    load->end = load->requests ? UINT64_MAX : load->start + (uint64_t)(load->seconds * 1e9);
    for (unsigned i = 0; i < beginning; i++) {
        for (unsigned slot = 0; slot < load->outstanding; slot++)
            begin_cycle(load, &load->all[i], slot);
        flush(load, &load->all[i]);
    }
}

void run_cycles(struct load *load) {
    struct epoll_event ready[READY_MAX];
    uint64_t heard, cpu = read_clock(CLOCK_PROCESS_CPUTIME_ID);
    begin_run(load);
    uint64_t began = heard = load->now;
    while (load->going) {
        int count = epoll_wait(load->epoll, ready, READY_MAX, 1000);
        if (count > 0) heard = load->now;
        for (int i = 0; i < count; i++) {
            struct connection *c = ready[i].data.ptr;
            if (ready[i].events & ~(uint32_t)EPOLLOUT) serve(load, c);
            flush(load, c);
        }
        if (count == 0 && (load->now = clock_ns()) > heard + 10 * second)
            die("%" PRIu64 " cycles wait for an answer that does not come", load->going);
    }
    if (load->requests) load->end = load->now;
    load->own_cpu =
        (double)(read_clock(CLOCK_PROCESS_CPUTIME_ID) - cpu) / (double)(load->now - began);
    close(load->epoll);
}
