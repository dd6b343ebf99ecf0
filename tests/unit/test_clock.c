/* Which of the system's clocks is for what. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/clock.h"

enum { WALL_S = 1700000000, AWAKE_S = 50, SINCE_BOOT_S = 80 };

/* In place of the C library's: the machine was suspended for half a minute. */
int clock_gettime(clockid_t clock, struct timespec *time) {
    time->tv_sec = clock == CLOCK_REALTIME   ? WALL_S
                   : clock == CLOCK_BOOTTIME ? SINCE_BOOT_S
                                             : AWAKE_S;
    time->tv_nsec = 7654321;
    return 0;
}

static void durations_count_while_the_machine_is_suspended(void **state) {
    struct clock clock;
    (void)state;
    clock_read(&clock);
    assert_true(clock.monotonic_us == UINT64_C(1000000) * SINCE_BOOT_S + 7654);
    assert_true(clock_monotonic_us() == clock.monotonic_us);
}

static void stamps_are_of_the_wall_clock(void **state) {
    struct clock clock;
    (void)state;
    clock_read(&clock);
    assert_true(clock.now_ms == INT64_C(1000) * WALL_S + 7);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(durations_count_while_the_machine_is_suspended),
        cmocka_unit_test(stamps_are_of_the_wall_clock),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
