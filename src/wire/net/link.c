#include "wire/net/link.h"

#include <ctype.h>

#include "base/member_id.h"
#include "wire/net/internal.h"

/* ---- Opening and closing ---- */

void links_set_ensemble(struct links *links, uint64_t ensemble) {
    links->config.ensemble = ensemble;
}

void links_set_incarnation(struct links *links, uint64_t incarnation) {
    links->config.incarnation = incarnation;
}

enum { SILENCE_CHECKS = 5 }; /* in the time after which a link counts as silent */

static void check_silence(uv_timer_t *timer) {
    struct links *links = timer->data;
    for (struct peer *peer = links->peers; peer; peer = peer->next) peer_check_silence(peer);
}

struct links *links_open(const struct links_config *config) {
    struct links *links = calloc(1, sizeof *links);
    cv_assert(links);
    cv_assert(!config->tls || tls_is_mutual(config->tls));
    links->config = *config;
    if (!links->config.unauthenticated_max)
        links->config.unauthenticated_max = LINK_UNAUTHENTICATED_MAX;
    if (!links->config.connect_ms) links->config.connect_ms = LINK_CONNECT_MS;
    if (!links->config.handshake_ms) links->config.handshake_ms = LINK_HANDSHAKE_MS;
    if (!links->config.incoming_max) links->config.incoming_max = LINK_INCOMING_MAX;
    if (!links->config.flow) links->config.flow = net_flow;
    if (!links->config.silence_ms) links->config.silence_ms = LINK_SILENCE_MS;
    if (!links->config.frame_ms) links->config.frame_ms = LINK_FRAME_MS;
    if (!links->config.version_oldest) links->config.version_oldest = LINK_VERSION_OLDEST;
    if (!links->config.version_newest) links->config.version_newest = LINK_VERSION_NEWEST;
    cv_assert(links->config.version_oldest <= links->config.version_newest);
    links->unauthenticated_end = &links->unauthenticated;
    rng_seed(&links->rng, config->seed);
    uv_timer_init(config->loop, &links->handshake_timer);
    uv_timer_init(config->loop, &links->lane_timer);
    uv_timer_init(config->loop, &links->silence_timer);
    links->handshake_timer.data = links->lane_timer.data = links->silence_timer.data = links;
    uint32_t check_ms = links->config.silence_ms / SILENCE_CHECKS;
    uv_timer_start(&links->silence_timer, check_silence, check_ms, check_ms);
    links->open = 3;
    return links;
}

void links_release(struct links *links) {
    if (--links->open) return;
    cv_assert(links->closing);
    free(links);
}

static void timer_closed(uv_handle_t *handle) { links_release(handle->data); }

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
    while (links->unauthenticated) incoming_end(links->unauthenticated);
    for (struct listener *listener; (listener = links->listeners);) {
        links->listeners = listener->next;
        close_listener(listener);
    }
    uv_close((uv_handle_t *)&links->handshake_timer, timer_closed);
    uv_close((uv_handle_t *)&links->lane_timer, timer_closed);
    uv_close((uv_handle_t *)&links->silence_timer, timer_closed);
}

/* ---- Addresses ---- */

const char links_need_proof[] =
    "links to other machines need certificates or a shared key (--peer-tls-cert, --peer-key), or a "
    "network that is trusted (--insecure); without them only loopback addresses are used";

bool links_may_use(const struct links *links, const struct sockaddr *address) {
    return links->config.tls || links->config.insecure || net_is_loopback(address);
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
    error = net_listen_at(links->config.loop, &listener->net, (struct sockaddr *)&address, port, 0);
    links->open++;
    if (error) {
        close_listener(listener);
        return uv_strerror(error);
    }
    listener->next = links->listeners;
    links->listeners = listener;
    return NULL;
}

struct peer *peer_find(const struct links *links, uint64_t id) {
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
    dial_open(peer);
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
    if (id == links->config.id) return "a server has no link to itself";
    const char *problem = links_judge(links, host, port);
    if (problem) return problem;
    struct peer *peer = peer_find(links, id);
    if (peer && peer->port == port && strcmp(peer->host, host) == 0) return NULL;
    if (!peer) peer = peer_add(links, id);
    peer_move(peer, host, port);
    return NULL;
}

void links_learn(struct links *links, uint64_t id, const char *host, int32_t port) {
    struct peer *peer = peer_find(links, id);
    if (peer && (!host || !links_judge(links, host, port))) peer_learn(peer, host, port);
}

void links_drop(struct links *links, uint64_t id) {
    struct incoming *incoming = incoming_find(links, id);
    if (incoming) incoming_end(incoming);
    for (struct peer **at = &links->peers, *peer; (peer = *at); at = &peer->next) {
        if (peer->id != id) continue;
        *at = peer->next;
        dial_close(peer);
        return;
    }
}

void links_redial(struct links *links) {
    for (struct peer *peer = links->peers; peer; peer = peer->next) peer_redial(peer);
}

/* ---- Status ---- */

enum { REFUSAL_MS = 5000 }; /* one that is refused dials again before that */

struct link_status link_status(const struct links *links, uint64_t id) {
    const struct peer *peer = peer_find(links, id);
    const struct incoming *incoming = incoming_find(links, id);
    uint64_t now = uv_now(links->config.loop);
    struct link_status status = {0};
    if (incoming) {
        status.incoming = true;
        status.incoming_ms = now - incoming->since_ms;
        status.bytes_in = incoming->bytes_in;
    }
    if (!peer) return status;
    status.host = peer_host(peer);
    status.port = peer_port(peer);
    memcpy(status.address, peer->address_text, sizeof status.address);
    bool was_refused = peer->refusal && now - peer->refused_ms < REFUSAL_MS;
    status.problem = was_refused ? peer->refusal : peer_link(peer) ? NULL : peer->problem;
    if (!peer_link(peer)) return status;
    status.up = true;
    status.up_ms = now - peer->up_ms;
    status.bytes_out = peer->bytes_out;
    return status;
}

uint64_t link_number(const struct links *links, uint64_t id) {
    return links->config.of_group ? id : (uint64_t)member_number((int32_t)id);
}

const char *link_words(const struct links *links, const char *text, char buffer[LINK_WORDS_MAX]) {
    static const struct {
        const char *here, *there;
    } words[] = {{"correct the address of the one that was dialed",
                  "give both the same algorithm, options and list of peers"},
                 {"an ensemble", "a group"},
                 {"ensemble", "group"},
                 {"server", "peer"},
                 {"members", "peers"},
                 {"peer-key", "key"}, /* options */
                 {"peer-tls-", "tls-"}};
    size_t used = 0;
    if (!links->config.of_group) return text;
    for (bool begins = true; *text && used + 1 < LINK_WORDS_MAX;
         begins = !isalpha((unsigned char)text[-1])) {
        size_t i = begins ? 0 : sizeof words / sizeof words[0], length = 0;
        for (; i < sizeof words / sizeof words[0]; i++)
            if (strncmp(text, words[i].here, length = strlen(words[i].here)) == 0) break;
        if (i == sizeof words / sizeof words[0]) {
            buffer[used++] = *text++;
            continue;
        }
        int size = snprintf(buffer + used, LINK_WORDS_MAX - used, "%s", words[i].there);
        used += (size_t)size < LINK_WORDS_MAX - used ? (size_t)size : LINK_WORDS_MAX - used - 1;
        text += length;
    }
    buffer[used] = 0;
    return buffer;
}
