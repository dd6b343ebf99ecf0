/* A tree as one would write it without a thought for speed: an array of nodes with their whole
 * paths, copied as a whole where something may have to be taken back. */
#ifndef CV_TESTS_TREE_MODEL_H
#define CV_TESTS_TREE_MODEL_H

#include "tree_help.h"

enum { MODEL_NODES = 256, MODEL_PATH = 40, MODEL_DATA = 12, MODEL_SESSIONS = 3 };

/* The lists that the model knows: as they are given, and as they are kept. */
static const struct model_acl {
    const char *given;
    bool is_valid;
    int32_t anyone, user; /* what everybody may do, and what digest:u:p may */
    const char *kept;
} model_acls[] = {
    {OPEN, true, 31, 31, OPEN},
    {"world:anyone:15", true, 15, 15, "world:anyone:15"},
    {"world:anyone:5 digest:u:p:31", true, 5, 31, "world:anyone:5 digest:u:p:31"},
    {"nobody:x:31", false, 0, 0, NULL},
};

struct model_node {
    char path[MODEL_PATH], data[MODEL_DATA];
    int32_t data_size; /* -1: null */
    int64_t czxid, mzxid, pzxid, ctime, mtime, owner;
    int32_t version, aversion, creates, deletes;
    int acl;
};

struct model {
    struct model_node node[MODEL_NODES];
    int nodes;
    int64_t zxid, time;
    bool alive[MODEL_SESSIONS]; /* session FIRST_SESSION and those after it */
};

static inline struct model_node *model_find(struct model *m, const char *path) {
    for (int i = 0; i < m->nodes; i++)
        if (strcmp(m->node[i].path, path) == 0) return &m->node[i];
    return NULL;
}

static inline void model_parent(const char *path, char parent[MODEL_PATH]) {
    strcpy(parent, path);
    char *slash = strrchr(parent, '/');
    slash[slash == parent] = 0;
}

static inline int model_children(struct model *m, const char *path) {
    int count = 0;
    for (int i = 0; i < m->nodes; i++) {
        char parent[MODEL_PATH];
        model_parent(m->node[i].path, parent);
        count += strcmp(parent, path) == 0 && strcmp(m->node[i].path, "/") != 0;
    }
    return count;
}

/* The statistics of a quota for a path. */
static inline void model_count(const struct model *m, const char *path, char text[64]) {
    size_t size = strlen(path);
    int nodes = 0, bytes = 0;
    for (int i = 0; i < m->nodes; i++) {
        const struct model_node *node = &m->node[i];
        if (strncmp(node->path, path, size) != 0 || (node->path[size] && node->path[size] != '/'))
            continue;
        nodes++;
        bytes += node->data_size > 0 ? node->data_size : 0;
    }
    sprintf(text, "count=%d,bytes=%d", nodes, bytes);
}

static inline bool model_is_ephemeral(const struct model_node *node) {
    return node->owner >= FIRST_SESSION && node->owner < FIRST_SESSION + MODEL_SESSIONS;
}

static inline bool model_allows(const struct model_node *node, bool is_user, int32_t permission) {
    const struct model_acl *acl = &model_acls[node->acl];
    return (is_user ? acl->user : acl->anyone) & permission;
}

/* ---- Operations ---- */

struct model_request { /* fields mean what they do in the requests */
    int32_t op, flags, version;
    int64_t ttl;
    char path[MODEL_PATH], data[MODEL_DATA];
    int32_t data_size;
    int acl;
};

static inline bool model_is_valid(const char *path) {
    size_t size = strlen(path);
    return strcmp(path, "/") == 0 || (path[size - 1] != '/' && !strstr(path, "//"));
}

/* On success `created` is the new path. */
static inline int32_t model_create(struct model *m, const struct model_request *r, int64_t session,
                                   bool is_user, char created[MODEL_PATH]) {
    char above[MODEL_PATH];
    bool ttl = r->flags == ZK_TTL || r->flags == ZK_TTL_SEQUENTIAL;
    if (r->flags < 0 || r->flags > 6) return ZK_BADARGUMENTS;
    if (ttl != (r->op == ZK_OP_CREATE_TTL)) return ZK_BADARGUMENTS;
    if (ttl && (r->ttl < 1 || r->ttl > 0xffffffffff)) return ZK_BADARGUMENTS;
    if (!model_acls[r->acl].is_valid) return ZK_INVALIDACL;
    model_parent(r->path, above);
    struct model_node *parent = model_find(m, above);
    if (!parent) return ZK_NONODE;
    if (!model_allows(parent, is_user, ACL_CREATE)) return ZK_NOAUTH;
    strcpy(created, r->path);
    bool sequential = r->flags == ZK_SEQUENTIAL || r->flags == ZK_EPHEMERAL_SEQUENTIAL ||
                      r->flags == ZK_TTL_SEQUENTIAL;
    if (sequential) sprintf(created + strlen(created), "%010d", parent->creates);
    if (!model_is_valid(created)) return ZK_BADARGUMENTS;
    if (model_find(m, created)) return ZK_NODEEXISTS;
    if (model_is_ephemeral(parent)) return ZK_NOCHILDRENFOREPHEMERALS;
    parent->creates++;
    parent->pzxid = m->zxid;
    bool ephemeral = r->flags == ZK_EPHEMERAL || r->flags == ZK_EPHEMERAL_SEQUENTIAL;
    struct model_node node = {.data_size = r->data_size,
                              .czxid = m->zxid,
                              .mzxid = m->zxid,
                              .pzxid = m->zxid,
                              .ctime = m->time,
                              .mtime = m->time,
                              .acl = r->acl};
    strcpy(node.path, created);
    memcpy(node.data, r->data, sizeof node.data);
    node.owner = ttl ? (int64_t)(0xff00000000000000u | (uint64_t)r->ttl)
                 : r->op == ZK_OP_CREATE_CONTAINER ? INT64_MIN
                 : ephemeral                       ? session
                                                   : 0;
    assert_true(m->nodes < MODEL_NODES);
    m->node[m->nodes++] = node;
    return ZK_OK;
}

static inline void model_remove(struct model *m, struct model_node *node) {
    char above[MODEL_PATH];
    model_parent(node->path, above);
    struct model_node *parent = model_find(m, above);
    parent->deletes++;
    parent->pzxid = m->zxid;
    *node = m->node[--m->nodes];
}

static inline int32_t model_delete(struct model *m, const struct model_request *r, bool is_user) {
    char above[MODEL_PATH];
    if (strcmp(r->path, "/") == 0) return ZK_BADARGUMENTS;
    model_parent(r->path, above);
    struct model_node *parent = model_find(m, above), *node = model_find(m, r->path);
    if (!parent) return ZK_NONODE;
    if (!model_allows(parent, is_user, ACL_DELETE)) return ZK_NOAUTH;
    if (!node) return ZK_NONODE;
    if (r->version != -1 && r->version != node->version) return ZK_BADVERSION;
    if (model_children(m, r->path)) return ZK_NOTEMPTY;
    model_remove(m, node);
    return ZK_OK;
}

static inline int32_t model_set_data(struct model *m, const struct model_request *r, bool is_user) {
    if (!model_is_valid(r->path)) return ZK_BADARGUMENTS;
    struct model_node *node = model_find(m, r->path);
    if (!node) return ZK_NONODE;
    if (!model_allows(node, is_user, ACL_WRITE)) return ZK_NOAUTH;
    if (r->version != -1 && r->version != node->version) return ZK_BADVERSION;
    memcpy(node->data, r->data, sizeof node->data);
    node->data_size = r->data_size;
    node->version++;
    node->mzxid = m->zxid;
    node->mtime = m->time;
    return ZK_OK;
}

static inline int32_t model_set_acl(struct model *m, const struct model_request *r, bool is_user) {
    if (!model_is_valid(r->path)) return ZK_BADARGUMENTS;
    if (!model_acls[r->acl].is_valid) return ZK_INVALIDACL;
    struct model_node *node = model_find(m, r->path);
    if (!node) return ZK_NONODE;
    if (!model_allows(node, is_user, ACL_ADMIN)) return ZK_NOAUTH;
    if (r->version != -1 && r->version != node->aversion) return ZK_BADVERSION;
    node->acl = r->acl;
    node->aversion++;
    return ZK_OK;
}

static inline int32_t model_check(struct model *m, const struct model_request *r, bool is_user) {
    if (!model_is_valid(r->path)) return ZK_BADARGUMENTS;
    struct model_node *node = model_find(m, r->path);
    if (!node) return ZK_NONODE;
    if (!model_allows(node, is_user, ACL_READ)) return ZK_NOAUTH;
    return r->version != -1 && r->version != node->version ? ZK_BADVERSION : ZK_OK;
}

static inline int32_t model_operate(struct model *m, const struct model_request *r, int64_t session,
                                    bool is_user, char created[MODEL_PATH]) {
    switch (r->op) {
    case ZK_OP_DELETE: return model_delete(m, r, is_user);
    case ZK_OP_SET_DATA: return model_set_data(m, r, is_user);
    case ZK_OP_SET_ACL: return model_set_acl(m, r, is_user);
    case ZK_OP_CHECK: return model_check(m, r, is_user);
    default: return model_create(m, r, session, is_user, created);
    }
}

static inline void model_close_session(struct model *m, int64_t session) {
    for (int i = m->nodes - 1; i >= 0; i--)
        if (m->node[i].owner == session) model_remove(m, &m->node[i]);
    m->alive[session - FIRST_SESSION] = false;
}

static inline bool model_expires(struct model *m, struct model_node *node, int64_t now) {
    if (model_children(m, node->path)) return false;
    if (node->owner == INT64_MIN) return node->creates > 0;
    bool ttl = ((uint64_t)node->owner >> 56) == 0xff;
    return ttl && now - node->mtime > (node->owner & 0xffffffffff);
}

#endif
