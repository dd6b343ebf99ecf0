/* The tree of a running server is made equal to a backup, as one of its clients.
 *
 * Nodes below /zookeeper and ephemeral nodes, which belong to sessions, stay as they are on either
 * side.  Versions and times are the server's own: a client cannot set them. */
#ifndef CV_SERVER_RESTORE_H
#define CV_SERVER_RESTORE_H

#include <stdio.h>

#include "tree/tree.h"

enum { RESTORE_MESSAGE_MAX = 1024 };

struct restore {
    const struct tree *tree;      /* how it is to be */
    const char *address, *secret; /* "user:password", or NULL */
    bool dry_run;                 /* only say it */
    FILE *out;                    /* one line for each change */
    void (*progress)(size_t done, size_t all);

    uint64_t created, written, acls, deleted, kept;
    char message[RESTORE_MESSAGE_MAX]; /* after -1 */
};

int restore_run(struct restore *restore);

#endif
