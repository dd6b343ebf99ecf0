/* The files of an Apache ZooKeeper server, 3.4 to 3.8, read into a tree.
 *
 *   import.c           finds the files, and chooses which to read
 *   import_snapshot.c  a snapshot
 *   import_log.c       a transaction log
 *   import_apply.c     the effect of a transaction
 *   import_session.c   what ZooKeeper derives from the id of a session
 *
 * ZooKeeper takes a snapshot while clients go on writing, so it holds some changes later than the
 * zxid in its name.  All later changes are in the log as well, and are applied again: a transaction
 * whose effect is there already changes nothing.
 *
 * The files are not trusted: malformed ones are refused, with the offset of the fault. */
#ifndef CV_SERVICE_STORE_IMPORT_H
#define CV_SERVICE_STORE_IMPORT_H

#include "service/tree/tree.h"

enum { IMPORT_MESSAGE_MAX = 1024, IMPORT_NAME_MAX = 64 };

struct import {
    /* Set by the caller; `progress` may be NULL. */
    const char *from, *logs_from;              /* directories; the second NULL: the same */
    void (*note)(const char *text);            /* about what was skipped */
    void (*progress)(size_t done, size_t all); /* bytes */

    /* Results. */
    char snapshot[IMPORT_NAME_MAX], first_log[IMPORT_NAME_MAX], last_log[IMPORT_NAME_MAX];
    unsigned logs;
    uint64_t transactions, sessions_ended;
    size_t bytes_done, bytes_all;
    char message[IMPORT_MESSAGE_MAX]; /* after -1: the file, the offset, what to do */
};

/* Reads into an open tree, which has to be closed if it fails. */
int import_read(struct import *import, struct tree *tree);

#endif
