/* The proxy of a fence: connections on one side, the resource on the other.
 *
 *   rule.c    who may write
 *   memory.c  what survives a restart
 *   view.c    what the servers say about the holders
 *   redis.c   the two protocols: what of a connection's bytes is passed on, and under which token;
 *   web.c       they read them with resp.c and http.c
 *   enter.c   admission: who has asked, and what became of it
 *   proxy.c   listening, dialing, back-pressure, cutting off
 *
 * Each connection of a client has its own connection to the resource: a relay.  All is done by one
 * thread, on one loop. */
#ifndef CV_FENCE_PROXY_H
#define CV_FENCE_PROXY_H

#include "fence/http.h"
#include "fence/memory.h"
#include "fence/resp.h"
#include "fence/rule.h"
#include "wire/net/stream.h"

struct fence_view;
struct cv_options;
struct relay;

/* How the resource shows that it is done with what it was sent. */
enum fence_busy { FENCE_IDLE, FENCE_ANSWERS, FENCE_CLOSES };

struct fence_protocol {
    /* Bytes of the client are in relay->in: takes from its front what can be taken now. */
    void (*advance)(struct relay *relay);
    /* The answer to relay_ask.  After FENCE_ENTER the relay's pass is clear. */
    void (*admitted)(struct relay *relay, enum fence_verdict verdict);
    void (*answered)(struct relay *relay, const unsigned char *bytes, size_t size);
    /* The resource has closed its connection, or cannot be connected to. */
    void (*up_ended)(struct relay *relay);
    enum fence_busy (*busy)(const struct relay *relay);
    /* A client that sends no more still gets its answers: the resource gives them before it closes
     * a connection that was half-closed.  Otherwise the client counts as gone. */
    bool half_closes;
};
extern const struct fence_protocol fence_redis, fence_web;

struct fence_settings {
    const char *listen_host, *to_host, *to_text;
    int32_t listen_port, to_port;
    const struct fence_protocol *protocol;
    const char *const *locks; /* names */
    size_t lock_count;
    const char *root;  /* the node above the locks' nodes, NAME_LOCKS */
    const char *state; /* file */
    bool strict, refuse_readers;
    int32_t patience_ms; /* how long a client waits for the servers' word, or for older tokens */
    const struct cv_options *servers; /* NULL: they are not asked */
};

struct redis_part {
    struct resp_rest rest; /* of the command that is being passed on */
    bool refused;          /* ... or is not */
    bool answered;         /* Redis has said something */
    struct bytes instead;  /* of the command with the token */
};

struct web_part {
    struct http_body request, response;
    struct bytes head, answer; /* of a request that asks to enter; of a response, so far */
    bool under_way;            /* a request was passed on, and its response is not complete */
    bool to_head, close, answering;
};

struct relay {
    struct net_stream client, up;
    struct proxy *proxy;
    struct relay *next, *previous;
    bool client_open, up_open, up_connected, up_failed;
    bool up_shut, client_shut; /* nothing more is sent there, and its end is awaited */
    bool client_done;          /* it sends nothing more, but may wait for answers */
    bool gone; /* nothing more is read from the client; what is left concerns the resource */
    struct bytes in;
    struct fence_pass pass;
    /* Asking to enter: */
    struct fence_lock *asks;  /* NULL: it does not */
    struct fence_lock *asked; /* for what it asked last */
    int64_t token;
    uint64_t question; /* what the servers have to answer before */
    uint64_t until_us; /* how long it may ask; or, once it is gone, take to close */
    struct relay *next_asking;
    union {
        struct redis_part redis;
        struct web_part web;
    };
};

struct proxy {
    uv_loop_t loop;
    struct net_listener listener;
    uv_signal_t signals[2];
    uv_timer_t timer;
    uv_idle_t idle; /* runs while `changed` */
    const struct fence_settings *settings;
    struct sockaddr_storage to;
    struct fence_memory memory;
    struct fence_lock *locks;
    /* For each lock: the newest question to the servers that is answered; and when servers that do
     * not answer count as out of reach, 0: they do answer. */
    uint64_t *answered, *unreached_us;
    struct fence_view *view;     /* NULL: the servers are not asked */
    struct relay *relays, *last; /* those that were used last are first */
    struct relay *asking;
    size_t relay_count, relay_max;
    bool crowded; /* and said so */
    bool changed; /* those who ask are to be judged again */
};

/* Runs until SIGTERM or SIGINT; an exit status. */
int fence_run(const struct fence_settings *settings);

/* ---- Between proxy.c and enter.c ---- */

/* Passes on what can be passed on, in both directions. */
void relay_advance(struct relay *relay);
void relay_unask(struct relay *relay); /* does nothing if it does not ask */
void proxy_judge(struct proxy *proxy); /* those who ask */
/* The same, not at once, but in the next loop iteration: whoever says so is in the middle of
 * something. */
void proxy_change(struct proxy *proxy);

/* ---- For the protocols ---- */

struct fence_lock *proxy_lock(struct proxy *proxy, const char *name, size_t size); /* or NULL */
/* Asks to enter; `admitted` is called now or later, unless the client goes before. */
void relay_ask(struct relay *relay, struct fence_lock *lock, int64_t token);
/* One sentence on why not. */
const char *relay_explain(const struct relay *relay, enum fence_verdict verdict, char *text,
                          size_t size);
/* Connects to the resource if that is not done yet.  False: not before the last connection is
 * closed; `advance` is called then. */
bool relay_dial(struct relay *relay);
/* Takes bytes from the front of `in`. */
void relay_take(struct relay *relay, size_t size);
void relay_answer(struct relay *relay, const void *bytes, size_t size);
/* Closes the client's connection when all is sent, and the resource's when it is done. */
void relay_end(struct relay *relay);
/* The resource is done with all that was sent under the pass. */
void relay_leave(struct relay *relay);
/* Closes the resource's connection, which has nothing to do. */
void relay_hang_up(struct relay *relay);

#endif
