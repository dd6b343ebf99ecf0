#include "net/link_parts.h"

static void time_came(uv_timer_t *timer);

struct lookup {
    uv_getaddrinfo_t request;
    struct links *links;
    struct peer *peer; /* NULL: it does not wait for that any more */
};

/* ---- Ending ---- */

static void stream_closed(struct net_stream *stream) {
    struct outgoing *outgoing = (struct outgoing *)stream;
    struct links *links = outgoing->links;
    free(outgoing);
    links_release(links);
}

/* Whatever was begun is over, and nothing is heard of it any more. */
static void hang_up(struct peer *peer) {
    if (peer->lookup) {
        peer->lookup->peer = NULL;
        uv_cancel((uv_req_t *)&peer->lookup->request);
        peer->lookup = NULL;
    }
    if (peer->outgoing) {
        peer->outgoing->peer = NULL;
        net_close(&peer->outgoing->stream);
        peer->outgoing = NULL;
    }
    uv_timer_stop(&peer->timer);
    peer->in_frame = false;
    peer->state = PEER_WAITING;
}

/* The jitter keeps servers that were cut off together from coming back in step. */
static uint64_t delay_ms(struct peer *peer) {
    uint64_t delay = LINK_RETRY_MIN_MS;
    if (!peer->attempts) return 0;
    for (unsigned i = 1; i < peer->attempts && delay < LINK_RETRY_MAX_MS; i++) delay *= 2;
    if (delay > LINK_RETRY_MAX_MS) delay = LINK_RETRY_MAX_MS;
    return delay - rng_below(&peer->links->rng, delay / 2 + 1);
}

static void try_later(struct peer *peer, enum link_reason reason) {
    struct links *links = peer->links;
    hang_up(peer);
    uv_timer_start(&peer->timer, time_came, delay_ms(peer), 0);
    links->is.on_down(links->is.owner, peer->id, reason); /* last: the peer may be dropped */
}

/* One that breaks as soon as it is up is not dialed without end. */
static void broke(struct peer *peer) {
    if (uv_now(peer->links->is.loop) - peer->up_ms >= LINK_STEADY_MS) peer->attempts = 0;
    try_later(peer, LINK_BROKEN);
}

/* What does not change is said again after a while. */
static void say_why(struct peer *peer) {
    static const char *const usual[] = {[LINK_REFUSED] = "nobody listens there",
                                        [LINK_SILENT] = "no answer",
                                        [LINK_REJECTED] = "it ended the connection"};
    uint64_t now = uv_now(peer->links->is.loop);
    const char *why = peer->why ? peer->why : usual[peer->worst];
    if (peer->said && strcmp(peer->said, why) == 0 && now - peer->said_ms < SAID_AGAIN_MS) return;
    peer->said = why;
    peer->said_ms = now;
    peer->links->is.say("warning", "no link to server %llu at %s:%d: %s",
                        (unsigned long long)peer->id, peer->host, (int)peer->port, why);
}

/* ---- One address after the other ---- */

static void failed_here(struct peer *peer, enum link_reason reason);
static void not_connected(struct peer *peer, int error);

static void connected(struct net_stream *stream, int error);
static void secured(struct net_stream *stream, const char *failure);
static void bytes_came(struct net_stream *stream, const unsigned char *bytes, size_t size);
static void drained(struct net_stream *stream);
static void other_end_gone(struct net_stream *stream);

static int dial(struct peer *peer, const struct sockaddr *address) {
    struct links *links = peer->links;
    struct outgoing *outgoing = calloc(1, sizeof *outgoing);
    cv_assert(outgoing);
    outgoing->stream.on_connected = connected;
    outgoing->stream.on_secured = secured;
    outgoing->stream.on_bytes = bytes_came;
    outgoing->stream.on_drained = drained;
    outgoing->stream.on_end = other_end_gone;
    outgoing->stream.on_closed = stream_closed;
    outgoing->links = links;
    outgoing->peer = peer;
    links->open++;
    peer->outgoing = outgoing;
    peer->state = PEER_CONNECTING;
    uv_ip_name(address, peer->address_text, sizeof peer->address_text);
    uv_timer_start(&peer->timer, time_came, LINK_CONNECT_MS, 0);
    return net_dial(links->is.loop, &outgoing->stream, address);
}

static void dial_next(struct peer *peer) {
    enum { REFUSED_OFTEN = 8 }; /* a second or two */
    if (peer->tried < peer->addresses) {
        int error = dial(peer, (struct sockaddr *)&peer->address[peer->tried]);
        if (error) not_connected(peer, error);
        return;
    }
    /* A server that has just been started, or is started again, will be there soon. */
    bool soon = peer->worst == LINK_REFUSED && peer->attempts < REFUSED_OFTEN;
    if (!soon) say_why(peer);
    try_later(peer, peer->worst);
}

/* A name may have several addresses: nobody listens there only if nobody does at any of them. */
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

/* The addresses of the last time may still do. */
static void not_found(struct peer *peer, int error) {
    peer->why = uv_strerror(error);
    say_why(peer);
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
    snprintf(service, sizeof service, "%d", (int)peer->port);
    lookup->links = peer->links;
    lookup->peer = peer;
    int error = uv_getaddrinfo(peer->links->is.loop, &lookup->request, looked_up, peer->host,
                               service, &hints);
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

static void attempt(struct peer *peer) {
    peer->attempts++;
    peer->tried = 0;
    peer->worst = LINK_REFUSED;
    peer->why = NULL;
    if (!peer_literal(peer->host, peer->port, &peer->address[0])) {
        look_up(peer);
        return;
    }
    peer->addresses = 1;
    dial_next(peer);
}

static void time_came(uv_timer_t *timer) {
    struct peer *peer = timer->data;
    if (peer->state == PEER_WAITING)
        attempt(peer);
    else if (peer->state == PEER_ENDED)
        broke(peer);
    else
        failed_here(peer, LINK_SILENT);
}

static void greet(struct peer *peer) {
    struct hello hello = hello_of(peer->links, peer->id, HELLO_WELCOME);
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
    uv_timer_start(&peer->timer, time_came, links->is.handshake_ms, 0);
    net_read(stream, true);
    if (!links->is.tls)
        greet(peer);
    else if (!tls_begin_as_client(links->is.tls, stream))
        failed_here(peer, LINK_SILENT);
}

static void secured(struct net_stream *stream, const char *failure) {
    struct peer *peer = ((struct outgoing *)stream)->peer;
    if (!failure) greet(peer);
}

static void is_up(struct peer *peer) {
    struct links *links = peer->links;
    uv_timer_stop(&peer->timer);
    peer->state = PEER_UP;
    peer->up_ms = uv_now(links->is.loop);
    peer->bytes_out = 0;
    peer->said = NULL;
    links->is.on_up(links->is.owner, peer->id);
}

static void judge_answer(struct peer *peer) {
    struct hello hello;
    if (!hello_read(peer->outgoing->answer, &hello)) {
        rejected(peer, "what is there is no server of an ensemble");
        return;
    }
    uint32_t verdict = hello.verdict;
    if (verdict == HELLO_WELCOME) verdict = hello_judge(peer->links, &hello);
    if (verdict == HELLO_WELCOME && hello.from != peer->id) verdict = HELLO_OTHER_SERVER;
    if (verdict == HELLO_WELCOME)
        is_up(peer);
    else
        rejected(peer, hello_says(verdict));
}

static void bytes_came(struct net_stream *stream, const unsigned char *bytes, size_t size) {
    struct outgoing *outgoing = (struct outgoing *)stream;
    if (outgoing->peer->state != PEER_GREETING || size > HELLO_SIZE - outgoing->answered) {
        other_end_gone(stream); /* who answers says hello, and nothing else */
        return;
    }
    memcpy(outgoing->answer + outgoing->answered, bytes, size);
    outgoing->answered += size;
    if (outgoing->answered == HELLO_SIZE) judge_answer(outgoing->peer);
}

static void drained(struct net_stream *stream) {
    struct peer *peer = ((struct outgoing *)stream)->peer;
    struct links *links = peer->links;
    if (peer->state == PEER_UP) links->is.on_drained(links->is.owner, peer->id);
}

static void other_end_gone(struct net_stream *stream) {
    struct peer *peer = ((struct outgoing *)stream)->peer;
    if (peer->state == PEER_GREETING) {
        rejected(peer, tls_failure(stream));
    } else if (peer->state == PEER_UP && !peer->links->flushing) {
        broke(peer);
    } else if (peer->state == PEER_UP) {
        peer->state = PEER_ENDED;
        uv_timer_start(&peer->timer, time_came, 0, 0);
    }
}

/* ---- Peers ---- */

void peer_open(struct peer *peer) {
    uv_timer_init(peer->links->is.loop, &peer->timer);
    peer->timer.data = peer;
    peer->links->open++;
}

void peer_move(struct peer *peer, const char *host, int32_t port) {
    hang_up(peer);
    free(peer->host);
    peer->host = strdup(host);
    cv_assert(peer->host);
    peer->port = port;
    peer->addresses = peer->attempts = 0;
    peer->said = NULL;
    uv_timer_start(&peer->timer, time_came, 0, 0);
}

static void timer_closed(uv_handle_t *handle) {
    struct peer *peer = handle->data;
    struct links *links = peer->links;
    free(peer->host);
    free(peer);
    links_release(links);
}

void peer_close(struct peer *peer) {
    hang_up(peer);
    uv_close((uv_handle_t *)&peer->timer, timer_closed);
}
