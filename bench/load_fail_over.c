#include "load.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

/* A client with one connection, to the first of the ports, writes again and again, and does not
 * wait for answers: some servers never answer what they had sent to a leader that is gone.  When
 * its connection is ended it tries the ports in turn, with the session that it has.
 *
 *   fail-over  from the end of the victim until the first answer to a write that was sent after it
 *   gap        the times between answers: for a server that may go on for a while before it ends,
 *              and for changes of the leader that somebody else makes */

enum {
    EVERY_MS = 2,       /* a write, or an attempt to connect */
    GREETING_MS = 1000, /* then the next server is tried */
    TIMEOUT_S = 60,     /* for all attempts together */
};

/* To the port after that of the last attempt. */
static bool connect_next(struct load *load, struct connection *c, unsigned *attempts) {
    c->out.used = 0;
    c->port = load->ports[++*attempts % load->port_count];
    return dial(load, c, GREETING_MS) && await_greeting(load, c);
}

static bool write_once(struct load *load, struct connection *c) {
    load->operation->begin(load, c, (unsigned)(load->begun++ % load->outstanding));
    return flush_all(c);
}

/* Whether a write has succeeded; `connected` becomes false when the server has ended it. */
static bool answered(struct load *load, struct connection *c, bool *connected) {
    struct pollfd ready = {.fd = c->fd, .events = POLLIN};
    struct reply reply;
    if (poll(&ready, 1, EVERY_MS) <= 0) return false;
    if (!receive(c, MSG_DONTWAIT)) {
        *connected = errno == EAGAIN || errno == EINTR;
        if (!*connected) close(c->fd);
        return false;
    }
    struct zk_in received = zk_in_of(c->in, c->in_used);
    bool success = false;
    while (load->protocol->next(load, c, &received, &reply))
        if (reply.slot != EVENT && !reply.err) success = true;
    keep_rest(c, &received);
    return success;
}

static void run_until_answered(struct load *load, struct connection *c) {
    bool connected = true;
    unsigned attempts = 0;
    uint64_t limit = clock_ns() + (uint64_t)(TIMEOUT_S * 1e9);
    for (;;) {
        if (!connected) {
            if (attempts) poll(NULL, 0, EVERY_MS);
            connected = connect_next(load, c, &attempts);
        } else if (!write_once(load, c)) {
            connected = false;
            close(c->fd);
        } else if (answered(load, c, &connected)) {
            return;
        }
        if (clock_ns() > limit) die("no write succeeds within %u s", TIMEOUT_S);
    }
}

void run_fail_over(struct load *load, bool only_first) {
    load->outstanding = 1 << 16;
    open_connections(load, 1);
    struct connection *c = load->all;
    bool connected = true;
    if (load->operation->prepare) load->operation->prepare(load);
    write_once(load, c);
    while (!answered(load, c, &connected))
        if (!connected) die("the server closed the connection before the victim was ended");
    load->start = clock_ns();
    load->end = load->start + (uint64_t)(only_first ? 0 : load->seconds * 1e9);
    if (load->victim && kill(load->victim, load->ending) != 0)
        die("process %d: %s", load->victim, strerror(errno));
    load->now = load->start;
    do {
        uint64_t before = load->now;
        run_until_answered(load, c);
        load->now = clock_ns();
        load->done++;
        latencies_add(&load->latencies, load->now - before);
    } while (load->now < load->end);
    load->end = load->now;
    close(c->fd);
}
