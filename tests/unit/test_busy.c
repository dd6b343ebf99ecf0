/* How long a loop was busy.  Bounds are what the test itself has measured around it, so that a
 * machine that is slow does not matter. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <time.h>

#include "base/busy.h"

static uint64_t now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

enum { PAUSE_NS = 3000000 };
static void pause_for_a_moment(void) { nanosleep(&(struct timespec){.tv_nsec = PAUSE_NS}, NULL); }

static void work_is_charged_to_its_kind(void **state) {
    struct busy b;
    enum busy_kind mostly;
    (void)state;
    busy_begin(&b);
    busy_waits(&b);
    assert_int_equal(busy_with(&b, BUSY_APPLY), BUSY_OTHER);
    pause_for_a_moment();
    assert_int_equal(busy_with(&b, BUSY_OTHER), BUSY_APPLY);
    uint64_t us = busy_iteration_ended(&b, 0, &mostly);
    assert_true(us >= PAUSE_NS / 1000 && b.max_us == us);
    assert_true(b.kind_max_us[BUSY_APPLY] >= PAUSE_NS / 1000);
    busy_reset(&b);
    assert_int_equal(b.max_us + b.kind_max_us[BUSY_APPLY], 0);
}

/* How many iterations of a spread took longer than one of its bounds. */
static uint64_t longer(const struct busy_spread *spread, uint64_t us) {
    uint64_t count = spread->count;
    for (size_t i = 0; i < SUMMARY_BOUNDS && summary_bound_us[i] <= us; i++)
        count -= spread->bucket[i];
    return count;
}

static void iterations_are_counted_by_their_length(void **state) {
    enum { SHORT = 5, BELOW_PAUSE_US = 2500 };
    struct busy b;
    enum busy_kind mostly;
    uint64_t total = 0;
    (void)state;
    busy_begin(&b);
    for (int i = 0; i < SHORT; i++) total += busy_iteration_ended(&b, 0, &mostly);
    busy_with(&b, BUSY_DISK);
    pause_for_a_moment();
    busy_with(&b, BUSY_OTHER);
    total += busy_iteration_ended(&b, 0, &mostly);
    busy_reset(&b); /* these are figures since the start */
    assert_int_equal(b.iterations.count, SHORT + 1);
    assert_int_equal(b.iterations.total_us, total);
    assert_true(longer(&b.iterations, BELOW_PAUSE_US) >= 1);
    assert_int_equal(b.work[BUSY_DISK].count, 1); /* others did none of it */
    assert_int_equal(longer(&b.work[BUSY_DISK], BELOW_PAUSE_US), 1);
    assert_true(b.work[BUSY_DISK].total_us >= PAUSE_NS / 1000);
    assert_int_equal(b.work[BUSY_SNAPSHOT].count, 0);
}

static void waiting_is_not_work(void **state) {
    struct busy b;
    enum busy_kind mostly;
    (void)state;
    uint64_t begun = now_ns();
    busy_begin(&b);
    busy_waits(&b);
    pause_for_a_moment();
    uint64_t us = busy_iteration_ended(&b, PAUSE_NS, &mostly);
    assert_true(us <= (now_ns() - begun - PAUSE_NS) / 1000);
}

/* The loop does not count the wait that a signal ends; work after the signal counts as ever. */
static void a_wait_that_a_signal_ends_is_not_work(void **state) {
    struct busy b;
    enum busy_kind mostly;
    (void)state;
    uint64_t begun = now_ns();
    busy_begin(&b);
    busy_waits(&b);
    uint64_t waits = now_ns();
    pause_for_a_moment();
    uint64_t woken = now_ns();
    busy_interrupted(&b, woken);
    pause_for_a_moment();
    uint64_t us = busy_iteration_ended(&b, 0, &mostly);
    assert_true(us <= (now_ns() - begun - (woken - waits)) / 1000);
    assert_true(us >= PAUSE_NS / 1000);
    pause_for_a_moment(); /* and it is about that one iteration only */
    assert_true(busy_iteration_ended(&b, 0, &mostly) >= PAUSE_NS / 1000);
}

static void a_signal_during_work_hides_nothing(void **state) {
    struct busy b;
    enum busy_kind mostly;
    (void)state;
    busy_begin(&b);
    uint64_t woken = now_ns() / 1000000 * 1000000; /* the loop's clock has milliseconds */
    pause_for_a_moment();
    busy_waits(&b);
    busy_interrupted(&b, woken);
    assert_true(busy_iteration_ended(&b, 0, &mostly) >= PAUSE_NS / 1000);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(work_is_charged_to_its_kind),
        cmocka_unit_test(iterations_are_counted_by_their_length),
        cmocka_unit_test(waiting_is_not_work),
        cmocka_unit_test(a_wait_that_a_signal_ends_is_not_work),
        cmocka_unit_test(a_signal_during_work_hides_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
