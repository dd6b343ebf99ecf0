/* How long those who wait for a lock will have to, from how long it was held before.
 *
 * An estimate is an interval that is meant to be right in four of five cases.  It assumes that the
 * next holders hold it for as long as the last ones did; how often it was right is counted, so that
 * nobody has to believe it. */
#ifndef CV_RECIPE_WAITS_H
#define CV_RECIPE_WAITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    WAITS_KEPT = 128, /* the last holds */
    WAITS_FEWEST = 5, /* with fewer there is no estimate */
    WAITS_PERCENT = 80
};

struct waits {
    double held_ms[WAITS_KEPT];
    size_t holds; /* that were ever seen; the last WAITS_KEPT of them are there */
    uint32_t right, judged;
};

struct waits_interval {
    double low_ms, high_ms; /* high: infinite if the holder has it for longer than any before */
};

void waits_add(struct waits *waits, double held_ms);
/* For whoever has `before` others before it, the holder included, who has had it for `elapsed_ms`.
 * False: too little is known. */
bool waits_estimate(const struct waits *waits, size_t before, double elapsed_ms,
                    struct waits_interval *interval);
/* It took that long. */
void waits_judge(struct waits *waits, const struct waits_interval *interval, double took_ms);

#endif
