/* The lanes of a link: what is written to them, and when the system gets it. */
#include <endian.h>

#include "wire/net/internal.h"

enum {
    MOMENT_US = 50000,        /* so long a link may have work in the system ... */
    WINDOW_MIN = 16 << 10,    /* ... and so many bytes in any case */
    GIVEN_MAX = 256 << 10,    /* bytes for the system at once */
    GIVEN_BLINDLY = 64 << 10, /* of a system that tells nothing */
    LOOK_AGAIN_MS = 5,        /* at links whose window is full */
    TAKEN_BLINDLY = 1 << 20,  /* bytes in the lane of a link about which nothing is known yet */
};

/* ---- Writing frames ---- */

uint16_t link_version(const struct links *links, uint64_t id) {
    const struct peer *peer = peer_find(links, id);
    const struct outgoing *link = peer ? peer_link(peer) : NULL;
    return link ? link->version : 0;
}

static size_t waiting(const struct peer *peer) {
    return peer->bulk.used - peer->bulk_at - peer->bulk_cut;
}

/* A frame of the bulk lane has to wait behind others, or for the system. */
static bool has_to_wait(const struct peer *peer, const struct outgoing *link) {
    return link->version >= LINK_VERSION_LANES &&
           (peer->bulk.used || net_unsent(&link->stream) >= LINK_FRAGMENT_MAX);
}

struct bytes *link_begin(struct links *links, uint64_t id, uint32_t type, enum link_lane lane) {
    struct peer *peer = peer_find(links, id);
    struct outgoing *link = peer ? peer_link(peer) : NULL;
    if (!link) return NULL;
    cv_assert(!peer->frame && !(type & (FRAGMENT_MORE | FRAGMENT_LAST)));
    peer->frame = lane == LINK_BULK && has_to_wait(peer, link) ? &peer->bulk : &link->stream.out;
    peer->frame_at = peer->frame->used;
    peer->frame_lane = lane;
    struct frame_header header = {.type = htole32(type)};
    bytes_add(peer->frame, &header, sizeof header);
    return peer->frame;
}

/* Fills in the header of a frame that is in its place. */
static void seal(unsigned char *at, size_t size) {
    struct frame_header header;
    memcpy(&header, at, sizeof header);
    header.size = htole32((uint32_t)size);
    header.checksum = htole32(frame_checksum(&header, at + sizeof header, size));
    memcpy(at, &header, sizeof header);
}

void link_end(struct links *links, uint64_t id) {
    struct peer *peer = peer_find(links, id);
    cv_assert(peer && peer->frame);
    const struct outgoing *link = peer_link(peer);
    struct bytes *out = peer->frame;
    unsigned char *at = out->at + peer->frame_at;
    size_t size = out->used - peer->frame_at - sizeof(struct frame_header);
    uint32_t stored = htole32((uint32_t)size);
    cv_assert(size <= LINK_FRAME_MAX);
    peer->frame = NULL;
    bool large = peer->frame_lane == LINK_BULK && size > LINK_FRAGMENT_MAX &&
                 link->version >= LINK_VERSION_LANES;
    if (out != &peer->bulk && !large) {
        cv_assert(size <= LINK_UNCUT_MAX || link->version < LINK_VERSION_LANES);
        seal(at, size);
        peer->bytes_out += sizeof(struct frame_header) + size;
        return;
    }
    memcpy(at + offsetof(struct frame_header, size), &stored, sizeof stored);
    if (out == &peer->bulk) return;
    bytes_add(&peer->bulk, at, sizeof(struct frame_header) + size);
    out->used = peer->frame_at;
}

/* ---- The bulk lane ---- */

void lanes_clear(struct peer *peer) {
    bytes_close(&peer->bulk);
    peer->bulk_at = peer->bulk_cut = peer->window = 0;
    peer->frame = NULL;
    peer->refused = false;
}

/* Each byte is moved once on average. */
static void forget_sent(struct peer *peer) {
    struct bytes *bulk = &peer->bulk;
    if (peer->bulk_at == bulk->used) {
        net_shrink(bulk);
        peer->bulk_at = 0;
    } else if (peer->bulk_at > bulk->used / 2) {
        bulk->used -= peer->bulk_at;
        memmove(bulk->at, bulk->at + peer->bulk_at, bulk->used);
        peer->bulk_at = 0;
    }
}

/* Cuts a fragment off the lane; a frame that is small enough is one, and is left as it is. */
static size_t cut(struct peer *peer, struct bytes *out) {
    struct frame_header header;
    memcpy(&header, peer->bulk.at + peer->bulk_at, sizeof header);
    size_t size = le32toh(header.size), left = size - peer->bulk_cut;
    size_t part = left < LINK_FRAGMENT_MAX ? left : LINK_FRAGMENT_MAX, at = out->used;
    if (part < left)
        header.type |= htole32(FRAGMENT_MORE);
    else if (peer->bulk_cut)
        header.type |= htole32(FRAGMENT_LAST);
    bytes_add(out, &header, sizeof header);
    bytes_add(out, peer->bulk.at + peer->bulk_at + sizeof header + peer->bulk_cut, part);
    seal(out->at + at, part);
    peer->bytes_out += sizeof header + part;
    peer->bulk_cut += part;
    if (part == left) {
        peer->bulk_at += sizeof header + size;
        peer->bulk_cut = 0;
        forget_sent(peer);
    }
    return sizeof header + part;
}

/* How much the system is to get now: what it has is on its way, and can no longer be overtaken. */
static size_t room(struct peer *peer, const struct outgoing *link) {
    struct net_flow flow;
    if (!peer->links->config.flow(&link->stream, &flow)) return GIVEN_BLINDLY;
    uint64_t us = flow.round_trip_us < 1000000 ? flow.round_trip_us + MOMENT_US : MOMENT_US;
    peer->window = WINDOW_MIN + flow.bytes_per_s / 1000 * us / 1000;
    if (flow.queued >= peer->window) return 0;
    size_t left = peer->window - flow.queued;
    return left < GIVEN_MAX ? left : GIVEN_MAX;
}

static void flush(struct peer *peer) {
    struct outgoing *link;
    if ((link = peer_link(peer)) && link->stream.out.used) net_flush(&link->stream);
    while ((link = peer_link(peer)) && peer->bulk.used && !net_unsent(&link->stream)) {
        size_t left = room(peer, link);
        if (!left) {
            lanes_wake(peer->links, LOOK_AGAIN_MS);
            return;
        }
        for (size_t given = 0; given < left && peer->bulk.used;)
            given += cut(peer, &link->stream.out);
        net_flush(&link->stream);
    }
}

static bool takes_bulk(const struct peer *peer) {
    size_t max = peer->window ? peer->window : TAKEN_BLINDLY;
    return waiting(peer) < max;
}

static void flush_all(struct links *links) {
    links->flushing = true; /* a link that turns out to have ended calls back later */
    for (struct peer *peer = links->peers; peer; peer = peer->next) {
        cv_assert(!peer->frame);
        flush(peer);
    }
    links->flushing = false;
}

void links_flush(struct links *links) {
    flush_all(links);
    for (struct peer *peer = links->peers; peer; peer = peer->next)
        if (peer->refused && takes_bulk(peer)) lanes_wake(links, 0);
}

void link_discard_bulk(struct links *links, uint64_t id) {
    struct peer *peer = peer_find(links, id);
    struct outgoing *link = peer ? peer_link(peer) : NULL;
    if (!link || !peer->bulk.used) return;
    cv_assert(!peer->frame);
    if (peer->bulk_cut) { /* the other end has a part of it */
        struct frame_header header;
        memcpy(&header, peer->bulk.at + peer->bulk_at, sizeof header);
        header.type |= htole32(FRAGMENT_MORE | FRAGMENT_LAST);
        size_t at = link->stream.out.used;
        bytes_add(&link->stream.out, &header, sizeof header);
        seal(link->stream.out.at + at, 0);
        peer->bytes_out += sizeof header;
    }
    bytes_close(&peer->bulk);
    peer->bulk_at = peer->bulk_cut = 0;
}

/* ---- Room ---- */

size_t link_unsent(const struct links *links, uint64_t id) {
    const struct peer *peer = peer_find(links, id);
    const struct outgoing *link = peer ? peer_link(peer) : NULL;
    if (!link) return 0;
    const struct net_stream *stream = &link->stream;
    return waiting(peer) + stream->out.used +
           uv_stream_get_write_queue_size((const uv_stream_t *)&stream->tcp);
}

bool link_takes_bulk(struct links *links, uint64_t id) {
    struct peer *peer = peer_find(links, id);
    if (!peer) return false;
    peer->refused = !takes_bulk(peer);
    return !peer->refused;
}

bool link_bulk_waits(const struct links *links, uint64_t id) {
    const struct peer *peer = peer_find(links, id);
    return peer && peer->bulk.used;
}

uint64_t link_duration_ms(const struct links *links, uint64_t id, uint64_t bytes) {
    const struct peer *peer = peer_find(links, id);
    const struct outgoing *link = peer ? peer_link(peer) : NULL;
    struct net_flow flow;
    if (!link || !links->config.flow(&link->stream, &flow) || !flow.bytes_per_s) return 0;
    return bytes / (flow.bytes_per_s / 1000 + 1);
}

static bool tell_room(struct peer *peer) {
    struct links *links = peer->links;
    if (!peer->refused || !peer_link(peer) || !takes_bulk(peer)) return false;
    peer->refused = false;
    links->config.on_drained(links->config.owner, peer->id);
    return true;
}

void lanes_drained(struct peer *peer) {
    struct links *links = peer->links;
    links->flushing = true;
    flush(peer);
    links->flushing = false;
    if (peer_link(peer) && !link_unsent(links, peer->id)) {
        peer->refused = false;
        links->config.on_drained(links->config.owner, peer->id);
    } else {
        tell_room(peer);
    }
}

/* One of those that have something to tell; the owner may then have dropped others. */
static bool tell_one(struct links *links) {
    for (struct peer *peer = links->peers; peer; peer = peer->next) {
        if (peer->previous && peer->previous->ended) return peer_previous_ended(peer), true;
        if (tell_room(peer)) return true;
    }
    return false;
}

static void look(uv_timer_t *timer) {
    struct links *links = timer->data;
    flush_all(links);
    while (!links->closing && tell_one(links)) continue;
}

void lanes_wake(struct links *links, uint64_t delay_ms) {
    uv_timer_t *timer = &links->lane_timer;
    if (uv_is_active((uv_handle_t *)timer) && delay_ms) return;
    uv_timer_start(timer, look, delay_ms, 0);
}
