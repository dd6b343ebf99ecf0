/* The tree beside a model of it: whatever is asked of both, they answer the same and are the same.
 */
#include "base/rng.h"
#include "tree_model.h"

enum { STEPS = 100000, WATCHED_EVERY = 2000, NODES_WANTED = 50 };
#define QUOTA "/zookeeper/quota/a"

struct pair {
    struct world w;
    struct model m;
    struct rng rng;
};

/* ---- Comparing ---- */

static void expect_node(const struct world *w, struct model *m, const struct model_node *expected) {
    node_id id = tree_find(&w->tree, zk_text_of(expected->path));
    if (!id) fail_msg("%s is missing", expected->path);
    const struct node *node = &w->tree.node[id];
    struct zk_stat stat;
    tree_stat(node, &stat);
    assert_int_equal(stat.czxid, expected->czxid);
    assert_int_equal(stat.mzxid, expected->mzxid);
    assert_int_equal(stat.pzxid, expected->pzxid);
    assert_int_equal(stat.ctime, expected->ctime);
    assert_int_equal(stat.mtime, expected->mtime);
    assert_int_equal(stat.version, expected->version);
    assert_int_equal(stat.aversion, expected->aversion);
    bool is_root = strcmp(expected->path, "/") == 0; /* which has /zookeeper, unlike the model */
    assert_int_equal(stat.num_children, model_children(m, expected->path) + is_root);
    assert_int_equal(stat.ephemeral_owner, model_is_ephemeral(expected) ? expected->owner : 0);
    assert_int_equal(node->owner, expected->owner);
    assert_int_equal(stat.cversion, expected->creates + expected->deletes - is_root);
    struct zk_text data = {expected->data, expected->data_size};
    if (!zk_text_equal(node_data(node), data)) fail_msg("the data of %s differs", expected->path);
    struct zk_acls list = acl_list(&w->tree, node->acl);
    struct zk_acls kept = acls_of(model_acls[expected->acl].kept);
    assert_int_equal(list.size, kept.size);
    assert_memory_equal(list.at, kept.at, kept.size);
}

static void expect_equal(struct pair *p) {
    char count[64];
    expect_sound(&p->w.tree);
    for (int i = 0; i < p->m.nodes; i++) expect_node(&p->w, &p->m, &p->m.node[i]);
    /* Besides these, there are the built-in nodes and those of the quota. */
    assert_int_equal(p->w.tree.nodes, p->m.nodes + 3 + 3);
    assert_int_equal(p->w.tree.zxid, p->m.zxid);
    model_count(&p->m, "/a", count);
    expect_data(&p->w, QUOTA "/zookeeper_stats", count);
}

/* ---- Requests to both ---- */

static int below(struct pair *p, int bound) { return (int)rng_below(&p->rng, (uint64_t)bound); }

static void choose_path(struct pair *p, char path[MODEL_PATH]) {
    if (below(p, 3) == 0 && p->m.nodes > 1) { /* an existing one */
        strcpy(path, p->m.node[below(p, p->m.nodes)].path);
        return;
    }
    char *at = path;
    do at += sprintf(at, "/%c", 'a' + below(p, 3));
    while (at - path < 6 && below(p, 2));
    if (below(p, 30) == 0) strcpy(at, "/");
}

static struct model_request choose(struct pair *p, bool in_multi) {
    static const int32_t creates[] = {ZK_OP_CREATE, ZK_OP_CREATE2, ZK_OP_CREATE_CONTAINER,
                                      ZK_OP_CREATE_TTL};
    struct model_request r = {.version = below(p, 3) ? -1 : below(p, 4)};
    int what = below(p, 10);
    choose_path(p, r.path);
    if (what < 4 && p->m.nodes < NODES_WANTED) {
        r.op = creates[below(p, 4)];
        r.flags = r.op == ZK_OP_CREATE_TTL ? 5 + below(p, 2) : below(p, 5);
        if (below(p, 50) == 0) r.flags = below(p, 10) - 1;
        if (strlen(r.path) > MODEL_PATH - 12) r.flags = r.op == ZK_OP_CREATE_TTL ? ZK_TTL : 0;
        r.ttl = below(p, 20) ? 1 + below(p, 1000) : below(p, 2) - 1;
        r.acl = below(p, 30) ? (below(p, 4) ? 0 : below(p, 3)) : 3;
    } else if (what < 7) {
        r.op = ZK_OP_DELETE;
    } else if (what < 8 && !in_multi) {
        r.op = ZK_OP_SET_ACL;
        r.acl = below(p, 2) ? 0 : below(p, (int)COUNT(model_acls));
    } else if (what < 9 && in_multi) {
        r.op = ZK_OP_CHECK;
    } else {
        r.op = ZK_OP_SET_DATA;
    }
    r.data_size = below(p, MODEL_DATA + 1) - 1;
    memset(r.data, 'a' + below(p, 26), sizeof r.data);
    return r;
}

/* The request as the protocol has it. */
static union zk_request translate(const struct model_request *r) {
    struct zk_text path = zk_text_of(r->path), data = {r->data, r->data_size};
    switch (r->op) {
    case ZK_OP_DELETE: return (union zk_request){.delete = {path, r->version}};
    case ZK_OP_CHECK: return (union zk_request){.check = {path, r->version}};
    case ZK_OP_SET_DATA: return (union zk_request){.set_data = {path, data, r->version}};
    case ZK_OP_SET_ACL:
        return (union zk_request){.set_acl = {path, acls_of(model_acls[r->acl].given), r->version}};
    default:
        return (union zk_request){
            .create_ttl = {path, data, acls_of(model_acls[r->acl].given), r->flags, r->ttl}};
    }
}

static void one_operation(struct pair *p, bool is_user) {
    struct model_request r = choose(p, false);
    union zk_request request = translate(&r);
    char created[MODEL_PATH] = "";
    bool alive = p->m.alive[p->w.session - FIRST_SESSION];
    int32_t expected =
        !alive ? ZK_SESSIONEXPIRED : model_operate(&p->m, &r, p->w.session, is_user, created);
    int32_t err = ask(&p->w, r.op, &request);
    if (err != expected)
        fail_msg("%s %s: %d, not %d", zk_op_of(r.op)->name, r.path, (int)err, (int)expected);
    if (*created && !err) expect_created(&p->w, created);
    bool tells = !err && r.op != ZK_OP_SET_ACL;
    assert_int_equal(p->w.tree.events, tells);
    if (tells && !*created) {
        struct zk_text path = tree_event_path(&p->w.tree, &p->w.tree.event[0]);
        assert_true(zk_text_equal(path, zk_text_of(r.path)));
    }
}

static void some_operations(struct pair *p, bool is_user) {
    static struct model before;
    int count = below(p, 8);
    int32_t failed = -1, err = ZK_OK;
    char created[MODEL_PATH];
    before = p->m;
    p->w.body.used = 0;
    size_t events = 0;
    for (int i = 0; i < count; i++) {
        struct model_request r = choose(p, true);
        union zk_request request = translate(&r);
        zk_write_multi_op(&p->w.body, r.op, &request);
        if (failed < 0) err = model_operate(&p->m, &r, p->w.session, is_user, created);
        if (failed < 0 && err) failed = i;
        events += r.op != ZK_OP_CHECK;
    }
    zk_write_multi_end(&p->w.body);
    bool alive = p->m.alive[p->w.session - FIRST_SESSION];
    if (failed >= 0 || !alive) p->m = before;
    assert_int_equal(apply(&p->w, ZK_OP_MULTI), alive ? ZK_OK : ZK_SESSIONEXPIRED);
    assert_int_equal(p->w.tree.events, failed >= 0 || !alive ? 0 : events);
    if (failed < 0 || !alive) return;
    struct bytes rollback = {0};
    zk_write_rollback(&rollback, count, failed, err);
    assert_int_equal(p->w.reply.used, rollback.used);
    assert_memory_equal(p->w.reply.at, rollback.at, rollback.used);
    bytes_close(&rollback);
}

static void a_session(struct pair *p) {
    int64_t id = FIRST_SESSION + below(p, MODEL_SESSIONS);
    bool *alive = &p->m.alive[id - FIRST_SESSION];
    if (*alive) {
        model_close_session(&p->m, id);
        assert_int_equal(close_session(&p->w, id), ZK_OK);
    } else {
        *alive = true;
        assert_int_equal(open_session(&p->w, id), ZK_OK);
    }
}

static void a_removal(struct pair *p) {
    struct model_node *node = &p->m.node[below(p, p->m.nodes)];
    struct zk_text path = zk_text_of(node->path);
    bool expected = model_expires(&p->m, node, p->w.time);
    int32_t err = delete_container(&p->w, path);
    assert_int_equal(err, expected ? ZK_OK : ZK_NONODE);
    if (expected) model_remove(&p->m, node);
}

/* Continues with the tree loaded from its own image. */
static void a_restart(struct pair *p) {
    struct bytes image = {0};
    const char *why;
    struct tree again;
    assert_int_equal(tree_save(&p->w.tree, write_image, &image), 0);
    struct zk_in in = zk_in_of(image.at, image.used);
    assert_int_equal(tree_open(&again, rng_next(&p->rng)), 0);
    assert_int_equal(tree_load(&again, read_image, &in, &why), 0);
    again.rules = p->w.tree.rules;
    tree_close(&p->w.tree);
    p->w.tree = again;
    bytes_close(&image);
}

static void step(struct pair *p) {
    bool is_user = below(p, 3) == 0;
    become(&p->w, is_user ? "ip:127.0.0.1 digest:u:p" : "ip:127.0.0.1");
    p->w.session = FIRST_SESSION + below(p, MODEL_SESSIONS);
    p->w.time += below(p, 5);
    p->m.time = p->w.time;
    p->m.zxid++;
    int what = below(p, 100);
    if (what < 65)
        one_operation(p, is_user);
    else if (what < 95)
        some_operations(p, is_user);
    else if (what < 97)
        a_session(p);
    else
        a_removal(p);
}

static void the_tree_is_its_model(void **state) {
    static struct pair p;
    (void)state;
    rng_seed(&p.rng, 2024);
    world_open(&p.w);
    p.m.alive[0] = true;
    p.m.node[p.m.nodes++] = (struct model_node){.path = "/"};
    assert_int_equal(create(&p.w, QUOTA, 0), ZK_OK);
    assert_int_equal(create(&p.w, QUOTA "/zookeeper_limits", 0), ZK_OK);
    assert_int_equal(create(&p.w, QUOTA "/zookeeper_stats", 0), ZK_OK);
    p.m.zxid = p.w.tree.zxid;
    for (int i = 0; i < STEPS; i++) {
        step(&p);
        if (i % WATCHED_EVERY == 0 || i < 200) expect_equal(&p);
        if (i % (10 * WATCHED_EVERY) == WATCHED_EVERY) a_restart(&p);
    }
    expect_equal(&p);
    world_close(&p.w);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_tree_is_its_model),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
