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

static void set_number(json_t *to, const char *key, uint64_t value) {
    json_object_set_new(to, key, json_integer((json_int_t)value));
}

static void set_real(json_t *to, const char *key, double value) {
    json_object_set_new(to, key, json_real(value));
}

static void set_text(json_t *to, const char *key, const char *value) {
    json_object_set_new(to, key, json_string(value));
}

static const char *decimal(char text[24], int64_t number) {
    snprintf(text, 24, "%" PRId64, number);
    return text;
}

static json_t *text_of(struct zk_text text) { return json_stringn(text.at, (size_t)text.size); }

/* ---- The server ---- */

static void ruok(const struct server *s, json_t *to) { (void)s, (void)to; }

static void is_read_only(const struct server *s, json_t *to) {
    json_object_set_new(to, "read_only", json_boolean(replica_is_lost(s)));
}

static void configuration(const struct server *s, json_t *to) {
    report_configuration(s, set_item, to);
}

static void environment(const struct server *s, json_t *to) {
    (void)s;
    report_environment(set_item, to);
}

static void monitor(const struct server *s, json_t *to) {
    set_text(to, "version", REPORT_VERSION);
    set_text(to, "server_state", report_mode(s));
    report_figures(s, set_item, to);
}

static void dirs(const struct server *s, json_t *to) {
    struct directory_sizes sizes = report_directories(s);
    set_number(to, "datadir_size", (uint64_t)sizes.data);
    set_number(to, "logdir_size", (uint64_t)sizes.log);
}

static void get_trace_mask(const struct server *s, json_t *to) {
    set_number(to, "tracemask", (uint64_t)s->trace_mask);
}

static json_t *response_sizes(const struct server *s) {
    const struct tally *sizes = &s->statistics.responses;
    uint64_t none = sizes->count ? 0 : UINT64_MAX; /* -1 to who reads it */
    json_t *object = json_object();
    set_number(object, "last_buffer_size", sizes->last | none);
    set_number(object, "min_buffer_size", sizes->least | none);
    set_number(object, "max_buffer_size", sizes->most | none);
    return object;
}

static void server_stats(const struct server *s, json_t *to) {
    struct directory_sizes sizes = report_directories(s);
    struct tally latency = report_latency(s);
    json_t *stats = json_object();
    set_number(stats, "packets_sent", s->statistics.sent);
    set_number(stats, "packets_received", s->statistics.received);
    set_number(stats, "fsync_threshold_exceed_count", s->statistics.slow_syncs);
    json_object_set_new(stats, "client_response_stats", response_sizes(s));
    set_number(stats, "data_dir_size", (uint64_t)sizes.data);
    set_number(stats, "log_dir_size", (uint64_t)sizes.log);
    set_text(stats, "server_state", report_mode(s));
    set_number(stats, "last_processed_zxid", (uint64_t)s->tree.zxid);
    set_number(stats, "outstanding_requests", s->pending_count);
    set_real(stats, "avg_latency", tally_average(&latency) / 1000);
    set_number(stats, "max_latency", latency.most / 1000);
    set_number(stats, "min_latency", latency.least / 1000);
    set_number(stats, "num_alive_client_connections", s->connections);
    set_number(stats, "uptime", (uint64_t)(s->now_ms - s->started_ms));
    set_number(stats, "auth_failed_count", s->statistics.auth_failed);
    set_text(to, "version", REPORT_VERSION);
    is_read_only(s, to);
    json_object_set_new(to, "server_stats", stats);
    json_object_set_new(to, "client_response", response_sizes(s));
    set_number(to, "node_count", s->tree.nodes);
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
    set_number(to, "num_connections", count.connections);
    set_number(to, "num_paths", count.paths);
    set_number(to, "num_total_watches", count.watches);
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
    json_t *object = json_object();
    set_number(object, "count", summary->all.count);
    set_real(object, "avg_ms", tally_average(&summary->all) / 1000);
    set_real(object, "max_ms", (double)summary->all.most / 1000);
    for (size_t i = 0; i < sizeof shares / sizeof *shares; i++) {
        double us = summary_quantile(summary, shares[i]);
        json_object_set_new(object, names[i], us < 0 ? json_null() : json_real(us / 1000));
    }
    return object;
}

static json_t *requests_of(const struct server *s) {
    json_t *object = json_object();
    set_number(object, "received", s->statistics.received);
    set_number(object, "sent", s->statistics.sent);
    set_number(object, "outstanding", s->pending_count);
    json_object_set_new(object, "reads", times_of(&s->statistics.reads));
    json_object_set_new(object, "writes", times_of(&s->statistics.writes));
    return object;
}

static json_t *log_of(const struct server *s, int64_t bytes) {
    json_t *object = json_object();
    set_text(object, "directory", s->settings.log_dir);
    set_number(object, "bytes", (uint64_t)bytes);
    set_number(object, "last_index", s->replica.raft.last);
    set_number(object, "applied_index", s->replica.applied);
    json_object_set_new(object, "sync", times_of(&s->statistics.syncs));
    return object;
}

static json_t *snapshots_of(const struct server *s, int64_t bytes) {
    json_t *object = json_object();
    set_text(object, "directory", s->settings.data_dir);
    set_number(object, "bytes", (uint64_t)bytes);
    set_number(object, "last_index", s->index_at_snapshot);
    json_object_set_new(object, "under_way", json_boolean(s->snapshot_process != 0));
    set_number(object, "failed", s->statistics.snapshots_failed);
    json_object_set_new(object, "written", times_of(&s->statistics.snapshots));
    return object;
}

json_t *admin_status(const struct server *s) {
    struct directory_sizes sizes = report_directories(s);
    char zxid[24];
    size_t resident = 0;
    json_t *status = json_object();
    snprintf(zxid, sizeof zxid, "0x%" PRIx64, (uint64_t)s->tree.zxid);
    uv_resident_set_memory(&resident);
    set_text(status, "version", CONCLAVE_VERSION);
    set_text(status, "zookeeper", REPORT_ZOOKEEPER);
    set_text(status, "mode", report_mode(s));
    set_text(status, "zxid", zxid);
    set_number(status, "process", (uint64_t)getpid());
    set_number(status, "uptime_ms", (uint64_t)(s->now_ms - s->started_ms));
    set_number(status, "resident_bytes", resident);
    set_number(status, "connections", s->connections);
    set_number(status, "sessions", s->tree.sessions.count);
    set_number(status, "nodes", s->tree.nodes);
    set_number(status, "ephemerals", s->tree.ephemerals);
    set_number(status, "watches", s->watches.watches);
    set_number(status, "data_bytes", (uint64_t)s->tree.bytes);
    json_object_set_new(status, "requests", requests_of(s));
    json_object_set_new(status, "log", log_of(s, sizes.log));
    json_object_set_new(status, "snapshots", snapshots_of(s, sizes.data));
    return status;
}

static const char *const roles[] = {[RAFT_FOLLOWER] = "follower",
                                    [RAFT_SOUNDING] = "sounding",
                                    [RAFT_CANDIDATE] = "candidate",
                                    [RAFT_LEADER] = "leader"};

/* What a leader knows of the others it says of them; a follower knows of its links only. */
static json_t *member_of(const struct server *s, const struct raft_member *member,
                         const struct settings_member *address, bool learns) {
    static const char *const modes[] = {
        [RAFT_PROBE] = "probing", [RAFT_STREAM] = "streaming", [RAFT_SNAPSHOT] = "snapshot"};
    const struct raft *raft = &s->replica.raft;
    const struct raft_peer *peer = raft_peer(raft, member->id);
    bool self = member->id == raft->self;
    json_t *object = json_object();
    set_number(object, "id", member->id);
    set_number(object, "weight", member->weight);
    if (address) set_text(object, "host", address->host);
    if (address) set_number(object, "port", (uint64_t)address->peer_port);
    json_object_set_new(object, "learning", json_boolean(learns));
    json_object_set_new(object, "linked", json_boolean(self || s->replica.up[member->id]));
    if (raft->role != RAFT_LEADER || !peer) return object;
    set_number(object, "match", self ? raft->saved : peer->match);
    set_text(object, "sending", self ? "self" : modes[peer->mode]);
    return object;
}

json_t *admin_ensemble(const struct server *s) {
    const struct replica *r = &s->replica;
    struct settings *named = malloc(sizeof *named);
    struct raft_config config, goal = {0};
    const struct bytes *aimed_at = &r->goal.members.text;
    char why[256];
    json_t *object = json_object(), *members = json_array();
    cv_assert(named);
    if (change_is_under_way(s))
        members_read(aimed_at->at, aimed_at->used, &goal, named, why, sizeof why);
    members_read(r->members.text.at, r->members.text.used, &config, named, why, sizeof why);
    for (uint32_t i = 0; i < r->raft.config.count; i++) {
        const struct raft_member *member = &r->raft.config.at[i];
        const struct raft_member *later = raft_member(&goal, member->id);
        bool learns = !member->weight && later && later->weight;
        json_array_append_new(members,
                              member_of(s, member, settings_member(named, member->id), learns));
    }
    set_number(object, "server", r->raft.self);
    set_text(object, "mode", report_mode(s));
    set_text(object, "role", roles[r->raft.role]);
    set_number(object, "leader", r->raft.leader);
    set_number(object, "term", r->raft.term);
    set_number(object, "last", r->raft.last);
    set_number(object, "committed", r->raft.committed);
    set_number(object, "applied", r->applied);
    set_number(object, "clients", s->connections);
    set_number(object, "sessions", s->tree.sessions.count);
    set_number(object, "requests", s->statistics.received);
    json_object_set_new(object, "changing", json_boolean(change_is_under_way(s)));
    json_object_set_new(object, "dismissed", json_boolean(r->dismissed));
    json_object_set_new(object, "handing_over_to",
                        r->raft.heir ? json_integer(r->raft.heir) : json_null());
    json_object_set_new(object, "members", members);
    free(named);
    return object;
}
