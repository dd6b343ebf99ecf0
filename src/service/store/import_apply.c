/* The effect of a transaction of ZooKeeper.
 *
 * A transaction records a result, not a request: all checks were made before it was written.  So if
 * it finds no node to change, or finds its node created already, the tree is ahead of it, and
 * nothing has to be done. */
#include "service/store/internal.h"

#define ZK_FIELDS_txn_header(F, R)                                                                 \
    F(R, i64, session) F(R, i32, cxid) F(R, i64, zxid) F(R, i64, time) F(R, i32, type)
#define ZK_FIELDS_create_txn(F, R)   F(R, text, path) F(R, buffer, data) F(R, acls, acl)
#define ZK_FIELDS_set_data_txn(F, R) F(R, text, path) F(R, buffer, data) F(R, i32, version)
#define ZK_FIELDS_set_acl_txn(F, R)  F(R, text, path) F(R, acls, acl) F(R, i32, version)
#define ZK_FIELDS_part(F, R)         F(R, i32, type) F(R, buffer, body)

ZK_RECORD_(txn_header, "TxnHeader")
ZK_RECORD_(create_txn, "CreateTxn")
ZK_RECORD_(set_data_txn, "SetDataTxn")
ZK_RECORD_(set_acl_txn, "SetACLTxn")
ZK_RECORD_(part, "Txn")
ZK_VECTOR_(parts, part)

static const char malformed[] = "a transaction is malformed";

struct context {
    struct tree *tree;
    struct zk_txn_header header;
};

static bool is_below_root(struct zk_text path) { return path.size > 1 && zk_path_valid(path); }

static node_id parent_of(const struct tree *tree, struct zk_text path) {
    const char *slash = memrchr(path.at, '/', (size_t)path.size);
    return tree_find(tree, (struct zk_text){path.at, (int32_t)(slash - path.at)});
}

/* An empty list allows everything. */
static struct zk_acls or_open(const struct tree *tree, struct zk_acls list) {
    return list.count > 0 ? list : acl_list(tree, ACL_OPEN);
}

static void replace_acl(struct tree *tree, node_id id, struct zk_acls list) {
    uint32_t old = tree->node[id].acl;
    tree->node[id].acl = acl_take(tree, &list);
    acl_drop(tree, old);
}

/* ---- Create ---- */

/* Sets the counter of creates to the value in the transaction; -1: releases before 3.4 did not
 * write it. */
static void count_create(struct tree *tree, node_id parent, const struct node *before,
                         int32_t creates, int64_t zxid) {
    struct node *node = &tree->node[parent];
    node->creates = before->creates;
    node->pzxid = before->pzxid;
    if (creates == -1) creates = (int32_t)((uint32_t)before->creates + 1);
    if (creates <= before->creates) return;
    node->creates = creates;
    node->pzxid = zxid;
}

static void create(const struct context *c, const struct zk_create_txn *txn, int64_t owner,
                   int32_t creates) {
    struct tree *tree = c->tree;
    struct creation creation = {.path = txn->path,
                                .data = txn->data,
                                .parent = parent_of(tree, txn->path),
                                .acl = or_open(tree, txn->acl),
                                .owner = owner,
                                .zxid = c->header.zxid,
                                .time = c->header.time};
    if (!creation.parent || node_is_ephemeral(&tree->node[creation.parent])) return;
    struct node before = tree->node[creation.parent];
    node_id id = tree_find(tree, txn->path);
    if (id) { /* its ACL may be missing in the snapshot */
        replace_acl(tree, id, creation.acl);
    } else {
        if (import_is_session(owner)) import_session(tree, owner);
        change_create(tree, &creation);
    }
    count_create(tree, creation.parent, &before, creates, c->header.zxid);
}

static const char *read_create(const struct context *c, int32_t type, struct zk_in *in) {
    struct zk_create_txn txn;
    bool ephemeral = false;
    int32_t creates = -1;
    int64_t ttl = 0, owner = 0;
    bool plain = type == ZK_OP_CREATE || type == ZK_OP_CREATE2;
    if (!zk_read_create_txn(in, &txn) || !is_below_root(txn.path)) return malformed;
    if (!import_acl_is_sound(txn.acl)) return malformed;
    if (plain && !zk_read_bool(in, &ephemeral)) return malformed;
    if (!zk_read_i32(in, &creates) && type != ZK_OP_CREATE) return malformed;
    if (type == ZK_OP_CREATE_TTL && !zk_read_i64(in, &ttl)) return malformed;
    if (type == ZK_OP_CREATE_TTL && (ttl <= 0 || ttl > TREE_TTL_MAX)) return malformed;
    if (ephemeral) owner = c->header.session;
    if (ephemeral && !import_is_session(owner)) return malformed;
    if (type == ZK_OP_CREATE_TTL) owner = TREE_TTL_MARK | ttl;
    if (type == ZK_OP_CREATE_CONTAINER) owner = TREE_CONTAINER;
    create(c, &txn, owner, creates);
    return NULL;
}

/* ---- Delete ---- */

static void delete_node(struct tree *tree, node_id id, int64_t zxid) {
    node_id parent = tree->node[id].parent;
    int64_t before = tree->node[parent].pzxid;
    tree->name.used = 0;
    tree_path(tree, id, &tree->name);
    struct zk_text path = {(const char *)tree->name.at, (int32_t)tree->name.used};
    change_delete(tree, id, path, zxid);
    if (before > zxid) tree->node[parent].pzxid = before;
}

/* Any children were created later, below a later node of the same path: the log creates both again.
 */
static void delete_all(struct tree *tree, node_id top, int64_t zxid) {
    for (node_id id = 0; id != top;) {
        id = top;
        while (node_children(&tree->node[id])) id = tree->node[id].first_child;
        delete_node(tree, id, zxid);
    }
}

static const char *delete_path(const struct context *c, struct zk_text path) {
    struct tree *tree = c->tree;
    if (!is_below_root(path)) return malformed;
    node_id id = tree_find(tree, path), parent = parent_of(tree, path);
    if (id)
        delete_all(tree, id, c->header.zxid);
    else if (parent && tree->node[parent].pzxid < c->header.zxid)
        tree->node[parent].pzxid = c->header.zxid;
    return NULL;
}

static const char *read_delete(const struct context *c, struct zk_in *in) {
    struct zk_text path;
    return zk_read_text(in, &path) ? delete_path(c, path) : malformed;
}

/* ---- Changes of a node ---- */

static const char *read_set_data(const struct context *c, struct zk_in *in) {
    struct zk_set_data_txn txn;
    if (!zk_read_set_data_txn(in, &txn) || !zk_path_valid(txn.path)) return malformed;
    node_id id = tree_find(c->tree, txn.path);
    if (!id) return NULL;
    change_data(c->tree, id, txn.path, txn.data, c->header.zxid, c->header.time);
    c->tree->node[id].version = txn.version;
    return NULL;
}

static const char *read_set_acl(const struct context *c, struct zk_in *in) {
    struct zk_set_acl_txn txn;
    if (!zk_read_set_acl_txn(in, &txn) || !zk_path_valid(txn.path)) return malformed;
    if (!import_acl_is_sound(txn.acl)) return malformed;
    node_id id = tree_find(c->tree, txn.path);
    if (!id) return NULL;
    replace_acl(c->tree, id, or_open(c->tree, txn.acl));
    c->tree->node[id].aversion = txn.version;
    return NULL;
}

/* ---- Sessions ---- */

static const char *open_session(const struct context *c, struct zk_in *in) {
    int32_t timeout_ms;
    if (!import_is_session(c->header.session) || !zk_read_i32(in, &timeout_ms) || timeout_ms < 0)
        return malformed;
    import_session(c->tree, c->header.session)->timeout_ms = timeout_ms;
    return NULL;
}

static void end_session(struct tree *tree, uint32_t slot, int64_t zxid) {
    for (node_id id; (id = tree->sessions.at[slot].owned);) delete_node(tree, id, zxid);
    changes_keep(tree);
    session_remove(tree, slot);
}

/* Since 3.6 the transaction lists the nodes that it deletes.  Before, other bytes may follow, which
 * can look like texts, but not like paths. */
static bool read_deleted(struct zk_in in, struct zk_texts *paths) {
    struct zk_text path;
    if (!zk_read_texts(&in, paths)) return false;
    for (struct zk_texts left = *paths; zk_texts_next(&left, &path);)
        if (!is_below_root(path)) return false;
    return true;
}

static const char *close_session(const struct context *c, struct zk_in *in) {
    struct zk_texts paths;
    struct zk_text path;
    uint32_t slot = session_find(c->tree, c->header.session);
    if (read_deleted(*in, &paths))
        while (zk_texts_next(&paths, &path)) delete_path(c, path);
    if (slot) end_session(c->tree, slot, c->header.zxid);
    return NULL;
}

/* ---- Any transaction ---- */

static const char *apply_part(const struct context *c, int32_t type, struct zk_in *in) {
    switch (type) {
    case ZK_OP_CREATE:
    case ZK_OP_CREATE2:
    case ZK_OP_CREATE_TTL:
    case ZK_OP_CREATE_CONTAINER: return read_create(c, type, in);
    case ZK_OP_DELETE:
    case ZK_OP_DELETE_CONTAINER: return read_delete(c, in);
    case ZK_OP_RECONFIG: /* sets the data of /zookeeper/config */
    case ZK_OP_SET_DATA: return read_set_data(c, in);
    case ZK_OP_SET_ACL: return read_set_acl(c, in);
    case ZK_OP_CHECK:
    case ZK_OP_ERROR: return NULL;
    default: return "a transaction is of an unknown type, written by a newer release";
    }
}

static const char *apply_multi(const struct context *c, struct zk_in *in) {
    struct zk_parts parts;
    struct zk_part part;
    if (!zk_read_parts(in, &parts)) return malformed;
    for (struct zk_parts left = parts; zk_parts_next(&left, &part);)
        if (part.type == ZK_OP_ERROR) return NULL; /* the whole multi failed */
    while (zk_parts_next(&parts, &part)) {
        if (part.body.size < 0) return malformed;
        struct zk_in body = zk_in_of(part.body.at, (size_t)part.body.size);
        const char *why = apply_part(c, part.type, &body);
        changes_keep(c->tree);
        if (why) return why;
    }
    return NULL;
}

static const char *apply(const struct context *c, struct zk_in *in) {
    switch (c->header.type) {
    case ZK_OP_CREATE_SESSION: return open_session(c, in);
    case ZK_OP_CLOSE_SESSION: return close_session(c, in);
    case ZK_OP_MULTI: return apply_multi(c, in);
    default: return apply_part(c, c->header.type, in);
    }
}

const char *import_transaction(struct tree *tree, struct zk_in record) {
    struct context c = {.tree = tree};
    if (!zk_read_txn_header(&record, &c.header)) return malformed;
    const char *why = apply(&c, &record);
    changes_keep(tree);
    tree_forget_events(tree);
    tree->quotas = 0; /* they are counted at the end */
    tree->zxid = c.header.zxid;
    return why;
}

/* ---- When all transactions are applied ---- */

static uint64_t end_unopened_sessions(struct tree *tree) {
    uint64_t ended = 0;
    for (uint32_t slot = 1; slot <= tree->sessions.slots; slot++) {
        const struct session *session = &tree->sessions.at[slot];
        if (!session->id || session->timeout_ms != IMPORT_TIMEOUT_UNKNOWN) continue;
        end_session(tree, slot, tree->zxid);
        ended++;
    }
    tree_forget_events(tree);
    return ended;
}

/* Counts the subtree that these limits are for, if it has statistics. */
static void count_quota(struct tree *tree, node_id limits) {
    static const char stats[] = "zookeeper_stats";
    struct bytes path = {0};
    tree_path(tree, limits, &path);
    quota_loaded(tree, limits, (struct zk_text){(const char *)path.at, (int32_t)path.used});
    path.used -= tree->node[limits].name_size;
    bytes_add(&path, stats, sizeof stats - 1);
    struct zk_text of_stats = {(const char *)path.at, (int32_t)path.used};
    node_id id = tree_find(tree, of_stats);
    if (id) quota_created(tree, id, of_stats);
    bytes_close(&path);
}

static void count_quotas(struct tree *tree) {
    uint32_t up;
    tree->quotas = 0;
    for (node_id id = TREE_ROOT; id; id = tree_walk(tree, TREE_ROOT, id, &up))
        if (zk_text_equal(node_name(&tree->node[id]), zk_text_of("zookeeper_limits")))
            count_quota(tree, id);
}

const char *import_finish(struct tree *tree, uint64_t *sessions_ended) {
    *sessions_ended = end_unopened_sessions(tree);
    node_id top = tree_find(tree, zk_text_of("/zookeeper"));
    if (top && node_is_ephemeral(&tree->node[top])) return "/zookeeper is an ephemeral node";
    tree_complete(tree);
    count_quotas(tree);
    changes_keep(tree);
    return NULL;
}
