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
    char why[256];
};

static struct change_scratch *scratch(void) {
    struct change_scratch *c = calloc(1, sizeof *c);
    cv_assert(c);
    return c;
}

static void scratch_free(struct change_scratch *c) {
    bytes_close(&c->text);
    free(c);
}

bool change_is_under_way(const struct server *s) {
    const struct replica *r = &s->replica;
    return r->goal.text.used && !r->goal_is_old && !r->dismissed;
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
    const struct bytes *goal = &s->replica.goal.text;
    struct zk_text from = members_text_of_tree(s);
    if (change_is_under_way(s)) from = (struct zk_text){(char *)goal->at, (int32_t)goal->used};
    members_read((const unsigned char *)from.at, (size_t)from.size, &c->config, &c->now, c->why,
                 sizeof c->why);
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
    s->replica.goal.text.used = 0;
    s->replica.goal_is_old = false;
    s->replica.goal_error = err;
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
        if (r->goal.text.used) server_say("info", "the members are to stay as they are");
        end_change(s, ZK_NEWCONFIGNOQUORUM);
        return ZK_OK;
    }
    struct change_scratch *c = scratch();
    struct zk_text now = members_text_of_tree(s);
    int32_t err = make_goal(s, &request, c);
    if (!err) {
        end_change(s, ZK_OK);
        bool other = hash_long(now.at, (size_t)now.size, 0) != c->goal_config.mark;
        if (other) members_set(&r->goal, c->text.at, c->text.used);
        if (other) server_say("info", "the members are to change");
        r->goal_us = s->clock_us;
        r->goal_term = r->applied_term;
    }
    scratch_free(c);
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

static void propose_goal(struct server *s, const struct bytes *members) {
    struct bytes body = {0};
    struct zk_reconfig_request request = {
        .members = {(const char *)members->at, (int32_t)members->used}, .config_id = -1};
    zk_write_reconfig_request(&body, &request);
    commit_propose_own(s, ZK_OP_RECONFIG, zk_in_of(body.at, body.used));
    bytes_close(&body);
}

/* Through the log, so that nobody else goes on. */
static void give_up(struct server *s, const char *why) {
    server_say("warning", "the members do not change: %s", why);
    s->replica.goal_us = s->clock_us;
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
    if (!missing) r->goal_us = s->clock_us;
    snprintf(why, sizeof why, "server %u cannot be reached", missing);
    if (s->clock_us - r->goal_us > GIVEN_UP_US) give_up(s, why);
}

static bool take_step(struct server *s, struct change_scratch *c) {
    struct replica *r = &s->replica;
    struct raft_config next;
    const struct bytes *goal = &r->goal.text, *now = &r->members.text;
    members_read(now->at, now->used, &c->config, &c->now, c->why, sizeof c->why);
    members_read(goal->at, goal->used, &c->goal_config, &c->goal, c->why, sizeof c->why);
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
    if (!r->goal.text.used || !may) return;
    if (r->goal_is_old && r->goal_said != r->raft.term) {
        r->goal_said = r->raft.term;
        propose_goal(s, &r->goal.text);
    }
    if (r->goal_is_old) return;
    struct change_scratch *c = scratch();
    if (take_step(s, c)) server_wake(s);
    scratch_free(c);
}

void change_applied(struct server *s, struct zk_text text) {
    struct replica *r = &s->replica;
    if (!r->goal.text.used) return;
    bool there = r->goal.mark == hash_long(text.at, (size_t)text.size, 0);
    bool forgotten = r->goal_is_old && r->goal_term != r->applied_term;
    if (there) server_say("info", "the members have changed");
    if (there || forgotten) {
        end_change(s, there ? ZK_OK : ZK_OPERATIONTIMEOUT);
        return;
    }
    r->goal_us = s->clock_us;
    if (r->goal_term != r->applied_term) r->goal_is_old = true;
    r->goal_term = r->applied_term;
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
        int32_t err = under_way ? ZK_OPERATIONTIMEOUT : r->goal_error;
        if (!err)
            err = tree_read(&s->tree, ZK_OP_GET_DATA, &config, c->session_id, &identities,
                            &c->stream.out);
        reply_end(c, reply, c->change_xid, s->tree.zxid, err);
        connection_answered(c);
    }
}

/* ---- A person's commands ---- */

/* Looked at here first, so that who asks hears what is wrong. */
static void propose(struct server *s, const char *joining, const char *leaving, char *why,
                    size_t size) {
    struct bytes body = {0};
    struct zk_reconfig_request request = {
        .joining = zk_text_of(joining), .leaving = zk_text_of(leaving), .config_id = -1};
    struct change_scratch *c = scratch();
    if (make_goal(s, &request, c)) {
        snprintf(why, size, "%s", c->why);
    } else {
        zk_write_reconfig_request(&body, &request);
        commit_propose_own(s, ZK_OP_RECONFIG, zk_in_of(body.at, body.used));
        bytes_close(&body);
    }
    scratch_free(c);
}

static const char *transfer(struct server *s, uint8_t to) {
    struct replica *r = &s->replica;
    struct raft_out out = {0};
    const struct raft_member *member = raft_member(&r->raft.config, to);
    if (!member) return "there is no such member";
    if (!member->weight) return "that server has no vote";
    if (!r->raft.leader) return "there is no leader";
    if (to == r->raft.leader) return NULL;
    if (!replica_leads(s)) return peers_ask_transfer(s, to), NULL;
    raft_transfer(&r->raft, to, &out);
    replica_perform(s, &out);
    return NULL;
}

/* One member, as lines of a zoo.cfg.  Where its clients find it stays as it is, and with weight -1
 * that, too. */
static void propose_member(struct server *s, struct settings_member member, int32_t weight,
                           char *why, size_t size) {
    struct change_scratch *c = scratch();
    char line[2 * SETTINGS_HOST_MAX + 64];
    struct zk_text text = members_text_of_tree(s);
    members_read((const unsigned char *)text.at, (size_t)text.size, &c->config, &c->now, c->why,
                 sizeof c->why);
    const struct settings_member *before = find(&c->now, member.id);
    if (before) member.client = before->client;
    if (weight < 0)
        weight = before && c->now.weight_of[member.id] ? c->now.weight_of[member.id] : 1;
    settings_default(&c->goal);
    c->goal.members[c->goal.member_count++] = member;
    members_write(&c->goal, &c->text);
    snprintf(line, sizeof line, "%.*s\nweight.%d=%d", (int)c->text.used, (const char *)c->text.at,
             member.id, weight);
    scratch_free(c);
    propose(s, line, "", why, size);
}

/* What a person types: "4=host:port", perhaps with ":observer". */
static void add(struct server *s, const char *typed, char *why, size_t size) {
    char error[SETTINGS_ERROR_MAX];
    struct settings *parsed = malloc(sizeof *parsed);
    cv_assert(parsed);
    settings_default(parsed);
    bool good = settings_set(parsed, "ensemble", typed, error, sizeof error) == SETTINGS_SET &&
                parsed->member_count == 1;
    if (good)
        propose_member(s, parsed->members[0], -1, why, size);
    else
        snprintf(why, size, "not N=HOST:PORT, or N=HOST:PORT:observer");
    free(parsed);
}

/* Who is given weight is no observer any more. */
static void set_weight(struct server *s, int32_t id, const char *typed, char *why, size_t size) {
    struct change_scratch *c = scratch();
    const char *equals = strchr(typed, '=');
    uint64_t weight;
    struct zk_text text = members_text_of_tree(s);
    members_read((const unsigned char *)text.at, (size_t)text.size, &c->config, &c->now, c->why,
                 sizeof c->why);
    const struct settings_member *found = find(&c->now, id);
    bool good = equals && parse_u64(equals + 1, &weight) == 0 && weight <= UINT8_MAX;
    struct settings_member member = found ? *found : (struct settings_member){0};
    scratch_free(c);
    if (!good || !found) {
        snprintf(why, size, good ? "there is no such member" : "not N=W, with a weight up to 255");
        return;
    }
    member.observer = weight == 0;
    propose_member(s, member, weight ? (int32_t)weight : 1, why, size);
}

bool change_command(struct server *s, const char *verb, const char *argument, char *why,
                    size_t size) {
    int32_t id = atoi(argument);
    const char *problem = NULL;
    bool member = id > 0 && id <= SETTINGS_ID_MAX && strlen(argument) <= 16 &&
                  raft_member(&s->replica.raft.config, (uint8_t)id);
    *why = 0;
    if (!s->replica.links)
        problem = "this server is alone: start it with --id and --ensemble";
    else if (strcmp(verb, "add") == 0)
        add(s, argument, why, size);
    else if (!member)
        problem = "there is no such member";
    else if (strcmp(verb, "transfer") == 0)
        problem = transfer(s, (uint8_t)id);
    else if (strcmp(verb, "remove") == 0)
        propose(s, "", argument, why, size);
    else if (strcmp(verb, "weight") == 0)
        set_weight(s, id, argument, why, size);
    else
        problem = "there is no such command";
    if (problem) snprintf(why, size, "%s", problem);
    return !*why;
}
