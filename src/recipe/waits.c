#include "recipe/waits.h"

#include <math.h>
#include <stdlib.h>

#include "base/rng.h"

enum { DRAWS = 400 };

void waits_add(struct waits *waits, double held_ms) {
    waits->held_ms[waits->holds++ % WAITS_KEPT] = held_ms;
}

static int compare(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* What is left of a hold of which so much has passed: as of those that took longer. */
static double remaining(const double *held, size_t count, double elapsed, struct rng *rng) {
    size_t longer = 0;
    for (size_t i = 0; i < count; i++) longer += held[i] > elapsed;
    if (!longer) return INFINITY;
    size_t wanted = rng_below(rng, longer);
    for (size_t i = 0; i < count; i++)
        if (held[i] > elapsed && wanted-- == 0) return held[i] - elapsed;
    return INFINITY;
}

/* Resampling: as if each of those before it held it for one of the times that were seen. */
bool waits_estimate(const struct waits *waits, size_t before, double elapsed_ms,
                    struct waits_interval *interval) {
    size_t count = waits->holds < WAITS_KEPT ? waits->holds : WAITS_KEPT;
    double sums[DRAWS];
    struct rng rng;
    if (count < WAITS_FEWEST || !before) return false;
    rng_seed(&rng, waits->holds * 1000003 + before);
    for (int i = 0; i < DRAWS; i++) {
        sums[i] = remaining(waits->held_ms, count, elapsed_ms, &rng);
        for (size_t j = 1; j < before && isfinite(sums[i]); j++)
            sums[i] += waits->held_ms[rng_below(&rng, count)];
    }
    qsort(sums, DRAWS, sizeof *sums, compare);
    *interval = (struct waits_interval){sums[DRAWS * (100 - WAITS_PERCENT) / 200],
                                        sums[DRAWS * (100 + WAITS_PERCENT) / 200 - 1]};
    if (!isfinite(interval->low_ms)) interval->low_ms = 0;
    return true;
}

void waits_judge(struct waits *waits, const struct waits_interval *interval, double took_ms) {
    waits->judged++;
    waits->right += took_ms >= interval->low_ms && took_ms <= interval->high_ms;
}
