/* A tree to try things on: requests in; errors, replies and events out; all of it as a text that
 * can be compared. */
#ifndef CV_TESTS_TREE_HELP_H
#define CV_TESTS_TREE_HELP_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>

#include "service/tree/tree.h"

#define COUNT(ARRAY)  (sizeof(ARRAY) / sizeof(ARRAY)[0])
#define TEXT(LITERAL) ((struct zk_text){LITERAL, sizeof LITERAL - 1})
#define OPEN          "world:anyone:31"

enum { FIRST_SESSION = 77, FIRST_TIME = 1000 };

struct world {
    struct tree tree;
    int64_t session, time;
    struct bytes body, reply;
    struct bytes identities;
    int32_t identity_count;
};

/* ---- Lists ---- */

/* "scheme:id:perms scheme:id:perms ..." as an ACL; good until the next call.  The id may hold
 * colons; without any colon the entry is of that scheme, with a null id and all permissions. */
static inline struct zk_acls acls_of(const char *spec) {
    static struct bytes out;
    struct zk_acls list = {0};
    out.used = 0;
    while (*spec) {
        int32_t size = (int32_t)strcspn(spec, " ");
        const char *first = memchr(spec, ':', (size_t)size);
        const char *last = memrchr(spec, ':', (size_t)size);
        struct zk_acl entry = {ACL_ALL, {{spec, size}, zk_null()}};
        if (first) {
            entry.perms = atoi(last + 1);
            entry.id.scheme.size = (int32_t)(first - spec);
            entry.id.id = (struct zk_text){first + 1, (int32_t)(last - first - 1)};
        }
        zk_write_acl(&out, &entry);
        list.count++;
        spec += size + (spec[size] == ' ');
    }
    list.at = out.at;
    list.size = out.used;
    return list;
}

/* The identities of later requests: "scheme:user scheme:user ...". */
static inline void become(struct world *w, const char *spec) {
    w->identities.used = 0;
    w->identity_count = 0;
    while (*spec) {
        int32_t size = (int32_t)strcspn(spec, " "), scheme = (int32_t)strcspn(spec, ":");
        zk_write_client(
            &w->identities,
            &(struct zk_client){{spec, scheme}, {spec + scheme + 1, size - scheme - 1}});
        w->identity_count++;
        spec += size + (spec[size] == ' ');
    }
}

static inline struct zk_clients identities_of(const struct world *w) {
    return (struct zk_clients){w->identities.at, w->identities.used, w->identity_count};
}

/* ---- Entries ---- */

/* Applies w->body as the next entry. */
static inline int32_t apply(struct world *w, int32_t op) {
    struct tree_entry entry = {.time = w->time,
                               .session = w->session,
                               .identities = identities_of(w),
                               .rules = w->tree.rules,
                               .op = op,
                               .body = zk_in_of(w->body.at, w->body.used)};
    w->reply.used = 0;
    return tree_apply(&w->tree, w->tree.zxid + 1, &entry, &w->reply);
}

static inline int32_t ask(struct world *w, int32_t op, const void *request) {
    w->body.used = 0;
    zk_op_of(op)->request->write(&w->body, request);
    return apply(w, op);
}

static inline int32_t open_session(struct world *w, int64_t id) {
    int64_t before = w->session;
    w->body.used = 0;
    zk_write_i32(&w->body, 4000);
    memset(bytes_extend(&w->body, TREE_PASSWORD_SIZE), (int)id, TREE_PASSWORD_SIZE);
    w->session = id;
    int32_t err = apply(w, ZK_OP_CREATE_SESSION);
    w->session = before;
    return err;
}

static inline int32_t close_session(struct world *w, int64_t id) {
    int64_t before = w->session;
    w->body.used = 0;
    w->session = id;
    int32_t err = apply(w, ZK_OP_CLOSE_SESSION);
    w->session = before;
    return err;
}

static inline int32_t create_with(struct world *w, struct zk_text path, const char *data,
                                  const char *acl, int32_t flags) {
    struct zk_create_request r = {path, zk_text_of(data), acls_of(acl), flags};
    return ask(w, ZK_OP_CREATE, &r);
}

static inline int32_t create(struct world *w, const char *path, int32_t flags) {
    return create_with(w, zk_text_of(path), "", OPEN, flags);
}

static inline int32_t create_ttl(struct world *w, const char *path, int64_t ttl) {
    struct zk_create_ttl_request r = {zk_text_of(path), zk_null(), acls_of(OPEN), ZK_TTL, ttl};
    return ask(w, ZK_OP_CREATE_TTL, &r);
}

static inline int32_t create_container(struct world *w, const char *path) {
    struct zk_create_request r = {zk_text_of(path), zk_null(), acls_of(OPEN), ZK_CONTAINER};
    return ask(w, ZK_OP_CREATE_CONTAINER, &r);
}

static inline int32_t delete_node(struct world *w, const char *path, int32_t version) {
    struct zk_delete_request r = {zk_text_of(path), version};
    return ask(w, ZK_OP_DELETE, &r);
}

static inline int32_t set_data(struct world *w, const char *path, const char *data,
                               int32_t version) {
    struct zk_set_data_request r = {zk_text_of(path), zk_text_of(data), version};
    return ask(w, ZK_OP_SET_DATA, &r);
}

static inline int32_t set_acl(struct world *w, const char *path, const char *acl, int32_t version) {
    struct zk_set_acl_request r = {zk_text_of(path), acls_of(acl), version};
    return ask(w, ZK_OP_SET_ACL, &r);
}

static inline int32_t delete_container(struct world *w, struct zk_text path) {
    w->body.used = 0;
    zk_write_text(&w->body, path);
    return apply(w, ZK_OP_DELETE_CONTAINER);
}

/* ---- Replies and events ---- */

static inline struct zk_stat stat_of(const struct world *w, const char *path) {
    struct zk_stat stat;
    node_id id = tree_find(&w->tree, zk_text_of(path));
    assert_true(id);
    tree_stat(&w->tree.node[id], &stat);
    return stat;
}

static inline bool exists(const struct world *w, const char *path) {
    return tree_find(&w->tree, zk_text_of(path)) != 0;
}

static inline void expect_data(const struct world *w, const char *path, const char *data) {
    node_id id = tree_find(&w->tree, zk_text_of(path));
    assert_true(id);
    struct zk_text found = node_data(&w->tree.node[id]);
    if (!zk_text_equal(found, zk_text_of(data)))
        fail_msg("%s holds '%.*s', not '%s'", path, (int)found.size, found.at, data);
}

/* The path in the response to a create. */
static inline void expect_created(const struct world *w, const char *path) {
    struct zk_in in = zk_in_of(w->reply.at, w->reply.used);
    struct zk_text created;
    assert_true(zk_read_text(&in, &created));
    if (!zk_text_equal(created, zk_text_of(path)))
        fail_msg("created %.*s, not %s", (int)created.size, created.at, path);
}

/* The events of the last entry: +created, -deleted, *changed. */
static inline void expect_events(const struct world *w, const char *expected) {
    static const char sign[] = {
        [ZK_NODE_CREATED] = '+', [ZK_NODE_DELETED] = '-', [ZK_NODE_DATA_CHANGED] = '*'};
    char text[1024] = "", *at = text;
    for (size_t i = 0; i < w->tree.events; i++) {
        struct zk_text path = tree_event_path(&w->tree, &w->tree.event[i]);
        at += sprintf(at, "%s%c%.*s", i ? " " : "", sign[w->tree.event[i].type], (int)path.size,
                      path.at);
    }
    assert_string_equal(text, expected);
}

/* ---- The whole tree ---- */

static inline void print_text(FILE *out, struct zk_text text) {
    fprintf(out, text.size < 0 ? "null" : "'%.*s'", (int)text.size, text.at);
}

static inline void print_node(FILE *out, const struct tree *tree, node_id id) {
    const struct node *node = &tree->node[id];
    struct bytes path = {0};
    struct zk_acl entry;
    tree_path(tree, id, &path);
    fprintf(out, "%.*s zxids %lld %lld %lld times %lld %lld owner %llx versions %d %d %d data ",
            (int)path.used, path.at, (long long)node->czxid, (long long)node->mzxid,
            (long long)node->pzxid, (long long)node->ctime, (long long)node->mtime,
            (unsigned long long)node->owner, node->version, node->creates, node->aversion);
    print_text(out, node_data(node));
    for (struct zk_acls left = acl_list(tree, node->acl); zk_acls_next(&left, &entry);) {
        fprintf(out, " %d:", entry.perms);
        print_text(out, entry.id.scheme);
        print_text(out, entry.id.id);
    }
    bytes_close(&path);
}

static inline int by_text(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Counters, sessions and indexes agree with the nodes. */
static inline void expect_sound(const struct tree *tree) {
    uint32_t nodes = 0, ephemerals = 0, owned = 0, sessions = 0, up;
    int64_t bytes = 0;
    struct bytes path = {0};
    for (node_id id = TREE_ROOT; id; id = tree_walk(tree, TREE_ROOT, id, &up)) {
        const struct node *node = &tree->node[id];
        uint32_t children = 0;
        node_id last = 0;
        for (node_id child = node_children(node) ? node->first_child : 0; child;
             last = child, child = tree->node[child].next, children++) {
            assert_int_equal(tree->node[child].parent, id);
            assert_int_equal(tree->node[child].prev, last);
        }
        assert_int_equal(children, node_children(node));
        path.used = 0;
        tree_path(tree, id, &path);
        assert_int_equal(tree_find(tree, (struct zk_text){(char *)path.at, (int32_t)path.used}),
                         id);
        nodes++;
        ephemerals += node_is_ephemeral(node);
        bytes += node->name_size + (node->data_size > 0 ? node->data_size : 0);
    }
    for (uint32_t slot = 1; slot <= tree->sessions.slots; slot++) {
        const struct session *session = &tree->sessions.at[slot];
        if (!session->id) continue;
        sessions++;
        uint32_t count = 0;
        for (node_id id = session->owned; id; id = tree->node[id].next_owned, count++)
            assert_int_equal(tree->node[id].owner, session->id);
        assert_int_equal(count, session->owned_count);
        owned += count;
    }
    assert_int_equal(nodes, tree->nodes);
    assert_int_equal(nodes, tree->index.used);
    assert_int_equal(ephemerals, tree->ephemerals);
    assert_int_equal(owned, ephemerals);
    assert_int_equal(sessions, tree->sessions.count);
    assert_int_equal(bytes, tree->bytes);
    bytes_close(&path);
}

/* Every node, by path, and every session: what must be the same on every server.  To be freed. */
static inline char *dump(const struct tree *tree) {
    char **line = malloc((tree->nodes + tree->sessions.count) * sizeof *line), *text;
    size_t lines = 0, size;
    uint32_t up;
    expect_sound(tree);
    for (node_id id = TREE_ROOT; id; id = tree_walk(tree, TREE_ROOT, id, &up)) {
        FILE *out = open_memstream(&line[lines++], &size);
        print_node(out, tree, id);
        fclose(out);
    }
    for (uint32_t slot = 1; slot <= tree->sessions.slots; slot++) {
        const struct session *session = &tree->sessions.at[slot];
        if (!session->id) continue;
        FILE *out = open_memstream(&line[lines++], &size);
        fprintf(out, "session %llx %d ", (unsigned long long)session->id, session->timeout_ms);
        for (size_t i = 0; i < TREE_PASSWORD_SIZE; i++) fprintf(out, "%02x", session->password[i]);
        fclose(out);
    }
    qsort(line, lines, sizeof *line, by_text);
    FILE *out = open_memstream(&text, &size);
    for (size_t i = 0; i < lines; i++) {
        fprintf(out, "%s\n", line[i]);
        free(line[i]);
    }
    fprintf(out, "quotas %u\n", tree->quotas);
    fclose(out);
    free(line);
    return text;
}

/* The tree is unchanged; frees `before`. */
static inline void expect_same(const struct tree *tree, char *before) {
    char *now = dump(tree), *a = before, *b = now;
    while (*a && strcspn(a, "\n") == strcspn(b, "\n") && strncmp(a, b, strcspn(a, "\n") + 1) == 0)
        a += strcspn(a, "\n") + 1, b += strcspn(b, "\n") + 1;
    if (*a || *b)
        fail_msg("it was\n%.*s\nand is\n%.*s", (int)strcspn(a, "\n"), a, (int)strcspn(b, "\n"), b);
    free(now);
    free(before);
}

/* ---- As bytes ---- */

static inline int write_image(void *context, const void *bytes, size_t size) {
    bytes_add(context, bytes, size);
    return 0;
}

static inline int read_image(void *context, void *bytes, size_t size) {
    struct zk_in *in = context;
    if (size > zk_left(in)) return -1;
    if (size) memcpy(bytes, in->at, size);
    in->at += size;
    return 0;
}

/* ---- Beginning and end ---- */

static inline void world_open(struct world *w) {
    *w = (struct world){.session = FIRST_SESSION, .time = FIRST_TIME};
    assert_int_equal(tree_open(&w->tree, 5), 0);
    w->tree.rules = TREE_EXTENDED_TYPES;
    assert_int_equal(open_session(w, FIRST_SESSION), ZK_OK);
}

static inline void world_close(struct world *w) {
    tree_close(&w->tree);
    bytes_close(&w->body);
    bytes_close(&w->reply);
    bytes_close(&w->identities);
}

#endif
