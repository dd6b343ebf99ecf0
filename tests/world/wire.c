/* Connections between hosts, as TCP has them: bytes arrive in order, in pieces of any size; what
 * cannot pass is retried with backoff; a connection may be dead at one end only. */
#include "base/hash.h"
#include "world.h"

enum { WINDOW_MIN = 4 << 10, WINDOW_MAX = 256 << 10, ORPHAN_S = 5 };
#define RETRY_MIN (200 * MS)
#define RETRY_MAX (6 * SECOND)

static void pump(void *context, uint64_t number);

bool wire_is_passable(int from, int to) {
    const struct world *w = world;
    bool up = true;
    if (from < (int)w->servers) up = w->machine[from + 1].powered;
    if (to < (int)w->servers) up = up && w->machine[to + 1].powered;
    return up && !w->blocked[from][to];
}

static nanos delay(int from, int to) {
    struct rng *rng = &world->net;
    nanos max = world->jitter;
    if (rng_chance(rng, 0.02)) max *= 20;
    return world->delay[from][to] + rng_below(rng, max + 1);
}

static void change(struct socket *s) {
    if (s->changed) s->changed(s->owner);
}

static struct socket *new_socket(int host, int port, enum socket_state state) {
    struct socket *s = calloc(1, sizeof *s);
    cv_assert(s);
    s->host = host;
    s->port = port;
    s->state = state;
    s->number = ++world->socket_count;
    s->window = random_time(&world->net, WINDOW_MIN, WINDOW_MAX);
    s->next = world->sockets;
    world->sockets = s;
    return s;
}

/* ---- Ends ---- */

static void disturb(const struct socket *s) {
    world->disturbed[s->host][s->to_host] = world->disturbed[s->to_host][s->host] = world->now;
}

/* This end learns that the connection is dead. */
static void fail(struct socket *s, int error) {
    if (s->error) return;
    disturb(s);
    s->error = error;
    s->out.used = 0;
    s->pieces = 0;
    s->fin = false;
    change(s);
}

static void reset_arrived(void *context, uint64_t number) {
    (void)number;
    fail(context, UV_ECONNRESET);
}

/* Tells the other end, if it can be told. */
static void send_reset(struct socket *to, int from) {
    if (wire_is_passable(from, to->host))
        call_at(world->now + delay(from, to->host), reset_arrived, to, 0);
}

void wire_break(struct socket *s) {
    if (s->other) fail(s->other, UV_ECONNRESET);
    fail(s, UV_ECONNRESET);
}

/* ---- Connecting ---- */

static struct socket *listener_at(int host, int port) {
    for (struct socket *s = world->sockets; s; s = s->next)
        if (s->state == SOCKET_LISTENING && s->host == host && s->port == port) return s;
    return NULL;
}

struct socket *wire_listen(int host, int port) {
    return listener_at(host, port) ? NULL : new_socket(host, port, SOCKET_LISTENING);
}

struct socket *wire_accept(struct socket *listener) {
    struct socket *s = listener->queue;
    if (s) listener->queue = s->queue;
    if (s) s->queue = NULL;
    return s;
}

static void connect_answered(void *context, uint64_t refused) {
    struct socket *s = context;
    if (s->state != SOCKET_CONNECTING || s->error) return;
    if (refused)
        s->error = UV_ECONNREFUSED;
    else
        s->state = SOCKET_OPEN;
    change(s);
}

static void connect_arrived(void *context, uint64_t number) {
    struct socket *s = context, *listener = listener_at(s->to_host, s->to_port);
    (void)number;
    if (s->state != SOCKET_CONNECTING || s->error) return;
    if (!wire_is_passable(s->host, s->to_host) || !wire_is_passable(s->to_host, s->host)) {
        disturb(s);
        call_at(world->now + (SECOND << s->tries), connect_arrived, s, 0);
        if (s->tries < 4) s->tries++;
        return;
    }
    if (listener) {
        struct socket *other = new_socket(s->to_host, s->to_port, SOCKET_OPEN), **last;
        other->to_host = s->host;
        other->to_port = s->port;
        other->other = s;
        s->other = other;
        for (last = &listener->queue; *last; last = &(*last)->queue) continue;
        *last = other;
        change(listener);
    }
    call_at(world->now + delay(s->to_host, s->host), connect_answered, s, !listener);
}

struct socket *wire_connect(int host, int to_host, int to_port) {
    struct socket *s = new_socket(host, 0, SOCKET_CONNECTING);
    s->port = 1024 + (int)(s->number % 60000);
    s->to_host = to_host;
    s->to_port = to_port;
    call_at(world->now + delay(host, to_host), connect_arrived, s, 0);
    return s;
}

/* ---- Bytes ---- */

static void schedule(struct socket *s, nanos when) {
    if (s->pumping) return;
    s->pumping = true;
    call_at(when, pump, s, 0);
}

size_t wire_room(const struct socket *s) {
    return s->unread < s->window ? s->window - s->unread : 0;
}

static bool is_between_servers(const struct socket *s) {
    return s->host < (int)world->servers && s->to_host < (int)world->servers;
}

/* A window's worth in a tenth of a second, unless links are slow. */
uint64_t wire_bytes_per_s(const struct socket *s) {
    return is_between_servers(s) && world->byte_time ? SECOND / world->byte_time : 10 * s->window;
}

size_t wire_send(struct socket *s, const void *bytes, size_t size) {
    s->probing = size > wire_room(s);
    if (s->probing) size = wire_room(s);
    if (!size) {
        if (s->probing) schedule(s, world->now + RETRY_MIN);
        return 0;
    }
    s->unread += size;
    bytes_add(&s->out, bytes, size);
    s->piece = grown(s->piece, &s->piece_room, s->pieces + 1, sizeof *s->piece);
    nanos due = world->now + delay(s->host, s->to_host);
    if (due < s->last_due) due = s->last_due;
    if (is_between_servers(s)) due += size * world->byte_time;
    s->last_due = due;
    s->piece[s->pieces++] = (struct piece){due, size};
    schedule(s, due);
    return size;
}

/* Nothing passes now: it is tried again later, but not for ever. */
static void stall(struct socket *s) {
    disturb(s);
    if (!s->stalled) {
        s->stalled = world->now;
        s->backoff = RETRY_MIN;
    } else if (s->backoff < RETRY_MAX) {
        s->backoff *= 2;
    }
    nanos timeout = s->state == SOCKET_CLOSED ? ORPHAN_S * SECOND : s->user_timeout;
    if (timeout && world->now - s->stalled >= timeout)
        fail(s, UV_ETIMEDOUT);
    else
        schedule(s, world->now + s->backoff);
}

/* TCP's checksum is weak: between servers a bit may flip unnoticed. */
static void flip(struct socket *s, size_t size) {
    bool between_servers = s->port == PEER_PORT || s->to_port == PEER_PORT;
    if (!world->flips || !between_servers || rng_chance(&world->net, 0.7)) return;
    world->flips--;
    world->coverage.flips++;
    trace("", "a bit flips from host %d to %d", s->host, s->to_host);
    s->out.at[rng_below(&world->net, size)] ^= (unsigned char)(1u << rng_below(&world->net, 8));
}

static void deliver(struct socket *s) {
    struct socket *other = s->other;
    size_t size = 0, pieces = 0;
    while (pieces < s->pieces && s->piece[pieces].due <= world->now)
        size += s->piece[pieces++].size;
    if (!pieces) return;
    flip(s, size);
    hash_event(hash_long(s->out.at, size, s->number), size);
    bytes_add(&other->in, s->out.at, size);
    memmove(s->out.at, s->out.at + size, s->out.used - size);
    s->out.used -= size;
    s->delivered += size;
    s->pieces -= pieces;
    memmove(s->piece, s->piece + pieces, s->pieces * sizeof *s->piece);
    change(other);
}

static void pump(void *context, uint64_t number) {
    struct socket *s = context, *other = s->other;
    (void)number;
    s->pumping = false;
    if (s->error || !other) return;
    if (!wire_is_passable(s->host, s->to_host)) {
        stall(s);
        return;
    }
    if (other->state == SOCKET_CLOSED ||
        other->error) { /* the other end does not know it any more */
        if (!s->pieces && !s->probing) return;
        if (wire_is_passable(s->to_host, s->host))
            send_reset(s, s->to_host);
        else
            stall(s);
        return;
    }
    deliver(s);
    if (s->pieces) {
        schedule(s, s->piece[0].due);
    } else if (s->fin && !s->fin_sent) {
        s->fin_sent = true;
        other->ended = true;
        change(other);
    }
    /* What arrives is acknowledged; if that cannot pass, the sender goes on trying. */
    if (!wire_is_passable(s->to_host, s->host))
        stall(s);
    else
        s->stalled = 0, s->acknowledged = s->delivered;
    s->probing = s->probing && !wire_room(s);
    if (s->probing) schedule(s, world->now + RETRY_MIN);
}

size_t wire_unread(const struct socket *s) { return s->in.used - s->in_read; }

static void window_opened(void *context, uint64_t number) {
    (void)number;
    change(context);
}

size_t wire_read(struct socket *s, void *bytes, size_t max) {
    size_t size = wire_unread(s) < max ? wire_unread(s) : max;
    memcpy(bytes, s->in.at + s->in_read, size);
    s->in_read += size;
    if (s->in_read == s->in.used) s->in.used = s->in_read = 0;
    if (!size || !s->other) return size;
    bool was_full = !wire_room(s->other);
    s->other->unread -= size;
    if (was_full) call_at(world->now + delay(s->host, s->to_host), window_opened, s->other, 0);
    return size;
}

/* ---- Closing ---- */

static void close_listener(struct socket *s) {
    s->state = SOCKET_CLOSED;
    for (struct socket *waiting; (waiting = wire_accept(s));) wire_close(waiting);
}

void wire_close(struct socket *s) {
    enum socket_state state = s->state;
    s->changed = NULL;
    if (state == SOCKET_CLOSED) return;
    if (state == SOCKET_LISTENING) {
        close_listener(s);
        return;
    }
    s->state = SOCKET_CLOSED;
    if (!s->other || s->error) return;
    if (state == SOCKET_CONNECTING || wire_unread(s)) {
        s->pieces = s->out.used = 0;
        send_reset(s->other, s->host);
        return;
    }
    s->fin = true;
    nanos due = world->now + delay(s->host, s->to_host);
    s->last_due = due < s->last_due ? s->last_due : due;
    if (!s->pieces) schedule(s, s->last_due);
}

void wire_process_ended(int host) {
    for (struct socket *s = world->sockets; s; s = s->next)
        if (s->host == host) wire_close(s);
}

void wire_power_failed(int host) {
    for (struct socket *s = world->sockets; s; s = s->next) {
        if (s->host != host) continue;
        s->state = SOCKET_CLOSED;
        s->changed = NULL;
        s->queue = NULL;
        s->pieces = s->out.used = 0;
        s->fin = false;
    }
}

struct socket *wire_any_open(void) {
    unsigned count = 0;
    struct socket *chosen = NULL;
    for (struct socket *s = world->sockets; s; s = s->next)
        if (s->state == SOCKET_OPEN && s->other && !s->error &&
            rng_below(&world->faults, ++count) == 0)
            chosen = s;
    return chosen;
}
