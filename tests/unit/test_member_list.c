/* The list of an ensemble's members: its lines, and the one text that equal lists give. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "service/settings/member_list.h"

#define COUNT(ARRAY) (sizeof(ARRAY) / sizeof(ARRAY)[0])

/* ---- Help ---- */

/* The text in a block of its own size, so that a sanitizer sees reads beyond it. */
static bool parse(struct member_list *list, const char *text, size_t size, char error[256]) {
    char *block = malloc(size ? size : 1);
    assert_non_null(block);
    memcpy(block, text, size);
    *error = 0;
    bool good = member_list_parse(list, block, size, error, 256);
    free(block);
    return good;
}

static struct member_list parsed(const char *text) {
    struct member_list list = {0};
    char error[256];
    if (!parse(&list, text, strlen(text), error)) fail_msg("%s\n%s", text, error);
    return list;
}

static void expect_text(const struct member_list *list, const char *expected) {
    struct bytes text = {0};
    member_list_write(list, &text);
    bytes_add(&text, "", 1);
    assert_string_equal((const char *)text.at, expected);
    bytes_close(&text);
}

static void is_refused(const char *text, const char *reason) {
    struct member_list list = {0};
    char error[256];
    if (parse(&list, text, strlen(text), error)) fail_msg("'%s' is accepted", text);
    if (!strstr(error, reason)) fail_msg("%s\n%s", text, error);
}

/* ---- Text ---- */

static void an_empty_list_is_empty_text(void **state) {
    struct member_list list = parsed("");
    (void)state;
    assert_int_equal(list.count, 0);
    expect_text(&list, "");
    list = parsed("\n,,\n");
    assert_int_equal(list.count, 0);
}

static void canonical_text_is_read_back(void **state) {
    static const char *const of[] = {
        "server.1=h:1:2:participant",
        "server.1=zoo-1.example.:2888:3888:observer;0.0.0.0:2181",
        "server.1=[::1]:1:2:participant;[fe80::1%eth0]:3\nserver.254=*:1:65535:participant",
        "server.0=h:1:2:participant",
        ("server.1=a:1:1:participant\nserver.0=h:1:2:participant\ngroup.1=1\ngroup.2=0\nweight.0="
         "3\n"
         "directory.0=00000001"),
        ("server.1=a:1:1:participant\nserver.2=b:2:2:participant\nserver.10=c:3:3:participant\n"
         "server.11=d:4:4:observer\ngroup.1=2:10\ngroup.255=1\nweight.2=0\nweight.10=1000000"),
    };
    (void)state;
    for (size_t i = 0; i < COUNT(of); i++) {
        struct member_list list = parsed(of[i]);
        expect_text(&list, of[i]);
    }
}

static void shorter_forms_become_canonical(void **state) {
    struct member_list list = parsed("server.3=h:1:2;5,server.1=H:1:2:PARTICIPANT");
    (void)state;
    expect_text(&list, "server.1=H:1:2:participant\nserver.3=h:1:2:participant;0.0.0.0:5");
    list = parsed("server.1=h:1:2\nweight.1=1");
    expect_text(&list, "server.1=h:1:2:participant");
}

static void the_longest_names_fit(void **state) {
    char host[SETTINGS_HOST_MAX], text[1024], error[256];
    struct member_list list = {0};
    (void)state;
    memset(host, ':', sizeof host);
    host[sizeof host - 1] = 0;
    snprintf(text, sizeof text, "server.254=[%s]:65535:65535:participant;[%s]:65535", host, host);
    list = parsed(text);
    expect_text(&list, text);
    snprintf(text, sizeof text, "server.1=[%s:]:1:2:participant", host);
    assert_false(parse(&list, text, strlen(text), error));
}

static void every_order_gives_the_same_text(void **state) {
    static const char *const lines[] = {
        "server.1=a:1:1:participant",
        "server.2=b:2:2:observer;0.0.0.0:9",
        "server.10=c:3:3:participant",
        "server.200=d:4:4:participant",
        "group.3=10:1",
        "group.2=200",
        "weight.10=7",
        "weight.200=0",
    };
    static const char expected[] =
        "server.1=a:1:1:participant\nserver.2=b:2:2:observer;0.0.0.0:9\n"
        "server.10=c:3:3:participant\nserver.200=d:4:4:participant\ngroup.2=200\ngroup.3=1:10\n"
        "weight.10=7\nweight.200=0";
    struct rng rng;
    (void)state;
    rng_seed(&rng, 5);
    for (int round = 0; round < 2000; round++) {
        const char *order[COUNT(lines)];
        char text[512] = "";
        memcpy(order, lines, sizeof lines);
        for (size_t i = COUNT(lines); i > 0; i--) {
            size_t other = rng_next(&rng) % i;
            strcat(strcat(text, order[other]), i % 2 ? "\n" : ",");
            order[other] = order[i - 1];
        }
        struct member_list list = parsed(text);
        expect_text(&list, expected);
    }
}

/* ---- Lines ---- */

static void fields_are_those_of_the_line(void **state) {
    struct member_list list = parsed("weight.3=5\nserver.3=[::1]:30:31:observer;h:32\ngroup.4=3");
    const struct member *member = member_list_find(&list, 3);
    (void)state;
    assert_int_equal(list.count, 1);
    assert_non_null(member);
    assert_string_equal(member->host, "::1");
    assert_int_equal(member->peer_port, 30);
    assert_int_equal(member->election_port, 31);
    assert_true(member->observer);
    assert_string_equal(member->client.host, "h");
    assert_int_equal(member->client.port, 32);
    assert_int_equal(member->group, 4);
    assert_int_equal(member->weight, 5);
    assert_null(member_list_find(&list, 2));
    assert_null(member_list_find(&list, 4));
}

static void a_later_line_replaces_an_earlier_one(void **state) {
    struct member_list list = parsed("server.1=a:1:2:observer;3\nserver.2=b:1:2\nweight.1=4\n"
                                     "group.5=1:2\nserver.1=c:7:8\nweight.1=6\nweight.1=9");
    (void)state;
    expect_text(&list, "server.1=c:7:8:participant\nserver.2=b:1:2:participant\ngroup.5=1:2\n"
                       "weight.1=9");
}

static void a_group_is_replaced_as_a_whole(void **state) {
    struct member_list list = parsed("server.1=a:1:1\nserver.2=b:1:1\nserver.3=c:1:1\n"
                                     "group.1=1:2\ngroup.1=2:3\ngroup.2=1");
    (void)state;
    expect_text(&list, "server.1=a:1:1:participant\nserver.2=b:1:1:participant\n"
                       "server.3=c:1:1:participant\ngroup.1=2:3\ngroup.2=1");
    /* The same before there are servers. */
    list = parsed("group.1=1:2\ngroup.1=2:3\ngroup.2=1\nserver.2=b:1:1\nserver.1=a:1:1");
    expect_text(&list, "server.1=a:1:1:participant\nserver.2=b:1:1:participant\ngroup.1=2\n"
                       "group.2=1");
}

static void servers_without_a_line_are_no_members(void **state) {
    struct member_list list = parsed("weight.7=3\ngroup.1=7:8\nserver.8=h:1:2");
    (void)state;
    expect_text(&list, "server.8=h:1:2:participant\ngroup.1=8");
    assert_null(member_list_find(&list, 7));
}

static void ids_are_read_back(void **state) {
    static const char text[] = "server.1=a:1:2:participant\nserver.7=b:1:2:observer\nweight.1=3\n"
                               "directory.7=0000000a\nensemble=fedcba9876543210";
    struct member_list list = parsed(text), other;
    (void)state;
    assert_int_equal(list.at[0].directory, 0);
    assert_int_equal(list.at[1].directory, 10);
    assert_true(list.ensemble == UINT64_C(0xfedcba9876543210));
    expect_text(&list, text);
    other = parsed("server.7=c:1:2,server.9=d:1:2,directory.9=00000009");
    member_list_take_ids(&other, &list);
    expect_text(&other, "server.7=c:1:2:participant\nserver.9=d:1:2:participant\n"
                        "directory.7=0000000a\ndirectory.9=00000009\nensemble=fedcba9876543210");
    assert_false(member_list_same_ids(&other, &list)); /* 9 has one that nobody knows */
    other = parsed("server.7=c:1:2,server.9=d:1:2,version=100000007");
    assert_false(member_list_same_ids(&other, &list));
    member_list_take_ids(&other, &list);
    assert_true(member_list_same_ids(&other, &list));
    other.at[0].directory++;
    assert_false(member_list_same_ids(&other, &list));
    /* Another address is the same server; one that left and comes again is another. */
    list = parsed("server.7=b:1:2\ndirectory.7=0000000a\nserver.7=c:3:4");
    assert_int_equal(list.at[0].directory, 10);
    member_list_remove(&list, 7);
    char error[256];
    assert_true(parse(&list, "server.7=b:1:2", 14, error));
    assert_int_equal(list.at[0].directory, 0);
    is_refused("directory.1=0000000a", "is not the id of a server's data directory");
    is_refused("server.1=a:1:2,directory.1=00000000", "data directory");
    is_refused("server.1=a:1:2,directory.1=0000000A", "data directory");
    is_refused("server.1=a:1:2,directory.1=000000000a", "data directory");
    is_refused("ensemble=0", "is not the id of an ensemble");
}

static void a_refused_line_changes_nothing(void **state) {
    static const struct {
        const char *key, *value;
    } of[] = {
        {"server.1", "x:1"},
        {"server.256", "h:1:2"},
        {"server.x", "h:1:2"},
        {"server.3", "h:0:1"},
        {"group.2", "2:1"},
        {"group.2", "2:2"},
        {"group.2", "2:256"},
        {"group.2", "2:"},
        {"group.2", ""},
        {"group.256", "2"},
        {"group.0", "2"},
        {"weight.1", "-1"},
        {"weight.1", "1000001"},
        {"weight.256", "1"},
        {"weight.1", ""},
        {"group.1", "1:70000"},
        {"group.1", "2 "},
        {"dataDir", "/x"},
        {"", ""},
        {"server", "h:1:2"},
        {"Server.3", "h:1:2"},
        {"server.3", "h:1:2\n"},
        {"server.\t3", "h:1:2"},
    };
    struct member_list list = parsed("server.1=h:1:2\nserver.2=i:1:2\ngroup.1=1\nweight.1=3");
    struct member_list before = list;
    char error[256];
    (void)state;
    for (size_t i = 0; i < COUNT(of); i++) {
        *error = 0;
        if (member_list_set(&list, of[i].key, of[i].value, error, sizeof error))
            fail_msg("%s=%s is accepted", of[i].key, of[i].value);
        assert_memory_equal(&list, &before, sizeof list);
        assert_true(*error);
        for (const char *at = error; *at; at++) assert_true(*at >= ' ');
    }
}

static void hostile_text_is_refused(void **state) {
    static const char *const servers[] = {
        "",         "h",           "h:1",           "h:1:",         "h:0:1",   "h:1:2:",
        "h:1:2;",   "h:1:2;0",     "h:1:2;h",       "h:1:2;h:",     "h:1:2x",  "h:1:2:leader",
        "h:1:2;3;", "h:1:2|i:3:4", "::1:1:2",       "h:1:70000",    ":1:2",    "h:1:2:observers",
        "[]:1:2",   "[::1:1:2",    "h:123456:1",    "h:-1:1",       "h: 1:2",  "h:1:2;[::1]3",
        "%n:1:2",   "h/../x:1:2",  "h:1:2:obs\x7f", "\xc3\xa9:1:2", "h:0x1:2", "h:1:2;70000"};
    struct member_list list = {0};
    char line[1024], error[256];
    (void)state;
    for (size_t i = 0; i < COUNT(servers); i++) {
        snprintf(line, sizeof line, "server.1=%s", servers[i]);
        is_refused(line, "");
    }
    is_refused("server.1", "not KEY=VALUE");
    is_refused("server.1=h:1:2\n \n", "not KEY=VALUE");
    is_refused("dataDir=/x", "'dataDir' is not server.N, group.N or weight.N");
    is_refused("server.1=h:1:2\rserver.2=h:1:2", "control characters");
    is_refused("server.255=h:1:2", "a server's id is a whole number from 0 to 254");
    is_refused("weight.1=x", "'x' is not a whole number from 0 to 1000000");
    is_refused("group.1=1,group.2=1", "server 1 is in a group already");
    assert_false(parse(&list, "server.1=h:1:2\0", 15, error)); /* a zero within */
    memset(line, 'x', sizeof line);
    memcpy(line, "server.1=", 9);
    assert_false(parse(&list, line, sizeof line, error));
    assert_int_equal(list.count, 0);
}

static void errors_fit_whatever_room_there_is(void **state) {
    struct member_list list = {0};
    (void)state;
    for (size_t size = 1; size < 80; size++) {
        char *error = malloc(size);
        assert_non_null(error);
        assert_false(member_list_set(&list, "server.1", "no", error, size));
        assert_true(strlen(error) < size);
        assert_false(member_list_parse_short(&list, "no", error, size));
        assert_true(strlen(error) < size);
        free(error);
    }
}

/* ---- The short form ---- */

static void the_short_form_has_one_port(void **state) {
    struct member_list list = parsed("server.2=z:1:2;3\nweight.2=4");
    char error[256];
    (void)state;
    assert_true(member_list_parse_short(&list, "3=[::1]:5:observer , 2=b:7", error, sizeof error));
    expect_text(&list, "server.2=b:7:7:participant\nserver.3=[::1]:5:5:observer\nweight.2=4");
    static const char *const of[] = {"",        "4",      "4=",          "4=h",      "-1=h:1",
                                     "255=h:1", "4=h:1,", "4=h:1;2",     "4=h:1:2",  "4=h:1,4=i:2",
                                     "4=h:0",   "x=h:1",  "4=h:1 5=i:1", "4=h:1,5=i"};
    for (size_t i = 0; i < COUNT(of); i++) {
        if (member_list_parse_short(&list, of[i], error, sizeof error))
            fail_msg("'%s' is accepted", of[i]);
        assert_int_equal(list.count, 2);
    }
}

/* ---- Members ---- */

static void members_are_put_and_removed_in_order(void **state) {
    struct member_list list = {0};
    struct member member = {.peer_port = 1, .election_port = 1, .weight = 1, .host = "h"};
    static const int32_t ids[] = {5, 1, 9, 3, 255, 5};
    (void)state;
    for (size_t i = 0; i < COUNT(ids); i++) {
        member.id = ids[i];
        assert_true(member_list_put(&list, &member));
    }
    assert_int_equal(list.count, 5);
    assert_false(member_list_remove(&list, 2));
    assert_true(member_list_remove(&list, 1));
    assert_true(member_list_remove(&list, 255));
    assert_false(member_list_remove(&list, 255));
    static const int32_t left[] = {3, 5, 9};
    assert_int_equal(list.count, COUNT(left));
    for (size_t i = 0; i < COUNT(left); i++) {
        assert_int_equal(list.at[i].id, left[i]);
        assert_ptr_equal(member_list_find(&list, left[i]), &list.at[i]);
    }
}

/* A member that comes back has nothing of the one that left. */
static void nothing_of_a_removed_member_stays(void **state) {
    struct member_list list = parsed("server.1=h:1:2\nserver.2=i:1:2;3\ngroup.1=1:2\nweight.2=7");
    char error[256];
    (void)state;
    assert_true(member_list_remove(&list, 2));
    expect_text(&list, "server.1=h:1:2:participant\ngroup.1=1");
    assert_true(member_list_set(&list, "server.2", "j:1:2", error, sizeof error));
    expect_text(&list, "server.1=h:1:2:participant\nserver.2=j:1:2:participant\ngroup.1=1");
    /* Nor of lines that came before it was put. */
    list = parsed("weight.3=7\ngroup.1=3");
    assert_true(member_list_put(&list, &(struct member){.id = 3, .host = "h", .weight = 2}));
    assert_true(member_list_remove(&list, 3));
    assert_true(member_list_set(&list, "server.3", "h:1:2", error, sizeof error));
    expect_text(&list, "server.3=h:1:2:participant");
}

static void too_many_are_refused(void **state) {
    struct member_list list = {0};
    char key[16], error[256];
    (void)state;
    for (int id = MEMBER_LIST_MAX; id > 0; id--) {
        snprintf(key, sizeof key, "server.%d", id);
        assert_true(member_list_set(&list, key, "h:1:2", error, sizeof error));
    }
    struct member_list full = list;
    assert_false(member_list_set(&list, "server.100", "h:1:2", error, sizeof error));
    assert_string_equal(error, "more than 32 servers");
    assert_false(member_list_put(&list, &(struct member){.id = 0, .host = "h", .weight = 1}));
    assert_false(member_list_parse_short(&list, "1=i:1,100=h:1", error, sizeof error));
    assert_memory_equal(&list, &full, sizeof list);
    assert_true(member_list_set(&list, "server.32", "i:1:2", error, sizeof error));
    assert_true(member_list_remove(&list, 1));
    assert_true(member_list_set(&list, "server.100", "h:1:2", error, sizeof error));
    assert_int_equal(list.count, MEMBER_LIST_MAX);
}

/* ---- Anything ---- */

static void whatever_is_accepted_is_read_back(void **state) {
    static const char *const parts[] = {"server.1=", "server.2=", "group.1=",  "weight.2=", "a:1:2",
                                        ";",         "[::1]",     ",",         "\n",        "1",
                                        ":",         "*",         ":observer", "2",         "="};
    struct rng rng;
    (void)state;
    rng_seed(&rng, 12);
    for (int round = 0; round < 20000; round++) {
        struct member_list list = {0}, again = {0};
        char text[256] = "", error[256];
        struct bytes written = {0};
        for (size_t count = rng_next(&rng) % 12; count; count--)
            strcat(text, parts[rng_next(&rng) % COUNT(parts)]);
        parse(&list, text, strlen(text), error);
        member_list_write(&list, &written);
        bytes_add(&written, "", 1);
        if (!parse(&again, (const char *)written.at, written.used - 1, error))
            fail_msg("%s\n%s", (const char *)written.at, error);
        expect_text(&again, (const char *)written.at);
        assert_int_equal(again.count, list.count);
        bytes_close(&written);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_empty_list_is_empty_text),
        cmocka_unit_test(canonical_text_is_read_back),
        cmocka_unit_test(shorter_forms_become_canonical),
        cmocka_unit_test(the_longest_names_fit),
        cmocka_unit_test(every_order_gives_the_same_text),
        cmocka_unit_test(fields_are_those_of_the_line),
        cmocka_unit_test(a_later_line_replaces_an_earlier_one),
        cmocka_unit_test(a_group_is_replaced_as_a_whole),
        cmocka_unit_test(servers_without_a_line_are_no_members),
        cmocka_unit_test(ids_are_read_back),
        cmocka_unit_test(a_refused_line_changes_nothing),
        cmocka_unit_test(hostile_text_is_refused),
        cmocka_unit_test(errors_fit_whatever_room_there_is),
        cmocka_unit_test(the_short_form_has_one_port),
        cmocka_unit_test(members_are_put_and_removed_in_order),
        cmocka_unit_test(nothing_of_a_removed_member_stays),
        cmocka_unit_test(too_many_are_refused),
        cmocka_unit_test(whatever_is_accepted_is_read_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
