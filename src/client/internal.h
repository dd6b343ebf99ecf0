/* A client: one state machine around one epoll descriptor, which holds its socket, a timer and a
 * descriptor that others wake it with.
 *
 * Whoever runs it (its thread, or the caller of cv_process) is the only one to receive, to connect
 * and to call callbacks; all others only put requests into `out` and send, with the lock.  So the
 * lock may be released for a callback in the middle of a frame. */
#ifndef CV_CLIENT_INTERNAL_H
#define CV_CLIENT_INTERNAL_H

#include <pthread.h>

#include "base/rng.h"
#include "base/table.h"
#include "client/engine.h"
#include "client/sasl.h"
#include "client/transport.h"
#include "wire/zk/zk.h"

enum { PASSWORD_SIZE = 16 };

/* ---- address.c: the list of servers ---- */

enum { HOST_MAX = 256, PORT_MAX = 8 };

struct server_entry {
    char host[HOST_MAX], port[PORT_MAX];
    char reason[REASON_MAX]; /* why the last attempt failed; empty: it was not tried */
};

struct servers {
    struct server_entry *entry;
    size_t count;
    char *chroot; /* "" or "/path" */
};

/* "host:port,[v6]:port/chroot"; ports may be left out.  False: malformed, `reason` says where. */
bool servers_parse(struct servers *servers, const char *text, char reason[REASON_MAX]);
void servers_shuffle(struct servers *servers, struct rng *rng);
void servers_close(struct servers *servers);
/* "host:port", or "[host]:port". */
void server_name(const struct server_entry *entry, char *text, size_t size);

/* ---- lookup.c: addresses of a host ---- */

struct lookup;

struct addresses {
    struct address *all;
    size_t count;
    char reason[REASON_MAX]; /* when there are none */
};

/* Addresses that need no question: literals and localhost. */
bool lookup_at_once(const struct server_entry *entry, struct addresses *addresses);
/* Asks in a thread of its own, which adds to `wake` when it knows; NULL: that cannot be started. */
struct lookup *lookup_start(const struct server_entry *entry, int wake);
bool lookup_finished(struct lookup *lookup, struct addresses *addresses);
void lookup_end(struct lookup *lookup);

/* ---- request.c ---- */

struct request {
    struct request *next;
    cv_done_fn *done;
    void *arg;
    int64_t at;     /* when it was started */
    uint64_t begin; /* of its frame, in all that was ever put into `out` */
    int32_t xid, opcode;
    int32_t error; /* when it ends without an answer */
    uint32_t op_count;
    enum cv_op_type type;
    struct waiter *waiter;     /* of cv_call, instead of `done`: gets a result of its own */
    struct watcher *watcher;   /* to register with the answer */
    struct identity *identity; /* of an AUTH: forgotten if the server does not accept it */
};

/* A thread that waits for its result. */
struct waiter {
    pthread_cond_t answered;
    bool done;
    int error;
    struct cv_result *result;
};

struct request_queue {
    struct request *first, **last;
};

static inline void queue_init(struct request_queue *queue) {
    *queue = (struct request_queue){.last = &queue->first};
}
static inline void queue_add(struct request_queue *queue, struct request *request) {
    request->next = NULL;
    *queue->last = request;
    queue->last = &request->next;
}
static inline struct request *queue_take(struct request_queue *queue) {
    struct request *request = queue->first;
    if (!request) return NULL;
    queue->first = request->next;
    if (!queue->first) queue->last = &queue->first;
    return request;
}

struct requests {
    struct request_queue waiting; /* in `out`, or sent; answered in this order */
    struct request_queue auth;    /* sent, and answered in an order of their own */
    struct request_queue ended;   /* without an answer: to be told */
    struct request *unused;
    int32_t xid;
    struct bytes out;
    size_t out_sent;
    uint64_t out_before; /* bytes that were in `out` before its first */
    struct bytes scratch_path, scratch_acl, result;
};

/* Why it cannot be started; CV_OK: it can, if there is memory. */
int request_check(const struct cv_client *client, const struct cv_op *op);
/* Either `done` or `waiter`. */
int request_start(struct cv_client *client, const struct cv_op *op, cv_done_fn *done, void *arg,
                  struct waiter *waiter);
/* Room for so many, so that they can be started or failed; false: there is no memory. */
bool requests_reserve(struct cv_client *client, size_t count);
/* One that could not be started calls back with this error. */
void request_fail(struct cv_client *client, cv_done_fn *done, void *arg, int error);
/* Tells whoever has started it, and frees it.  The result is the waiter's, if there is one. */
void request_finish(struct cv_client *client, struct request *request, struct cv_result *result);
/* An operation that only the client itself uses, without a body. */
void request_internal(struct cv_client *client, int32_t opcode, cv_done_fn *done, void *arg);
void request_free(struct cv_client *client, struct request *request);
/* The connection is gone: what was sent ends with CV_CONNECTION_LOSS, the rest waits. */
void requests_broken(struct cv_client *client);
/* All end with this error. */
void requests_end(struct cv_client *client, int error);
/* Those that have waited for a connection since before that moment end with this error. */
void requests_end_older(struct cv_client *client, int64_t than, int error);
void requests_close(struct cv_client *client);
bool path_is_good(const char *path, bool sequential);
/* ---- reply.c: answers ---- */

/* The result in one block: malloc'ed, or in `room`, which grows.  NULL: malformed, or there is no
 * memory (`*error`). */
struct cv_result *reply_decode(const struct request *request, const struct zk_reply_header *header,
                               struct zk_in *body, size_t chroot, struct bytes *room, int *error);

/* ---- watch.c ---- */

enum watch_kind { WATCH_DATA, WATCH_EXIST, WATCH_CHILD, WATCH_PERSISTENT, WATCH_RECURSIVE };

struct watcher {
    struct watcher *next;
    enum watch_kind kind;
    cv_watch_fn *call;
    void *arg;
    int32_t path_size;
    char path[]; /* the server's, with chroot and NUL */
};

struct watches {
    struct watched **node; /* by number - 1 */
    size_t nodes, room;
    uint32_t *unused;
    size_t unused_count, unused_room;
    struct table index;
    size_t recursive;
    struct bytes called; /* struct watch_call */
};

struct watcher *watcher_new(struct zk_text path, const struct cv_op *op);
/* Does the server tell what this read would watch for anyway?  (If asked twice, ZooKeeper would
 * forget that one of the two is to stay.) */
bool watch_is_covered(struct cv_client *client, struct zk_text path, enum cv_op_type type);
void watch_register(struct cv_client *client, struct watcher *watcher, int32_t error);
void watch_event(struct cv_client *client, const struct zk_watcher_event *event);
/* Removes watches of a path; false: there was none.  `*left`: some are left. */
bool watch_remove(struct cv_client *client, struct zk_text path, const struct cv_op *op,
                  bool *left);
/* Requests that register all of them again. */
void watches_renew(struct cv_client *client, struct bytes *out, uint32_t *requests);
void watches_tell_renewed(struct cv_client *client);
void watches_lost(struct cv_client *client);
void watches_free(struct watches *watches);

/* ---- session.c: connecting, and staying so ---- */

enum phase {
    PHASE_PAUSE, /* until `retry_at` */
    PHASE_LOOKUP,
    PHASE_DIAL, /* and TLS's handshake */
    PHASE_GREET,
    PHASE_SASL,
    PHASE_UP,
    PHASE_OVER, /* expired, refused or closed */
};

struct session {
    enum phase phase;
    struct servers servers;
    size_t entry;   /* the server that is tried, or used */
    size_t tried;   /* in this round */
    size_t address; /* the next of these */
    int reached;    /* how far the best of them came */
    struct addresses addresses;
    struct lookup *lookup;
    struct transport transport;
    uint64_t connections; /* how many there have been: tells one from the next */
    struct bytes control; /* sent before requests: greeting, authentication, watches */
    size_t control_sent;
    struct bytes in;
    int64_t started, retry_at; /* of the attempt; of the next round */
    int32_t pause;             /* before the next round */
    int64_t up_since, heard, sent;
    int64_t greeted; /* when the greeting was sent */
    int64_t ping_at; /* when the ping was sent that is not answered yet; 0: none */
    uint32_t auths_sent;

    int64_t id;
    unsigned char password[PASSWORD_SIZE];
    int32_t timeout; /* negotiated, or wanted */
    int64_t deadline, last_zxid;
    bool read_only, is_known; /* is_known: a server with a leader knows it */
    uint32_t renewals;        /* of watches: how many are not answered yet */
    bool renewed;             /* they all are: to be told */
    bool more;                /* is decrypted, and not read yet */
    bool send_failed;         /* whoever runs the client will see to it */
    char sasl_proof[MD5_HEX]; /* that the server must show; empty: it has not asked us yet */
};

void session_begin(struct cv_client *client);
void session_on_socket(struct cv_client *client, uint32_t events);
void session_on_wake(struct cv_client *client);
void session_on_time(struct cv_client *client);
int64_t session_next_time(struct cv_client *client);
/* Sends as much as the socket takes. */
void session_flush(struct cv_client *client);
/* For good, with this state; the error is that of all requests. */
void session_end(struct cv_client *client, enum cv_state state, int error);
__attribute__((format(printf, 2, 3))) void session_broken(struct cv_client *client,
                                                          const char *format, ...);
void session_answered(struct cv_client *client, int64_t sent_at);
/* What follows the greeting: SASL, if it is wanted; and then the rest. */
void session_prove(struct cv_client *client, struct zk_text token);
void session_greeted(struct cv_client *client);
void session_explain(struct cv_client *client, char *text, size_t size);
void session_close(struct session *session);

/* ---- receive.c: frames from the server ---- */

void session_receive(struct cv_client *client);

/* ---- All of it ---- */

struct identity {
    struct identity *next;
    char *scheme;
    void *credential;
    size_t size;
};

struct identity *identity_add(struct cv_client *client, const char *scheme, const void *credential,
                              size_t size); /* NULL: no memory */
void identity_free(struct identity *identity);

enum ending { NOT_ENDING, ENDING_CLOSE, ENDING_DETACH };

struct cv_client {
    pthread_mutex_t mutex; /* recursive */
    pthread_cond_t changed;
    pthread_t thread, runner; /* runner: who calls callbacks */
    bool threaded, calling;
    enum ending ending;
    bool farewell_sent, farewell_over;
    int64_t ending_since;
    bool over;        /* nothing will be done any more */
    bool orphan;      /* frees itself */
    uint32_t waiters; /* threads inside of calls that wait */
    uint32_t corked;

    int epoll, timer, wake;
    int64_t timer_at; /* when the timer will fire; 0: it is not set */
    int64_t round;    /* when the events at hand were received */

    enum cv_state state, told_state;
    uint32_t flags;
    int32_t wanted_timeout, connect_timeout;
    cv_state_fn *on_state;
    void *on_state_arg;
    struct identity *identities;
    char *sasl_user, *sasl_password;
    struct tls_client *tls;
    char bad_options[REASON_MAX]; /* why it can never connect */
    int refusal;                  /* the error of cv_open then */

    struct rng rng;
    uint64_t seed;
    struct session session;
    struct requests requests;
    struct watches watches;
    struct client_timer *timers;
    struct client_listener *listeners, *listener_next;
    struct client_task *tasks, **tasks_last;
};

/* ---- loop.c ---- */

/* Runs a callback: without the lock, and known as one. */
#define CALL_BACK(CLIENT, CALL)                                                                    \
    do {                                                                                           \
        call_begin(CLIENT);                                                                        \
        CALL;                                                                                      \
        call_end(CLIENT);                                                                          \
    } while (0)
void call_begin(struct cv_client *client);
void call_end(struct cv_client *client);

/* Now; in a callback the time at which its round began, which is soon enough for a lease. */
int64_t client_time(const struct cv_client *client);
void client_interrupt(struct cv_client *client); /* whoever waits for its descriptor */
void client_arm_timer(struct cv_client *client);
/* Waits for events for so long at most and handles them, with the lock. */
void client_process(struct cv_client *client, int timeout);
/* Until nothing is left to be done; by the thread that runs it. */
void *client_run(void *client);

/* ---- client.c ---- */

void client_free(struct cv_client *client);

#endif
