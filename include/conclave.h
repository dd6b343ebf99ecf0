/* Conclave's client library: locks and leaders over the ZooKeeper protocol, for programs in C.
 *
 * It works with `conclave serve` and with Apache ZooKeeper (3.5 and later).  A first program:
 *
 *     struct cv_client *client;
 *     struct cv_lock *lock;
 *     if (cv_open(&client, &(struct cv_options){.servers = "localhost:2181"}) != CV_OK) ...
 *     if (cv_lock_open(&lock, client, "/conclave/locks/report", NULL) != CV_OK) ...
 *     if (cv_lock_acquire(lock, CV_FOREVER) == CV_OK) {
 *         ... nobody else is here; cv_lock_token(lock) proves it to whoever keeps the resource
 *         cv_lock_release(lock);
 *     }
 *     cv_lock_close(lock);
 *     cv_close(client);
 *
 * Results.  Functions return CV_OK (0) or a negative enum cv_error; cv_error_text explains it.
 *
 * Threads.  A client runs in a thread of its own, and every function may be called from any thread.
 * With CV_NO_THREAD there is none: the caller's event loop waits for cv_fd to become readable and
 * calls cv_process then; all calls come from that one thread, and those that wait process events
 * meanwhile.  Callbacks are called from the client's thread, or from cv_process; nothing is locked
 * then, so they may call everything that does not wait.  What waits returns CV_WOULD_DEADLOCK
 * there.
 *
 * Time.  All times are milliseconds; moments are those of CLOCK_BOOTTIME, which goes on while the
 * machine sleeps.
 *
 * Structs of options may grow at their end; what is zero has its default.  Initialize them with
 * designated initializers.  The functions that take them tell the library how large they were when
 * the program was compiled, so that it may be older or newer; bindings for other languages call the
 * functions that end in _sized.  The words that are reserved are zero. */
#ifndef CONCLAVE_H
#define CONCLAVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define CV_API __attribute__((visibility("default")))

enum { CV_FOREVER = -1 };

/* ---- Errors: ZooKeeper's codes, and from -200 on those of this library ---- */

enum cv_error {
    CV_OK = 0,
    CV_SYSTEM_ERROR = -1,
    CV_CONNECTION_LOSS = -4, /* whether the request took effect is not known */
    CV_MARSHALLING_ERROR = -5,
    CV_UNIMPLEMENTED = -6,
    CV_OPERATION_TIMEOUT = -7, /* of the caller's own limit */
    CV_BAD_ARGUMENTS = -8,
    CV_NO_NODE = -101,
    CV_NO_AUTH = -102,
    CV_BAD_VERSION = -103,
    CV_NO_CHILDREN_FOR_EPHEMERALS = -108,
    CV_NODE_EXISTS = -110,
    CV_NOT_EMPTY = -111,
    CV_SESSION_EXPIRED = -112,
    CV_INVALID_ACL = -114,
    CV_AUTH_FAILED = -115,
    CV_CLOSING = -116,
    CV_NOTHING = -117,
    CV_SESSION_MOVED = -118,
    CV_NOT_READ_ONLY = -119,
    CV_NO_WATCHER = -121,
    CV_REQUEST_TIMEOUT = -122, /* of the server: whether it took effect is not known */
    CV_QUOTA_EXCEEDED = -125,
    CV_THROTTLED = -127,      /* the server has too much to do */
    CV_NO_SERVER = -200,      /* no server could be reached in time; cv_explain says why not */
    CV_WOULD_DEADLOCK = -201, /* called from a callback, and would wait */
    CV_NO_MEMORY = -202,
    CV_BUSY = -203, /* somebody else holds it */
    CV_LOST = -204, /* held until now, and no more for certain */
    CV_NOT_HELD = -205,
    CV_TLS_FAILED = -206,
    CV_OTHER_RECIPE = -207, /* others compete for the lock who would not wait for us */
};

CV_API const char *cv_error_text(int error);
CV_API const char *cv_version(void);
/* Milliseconds of CLOCK_BOOTTIME. */
CV_API int64_t cv_now(void);

/* ---- Clients: one session each ---- */

struct cv_client;

enum cv_state {
    CV_CONNECTING, /* not yet, or no more; the session may still live on the servers */
    CV_CONNECTED,
    CV_READ_ONLY, /* connected to a server that has no leader */
    CV_EXPIRED,   /* the session is over, with its ephemeral nodes; open another client */
    CV_REFUSED,   /* the servers do not accept who we say we are */
    CV_CLOSED,
};

enum cv_open_flags {
    CV_NO_THREAD = 1, /* see above */
    CV_ALLOW_READ_ONLY = 2,
    CV_DO_NOT_WAIT = 4, /* cv_open does not wait until there is a session */
};

typedef void cv_state_fn(struct cv_client *client, enum cv_state state, void *arg);

struct cv_auth {
    const char *scheme; /* "digest" ("user:password"), ... */
    const void *credential;
    size_t size; /* 0: credential is a string */
    uintptr_t reserved[2];
};

struct cv_tls {                    /* PEM files; NULL: none */
    const char *authorities;       /* whom to trust; NULL: those of the system */
    const char *certificate, *key; /* who we are */
    bool any_host;                 /* do not compare the certificate with the host's name */
    uintptr_t reserved[4];
};

struct cv_options {
    const char
        *servers; /* "host:port,host:port/chroot"; NULL: $CONCLAVE_SERVER, or localhost:2181 */
    int32_t session_timeout; /* asked for; the server may change it (cv_session_timeout).  15 s */
    int32_t connect_timeout; /* how long cv_open waits for a session.  10 s; CV_FOREVER */
    uint32_t flags;
    const struct cv_auth *auth;
    size_t auth_count;
    const struct cv_tls *tls;              /* NULL: plain */
    const char *sasl_user, *sasl_password; /* DIGEST-MD5, as ZooKeeper has it; NULL: none */
    cv_state_fn *on_state;
    void *arg;          /* of on_state */
    int64_t session_id; /* a session to resume; 0: a new one */
    unsigned char session_password[16];
};

/* Opens a session, and waits for it unless told not to.  On failure *client is still set, unless
 * there is no memory, so that cv_explain can be asked; close it in any case. */
CV_API int cv_open_sized(struct cv_client **client, const struct cv_options *options, size_t size);
static inline int cv_open(struct cv_client **client, const struct cv_options *options) {
    return cv_open_sized(client, options, sizeof *options);
}
/* Ends the session, and with it all ephemeral nodes; without a connection the servers end it later,
 * when it expires.  Close what was opened with the client (locks, elections, caches, ...) first: it
 * is of no use afterwards, not even for closing it.  Other threads must not call anything of the
 * client any more; those that wait in cv_call or for a lock return CV_CLOSING, but then must not
 * use the client either.  From a callback, the client is freed when the callback has returned; with
 * CV_NO_THREAD, by the cv_process that has called it, if that is not a call that waits. */
CV_API void cv_close(struct cv_client *client);
/* The same, but leaves the session to the servers, until it expires or somebody resumes it. */
CV_API void cv_detach(struct cv_client *client);

CV_API enum cv_state cv_state(struct cv_client *client);
/* One line on the last failure to connect: each address that was tried, and why it failed.  Copied
 * to `text`; returns it. */
CV_API const char *cv_explain(struct cv_client *client, char *text, size_t size);
CV_API int64_t cv_session_id(struct cv_client *client);
CV_API void cv_session_password(struct cv_client *client, unsigned char password[16]);
CV_API int32_t cv_session_timeout(struct cv_client *client);
/* The server of the connection, "host:port"; empty without one. */
CV_API const char *cv_server(struct cv_client *client, char *text, size_t size);
CV_API int64_t cv_last_zxid(struct cv_client *client);

/* The moment until which the servers cannot have expired the session, as far as is known now: two
 * thirds of the timeout after the last request was sent that has been answered, or the timeout less
 * 700 ms, whichever is sooner.  (A server that is cut off from its leader may answer for a third,
 * and for as long as an election takes, which is 700 ms with Conclave's own settings.)  Every
 * answer moves it on, also those to the pings that the client sends by itself, but none of a server
 * that has no leader.
 *
 * This takes for granted that the client is running: one that was stopped for more than a third of
 * the timeout, and goes on at a server that was cut off meanwhile, may believe in its session for
 * longer than the leader does.  Tokens and guards exclude that, too. */
CV_API int64_t cv_session_deadline(struct cv_client *client);

/* The caller's event loop, with CV_NO_THREAD. */
CV_API int cv_fd(struct cv_client *client);
CV_API int cv_process(struct cv_client *client);
/* Waits for events for so long at most and processes them. */
CV_API int cv_process_for(struct cv_client *client, int32_t timeout);

/* ---- Operations ----
 *
 * An operation is described by a struct cv_op, which the functions below fill in; nothing in it is
 * copied before it is given to cv_call, cv_start or a multi.  Paths begin with a slash, below the
 * chroot.  While there is no connection operations wait for one, for as long as the session's
 * timeout (then CV_NO_SERVER: they have not taken effect); those that were sent when it broke end
 * with CV_CONNECTION_LOSS. */

enum cv_op_type {
    CV_OP_CREATE,
    CV_OP_DELETE,
    CV_OP_EXISTS,
    CV_OP_GET,
    CV_OP_SET,
    CV_OP_CHILDREN,
    CV_OP_GET_ACL,
    CV_OP_SET_ACL,
    CV_OP_SYNC,
    CV_OP_CHECK,
    CV_OP_MULTI,
    CV_OP_ADD_WATCH,
    CV_OP_REMOVE_WATCH,
    CV_OP_AUTH,
    CV_OP_WHO_AM_I,
    CV_OP_EPHEMERALS,
    CV_OP_COUNT_ALL,
    CV_OP_RECONFIG,
};

enum cv_create_flags { /* as they are on the wire */
                       CV_PERSISTENT = 0,
                       CV_EPHEMERAL = 1,
                       CV_SEQUENTIAL = 2,
                       CV_CONTAINER = 4,
};

enum cv_permission {
    CV_READ = 1,
    CV_WRITE = 2,
    CV_CREATE = 4,
    CV_DELETE = 8,
    CV_ADMIN = 16,
    CV_ALL = 31
};

struct cv_acl {
    int32_t permissions;
    const char *scheme, *id;
};

struct cv_stat {
    int64_t czxid, mzxid, ctime, mtime;
    int32_t version, cversion, aversion;
    int64_t ephemeral_owner;
    int32_t data_length, children;
    int64_t pzxid;
};

enum cv_watch_type {
    CV_NODE_CREATED = 1,
    CV_NODE_DELETED = 2,
    CV_NODE_CHANGED = 3,
    CV_NODE_CHILDREN_CHANGED = 4,
    CV_WATCH_LOST = -1, /* the session has ended: there will be no event */
    CV_WATCH_RENEWED =
        -2, /* only of cv_op_add_watch: connected again; read what may have changed */
};

/* Called once for a watch of a read, for every event of one added by cv_op_add_watch.  Watches
 * survive reconnects.  What happened meanwhile is reported then for a watch of a read; servers do
 * not know it for the others, which get CV_WATCH_RENEWED instead. */
typedef void cv_watch_fn(enum cv_watch_type type, const char *path, void *arg);

enum cv_watch_mode { CV_WATCH_PERSISTENT = 0, CV_WATCH_RECURSIVE = 1 };

struct cv_op {
    enum cv_op_type type;
    const char *path;
    const void *data; /* NULL: null.  With AUTH the credential, and `path` is the scheme */
    size_t size;
    int32_t version;          /* -1: any */
    int32_t flags;            /* of a create, or the mode of a watch */
    int64_t ttl;              /* of a create; 0: none */
    const struct cv_acl *acl; /* NULL: everybody may do everything */
    size_t acl_count;
    const struct cv_op *ops; /* of a multi: writes and checks, or GET and CHILDREN alone */
    size_t op_count;
    cv_watch_fn *watch; /* NULL: none.  REMOVE_WATCH removes this one, or all of the path */
    void *watch_arg;
    const char *joining, *leaving, *members; /* of RECONFIG */
    uintptr_t reserved[4];
};

/* What an operation has to say; the rest is NULL or 0.  Valid during the callback, or until
 * cv_result_free. */
struct cv_result {
    int error;
    int64_t zxid;
    const char *path; /* of the node that was created, sequence number included */
    const void
        *data; /* followed by a NUL byte that does not count; NULL if the node's data are null */
    size_t size;
    bool has_stat;
    struct cv_stat stat;
    const char *const *names; /* children, or paths */
    size_t name_count;
    const struct cv_acl *acl; /* of GET_ACL; of WHO_AM_I, without permissions */
    size_t acl_count;
    const struct cv_result *results; /* of a multi: one for each operation, also when one failed */
    size_t result_count;
    int32_t count; /* of COUNT_ALL */
    uintptr_t reserved[4];
};

typedef void cv_done_fn(const struct cv_result *result, void *arg);

/* Starts an operation.  `done` is called exactly once, unless an error is returned. */
CV_API int cv_start(struct cv_client *client, const struct cv_op *op, cv_done_fn *done, void *arg);
/* Starts several in one write, in their order, nothing of this client in between.  If one of them
 * is not valid, none is started. */
CV_API int cv_start_all(struct cv_client *client, const struct cv_op *ops, size_t count,
                        cv_done_fn *const *done, void *const *args);
/* Waits for the result; returns its error.  `result` may be NULL; else free what it is set to,
 * which is NULL when there was no answer. */
CV_API int cv_call(struct cv_client *client, const struct cv_op *op, struct cv_result **result);
CV_API void cv_result_free(struct cv_result *result);

static inline struct cv_op cv_op_create(const char *path, const void *data, size_t size,
                                        int32_t flags) {
    return (struct cv_op){
        .type = CV_OP_CREATE, .path = path, .data = data, .size = size, .flags = flags};
}
static inline struct cv_op cv_op_delete(const char *path, int32_t version) {
    return (struct cv_op){.type = CV_OP_DELETE, .path = path, .version = version};
}
static inline struct cv_op cv_op_exists(const char *path) {
    return (struct cv_op){.type = CV_OP_EXISTS, .path = path};
}
static inline struct cv_op cv_op_get(const char *path) {
    return (struct cv_op){.type = CV_OP_GET, .path = path};
}
static inline struct cv_op cv_op_set(const char *path, const void *data, size_t size,
                                     int32_t version) {
    return (struct cv_op){
        .type = CV_OP_SET, .path = path, .data = data, .size = size, .version = version};
}
static inline struct cv_op cv_op_children(const char *path) {
    return (struct cv_op){.type = CV_OP_CHILDREN, .path = path};
}
static inline struct cv_op cv_op_check(const char *path, int32_t version) {
    return (struct cv_op){.type = CV_OP_CHECK, .path = path, .version = version};
}
static inline struct cv_op cv_op_sync(const char *path) {
    return (struct cv_op){.type = CV_OP_SYNC, .path = path};
}
static inline struct cv_op cv_op_multi(const struct cv_op *ops, size_t count) {
    return (struct cv_op){.type = CV_OP_MULTI, .ops = ops, .op_count = count};
}
static inline struct cv_op cv_op_add_watch(const char *path, enum cv_watch_mode mode,
                                           cv_watch_fn *watch, void *arg) {
    return (struct cv_op){
        .type = CV_OP_ADD_WATCH, .path = path, .flags = mode, .watch = watch, .watch_arg = arg};
}

/* The everyday ones, which wait.  `created` has room for so many bytes, or is NULL. */
CV_API int cv_create(struct cv_client *client, const char *path, const void *data, size_t size,
                     int32_t flags, char *created, size_t created_size);
/* A node and all that is missing above it; it may exist. */
CV_API int cv_create_all(struct cv_client *client, const char *path, int32_t flags);
CV_API int cv_delete(struct cv_client *client, const char *path, int32_t version);
CV_API int cv_exists(struct cv_client *client, const char *path, struct cv_stat *stat);
CV_API int cv_get(struct cv_client *client, const char *path, struct cv_result **result);
CV_API int cv_set(struct cv_client *client, const char *path, const void *data, size_t size,
                  int32_t version);
CV_API int cv_children(struct cv_client *client, const char *path, struct cv_result **result);

/* ---- Locks ----
 *
 * A lock is a node; who wants it adds an ephemeral sequential child and waits for those before it
 * that stand in its way, watching one of them.  Grants are first in, first out.  The names of the
 * children are those of a recipe that other libraries have, too: see enum cv_lock_recipe.
 *
 * A lock that is held has a fencing token, which grows with every grant of that lock, and a
 * deadline.  The lock turns from CV_HELD to CV_LOST_LOCK, and on_change is called, before the
 * servers can have given it to another: by the local clock, `margin` before the session's deadline,
 * or at once when the session has expired or somebody has deleted the child.  A program that was
 * stopped or paused may learn it too late; only the token (kept by the resource) or a guarded write
 * (cv_lock_guard) excludes it then. */

struct cv_lock;

enum cv_lock_state { CV_IDLE, CV_WAITING, CV_HELD, CV_LOST_LOCK };

enum cv_lock_kind { CV_EXCLUSIVE, CV_SHARED };

/* With which other clients a lock can be shared.  The clients of one recipe do not wait for the
 * nodes of another, so who finds some of another gives up: CV_OTHER_RECIPE. */
enum cv_lock_recipe {
    CV_CURATOR,       /* InterProcessMutex and LeaderSelector of Curator, Lock of go-zookeeper */
    CV_CURATOR_RW,    /* InterProcessReadWriteLock of Curator; has no slots */
    CV_CURATOR_LATCH, /* LeaderLatch of Curator; exclusive only */
    CV_KAZOO,         /* Lock, ReadLock and WriteLock of kazoo */
    /* Makes nodes as CV_CURATOR, and waits for those of all recipes: only if all others are known
     * to wait for it, as kazoo's with extra_lock_patterns=["-lock-"] do. */
    CV_ANY_RECIPE
};

typedef void cv_lock_fn(struct cv_lock *lock, enum cv_lock_state state, void *arg);

struct cv_lock_options {
    enum cv_lock_kind kind;
    int32_t slots;         /* how many may hold it at once: a semaphore.  1 */
    const char *label;     /* who and why; others can read it */
    int32_t margin;        /* how long before the session's deadline the lock counts as lost.  0 */
    cv_lock_fn *on_change; /* of the state, and, while it waits, of the position */
    void *arg;
    /* Our child from before, when the client resumes a session (its path or name, as cv_lock_node
     * told): its place is ours again, if it is still there.  NULL: none */
    const char *node;
    /* CONCLAVE_SESSIONS of the environment, in a program that 'conclave lock' has started: others
     * then see that those who hold the locks around it wait for this one.  NULL: none */
    const char *outer;
    enum cv_lock_recipe recipe;
};

CV_API int cv_lock_open_sized(struct cv_lock **lock, struct cv_client *client, const char *path,
                              const struct cv_lock_options *options, size_t size);
static inline int cv_lock_open(struct cv_lock **lock, struct cv_client *client, const char *path,
                               const struct cv_lock_options *options) {
    return cv_lock_open_sized(lock, client, path, options, sizeof *options);
}
/* Waits for the lock: CV_OK, CV_BUSY (after 0 ms), CV_OPERATION_TIMEOUT, or what went wrong; then
 * nothing of the attempt is left on the servers, or goes with the session. */
CV_API int cv_lock_acquire(struct cv_lock *lock, int32_t timeout);
/* Does not wait: on_change tells. */
CV_API int cv_lock_start(struct cv_lock *lock);
/* Also gives up waiting.  CV_LOST: it was lost before. */
CV_API int cv_lock_release(struct cv_lock *lock);
/* Releases it, and frees it. */
CV_API void cv_lock_close(struct cv_lock *lock);

CV_API enum cv_lock_state cv_lock_state(struct cv_lock *lock);
CV_API int64_t cv_lock_token(struct cv_lock *lock);
/* While it is held: the moment at which it will count as lost if no server answers. */
CV_API int64_t cv_lock_deadline(struct cv_lock *lock);
/* How many are before us; 0 when it is held, -1 when that is not known. */
CV_API int32_t cv_lock_position(struct cv_lock *lock);
CV_API const char *cv_lock_path(struct cv_lock *lock);
/* The path of our child; empty while there is none. */
CV_API const char *cv_lock_node(struct cv_lock *lock, char *text, size_t size);
/* Why the last attempt ended, or the lock was lost. */
CV_API int cv_lock_error(struct cv_lock *lock);

/* An operation for a multi that fails unless the lock is still ours, wherever we have been since:
 * what comes after it in the multi cannot happen under another's lock.  Valid until the release;
 * with the path in `node`. */
CV_API struct cv_op cv_lock_guard(struct cv_lock *lock, char *node, size_t size);
/* Writes the data of a node if the lock is still ours; else CV_LOST. */
CV_API int cv_lock_set(struct cv_lock *lock, const char *path, const void *data, size_t size,
                       int32_t version);

/* Shared to exclusive without a gap: waits until nobody else holds or precedes it.  CV_BUSY at once
 * if another holder waits for the same, which would never end; release and acquire then. */
CV_API int cv_lock_upgrade(struct cv_lock *lock, int32_t timeout);
/* Exclusive to shared without a gap. */
CV_API int cv_lock_downgrade(struct cv_lock *lock);

/* All of them or none, in the order of their paths, so that nobody waits in a circle. */
CV_API int cv_locks_acquire(struct cv_lock *const *locks, size_t count, int32_t timeout);
CV_API int cv_locks_release(struct cv_lock *const *locks, size_t count);

/* Somebody at a lock, as everybody can see it. */
struct cv_contender {
    const char *node; /* name of the child */
    const char *label, *host;
    int64_t pid; /* 0: not known */
    int64_t session;
    int64_t token;
    int64_t since;      /* wall clock, ms: when it joined the queue */
    int64_t held_since; /* wall clock, ms; 0: it waits, or this is not known */
    enum cv_lock_kind kind;
    int32_t slots, priority;
    bool holds;
    bool held_known;   /* held_since is what it says; false: when it joined, although it may have
                        * waited since */
    const char *outer; /* the sessions under whose locks it runs, as it says: "0x1f 0x2e" */
    uintptr_t reserved[3];
};
/* The holders and those who wait, in their order.  Free *contenders with free(). */
CV_API int cv_lock_contenders(struct cv_client *client, const char *path,
                              struct cv_contender **contenders, size_t *count);

/* ---- Elections ----
 *
 * Candidates are contenders of a lock, in the order of their priorities (the highest leads), then
 * first in, first out.  A leader with a lower priority than another candidate is asked to resign
 * (on_change with CV_SHOULD_RESIGN) and leads until it does, unless the election is stable: then
 * priorities count only among those who wait.  The token is the zxid at which the leader recorded
 * its leadership, and grows from leader to leader. */

struct cv_election;

enum cv_candidate_state {
    CV_NOT_STANDING,
    CV_STANDING,
    CV_LEADING,
    CV_SHOULD_RESIGN, /* leading, and asked to hand over */
    CV_LEADERSHIP_LOST,
};

typedef void cv_election_fn(struct cv_election *election, enum cv_candidate_state state, void *arg);

struct cv_election_options {
    int32_t priority;
    bool stable;
    const char *label;
    int32_t margin;
    cv_election_fn *on_change;
    void *arg;
};

CV_API int cv_election_open_sized(struct cv_election **election, struct cv_client *client,
                                  const char *path, const struct cv_election_options *options,
                                  size_t size);
static inline int cv_election_open(struct cv_election **election, struct cv_client *client,
                                   const char *path, const struct cv_election_options *options) {
    return cv_election_open_sized(election, client, path, options, sizeof *options);
}
CV_API int cv_election_stand(struct cv_election *election); /* on_change tells */
/* Waits until we lead.  When the time is over it stands no more, unless it stood before. */
CV_API int cv_election_lead(struct cv_election *election, int32_t timeout);
/* Stands no more: whoever is next leads. */
CV_API int cv_election_resign(struct cv_election *election);
CV_API void cv_election_close(struct cv_election *election);
CV_API enum cv_candidate_state cv_election_state(struct cv_election *election);
CV_API int64_t cv_election_token(struct cv_election *election);
CV_API int64_t cv_election_deadline(struct cv_election *election);
/* Why we stand no more, or the lead was lost. */
CV_API int cv_election_error(struct cv_election *election);
CV_API struct cv_op cv_election_guard(struct cv_election *election, char *node, size_t size);
/* Asks the leader to resign, as an operator would. */
CV_API int cv_election_ask_to_resign(struct cv_client *client, const char *path);

/* ---- Other recipes ---- */

/* Waits while the barrier's node exists. */
CV_API int cv_barrier_wait(struct cv_client *client, const char *path, int32_t timeout);
/* Double barrier: returns when `count` participants have entered, or when all have left. */
struct cv_double_barrier;
CV_API int cv_double_barrier_enter(struct cv_double_barrier **barrier, struct cv_client *client,
                                   const char *path, int32_t count, int32_t timeout);
CV_API int cv_double_barrier_leave(struct cv_double_barrier *barrier,
                                   int32_t timeout); /* frees it */

/* A queue of entries: each is taken by exactly one, in their order (or the given priority's, lowest
 * first).  An entry that was taken by a client that dies before cv_work_done is offered again. */
struct cv_work;
CV_API int cv_work_put(struct cv_client *client, const char *path, const void *data, size_t size,
                       int32_t priority);
CV_API int cv_work_take(struct cv_work **work, struct cv_client *client, const char *path,
                        int32_t timeout);
CV_API const void *cv_work_data(struct cv_work *work, size_t *size);
/* Both free it, unless no server has answered (CV_NO_SERVER, CV_CONNECTION_LOSS): then call again,
 * or leave the entry to the end of the session by cv_work_free. */
CV_API int cv_work_done(struct cv_work *work);
CV_API int cv_work_put_back(struct cv_work *work);
CV_API void cv_work_free(struct cv_work *work);

/* Adds to a counter and returns its new value; 0 only reads it. */
CV_API int cv_counter_add(struct cv_client *client, const char *path, int64_t amount,
                          int64_t *value);

/* Claims PATH for good, if nobody has: CV_OK, or CV_NODE_EXISTS and who has it (`owner`, may be
 * NULL). */
CV_API int cv_once(struct cv_client *client, const char *path, const char *label,
                   struct cv_result **owner);

/* A subtree in memory, kept up to date. */
struct cv_cache;
typedef void cv_cache_fn(enum cv_watch_type type, const char *path, void *arg);
CV_API int cv_cache_open(struct cv_cache **cache, struct cv_client *client, const char *path,
                         cv_cache_fn *on_change, void *arg);
CV_API int cv_cache_get(struct cv_cache *cache, const char *path, struct cv_result **result);
CV_API int cv_cache_children(struct cv_cache *cache, const char *path, struct cv_result **result);
CV_API void cv_cache_close(struct cv_cache *cache);

/* ---- A server for tests ----
 *
 * Starts `conclave serve` (from $CONCLAVE or the search path) on a free port of loopback with data
 * in a new temporary directory, which ends, and is removed, with this process or by the call below.
 */
struct cv_test_server;
CV_API struct cv_test_server *cv_test_server(void);
CV_API const char *cv_test_server_address(struct cv_test_server *server);
CV_API int cv_test_server_kill(struct cv_test_server *server);    /* kill -9 */
CV_API int cv_test_server_restart(struct cv_test_server *server); /* with the same data and port */
CV_API void cv_test_server_stop(struct cv_test_server *server);

#ifdef __cplusplus
}
#endif
#endif
