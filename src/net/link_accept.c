#include <endian.h>

#include "net/link_parts.h"

static void out_of_patience(uv_timer_t *timer);

/* ---- Lists ---- */

struct incoming *incoming_find(const struct links *links, uint64_t id) {
    struct incoming *incoming = links->incoming;
    while (incoming && incoming->id != id) incoming = incoming->next;
    return incoming;
}

/* The timer is for the oldest; since all have the same time, the others follow. */
static void set_patience(struct links *links) {
    uint64_t now = uv_now(links->is.loop);
    uv_timer_stop(&links->patience);
    if (!links->strangers) return;
    uint64_t end = links->strangers->since_ms + links->is.handshake_ms;
    uv_timer_start(&links->patience, out_of_patience, end > now ? end - now : 0, 0);
}

static void strangers_add(struct links *links, struct incoming *incoming) {
    *links->strangers_after = incoming;
    links->strangers_after = &incoming->next;
    links->stranger_count++;
    set_patience(links);
}

static void strangers_remove(struct links *links, struct incoming *incoming) {
    struct incoming **at = &links->strangers;
    while (*at != incoming) at = &(*at)->next;
    *at = incoming->next;
    incoming->next = NULL;
    if (!*at) links->strangers_after = at;
    links->stranger_count--;
    if (!links->closing) set_patience(links);
}

static void known_remove(struct links *links, struct incoming *incoming) {
    struct incoming **at = &links->incoming;
    while (*at != incoming) at = &(*at)->next;
    *at = incoming->next;
    links->incoming_count--;
}

/* ---- Ending ---- */

void incoming_end(struct incoming *incoming) {
    if (incoming->stream.closing) return;
    if (incoming->known)
        known_remove(incoming->links, incoming);
    else
        strangers_remove(incoming->links, incoming);
    net_close(&incoming->stream);
}

static void tell(const struct incoming *incoming, bool here) {
    const struct links *links = incoming->links;
    if (links->is.on_incoming)
        links->is.on_incoming(links->is.owner, incoming->id, here, incoming->incarnation);
}

static void end_and_tell(struct incoming *incoming) {
    bool was_known = incoming->known && !incoming->stream.closing;
    incoming_end(incoming);
    if (was_known) tell(incoming, false);
}

/* However many come, one line a second; and one a minute for who comes again and again. */
static void say(struct incoming *incoming, const char *what, const char *why) {
    struct links *links = incoming->links;
    struct refusal *newest = links->refusals;
    uint64_t now = uv_now(links->is.loop);
    if (newest->why && now - newest->said_ms < 1000) return;
    for (struct refusal *r = newest; r < newest + REFUSALS && r->why; r++)
        if (now - r->said_ms < SAID_AGAIN_MS && strcmp(r->why, why) == 0 &&
            strcmp(r->address, incoming->address) == 0)
            return;
    memmove(newest + 1, newest, (REFUSALS - 1) * sizeof *newest);
    *newest = (struct refusal){.why = why, .said_ms = now};
    memcpy(newest->address, incoming->address, sizeof newest->address);
    links->is.say("warning", "%s from %s: %s", what, incoming->address, why);
}

static void end_because(struct incoming *incoming, const char *why) {
    say(incoming, incoming->known ? "the link was ended" : "a link was refused", why);
    end_and_tell(incoming);
}

static void out_of_patience(uv_timer_t *timer) {
    struct links *links = timer->data;
    end_because(links->strangers, "it did not say who it is in time");
}

static void stream_closed(struct net_stream *stream) {
    struct incoming *incoming = (struct incoming *)stream;
    struct links *links = incoming->links;
    bytes_close(&incoming->in);
    free(incoming);
    links_release(links);
}

static void other_end_gone(struct net_stream *stream) { end_and_tell((struct incoming *)stream); }

/* ---- Frames ---- */

/* Whether what is there is a whole frame, or would be one: *missing is what it lacks.  NULL, or
 * what is wrong with it. */
static const char *look_at(const unsigned char *bytes, size_t size, size_t *missing) {
    struct frame_header header;
    *missing = sizeof header - size;
    if (size < sizeof header) return NULL;
    memcpy(&header, bytes, sizeof header);
    size_t body = le32toh(header.size);
    if (body > LINK_FRAME_MAX) return "a frame is too large";
    *missing = size - sizeof header < body ? body - (size - sizeof header) : 0;
    if (*missing) return NULL;
    if (le32toh(header.checksum) != frame_checksum(&header, bytes + sizeof header, body))
        return "the checksum of a frame is wrong";
    return NULL;
}

/* Hands a whole frame over, and returns its size. */
static size_t hand_over(struct incoming *incoming, const unsigned char *bytes) {
    struct links *links = incoming->links;
    struct frame_header header;
    memcpy(&header, bytes, sizeof header);
    size_t size = le32toh(header.size);
    links->is.on_frame(links->is.owner, incoming->id, le32toh(header.type), bytes + sizeof header,
                       size);
    return sizeof header + size;
}

/* Completes the frame that has begun; returns how many bytes that took.  The room for it is made at
 * once: it has a bound, and who sends it is known. */
static size_t complete(struct incoming *incoming, const unsigned char *bytes, size_t size) {
    size_t missing, taken = 0;
    const char *wrong = look_at(incoming->in.at, incoming->in.used, &missing);
    while (!wrong && missing && taken < size) {
        size_t more = missing < size - taken ? missing : size - taken;
        bytes_reserve(&incoming->in, missing);
        bytes_add(&incoming->in, bytes + taken, more);
        taken += more;
        wrong = look_at(incoming->in.at, incoming->in.used, &missing);
    }
    if (wrong) {
        end_because(incoming, wrong);
    } else if (!missing) {
        hand_over(incoming, incoming->in.at);
        net_shrink(&incoming->in);
    }
    return taken;
}

static void read_frames(struct incoming *incoming, const unsigned char *bytes, size_t size) {
    size_t at = 0, missing;
    incoming->bytes_in += size;
    if (incoming->in.used) at = complete(incoming, bytes, size);
    while (at < size && !incoming->stream.closing) { /* whoever is called may end the link */
        const char *wrong = look_at(bytes + at, size - at, &missing);
        if (wrong) {
            end_because(incoming, wrong);
            return;
        }
        if (missing) {
            bytes_add(&incoming->in, bytes + at, size - at);
            return;
        }
        at += hand_over(incoming, bytes + at);
    }
}

/* ---- Hellos ---- */

static void welcome(struct incoming *incoming, const struct hello *hello) {
    struct links *links = incoming->links;
    struct incoming *before = incoming_find(links, hello->from);
    if (before) end_and_tell(before);
    if (incoming->stream.closing) return; /* who was told may have closed all */
    strangers_remove(links, incoming);
    incoming->known = true;
    incoming->id = hello->from;
    incoming->incarnation = hello->incarnation;
    incoming->since_ms = uv_now(links->is.loop);
    incoming->next = links->incoming;
    links->incoming = incoming;
    links->incoming_count++;
    tell(incoming, true);
    if (!incoming->stream.closing) net_flush(&incoming->stream);
}

static void judge(struct incoming *incoming) {
    struct links *links = incoming->links;
    struct hello hello;
    bool good = hello_read(incoming->in.at, &hello);
    net_shrink(&incoming->in);
    if (!good) {
        end_because(incoming, "that is no server of an ensemble");
        return;
    }
    enum hello_verdict verdict = hello_judge(links, &hello);
    bool room = links->incoming_count < LINK_INCOMING_MAX || incoming_find(links, hello.from);
    if (verdict == HELLO_WELCOME && !room) verdict = HELLO_TOO_MANY;
    struct hello answer = hello_of(links, hello.from, verdict);
    hello_write(&incoming->stream.out, &answer);
    if (verdict == HELLO_WELCOME) {
        welcome(incoming, &hello);
    } else {
        say(incoming, "a link was refused", hello_says(verdict));
        net_close_after(&incoming->stream); /* the answer leaves first */
    }
}

static void bytes_came(struct net_stream *stream, const unsigned char *bytes, size_t size) {
    struct incoming *incoming = (struct incoming *)stream;
    if (incoming->known) {
        read_frames(incoming, bytes, size);
        return;
    }
    if (size > HELLO_SIZE - incoming->in.used) {
        end_because(incoming, "it says more than who it is");
        return;
    }
    bytes_add(&incoming->in, bytes, size);
    if (incoming->in.used == HELLO_SIZE) judge(incoming);
}

static void secured(struct net_stream *stream, const char *failure) {
    if (failure) say((struct incoming *)stream, "TLS refused a link", failure);
}

/* ---- Accepting ---- */

static void note_address(struct incoming *incoming) {
    struct sockaddr_storage address;
    int size = sizeof address;
    if (uv_tcp_getpeername(&incoming->stream.tcp, (struct sockaddr *)&address, &size) == 0)
        uv_ip_name((struct sockaddr *)&address, incoming->address, sizeof incoming->address);
}

void incoming_accept(struct net_listener *listener) {
    struct links *links = ((struct listener *)listener)->links;
    struct incoming *incoming = calloc(1, sizeof *incoming);
    cv_assert(incoming);
    incoming->links = links;
    incoming->since_ms = uv_now(links->is.loop);
    incoming->stream.on_bytes = bytes_came;
    incoming->stream.on_secured = secured;
    incoming->stream.on_end = other_end_gone;
    incoming->stream.on_closed = stream_closed;
    int error = net_accept(listener, &incoming->stream);
    links->open++;
    if (links->stranger_count >= LINK_STRANGERS_MAX) incoming_end(links->strangers);
    strangers_add(links, incoming);
    note_address(incoming);
    if (error || (links->is.tls && !tls_begin(links->is.tls, &incoming->stream)))
        incoming_end(incoming);
    else
        net_read(&incoming->stream, true);
}
