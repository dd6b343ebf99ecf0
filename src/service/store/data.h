/* The data of a server as files, for other programs than the server: reads all of it into a tree,
 * and writes a tree as a directory or as a single file. */
#ifndef CV_SERVICE_STORE_DATA_H
#define CV_SERVICE_STORE_DATA_H

#include "raft/batch.h"
#include "service/log/snapshot.h"
#include "service/log/window.h"
#include "service/tree/tree.h"

enum { DATA_MESSAGE_MAX = 1024 };

struct data {
    struct tree tree;
    uint64_t index, term;           /* of the last entry in the tree */
    uint64_t known_index;           /* up to here it was known to be committed */
    char message[DATA_MESSAGE_MAX]; /* after -1: what is wrong, and with which file */
};

int data_open(struct data *data);
void data_close(struct data *data);

/* Reads a directory, and a second one if the log is elsewhere (else NULL).  A server may be writing
 * to them: the result is the state of one moment, durable and known to be committed. */
int data_read(struct data *data, const char *directory, const char *log_directory);
/* The same with all entries of the log, as if all were committed. */
int data_read_all(struct data *data, const char *directory, const char *log_directory);
/* As the newest snapshot of a directory, which is opened as `directory`, beside no log. */
int data_write_snapshot(struct data *data, int directory, const char *path);
/* Into a new or an empty directory. */
int data_write(struct data *data, const char *directory);

/* A backup: a single file of the same format as a snapshot. */
int data_read_file(struct data *data, const char *file);
int data_write_file(struct data *data, const char *file);

/* ---- File by file ---- */

/* Loads a snapshot into an open tree; -1, and found->message. */
int data_load(struct tree *tree, struct snapshots *found, uint64_t index, uint64_t *term);
void data_clear(struct tree *tree); /* after that has failed: as it was before the first entry */

struct data_replay { /* the context of data_apply */
    struct tree *tree;
    struct bytes replies; /* discarded */
    struct window window; /* entries not known to be committed; window.after is in the tree */
    uint64_t term;        /* of the last entry in the tree */
    /* Called for each batch of the log once it is known to be good, unless NULL. */
    void (*each)(void *context, const struct raft_batch *batch);
    void *context;
};
/* Continues from a tree that holds all entries up to an index, the last of that term. */
void data_replay_open(struct data_replay *replay, struct tree *tree, uint64_t index, uint64_t term);
void data_replay_close(struct data_replay *replay);
/* Takes a batch of the log, and applies what is committed; -1: the batch is malformed. */
int data_apply(void *replay, const struct raft_batch *batch);

#endif
