/* What an entry does.  The order of the checks is the protocol's: it decides which error wins. */
#include <stdio.h>

#include "tree/tree.h"

struct context { /* of one entry */
    struct tree *tree;
    const struct tree_entry *entry;
    int64_t zxid;
};

static bool allowed(const struct context *c, node_id id, int32_t permission) {
    return acl_allows(c->tree, c->tree->node[id].acl, permission, &c->entry->identities);
}

static bool version_differs(int32_t wanted, int32_t version) {
    return wanted != -1 && wanted != version;
}

static struct zk_text parent_path(struct zk_text path) {
    const char *slash = memrchr(path.at, '/', (size_t)path.size);
    return (struct zk_text){path.at, (int32_t)(slash - path.at)};
}

/* ---- Create ---- */

struct mode {
    bool sequential;
    int64_t owner;
};

/* What kind of node the flags ask for. */
static int32_t read_mode(const struct context *c, int32_t op, const struct zk_create_ttl_request *r,
                         struct mode *mode) {
    if (r->flags < ZK_PERSISTENT || r->flags > ZK_TTL_SEQUENTIAL) return ZK_BADARGUMENTS;
    bool ttl = r->flags == ZK_TTL || r->flags == ZK_TTL_SEQUENTIAL;
    if (ttl && !(c->tree->rules & TREE_EXTENDED_TYPES)) return ZK_UNIMPLEMENTED;
    if (ttl != (op == ZK_OP_CREATE_TTL)) return ZK_BADARGUMENTS;
    if (ttl && (r->ttl <= 0 || r->ttl > TREE_TTL_MAX)) return ZK_BADARGUMENTS;
    bool ephemeral = r->flags == ZK_EPHEMERAL || r->flags == ZK_EPHEMERAL_SEQUENTIAL;
    mode->sequential = r->flags == ZK_SEQUENTIAL || r->flags == ZK_EPHEMERAL_SEQUENTIAL ||
                       r->flags == ZK_TTL_SEQUENTIAL;
    mode->owner = ttl                            ? TREE_TTL_MARK | r->ttl
                  : op == ZK_OP_CREATE_CONTAINER ? TREE_CONTAINER
                  : ephemeral                    ? c->entry->session
                                                 : 0;
    return ZK_OK;
}

/* The path with the parent's count behind it. */
static struct zk_text numbered(struct tree *tree, struct zk_text path, int32_t number) {
    char digits[ZK_SEQUENCE_MAX];
    int32_t size = zk_sequence(digits, number);
    struct bytes *out = &tree->name;
    out->used = 0;
    memcpy(bytes_extend(out, (size_t)path.size), path.at, (size_t)path.size);
    memcpy(bytes_extend(out, (size_t)size), digits, (size_t)size);
    return (struct zk_text){(const char *)out->at, path.size + size};
}

static int32_t create(const struct context *c, int32_t op, const struct zk_create_ttl_request *r,
                      struct zk_create2_response *response) {
    struct tree *tree = c->tree;
    struct mode mode;
    struct creation creation = {
        .path = r->path, .data = r->data, .zxid = c->zxid, .time = c->entry->time};
    int32_t err = read_mode(c, op, r, &mode);
    if (err) return err;
    if (r->path.size < 0) return ZK_MARSHALLINGERROR;
    if (!zk_path_plausible(r->path)) return ZK_BADARGUMENTS;
    if (!acl_prepare(tree, r->acl, &c->entry->identities, &creation.acl)) return ZK_INVALIDACL;
    creation.parent = tree_find(tree, parent_path(r->path));
    if (!creation.parent) return ZK_NONODE;
    const struct node *parent = &tree->node[creation.parent];
    if (!allowed(c, creation.parent, ACL_CREATE)) return ZK_NOAUTH;
    if (mode.sequential) creation.path = numbered(tree, r->path, parent->creates);
    if (!zk_path_valid(creation.path)) return ZK_BADARGUMENTS;
    if (tree_find(tree, creation.path)) return ZK_NODEEXISTS;
    if (node_is_ephemeral(parent)) return ZK_NOCHILDRENFOREPHEMERALS;
    if (quota_exceeded(tree, creation.path, 1, r->data.size)) return ZK_QUOTAEXCEEDED;
    creation.owner = mode.owner;
    node_id id = change_create(tree, &creation);
    response->path = creation.path;
    tree_stat(&tree->node[id], &response->stat);
    return ZK_OK;
}

/* ---- The others ---- */

static bool is_protected(struct zk_text path) {
    static const char *const paths[] = {"/", "/zookeeper", "/zookeeper/quota", "/zookeeper/config"};
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++)
        if (zk_text_equal(path, zk_text_of(paths[i]))) return true;
    return false;
}

static int32_t delete (const struct context *c, const struct zk_delete_request *r) {
    struct tree *tree = c->tree;
    if (r->path.size < 0) return ZK_MARSHALLINGERROR;
    if (!zk_path_plausible(r->path) || is_protected(r->path)) return ZK_BADARGUMENTS;
    node_id parent = tree_find(tree, parent_path(r->path));
    if (!parent) return ZK_NONODE;
    if (!allowed(c, parent, ACL_DELETE)) return ZK_NOAUTH;
    node_id id = tree_find(tree, r->path);
    if (!id) return ZK_NONODE;
    if (version_differs(r->version, tree->node[id].version)) return ZK_BADVERSION;
    if (node_children(&tree->node[id])) return ZK_NOTEMPTY;
    change_delete(tree, id, r->path, c->zxid);
    return ZK_OK;
}

static int32_t set_data(const struct context *c, const struct zk_set_data_request *r,
                        struct zk_set_data_response *response) {
    struct tree *tree = c->tree;
    if (!zk_path_valid(r->path)) return ZK_BADARGUMENTS;
    node_id id = tree_find(tree, r->path);
    if (!id) return ZK_NONODE;
    struct node *node = &tree->node[id];
    if (!allowed(c, id, ACL_WRITE)) return ZK_NOAUTH;
    int64_t more = (int64_t)(r->data.size > 0 ? r->data.size : 0) -
                   (node->data_size > 0 ? node->data_size : 0);
    if (quota_exceeded(tree, r->path, 0, more)) return ZK_QUOTAEXCEEDED;
    if (version_differs(r->version, node->version)) return ZK_BADVERSION;
    change_data(tree, id, r->path, r->data, c->zxid, c->entry->time);
    tree_stat(node, &response->stat);
    return ZK_OK;
}

static int32_t set_acl(const struct context *c, const struct zk_set_acl_request *r,
                       struct zk_set_acl_response *response) {
    struct tree *tree = c->tree;
    struct zk_acls kept;
    if (!zk_path_valid(r->path)) return ZK_BADARGUMENTS;
    if (!acl_prepare(tree, r->acl, &c->entry->identities, &kept)) return ZK_INVALIDACL;
    node_id id = tree_find(tree, r->path);
    if (!id) return ZK_NONODE;
    struct node *node = &tree->node[id];
    if (!allowed(c, id, ACL_ADMIN)) return ZK_NOAUTH;
    if (version_differs(r->version, node->aversion)) return ZK_BADVERSION;
    uint32_t old = node->acl;
    node->acl = acl_take(tree, &kept);
    acl_drop(tree, old);
    node->aversion = (int32_t)((uint32_t)node->aversion + 1);
    tree_stat(node, &response->stat);
    return ZK_OK;
}

static int32_t check(const struct context *c, const struct zk_check_request *r) {
    if (!zk_path_valid(r->path)) return ZK_BADARGUMENTS;
    node_id id = tree_find(c->tree, r->path);
    if (!id) return ZK_NONODE;
    if (!allowed(c, id, ACL_READ)) return ZK_NOAUTH;
    return version_differs(r->version, c->tree->node[id].version) ? ZK_BADVERSION : ZK_OK;
}

/* One operation, alone or in a multi. */
static int32_t operate(const struct context *c, int32_t op, union zk_request *r,
                       union zk_response *response) {
    switch (op) {
    case ZK_OP_CREATE:
    case ZK_OP_CREATE2:
    case ZK_OP_CREATE_CONTAINER: /* the request is the beginning of one with a ttl */
    case ZK_OP_CREATE_TTL: return create(c, op, &r->create_ttl, &response->create2);
    case ZK_OP_DELETE: return delete (c, &r->delete);
    case ZK_OP_SET_DATA: return set_data(c, &r->set_data, &response->set_data);
    case ZK_OP_SET_ACL: return set_acl(c, &r->set_acl, &response->set_acl);
    case ZK_OP_CHECK: return check(c, &r->check);
    case ZK_OP_RECONFIG: return ZK_RECONFIGDISABLED;
    default: return ZK_UNIMPLEMENTED;
    }
}

static int32_t multi(const struct context *c, struct bytes *reply) {
    struct zk_in body = c->entry->body;
    struct zk_multi ops;
    struct zk_multi_op op;
    union zk_response response;
    if (!zk_read_multi(&body, ZK_OP_MULTI, &ops)) return ZK_MARSHALLINGERROR;
    int32_t count = ops.count;
    size_t begin = reply->used;
    for (int32_t i = 0; zk_multi_next(&ops, &op); i++) {
        int32_t err = operate(c, op.type, &op.of, &response);
        if (err) {
            changes_take_back(c->tree);
            reply->used = begin;
            zk_write_rollback(reply, count, i, err);
            return ZK_OK;
        }
        zk_write_result(reply, op.type, &response);
    }
    zk_write_multi_end(reply);
    return ZK_OK;
}

/* ---- Sessions ---- */

struct opening { /* of a session, or of its continuation elsewhere */
    int32_t timeout_ms;
    const unsigned char *password;
};

static bool read_opening(const struct context *c, struct opening *opening) {
    struct zk_in in = c->entry->body;
    if (!zk_read_i32(&in, &opening->timeout_ms) || zk_left(&in) != TREE_PASSWORD_SIZE) return false;
    opening->password = in.at;
    return true;
}

static int32_t open_session(const struct context *c) {
    struct opening opening;
    if (!read_opening(c, &opening) || session_find(c->tree, c->entry->session))
        return ZK_MARSHALLINGERROR;
    uint32_t place = session_add(c->tree, c->entry->session, opening.timeout_ms, opening.password);
    c->tree->sessions.at[place].server = tree_server_of(c->entry->life);
    return ZK_OK;
}

static int32_t attach_session(const struct context *c) {
    struct opening opening;
    if (!read_opening(c, &opening)) return ZK_MARSHALLINGERROR;
    uint32_t place = session_find(c->tree, c->entry->session);
    struct session *session = &c->tree->sessions.at[place];
    if (!place || memcmp(opening.password, session->password, TREE_PASSWORD_SIZE) != 0)
        return ZK_SESSIONEXPIRED;
    session->timeout_ms = opening.timeout_ms;
    session->server = tree_server_of(c->entry->life);
    session->moves++;
    return ZK_OK;
}

/* Who asks is there, and asks where it is. */
static int32_t check_session(const struct context *c) {
    uint32_t place = session_find(c->tree, c->entry->session);
    if (!place) return ZK_SESSIONEXPIRED;
    uint8_t server = c->tree->sessions.at[place].server;
    return server == tree_server_of(c->entry->life) ? ZK_OK : ZK_SESSIONMOVED;
}

static int32_t check_expiry(const struct context *c) {
    struct tree_expiry expiry;
    uint32_t place = session_find(c->tree, c->entry->session);
    if (!place) return ZK_SESSIONEXPIRED;
    if (!tree_read_expiry(c->entry->body, &expiry)) return ZK_MARSHALLINGERROR;
    bool stands =
        expiry.term == c->zxid >> 32 && (uint32_t)expiry.moves == c->tree->sessions.at[place].moves;
    return stands ? ZK_OK : ZK_SESSIONMOVED;
}

static int32_t close_session(const struct context *c) {
    struct tree *tree = c->tree;
    int32_t err = c->entry->rules & TREE_EXPIRES ? check_expiry(c) : check_session(c);
    if (err) return err;
    uint32_t place = session_find(tree, c->entry->session);
    for (node_id id; (id = tree->sessions.at[place].owned);) {
        tree->name.used = 0;
        tree_path(tree, id, &tree->name);
        struct zk_text path = {(const char *)tree->name.at, (int32_t)tree->name.used};
        change_delete(tree, id, path, c->zxid);
    }
    changes_keep(tree);
    session_remove(tree, place);
    return ZK_OK;
}

/* ---- What is removed when its time has come ---- */

static bool is_perished(const struct node *node, int64_t now) {
    if (node_is_ephemeral(node) || node_children(node)) return false;
    if (node->owner == TREE_CONTAINER) return node->creates > 0;
    return node_is_ttl(node) && now - node->mtime > (node->owner & TREE_TTL_MAX);
}

/* It is looked at again: somebody may have come first. */
static int32_t delete_container(const struct context *c) {
    struct zk_in in = c->entry->body;
    struct zk_text path;
    if (!zk_read_text(&in, &path)) return ZK_MARSHALLINGERROR;
    node_id id = tree_find(c->tree, path);
    if (!id || !is_perished(&c->tree->node[id], c->entry->time)) return ZK_NONODE;
    change_delete(c->tree, id, path, c->zxid);
    return ZK_OK;
}

static int by_number(const void *a, const void *b) {
    const node_id *x = a, *y = b;
    return *x < *y ? -1 : *x > *y;
}

void tree_perished(struct tree *tree, int64_t now, void (*each)(void *context, struct zk_text path),
                   void *context) {
    size_t kept = 0;
    if (tree->perishables) /* a place that is used again is there twice */
        qsort(tree->perishable, tree->perishables, sizeof *tree->perishable, by_number);
    for (size_t i = 0; i < tree->perishables; i++) {
        node_id id = tree->perishable[i];
        const struct node *node = &tree->node[id];
        bool may_perish = node->owner == TREE_CONTAINER || node_is_ttl(node);
        bool twice = kept && tree->perishable[kept - 1] == id;
        if (!may_perish || twice) continue; /* gone, and perhaps something else by now */
        tree->perishable[kept++] = id;
        if (!is_perished(node, now)) continue;
        tree->scratch.used = 0;
        tree_path(tree, id, &tree->scratch);
        each(context,
             (struct zk_text){(const char *)tree->scratch.at, (int32_t)tree->scratch.used});
    }
    tree->perishables = kept;
}

/* ---- Members ---- */

void tree_configure(struct tree *tree, int64_t zxid, const struct tree_members *members) {
    static const char version[] = "\nversion=%llx";
    const int32_t label = (int32_t)strlen("\nversion=");
    char text[sizeof version + 16];
    struct zk_text path = zk_text_of("/zookeeper/config");
    node_id id = tree_find(tree, path);
    struct zk_text data = node_data(&tree->node[id]);
    tree_forget_events(tree);
    size_t shared = (size_t)members->text.size;
    bool same = data.size > members->text.size + label && /* and not only the first lines */
                memcmp(data.at, members->text.at, shared) == 0 &&
                memcmp(data.at + shared, version, (size_t)label) == 0;
    if (same || !shared) return;
    int size = snprintf(text, sizeof text, version, (unsigned long long)zxid);
    tree->name.used = 0;
    bytes_add(&tree->name, members->text.at, shared);
    bytes_add(&tree->name, text, (size_t)size);
    data = (struct zk_text){(const char *)tree->name.at, (int32_t)tree->name.used};
    tree->zxid = zxid;
    change_data(tree, id, path, data, zxid, members->time);
    changes_keep(tree);
}

/* Whether it may be done, and is meant for what is there; the rest is for servers to do. */
static int32_t reconfigure(const struct context *c) {
    struct zk_in body = c->entry->body;
    struct zk_reconfig_request r;
    node_id id = tree_find(c->tree, zk_text_of("/zookeeper/config"));
    if (!zk_read_reconfig_request(&body, &r)) return ZK_MARSHALLINGERROR;
    if (c->entry->rules & TREE_OWN) return ZK_OK;
    if (!(c->entry->rules & TREE_RECONFIG)) return ZK_RECONFIGDISABLED;
    if (!allowed(c, id, ACL_WRITE)) return ZK_NOAUTH;
    bool other = r.config_id != -1 && r.config_id != c->tree->node[id].mzxid;
    return other ? ZK_BADVERSION : ZK_OK;
}

/* ---- Any entry ---- */

static int32_t apply_request(const struct context *c, struct bytes *reply) {
    int32_t number = c->entry->op;
    int32_t err = c->entry->rules & TREE_OWN ? ZK_OK : check_session(c);
    if (err) return err;
    if (number == ZK_OP_RECONFIG) return reconfigure(c);
    if (number == ZK_OP_MULTI) return multi(c, reply);
    const struct zk_op *op = zk_op_of(number);
    struct zk_in body = c->entry->body;
    union zk_request request = {.create_ttl.ttl = 0};
    union zk_response response;
    if (!op || !op->request->read(&body, &request)) return ZK_MARSHALLINGERROR;
    if (number == ZK_OP_SYNC) return zk_write_text(reply, request.sync.path), ZK_OK;
    err = operate(c, number, &request, &response);
    if (!err) op->response->write(reply, &response);
    return err;
}

/* Whether it is that server's next.  What is not has been here before, or one before it is missing:
 * then that one is put forward again, and this one with it. */
static bool is_next(struct tree *tree, const struct tree_entry *entry) {
    struct tree_origin *origin = &tree->origin[tree_server_of(entry->life)];
    uint64_t before = origin->life == entry->life ? origin->number : 0;
    if (!entry->life) return true;
    if (entry->number != before + 1) return false;
    *origin = (struct tree_origin){entry->life, entry->number};
    return true;
}

static bool changes_the_tree(int32_t op) { return op != ZK_OP_SYNC && op != TREE_OP_ATTACH; }

int32_t tree_apply(struct tree *tree, int64_t zxid, const struct tree_entry *entry,
                   struct bytes *reply) {
    struct context c = {tree, entry, zxid};
    int32_t err, own = tree->rules;
    tree_forget_events(tree);
    if (!is_next(tree, entry)) return TREE_AGAIN;
    if (changes_the_tree(entry->op)) tree->zxid = zxid;
    tree->rules = entry->rules;
    switch (entry->op) {
    case ZK_OP_CREATE_SESSION: err = open_session(&c); break;
    case TREE_OP_ATTACH: err = attach_session(&c); break;
    case ZK_OP_CLOSE_SESSION: err = close_session(&c); break;
    case ZK_OP_DELETE_CONTAINER: err = delete_container(&c); break;
    default: err = apply_request(&c, reply);
    }
    changes_keep(tree);
    tree->rules = own;
    return err;
}
