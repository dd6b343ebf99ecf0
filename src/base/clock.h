/* The time as it was last read: when an event arrives, so several times in a loop iteration.  What
 * follows from the event uses that time. */
#ifndef CV_BASE_CLOCK_H
#define CV_BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

struct clock {
    int64_t now_ms; /* since 1970; may be set, back and forward: for stamps, not for durations */
    uint64_t monotonic_us; /* is never set, and goes on while the machine is suspended */
};

/* CLOCK_MONOTONIC, which libuv's timers and uv_hrtime follow, stands still while the machine is
 * suspended: a leader that wakes up would believe in a lease that others no longer know of.  A
 * timer may therefore come later than by this clock, never sooner. */
static inline uint64_t clock_monotonic_us(void) {
    struct timespec now;
    clock_gettime(CLOCK_BOOTTIME, &now);
    return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

static inline void clock_read(struct clock *clock) {
    struct timespec real;
    clock_gettime(CLOCK_REALTIME, &real);
    clock->now_ms = (int64_t)real.tv_sec * 1000 + real.tv_nsec / 1000000;
    clock->monotonic_us = clock_monotonic_us();
}

#endif
