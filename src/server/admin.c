#include "server/admin.h"

#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "server/report.h"

/* ---- Pieces ---- */

static void set_item(void *context, const struct item *item) {
    if (!item->json) return;
    json_t *value = item->kind == ITEM_TEXT   ? json_string(item->text)
                    : item->kind == ITEM_REAL ? json_real(item->real)
                                              : json_integer(item->number);
    json_object_set_new(context, item->json, value);
}

static const char *decimal(char text[24], int64_t number) {
    snprintf(text, 24, "%" PRId64, number);
    return text;
}

static json_t *text_of(struct zk_text text) { return json_stringn(text.at, (size_t)text.size); }

/* ---- The server ---- */

static void ruok(const struct server *s, json_t *to) { (void)s, (void)to; }

static void is_read_only(const struct server *s, json_t *to) {
    (void)s;
    json_object_set_new(to, "read_only", json_false());
}

static void configuration(const struct server *s, json_t *to) {
    report_configuration(s, set_item, to);
}

static void environment(const struct server *s, json_t *to) {
    (void)s;
    report_environment(set_item, to);
}

static void monitor(const struct server *s, json_t *to) {
    json_object_set_new(to, "version", json_string(REPORT_VERSION));
    json_object_set_new(to, "server_state", json_string(report_mode(s)));
    report_figures(s, set_item, to);
}

static void dirs(const struct server *s, json_t *to) {
    struct directory_sizes sizes = report_directories(s);
    json_object_set_new(to, "datadir_size", json_integer(sizes.data));
    json_object_set_new(to, "logdir_size", json_integer(sizes.log));
}

static void get_trace_mask(const struct server *s, json_t *to) {
    json_object_set_new(to, "tracemask", json_integer(s->trace_mask));
}

static json_t *response_sizes(const struct server *s) {
    const struct tally *sizes = &s->statistics.responses;
    bool any = sizes->count != 0;
    return json_pack("{s:I, s:I, s:I}", "last_buffer_size", any ? (json_int_t)sizes->last : -1,
                     "min_buffer_size", any ? (json_int_t)sizes->least : -1, "max_buffer_size",
                     any ? (json_int_t)sizes->most : -1);
}

static void server_stats(const struct server *s, json_t *to) {
    const struct statistics *counted = &s->statistics;
    struct directory_sizes sizes = report_directories(s);
    struct tally latency = report_latency(s);
    json_t *stats = json_pack(
        "{s:I, s:I, s:I, s:o, s:I, s:I, s:s, s:I, s:I, s:f, s:I, s:I, s:I, s:I, s:I}", /* */
        "packets_sent", (json_int_t)counted->sent,                                     /* */
        "packets_received", (json_int_t)counted->received,                             /* */
        "fsync_threshold_exceed_count", (json_int_t)counted->slow_syncs,               /* */
        "client_response_stats", response_sizes(s),                                    /* */
        "data_dir_size", (json_int_t)sizes.data,                                       /* */
        "log_dir_size", (json_int_t)sizes.log,                                         /* */
        "server_state", report_mode(s),                                                /* */
        "last_processed_zxid", (json_int_t)s->tree.zxid,                               /* */
        "outstanding_requests", (json_int_t)s->pending_count,                          /* */
        "avg_latency", tally_average(&latency) / 1000,                                 /* */
        "max_latency", (json_int_t)(latency.most / 1000),                              /* */
        "min_latency", (json_int_t)(latency.least / 1000),                             /* */
        "num_alive_client_connections", (json_int_t)s->connections,                    /* */
        "uptime", (json_int_t)(s->now_ms - s->started_ms),                             /* */
        "auth_failed_count", (json_int_t)counted->auth_failed);
    json_object_set_new(to, "version", json_string(REPORT_VERSION));
    json_object_set_new(to, "read_only", json_false());
    json_object_set_new(to, "server_stats", stats);
    json_object_set_new(to, "client_response", response_sizes(s));
    json_object_set_new(to, "node_count", json_integer(s->tree.nodes));
}

/* ---- Connections ---- */

static void set_connections(const struct server *s, bool brief, json_t *to) {
    json_t *plain = json_array(), *secure = json_array();
    char address[REPORT_ADDRESS_MAX];
    for (uint32_t i = 1; i <= s->connection_places; i++) {
        const struct connection *c = s->connection[i];
        if (!c) continue;
        json_t *object = json_object();
        report_address(c, address);
        json_object_set_new(object, "remote_socket_address", json_string(address));
        json_object_set_new(object, "interest_ops", json_integer(report_interest(c)));
        report_connection(c, brief, set_item, object);
        json_array_append_new(c->stream.tls ? secure : plain, object);
    }
    json_object_set_new(to, "connections", plain);
    json_object_set_new(to, "secure_connections", secure);
}

static void connections(const struct server *s, json_t *to) { set_connections(s, false, to); }

static void stats(const struct server *s, json_t *to) {
    server_stats(s, to);
    set_connections(s, true, to);
}

/* ---- Sessions ---- */

static void dump(const struct server *s, json_t *to) {
    const struct sessions *sessions = &s->tree.sessions;
    json_t *by_time = json_object(), *by_owner = json_object();
    struct expiry *list;
    char key[24];
    struct bytes path = {0};
    size_t count = report_sessions(s, &list);
    for (size_t i = 0; i < count;) {
        json_t *ids = json_array();
        json_object_set_new(by_time, decimal(key, list[i].at_ms), ids);
        for (size_t end = i + report_same_time(&list[i], &list[count]); i < end; i++)
            json_array_append_new(ids, json_integer(list[i].session));
    }
    free(list);
    for (uint32_t i = 1; i <= sessions->places; i++) {
        if (!sessions->at[i].id || !sessions->at[i].owned) continue;
        json_t *paths = json_array();
        for (node_id id = sessions->at[i].owned; id; id = s->tree.node[id].next_owned) {
            path.used = 0;
            tree_path(&s->tree, id, &path);
            json_array_append_new(paths, json_stringn((char *)path.at, path.used));
        }
        json_object_set_new(by_owner, decimal(key, sessions->at[i].id), paths);
    }
    bytes_close(&path);
    json_object_set_new(to, "expiry_time_to_session_ids", by_time);
    json_object_set_new(to, "session_id_to_ephemeral_paths", by_owner);
}

/* ---- Watches ---- */

static void watch_summary(const struct server *s, json_t *to) {
    struct watch_count count = report_watches(s);
    json_object_set_new(to, "num_connections", json_integer(count.connections));
    json_object_set_new(to, "num_paths", json_integer(count.paths));
    json_object_set_new(to, "num_total_watches", json_integer(count.watches));
}

static void watches(const struct server *s, json_t *to) {
    json_t *by_session = json_object();
    char key[24];
    for (uint32_t i = 1; i <= s->connection_places; i++) {
        uint32_t watch = report_watch_held(s, i, 0);
        if (!watch) continue;
        json_t *paths = json_array();
        for (; watch; watch = report_watch_held(s, i, watch))
            json_array_append_new(paths, text_of(report_watched(s, s->watches.watch[watch].path)));
        json_object_set_new(by_session, decimal(key, s->connection[i]->session_id), paths);
    }
    json_object_set_new(to, "session_id_to_watched_paths", by_session);
}

static void watches_by_path(const struct server *s, json_t *to) {
    json_t *by_path = json_object();
    for (uint32_t i = 1; i <= s->watches.path_places; i++) {
        uint32_t watch = report_watch_at(s, i, 0);
        if (!watch) continue;
        struct zk_text path = report_watched(s, i);
        json_t *ids = json_array();
        for (; watch; watch = report_watch_at(s, i, watch)) {
            const struct connection *c = s->connection[s->watches.watch[watch].connection];
            json_array_append_new(ids, json_integer(c->session_id));
        }
        json_object_setn_new(by_path, path.at, (size_t)path.size, ids);
    }
    json_object_set_new(to, "path_to_session_ids", by_path);
}

/* ---- All of them ---- */

#define COMMANDS(C)                                                                                \
    C(configuration, "conf")                                                                       \
    C(connections, "cons")                                                                         \
    C(dirs, "dirs")                                                                                \
    C(dump, "dump")                                                                                \
    C(environment, "envi")                                                                         \
    C(get_trace_mask, "gtmk")                                                                      \
    C(is_read_only, "isro")                                                                        \
    C(monitor, "mntr")                                                                             \
    C(ruok, "ruok")                                                                                \
    C(server_stats, "srvr")                                                                        \
    C(stats, "stat")                                                                               \
    C(watch_summary, "wchs")                                                                       \
    C(watches, "wchc")                                                                             \
    C(watches_by_path, "wchp")

static const struct command {
    const char *name, *word;
    void (*fill)(const struct server *s, json_t *to);
} commands[] = {
#define COMMAND_ROW(NAME, WORD) {#NAME, WORD, NAME},
    COMMANDS(COMMAND_ROW)};

enum { COMMAND_COUNT = sizeof commands / sizeof *commands };

const char *admin_name(size_t i) { return i < COMMAND_COUNT ? commands[i].name : NULL; }

json_t *admin_command(const struct server *s, const char *name) {
    for (size_t i = 0; i < COMMAND_COUNT; i++) {
        if (strcmp(name, commands[i].name) != 0 && strcmp(name, commands[i].word) != 0) continue;
        json_t *answer = json_object();
        commands[i].fill(s, answer);
        json_object_set_new(answer, "command", json_string(commands[i].name));
        json_object_set_new(answer, "error", json_null());
        return answer;
    }
    return NULL;
}

/* ---- Our own ---- */

static json_t *times_of(const struct summary *summary) {
    static const double shares[] = {0.5, 0.99, 0.999};
    static const char *const names[] = {"p50_ms", "p99_ms", "p999_ms"};
    json_t *object =
        json_pack("{s:I, s:f, s:f}", "count", (json_int_t)summary->all.count, "avg_ms",
                  tally_average(&summary->all) / 1000, "max_ms", (double)summary->all.most / 1000);
    for (size_t i = 0; i < 3; i++) {
        double us = summary_quantile(summary, shares[i]);
        json_object_set_new(object, names[i], us < 0 ? json_null() : json_real(us / 1000));
    }
    return object;
}

json_t *admin_status(const struct server *s) {
    const struct statistics *counted = &s->statistics;
    struct directory_sizes sizes = report_directories(s);
    char zxid[24];
    size_t resident = 0;
    snprintf(zxid, sizeof zxid, "0x%" PRIx64, (uint64_t)s->tree.zxid);
    uv_resident_set_memory(&resident);
    json_t *log =
        json_pack("{s:s, s:I, s:I, s:I, s:o}", "directory", s->settings.log_dir, "bytes",
                  (json_int_t)sizes.log, "last_index", (json_int_t)s->raft.last, "applied_index",
                  (json_int_t)s->raft.applied, "sync", times_of(&counted->syncs));
    json_t *snapshots =
        json_pack("{s:s, s:I, s:I, s:I, s:b, s:o}", "directory", s->settings.data_dir, "bytes",
                  (json_int_t)sizes.data, "last_index", (json_int_t)s->index_at_snapshot, "failed",
                  (json_int_t)counted->snapshots_failed, "under_way", s->snapshot_process != 0,
                  "written", times_of(&counted->snapshots));
    json_t *requests =
        json_pack("{s:I, s:I, s:I, s:o, s:o}", "received", (json_int_t)counted->received, "sent",
                  (json_int_t)counted->sent, "outstanding", (json_int_t)s->pending_count, "reads",
                  times_of(&counted->reads), "writes", times_of(&counted->writes));
    return json_pack(
        "{s:s, s:s, s:s, s:s, s:i, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:o, s:o, s:o}",
        "version", CONCLAVE_VERSION, "zookeeper", REPORT_ZOOKEEPER, "mode", report_mode(s), "zxid",
        zxid, "process", (int)getpid(), "uptime_ms", (json_int_t)(s->now_ms - s->started_ms),
        "resident_bytes", (json_int_t)resident, "connections", (json_int_t)s->connections,
        "sessions", (json_int_t)s->tree.sessions.count, "nodes", (json_int_t)s->tree.nodes,
        "ephemerals", (json_int_t)s->tree.ephemerals, "watches", (json_int_t)s->watches.watches,
        "data_bytes", (json_int_t)s->tree.bytes, "requests", requests, "log", log, "snapshots",
        snapshots);
}
