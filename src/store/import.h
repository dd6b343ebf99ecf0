/* The files of an Apache ZooKeeper server, 3.4 to 3.8, read into a tree.
 *
 *   import.c           which files there are, and which of them count
 *   import_snapshot.c  a snapshot
 *   import_log.c       a log of transactions
 *   import_session.c   what the original derives from a session's number
 *
 * A snapshot of the original is taken while clients go on writing, so it holds some of what came
 * after the moment in its name.  All that came after is in the log as well, and is applied once
 * more: what a transaction finds done already, it leaves alone.
 *
 * Any bytes may come in: a file that is none is refused, with the place where it went wrong. */
#ifndef CV_SERVER_IMPORT_H
#define CV_SERVER_IMPORT_H

#include "tree/tree.h"

enum { IMPORT_MESSAGE_MAX = 1024, IMPORT_NAME_MAX = 64 };

struct import {
    /* What is asked for.  `note` hears of what was passed over, `progress` may be NULL. */
    const char *from, *logs_from; /* directories; the second NULL: the same */
    void (*note)(const char *text);
    void (*progress)(size_t done, size_t all); /* bytes */

    /* What was found. */
    char snapshot[IMPORT_NAME_MAX], first_log[IMPORT_NAME_MAX], last_log[IMPORT_NAME_MAX];
    unsigned logs;
    uint64_t transactions, sessions_gone;
    size_t bytes_done, bytes_all;
    char message[IMPORT_MESSAGE_MAX]; /* after -1: the file, the place, what to do */
};

/* Into an open tree, which is to be closed if it fails. */
int import_read(struct import *import, struct tree *tree);

/* ---- Between the files ---- */

struct import_fault { /* in a file */
    size_t offset;
    const char *why;
};

/* What both kinds of files begin with. */
bool import_header(struct zk_in *in, int32_t magic);
/* The whole of a file, into a tree without nodes, whose zxid is set.  A node's session or ACL may
 * be unknown as yet: see import_finish. */
bool import_snapshot(struct tree *tree, struct zk_in file, struct import_fault *fault);
/* The same without the seals at its end, to which *in is left. */
bool import_snapshot_body(struct tree *tree, struct zk_in *in, const char **why);

struct import_log {
    uint64_t transactions;
    size_t torn_at; /* the last record is not whole; 0: it is */
    void (*progress)(void *context, size_t done);
    void *context;
};
/* Applies what is behind tree->zxid, which follows. */
bool import_log(struct tree *tree, struct zk_in file, struct import_log *log,
                struct import_fault *fault);
/* Applies one transaction; NULL, or why it is none. */
const char *import_transaction(struct tree *tree, struct zk_in record);

/* Sessions that no transaction opened end, counts of quotas are made, and what every tree has is
 * there.  NULL, or why it is no tree. */
const char *import_finish(struct tree *tree, uint64_t *sessions_gone);

/* Numbers that mark containers and nodes with a ttl are no sessions'. */
static inline bool import_is_session(int64_t id) {
    return node_is_ephemeral(&(struct node){.owner = id});
}
/* A session, of which nothing but its number may be known as yet. */
struct session *import_session(struct tree *tree, int64_t id);
enum { IMPORT_TIMEOUT_UNKNOWN = -1 };
/* The password that the original gives a session: 16 bytes of java.util.Random. */
void import_password(int64_t session, unsigned char password[TREE_PASSWORD_SIZE]);

/* Whether a server can load a list. */
bool import_acl_is_sound(struct zk_acls list);
/* A list that allows nothing, for a node whose own comes later. */
uint32_t import_closed_acl(struct tree *tree);

#endif
