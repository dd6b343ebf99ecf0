/* Many numbers in few: a tally is small enough for every connection to have one; a summary, of
 * times in microseconds, also knows how those of the last minutes are spread, in counts whose
 * bounds grow by an eighth: what it says about them is that precise. */
#ifndef CV_SERVER_SUMMARY_H
#define CV_SERVER_SUMMARY_H

#include <stdint.h>

struct tally {
    uint64_t count, total, least, most, last;
};

/* `count` times the same. */
static inline void tally_add(struct tally *t, uint64_t number, uint64_t count) {
    if (!t->count || number < t->least) t->least = number;
    if (number > t->most) t->most = number;
    t->count += count;
    t->total += number * count;
    t->last = number;
}

struct tally tally_of_both(const struct tally *a, const struct tally *b);
double tally_average(const struct tally *tally); /* 0 of none */

enum { SUMMARY_PARTS = 8, SUMMARY_OCTAVES = 25, SUMMARY_PERIOD_MS = 60000 };

struct summary {
    struct tally all;
    uint32_t recent[2][SUMMARY_OCTAVES * SUMMARY_PARTS]; /* this period's and the last one's */
};

void summary_add(struct summary *summary, uint64_t us, uint64_t count);
/* A period is over. */
void summary_age(struct summary *summary);
/* What the given share of the recent ones did not exceed; -1: there were none. */
double summary_quantile(const struct summary *summary, double share);

#endif
