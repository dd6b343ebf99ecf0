/* What an ensemble needs of the tree: each server's entries are applied once and in order, a
 * session is at one server, and only the current leader expires it. */
#include "tree_help.h"

enum { TERM = 5 };
static const uint64_t ONE = 0x1101, ONE_AGAIN = 0x2201,
                      TWO = 0x1102; /* incarnations of servers 1 and 2 */

struct said { /* an entry without its request */
    uint64_t incarnation, sequence;
    int64_t session;
    int32_t rules;
};

static int64_t zxid_in(struct world *w, int64_t term) {
    return tree_next_zxid(&w->tree, (uint64_t)term);
}

static int32_t put(struct world *w, struct said said, int32_t op, int64_t term) {
    struct tree_entry entry = {.time = w->time,
                               .incarnation = said.incarnation,
                               .sequence = said.sequence,
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

/* Opens a session at a server, or reconnects it there. */
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

/* ---- Sequence numbers ---- */

static void an_entry_is_applied_once(void **state) {
    struct world w = opened();
    (void)state;
    assert_int_equal(put_session(&w, (struct said){ONE, 1, 7, 0}, ZK_OP_CREATE_SESSION, 1), ZK_OK);
    assert_int_equal(put_create(&w, (struct said){ONE, 2, 7, 0}, "/s-", ZK_SEQUENTIAL), ZK_OK);
    int64_t zxid = w.tree.zxid;
    assert_int_equal(put_create(&w, (struct said){ONE, 2, 7, 0}, "/s-", ZK_SEQUENTIAL),
                     TREE_OUT_OF_SEQUENCE);
    assert_int_equal(put_create(&w, (struct said){ONE, 1, 7, 0}, "/s-", ZK_SEQUENTIAL),
                     TREE_OUT_OF_SEQUENCE);
    assert_int_equal(w.tree.zxid, zxid);
    assert_int_equal(w.tree.events, 0);
    assert_false(exists(&w, "/s-0000000001"));
    closed(&w);
}

static void an_entry_waits_for_those_before_it(void **state) {
    struct world w = opened();
    (void)state;
    assert_int_equal(put_session(&w, (struct said){ONE, 1, 7, 0}, ZK_OP_CREATE_SESSION, 1), ZK_OK);
    assert_int_equal(put_create(&w, (struct said){ONE, 3, 7, 0}, "/b", 0), TREE_OUT_OF_SEQUENCE);
    assert_false(exists(&w, "/b"));
    assert_int_equal(put_create(&w, (struct said){ONE, 2, 7, 0}, "/a", 0), ZK_OK);
    assert_int_equal(put_create(&w, (struct said){ONE, 3, 7, 0}, "/b", 0), ZK_OK);
    closed(&w);
}

static void each_incarnation_has_its_own_sequence(void **state) {
    struct world w = opened();
    (void)state;
    assert_int_equal(put_session(&w, (struct said){ONE, 1, 7, 0}, ZK_OP_CREATE_SESSION, 1), ZK_OK);
    assert_int_equal(put_session(&w, (struct said){TWO, 1, 8, 0}, ZK_OP_CREATE_SESSION, 1), ZK_OK);
    assert_int_equal(put_create(&w, (struct said){ONE_AGAIN, 2, 7, 0}, "/a", 0),
                     TREE_OUT_OF_SEQUENCE);
    assert_int_equal(put_create(&w, (struct said){ONE_AGAIN, 1, 7, 0}, "/a", 0), ZK_OK);
    assert_int_equal(put_create(&w, (struct said){ONE, 2, 7, 0}, "/late", 0), TREE_OUT_OF_SEQUENCE);
    assert_int_equal(put_create(&w, (struct said){TWO, 2, 8, 0}, "/b", 0), ZK_OK);
    closed(&w);
}

/* ---- Sessions ---- */

static void a_session_is_at_one_server(void **state) {
    struct world w = opened();
    (void)state;
    put_session(&w, (struct said){ONE, 1, 7, 0}, ZK_OP_CREATE_SESSION, 1);
    int64_t zxid = w.tree.zxid;
    assert_int_equal(put_session(&w, (struct said){TWO, 1, 7, 0}, TREE_OP_ATTACH, 2),
                     ZK_SESSIONEXPIRED); /* the wrong password */
    assert_int_equal(put_session(&w, (struct said){TWO, 2, 9, 0}, TREE_OP_ATTACH, 1),
                     ZK_SESSIONEXPIRED);
    assert_int_equal(put_create(&w, (struct said){ONE, 2, 7, 0}, "/e", ZK_EPHEMERAL), ZK_OK);
    assert_int_equal(put_session(&w, (struct said){TWO, 3, 7, 0}, TREE_OP_ATTACH, 1), ZK_OK);
    assert_int_equal(w.tree.zxid, zxid + 1); /* a reconnect takes no zxid */
    assert_int_equal(put_create(&w, (struct said){ONE, 3, 7, 0}, "/a", 0), ZK_SESSIONMOVED);
    assert_int_equal(put_end(&w, (struct said){ONE, 4, 7, 0}), ZK_SESSIONMOVED);
    assert_true(exists(&w, "/e"));
    assert_int_equal(put_create(&w, (struct said){TWO, 4, 7, 0}, "/b", 0), ZK_OK);
    assert_int_equal(put_end(&w, (struct said){TWO, 5, 7, 0}), ZK_OK);
    assert_false(exists(&w, "/e"));
    closed(&w);
}

static void an_expiry_holds_in_its_term(void **state) {
    struct world w = opened();
    (void)state;
    put_session(&w, (struct said){ONE, 1, 7, 0}, ZK_OP_CREATE_SESSION, 1);
    put_session(&w, (struct said){ONE, 2, 8, 0}, ZK_OP_CREATE_SESSION, 1);
    put_create(&w, (struct said){ONE, 3, 7, 0}, "/e", ZK_EPHEMERAL);
    /* By a former leader, before the client reconnected, and a valid one. */
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
    struct tree_members entry = {.time = w->time, .text = zk_text_of(members)};
    unsigned char bytes[256];
    struct tree_members read;
    tree_store_members(bytes, &entry);
    assert_true(tree_read_members(zk_in_of(bytes, tree_members_size(&entry)), &read));
    tree_configure(&w->tree, zxid_in(w, TERM), &read);
}

static void members_can_be_read(void **state) {
    struct world w = opened();
    (void)state;
    configure(&w, ""); /* a standalone server */
    assert_string_equal(config_of(&w), "");
    assert_int_equal(w.tree.zxid, 0);
    configure(&w, "server.1=a:1:2\nserver.2=b:1:2");
    assert_string_equal(config_of(&w), "server.1=a:1:2\nserver.2=b:1:2\nversion=500000001");
    assert_int_equal(w.tree.events, 1);
    int64_t zxid = w.tree.zxid;
    configure(&w, "server.1=a:1:2\nserver.2=b:1:2"); /* by another leader */
    assert_int_equal(w.tree.zxid, zxid);
    assert_int_equal(w.tree.events, 0);
    configure(&w, "server.1=a:1:2"); /* the new text is a prefix of the old one */
    assert_string_equal(config_of(&w), "server.1=a:1:2\nversion=500000002");
    closed(&w);
}

static void a_version_is_the_one_that_clients_know(void **state) {
    struct world w = opened();
    unsigned char bytes[256];
    struct tree_members read;
    (void)state;
    struct tree_members first = {.text = zk_text_of("server.1=a:1:2"), .version = 5LL << 32};
    tree_store_members(bytes, &first);
    assert_true(tree_read_members(zk_in_of(bytes, tree_members_size(&first)), &read));
    assert_int_equal(read.version, 5LL << 32);
    assert_true(zk_text_equal(read.text, first.text));
    tree_configure(&w.tree, zxid_in(&w, TERM), &read);
    assert_string_equal(config_of(&w), "server.1=a:1:2\nversion=500000000");
    assert_int_equal(tree_members_version(&w.tree), 5LL << 32);
    assert_int_equal(tree_members_zxid(&w.tree), (5LL << 32) + 1);
    /* What is no such line is a part of the text. */
    first = (struct tree_members){.text = zk_text_of("version=0000000500000000,server.1=a:1:2")};
    tree_store_members(bytes, &first);
    assert_true(tree_read_members(zk_in_of(bytes, tree_members_size(&first)), &read));
    assert_int_equal(read.version, 0);
    assert_true(zk_text_equal(read.text, first.text));
    closed(&w);
}

/* A server of an older version takes the line for a part of the list: in entries that it appends
 * when it leads, and in its tree. */
static void what_an_older_server_made_of_a_version(void **state) {
    static const char list[] = "server.1=a:1:2";
    static const char kept[] = "version=0000000300000001\nserver.1=a:1:2";
    struct world w = opened();
    unsigned char bytes[256];
    struct tree_members read, entry = {.text = zk_text_of(kept), .version = (4LL << 32) + 1};
    (void)state;
    tree_store_members(bytes, &entry);
    assert_true(tree_read_members(zk_in_of(bytes, tree_members_size(&entry)), &read));
    assert_int_equal(read.version, (4LL << 32) + 1);
    assert_true(zk_text_equal(read.text, zk_text_of(list)));
    tree_configure(&w.tree, zxid_in(&w, TERM), &(struct tree_members){.text = zk_text_of(kept)});
    assert_string_equal(config_of(&w),
                        "version=0000000300000001\nserver.1=a:1:2\nversion=500000001");
    assert_true(zk_text_equal(tree_members_text(&w.tree), zk_text_of(list)));
    assert_int_equal(tree_members_version(&w.tree), (5LL << 32) + 1);
    closed(&w);
}

/* ---- Snapshots ---- */

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

static void a_snapshot_has_sequence_numbers_and_servers(void **state) {
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
    assert_int_equal(put_create(&w, (struct said){TWO, 1, 7, 0}, "/again", 0),
                     TREE_OUT_OF_SEQUENCE);
    assert_int_equal(put_create(&w, (struct said){ONE, 2, 7, 0}, "/a", 0), ZK_SESSIONMOVED);
    assert_int_equal(put_create(&w, (struct said){TWO, 2, 7, 0}, "/a", 0), ZK_OK);
    assert_int_equal(put_expiry(&w, (struct said){ONE, 3, 7, 0}, TERM, 0, TERM), ZK_SESSIONMOVED);
    assert_int_equal(put_expiry(&w, (struct said){ONE, 4, 7, 0}, TERM, 1, TERM), ZK_OK);
    bytes_close(&kept.bytes);
    closed(&w);
}

/* What the members are to become. */
static const char *target_of(const struct world *w) {
    static char text[256];
    snprintf(text, sizeof text, "%.*s", (int)w->tree.target.used, (const char *)w->tree.target.at);
    return text;
}

static int32_t put_reconfig(struct world *w, uint64_t sequence, const char *joining,
                            const char *leaving) {
    struct zk_reconfig_request r = {zk_text_of(joining), zk_text_of(leaving), {NULL, -1}, -1};
    w->body.used = 0;
    zk_write_reconfig_request(&w->body, &r);
    return put(w, (struct said){ONE, sequence, 0, TREE_INTERNAL}, ZK_OP_RECONFIG, TERM);
}

#define A "server.1=a:1:2:participant"
#define B "server.2=b:1:2:participant"
#define C "server.3=c:1:2:participant"

static void the_target_of_a_change_is_a_part_of_the_tree(void **state) {
    struct world w = opened();
    struct kept kept = {0};
    const char *why = NULL;
    (void)state;
    configure(&w, A "\n" B);
    assert_int_equal(put_reconfig(&w, 1, C, ""), ZK_OK);
    assert_string_equal(target_of(&w), A "\n" B "\n" C);
    assert_int_equal(tree_save(&w.tree, keep, &kept), 0);
    tree_close(&w.tree);
    assert_int_equal(tree_open(&w.tree, 2), 0);
    assert_int_equal(tree_load(&w.tree, give, &kept, &why), 0);
    assert_string_equal(target_of(&w), A "\n" B "\n" C);
    assert_int_equal(put_reconfig(&w, 2, "", "2"), ZK_OK); /* goes on from the target */
    assert_string_equal(target_of(&w), A "\n" C);
    assert_int_equal(put_reconfig(&w, 3, "nonsense", ""), ZK_BADARGUMENTS);
    assert_int_equal(put_reconfig(&w, 4, "", "1,3"), ZK_NEWCONFIGNOQUORUM);
    assert_string_equal(target_of(&w), A "\n" C); /* as it was */
    configure(&w, A "\n" B "\n" C);               /* a step */
    assert_string_equal(target_of(&w), A "\n" C);
    configure(&w, A "\n" C); /* the last */
    assert_string_equal(target_of(&w), "");
    assert_int_equal(put_reconfig(&w, 5, "", "3"), ZK_OK);
    assert_string_equal(target_of(&w), A);
    assert_int_equal(put_reconfig(&w, 6, "", ""), ZK_OK); /* ends the change */
    assert_string_equal(target_of(&w), "");
    assert_int_equal(put_reconfig(&w, 7, A, ""), ZK_OK); /* nothing changes */
    assert_string_equal(target_of(&w), "");
    /* A snapshot without a target has none, whatever the tree had before. */
    kept.bytes.used = kept.at = 0;
    assert_int_equal(tree_save(&w.tree, keep, &kept), 0);
    assert_int_equal(put_reconfig(&w, 8, "", "3"), ZK_OK);
    assert_int_equal(tree_load(&w.tree, give, &kept, &why), 0);
    assert_string_equal(target_of(&w), "");
    bytes_close(&kept.bytes);
    closed(&w);
}

/* A client's request, without any identity. */
static int32_t ask_reconfig(struct world *w, uint64_t sequence, const char *joining,
                            const char *leaving, int64_t version) {
    struct zk_reconfig_request r = {zk_text_of(joining), zk_text_of(leaving), {NULL, -1}, version};
    w->body.used = 0;
    zk_write_reconfig_request(&w->body, &r);
    return put(w, (struct said){ONE, sequence, 7, TREE_RECONFIG}, ZK_OP_RECONFIG, TERM);
}

static void permission_is_asked_for_last(void **state) {
    struct world w = opened();
    (void)state;
    configure(&w, A "\n" B);
    put_session(&w, (struct said){ONE, 1, 7, 0}, ZK_OP_CREATE_SESSION, 1);
    assert_int_equal(ask_reconfig(&w, 2, "nonsense", "", 77), ZK_BADVERSION);
    assert_int_equal(ask_reconfig(&w, 3, "nonsense", "", -1), ZK_BADARGUMENTS);
    assert_int_equal(ask_reconfig(&w, 4, "server.x=a:1:2", "", -1), ZK_MARSHALLINGERROR);
    assert_int_equal(ask_reconfig(&w, 5, "", "x", -1), ZK_MARSHALLINGERROR);
    assert_int_equal(ask_reconfig(&w, 6, "", "1,2", -1), ZK_NEWCONFIGNOQUORUM);
    assert_int_equal(ask_reconfig(&w, 7, C, "", -1), ZK_NOAUTH);
    assert_int_equal(ask_reconfig(&w, 8, "", "", -1), ZK_NOAUTH);
    assert_string_equal(target_of(&w), "");
    closed(&w);
}

/* A hostile member could send it. */
static void a_servers_own_request_owns_no_node(void **state) {
    struct world w = opened();
    (void)state;
    assert_int_equal(put_create(&w, (struct said){ONE, 1, 7, TREE_INTERNAL}, "/e", ZK_EPHEMERAL),
                     ZK_SESSIONEXPIRED);
    closed(&w);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_entry_is_applied_once),
        cmocka_unit_test(an_entry_waits_for_those_before_it),
        cmocka_unit_test(each_incarnation_has_its_own_sequence),
        cmocka_unit_test(a_session_is_at_one_server),
        cmocka_unit_test(an_expiry_holds_in_its_term),
        cmocka_unit_test(a_servers_own_request_owns_no_node),
        cmocka_unit_test(members_can_be_read),
        cmocka_unit_test(a_version_is_the_one_that_clients_know),
        cmocka_unit_test(what_an_older_server_made_of_a_version),
        cmocka_unit_test(permission_is_asked_for_last),
        cmocka_unit_test(a_snapshot_has_sequence_numbers_and_servers),
        cmocka_unit_test(the_target_of_a_change_is_a_part_of_the_tree),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
