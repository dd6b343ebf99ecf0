/* The data of a server as files, for whoever is not the server: all of it is read into a tree, and
 * a directory or a single file is made of a tree. */
#ifndef CV_SERVER_DATA_H
#define CV_SERVER_DATA_H

#include "raft/batch.h"
#include "raft/snapshot.h"
#include "raft/window.h"
#include "tree/tree.h"

enum { DATA_MESSAGE_MAX = 1024 };

struct data {
    struct tree tree;
    uint64_t index, term;           /* of the last entry that is in it */
    char message[DATA_MESSAGE_MAX]; /* after -1: what is wrong, and with which file */
};

int data_open(struct data *data);
void data_close(struct data *data);

/* Reads a directory, and another if the log is not in the same.  A server may be writing to them:
 * what is read is what was durable at one moment, and known to be decided. */
int data_read(struct data *data, const char *directory, const char *log_directory);
/* Into a directory that is made, or is empty. */
int data_write(struct data *data, const char *directory);

/* All of it as a single file, of the same form as a snapshot. */
int data_read_file(struct data *data, const char *file);
int data_write_file(struct data *data, const char *file);

/* ---- For whoever knows the files one by one ---- */

/* A snapshot into an open tree; -1, and found->message. */
int data_load(struct tree *tree, struct snapshots *found, uint64_t index, uint64_t *term);

struct data_replay { /* the context of data_apply */
    struct tree *tree;
    struct bytes replies; /* that nobody waits for */
    struct window window; /* what is not known to be decided; window.after is in the tree */
    uint64_t term;        /* of the last entry that is in the tree */
    /* If it is there it is told of each batch, as the log gives it, once it is known to be good. */
    void (*each)(void *context, const struct raft_batch *batch);
    void *context;
};
/* Goes on from a tree in which all is up to an entry of a term. */
void data_replay_open(struct data_replay *replay, struct tree *tree, uint64_t index, uint64_t term);
void data_replay_close(struct data_replay *replay);
/* Takes a batch of the log, and applies what is decided; -1: it holds what is no entry. */
int data_apply(void *replay, const struct raft_batch *batch);

#endif
