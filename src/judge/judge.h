/* What a judge says of one property of a run. */
#ifndef CV_JUDGE_H
#define CV_JUDGE_H

#include <stdbool.h>
#include <stdint.h>

enum verdict_value { UNKNOWN, HELD, VIOLATED };

struct verdict {
    enum verdict_value value;
    uint64_t at_us; /* when it was violated */
    char why[240];  /* a sentence; empty when there is nothing to say */
};

enum { PROPERTIES_MAX = 6 };
struct properties { /* what a judge decides */
    const char *const *name;
    int count;
};

enum run_end { ALL_SERVED, AT_REST, PATIENCE_LOST, TIME_LIMIT, EVENT_LIMIT };

/* Sets a verdict that was not violated before. */
void verdict_set(struct verdict *verdict, enum verdict_value value, uint64_t now,
                 const char *format, ...) __attribute__((format(printf, 4, 5)));
/* The first violation of a property is the one that is reported. */
#define verdict_violated(VERDICT, NOW, ...) verdict_set((VERDICT), VIOLATED, (NOW), __VA_ARGS__)

static inline bool any_violated(const struct verdict *verdicts, int count) {
    for (int i = 0; i < count; i++)
        if (verdicts[i].value == VIOLATED) return true;
    return false;
}

static inline const char *verdict_word(enum verdict_value value) {
    return value == HELD ? "held" : value == VIOLATED ? "violated" : "unknown";
}

#endif
