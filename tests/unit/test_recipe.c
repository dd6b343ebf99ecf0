/* Notes in nodes, and the order of candidates. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/rng.h"
#include "recipe/election.h"
#include "recipe/note.h"

static bool read(struct note *note, const char *text) {
    return note_read(note, text, strlen(text));
}

static void a_note_is_read_back(void **state) {
    (void)state;
    struct note note = {.label = "a \"b\" \\ c\n\x01 \xc3\xa4",
                        .host = "db1",
                        .pid = 4711,
                        .since = 1770000000000,
                        .slots = 3,
                        .priority = -5,
                        .resign = true,
                        .outer = "0x1f 0x2e"},
                again;
    char text[NOTE_MAX];
    size_t size = note_write(&note, text);
    assert_int_equal(strlen(text), size);
    assert_true(note_read(&again, text, size));
    assert_memory_equal(&note, &again, sizeof note);
    assert_int_equal(note_write(&(struct note){0}, text), 2);
    assert_string_equal(text, "{}");
}

static void the_largest_note_fits(void **state) {
    (void)state;
    struct note note = {.pid = INT64_MIN / 100,
                        .since = INT64_MAX / 100,
                        .held = INT64_MAX / 100,
                        .slots = INT32_MIN,
                        .priority = INT32_MIN,
                        .stable = true,
                        .resign = true};
    struct note again;
    char text[NOTE_MAX];
    for (int round = 0; round < 2; round++) {
        memset(note.label, round ? 1 : '"', NOTE_TEXT_MAX - 1);
        memcpy(note.host, note.label, NOTE_TEXT_MAX);
        memcpy(note.node, note.label, NOTE_TEXT_MAX);
        memcpy(note.outer, note.label, NOTE_TEXT_MAX);
        assert_true(note_write(&note, text) < NOTE_MAX);
        assert_true(read(&again, text));
    }
}

static void other_bytes_are_a_label(void **state) {
    (void)state;
    static const char *const texts[] = {"worker 7",
                                        "{",
                                        "{}x",
                                        "{\"label\":}",
                                        "{\"label\":\"x}",
                                        "{\"pid\":1e5}",
                                        "[1]",
                                        "{\"pid\":\"1\"}",
                                        "{\"x\":{}}",
                                        "{\"label\":\"\\x\"}",
                                        "{\"label\":\"\\ud800\"}",
                                        "{\"label\":\"\\u0000\"}",
                                        "{\"pid\":1,}",
                                        "{,}",
                                        "{\"slots\":3000000000}",
                                        "{\"pid\":99999999999999999999}",
                                        "{\"label\":\"a\nb\"}"};
    struct note note;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        assert_false(read(&note, texts[i]));
        assert_string_equal(note.label, texts[i]);
        assert_int_equal(note.pid, 0);
    }
    assert_false(note_read(&note, "ab\0cd", 5));
    assert_string_equal(note.label, "ab");
    assert_false(note_read(&note, NULL, 0));
    assert_string_equal(note.label, "");
    /* cut between characters */
    char text[NOTE_TEXT_MAX + 1];
    memset(text, 'x', sizeof text);
    text[NOTE_TEXT_MAX - 2] = '\xc3';
    text[NOTE_TEXT_MAX - 1] = '\xa4';
    text[NOTE_TEXT_MAX] = 0;
    assert_false(read(&note, text));
    assert_int_equal(strlen(note.label), NOTE_TEXT_MAX - 2);
}

static void unknown_members_are_skipped(void **state) {
    (void)state;
    struct note note;
    assert_true(
        read(&note, " { \"x\" : -1.5e3 , \"y\":null,\"label\":\"\\u00e4\\ud83d\\ude00\" } "));
    assert_string_equal(note.label, "\xc3\xa4\xf0\x9f\x98\x80");
}

static void random_bytes_do_no_harm(void **state) {
    (void)state;
    static const char alphabet[] = "{}\"\\u:,0129-e labelpidtruefalse\x80\xff";
    struct rng rng;
    rng_seed(&rng, 5);
    for (int i = 0; i < 200000; i++) {
        char text[40] = "{\"label\":\"";
        size_t size = rng_below(&rng, sizeof text);
        for (size_t k = rng_below(&rng, 11); k < size; k++)
            text[k] = alphabet[rng_below(&rng, sizeof alphabet)];
        struct note note;
        note_read(&note, text, size);
    }
}

static void candidates_are_ordered(void **state) {
    (void)state;
    static const char *const names[] = {"a__candidate0__0000000001", "leader",
                                        "b__candidate5__0000000003", "c__candidate5__0000000002",
                                        "d__candidate-1__0000000000"};
    struct candidate c[5];
    assert_int_equal(election_list(c, names, 5), 4);
    const char order[] = "cbad";
    for (int i = 0; i < 4; i++) {
        assert_int_equal(*c[i].owner, order[i]);
        struct election_verdict v = election_judge(c, 4, &order[i], 1);
        assert_ptr_equal(v.mine, &c[i]);
        assert_ptr_equal(v.ahead, i ? &c[i - 1] : NULL);
        assert_int_equal(v.position, i);
    }
    assert_null(election_judge(c, 4, "x", 1).mine);
    static const char *const bad[] = {"",
                                      "a__candidate__0000000001",
                                      "a__candidate1_0000000001",
                                      "a__candidate12345678901__0000000001",
                                      "a__candidate9999999999__0000000001",
                                      "a__candidate1__000000001",
                                      "a__candidate-__0000000001"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) assert_false(election_parse(c, bad[i]));
}

static void only_a_preferred_candidate_asks(void **state) {
    (void)state;
    assert_true(election_asks(&(struct election_term){.priority = 1}, 2, false));
    assert_false(election_asks(&(struct election_term){.priority = 1}, 1, false));
    assert_false(election_asks(&(struct election_term){.priority = 2}, 1, false));
    assert_false(election_asks(&(struct election_term){.priority = 1}, 2, true));
    assert_false(election_asks(&(struct election_term){.priority = 1, .stable = true}, 2, false));
    assert_false(election_asks(&(struct election_term){.priority = 1, .asked = true}, 2, false));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_note_is_read_back),
        cmocka_unit_test(the_largest_note_fits),
        cmocka_unit_test(other_bytes_are_a_label),
        cmocka_unit_test(unknown_members_are_skipped),
        cmocka_unit_test(random_bytes_do_no_harm),
        cmocka_unit_test(candidates_are_ordered),
        cmocka_unit_test(only_a_preferred_candidate_asks),
    };
    return cmocka_run_group_tests_name("recipe", tests, NULL, NULL);
}
