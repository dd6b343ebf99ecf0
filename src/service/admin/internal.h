/* What the files of this folder share: what is reported is described once, and words (text) and
 * HTTP (JSON, metrics) differ only in how they write it. */
#ifndef CV_SERVICE_ADMIN_INTERNAL_H
#define CV_SERVICE_ADMIN_INTERNAL_H

#include <jansson.h>

#include "service/admin/admin.h"

/* The release of ZooKeeper whose clients are served comes first, because clients compare it; then,
 * as ZooKeeper has it, which build this is and its date.  The release is Conclave's alone. */
#define REPORT_ZOOKEEPER "3.8.0"
extern const char report_version[], report_release[];

enum item_kind { ITEM_TEXT, ITEM_NUMBER, ITEM_HEX, ITEM_REAL };

struct item {
    const char *word, *json; /* its name in words, and in JSON; NULL: it is not there */
    enum item_kind kind;
    union {
        const char *text;
        int64_t number;
        double real;
    };
};

typedef void item_fn(void *context, const struct item *item);

/* ---- metrics.c ---- */

void report_figures(const struct server *server, item_fn *each, void *context);
/* In the text format of Prometheus. */
void report_metrics(const struct server *server, struct bytes *out);
/* The times of all requests, microseconds. */
struct tally report_latency(const struct server *server);

/* ---- report.c ---- */

const char *report_mode(const struct server *server);
/* What ZooKeeper calls the same of a server of an ensemble; NULL: it is alone. */
const char *report_peer_state(const struct server *server);
/* Whether a learner is to get a vote, once it has caught up. */
bool report_is_learning(const struct raft_member *member, const struct member_list *target);
void report_configuration(const struct server *server, item_fn *each, void *context);
struct zk_text report_membership(const struct server *server); /* empty: it is alone */
void report_environment(item_fn *each, void *context);

enum { REPORT_ADDRESS_MAX = 80 };
/* "127.0.0.1:4711" */
void report_address(const struct connection *connection, char text[REPORT_ADDRESS_MAX]);
/* What a selector of ZooKeeper would wait for: 1 to read, 4 to write. */
int report_interest(const struct connection *connection);
/* `brief`: only what every connection has. */
void report_connection(const struct connection *connection, bool brief, item_fn *each,
                       void *context);

struct directory_sizes {
    int64_t data, log;
};
struct directory_sizes report_directories(const struct server *server);

/* A session, or a connection, and the tick at which it expires unless it is heard from. */
struct expiry {
    int64_t at_ms, session;
    char address[REPORT_ADDRESS_MAX]; /* of a connection */
    int32_t timeout_ms;               /* of a session */
};
bool report_knows_expiries(const struct server *server); /* of sessions: a leader does */
struct expiry report_session_expiry(const struct server *server, uint32_t slot);
struct expiry report_connection_expiry(const struct connection *connection);
bool report_is_before(const struct expiry *a, const struct expiry *b);

/* The next watch of a connection, or at a path, that is one for data; 0: none. */
uint32_t report_watch_held(const struct server *server, uint32_t connection, uint32_t after);
uint32_t report_watch_at(const struct server *server, uint32_t path, uint32_t after);
struct watch_count {
    uint32_t connections, paths, watches;
};
struct watch_count report_watches(const struct server *server);
static inline struct zk_text report_watched(const struct server *server, uint32_t path) {
    const struct watched_path *watched = &server->watches.path[path];
    return (struct zk_text){watched->text, (int32_t)watched->size};
}

/* ---- listing.c ---- */

/* Reports that are written in steps. */
struct listing *listing_of_word(const struct connection *asking, const char *word);
/* The name of one that is asked for by its name or its word; NULL: it is not one of them. */
const char *listing_command_name(const char *name);
struct listing *listing_of_command(const struct server *server, const char *name);
bool listing_write(struct listing *listing, struct bytes *out, size_t *steps); /* true: all of it */
void listing_close(struct listing *listing);

/* ---- json.c ---- */

json_t *json_connection(const struct connection *connection, bool brief);
json_t *json_server_stats(const struct server *server);

/* By its name or its four-letter word; NULL: there is no such command, or it is a listing. */
json_t *json_command(const struct server *server, const char *name);
const char *json_command_name(size_t i); /* NULL after the last */
/* Those that change something, which operators may do.  `argument` NULL: there is none. */
bool json_is_change(const char *name);
json_t *json_change(struct server *server, const char *name, const char *argument);
json_t *json_status(const struct server *server);
json_t *json_ensemble(const struct server *server);

/* ---- json_text.c ---- */

/* Appends a string with its quotes.  What is no UTF-8 becomes U+FFFD; -1 is null. */
void json_add_text(struct bytes *out, struct zk_text text);

/* ---- json_members.c ---- */

/* The number of a member; null: nobody. */
json_t *json_member(uint8_t id);

/* Each fills its answer. */

void json_leader(const struct server *server, json_t *to);
void json_voting_view(const struct server *server, json_t *to);
void json_zabstate(const struct server *server, json_t *to);
void json_observers(const struct server *server, json_t *to);
void json_last_snapshot(const struct server *server, json_t *to);

/* ---- access.c ---- */

/* Who wants something changed, and by which way. */
struct caller {
    bool by_socket;                 /* the one in the data directory; otherwise over HTTP */
    uid_t user;                     /* by the socket: whose process it is */
    char address[INET6_ADDRSTRLEN]; /* over HTTP */
    const char *authorization;      /* over HTTP: that header; NULL: there was none */
};
/* Whether a server, whose process is of the user `own`, takes commands from there.  A token of size
 * 0 is none. */
bool access_granted(const struct caller *caller, uid_t own, const struct secret *token);
/* Reads the token, if the settings name one.  False: it has logged why not, and the token is as it
 * was. */
bool access_open(const struct settings *settings, struct secret *token);

/* ---- host.c ---- */

/* Whether a request may name that host (NULL: none), as far as it came by an address. */
bool host_is_known(const struct server *server, const char *host);

/* ---- socket.c ---- */

/* Listens in a data directory that is this process's alone, given by its path and open.  Returns
 * the socket; -1: `problem` says why not. */
int socket_listen(const char *path, int directory, const char **problem);
/* Whose process has connected.  False: the system does not say. */
bool socket_user(int connection, uid_t *user);

/* ---- words.c, http.c ---- */

void word_print_version(struct bytes *out);
void word_print_state(const struct server *server, struct bytes *out);
void word_print_connection(const struct connection *connection, bool brief, struct bytes *out);

void word_reset_connections(const struct server *server);
void word_reset_server(struct server *server);

bool word_answer(struct connection *connection, const unsigned char *bytes);
void words_check(const struct settings *settings);
int http_open(struct server *server);
void http_close(struct http *http);
bool http_reload(struct server *server);
void http_go_on(struct server *server); /* with the listing that somebody waits for */

__attribute__((format(printf, 2, 3))) void report_print(struct bytes *out, const char *format, ...);

#endif
