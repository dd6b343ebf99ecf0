/* Makes the tree of a running server equal to a backup, as one of its clients.
 *
 * Nodes below /zookeeper and ephemeral nodes, which belong to sessions, are neither changed nor
 * restored.  Versions and times are the server's own: a client cannot set them. */
#ifndef CV_CLI_RESTORE_H
#define CV_CLI_RESTORE_H

#include <stdio.h>

#include "service/tree/tree.h"

enum { RESTORE_MESSAGE_MAX = 1024 };

struct restore {
    const struct tree *tree;      /* the backup */
    const char *address, *secret; /* "user:password", or NULL */
    bool dry_run;                 /* only report the changes */
    FILE *out;                    /* one line for each change */
    void (*progress)(size_t done, size_t all);

    uint64_t created, written, acls, deleted, kept;
    char message[RESTORE_MESSAGE_MAX]; /* after -1 */
};

int restore_run(struct restore *restore);

#endif
