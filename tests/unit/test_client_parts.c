/* The parts of the client library that need no server: addresses, SASL, answers, errors. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>

#include "client/internal.h"

/* ---- Addresses ---- */

static void names(const char *text, const char *wanted) {
    struct servers servers;
    char reason[REASON_MAX], name[400], all[2000] = "";
    bool good = servers_parse(&servers, text, reason);
    for (size_t i = 0; good && i < servers.count; i++) {
        server_name(&servers.entry[i], name, sizeof name);
        strcat(strcat(all, name), " ");
    }
    if (good) strcat(all, servers.chroot);
    servers_close(&servers);
    assert_string_equal(good ? all : reason, wanted);
}

static void test_addresses(void **unused) {
    (void)unused;
    names("localhost", "localhost:2181 ");
    names("a:1,b:65535", "a:1 b:65535 ");
    names(" a:1 , b ,", "a:1 b:2181 ");
    names("a:1/", "a:1 ");
    names("a:1,b/app/x", "a:1 b:2181 /app/x");
    names("[::1]:7", "[::1]:7 ");
    names("[fe80::1]", "[fe80::1]:2181 ");
    names("::1", "[::1]:2181 ");
    names("10.0.0.1:80/x", "10.0.0.1:80 /x");
    names("", "'' names no server");
    names(",,", "',,' names no server");
    names("/app", "'/app' names no server");
    names("a:", "'a:' has no port between 1 and 65535 after its colon");
    names("a:0", "'a:0' has no port between 1 and 65535 after its colon");
    names("a:65536", "'a:65536' has no port between 1 and 65535 after its colon");
    names("a:1x", "'a:1x' has no port between 1 and 65535 after its colon");
    names(":1", "':1' is not an address such as localhost:2181");
    names("[::1", "'[::1' has no ']'");
    names("[::1]7", "'[::1]7' is not an address such as [::1]:2181");
    names("a:1/x//y", "'/x//y' is not a path to work below");
    names("a:1/x/", "'/x/' is not a path to work below");
}

static void test_shuffles(void **unused) {
    struct servers servers;
    struct rng rng;
    char reason[REASON_MAX];
    int firsts[3] = {0};
    (void)unused;
    rng_seed(&rng, 1);
    assert_true(servers_parse(&servers, "a,b,c", reason));
    for (int i = 0; i < 300; i++) {
        servers_shuffle(&servers, &rng);
        firsts[servers.entry[0].host[0] - 'a']++;
    }
    for (int i = 0; i < 3; i++) assert_in_range(firsts[i], 60, 140);
    servers_close(&servers);
}

static void test_addresses_at_once(void **unused) {
    struct addresses addresses = {0};
    struct server_entry entry = {.host = "localhost", .port = "2181"};
    (void)unused;
    assert_true(lookup_at_once(&entry, &addresses));
    assert_int_equal(addresses.all[0].at.ss_family, AF_INET);
    entry = (struct server_entry){.host = "::1", .port = "2181"};
    assert_true(lookup_at_once(&entry, &addresses));
    assert_int_equal(addresses.count, 1);
    assert_int_equal(addresses.all[0].at.ss_family, AF_INET6);
    entry = (struct server_entry){.host = "server.example", .port = "2181"};
    assert_false(lookup_at_once(&entry, &addresses));
    free(addresses.all);
}

static void test_paths(void **unused) {
    (void)unused;
    assert_true(path_is_good("/", false));
    assert_true(path_is_good("/a/b", false));
    assert_true(path_is_good("/a/", true));
    assert_true(path_is_good("/", true));
    assert_false(path_is_good("/a/", false));
    assert_false(path_is_good("//", true));
    assert_false(path_is_good("a", false));
    assert_false(path_is_good(NULL, false));
}

/* ---- SASL: the example of RFC 2831 ---- */

static void test_sasl(void **unused) {
    struct sasl_identity chris = {"chris", "secret", "imap/elwood.innosoft.com", "OA6MHXh6VqTrRk"};
    struct bytes answer = {0};
    char proof[MD5_HEX];
    (void)unused;
    assert_true(sasl_answer(&chris,
                            zk_text_of("realm=\"elwood.innosoft.com\",nonce=\"OA6MG9tEQGm2hh\","
                                       "qop=\"auth\",algorithm=md5-sess,charset=utf-8"),
                            &answer, proof));
    bytes_add(&answer, "", 1);
    assert_non_null(strstr((char *)answer.at, "response=d388dad90d4bbd760a152321f2143af7"));
    assert_non_null(strstr((char *)answer.at, "username=\"chris\""));
    assert_non_null(strstr((char *)answer.at, "nc=00000001"));
    assert_string_equal(proof, "ea40f60335c427b5527b84dbabcdfffd");
    assert_true(sasl_is_proven(zk_text_of("rspauth=ea40f60335c427b5527b84dbabcdfffd"), proof));
    assert_false(sasl_is_proven(zk_text_of("rspauth=fa40f60335c427b5527b84dbabcdfffd"), proof));
    assert_false(sasl_is_proven(zk_text_of(""), proof));
    bytes_close(&answer);
}

static void test_sasl_refuses(void **unused) {
    struct sasl_identity who = {"u", "p", "a/b", "n"};
    static const char *bad[] = {
        "", "nonce=", "nonce", "nonce=\"x", "nonce=x,qop=\"other\"", "nonce=x,algorithm=sha"};
    char proof[MD5_HEX];
    (void)unused;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct bytes answer = {0};
        assert_false(sasl_answer(&who, zk_text_of(bad[i]), &answer, proof));
        bytes_close(&answer);
    }
}

/* ---- Answers ---- */

/* Decodes that body, as the answer to such a request, from memory that ends with it. */
static struct cv_result *decode(struct request request, const struct bytes *body, size_t chroot,
                                int *error) {
    struct waiter waiter;
    struct zk_reply_header header = {.xid = 1, .zxid = 7};
    unsigned char *exact = malloc(body->used + 1);
    memcpy(exact + 1, body->at, body->used);
    struct zk_in in = zk_in_of(exact + 1, body->used);
    request.waiter = &waiter;
    struct cv_result *result = reply_decode(&request, &header, &in, chroot, NULL, error);
    free(exact);
    return result;
}

static void add_names(struct bytes *body, int count) {
    zk_write_i32(body, count);
    for (int i = 0; i < count; i++) zk_write_text(body, zk_text_of(i % 2 ? "" : "/app/name"));
}

static void test_answers(void **unused) {
    struct bytes body = {0};
    struct cv_result *result;
    int error;
    (void)unused;
    add_names(&body, 1001);
    result = decode((struct request){.type = CV_OP_EPHEMERALS, .opcode = ZK_OP_GET_EPHEMERALS},
                    &body, 4, &error);
    assert_int_equal(error, CV_OK);
    assert_int_equal(result->name_count, 501); /* every other one is not below the chroot */
    assert_string_equal(result->names[500], "/name");
    cv_result_free(result);
    for (size_t size = 0; size < body.used; size += 7) { /* cut short anywhere */
        struct bytes part = {body.at, size, size};
        assert_null(decode((struct request){.opcode = ZK_OP_GET_EPHEMERALS}, &part, 0, &error));
        assert_int_equal(error, CV_MARSHALLING_ERROR);
    }
    body.used = 0;
    union zk_response of = {.create2 = {.path = zk_text_of("/app/x")}};
    zk_write_result(&body, ZK_OP_CREATE2, &of);
    zk_write_result(&body, ZK_OP_CHECK, &of);
    zk_write_multi_end(&body);
    struct request multi = {.type = CV_OP_MULTI, .opcode = ZK_OP_MULTI, .op_count = 2};
    result = decode(multi, &body, 4, &error);
    assert_string_equal(result->results[0].path, "/x");
    cv_result_free(result);
    multi.op_count = 3; /* an answer to something else */
    assert_null(decode(multi, &body, 4, &error));
    body.used = 0;
    zk_write_rollback(&body, 3, 1, ZK_BADVERSION);
    result = decode(multi, &body, 4, &error);
    assert_int_equal(result->error, CV_BAD_VERSION);
    assert_int_equal(result->results[0].error, CV_OK);
    assert_int_equal(result->results[1].error, CV_BAD_VERSION);
    cv_result_free(result);
    bytes_close(&body);
}

/* ---- Errors ---- */

static void test_errors(void **unused) {
    (void)unused;
    assert_string_equal(cv_error_text(CV_NO_NODE), "there is no such node");
    assert_string_equal(cv_error_text(12345), "unknown error");
    for (int error = -130; error <= 0; error++) /* what a server can say has a text */
        if (zk_error_name(error) && error != ZK_UNKNOWNSESSION && error != ZK_APIERROR &&
            error != ZK_INVALIDCALLBACK)
            assert_string_not_equal(cv_error_text(error), "unknown error");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_addresses),
        cmocka_unit_test(test_shuffles),
        cmocka_unit_test(test_addresses_at_once),
        cmocka_unit_test(test_paths),
        cmocka_unit_test(test_sasl),
        cmocka_unit_test(test_sasl_refuses),
        cmocka_unit_test(test_answers),
        cmocka_unit_test(test_errors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
