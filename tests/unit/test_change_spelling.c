/* How clients may spell a reconfig; tests/net/reconfig_answers.py asks ZooKeeper the same. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/rng.h"
#include "service/ensemble/change.h"
#include "service/ensemble/properties.h"

enum request_part { JOINING, LEAVING, MEMBERS };

static struct zk_reconfig_request request_of(enum request_part part, struct zk_text text) {
    return (struct zk_reconfig_request){part == JOINING ? text : zk_null(),
                                        part == LEAVING ? text : zk_null(),
                                        part == MEMBERS ? text : zk_null(), -1};
}

static struct zk_text text_of(const struct zk_reconfig_request *r, enum request_part part) {
    return part == JOINING ? r->joining : part == LEAVING ? r->leaving : r->members;
}

static void expect(enum request_part part, const char *said, const char *as) {
    struct zk_reconfig_request r = request_of(part, zk_text_of(said));
    struct spelling text = {0};
    assert_int_equal(change_respell(&r, &text), ZK_OK);
    assert_int_equal(text_of(&r, part).size, strlen(as));
    assert_memory_equal(text_of(&r, part).at ? text_of(&r, part).at : "", as, strlen(as));
    change_close_spelling(&text);
}

static void refuse(enum request_part part, const char *said, int32_t err) {
    struct zk_reconfig_request r = request_of(part, zk_text_of(said));
    struct spelling text = {0};
    assert_int_equal(change_respell(&r, &text), err);
    change_close_spelling(&text);
}

static void joining(void **state) {
    static const char server[] = "server.4=h:1:2;3";
    (void)state;
    expect(JOINING, server, server);
    expect(JOINING, " a.b.+4 = h:1:+2: Observer ;c:3;; , ,", "server.4=h:1:2:observer;c:3");
    expect(JOINING, "4=[::1]:1:2:participant;[::2]:3,", "server.4=[::1]:1:2:participant;[::2]:3");
    expect(JOINING, "server.4=h:1:2:;3,server.5=g:1:2;3", "server.4=h:1:2;3\nserver.5=g:1:2;3");
    expect(JOINING, "server.4=h:1:1;3", "server.4=h:1:1;3");
    expect(JOINING, "server.4=h:1:2;:3", "server.4=h:1:2;localhost:3");
    expect(JOINING, "weight.4 = 2 ,server.5=h:1:2;3", "weight.4=2\nserver.5=h:1:2;3");
    expect(JOINING, " , ", "");
    refuse(JOINING, "weight.4=2\n3", ZK_BADARGUMENTS);
    refuse(JOINING, "weight.4\nx=2", ZK_BADARGUMENTS);
    refuse(JOINING, "server.4=h:1:2;\n3", ZK_BADARGUMENTS);
    refuse(JOINING, "server.4=h:1:2;c\nd:3", ZK_BADARGUMENTS);
    refuse(JOINING, "server.4=h:x:2;70000", ZK_MARSHALLINGERROR);
    refuse(JOINING, "server.4=h:70000:2;x", ZK_BADARGUMENTS);
    refuse(JOINING, "server.4=h:1:2,server.x=h:1:2;3", ZK_BADARGUMENTS);
    refuse(JOINING, "server.4=h:1:2,server.4=h:1:2;3", ZK_BADARGUMENTS);
    refuse(JOINING, "server.4=h:1:2;", ZK_BADARGUMENTS);
    refuse(JOINING, "server.4=;", ZK_MARSHALLINGERROR);
    expect(JOINING, "server.4=h:1:2:\tobserver\t;3", "server.4=h:1:2:observer;3");
    refuse(JOINING, "server.4=h:1:2;3\nserver.5=h:1:2;3", ZK_BADARGUMENTS);
    refuse(JOINING, "server.4=h\nj:1:2;3", ZK_BADARGUMENTS);
    refuse(JOINING, "server.4=[::1:1:2;3", ZK_BADARGUMENTS);
    refuse(JOINING, "server.4=[::1]1:2;3", ZK_BADARGUMENTS);
    refuse(JOINING, "server.255=h:1:2;3", ZK_BADARGUMENTS);
    refuse(JOINING, "server.x=h:1:2;3", ZK_MARSHALLINGERROR);
    refuse(JOINING, "server.4=h:1:65536;3", ZK_MARSHALLINGERROR);
}

static void leaving(void **state) {
    (void)state;
    expect(LEAVING, " 7 ,, +8,-1,255,9223372036854775807", "7,8");
    expect(LEAVING, "-9223372036854775808", "");
    refuse(LEAVING, "7 8", ZK_MARSHALLINGERROR);
    refuse(LEAVING, "9223372036854775808", ZK_MARSHALLINGERROR);
    refuse(LEAVING, "-9223372036854775809", ZK_MARSHALLINGERROR);
}

static void list(void **state) {
    (void)state;
    expect(MEMBERS, "# one\r\n  server.1 = h:1:2\n!two\nserver.2:h:3:4,weight.1 2",
           "server.1=h:1:2\nserver.2=h:3:4\nweight.1=2");
    expect(MEMBERS, " \n,", "");
    expect(MEMBERS, "version=-5f", "");
    refuse(MEMBERS, "server.1=h:1:2,version=", ZK_MARSHALLINGERROR);
    refuse(MEMBERS, "version=5 ", ZK_MARSHALLINGERROR);
    refuse(MEMBERS, "version=fffffffffffffffff", ZK_MARSHALLINGERROR);
    refuse(MEMBERS, "server.1=h:1:2 ", ZK_BADARGUMENTS);
    refuse(MEMBERS, "server.=h:1:2", ZK_MARSHALLINGERROR);
    refuse(MEMBERS, "server.a.1=h:1:2", ZK_MARSHALLINGERROR);
    expect(MEMBERS, "server.1=h:1:2,weight.1=+2", "server.1=h:1:2\nweight.1=2");
    refuse(MEMBERS, "weight.1=x", ZK_MARSHALLINGERROR);
    refuse(MEMBERS, "weight=1", ZK_MARSHALLINGERROR);
    refuse(MEMBERS, "weight.1=-1", ZK_BADARGUMENTS);
    refuse(MEMBERS, "group.1=1:2", ZK_BADARGUMENTS);
    refuse(MEMBERS, "group.1=1:x", ZK_MARSHALLINGERROR);
    refuse(MEMBERS, "group.1=1::2", ZK_MARSHALLINGERROR);
    refuse(MEMBERS, "group.x=1", ZK_MARSHALLINGERROR);
    refuse(MEMBERS, "server.x=h:1:2,dataDir=/tmp", ZK_BADARGUMENTS);
    refuse(MEMBERS, "Version=5", ZK_BADARGUMENTS);
    refuse(MEMBERS, "dataDir=\\u12", ZK_MARSHALLINGERROR);
    refuse(MEMBERS, "server.1=h\\u002cserver.2\\=g:1:2", ZK_BADARGUMENTS);
    refuse(MEMBERS, "server.1=h\\nserver.2\\=g:1:2", ZK_BADARGUMENTS);
    refuse(MEMBERS, "server.1=h\\\\:1:2", ZK_BADARGUMENTS);
}

/* As java.util.Properties reads it, except that a comma is a newline. */
static void properties(void **state) {
    static const struct {
        const char *text, *found; /* keys and values with < and > around them */
    } cases[] = {
        {"a=b", "<a><b>"},
        {" a : b ", "<a><b >"},
        {"a b=c", "<a><b=c>"},
        {"a = = b", "<a><= b>"},
        {"a", "<a><>"},
        {"a=\\\r\n  b\nc", "<a><b><c><>"},
        {"a\\\n\nb", "<a><><b><>"},
        {"\\\n#b\nc", "<c><>"},
        {"#a\\\nb", "<b><>"},
        {"#a", ""},
        {"a\\", "<a><>"},
        {"a\\\\\nb", "<a\\><><b><>"},
        {"\\a\\=\\:\\ b=\\n\\t\\\\", "<a=: b><\n\t\\>"},
        {"\\u0061\\u004A=\\u006f", "<aJ><o>"},
        {"a=\\,b", "<a><b>"},
        {"\\", ""},
        {" \f\t\n,\r", ""},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct properties p = {.rest = zk_text_of(cases[i].text)};
        struct bytes found = {0};
        while (properties_next(&p) == PROPERTIES_ONE) {
            const struct bytes *parts[] = {&p.key, &p.value};
            for (int part = 0; part < 2; part++) {
                bytes_add(&found, "<", 1);
                bytes_add(&found, parts[part]->at, parts[part]->used);
                bytes_add(&found, ">", 1);
            }
        }
        bytes_add(&found, "", 1);
        assert_string_equal(found.at, cases[i].found);
        bytes_close(&found);
        properties_close(&p);
    }
}

/* Neither read nor made: a request can be as long as a frame. */
static void long_ones(void **state) {
    enum { ALL = 1000000, HOST = 1 << 10 };
    char *all = malloc(ALL + 1), host[HOST];
    (void)state;
    for (int i = 0; i < ALL; i++) all[i] = "4=h:1:2;3,"[i % 10];
    all[ALL] = 0;
    refuse(JOINING, all, ZK_BADARGUMENTS);
    for (int i = 0; i < ALL; i++) all[i] = "7,"[i % 2];
    refuse(LEAVING, all, ZK_BADARGUMENTS);
    for (int i = 0; i < ALL; i++) all[i] = "#\n"[i % 2];
    refuse(MEMBERS, all, ZK_BADARGUMENTS);
    free(all);
    snprintf(host, sizeof host, "server.4=%0*d:1:2;3", HOST - 32, 0);
    refuse(JOINING, host, ZK_BADARGUMENTS);
}

/* What is taken is taken again as it is, whatever it was made of. */
static void any_text(void **state) {
    static const char letters[] = "server.4=h:12;,[] \n-+#:=;,\\u";
    enum { TIMES = 100000, LENGTH_MAX = 16 };
    struct rng rng;
    (void)state;
    rng_seed(&rng, 1);
    unsigned taken = 0;
    for (unsigned i = 0; i < TIMES; i++) {
        static const char *const begin[] = {"", "server.4=h:1:2;3", "server.4=[::1]:1:2:observer;"};
        const char *from = begin[rng_below(&rng, 3)];
        enum request_part part = (enum request_part)rng_below(&rng, 3);
        size_t begun = strlen(from), size = begun + rng_below(&rng, LENGTH_MAX);
        char *said =
            malloc(size ? size : 1); /* of this size, so that what reads too far is found */
        memcpy(said, from, begun);
        for (size_t j = begun; j < size; j++)
            said[j] = letters[rng_below(&rng, sizeof letters)]; /* NUL is one of them */
        if (begun && size) said[rng_below(&rng, size)] = letters[rng_below(&rng, sizeof letters)];
        struct zk_reconfig_request once = request_of(part, (struct zk_text){said, (int32_t)size});
        struct spelling text = {0}, again = {0};
        if (change_respell(&once, &text) == ZK_OK) {
            struct zk_reconfig_request twice = once;
            assert_int_equal(change_respell(&twice, &again), ZK_OK);
            assert_true(zk_text_equal(text_of(&once, part), text_of(&twice, part)));
            taken += text_of(&once, part).size > 0;
        }
        change_close_spelling(&text);
        change_close_spelling(&again);
        free(said);
    }
    assert_in_range(taken, TIMES / 100, TIMES);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(joining),   cmocka_unit_test(leaving),
                                       cmocka_unit_test(list),      cmocka_unit_test(properties),
                                       cmocka_unit_test(long_ones), cmocka_unit_test(any_text)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
