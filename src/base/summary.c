#include "base/summary.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

const uint32_t summary_bound_us[SUMMARY_BOUNDS] = {
    50,     100,    250,    500,     1000,    2500,    5000,     10000,    25000,   50000,
    100000, 250000, 500000, 1000000, 2500000, 5000000, 10000000, 30000000, 60000000};

struct tally tally_of_both(const struct tally *a, const struct tally *b) {
    if (!a->count) return *b;
    if (!b->count) return *a;
    return (struct tally){
        .count = a->count + b->count,
        .total = a->total + b->total,
        .min = a->min < b->min ? a->min : b->min,
        .max = a->max > b->max ? a->max : b->max,
    };
}

double tally_average(const struct tally *t) {
    return t->count ? (double)t->total / (double)t->count : 0;
}

/* Small numbers each have a count; above, every power of two is cut into as many parts. */
static size_t place_of(uint64_t us) {
    if (us < SUMMARY_PARTS) return us;
    unsigned shift = 60 - (unsigned)__builtin_clzll(us);
    size_t place = (size_t)(shift + 1) * SUMMARY_PARTS + (us >> shift) % SUMMARY_PARTS;
    return place < SUMMARY_COUNTS ? place : SUMMARY_COUNTS - 1;
}

static double middle_of(size_t place) {
    if (place < SUMMARY_PARTS) return (double)place;
    uint64_t width = (uint64_t)1 << (place / SUMMARY_PARTS - 1);
    uint64_t from = (SUMMARY_PARTS + place % SUMMARY_PARTS) * width;
    return (double)from + (double)(width - 1) / 2;
}

void summary_add(struct summary *summary, uint64_t us, uint64_t count) {
    tally_add(&summary->all, us, count);
    summary->recent[0][place_of(us)] += (uint32_t)count;
    size_t i = 0;
    while (i < SUMMARY_BOUNDS && us > summary_bound_us[i]) i++;
    if (i < SUMMARY_BOUNDS) summary->bucket[i] += count;
}

void summary_age(struct summary *summary) {
    memcpy(summary->recent[1], summary->recent[0], sizeof summary->recent[0]);
    memset(summary->recent[0], 0, sizeof summary->recent[0]);
    summary->periods++;
}

double summary_quantile(const struct summary *summary, double share) {
    struct summary_spread spread = {0};
    const struct tally *all = &summary->all;
    summary_add_spread(summary, NULL, &spread);
    double us = summary_spread_quantile(&spread, share);
    if (us < 0 || !all->count) return us; /* all was reset */
    if (us < (double)all->min) return (double)all->min;
    return us > (double)all->max ? (double)all->max : us;
}

void summary_take_mark(const struct summary *summary, struct summary_mark *mark) {
    mark->all = summary->all.count;
    mark->periods = summary->periods;
    memcpy(mark->recent, summary->recent[0], sizeof mark->recent);
}

void summary_add_spread(const struct summary *summary, const struct summary_mark *mark,
                        struct summary_spread *spread) {
    uint32_t over = mark ? summary->periods - mark->periods : 0;
    bool known = mark && over <= 1 && summary->all.count >= mark->all;
    for (size_t i = 0; i < SUMMARY_COUNTS; i++) {
        uint32_t count = summary->recent[0][i];
        if (!known || over) count += summary->recent[1][i];
        if (known) count -= mark->recent[i];
        spread->count[i] += count;
    }
}

double summary_spread_quantile(const struct summary_spread *spread, double share) {
    uint64_t all = 0, seen = 0;
    for (size_t i = 0; i < SUMMARY_COUNTS; i++) all += spread->count[i];
    for (size_t i = 0; i < SUMMARY_COUNTS; i++) {
        seen += spread->count[i];
        if (seen && (double)seen >= share * (double)all) return middle_of(i);
    }
    return -1;
}
