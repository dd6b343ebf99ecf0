/* Who is at a lock or an election, who holds it, and who waits for whom. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "recipe/cycles.h"
#include "recipe/outer.h"
#include "recipe/roll.h"

enum { MAX = 8 };

static size_t listed(struct roll_entry entries[MAX], const char *const *names, size_t count) {
    size_t there;
    assert_true(roll_list(entries, names, count, &there));
    return there;
}

/* One letter for each: h holds, w waits. */
static void holding(struct roll_entry *entries, size_t count, const char *wanted) {
    char seen[MAX + 1] = "";
    roll_judge(entries, count, &(struct roll_leader){0});
    for (size_t i = 0; i < count; i++) seen[i] = entries[i].holds ? 'h' : 'w';
    assert_string_equal(seen, wanted);
}

static void a_plain_lock(void **state) {
    const char *const names[] = {"b__lock__0000000007", "junk", "a__lock__0000000003",
                                 "c__lock__0000000009"};
    struct roll_entry e[MAX];
    (void)state;
    assert_int_equal(listed(e, names, 4), 3);
    assert_string_equal(e[0].name, names[2]);
    assert_string_equal(e[2].name, names[3]);
    e[0].czxid = 11;
    e[0].ctime = 100;
    e[1].note.since = 50;
    e[1].ctime = 60;
    holding(e, 3, "hww");
    assert_int_equal(e[0].token, 11);
    assert_int_equal(e[0].held_since, 100);
    assert_false(e[0].held_known);
    assert_int_equal(e[1].since, 50);
    assert_int_equal(e[1].held_since, 0);
    e[0].note.held = e[1].note.held = 130; /* the second one holds nothing, whatever it says */
    holding(e, 3, "hww");
    assert_int_equal(e[0].held_since, 130);
    assert_true(e[0].held_known && !e[1].held_known);
}

static void shares_and_upgrades(void **state) {
    const char *const names[] = {"a__rlock__0000000001", "b__rlock__0000000002",
                                 "a__upgrade__lock__0000000003", "c__lock__0000000004",
                                 "d__rlock__0000000005"};
    struct roll_entry e[MAX];
    (void)state;
    assert_int_equal(listed(e, names, 5), 4); /* the mark of an upgrade is nobody else */
    holding(e, 4, "hhww");
}

static void slots(void **state) {
    const char *const names[] = {"a__slot__lock__0000000001", "b__slot__lock__0000000002",
                                 "c__slot__lock__0000000003", "d__lock__0000000004"};
    struct roll_entry e[MAX];
    (void)state;
    assert_int_equal(listed(e, names, 4), 4);
    for (size_t i = 0; i < 3; i++) e[i].note.slots = 2;
    holding(e, 4, "hhww");
    assert_int_equal(e[0].slots, 2);
    assert_int_equal(e[3].slots, 1);
}

static void an_election(void **state) {
    const char *const names[] = {"a__candidate1__0000000001", "leader",
                                 "b__candidate5__0000000002"};
    struct roll_leader leader = {.czxid = 77, .ctime = 700};
    struct roll_entry e[MAX];
    (void)state;
    assert_int_equal(listed(e, names, 3), 2);
    assert_int_equal(e[0].priority, 5);
    holding(e, 2, "ww"); /* there is no leader yet */
    note_copy(leader.note.node, names[0], strlen(names[0]));
    roll_judge(e, 2, &leader);
    assert_true(!e[0].holds && e[1].holds);
    assert_int_equal(e[1].token, 77);
    assert_int_equal(e[1].held_since, 700);
    assert_true(e[1].held_known);
}

struct edges {
    size_t count;
    size_t before[MAX];
};

static void add(size_t waiter, size_t before, void *arg) {
    struct edges *edges = arg;
    (void)waiter;
    edges->before[edges->count++] = before;
}

static void waits_for(const struct wait_place *places, size_t waiter, size_t count,
                      const size_t *before) {
    struct edges edges = {0};
    cycles_waits(places, waiter, add, &edges);
    assert_int_equal(edges.count, count);
    for (size_t i = 0; i < count; i++) assert_int_equal(edges.before[i], before[i]);
}

static void who_waits_for_whom(void **state) {
    const struct wait_place places[] = {
        {1, true, true, 1, NULL},   {2, true, true, 1, NULL},  {3, false, false, 1, NULL},
        {4, false, true, 1, NULL},  {5, false, true, 1, NULL}, {6, false, false, 1, NULL},
        {0, false, false, 1, NULL},
    };
    const struct wait_place slots[] = {{1, true, false, 2, NULL},
                                       {2, true, false, 2, NULL},
                                       {3, false, false, 2, NULL},
                                       {4, false, false, 1, NULL}};
    (void)state;
    waits_for(places, 0, 0, NULL);                /* it holds */
    waits_for(places, 2, 2, (size_t[]){1, 0});    /* for all that share it */
    waits_for(places, 3, 1, (size_t[]){2});       /* which waits for those before it */
    waits_for(places, 4, 1, (size_t[]){2});       /* not for another that will share */
    waits_for(places, 5, 3, (size_t[]){4, 3, 2}); /* back to one that waits for all */
    waits_for(places, 6, 0, NULL);                /* of no session */
    waits_for(slots, 2, 0, NULL);                 /* any slot will do: no circle */
    waits_for(slots, 3, 3, (size_t[]){2, 1, 0});
}

static void add_session(int64_t session, void *arg) {
    struct edges *edges = arg;
    edges->before[edges->count++] = (size_t)session;
}

static void who_waits_for_its_command(void **state) {
    struct wait_place place = {.session = 9, .slots = 1, .outer = "0x1f 0x9 0x2e"};
    struct edges edges = {0};
    (void)state;
    cycles_outer(&place, add_session, &edges);
    assert_int_equal(edges.count, 2); /* not for itself */
    assert_int_equal(edges.before[0], 0x1f);
    assert_int_equal(edges.before[1], 0x2e);
    place.holds = true;
    cycles_outer(&place, add_session, &edges);
    place = (struct wait_place){.session = 0, .outer = "0x1f"};
    cycles_outer(&place, add_session, &edges);
    place = (struct wait_place){.session = 9};
    cycles_outer(&place, add_session, &edges);
    assert_int_equal(edges.count, 2);
}

static void outer_sessions(void **state) {
    static const char *const bad[] = {
        "",        " ",    "0x",       "0x0",      "1f",
        "0x1 ",    " 0x1", "0x1  0x2", "0X1f",     "0x1 x",
        "0x1,0x2", "0x1F", "-0x1",     "0x1 0x2g", "0x1ffffffffffffffff"};
    char text[NOTE_TEXT_MAX] = "";
    int64_t sessions[OUTER_MAX];
    (void)state;
    assert_int_equal(outer_read(NULL, sessions), 0);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_int_equal(outer_read(bad[i], sessions), 0);
    outer_add(text, "rubbish", 31);
    assert_string_equal(text, "0x1f");
    for (int64_t i = 1; i <= 2 * OUTER_MAX; i++) {
        char before[NOTE_TEXT_MAX];
        memcpy(before, text, sizeof before);
        outer_add(text, before, -i);
    }
    assert_int_equal(outer_read(text, sessions), OUTER_MAX);
    assert_int_equal(sessions[0], -1 - OUTER_MAX); /* those farther out are left out */
    assert_int_equal(sessions[OUTER_MAX - 1], -2 * OUTER_MAX);
    strcat(text, " 0x1");
    assert_int_equal(outer_read(text, sessions), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_plain_lock),
        cmocka_unit_test(shares_and_upgrades),
        cmocka_unit_test(slots),
        cmocka_unit_test(an_election),
        cmocka_unit_test(who_waits_for_whom),
        cmocka_unit_test(who_waits_for_its_command),
        cmocka_unit_test(outer_sessions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
