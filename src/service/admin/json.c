/* Reports as JSON: the commands of ZooKeeper's AdminServer, under its names, and pages of our
 * own. */

#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "service/admin/internal.h"

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

/* ---- The server ---- */

static void ruok(const struct server *s, json_t *to) { (void)s, (void)to; }

static void is_read_only(const struct server *s, json_t *to) {
    json_object_set_new(to, "read_only", json_boolean(ensemble_is_leaderless(s->ensemble)));
}

static void configuration(const struct server *s, json_t *to) {
    report_configuration(s, set_item, to);
}

static void environment(const struct server *s, json_t *to) {
    (void)s;
    report_environment(set_item, to);
}

/* Java's, and what agents look for among them. */
static void system_properties(const struct server *s, json_t *to) { environment(s, to); }

static void monitor(const struct server *s, json_t *to) {
    set_text(to, "version", report_version);
    set_text(to, "server_state", report_mode(s));
    if (report_peer_state(s)) set_text(to, "peer_state", report_peer_state(s));
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

/* The digests of past states, of which there are none. */
static void hash(const struct server *s, json_t *to) {
    (void)s;
    json_object_set_new(to, "digests", json_array());
}

/* The file may have passwords in it; `configuration` says what is in force. */
static void initial_configuration(const struct server *s, json_t *to) {
    (void)s;
    json_object_set_new(to, "initial_configuration", json_null());
}

static json_t *response_sizes(const struct server *s) {
    const struct tally *sizes = &s->statistics.responses;
    uint64_t none = sizes->count ? 0 : UINT64_MAX; /* read as -1 */
    json_t *object = json_object();
    set_number(object, "last_buffer_size", sizes->last | none);
    set_number(object, "min_buffer_size", sizes->min | none);
    set_number(object, "max_buffer_size", sizes->max | none);
    return object;
}

static void server_stats(const struct server *s, json_t *to) {
    struct directory_sizes sizes = report_directories(s);
    struct tally latency = report_latency(s);
    json_t *stats = json_object();
    set_number(stats, "packets_sent", s->statistics.sent);
    set_number(stats, "packets_received", s->statistics.received);
    set_number(stats, "fsync_threshold_exceed_count", ensemble_statistics(s->ensemble)->slow_syncs);
    json_object_set_new(stats, "client_response_stats", response_sizes(s));
    set_number(stats, "data_dir_size", (uint64_t)sizes.data);
    set_number(stats, "log_dir_size", (uint64_t)sizes.log);
    set_text(stats, "server_state", report_mode(s));
    set_number(stats, "last_processed_zxid", (uint64_t)s->tree.zxid);
    set_number(stats, "outstanding_requests", ensemble_pending(s->ensemble));
    set_real(stats, "avg_latency", tally_average(&latency) / 1000);
    set_number(stats, "max_latency", tally_max_ms(&latency));
    set_number(stats, "min_latency", latency.min / 1000);
    set_number(stats, "num_alive_client_connections", s->connections.count);
    set_number(stats, "uptime", (s->clock.monotonic_us - s->started_us) / 1000);
    set_number(stats, "auth_failed_count", s->statistics.refused[REFUSED_authentication]);
    set_text(to, "version", report_version);
    is_read_only(s, to);
    json_object_set_new(to, "server_stats", stats);
    json_object_set_new(to, "client_response", response_sizes(s));
    set_number(to, "node_count", s->tree.nodes);
}

/* ---- Connections ---- */

json_t *json_server_stats(const struct server *s) {
    json_t *object = json_object();
    server_stats(s, object);
    return object;
}

json_t *json_connection(const struct connection *c, bool brief) {
    char address[REPORT_ADDRESS_MAX];
    json_t *object = json_object();
    report_address(c, address);
    json_object_set_new(object, "remote_socket_address", json_string(address));
    json_object_set_new(object, "interest_ops", json_integer(report_interest(c)));
    report_connection(c, brief, set_item, object);
    return object;
}

/* ---- Watches ---- */

static void watch_summary(const struct server *s, json_t *to) {
    struct watch_count count = report_watches(s);
    set_number(to, "num_connections", count.connections);
    set_number(to, "num_paths", count.paths);
    set_number(to, "num_total_watches", count.watches);
}

/* ---- All of them ---- */

#define COMMANDS(C, MEMBERS, LISTING)                                                              \
    C(configuration, "conf")                                                                       \
    LISTING(connections, "cons")                                                                   \
    C(dirs, "dirs")                                                                                \
    LISTING(dump, "dump")                                                                          \
    C(environment, "envi")                                                                         \
    C(get_trace_mask, "gtmk")                                                                      \
    C(hash, "hash")                                                                                \
    C(initial_configuration, "icfg")                                                               \
    C(is_read_only, "isro")                                                                        \
    MEMBERS(last_snapshot, "lsnp")                                                                 \
    MEMBERS(leader, "lead")                                                                        \
    C(monitor, "mntr")                                                                             \
    MEMBERS(observers, "obsr")                                                                     \
    C(ruok, "ruok")                                                                                \
    C(server_stats, "srvr")                                                                        \
    LISTING(stats, "stat")                                                                         \
    C(system_properties, "sysp")                                                                   \
    MEMBERS(voting_view, "voting_view")                                                            \
    C(watch_summary, "wchs")                                                                       \
    LISTING(watches, "wchc")                                                                       \
    LISTING(watches_by_path, "wchp")                                                               \
    MEMBERS(zabstate, "zabstate")

static const struct command {
    const char *name, *word;
    void (*fill)(const struct server *s, json_t *to); /* NULL: it is a listing */
} commands[] = {
#define COMMAND_ROW(NAME, WORD) {#NAME, WORD, NAME},
#define MEMBERS_ROW(NAME, WORD) {#NAME, WORD, json_##NAME},
#define LISTING_ROW(NAME, WORD) {#NAME, WORD, NULL},
    COMMANDS(COMMAND_ROW, MEMBERS_ROW, LISTING_ROW)};

enum { COMMAND_COUNT = sizeof commands / sizeof *commands };

static json_t *complete(json_t *answer, const char *name) {
    set_text(answer, "command", name);
    if (!json_object_get(answer, "error")) json_object_set_new(answer, "error", json_null());
    return answer;
}

const char *json_command_name(size_t i) { return i < COMMAND_COUNT ? commands[i].name : NULL; }

json_t *json_command(const struct server *s, const char *name) {
    for (size_t i = 0; i < COMMAND_COUNT; i++) {
        if (strcmp(name, commands[i].name) != 0 && strcmp(name, commands[i].word) != 0) continue;
        if (!commands[i].fill) return NULL;
        json_t *answer = json_object();
        commands[i].fill(s, answer);
        return complete(answer, commands[i].name);
    }
    return NULL;
}

/* ---- Those that change something ---- */

static void reset_connections(struct server *s, const char *argument, json_t *to) {
    (void)argument, (void)to;
    word_reset_connections(s);
}

static void reset_server(struct server *s, const char *argument, json_t *to) {
    (void)argument, (void)to;
    word_reset_server(s);
}

/* There is nothing to count of them here. */
static void reset_observers(struct server *s, const char *argument, json_t *to) {
    (void)s, (void)argument, (void)to;
}

static void set_trace_mask(struct server *s, const char *argument, json_t *to) {
    char *end = NULL;
    long long mask = argument ? strtoll(argument, &end, 10) : 0;
    if (!end || end == argument || *end) {
        set_text(to, "error", "setTraceMask requires long traceMask argument");
        return;
    }
    s->trace_mask = mask;
    json_object_set_new(to, "tracemask", json_integer(mask));
}

static const struct change {
    const char *name, *word;
    void (*make)(struct server *s, const char *argument, json_t *to);
} changes[] = {
    {"connection_stat_reset", "crst", reset_connections},
    {"observer_connection_stat_reset", "orst", reset_observers},
    {"set_trace_mask", "stmk", set_trace_mask},
    {"stat_reset", "srst", reset_server},
};

static const struct change *change_of(const char *name) {
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++)
        if (strcmp(name, changes[i].name) == 0 || strcmp(name, changes[i].word) == 0)
            return &changes[i];
    return NULL;
}

bool json_is_change(const char *name) { return change_of(name) != NULL; }

json_t *json_change(struct server *s, const char *name, const char *argument) {
    const struct change *change = change_of(name);
    if (!change) return NULL;
    json_t *answer = json_object();
    change->make(s, argument, answer);
    return complete(answer, change->name);
}

/* ---- Our own ---- */

static json_t *times_of(const struct summary *summary) {
    static const double shares[] = {0.5, 0.99, 0.999};
    static const char *const names[] = {"p50_ms", "p99_ms", "p999_ms"};
    json_t *object = json_object();
    set_number(object, "count", summary->all.count);
    set_real(object, "avg_ms", tally_average(&summary->all) / 1000);
    set_real(object, "max_ms", (double)summary->all.max / 1000);
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
    set_number(object, "outstanding", ensemble_pending(s->ensemble));
    json_object_set_new(object, "reads", times_of(&s->statistics.reads));
    json_object_set_new(object, "writes", times_of(&s->statistics.writes));
    return object;
}

static json_t *log_of(const struct server *s, int64_t bytes) {
    json_t *object = json_object();
    set_text(object, "directory", s->settings.log_dir);
    set_number(object, "bytes", (uint64_t)bytes);
    set_number(object, "last_index", ensemble_status(s->ensemble).raft->last_index);
    set_number(object, "applied_index", ensemble_status(s->ensemble).applied_index);
    json_object_set_new(object, "sync", times_of(&ensemble_statistics(s->ensemble)->syncs));
    return object;
}

static json_t *snapshots_of(const struct server *s, int64_t bytes) {
    json_t *object = json_object();
    set_text(object, "directory", s->settings.data_dir);
    set_number(object, "bytes", (uint64_t)bytes);
    set_number(object, "last_index", ensemble_status(s->ensemble).snapshot_index);
    json_object_set_new(object, "under_way",
                        json_boolean(ensemble_status(s->ensemble).snapshot_in_progress != 0));
    set_number(object, "failed", ensemble_statistics(s->ensemble)->snapshots_failed);
    json_object_set_new(object, "written", times_of(&ensemble_statistics(s->ensemble)->snapshots));
    return object;
}

json_t *json_status(const struct server *s) {
    struct directory_sizes sizes = report_directories(s);
    char zxid[24];
    size_t resident = 0;
    json_t *status = json_object();
    snprintf(zxid, sizeof zxid, "0x%" PRIx64, (uint64_t)s->tree.zxid);
    uv_resident_set_memory(&resident);
    set_text(status, "version", report_release);
    set_text(status, "zookeeper", REPORT_ZOOKEEPER);
    set_text(status, "mode", report_mode(s));
    set_text(status, "zxid", zxid);
    set_number(status, "process", (uint64_t)getpid());
    set_number(status, "uptime_ms", (s->clock.monotonic_us - s->started_us) / 1000);
    set_number(status, "resident_bytes", resident);
    set_number(status, "connections", s->connections.count);
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
                                    [RAFT_PRE_CANDIDATE] = "pre-candidate",
                                    [RAFT_CANDIDATE] = "candidate",
                                    [RAFT_LEADER] = "leader"};

/* A leader knows how far the others are; a follower knows of its links only. */
static json_t *member_of(const struct server *s, const struct raft_member *member,
                         const struct member *address, bool learns) {
    static const char *const modes[] = {
        [RAFT_PROBE] = "probing", [RAFT_STREAM] = "streaming", [RAFT_SNAPSHOT] = "snapshot"};
    const struct raft *raft = ensemble_status(s->ensemble).raft;
    const struct raft_peer *peer = raft_find_peer(raft, member->id);
    bool self = member->id == raft->self;
    json_t *object = json_object();
    json_object_set_new(object, "id", json_member(member->id));
    set_number(object, "weight", member->weight);
    if (address) set_text(object, "host", address->host);
    if (address) set_number(object, "port", (uint64_t)address->peer_port);
    json_object_set_new(object, "learning", json_boolean(learns));
    json_object_set_new(object, "linked",
                        json_boolean(self || ensemble_is_linked(s->ensemble, member->id)));
    const char *problem = ensemble_link_problem(s->ensemble, member->id);
    if (problem) set_text(object, "link_problem", problem);
    if (raft->role != RAFT_LEADER || !peer) return object;
    json_object_set_new(object, "vote_withheld", json_boolean(!self && peer->vote_withheld));
    set_number(object, "match", self ? raft->durable_index : peer->match_index);
    set_text(object, "sending", self ? "self" : modes[peer->mode]);
    return object;
}

/* Damaged files, which the other members mend; null: there are none. */
static json_t *mending_of(const struct ensemble_mending *mending) {
    if (!mending->active) return json_null();
    json_t *object = json_object();
    set_text(object, "damage", mending->damage);
    set_number(object, "entries_lost", mending->lacking);
    set_number(object, "first_lost", mending->first);
    set_number(object, "last_lost", mending->last);
    set_number(object, "entries_mended", mending->mended);
    json_object_set_new(object, "mended_by", json_member(mending->from));
    set_number(object, "snapshot", mending->snapshot_index);
    return object;
}

/* The voters that have not said yet that they have no data either, where an ensemble is founded. */
static json_t *awaited_of(const struct ensemble_status *status) {
    json_t *array = json_array();
    for (uint32_t i = 0; i < status->raft->config.count; i++)
        if (status->founding_set & 1u << i)
            json_array_append_new(array, json_member(status->raft->config.at[i].id));
    return array;
}

json_t *json_ensemble(const struct server *s) {
    struct ensemble_status status = ensemble_status(s->ensemble);
    const struct raft *raft = status.raft;
    struct member_list named, target = {0};
    json_t *object = json_object(), *members = json_array();
    ensemble_members(s->ensemble, &named);
    ensemble_target_members(s->ensemble, &target);
    for (uint32_t i = 0; i < raft->config.count; i++) {
        const struct raft_member *member = &raft->config.at[i];
        json_array_append_new(members, member_of(s, member, member_list_find(&named, member->id),
                                                 report_is_learning(member, &target)));
    }
    json_object_set_new(object, "server", json_member(raft->self));
    set_text(object, "mode", report_mode(s));
    set_text(object, "role", roles[raft->role]);
    json_object_set_new(object, "leader", json_member(raft->leader));
    set_number(object, "term", raft->term);
    set_number(object, "last", raft->last_index);
    set_number(object, "committed", raft->commit_index);
    set_number(object, "applied", status.applied_index);
    set_number(object, "clients", s->connections.count);
    set_number(object, "sessions", s->tree.sessions.count);
    set_number(object, "requests", s->statistics.received);
    json_object_set_new(object, "changing", json_boolean(status.changing));
    set_number(object, "changes_refused", status.changes_refused);
    set_text(object, "refusal", status.refusal);
    json_object_set_new(object, "removed", json_boolean(status.removed));
    json_object_set_new(object, "vote_withheld", json_boolean(raft->vote_withheld));
    json_object_set_new(object, "founding_waits_for", awaited_of(&status));
    json_object_set_new(object, "founded_by", json_member(status.founded_by));
    json_object_set_new(object, "mending", mending_of(&status.mending));
    json_object_set_new(object, "transferee", json_member(raft->transferee));
    json_object_set_new(object, "members", members);
    return object;
}
