/* What is refused before it goes into the log. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "service/server/internal.h"

#define MEMBERS "/zookeeper/config"

static struct server server;
static struct connection client;
static struct bytes body;

static int open_server(void **state) {
    (void)state;
    client = (struct connection){.server = &server};
    return tree_open(&server.tree, 7);
}

static int close_server(void **state) {
    (void)state;
    tree_close(&server.tree);
    bytes_close(&client.identities);
    bytes_close(&body);
    return 0;
}

static int32_t judge(int32_t op) {
    return cost_judge(&client, zk_op_of(op), zk_in_of(body.at, body.used));
}

static int32_t set_data(const char *path) {
    union zk_request r = {.set_data = {zk_text_of(path), zk_text_of("server.9=x"), -1}};
    body.used = 0;
    zk_op_of(ZK_OP_SET_DATA)->request->write(&body, &r);
    return judge(ZK_OP_SET_DATA);
}

/* The second of two operations. */
static int32_t set_data_in_multi(const char *path) {
    union zk_request first = {.delete = {zk_text_of("/a"), -1}};
    union zk_request second = {.set_data = {zk_text_of(path), zk_text_of("server.9=x"), -1}};
    body.used = 0;
    zk_write_multi_header(&body, &(struct zk_multi_header){ZK_OP_DELETE, false, -1});
    zk_op_of(ZK_OP_DELETE)->request->write(&body, &first);
    zk_write_multi_header(&body, &(struct zk_multi_header){ZK_OP_SET_DATA, false, -1});
    zk_op_of(ZK_OP_SET_DATA)->request->write(&body, &second);
    zk_write_multi_header(&body, &(struct zk_multi_header){-1, true, -1});
    return judge(ZK_OP_MULTI);
}

/* Who may write everything may not have it say something else than the members are. */
static void nobody_writes_the_members_by_hand(void **state) {
    (void)state;
    assert_int_equal(set_data(MEMBERS), ZK_NOAUTH);
    assert_int_equal(set_data_in_multi(MEMBERS), ZK_NOAUTH);
    assert_true(connection_add_identity(&client, "super", zk_text_of("")));
    assert_int_equal(set_data(MEMBERS), ZK_BADARGUMENTS);
    assert_int_equal(set_data_in_multi(MEMBERS), ZK_BADARGUMENTS);
    assert_int_equal(set_data("/zookeeper"), ZK_OK);
    assert_int_equal(set_data_in_multi("/zookeeper"), ZK_OK);
}

/* All servers have to answer it alike, as those do that have refused nothing yet. */
static void what_cannot_be_read_is_left_to_the_tree(void **state) {
    (void)state;
    body.used = 0;
    bytes_add(&body, "abc", 3);
    assert_int_equal(judge(ZK_OP_SET_DATA), ZK_OK);
    assert_int_equal(judge(ZK_OP_MULTI), ZK_OK);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(nobody_writes_the_members_by_hand, open_server,
                                        close_server),
        cmocka_unit_test_setup_teardown(what_cannot_be_read_is_left_to_the_tree, open_server,
                                        close_server),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
