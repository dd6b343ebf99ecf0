/* The members of the ensemble: as text, in lines of a zoo.cfg, which is how the log and
 * /zookeeper/config have them; and as the core knows them. */
#include <stdarg.h>
#include <stdio.h>

#include "base/hash.h"
#include "server/server.h"

enum { WEIGHT_MAX = 255, ID_MAX = 254 }; /* a byte of ones would be the mark of a ttl */

void members_set(struct members *members, const void *text, size_t size) {
    members->text.used = 0;
    bytes_add(&members->text, text, size);
    members->mark = hash_long(text, size, 0);
}

void members_take(struct replica *r, const void *text, size_t size) {
    struct members older = r->former;
    if (r->members.mark == hash_long(text, size, 0)) return;
    r->former = r->members;
    r->members = older;
    members_set(&r->members, text, size);
}

/* ---- Writing ---- */

__attribute__((format(printf, 2, 3))) static void line(struct bytes *text, const char *format,
                                                       ...) {
    char room[2 * SETTINGS_HOST_MAX + 64];
    va_list arguments;
    va_start(arguments, format);
    int size = vsnprintf(room, sizeof room, format, arguments);
    va_end(arguments);
    if (text->used) bytes_add(text, "\n", 1);
    bytes_add(text, room, (size_t)size);
}

static void write_member(const struct settings_member *m, struct bytes *text) {
    char client[SETTINGS_HOST_MAX + 16] = "";
    const char *host = strcmp(m->client.host, "*") == 0 ? "0.0.0.0" : m->client.host;
    bool six = strchr(m->host, ':'), client_six = strchr(host, ':');
    if (m->client.port)
        snprintf(client, sizeof client, client_six ? ";[%s]:%d" : ";%s:%d", host, m->client.port);
    line(text, six ? "server.%d=[%s]:%d:%d:%s%s" : "server.%d=%s:%d:%d:%s%s", m->id, m->host,
         m->peer_port, m->election_port, m->observer ? "observer" : "participant", client);
}

static void write_groups(const struct settings *s, struct bytes *text) {
    for (int group = 1; group <= UINT8_MAX; group++) {
        bool any = false;
        char number[16];
        for (unsigned i = 0; i < s->member_count; i++) {
            int32_t id = s->members[i].id;
            if (s->group_of[id] != group) continue;
            if (!any) line(text, "group.%d=%d", group, id);
            snprintf(number, sizeof number, ":%d", id);
            if (any) bytes_add(text, number, strlen(number));
            any = true;
        }
    }
}

/* The same members give the same text, in whatever order they were named. */
void members_write(const struct settings *s, struct bytes *text) {
    text->used = 0;
    for (int32_t id = 1; id <= SETTINGS_ID_MAX; id++)
        for (unsigned i = 0; i < s->member_count; i++)
            if (s->members[i].id == id) write_member(&s->members[i], text);
    write_groups(s, text);
    for (int32_t id = 1; id <= SETTINGS_ID_MAX; id++)
        for (unsigned i = 0; i < s->member_count; i++)
            if (s->members[i].id == id && s->weight_of[id] != 1)
                line(text, "weight.%d=%d", id, s->weight_of[id]);
}

/* ---- Reading ---- */

struct complaint {
    char *why;
    size_t size;
};

static void complain(void *context, bool failed, const char *text) {
    struct complaint *complaint = context;
    if (failed) snprintf(complaint->why, complaint->size, "%s", text);
}

static bool to_config(const struct settings *s, struct raft_config *config, char *why,
                      size_t size) {
    if (s->member_count > RAFT_MEMBERS_MAX) {
        snprintf(why, size, "there are more than %d members", RAFT_MEMBERS_MAX);
        return false;
    }
    for (int32_t id = 0; id <= SETTINGS_ID_MAX; id++) {
        for (unsigned i = 0; i < s->member_count; i++) {
            if (s->members[i].id != id) continue;
            if (id < 1 || id > ID_MAX || s->weight_of[id] > WEIGHT_MAX) {
                snprintf(why, size, "server.%d: numbers go from 1 to %d, and weights up to %d", id,
                         ID_MAX, WEIGHT_MAX);
                return false;
            }
            config->at[config->count++] = (struct raft_member){
                .id = (uint8_t)id,
                .group = s->group_of[id],
                .weight = s->members[i].observer ? 0 : (uint16_t)s->weight_of[id]};
        }
    }
    return true;
}

bool members_read(const unsigned char *text, size_t size, struct raft_config *config,
                  struct settings *settings, char *why, size_t why_size) {
    struct complaint complaint = {why, why_size};
    *config = (struct raft_config){.mark = hash_long(text, size, 0)};
    settings_default(settings);
    snprintf(why, why_size, "it is no list of members");
    if (settings_parse(settings, "members", (const char *)text, size, complain, &complaint) != 0)
        return false;
    return to_config(settings, config, why, why_size);
}

bool members_read_entry(const struct raft_batch *batch, struct raft_config *config,
                        struct zk_text *text) {
    char why[256];
    size_t at = 0;
    struct raft_entry entry;
    struct tree_members members;
    struct settings *scratch = malloc(sizeof *scratch);
    cv_assert(scratch);
    bool good = batch->count == 1 && raft_next(batch, &at, &entry) &&
                tree_read_members(zk_in_of(entry.bytes, entry.size), &members) &&
                members_read((const unsigned char *)members.text.at, (size_t)members.text.size,
                             config, scratch, why, sizeof why);
    *text = members.text;
    free(scratch);
    return good;
}

/* ---- In force ---- */

bool members_take_entry(struct server *s, const struct raft_batch *batch,
                        struct raft_config *config) {
    struct zk_text text;
    if (!members_read_entry(batch, config, &text) || !text.size) return false;
    members_take(&s->replica, text.at, (size_t)text.size);
    return true;
}

bool members_in_force(struct server *s, struct raft_config *config) {
    const struct bytes *text = &s->replica.members.text;
    struct settings *scratch = malloc(sizeof *scratch);
    char why[256];
    cv_assert(scratch);
    bool good = members_read(text->at, text->used, config, scratch, why, sizeof why);
    if (!good) server_say("error", "the members of the ensemble: %s", why);
    free(scratch);
    return good;
}

struct zk_text members_text_of_tree(const struct server *s) {
    static const char version[] = "\nversion=";
    node_id id = tree_find(&s->tree, zk_text_of("/zookeeper/config"));
    struct zk_text text = node_data(&s->tree.node[id]);
    const char *end =
        text.size > 0 ? memmem(text.at, (size_t)text.size, version, sizeof version - 1) : NULL;
    return (struct zk_text){text.at, end ? (int32_t)(end - text.at) : 0};
}

bool members_of_tree(struct server *s, struct raft_config *config) {
    struct zk_text text = members_text_of_tree(s);
    if (!text.size) return false;
    members_take(&s->replica, text.at, (size_t)text.size);
    return members_in_force(s, config);
}
