/* How long waits are estimated to be, and who waits for whom in a circle. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/rng.h"
#include "recipe/cycles.h"
#include "recipe/waits.h"

static void test_too_little(void **state) {
    struct waits waits = {0};
    struct waits_interval interval;
    (void)state;
    for (int i = 0; i < WAITS_FEWEST; i++) {
        assert_false(waits_estimate(&waits, 1, 0, &interval));
        waits_add(&waits, 100);
    }
    assert_false(waits_estimate(&waits, 0, 0, &interval)); /* who holds it does not wait */
    assert_true(waits_estimate(&waits, 1, 0, &interval));
    assert_true(interval.low_ms == 100 && interval.high_ms == 100);
    assert_true(waits_estimate(&waits, 3, 40, &interval));
    assert_true(interval.low_ms == 260 && interval.high_ms == 260);
    /* It is held for longer than ever before: nobody knows. */
    assert_true(waits_estimate(&waits, 2, 100, &interval));
    assert_true(interval.low_ms == 0 && isinf(interval.high_ms));
}

static double hold(struct rng *rng) { return -200 * log(1 - rng_unit(rng)); }

/* Of many estimates about as many are right as should be. */
static void test_calibration(void **state) {
    struct waits waits = {0};
    struct waits_interval interval;
    struct rng rng;
    (void)state;
    rng_seed(&rng, 7);
    for (int i = 0; i < 200; i++) waits_add(&waits, hold(&rng));
    for (int i = 0; i < 2000; i++) {
        size_t before = 1 + rng_below(&rng, 6);
        double first = hold(&rng), elapsed = first * rng_unit(&rng), took = first - elapsed;
        for (size_t j = 1; j < before; j++) took += hold(&rng);
        assert_true(waits_estimate(&waits, before, elapsed, &interval));
        waits_judge(&waits, &interval, took);
        waits_add(&waits, hold(&rng));
    }
    assert_int_equal(waits.judged, 2000);
    assert_in_range(waits.right, 2000 * (WAITS_PERCENT - 12) / 100,
                    2000 * (WAITS_PERCENT + 8) / 100);
}

/* ---- Circles ---- */

static char told[512];

static void tell(const struct wait *const *circle, size_t size, void *arg) {
    (void)arg;
    for (size_t i = 0; i < size; i++) {
        size_t used = strlen(told);
        assert_int_equal(circle[i]->holder, circle[(i + 1) % size]->waiter);
        snprintf(told + used, sizeof told - used, "%d>", (int)circle[i]->waiter);
    }
    strcat(told, " ");
}

static size_t find(struct wait *waits, size_t count) {
    told[0] = 0;
    return cycles_find(waits, count, tell, NULL);
}

static void test_circles(void **state) {
    struct wait none[] = {
        {2, 1, 0, false}, {3, 2, 0, false}, {3, 1, 1, false}, {4, 3, 0, false}, {5, 9, 0, false}};
    struct wait one[] = {{1, 2, 0, false}, {2, 3, 1, false}, {3, 1, 2, false}, {4, 1, 2, false}};
    struct wait two[] = {{1, 2, 0, false}, {2, 1, 1, false}, {7, 7, 3, false}, {8, 9, 0, false}};
    struct wait deep[] = {
        {1, 5, 0, false}, {1, 2, 0, false}, {5, 6, 0, false}, {2, 3, 0, false}, {3, 2, 0, false}};
    (void)state;
    assert_int_equal(find(NULL, 0), 0);
    assert_int_equal(find(none, 5), 0);
    assert_int_equal(find(one, 4), 1);
    assert_string_equal(told, "1>2>3> ");
    assert_int_equal(find(two, 4), 2);
    assert_string_equal(told, "1>2> 7> ");
    assert_int_equal(find(deep, 5), 1);
    assert_string_equal(told, "2>3> ");
}

/* Against the simplest way to say whether there is one: can somebody reach itself? */
static void test_random_circles(void **state) {
    enum { SESSIONS = 6 };
    struct rng rng;
    (void)state;
    rng_seed(&rng, 3);
    for (int round = 0; round < 3000; round++) {
        struct wait waits[12];
        bool reaches[SESSIONS][SESSIONS] = {0};
        size_t count = rng_below(&rng, 12);
        for (size_t i = 0; i < count; i++) {
            waits[i] = (struct wait){(int64_t)rng_below(&rng, SESSIONS),
                                     (int64_t)rng_below(&rng, SESSIONS), i, false};
            reaches[waits[i].waiter][waits[i].holder] = true;
        }
        for (int k = 0; k < SESSIONS; k++)
            for (int i = 0; i < SESSIONS; i++)
                for (int j = 0; j < SESSIONS; j++) reaches[i][j] |= reaches[i][k] && reaches[k][j];
        bool circle = false;
        for (int i = 0; i < SESSIONS; i++) circle |= reaches[i][i];
        assert_int_equal(find(waits, count) > 0, circle);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_too_little),
        cmocka_unit_test(test_calibration),
        cmocka_unit_test(test_circles),
        cmocka_unit_test(test_random_circles),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
