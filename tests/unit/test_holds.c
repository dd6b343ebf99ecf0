/* How long a lock is held, from who comes and goes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "recipe/holds.h"

/* A hold counts if both its ends were seen. */
static void what_is_seen_counts(void **state) {
    struct holds h = {0};
    (void)state;
    assert_true(holds_look(&h, (int32_t[]){3, 5}, 2, 1000));
    holds_leave(&h, 3, 9000); /* it has begun before */
    assert_int_equal(h.waits.holds, 0);
    holds_join(&h, 7, 9100);
    holds_leave(&h, 5, 9250);
    assert_int_equal(h.waits.holds, 1);
    assert_true(h.waits.held_ms[0] == 250);
    holds_leave(&h, 7, 9300);
    assert_true(h.waits.held_ms[1] == 50);
    assert_int_equal(h.count, 0);
    holds_join(&h, 8, 10000); /* not since the last one left */
    holds_leave(&h, 8, 10010);
    assert_true(h.waits.held_ms[2] == 10);
}

static void who_gives_up_ends_no_hold(void **state) {
    struct holds h = {0};
    (void)state;
    holds_join(&h, 1, 0);
    holds_join(&h, 2, 10);
    holds_join(&h, 3, 20);
    holds_leave(&h, 2, 30);
    holds_leave(&h, 9, 40); /* nobody */
    assert_int_equal(h.waits.holds, 0);
    holds_leave(&h, 1, 50);
    assert_int_equal(h.waits.holds, 1);
    assert_true(h.waits.held_ms[0] == 50);
    assert_int_equal(h.queue[0], 3);
}

/* A look that finds others than were known begins again, and one that finds the same does not. */
static void a_look(void **state) {
    struct holds h = {0};
    int32_t many[HOLDS_QUEUE_MAX + 1] = {0};
    (void)state;
    holds_join(&h, 1, 100);
    assert_true(holds_look(&h, (int32_t[]){1}, 1, 5));
    assert_int_equal(h.since_ms, 100);
    assert_true(holds_look(&h, (int32_t[]){2}, 1, 5));
    assert_int_equal(h.since_ms, 5);
    holds_leave(&h, 2, 500);
    assert_int_equal(h.waits.holds, 0);
    assert_false(holds_look(&h, many, HOLDS_QUEUE_MAX + 1, 0));
    assert_true(holds_look(&h, many, HOLDS_QUEUE_MAX, 0));
    holds_join(&h, 7, 600);
    assert_int_equal(h.count, HOLDS_QUEUE_MAX);
    assert_true(holds_look(&h, NULL, 0, 0));
    assert_int_equal(h.count, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_seen_counts),
        cmocka_unit_test(who_gives_up_ends_no_hold),
        cmocka_unit_test(a_look),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
