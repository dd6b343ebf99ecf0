/* Lines of the log about what is tried again and again. */
#ifndef CV_SERVICE_ENSEMBLE_REPEATED_H
#define CV_SERVICE_ENSEMBLE_REPEATED_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

struct repeated {
    uint64_t said_us;
    char reason[512];
};

/* Whether it is time for the line: the reason is another one, or it was said long ago. */
static inline bool repeated_is_due(struct repeated *r, uint64_t now_us, const char *reason) {
    enum { AGAIN_US = 30000000 };
    bool same = strncmp(r->reason, reason, sizeof r->reason - 1) == 0;
    if (same && now_us - r->said_us < AGAIN_US) return false;
    r->said_us = now_us;
    snprintf(r->reason, sizeof r->reason, "%s", reason);
    return true;
}

#endif
