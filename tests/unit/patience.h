/* How long a test waits for what has to come.  One that has waited in vain fails with the words
 * "not in time:", by which tests/run knows it. */
#ifndef TESTS_UNIT_PATIENCE_H
#define TESTS_UNIT_PATIENCE_H

#include <stdlib.h>

/* $PATIENCE seconds, as in the suites. */
static inline unsigned patience_ms(void) {
    const char *seconds = getenv("PATIENCE");
    return (seconds ? (unsigned)atoi(seconds) : 120) * 1000;
}
#define PATIENCE_MS patience_ms()

#endif
