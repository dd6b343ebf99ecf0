/* What an entry does.  The order of the checks is ZooKeeper's: it decides which error a client
 * gets. */
#include <stdio.h>

#include "service/tree/internal.h"

struct context { /* of one entry */
    struct tree *tree;
    const struct tree_entry *entry;
    int64_t zxid;
    size_t *steps; /* that are left */
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

/* The kind of node that the flags ask for. */
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

/* The path of a sequential node: the counter of the parent at its end. */
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

/* ---- Delete, setData, setACL, check ---- */

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
    case ZK_OP_CREATE_CONTAINER: /* the request is a prefix of the one with a ttl */
    case ZK_OP_CREATE_TTL: return create(c, op, &r->create_ttl, &response->create2);
    case ZK_OP_DELETE: return delete (c, &r->delete);
    case ZK_OP_SET_DATA: return set_data(c, &r->set_data, &response->set_data);
    case ZK_OP_SET_ACL: return set_acl(c, &r->set_acl, &response->set_acl);
    case ZK_OP_CHECK: return check(c, &r->check);
    case ZK_OP_RECONFIG: return ZK_RECONFIGDISABLED;
    default: return ZK_UNIMPLEMENTED;
    }
}

/* The operations of a multi, up to the first that fails; false: not all yet. */
static bool operate_some(const struct context *c, struct bytes *reply) {
    struct tree_progress *progress = &c->tree->progress;
    struct zk_in body = c->entry->body;
    struct zk_multi ops = {{body.at + progress->taken, body.end}, progress->count - progress->done};
    struct zk_multi_op op;
    union zk_response response;
    for (; ops.count && !progress->err && *c->steps; --*c->steps) {
        bool read = zk_multi_next(&ops, &op);
        cv_assert(read); /* all were when it was begun */
        progress->taken = (size_t)(ops.left.at - body.at);
        progress->err = operate(c, op.type, &op.of, &response);
        if (progress->err) break;
        progress->done++;
        zk_write_result(reply, op.type, &response);
    }
    return !ops.count || progress->err;
}

static int32_t go_on_with_multi(const struct context *c, struct bytes *reply) {
    struct tree_progress *progress = &c->tree->progress;
    if (progress->stage == TREE_OPERATING) {
        if (!operate_some(c, reply)) return TREE_UNFINISHED;
        progress->stage = progress->err ? TREE_ROLLING_BACK : TREE_KEEPING;
    }
    if (progress->stage == TREE_ROLLING_BACK) {
        if (!changes_roll_back_some(c->tree, c->steps)) return TREE_UNFINISHED;
        reply->used = progress->reply_begin;
        zk_write_rollback(reply, progress->count, progress->done, progress->err);
        return ZK_OK;
    }
    if (!changes_keep_some(c->tree, c->steps)) return TREE_UNFINISHED;
    zk_write_multi_end(reply);
    return ZK_OK;
}

static int32_t multi(const struct context *c, struct bytes *reply) {
    struct zk_in body = c->entry->body;
    struct zk_multi ops;
    if (!zk_read_multi(&body, ZK_OP_MULTI, &ops)) return ZK_MARSHALLINGERROR;
    c->tree->progress = (struct tree_progress){
        .stage = TREE_OPERATING, .zxid = c->zxid, .reply_begin = reply->used, .count = ops.count};
    return go_on_with_multi(c, reply);
}

/* ---- Sessions ---- */

struct opening { /* of a session, or of one that reconnects */
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
    uint32_t slot = session_add(c->tree, c->entry->session, opening.timeout_ms, opening.password);
    c->tree->sessions.at[slot].server = tree_server_of(c->entry->incarnation);
    return ZK_OK;
}

static int32_t attach_session(const struct context *c) {
    struct opening opening;
    if (!read_opening(c, &opening)) return ZK_MARSHALLINGERROR;
    uint32_t slot = session_find(c->tree, c->entry->session);
    struct session *session = &c->tree->sessions.at[slot];
    if (!slot || memcmp(opening.password, session->password, TREE_PASSWORD_SIZE) != 0)
        return ZK_SESSIONEXPIRED;
    session->timeout_ms = opening.timeout_ms;
    session->server = tree_server_of(c->entry->incarnation);
    session->moves++;
    return ZK_OK;
}

/* The session exists, and its client is connected to the server that proposed the entry. */
static int32_t check_session(const struct context *c) {
    uint32_t slot = session_find(c->tree, c->entry->session);
    if (!slot) return ZK_SESSIONEXPIRED;
    uint8_t server = c->tree->sessions.at[slot].server;
    return server == tree_server_of(c->entry->incarnation) ? ZK_OK : ZK_SESSIONMOVED;
}

static int32_t check_expiry(const struct context *c) {
    struct tree_expiry expiry;
    uint32_t slot = session_find(c->tree, c->entry->session);
    if (!slot) return ZK_SESSIONEXPIRED;
    if (!tree_read_expiry(c->entry->body, &expiry)) return ZK_MARSHALLINGERROR;
    bool stands =
        expiry.term == c->zxid >> 32 && (uint32_t)expiry.moves == c->tree->sessions.at[slot].moves;
    return stands ? ZK_OK : ZK_SESSIONMOVED;
}

static int32_t go_on_with_close(const struct context *c) {
    struct tree *tree = c->tree;
    uint32_t slot = session_find(tree, c->entry->session);
    for (node_id id; (id = tree->sessions.at[slot].owned);) {
        if (!*c->steps) {
            changes_keep(tree);
            tree->progress = (struct tree_progress){.stage = TREE_CLOSING, .zxid = c->zxid};
            return TREE_UNFINISHED;
        }
        tree->name.used = 0;
        tree_path(tree, id, &tree->name);
        struct zk_text path = {(const char *)tree->name.at, (int32_t)tree->name.used};
        change_delete(tree, id, path, c->zxid);
        tree_step_over((size_t)path.size, c->steps);
    }
    changes_keep(tree);
    session_remove(tree, slot);
    return ZK_OK;
}

static int32_t close_session(const struct context *c) {
    int32_t err = c->entry->rules & TREE_EXPIRES ? check_expiry(c) : check_session(c);
    return err ? err : go_on_with_close(c);
}

/* ---- Containers and nodes with a ttl ---- */

/* For how long a node is unchanged by the wall clock; 0 if that was set back.  An image or a log
 * may hold any time. */
static int64_t age_of(const struct node *node, int64_t now) {
    int64_t mtime = node->mtime > 0 ? node->mtime : 0;
    return now > mtime ? now - mtime : 0;
}

static bool is_expired(const struct node *node, int64_t now) {
    if (node_is_ephemeral(node) || node_children(node)) return false;
    if (node->owner == TREE_CONTAINER) return node->creates > 0;
    return node_is_ttl(node) && age_of(node, now) > (node->owner & TREE_TTL_MAX);
}

/* The node is checked again: it may have changed since the leader proposed to delete it. */
static int32_t delete_container(const struct context *c) {
    struct zk_in in = c->entry->body;
    struct zk_text path;
    if (!zk_read_text(&in, &path)) return ZK_MARSHALLINGERROR;
    node_id id = tree_find(c->tree, path);
    if (!id || !is_expired(&c->tree->node[id], c->entry->time)) return ZK_NONODE;
    change_delete(c->tree, id, path, c->zxid);
    return ZK_OK;
}

/* The next node that can expire, from one on; 0: there is none. */
static node_id next_expirable(const struct tree *tree, node_id from) {
    uint64_t mask = ~(uint64_t)0 << from % EXPIRABLE_GROUP;
    for (size_t group = from / EXPIRABLE_GROUP; group < tree->expirable_room; group++) {
        uint64_t nodes = tree->expirable[group].nodes & mask;
        if (nodes) return (node_id)(group * EXPIRABLE_GROUP + (size_t)__builtin_ctzll(nodes));
        mask = ~(uint64_t)0;
    }
    return 0;
}

/* A clock that was set forward makes no ttl shorter: only what a restart has found is as old as it
 * seems. */
static void look_at(struct expirable *e, const struct node *node, const struct clock *clock,
                    bool restored) {
    if (e->mzxid == node->mzxid) return;
    e->mzxid = node->mzxid;
    e->since_ms = (int64_t)(clock->monotonic_us / 1000);
    if (restored) e->since_ms -= age_of(node, clock->now_ms);
}

static bool has_lasted(const struct expirable *e, const struct node *node,
                       const struct clock *clock) {
    int64_t ttl = node_is_ttl(node) ? node->owner & TREE_TTL_MAX : 0;
    return (int64_t)(clock->monotonic_us / 1000) - e->since_ms >= ttl;
}

node_id tree_find_expired(struct tree *tree, node_id from, size_t steps, const struct clock *clock,
                          void (*each)(void *context, struct zk_text path), void *context) {
    if (!tree->expirables_known) tree->known_zxid = tree->zxid;
    tree->expirables_known = true;
    node_id id = next_expirable(tree, from);
    for (; id && steps--; id = next_expirable(tree, id + 1)) {
        struct expirable *e = &tree->expirable[id / EXPIRABLE_GROUP].at[id % EXPIRABLE_GROUP];
        const struct node *node = &tree->node[id];
        look_at(e, node, clock, node->mzxid <= tree->known_zxid);
        if (!each || !is_expired(node, clock->now_ms) || !has_lasted(e, node, clock)) continue;
        tree->scratch.used = 0;
        tree_path(tree, id, &tree->scratch);
        each(context,
             (struct zk_text){(const char *)tree->scratch.at, (int32_t)tree->scratch.used});
    }
    return id;
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
    bool reached = tree->target.used == shared && shared &&
                   memcmp(tree->target.at, members->text.at, shared) == 0;
    if (reached) tree->target.used = 0;
    bool same = data.size > members->text.size + label && /* and not only the first lines */
                memcmp(data.at, members->text.at, shared) == 0 &&
                memcmp(data.at + shared, version, (size_t)label) == 0;
    if (same || !shared) return;
    int64_t number = members->version ? members->version : zxid;
    int size = snprintf(text, sizeof text, version, (unsigned long long)number);
    tree->name.used = 0;
    bytes_add(&tree->name, members->text.at, shared);
    bytes_add(&tree->name, text, (size_t)size);
    data = (struct zk_text){(const char *)tree->name.at, (int32_t)tree->name.used};
    tree->zxid = zxid;
    change_data(tree, id, path, data, zxid, members->time);
    changes_keep(tree);
}

/* The client must mean the current version, and be allowed to change the members; in this order, as
 * ZooKeeper has it.  What they are to become is noted; the leader goes there, step by step. */
static int32_t reconfigure(const struct context *c) {
    struct zk_in body = c->entry->body;
    struct zk_reconfig_request r;
    node_id id = tree_find(c->tree, zk_text_of("/zookeeper/config"));
    if (!zk_read_reconfig_request(&body, &r)) return ZK_MARSHALLINGERROR;
    if (c->entry->rules & TREE_INTERNAL) return tree_reconfigure(c->tree, &r);
    if (!(c->entry->rules & TREE_RECONFIG)) return ZK_RECONFIGDISABLED;
    if (r.config_id != -1 && r.config_id != c->tree->node[id].mzxid) return ZK_BADVERSION;
    int32_t err = tree_judge_reconfig(c->tree, &r);
    if (!err && !allowed(c, id, ACL_WRITE)) err = ZK_NOAUTH;
    return err ? err : tree_reconfigure(c->tree, &r);
}

/* ---- Any entry ---- */

/* The server that was asked has refused the request, and answers in its turn. */
static int32_t refuse(const struct context *c) {
    struct zk_in body = c->entry->body;
    int32_t err;
    return zk_read_i32(&body, &err) && err < 0 ? err : ZK_MARSHALLINGERROR;
}

static int32_t apply_request(const struct context *c, struct bytes *reply) {
    int32_t number = c->entry->op;
    /* Of a server's own requests only a reconfig comes here, and it has no session. */
    bool needs_session = number != ZK_OP_RECONFIG || !(c->entry->rules & TREE_INTERNAL);
    int32_t err = needs_session ? check_session(c) : ZK_OK;
    if (err) return err;
    if (number == ZK_OP_ERROR) return refuse(c);
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

/* Whether the entry is the next of its server.  If not, it was applied before, or an earlier one is
 * missing: then the server proposes both again. */
static bool is_next(struct tree *tree, const struct tree_entry *entry) {
    struct tree_proposer *proposer = &tree->proposer[tree_server_of(entry->incarnation)];
    uint64_t applied = proposer->incarnation == entry->incarnation ? proposer->sequence : 0;
    if (!entry->incarnation) return true;
    if (entry->sequence != applied + 1) return false;
    *proposer = (struct tree_proposer){entry->incarnation, entry->sequence};
    return true;
}

static bool changes_the_tree(int32_t op) { return op != ZK_OP_SYNC && op != TREE_OP_ATTACH; }

static int32_t begin(const struct context *c, struct bytes *reply) {
    if (*c->steps) --*c->steps;
    switch (c->entry->op) {
    case ZK_OP_CREATE_SESSION: return open_session(c);
    case TREE_OP_ATTACH: return attach_session(c);
    case ZK_OP_CLOSE_SESSION: return close_session(c);
    case ZK_OP_DELETE_CONTAINER: return delete_container(c);
    default: return apply_request(c, reply);
    }
}

static int32_t go_on(const struct context *c, struct bytes *reply) {
    bool closing = c->tree->progress.stage == TREE_CLOSING;
    return closing ? go_on_with_close(c) : go_on_with_multi(c, reply);
}

int32_t tree_apply_some(struct tree *tree, int64_t zxid, const struct tree_entry *entry,
                        struct bytes *reply, size_t *steps) {
    bool counted = tree->progress.stage == TREE_COUNTING;
    bool begins = !tree_is_unfinished(tree) || counted;
    if (tree_is_unfinished(tree)) zxid = tree->progress.zxid;
    struct context c = {tree, entry, zxid, steps};
    int32_t server_rules = tree->rules;
    if (tree_certain_events(tree)) tree_forget_events(tree);
    if (begins && totals_are_needed(entry) && !totals_count_some(tree, steps)) {
        tree->progress = (struct tree_progress){.stage = TREE_COUNTING, .zxid = zxid};
        return TREE_UNFINISHED;
    }
    if (counted) tree->progress.stage = TREE_BETWEEN;
    if (begins && !is_next(tree, entry)) return TREE_OUT_OF_SEQUENCE;
    if (begins && changes_the_tree(entry->op)) tree->zxid = zxid;
    tree->rules = entry->rules;
    int32_t err = begins ? begin(&c, reply) : go_on(&c, reply);
    tree->rules = server_rules;
    if (err == TREE_UNFINISHED) return err;
    changes_keep(tree);
    tree->progress = (struct tree_progress){0};
    return err;
}

int32_t tree_apply(struct tree *tree, int64_t zxid, const struct tree_entry *entry,
                   struct bytes *reply) {
    size_t all = SIZE_MAX;
    return tree_apply_some(tree, zxid, entry, reply, &all);
}
