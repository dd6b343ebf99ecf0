/* What the files of the HTTP server share: http.c, and the page of a browser.
 *
 *   page.c         which part of the page answers what
 *   page_state.c   the server and its ensemble, as an object
 *   page_events.c  the same, each second, as a stream of events
 *   page_tree.c    nodes and their children
 *   page_locks.c   locks and elections, and who waits for whom
 *   page_holds.c   how long locks are held
 *   page_write.c   nodes that an operator writes
 *   page_turn.c    when it is answered */
#ifndef CV_SERVICE_ADMIN_HTTP_H
#define CV_SERVICE_ADMIN_HTTP_H

#include <microhttpd.h>

#include "base/asset.h"
#include "service/admin/internal.h"

/* ---- The library ---- */

#define MHD_FUNCTIONS(F)                                                                           \
    F(add_connection)                                                                              \
    F(add_response_header)                                                                         \
    F(create_response_from_buffer)                                                                 \
    F(create_response_from_callback)                                                               \
    F(destroy_response)                                                                            \
    F(get_connection_info)                                                                         \
    F(get_daemon_info)                                                                             \
    F(get_timeout)                                                                                 \
    F(lookup_connection_value)                                                                     \
    F(lookup_connection_value_n)                                                                   \
    F(queue_response)                                                                              \
    F(resume_connection)                                                                           \
    F(run)                                                                                         \
    F(start_daemon)                                                                                \
    F(stop_daemon)                                                                                 \
    F(suspend_connection)

#define MHD_POINTER_(NAME) __typeof__(MHD_##NAME) *NAME;
struct mhd {
    MHD_FUNCTIONS(MHD_POINTER_)
};

/* ---- Doors ---- */

enum { HTTP_CONNECTIONS_MAX = 32 };

/* A way in.  Each has a limit of its own: a crowd at the addresses does not lock out whoever comes
 * by the socket, or for metrics alone. */
struct door {
    struct server *server;
    struct net_listener listener[SETTINGS_LISTEN_MAX]; /* of addresses */
    const struct mhd *mhd;
    struct MHD_Daemon *daemon;
    uv_poll_t ready;
    uv_timer_t timer;
    struct visitor {
        int socket;        /* 0: free */
        uint64_t since_us; /* it came, or was answered last */
    } visitor[HTTP_CONNECTIONS_MAX];
    unsigned visitors;
};

struct page_events { /* see page_events.c */
    uv_timer_t timer;
    struct stream *first;
    unsigned count;
    struct summary_mark reads, writes; /* when the last event was made */
};

struct page_writes { /* see page_write.c */
    uv_timer_t timer;
    struct writing *first; /* that wait for an answer */
    unsigned count;
    uint32_t ticket; /* of the last one */
};

struct page_turns { /* see page_turn.c */
    uv_timer_t timer;
    struct turn *first; /* that wait */
    uint64_t spent_ns;  /* in this iteration of the loop */
};

struct http {
    struct mhd mhd;
    struct door addresses; /* opened with the first connection: few servers are ever asked */
    struct door metrics;   /* it serves nothing else */
    struct door socket;
    struct secret token; /* of administrators; its size is 0 if there is none */
    uint64_t refused_us; /* when a refusal was logged last */
    struct asked *asked; /* listings that somebody waits for; the first is being written */
    struct page_events events;
    struct bytes super; /* the identity of the super user, as clients have theirs */
    struct page_writes writes;
    struct page_turns turns;
    struct page_holds *holds; /* NULL: nobody looks at locks */
};

/* One request. */
struct http_request {
    struct door *door;
    struct MHD_Connection *connection;
    const char *path; /* of the address, without its arguments */
};
const char *http_header(const struct http_request *request, const char *name); /* NULL: none */
/* An argument of the address; its size is -1 if there is none. */
struct zk_text http_argument(const struct http_request *request, const char *name);

/* A request that takes several calls: it has a body, or its answer takes some time.  It begins
 * whatever is kept of that request. */
struct http_state {
    enum MHD_Result (*go_on)(const struct http_request *request, struct http_state *state,
                             const char *upload, size_t *upload_size);
    void (*end)(struct http_state *state); /* the request is over: frees it */
};

/* ---- Answers ---- */

#define HTTP_JSON "application/json"
#define HTTP_TEXT "text/plain; charset=utf-8"
#define HTTP_HTML "text/html; charset=utf-8"

struct answer {
    unsigned status;
    const char *type;
    struct bytes text;
    const struct asset *asset; /* instead of the text; NULL: the text */
};

struct answer http_in_words(unsigned status, const char *text);
struct answer http_in_json(json_t *value); /* which it takes */
void http_add_json(struct bytes *out, const json_t *value, size_t flags);
enum MHD_Result http_send(const struct http_request *request, struct answer *answer);
/* What every answer says to a browser. */
void http_add_headers(const struct mhd *mhd, struct MHD_Response *response, const char *type);

void http_run(struct door *door);
void http_run_soon(struct door *door); /* in the next iteration of the loop */
/* Whoever is served now is not the one to make room for others. */
void http_note_answer(struct door *door, struct MHD_Connection *connection);
int http_socket(const struct http_request *request);

/* ---- command.c ---- */

bool command_is_of_ensemble(const char *path); /* such come as POST */
bool command_is_change(const char *path);      /* of another kind */
struct answer command_answer(const struct http_request *request);
/* Whether it comes from somebody who may change something. */
bool http_is_operator(const struct http_request *request);
struct answer command_refuse(const struct http_request *request, const char *verb);

/* ---- page.c ---- */

extern const struct asset server_pages[]; /* made by scripts/pages.awk */

/* Whether it is for the page.  `/` is, for a browser. */
bool page_is_asked(const struct http_request *request);
/* `seen` is set if it is answered later. */
enum MHD_Result page_answer(const struct http_request *request, void **seen);
enum MHD_Result page_answer_now(const struct http_request *request);
struct answer page_error(unsigned status, const char *code, const char *words);
struct answer page_refuse(const struct http_request *request, const char *verb);
/* As whom a request reads the tree: as nobody, or with the token as the super user.  False: it
 * cannot be read now, or the token is wrong; `error` says so. */
bool page_reader(const struct http_request *request, struct zk_clients *identities,
                 struct answer *error);
/* Its argument `limit`. */
unsigned page_limit(const struct http_request *request, unsigned usual, unsigned max);

/* ---- page_turn.c ---- */

/* Whether others come first; `seen` is then what is kept of the request. */
bool page_turn_waits(const struct http_request *request, void **seen);
void page_turn_took(struct server *server, uint64_t since_ns); /* it was answered */
void page_turns_open(struct server *server);
void page_turns_end(struct http *http); /* before the doors close */

/* ---- page_tree.c ---- */

struct answer page_tree(const struct http_request *request);
struct answer page_node(const struct http_request *request);
/* Of a node that may be gone: NULL. */
void page_add_stat(struct bytes *out, const struct zk_stat *stat, const struct node *node);

/* ---- page_write.c ---- */

bool page_write_is_asked(const char *method, const char *path);
/* When its header is there; *state is set if the body may follow, and otherwise it is answered. */
enum MHD_Result page_write_begin(const struct http_request *request, struct http_state **state);
void page_write_answered(struct server *server, uint32_t ticket, int32_t err,
                         const struct bytes *reply);
void page_writes_open(struct server *server);
void page_writes_end(struct http *http); /* before the doors close */

/* ---- page_locks.c ---- */

struct answer page_locks(const struct http_request *request);

/* ---- page_holds.c ---- */

/* What is known of how long a lock is held, by which these are; it is followed from now on.  NULL:
 * it is not followed. */
struct roll_entry;
const struct holds *page_holds_look(struct server *server, node_id lock,
                                    const struct roll_entry *entries, size_t count);
void page_holds_changed(struct server *server, int32_t type, struct zk_text path);
void page_holds_forget(struct http *http);

/* ---- page_state.c ---- */

/* The times of requests are those since the marks; NULL: those of the last minutes. */
json_t *page_state(const struct server *server, const struct summary_mark *reads,
                   const struct summary_mark *writes);

/* ---- page_events.c ---- */

enum MHD_Result page_events_begin(const struct http_request *request);
void page_events_open(struct server *server);
void page_events_end(struct http *http); /* before the doors close */

#endif
