/* What a server says of itself, each thing described once: words (text) and HTTP (JSON, metrics)
 * only differ in how they write it. */
#ifndef CV_SERVER_REPORT_H
#define CV_SERVER_REPORT_H

#include "server/server.h"

/* The release of ZooKeeper whose clients are served comes first, since clients compare it; then, as
 * the original has it, which build this is, and the day of its release. */
#define REPORT_ZOOKEEPER "3.8.0"
#define REPORT_VERSION                                                                             \
    REPORT_ZOOKEEPER "-conclave-" CONCLAVE_VERSION ", built on 11/01/2026 00:00 UTC"

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

/* ---- figures.c ---- */

void report_figures(const struct server *server, item_fn *each, void *context);
/* In the text format of Prometheus. */
void report_metrics(const struct server *server, struct bytes *out);
/* The times of all requests, microseconds. */
struct tally report_latency(const struct server *server);

/* ---- report.c ---- */

const char *report_mode(const struct server *server);
void report_configuration(const struct server *server, item_fn *each, void *context);
void report_environment(item_fn *each, void *context);

enum { REPORT_ADDRESS_MAX = 80 };
/* "127.0.0.1:4711" */
void report_address(const struct connection *connection, char text[REPORT_ADDRESS_MAX]);
/* What a selector of the original would wait for: 1 to read, 4 to write. */
int report_interest(const struct connection *connection);
/* `brief`: only what every connection has. */
void report_connection(const struct connection *connection, bool brief, item_fn *each,
                       void *context);

struct directory_sizes {
    int64_t data, log;
};
struct directory_sizes report_directories(const struct server *server);

/* Sessions, or connections, that end at a time unless they are heard of: by time, which is that of
 * the tick that looks for them.  To be freed. */
struct expiry {
    int64_t at_ms, session;
    const struct connection *connection; /* NULL: a session's */
};
size_t report_sessions(const struct server *server, struct expiry **expiries);
size_t report_connections(const struct server *server, struct expiry **expiries);
/* How many follow each other with the same time, from one on. */
size_t report_same_time(const struct expiry *from, const struct expiry *end);

/* The next watch of a connection, or at a path, that is one for data; 0: none. */
uint32_t report_watch_held(const struct server *server, uint32_t connection, uint32_t after);
uint32_t report_watch_at(const struct server *server, uint32_t path, uint32_t after);
struct watch_count {
    uint32_t connections, paths, watches;
};
struct watch_count report_watches(const struct server *server);
static inline struct zk_text report_watched(const struct server *server, uint32_t path) {
    const struct watched *watched = &server->watches.path[path];
    return (struct zk_text){watched->text, (int32_t)watched->size};
}

__attribute__((format(printf, 2, 3))) void report_print(struct bytes *out, const char *format, ...);

#endif
