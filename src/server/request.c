/* Requests that are answered at once: reads, watches, and who is asking. */
#include "server/server.h"

#include "server/identity.h"

static void reply(struct connection *c, int32_t xid, int64_t zxid, int32_t err) {
    reply_end(c, reply_begin(c), xid, zxid, err);
}

/* ---- Reads ---- */

/* What reading leaves a watch on; -1: nothing. */
static int watch_table_of(int32_t op, int32_t err) {
    switch (op) {
    case ZK_OP_EXISTS: return err == ZK_OK || err == ZK_NONODE ? WATCH_DATA : -1;
    case ZK_OP_GET_DATA: return err == ZK_OK ? WATCH_DATA : -1;
    case ZK_OP_GET_CHILDREN:
    case ZK_OP_GET_CHILDREN2: return err == ZK_OK ? WATCH_CHILDREN : -1;
    default: return -1;
    }
}

static int32_t read_one(struct connection *c, int32_t op, const union zk_request *request,
                        struct bytes *out) {
    struct server *s = c->server;
    struct zk_clients identities = connection_identities(c);
    int32_t err = tree_read(&s->tree, op, request, c->session_id, &identities, out);
    int table = watch_table_of(op, err);
    if (table >= 0 && request->exists.watch) /* each of them begins with a path and a watch */
        watches_add(&s->watches, c->number, request->exists.path, (enum watch_table)table,
                    WATCH_ONCE);
    return err;
}

/* A short request can ask for much more than any client takes. */
static int32_t read_many(struct connection *c, struct zk_in *body, struct bytes *out) {
    enum { ANSWER_PACKETS_MAX = 4 };
    size_t most = ANSWER_PACKETS_MAX * (size_t)c->server->settings.packet_bytes_max;
    size_t all = out->used;
    struct zk_multi ops;
    struct zk_multi_op op;
    if (!zk_read_multi(body, ZK_OP_MULTI_READ, &ops)) return ZK_MARSHALLINGERROR;
    while (zk_multi_next(&ops, &op)) {
        size_t begin = out->used;
        zk_write_multi_header(out, &(struct zk_multi_header){op.type, false, ZK_OK});
        int32_t err = read_one(c, op.type, &op.of, out);
        if (out->used - all > most) return ZK_SYSTEMERROR;
        if (!err) continue;
        out->used = begin;
        zk_write_result_error(out, err);
    }
    zk_write_multi_end(out);
    return ZK_OK;
}

/* ---- Watches ---- */

/* What a client missed while it was away is told at once; what is as it was is watched again. */
static void watch_again(struct connection *c, struct zk_texts paths, enum watch_table table,
                        bool expects_none, int64_t since) {
    struct server *s = c->server;
    struct zk_text path;
    while (zk_texts_next(&paths, &path)) {
        if (path.size < 0) continue;
        node_id id = tree_find(&s->tree, path);
        const struct node *node = &s->tree.node[id];
        int64_t changed = table == WATCH_DATA ? node->mzxid : node->pzxid;
        if (expects_none ? id != 0 : id == 0)
            connection_notify(c, expects_none ? ZK_NODE_CREATED : ZK_NODE_DELETED, path);
        else if (!expects_none && changed > since)
            connection_notify(
                c, table == WATCH_DATA ? ZK_NODE_DATA_CHANGED : ZK_NODE_CHILDREN_CHANGED, path);
        else
            watches_add(&s->watches, c->number, path, table, WATCH_ONCE);
    }
}

static void watch_both(struct connection *c, struct zk_text path, enum watch_mode mode) {
    watches_add(&c->server->watches, c->number, path, WATCH_DATA, mode);
    watches_add(&c->server->watches, c->number, path, WATCH_CHILDREN, mode);
}

static void watch_all(struct connection *c, struct zk_texts paths, enum watch_mode mode) {
    struct zk_text path;
    while (zk_texts_next(&paths, &path))
        if (path.size >= 0) watch_both(c, path, mode);
}

static int32_t set_watches(struct connection *c, int32_t op, struct zk_in *body) {
    union zk_request any;
    const struct zk_set_watches2_request *r = &any.set_watches2; /* begins as the older one */
    if (!zk_op_of(op)->request->read(body, &any)) return ZK_MARSHALLINGERROR;
    watch_again(c, r->data, WATCH_DATA, false, r->relative_zxid);
    watch_again(c, r->exist, WATCH_DATA, true, r->relative_zxid);
    watch_again(c, r->child, WATCH_CHILDREN, false, r->relative_zxid);
    if (op == ZK_OP_SET_WATCHES2) {
        watch_all(c, r->persistent, WATCH_PERSISTENT);
        watch_all(c, r->persistent_recursive, WATCH_RECURSIVE);
    }
    return ZK_OK;
}

static int32_t add_watch(struct connection *c, const struct zk_add_watch_request *r,
                         struct bytes *out) {
    if (r->path.size < 0 || r->mode < 0 || r->mode > 1) return ZK_MARSHALLINGERROR;
    watch_both(c, r->path, r->mode ? WATCH_RECURSIVE : WATCH_PERSISTENT);
    zk_write_i32(out, ZK_OK);
    return ZK_OK;
}

static int32_t find_watches(struct connection *c, const struct zk_check_watches_request *r,
                            bool remove) {
    enum { CHILDREN = 1, DATA = 2, ANY = 3 };
    struct watches *w = &c->server->watches;
    bool any = false;
    if (r->path.size < 0 || r->type < CHILDREN || r->type > ANY) return ZK_MARSHALLINGERROR;
    for (int table = WATCH_DATA; table <= WATCH_CHILDREN; table++) {
        bool meant = r->type & (table == WATCH_DATA ? DATA : CHILDREN);
        if (!meant) continue;
        any |= remove ? watches_remove(w, c->number, r->path, (enum watch_table)table)
                      : watches_has(w, c->number, r->path, (enum watch_table)table);
    }
    return any ? ZK_OK : ZK_NOWATCHER;
}

/* ---- Who is asking ---- */

static bool authenticate(struct connection *c, const struct zk_request_header *header,
                         struct zk_in *body) {
    struct zk_auth_request r;
    bool good = zk_read_auth_request(body, &r) && identity_prove(c, &r);
    if (!good) c->server->statistics.auth_failed++;
    reply(c, header->xid, 0, good ? ZK_OK : ZK_AUTHFAILED);
    return good;
}

/* Of a digest only the user is shown. */
static int32_t who_am_i(struct connection *c, struct bytes *out) {
    struct zk_client identity;
    struct zk_clients left = connection_identities(c);
    zk_write_i32(out, left.count);
    while (zk_clients_next(&left, &identity)) {
        const char *colon = memchr(identity.user.at, ':', (size_t)identity.user.size);
        if (colon && zk_text_equal(identity.scheme, zk_text_of("digest")))
            identity.user.size = (int32_t)(colon - identity.user.at);
        zk_write_client(out, &identity);
    }
    return ZK_OK;
}

/* ---- Any of them ---- */

static int32_t answer(struct connection *c, int32_t op, struct zk_in *body, struct bytes *out) {
    union zk_request r;
    if (op == ZK_OP_MULTI_READ) return read_many(c, body, out);
    if (op == ZK_OP_WHO_AM_I) return who_am_i(c, out);
    if (!zk_op_of(op)->request->read(body, &r)) return ZK_MARSHALLINGERROR;
    switch (op) {
    case ZK_OP_SYNC: zk_write_text(out, r.sync.path); return ZK_OK;
    case ZK_OP_ADD_WATCH: return add_watch(c, &r.add_watch, out);
    case ZK_OP_CHECK_WATCHES: return find_watches(c, &r.check_watches, false);
    case ZK_OP_REMOVE_WATCHES: return find_watches(c, &r.check_watches, true);
    default: return read_one(c, op, &r, out);
    }
}

bool request_answer(struct connection *c, const struct zk_request_header *header,
                    struct zk_in *body) {
    struct server *s = c->server;
    const struct zk_op *op = zk_op_of(header->type);
    if (header->type == ZK_OP_PING) {
        reply(c, ZK_XID_PING, s->tree.zxid, ZK_OK);
        return true;
    }
    if (header->type == ZK_OP_AUTH) return authenticate(c, header, body);
    if (header->type == ZK_OP_CHECK) { /* alone it means nothing */
        reply(c, header->xid, s->tree.zxid, ZK_UNIMPLEMENTED);
        return true;
    }
    bool known = op && (op->kind == ZK_KIND_READ || op->kind == ZK_KIND_BARRIER ||
                        op->number == ZK_OP_WHO_AM_I);
    if (!known) {
        bool sasl = header->type == ZK_OP_SASL; /* which nobody is asked for here */
        reply(c, header->xid, sasl ? 0 : -1, sasl ? ZK_AUTHFAILED : ZK_UNIMPLEMENTED);
        return false;
    }
    if (header->type == ZK_OP_SET_WATCHES || header->type == ZK_OP_SET_WATCHES2) {
        int32_t told = set_watches(c, header->type, body); /* events come before the reply */
        reply(c, header->xid, s->tree.zxid, told);
        return true;
    }
    size_t begun = reply_begin(c);
    int32_t err = answer(c, header->type, body, &c->stream.out);
    reply_end(c, begun, header->xid, s->tree.zxid, err);
    c->untimed++;
    return true;
}
