/* ACLs, and the answers to reads. */
#include "base/rng.h"
#include "tree_help.h"

/* ---- Validation ---- */

static void lists_are_valid_or_not(void **state) {
    static const struct {
        const char *acl, *kept; /* kept NULL: refused */
    } rows[] = {
        {OPEN, OPEN},
        {"world:anyone:1", "world:anyone:1"},
        {"world:anyone:0", "world:anyone:0"},   /* permissions are kept as they come */
        {"world:anyone:-1", "world:anyone:-1"}, /* all of them, too */
        {"", NULL},
        {"world:nobody:31", NULL},
        {"world::31", NULL},
        {"world", NULL},
        {"digest:u:p:31", "digest:u:p:31"},
        {"digest::p:31", "digest::p:31"},
        {"digest:u::31", NULL},
        {"digest:u:31", NULL},
        {"digest:u:p:q:31", NULL},
        {"digest", NULL},
        {"ip:1.2.3.4:31", "ip:1.2.3.4:31"},
        {"ip:1.2.3.4/0:31", "ip:1.2.3.4/0:31"},
        {"ip:1.2.3.4/32:31", "ip:1.2.3.4/32:31"},
        {"ip:1.2.3.4/33:31", NULL},
        {"ip:1.2.3.4/:31", NULL},
        {"ip:1.2.3.4/-1:31", NULL},
        {"ip:1.2.3:31", NULL},
        {"ip:1.2.3.4.5:31", NULL},
        {"ip:1.2.3.256:31", NULL},
        {"ip:1.2.3.x:31", NULL},
        {"ip:1..3.4:31", NULL},
        {"ip:::1:31", NULL},
        {"ip", NULL},
        {"super::31", NULL},
        {"sasl:u:31", NULL},
        {"x509:CN=u:31", NULL}, /* certificates are not used here */
        {"auth::31", "digest:u:p:31 digest:v:q:31"},
        {"auth", "digest:u:p:31 digest:v:q:31"},
        {"auth:whatever:1", "digest:u:p:1 digest:v:q:1"},
        {"world:anyone:1 auth::2", "world:anyone:1 digest:u:p:2 digest:v:q:2"},
        {"digest:v:q:31 auth::31", "digest:v:q:31 digest:u:p:31"},
        {"digest:u:p:1 digest:u:p:2 digest:u:p:1", "digest:u:p:1 digest:u:p:2"},
        {OPEN " " OPEN, OPEN},
        {"world:anyone:1 digest:bad:31", NULL},
    };
    struct world w;
    (void)state;
    world_open(&w);
    for (size_t i = 0; i < COUNT(rows); i++) {
        become(&w, "ip:127.0.0.1 digest:u:p digest:v:q");
        int32_t err = create_with(&w, TEXT("/a"), "", rows[i].acl, 0);
        if (err != (rows[i].kept ? ZK_OK : ZK_INVALIDACL))
            fail_msg("%s: %d", rows[i].acl, (int)err);
        if (!rows[i].kept) continue;
        node_id id = tree_find(&w.tree, TEXT("/a"));
        struct zk_acls found = acl_list(&w.tree, w.tree.node[id].acl);
        struct zk_acls expected = acls_of(rows[i].kept);
        assert_int_equal(found.count, expected.count);
        assert_int_equal(found.size, expected.size);
        assert_memory_equal(found.at, expected.at, expected.size);
        assert_int_equal(delete_node(&w, "/a", -1), ZK_OK);
    }
    become(&w, "ip:127.0.0.1"); /* an address proves nothing */
    assert_int_equal(create_with(&w, TEXT("/a"), "", "auth::31", 0), ZK_INVALIDACL);
    world_close(&w);
}

static void certificates_are_valid_where_they_are_used(void **state) {
    struct world w;
    (void)state;
    world_open(&w);
    w.tree.rules |= TREE_X509;
    assert_int_equal(create_with(&w, TEXT("/a"), "", "x509:CN=u:31", 0), ZK_OK);
    assert_int_equal(create_with(&w, TEXT("/b"), "", "x509::31", 0), ZK_INVALIDACL);
    become(&w, "x509:CN=u");
    assert_int_equal(set_data(&w, "/a", "", -1), ZK_OK);
    assert_int_equal(create_with(&w, TEXT("/b"), "", "auth::31", 0), ZK_OK);
    become(&w, "x509:CN=v");
    assert_int_equal(set_data(&w, "/a", "", -1), ZK_NOAUTH);
    world_close(&w);
}

/* A null list differs from an empty one on the wire, but means the same. */
static void a_null_list_is_refused(void **state) {
    struct world w;
    struct zk_create_request r = {TEXT("/a"), TEXT(""), {NULL, 0, -1}, 0};
    (void)state;
    world_open(&w);
    assert_int_equal(ask(&w, ZK_OP_CREATE, &r), ZK_INVALIDACL);
    world_close(&w);
}

/* ---- Permission ---- */

static void identities_match_or_not(void **state) {
    static const struct {
        const char *acl, *who;
        bool allowed;
    } rows[] = {
        {"world:anyone:2", "", true},
        {"world:anyone:29", "digest:u:p", false}, /* everything but writing */
        {"digest:u:p:2", "digest:u:p", true},
        {"digest:u:p:2", "digest:v:q digest:u:p", true},
        {"digest:u:p:2", "digest:u:q", false},
        {"digest:u:p:2", "sasl:u:p", false},
        {"digest:u:p:2", "", false},
        {"digest:u:p:29", "digest:u:p", false},
        {"digest:u:p:29 digest:u:p:2", "digest:u:p", true},
        {"digest:u:p:29 digest:v:q:2", "digest:u:p", false},
        {"digest:u:p:0", "super:", true},
        {"ip:10.1.2.3:2", "ip:10.1.2.3", true},
        {"ip:10.1.2.3:2", "ip:10.1.2.4", false},
        {"ip:10.1.2.3/31:2", "ip:10.1.2.2", true},
        {"ip:10.1.2.3/31:2", "ip:10.1.2.4", false},
        {"ip:10.1.2.3/8:2", "ip:10.255.0.1", true},
        {"ip:10.1.2.3/8:2", "ip:11.1.2.3", false},
        {"ip:10.1.2.3/1:2", "ip:127.0.0.1", true},
        {"ip:10.1.2.3/1:2", "ip:128.0.0.1", false},
        {"ip:10.1.2.3/0:2", "ip:200.0.0.1", true},
        {"ip:10.1.2.3/0:2", "ip:::1", false},
        {"ip:10.1.2.3/32:2", "ip:10.1.2.3", true},
        {"ip:10.1.2.3:2", "digest:10.1.2.3", false},
    };
    struct world w;
    (void)state;
    world_open(&w);
    for (size_t i = 0; i < COUNT(rows); i++) {
        become(&w, "");
        assert_int_equal(create_with(&w, TEXT("/a"), "", rows[i].acl, 0), ZK_OK);
        become(&w, rows[i].who);
        if (set_data(&w, "/a", "", -1) != (rows[i].allowed ? ZK_OK : ZK_NOAUTH))
            fail_msg("%s by %s", rows[i].acl, rows[i].who);
        w.tree.rules |= TREE_SKIP_ACL;
        assert_int_equal(set_data(&w, "/a", "", -1), ZK_OK);
        w.tree.rules &= ~TREE_SKIP_ACL;
        assert_int_equal(delete_node(&w, "/a", -1), ZK_OK);
    }
    world_close(&w);
}

/* An entry is applied with the rules it carries: a server that changes its settings later does not
 * change the result. */
static void an_entry_brings_its_rules(void **state) {
    struct world w;
    struct zk_set_data_request r = {TEXT("/a"), TEXT("x"), -1};
    (void)state;
    world_open(&w);
    create_with(&w, TEXT("/a"), "", "world:anyone:1", 0);
    zk_write_set_data_request((w.body.used = 0, &w.body), &r);
    struct tree_entry entry = {.session = FIRST_SESSION,
                               .op = ZK_OP_SET_DATA,
                               .rules = TREE_SKIP_ACL,
                               .body = zk_in_of(w.body.at, w.body.used)};
    assert_int_equal(tree_apply(&w.tree, w.tree.zxid + 1, &entry, &w.reply), ZK_OK);
    assert_int_equal(w.tree.rules, TREE_EXTENDED_TYPES);
    w.tree.rules = TREE_SKIP_ACL;
    entry.rules = 0;
    assert_int_equal(tree_apply(&w.tree, w.tree.zxid + 1, &entry, &w.reply), ZK_NOAUTH);
    assert_int_equal(w.tree.rules, TREE_SKIP_ACL);
    world_close(&w);
}

/* Each operation checks the permission that it needs. */
static void each_operation_needs_its_permission(void **state) {
    struct world w;
    char acl[32];
    (void)state;
    world_open(&w);
    for (int32_t perms = 0; perms <= ACL_ALL; perms++) {
        become(&w, "super:");
        assert_int_equal(create(&w, "/a", 0), ZK_OK);
        assert_int_equal(create(&w, "/a/b", 0), ZK_OK);
        snprintf(acl, sizeof acl, "world:anyone:%d", perms);
        assert_int_equal(set_acl(&w, "/a", acl, -1), ZK_OK);
        become(&w, "");
        struct zk_clients nobody = identities_of(&w);
        union zk_request read = {.exists = {TEXT("/a"), false}};
#define EXPECT(CALL, ERR, BITS) assert_int_equal(CALL, perms &(BITS) ? ERR : ZK_NOAUTH)
#define READ(OP)                tree_read(&w.tree, OP, &read, w.session, &nobody, &w.reply)
        EXPECT(create(&w, "/a/c", 0), ZK_OK, ACL_CREATE);
        EXPECT(delete_node(&w, "/a/b", -1), ZK_OK, ACL_DELETE);
        EXPECT(set_data(&w, "/a", "", -1), ZK_OK, ACL_WRITE);
        EXPECT(READ(ZK_OP_GET_DATA), ZK_OK, ACL_READ);
        EXPECT(READ(ZK_OP_GET_CHILDREN), ZK_OK, ACL_READ);
        EXPECT(READ(ZK_OP_GET_CHILDREN2), ZK_OK, ACL_READ);
        EXPECT(READ(ZK_OP_GET_ALL_CHILDREN_NUMBER), ZK_OK, ACL_READ);
        EXPECT(READ(ZK_OP_GET_ACL), ZK_OK, ACL_READ | ACL_ADMIN);
        assert_int_equal(READ(ZK_OP_EXISTS), ZK_OK);
        EXPECT(set_acl(&w, "/a", acl, -1), ZK_OK, ACL_ADMIN);
        become(&w, "super:");
        if (exists(&w, "/a/b")) delete_node(&w, "/a/b", -1);
        if (exists(&w, "/a/c")) delete_node(&w, "/a/c", -1);
        assert_int_equal(delete_node(&w, "/a", -1), ZK_OK);
    }
    world_close(&w);
}

/* A long list grants what its entries grant one by one, to whoever asks. */
static void long_lists_grant_what_their_entries_do(void **state) {
    enum { ROUNDS = 400, ENTRIES_MAX = 40 };
    static const char *const ids[] = {
        "digest:u:p",     "digest:v:q",  "ip:10.0.0.0/8",      "ip:10.1.2.3",     "ip:10.1.0.0/16",
        "ip:0.0.0.0/0",   "x509:CN=u",   "digest:w:r",         "ip:10.1.2.99/24", "ip:10.1.2.2/31",
        "ip:10.0.0.1/16", "ip:10.1.2.4", "ip:255.255.255.255", "ip:192.0.0.0/2",  "world:anyone"};
    static const char *const callers[] = {"digest:u:p",
                                          "ip:10.1.2.3 digest:x:y",
                                          "ip:10.9.9.9 x509:CN=u",
                                          "ip:192.168.0.1",
                                          "digest:w:r digest:v:q",
                                          "",
                                          "ip:10.1.2.4",
                                          "ip:255.255.255.255",
                                          "ip:0.0.0.0",
                                          "ip:10.1.3.0",
                                          "super:"};
    struct world w;
    struct rng rng;
    unsigned granted = 0, denied = 0;
    (void)state;
    world_open(&w);
    rng_seed(&rng, 5);
    for (int round = 0; round < ROUNDS; round++) {
        char text[ENTRIES_MAX * 64] = "", entry[ENTRIES_MAX][64];
        int count = 9 + (int)rng_below(&rng, ENTRIES_MAX - 8);
        uint64_t kinds = 1 + rng_below(&rng, COUNT(ids));
        for (int i = 0; i < count; i++) {
            sprintf(entry[i], "%s:%d", ids[rng_below(&rng, kinds)], (int)rng_below(&rng, 32));
            strcat(strcat(text, i ? " " : ""), entry[i]);
        }
        struct zk_acls list = acls_of(text);
        uint32_t whole = acl_take(&w.tree, &list);
        become(&w, callers[round % (int)COUNT(callers)]);
        struct zk_clients caller = identities_of(&w);
        int32_t permission = 1 << rng_below(&rng, 5);
        bool expected = false;
        for (int i = 0; i < count; i++) {
            list = acls_of(entry[i]);
            uint32_t one = acl_take(&w.tree, &list);
            expected |= acl_allows(&w.tree, one, permission, &caller);
            acl_drop(&w.tree, one);
        }
        assert_int_equal(acl_allows(&w.tree, whole, permission, &caller), expected);
        *(expected ? &granted : &denied) += 1;
        acl_drop(&w.tree, whole);
    }
    assert_true(granted > 50 && denied > 50);
    world_close(&w);
}

/* A list without references is freed, and its slot reused. */
static void lists_are_kept_once(void **state) {
    struct world w;
    (void)state;
    world_open(&w);
    uint32_t slots = w.tree.acls.slots;
    for (int i = 0; i < 100; i++) {
        char acl[32];
        snprintf(acl, sizeof acl, "digest:u:%d:31", i);
        assert_int_equal(create_with(&w, TEXT("/a"), "", acl, 0), ZK_OK);
        assert_int_equal(create_with(&w, TEXT("/b"), "", acl, 0), ZK_OK);
        assert_int_equal(w.tree.node[tree_find(&w.tree, TEXT("/a"))].acl,
                         w.tree.node[tree_find(&w.tree, TEXT("/b"))].acl);
        delete_node(&w, "/a", -1);
        delete_node(&w, "/b", -1);
    }
    assert_in_range(w.tree.acls.slots, slots, slots + 2); /* events keep references for a while */
    world_close(&w);
}

/* ---- Reading ---- */

static int32_t read_as(struct world *w, int32_t op, struct zk_text path, const char *who) {
    union zk_request r = {.exists = {path, false}};
    become(w, who);
    struct zk_clients identities = identities_of(w);
    w->reply.used = 0;
    return tree_read(&w->tree, op, &r, w->session, &identities, &w->reply);
}

static void reading_a_missing_node(void **state) {
    static const int32_t ops[] = {ZK_OP_EXISTS,       ZK_OP_GET_DATA,
                                  ZK_OP_GET_CHILDREN, ZK_OP_GET_CHILDREN2,
                                  ZK_OP_GET_ACL,      ZK_OP_GET_ALL_CHILDREN_NUMBER};
    struct world w;
    (void)state;
    world_open(&w);
    create(&w, "/a", 0);
    for (size_t i = 0; i < COUNT(ops); i++) {
        static const struct zk_text none[] = {TEXT("/none"), TEXT("/a/"), TEXT("a"), TEXT("//"),
                                              TEXT("/a/.")};
        for (size_t j = 0; j < COUNT(none); j++)
            assert_int_equal(read_as(&w, ops[i], none[j], ""), ZK_NONODE);
        assert_int_equal(read_as(&w, ops[i], zk_null(), ""), ZK_MARSHALLINGERROR);
        assert_int_equal(read_as(&w, ops[i], TEXT("/a\0"), ""),
                         ops[i] == ZK_OP_EXISTS ? ZK_BADARGUMENTS : ZK_NONODE);
        assert_int_equal(read_as(&w, ops[i], TEXT("/a"), ""), ZK_OK);
    }
    world_close(&w);
}

static void secrets_are_shown_to_administrators_only(void **state) {
    static const char acl[] = "world:anyone:1 digest:u:secret:16 digest::secret:31 ip:1.2.3.4:1";
    static const char masked[] = "world:anyone:1 digest:u:x:16 digest::x:31 ip:1.2.3.4:1";
    struct world w;
    (void)state;
    world_open(&w);
    create_with(&w, TEXT("/a"), "", acl, 0);
    for (int admin = 0; admin <= 1; admin++) {
        struct zk_get_acl_response r = {0};
        assert_int_equal(
            read_as(&w, ZK_OP_GET_ACL, TEXT("/a"), admin ? "digest:u:secret" : "digest:u:guess"),
            ZK_OK);
        struct zk_in in = zk_in_of(w.reply.at, w.reply.used);
        assert_true(zk_read_get_acl_response(&in, &r));
        struct zk_acls expected = acls_of(admin ? acl : masked);
        assert_int_equal(r.acl.count, expected.count);
        assert_int_equal(r.acl.size, expected.size);
        assert_memory_equal(r.acl.at, expected.at, expected.size);
    }
    world_close(&w);
}

static void expect_ephemerals(struct world *w, struct zk_text prefix, int32_t count) {
    struct zk_get_ephemerals_response r = {0};
    assert_int_equal(read_as(w, ZK_OP_GET_EPHEMERALS, prefix, ""), ZK_OK);
    struct zk_in in = zk_in_of(w->reply.at, w->reply.used);
    assert_true(zk_read_get_ephemerals_response(&in, &r));
    assert_int_equal(r.ephemerals.count, count);
}

static void ephemerals_of_a_session(void **state) {
    struct world w;
    (void)state;
    world_open(&w);
    open_session(&w, 5);
    create(&w, "/d", 0);
    create(&w, "/d/one", ZK_EPHEMERAL);
    create(&w, "/dd", ZK_EPHEMERAL);
    w.session = 5;
    create(&w, "/d/two", ZK_EPHEMERAL);
    expect_ephemerals(&w, TEXT("/"), 1);
    w.session = FIRST_SESSION;
    expect_ephemerals(&w, TEXT("/"), 2);
    expect_ephemerals(&w, zk_null(), 2);
    expect_ephemerals(&w, TEXT(""), 2);
    expect_ephemerals(&w, TEXT("/d"), 2); /* a prefix of the text, not an ancestor */
    expect_ephemerals(&w, TEXT("/d/"), 1);
    expect_ephemerals(&w, TEXT("/none"), 0);
    w.session = 6;
    expect_ephemerals(&w, TEXT("/"), 0);
    world_close(&w);
}

static int32_t descendants(struct world *w, struct zk_text path) {
    int32_t count = -1;
    assert_int_equal(read_as(w, ZK_OP_GET_ALL_CHILDREN_NUMBER, path, ""), ZK_OK);
    zk_read_i32(&(struct zk_in){w->reply.at, w->reply.at + w->reply.used}, &count);
    return count;
}

static void children_are_counted_and_named(void **state) {
    struct world w;
    struct zk_get_children2_response r = {0};
    struct zk_text name;
    unsigned seen = 0;
    (void)state;
    world_open(&w);
    create(&w, "/d", 0);
    create(&w, "/d/0", 0);
    create(&w, "/d/0/below", 0);
    create(&w, "/d/1", ZK_EPHEMERAL);
    create(&w, "/d/2", 0);
    assert_int_equal(descendants(&w, TEXT("/d")), 4);
    assert_int_equal(descendants(&w, TEXT("/d/1")), 0);
    assert_int_equal(descendants(&w, TEXT("/")), 8);
    assert_int_equal(read_as(&w, ZK_OP_GET_CHILDREN2, TEXT("/d"), ""), ZK_OK);
    struct zk_in in = zk_in_of(w.reply.at, w.reply.used);
    assert_true(zk_read_get_children2_response(&in, &r));
    assert_int_equal(r.children.count, 3);
    while (zk_texts_next(&r.children, &name)) {
        assert_int_equal(name.size, 1);
        seen |= 1u << (name.at[0] - '0');
    }
    assert_int_equal(seen, 7);
    assert_int_equal(r.stat.num_children, 3);
    assert_int_equal(read_as(&w, ZK_OP_GET_CHILDREN, TEXT("/d/1"), ""), ZK_OK);
    assert_int_equal(w.reply.used, 4); /* none: an empty list, not null */
    assert_int_equal(w.reply.at[0] | w.reply.at[1] | w.reply.at[2] | w.reply.at[3], 0);
    world_close(&w);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lists_are_valid_or_not),
        cmocka_unit_test(certificates_are_valid_where_they_are_used),
        cmocka_unit_test(a_null_list_is_refused),
        cmocka_unit_test(identities_match_or_not),
        cmocka_unit_test(an_entry_brings_its_rules),
        cmocka_unit_test(each_operation_needs_its_permission),
        cmocka_unit_test(long_lists_grant_what_their_entries_do),
        cmocka_unit_test(lists_are_kept_once),
        cmocka_unit_test(reading_a_missing_node),
        cmocka_unit_test(secrets_are_shown_to_administrators_only),
        cmocka_unit_test(ephemerals_of_a_session),
        cmocka_unit_test(children_are_counted_and_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
