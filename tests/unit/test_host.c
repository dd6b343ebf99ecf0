/* The host that a request names: what is read of it, and which names no stranger can let point
 * here. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/host.h"

static void is_read_as(const char *text, const char *expected) {
    char name[HOST_NAME_SIZE];
    if (!host_read(text, strlen(text), name)) fail_msg("%s is refused", text);
    assert_string_equal(name, expected);
}

static void is_refused(const char *text, size_t size) {
    char name[HOST_NAME_SIZE];
    if (host_read(text, size, name)) fail_msg("%.*s is %s", (int)size, text, name);
}

static void a_name_is_what_stands_before_the_port(void **state) {
    (void)state;
    is_read_as("db1", "db1");
    is_read_as("db1:8080", "db1");
    is_read_as("db1:", "db1");
    is_read_as("db1.example.", "db1.example");
    is_read_as("db1.example.:80", "db1.example");
    is_read_as("127.0.0.1:1", "127.0.0.1");
    is_read_as("[::1]", "::1");
    is_read_as("[fe80::1]:8080", "fe80::1");
}

static void the_rest_is_refused(void **state) {
    (void)state;
    static const char *const bad[] = {"",
                                      ":",
                                      ":80",
                                      ".",
                                      ".:80",
                                      "[",
                                      "[]",
                                      "[]:80",
                                      "[::1",
                                      "[::1]x",
                                      "[::1]]",
                                      "::1",
                                      "a:80:80",
                                      "a:8x",
                                      "a:-1",
                                      "127.0.0.1:80.evil.example",
                                      "[::1].evil.example"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) is_refused(bad[i], strlen(bad[i]));
    is_refused("localhost\0.evil.example", sizeof "localhost\0.evil.example" - 1);
    is_refused("localhost:8\0", sizeof "localhost:8\0" - 1);
}

/* No byte beyond the given ones is read, and none beyond the name's room is written. */
static void sizes_are_kept(void **state) {
    (void)state;
    char text[HOST_NAME_SIZE + 1], name[HOST_NAME_SIZE];
    memset(text, 'a', sizeof text);
    assert_true(host_read(text, HOST_NAME_SIZE - 1, name));
    assert_int_equal(strlen(name), HOST_NAME_SIZE - 1);
    is_refused(text, HOST_NAME_SIZE);
    is_refused(text, sizeof text);
    assert_true(host_read("localhost.evil.example", strlen("localhost"), name));
    assert_string_equal(name, "localhost");
    is_refused("[::1]", strlen("[::1"));
}

static void an_address_is_whole(void **state) {
    (void)state;
    assert_true(host_is_address("127.0.0.1"));
    assert_true(host_is_address("192.0.2.7"));
    assert_true(host_is_address("::1"));
    assert_true(host_is_address("::ffff:127.0.0.1"));
    assert_false(host_is_address("127.0.0.1.evil.example"));
    assert_false(host_is_address("127.1"));
    assert_false(host_is_address("localhost"));
    assert_false(host_is_address(""));
}

static void localhost_is_the_end_of_a_name(void **state) {
    (void)state;
    assert_true(host_is_localhost("localhost"));
    assert_true(host_is_localhost("LocalHost"));
    assert_true(host_is_localhost("ip6-localhost"));
    assert_true(host_is_localhost("lab.localhost"));
    assert_false(host_is_localhost(".localhost"));
    assert_false(host_is_localhost("notlocalhost"));
    assert_false(host_is_localhost("localhost.evil.example"));
    assert_false(host_is_localhost("127.0.0.1"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_name_is_what_stands_before_the_port),
        cmocka_unit_test(the_rest_is_refused),
        cmocka_unit_test(sizes_are_kept),
        cmocka_unit_test(an_address_is_whole),
        cmocka_unit_test(localhost_is_the_end_of_a_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
