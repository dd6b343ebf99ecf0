/* Multis and their rollback; quotas; the tree as bytes. */
#include "base/rng.h"
#include "tree_help.h"

/* ---- Building a multi ---- */

static void begin(struct world *w) { w->body.used = 0; }

static void add(struct world *w, int32_t type, const void *request) {
    union zk_request any = {.create_ttl.ttl = 0};
    memcpy(&any, request, zk_op_of(type)->request->size);
    zk_write_multi_op(&w->body, type, &any);
}

static void add_create(struct world *w, int32_t type, const char *path, const char *data,
                       int32_t flags) {
    add(w, type,
        &(struct zk_create_ttl_request){zk_text_of(path), zk_text_of(data), acls_of(OPEN), flags,
                                        9});
}
static void add_delete(struct world *w, const char *path) {
    add(w, ZK_OP_DELETE, &(struct zk_delete_request){zk_text_of(path), -1});
}
static void add_set(struct world *w, const char *path, const char *data) {
    add(w, ZK_OP_SET_DATA, &(struct zk_set_data_request){zk_text_of(path), zk_text_of(data), -1});
}
static void add_check(struct world *w, const char *path, int32_t version) {
    add(w, ZK_OP_CHECK, &(struct zk_check_request){zk_text_of(path), version});
}

static int32_t commit(struct world *w) {
    zk_write_multi_end(&w->body);
    return apply(w, ZK_OP_MULTI);
}

/* One operation failed: all results say so, and nothing has changed. */
static void expect_rollback(struct world *w, int32_t count, int32_t failed, int32_t err,
                            char *before) {
    struct bytes expected = {0};
    zk_write_rollback(&expected, count, failed, err);
    assert_int_equal(w->reply.used, expected.used);
    assert_memory_equal(w->reply.at, expected.at, expected.used);
    bytes_close(&expected);
    expect_events(w, "");
    expect_same(&w->tree, before);
}

/* ---- All or nothing ---- */

static void a_later_operation_sees_the_earlier_ones(void **state) {
    struct world w;
    struct zk_multi results;
    struct zk_result result;
    static const int32_t types[] = {ZK_OP_CREATE,   ZK_OP_CREATE,  ZK_OP_CREATE2, ZK_OP_CHECK,
                                    ZK_OP_SET_DATA, ZK_OP_CREATE2, ZK_OP_DELETE};
    (void)state;
    world_open(&w);
    begin(&w);
    add_create(&w, ZK_OP_CREATE, "/a", "", 0);
    add_create(&w, ZK_OP_CREATE2, "/a/s", "", ZK_SEQUENTIAL);
    add_create(&w, ZK_OP_CREATE_CONTAINER, "/a/s", "", ZK_SEQUENTIAL);
    add_check(&w, "/a/s0000000001", 0);
    add_set(&w, "/a", "data");
    add_create(&w, ZK_OP_CREATE_TTL, "/a/t", "", ZK_TTL);
    add_delete(&w, "/a/s0000000000");
    assert_int_equal(commit(&w), ZK_OK);
    expect_events(&w, "+/a +/a/s0000000000 +/a/s0000000001 */a +/a/t -/a/s0000000000");
    struct zk_in in = zk_in_of(w.reply.at, w.reply.used);
    assert_true(zk_read_results(&in, &results));
    assert_int_equal(results.count, COUNT(types));
    for (size_t i = 0; i < COUNT(types); i++) {
        assert_true(zk_results_next(&results, &result));
        assert_int_equal(result.type, types[i]);
        assert_int_equal(result.err, ZK_OK);
    }
    struct zk_stat stat = stat_of(&w, "/a");
    assert_true(stat.czxid == w.tree.zxid && stat.mzxid == stat.czxid && stat.pzxid == stat.czxid);
    assert_int_equal(stat.version, 1);
    assert_int_equal(stat.cversion, 4);
    assert_int_equal(stat.num_children, 2);
    expect_sound(&w.tree);
    world_close(&w);
}

/* One of each operation of a multi, on the furnished world below and on its own nodes. */
static void add_number(struct world *w, int i) {
    switch (i) {
    case 0: add_create(w, ZK_OP_CREATE, "/d/new", "data", 0); break;
    case 1: add_create(w, ZK_OP_CREATE, "/d/s", "", ZK_EPHEMERAL_SEQUENTIAL); break;
    case 2: add_set(w, "/d", "other data"); break;
    case 3: add_set(w, "/d", ""); break;
    case 4: add_delete(w, "/d/child"); break;
    case 5: add_delete(w, "/d/mine"); break;
    case 6: add_create(w, ZK_OP_CREATE, "/d/child", "again", ZK_EPHEMERAL); break;
    case 7: add_set(w, "/d/child", "and again"); break;
    case 8: add_create(w, ZK_OP_CREATE_CONTAINER, "/c", "", 0); break;
    case 9: add_create(w, ZK_OP_CREATE, "/c/x", "", 0); break;
    case 10: add_delete(w, "/c/x"); break;
    case 11: add_delete(w, "/c"); break;
    case 12: add_create(w, ZK_OP_CREATE_TTL, "/t", "", ZK_TTL); break;
    case 13: add_delete(w, "/zookeeper/quota/d/zookeeper_limits"); break;
    case 14: add_create(w, ZK_OP_CREATE, "/d/uncounted", "data", 0); break;
    case 15: add_create(w, ZK_OP_CREATE, "/zookeeper/quota/d/zookeeper_limits", "", 0); break;
    case 16: add_delete(w, "/zookeeper/quota/d/zookeeper_stats"); break;
    case 17: add_create(w, ZK_OP_CREATE, "/d/also", "uncounted", 0); break;
    case 18: add_create(w, ZK_OP_CREATE, "/zookeeper/quota/d/zookeeper_stats", "", 0); break;
    case 19: add_set(w, "/d/new", "counted"); break;
    case 20: add_delete(w, "/e"); break;
    default: add_check(w, "/d", -1);
    }
}
enum { NUMBERS = 21 };

/* Statistics that a client has overwritten are rolled back as well. */
static void furnish(struct world *w, const char *stats) {
    world_open(w);
    create(w, "/d", 0);
    set_data(w, "/d", "data", -1);
    create(w, "/d/child", 0);
    create(w, "/d/mine", ZK_EPHEMERAL);
    create(w, "/e", 0);
    create(w, "/zookeeper/quota/d", 0);
    create_with(w, TEXT("/zookeeper/quota/d/zookeeper_limits"), "count=9,bytes=9", OPEN, 0);
    create(w, "/zookeeper/quota/d/zookeeper_stats", 0);
    expect_data(w, "/zookeeper/quota/d/zookeeper_stats", "count=3,bytes=4");
    if (stats) set_data(w, "/zookeeper/quota/d/zookeeper_stats", stats, -1);
}

static void a_failure_anywhere_rolls_all_back(void **state) {
    struct world w;
    (void)state;
    furnish(&w, NULL);
    for (int position = 0; position <= NUMBERS; position++) {
        w.time++;
        begin(&w);
        for (int i = 0; i < position; i++) add_number(&w, i);
        add_check(&w, "/none", -1);
        for (int i = position; i < NUMBERS; i++) add_number(&w, i);
        char *before = dump(&w.tree);
        assert_int_equal(commit(&w), ZK_OK);
        expect_rollback(&w, NUMBERS + 1, position, ZK_NONODE, before);
    }
    begin(&w); /* without the failure all succeed */
    for (int i = 0; i < NUMBERS; i++) add_number(&w, i);
    assert_int_equal(commit(&w), ZK_OK);
    assert_int_equal(w.tree.events, NUMBERS);
    expect_data(&w, "/zookeeper/quota/d/zookeeper_stats", "count=6,bytes=29");
    world_close(&w);
}

static void overwritten_statistics_are_rolled_back(void **state) {
    static const char *const texts[] = {"count=0,bytes=0", "count=-5,bytes=-7", "nonsense", "",
                                        "bytes=1,count=2"};
    (void)state;
    for (size_t t = 0; t < COUNT(texts); t++)
        for (int position = 0; position <= NUMBERS; position++) {
            struct world w;
            furnish(&w, texts[t]);
            begin(&w);
            for (int i = 0; i < position; i++) add_number(&w, i);
            add_check(&w, "/none", -1);
            char *before = dump(&w.tree);
            assert_int_equal(commit(&w), ZK_OK);
            expect_rollback(&w, position + 1, position, ZK_NONODE, before);
            world_close(&w);
        }
}

static void a_multi_is_refused_as_a_whole(void **state) {
    struct world w;
    (void)state;
    world_open(&w);
    char *before = dump(&w.tree);
    begin(&w);
    add_create(&w, ZK_OP_CREATE, "/a", "", 0); /* without an end */
    assert_int_equal(apply(&w, ZK_OP_MULTI), ZK_MARSHALLINGERROR);
    begin(&w);
    add_create(&w, ZK_OP_CREATE, "/a", "", 0);
    add(&w, ZK_OP_GET_DATA, &(struct zk_get_data_request){TEXT("/"), false});
    assert_int_equal(commit(&w), ZK_MARSHALLINGERROR);
    w.session++;
    begin(&w);
    add_create(&w, ZK_OP_CREATE, "/a", "", 0);
    assert_int_equal(commit(&w), ZK_SESSIONEXPIRED);
    w.session--;
    begin(&w);
    assert_int_equal(commit(&w), ZK_OK); /* none at all */
    assert_int_equal(w.reply.used, 9);
    expect_same(&w.tree, before);
    world_close(&w);
}

static void check_checks_in_order(void **state) {
    static const struct {
        struct zk_text path;
        int32_t version, err;
    } rows[] = {
        {TEXT("x"), 9, ZK_BADARGUMENTS}, {TEXT("/a/"), 9, ZK_BADARGUMENTS},
        {TEXT("/none"), 9, ZK_NONODE},   {TEXT("/no"), 9, ZK_NOAUTH},
        {TEXT("/a"), 0, ZK_BADVERSION},
    };
    struct world w;
    (void)state;
    world_open(&w);
    create(&w, "/a", 0);
    set_data(&w, "/a", "", -1);
    create_with(&w, TEXT("/no"), "", "world:anyone:30", 0);
    for (size_t i = 0; i < COUNT(rows); i++) {
        char *before = dump(&w.tree);
        begin(&w);
        add(&w, ZK_OP_CHECK, &(struct zk_check_request){rows[i].path, rows[i].version});
        assert_int_equal(commit(&w), ZK_OK);
        expect_rollback(&w, 1, 0, rows[i].err, before);
    }
    for (int32_t version = -1; version <= 1; version += 2) {
        begin(&w);
        add_check(&w, "/a", version);
        assert_int_equal(commit(&w), ZK_OK);
        assert_int_equal(w.reply.used, 18); /* one header, and the end */
        expect_events(&w, "");
    }
    world_close(&w);
}

/* ---- Quotas ---- */

#define STATS "/zookeeper/quota/d/zookeeper_stats"

static void statistics_follow_the_nodes(void **state) {
    struct world w;
    (void)state;
    furnish(&w, NULL);
    struct zk_stat before = stat_of(&w, STATS);
    create_with(&w, TEXT("/d/x"), "12345", OPEN, 0);
    expect_events(&w, "+/d/x"); /* statistics have no events */
    expect_data(&w, STATS, "count=4,bytes=9");
    set_data(&w, "/d/x", "1", -1);
    expect_data(&w, STATS, "count=4,bytes=5");
    create_with(&w, TEXT("/dd"), "not below", OPEN, 0);
    set_data(&w, "/e", "not below", -1);
    expect_data(&w, STATS, "count=4,bytes=5");
    delete_node(&w, "/d/x", -1);
    close_session(&w, FIRST_SESSION);
    expect_data(&w, STATS, "count=2,bytes=4");
    struct zk_stat after = stat_of(&w, STATS);
    assert_true(before.version == after.version && before.mzxid == after.mzxid &&
                before.mtime == after.mtime);
    open_session(&w, FIRST_SESSION);
    delete_node(&w, "/zookeeper/quota/d/zookeeper_limits", -1);
    create(&w, "/d/x", 0);
    expect_data(&w, STATS, "count=2,bytes=4"); /* no longer updated */
    world_close(&w);
}

static void limits_are_kept_where_they_are_enforced(void **state) {
    struct world w;
    (void)state;
    furnish(&w, NULL); /* 3 nodes, 4 bytes */
    const char *limits = "/zookeeper/quota/d/zookeeper_limits";
    set_data(&w, limits, "count=1,bytes=1=;byteHardLimit=6;countHardLimit=4", -1);
    assert_int_equal(create(&w, "/d/1", 0), ZK_OK);
    assert_int_equal(create(&w, "/d/2", 0), ZK_OK); /* not enforced */
    assert_int_equal(delete_node(&w, "/d/2", -1), ZK_OK);
    w.tree.rules |= TREE_ENFORCE_QUOTA;
    assert_int_equal(create(&w, "/d/2", 0), ZK_QUOTAEXCEEDED);
    assert_int_equal(set_data(&w, "/d/1", "12", -1), ZK_OK);
    assert_int_equal(set_data(&w, "/d/1", "123", -1), ZK_QUOTAEXCEEDED);
    assert_int_equal(set_data(&w, "/d/1", "1", -1), ZK_OK); /* shrinking is always allowed */
    begin(&w);
    add_delete(&w, "/d/1");
    add_create(&w, ZK_OP_CREATE, "/d/2", "1", 0);
    assert_int_equal(commit(&w), ZK_OK);
    assert_true(exists(&w, "/d/2"));
    begin(&w);
    add_delete(&w, "/d/2");
    add_create(&w, ZK_OP_CREATE, "/d/3", "123", 0);
    char *before = dump(&w.tree);
    assert_int_equal(commit(&w), ZK_OK);
    expect_rollback(&w, 2, 1, ZK_QUOTAEXCEEDED, before);
    set_data(&w, limits, "count=1,bytes=1", -1); /* soft limits refuse nothing */
    assert_int_equal(create(&w, "/d/3", 0), ZK_OK);
    world_close(&w);
}

/* ---- As bytes ---- */

static struct bytes image_of(const struct tree *tree) {
    struct bytes image = {0};
    assert_int_equal(tree_save(tree, write_image, &image), 0);
    return image;
}

static int load(struct tree *tree, struct zk_in image, const char **why) {
    assert_int_equal(tree_open(tree, 99), 0);
    return tree_load(tree, read_image, &image, why);
}

/* Grown at random: every kind of node, ACLs, sessions, texts of every size. */
static void grow(struct world *w, struct rng *rng, int steps) {
    static const char *const acls[] = {OPEN, "world:anyone:31 digest:u:p:1",
                                       ("ip:1.2.3.4/8:31 " OPEN)};
    static const int32_t ops[] = {ZK_OP_CREATE, ZK_OP_CREATE_CONTAINER, ZK_OP_CREATE_TTL};
    char path[64], data[300];
    memset(data, 'x', sizeof data);
    for (int i = 0; i < steps; i++) {
        int32_t op = ops[rng_below(rng, COUNT(ops))];
        int32_t flags = op == ZK_OP_CREATE_TTL ? ZK_TTL : (int32_t)rng_below(rng, 4);
        int size = snprintf(path, sizeof path, "/%d", (int)rng_below(rng, 9));
        while (size < 24 && rng_below(rng, 2))
            size += sprintf(path + size, "/%d", (int)rng_below(rng, 9));
        w->session = FIRST_SESSION + (int64_t)rng_below(rng, 3);
        w->time++;
        struct zk_text value = {data, (int32_t)rng_below(rng, sizeof data) - 1};
        struct zk_create_ttl_request r = {
            {path, size}, value, acls_of(acls[rng_below(rng, COUNT(acls))]), flags, 77};
        ask(w, op, &r);
        if (rng_below(rng, 4) == 0) delete_node(w, path, -1);
        if (rng_below(rng, 4) == 0) set_acl(w, path, acls[rng_below(rng, COUNT(acls))], -1);
    }
}

static void an_image_is_the_tree_again(void **state) {
    struct rng rng;
    (void)state;
    rng_seed(&rng, 4);
    for (int round = 0; round < 60; round++) {
        struct world w;
        struct tree again;
        const char *why;
        world_open(&w);
        open_session(&w, FIRST_SESSION + 1);
        open_session(&w, FIRST_SESSION + 2);
        create(&w, "/zookeeper/quota/1", 0);
        create(&w, "/zookeeper/quota/1/zookeeper_limits", 0);
        create(&w, "/zookeeper/quota/1/zookeeper_stats", 0);
        grow(&w, &rng, round * 20);
        if (round % 3 == 0) close_session(&w, FIRST_SESSION + 1);
        struct bytes image = image_of(&w.tree);
        assert_int_equal(load(&again, zk_in_of(image.at, image.used), &why), 0);
        assert_int_equal(again.zxid, w.tree.zxid);
        expect_same(&again, dump(&w.tree));
        struct tree before = w.tree; /* and both behave alike afterwards */
        w.tree = again;
        w.tree.rules = before.rules;
        grow(&w, &rng, 50);
        close_session(&w, FIRST_SESSION);
        expect_sound(&w.tree);
        again = w.tree;
        w.tree = before;
        tree_close(&again);
        bytes_close(&image);
        world_close(&w);
    }
}

static void expirable_nodes_expire_after_a_restart(void **state) {
    struct world w;
    const char *why;
    (void)state;
    world_open(&w);
    create_ttl(&w, "/t", 5);
    create_container(&w, "/c");
    create(&w, "/c/x", 0);
    delete_node(&w, "/c/x", -1);
    struct bytes image = image_of(&w.tree);
    tree_close(&w.tree);
    assert_int_equal(load(&w.tree, zk_in_of(image.at, image.used), &why), 0);
    assert_int_equal(w.tree.expirables, 2);
    w.time = FIRST_TIME + 6;
    assert_int_equal(delete_container(&w, TEXT("/t")), ZK_OK);
    assert_int_equal(delete_container(&w, TEXT("/c")), ZK_OK);
    bytes_close(&image);
    world_close(&w);
}

/* Cut anywhere it is refused, with a reason; changed anywhere it does no harm, whatever is then
 * asked of it. */
static void a_damaged_image_does_no_harm(void **state) {
    struct world w;
    struct rng rng;
    const char *why;
    struct tree again;
    (void)state;
    rng_seed(&rng, 8);
    world_open(&w);
    grow(&w, &rng, 8);
    struct bytes image = image_of(&w.tree);
    for (size_t size = 0; size < image.used; size++) {
        assert_int_equal(load(&again, zk_in_of(image.at, size), &why), -1);
        assert_non_null(why);
        tree_close(&again);
    }
    for (size_t i = 0; i < image.used; i++) {
        unsigned char kept = image.at[i];
        image.at[i] = (unsigned char)(kept ^ 1u << rng_below(&rng, 8));
        if (load(&again, zk_in_of(image.at, image.used), &why) == 0) free(dump(&again));
        tree_close(&again);
        image.at[i] = kept;
    }
    bytes_close(&image);
    world_close(&w);
}

/* An impossible tree is refused, although all its numbers are within bounds. */

static void root_is_ephemeral(struct tree *tree) { tree->node[TREE_ROOT].owner = FIRST_SESSION; }
static void root_is_a_container(struct tree *tree) { tree->node[TREE_ROOT].owner = TREE_CONTAINER; }
static void root_has_a_name(struct tree *tree) {
    free(tree->node[TREE_ROOT].text);
    tree->node[TREE_ROOT].text = strdup("root");
    tree->node[TREE_ROOT].name_size = 4;
}
static void a_digest_has_no_secret(struct tree *tree) {
    struct zk_acls list = acls_of("digest:u:31");
    tree->node[TREE_ROOT].acl = acl_take(tree, &list);
}
static void a_session_is_no_session(struct tree *tree) { tree->sessions.at[1].id = TREE_CONTAINER; }

static void an_image_is_not_trusted(void **state) {
    static void (*const spoil[])(struct tree *) = {root_is_ephemeral, root_is_a_container,
                                                   root_has_a_name, a_digest_has_no_secret,
                                                   a_session_is_no_session};
    (void)state;
    for (size_t i = 0; i < COUNT(spoil); i++) {
        struct world w;
        struct tree again;
        const char *why = NULL;
        world_open(&w);
        spoil[i](&w.tree);
        struct bytes image = image_of(&w.tree);
        if (load(&again, zk_in_of(image.at, image.used), &why) == 0) fail_msg("number %zu", i);
        assert_non_null(why);
        tree_close(&again);
        bytes_close(&image);
        world_close(&w);
    }
}

/* ---- Entries ---- */

static void an_entry_is_read_back(void **state) {
    struct world w;
    (void)state;
    world_open(&w);
    become(&w, "ip:127.0.0.1 digest:u:p");
    struct tree_entry entry = {.time = 12345678901234,
                               .session = -2,
                               .identities = identities_of(&w),
                               .rules = TREE_SKIP_ACL,
                               .op = ZK_OP_SET_DATA,
                               .body = zk_in_of("body", 4)};
    size_t size = tree_entry_size(&entry);
    unsigned char *bytes = malloc(size);
    tree_store_entry(bytes, &entry);
    for (size_t part = 0; part <= size; part++) {
        struct zk_in in = zk_in_of(bytes, part);
        struct tree_entry found;
        bool complete = part >= size - 4; /* the body may be of any length */
        assert_int_equal(tree_read_entry(&in, &found), complete);
        if (!complete) continue;
        assert_int_equal(zk_left(&in), 0);
        assert_int_equal(found.time, entry.time);
        assert_int_equal(found.session, entry.session);
        assert_int_equal(found.op, entry.op);
        assert_int_equal(found.rules, entry.rules);
        assert_int_equal(found.identities.count, 2);
        assert_int_equal(found.identities.size, entry.identities.size);
        assert_memory_equal(found.identities.at, entry.identities.at, entry.identities.size);
        assert_int_equal(zk_left(&found.body), part - (size - 4));
    }
    free(bytes);
    world_close(&w);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_later_operation_sees_the_earlier_ones),
        cmocka_unit_test(a_failure_anywhere_rolls_all_back),
        cmocka_unit_test(overwritten_statistics_are_rolled_back),
        cmocka_unit_test(a_multi_is_refused_as_a_whole),
        cmocka_unit_test(check_checks_in_order),
        cmocka_unit_test(statistics_follow_the_nodes),
        cmocka_unit_test(limits_are_kept_where_they_are_enforced),
        cmocka_unit_test(an_image_is_the_tree_again),
        cmocka_unit_test(expirable_nodes_expire_after_a_restart),
        cmocka_unit_test(a_damaged_image_does_no_harm),
        cmocka_unit_test(an_image_is_not_trusted),
        cmocka_unit_test(an_entry_is_read_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
