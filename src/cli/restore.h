/* Makes the tree of a running server equal to a backup, as one of its clients.
 *
 * Nodes below /zookeeper and ephemeral nodes, which belong to sessions, are neither changed nor
 * restored.  Versions and times are the server's own: a client cannot set them. */
#ifndef CV_CLI_RESTORE_H
#define CV_CLI_RESTORE_H

#include "cli/remote.h"
#include "service/tree/tree.h"

struct restore {
    const struct tree *tree; /* the backup */
    struct remote *remote;   /* connected, without a thread */
    bool dry_run;            /* only report the changes, each in a line */
    void (*progress)(size_t done, size_t all);

    uint64_t created, written, acls, deleted, kept;
};

/* 0, or the exit code after one line that says what is wrong. */
int restore_run(struct restore *restore);

#endif
