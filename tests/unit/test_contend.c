/* Names of contenders, their order, and who holds or waits for whom. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "algorithms/catalogue.h"
#include "base/rng.h"
#include "recipe/contend.h"

#define GUID "0123456789abcdef0123456789abcdef"

static void assert_parsed(const char *name, const char *owner, enum contend_kind kind,
                          int32_t sequence) {
    struct contender c;
    assert_true(contend_parse(&c, name));
    assert_int_equal(c.owner_size, strlen(owner));
    assert_true(contend_is_owner(&c, owner, strlen(owner)));
    assert_int_equal(c.kind, kind);
    assert_int_equal(c.sequence, sequence);
    assert_ptr_equal(c.name, name);
}

static void names_of_all_libraries_are_known(void **state) {
    (void)state;
    assert_parsed(GUID "__lock__0000000000", GUID, CONTEND_EXCLUSIVE, 0);
    assert_parsed(GUID "__lock__2147483647", GUID, CONTEND_EXCLUSIVE, INT32_MAX);
    assert_parsed(GUID "__lock__-2147483648", GUID, CONTEND_EXCLUSIVE, INT32_MIN);
    assert_parsed(GUID "__lock__-000000001", GUID, CONTEND_EXCLUSIVE, -1);
    assert_parsed(GUID "__rlock__0000000012", GUID, CONTEND_SHARED, 12);
    assert_parsed(GUID "__slot__lock__0000000012", GUID, CONTEND_SLOT, 12);
    assert_parsed(GUID "__upgrade__lock__0000000012", GUID, CONTEND_UPGRADE, 12);
    assert_parsed("_c_" GUID "-lock-0000000003", "_c_" GUID, CONTEND_EXCLUSIVE, 3);
    assert_parsed("_c_" GUID "-lock--000000003", "_c_" GUID, CONTEND_EXCLUSIVE, -3);
    assert_parsed("_c_" GUID "-lock-1000000000", "_c_" GUID, CONTEND_EXCLUSIVE, 1000000000);
    assert_parsed("_c_" GUID "-__READ__0000000004", "_c_" GUID "-", CONTEND_SHARED, 4);
    assert_parsed("_c_" GUID "-__WRIT__0000000005", "_c_" GUID "-", CONTEND_EXCLUSIVE, 5);
    assert_parsed("lock-0000000006", "", CONTEND_EXCLUSIVE, 6);
    assert_parsed("x-write-0000000007", "x-", CONTEND_EXCLUSIVE, 7);
    assert_parsed("read-0000000008", "", CONTEND_SHARED, 8);
    /* a kind in the owner's part does not count */
    assert_parsed("__rlock__0000000001__lock__0000000002", "__rlock__0000000001", CONTEND_EXCLUSIVE,
                  2);
}

static void other_names_are_not(void **state) {
    (void)state;
    static const char *const names[] = {
        "",
        "leader",
        "0000000001",
        GUID,
        GUID "__lock__",
        GUID "__lock__1",
        GUID "__lock__000000001",
        GUID "__lock__00000000001",
        GUID "__lock__2147483648",
        GUID "__lock__-2147483649",
        GUID "__lock__-0000000001",
        GUID "__lock__ 000000001",
        GUID "__lock__+000000001",
        GUID "__lock__00000000x1",
        GUID "__lock__0000000001 ",
        GUID "__Lock__0000000001",
        GUID "__lock_0000000001",
    };
    struct contender c;
    int32_t number = 0;
    assert_true(sequence_parse("0000000012", &number) && number == 12);
    assert_false(sequence_parse("012", &number) || sequence_parse("", &number) ||
                 sequence_parse("00000000012", &number) || sequence_parse("-", &number));
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        assert_false(contend_parse(&c, names[i]));
}

/* Curator's mutex and go-zookeeper's lock take the number after the last "lock-" and wait for all
 * before it, Curator's latch that after "latch-"; kazoo's waits for what has "__lock__" before the
 * number, Curator's writer for all. */
static void texts_of_kinds_are_read_back(void **state) {
    (void)state;
    static const char *const exclusive[] = {"lock-", "__WRIT__", "latch-", "__lock__"};
    for (int recipe = CONTEND_CURATOR; recipe <= CONTEND_KAZOO; recipe++)
        for (int kind = CONTEND_EXCLUSIVE; kind <= CONTEND_UPGRADE; kind++) {
            char name[80];
            struct contender c;
            const char *text = contend_kind_text(recipe, kind);
            assert_true(text || (recipe == CONTEND_CURATOR_RW && kind == CONTEND_SLOT) ||
                        (recipe == CONTEND_CURATOR_LATCH && kind != CONTEND_EXCLUSIVE));
            if (!text) continue;
            snprintf(name, sizeof name, "%s%s0000000009", GUID, text);
            assert_parsed(name, GUID, kind, 9);
            assert_true(contend_parse(&c, name) && c.recipe == (enum contend_recipe)recipe);
            const char *end = text + strlen(text) - strlen(exclusive[recipe]);
            bool waited_for = end >= text && strcmp(end, exclusive[recipe]) == 0;
            assert_true(waited_for || (recipe != CONTEND_CURATOR && kind == CONTEND_SHARED));
        }
    assert_null(contend_kind_text(CONTEND_OTHER, CONTEND_SLOT));
}

/* Wherever they are in the queue: who does not wait for us may hold it, too. */
static void others_by_another_recipe_are_seen(void **state) {
    (void)state;
    static const char *const others[] = {GUID "__lock__0000000001", GUID "__rlock__0000000003",
                                         "_c_x-__READ__0000000001", "_c_x-__WRIT__0000000003",
                                         "write-0000000003",        "read-0000000001"};
    static const char *const alike[] = {"_c_x-lock-0000000001", "lock-0000000003",
                                        GUID "-shared-lock-0000000003", "junk"};
    struct contender c[2];
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        size_t count = contend_list(c, (const char *[]){"a-lock-0000000002", others[i]}, 2);
        assert_true(contend_judge(c, count, "a", 1, 1, false).mixed);
    }
    for (size_t i = 0; i < sizeof alike / sizeof *alike; i++) {
        size_t count = contend_list(c, (const char *[]){"a-lock-0000000002", alike[i]}, 2);
        assert_false(contend_judge(c, count, "a", 1, 1, false).mixed);
    }
}

static void numbers_go_on_after_the_largest(void **state) {
    (void)state;
    assert_true(sequence_before(1, 2));
    assert_false(sequence_before(2, 2));
    assert_true(sequence_before(INT32_MAX, INT32_MIN));
    assert_false(sequence_before(INT32_MIN, INT32_MAX));
    assert_true(sequence_before(-1, 0));
    static const char *const names[] = {"c__lock__-2147483647", "x", "a__lock__2147483647",
                                        "b__lock__-2147483648", "0__rlock__2147483646"};
    struct contender c[5];
    assert_int_equal(contend_list(c, names, 5), 4);
    const char order[] = "0abc";
    for (int i = 0; i < 4; i++) assert_int_equal(*c[i].owner, order[i]);
}

/* Names that cannot be of one lock, in a circle: some order, and no harm. */
static void an_order_that_is_none_does_no_harm(void **state) {
    (void)state;
    enum { COUNT = 4000, SIZE = 24 };
    char(*text)[SIZE] = malloc(COUNT * sizeof *text);
    const char **names = malloc(COUNT * sizeof *names);
    struct contender *c = malloc(COUNT * sizeof *c);
    assert_true(text && names && c);
    for (int i = 0; i < COUNT; i++) {
        snprintf(text[i], SIZE, "__lock__%010d", (int32_t)((uint32_t)i * 2654435761u));
        names[i] = text[i];
    }
    assert_int_equal(contend_list(c, names, COUNT), COUNT);
    for (int i = 1; i < COUNT; i++) assert_true(c[i - 1].rank <= c[i].rank);
    free(c);
    free(names);
    free(text);
}

/* ---- All small queues ---- */

enum { MOST = 5 };

static struct contend_verdict judge(struct contender *c, size_t count, size_t who, int32_t slots) {
    return contend_judge(c, count, c[who].owner, c[who].owner_size, slots, false);
}

static bool conflict(enum contend_kind a, enum contend_kind b) {
    return a != b || a == CONTEND_EXCLUSIVE;
}

/* Each contender as the definition says, by counting. */
static bool ought_to_hold(const struct contender *c, size_t who, int32_t slots) {
    int32_t taken = 0;
    for (size_t i = 0; i < who; i++) {
        if (conflict(c[i].kind, c[who].kind)) return false;
        taken += c[i].kind == CONTEND_SLOT;
    }
    return c[who].kind != CONTEND_SLOT || taken < slots;
}

static void check_queue(struct contender *c, size_t count, int32_t slots) {
    for (size_t i = 0; i < count; i++) {
        struct contend_verdict v = judge(c, count, i, slots);
        size_t watches = 0, last = 0;
        assert_ptr_equal(v.mine, &c[i]);
        assert_int_equal(v.holds, ought_to_hold(c, i, slots));
        assert_int_equal(v.position == 0, v.holds);
        for (size_t k = 0; k < count; k++)
            if (c[k].watch) {
                watches++, last = k;
                assert_true(k < i);
            }
        assert_int_equal(watches == 0, v.holds);
        if (c[i].kind != CONTEND_SLOT && !v.holds) {
            /* the nearest that is in the way, and it alone */
            assert_int_equal(watches, 1);
            for (size_t k = last + 1; k < i; k++) assert_false(conflict(c[k].kind, c[i].kind));
        }
    }
    /* Nobody wakes a herd: more than one watches an end only if all of them may hold together. */
    for (size_t k = 0; k < count; k++) {
        size_t exclusive = 0;
        for (size_t i = k + 1; i < count; i++) {
            struct contend_verdict v = judge(c, count, i, slots);
            exclusive += !v.holds && c[k].watch && c[i].kind == CONTEND_EXCLUSIVE;
        }
        assert_true(exclusive <= 1);
    }
}

static void all_small_queues(void **state) {
    (void)state;
    static const char *const owner = "abcde";
    for (size_t count = 1; count <= MOST; count++) {
        size_t all = 1;
        for (size_t i = 0; i < count; i++) all *= 3;
        for (size_t queue = 0; queue < all; queue++)
            for (int32_t slots = 1; slots <= 3; slots++) {
                struct contender c[MOST];
                size_t rest = queue;
                for (size_t i = 0; i < count; i++, rest /= 3)
                    c[i] = (struct contender){.name = "",
                                              .owner = &owner[i],
                                              .owner_size = 1,
                                              .kind = (enum contend_kind)(rest % 3),
                                              .sequence = (int32_t)(INT32_MAX - 2 + (uint32_t)i)};
                check_queue(c, count, slots);
            }
    }
}

static void a_stranger_to_the_queue_has_no_place(void **state) {
    (void)state;
    struct contender c[1] = {{.name = "", .owner = "a", .owner_size = 1}};
    struct contend_verdict v = contend_judge(c, 1, "b", 1, 1, false);
    assert_true(!v.mine && !v.holds);
    v = contend_judge(c, 0, "a", 1, 1, false);
    assert_true(!v.mine && !v.holds);
}

static void a_second_node_of_mine_is_not_in_my_way(void **state) {
    (void)state;
    struct contender c[2] = {{.name = "", .owner = "a", .owner_size = 1, .sequence = 1},
                             {.name = "", .owner = "a", .owner_size = 1, .sequence = 2}};
    struct contend_verdict v = contend_judge(c, 2, "a", 1, 1, false);
    assert_true(v.holds && v.mine == &c[0] && v.extra == &c[1]);
}

/* ---- tree-lock-queue of the catalogue decides the same, step by step ---- */

enum { COMPETITORS = 3, STATE_MAX = 1024, SENDS_MAX = 4096, IN_FLIGHT = 64 };
enum { TLQ_CREATED = 1, TLQ_DELETED = 3 }; /* kinds of its messages */

struct twin {
    const struct cv_algorithm *code;
    _Alignas(8) unsigned char state[COMPETITORS + 2][STATE_MAX];
    struct cv_env env[COMPETITORS + 2];
    struct {
        uint32_t from, to;
        uint16_t kind;
        _Alignas(8) unsigned char body[32];
    } message[IN_FLIGHT];
    size_t messages;
    struct contender contender[COMPETITORS]; /* the queue as the library would see it */
    size_t count;
    uint64_t node[COMPETITORS + 2]; /* of each competitor; 0: none */
    bool inside[COMPETITORS + 2];
};

static const char *const digits = "0123456789";
static const uint64_t no_options[CV_OPTIONS_MAX];

/* Whom the library would watch in this place: its node, 0 if it would hold. */
static uint64_t library_watches(struct twin *t, uint32_t who) {
    struct contend_verdict v = contend_judge(t->contender, t->count, &digits[who], 1, 1, false);
    assert_non_null(v.mine);
    for (size_t i = 0; i < t->count; i++)
        if (t->contender[i].watch) return (uint64_t)t->contender[i].sequence;
    assert_true(v.holds);
    return 0;
}

static void library_adds(struct twin *t, uint32_t who, uint64_t node) {
    t->node[who] = node;
    t->contender[t->count++] = (struct contender){
        .name = "", .owner = &digits[who], .owner_size = 1, .sequence = (int32_t)node};
}

static void library_removes(struct twin *t, uint32_t who) {
    size_t kept = 0;
    for (size_t i = 0; i < t->count; i++)
        if (*t->contender[i].owner != digits[who]) t->contender[kept++] = t->contender[i];
    t->count = kept;
    t->node[who] = 0;
}

static void twin_step(struct twin *t, uint32_t who, const struct cv_event *event) {
    _Alignas(8) unsigned char sends[SENDS_MAX];
    struct cv_out out = {.room = SENDS_MAX, .sends = sends};
    bool deletes = who == 1 && event->type == CV_RECV && event->kind == 4 && t->node[event->from];
    if (deletes) library_removes(t, event->from);
    t->code->step(t->state[who], &t->env[who], event, &out);
    for (uint32_t at = 0; at < out.used;) {
        const struct cv_send *send = (const struct cv_send *)(const void *)(sends + at);
        const uint64_t *body = (const uint64_t *)(const void *)(send + 1);
        assert_true(t->messages < IN_FLIGHT && send->size <= sizeof t->message[0].body);
        t->message[t->messages].from = who;
        t->message[t->messages].to = send->to;
        t->message[t->messages].kind = send->kind;
        memcpy(t->message[t->messages].body, body, send->size);
        t->messages++;
        if (who == 1 && send->kind == TLQ_CREATED) { /* attempt, node, before */
            library_adds(t, send->to, body[1]);
            assert_int_equal(body[2], library_watches(t, send->to));
        }
        if (who == 1 && send->kind == TLQ_DELETED) /* attempt, before */
            assert_int_equal(body[1], library_watches(t, send->to));
        at += (uint32_t)sizeof *send + ((send->size + 7) & ~7u);
    }
    for (unsigned i = 0; i < out.tells; i++) {
        if (out.tell[i].what == CV_ENTERED) {
            t->inside[who] = true;
            assert_int_equal(library_watches(t, who), 0); /* the library would hold as well */
        }
        if (out.tell[i].what == CV_LEFT) t->inside[who] = false;
    }
}

/* Connections keep their order. */
static size_t first_alike(const struct twin *t, size_t which) {
    for (size_t i = 0; i < which; i++)
        if (t->message[i].from == t->message[which].from &&
            t->message[i].to == t->message[which].to)
            return i;
    return which;
}

static void the_catalogue_decides_the_same(void **state) {
    (void)state;
    struct twin *t = calloc(1, sizeof *t);
    struct rng rng;
    assert_non_null(t);
    size_t entries = 0;
    for (uint64_t seed = 1; seed <= 300; seed++) {
        memset(t, 0, sizeof *t);
        rng_seed(&rng, seed);
        t->code = catalogue_find("tree-lock-queue");
        for (uint32_t p = 1; p <= COMPETITORS + 1; p++) {
            t->env[p] = (struct cv_env){
                .self = p, .processes = COMPETITORS + 1, .servers = 1, .option = no_options};
            twin_step(t, p, &(struct cv_event){.type = CV_START});
        }
        for (int i = 0; i < 200; i++) {
            uint32_t p = 2 + (uint32_t)rng_below(&rng, COMPETITORS);
            if (t->messages && rng_below(&rng, 3)) {
                size_t which = first_alike(t, rng_below(&rng, t->messages));
                uint32_t to = t->message[which].to;
                struct cv_event event = {.type = CV_RECV,
                                         .from = t->message[which].from,
                                         .kind = t->message[which].kind,
                                         .size = 24};
                _Alignas(8) unsigned char body[32];
                memcpy(body, t->message[which].body, sizeof body);
                event.body = body;
                memmove(&t->message[which], &t->message[which + 1],
                        (--t->messages - which) * sizeof t->message[0]);
                twin_step(t, to, &event);
            } else {
                entries += t->inside[p];
                twin_step(t, p,
                          &(struct cv_event){.type = CV_CALL,
                                             .arg = t->inside[p] ? CV_RELEASE : CV_ACQUIRE});
            }
        }
    }
    assert_true(entries > 1000);
    free(t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_of_all_libraries_are_known),
        cmocka_unit_test(other_names_are_not),
        cmocka_unit_test(texts_of_kinds_are_read_back),
        cmocka_unit_test(others_by_another_recipe_are_seen),
        cmocka_unit_test(numbers_go_on_after_the_largest),
        cmocka_unit_test(an_order_that_is_none_does_no_harm),
        cmocka_unit_test(all_small_queues),
        cmocka_unit_test(a_stranger_to_the_queue_has_no_place),
        cmocka_unit_test(a_second_node_of_mine_is_not_in_my_way),
        cmocka_unit_test(the_catalogue_decides_the_same),
    };
    return cmocka_run_group_tests_name("contend", tests, NULL, NULL);
}
