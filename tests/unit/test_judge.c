/* The judge of locks, with runs made up by hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "lab/judge/mutex.h"

struct court {
    struct arena arena;
    struct roster roster;
    struct mutex_judge judge;
};

/* p1 to pN compete; one coordinator comes before them, so that pK is process K + 1. */
static cv_pid pid(unsigned competitor) { return competitor + 1; }

static void court_open(struct court *c, unsigned competitors, struct mutex_rules rules) {
    c->roster =
        (struct roster){.processes = competitors + 1, .servers = 1, .server_name = "coordinator"};
    assert_int_equal(arena_open(&c->arena, 1 << 20), 0);
    mutex_judge_open(&c->judge, &c->arena, &c->roster, &rules);
}

static void court_close(struct court *c) { arena_close(&c->arena); }

static void request(struct court *c, uint64_t now, unsigned p) {
    mutex_judge_request(&c->judge, now, pid(p));
}
static void enter(struct court *c, uint64_t now, unsigned p, uint64_t token) {
    mutex_judge_enter(&c->judge, now, pid(p), token);
}
static void leave(struct court *c, uint64_t now, unsigned p) {
    mutex_judge_leave(&c->judge, now, pid(p));
}
static void crash(struct court *c, uint64_t now, unsigned p) {
    mutex_judge_crash(&c->judge, now, pid(p));
}
static bool writes(struct court *c, uint64_t now, unsigned p) {
    return mutex_judge_write(&c->judge, now, pid(p));
}
/* p asks, enters and leaves at once. */
static void visit(struct court *c, uint64_t now, unsigned p) {
    request(c, now, p);
    enter(c, now, p, 0);
    leave(c, now, p);
}

static void assert_verdict(const struct court *c, enum mutex_property property,
                           enum verdict_value value, const char *why) {
    const struct verdict *v = &c->judge.verdict[property];
    assert_string_equal(verdict_word(v->value), verdict_word(value));
    assert_string_equal(v->why, why);
}

static void assert_violated(const struct court *c, enum mutex_property property, uint64_t at,
                            const char *why) {
    assert_verdict(c, property, VIOLATED, why);
    assert_int_equal(c->judge.verdict[property].at_us, at);
    assert_true(any_violated(c->judge.verdict, MUTEX_PROPERTIES));
}

/* Deadlock, starvation and bounded wait are decided together when a process waits at the end. */
static void assert_liveness(const struct court *c, enum verdict_value value, const char *why) {
    for (int i = DEADLOCK; i < MUTEX_PROPERTIES; i++)
        assert_verdict(c, (enum mutex_property)i, value, why);
    assert_verdict(c, EXCLUSION, HELD, "");
}

/* ---- Nothing wrong ---- */

static void the_properties_have_names(void **state) {
    (void)state;
    assert_string_equal(mutex_property_name[EXCLUSION], "exclusion");
    assert_string_equal(mutex_property_name[DEADLOCK], "deadlock");
    assert_string_equal(mutex_property_name[STARVATION], "starvation");
    assert_string_equal(mutex_property_name[BOUNDED_WAIT], "bounded_wait");
}

static void where_nobody_asks_all_holds(void **state) {
    struct court c;
    (void)state;
    court_open(&c, 2, (struct mutex_rules){0});
    mutex_judge_close(&c.judge, 99, ALL_SERVED);
    assert_verdict(&c, EXCLUSION, HELD, "");
    assert_verdict(&c, DEADLOCK, HELD, "");
    assert_verdict(&c, STARVATION, HELD, "");
    assert_verdict(&c, BOUNDED_WAIT, HELD,
                   "nobody waited longer than 0 us or was overtaken more than 0 times");
    assert_false(any_violated(c.judge.verdict, MUTEX_PROPERTIES));
    court_close(&c);
}

/* p2 asks at 10, p1 leaves at 30, p2 enters at 35: it waited 25, of which 5 were the lock's. */
static void waits_and_delays_are_summed(void **state) {
    struct court c;
    (void)state;
    court_open(&c, 2, (struct mutex_rules){0});
    request(&c, 0, 1);
    enter(&c, 2, 1, 0);
    request(&c, 10, 2);
    leave(&c, 30, 1);
    enter(&c, 35, 2, 0);
    leave(&c, 36, 2);
    request(&c, 50, 1);
    enter(&c, 57, 1, 0);
    assert_int_equal(c.judge.delay_us_sum, 2 + 5 + 7);
    assert_int_equal(c.judge.wait_us_sum, 2 + 25 + 7);
    assert_int_equal(c.judge.wait_us_max, 25);
    assert_int_equal(c.judge.requests, 3);
    assert_int_equal(c.judge.entries, 3);
    assert_int_equal(c.judge.inside, 1);
    assert_int_equal(c.judge.waiting, 0);
    leave(&c, 60, 1);
    mutex_judge_close(&c.judge, 60, ALL_SERVED);
    assert_verdict(&c, BOUNDED_WAIT, HELD,
                   "nobody waited longer than 25 us or was overtaken more than 0 times");
    court_close(&c);
}

static void a_process_inside_at_the_end_is_no_violation(void **state) {
    struct court c;
    (void)state;
    court_open(&c, 2, (struct mutex_rules){0});
    request(&c, 0, 1);
    enter(&c, 1, 1, 0);
    mutex_judge_close(&c.judge, 5, QUIESCENT);
    assert_verdict(&c, EXCLUSION, HELD, "");
    assert_verdict(&c, DEADLOCK, HELD, "");
    court_close(&c);
}

static void leaving_twice_counts_once(void **state) {
    struct court c;
    (void)state;
    court_open(&c, 2, (struct mutex_rules){0});
    visit(&c, 5, 1);
    leave(&c, 9, 1);
    assert_int_equal(c.judge.inside, 0);
    assert_int_equal(c.judge.left_us, 5);
    court_close(&c);
}

/* ---- Exclusion ---- */

static void two_inside_violate_exclusion(void **state) {
    struct court c;
    (void)state;
    court_open(&c, 3, (struct mutex_rules){0});
    request(&c, 0, 3);
    request(&c, 0, 1);
    enter(&c, 10, 3, 0);
    enter(&c, 20, 1, 0);
    assert_true(any_violated(c.judge.verdict, MUTEX_PROPERTIES));
    assert_int_equal(c.judge.culprit[0], pid(3));
    assert_int_equal(c.judge.culprit[1], pid(1));
    leave(&c, 30, 3);
    leave(&c, 30, 1);
    mutex_judge_close(&c.judge, 30, ALL_SERVED);
    assert_violated(&c, EXCLUSION, 20, "p1 entered while p3 was inside");
    assert_verdict(&c, DEADLOCK, HELD, "");
    assert_int_equal(c.judge.overlaps, 1);
    court_close(&c);
}

static void the_first_overlap_is_reported_and_all_are_counted(void **state) {
    struct court c;
    (void)state;
    court_open(&c, 3, (struct mutex_rules){0});
    for (unsigned p = 1; p <= 3; p++) enter(&c, 10 * p, p, 0);
    leave(&c, 40, 2);
    enter(&c, 50, 2, 0);
    mutex_judge_close(&c.judge, 60, ALL_SERVED);
    assert_violated(&c, EXCLUSION, 20, "p2 entered while p1 was inside");
    assert_int_equal(c.judge.overlaps, 3);
    court_close(&c);
}

static void one_after_the_other_is_no_overlap(void **state) {
    struct court c;
    (void)state;
    court_open(&c, 2, (struct mutex_rules){0});
    for (uint64_t t = 0; t < 100; t++) visit(&c, t, 1 + t % 2);
    request(&c, 200, 1);
    enter(&c, 200, 1, 0);
    crash(&c, 201, 1);
    visit(&c, 201, 2);
    mutex_judge_close(&c.judge, 300, ALL_SERVED);
    assert_verdict(&c, EXCLUSION, HELD, "");
    assert_int_equal(c.judge.overlaps, 0);
    court_close(&c);
}

static void without_fencing_every_write_is_taken_and_late_ones_are_counted(void **state) {
    struct court c;
    (void)state;
    court_open(&c, 2, (struct mutex_rules){0});
    enter(&c, 0, 1, 7);
    assert_true(writes(&c, 0, 1));
    enter(&c, 10, 2, 8);
    assert_true(writes(&c, 10, 2));
    assert_true(writes(&c, 20, 1));
    assert_true(writes(&c, 21, 2));
    mutex_judge_close(&c.judge, 30, ALL_SERVED);
    assert_int_equal(c.judge.writes, 4);
    assert_int_equal(c.judge.writes_late, 1);
    assert_int_equal(c.judge.writes_refused, 0);
    assert_violated(&c, EXCLUSION, 10, "p2 entered while p1 was inside");
    court_close(&c);
}

/* ---- Fencing ---- */

static void the_resource_refuses_an_older_token(void **state) {
    struct court c;
    (void)state;
    court_open(&c, 2, (struct mutex_rules){.fencing = true});
    enter(&c, 0, 1, 7);
    assert_true(writes(&c, 0, 1));
    enter(&c, 10, 2, 8);
    assert_true(writes(&c, 10, 2));
    assert_false(writes(&c, 20, 1));
    assert_false(writes(&c, 21, 1));
    assert_true(writes(&c, 22, 2));
    assert_false(any_violated(c.judge.verdict, MUTEX_PROPERTIES));
    assert_int_equal(c.judge.belief.value, VIOLATED);
    mutex_judge_close(&c.judge, 30, ALL_SERVED);
    assert_verdict(&c, EXCLUSION, HELD,
                   "p2 entered while p1 was inside, but the resource refused the older token (2 of "
                   "5 writes refused)");
    assert_int_equal(c.judge.writes_late, 0);
    court_close(&c);
}

/* The resource cannot refuse what it has not seen: the slow holder was the first to write. */
static void an_older_token_is_taken_before_a_newer_one_was_seen(void **state) {
    struct court c;
    (void)state;
    court_open(&c, 2, (struct mutex_rules){.fencing = true});
    enter(&c, 0, 1, 7);
    enter(&c, 10, 2, 8);
    assert_true(writes(&c, 20, 1));
    assert_true(writes(&c, 21, 2));
    mutex_judge_close(&c.judge, 30, ALL_SERVED);
    assert_int_equal(c.judge.verdict[EXCLUSION].value, HELD);
    court_close(&c);
}

static void equal_tokens_do_not_fence(void **state) {
    struct court c;
    (void)state;
    court_open(&c, 2, (struct mutex_rules){.fencing = true});
    enter(&c, 0, 1, 5);
    enter(&c, 10, 2, 5);
    assert_true(writes(&c, 15, 2));
    assert_true(writes(&c, 20, 1));
    mutex_judge_close(&c.judge, 30, ALL_SERVED);
    assert_violated(&c, EXCLUSION, 20,
                    "p1 wrote to the resource with token 5 although p2, which entered later, had "
                    "written with token 5");
    assert_int_equal(c.judge.writes_late, 1);
    court_close(&c);
}

static void a_token_that_shrinks_does_not_fence(void **state) {
    struct court c;
    (void)state;
    court_open(&c, 2, (struct mutex_rules){.fencing = true});
    enter(&c, 0, 1, 9);
    enter(&c, 10, 2, 4);
    assert_true(writes(&c, 15, 2));
    assert_true(writes(&c, 20, 1));
    assert_false(writes(&c, 21, 2)); /* the rightful holder is shut out */
    mutex_judge_close(&c.judge, 30, ALL_SERVED);
    assert_violated(&c, EXCLUSION, 20,
                    "p1 wrote to the resource with token 9 although p2, which entered later, had "
                    "written with token 4");
    court_close(&c);
}

/* ---- Deadlock ---- */

static void a_wait_at_rest_is_for_ever(void **state) {
    static const char *const why[] = {
        "p1 waits for ever: nothing is under way that could let anyone in",
        "p1 and p2 wait for ever: nothing is under way that could let anyone in",
        "p1, p2 and 1 more wait for ever: nothing is under way that could let anyone in",
        "p1, p2 and 2 more wait for ever: nothing is under way that could let anyone in"};
    (void)state;
    for (unsigned waiting = 1; waiting <= 4; waiting++) {
        struct court c;
        court_open(&c, 4, (struct mutex_rules){0});
        for (unsigned p = waiting; p >= 1; p--) request(&c, 100 - p, p);
        mutex_judge_close(&c.judge, 500, QUIESCENT);
        assert_liveness(&c, VIOLATED, why[waiting - 1]);
        assert_violated(&c, DEADLOCK, 500, why[waiting - 1]);
        court_close(&c);
    }
}

static void at_rest_a_holder_that_never_leaves_is_no_excuse(void **state) {
    struct court c;
    (void)state;
    court_open(&c, 2, (struct mutex_rules){0});
    request(&c, 0, 1);
    enter(&c, 0, 1, 0);
    request(&c, 1, 2);
    mutex_judge_close(&c.judge, 9, QUIESCENT);
    assert_liveness(&c, VIOLATED,
                    "p2 waits for ever: nothing is under way that could let anyone in");
    court_close(&c);
}

static void lost_patience_says_how_long(void **state) {
    struct court c;
    (void)state;
    court_open(&c, 2, (struct mutex_rules){0});
    visit(&c, 1000000, 2);
    request(&c, 2000000, 1);
    mutex_judge_close(&c.judge, 62000000, NO_PROGRESS);
    assert_liveness(&c, VIOLATED, "p1 waits, and nobody has entered for 60 s");
    court_close(&c);
}

/* The lock has been free only since 50 s. */
static void a_stall_is_measured_from_when_the_lock_was_left(void **state) {
    struct court c;
    (void)state;
    court_open(&c, 2, (struct mutex_rules){0});
    request(&c, 0, 2);
    enter(&c, 0, 2, 0);
    request(&c, 10, 1);
    leave(&c, 50000000, 2);
    mutex_judge_close(&c.judge, 80000000, NO_PROGRESS);
    assert_liveness(&c, VIOLATED, "p1 waits, and nobody has entered for 30 s");
    court_close(&c);
}

static void a_run_that_was_cut_short_decides_nothing(void **state) {
    static const enum run_end ends[] = {TIME_LIMIT, EVENT_LIMIT};
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct court c;
        court_open(&c, 3, (struct mutex_rules){0});
        request(&c, 0, 1);
        request(&c, 0, 3);
        mutex_judge_close(&c.judge, 100, ends[i]);
        for (int p = DEADLOCK; p < MUTEX_PROPERTIES; p++)
            assert_verdict(&c, (enum mutex_property)p, UNKNOWN,
                           "the run ended while p1 and p3 wait");
        assert_verdict(&c, EXCLUSION, UNKNOWN,
                       "not violated within 100 us, when the run was cut short");
        assert_false(any_violated(c.judge.verdict, MUTEX_PROPERTIES));
        court_close(&c);
    }
}

/* ... not even when everybody was served so far; what was violated stays so. */
static void what_would_have_come_is_not_known(void **state) {
    struct court c;
    (void)state;
    court_open(&c, 2, (struct mutex_rules){.overtakes_bound = 1});
    request(&c, 0, 1);
    for (unsigned i = 0; i < 2; i++) visit(&c, 1, 2);
    enter(&c, 2, 1, 0);
    leave(&c, 3, 1);
    mutex_judge_close(&c.judge, 5, EVENT_LIMIT);
    for (int p = EXCLUSION; p < BOUNDED_WAIT; p++)
        assert_verdict(&c, (enum mutex_property)p, UNKNOWN,
                       "not violated within 5 us, when the run was cut short");
    assert_violated(&c, BOUNDED_WAIT, 2,
                    "others entered 2 times while p1 waited, more than the bound of 1");
    court_close(&c);
}

static void a_wait_for_a_holder_may_still_be_served(void **state) {
    static const enum run_end ends[] = {TIME_LIMIT, EVENT_LIMIT, NO_PROGRESS};
    static const enum verdict_value exclusion[] = {UNKNOWN, UNKNOWN, HELD};
    (void)state;
    for (size_t i = 0; i < 3; i++) {
        struct court c;
        court_open(&c, 2, (struct mutex_rules){0});
        request(&c, 0, 1);
        enter(&c, 1, 1, 0);
        request(&c, 2, 2);
        mutex_judge_close(&c.judge, 100, ends[i]);
        for (int p = DEADLOCK; p < MUTEX_PROPERTIES; p++)
            assert_verdict(&c, (enum mutex_property)p, UNKNOWN,
                           "the run ended while p2 waits and somebody is inside");
        assert_int_equal(c.judge.verdict[EXCLUSION].value, exclusion[i]);
        court_close(&c);
    }
}

/* ---- Starvation and bounded wait ---- */

static void many_overtakings_are_starvation(void **state) {
    (void)state;
    for (unsigned overtakings = 4; overtakings <= 5; overtakings++) {
        struct court c;
        court_open(&c, 2, (struct mutex_rules){.starved_after = 5});
        request(&c, 0, 1);
        for (unsigned i = 1; i <= overtakings; i++) visit(&c, i, 2);
        enter(&c, 50, 1, 0);
        leave(&c, 51, 1);
        mutex_judge_close(&c.judge, 60, ALL_SERVED);
        assert_int_equal(c.judge.overtakes_max, overtakings);
        if (overtakings < 5)
            assert_verdict(&c, STARVATION, HELD, "");
        else
            assert_violated(&c, STARVATION, 50, "others entered 5 times while p1 waited");
        assert_verdict(&c, DEADLOCK, HELD, "");
        court_close(&c);
    }
}

static void starvation_is_seen_in_a_wait_without_end_too(void **state) {
    struct court c;
    (void)state;
    court_open(&c, 2, (struct mutex_rules){.starved_after = 5});
    request(&c, 0, 1);
    for (unsigned i = 1; i <= 6; i++) visit(&c, i, 2);
    mutex_judge_close(&c.judge, 60, TIME_LIMIT);
    assert_violated(&c, STARVATION, 60, "others entered 6 times while p1 waited");
    assert_verdict(&c, DEADLOCK, UNKNOWN, "the run ended while p1 waits");
    assert_violated(&c, BOUNDED_WAIT, 60, "others entered 6 times while p1 waited");
    court_close(&c);
}

/* 20 entries of every other process by default, and never below 100. */
static void the_default_limit_of_starvation_grows_with_the_number_of_competitors(void **state) {
    static const struct {
        unsigned competitors, limit;
    } cases[] = {{1, 100}, {4, 100}, {5, 100}, {6, 120}, {50, 1000}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct court c;
        court_open(&c, cases[i].competitors, (struct mutex_rules){0});
        assert_int_equal(c.judge.rules.starved_after, cases[i].limit);
        court_close(&c);
    }
}

static void overtakings_above_the_bound_break_it(void **state) {
    (void)state;
    for (unsigned overtakings = 2; overtakings <= 3; overtakings++) {
        struct court c;
        court_open(&c, 3, (struct mutex_rules){.overtakes_bound = 2});
        request(&c, 0, 1);
        for (unsigned i = 1; i <= overtakings; i++) visit(&c, i, 2 + i % 2);
        enter(&c, 1500, 1, 0);
        leave(&c, 1501, 1);
        mutex_judge_close(&c.judge, 2000, ALL_SERVED);
        if (overtakings == 2)
            assert_verdict(
                &c, BOUNDED_WAIT, HELD,
                "nobody waited longer than 1.5 ms or was overtaken more than 2 times (p1)");
        else
            assert_violated(&c, BOUNDED_WAIT, 1500,
                            "others entered 3 times while p1 waited, more than the bound of 2");
        court_close(&c);
    }
}

static void the_first_broken_bound_is_reported(void **state) {
    struct court c;
    (void)state;
    court_open(&c, 3, (struct mutex_rules){.overtakes_bound = 1});
    request(&c, 0, 1);
    for (unsigned i = 1; i <= 2; i++) visit(&c, i, 2);
    enter(&c, 3, 1, 0);
    leave(&c, 4, 1);
    request(&c, 10, 3);
    for (unsigned i = 11; i <= 15; i++) visit(&c, i, 2);
    mutex_judge_close(&c.judge, 20, QUIESCENT);
    assert_violated(&c, BOUNDED_WAIT, 3,
                    "others entered 2 times while p1 waited, more than the bound of 1");
    assert_violated(&c, DEADLOCK, 20,
                    "p3 waits for ever: nothing is under way that could let anyone in");
    assert_int_equal(c.judge.overtakes_max, 5);
    assert_int_equal(c.judge.most_overtaken, pid(3));
    court_close(&c);
}

/* ---- Crashes ---- */

static void a_crash_ends_a_wait(void **state) {
    struct court c;
    (void)state;
    court_open(&c, 3, (struct mutex_rules){0});
    request(&c, 0, 1);
    request(&c, 0, 2);
    crash(&c, 5, 1);
    crash(&c, 6, 1);
    assert_int_equal(c.judge.waiting, 1);
    crash(&c, 7, 3);
    assert_int_equal(c.judge.waiting, 1);
    mutex_judge_close(&c.judge, 9, QUIESCENT);
    assert_liveness(&c, VIOLATED,
                    "p2 waits for ever: nothing is under way that could let anyone in");
    court_close(&c);
}

static void crashed_waiters_are_no_violation(void **state) {
    struct court c;
    (void)state;
    court_open(&c, 2, (struct mutex_rules){0});
    request(&c, 0, 1);
    crash(&c, 5, 1);
    mutex_judge_close(&c.judge, 9, QUIESCENT);
    assert_verdict(&c, DEADLOCK, HELD, "");
    assert_verdict(&c, STARVATION, HELD, "");
    court_close(&c);
}

/* A run that is cut short before the crash says so, and the whole run must not deny it. */
static void a_crash_excuses_no_overtaking_before_it(void **state) {
    struct court c;
    (void)state;
    court_open(&c, 2, (struct mutex_rules){.overtakes_bound = 2, .starved_after = 4});
    request(&c, 0, 1);
    for (unsigned i = 1; i <= 3; i++) visit(&c, i, 2);
    crash(&c, 10, 1);
    mutex_judge_close(&c.judge, 20, QUIESCENT);
    assert_violated(&c, BOUNDED_WAIT, 10,
                    "others entered 3 times while p1 waited, more than the bound of 2");
    assert_verdict(&c, STARVATION, HELD, "");
    court_close(&c);
}

static void a_crash_ends_a_stay_inside(void **state) {
    struct court c;
    (void)state;
    court_open(&c, 2, (struct mutex_rules){0});
    request(&c, 0, 1);
    enter(&c, 1, 1, 0);
    request(&c, 2, 2);
    crash(&c, 10, 1);
    assert_int_equal(c.judge.inside, 0);
    assert_int_equal(c.judge.left_us, 10);
    enter(&c, 30, 2, 0);
    leave(&c, 31, 2);
    assert_int_equal(c.judge.delay_us_sum, 1 + 20);
    mutex_judge_close(&c.judge, 40, ALL_SERVED);
    assert_verdict(&c, EXCLUSION, HELD, "");
    assert_verdict(&c, DEADLOCK, HELD, "");
    court_close(&c);
}

static void the_same_process_may_ask_again_after_a_crash(void **state) {
    struct court c;
    (void)state;
    court_open(&c, 2, (struct mutex_rules){.starved_after = 3});
    request(&c, 0, 1);
    visit(&c, 1, 2);
    visit(&c, 2, 2);
    crash(&c, 3, 1);
    request(&c, 100, 1);
    visit(&c, 101, 2);
    enter(&c, 110, 1, 0);
    leave(&c, 111, 1);
    mutex_judge_close(&c.judge, 120, ALL_SERVED);
    assert_int_equal(c.judge.overtakes_max, 1); /* the wait that a crash ended does not count */
    assert_int_equal(c.judge.wait_us_max, 10);
    assert_verdict(&c, STARVATION, HELD, "");
    court_close(&c);
}

/* ---- Fairness ---- */

static void squares_are_summed_over_the_competitors(void **state) {
    struct court c;
    (void)state;
    court_open(&c, 3, (struct mutex_rules){0});
    assert_int_equal(mutex_judge_squares(&c.judge), 0);
    for (unsigned i = 0; i < 2; i++) visit(&c, i, 1);
    for (unsigned i = 0; i < 5; i++) visit(&c, 10 + i, 3);
    assert_int_equal(mutex_judge_squares(&c.judge), 2 * 2 + 5 * 5);
    crash(&c, 30, 3);
    assert_int_equal(mutex_judge_squares(&c.judge), 2 * 2 + 5 * 5);
    court_close(&c);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_properties_have_names),
        cmocka_unit_test(where_nobody_asks_all_holds),
        cmocka_unit_test(waits_and_delays_are_summed),
        cmocka_unit_test(a_process_inside_at_the_end_is_no_violation),
        cmocka_unit_test(leaving_twice_counts_once),
        cmocka_unit_test(two_inside_violate_exclusion),
        cmocka_unit_test(the_first_overlap_is_reported_and_all_are_counted),
        cmocka_unit_test(one_after_the_other_is_no_overlap),
        cmocka_unit_test(without_fencing_every_write_is_taken_and_late_ones_are_counted),
        cmocka_unit_test(the_resource_refuses_an_older_token),
        cmocka_unit_test(an_older_token_is_taken_before_a_newer_one_was_seen),
        cmocka_unit_test(equal_tokens_do_not_fence),
        cmocka_unit_test(a_token_that_shrinks_does_not_fence),
        cmocka_unit_test(a_wait_at_rest_is_for_ever),
        cmocka_unit_test(at_rest_a_holder_that_never_leaves_is_no_excuse),
        cmocka_unit_test(lost_patience_says_how_long),
        cmocka_unit_test(a_stall_is_measured_from_when_the_lock_was_left),
        cmocka_unit_test(a_run_that_was_cut_short_decides_nothing),
        cmocka_unit_test(what_would_have_come_is_not_known),
        cmocka_unit_test(a_wait_for_a_holder_may_still_be_served),
        cmocka_unit_test(many_overtakings_are_starvation),
        cmocka_unit_test(starvation_is_seen_in_a_wait_without_end_too),
        cmocka_unit_test(the_default_limit_of_starvation_grows_with_the_number_of_competitors),
        cmocka_unit_test(overtakings_above_the_bound_break_it),
        cmocka_unit_test(the_first_broken_bound_is_reported),
        cmocka_unit_test(a_crash_ends_a_wait),
        cmocka_unit_test(crashed_waiters_are_no_violation),
        cmocka_unit_test(a_crash_excuses_no_overtaking_before_it),
        cmocka_unit_test(a_crash_ends_a_stay_inside),
        cmocka_unit_test(the_same_process_may_ask_again_after_a_crash),
        cmocka_unit_test(squares_are_summed_over_the_competitors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
