/* Timeouts: against closed forms, for models and for measured delays. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lab/experiments/plot.h"
#include "lab/experiments/timeout.h"

static void assert_near(double value, double expected, double relative) {
    if (!(fabs(value - expected) <= relative * fabs(expected)))
        fail_msg("%.17g is not %.17g", value, expected);
}

static struct timeout_problem modelled(double wait_cost, double mistake_cost, const char *delay) {
    struct timeout_problem problem = {.wait_cost = wait_cost, .mistake_cost = mistake_cost};
    assert_int_equal(distribution_parse(delay, &problem.delays.model), 0);
    return problem;
}

static int read_text(struct delays *delays, const char *text, char error[TIMEOUT_ERROR_MAX]) {
    FILE *file = fmemopen((void *)text, strlen(text) + 1, "r");
    assert_non_null(file);
    assert_int_equal(fseek(file, 0, SEEK_SET), 0);
    int result = delays_read(delays, file, "ping.txt", error);
    fclose(file);
    return result;
}

static struct timeout_problem measured(double wait_cost, double mistake_cost, const char *text) {
    struct timeout_problem problem = {.wait_cost = wait_cost, .mistake_cost = mistake_cost};
    char error[TIMEOUT_ERROR_MAX];
    assert_int_equal(read_text(&problem.delays, text, error), 0);
    return problem;
}

/* The break-even T is the first that satisfies the rule, and no T has a lower total than the least.
 */
static void assert_solved(const struct timeout_problem *problem) {
    struct timeout_point even = timeout_break_even(problem), least = timeout_least_total(problem);
    struct timeout_point before = timeout_at(problem, nextafter(even.timeout_us, 0));
    assert_true(even.mistake_cost <= even.wait_cost);
    if (even.timeout_us > 0) assert_true(before.mistake_cost > before.wait_cost);
    double range = timeout_range(&even, &least), most = timeout_total(&least) * (1 + 1e-12);
    for (int i = 0; i <= 10000; i++) {
        struct timeout_point point = timeout_at(problem, 3 * range * i / 10000);
        assert_true(most <= 0 || timeout_total(&least) <= timeout_total(&point) * (1 + 1e-12));
    }
}

/* ---- Models ---- */

static void exponential_delays(void **state) {
    (void)state;
    /* C e^(-T/a) = E T at T = a, when C = E a e. */
    struct timeout_problem problem = modelled(1, 0.02 * exp(1), "exponential:20ms");
    assert_near(timeout_break_even(&problem).timeout_us, 20000, 1e-14);
    /* The sum is smallest where the density is E/C: at a ln(C / (E a)) = a. */
    assert_near(timeout_least_total(&problem).timeout_us, 20000, 1e-12);
    assert_solved(&problem);
    problem = modelled(1, 1000, "exponential:20ms");
    assert_near(timeout_least_total(&problem).timeout_us, 20000 * log(50000), 1e-12);
    assert_solved(&problem);
    /* A mistake that costs less than the mean wait: nobody waits. */
    problem = modelled(1, 0.01, "exponential:20ms");
    assert_true(timeout_least_total(&problem).timeout_us == 0);
    assert_solved(&problem);
}

static void uniform_delays(void **state) {
    (void)state;
    /* C (5 - T) / 4 = E T, in ms with E = 1 per ms: T = 5 C / (4 + C). */
    struct timeout_problem problem = modelled(1000, 4, "uniform:1ms,5ms");
    struct timeout_point even = timeout_break_even(&problem);
    assert_near(even.timeout_us, 2500, 1e-14);
    assert_near(even.mistake_probability, 0.625, 1e-14);
    assert_near(even.mistake_cost, 2.5, 1e-14);
    assert_near(even.wait_cost, 2.5, 1e-14);
    assert_true(timeout_least_total(&problem).timeout_us ==
                0); /* 4 for no wait, 5 for a full one */
    assert_solved(&problem);
    problem = modelled(1000, 6, "uniform:1ms,5ms");
    assert_true(timeout_least_total(&problem).timeout_us == 5000);
    assert_solved(&problem);
    problem = modelled(1000, 0.5, "uniform:1ms,5ms"); /* crosses before the first delay can end */
    assert_near(timeout_break_even(&problem).timeout_us, 500, 1e-14);
    assert_solved(&problem);
}

static void constant_delays(void **state) {
    (void)state;
    struct timeout_problem problem = modelled(1, 1, "constant:10ms");
    assert_true(timeout_break_even(&problem).timeout_us == 10000);
    assert_true(timeout_least_total(&problem).timeout_us == 10000);
    problem = modelled(1, 0.004, "10ms"); /* waiting 4 ms costs as much as the mistake */
    assert_near(timeout_break_even(&problem).timeout_us, 4000, 1e-14);
    assert_true(timeout_least_total(&problem).timeout_us == 0);
    problem = modelled(1, 1, "0");
    assert_true(timeout_break_even(&problem).timeout_us == 0);
    assert_true(timeout_least_total(&problem).timeout_us == 0);
}

static void lognormal_delays(void **state) {
    static const char *const models[] = {"lognormal:20ms,0.8", "lognormal:20ms,0", "lognormal:1s,3",
                                         "lognormal:0,1"};
    static const double mistakes[] = {1e-6, 0.01, 1, 1000};
    (void)state;
    for (int i = 0; i < 4; i++)
        for (int k = 0; k < 4; k++) {
            struct timeout_problem problem = modelled(1, mistakes[k], models[i]);
            assert_solved(&problem);
        }
}

static void extreme_costs_are_solved(void **state) {
    (void)state;
    for (double wait = 1e-100; wait <= 1e100; wait *= 1e50)
        for (double mistake = 1e-100; mistake <= 1e100; mistake *= 1e50) {
            struct timeout_problem problem = modelled(wait, mistake, "exponential:20ms");
            struct timeout_point even = timeout_break_even(&problem);
            assert_true(isfinite(even.timeout_us) && isfinite(even.wait_cost));
            assert_true(even.mistake_cost <= even.wait_cost);
        }
}

/* ---- Measured delays ---- */

static void measured_delays_are_a_step_function(void **state) {
    (void)state;
    struct timeout_problem problem =
        measured(1, 1, "3ms\n1\n2.0 # not in order\n\n# four\n4000us\n");
    const struct delays *delays = &problem.delays;
    assert_int_equal(delays->count, 4);
    assert_true(delays_above(delays, 0) == 1);
    assert_true(delays_above(delays, 999.999) == 1);
    assert_true(delays_above(delays, 1000) == 0.75);
    assert_true(delays_above(delays, 3999.9) == 0.25);
    assert_true(delays_above(delays, 4000) == 0);
    delays_free(&problem.delays);
}

static void measured_delays_are_solved_exactly(void **state) {
    (void)state;
    struct timeout_problem problem = measured(1, 1, "1\n2\n3\n4\n"); /* mistakes are expensive */
    assert_true(timeout_break_even(&problem).timeout_us == 4000);
    assert_true(timeout_least_total(&problem).timeout_us == 4000);
    assert_solved(&problem);
    problem.mistake_cost = 0.005; /* 0.0025 falls short of waiting 2.5 ms, between two delays */
    assert_near(timeout_break_even(&problem).timeout_us, 2500, 1e-14);
    assert_true(timeout_least_total(&problem).timeout_us == 4000);
    assert_solved(&problem);
    problem.mistake_cost = 0.0041; /* at 2 ms, 0.003075 jumps to 0.00205: the two cross after it */
    assert_near(timeout_break_even(&problem).timeout_us, 2050, 1e-14);
    problem.mistake_cost = 0.0036; /* ... and at 2 ms itself: 0.0027 before, 0.0018 after */
    assert_true(timeout_break_even(&problem).timeout_us == 2000);
    assert_true(timeout_least_total(&problem).timeout_us == 0);
    assert_solved(&problem);
    delays_free(&problem.delays);
}

static void delays_that_are_all_the_same(void **state) {
    (void)state;
    struct timeout_problem problem = measured(1, 1, "5\n5\n5");
    assert_true(timeout_break_even(&problem).timeout_us == 5000);
    delays_free(&problem.delays);
    problem = measured(1, 1, "0\n0\n");
    assert_true(timeout_break_even(&problem).timeout_us == 0);
    assert_true(timeout_least_total(&problem).timeout_us == 0);
    delays_free(&problem.delays);
}

static void an_invalid_delay_is_refused_with_its_line(void **state) {
    static const struct {
        const char *text, *error;
    } cases[] = {
        {"1\n-2\n", "ping.txt:2: '-2' is negative"},
        {"1\n\n# x\ntwo\n", "ping.txt:4: 'two' is not a delay such as 12.5ms, or a number of "
                            "milliseconds"},
        {"nan\n1\n",
         "ping.txt:1: 'nan' is not a delay such as 12.5ms, or a number of milliseconds"},
        {"1 2\n", "ping.txt:1: '1 2' is not a delay such as 12.5ms, or a number of milliseconds"},
        {"1\n1e300\n", "ping.txt:2: '1e300' is too long"},
        {"# nothing\n", "ping.txt: at least 2 delays are needed, not 0"},
        {"7ms\n", "ping.txt: at least 2 delays are needed, not 1"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct delays delays;
        char error[TIMEOUT_ERROR_MAX];
        assert_int_equal(read_text(&delays, cases[i].text, error), -1);
        assert_string_equal(error, cases[i].error);
    }
}

/* ---- The curve and its plot ---- */

static void the_curve_rises_in_time_and_holds_both_answers(void **state) {
    (void)state;
    struct timeout_problem problem = modelled(1, 1000, "exponential:20ms");
    struct timeout_point even = timeout_break_even(&problem), least = timeout_least_total(&problem);
    struct timeout_point curve[TIMEOUT_CURVE_MAX];
    size_t count = timeout_curve(&problem, &even, &least, curve), found = 0;
    assert_true(count >= 15 && count <= TIMEOUT_CURVE_MAX);
    assert_true(curve[0].timeout_us == 0);
    for (size_t i = 0; i < count; i++) {
        if (i) assert_true(curve[i].timeout_us > curve[i - 1].timeout_us);
        found += curve[i].timeout_us == even.timeout_us || curve[i].timeout_us == least.timeout_us;
    }
    assert_int_equal(found, 2);
}

static void the_plot_is_a_whole_picture(void **state) {
    static const double mistakes[] = {0.1, 1000};
    (void)state;
    for (int i = 0; i < 2; i++) {
        struct timeout_problem problem = modelled(1, mistakes[i], "exponential:20ms");
        struct timeout_point even = timeout_break_even(&problem),
                             least = timeout_least_total(&problem);
        char *text = NULL;
        size_t size = 0;
        FILE *out = open_memstream(&text, &size);
        timeout_plot(&problem, &even, &least, out);
        fclose(out);
        assert_true(size > 1000 && strncmp(text, "<svg", 4) == 0);
        assert_string_equal(text + size - 7, "</svg>\n");
        assert_non_null(strstr(text, "break-even T = "));
        assert_null(strstr(text, "nan"));
        assert_null(strstr(text, "inf"));
        free(text);
    }
}

static void steps_are_round(void **state) {
    (void)state;
    assert_near(nice_step(1), 1, 1e-12);
    assert_near(nice_step(1.1), 2, 1e-12);
    assert_near(nice_step(0.021), 0.025, 1e-12);
    assert_near(nice_step(260), 500, 1e-12);
    assert_near(nice_step(7), 10, 1e-12);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(exponential_delays),
        cmocka_unit_test(uniform_delays),
        cmocka_unit_test(constant_delays),
        cmocka_unit_test(lognormal_delays),
        cmocka_unit_test(extreme_costs_are_solved),
        cmocka_unit_test(measured_delays_are_a_step_function),
        cmocka_unit_test(measured_delays_are_solved_exactly),
        cmocka_unit_test(delays_that_are_all_the_same),
        cmocka_unit_test(an_invalid_delay_is_refused_with_its_line),
        cmocka_unit_test(the_curve_rises_in_time_and_holds_both_answers),
        cmocka_unit_test(the_plot_is_a_whole_picture),
        cmocka_unit_test(steps_are_round),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
