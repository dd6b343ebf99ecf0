/* What can be saved of a data directory that was damaged, and saving it.
 *
 * A server starts from its newest good snapshot and applies the log behind it, entry by entry.  So
 * the log is worth what leads on from that snapshot without a gap: what is damaged, and all that is
 * behind it, is lost. */
#ifndef CV_SERVER_RECOVER_H
#define CV_SERVER_RECOVER_H

#include <stdbool.h>
#include <stdio.h>

enum { RECOVER_MESSAGE_MAX = 1024 };
enum recover_outcome { RECOVER_FAILED = -1, RECOVER_GOOD, RECOVER_DAMAGED };

struct recover {
    const char *directory, *log_directory; /* the second NULL: the same */
    bool cut; /* do what else is only said: damaged files are renamed, and the log is cut */
    FILE *out;
    char message[RECOVER_MESSAGE_MAX]; /* after RECOVER_FAILED */
};

/* RECOVER_DAMAGED: there is damage, and it is left as it is. */
enum recover_outcome recover_run(struct recover *recover);

#endif
