/* What a judge says of one property of a run. */
#ifndef CV_JUDGE_H
#define CV_JUDGE_H

#include <stdint.h>

enum verdict_value { UNKNOWN, HELD, VIOLATED };

struct verdict {
    enum verdict_value value;
    uint64_t at_us; /* when it was violated */
    char why[240];  /* a sentence; empty when there is nothing to say */
};

static inline const char *verdict_word(enum verdict_value value) {
    return value == HELD ? "held" : value == VIOLATED ? "violated" : "unknown";
}

#endif
