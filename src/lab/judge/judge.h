/* Verdicts: what a judge says about the properties of a run. */
#ifndef CV_LAB_JUDGE_JUDGE_H
#define CV_LAB_JUDGE_JUDGE_H

#include <stdbool.h>
#include <stdint.h>

#include "language/language.h"

enum { VERDICT_WHY_MAX = 320 };
enum verdict_value { UNKNOWN, HELD, VIOLATED };

struct verdict {
    enum verdict_value value;
    uint64_t at_us;            /* when it was violated */
    char why[VERDICT_WHY_MAX]; /* a sentence; empty when there is nothing to say */
};

enum { PROPERTIES_MAX = 9 };
struct properties { /* that a judge decides */
    const char *const *name;
    int count;
};

enum run_end {
    ALL_SERVED,
    QUIESCENT,
    NO_PROGRESS, /* nothing has changed for so long that nothing is taken to change any more */
    TIME_LIMIT,  /* it was cut short */
    EVENT_LIMIT, /* likewise */
    LASTED,      /* it would never end, and lasted for as long as it was to */
};
/* Whether the run came to an end: else what would have happened is not known. */
static inline bool run_is_whole(enum run_end end) {
    return end != TIME_LIMIT && end != EVENT_LIMIT;
}
/* Whether what is the case at the end is the case for good. */
static inline bool run_is_settled(enum run_end end) { return run_is_whole(end) && end != LASTED; }

/* Sets a verdict, unless it is violated already. */
void verdict_set(struct verdict *verdict, enum verdict_value value, uint64_t now,
                 const char *format, ...) __attribute__((format(printf, 4, 5)));
/* The first violation of a property is reported. */
#define verdict_violated(VERDICT, NOW, ...) verdict_set((VERDICT), VIOLATED, (NOW), __VA_ARGS__)

static inline bool any_violated(const struct verdict *verdicts, int count) {
    for (int i = 0; i < count; i++)
        if (verdicts[i].value == VIOLATED) return true;
    return false;
}

static inline const char *verdict_word(enum verdict_value value) {
    return value == HELD ? N_("held") : value == VIOLATED ? N_("violated") : N_("unknown");
}

#endif
