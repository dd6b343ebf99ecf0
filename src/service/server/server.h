/* The server: clients' connections on one side, the ensemble and the tree on the other, and the
 * life of a request between them.
 *
 *   connection.c  frames as they arrive; which of them wait for which
 *   incoming.c    what clients send: how much of it is kept, and who gives way
 *   outgoing.c    what goes to clients, and what becomes of it if they do not take it
 *   accept.c      connections that come and go
 *   request.c     requests that are answered without the log: reads, authentication
 *   watching.c    watches that clients ask for
 *   session.c     the handshake; the session tracker
 *   operate.c     writes of operators
 *   propose.c     requests that go through the log: proposed here ...
 *   apply.c       ... and applied, notified to watchers and answered here, when they are committed
 *   cost.c        what is refused before it goes into the log
 *   memory.c      the memory that may be used; copies.c: what a snapshot takes of it
 *   reload.c      certificates and keys that are replaced
 *   server.c      listeners, timers, signals, the loop iteration
 *
 * A request that writes is proposed when it is met, and answered when it has been applied.  Nothing
 * else is remembered of it but whom to answer.  The bytes of a connection's requests stay in its
 * buffer until they are answered, so a read after a write needs no memory either: it is met again
 * when the write is done.
 *
 * This header is for those who run a server and report on it; what the files of this folder share
 * is in internal.h. */
#ifndef CV_SERVICE_SERVER_SERVER_H
#define CV_SERVICE_SERVER_SERVER_H

#include "base/summary.h"
#include "service/ensemble/ensemble.h"
#include "service/settings/settings.h"
#include "service/tree/tree.h"
#include "service/tree/watch.h"
#include "wire/net/stream.h"
#include "wire/net/tls.h"

/* ---- Connections ---- */

enum connection_state {
    CONNECTION_NEW,        /* nothing was received yet */
    CONNECTION_CONNECTING, /* its session is on its way through the log */
    CONNECTION_OPEN,
    CONNECTION_CLOSING, /* it has closed its session, which is on its way through the log */
    CONNECTION_ENDING,  /* what is to be sent is sent, nothing more is read */
};

enum { CONNECTION_HANDSHAKE_MS = 15000 }; /* to ask for a session; also to take the last answer */

struct connection {
    struct net_stream stream;
    struct server *server;
    uint32_t number; /* its slot among the server's connections, which is used again */
    uint32_t serial; /* never used again */
    enum connection_state state;
    uint32_t session; /* its slot in the tree; 0: none */
    int64_t session_id;
    int64_t seen_zxid;        /* at the handshake: the newest that the client had seen anywhere */
    bool read_only;           /* it connected without a leader, and may only read */
    bool answers_read_only;   /* the client's handshake had that byte, so the answer has it */
    bool dirty;               /* it has something to be sent at the end of the loop iteration */
    struct bytes in;          /* requests that are not answered, and perhaps a part of one */
    size_t answered, scanned; /* in there; see connection.c */
    bool passed;         /* a write is answered, and reads after it that were passed over are not */
    bool delays_entries; /* ... and there is another write of it after them */
    size_t
        passed_steps; /* that its reads between writes may take, since no write of it waited ... */
    size_t delayed_steps; /* ... and of those that entries did wait for */
    bool shakes_hands;    /* what has arrived is a part of the handshake of TLS */
    bool waits;           /* for a later loop iteration, or its turn in this one */
    size_t turn;          /* steps that are left of its turn */
    bool awaits_reading;  /* another connection's read takes several iterations, as its own will */
    struct restoring {    /* the watches of a setWatches, which may take several iterations */
        size_t taken;     /* bytes of the request that are done; 0: it is not begun */
        uint32_t list;    /* the one that is being worked on, from 1, ... */
        int32_t left;     /* ... and how many of its paths are not done */
    } restoring;
    bool reconfiguring, awaits_change; /* its reconfig is proposed; is committed */
    int32_t reconfig_xid;
    uint64_t read_index;   /* the number of the request that its reads wait for */
    size_t read_index_end; /* in `in`: reads before it are covered by that request */
    uint32_t waiting;      /* writes that are proposed and not answered */
    size_t unsent;         /* as it is counted in connections.unsent */
    size_t discarded;      /* ... and in connections.discarded, since it was ended */
    size_t events;         /* bytes of events, since all was sent */
    size_t told;           /* events of the entry after so many commits */
    uint64_t told_commit;
    uint64_t taken;        /* bytes that the client had taken ... */
    uint64_t taken_us;     /* ... when it was last seen to take some, or had nothing to take */
    uint64_t acknowledged; /* bytes, by the client's system, as they were seen since then */
    bool acknowledged_known;
    size_t kept;     /* ... in connections.received */
    bool paused;     /* it is not read from, as all together have sent too much */
    uint64_t met_us; /* when its last request was complete, or the first bytes of one came */
    bool misses_events;
    bool secure; /* as it is counted in connections.secure */
    struct bytes identities;
    int32_t identity_count;
    char address[64]; /* "127.0.0.1" */
    int32_t port;
    uint64_t network;       /* that the address counts as */
    int64_t established_ms; /* since 1970 */
    uint64_t established_us, ending_us;
    uint64_t received, sent;
    uint64_t received_before; /* when buffers were last released */
    int32_t last_op, last_xid;
    int64_t last_zxid;
    uint64_t received_us, last_answer_us;
    uint32_t untimed;     /* reads that were answered since, and whose time is not taken yet */
    struct tally latency; /* microseconds */
};

struct crowds { /* see crowd.c */
    struct crowd {
        uint64_t network;
        uint32_t count; /* of connections; of a free slot: the next free one, 0 */
    } * at;             /* from 1 */
    size_t room;
    uint32_t slots, free;
    uint64_t seed;
    struct table index;
};

struct connections {
    struct crowds crowds;
    struct connection **at; /* by number, from 1; NULL: free */
    size_t room;
    uint32_t slots, count, serial;
    uint32_t secure; /* with TLS, until their memory is freed */
    uint32_t *dirty, *free_number;
    size_t dirty_count, dirty_room, free_count, free_room;
    size_t unsent;       /* bytes, of all together ... */
    size_t unsent_max;   /* ... and with more, those that take nothing are ended */
    size_t discarded;    /* bytes that were unsent when their connections were ended */
    size_t received;     /* bytes of memory, of all buffers for requests ... */
    size_t received_max; /* ... and with more, those that do not end theirs are ended */
    int descriptors_max; /* numbers from here on are not for clients' sockets */
    uint64_t descriptors_logged_us;
    bool backpressure; /* some wait for room in the outbox */
    bool paused;       /* some are not read from, as `received` is too much */
    bool deferred;     /* some wait for the next loop iteration, or a later one */
    bool resuming;     /* these are having their turn, ... */
    uint32_t resumed;  /* ... the one after this first */
    uint32_t delaying; /* so many have reads that are to be answered before the next entry */
    uint32_t *ended;   /* numbers that are still in watches */
    size_t ended_count, ended_room;
};

/* A read that takes several loop iterations.  There is one at a time, and meanwhile the tree does
 * not change, but for the list of members. */
struct reading {
    uint32_t connection;     /* 0: none, or it is asked for over HTTP */
    struct listing *listing; /* an operator's; NULL: it is a client's read */
    struct bytes reply;      /* as far as it has got */
    struct read_progress {
        struct tree_reading list;
        size_t taken; /* of a multiRead: bytes of what is done */
        int32_t left; /* ... and how many operations are not done */
        bool begun;
    } progress;
};

/* An entry that takes several loop iterations. */
struct applying {
    bool begun, applied; /* applied: only watchers are still to be notified */
    int32_t err;
    uint32_t slot;   /* of a session that it may end */
    size_t notified; /* events */
    size_t told;     /* notifications of them, of all watchers together */
    bool notifying;  /* of what was applied last, not all watchers know */
};

/* What is left of an iteration's work: each kind is bounded, so that none keeps the loop for long,
 * whatever clients ask for. */
struct steps {
    size_t apply, reading, send, forget;
    size_t ask, resume;    /* requests of those that have just asked; that had to wait */
    size_t read, reread;   /* lists of the same */
    size_t watch, rewatch; /* watches restored by the same */
    size_t handshakes;     /* of TLS, with their signatures */
};
static inline struct steps steps_of(size_t each) {
    enum { HANDSHAKES = 8 };
    return (struct steps){each, each, each, each, each, each, each, each, each, each, HANDSHAKES};
}

/* ---- Sessions ---- */

struct tracked_session { /* what this server knows of a session, by its slot in the tree */
    uint32_t connection; /* 0: none */
    int32_t timeout_ms;
    uint64_t deadline_ms; /* by the monotonic clock, without extended_ms */
    bool closing;         /* its end is on its way through the log */
    bool touched;         /* heard from here since that was last reported to the leader */
};

struct session_tracker {
    struct tracked_session *at;
    size_t room;
    uint32_t count;
    uint64_t extended_ms; /* is added to all deadlines */
    uint32_t check_next;  /* the slot that is to be checked next; 0: none is due */
    uint64_t expired;     /* by this check so far ... */
    int64_t last_expired; /* ... and the last of them */
    int64_t next_id;
    int64_t *touched; /* to be reported to the leader */
    size_t touched_count, touched_room;
};

/* ---- Memory ---- */

struct copies { /* that a snapshot causes while it is written; see copies.c */
    uv_timer_t timer;
    uv_work_t work;
    bool looking;              /* a thread is at it */
    int looked_at;             /* the process that it looks at */
    uint64_t counted, took_ms; /* by it */
    int process;               /* 0: no snapshot is being written */
    bool known;                /* looking has had a result */
    uint64_t bytes;            /* ... which is this */
    struct activity {
        uint64_t faults, entries, log_bytes;
    } then, begun; /* when it was looked for bytes; is looked */
};

/* ---- The server ---- */

/* What is refused, and why: R(name, what it is). */
#define REFUSALS(R)                                                                                \
    R(connections, "connections over maxCnxns")                                                    \
    R(address, "connections of one network over maxClientCnxns")                                   \
    R(descriptors, "connections for which there was no file descriptor")                           \
    R(stopping, "connections while the server stops")                                              \
    R(tls, "clients with which no TLS session came about")                                         \
    R(silence, "connections that never asked for a session, or never took their last answer")      \
    R(leaderless, "clients that asked for a session while there was no leader")                    \
    R(size, "clients whose request was longer than jute.maxbuffer, or no request")                 \
    R(deafness, "clients that did not take what was sent to them")                                 \
    R(delay, "clients whose reads between writes took so much that all others had to wait")        \
    R(authentication, "clients that failed to authenticate")                                       \
    R(permission, "requests that an ACL does not allow")                                           \
    R(quota, "requests over a quota")                                                              \
    R(cost, "requests that would have cost far more than their size")                              \
    R(memory, "requests and connections while memory was short")                                   \
    R(read_only, "writes without a leader")                                                        \
    R(host, "HTTP requests for a host that this server is not")                                    \
    R(command, "an operator's commands from somebody who may not give them")

enum refusal {
#define REFUSAL_NAME(NAME, HELP) REFUSED_##NAME,
    REFUSALS(REFUSAL_NAME) REFUSAL_KINDS
};

struct statistics { /* since the start, or since an operator reset them */
    uint64_t received, sent, bytes_received, watch_bytes;
    struct tally responses;       /* bytes */
    struct summary reads, writes; /* microseconds */
    uint64_t commits;
    uint64_t sessions_asked, dropped, expired;
    uint64_t refused[REFUSAL_KINDS];
    uint64_t reloads, reloads_failed; /* of certificates and keys */
    uint64_t long_iterations;         /* of the loop: nobody was heard meanwhile */
    uint64_t full_iterations;         /* steps were used up */
};

struct http;

/* What reports on a server, and is called by it. */
struct server_admin {
    /* Whether a new connection begins with a four-letter word, which is then answered. */
    bool (*answer_word)(struct connection *connection, const unsigned char *bytes);
    /* Warns of each word in the settings that there is not. */
    void (*check_words)(const struct settings *settings);
    /* Listens at the addresses of the settings; one that fails is logged and left out.  Sets
     * server->http, and returns 0 or an exit status. */
    int (*open)(struct server *server);
    void (*close)(struct http *http); /* after the loop */
    /* Reads the administrators' token again; false: it cannot be used, and the old one stays. */
    bool (*reload)(struct server *server);
    /* Listings take several loop iterations, as some reads do. */
    void (*go_on)(struct server *server); /* with the one that is asked for over HTTP */
    void (*close_listing)(struct listing *listing);
    /* What was proposed under that ticket is committed and applied. */
    void (*answered)(struct server *server, uint32_t ticket, int32_t err,
                     const struct bytes *reply);
    /* A node was created, deleted or changed; only while server->is_observed. */
    void (*changed)(struct server *server, int32_t type, struct zk_text path);
};

/* Files that may be replaced while the server runs; see reload.c. */
enum credential {
    CREDENTIALS_OF_CLIENTS,
    CREDENTIALS_OF_MEMBERS,
    CREDENTIALS_OF_ADMINS,
    CREDENTIALS
};

struct credentials {
    uint64_t loaded[CREDENTIALS]; /* what tells the files that were read last from others */
    uint64_t seen[CREDENTIALS];   /* ... and those that were there at the last look */
};

struct server {
    struct settings settings;
    struct clock clock;
    struct busy work; /* of the loop */
    struct tree tree;
    struct watches watches;
    struct ensemble *ensemble;
    struct connections connections;
    struct session_tracker sessions;
    struct statistics statistics;
    struct {
        uint64_t limit;        /* bytes; 0: none */
        uint64_t watches_max;  /* bytes */
        size_t entries_max;    /* bytes */
        uint64_t used, weight; /* when it was measured last: of the process, and of what it keeps */
        uint64_t allocated, allocated_weight; /* and not freed, when that was counted last */
        uint64_t around;   /* resident that is not allocated: stacks, data of libraries */
        uint64_t resident; /* with what was freed, and with copies */
        uint64_t count_after_ns, give_after_ns;
        struct copies copies;
        bool is_short;
    } memory;
    int64_t started_ms; /* since 1970 */
    uint64_t started_us;
    uint64_t summaries_us; /* when the period of the summaries began */

    uv_loop_t loop;
    uv_prepare_t waiting; /* of an iteration: it waits for events next ... */
    uv_check_t iteration; /* ... and its end */
    uv_idle_t busy;       /* active: the loop does not block, for there is work */
    uv_timer_t tick, expiry, touch, leave, sweep, look;
    uv_signal_t terminate, interrupt, child, hangup;
    uint64_t ticked_us;
    bool sessions_due;      /* they are checked for expiry after what has arrived is read */
    node_id expirable_next; /* is looked at next; 0: none is due */
    bool removes_expired;   /* what is due to be removed, if this server leads */
    struct steps steps;
    struct reading reading;
    bool reading_ended; /* and not all is applied that was committed then: up to this index */
    uint64_t committed_then;
    bool entries_yield; /* one that took several iterations has ended: those that waited for it have
                           their turn before the next */
    struct applying applying;
    uint64_t reads_before; /* at the end of the last iteration */

    struct net_listener listener[2 * SETTINGS_LISTEN_MAX];
    unsigned listeners;
    struct tls *tls; /* NULL: plain only */
    struct credentials credentials;
    uint64_t tls_logged_us, busy_logged_us;

    const struct server_admin *admin;
    struct http *http;
    bool is_observed;   /* its admin wants to know of each change */
    int64_t trace_mask; /* of the words gtmk and stmk; nothing is traced */

    struct bytes reply;  /* scratch */
    uint64_t seed;       /* of hashes */
    uint64_t leaving_us; /* since when no requests are read and leadership is transferred */
    bool stopping;
    int exit_status;
};

/* While a read takes several iterations no entry is applied, and no other such read begins; when it
 * is over, what is committed is applied before the next one. */
static inline bool reading_is_on(const struct server *server) {
    return server->reading.connection || server->reading.listing;
}
void reading_drop(struct server *server);

/* When a session expires unless it is heard from, by the monotonic clock. */
static inline uint64_t session_deadline_ms(const struct server *server, uint32_t slot) {
    return server->sessions.at[slot].deadline_ms + server->sessions.extended_ms;
}

enum { SERVER_EXIT_FAILED = 3 };

/* Runs a server until it is told to end; returns the exit status. */
int server_run(struct server *server, const struct settings *settings,
               const struct server_admin *admin);
void server_stop(struct server *server, int status);

/* A write of an operator, with these identities; server_admin.answered follows.  Or not: an error
 * says why.  The ticket is not 0. */
int32_t server_propose(struct server *server, uint32_t ticket, const struct zk_clients *identities,
                       int32_t op, struct zk_in body);

/* For reports: sends what was written and ends the connection; zeroes its counts. */
void connection_end_after(struct connection *connection);
/* It goes on in a later loop iteration, or when it has its turn. */
void connection_wait(struct connection *connection);
void connection_reset_statistics(struct connection *connection);

/* Whether there is memory to go on with an answer that has so many bytes already.  It is measured
 * now and then, as what counts grows, and when somebody says so. */
bool memory_allows_answer(struct server *server, size_t size);
void memory_measure(struct server *server);

#endif
