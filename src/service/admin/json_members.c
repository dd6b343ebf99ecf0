/* The commands of ZooKeeper's AdminServer about an ensemble. */
#include <inttypes.h>
#include <stdio.h>

#include "service/admin/internal.h"

static void set(json_t *to, const char *key, json_t *value) { json_object_set_new(to, key, value); }

json_t *json_member(uint8_t id) { return id ? json_integer(member_number(id)) : json_null(); }

static json_t *address_of(const char *host, int32_t port) {
    return json_sprintf(strchr(host, ':') ? "[%s]:%d" : "%s:%d", host, (int)port);
}

static json_t *client_address(const struct member *member) {
    const struct settings_address *at = &member->client;
    if (!at->port) return json_string("");
    return address_of(*at->host ? at->host : "0.0.0.0", at->port);
}

static json_t *list_of(json_t *value) {
    json_t *list = json_array();
    json_array_append_new(list, value);
    return list;
}

/* A member has one address of each kind, where ZooKeeper may have several. */
static json_t *addresses_of(const char *host, int32_t port) {
    json_t *object = json_object();
    set(object, "empty", json_false());
    set(object, "all_addresses", list_of(address_of(host, port)));
    set(object, "one", address_of(host, port));
    set(object, "all_ports", list_of(json_integer(port)));
    set(object, "all_host_strings", list_of(json_string(host)));
    return object;
}

static bool votes(const struct member *member) { return !member->observer && member->weight; }

void json_leader(const struct server *s, json_t *to) {
    const struct raft *raft = ensemble_status(s->ensemble).raft;
    struct member_list members;
    if (ensemble_is_standalone(s->ensemble)) {
        set(to, "error", json_string("server is not initialized"));
        return;
    }
    ensemble_members(s->ensemble, &members);
    const struct member *leader = raft->leader ? member_list_find(&members, raft->leader) : NULL;
    set(to, "is_leader", json_boolean(ensemble_leads(s->ensemble)));
    set(to, "leader_id", json_integer(raft->leader ? member_number(raft->leader) : -1));
    set(to, "leader_ip", json_string(leader ? leader->host : ""));
}

void json_voting_view(const struct server *s, json_t *to) {
    struct member_list members = {0};
    json_t *view = json_object();
    if (!ensemble_is_standalone(s->ensemble)) ensemble_members(s->ensemble, &members);
    for (unsigned i = 0; i < members.count; i++) {
        const struct member *member = &members.at[i];
        char id[16];
        if (!votes(member)) continue;
        json_t *object = json_object();
        set(object, "server_addresses", list_of(address_of(member->host, member->peer_port)));
        set(object, "election_addresses", list_of(address_of(member->host, member->election_port)));
        set(object, "client_address", client_address(member));
        set(object, "learner_type", json_string("participant"));
        snprintf(id, sizeof id, "%d", (int)member_number(member->id));
        set(view, id, object);
    }
    set(to, "current_config", view);
}

void json_zabstate(const struct server *s, json_t *to) {
    const struct raft *raft = ensemble_status(s->ensemble).raft;
    struct member_list members = {0};
    bool alone = ensemble_is_standalone(s->ensemble);
    uint64_t zxid = (uint64_t)s->tree.zxid;
    if (!alone) ensemble_members(s->ensemble, &members);
    const struct member *own = member_list_find(&members, raft->self);
    if (!alone) {
        set(to, "myid", json_integer(member_number(raft->self)));
        set(to, "is_leader", json_boolean(ensemble_leads(s->ensemble)));
    }
    if (own) {
        set(to, "quorum_address", addresses_of(own->host, own->peer_port));
        set(to, "election_address", addresses_of(own->host, own->election_port));
        set(to, "client_address", client_address(own));
    }
    set(to, "voting", json_boolean(own && votes(own)));
    if (!alone) {
        set(to, "last_zxid", json_sprintf("0x%" PRIx64, zxid));
        set(to, "zab_epoch", json_integer((json_int_t)(zxid >> 32)));
        set(to, "zab_counter", json_integer((json_int_t)(zxid & UINT32_MAX)));
    }
    set(to, "zabstate", json_string(alone ? "" : raft->leader ? "broadcast" : "election"));
}

void json_observers(const struct server *s, json_t *to) {
    struct member_list members = {0};
    json_t *list = json_array();
    json_int_t synced = 0;
    if (ensemble_leads(s->ensemble) && !ensemble_is_standalone(s->ensemble))
        ensemble_members(s->ensemble, &members);
    for (unsigned i = 0; i < members.count; i++) {
        const struct member *member = &members.at[i];
        if (votes(member)) continue;
        struct ensemble_member of = ensemble_member(s->ensemble, (uint8_t)member->id);
        synced += of.synced;
        if (!of.linked) continue;
        json_t *object = json_object();
        set(object, "remote_socket_address", address_of(member->host, member->peer_port));
        set(object, "sid", json_integer(member_number(member->id)));
        set(object, "queued_packets", json_integer((json_int_t)of.lag_entries));
        json_array_append_new(list, object);
    }
    set(to, "synced_observers", json_integer(synced));
    set(to, "observers", list);
}

void json_last_snapshot(const struct server *s, json_t *to) {
    struct ensemble_snapshot newest = ensemble_snapshot(s->ensemble);
    set(to, "zxid", json_sprintf("%" PRIx64, (uint64_t)newest.zxid));
    set(to, "timestamp", json_integer(newest.written_s));
}
