/* What the tree sees to for an ensemble: that each server's entries take effect once and in their
 * order, where a session is, and that its end was decided by who leads. */
#include "tree_help.h"

enum { TERM = 5 };
static const uint64_t ONE = 0x1101, ONE_AGAIN = 0x2201, TWO = 0x1102; /* lives of servers 1 and 2 */

struct said { /* what an entry says beside the request */
    uint64_t life, number;
    int64_t session;
    int32_t rules;
};

static int64_t zxid_in(struct world *w, int64_t term) {
    return tree_next_zxid(&w->tree, (uint64_t)term);
}

static int32_t put(struct world *w, struct said said, int32_t op, int64_t term) {
    struct tree_entry entry = {.time = w->time,
                               .life = said.life,
                               .number = said.number,
                               .session = said.session,
                               .identities = identities_of(w),
                               .rules = w->tree.rules | said.rules,
                               .op = op,
                               .body = zk_in_of(w->body.at, w->body.used)};
    w->reply.used = 0;
    return tree_apply(&w->tree, zxid_in(w, term), &entry, &w->reply);
}

static int32_t put_create(struct world *w, struct said said, const char *path, int32_t flags) {
    struct zk_create_request r = {zk_text_of(path), zk_text_of(""), acls_of(OPEN), flags};
    w->body.used = 0;
    zk_op_of(ZK_OP_CREATE)->request->write(&w->body, (const void *)&r);
    return put(w, said, ZK_OP_CREATE, TERM);
}

/* Opens a session at a server, or has it go on there. */
static int32_t put_session(struct world *w, struct said said, int32_t op, int password) {
    w->body.used = 0;
    zk_write_i32(&w->body, 4000);
    memset(bytes_extend(&w->body, TREE_PASSWORD_SIZE), password, TREE_PASSWORD_SIZE);
    return put(w, said, op, TERM);
}

static int32_t put_end(struct world *w, struct said said) {
    w->body.used = 0;
    return put(w, said, ZK_OP_CLOSE_SESSION, TERM);
}

static int32_t put_expiry(struct world *w, struct said said, int64_t decided_in, int32_t moves,
                          int64_t applied_in) {
    w->body.used = 0;
    tree_store_expiry(bytes_extend(&w->body, TREE_EXPIRY_SIZE),
                      &(struct tree_expiry){decided_in, moves});
    said.rules = TREE_EXPIRES;
    return put(w, said, ZK_OP_CLOSE_SESSION, applied_in);
}

static struct world opened(void) {
    struct world w = {.time = FIRST_TIME};
    assert_int_equal(tree_open(&w.tree, 1), 0);
    return w;
}

static void closed(struct world *w) {
    tree_close(&w->tree);
    bytes_close(&w->body);
    bytes_close(&w->reply);
    bytes_close(&w->identities);
}

/* ---- Numbers ---- */

static void a_number_takes_effect_once(void **state) {
    struct world w = opened();
    (void)state;
    assert_int_equal(put_session(&w, (struct said){ONE, 1, 7, 0}, ZK_OP_CREATE_SESSION, 1), ZK_OK);
    assert_int_equal(put_create(&w, (struct said){ONE, 2, 7, 0}, "/s-", ZK_SEQUENTIAL), ZK_OK);
    int64_t zxid = w.tree.zxid;
    assert_int_equal(put_create(&w, (struct said){ONE, 2, 7, 0}, "/s-", ZK_SEQUENTIAL), TREE_AGAIN);
    assert_int_equal(put_create(&w, (struct said){ONE, 1, 7, 0}, "/s-", ZK_SEQUENTIAL), TREE_AGAIN);
    assert_int_equal(w.tree.zxid, zxid);
    assert_int_equal(w.tree.events, 0);
    assert_false(exists(&w, "/s-0000000001"));
    closed(&w);
}

static void a_number_waits_for_those_before_it(void **state) {
    struct world w = opened();
    (void)state;
    assert_int_equal(put_session(&w, (struct said){ONE, 1, 7, 0}, ZK_OP_CREATE_SESSION, 1), ZK_OK);
    assert_int_equal(put_create(&w, (struct said){ONE, 3, 7, 0}, "/b", 0), TREE_AGAIN);
    assert_false(exists(&w, "/b"));
    assert_int_equal(put_create(&w, (struct said){ONE, 2, 7, 0}, "/a", 0), ZK_OK);
    assert_int_equal(put_create(&w, (struct said){ONE, 3, 7, 0}, "/b", 0), ZK_OK);
    closed(&w);
}

static void servers_count_for_themselves_and_begin_again(void **state) {
    struct world w = opened();
    (void)state;
    assert_int_equal(put_session(&w, (struct said){ONE, 1, 7, 0}, ZK_OP_CREATE_SESSION, 1), ZK_OK);
    assert_int_equal(put_session(&w, (struct said){TWO, 1, 8, 0}, ZK_OP_CREATE_SESSION, 1), ZK_OK);
    assert_int_equal(put_create(&w, (struct said){ONE_AGAIN, 2, 7, 0}, "/a", 0), TREE_AGAIN);
    assert_int_equal(put_create(&w, (struct said){ONE_AGAIN, 1, 7, 0}, "/a", 0), ZK_OK);
    assert_int_equal(put_create(&w, (struct said){ONE, 2, 7, 0}, "/late", 0), TREE_AGAIN);
    assert_int_equal(put_create(&w, (struct said){TWO, 2, 8, 0}, "/b", 0), ZK_OK);
    closed(&w);
}

/* ---- Sessions ---- */

static void a_session_is_in_one_place(void **state) {
    struct world w = opened();
    (void)state;
    put_session(&w, (struct said){ONE, 1, 7, 0}, ZK_OP_CREATE_SESSION, 1);
    int64_t zxid = w.tree.zxid;
    assert_int_equal(put_session(&w, (struct said){TWO, 1, 7, 0}, TREE_OP_ATTACH, 2),
                     ZK_SESSIONEXPIRED); /* another's password */
    assert_int_equal(put_session(&w, (struct said){TWO, 2, 9, 0}, TREE_OP_ATTACH, 1),
                     ZK_SESSIONEXPIRED);
    assert_int_equal(put_create(&w, (struct said){ONE, 2, 7, 0}, "/e", ZK_EPHEMERAL), ZK_OK);
    assert_int_equal(put_session(&w, (struct said){TWO, 3, 7, 0}, TREE_OP_ATTACH, 1), ZK_OK);
    assert_int_equal(w.tree.zxid, zxid + 1); /* where it is changes nothing for anybody */
    assert_int_equal(put_create(&w, (struct said){ONE, 3, 7, 0}, "/a", 0), ZK_SESSIONMOVED);
    assert_int_equal(put_end(&w, (struct said){ONE, 4, 7, 0}), ZK_SESSIONMOVED);
    assert_true(exists(&w, "/e"));
    assert_int_equal(put_create(&w, (struct said){TWO, 4, 7, 0}, "/b", 0), ZK_OK);
    assert_int_equal(put_end(&w, (struct said){TWO, 5, 7, 0}), ZK_OK);
    assert_false(exists(&w, "/e"));
    closed(&w);
}

static void an_end_by_the_leader_counts_in_its_term(void **state) {
    struct world w = opened();
    (void)state;
    put_session(&w, (struct said){ONE, 1, 7, 0}, ZK_OP_CREATE_SESSION, 1);
    put_session(&w, (struct said){ONE, 2, 8, 0}, ZK_OP_CREATE_SESSION, 1);
    put_create(&w, (struct said){ONE, 3, 7, 0}, "/e", ZK_EPHEMERAL);
    /* By a former leader, before the session moved, and as it ought to be. */
    assert_int_equal(put_expiry(&w, (struct said){TWO, 1, 7, 0}, TERM - 1, 0, TERM),
                     ZK_SESSIONMOVED);
    put_session(&w, (struct said){ONE, 4, 7, 0}, TREE_OP_ATTACH, 1);
    assert_int_equal(put_expiry(&w, (struct said){TWO, 2, 7, 0}, TERM, 0, TERM), ZK_SESSIONMOVED);
    assert_true(exists(&w, "/e"));
    assert_int_equal(put_expiry(&w, (struct said){TWO, 3, 7, 0}, TERM, 1, TERM), ZK_OK);
    assert_false(exists(&w, "/e"));
    assert_int_equal(put_expiry(&w, (struct said){TWO, 4, 7, 0}, TERM, 1, TERM), ZK_SESSIONEXPIRED);
    assert_int_equal(session_find(&w.tree, 8) != 0, 1);
    closed(&w);
}

/* ---- Members ---- */

static const char *config_of(struct world *w) {
    static char text[256];
    struct zk_text data = node_data(&w->tree.node[tree_find(&w->tree, TEXT("/zookeeper/config"))]);
    snprintf(text, sizeof text, "%.*s", data.size > 0 ? data.size : 0, data.at);
    return text;
}

static void configure(struct world *w, const char *members) {
    struct tree_members entry = {w->time, zk_text_of(members)};
    unsigned char bytes[256];
    struct tree_members read;
    tree_store_members(bytes, &entry);
    assert_true(tree_read_members(zk_in_of(bytes, tree_members_size(&entry)), &read));
    tree_configure(&w->tree, zxid_in(w, TERM), &read);
}

static void members_are_there_to_read(void **state) {
    struct world w = opened();
    (void)state;
    configure(&w, ""); /* a server alone */
    assert_string_equal(config_of(&w), "");
    assert_int_equal(w.tree.zxid, 0);
    configure(&w, "server.1=a:1:2\nserver.2=b:1:2");
    assert_string_equal(config_of(&w), "server.1=a:1:2\nserver.2=b:1:2\nversion=500000001");
    assert_int_equal(w.tree.events, 1);
    int64_t zxid = w.tree.zxid;
    configure(&w, "server.1=a:1:2\nserver.2=b:1:2"); /* by another leader */
    assert_int_equal(w.tree.zxid, zxid);
    assert_int_equal(w.tree.events, 0);
    configure(&w, "server.1=a:1:2"); /* what is left is the beginning of what was there */
    assert_string_equal(config_of(&w), "server.1=a:1:2\nversion=500000002");
    closed(&w);
}

/* ---- All of it, kept ---- */

struct kept {
    struct bytes bytes;
    size_t at;
};

static int keep(void *context, const void *bytes, size_t size) {
    return bytes_add(&((struct kept *)context)->bytes, bytes, size), 0;
}

static int give(void *context, void *bytes, size_t size) {
    struct kept *kept = context;
    if (kept->bytes.used - kept->at < size) return -1;
    if (size) memcpy(bytes, kept->bytes.at + kept->at, size);
    kept->at += size;
    return 0;
}

static void a_snapshot_knows_numbers_and_places(void **state) {
    struct world w = opened();
    struct kept kept = {0};
    const char *why = NULL;
    (void)state;
    put_session(&w, (struct said){ONE, 1, 7, 0}, ZK_OP_CREATE_SESSION, 1);
    put_session(&w, (struct said){TWO, 1, 7, 0}, TREE_OP_ATTACH, 1);
    assert_int_equal(tree_save(&w.tree, keep, &kept), 0);
    tree_close(&w.tree);
    assert_int_equal(tree_open(&w.tree, 2), 0);
    assert_int_equal(tree_load(&w.tree, give, &kept, &why), 0);
    assert_int_equal(put_create(&w, (struct said){TWO, 1, 7, 0}, "/again", 0), TREE_AGAIN);
    assert_int_equal(put_create(&w, (struct said){ONE, 2, 7, 0}, "/a", 0), ZK_SESSIONMOVED);
    assert_int_equal(put_create(&w, (struct said){TWO, 2, 7, 0}, "/a", 0), ZK_OK);
    assert_int_equal(put_expiry(&w, (struct said){ONE, 3, 7, 0}, TERM, 0, TERM), ZK_SESSIONMOVED);
    assert_int_equal(put_expiry(&w, (struct said){ONE, 4, 7, 0}, TERM, 1, TERM), ZK_OK);
    bytes_close(&kept.bytes);
    closed(&w);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_number_takes_effect_once),
        cmocka_unit_test(a_number_waits_for_those_before_it),
        cmocka_unit_test(servers_count_for_themselves_and_begin_again),
        cmocka_unit_test(a_session_is_in_one_place),
        cmocka_unit_test(an_end_by_the_leader_counts_in_its_term),
        cmocka_unit_test(members_are_there_to_read),
        cmocka_unit_test(a_snapshot_knows_numbers_and_places),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
