/* The client library against a running server: $CLIENT_SERVER (host:port; ZooKeeper, for example),
 * or one of its own. */
#include "client_help.h"

#include <poll.h>
#include <time.h>

static struct cv_test_server *own;
static const char *server;

static struct cv_client *open_for(const char *address, uint32_t flags, int32_t session_ms) {
    struct cv_client *client;
    char why[1000];
    int error = cv_open(&client, &(struct cv_options){.servers = address,
                                                      .flags = flags,
                                                      .session_timeout = session_ms,
                                                      .connect_timeout = PATIENCE_MS});
    if (error) fail_msg("%s: %s", cv_error_text(error), cv_explain(client, why, sizeof why));
    return client;
}

static struct cv_client *open_at(const char *address, uint32_t flags) {
    return open_for(address, flags, 40000);
}

static void remove_tree(struct cv_client *client, const char *path) {
    struct cv_result *found;
    char child[500];
    if (cv_children(client, path, &found) == CV_OK)
        for (size_t i = 0; i < found->name_count; i++) {
            snprintf(child, sizeof child, "%s/%s", path, found->names[i]);
            remove_tree(client, child);
        }
    cv_result_free(found);
    cv_delete(client, path, -1);
}

/* A directory that only this test uses. */
static void clear(struct cv_client *client, const char *path) {
    remove_tree(client, path);
    assert_int_equal(cv_create_all(client, path, CV_PERSISTENT), CV_OK);
}

/* What watches have reported. */
struct seen {
    atomic_int count[8]; /* by type + 2 */
    char last[200];
};

static void note(enum cv_watch_type type, const char *path, void *arg) {
    struct seen *seen = arg;
    snprintf(seen->last, sizeof seen->last, "%s", path);
    seen->count[type + 2]++;
}

static int seen_of(struct seen *seen, int type) { return seen->count[type + 2]; }

static int call(struct cv_client *client, struct cv_op op, struct cv_result **result) {
    return cv_call(client, &op, result);
}

struct answer {
    atomic_int count;
    int error;
};

static void answered(const struct cv_result *result, void *arg) {
    struct answer *answer = arg;
    answer->error = result->error;
    answer->count++;
}

/* ---- Operations ---- */

static void all_operations(uint32_t flags) {
    struct cv_client *client = open_at(server, flags);
    struct cv_result *result;
    struct cv_stat stat;
    char path[100];
    clear(client, "/ops");
    assert_int_equal(cv_create(client, "/ops/a", "one", 3, 0, path, sizeof path), CV_OK);
    assert_string_equal(path, "/ops/a");
    assert_int_equal(cv_create(client, "/ops/a", "one", 3, 0, NULL, 0), CV_NODE_EXISTS);
    assert_int_equal(cv_create(client, "/ops/no/b", NULL, 0, 0, NULL, 0), CV_NO_NODE);
    assert_int_equal(
        cv_create(client, "/ops/s", NULL, 0, CV_EPHEMERAL | CV_SEQUENTIAL, path, sizeof path),
        CV_OK);
    assert_int_equal(strlen(path), strlen("/ops/s0000000000"));
    assert_int_equal(cv_get(client, "/ops/a", &result), CV_OK);
    assert_int_equal(result->size, 3);
    assert_string_equal(result->data, "one");
    assert_true(result->has_stat && result->zxid > 0);
    cv_result_free(result);
    assert_int_equal(cv_get(client, path, &result), CV_OK);
    assert_null(result->data);
    assert_true(result->stat.ephemeral_owner == cv_session_id(client));
    cv_result_free(result);
    assert_int_equal(cv_set(client, "/ops/a", "two!", 4, 0), CV_OK);
    assert_int_equal(cv_set(client, "/ops/a", "two!", 4, 0), CV_BAD_VERSION);
    assert_int_equal(cv_exists(client, "/ops/a", &stat), CV_OK);
    assert_int_equal(stat.version, 1);
    assert_int_equal(stat.data_length, 4);
    assert_int_equal(cv_exists(client, "/ops/b", &stat), CV_NO_NODE);
    assert_int_equal(cv_children(client, "/ops", &result), CV_OK);
    assert_int_equal(result->name_count, 2);
    assert_int_equal(result->stat.children, 2);
    cv_result_free(result);
    assert_int_equal(cv_delete(client, "/ops", -1), CV_NOT_EMPTY);

    struct cv_op writes[] = {cv_op_check("/ops/a", 1), cv_op_set("/ops/a", "x", 1, -1),
                             cv_op_create("/ops/m", "m", 1, 0), cv_op_delete("/ops/m", 0)};
    assert_int_equal(call(client, cv_op_multi(writes, 4), &result), CV_OK);
    assert_int_equal(result->result_count, 4);
    assert_int_equal(result->results[1].stat.version, 2);
    assert_string_equal(result->results[2].path, "/ops/m");
    cv_result_free(result);
    assert_int_equal(call(client, cv_op_multi(writes, 4), &result), CV_BAD_VERSION);
    assert_int_equal(result->result_count, 4);
    assert_int_equal(result->results[0].error, CV_BAD_VERSION);
    assert_int_not_equal(result->results[1].error, CV_OK);
    cv_result_free(result);
    struct cv_op reads[] = {cv_op_get("/ops/a"), cv_op_get("/ops/b"), cv_op_children("/ops")};
    assert_int_equal(call(client, cv_op_multi(reads, 3), &result), CV_OK);
    assert_string_equal(result->results[0].data, "x");
    assert_int_equal(result->results[1].error, CV_NO_NODE);
    assert_int_equal(result->results[2].name_count, 2);
    cv_result_free(result);

    struct cv_acl acl[] = {{CV_READ, "world", "anyone"}, {CV_ALL, "auth", ""}};
    struct cv_op op = {.type = CV_OP_AUTH, .path = "digest", .data = "ann:secret", .size = 10};
    assert_int_equal(cv_call(client, &op, NULL), CV_OK);
    op = (struct cv_op){
        .type = CV_OP_SET_ACL, .path = "/ops/a", .version = -1, .acl = acl, .acl_count = 2};
    assert_int_equal(cv_call(client, &op, NULL), CV_OK);
    op = (struct cv_op){.type = CV_OP_GET_ACL, .path = "/ops/a"};
    assert_int_equal(cv_call(client, &op, &result), CV_OK);
    assert_int_equal(result->acl_count, 2);
    assert_string_equal(result->acl[1].scheme, "digest");
    assert_int_equal(result->stat.aversion, 1);
    cv_result_free(result);
    op = (struct cv_op){.type = CV_OP_WHO_AM_I};
    assert_int_equal(cv_call(client, &op, &result), CV_OK);
    assert_int_equal(result->acl_count, 2); /* in no order, with the address */
    assert_true(strcmp(result->acl[0].id, "ann") == 0 || strcmp(result->acl[1].id, "ann") == 0);
    cv_result_free(result);
    op = (struct cv_op){.type = CV_OP_EPHEMERALS, .path = "/ops"};
    assert_int_equal(cv_call(client, &op, &result), CV_OK);
    assert_int_equal(result->name_count, 1);
    assert_string_equal(result->names[0], path);
    cv_result_free(result);
    op = (struct cv_op){.type = CV_OP_COUNT_ALL, .path = "/ops"};
    assert_int_equal(cv_call(client, &op, &result), CV_OK);
    assert_int_equal(result->count, 2);
    cv_result_free(result);
    assert_int_equal(call(client, cv_op_sync("/"), NULL), CV_OK);
    op = cv_op_create("/ops/ttl", "", 0, CV_SEQUENTIAL);
    op.ttl = 100000;
    assert_int_equal(cv_call(client, &op, &result), CV_OK);
    assert_true(result->has_stat);
    cv_result_free(result);
    assert_int_equal(cv_create(client, "/ops/c", "", 0, CV_CONTAINER, NULL, 0), CV_OK);
    assert_int_equal(cv_create_all(client, "/ops/x/y/z", 0), CV_OK);
    assert_int_equal(cv_create_all(client, "/ops/x/y/z", 0), CV_OK);
    cv_close(client);
}

static void test_operations(void **unused) { (void)unused, all_operations(0); }
static void test_operations_without_thread(void **unused) {
    (void)unused, all_operations(CV_NO_THREAD);
}

static void test_bad_arguments(void **unused) {
    struct cv_client *client = open_at(server, CV_NO_THREAD);
    static const char *paths[] = {"", "x", "/x/", "//", "/a//b", "/a/./b", "/a/..", NULL};
    (void)unused;
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++)
        assert_int_equal(cv_exists(client, paths[i], NULL), CV_BAD_ARGUMENTS);
    struct cv_op mixed[] = {cv_op_get("/"), cv_op_check("/", -1)};
    assert_int_equal(call(client, cv_op_multi(mixed, 2), NULL), CV_BAD_ARGUMENTS);
    assert_int_equal(call(client, cv_op_check("/", -1), NULL), CV_BAD_ARGUMENTS);
    assert_int_equal(call(client, cv_op_create("/t", "", 0, 64), NULL), CV_BAD_ARGUMENTS);
    struct answer answers[2] = {0};
    assert_int_equal(cv_start_all(client, mixed, 2, (cv_done_fn *[]){answered, answered},
                                  (void *[]){&answers[0], &answers[1]}),
                     CV_BAD_ARGUMENTS); /* a check alone: so the get is not started either */
    assert_int_equal(cv_exists(client, "/", NULL), CV_OK);
    assert_int_equal(answers[0].count + answers[1].count, 0);
    cv_close(client);
}

/* ---- Watches ---- */

static void all_watches(uint32_t flags) {
    struct cv_client *client = open_at(server, flags);
    struct seen data = {0}, exists = {0}, children = {0}, persistent = {0}, recursive = {0};
    clear(client, "/watch");
    struct cv_op op = cv_op_get("/watch");
    op.watch = note, op.watch_arg = &data;
    assert_int_equal(cv_call(client, &op, NULL), CV_OK);
    op = cv_op_exists("/watch/new");
    op.watch = note, op.watch_arg = &exists;
    assert_int_equal(cv_call(client, &op, NULL), CV_NO_NODE);
    op = cv_op_children("/watch");
    op.watch = note, op.watch_arg = &children;
    assert_int_equal(cv_call(client, &op, NULL), CV_OK);
    op = cv_op_get("/watch/none"); /* a watch that is not set, because the read fails */
    op.watch = note, op.watch_arg = &data;
    assert_int_equal(cv_call(client, &op, NULL), CV_NO_NODE);

    /* An event comes before the answer that shows the change. */
    assert_int_equal(cv_set(client, "/watch", "1", 1, -1), CV_OK);
    assert_int_equal(seen_of(&data, CV_NODE_CHANGED), 1);
    assert_int_equal(cv_create(client, "/watch/new", "", 0, 0, NULL, 0), CV_OK);
    assert_int_equal(seen_of(&exists, CV_NODE_CREATED), 1);
    assert_int_equal(seen_of(&children, CV_NODE_CHILDREN_CHANGED), 1);
    assert_string_equal(exists.last, "/watch/new");
    assert_int_equal(cv_set(client, "/watch", "2", 1, -1), CV_OK);
    assert_int_equal(seen_of(&data, CV_NODE_CHANGED), 1); /* once only */

    assert_int_equal(
        call(client, cv_op_add_watch("/watch", CV_WATCH_PERSISTENT, note, &persistent), NULL),
        CV_OK);
    assert_int_equal(
        call(client, cv_op_add_watch("/watch/new", CV_WATCH_RECURSIVE, note, &recursive), NULL),
        CV_OK);
    for (int i = 0; i < 3; i++) assert_int_equal(cv_set(client, "/watch", "3", 1, -1), CV_OK);
    assert_int_equal(seen_of(&persistent, CV_NODE_CHANGED), 3);
    /* A read that watches once does not end the watch that stays, nor is it lost in it. */
    op = cv_op_get("/watch");
    op.watch = note, op.watch_arg = &data;
    assert_int_equal(cv_call(client, &op, NULL), CV_OK);
    op = cv_op_children("/watch/new");
    op.watch = note, op.watch_arg = &children;
    assert_int_equal(cv_call(client, &op, NULL), CV_OK);
    for (int i = 0; i < 3; i++) assert_int_equal(cv_set(client, "/watch", "4", 1, -1), CV_OK);
    assert_int_equal(seen_of(&data, CV_NODE_CHANGED), 2);
    assert_int_equal(seen_of(&persistent, CV_NODE_CHANGED), 6);
    assert_int_equal(cv_create(client, "/watch/new/x", "", 0, 0, NULL, 0), CV_OK);
    assert_int_equal(cv_create(client, "/watch/new/x/y", "", 0, 0, NULL, 0), CV_OK);
    assert_int_equal(seen_of(&recursive, CV_NODE_CREATED), 2);
    assert_int_equal(seen_of(&children, CV_NODE_CHILDREN_CHANGED), 2);
    assert_string_equal(recursive.last, "/watch/new/x/y");

    op = (struct cv_op){
        .type = CV_OP_REMOVE_WATCH, .path = "/watch", .watch = note, .watch_arg = &persistent};
    assert_int_equal(cv_call(client, &op, NULL), CV_OK);
    assert_int_equal(cv_call(client, &op, NULL), CV_NO_WATCHER);
    assert_int_equal(cv_set(client, "/watch", "5", 1, -1), CV_OK);
    assert_int_equal(seen_of(&persistent, CV_NODE_CHANGED), 6);
    cv_close(client);
    assert_int_equal(seen_of(&recursive, CV_WATCH_LOST), 1);
}

static void test_watches(void **unused) { (void)unused, all_watches(0); }
static void test_watches_without_thread(void **unused) { (void)unused, all_watches(CV_NO_THREAD); }

/* ---- Broken connections ---- */

static void test_reconnects(void **unused) {
    struct proxy *proxy = proxy_open(server);
    struct cv_client *client = open_at(proxy->address, 0), *other = open_at(server, 0);
    struct seen changed = {0}, created = {0}, gone = {0}, quiet = {0}, stays = {0};
    int64_t id = cv_session_id(client);
    (void)unused;
    clear(client, "/again");
    struct cv_op ops[] = {cv_op_get("/again"), cv_op_exists("/again/new"),
                          cv_op_children("/again/dir"), cv_op_get("/again/quiet")};
    struct seen *seen[] = {&changed, &created, &gone, &quiet};
    assert_int_equal(cv_create(client, "/again/dir", "", 0, 0, NULL, 0), CV_OK);
    assert_int_equal(cv_create(client, "/again/quiet", "", 0, 0, NULL, 0), CV_OK);
    assert_int_equal(cv_create(client, "/again/mine", "", 0, CV_EPHEMERAL, NULL, 0), CV_OK);
    for (int i = 0; i < 4; i++) {
        ops[i].watch = note, ops[i].watch_arg = seen[i];
        cv_call(client, &ops[i], NULL);
    }
    assert_int_equal(
        call(client, cv_op_add_watch("/again", CV_WATCH_RECURSIVE, note, &stays), NULL), CV_OK);

    proxy->mode = PROXY_CUTS;
    AWAIT(cv_state(client) == CV_CONNECTING);
    assert_int_equal(cv_set(other, "/again", "1", 1, -1), CV_OK);
    assert_int_equal(cv_create(other, "/again/new", "", 0, 0, NULL, 0), CV_OK);
    assert_int_equal(cv_delete(other, "/again/dir", -1), CV_OK);
    proxy->mode = PROXY_PASSES;
    AWAIT(seen_of(&changed, CV_NODE_CHANGED) == 1);
    AWAIT(seen_of(&created, CV_NODE_CREATED) == 1);
    AWAIT(seen_of(&gone, CV_NODE_DELETED) == 1);
    AWAIT(seen_of(&stays, CV_WATCH_RENEWED) == 1);
    assert_int_equal(cv_session_id(client), id);
    assert_int_equal(cv_exists(client, "/again/mine", NULL), CV_OK);
    assert_int_equal(seen_of(&quiet, CV_NODE_CHANGED), 0);
    assert_int_equal(cv_set(other, "/again/quiet", "1", 1, -1), CV_OK);
    AWAIT(seen_of(&quiet, CV_NODE_CHANGED) == 1);
    AWAIT(seen_of(&stays, CV_NODE_CHANGED) == 2); /* the first was for the other watch of /again */
    cv_close(other);
    cv_close(client);
    proxy_close(proxy);
}

/* Many watches are registered again in several requests. */
static void test_renews_many(void **unused) {
    enum { MANY = 3000 };
    struct proxy *proxy = proxy_open(server);
    struct cv_client *client = open_at(proxy->address, 0), *other = open_at(server, 0);
    struct seen seen = {0};
    char path[100];
    (void)unused;
    clear(client, "/many");
    for (int i = 0; i < MANY; i++) {
        snprintf(path, sizeof path, "/many/%080d", i);
        struct cv_op op = cv_op_exists(path);
        op.watch = note, op.watch_arg = &seen;
        assert_int_equal(i == MANY - 1 ? cv_call(client, &op, NULL)
                                       : cv_start(client, &op, NULL, NULL),
                         i == MANY - 1 ? CV_NO_NODE : CV_OK);
    }
    proxy->mode = PROXY_CUTS;
    AWAIT(cv_state(client) == CV_CONNECTING);
    proxy->mode = PROXY_PASSES;
    AWAIT(cv_state(client) == CV_CONNECTED);
    assert_int_equal(cv_exists(client, "/", NULL), CV_OK);
    for (int i = 0; i < MANY; i += MANY / 10) {
        snprintf(path, sizeof path, "/many/%080d", i);
        assert_int_equal(cv_create(other, path, "", 0, CV_EPHEMERAL, NULL, 0), CV_OK);
    }
    AWAIT(seen_of(&seen, CV_NODE_CREATED) == 10);
    cv_close(other);
    cv_close(client);
    proxy_close(proxy);
}

static void test_unsent_waits_and_sent_is_lost(void **unused) {
    struct proxy *proxy = proxy_open(server);
    struct cv_client *client = open_at(proxy->address, 0);
    struct answer sent = {0}, unsent = {0};
    struct cv_op op = cv_op_exists("/");
    (void)unused;
    proxy_becomes(proxy, PROXY_FREEZES); /* what we send now stays in the socket */
    assert_int_equal(cv_start(client, &op, answered, &sent), CV_OK);
    AWAIT(proxy_has_some(proxy));
    proxy->mode = PROXY_CUTS;
    AWAIT(sent.count == 1);
    assert_int_equal(sent.error, CV_CONNECTION_LOSS);
    AWAIT(cv_state(client) == CV_CONNECTING);
    assert_int_equal(cv_start(client, &op, answered, &unsent), CV_OK);
    proxy->mode = PROXY_PASSES;
    AWAIT(unsent.count == 1);
    assert_int_equal(unsent.error, CV_OK);
    cv_close(client);
    proxy_close(proxy);
}

static void test_expires(void **unused) {
    struct proxy *proxy = proxy_open(server);
    struct cv_client *client = open_for(proxy->address, 0, 12000), *other = open_at(server, 0);
    struct seen seen = {0}, gone = {0};
    struct answer waiting = {0};
    struct cv_op op = cv_op_get("/expires/mine");
    (void)unused;
    clear(client, "/expires");
    assert_int_equal(cv_create(client, "/expires/mine", "", 0, CV_EPHEMERAL, NULL, 0), CV_OK);
    op.watch = note, op.watch_arg = &seen;
    assert_int_equal(cv_call(client, &op, NULL), CV_OK);
    op.watch_arg = &gone;
    assert_int_equal(cv_call(other, &op, NULL), CV_OK);
    proxy->mode = PROXY_CUTS;
    AWAIT(cv_state(client) == CV_CONNECTING);
    int64_t deadline = cv_session_deadline(client);
    /* The lease has ended before anybody can see that the node is gone. */
    AWAIT(seen_of(&gone, CV_NODE_DELETED) == 1);
    assert_true(cv_now() > deadline);
    assert_int_equal(cv_session_deadline(client), deadline);
    op.watch = NULL;
    assert_int_equal(cv_start(client, &op, answered, &waiting), CV_OK);
    proxy->mode = PROXY_PASSES;
    AWAIT(cv_state(client) == CV_EXPIRED);
    AWAIT(waiting.count == 1);
    assert_true(waiting.error == CV_SESSION_EXPIRED || waiting.error == CV_NO_SERVER);
    AWAIT(seen_of(&seen, CV_WATCH_LOST) == 1);
    assert_int_equal(cv_exists(client, "/", NULL), CV_SESSION_EXPIRED);
    cv_close(other);
    cv_close(client);
    proxy_close(proxy);
}

/* A server that is silent is left for another, in time to keep the session. */
static void test_leaves_a_silent_server(void **unused) {
    struct proxy *one = proxy_open(server), *two = proxy_open(server);
    char servers[100], at[100], now[100];
    (void)unused;
    snprintf(servers, sizeof servers, "%s,%s", one->address, two->address);
    struct cv_client *client = open_for(servers, 0, 30000);
    int64_t id = cv_session_id(client);
    cv_server(client, at, sizeof at);
    struct proxy *used = strcmp(at, one->address) == 0 ? one : two;
    used->mode = PROXY_FREEZES;
    AWAIT(strcmp(cv_server(client, now, sizeof now), at) != 0 && now[0]);
    assert_int_equal(cv_exists(client, "/", NULL), CV_OK);
    assert_int_equal(cv_session_id(client), id);
    cv_close(client);
    proxy_close(one);
    proxy_close(two);
}

/* The deadline follows answers, not what is sent. */
static void test_deadline(void **unused) {
    struct proxy *proxy = proxy_open(server);
    struct cv_client *client = open_for(proxy->address, 0, 12000); /* it is waited for */
    int32_t timeout = cv_session_timeout(client);
    struct answer answer = {0};
    struct cv_op op = cv_op_exists("/");
    (void)unused;
    int64_t before = cv_now();
    assert_int_equal(cv_exists(client, "/", NULL), CV_OK);
    int64_t deadline = cv_session_deadline(client);
    assert_true(deadline >= before + (int64_t)timeout * 2 / 3);
    assert_true(deadline <= cv_now() + (int64_t)timeout * 2 / 3);
    AWAIT(cv_session_deadline(client) > deadline); /* by a ping */
    proxy_becomes(proxy, PROXY_DEAF);
    assert_int_equal(cv_start(client, &op, answered, &answer), CV_OK);
    int64_t stays = cv_session_deadline(client);
    AWAIT(cv_state(client) == CV_CONNECTING || cv_now() > stays);
    assert_int_equal(cv_session_deadline(client), stays);
    proxy->mode = PROXY_CUTS;
    cv_close(client);
    proxy_close(proxy);
    assert_int_equal(answer.count, 1);
}

/* ... and counts from when a request was sent, however late its answer is. */
static void test_deadline_of_a_late_answer(void **unused) {
    struct proxy *proxy = proxy_open(server);
    struct cv_options options = {
        .servers = proxy->address, .session_timeout = 120000, .connect_timeout = PATIENCE_MS};
    struct cv_client *client;
    struct answer answer = {0};
    struct cv_op op = cv_op_exists("/");
    (void)unused;
    assert_int_equal(cv_open(&client, &options), CV_OK);
    proxy_becomes(proxy, PROXY_DEAF);
    assert_int_equal(cv_start(client, &op, answered, &answer), CV_OK);
    int64_t sent = cv_now();
    usleep(300000);
    proxy->mode = PROXY_PASSES;
    AWAIT(answer.count == 1);
    assert_int_equal(answer.error, CV_OK);
    assert_true(cv_session_deadline(client) <= sent + (int64_t)cv_session_timeout(client) * 2 / 3);
    cv_close(client);
    proxy_close(proxy);
}

/* A watch is removed while a read is on its way that watches the same node. */
static void test_removal_spares_others(void **unused) {
    struct proxy *proxy = proxy_open(server);
    struct cv_client *client = open_at(proxy->address, 0), *other = open_at(server, 0);
    struct seen first = {0}, second = {0};
    struct answer answer = {0}, removal = {0};
    (void)unused;
    clear(other, "/spared");
    struct cv_op op = cv_op_get("/spared");
    op.watch = note, op.watch_arg = &first;
    assert_int_equal(cv_call(client, &op, NULL), CV_OK);
    proxy->mode = PROXY_FREEZES;
    op.watch_arg = &second;
    struct cv_op remove = {
        .type = CV_OP_REMOVE_WATCH, .path = "/spared", .watch = note, .watch_arg = &first};
    assert_int_equal(cv_start(client, &op, answered, &answer), CV_OK);
    assert_int_equal(cv_start(client, &remove, answered, &removal), CV_OK);
    proxy->mode = PROXY_PASSES;
    AWAIT(answer.count == 1 && removal.count == 1);
    assert_int_equal(removal.error, CV_OK);
    assert_int_equal(cv_set(other, "/spared", "1", 1, -1), CV_OK);
    AWAIT(seen_of(&second, CV_NODE_CHANGED) == 1);
    assert_int_equal(seen_of(&first, CV_NODE_CHANGED), 0);
    cv_close(client);
    cv_close(other);
    proxy_close(proxy);
}

static void test_no_server(void **unused) {
    struct cv_client *client;
    struct answer answer = {0};
    struct cv_op op = cv_op_exists("/");
    char text[500];
    (void)unused;
    struct cv_options options = {.servers = "127.0.0.1:1,localhost:1", .connect_timeout = 300};
    bool both = false; /* have refused: on a busy machine that may take longer */
    for (; !both && options.connect_timeout < (int32_t)PATIENCE_MS; options.connect_timeout *= 10) {
        assert_int_equal(cv_open(&client, &options), CV_NO_SERVER);
        cv_explain(client, text, sizeof text);
        assert_ptr_equal(strstr(text, "no server answers: "), text);
        both = strstr(text, "127.0.0.1:1 (connection refused)") &&
               strstr(text, "localhost:1 (connection refused)");
        cv_close(client);
    }
    if (!both) fail_msg("%s", text);
    options.connect_timeout = 300;
    options.session_timeout = 300;
    options.flags = CV_DO_NOT_WAIT;
    assert_int_equal(cv_open(&client, &options), CV_OK);
    assert_int_equal(cv_start(client, &op, answered, &answer), CV_OK);
    AWAIT(answer.count == 1);
    assert_int_equal(answer.error, CV_NO_SERVER);
    cv_close(client);
    options = (struct cv_options){.servers = "name.invalid:2181", .connect_timeout = 300};
    assert_int_equal(cv_open(&client, &options), CV_NO_SERVER);
    assert_non_null(strstr(cv_explain(client, text, sizeof text), "name.invalid:2181 ("));
    cv_close(client);
    options.servers = "host:99999";
    assert_int_equal(cv_open(&client, &options), CV_BAD_ARGUMENTS);
    assert_non_null(strstr(cv_explain(client, text, sizeof text), "host:99999"));
    assert_int_equal(cv_exists(client, "/", NULL), CV_CLOSING);
    cv_close(client);
    cv_close(NULL);
}

/* ---- Sessions ---- */

static void test_resumes(void **unused) {
    struct cv_client *client = open_at(server, 0);
    struct cv_options options = {.servers = server,
                                 .session_timeout = 40000,
                                 .connect_timeout = PATIENCE_MS,
                                 .session_id = cv_session_id(client)};
    (void)unused;
    cv_session_password(client, options.session_password);
    clear(client, "/resume");
    assert_int_equal(cv_create(client, "/resume/mine", "", 0, CV_EPHEMERAL, NULL, 0), CV_OK);
    cv_detach(client);
    assert_int_equal(cv_open(&client, &options), CV_OK);
    assert_int_equal(cv_session_id(client), options.session_id);
    assert_int_equal(cv_exists(client, "/resume/mine", NULL), CV_OK);
    cv_detach(client);
    options.session_password[3] ^= 1;
    assert_int_equal(cv_open(&client, &options), CV_SESSION_EXPIRED);
    cv_close(client);
    options.session_password[3] ^= 1;
    assert_int_equal(cv_open(&client, &options), CV_OK);
    cv_close(client); /* ends it */
    client = open_at(server, 0);
    assert_int_equal(cv_exists(client, "/resume/mine", NULL), CV_NO_NODE);
    cv_close(client);
}

static void test_authenticates_again(void **unused) {
    struct proxy *proxy = proxy_open(server);
    struct cv_auth auth = {.scheme = "digest", .credential = "bob:pw"};
    struct cv_options options = {
        .servers = proxy->address, .connect_timeout = PATIENCE_MS, .auth = &auth, .auth_count = 1};
    struct cv_acl acl = {CV_ALL, "auth", ""};
    struct cv_client *client, *other = open_at(server, 0);
    struct cv_result *result;
    (void)unused;
    clear(other, "/auth");
    assert_int_equal(cv_open(&client, &options), CV_OK);
    struct cv_op op = cv_op_create("/auth/bob", "b", 1, CV_EPHEMERAL);
    op.acl = &acl, op.acl_count = 1;
    assert_int_equal(cv_call(client, &op, NULL), CV_OK);
    assert_int_equal(cv_get(other, "/auth/bob", &result), CV_NO_AUTH);
    cv_result_free(result);
    proxy->mode = PROXY_CUTS;
    AWAIT(cv_state(client) == CV_CONNECTING);
    proxy->mode = PROXY_PASSES;
    assert_int_equal(cv_get(client, "/auth/bob", &result), CV_OK);
    cv_result_free(result);
    cv_close(client);
    auth.scheme = "unknown";
    int error = cv_open(&client, &options);
    AWAIT(cv_state(client) == CV_REFUSED);
    assert_true(error == CV_OK || error == CV_AUTH_FAILED);
    assert_int_equal(cv_exists(client, "/", NULL), CV_AUTH_FAILED);
    cv_close(client);
    /* A later one that is not accepted does not end the session. */
    client = open_at(server, 0);
    op = (struct cv_op){.type = CV_OP_AUTH, .path = "unknown", .data = "x", .size = 1};
    assert_int_equal(cv_call(client, &op, NULL), CV_AUTH_FAILED);
    do error = cv_exists(client, "/", NULL);
    while (error == CV_CONNECTION_LOSS);
    assert_int_equal(error, CV_OK);
    cv_close(client);
    cv_close(other);
    proxy_close(proxy);
}

static void test_chroot(void **unused) {
    struct cv_client *client = open_at(server, 0), *below;
    struct cv_result *result;
    struct seen seen = {0};
    char address[200], path[100];
    (void)unused;
    clear(client, "/app/one");
    snprintf(address, sizeof address, "%s/app/one", server);
    below = open_at(address, 0);
    assert_int_equal(cv_exists(below, "/", NULL), CV_OK);
    assert_int_equal(call(below, cv_op_add_watch("/", CV_WATCH_RECURSIVE, note, &seen), NULL),
                     CV_OK);
    assert_int_equal(cv_create(below, "/x", "", 0, CV_EPHEMERAL | CV_SEQUENTIAL, path, sizeof path),
                     CV_OK);
    assert_string_equal(path, "/x0000000000");
    assert_string_equal(seen.last, path);
    assert_int_equal(cv_exists(client, "/app/one/x0000000000", NULL), CV_OK);
    struct cv_op op = {.type = CV_OP_EPHEMERALS, .path = "/"};
    assert_int_equal(cv_call(below, &op, &result), CV_OK);
    assert_string_equal(result->names[0], path);
    cv_result_free(result);
    assert_int_equal(cv_set(client, "/app/one", "", 0, -1), CV_OK);
    AWAIT(seen_of(&seen, CV_NODE_CHANGED) == 1);
    assert_string_equal(seen.last, "/");
    cv_close(below);
    cv_close(client);
}

/* ---- Threads and callbacks ---- */

enum { THREADS = 4, CALLS = 200 };

static void *add_many(void *arg) {
    for (int i = 0; i < CALLS; i++)
        if (cv_create(arg, "/threads/n", "", 0, CV_EPHEMERAL | CV_SEQUENTIAL, NULL, 0) != CV_OK)
            return arg;
    return NULL;
}

static void test_threads(void **unused) {
    struct cv_client *client = open_at(server, 0);
    pthread_t thread[THREADS];
    struct cv_result *result;
    void *failed;
    (void)unused;
    clear(client, "/threads");
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, add_many, client), 0);
    for (int i = 0; i < THREADS; i++) {
        pthread_join(thread[i], &failed);
        assert_null(failed);
    }
    assert_int_equal(cv_children(client, "/threads", &result), CV_OK);
    assert_int_equal(result->name_count, THREADS * CALLS);
    cv_result_free(result);
    cv_close(client);
}

struct chain {
    struct cv_client *client;
    atomic_int left;
    int would_deadlock;
};

static void go_on(const struct cv_result *result, void *arg) {
    struct chain *chain = arg;
    struct cv_op op = cv_op_exists("/");
    assert_int_equal(result->error, CV_OK);
    chain->would_deadlock = cv_call(chain->client, &op, NULL);
    if (--chain->left > 0) cv_start(chain->client, &op, go_on, chain);
}

static void test_callbacks(void **unused) {
    struct chain chain = {.client = open_at(server, 0), .left = 100};
    struct cv_op op = cv_op_exists("/");
    (void)unused;
    assert_int_equal(cv_start(chain.client, &op, go_on, &chain), CV_OK);
    AWAIT(chain.left == 0);
    assert_int_equal(chain.would_deadlock, CV_WOULD_DEADLOCK);
    cv_close(chain.client);
}

struct order {
    int next, wrong;
};
struct place {
    struct order *order;
    int number;
};

static void in_order(const struct cv_result *result, void *arg) {
    struct place *place = arg;
    (void)result;
    place->order->wrong += place->order->next++ != place->number;
}

/* The caller's own loop. */
static void test_own_loop(void **unused) {
    enum { OPS = 500 };
    struct cv_client *client = open_at(server, CV_NO_THREAD);
    struct order order = {0};
    struct place places[OPS];
    struct cv_op ops[OPS];
    cv_done_fn *done[OPS];
    void *args[OPS];
    (void)unused;
    for (int i = 0; i < OPS; i++) {
        places[i] = (struct place){&order, i};
        ops[i] = cv_op_get("/");
        done[i] = in_order;
        args[i] = &places[i];
    }
    assert_int_equal(cv_start_all(client, ops, OPS, done, args), CV_OK);
    for (int64_t end = cv_now() + PATIENCE_MS; order.next < OPS && cv_now() < end;) {
        struct pollfd wait = {.fd = cv_fd(client), .events = POLLIN};
        poll(&wait, 1, 1000);
        assert_int_equal(cv_process(client), CV_OK);
    }
    assert_int_equal(order.next, OPS);
    assert_int_equal(order.wrong, 0);
    cv_close(client);
}

static void test_close_answers_all(void **unused) {
    struct answer answers[50] = {0};
    struct cv_op op = cv_op_exists("/");
    (void)unused;
    for (int mode = 0; mode < 3; mode++) {
        struct proxy *proxy = proxy_open(server);
        struct cv_client *client = open_at(proxy->address, mode == 2 ? CV_NO_THREAD : 0);
        memset(answers, 0, sizeof answers);
        if (mode == 1) proxy->mode = PROXY_FREEZES;
        for (int i = 0; i < 50; i++)
            assert_int_equal(cv_start(client, &op, answered, &answers[i]), CV_OK);
        if (mode == 1)
            cv_detach(client);
        else
            cv_close(client);
        for (int i = 0; i < 50; i++) assert_int_equal(answers[i].count, 1);
        proxy_close(proxy);
    }
}

static void close_it(const struct cv_result *result, void *arg) {
    struct chain *chain = arg;
    (void)result;
    cv_close(chain->client);
    chain->left--;
}

static void test_close_in_callback(void **unused) {
    struct chain chain = {.client = open_at(server, 0), .left = 1};
    struct cv_op op = cv_op_exists("/");
    (void)unused;
    assert_int_equal(cv_start(chain.client, &op, close_it, &chain), CV_OK);
    AWAIT(chain.left == 0);
}

/* The server is killed, and comes back with the same data. */
static void test_server_restarts(void **unused) {
    struct cv_client *client;
    (void)unused;
    if (!own) return;
    client = open_at(server, 0);
    clear(client, "/restart");
    assert_int_equal(cv_create(client, "/restart/mine", "", 0, CV_EPHEMERAL, NULL, 0), CV_OK);
    int64_t id = cv_session_id(client);
    assert_int_equal(cv_test_server_kill(own), CV_OK);
    AWAIT(cv_state(client) == CV_CONNECTING);
    assert_int_equal(cv_test_server_restart(own), CV_OK);
    assert_string_equal(cv_test_server_address(own), server);
    int error;
    do error = cv_exists(client, "/restart/mine", NULL);
    while (error == CV_CONNECTION_LOSS);
    assert_int_equal(error, CV_OK);
    assert_int_equal(cv_session_id(client), id);
    cv_close(client);
}

static int setup(void **unused) {
    (void)unused;
    server = getenv("CLIENT_SERVER");
    if (server) return 0;
    name_program();
    own = cv_test_server();
    if (own) server = cv_test_server_address(own);
    return own ? 0 : -1;
}

static int teardown(void **unused) {
    (void)unused;
    cv_test_server_stop(own);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_operations),
        cmocka_unit_test(test_operations_without_thread),
        cmocka_unit_test(test_bad_arguments),
        cmocka_unit_test(test_watches),
        cmocka_unit_test(test_watches_without_thread),
        cmocka_unit_test(test_reconnects),
        cmocka_unit_test(test_renews_many),
        cmocka_unit_test(test_unsent_waits_and_sent_is_lost),
        cmocka_unit_test(test_expires),
        cmocka_unit_test(test_leaves_a_silent_server),
        cmocka_unit_test(test_deadline),
        cmocka_unit_test(test_deadline_of_a_late_answer),
        cmocka_unit_test(test_removal_spares_others),
        cmocka_unit_test(test_no_server),
        cmocka_unit_test(test_resumes),
        cmocka_unit_test(test_authenticates_again),
        cmocka_unit_test(test_chroot),
        cmocka_unit_test(test_threads),
        cmocka_unit_test(test_callbacks),
        cmocka_unit_test(test_own_loop),
        cmocka_unit_test(test_close_answers_all),
        cmocka_unit_test(test_close_in_callback),
        cmocka_unit_test(test_server_restarts),
    };
    const char *only = getenv("ONLY");
    if (only) cmocka_set_test_filter(only);
    return cmocka_run_group_tests(tests, setup, teardown);
}
