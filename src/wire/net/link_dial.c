#include "base/logger.h"
#include "wire/net/internal.h"

static void timer_fired(uv_timer_t *timer);

struct lookup {
    uv_getaddrinfo_t request;
    struct links *links;
    struct peer *peer; /* NULL: abandoned */
};

/* ---- Ending ---- */

static void stream_closed(struct net_stream *stream) {
    struct outgoing *outgoing = (struct outgoing *)stream;
    struct links *links = outgoing->links;
    free(outgoing);
    links_release(links);
}

struct outgoing *peer_link(const struct peer *peer) {
    struct outgoing *link = peer->previous ? peer->previous : peer->outgoing;
    bool up = peer->previous ? !link->ended : peer->state == PEER_UP;
    return up ? link : NULL;
}

static void close_outgoing(struct outgoing **outgoing) {
    if (!*outgoing) return;
    (*outgoing)->peer = NULL;
    net_close(&(*outgoing)->stream);
    *outgoing = NULL;
}

/* Abandons the attempt or the link, without a callback.  A previous link stays. */
static void hang_up(struct peer *peer) {
    if (peer->lookup) {
        peer->lookup->peer = NULL;
        uv_cancel((uv_req_t *)&peer->lookup->request);
        peer->lookup = NULL;
    }
    close_outgoing(&peer->outgoing);
    uv_timer_stop(&peer->timer);
    if (!peer->previous) lanes_clear(peer);
    peer->state = PEER_WAITING;
}

/* The jitter keeps servers that were cut off together from reconnecting in step. */
static uint64_t delay_ms(struct peer *peer) {
    uint64_t delay = LINK_RETRY_MIN_MS;
    uint64_t max = peer->previous ? peer->links->config.silence_ms / 4 : LINK_RETRY_MAX_MS;
    if (!peer->attempts) return 0;
    for (unsigned i = 1; i < peer->attempts && delay < max; i++) delay *= 2;
    if (delay > max) delay = max;
    return delay - rng_below(&peer->links->rng, delay / 2 + 1);
}

static void try_later(struct peer *peer, enum link_reason reason) {
    struct links *links = peer->links;
    hang_up(peer);
    uv_timer_start(&peer->timer, timer_fired, delay_ms(peer), 0);
    if (peer->previous) return; /* that one may carry again */
    links->config.on_down(links->config.owner, peer->id,
                          reason); /* last: the peer may be dropped */
}

/* A link that breaks as soon as it is up is not dialed in a busy loop. */
static void broke(struct peer *peer) {
    if (uv_now(peer->links->config.loop) - peer->up_ms >= LINK_STEADY_MS) peer->attempts = 0;
    try_later(peer, LINK_BROKEN);
}

static const char *reason_of(const struct peer *peer) {
    static const char *const texts[] = {
        [LINK_REFUSED] =
            "connection refused: no server listens there; start it, or correct its address",
        [LINK_SILENT] = "no answer in time; check that the machine runs and that the network lets "
                        "this port through",
        [LINK_REJECTED] = "the other end closed the connection before the link was up; see its "
                          "log, and check that both use the same kind of authentication"};
    return peer->why ? peer->why : texts[peer->worst];
}

/* A reason that does not change is logged again after a while only. */
static void warn(struct peer *peer) {
    uint64_t now = uv_now(peer->links->config.loop);
    const char *why = peer->problem;
    if (peer->logged && strcmp(peer->logged, why) == 0 && now - peer->logged_ms < LOG_AGAIN_MS)
        return;
    peer->logged = why;
    peer->logged_ms = now;
    char said[LINK_WORDS_MAX], reason[LINK_WORDS_MAX];
    const char *message = "no link to another server; it is dialed again until it answers";
    logger_warning(link_words(peer->links, message, said),
                   LOGGER_UINT("peer", link_number(peer->links, peer->id)),
                   LOGGER_STRING("host", peer->host), LOGGER_INT("port", peer->port),
                   LOGGER_STRING("reason", link_words(peer->links, why, reason)));
}

/* ---- One address after the other ---- */

static void begin(struct peer *peer);
static void failed_here(struct peer *peer, enum link_reason reason);
static void not_connected(struct peer *peer, int error);

static void connected(struct net_stream *stream, int error);
static void secured(struct net_stream *stream, const char *failure);
static void bytes_received(struct net_stream *stream, const unsigned char *bytes, size_t size);
static void drained(struct net_stream *stream);
static void other_end_gone(struct net_stream *stream);

/* Beside a silent link it is tried more often: a network in which a round trip takes longer could
 * not have a leader either. */
static uint64_t connect_ms(const struct peer *peer) {
    return peer->previous ? peer->links->config.silence_ms / 2 : peer->links->config.connect_ms;
}

static int dial(struct peer *peer, const struct sockaddr *address) {
    struct links *links = peer->links;
    struct outgoing *outgoing = calloc(1, sizeof *outgoing);
    cv_assert(outgoing);
    outgoing->stream.on_connected = connected;
    outgoing->stream.on_secured = secured;
    outgoing->stream.on_bytes = bytes_received;
    outgoing->stream.on_drained = drained;
    outgoing->stream.on_end = other_end_gone;
    outgoing->stream.on_closed = stream_closed;
    outgoing->links = links;
    outgoing->peer = peer;
    links->open++;
    peer->outgoing = outgoing;
    peer->state = PEER_CONNECTING;
    uv_ip_name(address, peer->address_text, sizeof peer->address_text);
    uv_timer_start(&peer->timer, timer_fired, connect_ms(peer), 0);
    return net_dial(links->config.loop, &outgoing->stream, address);
}

static void dial_next(struct peer *peer) {
    enum { OFTEN = 8 }; /* attempts, which take a second or two */
    if (peer->tried < peer->addresses) {
        int error = dial(peer, (struct sockaddr *)&peer->address[peer->tried]);
        if (error) not_connected(peer, error);
        return;
    }
    if (!peer->elsewhere && peer->other_host) {
        peer->missed = reason_of(peer);
        peer->elsewhere = true;
        begin(peer);
        return;
    }
    peer->problem = peer->elsewhere ? peer->missed : reason_of(peer);
    char said[LINK_WORDS_MAX], reason[LINK_WORDS_MAX];
    logger_debug(link_words(peer->links, "an attempt to link to another server failed", said),
                 LOGGER_UINT("peer", link_number(peer->links, peer->id)),
                 LOGGER_STRING("host", peer_host(peer)), LOGGER_INT("port", peer_port(peer)),
                 LOGGER_UINT("attempt", peer->attempts),
                 LOGGER_STRING("reason", link_words(peer->links, reason_of(peer), reason)));
    /* A server that is being started or restarted will listen soon; one that ends may have listened
     * still, and closes what has come meanwhile without a word. */
    bool silently = peer->worst == LINK_REFUSED || (peer->worst == LINK_REJECTED && !peer->why);
    bool soon = silently && peer->attempts < OFTEN;
    if (!soon && !peer->previous) warn(peer);
    try_later(peer, peer->worst);
}

/* A name may have several addresses, and a server another one than it should: LINK_REFUSED needs
 * all of them to refuse. */
static void failed_here(struct peer *peer, enum link_reason reason) {
    hang_up(peer);
    peer->tried++;
    if (reason > peer->worst) peer->worst = reason;
    dial_next(peer);
}

static void not_connected(struct peer *peer, int error) {
    if (error != UV_ECONNREFUSED) peer->why = uv_strerror(error);
    failed_here(peer, error == UV_ECONNREFUSED ? LINK_REFUSED : LINK_SILENT);
}

static void rejected(struct peer *peer, const char *why) {
    peer->why = why;
    failed_here(peer, LINK_REJECTED);
}

/* ---- Names ---- */

bool peer_literal(const char *host, int32_t port, struct sockaddr_storage *address) {
    return uv_ip4_addr(host, port, (struct sockaddr_in *)address) == 0 ||
           uv_ip6_addr(host, port, (struct sockaddr_in6 *)address) == 0;
}

static void keep_addresses(struct peer *peer, const struct addrinfo *found) {
    peer->addresses = 0;
    for (; found && peer->addresses < PEER_ADDRESSES_MAX; found = found->ai_next)
        if (links_may_use(peer->links, found->ai_addr))
            memcpy(&peer->address[peer->addresses++], found->ai_addr, found->ai_addrlen);
    if (!peer->addresses) {
        peer->why = links_need_proof;
        peer->worst = LINK_REJECTED;
    }
}

/* The addresses of the previous lookup may still be right. */
static void not_found(struct peer *peer, int error) {
    peer->problem = peer->why = uv_strerror(error);
    warn(peer);
    if (!peer->addresses) peer->worst = LINK_SILENT;
}

static void looked_up(uv_getaddrinfo_t *request, int error, struct addrinfo *found) {
    struct lookup *lookup = (struct lookup *)request;
    struct links *links = lookup->links;
    struct peer *peer = lookup->peer;
    free(lookup);
    if (peer) {
        peer->lookup = NULL;
        if (error)
            not_found(peer, error);
        else
            keep_addresses(peer, found);
        dial_next(peer);
    }
    uv_freeaddrinfo(found);
    links_release(links);
}

static void look_up(struct peer *peer) {
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
    struct lookup *lookup = calloc(1, sizeof *lookup);
    cv_assert(lookup);
    char service[16];
    snprintf(service, sizeof service, "%d", (int)peer_port(peer));
    lookup->links = peer->links;
    lookup->peer = peer;
    int error = uv_getaddrinfo(peer->links->config.loop, &lookup->request, looked_up,
                               peer_host(peer), service, &hints);
    if (error) {
        free(lookup);
        not_found(peer, error);
        dial_next(peer);
        return;
    }
    peer->links->open++;
    peer->lookup = lookup;
    peer->state = PEER_LOOKING_UP;
}

/* ---- An attempt ---- */

/* With another name the addresses of the previous lookup are of no use. */
static void begin(struct peer *peer) {
    if (peer->elsewhere != peer->found_elsewhere) peer->addresses = 0;
    peer->found_elsewhere = peer->elsewhere;
    peer->offer = 0; /* the server may have been upgraded since the attempt before */
    peer->tried = 0;
    if (!peer_literal(peer_host(peer), peer_port(peer), &peer->address[0])) {
        look_up(peer);
        return;
    }
    peer->addresses = 1;
    dial_next(peer);
}

static void attempt(struct peer *peer) {
    peer->attempts++;
    peer->worst = LINK_REFUSED;
    peer->why = NULL;
    peer->elsewhere = false;
    begin(peer);
}

static void timer_fired(uv_timer_t *timer) {
    struct peer *peer = timer->data;
    if (peer->state == PEER_WAITING)
        attempt(peer);
    else if (peer->state == PEER_ENDED)
        broke(peer);
    else
        failed_here(peer, LINK_SILENT);
}

static uint16_t offered(const struct peer *peer) {
    return peer->offer ? peer->offer : peer->links->config.version_newest;
}

static void greet(struct peer *peer) {
    struct hello hello = hello_of(peer->links, peer->id, offered(peer), HELLO_WELCOME);
    hello_write(&peer->outgoing->stream.out, &hello);
    net_flush(&peer->outgoing->stream);
}

static void connected(struct net_stream *stream, int error) {
    struct peer *peer = ((struct outgoing *)stream)->peer;
    struct links *links = peer->links;
    if (error) {
        not_connected(peer, error);
        return;
    }
    peer->state = PEER_GREETING;
    peer->why = NULL;
    uv_timer_start(&peer->timer, timer_fired, links->config.handshake_ms, 0);
    net_read(stream, true);
    if (!links->config.tls)
        greet(peer);
    else if (!tls_begin_as_client(links->config.tls, stream))
        failed_here(peer, LINK_SILENT);
}

static void secured(struct net_stream *stream, const char *failure) {
    struct peer *peer = ((struct outgoing *)stream)->peer;
    if (!failure) greet(peer);
}

static void is_up(struct peer *peer, uint16_t version) {
    struct links *links = peer->links;
    struct outgoing *link = peer->outgoing;
    bool replaces = peer->previous; /* one that has ended during a flush was not told yet */
    uint64_t id = peer->id;
    uv_timer_stop(&peer->timer);
    close_outgoing(&peer->previous);
    lanes_clear(peer);
    link->version = version;
    peer->state = PEER_UP;
    peer->up_ms = peer->acknowledged_ms = uv_now(links->config.loop);
    peer->bytes_out = peer->acknowledged = 0;
    peer->logged = peer->problem = NULL;
    char said[LINK_WORDS_MAX];
    logger_debug(link_words(links, "a link to another server is up", said),
                 LOGGER_UINT("peer", link_number(peer->links, peer->id)),
                 LOGGER_STRING("address", peer->address_text), LOGGER_INT("port", peer_port(peer)),
                 LOGGER_UINT("version", version));
    if (replaces) links->config.on_down(links->config.owner, id, LINK_BROKEN);
    peer = links->closing ? NULL : peer_find(links, id);
    if (peer && peer->outgoing == link) links->config.on_up(links->config.owner, id);
}

/* Each offer is older than the one before, so this ends. */
static void other_version(struct peer *peer, uint16_t answered) {
    if (answered >= peer->links->config.version_oldest && answered < offered(peer)) {
        peer->offer = answered;
        hang_up(peer);
        dial_next(peer); /* the same address */
    } else {
        rejected(peer, hello_verdict_text(HELLO_OTHER_VERSION));
    }
}

static void judge_answer(struct peer *peer) {
    struct hello hello;
    if (!hello_read(peer->outgoing->answer, &hello)) {
        rejected(
            peer,
            "what listens there is not a server of an ensemble; correct the address or the port");
        return;
    }
    uint32_t verdict = hello.verdict;
    if (verdict == HELLO_WELCOME) verdict = hello_judge(peer->links, &hello);
    if (verdict == HELLO_WELCOME && hello.version > offered(peer)) verdict = HELLO_OTHER_VERSION;
    if (verdict == HELLO_WELCOME && hello.from != peer->id) verdict = HELLO_OTHER_SERVER;
    if (verdict == HELLO_WELCOME) {
        peer->outgoing->ensemble = hello.ensemble;
        is_up(peer, hello.version);
    } else if (verdict == HELLO_OTHER_VERSION) {
        other_version(peer, hello.version);
    } else {
        rejected(peer, hello_verdict_text(verdict));
    }
}

static void bytes_received(struct net_stream *stream, const unsigned char *bytes, size_t size) {
    struct outgoing *outgoing = (struct outgoing *)stream;
    if (outgoing != outgoing->peer->outgoing || outgoing->peer->state != PEER_GREETING ||
        size > HELLO_SIZE - outgoing->answered) {
        other_end_gone(stream); /* an acceptor sends its hello, and nothing else */
        return;
    }
    memcpy(outgoing->answer + outgoing->answered, bytes, size);
    outgoing->answered += size;
    if (outgoing->answered == HELLO_SIZE) judge_answer(outgoing->peer);
}

static void drained(struct net_stream *stream) {
    struct outgoing *outgoing = (struct outgoing *)stream;
    if (outgoing == peer_link(outgoing->peer)) lanes_drained(outgoing->peer);
}

void peer_previous_ended(struct peer *peer) {
    struct links *links = peer->links;
    close_outgoing(&peer->previous);
    lanes_clear(peer);
    links->config.on_down(links->config.owner, peer->id, LINK_BROKEN);
}

static void other_end_gone(struct net_stream *stream) {
    struct outgoing *outgoing = (struct outgoing *)stream;
    struct peer *peer = outgoing->peer;
    bool flushing = peer->links->flushing;
    if (outgoing == peer->previous) {
        bool was_ended = outgoing->ended;
        outgoing->ended = true;
        if (flushing)
            lanes_wake(peer->links, 0);
        else if (!was_ended)
            peer_previous_ended(peer);
    } else if (peer->state == PEER_GREETING) {
        rejected(peer, tls_failure(stream));
    } else if (peer->state == PEER_UP && !flushing) {
        broke(peer);
    } else if (peer->state == PEER_UP) {
        peer->state = PEER_ENDED;
        uv_timer_start(&peer->timer, timer_fired, 0, 0);
    }
}

/* ---- Silence ---- */

/* The attempt is given up, unless the other end may have accepted it: then it has ended the old
 * link. */
static void keep_previous(struct peer *peer) {
    struct outgoing *link = peer->previous;
    if (peer->state == PEER_GREETING) return;
    hang_up(peer);
    peer->outgoing = link;
    peer->previous = NULL;
    peer->state = PEER_UP;
}

static void dial_beside(struct peer *peer) {
    char said[LINK_WORDS_MAX];
    const char *message = "a link to another server is silent; another one is dialed beside it";
    logger_debug(link_words(peer->links, message, said),
                 LOGGER_UINT("peer", link_number(peer->links, peer->id)),
                 LOGGER_STRING("address", peer->address_text));
    peer->previous = peer->outgoing;
    peer->outgoing = NULL;
    peer->attempts = 0;
    peer->state = PEER_WAITING;
    uv_timer_start(&peer->timer, timer_fired, 0, 0);
}

void peer_check_silence(struct peer *peer) {
    const struct outgoing *link = peer_link(peer);
    struct net_flow flow;
    uint64_t now = uv_now(peer->links->config.loop);
    if (!link || !peer->links->config.flow(&link->stream, &flow)) return;
    if (!flow.queued || flow.acknowledged != peer->acknowledged) {
        peer->acknowledged = flow.acknowledged;
        peer->acknowledged_ms = now;
        if (peer->previous) keep_previous(peer);
    } else if (!peer->previous && now - peer->acknowledged_ms >= peer->links->config.silence_ms) {
        dial_beside(peer);
    }
}

/* ---- Peers ---- */

void dial_open(struct peer *peer) {
    uv_timer_init(peer->links->config.loop, &peer->timer);
    peer->timer.data = peer;
    peer->links->open++;
}

const char *peer_host(const struct peer *peer) {
    return peer->elsewhere ? peer->other_host : peer->host;
}

int32_t peer_port(const struct peer *peer) {
    return peer->elsewhere ? peer->other_port : peer->port;
}

void peer_redial(struct peer *peer) {
    close_outgoing(&peer->previous);
    hang_up(peer);
    peer->elsewhere = false;
    peer->addresses = peer->attempts = 0;
    peer->logged = NULL;
    uv_timer_start(&peer->timer, timer_fired, 0, 0);
}

static void forget_other(struct peer *peer) {
    free(peer->other_host);
    peer->other_host = NULL;
    peer->elsewhere = false; /* a link stays all the same */
}

static bool is_at(const struct peer *peer, const char *host, int32_t port) {
    return peer->port == port && strcmp(peer->host, host) == 0;
}

void peer_move(struct peer *peer, const char *host, int32_t port) {
    bool stays = peer->elsewhere && peer_link(peer);
    free(peer->host);
    peer->host = strdup(host);
    cv_assert(peer->host);
    peer->port = port;
    if (peer->other_host && is_at(peer, peer->other_host, peer->other_port)) forget_other(peer);
    if (!stays) peer_redial(peer);
}

void peer_learn(struct peer *peer, const char *host, int32_t port) {
    if (host && peer->other_host && peer->other_port == port && strcmp(peer->other_host, host) == 0)
        return;
    forget_other(peer);
    if (!host || is_at(peer, host, port)) return;
    peer->other_host = strdup(host);
    cv_assert(peer->other_host);
    peer->other_port = port;
}

static void timer_closed(uv_handle_t *handle) {
    struct peer *peer = handle->data;
    struct links *links = peer->links;
    free(peer->host);
    free(peer->other_host);
    free(peer);
    links_release(links);
}

void dial_close(struct peer *peer) {
    close_outgoing(&peer->previous);
    hang_up(peer);
    uv_close((uv_handle_t *)&peer->timer, timer_closed);
}
