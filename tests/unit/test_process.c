/* Queues inside states, printed records, names of processes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "process/roster.h"

/* ---- Queues ---- */

enum { MEMBERS = 12, FIRST = 4 };

struct member { /* a row with its link in the middle */
    uint64_t number;
    struct cv_link link;
    uint32_t more, and_more;
};

struct queue_bench {
    struct cv_queue queue;
    struct member row[MEMBERS];
    cv_pid model[MEMBERS];
    size_t count;
};

static struct cv_links links_of(struct queue_bench *b) {
    return (struct cv_links){(unsigned char *)&b->row[0].link, sizeof b->row[0], FIRST};
}

static size_t place_of(const struct queue_bench *b, cv_pid p) {
    size_t at = 0;
    while (at < b->count && b->model[at] != p) at++;
    return at;
}

static void assert_as_in_the_model(struct queue_bench *b) {
    struct cv_links links = links_of(b);
    cv_pid before = CV_NOBODY, p = b->queue.first;
    for (size_t i = 0; i < b->count; i++) {
        assert_int_equal(p, b->model[i]);
        assert_int_equal(cv_link(links, p)->prev, before);
        before = p, p = cv_link(links, p)->next;
    }
    assert_int_equal(p, CV_NOBODY);
    assert_int_equal(b->queue.last, before);
    for (cv_pid q = FIRST; q < FIRST + MEMBERS; q++)
        assert_int_equal(cv_queued(&b->queue, links, q), place_of(b, q) < b->count);
}

static void model_remove(struct queue_bench *b, size_t at) {
    memmove(&b->model[at], &b->model[at + 1], (b->count - at - 1) * sizeof b->model[0]);
    b->count--;
}

static void push_or_remove(struct queue_bench *b, cv_pid p) {
    size_t at = place_of(b, p);
    if (at < b->count) {
        cv_queue_remove(&b->queue, links_of(b), p);
        model_remove(b, at);
    } else {
        cv_queue_push(&b->queue, links_of(b), p);
        b->model[b->count++] = p;
    }
}

static void pop(struct queue_bench *b) {
    assert_int_equal(cv_queue_pop(&b->queue, links_of(b)), b->count ? b->model[0] : CV_NOBODY);
    if (b->count) model_remove(b, 0);
}

/* Equal queues have equal bytes, whatever happened to them before. */
static void assert_canonical(struct queue_bench *b) {
    struct queue_bench fresh = {0};
    for (size_t i = 0; i < b->count; i++)
        cv_queue_push(&fresh.queue, links_of(&fresh), b->model[i]);
    assert_memory_equal(&b->queue, &fresh.queue, sizeof b->queue);
    assert_memory_equal(b->row, fresh.row, sizeof b->row);
}

static void any_sequence_is_as_in_the_model(void **state) {
    struct rng rng;
    (void)state;
    rng_seed(&rng, 1);
    for (int sequence = 0; sequence < 200; sequence++) {
        struct queue_bench b = {0};
        for (int i = 0; i < 200; i++) {
            if (rng_below(&rng, 4) == 0)
                pop(&b);
            else
                push_or_remove(&b, FIRST + (cv_pid)rng_below(&rng, MEMBERS));
            assert_as_in_the_model(&b);
            assert_canonical(&b);
        }
        while (b.count) pop(&b);
        pop(&b);
        assert_canonical(&b);
    }
}

static void a_queue_of_one_knows_its_member(void **state) {
    struct queue_bench b = {0};
    (void)state;
    push_or_remove(&b, FIRST);
    assert_true(cv_queued(&b.queue, links_of(&b), FIRST));
    assert_as_in_the_model(&b);
    push_or_remove(&b, FIRST);
    assert_canonical(&b);
}

/* ---- Printed records ---- */

#define EVERY_FIELDS(F, R)                                                                         \
    F(R, u64, huge, SHOWN)                                                                         \
    F(R, u32, big, SHOWN)                                                                          \
    F(R, u16, small, SHOWN)                                                                        \
    F(R, u8, tiny, SHOWN)                                                                          \
    F(R, u8, secret, INNER)                                                                        \
    F(R, pid, who, SHOWN)                                                                          \
    F(R, pid, nobody, SHOWN)                                                                       \
    F(R, queue, waiting, SHOWN)
#define ROW_FIELDS(F, R)                                                                           \
    F(R, u32, count, SHOWN)                                                                        \
    F(R, link, link, INNER)                                                                        \
    F(R, pid, friend, SHOWN)
#define HIDDEN_FIELDS(F, R) F(R, u32, hidden, INNER)

CV_RECORD(every, EVERY_FIELDS);
CV_RECORD(row, ROW_FIELDS);
CV_RECORD(hidden, HIDDEN_FIELDS);

static const struct cv_record every_table = CV_TABLE_ROWS("EVERY", every, row);
static const struct cv_record hidden_table = CV_TABLE("HIDDEN", hidden);
static const struct cv_record rows_only = CV_TABLE_ROWS("ROWS", hidden, row);

static const struct roster default_roster = {.processes = 7, .servers = 3, .server_name = "c"};

struct printed {
    struct every head;
    struct row row[3];
};

static struct printed example(void) {
    struct printed printed = {.head = {.huge = UINT64_MAX,
                                       .big = UINT32_MAX,
                                       .small = UINT16_MAX,
                                       .tiny = UINT8_MAX,
                                       .secret = 9,
                                       .who = 4},
                              .row = {{.count = 10, .friend = 1}, {.count = 20}, {.friend = 7}}};
    struct cv_links links = {(unsigned char *)&printed.row[0].link, sizeof printed.row[0], 4};
    cv_queue_push(&printed.head.waiting, links, 6);
    cv_queue_push(&printed.head.waiting, links, 4);
    return printed;
}

static const char shown[] = "huge=18446744073709551615 big=4294967295 small=65535 tiny=255 who=p1 "
                            "nobody=nobody waiting=[p3, p1] count=[10, 20, 0] "
                            "friend=[c1, nobody, p4]";

static void every_type_of_field_is_printed(void **state) {
    struct printed printed = example();
    char text[512];
    (void)state;
    int length =
        record_print(text, sizeof text, &every_table, &printed, 3, 4, CV_SHOWN, &default_roster);
    assert_string_equal(text, shown);
    assert_int_equal(length, strlen(shown));
}

static void a_debugger_sees_the_inner_fields_too(void **state) {
    struct printed printed = example();
    char text[512];
    (void)state;
    record_print(text, sizeof text, &every_table, &printed, 3, 4, CV_INNER, &default_roster);
    assert_non_null(strstr(text, " tiny=255 secret=9 who=p1 "));
    assert_null(strstr(text, " link=[")); /* the queue shows them */
}

static void no_rows_are_empty_lists(void **state) {
    struct printed printed = {0};
    char text[512];
    (void)state;
    record_print(text, sizeof text, &every_table, &printed, 0, 4, CV_SHOWN, &default_roster);
    assert_string_equal(text, "huge=0 big=0 small=0 tiny=0 who=nobody nobody=nobody waiting=[] "
                              "count=[] friend=[]");
}

static void a_record_without_shown_fields_is_empty(void **state) {
    struct hidden hidden = {5};
    char text[16] = "x";
    (void)state;
    assert_int_equal(
        record_print(text, sizeof text, &hidden_table, &hidden, 0, 1, CV_SHOWN, &default_roster),
        0);
    assert_string_equal(text, "");
    assert_int_equal(
        record_print(text, sizeof text, &hidden_table, &hidden, 0, 1, CV_INNER, &default_roster),
        8);
    assert_string_equal(text, "hidden=5");
}

static void rows_behind_a_hidden_head_begin_the_line(void **state) {
    const struct {
        struct hidden head;
        struct row row[2];
    } printed = {{1}, {{.count = 2}, {.count = 3, .friend = 2}}};
    char text[64];
    (void)state;
    record_print(text, sizeof text, &rows_only, &printed, 2, 1, CV_SHOWN, &default_roster);
    assert_string_equal(text, "count=[2, 3] friend=[nobody, c2]");
}

/* Like snprintf: the text never exceeds the buffer, and the length is that of the whole text. */
static void any_room_is_enough_to_know_the_length(void **state) {
    struct printed printed = example();
    (void)state;
    assert_int_equal(record_print(NULL, 0, &every_table, &printed, 3, 4, CV_SHOWN, &default_roster),
                     strlen(shown));
    for (size_t size = 1; size <= sizeof shown + 1; size++) {
        char *text = malloc(size);
        assert_non_null(text);
        memset(text, '#', size);
        assert_int_equal(
            record_print(text, size, &every_table, &printed, 3, 4, CV_SHOWN, &default_roster),
            strlen(shown));
        size_t kept = size - 1 < strlen(shown) ? size - 1 : strlen(shown);
        assert_int_equal(strlen(text), kept);
        assert_memory_equal(text, shown, kept);
        free(text);
    }
}

/* ---- Names ---- */

static void assert_named(const struct roster *roster, cv_pid p, const char *name) {
    char buffer[ROSTER_NAME_MAX];
    assert_ptr_equal(roster_name(roster, p, buffer), buffer);
    assert_string_equal(buffer, name);
    if (p >= 1 && p <= roster->processes) assert_int_equal(roster_find(roster, name), p);
}

static void the_default_names(void **state) {
    const struct roster alike = {.processes = 3},
                        one = {.processes = 4, .servers = 1, .server_name = "coordinator"},
                        only_servers = {.processes = 2, .servers = 2, .server_name = "c"},
                        largest = {.processes = UINT32_MAX - 2, .servers = 3, .server_name = "c"};
    (void)state;
    assert_named(&alike, 1, "p1");
    assert_named(&alike, 3, "p3");
    assert_named(&one, 1, "coordinator");
    assert_named(&one, 2, "p1");
    assert_named(&one, 4, "p3");
    assert_named(&default_roster, 1, "c1");
    assert_named(&default_roster, 3, "c3");
    assert_named(&default_roster, 4, "p1");
    assert_named(&default_roster, 7, "p4");
    assert_named(&only_servers, 2, "c2");
    assert_named(&largest, UINT32_MAX - 2, "p4294967290");
    assert_named(&default_roster, CV_NOBODY, "nobody");
    assert_named(&default_roster, 8, "stranger");
}

static void every_default_name_is_found_again(void **state) {
    (void)state;
    for (uint32_t servers = 0; servers <= 12; servers++) {
        struct roster roster = {.processes = 25, .servers = servers, .server_name = "c"};
        for (cv_pid p = 1; p <= roster.processes; p++) {
            char name[ROSTER_NAME_MAX];
            assert_int_equal(roster_find(&roster, roster_name(&roster, p, name)), p);
        }
    }
}

static void other_names_are_nobodys(void **state) {
    static const char *const unknown[] = {"",
                                          "p",
                                          "c",
                                          "p0",
                                          "p5",
                                          "c0",
                                          "c4",
                                          "P1",
                                          "p01",
                                          "p1x",
                                          "1",
                                          "p-1",
                                          "p 1",
                                          "xp1",
                                          "nobody",
                                          "coordinator",
                                          "stranger",
                                          "p18446744073709551615",
                                          "p4294967297",
                                          "p0x1"};
    (void)state;
    for (size_t i = 0; i < sizeof unknown / sizeof unknown[0]; i++)
        assert_int_equal(roster_find(&default_roster, unknown[i]), CV_NOBODY);
}

static void chosen_names_replace_the_default_ones(void **state) {
    char names[4][ROSTER_NAME_MAX] = {"", "Coordinator", "p1", "Ana"};
    const struct roster roster = {
        .processes = 3, .servers = 1, .server_name = "coordinator", .names = names};
    (void)state;
    assert_named(&roster, 1, "Coordinator");
    assert_named(&roster, 2, "p1");
    assert_named(&roster, 3, "Ana");
    assert_int_equal(roster_find(&roster, "p2"), CV_NOBODY);
    assert_int_equal(roster_find(&roster, "coordinator"), CV_NOBODY);
    assert_int_equal(roster_find(&roster, ""), CV_NOBODY);
}

#define LISTED_FIELDS(F, R) F(R, id, id, SHOWN) F(R, u64, weight, INNER)
CV_RECORD(listed, LISTED_FIELDS);

/* A list that travels: its first member is the head, as in the ring of the lecture. */
static void a_list_begins_with_its_head(void **state) {
    static const struct cv_record table = CV_TABLE_ROWS("LIST", listed, listed);
    const struct listed list[] = {{7, 1}, {1, 1}, {2, 1}};
    struct roster from_one = {.processes = 8}, from_zero = {.processes = 8, .ids_from_zero = true};
    char text[64];
    (void)state;
    record_print(text, sizeof text, &table, list, 2, 1, CV_SHOWN, &from_one);
    assert_string_equal(text, "id=[7, 1, 2]");
    record_print(text, sizeof text, &table, list, 2, 1, CV_SHOWN, &from_zero);
    assert_string_equal(text, "id=[6, 0, 1]");
    record_print(text, sizeof text, &table, list, 0, 1, CV_SHOWN, &from_zero);
    assert_string_equal(text, "id=[6]");
}

static void nobody_has_no_id(void **state) {
    static const struct cv_record table = CV_TABLE("state", listed);
    struct roster from_zero = {.processes = 8, .ids_from_zero = true};
    const struct listed none = {0, 0};
    char text[64];
    (void)state;
    record_print(text, sizeof text, &table, &none, 0, 1, CV_SHOWN, &from_zero);
    assert_string_equal(text, "id=none");
}

#define PEER_FIELDS(F, R)     F(R, pid, toward, IF_SET) F(R, u32, granted, IF_SET)
#define PEER_ROW_FIELDS(F, R) F(R, u64, queued, IF_SET)
CV_RECORD(peer, PEER_FIELDS);
CV_RECORD(peer_row, PEER_ROW_FIELDS);

/* The state of a process among equals: what is 0 says nothing. */
static void what_is_not_set_is_not_shown(void **state) {
    static const struct cv_record table = CV_TABLE_ROWS("state", peer, peer_row);
    struct {
        struct peer head;
        struct peer_row row[3];
    } s = {.row = {{0}, {7}, {2}}};
    struct roster roster = {.processes = 3};
    char text[64];
    (void)state;
    record_print(text, sizeof text, &table, &s, 3, 1, CV_SHOWN, &roster);
    assert_string_equal(text, "queued=[p2:7, p3:2]");
    s.head = (struct peer){2, 5};
    record_print(text, sizeof text, &table, &s, 1, 1, CV_SHOWN, &roster);
    assert_string_equal(text, "toward=p2 granted=5");
}

static void names_can_begin_with_0(void **state) {
    struct roster roster = {
        .processes = 5, .servers = 2, .server_name = "c", .names_from_zero = true};
    (void)state;
    assert_named(&roster, 1, "c1");
    assert_named(&roster, 3, "p0");
    assert_named(&roster, 5, "p2");
    assert_int_equal(roster_find(&roster, "p0"), 3);
    assert_int_equal(roster_find(&roster, "p3"), CV_NOBODY);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_sequence_is_as_in_the_model),
        cmocka_unit_test(a_queue_of_one_knows_its_member),
        cmocka_unit_test(every_type_of_field_is_printed),
        cmocka_unit_test(a_debugger_sees_the_inner_fields_too),
        cmocka_unit_test(no_rows_are_empty_lists),
        cmocka_unit_test(a_record_without_shown_fields_is_empty),
        cmocka_unit_test(rows_behind_a_hidden_head_begin_the_line),
        cmocka_unit_test(any_room_is_enough_to_know_the_length),
        cmocka_unit_test(the_default_names),
        cmocka_unit_test(every_default_name_is_found_again),
        cmocka_unit_test(other_names_are_nobodys),
        cmocka_unit_test(chosen_names_replace_the_default_ones),
        cmocka_unit_test(a_list_begins_with_its_head),
        cmocka_unit_test(nobody_has_no_id),
        cmocka_unit_test(names_can_begin_with_0),
        cmocka_unit_test(what_is_not_set_is_not_shown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
