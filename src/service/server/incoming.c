/* What clients send: how much of it is kept, and who gives way when that is too much. */
#include "service/server/internal.h"

enum {
    BUFFER_KEPT = 1 << 14,     /* bytes that an empty buffer may keep */
    READ_WHILE_FULL = 1 << 16, /* bytes of requests: many pings, and little else */
    LITTLE = 1 << 10,          /* bytes: pings and most reads are no longer */
};

static bool is_too_much(const struct connections *all) { return all->received > all->received_max; }

void connection_count_received(struct connection *c, size_t kept) {
    c->server->connections.received += kept - c->kept;
    c->kept = kept;
}

/* ---- Reading ---- */

/* Who asks for little is heard however much others have sent. */
static bool may_read_on(const struct connection *c) {
    return c->in.used < LITTLE || !is_too_much(&c->server->connections);
}

static void pause_reading(struct connection *c) {
    c->paused = c->server->connections.paused = true;
}

size_t connection_room(struct net_stream *stream) {
    struct connection *c = (struct connection *)stream;
    if (!is_too_much(&c->server->connections)) return SIZE_MAX;
    if (may_read_on(c)) return LITTLE - c->in.used;
    pause_reading(c);
    return 0;
}

static void shrink(struct connection *c) {
    if (c->answered == c->in.used) {
        c->in.used = c->answered = c->scanned = c->read_index_end = 0;
        if (c->in.room > BUFFER_KEPT) bytes_close(&c->in);
    } else if (c->answered > c->in.used / 2) {
        memmove(c->in.at, c->in.at + c->answered, c->in.used - c->answered);
        c->in.used -= c->answered;
        c->scanned -= c->answered;
        c->read_index_end -= c->read_index_end < c->answered ? c->read_index_end : c->answered;
        c->answered = 0;
    }
}

void connection_tidy(struct connection *c) {
    shrink(c);
    connection_count_received(c, c->in.room);
    /* Who takes a long answer sends pings meanwhile, and its session lives by them. */
    bool answers_wait = net_unsent(&c->stream) > CONNECTION_UNSENT_MAX;
    size_t max = answers_wait ? READ_WHILE_FULL : 2 * (size_t)c->server->settings.packet_bytes_max;
    bool reads = c->in.used - c->answered <= max;
    c->paused = false;
    if (reads && !may_read_on(c)) pause_reading(c);
    if (c->state != CONNECTION_ENDING)
        net_read(&c->stream, reads && !c->paused && !c->server->leaving_us);
}

/* ---- Giving way ---- */

/* Whether it has sent a part of a request, and nothing that will be answered before all of it is
 * there; or takes no answers, so that nothing is. */
static bool sends_a_part(const struct connection *c) {
    enum { MUCH = 1 << 16 };
    bool takes_nothing = c->unsent > CONNECTION_UNSENT_MAX && c->kept > MUCH;
    return c->in.used && (takes_nothing || !connection_awaits_answer(c));
}

enum { AT_A_TIME = 16 };

/* Those that are at their requests for the longest; returns how many.  None where most of the
 * memory is in requests that are complete: those are answered soon. */
static unsigned slowest_to_ask(const struct connections *all, struct connection **slowest) {
    unsigned count = 0;
    size_t parts = 0;
    for (uint32_t i = 1; i <= all->slots; i++) {
        struct connection *c = all->at[i];
        if (!c || !sends_a_part(c)) continue;
        parts += c->kept;
        bool is_full = count == AT_A_TIME;
        if (is_full && slowest[count - 1]->met_us <= c->met_us) continue;
        unsigned at = is_full ? count - 1 : count++;
        for (; at && slowest[at - 1]->met_us > c->met_us; at--) slowest[at] = slowest[at - 1];
        slowest[at] = c;
    }
    return parts > all->received / 2 ? count : 0;
}

static void release_empty(const struct connections *all) {
    for (uint32_t i = 1; i <= all->slots; i++) {
        struct connection *c = all->at[i];
        if (!c || c->in.used || !c->in.room) continue;
        bytes_close(&c->in);
        connection_count_received(c, 0);
    }
}

static void read_on(struct connections *all) {
    all->paused = false;
    for (uint32_t i = 1; i <= all->slots; i++) {
        struct connection *c = all->at[i];
        if (!c || !c->paused) continue;
        c->paused = false;
        if (c->state != CONNECTION_ENDING) connection_process(c);
    }
}

/* Parts of requests may not take the memory that others need. */
void connections_bound_received(struct server *s) {
    struct connections *all = &s->connections;
    struct connection *slowest[AT_A_TIME];
    if (is_too_much(all)) release_empty(all);
    unsigned count = is_too_much(all) ? slowest_to_ask(all, slowest) : 0;
    for (unsigned i = 0; i < count && is_too_much(all); i++) {
        s->statistics.refused[REFUSED_memory]++;
        connection_end(slowest[i]);
    }
    if (is_too_much(all))
        all->deferred |= count != 0; /* there may be more of them */
    else if (all->paused)
        read_on(all);
}
