/* Nodes that go by themselves: those with a TTL, not before it has passed, and containers that are
 * empty, not before they were used.  At the end all of them are gone. */
#include <stdio.h>

#include "load.h"

static struct call *create(struct user *u, int32_t op, const char *path, int64_t ttl) {
    struct bytes acl = {0};
    struct zk_acl open = {ACL_ALL, {zk_text_of("world"), zk_text_of("anyone")}};
    zk_write_acl(&acl, &open);
    struct zk_create_ttl_request request = {
        zk_text_of(path), zk_text_of("0"), {acl.at, acl.used, 1}, ZK_TTL, ttl};
    struct zk_create_request container = {request.path, request.data, request.acl, ZK_CONTAINER};
    struct call *call =
        user_ask(u, op, op == ZK_OP_CREATE_TTL ? (void *)&request : (void *)&container);
    bytes_close(&acl);
    return call;
}

static bool is_refused(const struct call *call) {
    return !call->done || call->err == ZK_SESSIONEXPIRED || call->err == ZK_SESSIONMOVED;
}

static void create_ttl(struct user *u) {
    struct transient *t = &u->transient;
    snprintf(t->path, sizeof t->path, "/t/u%u-%u", u->number, ++u->attempt);
    t->ttl_ms = 300 + (int64_t)rng_below(&u->rng, 1500);
    user_begin(u);
    struct call *call = create(u, ZK_OP_CREATE_TTL, t->path, t->ttl_ms);
    user_finish(u);
    t->set = !is_refused(call);
    t->since = call->sent;
    if (t->set && call->err)
        violated("user %u cannot create %s: %d", u->number, t->path, call->err);
    world->coverage.ttls += t->set;
}

static void look_at_ttl(struct user *u) {
    enum { MARGIN_MS = 50 }; /* for what clocks differ by */
    struct transient *t = &u->transient;
    struct zk_exists_request request = {zk_text_of(t->path), false};
    user_begin(u);
    struct call *call = user_ask(u, ZK_OP_EXISTS, &request);
    user_finish(u);
    if (is_refused(call) || call->err != ZK_NONODE) return;
    t->set = false;
    if (call->received + MARGIN_MS * MS < t->since + (nanos)t->ttl_ms * MS)
        violated("%s is gone after %.0f ms, with a TTL of %lld ms", t->path,
                 (double)(call->received - t->since) / 1e6, (long long)t->ttl_ms);
}

/* One after the other; false: something is not known, or was refused. */
static bool step(struct user *u, struct call *call, const char *what) {
    user_finish(u);
    if (is_refused(call)) return false;
    if (call->err) violated("user %u cannot %s: %d", u->number, what, call->err);
    return !call->err;
}

static void use_container(struct user *u) {
    char path[PATH_SIZE], child[PATH_SIZE];
    struct zk_exists_request request = {0};
    snprintf(path, sizeof path, "/c/u%u-%u", u->number, ++u->attempt);
    snprintf(child, sizeof child, "%.40s/x", path);
    request.path = zk_text_of(child);
    user_begin(u);
    if (!step(u, create(u, ZK_OP_CREATE_CONTAINER, path, 0), "create a container")) return;
    user_begin(u);
    if (!step(u, load_create(u, child, 0, ZK_PERSISTENT), "use its container")) return;
    if (!user_pause(u, random_time(&u->rng, 0, SECOND))) return;
    user_begin(u);
    if (!step(u, user_ask(u, ZK_OP_EXISTS, &request), "see what is in its container")) return;
    user_begin(u);
    world->coverage.containers +=
        step(u, load_delete(u, child, HISTORY_ANY), "empty its container");
}

void ttl_act(struct user *u) {
    if (rng_chance(&u->rng, 0.3))
        use_container(u);
    else if (!u->transient.set)
        create_ttl(u);
    else
        look_at_ttl(u);
}

bool ttl_all_gone(const struct tree *tree) {
    node_id parent = tree_find(tree, zk_text_of("/t"));
    if (parent && node_children(&tree->node[parent])) return false;
    parent = tree_find(tree, zk_text_of("/c"));
    for (node_id id = parent ? tree->node[parent].first_child : 0; id; id = tree->node[id].next)
        if (!node_children(&tree->node[id]) && tree->node[id].creates) return false;
    return true;
}
