#include <endian.h>

#include "base/logger.h"
#include "wire/net/internal.h"

static const char link_refused[] =
    "a link was refused; its other end is no server of this ensemble, or is set up otherwise";
static const char link_ended[] =
    "the link from a server was ended, because what it sends is not valid; it dials again";

static void handshake_timed_out(uv_timer_t *timer);

/* ---- Lists ---- */

struct incoming *incoming_find(const struct links *links, uint64_t id) {
    struct incoming *incoming = links->incoming;
    while (incoming && incoming->id != id) incoming = incoming->next;
    return incoming;
}

/* The timer is the oldest connection's; all have the same timeout, so the others follow. */
static void set_handshake_timer(struct links *links) {
    uint64_t now = uv_now(links->config.loop);
    uv_timer_stop(&links->handshake_timer);
    if (!links->unauthenticated) return;
    uint64_t deadline = links->unauthenticated->since_ms + links->config.handshake_ms;
    uint64_t left = deadline > now ? deadline - now : 0;
    uv_timer_start(&links->handshake_timer, handshake_timed_out, left, 0);
}

static void unauthenticated_add(struct links *links, struct incoming *incoming) {
    *links->unauthenticated_end = incoming;
    links->unauthenticated_end = &incoming->next;
    links->unauthenticated_count++;
    set_handshake_timer(links);
}

static void unauthenticated_remove(struct links *links, struct incoming *incoming) {
    struct incoming **at = &links->unauthenticated;
    while (*at != incoming) at = &(*at)->next;
    *at = incoming->next;
    incoming->next = NULL;
    if (!*at) links->unauthenticated_end = at;
    links->unauthenticated_count--;
    if (!links->closing) set_handshake_timer(links);
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
        unauthenticated_remove(incoming->links, incoming);
    net_close(&incoming->stream);
}

static void tell(const struct incoming *incoming, bool here) {
    const struct links *links = incoming->links;
    if (links->config.on_incoming)
        links->config.on_incoming(links->config.owner, incoming->id, here, incoming->incarnation);
}

static void end_and_tell(struct incoming *incoming) {
    bool was_known = incoming->known && !incoming->stream.closing;
    incoming_end(incoming);
    if (was_known) tell(incoming, false);
}

/* However many come, one line a second; and one a minute for one that comes again and again. */
static void warn(struct incoming *incoming, const char *message, const char *why) {
    struct links *links = incoming->links;
    struct refusal *newest = links->refusals;
    uint64_t now = uv_now(links->config.loop);
    if (newest->why && now - newest->logged_ms < 1000) return;
    for (struct refusal *r = newest; r < newest + REFUSALS && r->why; r++)
        if (now - r->logged_ms < LOG_AGAIN_MS && strcmp(r->why, why) == 0 &&
            r->id == incoming->id && strcmp(r->address, incoming->address) == 0)
            return;
    memmove(newest + 1, newest, (REFUSALS - 1) * sizeof *newest);
    *newest = (struct refusal){.why = why, .id = incoming->id, .logged_ms = now};
    memcpy(newest->address, incoming->address, sizeof newest->address);
    char said[LINK_WORDS_MAX], reason[LINK_WORDS_MAX];
    const struct logger_field fields[] = {
        LOGGER_UINT("peer", link_number(links, incoming->id)),
        LOGGER_STRING("address", incoming->address),
        LOGGER_STRING("reason", link_words(links, why, reason)),
    };
    unsigned from = incoming->id ? 0 : 1; /* whoever it says that it is */
    logger_write(LOGGER_WARNING, link_words(links, message, said), fields + from,
                 sizeof fields / sizeof fields[0] - from);
}

static void end_because(struct incoming *incoming, const char *why) {
    warn(incoming, incoming->known ? link_ended : link_refused, why);
    end_and_tell(incoming);
}

static void handshake_timed_out(uv_timer_t *timer) {
    struct links *links = timer->data;
    end_because(
        links->unauthenticated,
        "no hello was received in time; if that is a server, check the network and its load");
}

static void stream_closed(struct net_stream *stream) {
    struct incoming *incoming = (struct incoming *)stream;
    struct links *links = incoming->links;
    bytes_close(&incoming->in);
    bytes_close(&incoming->bulk);
    free(incoming);
    links_release(links);
}

static void other_end_gone(struct net_stream *stream) { end_and_tell((struct incoming *)stream); }

/* ---- Frames ---- */

/* Returns NULL, or what is wrong with the frame; *missing: how many of its bytes, as far as is
 * known, are not received yet. */
static const char *check_frame(const struct incoming *incoming, const unsigned char *bytes,
                               size_t size, size_t *missing) {
    struct frame_header header;
    size_t max = incoming->version < LINK_VERSION_LANES ? LINK_FRAME_MAX : LINK_UNCUT_MAX;
    *missing = sizeof header - size;
    if (size < sizeof header) return NULL;
    memcpy(&header, bytes, sizeof header);
    size_t body = le32toh(header.size);
    if (body > max)
        return "a frame is too large; it was damaged on its way, or the sender is not a server";
    *missing = size - sizeof header < body ? body - (size - sizeof header) : 0;
    if (*missing) return NULL;
    if (le32toh(header.checksum) != frame_checksum(&header, bytes + sizeof header, body))
        return "a frame has a wrong checksum; it was damaged on its way, and the link will be "
               "dialed again";
    return NULL;
}

/* Adds a fragment to its frame; NULL, or what is wrong with it. */
static const char *collect(struct incoming *incoming, uint32_t type, const unsigned char *bytes,
                           size_t size) {
    struct bytes *bulk = &incoming->bulk;
    uint32_t plain = type & ~(FRAGMENT_MORE | FRAGMENT_LAST);
    bool fits = bulk->used > 0 || !(type & FRAGMENT_LAST);
    if (!fits || (bulk->used && incoming->bulk_type != plain))
        return "a fragment does not continue its frame; the sender is not a server, or its "
               "protocol differs";
    if (size > LINK_FRAME_MAX - bulk->used)
        return "the fragments of a frame are too large together; the sender is not a server, or "
               "its protocol differs";
    incoming->bulk_type = plain;
    bytes_add(bulk, bytes, size);
    return NULL;
}

static void deliver(struct incoming *incoming, uint32_t type, const unsigned char *bytes,
                    size_t size) {
    struct links *links = incoming->links;
    incoming->delivered = true;
    links->config.on_frame(links->config.owner, incoming->id, incoming->version, type, bytes, size);
}

/* Hands a whole frame to the owner, or collects a fragment; returns its size. */
static size_t hand_over(struct incoming *incoming, const unsigned char *bytes) {
    struct frame_header header;
    memcpy(&header, bytes, sizeof header);
    size_t size = le32toh(header.size);
    uint32_t type = le32toh(header.type);
    bytes += sizeof header;
    if (incoming->version < LINK_VERSION_LANES || !(type & (FRAGMENT_MORE | FRAGMENT_LAST))) {
        deliver(incoming, type, bytes, size);
        return sizeof header + size;
    }
    const char *wrong = collect(incoming, type, bytes, size);
    if (wrong) {
        end_because(incoming, wrong);
    } else if (type & FRAGMENT_LAST && type & FRAGMENT_MORE) {
        net_shrink(&incoming->bulk);
    } else if (type & FRAGMENT_LAST) {
        deliver(incoming, incoming->bulk_type, incoming->bulk.at, incoming->bulk.used);
        net_shrink(&incoming->bulk);
    }
    return sizeof header + size;
}

/* Whether the rest of a frame has been awaited for so long that its length must be wrong.  Those of
 * the bulk lane are small. */
static bool is_overdue(const struct incoming *incoming, size_t missing) {
    enum { BYTES_PER_MS = 1000 };
    const struct links_config *config = &incoming->links->config;
    uint64_t allowed_ms = config->frame_ms + (incoming->in.used + missing) / BYTES_PER_MS;
    return incoming->version >= LINK_VERSION_LANES &&
           uv_now(config->loop) - incoming->frame_ms > allowed_ms;
}

/* Completes the frame that has begun; returns how many bytes that took.  All of its memory is
 * reserved at once: its size is bounded, and its sender is authenticated. */
static size_t complete(struct incoming *incoming, const unsigned char *bytes, size_t size) {
    size_t missing, taken = 0;
    const char *wrong = check_frame(incoming, incoming->in.at, incoming->in.used, &missing);
    while (!wrong && missing && taken < size) {
        size_t more = missing < size - taken ? missing : size - taken;
        bytes_reserve(&incoming->in, missing);
        bytes_add(&incoming->in, bytes + taken, more);
        taken += more;
        wrong = check_frame(incoming, incoming->in.at, incoming->in.used, &missing);
    }
    if (wrong) {
        end_because(incoming, wrong);
    } else if (!missing) {
        hand_over(incoming, incoming->in.at);
        net_shrink(&incoming->in);
    } else if (is_overdue(incoming, missing)) {
        end_because(incoming, "a frame was not complete in time; its length was damaged on its "
                              "way, and the link will be dialed again");
    }
    return taken;
}

static void read_frames(struct incoming *incoming, const unsigned char *bytes, size_t size) {
    size_t at = 0, missing;
    incoming->bytes_in += size;
    if (incoming->in.used) at = complete(incoming, bytes, size);
    while (at < size && !incoming->stream.closing) { /* whoever is called may end the link */
        const char *wrong = check_frame(incoming, bytes + at, size - at, &missing);
        if (wrong) {
            end_because(incoming, wrong);
            return;
        }
        if (missing) {
            bytes_add(&incoming->in, bytes + at, size - at);
            incoming->frame_ms = uv_now(incoming->links->config.loop);
            return;
        }
        at += hand_over(incoming, bytes + at);
    }
}

static void receive_frames(struct incoming *incoming, const unsigned char *bytes, size_t size) {
    const struct links_config *config = &incoming->links->config;
    incoming->delivered = false;
    incoming->heard_ms = uv_now(config->loop);
    read_frames(incoming, bytes, size);
    if (!incoming->delivered && !incoming->stream.closing && config->on_part)
        config->on_part(config->owner, incoming->id);
}

/* ---- Hellos ---- */

static void take_place_of(struct incoming *incoming, const struct incoming *before) {
    bool same = before->incarnation == incoming->incarnation;
    incoming->replaced = same ? before->replaced : before->incarnation;
    incoming->came_back = same ? before->came_back : before->replaced == incoming->incarnation;
}

static void welcome(struct incoming *incoming, const struct hello *hello, uint16_t version) {
    struct links *links = incoming->links;
    struct incoming *before = incoming_find(links, hello->from);
    incoming->incarnation = hello->incarnation;
    if (before) take_place_of(incoming, before);
    if (before) end_and_tell(before);
    if (incoming->stream.closing) return; /* the owner may have closed all links */
    unauthenticated_remove(links, incoming);
    incoming->known = true;
    incoming->id = hello->from;
    incoming->ensemble = hello->ensemble;
    incoming->version = version;
    incoming->since_ms = incoming->heard_ms = uv_now(links->config.loop);
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
        end_because(incoming,
                    "this is not a server of an ensemble; only those should reach this port");
        return;
    }
    if (peer_find(links, hello.from)) incoming->id = hello.from;
    enum hello_verdict verdict = hello_judge(links, &hello);
    bool room =
        links->incoming_count < links->config.incoming_max || incoming_find(links, hello.from);
    if (verdict == HELLO_WELCOME && !room) verdict = HELLO_TOO_MANY;
    struct hello answer = hello_of(links, hello.from, hello_answer(links, hello.version), verdict);
    hello_write(&incoming->stream.out, &answer);
    if (verdict == HELLO_WELCOME) {
        welcome(incoming, &hello, answer.version);
    } else {
        struct peer *peer = peer_find(links, hello.from);
        if (peer) peer->refusal = hello_verdict_text(verdict);
        if (peer) peer->refused_ms = uv_now(links->config.loop);
        warn(incoming, link_refused, hello_verdict_text(verdict));
        net_close_after(&incoming->stream); /* the answer leaves first */
    }
}

static void bytes_received(struct net_stream *stream, const unsigned char *bytes, size_t size) {
    struct incoming *incoming = (struct incoming *)stream;
    if (incoming->known) {
        receive_frames(incoming, bytes, size);
        return;
    }
    if (size > HELLO_SIZE - incoming->in.used) {
        end_because(incoming, "it sent more than a hello; it is not a server of an ensemble, or "
                              "only one of the two uses TLS");
        return;
    }
    bytes_add(&incoming->in, bytes, size);
    if (incoming->in.used == HELLO_SIZE) judge(incoming);
}

static void secured(struct net_stream *stream, const char *failure) {
    if (failure)
        warn((struct incoming *)stream,
             "TLS refused a link; do both servers have the same key, or certificates of the same "
             "authorities?",
             failure);
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
    incoming->since_ms = uv_now(links->config.loop);
    incoming->stream.on_bytes = bytes_received;
    incoming->stream.on_secured = secured;
    incoming->stream.on_end = other_end_gone;
    incoming->stream.on_closed = stream_closed;
    int error = net_accept(listener, &incoming->stream);
    links->open++;
    if (links->unauthenticated_count >= links->config.unauthenticated_max)
        incoming_end(links->unauthenticated);
    unauthenticated_add(links, incoming);
    note_address(incoming);
    if (error || (links->config.tls && !tls_begin(links->config.tls, &incoming->stream)))
        incoming_end(incoming);
    else
        net_read(&incoming->stream, true);
}
