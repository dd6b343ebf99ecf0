/* Changing the members while they serve.
 *
 * A request to do so goes through the log like any other, so every server knows what is aimed at,
 * and whoever leads goes there: step by step, each an entry that is decided before the next (see
 * raft_change).  Who comes learns first and votes later; who goes loses its vote first. */
#include "server/server.h"

#include <stdio.h>

enum {
    PATIENCE_US = 10000000, /* of a client that asked */
    GIVEN_UP_US = 60000000, /* without a step: one that was to come does not */
};

struct change_scratch { /* two lists of members, which are too large for a stack */
    struct settings goal, now;
    struct raft_config goal_config, config;
    struct bytes text;
};

static struct change_scratch *scratch(struct server *s) {
    struct change_scratch *c = calloc(1, sizeof *c);
    const struct bytes *goal = &s->replica.goal.text, *now = &s->replica.members.text;
    char why[256];
    cv_assert(c);
    members_read(now->at, now->used, &c->config, &c->now, why, sizeof why);
    members_read(goal->at, goal->used, &c->goal_config, &c->goal, why, sizeof why);
    return c;
}

static void scratch_free(struct change_scratch *c) {
    bytes_close(&c->text);
    free(c);
}

/* ---- What is aimed at ---- */

static bool add_lines(struct settings *to, struct zk_text lines) {
    char line[2 * SETTINGS_HOST_MAX], error[SETTINGS_ERROR_MAX];
    const char *end = lines.at + (lines.size > 0 ? lines.size : 0);
    for (const char *at = lines.at; at < end;) {
        size_t size = 0;
        while (at + size < end && at[size] != ',' && at[size] != '\n') size++;
        char *equals = memchr(at, '=', size);
        if (size >= sizeof line || (size && !equals)) return false;
        if (size) {
            memcpy(line, at, size);
            line[size] = 0;
            line[equals - at] = 0;
            bool known = strncmp(line, "server.", 7) == 0 || strncmp(line, "weight.", 7) == 0 ||
                         strncmp(line, "group.", 6) == 0;
            if (!known || settings_set(to, line, line + (equals - at) + 1, error, sizeof error) !=
                              SETTINGS_SET)
                return false;
        }
        at += size + 1;
    }
    return true;
}

static void cut_member(struct settings *from, int32_t id) {
    for (unsigned i = 0; i < from->member_count; i++) {
        if (from->members[i].id != id) continue;
        from->members[i] = from->members[--from->member_count];
        from->group_of[id] = 0;
        from->weight_of[id] = 1;
        return;
    }
}

static bool cut_members(struct settings *from, struct zk_text ids) {
    const char *end = ids.at + (ids.size > 0 ? ids.size : 0);
    for (const char *at = ids.at; at < end; at++) {
        int32_t id = 0;
        for (; at < end && *at >= '0' && *at <= '9' && id <= SETTINGS_ID_MAX; at++)
            id = 10 * id + (*at - '0');
        if (at < end && *at != ',' && *at != ' ') return false;
        if (id > SETTINGS_ID_MAX) return false;
        cut_member(from, id);
    }
    return true;
}

/* The same on every server, for it depends on nothing but the log. */
int32_t change_begin(struct server *s, struct zk_in body) {
    struct replica *r = &s->replica;
    struct zk_reconfig_request request;
    if (!zk_read_reconfig_request(&body, &request)) return ZK_MARSHALLINGERROR;
    struct change_scratch *c = scratch(s);
    struct settings *goal = &c->now; /* from there on */
    char why[256];
    if (request.members.size > 0) goal->member_count = 0;
    bool sound = add_lines(goal, request.members) && add_lines(goal, request.joining) &&
                 cut_members(goal, request.leaving);
    members_write(goal, &c->text);
    sound = sound && members_read(c->text.at, c->text.used, &c->config, &c->goal, why, sizeof why);
    int32_t err = !sound                                    ? ZK_BADARGUMENTS
                  : !raft_is_quorum(&c->config, UINT32_MAX) ? ZK_NEWCONFIGNOQUORUM
                                                            : ZK_OK;
    if (!err) {
        members_set(&r->goal, c->text.at, c->text.used);
        r->goal_us = s->clock_us;
        server_say("info", "the members are to change");
    }
    scratch_free(c);
    change_turn(s);
    return err;
}

/* ---- Getting there ---- */

static const struct settings_member *find(const struct settings *s, int32_t id) {
    for (unsigned i = 0; i < s->member_count; i++)
        if (s->members[i].id == id) return &s->members[i];
    return NULL;
}

/* The members of a step, with addresses from where there are any. */
static void write_step(struct change_scratch *c, const struct raft_config *next) {
    struct settings *step = calloc(1, sizeof *step);
    cv_assert(step);
    *step = c->goal;
    step->member_count = 0;
    for (uint32_t i = 0; i < next->count; i++) {
        int32_t id = next->at[i].id;
        const struct settings_member *member = find(&c->goal, id);
        struct settings_member *place = &step->members[step->member_count++];
        *place = member ? *member : *find(&c->now, id);
        place->observer = next->at[i].weight == 0;
        step->weight_of[id] = next->at[i].weight ? next->at[i].weight : 1;
    }
    members_write(step, &c->text);
    free(step);
}

static void abandon(struct server *s, const char *why) {
    server_say("warning", "the members do not change: %s", why);
    s->replica.goal.text.used = 0;
}

static bool take_step(struct server *s, struct change_scratch *c) {
    struct replica *r = &s->replica;
    struct raft_config next;
    char why[256];
    if (raft_step_toward(&r->raft.config, &c->goal_config, &next))
        write_step(c, &next);
    else
        bytes_add(&c->text, r->goal.text.at, r->goal.text.used); /* nothing but addresses */
    if (!members_read(c->text.at, c->text.used, &next, &c->now, why, sizeof why))
        return abandon(s, why), false;
    switch (raft_change(&r->raft, &next)) {
    case RAFT_CHANGED: break;
    case RAFT_CHANGE_TOO_LARGE: return abandon(s, "there are groups"), false;
    case RAFT_CHANGE_NO_VOTER: return abandon(s, "nobody would have a vote"), false;
    default: return false; /* not yet */
    }
    r->goal_us = s->clock_us;
    members_take(r, c->text.at, c->text.used);
    replica_add_members(s);
    peers_update(s);
    return true;
}

void change_turn(struct server *s) {
    struct replica *r = &s->replica;
    if (!r->goal.text.used) return;
    bool there = r->goal.mark == r->raft.config.mark && r->raft.config_index <= r->applied;
    if (there) {
        r->goal.text.used = 0;
        server_say("info", "the members have changed");
        return;
    }
    if (s->clock_us - r->goal_us > GIVEN_UP_US) abandon(s, "it took too long");
    if (!replica_leads(s) || r->raft.config_index > r->raft.committed) return;
    struct change_scratch *c = scratch(s);
    if (take_step(s, c)) server_wake(s);
    scratch_free(c);
}

/* ---- Those who asked ---- */

void change_answer(struct server *s) {
    const struct replica *r = &s->replica;
    bool under_way = r->goal.text.used, late = s->clock_us - r->goal_us > PATIENCE_US;
    if (under_way && !late) return;
    for (uint32_t i = 1; i <= s->connection_places; i++) {
        struct connection *c = s->connection[i];
        if (!c || !c->awaits_change) continue;
        c->awaits_change = false;
        union zk_request config = {.get_data = {zk_text_of("/zookeeper/config"), false}};
        struct zk_clients identities = connection_identities(c);
        size_t reply = reply_begin(c);
        int32_t err = under_way ? ZK_OPERATIONTIMEOUT
                                : tree_read(&s->tree, ZK_OP_GET_DATA, &config, c->session_id,
                                            &identities, &c->stream.out);
        reply_end(c, reply, c->change_xid, s->tree.zxid, err);
        connection_answered(c);
    }
}

/* ---- A person's commands ---- */

static void propose(struct server *s, const char *joining, const char *leaving) {
    struct bytes body = {0};
    struct zk_reconfig_request request = {
        .joining = zk_text_of(joining), .leaving = zk_text_of(leaving), .config_id = -1};
    zk_write_reconfig_request(&body, &request);
    commit_propose_own(s, ZK_OP_RECONFIG, zk_in_of(body.at, body.used));
    bytes_close(&body);
}

static const char *transfer(struct server *s, const char *to) {
    struct raft_out out = {0};
    int id = atoi(to);
    if (id < 1 || id > SETTINGS_ID_MAX) return "there is no such server";
    if (id == s->replica.raft.leader) return NULL;
    if (!replica_leads(s)) return peers_ask_transfer(s, (uint8_t)id), NULL;
    bool possible = raft_transfer(&s->replica.raft, (uint8_t)id, &out);
    replica_perform(s, &out);
    return possible ? NULL : "that server has no vote";
}

/* What a person types, "4=host:port", as a line of a zoo.cfg. */
static const char *add(struct server *s, const char *member) {
    char line[2 * SETTINGS_HOST_MAX], error[SETTINGS_ERROR_MAX];
    struct settings *parsed = malloc(sizeof *parsed);
    struct bytes text = {0};
    cv_assert(parsed);
    settings_default(parsed);
    bool good = settings_set(parsed, "ensemble", member, error, sizeof error) == SETTINGS_SET &&
                parsed->member_count == 1;
    if (good) members_write(parsed, &text);
    snprintf(line, sizeof line, "%.*s", (int)text.used, (const char *)text.at);
    bytes_close(&text);
    free(parsed);
    if (!good) return "not N=HOST:PORT, or N=HOST:PORT:observer";
    propose(s, line, "");
    return NULL;
}

const char *change_command(struct server *s, const char *verb, const char *argument) {
    char line[64];
    if (!s->replica.links) return "this server is alone: start it with --id and --ensemble";
    if (strcmp(verb, "transfer") == 0) return transfer(s, argument);
    if (s->replica.goal.text.used) return "the members are being changed";
    if (strcmp(verb, "add") == 0) return add(s, argument);
    if (strlen(argument) > 16) return "that is no server's number";
    if (strcmp(verb, "remove") == 0) return propose(s, "", argument), NULL;
    if (strcmp(verb, "weight") != 0) return "there is no such command";
    snprintf(line, sizeof line, "weight.%s", argument);
    return propose(s, line, ""), NULL;
}
