#include "net/link.h"

#include <endian.h>

#include "net/link_parts.h"

/* ---- Opening and closing ---- */

struct links *links_open(const struct links_config *config) {
    struct links *links = calloc(1, sizeof *links);
    cv_assert(links);
    cv_assert(!config->tls || tls_is_mutual(config->tls));
    links->is = *config;
    if (!links->is.handshake_ms) links->is.handshake_ms = LINK_HANDSHAKE_MS;
    links->strangers_after = &links->strangers;
    rng_seed(&links->rng, config->seed);
    uv_timer_init(config->loop, &links->patience);
    links->patience.data = links;
    links->open = 1;
    return links;
}

void links_release(struct links *links) {
    if (--links->open) return;
    cv_assert(links->closing);
    free(links);
}

static void patience_closed(uv_handle_t *handle) { links_release(handle->data); }

static void listener_closed(uv_handle_t *handle) {
    struct listener *listener = (struct listener *)handle;
    struct links *links = listener->links;
    free(listener);
    links_release(links);
}

static void close_listener(struct listener *listener) {
    uv_close((uv_handle_t *)&listener->net.tcp, listener_closed);
}

void links_close(struct links *links) {
    if (links->closing) return;
    links->closing = true;
    while (links->peers) links_drop(links, links->peers->id);
    while (links->incoming) incoming_end(links->incoming);
    while (links->strangers) incoming_end(links->strangers);
    for (struct listener *listener; (listener = links->listeners);) {
        links->listeners = listener->next;
        close_listener(listener);
    }
    uv_close((uv_handle_t *)&links->patience, patience_closed);
}

/* ---- Who is where ---- */

const char links_need_proof[] =
    "links to other machines need certificates or a shared key (--peer-key), or a network that is "
    "trusted (--insecure); without, only loopback addresses will do";

bool links_may_use(const struct links *links, const struct sockaddr *address) {
    return links->is.tls || links->is.insecure || net_is_loopback(address);
}

const char *links_listen(struct links *links, const char *host, int32_t *port) {
    struct sockaddr_storage address = {0};
    int error = net_resolve(host, *port, &address);
    if (error) return uv_strerror(error);
    if (!links_may_use(links, (struct sockaddr *)&address)) return links_need_proof;
    struct listener *listener = calloc(1, sizeof *listener);
    cv_assert(listener);
    listener->links = links;
    listener->net.on_connection = incoming_accept;
    error = net_listen_at(links->is.loop, &listener->net, (struct sockaddr *)&address, port, 0);
    links->open++;
    if (error) {
        close_listener(listener);
        return uv_strerror(error);
    }
    listener->next = links->listeners;
    links->listeners = listener;
    return NULL;
}

static struct peer *peer_find(const struct links *links, uint64_t id) {
    struct peer *peer = links->peers;
    while (peer && peer->id != id) peer = peer->next;
    return peer;
}

static struct peer *peer_add(struct links *links, uint64_t id) {
    struct peer *peer = calloc(1, sizeof *peer);
    cv_assert(peer);
    peer->links = links;
    peer->id = id;
    peer->next = links->peers;
    links->peers = peer;
    peer_open(peer);
    return peer;
}

const char *links_judge(const struct links *links, const char *host, int32_t port) {
    struct sockaddr_storage literal = {0};
    if (port < 1 || port > 65535) return "a port is a number from 1 to 65535";
    bool is_literal = peer_literal(host, port, &literal);
    if (is_literal && !links_may_use(links, (struct sockaddr *)&literal)) return links_need_proof;
    return NULL;
}

const char *links_set(struct links *links, uint64_t id, const char *host, int32_t port) {
    if (id == links->is.id) return "a server has no link to itself";
    const char *problem = links_judge(links, host, port);
    if (problem) return problem;
    struct peer *peer = peer_find(links, id);
    if (peer && peer->port == port && strcmp(peer->host, host) == 0) return NULL;
    if (!peer) peer = peer_add(links, id);
    peer_move(peer, host, port);
    return NULL;
}

void links_drop(struct links *links, uint64_t id) {
    struct incoming *incoming = incoming_find(links, id);
    if (incoming) incoming_end(incoming);
    for (struct peer **at = &links->peers, *peer; (peer = *at); at = &peer->next) {
        if (peer->id != id) continue;
        *at = peer->next;
        peer_close(peer);
        return;
    }
}

/* ---- Sending ---- */

struct bytes *link_begin(struct links *links, uint64_t id, uint32_t type) {
    struct peer *peer = peer_find(links, id);
    if (!peer || peer->state != PEER_UP) return NULL;
    struct bytes *out = &peer->outgoing->stream.out;
    cv_assert(!peer->in_frame);
    peer->in_frame = true;
    peer->frame_at = out->used;
    struct frame_header header = {.type = htole32(type)};
    bytes_add(out, &header, sizeof header);
    return out;
}

void link_end(struct links *links, uint64_t id) {
    struct peer *peer = peer_find(links, id);
    cv_assert(peer && peer->in_frame);
    struct bytes *out = &peer->outgoing->stream.out;
    unsigned char *at = out->at + peer->frame_at;
    size_t size = out->used - peer->frame_at - sizeof(struct frame_header);
    cv_assert(size <= LINK_FRAME_MAX);
    struct frame_header header;
    memcpy(&header, at, sizeof header);
    header.size = htole32((uint32_t)size);
    header.checksum = htole32(frame_checksum(&header, at + sizeof header, size));
    memcpy(at, &header, sizeof header);
    peer->bytes_out += sizeof header + size;
    peer->in_frame = false;
}

void links_flush(struct links *links) {
    links->flushing = true; /* those that turn out to have ended say so later */
    for (struct peer *peer = links->peers; peer; peer = peer->next) {
        if (peer->state != PEER_UP || !peer->outgoing->stream.out.used) continue;
        cv_assert(!peer->in_frame);
        net_flush(&peer->outgoing->stream);
    }
    links->flushing = false;
}

size_t link_unsent(const struct links *links, uint64_t id) {
    const struct peer *peer = peer_find(links, id);
    if (!peer || peer->state != PEER_UP) return 0;
    const struct net_stream *stream = &peer->outgoing->stream;
    return stream->out.used + uv_stream_get_write_queue_size((const uv_stream_t *)&stream->tcp);
}

/* ---- Figures ---- */

struct link_figures link_says(const struct links *links, uint64_t id) {
    const struct peer *peer = peer_find(links, id);
    const struct incoming *incoming = incoming_find(links, id);
    uint64_t now = uv_now(links->is.loop);
    struct link_figures says = {0};
    if (incoming) {
        says.incoming = true;
        says.incoming_ms = now - incoming->since_ms;
        says.bytes_in = incoming->bytes_in;
    }
    if (!peer) return says;
    says.host = peer->host;
    says.port = peer->port;
    memcpy(says.address, peer->address_text, sizeof says.address);
    if (peer->state != PEER_UP) return says;
    says.up = true;
    says.up_ms = now - peer->up_ms;
    says.bytes_out = peer->bytes_out;
    return says;
}
