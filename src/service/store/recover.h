/* Finds what can be saved of a damaged data directory, and saves it.
 *
 * A server starts from its newest good snapshot and applies the log after it, entry by entry.  So
 * only the part of the log that continues that snapshot without a gap can be used: damaged entries,
 * and all entries after them, are lost. */
#ifndef CV_SERVICE_STORE_RECOVER_H
#define CV_SERVICE_STORE_RECOVER_H

#include <stdbool.h>
#include <stdio.h>

enum { RECOVER_MESSAGE_MAX = 1024 };
enum recover_outcome { RECOVER_FAILED = -1, RECOVER_GOOD, RECOVER_DAMAGED };

struct recover {
    const char *directory, *log_directory; /* the second NULL: the same */
    bool cut; /* rename damaged files and cut the log; otherwise nothing is changed */
    FILE *out;
    char message[RECOVER_MESSAGE_MAX]; /* after RECOVER_FAILED */
};

/* RECOVER_DAMAGED: there is damage, and nothing was changed. */
enum recover_outcome recover_run(struct recover *recover);

#endif
