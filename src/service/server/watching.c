/* Watches that clients ask for. */
#include "service/server/internal.h"

/* One that is there already costs nothing. */
static int32_t begin_watch(struct connection *c, struct zk_text path, enum watch_table table,
                           enum watch_mode mode, bool is_restored) {
    struct server *s = c->server;
    if (!memory_allows_watch(s, is_restored) && !watches_has(&s->watches, c->number, path, table)) {
        s->statistics.refused[REFUSED_memory]++;
        return MEMORY_IS_SHORT;
    }
    watches_add(&s->watches, c->number, path, table, mode);
    return ZK_OK;
}

int32_t watching_begin(struct connection *c, struct zk_text path, enum watch_table table,
                       enum watch_mode mode) {
    return begin_watch(c, path, table, mode, false);
}

static int32_t watch_both(struct connection *c, struct zk_text path, enum watch_mode mode,
                          bool is_restored) {
    int32_t err = begin_watch(c, path, WATCH_DATA, mode, is_restored);
    return err ? err : begin_watch(c, path, WATCH_CHILDREN, mode, is_restored);
}

/* ---- One by one ---- */

int32_t watching_add(struct connection *c, const struct zk_add_watch_request *r,
                     struct bytes *out) {
    if (r->path.size < 0 || r->mode < 0 || r->mode > 1) return ZK_MARSHALLINGERROR;
    zk_write_i32(out, ZK_OK);
    return watch_both(c, r->path, r->mode ? WATCH_RECURSIVE : WATCH_PERSISTENT, false);
}

int32_t watching_find(struct connection *c, const struct zk_check_watches_request *r, bool remove) {
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

/* ---- All that a client had before it was disconnected ----
 *
 * Each path is compared with the tree and watched in one go, so the tree may change between two of
 * them: a change comes either before the comparison, which notices it, or after, and fires the
 * watch. */

enum { LIST_DATA = 1, LIST_EXIST, LIST_CHILD, LIST_PERSISTENT, LIST_RECURSIVE };

/* A client is notified at once of what it missed; the rest is watched again. */
static int32_t watch_again(struct connection *c, struct zk_text path, enum watch_table table,
                           bool expects_none, int64_t since) {
    struct server *s = c->server;
    node_id id = tree_find(&s->tree, path);
    const struct node *node = &s->tree.node[id];
    int64_t changed = table == WATCH_DATA ? node->mzxid : node->pzxid;
    if (expects_none ? id != 0 : id == 0)
        connection_notify(c, expects_none ? ZK_NODE_CREATED : ZK_NODE_DELETED, path);
    else if (!expects_none && changed > since)
        connection_notify(c, table == WATCH_DATA ? ZK_NODE_DATA_CHANGED : ZK_NODE_CHILDREN_CHANGED,
                          path);
    else
        return begin_watch(c, path, table, WATCH_ONCE, true);
    return ZK_OK;
}

static int32_t restore(struct connection *c, unsigned list, struct zk_text path, int64_t since) {
    switch (list) {
    case LIST_DATA:
    case LIST_EXIST: return watch_again(c, path, WATCH_DATA, list == LIST_EXIST, since);
    case LIST_CHILD: return watch_again(c, path, WATCH_CHILDREN, false, since);
    case LIST_PERSISTENT: return watch_both(c, path, WATCH_PERSISTENT, true);
    default: return watch_both(c, path, WATCH_RECURSIVE, true);
    }
}

/* Some paths of the list that is being worked on. */
static int32_t restore_some(struct connection *c, const struct zk_in *body, int64_t since,
                            size_t *steps) {
    struct restoring *r = &c->restoring;
    const unsigned char *first = body->at + r->taken;
    struct zk_texts paths = {first, (size_t)(body->end - first), r->left};
    struct zk_text path = {0};
    int32_t err = ZK_OK;
    while (!err && paths.count > 0 && *steps && net_unsent(&c->stream) <= CONNECTION_UNSENT_MAX &&
           zk_texts_next(&paths, &path)) {
        tree_step_over(path.size < 0 ? 0 : (size_t)path.size, steps);
        if (path.size >= 0) err = restore(c, r->list, path, since);
    }
    r->taken = (size_t)(paths.at - body->at);
    r->left = paths.count;
    return err || r->left <= 0 ? err : TREE_UNFINISHED;
}

/* From its beginning; false: it cannot be read. */
static bool begin(struct connection *c, int32_t op, struct zk_in body, size_t *steps) {
    union zk_request all;
    tree_step_over(zk_left(&body), steps);
    c->restoring = (struct restoring){.taken = sizeof all.set_watches.relative_zxid};
    return zk_op_of(op)->request->read(&body, &all);
}

static void begin_list(struct restoring *r, const struct zk_in *body) {
    struct zk_in in = {body->at + r->taken, body->end};
    zk_read_i32(&in, &r->left);
    r->taken += sizeof r->left;
    r->list++;
}

/* Whoever has to wait goes on when all that wait have their turn, and not sooner because it sends
 * more. */
int32_t watching_restore(struct connection *c, int32_t op, struct zk_in *body) {
    struct server *s = c->server;
    struct restoring *r = &c->restoring;
    bool is_turn = s->connections.resuming;
    size_t *steps = is_turn ? &s->steps.rewatch : &s->steps.watch;
    unsigned last = op == ZK_OP_SET_WATCHES2 ? LIST_RECURSIVE : LIST_CHILD;
    int64_t since = 0;
    int32_t err = ZK_OK;
    if (!*steps || (r->taken && !is_turn)) return TREE_UNFINISHED;
    if (!r->taken && !begin(c, op, *body, steps)) err = ZK_MARSHALLINGERROR;
    zk_read_i64(&(struct zk_in){body->at, body->end}, &since);
    while (!err && !(err = restore_some(c, body, since, steps)) && r->list < last)
        begin_list(r, body);
    if (err != TREE_UNFINISHED) *r = (struct restoring){0};
    return err;
}
