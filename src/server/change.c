/* Changing the members while they serve.
 *
 * A request to do so goes through the log like any other, so every server knows what is aimed at,
 * and whoever leads goes there: step by step, each an entry that is decided before the next (see
 * raft_change).  Who comes learns first and votes later; who goes loses its vote first.
 *
 * What is aimed at is only remembered, and not by a server that starts from a snapshot.  So a new
 * leader that knows of it puts it forward once more, and if it does not, then nobody goes on. */
#include "server/server.h"

#include <stdio.h>

#include "base/hash.h"
#include "base/parse.h"

enum {
    PATIENCE_US = 10000000, /* of a client that asked */
    GIVEN_UP_US = 60000000, /* one that was to come is not there */
};

struct change_scratch { /* two lists of members, which are too large for a stack */
    struct settings goal, now;
    struct raft_config goal_config, config;
    struct bytes text;
    char why[512];
};

static struct change_scratch *scratch(void) {
    struct change_scratch *c = calloc(1, sizeof *c);
    cv_assert(c);
    return c;
}

static void read_members(struct change_scratch *c, struct zk_text text) {
    members_read((const unsigned char *)text.at, (size_t)text.size, &c->config, &c->now, c->why,
                 sizeof c->why);
}

static void scratch_free(struct change_scratch *c) {
    bytes_close(&c->text);
    free(c);
}

bool change_is_under_way(const struct server *s) {
    const struct replica *r = &s->replica;
    return r->goal.members.text.used && !r->goal.is_old && !r->dismissed;
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

static bool has_groups(const struct raft_config *config) {
    for (uint32_t i = 1; i < config->count; i++)
        if (config->at[i].group != config->at[0].group) return true;
    return false;
}

/* What the members are to be, into the scratch; an error says why in words, too.  The same on every
 * server, for it depends on nothing but the log up to here. */
static int32_t make_goal(const struct server *s, const struct zk_reconfig_request *request,
                         struct change_scratch *c) {
    const struct bytes *goal = &s->replica.goal.members.text;
    struct zk_text from = members_text_of_tree(s);
    if (change_is_under_way(s)) from = (struct zk_text){(char *)goal->at, (int32_t)goal->used};
    read_members(c, from);
    if (request->members.size > 0) settings_default(&c->now);
    bool sound = add_lines(&c->now, request->members) && add_lines(&c->now, request->joining) &&
                 cut_members(&c->now, request->leaving);
    snprintf(c->why, sizeof c->why, "that is no list of members");
    if (!sound) return ZK_BADARGUMENTS;
    members_write(&c->now, &c->text);
    if (!members_read(c->text.at, c->text.used, &c->goal_config, &c->goal, c->why, sizeof c->why))
        return ZK_BADARGUMENTS;
    snprintf(c->why, sizeof c->why, "there are groups, and members of groups cannot change");
    if (has_groups(&c->config) || has_groups(&c->goal_config)) return ZK_BADARGUMENTS;
    snprintf(c->why, sizeof c->why, "nobody would have a vote");
    return raft_is_quorum(&c->goal_config, UINT32_MAX) ? ZK_OK : ZK_NEWCONFIGNOQUORUM;
}

static void end_change(struct server *s, int32_t err) {
    s->replica.goal.members.text.used = 0;
    s->replica.goal.is_old = false;
    s->replica.goal.error = err;
}

void change_readmitted(struct server *s) {
    s->replica.dismissed = false;
    end_change(s, ZK_OPERATIONTIMEOUT); /* what it last heard of */
}

int32_t change_begin(struct server *s, struct zk_in body) {
    struct replica *r = &s->replica;
    struct zk_reconfig_request request;
    if (!zk_read_reconfig_request(&body, &request)) return ZK_MARSHALLINGERROR;
    if (request.members.size <= 0 && request.joining.size <= 0 && request.leaving.size <= 0) {
        if (r->goal.members.text.used) server_say("info", "the members are to stay as they are");
        end_change(s, ZK_NEWCONFIGNOQUORUM);
        return ZK_OK;
    }
    struct change_scratch *c = scratch();
    struct zk_text now = members_text_of_tree(s);
    int32_t err = make_goal(s, &request, c);
    if (!err) {
        end_change(s, ZK_OK);
        bool other = hash_long(now.at, (size_t)now.size, 0) != c->goal_config.mark;
        if (other) members_set(&r->goal.members, c->text.at, c->text.used);
        if (other) server_say("info", "the members are to change");
        r->goal.step_us = s->clock_us;
        r->goal.term = r->applied_term;
    }
    scratch_free(c);
    return err;
}

/* ---- Getting there ---- */

/* Whether links may not go to an address that the goal brings: why, into the scratch.  One that
 * there is already stays, so that its member can be removed. */
static bool has_unusable(const struct server *s, struct change_scratch *c) {
    for (unsigned i = 0; i < c->goal.member_count; i++) {
        const struct settings_member *m = &c->goal.members[i];
        const struct settings_member *before = settings_member(&c->now, m->id);
        if (before && before->peer_port == m->peer_port && strcmp(before->host, m->host) == 0)
            continue;
        const char *problem = links_judge(s->replica.links, m->host, m->peer_port);
        if (!problem) continue;
        snprintf(c->why, sizeof c->why, "server %d at %.64s: %s", m->id, m->host, problem);
        return true;
    }
    return false;
}

/* The members of a step, with addresses from where there are any. */
static void write_step(struct change_scratch *c, const struct raft_config *next) {
    struct settings *step = calloc(1, sizeof *step);
    cv_assert(step);
    *step = c->goal;
    step->member_count = 0;
    for (uint32_t i = 0; i < next->count; i++) {
        int32_t id = next->at[i].id;
        const struct settings_member *member = settings_member(&c->goal, id);
        struct settings_member *place = &step->members[step->member_count++];
        *place = member ? *member : *settings_member(&c->now, id);
        place->observer = next->at[i].weight == 0;
        step->weight_of[id] = next->at[i].weight ? next->at[i].weight : 1;
    }
    members_write(step, &c->text);
    free(step);
}

static void propose_goal(struct server *s, const struct bytes *members) {
    struct bytes body = {0};
    struct zk_reconfig_request request = {
        .members = {(const char *)members->at, (int32_t)members->used}, .config_id = -1};
    zk_write_reconfig_request(&body, &request);
    commit_propose_own(s, ZK_OP_RECONFIG, zk_in_of(body.at, body.used));
    bytes_close(&body);
}

/* Through the log, so that nobody else goes on; until it comes out, nor does this server. */
static void give_up(struct server *s, const char *why) {
    struct goal *goal = &s->replica.goal;
    server_say("warning", "the members do not change: %s", why);
    goal->step_us = s->clock_us;
    goal->is_old = true;
    goal->said = s->replica.raft.term;
    propose_goal(s, &(struct bytes){0});
}

/* One that is to get a vote has to catch up: that takes as long as it takes, if it is there. */
static void await_learners(struct server *s, const struct raft_config *goal) {
    struct replica *r = &s->replica;
    char why[64];
    unsigned missing = 0;
    for (uint32_t i = 0; i < goal->count; i++) {
        const struct raft_member *now = raft_member(&r->raft.config, goal->at[i].id);
        bool learns = now && !now->weight && goal->at[i].weight;
        if (learns && !r->up[now->id]) missing = now->id;
    }
    if (!missing) r->goal.step_us = s->clock_us;
    snprintf(why, sizeof why, "server %u cannot be reached", missing);
    if (s->clock_us - r->goal.step_us > GIVEN_UP_US) give_up(s, why);
}

static bool take_step(struct server *s, struct change_scratch *c) {
    struct replica *r = &s->replica;
    struct raft_config next;
    const struct bytes *goal = &r->goal.members.text, *now = &r->members.text;
    members_read(now->at, now->used, &c->config, &c->now, c->why, sizeof c->why);
    members_read(goal->at, goal->used, &c->goal_config, &c->goal, c->why, sizeof c->why);
    if (has_unusable(s, c)) return give_up(s, c->why), false;
    if (raft_step_toward(&r->raft.config, &c->goal_config, &next))
        write_step(c, &next);
    else
        bytes_add(&c->text, goal->at, goal->used); /* nothing but addresses */
    if (!members_read(c->text.at, c->text.used, &next, &c->now, c->why, sizeof c->why))
        return give_up(s, c->why), false;
    switch (raft_change(&r->raft, &next)) {
    case RAFT_CHANGED: break;
    case RAFT_CHANGE_TOO_LARGE: return give_up(s, "a step is too large"), false;
    case RAFT_CHANGE_NO_VOTER: return give_up(s, "nobody would have a vote"), false;
    case RAFT_CHANGE_BEHIND: return await_learners(s, &c->goal_config), false;
    default: return false; /* not yet */
    }
    members_take(r, c->text.at, c->text.used);
    replica_add_members(s);
    peers_update(s);
    return true;
}

void change_turn(struct server *s) {
    struct replica *r = &s->replica;
    bool may = replica_leads(s) && r->applied == r->raft.committed &&
               r->raft.config_index <= r->applied && r->applied_term == r->raft.term;
    if (!r->goal.members.text.used || !may) return;
    if (r->goal.is_old && r->goal.said != r->raft.term) {
        r->goal.said = r->raft.term;
        propose_goal(s, &r->goal.members.text);
    }
    if (r->goal.is_old) return;
    struct change_scratch *c = scratch();
    if (take_step(s, c)) server_wake(s);
    scratch_free(c);
}

void change_applied(struct server *s, struct zk_text text) {
    struct replica *r = &s->replica;
    if (!r->goal.members.text.used) return;
    bool there = r->goal.members.mark == hash_long(text.at, (size_t)text.size, 0);
    bool forgotten = r->goal.is_old && r->goal.term != r->applied_term;
    if (there) server_say("info", "the members have changed");
    if (there || forgotten) {
        end_change(s, there ? ZK_OK : ZK_OPERATIONTIMEOUT);
        return;
    }
    r->goal.step_us = s->clock_us;
    if (r->goal.term != r->applied_term) r->goal.is_old = true;
    r->goal.term = r->applied_term;
}

/* ---- Those who asked ---- */

void change_answer(struct server *s) {
    const struct replica *r = &s->replica;
    bool under_way = r->goal.members.text.used, late = s->clock_us - r->goal.step_us > PATIENCE_US;
    if (under_way && !late) return;
    for (uint32_t i = 1; i <= s->connection_places; i++) {
        struct connection *c = s->connection[i];
        if (!c || !c->awaits_change) continue;
        c->awaits_change = false;
        union zk_request config = {.get_data = {zk_text_of("/zookeeper/config"), false}};
        struct zk_clients identities = connection_identities(c);
        size_t reply = reply_begin(c);
        int32_t err = under_way ? ZK_OPERATIONTIMEOUT : r->goal.error;
        if (!err)
            err = tree_read(&s->tree, ZK_OP_GET_DATA, &config, c->session_id, &identities,
                            &c->stream.out);
        reply_end(c, reply, c->change_xid, s->tree.zxid, err);
        connection_answered(c);
    }
}

/* ---- A person's commands: each NULL, or why not ---- */

/* Looked at here first, so that who asks hears what is wrong. */
static const char *propose(struct server *s, struct change_scratch *c, const char *joining,
                           const char *leaving) {
    struct bytes body = {0};
    struct zk_reconfig_request request = {
        .joining = zk_text_of(joining), .leaving = zk_text_of(leaving), .config_id = -1};
    if (make_goal(s, &request, c)) return c->why;
    read_members(c, members_text_of_tree(s));
    if (has_unusable(s, c)) return c->why;
    zk_write_reconfig_request(&body, &request);
    commit_propose_own(s, ZK_OP_RECONFIG, zk_in_of(body.at, body.used));
    bytes_close(&body);
    return NULL;
}

/* A try stops all writes for a while, so one that cannot succeed is not made. */
static const char *transfer(struct server *s, uint8_t to) {
    struct replica *r = &s->replica;
    struct raft_out out = {0};
    if (!raft_member(&r->raft.config, to)->weight) return "that server has no vote";
    if (!r->raft.leader) return "there is no leader";
    if (to == r->raft.leader) return NULL;
    if (to != r->raft.self && !r->up[to]) return "that server cannot be reached";
    if (!replica_leads(s)) return peers_ask_transfer(s, to), NULL;
    raft_transfer(&r->raft, to, &out);
    replica_perform(s, &out);
    return NULL;
}

/* One member, as lines of a zoo.cfg.  Where its clients find it stays as it is, and with weight -1
 * that, too. */
static const char *propose_member(struct server *s, struct change_scratch *c,
                                  struct settings_member member, int32_t weight) {
    char line[2 * SETTINGS_HOST_MAX + 64];
    read_members(c, members_text_of_tree(s));
    const struct settings_member *before = settings_member(&c->now, member.id);
    if (before) member.client = before->client;
    if (weight < 0)
        weight = before && c->now.weight_of[member.id] ? c->now.weight_of[member.id] : 1;
    settings_default(&c->goal);
    c->goal.members[c->goal.member_count++] = member;
    members_write(&c->goal, &c->text);
    snprintf(line, sizeof line, "%.*s\nweight.%d=%d", (int)c->text.used, (const char *)c->text.at,
             member.id, weight);
    return propose(s, c, line, "");
}

/* What a person types: "4=host:port", perhaps with ":observer". */
static const char *add(struct server *s, struct change_scratch *c, const char *typed) {
    char error[SETTINGS_ERROR_MAX];
    settings_default(&c->goal);
    bool good = settings_set(&c->goal, "ensemble", typed, error, sizeof error) == SETTINGS_SET &&
                c->goal.member_count == 1;
    if (!good) return "not N=HOST:PORT, or N=HOST:PORT:observer";
    return propose_member(s, c, c->goal.members[0], -1);
}

/* Who is given weight is no observer any more. */
static const char *set_weight(struct server *s, struct change_scratch *c, int32_t id,
                              const char *typed) {
    uint64_t weight;
    if (parse_u64(typed, &weight) != 0 || weight > UINT8_MAX)
        return "not N=W, with a weight up to 255";
    read_members(c, members_text_of_tree(s));
    const struct settings_member *found = settings_member(&c->now, id);
    if (!found) return "there is no such member";
    struct settings_member member = *found;
    member.observer = weight == 0;
    return propose_member(s, c, member, weight ? (int32_t)weight : 1);
}

/* The number of a member, and what stands behind "=" or NULL; 0: there is no such member. */
static uint8_t read_member(const struct server *s, const char *typed, const char **value) {
    char number[8];
    uint64_t id;
    size_t size = strcspn(typed, "=");
    *value = typed[size] ? typed + size + 1 : NULL;
    if (size >= sizeof number) return 0;
    memcpy(number, typed, size);
    number[size] = 0;
    bool known = parse_u64(number, &id) == 0 && id && id <= SETTINGS_ID_MAX &&
                 raft_member(&s->replica.raft.config, (uint8_t)id);
    return known ? (uint8_t)id : 0;
}

static const char *carry_out(struct server *s, struct change_scratch *c, const char *verb,
                             const char *argument) {
    const char *value;
    char number[8];
    if (!s->replica.links) return "this server is alone: start it with --id and --ensemble";
    if (strcmp(verb, "add") == 0) return add(s, c, argument);
    uint8_t id = read_member(s, argument, &value);
    bool weighs = strcmp(verb, "weight") == 0;
    if (!id || (value && !weighs)) return "there is no such member";
    if (weighs) return set_weight(s, c, id, value ? value : "");
    if (strcmp(verb, "transfer") == 0) return transfer(s, id);
    snprintf(number, sizeof number, "%d", id);
    if (strcmp(verb, "remove") == 0) return propose(s, c, "", number);
    return "there is no such command";
}

bool change_command(struct server *s, const char *verb, const char *argument, char *why,
                    size_t size) {
    struct change_scratch *c = scratch();
    const char *problem = carry_out(s, c, verb, argument);
    if (problem) snprintf(why, size, "%s", problem);
    scratch_free(c);
    return !problem;
}
