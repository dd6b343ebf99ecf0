#include "fence/proxy.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/logger.h"
#include "fence/view.h"

enum {
    IN_MAX = 64 << 10,      /* of a client, while it cannot be passed on */
    UNSENT_MAX = 256 << 10, /* to either side, before the other is read no more */
    TICK_MS = 250,
    LINGER_MS = 2000,  /* so that a client can read the last answer before its connection ends */
    REACH_MS = 3000,   /* without a connection the servers count as unreachable after that */
    KEEP_ALIVE_S = 60, /* to notice a client whose machine is gone */
    FILES_APART = 64,  /* descriptors that are not of relays */
    EXIT_SYSTEM_ = 3,
};

#define RELAY_OF(MEMBER, POINTER)                                                                  \
    ((struct relay *)((char *)(POINTER)-offsetof(struct relay, MEMBER)))

/* ---- The ends of a relay ---- */

static void link_relay(struct relay *relay) {
    struct proxy *proxy = relay->proxy;
    relay->previous = NULL;
    relay->next = proxy->relays;
    *(relay->next ? &relay->next->previous : &proxy->last) = relay;
    proxy->relays = relay;
    proxy->relay_count++;
}

static void unlink_relay(struct relay *relay) {
    struct proxy *proxy = relay->proxy;
    *(relay->previous ? &relay->previous->next : &proxy->relays) = relay->next;
    *(relay->next ? &relay->next->previous : &proxy->last) = relay->previous;
    proxy->relay_count--;
}

static void used(struct relay *relay) {
    unlink_relay(relay);
    link_relay(relay);
}

static void free_if_closed(struct relay *relay) {
    if (relay->client_open || relay->up_open) return;
    cv_assert(!relay->pass.lock && !relay->asks);
    unlink_relay(relay);
    bytes_close(&relay->in);
    if (relay->proxy->settings->protocol == &fence_redis) {
        bytes_close(&relay->redis.instead);
    } else {
        bytes_close(&relay->web.head);
        bytes_close(&relay->web.answer);
    }
    free(relay);
}

static void client_closed(struct net_stream *stream) {
    struct relay *relay = RELAY_OF(client, stream);
    relay->client_open = false;
    free_if_closed(relay);
}

static void up_closed(struct net_stream *stream) {
    struct relay *relay = RELAY_OF(up, stream);
    relay->up_open = false;
    if (relay->up_failed && !relay->gone) relay->proxy->settings->protocol->up_ended(relay);
    relay->up_failed = false;
    if (!relay->gone) relay_advance(relay);
    free_if_closed(relay);
}

void relay_leave(struct relay *relay) {
    if (!relay->pass.lock) return;
    fence_leave(&relay->pass);
    proxy_change(relay->proxy);
}

void relay_hang_up(struct relay *relay) {
    relay->up_connected = false;
    if (relay->up_open) net_close(&relay->up);
}

/* Half-closes a connection: what the system has taken is sent, nothing else.  True: it has one. */
static bool shut(struct net_stream *stream) {
    int socket;
    stream->out.used = 0;
    net_read(stream, true);
    return uv_fileno((uv_handle_t *)&stream->tcp, &socket) == 0 && shutdown(socket, SHUT_WR) == 0;
}

/* Whether the other end of a half-closed connection has closed too: a write that fails because of
 * the shutdown is no sign of that. */
static bool has_ended(struct net_stream *stream) {
    int socket;
    char byte;
    if (uv_fileno((uv_handle_t *)&stream->tcp, &socket) != 0) return true;
    ssize_t size = recv(socket, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    return size == 0 || (size < 0 && errno != EAGAIN && errno != EINTR);
}

static void done_with_up(struct relay *relay) {
    relay_hang_up(relay);
    relay_leave(relay);
}

static void shut_up(struct relay *relay) {
    relay->up_shut = true;
    if (!shut(&relay->up)) done_with_up(relay);
}

/* The client is gone.  What it wrote under a token counts until the resource is done with it. */
static void let_resource_finish(struct relay *relay, bool at_once) {
    if (!relay->up_open || !relay->up_connected || !relay->pass.lock) {
        done_with_up(relay);
        return;
    }
    switch (relay->proxy->settings->protocol->busy(relay)) {
    case FENCE_IDLE: done_with_up(relay); break;
    case FENCE_ANSWERS: net_read(&relay->up, true); break;
    case FENCE_CLOSES:
        if (at_once || !net_unsent(&relay->up)) shut_up(relay);
        break;
    }
}

static void leave_client(struct relay *relay) {
    relay->gone = true;
    relay_unask(relay);
    relay->in.used = 0;
}

static void linger(struct relay *relay) {
    relay->client_shut = true;
    relay->until_us = clock_monotonic_us() + LINGER_MS * 1000;
    if (!shut(&relay->client)) net_close(&relay->client);
}

void relay_end(struct relay *relay) {
    if (relay->gone) return;
    leave_client(relay);
    relay->until_us = clock_monotonic_us() + LINGER_MS * 1000;
    let_resource_finish(relay, false);
    net_flush(&relay->client);
    if (!relay->client.closing && !net_unsent(&relay->client)) linger(relay);
}

/* What the client has sent is with the resource: so that gets no more, either. */
static void finish(struct relay *relay) {
    if (!relay->client_done || relay->gone || relay->asks) return;
    if (!relay->up_open)
        relay_end(relay);
    else if (relay->up_connected && !relay->up_shut && !net_unsent(&relay->up))
        shut_up(relay);
}

static void client_ended(struct net_stream *stream) {
    struct relay *relay = RELAY_OF(client, stream);
    bool ended = has_ended(stream);
    if (relay->client_shut && !ended) return;
    if (ended && !relay->gone && !relay->client_done &&
        relay->proxy->settings->protocol->half_closes) {
        relay->client_done = true;
        net_read(stream, false);
        finish(relay);
        return;
    }
    net_close(stream);
    if (relay->gone) return;
    leave_client(relay);
    let_resource_finish(relay, false);
}

static void cut(struct fence_pass *pass) {
    struct relay *relay = RELAY_OF(pass, pass);
    if (relay->asks) { /* nothing was passed on; it is judged again */
        relay_leave(relay);
        return;
    }
    if (!relay->gone)
        logger_info("a client was cut off, because it holds the lock no more",
                    LOGGER_STRING("lock", pass->lock->name), LOGGER_INT("token", pass->token),
                    LOGGER_INT("newest", pass->lock->highest));
    leave_client(relay);
    net_close(&relay->client);
    let_resource_finish(relay, true);
}

/* ---- Bytes ---- */

static void regulate(struct relay *relay) {
    if (!relay->gone && !relay->client_done)
        net_read(&relay->client, relay->in.used < IN_MAX && net_unsent(&relay->up) < UNSENT_MAX);
    if (relay->up_connected)
        net_read(&relay->up, relay->gone || net_unsent(&relay->client) < UNSENT_MAX);
}

void relay_advance(struct relay *relay) {
    if (!relay->gone && !relay->asks) relay->proxy->settings->protocol->advance(relay);
    if (relay->up_connected) net_flush(&relay->up);
    regulate(relay);
    finish(relay);
}

static void client_sent(struct net_stream *stream, const unsigned char *bytes, size_t size) {
    struct relay *relay = RELAY_OF(client, stream);
    if (relay->gone) return;
    used(relay);
    bytes_add(&relay->in, bytes, size);
    relay_advance(relay);
}

static void client_drained(struct net_stream *stream) {
    struct relay *relay = RELAY_OF(client, stream);
    if (relay->gone && !relay->client_shut) linger(relay);
    regulate(relay);
}

static void up_sent(struct net_stream *stream, const unsigned char *bytes, size_t size) {
    struct relay *relay = RELAY_OF(up, stream);
    used(relay);
    relay->proxy->settings->protocol->answered(relay, bytes, size);
    if (!relay->gone) net_flush(&relay->client);
    relay_advance(relay);
}

static void up_drained(struct net_stream *stream) {
    struct relay *relay = RELAY_OF(up, stream);
    if (!relay->gone)
        relay_advance(relay);
    else if (!relay->up_shut)
        let_resource_finish(relay, false);
}

static void up_ended(struct net_stream *stream) {
    struct relay *relay = RELAY_OF(up, stream);
    if (relay->up_shut && !has_ended(stream)) return;
    done_with_up(relay);
    if (!relay->gone) relay->proxy->settings->protocol->up_ended(relay);
}

void relay_take(struct relay *relay, size_t size) {
    relay->in.used -= size;
    memmove(relay->in.at, relay->in.at + size, relay->in.used);
    if (!relay->in.used) net_shrink(&relay->in);
}

void relay_answer(struct relay *relay, const void *bytes, size_t size) {
    if (relay->gone) return;
    bytes_add(&relay->client.out, bytes, size);
    net_flush(&relay->client);
}

/* ---- The resource's connection ---- */

static void up_connected(struct net_stream *stream, int error) {
    struct relay *relay = RELAY_OF(up, stream);
    int socket;
    unsigned none = 0;
    if (error) {
        logger_warning("the resource cannot be connected to",
                       LOGGER_STRING("to", relay->proxy->settings->to_text),
                       LOGGER_STRING("error", uv_strerror(error)));
        up_ended(stream);
        return;
    }
    /* A resource may take longer than a server of an ensemble to read what it was sent. */
    if (uv_fileno((uv_handle_t *)&stream->tcp, &socket) == 0)
        setsockopt(socket, IPPROTO_TCP, TCP_USER_TIMEOUT, &none, sizeof none);
    uv_tcp_keepalive(&stream->tcp, 1, KEEP_ALIVE_S);
    relay->up_connected = true;
    net_read(stream, true);
    relay_advance(relay);
}

bool relay_dial(struct relay *relay) {
    if (relay->up_open) return !relay->up.closing;
    relay->up = (struct net_stream){.on_connected = up_connected,
                                    .on_bytes = up_sent,
                                    .on_drained = up_drained,
                                    .on_end = up_ended,
                                    .on_closed = up_closed};
    relay->up_open = true;
    relay->up_connected = relay->up_shut = false;
    int error =
        net_dial(&relay->proxy->loop, &relay->up, (const struct sockaddr *)&relay->proxy->to);
    relay->up_failed = error != 0;
    if (error) net_close(&relay->up);
    return true;
}

/* ---- The proxy ---- */

static void heard(void *owner, size_t lock, uint64_t question, int64_t holder) {
    struct proxy *proxy = owner;
    proxy->answered[lock] = question;
    fence_hear(&proxy->locks[lock], holder);
    proxy_change(proxy);
}

/* When they are, what they say about the lock comes next. */
static void reached(void *owner, size_t lock, bool reached) {
    struct proxy *proxy = owner;
    if (reached) {
        if (proxy->locks[lock].reach == FENCE_UNREACHED)
            logger_info("the servers can be asked again who holds a lock",
                        LOGGER_STRING("lock", proxy->locks[lock].name));
        proxy->unreached_us[lock] = 0;
    } else if (!proxy->unreached_us[lock]) {
        proxy->unreached_us[lock] = clock_monotonic_us() + REACH_MS * 1000;
        proxy->locks[lock].reach = FENCE_CONNECTING;
        proxy_change(proxy);
    }
}

static void give_up_servers(struct proxy *proxy, struct fence_lock *lock) {
    logger_warning(proxy->settings->strict
                       ? "no server can be asked who holds a lock: nobody may write"
                       : "no server can be asked who holds a lock: whoever shows the newest token "
                         "so far, or a newer one, may write",
                   LOGGER_STRING("lock", lock->name));
    lock->reach = FENCE_UNREACHED;
    proxy_change(proxy);
}

static void tick(uv_timer_t *timer) {
    struct proxy *proxy = timer->data;
    uint64_t now_us = clock_monotonic_us();
    for (size_t i = 0; i < proxy->settings->lock_count; i++)
        if (proxy->locks[i].reach == FENCE_CONNECTING && now_us >= proxy->unreached_us[i])
            give_up_servers(proxy, &proxy->locks[i]);
    for (struct relay *relay = proxy->relays; relay; relay = relay->next)
        if (relay->gone && relay->client_open && now_us >= relay->until_us)
            net_close(&relay->client);
    if (proxy->relay_count < proxy->relay_max) proxy->crowded = false;
    if (proxy->asking) proxy_judge(proxy);
}

/* If there are too many, one without a token that was not used for longest makes room, so that
 * holders find some, and files and the resource's connections can be opened.  False: all have. */
static bool make_room(struct proxy *proxy) {
    if (proxy->relay_count < proxy->relay_max) return true;
    struct relay *idle = proxy->last;
    while (idle && (idle->pass.lock || idle->asks || !idle->client_open || idle->client.closing))
        idle = idle->previous;
    if (!proxy->crowded)
        logger_warning(idle ? "too many connections: those without a token are closed"
                            : "too many connections: new ones are closed",
                       LOGGER_INT("connections", (int64_t)proxy->relay_count));
    proxy->crowded = true;
    if (!idle) return false;
    leave_client(idle);
    net_close(&idle->client);
    done_with_up(idle);
    return true;
}

static void accepted(struct net_listener *listener) {
    struct proxy *proxy = listener->owner;
    bool has_room = make_room(proxy);
    struct relay *relay = calloc(1, sizeof *relay);
    cv_assert(relay);
    relay->proxy = proxy;
    relay->client = (struct net_stream){.on_bytes = client_sent,
                                        .on_drained = client_drained,
                                        .on_end = client_ended,
                                        .on_closed = client_closed};
    relay->client_open = true;
    link_relay(relay);
    if (net_accept(listener, &relay->client) != 0 || !has_room) {
        relay->gone = true;
        net_close(&relay->client);
        return;
    }
    uv_tcp_keepalive(&relay->client.tcp, 1, KEEP_ALIVE_S);
    net_read(&relay->client, true);
}

static void told_to_end(uv_signal_t *signal_, int number) {
    (void)number;
    uv_stop(signal_->loop);
}

static int open_listener(struct proxy *proxy) {
    const struct fence_settings *settings = proxy->settings;
    int32_t port = settings->listen_port;
    proxy->listener.owner = proxy;
    proxy->listener.on_connection = accepted;
    int error = net_listen(&proxy->loop, &proxy->listener, settings->listen_host, &port, 0);
    if (error) {
        fprintf(stderr, "conclave: %s:%d: cannot listen there: %s\n", settings->listen_host,
                (int)settings->listen_port, uv_strerror(error));
        return -1;
    }
    printf("conclave: fencing %s on %s:%d\n", settings->to_text, settings->listen_host, (int)port);
    fflush(stdout);
    return 0;
}

static int open_locks(struct proxy *proxy) {
    const struct fence_settings *settings = proxy->settings;
    proxy->locks = calloc(settings->lock_count, sizeof *proxy->locks);
    proxy->answered = calloc(settings->lock_count, sizeof *proxy->answered);
    proxy->unreached_us = calloc(settings->lock_count, sizeof *proxy->unreached_us);
    cv_assert(proxy->locks && proxy->answered && proxy->unreached_us);
    for (size_t i = 0; i < settings->lock_count; i++) {
        proxy->unreached_us[i] = clock_monotonic_us() + REACH_MS * 1000;
        proxy->locks[i] =
            (struct fence_lock){.name = settings->locks[i],
                                .highest = fence_memory_of(&proxy->memory, settings->locks[i]),
                                .reach = settings->servers ? FENCE_CONNECTING : FENCE_UNREACHED,
                                .cut = cut};
    }
    return 0;
}

static int open_view(struct proxy *proxy) {
    static const struct fence_view_calls calls = {heard, reached};
    const struct fence_settings *settings = proxy->settings;
    char message[512];
    if (!settings->servers) return 0;
    proxy->view = fence_view_open(&proxy->loop, settings->servers, settings->root, settings->locks,
                                  settings->lock_count, &calls, proxy, message, sizeof message);
    if (!proxy->view) fprintf(stderr, "conclave: %s\n", message);
    return proxy->view ? 0 : -1;
}

static void open_handles(struct proxy *proxy) {
    static const int numbers[] = {SIGTERM, SIGINT};
    struct rlimit files;
    signal(SIGPIPE, SIG_IGN);
    proxy->relay_max = SIZE_MAX;
    if (getrlimit(RLIMIT_NOFILE, &files) == 0) { /* two for each client */
        rlim_t before = files.rlim_cur;
        files.rlim_cur = files.rlim_max;
        if (setrlimit(RLIMIT_NOFILE, &files) != 0) files.rlim_cur = before;
        proxy->relay_max = files.rlim_cur > FILES_APART ? (files.rlim_cur - FILES_APART) / 2 : 1;
    }
    for (int i = 0; i < 2; i++) {
        uv_signal_init(&proxy->loop, &proxy->signals[i]);
        uv_signal_start(&proxy->signals[i], told_to_end, numbers[i]);
    }
    uv_idle_init(&proxy->loop, &proxy->idle);
    proxy->idle.data = proxy;
    uv_timer_init(&proxy->loop, &proxy->timer);
    proxy->timer.data = proxy;
    uv_timer_start(&proxy->timer, tick, TICK_MS, TICK_MS);
}

static void close_handle(uv_handle_t *handle, void *none) {
    (void)none;
    if (!uv_is_closing(handle)) uv_close(handle, NULL);
}

static void close_all(struct proxy *proxy) {
    for (struct relay *relay = proxy->relays; relay; relay = relay->next) {
        leave_client(relay);
        fence_leave(&relay->pass);
        relay_hang_up(relay);
        if (relay->client_open) net_close(&relay->client);
    }
    if (proxy->view) fence_view_close(proxy->view);
    uv_run(&proxy->loop, UV_RUN_NOWAIT);
    uv_walk(&proxy->loop, close_handle, NULL);
    uv_run(&proxy->loop, UV_RUN_DEFAULT);
    net_shut(&proxy->loop);
    free(proxy->locks);
    free(proxy->answered);
    free(proxy->unreached_us);
}

static int resolve(struct proxy *proxy) {
    const struct fence_settings *settings = proxy->settings;
    if (net_resolve(settings->to_host, settings->to_port, &proxy->to) == 0) return 0;
    fprintf(stderr, "conclave: %s: no such host\n", settings->to_host);
    return -1;
}

int fence_run(const struct fence_settings *settings) {
    struct proxy proxy = {.settings = settings};
    if (fence_memory_open(&proxy.memory, settings->state) != 0) {
        fprintf(stderr, "conclave: %s\n", proxy.memory.message);
        fence_memory_close(&proxy.memory);
        return EXIT_SYSTEM_;
    }
    int status = net_open(&proxy.loop);
    cv_assert(status == 0);
    open_handles(&proxy);
    open_locks(&proxy);
    status = resolve(&proxy);
    if (!status) status = open_view(&proxy);
    if (!status) status = open_listener(&proxy);
    if (!status) uv_run(&proxy.loop, UV_RUN_DEFAULT);
    close_all(&proxy);
    fence_memory_close(&proxy.memory);
    return status ? EXIT_SYSTEM_ : 0;
}
