#include "load.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

/* ---- Redis ---- */

static void say(struct bytes *out, const char *bytes, size_t size) {
    memcpy(bytes_extend(out, size), bytes, size);
}

static void greet(struct connection *c) { say(&c->out, "PING\r\n", 6); }

static bool greeted(struct connection *c, struct zk_in *received) {
    static const char pong[] = "+PONG\r\n";
    (void)c;
    if (zk_left(received) != sizeof pong - 1 || memcmp(received->at, pong, sizeof pong - 1) != 0)
        return false;
    received->at = received->end;
    return true;
}

/* Answers come in order; a value has its length in front, as "$100". */
static bool next_redis(struct load *load, struct connection *c, struct zk_in *received,
                       struct reply *reply) {
    const unsigned char *line = received->at;
    const unsigned char *end = memchr(line, '\n', zk_left(received));
    if (!end++) return false;
    reply->err = *line == '-';
    reply->body = zk_in_of(end, 0);
    if (*line == '$') {
        long size = strtol((const char *)line + 1, NULL, 10);
        if (received->end - end < size + 2) return false;
        reply->err = size < 0;
        reply->body = zk_in_of(end, size < 0 ? 0 : (size_t)size);
        end += size < 0 ? 0 : size + 2;
    }
    received->at = end;
    reply->slot = c->next_slot;
    c->next_slot = (c->next_slot + 1) % load->outstanding;
    return true;
}

const struct protocol redis = {"redis", greet, greeted, next_redis, NULL};

static void add_set(const struct load *load, struct bytes *out, unsigned key) {
    char text[PATH_ROOM];
    int size = snprintf(text, sizeof text, "*3\r\n$3\r\nSET\r\n$8\r\nkey:%04u\r\n$%u\r\n", key,
                        load->value);
    say(out, text, (size_t)size);
    say(out, load->data, load->value);
    say(out, "\r\n", 2);
}

static void prepare_set(struct load *load) {
    for (unsigned key = 0; key < KEYS; key++) add_set(load, &load->frames, key);
    load->frame_bytes = load->frames.used / KEYS;
}

static void prepare_get(struct load *load) {
    struct connection *c = load->all;
    struct reply reply;
    for (unsigned key = 0; key < KEYS; key++) {
        char text[PATH_ROOM];
        add_set(load, &c->out, key);
        flush_all(c);
        for (;;) {
            struct zk_in received = zk_in_of(c->in, c->in_used);
            if (next_redis(load, c, &received, &reply)) break;
            if (!receive(c, 0)) die("redis ended the connection that prepares the run");
        }
        c->in_used = c->next_slot = 0;
        int size = snprintf(text, sizeof text, "*2\r\n$3\r\nGET\r\n$8\r\nkey:%04u\r\n", key);
        say(&load->frames, text, (size_t)size);
    }
    load->frame_bytes = load->frames.used / KEYS;
}

static void begin_redis(struct load *load, struct connection *c, unsigned slot) {
    size_t key = load->begun * 7919 % KEYS;
    (void)slot;
    say(&c->out, (const char *)load->frames.at + key * load->frame_bytes, load->frame_bytes);
}

static void answer_set(struct load *load, struct connection *c, const struct reply *reply) {
    if (reply->err)
        cycle_failed(load, c, reply->slot);
    else
        cycle_done(load, c, reply->slot);
}

static void answer_get(struct load *load, struct connection *c, const struct reply *reply) {
    if (reply->err || zk_left(&reply->body) != load->value)
        cycle_failed(load, c, reply->slot);
    else
        cycle_done(load, c, reply->slot);
}

const struct operation redis_get = {"get",      &redis, prepare_get, begin_redis,
                                    answer_get, NULL,   false};
const struct operation redis_set = {"set",      &redis, prepare_set, begin_redis,
                                    answer_set, NULL,   false};

/* ---- The limit of the network: the same bytes there and back ---- */

static bool next_echo(struct load *load, struct connection *c, struct zk_in *received,
                      struct reply *reply) {
    (void)c;
    if (zk_left(received) < load->value) return false;
    received->at += load->value;
    *reply = (struct reply){.slot = 0};
    return true;
}

static const struct protocol echo = {"echo", NULL, NULL, next_echo, NULL};

static void begin_echo(struct load *load, struct connection *c, unsigned slot) {
    (void)slot;
    say(&c->out, load->data, load->value);
}

const struct operation ping_pong = {"ping-pong", &echo, NULL, begin_echo, answer_set, NULL, false};

/* The two ends on a core each, where a server and its client are when nothing else is to do; on the
 * same core an echo is quicker than any server can be that has its own. */
static void stay_on(int cpu) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    sched_setaffinity(0, sizeof set, &set);
}

_Noreturn static void echo_forever(int listener) {
    char bytes[1 << 16];
    int fd = accept(listener, NULL, NULL);
    ssize_t size;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
    while ((size = read(fd, bytes, sizeof bytes)) > 0)
        if (write(fd, bytes, (size_t)size) != size) break;
    _exit(0);
}

unsigned start_echo(void) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (bind(listener, (struct sockaddr *)&address, size) != 0 || listen(listener, 1) != 0 ||
        getsockname(listener, (struct sockaddr *)&address, &size) != 0)
        die("ping-pong: %s", strerror(errno));
    pid_t child = fork();
    if (child < 0) die("ping-pong: %s", strerror(errno));
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        stay_on(0);
        echo_forever(listener);
    }
    close(listener);
    stay_on(1);
    return ntohs(address.sin_port);
}

/* ---- The limit of the disk: small records, each there before the next ---- */

enum { RECORD_SIZE = 200, FILE_SIZE = 64 << 20 };

static int open_file(const struct load *load, bool overwrite) {
    static const char
        zeros[1 << 16]; /* larger pieces become larger pages, which are slower to sync */
    char path[4096];
    snprintf(path, sizeof path, "%s/load-%d", load->directory, getpid());
    int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0) die("%s: %s", path, strerror(errno));
    unlink(path);
    for (size_t size = 0; overwrite && size < FILE_SIZE; size += sizeof zeros)
        if (write(fd, zeros, sizeof zeros) != sizeof zeros) die("%s: %s", path, strerror(errno));
    if (fsync(fd) != 0) die("%s: %s", path, strerror(errno));
    return fd;
}

void write_records(struct load *load, bool overwrite) {
    char bytes[RECORD_SIZE];
    int fd = open_file(load, overwrite);
    off_t at = 0;
    load->start = load->now = clock_ns();
    load->end = load->start + (uint64_t)(load->seconds * 1e9);
    while (load->now < load->end) {
        uint64_t began = load->now;
        memset(bytes, (int)(++load->done), sizeof bytes);
        if (pwrite(fd, bytes, sizeof bytes, at) != sizeof bytes || fdatasync(fd) != 0)
            die("disk: %s", strerror(errno));
        at += RECORD_SIZE;
        if (overwrite) at %= FILE_SIZE - RECORD_SIZE;
        load->now = clock_ns();
        latencies_add(&load->latencies, load->now - began);
    }
    load->end = load->now;
    close(fd);
}
