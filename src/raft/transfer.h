/* A snapshot on its way from one server to another: its file, as it is, in chunks.
 *
 * What has come is kept in incoming.<index>.<size of all, both 16 hexadecimal digits>, so a
 * transfer goes on where it was, also after a restart.  (Two servers' snapshots of one entry differ
 * in their bytes; that they differ in size as well tells them apart, nearly always.)  When it is
 * complete it is decoded once, and gets a snapshot's name only if it is one; else it is thrown
 * away. */
#ifndef CV_RAFT_TRANSFER_H
#define CV_RAFT_TRANSFER_H

#include "raft/snapshot.h"

/* ---- Sending ---- */

struct sending {
    int file; /* stays readable when the snapshot is removed meanwhile */
    uint64_t index, size;
};

/* -1, and a message in `from`. */
int sending_open(struct sending *sending, struct snapshots *from, uint64_t index);
void sending_close(struct sending *sending);
/* Reads at most that many bytes from an offset on: how many there were, 0 at the end or behind it;
 * -1 and errno when it cannot. */
long sending_read(const struct sending *sending, uint64_t offset, void *bytes, size_t most);

/* ---- Receiving ---- */

struct receiving {
    int directory, file;
    const char *path;
    uint64_t index, size;
    uint64_t offset; /* where the next chunk begins */
    char message[SNAPSHOT_MESSAGE_MAX];
};

enum receiving_answer {
    RECEIVING_FAILED = -1, /* with a message */
    RECEIVING_TAKEN,
    RECEIVING_ELSEWHERE, /* nothing was taken: go on at receiving.offset */
};

/* Begins to receive a snapshot, or goes on; what has come of others is removed. */
int receiving_open(struct receiving *receiving, int directory, const char *path, uint64_t index,
                   uint64_t size);
/* What has come stays. */
void receiving_close(struct receiving *receiving);
enum receiving_answer receiving_add(struct receiving *receiving, uint64_t offset, const void *bytes,
                                    size_t size);
/* When all has come: checks it, and makes a snapshot of it; it is durable then.  It is read to its
 * end, which takes its time.  -1: it is no such snapshot or the disk fails, and a message; then it
 * begins anew, at offset 0. */
int receiving_end(struct receiving *receiving, uint64_t *term);

#endif
