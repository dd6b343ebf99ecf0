/* Requests to change the members: those of an operator, and those of clients, which the leader
 * looks at before they go into the log.
 *
 * Whatever depends on who lives is decided here, by the leader, in ZooKeeper's order.  The tree
 * cannot know it, for all servers must apply an entry in the same way. */
#include <stdio.h>
#include <strings.h>

#include "base/host.h"
#include "base/logger.h"
#include "base/parse.h"
#include "service/ensemble/change.h"
#include "service/ensemble/core.h"

enum { SILENT_US = 1000000 }; /* whoever lives was heard in this time */

static void read_members(struct plan *p, struct zk_text text) {
    members_read(text.at, (size_t)text.size, &p->config, &p->now, p->why, sizeof p->why);
}

/* Whether the target has no quorum, as far as a leader knows who lives.  One that has led for a
 * moment only does not know that of the voters, so it counts on them all; but who is no member yet
 * and has not come does not count. */
static bool lacks_quorum(const struct ensemble *e, struct plan *p) {
    uint64_t now = e->clock->monotonic_us;
    if (now > SILENT_US) p->since_us = now - SILENT_US;
    p->counts_on_voters = e->leading_us >= p->since_us;
    return ensemble_leads(e) && change_is_blocked(e, p);
}

/* ---- Of clients ---- */

static unsigned count_voters(const struct raft_config *config) {
    unsigned count = 0;
    for (uint32_t i = 0; i < config->count; i++) count += config->at[i].weight != 0;
    return count;
}

/* The members that a request is about: those in force.  They are committed, or will be before the
 * request is. */
static struct zk_text members_in_log(const struct ensemble *e) {
    return change_text(&e->members.text);
}

/* An address that means another place to each machine. */
static bool is_relative(const char *host) {
    return strcmp(host, "*") == 0 || strcmp(host, "0.0.0.0") == 0 || strcmp(host, "::") == 0 ||
           strcmp(host, "::1") == 0 || strncmp(host, "127.", 4) == 0 || host_is_localhost(host);
}

static bool have_address_in_common(const struct member *one, const struct member *other) {
    enum { EACH = 3 };
    const struct member *member[] = {one, other};
    struct {
        const char *host;
        int32_t port;
    } at[2][EACH];
    for (int i = 0; i < 2; i++) {
        at[i][0].host = at[i][1].host = member[i]->host;
        at[i][2].host = member[i]->client.host;
        at[i][0].port = member[i]->peer_port;
        at[i][1].port = member[i]->election_port;
        at[i][2].port = member[i]->client.port;
    }
    for (int i = 0; i < EACH; i++)
        for (int j = 0; j < EACH; j++)
            if (at[0][i].port == at[1][j].port && !is_relative(at[0][i].host) &&
                strcasecmp(at[0][i].host, at[1][j].host) == 0)
                return true;
    return false;
}

/* Whether a server that joins would be where another member is. */
static bool joins_at_others(const struct member_list *target, struct zk_text joining) {
    struct member_list list = {0};
    char why[256];
    if (joining.size > 0)
        member_list_parse(&list, joining.at, (size_t)joining.size, why, sizeof why);
    for (unsigned i = 0; i < list.count; i++)
        for (unsigned j = 0; j < target->count; j++)
            if (list.at[i].id != target->at[j].id &&
                have_address_in_common(&list.at[i], &target->at[j]))
                return true;
    return false;
}

/* The arguments, then the quorum; without any arguments all is well. */
static int32_t judge_target(const struct ensemble *e, struct plan *p,
                            const struct zk_reconfig_request *r) {
    enum { VOTERS_MIN = 2 }; /* where one is a server alone, which has no reconfig */
    if (r->members.size < 0 && r->joining.size <= 0 && r->leaving.size <= 0) return ZK_OK;
    if (r->members.size == 0) return ZK_BADARGUMENTS;
    int32_t err = tree_plan_members(members_in_log(e), r, &p->text, p->why, sizeof p->why);
    if (err == ZK_NEWCONFIGNOQUORUM && e->settings->standalone) err = ZK_BADARGUMENTS;
    if (err) return err;
    members_read(p->text.at, p->text.used, &p->target_config, &p->target, p->why, sizeof p->why);
    read_members(p, members_in_log(e));
    if (e->settings->standalone && count_voters(&p->target_config) < VOTERS_MIN)
        return r->members.size > 0 && p->target.count > 1 ? ZK_MARSHALLINGERROR : ZK_BADARGUMENTS;
    if (joins_at_others(&p->target, r->joining)) return ZK_BADARGUMENTS;
    if (change_has_unusable_address(e, p)) return ZK_BADARGUMENTS;
    p->needs_newcomers = true;
    return lacks_quorum(e, p) ? ZK_NEWCONFIGNOQUORUM : ZK_OK;
}

static bool is_last_step(const struct ensemble *e) {
    const struct bytes *target = &e->tree->target, *now = &e->members.text;
    return target->used == now->used && memcmp(target->at, now->at, now->used) == 0;
}

/* A change whose end is in the log has ended when a request after it is applied.  A client whose
 * request was answered may know so before this leader does. */
static bool is_before_end(const struct ensemble *e) {
    const struct change *change = &e->change;
    bool requested = change->requested_term == e->raft.term &&
                     change->requested_index > raft_read_index(&e->raft);
    return requested || (e->tree->target.used && !is_last_step(e));
}

/* The version that clients know becomes the zxid that the tree compares. */
static int32_t judge(const struct ensemble *e, struct zk_reconfig_request *r,
                     struct spelling *text) {
    struct plan p = {0};
    if (is_before_end(e)) return ZK_RECONFIGINPROGRESS;
    if (r->config_id != -1 && !e->tree->target.used) {
        if (r->config_id != tree_members_version(e->tree)) return ZK_BADVERSION;
        r->config_id = tree_members_zxid(e->tree);
    }
    int32_t err = change_respell(r, text);
    if (!err) err = judge_target(e, &p, r);
    bytes_close(&p.text);
    return err;
}

/* The configuration that a request of a server's own is to be about; 0: none is committed.  What a
 * leader has not applied yet may be of the terms before. */
static int64_t own_version(const struct ensemble *e) {
    if (!members_committed(e).size) return 0;
    bool has_applied = e->applied_term == e->raft.term;
    return has_applied ? tree_members_version(e->tree) : members_version(e);
}

/* As change_propose has written it; -1: by a server of an older version. */
static int32_t judge_own(const struct ensemble *e, const struct zk_reconfig_request *r) {
    return r->config_id == -1 || r->config_id == own_version(e) ? ZK_OK : ZK_BADVERSION;
}

bool change_judge(struct ensemble *e, struct zk_in in, struct bytes *entry) {
    struct tree_entry parts;
    struct zk_reconfig_request request;
    struct spelling text = {0};
    struct bytes body = {0};
    if (!tree_read_entry(&in, &parts) || parts.op != ZK_OP_RECONFIG) return false;
    bool own = parts.rules & TREE_INTERNAL;
    struct zk_in asked = parts.body;
    if ((!own && !(parts.rules & TREE_RECONFIG)) || !zk_read_reconfig_request(&asked, &request))
        return false;
    int32_t err = own ? judge_own(e, &request) : judge(e, &request, &text);
    if (!err) e->change.requested_index = e->raft.last_index + 1;
    if (!err) e->change.requested_term = e->raft.term;
    if (own && !err) return false;
    if (own)
        logger_info("a change of the members that another server asks for is refused: they have "
                    "changed meanwhile");
    if (err) {
        parts.op = ZK_OP_ERROR;
        zk_write_i32(&body, err);
    } else {
        zk_write_reconfig_request(&body, &request);
    }
    parts.body = zk_in_of(body.at, body.used);
    entry->used = 0;
    tree_store_entry(bytes_extend(entry, tree_entry_size(&parts)), &parts);
    bytes_close(&body);
    change_close_spelling(&text);
    return true;
}

/* ---- Commands of an operator: each returns NULL, or why not ---- */

/* A server that has just started has a configuration in force before one is applied. */
static struct zk_text members_now(const struct ensemble *e) {
    struct zk_text committed = members_committed(e);
    return committed.size ? committed : change_text(&e->members.text);
}

/* One of the two could not be reached, and would be a member all the same. */
static bool shares_address(struct plan *p) {
    for (unsigned i = 0; i < p->target.count; i++)
        for (unsigned j = 0; j < i; j++) {
            const struct member *one = &p->target.at[j], *other = &p->target.at[i];
            if (one->peer_port != other->peer_port || strcasecmp(one->host, other->host) != 0)
                continue;
            snprintf(p->why, sizeof p->why, "server %d and server %d would have the same address",
                     member_number(one->id), member_number(other->id));
            return true;
        }
    return false;
}

static const char *explain(const struct ensemble *e, struct plan *p) {
    static const char waits[] = "another change of the members comes first, and waits: ";
    enum { SIZE = sizeof waits - 1 };
    if (!change_is_in_progress(e) || !e->change.blocked_us) return p->why;
    memmove(p->why + SIZE, p->why, sizeof p->why - SIZE);
    memcpy(p->why, waits, SIZE);
    p->why[sizeof p->why - 1] = 0;
    return p->why;
}

/* Checked here first, so that the operator hears at once what is wrong. */
static const char *propose_change(struct ensemble *e, struct plan *p, const char *joining,
                                  const char *leaving) {
    struct zk_reconfig_request request = {.joining = zk_text_of(joining),
                                          .leaving = zk_text_of(leaving)};
    struct zk_text from = change_is_in_progress(e) ? change_text(&e->tree->target) : members_now(e);
    p->text.used = 0;
    if (tree_plan_members(from, &request, &p->text, p->why, sizeof p->why)) return p->why;
    members_read(p->text.at, p->text.used, &p->target_config, &p->target, p->why, sizeof p->why);
    read_members(p, members_now(e));
    if (shares_address(p)) return p->why;
    if (change_has_unusable_address(e, p)) return p->why;
    if (lacks_quorum(e, p)) return explain(e, p);
    change_propose(e, &request, "");
    return NULL;
}

/* A transfer stops all writes for a while, so one that cannot succeed is not begun. */
static const char *transfer(struct ensemble *e, uint8_t to) {
    struct raft_out out = {0};
    if (!raft_find_member(&e->raft.config, to)->weight) return "that server has no vote";
    if (!e->raft.leader) return "there is no leader";
    if (to == e->raft.leader) return NULL;
    if (to != e->raft.self && !e->peer[to].up) return "that server cannot be reached";
    if (!ensemble_leads(e)) return peers_ask_transfer(e, to), NULL;
    if (!ensemble_member(e, to).synced) return "that server does not respond, or has to catch up";
    core_transfer_leadership(e, to, &out);
    ensemble_perform(e, &out, NULL);
    return NULL;
}

/* One member, as lines.  Its address for clients stays as it is, and so does its weight if -1 is
 * given.  The directory is not named: the target of a change in progress may not have it yet. */
static const char *propose_member(struct ensemble *e, struct plan *p, struct member member,
                                  int32_t weight) {
    char line[2 * SETTINGS_HOST_MAX + 64];
    read_members(p, members_now(e));
    const struct member *before = member_list_find(&p->now, member.id);
    if (before) member.client = before->client;
    member.directory = 0;
    if (weight < 0) weight = before && before->weight ? before->weight : 1;
    member.group = 0;
    member.weight = 1; /* its line follows, as it may have to replace another weight */
    p->target = (struct member_list){0};
    member_list_put(&p->target, &member);
    member_list_write(&p->target, &p->text);
    snprintf(line, sizeof line, "%.*s\nweight.%d=%d", (int)p->text.used, (const char *)p->text.at,
             member_number(member.id), weight);
    return propose_change(e, p, line, "");
}

/* The argument is "4=host:port", perhaps with ":observer". */
static const char *add(struct ensemble *e, struct plan *p, const char *typed) {
    char error[SETTINGS_ERROR_MAX];
    p->target = (struct member_list){0};
    if (!member_list_parse_short(&p->target, typed, error, sizeof error) || p->target.count != 1)
        return "not N=HOST:PORT, or N=HOST:PORT:observer";
    return propose_member(e, p, p->target.at[0], -1);
}

/* A member with weight is no observer any more. */
static const char *set_weight(struct ensemble *e, struct plan *p, int32_t id, const char *typed) {
    uint64_t weight;
    if (parse_u64(typed, &weight) != 0 || weight > UINT8_MAX)
        return "not N=W, with a weight from 0 to 255";
    read_members(p, members_now(e));
    const struct member *found = member_list_find(&p->now, id);
    if (!found) return "there is no such member";
    struct member member = *found;
    member.observer = weight == 0;
    return propose_member(e, p, member, weight ? (int32_t)weight : 1);
}

/* The id of a member, and what follows "=" or NULL; 0: there is no such member. */
static uint8_t read_member(const struct ensemble *e, const char *typed, const char **value) {
    char number[8];
    uint64_t typed_number;
    size_t size = strcspn(typed, "=");
    *value = typed[size] ? typed + size + 1 : NULL;
    if (size >= sizeof number) return 0;
    memcpy(number, typed, size);
    number[size] = 0;
    if (parse_u64(number, &typed_number) != 0 || typed_number > MEMBER_NUMBER_MAX) return 0;
    uint8_t id = (uint8_t)member_id((int32_t)typed_number);
    return raft_find_member(&e->raft.config, id) ? id : 0;
}

static const char *carry_out(struct ensemble *e, struct plan *p, const char *verb,
                             const char *argument) {
    const char *value;
    char number[8];
    if (ensemble_is_standalone(e)) return "this server is alone: start it with --id and --ensemble";
    if (strcmp(verb, "add") == 0) return add(e, p, argument);
    uint8_t id = read_member(e, argument, &value);
    bool weighs = strcmp(verb, "weight") == 0;
    if (!id || (value && !weighs)) return "there is no such member";
    if (weighs) return set_weight(e, p, id, value ? value : "");
    if (strcmp(verb, "transfer") == 0) return transfer(e, id);
    snprintf(number, sizeof number, "%d", member_number(id));
    if (strcmp(verb, "remove") == 0) return propose_change(e, p, "", number);
    return "there is no such command";
}

bool ensemble_command(struct ensemble *e, const char *verb, const char *argument, char *why,
                      size_t size) {
    struct plan p = {0};
    const char *problem = carry_out(e, &p, verb, argument);
    if (problem) snprintf(why, size, "%s", problem);
    bytes_close(&p.text);
    return !problem;
}
