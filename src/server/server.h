/* The server: clients' connections on one side, the log and the tree on the other, and the life of
 * a request between them.
 *
 *   connection.c  frames as they come in; which of them wait for which
 *   request.c     what is answered at once: reads, watches, who is asking
 *   session.c     the handshake; sessions that are alive, and those that no longer are
 *   commit.c      what goes through the log: put forward here; applied, told to those who watch,
 *                 and answered when it is decided
 *   replica.h     this server's part in the ensemble: how it comes to be decided
 *   store.c       the files: start from a snapshot and the log, snapshots in the background
 *   server.c      listening, timers, signals
 *
 * A request that writes is put forward when it is met, and is answered when it has been applied.
 * Nothing else is remembered of it but whom to answer; and because the bytes of a connection's
 * requests stay in its buffer until they are answered, a read behind a write needs no memory
 * either: it is met again when the write is done. */
#ifndef CV_SERVER_SERVER_H
#define CV_SERVER_SERVER_H

#include "net/stream.h"
#include "net/tls.h"
#include "raft/log.h"
#include "raft/snapshot.h"
#include "server/replica.h"
#include "server/settings.h"
#include "server/summary.h"
#include "tree/tree.h"
#include "tree/watch.h"

/* ---- Connections ---- */

enum connection_state {
    CONNECTION_NEW,     /* has not said anything yet */
    CONNECTION_JOINING, /* its session is on its way through the log */
    CONNECTION_OPEN,
    CONNECTION_LEAVING, /* has closed its session, which is on its way */
    CONNECTION_ENDING,  /* what is to be sent is sent, nothing more is read */
};

enum { SESSIONS_TOLD_MS = 250 };               /* the leader hears of others' clients that often */
enum { CONNECTION_IDENTITIES_MAX = 64 << 10 }; /* bytes: each of its writes carries them all */
enum { CONNECTION_SILENCE_MS = 15000 };        /* to ask for a session; to take the last answer */

struct connection {
    struct net_stream stream;
    struct server *server;
    uint32_t number; /* among the server's connections */
    uint32_t serial; /* of all there have been: a number is used again */
    enum connection_state state;
    uint32_t session; /* its place in the tree; 0: none */
    int64_t session_id;
    int64_t seen_zxid;      /* when it came: the newest it had seen anywhere */
    bool read_only;         /* it came when there was no leader, and may only read */
    bool answers_read_only; /* the handshake had that byte */
    bool dirty;             /* has something to be sent at the end of the turn */
    struct bytes in;        /* requests that are not answered, and half a one */
    size_t done, ahead;     /* in there: what is answered; how far writes have been put forward */
    bool changing, awaits_change; /* its request to change the members is on its way; is decided */
    int32_t change_xid;
    uint64_t ticket;      /* of reads that wait to be fresh; see fresh.c */
    size_t ticket_covers; /* in `in`: those that had come when it was taken */
    uint32_t waiting;     /* writes of this connection in the log's batch or on their way */
    struct bytes identities;
    int32_t identity_count;
    char address[64]; /* "127.0.0.1" */
    int32_t port;
    int64_t established_ms, ending_ms; /* since 1970 */
    uint64_t received, sent;
    uint64_t received_before; /* when it was last looked at */
    int32_t last_op, last_xid;
    int64_t last_zxid;
    uint64_t came_us, last_answer_us;
    uint32_t untimed;     /* reads that were answered since, and whose time is not taken yet */
    struct tally latency; /* microseconds */
};

struct live {            /* what this server knows of a session, by its place in the tree */
    uint32_t connection; /* 0: none */
    int32_t timeout_ms;
    uint64_t deadline_ms; /* by the monotonic clock */
    bool closing;         /* its end is on its way through the log */
    bool touched;         /* heard of here since the leader was last told */
};

struct pending { /* whom to answer when an entry of ours is applied, in the order of numbers */
    uint32_t connection, serial; /* connection 0: nobody */
    int32_t xid, op;
    uint64_t begun_us;
};

struct statistics { /* since the start, or since somebody had them begin anew */
    uint64_t received, sent, bytes_received, watch_bytes;
    struct tally responses; /* bytes */
    struct summary reads, writes, syncs, snapshots;
    uint64_t proposals, commits, log_bytes, slow_syncs, snapshots_failed;
    uint64_t joins, refused, dropped, silent, auth_failed, expired;
    uint64_t handshakes_failed; /* of TLS */
    uint64_t frames_refused;    /* from other servers */
};

struct server {
    struct settings settings;
    uv_loop_t loop;
    uv_check_t turn;
    uv_idle_t more; /* running: the loop does not wait, for there is a batch */
    uv_timer_t tick, containers, touch, leave;
    uint64_t ticked_us;
    bool sessions_due; /* to be looked at when what has come meanwhile is read */
    uv_signal_t terminate, interrupt, child;
    struct net_listener listener[2 * SETTINGS_LISTEN_MAX];
    unsigned listeners;
    struct tls *tls; /* NULL: nobody speaks it */
    int64_t tls_said_ms;
    int data_directory, log_directory;

    struct tree tree;
    struct watches watches;
    struct replica replica;
    struct tls *peer_tls; /* between servers; NULL: plain */
    struct log log;
    uint64_t log_bytes_at_snapshot, index_at_snapshot, image_bytes; /* of the last one */
    uv_work_t save;
    struct raft_batch batch;  /* that is being saved, or was last */
    struct bytes saved_bytes; /* its bytes, while a thread has it */
    bool saving;              /* by a thread, which has the log until it is done */
    bool save_failed, trim_due;
    uint64_t reads_before, held_entries, held_until_us; /* see expects_company */
    uint64_t save_us;
    int snapshot_process;                        /* 0: none is under way */
    uint64_t snapshot_begun_us, snapshot_us;     /* when it began; how long the last one took */
    uint64_t snapshot_index, snapshot_log_bytes; /* what it has */
    uint64_t snapshot_retry_us;                  /* after one that failed: none before then */

    struct connection **connection; /* by number, from 1 */
    size_t connection_room;
    int client_descriptors; /* numbers from here on are not for clients' sockets */
    int64_t descriptors_said_ms;
    uint32_t connection_places, connections, serial;
    uint32_t *dirty, *free_number;
    size_t dirties, dirty_room, free_numbers, free_number_room;

    struct live *live; /* by place of the session */
    size_t live_room;
    uint32_t lives;
    int64_t next_session_id;
    int64_t *touched; /* what the leader is to be told of */
    size_t touches, touch_room;

    struct pending *pending; /* a ring */
    size_t pending_room, pending_first, pending_count;

    struct bytes reply; /* what is being made */
    uint64_t seed;      /* of hashes */
    int64_t now_ms;     /* since 1970, of this turn */
    uint64_t clock_us;  /* monotonic, of this turn */
    int64_t started_ms;
    struct statistics statistics;
    int64_t summaries_ms; /* when the summaries' period began */
    int64_t trace_mask;   /* only remembered */
    struct http *http;    /* NULL: not asked for */
    bool held;            /* some connection waits for the outbox to have room */
    uint64_t leaving_us;  /* since when: what has come is finished, and leadership handed over */
    bool stopping;
    int exit_status;
};

/* ---- server.c ---- */

enum { SERVER_EXIT_DISK = 3, SERVER_EXIT_NETWORK = 3, SERVER_EXIT_TLS = 3 };

/* Runs until it is told to end; what it returns is the exit status. */
int server_run(struct server *server, const struct settings *settings);
void server_stop(struct server *server, int status);
/* A line of the log for people: time, level, what, and pairs of names and values. */
__attribute__((format(printf, 2, 3))) void server_say(const char *level, const char *format, ...);
void server_read_clock(struct server *server);
/* There is something to do at the end of this turn; and there is nothing any more. */
void server_wake(struct server *server);
void server_rest(struct server *server);

/* ---- connection.c ---- */

void connection_accept(struct net_listener *listener);
void connection_accept_tls(struct net_listener *listener);
void connection_end(struct connection *connection);       /* now */
void connection_end_after(struct connection *connection); /* when all is sent */
/* Goes on with the requests that have come. */
void connection_go_on(struct connection *connection);
/* The write at the front has been answered. */
void connection_answered(struct connection *connection);
void connection_dirty(struct connection *connection);
/* Called now and then: one that is idle keeps no buffers. */
void connection_rest(struct connection *connection);
void connection_notify(struct connection *connection, int32_t type, struct zk_text path);
void connection_count_anew(struct connection *connection);
void connections_flush(struct server *server);
/* Goes on with those that waited for room in the outbox. */
void connections_unhold(struct server *server);
/* Goes on with those whose reads may be answered now. */
void connections_freshen(struct server *server);
struct zk_clients connection_identities(const struct connection *connection);
/* False: it has too many others. */
bool connection_add_identity(struct connection *connection, const char *scheme, struct zk_text id);

/* A frame to the client: begin, write the body, end.  With an error the body is taken back. */
size_t reply_begin(struct connection *connection);
void reply_end(struct connection *connection, size_t reply, int32_t xid, int64_t zxid, int32_t err);

/* ---- request.c ---- */

/* Answers a request that does not go through the log.  False: the connection is to end. */
bool request_answer(struct connection *connection, const struct zk_request_header *header,
                    struct zk_in *body);

/* ---- session.c ---- */

void session_connect(struct connection *connection, struct zk_in *frame);
void session_joined(struct connection *connection, int64_t id, int32_t err);
/* It goes on at a connection here, or elsewhere (NULL). */
void session_moved(struct server *server, int64_t id, struct connection *connection);
/* Another server has heard of it. */
void session_heard(struct server *server, int64_t id);
/* A new leader does not know when it was last heard of whom: all have all of their time. */
void sessions_renew(struct server *server);
void sessions_tell_leader(struct server *server);
/* There is no leader, or there is one again: not all clients can stay. */
void sessions_without_leader(struct server *server);
void sessions_with_leader(struct server *server);
void session_ended(struct server *server, uint32_t place);
void session_touch(struct connection *connection);
void sessions_start(struct server *server);
void sessions_check(struct server *server);
/* This server stood still for a while, and heard of nobody. */
void sessions_lengthen(struct server *server, uint64_t ms);
struct live *session_live(struct server *server, uint32_t place);

/* ---- commit.c ---- */

/* Puts a request forward; `connection` NULL: the server's own. */
void commit_propose(struct server *server, struct connection *connection, int64_t session,
                    int32_t xid, int32_t op, struct zk_in body);
void commit_propose_own(struct server *server, int32_t op, struct zk_in body);
/* The time of the session at that place is up. */
void commit_expire(struct server *server, uint32_t place);
/* An entry is decided. */
void commit_apply(struct server *server, const struct raft_entry *entry);
/* Entries of ours up to that number need no answer any more. */
void commit_forget(struct server *server, uint64_t number);
void commit_tell_watchers(struct server *server);
void commit_turn(struct server *server);

/* ---- store.c ---- */

/* 0, or an exit status; it has said why.  The tree is as the log says, as far as that is known to
 * be decided; the rest is in the replica's window. */
int store_open(struct server *server);
void store_close(struct server *server);
/* Starts a snapshot in the background when it is time for one. */
void store_snapshot(struct server *server, bool now);
void store_snapshot_done(struct server *server);
/* After one: removes what is no longer needed, when the log is free. */
void store_trim(struct server *server);

/* ---- words.c ---- */

/* Answers a four-letter word, if that is what the connection begins with. */
bool word_answer(struct connection *connection, const unsigned char *bytes);

#endif
