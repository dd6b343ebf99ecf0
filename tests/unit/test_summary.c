/* Summaries: what they say of times is right, or right to an eighth. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants those first */
#include <cmocka.h>

#include "base/summary.h"

static void nothing_is_known_of_nothing(void **state) {
    (void)state;
    struct summary s = {0};
    struct tally both = tally_of_both(&s.all, &s.all);
    assert_true(summary_quantile(&s, 0.5) < 0);
    assert_true(tally_average(&s.all) == 0);
    assert_int_equal(both.count, 0);
}

static void a_time_is_near_itself(void **state) {
    (void)state;
    for (uint64_t us = 0; us < 60000000; us += us / 9 + 1) {
        struct summary s = {0};
        summary_add(&s, 0, 1);
        summary_add(&s, us, 9);
        summary_add(&s, UINT64_MAX / 4, 1);
        double found = summary_quantile(&s, 0.5);
        assert_true(found >= (double)us * 0.93 && found <= (double)us * 1.07);
    }
}

static void what_is_longer_than_all_is_still_counted(void **state) {
    (void)state;
    struct summary s = {0};
    summary_add(&s, UINT64_MAX / 4, 1);
    assert_true(summary_quantile(&s, 0.5) > 60e6);
    assert_int_equal(s.all.max, UINT64_MAX / 4);
}

/* The middle of the count that has 147 and 158 is 151.5. */
static void shares_are_between_the_least_and_the_most(void **state) {
    (void)state;
    struct summary s = {0};
    summary_add(&s, 158, 1);
    assert_true(summary_quantile(&s, 0.5) == 158);
    summary_add(&s, 147, 1);
    assert_true(summary_quantile(&s, 0.5) == 151.5);
    s = (struct summary){0};
    summary_add(&s, 147, 1);
    assert_true(summary_quantile(&s, 0.5) == 147);
    s.all = (struct tally){0}; /* as by srst */
    assert_true(summary_quantile(&s, 0.5) == 151.5);
}

static void shares_are_shares(void **state) {
    (void)state;
    struct summary s = {0};
    summary_add(&s, 1, 50);
    summary_add(&s, 4, 45);
    summary_add(&s, 7, 5);
    assert_true(summary_quantile(&s, 0.5) == 1);
    assert_true(summary_quantile(&s, 0.51) == 4);
    assert_true(summary_quantile(&s, 0.95) == 4);
    assert_true(summary_quantile(&s, 0.96) == 7);
    assert_true(summary_quantile(&s, 1) == 7);
    assert_int_equal(s.all.total, 50 + 180 + 35);
    assert_int_equal(s.all.last, 7);
}

static void two_periods_and_they_are_forgotten(void **state) {
    (void)state;
    struct summary s = {0};
    summary_add(&s, 7, 1);
    summary_age(&s);
    summary_add(&s, 1, 9);
    assert_true(summary_quantile(&s, 1) == 7);
    summary_age(&s);
    assert_true(summary_quantile(&s, 1) == 1);
    summary_age(&s);
    assert_true(summary_quantile(&s, 1) < 0);
    assert_int_equal(s.all.count, 10);
}

static void a_bound_belongs_to_its_bucket(void **state) {
    (void)state;
    struct summary s = {0};
    for (size_t i = 0; i < SUMMARY_BOUNDS; i++) {
        summary_add(&s, summary_bound_us[i], 1);
        summary_add(&s, summary_bound_us[i] + 1, 3);
        assert_true(!i || summary_bound_us[i] > summary_bound_us[i - 1]);
    }
    assert_int_equal(s.bucket[0], 1);
    for (size_t i = 1; i < SUMMARY_BOUNDS; i++) assert_int_equal(s.bucket[i], 4);
    assert_int_equal(s.all.count, 4 * SUMMARY_BOUNDS); /* three are above all bounds */
}

static void two_tallies_are_one(void **state) {
    (void)state;
    struct tally a = {0}, b = {0};
    tally_add(&a, 5, 2);
    struct tally both = tally_of_both(&a, &b);
    assert_int_equal(both.min, 5); /* not the 0 of none */
    tally_add(&b, 3, 1);
    tally_add(&b, 8, 1);
    both = tally_of_both(&a, &b);
    assert_int_equal(both.count, 4);
    assert_int_equal(both.min, 3);
    assert_int_equal(both.max, 8);
    assert_true(tally_average(&both) == 21.0 / 4);
}

static double since(const struct summary *s, const struct summary_mark *mark, double share) {
    struct summary_spread spread = {0};
    summary_add_spread(s, mark, &spread);
    return summary_spread_quantile(&spread, share);
}

static void what_came_since_a_mark(void **state) {
    (void)state;
    struct summary s = {0};
    struct summary_mark mark;
    summary_add(&s, 7, 5);
    summary_take_mark(&s, &mark);
    assert_true(since(&s, &mark, 1) < 0);
    summary_add(&s, 2, 1);
    assert_true(since(&s, &mark, 1) == 2);
    summary_age(&s); /* a period ends meanwhile */
    assert_true(since(&s, &mark, 1) == 2);
    summary_add(&s, 3, 1);
    assert_true(since(&s, &mark, 0.5) == 2);
    assert_true(since(&s, &mark, 1) == 3);
    assert_true(since(&s, NULL, 1) == 7);
    summary_age(&s); /* what was before the mark cannot be told from what came after it */
    assert_true(since(&s, &mark, 1) == 3);
    s = (struct summary){0};
    summary_add(&s, 4, 1);
    assert_true(since(&s, &mark, 1) == 4);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_known_of_nothing),
        cmocka_unit_test(a_time_is_near_itself),
        cmocka_unit_test(what_is_longer_than_all_is_still_counted),
        cmocka_unit_test(shares_are_between_the_least_and_the_most),
        cmocka_unit_test(shares_are_shares),
        cmocka_unit_test(two_periods_and_they_are_forgotten),
        cmocka_unit_test(a_bound_belongs_to_its_bucket),
        cmocka_unit_test(two_tallies_are_one),
        cmocka_unit_test(what_came_since_a_mark),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
