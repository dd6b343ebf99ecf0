#include "base/busy.h"

#include <stddef.h>
#include <string.h>
#include <time.h>

static uint64_t now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

void busy_begin(struct busy *b) { *b = (struct busy){.since_ns = now_ns()}; }

enum busy_kind busy_with(struct busy *b, enum busy_kind kind) {
    enum busy_kind before = b->kind;
    uint64_t now = now_ns();
    b->spent_ns[before] += now - b->since_ns;
    b->since_ns = now;
    b->kind = kind;
    return before;
}

void busy_waits(struct busy *b) { b->waits_ns = now_ns(); }

void busy_interrupted(struct busy *b, uint64_t woken_ns) {
    b->interrupted_ns = woken_ns > b->waits_ns ? woken_ns - b->waits_ns : 0;
}

static void spread_add(struct busy_spread *spread, uint64_t us) {
    size_t i = 0;
    while (i < SUMMARY_BOUNDS && us > summary_bound_us[i]) i++;
    if (i < SUMMARY_BOUNDS) spread->bucket[i]++;
    spread->count++;
    spread->total_us += us;
}

uint64_t busy_iteration_ended(struct busy *b, uint64_t waited_ns, enum busy_kind *mostly) {
    uint64_t total = 0, waited = waited_ns - b->waited_ns;
    busy_with(b, b->kind);
    if (waited < b->interrupted_ns) waited = b->interrupted_ns;
    b->waited_ns = waited_ns;
    b->interrupted_ns = 0;
    b->spent_ns[BUSY_OTHER] -= waited < b->spent_ns[BUSY_OTHER] ? waited : b->spent_ns[BUSY_OTHER];
    *mostly = BUSY_OTHER;
    for (enum busy_kind kind = 0; kind < BUSY_KIND_COUNT; kind++) {
        uint64_t us = b->spent_ns[kind] / 1000;
        if (us > b->kind_max_us[kind]) b->kind_max_us[kind] = us;
        if (b->spent_ns[kind]) spread_add(&b->work[kind], us);
        if (b->spent_ns[kind] > b->spent_ns[*mostly]) *mostly = kind;
        total += b->spent_ns[kind];
    }
    memset(b->spent_ns, 0, sizeof b->spent_ns);
    if (total / 1000 > b->max_us) b->max_us = total / 1000;
    spread_add(&b->iterations, total / 1000);
    return total / 1000;
}

void busy_reset(struct busy *b) {
    b->max_us = 0;
    memset(b->kind_max_us, 0, sizeof b->kind_max_us);
}

const char *busy_kind_name(enum busy_kind kind) {
    static const char *const names[] = {
        [BUSY_OTHER] = "other",       [BUSY_REQUESTS] = "requests", [BUSY_APPLY] = "apply",
        [BUSY_SENDING] = "sending",   [BUSY_MEMBERS] = "members",   [BUSY_DISK] = "disk",
        [BUSY_SNAPSHOT] = "snapshot", [BUSY_INSTALL] = "install",   [BUSY_EXPIRY] = "expiry",
        [BUSY_REPORTS] = "reports"};
    return names[kind];
}
