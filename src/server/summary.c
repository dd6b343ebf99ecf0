#include "server/summary.h"

#include <stddef.h>
#include <string.h>

enum { COUNTS = SUMMARY_OCTAVES * SUMMARY_PARTS };

struct tally tally_of_both(const struct tally *a, const struct tally *b) {
    if (!a->count) return *b;
    if (!b->count) return *a;
    return (struct tally){
        .count = a->count + b->count,
        .total = a->total + b->total,
        .least = a->least < b->least ? a->least : b->least,
        .most = a->most > b->most ? a->most : b->most,
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
    return place < COUNTS ? place : COUNTS - 1;
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
}

void summary_age(struct summary *summary) {
    memcpy(summary->recent[1], summary->recent[0], sizeof summary->recent[0]);
    memset(summary->recent[0], 0, sizeof summary->recent[0]);
}

double summary_quantile(const struct summary *summary, double share) {
    uint64_t all = 0, seen = 0;
    for (size_t i = 0; i < COUNTS; i++) all += summary->recent[0][i] + summary->recent[1][i];
    for (size_t i = 0; i < COUNTS; i++) {
        seen += summary->recent[0][i] + summary->recent[1][i];
        if (seen && (double)seen >= share * (double)all) return middle_of(i);
    }
    return -1;
}
