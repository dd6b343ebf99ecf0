/* What the page shows of a server and its ensemble, all at once. */
#include <stdio.h>

#include "service/admin/http.h"

static void set_number(json_t *to, const char *key, uint64_t value) {
    json_object_set_new(to, key, json_integer((json_int_t)value));
}

static void set_text(json_t *to, const char *key, const char *value) {
    json_object_set_new(to, key, json_string(value));
}

static void set_flag(json_t *to, const char *key, bool value) {
    json_object_set_new(to, key, json_boolean(value));
}

/* ---- The ensemble ---- */

/* How far a leader knows another member to be, or itself. */
static void set_progress(json_t *to, const struct server *s, const struct raft *raft, uint8_t id) {
    const struct raft_peer *peer = raft_find_peer(raft, id);
    bool self = id == raft->self;
    uint64_t match = self ? raft->durable_index : peer ? peer->match_index : 0;
    uint64_t heard_us = ensemble_member(s->ensemble, id).heard_us;
    bool leads = raft->role == RAFT_LEADER && (self || peer);
    bool heard = !self && heard_us && heard_us <= s->clock.monotonic_us;
    uint64_t lag = match < raft->last_index ? raft->last_index - match : 0;
    json_object_set_new(to, "match", leads ? json_integer((json_int_t)match) : json_null());
    json_object_set_new(to, "lag", leads ? json_integer((json_int_t)lag) : json_null());
    json_object_set_new(to, "heard_ms",
                        heard ? json_integer((json_int_t)(s->clock.monotonic_us - heard_us) / 1000)
                              : json_null());
}

static json_t *member_of(const struct server *s, const struct raft *raft,
                         const struct raft_member *member, const struct member *named,
                         bool learns) {
    json_t *object = json_object();
    char address[SETTINGS_HOST_MAX + 16] = "";
    bool is_name = named && !strchr(named->host, ':');
    if (named)
        snprintf(address, sizeof address, is_name ? "%s:%d" : "[%s]:%d", named->host,
                 named->peer_port);
    json_object_set_new(object, "id", json_member(member->id));
    set_text(object, "address", address);
    set_text(object, "role",
             member->id == raft->leader ? "leader"
             : member->weight           ? "follower"
             : learns                   ? "learner"
                                        : "observer");
    set_number(object, "weight", member->weight);
    set_flag(object, "connected",
             member->id == raft->self || ensemble_is_linked(s->ensemble, member->id));
    set_progress(object, s, raft, member->id);
    return object;
}

static json_t *members_of(const struct server *s, const struct raft *raft) {
    struct member_list named, target = {0};
    json_t *members = json_array();
    ensemble_members(s->ensemble, &named);
    ensemble_target_members(s->ensemble, &target);
    for (uint32_t i = 0; i < raft->config.count; i++) {
        const struct raft_member *member = &raft->config.at[i];
        json_array_append_new(members,
                              member_of(s, raft, member, member_list_find(&named, member->id),
                                        report_is_learning(member, &target)));
    }
    return members;
}

static json_t *ensemble_of(const struct server *s) {
    struct ensemble_status status = ensemble_status(s->ensemble);
    if (ensemble_is_standalone(s->ensemble)) return json_null();
    json_t *object = json_object();
    json_object_set_new(object, "leader", json_member(status.raft->leader));
    set_number(object, "term", status.raft->term);
    set_number(object, "commit", status.raft->commit_index);
    set_number(object, "applied", status.applied_index);
    set_number(object, "durable", status.raft->durable_index);
    json_object_set_new(object, "members", members_of(s, status.raft));
    return object;
}

static json_t *elections_of(const struct server *s) {
    json_t *array = json_array();
    const struct ensemble_election *election;
    for (uint32_t i = 0; (election = ensemble_election(s->ensemble, i)); i++) {
        json_t *object = json_object();
        set_number(object, "at_ms", (uint64_t)election->at_ms);
        set_number(object, "term", election->term);
        json_object_set_new(object, "leader", json_member(election->leader));
        json_array_append_new(array, object);
    }
    return array;
}

/* ---- Figures ---- */

static json_t *requests_of(const struct server *s) {
    json_t *object = json_object();
    set_number(object, "total", s->statistics.received);
    set_number(object, "reads", s->statistics.reads.all.count);
    set_number(object, "writes", s->statistics.writes.all.count);
    return object;
}

static json_t *times_of(const struct summary_spread *spread) {
    static const struct {
        const char *name;
        double share;
    } shares[] = {{"p50", 0.5}, {"p99", 0.99}, {"p999", 0.999}, {"max", 1}};
    json_t *object = json_object();
    for (size_t i = 0; i < sizeof shares / sizeof *shares; i++) {
        double us = summary_spread_quantile(spread, shares[i].share);
        json_object_set_new(object, shares[i].name, us < 0 ? json_null() : json_real(us));
    }
    return object;
}

static json_t *log_of(const struct server *s) {
    struct ensemble_status status = ensemble_status(s->ensemble);
    const struct ensemble_statistics *statistics = ensemble_statistics(s->ensemble);
    struct summary_spread syncs = {0};
    json_t *object = json_object();
    summary_add_spread(&statistics->syncs, NULL, &syncs);
    set_number(object, "last", status.raft->last_index);
    set_number(object, "bytes_written", statistics->log_bytes);
    set_number(object, "snapshot", status.snapshot_index);
    set_flag(object, "snapshot_under_way", status.snapshot_in_progress != 0);
    json_object_set_new(object, "sync_us", times_of(&syncs));
    return object;
}

json_t *page_state(const struct server *s, const struct summary_mark *reads,
                   const struct summary_mark *writes) {
    bool alone = ensemble_is_standalone(s->ensemble);
    struct summary_spread spread = {0};
    json_t *object = json_object();
    summary_add_spread(&s->statistics.reads, reads, &spread);
    summary_add_spread(&s->statistics.writes, writes, &spread);
    json_object_set_new(object, "server",
                        alone ? json_null() : json_member(ensemble_status(s->ensemble).raft->self));
    set_text(object, "version", report_release);
    set_number(object, "time_ms", (uint64_t)s->clock.now_ms);
    set_number(object, "uptime_ms", (s->clock.monotonic_us - s->started_us) / 1000);
    set_text(object, "mode", report_mode(s));
    set_flag(object, "write", s->settings.web_write);
    json_object_set_new(object, "ensemble", ensemble_of(s));
    json_object_set_new(object, "elections", elections_of(s));
    json_object_set_new(object, "requests", requests_of(s));
    json_object_set_new(object, "latency_us", times_of(&spread));
    set_number(object, "connections", s->connections.count);
    set_number(object, "sessions", s->tree.sessions.count);
    set_number(object, "nodes", s->tree.nodes);
    set_number(object, "watches", s->watches.watches);
    set_number(object, "ephemerals", s->tree.ephemerals);
    set_number(object, "outstanding", ensemble_pending(s->ensemble));
    set_number(object, "bytes", (uint64_t)s->tree.bytes);
    set_number(object, "bytes_in", s->statistics.bytes_received);
    set_number(object, "bytes_out", s->statistics.responses.total + s->statistics.watch_bytes);
    json_object_set_new(object, "log", log_of(s));
    return object;
}
