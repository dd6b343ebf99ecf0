/* The odds of a broken quorum: against exact values, at the extremes, and against the real lock. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "lab/experiments/odds.h"

static double log10_of(uint64_t n, uint64_t m, double p) {
    return (double)odds_log10(&(struct odds_case){n, m, p});
}

static void assert_near(double value, double expected, double relative) {
    if (!(fabs(value - expected) <= relative * fabs(expected)))
        fail_msg("%.17g is not %.17g", value, expected);
}

static void the_table_has_the_known_values(void **state) {
    static const char *const expected[ODDS_ROWS] = {
        "6.933e-06", "7.224e-12", "2.490e-05", "1.148e-22", "9.366e-05", "3.953e-44",
        "6.829e-04", "7.138e-08", "2.405e-03", "1.117e-14", "8.691e-03", "3.735e-28"};
    (void)state;
    for (int i = 0; i < ODDS_ROWS; i++) {
        char text[32];
        long double log10 = odds_log10(&odds_table[i].of);
        assert_string_equal(odds_format(text, sizeof text, log10), expected[i]);
        assert_true(log10 < odds_table[i].bound);
        assert_int_equal(strstr(odds_table[i].p_text, "30s") != NULL, i >= ODDS_ROWS / 2);
    }
}

static void small_cases_have_their_closed_forms(void **state) {
    (void)state;
    assert_near(log10_of(1, 1, 0.25), log10(0.25), 1e-15);
    assert_near(log10_of(3, 2, 0.5), log10(0.75), 1e-15);          /* one of two */
    assert_near(log10_of(3, 2, 1e-9), log10(2e-9 - 1e-18), 1e-15); /* 1 - (1-p)^2 */
    assert_near(log10_of(7, 7, 0.1), -7, 1e-15);                   /* all of them: p^m */
    assert_near(log10_of(32, 24, 1e-4), log10(7.349174166158808e-59), 1e-14);
}

/* P[k], which a double can represent here, and whose sum is the probability. */
static void the_terms_are_those_of_the_sum(void **state) {
    long double log10[8];
    const struct odds_case c = {8, 5, 0.1};
    double sum = 0;
    (void)state;
    assert_int_equal(odds_terms(&c, log10, 8), 4);
    static const double expected[] = {10 * 0.01 * 0.729, 10 * 0.001 * 0.81, 5 * 0.0001 * 0.9,
                                      0.00001};
    for (int i = 0; i < 4; i++) {
        assert_near((double)powl(10, log10[i]), expected[i], 1e-14);
        sum += expected[i];
    }
    assert_near(pow(10, log10_of(8, 5, 0.1)), sum, 1e-14);
    assert_int_equal(odds_terms(&c, log10, 2), 2);
    assert_int_equal(odds_terms(&(struct odds_case){8, 5, 0}, log10, 8), 4);
    assert_true(log10[0] == -INFINITY && log10[3] == -INFINITY);
    assert_int_equal(odds_terms(&(struct odds_case){8, 5, 1}, log10, 8), 4);
    assert_true(log10[0] == -INFINITY && log10[3] == 0);
}

static void the_extremes_are_exact(void **state) {
    (void)state;
    assert_true(log10_of(8, 5, 0) == -INFINITY);
    assert_true(log10_of(8, 5, 1) == 0);
    assert_true(log10_of(8, 8, 1) == 0);
    assert_true(log10_of(1, 1, 0) == -INFINITY);
    double certain = log10_of(100001, 50001, 0.5); /* but for rounding */
    assert_true(certain <= 0 && certain > -1e-12);
}

static void far_below_a_double_the_logarithm_is_right(void **state) {
    (void)state;
    assert_near(log10_of(1000, 1000, 1e-300), -300000, 1e-15);
    /* 998 or 999 of 999: 999 p^998 (1-p) + p^999 */
    assert_near(log10_of(1000, 999, 1e-300), -299400 + log10(999), 1e-14);
    /* Far more terms than a product could represent; the first, which is the largest, bounds the
     * sum. */
    double log10 = log10_of(1000000, 1000000, 0.5);
    assert_near(log10, -1000000 * log10l(2), 1e-14);
}

static void numbers_print_with_mantissa_and_exponent(void **state) {
    static const struct {
        long double log10;
        const char *text;
    } cases[] = {{-INFINITY, "0"},
                 {0, "1"},
                 {-1, "1.000e-01"},
                 {-299400, "1.000e-299400"},
                 {-5.00000001L, "1.000e-05"}, /* 9.9999998e-06 */
                 {0.5L, "3.162e+00"}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[32];
        assert_string_equal(odds_format(text, sizeof text, cases[i].log10), cases[i].text);
    }
}

/* ---- The simulation ---- */

static struct odds_estimate simulated(uint64_t n, uint64_t m, double p, uint64_t runs,
                                      uint64_t seed) {
    struct odds_estimate e;
    assert_int_equal(odds_simulate(&(struct odds_case){n, m, p}, runs, seed, NULL, &e), 0);
    assert_int_equal(e.runs, runs);
    return e;
}

/* Within four standard errors: a wrong formula or a wrong lock is off by far more. */
static void assert_agrees(const struct odds_case *c, const struct odds_estimate *e) {
    double ratio = (double)powl(10, odds_log10(c) - e->log10);
    double error = (double)powl(10, e->error_log10 - e->log10);
    assert_true(e->violated_runs > 0);
    assert_true(fabs(ratio - 1) < 4 * error);
    assert_true(error < 0.2);
}

static void the_real_lock_agrees_with_the_formula(void **state) {
    (void)state;
    for (int i = 0; i < ODDS_ROWS; i++) {
        const struct odds_case *c = &odds_table[i].of;
        struct odds_estimate e = simulated(c->n, c->m, c->p, 500, 1);
        assert_agrees(c, &e);
        assert_true(e.low_log10 < e.log10 && e.log10 < e.high_log10);
    }
}

static void it_agrees_at_other_sizes_too(void **state) {
    static const struct odds_case cases[] = {{1, 1, 0.3},     {3, 2, 0.5},     {5, 5, 0.01},
                                             {7, 4, 0.6},     {101, 80, 1e-6}, {1000, 501, 0.003},
                                             {40, 39, 1e-300}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct odds_estimate e = simulated(cases[i].n, cases[i].m, cases[i].p, 400, 2);
        assert_agrees(&cases[i], &e);
    }
}

static void certain_and_impossible_violations_are_measured_so(void **state) {
    (void)state;
    struct odds_estimate never = simulated(5, 3, 0, 50, 1), always = simulated(5, 3, 1, 50, 1);
    assert_int_equal(never.violated_runs, 0);
    assert_true(never.log10 == -INFINITY && never.formula_inside);
    assert_int_equal(always.violated_runs, 50);
    assert_true(always.log10 == 0 && always.formula_inside);
}

static void the_seed_decides_the_runs(void **state) {
    (void)state;
    struct odds_estimate a = simulated(8, 5, 0.01, 200, 3), b = simulated(8, 5, 0.01, 200, 3),
                         c = simulated(8, 5, 0.01, 200, 4);
    assert_true(a.log10 == b.log10 && a.low_log10 == b.low_log10);
    assert_true(a.log10 != c.log10);
}

static void restarts_are_drawn_often_enough_to_see_violations(void **state) {
    (void)state;
    assert_true(simulated(8, 5, 0.01, 30, 1).sampling_probability == 0.4);
    assert_true(simulated(8, 5, 0.7, 30, 1).sampling_probability == 0.7);
    assert_true(simulated(4, 4, 0.1, 30, 1).sampling_probability == 0.875);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_table_has_the_known_values),
        cmocka_unit_test(small_cases_have_their_closed_forms),
        cmocka_unit_test(the_terms_are_those_of_the_sum),
        cmocka_unit_test(the_extremes_are_exact),
        cmocka_unit_test(far_below_a_double_the_logarithm_is_right),
        cmocka_unit_test(numbers_print_with_mantissa_and_exponent),
        cmocka_unit_test(the_real_lock_agrees_with_the_formula),
        cmocka_unit_test(it_agrees_at_other_sizes_too),
        cmocka_unit_test(certain_and_impossible_violations_are_measured_so),
        cmocka_unit_test(the_seed_decides_the_runs),
        cmocka_unit_test(restarts_are_drawn_often_enough_to_see_violations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
