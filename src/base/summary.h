/* Many numbers in few: a tally is small enough for every connection to have one; a summary, of
 * times in microseconds, also knows how those of the last minutes are spread, in counts whose
 * bounds grow by an eighth: what it says about them is that precise.  How all are spread it knows
 * by the few bounds of a histogram, which a monitor can add up over servers and time. */
#ifndef CV_BASE_SUMMARY_H
#define CV_BASE_SUMMARY_H

#include <stdint.h>

struct tally {
    uint64_t count, total, min, max, last;
};

/* `count` times the same. */
static inline void tally_add(struct tally *t, uint64_t number, uint64_t count) {
    if (!t->count || number < t->min) t->min = number;
    if (number > t->max) t->max = number;
    t->count += count;
    t->total += number * count;
    t->last = number;
}

struct tally tally_of_both(const struct tally *a, const struct tally *b);
double tally_average(const struct tally *tally); /* 0 of none */
/* Of microseconds, rounded up: no average exceeds it. */
static inline uint64_t tally_max_ms(const struct tally *t) { return (t->max + 999) / 1000; }

enum {
    SUMMARY_PARTS = 8,
    SUMMARY_OCTAVES = 25,
    SUMMARY_COUNTS = SUMMARY_OCTAVES * SUMMARY_PARTS,
    SUMMARY_PERIOD_MS = 60000,
    SUMMARY_BOUNDS = 19
};

extern const uint32_t summary_bound_us[SUMMARY_BOUNDS];

struct summary {
    struct tally all;
    uint64_t bucket[SUMMARY_BOUNDS];    /* of all: above the bound before, and not above this one */
    uint32_t recent[2][SUMMARY_COUNTS]; /* this period's and the last one's */
    uint32_t periods;                   /* that are over */
};

void summary_add(struct summary *summary, uint64_t us, uint64_t count);
/* A period is over. */
void summary_age(struct summary *summary);
/* What the given share of the recent ones did not exceed, and no more precise than their counts,
 * but never outside of what `all` has seen; -1: there were none. */
double summary_quantile(const struct summary *summary, double share);

/* How numbers are spread, of several summaries together. */
struct summary_spread {
    uint64_t count[SUMMARY_COUNTS];
};
/* A moment, later than which is counted; a period may end since then, but not two. */
struct summary_mark {
    uint64_t all;
    uint32_t periods, recent[SUMMARY_COUNTS];
};
void summary_take_mark(const struct summary *summary, struct summary_mark *mark);
/* Adds those since the mark; if it is NULL or too old, or all was reset since, the recent ones. */
void summary_add_spread(const struct summary *summary, const struct summary_mark *mark,
                        struct summary_spread *spread);
double summary_spread_quantile(const struct summary_spread *spread, double share);

#endif
