/* The checks of single operations on the tree, and their order. */
#include "tree_help.h"

/* ---- A new tree ---- */

static void a_new_tree_has_the_built_in_nodes(void **state) {
    static const struct {
        const char *path;
        int32_t aversion, cversion, children, perms;
    } expected[] = {{"/", 0, -1, 1, 31},
                    {"/zookeeper", 0, -2, 2, 31},
                    {"/zookeeper/quota", 0, 0, 0, 31},
                    {"/zookeeper/config", -1, 0, 0, 1}};
    struct world w;
    (void)state;
    world_open(&w);
    assert_int_equal(w.tree.nodes, COUNT(expected));
    for (size_t i = 0; i < COUNT(expected); i++) {
        struct zk_stat stat = stat_of(&w, expected[i].path);
        node_id id = tree_find(&w.tree, zk_text_of(expected[i].path));
        struct zk_acls list = acl_list(&w.tree, w.tree.node[id].acl);
        struct zk_acl entry;
        assert_int_equal(stat.version, 0);
        assert_int_equal(stat.aversion, expected[i].aversion);
        assert_int_equal(stat.cversion, expected[i].cversion);
        assert_int_equal(stat.num_children, expected[i].children);
        assert_int_equal(stat.czxid | stat.mzxid | stat.pzxid | stat.ctime | stat.mtime, 0);
        expect_data(&w, expected[i].path, "");
        assert_int_equal(list.count, 1);
        assert_true(zk_acls_next(&list, &entry));
        assert_int_equal(entry.perms, expected[i].perms);
    }
    world_close(&w);
}

/* ---- Which error is returned ---- */

/* A world in which every rule can be broken: /a and below it a child, /e ephemeral, /no where only
 * reading is allowed, and a quota that is used up at /full. */
static void furnished(struct world *w) {
    world_open(w);
    w->tree.rules |= TREE_ENFORCE_QUOTA;
    assert_int_equal(create(w, "/a", 0), ZK_OK);
    assert_int_equal(create(w, "/a/child", 0), ZK_OK);
    assert_int_equal(create(w, "/e", ZK_EPHEMERAL), ZK_OK);
    assert_int_equal(create(w, "/no", 0), ZK_OK);
    assert_int_equal(create(w, "/no/child", 0), ZK_OK);
    assert_int_equal(set_acl(w, "/no", "world:anyone:1", -1), ZK_OK);
    assert_int_equal(create_with(w, TEXT("/full"), "12345", OPEN, 0), ZK_OK);
    assert_int_equal(create(w, "/zookeeper/quota/full", 0), ZK_OK);
    assert_int_equal(create_with(w, TEXT("/zookeeper/quota/full/zookeeper_limits"),
                                 "count=-1,bytes=-1=;byteHardLimit=5;countHardLimit=1", OPEN, 0),
                     ZK_OK);
    assert_int_equal(create(w, "/zookeeper/quota/full/zookeeper_stats", 0), ZK_OK);
}

struct creating {
    int32_t op, flags, err;
    int64_t ttl;
    struct zk_text path;
    const char *acl;
};

/* A refused request changes nothing, and has no events. */
static void expect_refused(struct world *w, int32_t op, const void *request, int32_t err,
                           size_t row) {
    char *before = dump(&w->tree);
    int32_t found = ask(w, op, request);
    if (found != err)
        fail_msg("row %zu (%s): %d, not %d", row, zk_op_of(op)->name, (int)found, (int)err);
    expect_events(w, "");
    assert_int_equal(w->reply.used, 0);
    expect_same(&w->tree, before);
}

static void expect_creating(struct world *w, const struct creating *rows, size_t count) {
    for (size_t i = 0; i < count; i++) {
        struct zk_create_ttl_request r = {rows[i].path, TEXT("x"), acls_of(rows[i].acl),
                                          rows[i].flags, rows[i].ttl};
        expect_refused(w, rows[i].op, &r, rows[i].err, i);
    }
}

#define BAD "nobody:x:31"

/* Each row fails one check, and as many later ones as possible. */
static void create_checks_in_order(void **state) {
    static const struct creating rows[] = {
        {ZK_OP_CREATE, -1, ZK_BADARGUMENTS, 0, TEXT("x"), BAD},
        {ZK_OP_CREATE2, 7, ZK_BADARGUMENTS, 0, TEXT("x"), BAD},
        {ZK_OP_CREATE_CONTAINER, 7, ZK_BADARGUMENTS, 0, TEXT("x"), BAD},
        {ZK_OP_CREATE_TTL, 7, ZK_BADARGUMENTS, 5, TEXT("x"), BAD},
        {ZK_OP_CREATE, ZK_TTL, ZK_BADARGUMENTS, 0, TEXT("x"), BAD},
        {ZK_OP_CREATE2, ZK_TTL_SEQUENTIAL, ZK_BADARGUMENTS, 0, TEXT("x"), BAD},
        {ZK_OP_CREATE_CONTAINER, ZK_TTL, ZK_BADARGUMENTS, 0, TEXT("x"), BAD},
        {ZK_OP_CREATE_TTL, ZK_TTL, ZK_BADARGUMENTS, 0, TEXT("/a/x"), OPEN},
        {ZK_OP_CREATE_TTL, ZK_TTL, ZK_BADARGUMENTS, -1, TEXT("/a/x"), OPEN},
        {ZK_OP_CREATE_TTL, ZK_TTL_SEQUENTIAL, ZK_BADARGUMENTS, 0x10000000000, TEXT("/x"), OPEN},
        {ZK_OP_CREATE_TTL, ZK_PERSISTENT, ZK_BADARGUMENTS, -1, TEXT("/a/x"), OPEN},
        {ZK_OP_CREATE_TTL, ZK_PERSISTENT, ZK_BADARGUMENTS, 5, TEXT("/a/x"), OPEN},
        {ZK_OP_CREATE_TTL, ZK_CONTAINER, ZK_BADARGUMENTS, 5, TEXT("/a/x"), OPEN},
        {ZK_OP_CREATE, 0, ZK_BADARGUMENTS, 0, TEXT("x"), BAD},
        {ZK_OP_CREATE, 0, ZK_BADARGUMENTS, 0, TEXT(""), BAD},
        {ZK_OP_CREATE, 0, ZK_MARSHALLINGERROR, 0, {NULL, -1}, BAD},
        {ZK_OP_CREATE, 0, ZK_BADARGUMENTS, 0, TEXT("/none/\0"), BAD},
        {ZK_OP_CREATE, 0, ZK_INVALIDACL, 0, TEXT("/none/.."), BAD},
        {ZK_OP_CREATE, 0, ZK_INVALIDACL, 0, TEXT("/none/.."), ""},
        {ZK_OP_CREATE, 0, ZK_NONODE, 0, TEXT("/none/.."), OPEN},
        {ZK_OP_CREATE, 0, ZK_NONODE, 0, TEXT("/a//b"), OPEN},
        {ZK_OP_CREATE, 0, ZK_NONODE, 0, TEXT("a/b"), OPEN},
        {ZK_OP_CREATE, 0, ZK_NOAUTH, 0, TEXT("/no/.."), OPEN},
        {ZK_OP_CREATE, 0, ZK_NOAUTH, 0, TEXT("/no/child"), OPEN},
        {ZK_OP_CREATE, 0, ZK_BADARGUMENTS, 0, TEXT("/a/"), OPEN},
        {ZK_OP_CREATE, 0, ZK_BADARGUMENTS, 0, TEXT("/e/."), OPEN},
        {ZK_OP_CREATE, 0, ZK_BADARGUMENTS, 0, TEXT("/e/\x01"), OPEN},
        {ZK_OP_CREATE, ZK_SEQUENTIAL, ZK_BADARGUMENTS, 0, TEXT("/a/\x7f"), OPEN},
        {ZK_OP_CREATE, 0, ZK_NODEEXISTS, 0, TEXT("/"), OPEN},
        {ZK_OP_CREATE, 0, ZK_NODEEXISTS, 0, TEXT("/full"), OPEN},
        {ZK_OP_CREATE, ZK_EPHEMERAL, ZK_NODEEXISTS, 0, TEXT("/a/child"), OPEN},
        {ZK_OP_CREATE, 0, ZK_NOCHILDRENFOREPHEMERALS, 0, TEXT("/e/x"), OPEN},
        {ZK_OP_CREATE, ZK_SEQUENTIAL, ZK_NOCHILDRENFOREPHEMERALS, 0, TEXT("/e/x"), OPEN},
        {ZK_OP_CREATE, 0, ZK_QUOTAEXCEEDED, 0, TEXT("/full/x"), OPEN},
    };
    static const struct creating without_ttl[] = {
        {ZK_OP_CREATE_TTL, ZK_TTL, ZK_UNIMPLEMENTED, 0, TEXT("x"), BAD},
        {ZK_OP_CREATE_TTL, ZK_TTL_SEQUENTIAL, ZK_UNIMPLEMENTED, 5, TEXT("/a/x"), OPEN},
        {ZK_OP_CREATE_TTL, ZK_PERSISTENT, ZK_BADARGUMENTS, 5, TEXT("/a/x"), OPEN},
    };
    struct world w;
    (void)state;
    furnished(&w);
    expect_creating(&w, rows, COUNT(rows));
    w.tree.rules &= ~TREE_EXTENDED_TYPES;
    expect_creating(&w, without_ttl, COUNT(without_ttl));
    w.session = FIRST_SESSION + 1; /* no such session */
    expect_creating(
        &w, (struct creating[]){{ZK_OP_CREATE, 99, ZK_SESSIONEXPIRED, 0, TEXT("x"), BAD}}, 1);
    world_close(&w);
}

static void every_kind_of_create(void **state) {
    static const struct {
        int32_t op, flags;
        int64_t ttl, owner;
        const char *path, *created;
    } rows[] = {
        {ZK_OP_CREATE, ZK_PERSISTENT, 0, 0, "/p", "/p"},
        {ZK_OP_CREATE2, ZK_EPHEMERAL, 0, FIRST_SESSION, "/e", "/e"},
        {ZK_OP_CREATE, ZK_SEQUENTIAL, 0, 0, "/s", "/s0000000002"},
        {ZK_OP_CREATE, ZK_EPHEMERAL_SEQUENTIAL, 0, FIRST_SESSION, "/es", "/es0000000003"},
        {ZK_OP_CREATE, ZK_CONTAINER, 0, 0, "/plain", "/plain"},
        {ZK_OP_CREATE_CONTAINER, ZK_CONTAINER, 0, TREE_CONTAINER, "/c", "/c"},
        {ZK_OP_CREATE_CONTAINER, ZK_EPHEMERAL, 0, TREE_CONTAINER, "/ce", "/ce"},
        {ZK_OP_CREATE_CONTAINER, ZK_SEQUENTIAL, 0, TREE_CONTAINER, "/cs", "/cs0000000007"},
        {ZK_OP_CREATE_TTL, ZK_TTL, 1, TREE_TTL_MARK | 1, "/t", "/t"},
        {ZK_OP_CREATE_TTL, ZK_TTL_SEQUENTIAL, TREE_TTL_MAX, TREE_TTL_MARK | TREE_TTL_MAX, "/t",
         "/t0000000009"},
    };
    struct world w;
    (void)state;
    world_open(&w);
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct zk_create_ttl_request r = {zk_text_of(rows[i].path), TEXT("data"), acls_of(OPEN),
                                          rows[i].flags, rows[i].ttl};
        w.time = 5000 + (int64_t)i;
        assert_int_equal(ask(&w, rows[i].op, &r), ZK_OK);
        expect_created(&w, rows[i].created);
        node_id id = tree_find(&w.tree, zk_text_of(rows[i].created));
        assert_int_equal(w.tree.node[id].owner, rows[i].owner);
        struct zk_stat s = stat_of(&w, rows[i].created);
        assert_true(s.czxid == w.tree.zxid && s.mzxid == s.czxid && s.pzxid == s.czxid);
        assert_true(s.ctime == w.time && s.mtime == w.time && s.data_length == 4);
        assert_int_equal(s.version | s.cversion | s.aversion | s.num_children, 0);
        bool ephemeral = rows[i].owner == FIRST_SESSION; /* other owners are not shown */
        assert_int_equal(s.ephemeral_owner, ephemeral ? FIRST_SESSION : 0);
        assert_int_equal(stat_of(&w, "/").pzxid, w.tree.zxid);
        assert_int_equal(stat_of(&w, "/").cversion, (int)i);
    }
    expect_sound(&w.tree);
    world_close(&w);
}

struct versioned {
    struct zk_text path;
    int32_t version, err;
};

static void delete_checks_in_order(void **state) {
    static const struct versioned rows[] = {
        {TEXT("x"), 9, ZK_BADARGUMENTS},
        {TEXT(""), 9, ZK_BADARGUMENTS},
        {{NULL, -1}, 9, ZK_MARSHALLINGERROR},
        {TEXT("/none/\0"), 9, ZK_BADARGUMENTS},
        {TEXT("/"), 9, ZK_BADARGUMENTS},
        {TEXT("/zookeeper"), 9, ZK_BADARGUMENTS},
        {TEXT("/zookeeper/quota"), 9, ZK_BADARGUMENTS},
        {TEXT("/zookeeper/config"), 9, ZK_BADARGUMENTS},
        {TEXT("/none/x"), 9, ZK_NONODE},
        {TEXT("/no/none"), 9, ZK_NOAUTH},
        {TEXT("/no/child"), 9, ZK_NOAUTH},
        {TEXT("/none"), 9, ZK_NONODE},
        {TEXT("/a/"), 9, ZK_NONODE},
        {TEXT("/a//child"), 9, ZK_NONODE},
        {TEXT("/a"), 9, ZK_BADVERSION},
        {TEXT("/a"), -1, ZK_NOTEMPTY},
        {TEXT("/a"), 0, ZK_NOTEMPTY},
    };
    struct world w;
    (void)state;
    furnished(&w);
    for (size_t i = 0; i < COUNT(rows); i++)
        expect_refused(&w, ZK_OP_DELETE, &(struct zk_delete_request){rows[i].path, rows[i].version},
                       rows[i].err, i);
    /* The ACL of the node itself does not matter. */
    assert_int_equal(delete_node(&w, "/no/child", -1), ZK_NOAUTH);
    assert_int_equal(set_acl(&w, "/a/child", "digest:u:p:31", -1), ZK_OK);
    assert_int_equal(delete_node(&w, "/a/child", 0), ZK_OK);
    expect_events(&w, "-/a/child");
    assert_int_equal(stat_of(&w, "/a").pzxid, w.tree.zxid);
    assert_int_equal(stat_of(&w, "/a").cversion, 2);
    assert_int_equal(delete_node(&w, "/a", -1), ZK_OK);
    world_close(&w);
}

static void set_data_checks_in_order(void **state) {
    static const struct versioned rows[] = {
        {TEXT("x"), 9, ZK_BADARGUMENTS},
        {{NULL, -1}, 9, ZK_BADARGUMENTS},
        {TEXT("/a/"), 9, ZK_BADARGUMENTS},
        {TEXT("/a/../a"), 9, ZK_BADARGUMENTS},
        {TEXT("/none"), 9, ZK_NONODE},
        {TEXT("/no"), 9, ZK_NOAUTH},
        {TEXT("/full"), 9, ZK_QUOTAEXCEEDED},
        {TEXT("/a"), 9, ZK_BADVERSION},
        {TEXT("/zookeeper/config"), -1, ZK_NOAUTH},
    };
    struct world w;
    (void)state;
    furnished(&w);
    for (size_t i = 0; i < COUNT(rows); i++)
        expect_refused(&w, ZK_OP_SET_DATA,
                       &(struct zk_set_data_request){rows[i].path, TEXT("123456"), rows[i].version},
                       rows[i].err, i);
    world_close(&w);
}

static void set_acl_checks_in_order(void **state) {
    static const struct {
        struct versioned of;
        const char *acl;
    } rows[] = {
        {{TEXT("x"), 9, ZK_BADARGUMENTS}, BAD},   {{{NULL, -1}, 9, ZK_BADARGUMENTS}, BAD},
        {{TEXT("/none"), 9, ZK_INVALIDACL}, BAD}, {{TEXT("/none"), 9, ZK_INVALIDACL}, ""},
        {{TEXT("/none"), 9, ZK_NONODE}, OPEN},    {{TEXT("/no"), 9, ZK_NOAUTH}, OPEN},
        {{TEXT("/a"), 9, ZK_BADVERSION}, OPEN},
    };
    struct world w;
    (void)state;
    furnished(&w);
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct zk_set_acl_request r = {rows[i].of.path, acls_of(rows[i].acl), rows[i].of.version};
        expect_refused(&w, ZK_OP_SET_ACL, &r, rows[i].of.err, i);
    }
    /* Only the version of the ACL is compared, and only it changes. */
    assert_int_equal(set_data(&w, "/a", "", -1), ZK_OK);
    struct zk_stat before = stat_of(&w, "/a");
    assert_int_equal(set_acl(&w, "/a", "world:anyone:17", before.version), ZK_BADVERSION);
    assert_int_equal(set_acl(&w, "/a", "world:anyone:17", 0), ZK_OK);
    expect_events(&w, "");
    before.aversion = 1;
    struct zk_stat after = stat_of(&w, "/a");
    struct bytes a = {0}, b = {0};
    zk_write_stat(&a, &before);
    zk_write_stat(&b, &after);
    assert_memory_equal(a.at, b.at, a.used);
    bytes_close(&a);
    bytes_close(&b);
    world_close(&w);
}

/* ---- Versions and numbers ---- */

static void versions_count_and_wrap(void **state) {
    struct world w;
    (void)state;
    world_open(&w);
    create(&w, "/a", 0);
    for (int32_t version = 0; version < 3; version++) {
        w.time++;
        assert_int_equal(set_data(&w, "/a", "same", version), ZK_OK);
        expect_events(&w, "*/a");
        struct zk_stat stat = stat_of(&w, "/a");
        assert_int_equal(stat.version, version + 1);
        assert_true(stat.mzxid == w.tree.zxid && stat.mtime == w.time && stat.ctime == FIRST_TIME);
    }
    assert_int_equal(set_data(&w, "/a", "x", 2), ZK_BADVERSION);
    struct node *node = &w.tree.node[tree_find(&w.tree, TEXT("/a"))];
    node->version = node->aversion = INT32_MAX;
    assert_int_equal(set_data(&w, "/a", "x", INT32_MAX), ZK_OK);
    assert_int_equal(stat_of(&w, "/a").version, INT32_MIN);
    assert_int_equal(set_acl(&w, "/a", OPEN, INT32_MAX), ZK_OK);
    assert_int_equal(stat_of(&w, "/a").aversion, INT32_MIN);
    world_close(&w);
}

static void data_can_be_null_or_empty(void **state) {
    struct world w;
    struct zk_set_data_request to_null = {TEXT("/a"), {NULL, -1}, -1};
    (void)state;
    world_open(&w);
    create_with(&w, TEXT("/a"), "x", OPEN, 0);
    node_id id = tree_find(&w.tree, TEXT("/a"));
    assert_int_equal(ask(&w, ZK_OP_SET_DATA, &to_null), ZK_OK);
    assert_int_equal(node_data(&w.tree.node[id]).size, -1);
    assert_int_equal(stat_of(&w, "/a").data_length, 0);
    assert_int_equal(set_data(&w, "/a", "", -1), ZK_OK);
    assert_int_equal(node_data(&w.tree.node[id]).size, 0);
    expect_sound(&w.tree);
    world_close(&w);
}

static void sequences_follow_the_creates(void **state) {
    struct world w;
    (void)state;
    world_open(&w);
    create(&w, "/d", 0);
    assert_int_equal(create(&w, "/d/a", 0), ZK_OK);
    assert_int_equal(create(&w, "/d/b", ZK_SEQUENTIAL), ZK_OK);
    expect_created(&w, "/d/b0000000001");
    assert_int_equal(delete_node(&w, "/d/a", -1), ZK_OK); /* does not reset the counter */
    assert_int_equal(create(&w, "/d/b0000000001", 0), ZK_NODEEXISTS); /* does not advance it */
    assert_int_equal(create(&w, "/d/", ZK_SEQUENTIAL), ZK_OK);
    expect_created(&w, "/d/0000000002");
    assert_int_equal(stat_of(&w, "/d").cversion, 4);
    struct node *parent = &w.tree.node[tree_find(&w.tree, TEXT("/d"))];
    parent->creates = INT32_MAX;
    assert_int_equal(create(&w, "/d/n", ZK_SEQUENTIAL), ZK_OK);
    expect_created(&w, "/d/n2147483647");
    assert_int_equal(create(&w, "/d/n", ZK_SEQUENTIAL), ZK_OK);
    expect_created(&w, "/d/n-2147483648");
    parent->creates = -1;
    assert_int_equal(create(&w, "/d/n", ZK_SEQUENTIAL), ZK_OK);
    expect_created(&w, "/d/n-000000001");
    create(&w, "/again", 0);
    create(&w, "/again/x", 0);
    delete_node(&w, "/again/x", -1);
    delete_node(&w, "/again", -1);
    create(&w, "/again", 0);
    assert_int_equal(create(&w, "/again/x", ZK_SEQUENTIAL), ZK_OK);
    expect_created(&w, "/again/x0000000000");
    world_close(&w);
}

/* ---- Sessions, containers and ttls ---- */

static void the_end_of_a_session_deletes_its_nodes(void **state) {
    struct world w;
    (void)state;
    world_open(&w);
    assert_int_equal(open_session(&w, 5), ZK_OK);
    assert_int_not_equal(open_session(&w, 5), ZK_OK);
    create(&w, "/d", 0);
    create(&w, "/mine", ZK_EPHEMERAL);
    w.session = 5;
    create(&w, "/d/e", ZK_EPHEMERAL_SEQUENTIAL);
    create(&w, "/e1", ZK_EPHEMERAL);
    create(&w, "/e2", ZK_EPHEMERAL);
    create(&w, "/stays", 0);
    w.session = FIRST_SESSION;
    assert_int_equal(w.tree.ephemerals, 4);
    assert_int_equal(set_data(&w, "/e1", "by another", -1), ZK_OK);
    assert_int_equal(delete_node(&w, "/e2", -1), ZK_OK);
    assert_int_equal(close_session(&w, 5), ZK_OK);
    assert_int_equal(w.tree.events, 2);
    for (size_t i = 0; i < 2; i++) assert_int_equal(w.tree.event[i].type, ZK_NODE_DELETED);
    assert_false(exists(&w, "/d/e0000000000") || exists(&w, "/e1"));
    assert_true(exists(&w, "/mine") && exists(&w, "/stays"));
    assert_int_equal(stat_of(&w, "/d").pzxid, w.tree.zxid);
    assert_int_equal(stat_of(&w, "/").pzxid, w.tree.zxid);
    assert_int_equal(stat_of(&w, "/d").cversion, 2);
    assert_int_equal(close_session(&w, 5), ZK_SESSIONEXPIRED);
    expect_sound(&w.tree);
    world_close(&w);
}

/* Records the expired nodes, and deletes them. */
static void let_go(void *context, struct zk_text path) {
    struct bytes *gone = context;
    bytes_add(gone, path.at, (size_t)path.size);
    bytes_add(gone, " ", 1);
}

static void expect_expired_by(struct world *w, int64_t now, uint64_t monotonic_ms,
                              const char *expected) {
    struct bytes gone = {0};
    struct clock clock = {.now_ms = now, .monotonic_us = monotonic_ms * 1000};
    for (node_id next = 1; next;)
        next = tree_find_expired(&w->tree, next, 2, &clock, let_go, &gone);
    bytes_add(&gone, "", 1);
    assert_string_equal((char *)gone.at, expected);
    bytes_close(&gone);
}

/* By both clocks, which agree. */
static void expect_expired(struct world *w, int64_t now, const char *expected) {
    expect_expired_by(w, now, now < FIRST_TIME ? 0 : (uint64_t)(now - FIRST_TIME), expected);
}

static void containers_are_deleted_when_they_become_empty(void **state) {
    struct world w;
    (void)state;
    world_open(&w);
    assert_int_equal(create_container(&w, "/c"), ZK_OK);
    expect_expired(&w, INT64_MAX, ""); /* it was never used */
    assert_int_equal(delete_container(&w, TEXT("/c")), ZK_NONODE);
    create(&w, "/c/x", 0);
    expect_expired(&w, INT64_MAX, "");
    assert_int_equal(delete_container(&w, TEXT("/c")), ZK_NONODE);
    delete_node(&w, "/c/x", -1);
    expect_expired(&w, 0, "/c ");
    assert_int_equal(create(&w, "/c/again", 0), ZK_OK);
    assert_int_equal(delete_container(&w, TEXT("/c")), ZK_NONODE); /* already deleted */
    delete_node(&w, "/c/again", -1);
    assert_int_equal(delete_container(&w, TEXT("/c")), ZK_OK);
    expect_events(&w, "-/c");
    assert_false(exists(&w, "/c"));
    expect_expired(&w, INT64_MAX, "");
    assert_int_equal(create(&w, "/plain", 0), ZK_OK); /* reuses the node_id of the container */
    assert_int_equal(delete_container(&w, TEXT("/plain")), ZK_NONODE);
    expect_expired(&w, INT64_MAX, "");
    world_close(&w);
}

static void a_ttl_counts_from_the_last_change(void **state) {
    struct world w;
    (void)state;
    world_open(&w);
    assert_int_equal(create_ttl(&w, "/t", 100), ZK_OK);
    expect_expired(&w, FIRST_TIME + 100, "");
    expect_expired(&w, FIRST_TIME + 101, "/t ");
    w.time = FIRST_TIME + 50;
    assert_int_equal(set_data(&w, "/t", "", -1), ZK_OK);
    expect_expired(&w, FIRST_TIME + 101, "");
    create(&w, "/t/child", 0);
    expect_expired(&w, INT64_MAX, ""); /* not while there are children */
    delete_node(&w, "/t/child", -1);
    w.time = FIRST_TIME + 150;
    assert_int_equal(delete_container(&w, TEXT("/t")), ZK_NONODE);
    w.time = FIRST_TIME + 151;
    assert_int_equal(delete_container(&w, TEXT("/t")), ZK_OK);
    assert_false(exists(&w, "/t"));
    world_close(&w);
}

/* A node with a reused node_id is reported once. */
static void an_expired_node_is_reported_once(void **state) {
    struct world w;
    (void)state;
    world_open(&w);
    create_ttl(&w, "/t", 1);
    create_ttl(&w, "/u", 1);
    delete_node(&w, "/t", -1);
    create_ttl(&w, "/v", 1);
    expect_expired(&w, INT64_MAX, "/v /u ");
    expect_expired(&w, INT64_MAX, "/v /u "); /* and again, for it may not be deleted yet */
    world_close(&w);
}

/* A clock that is set forward makes no ttl shorter, whether it is set before a change or after. */
static void a_ttl_lasts_by_both_clocks(void **state) {
    enum { HOUR = 3600000, START = 5000 };
    struct world w;
    (void)state;
    world_open(&w);
    w.time = FIRST_TIME;
    create_ttl(&w, "/before", 10000);
    expect_expired_by(&w, FIRST_TIME + 4000, START, ""); /* a restart: it is 4 s old already */
    create_ttl(&w, "/t", 10000);
    expect_expired_by(&w, FIRST_TIME + 5000, START + 1000, ""); /* and is seen */
    expect_expired_by(&w, FIRST_TIME + HOUR, START + 5999, "");
    expect_expired_by(&w, FIRST_TIME + HOUR, START + 6000, "/before ");
    expect_expired_by(&w, FIRST_TIME + HOUR, START + 10999, "/before ");
    expect_expired_by(&w, FIRST_TIME, START + HOUR, ""); /* set back: it may take longer */
    w.time = FIRST_TIME - HOUR;
    assert_int_equal(set_data(&w, "/t", "", -1), ZK_OK);
    expect_expired_by(&w, FIRST_TIME + HOUR, START + HOUR + 1, "/before ");
    expect_expired_by(&w, FIRST_TIME + HOUR, START + HOUR + 10000, "/before ");
    expect_expired_by(&w, FIRST_TIME + HOUR, START + HOUR + 10001, "/before /t ");
    world_close(&w);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_ttl_lasts_by_both_clocks),
        cmocka_unit_test(a_new_tree_has_the_built_in_nodes),
        cmocka_unit_test(create_checks_in_order),
        cmocka_unit_test(every_kind_of_create),
        cmocka_unit_test(delete_checks_in_order),
        cmocka_unit_test(set_data_checks_in_order),
        cmocka_unit_test(set_acl_checks_in_order),
        cmocka_unit_test(versions_count_and_wrap),
        cmocka_unit_test(data_can_be_null_or_empty),
        cmocka_unit_test(sequences_follow_the_creates),
        cmocka_unit_test(the_end_of_a_session_deletes_its_nodes),
        cmocka_unit_test(containers_are_deleted_when_they_become_empty),
        cmocka_unit_test(a_ttl_counts_from_the_last_change),
        cmocka_unit_test(an_expired_node_is_reported_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
