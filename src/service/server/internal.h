/* What the files of the server share. */
#ifndef CV_SERVICE_SERVER_INTERNAL_H
#define CV_SERVICE_SERVER_INTERNAL_H

#include "service/server/server.h"

enum { SESSIONS_REPORT_MS = 250 }; /* touched sessions are reported that often */
/* Bytes: each of its writes carries them all through the log, and is checked with each of them. */
enum { CONNECTION_IDENTITIES_MAX = 1 << 10 };
enum { CONNECTION_UNSENT_MAX = 1 << 20 }; /* bytes; with more, its requests are not handled */

/* ---- server.c ---- */

/* There is work for the end of this loop iteration. */
void server_wake(struct server *server);

/* ---- cost.c ---- */

/* What is refused for want of memory.  All clients know this error; for one that is younger than
 * they are, as that of quotas, some give up their connection for ever. */
enum { MEMORY_IS_SHORT = ZK_SYSTEMERROR };

/* The error that a write is to be answered with, or ZK_OK: it may go through the log. */
int32_t cost_judge(const struct connection *connection, const struct zk_op *op, struct zk_in body);
/* The same of an operator's. */
int32_t cost_judge_operator(struct server *server, const struct zk_clients *identities,
                            const struct zk_op *op, struct zk_in body);

/* ---- crowd.c ---- */

uint64_t crowd_network(const struct sockaddr *address);
uint32_t crowd_count(const struct crowds *crowds, uint64_t network);
void crowd_join(struct crowds *crowds, uint64_t network);
void crowd_leave(struct crowds *crowds, uint64_t network);
void crowds_close(struct crowds *crowds);

/* ---- memory_limit.c ---- */

/* Bytes: what is set, or the limit of a group that a file as /proc/self/cgroup names, whatever is
 * less; 0: none. */
uint64_t memory_limit(int32_t set_mib, const char *groups, const char *root);

/* ---- memory.c ---- */

void memory_open(struct server *server);
bool memory_is_short(struct server *server);
bool memory_holds_entries(struct server *server);     /* until a snapshot is written */
bool memory_is_short_anywhere(struct server *server); /* here, or at another member */
void memory_bound_steps(struct server *server);
bool memory_allows_watch(struct server *server, bool is_restored); /* one more */
bool memory_allows_connection(struct server *server);              /* one more */

/* ---- copies.c ---- */

#define COPIES_UNKNOWN UINT64_MAX

/* Bytes that a process shares with no other; COPIES_UNKNOWN: the system does not tell. */
uint64_t copies_counted(int process);
void copies_open(struct server *server);
void copies_follow(struct server *server); /* a snapshot may have been begun, or be written */
uint64_t copies_bytes(const struct server *server);
/* Of those, what the writes since the last look can have caused, and seldom do. */
uint64_t copies_expected(const struct server *server);

/* ---- reload.c ---- */

/* Between two looks at the files: a change is noticed at the first, and read at the second. */
enum { CREDENTIALS_LOOK_MS = 1000 };

void credentials_open(struct server *server); /* they have been read */
bool credentials_are_used(const struct server *server);
void credentials_check(struct server *server);  /* reads those that have changed */
void credentials_reload(struct server *server); /* reads all again */

/* ---- accept.c ---- */

void connection_accept(struct net_listener *listener);
void connection_accept_tls(struct net_listener *listener);
void connection_end(struct connection *connection);         /* now */
void connection_shake_hands(struct connection *connection); /* with what it has sent */
void connections_end(struct server *server);                /* all */
void connections_forget(struct server *server);             /* watches of some that have ended */
void connections_check(struct server *server); /* now and then: ends those that time out */
void connections_claim_descriptors(struct server *server);
void connections_close(struct connections *connections); /* frees the memory */

/* ---- connection.c ---- */

/* Goes on with the requests that have arrived. */
void connection_receive(struct connection *connection, const unsigned char *bytes, size_t size);
void connection_process(struct connection *connection);
/* The write at the front has been answered. */
void connection_answered(struct connection *connection);
bool connection_awaits_answer(const struct connection *connection);
/* Whether it has reads that are to be answered before the next entry is applied. */
void connection_count_delay(struct connection *connection, bool delays);
void connections_resume(struct server *server); /* after backpressure */
/* Serves the reads whose read index is reached. */
void connections_serve_reads(struct server *server);

/* ---- incoming.c ---- */

size_t connection_room(struct net_stream *stream);   /* for more of what it sends */
void connection_tidy(struct connection *connection); /* gives memory back; reads on, or not */
void connection_count_received(struct connection *connection, size_t received);
void connections_bound_received(struct server *server);

/* ---- outgoing.c ---- */

/* A frame to the client: begin, write the body, end.  With an error the body is taken back. */
size_t reply_begin(struct connection *connection);
void reply_end(struct connection *connection, size_t reply, int32_t xid, int64_t zxid, int32_t err);
/* It has something to be sent at the end of the iteration. */
void connection_dirty(struct connection *connection);
void connections_flush(struct server *server);
/* Whether it has much to take, and has long taken nothing of it. */
bool connection_is_deaf(struct connection *connection);
/* Ends some of those that take nothing, while too much waits for all together. */
void connections_bound_unsent(struct server *server);
void connection_count_unsent(struct connection *connection, size_t unsent);
void connection_notify(struct connection *connection, int32_t type, struct zk_text path);
void connection_miss_events(struct connection *connection);
/* False: nothing may be answered yet, or ever. */
bool connection_takes_answers(struct connection *connection);
/* Sends those that have become too many at once. */
void connection_bound_answers(struct connection *connection);

/* ---- request.c ---- */

enum request_status {
    REQUEST_ANSWERED,
    REQUEST_REFUSED, /* the connection is to end */
    REQUEST_WAITS,   /* it is to be met again, in a later loop iteration */
};
/* Answers a request that does not go through the log. */
enum request_status request_answer(struct connection *connection,
                                   const struct zk_request_header *header, struct zk_in *body);
/* Goes on with the read that takes several iterations, if there is one. */
void reading_go_on(struct server *server);

/* ---- watching.c ---- */

/* Adds one, or not: ZK_OK or why not. */
int32_t watching_begin(struct connection *connection, struct zk_text path, enum watch_table table,
                       enum watch_mode mode);
int32_t watching_add(struct connection *connection, const struct zk_add_watch_request *request,
                     struct bytes *out);
int32_t watching_find(struct connection *connection, const struct zk_check_watches_request *request,
                      bool remove);
/* A setWatches or setWatches2; TREE_UNFINISHED: it goes on in a later loop iteration. */
int32_t watching_restore(struct connection *connection, int32_t op, struct zk_in *body);

/* ---- identity.c ---- */

struct zk_clients connection_identities(const struct connection *connection);
/* False: it has too many others. */
bool connection_add_identity(struct connection *connection, const char *scheme, struct zk_text id);
/* Takes an auth packet; false when it proves nothing. */
bool identity_prove(struct connection *connection, const struct zk_auth_request *request);

/* ---- session.c ---- */

/* The request that begins a new session, under an id that nobody has. */
enum { SESSION_OPENING_SIZE = sizeof(int32_t) + TREE_PASSWORD_SIZE };
int64_t session_opening(struct server *server, int32_t timeout_ms,
                        unsigned char body[SESSION_OPENING_SIZE]);
void session_connect(struct connection *connection, struct zk_in *frame);
void session_connected(struct connection *connection, int64_t id, int32_t err);
/* It goes on at a connection here, or elsewhere (NULL). */
void session_moved(struct server *server, int64_t id, struct connection *connection);
void session_touch(struct connection *connection);
/* Who wants to resume a session has been heard from, however long the log takes. */
void session_touch_proven(struct server *server, const struct zk_connect_request *request);
/* Whether its pings must not be answered: they renew nothing. */
bool session_is_out_of_touch(const struct connection *connection);
void sessions_end_out_of_touch(struct server *server);
/* Another server has heard from it. */
void session_touched(struct server *server, int64_t id);
void session_ended(struct server *server, uint32_t slot);
struct tracked_session *session_tracked(struct server *server, uint32_t slot);
void sessions_start(struct server *server);
/* A new leader does not know when sessions were last heard from: all get their full timeout. */
void sessions_renew(struct server *server);
void sessions_restart(struct server *server); /* the tree is another one */
void sessions_report(struct server *server);  /* to the leader */
/* There is no leader, or there is one again: ends the connections that cannot go on. */
void sessions_without_leader(struct server *server);
void sessions_with_leader(struct server *server);
/* Checks some of those that are to be checked for expiry. */
void sessions_check(struct server *server);
/* The server stood still for so long, and heard from nobody. */
void sessions_extend(struct server *server, uint64_t ms);

/* ---- propose.c ---- */

/* `connection` NULL: the server's own. */
void propose(struct server *server, struct connection *connection, int64_t session, int32_t xid,
             int32_t op, struct zk_in body);
/* Of an operator, with these identities; the ticket tells whom to answer. */
void propose_ticket(struct server *server, uint32_t ticket, const struct zk_clients *identities,
                    int64_t session, int32_t op, struct zk_in body);
/* Instead of a request: it is answered with the error when its turn comes. */
void propose_error(struct server *server, struct connection *connection, int32_t xid, int32_t err);
void propose_expiry(struct server *server, uint32_t slot); /* of a session */

/* ---- apply.c ---- */

enum ensemble_applied apply_entry(struct server *server, const struct raft_entry *entry);
void notify_watchers(struct server *server);
/* Answers clients whose reconfig has ended. */
void answer_reconfigs(struct server *server);

#endif
