/* A snapshot on its way from one server to another: its file, as it is, in chunks.
 *
 * The receiver collects the chunks in incoming.<index>.<size of the file, both 16 hexadecimal
 * digits>, so a transfer continues where it was, also after a restart.  (Two servers' snapshots of
 * one entry differ in their bytes, and nearly always in size, which tells them apart.)  A complete
 * file is decoded once, and gets the name of a snapshot only if it is one; otherwise it is
 * discarded. */
#ifndef CV_SERVICE_LOG_TRANSFER_H
#define CV_SERVICE_LOG_TRANSFER_H

#include "service/log/snapshot.h"

/* ---- Sending ---- */

struct sending {
    int file; /* stays readable if the snapshot is removed meanwhile */
    uint64_t index, size;
};

/* -1, and a message in `from`. */
int sending_open(struct sending *sending, struct snapshots *from, uint64_t index);
void sending_close(struct sending *sending);
/* Reads at most max_size bytes at an offset: how many there were, 0 at the end or after it; -1 and
 * errno on failure. */
long sending_read(const struct sending *sending, uint64_t offset, void *bytes, size_t max_size);

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
    RECEIVING_WRONG_OFFSET, /* nothing was taken: continue at receiving.offset */
};

/* Begins to receive a snapshot, or continues; incomplete files of other snapshots are removed. */
int receiving_open(struct receiving *receiving, int directory, const char *path, uint64_t index,
                   uint64_t size);
/* The incomplete file stays. */
void receiving_close(struct receiving *receiving);
enum receiving_answer receiving_add(struct receiving *receiving, uint64_t offset, const void *bytes,
                                    size_t size);
/* When all chunks have come: makes the file durable and decodes it, which takes its time, so a
 * thread may do it.  -1, with a message: it is not that snapshot, or the disk fails; the transfer
 * begins anew at offset 0. */
typedef int receiving_decode_fn(void *context, struct snapshot_reader *reader); /* 0, or -1 */
int receiving_check(struct receiving *receiving, uint64_t *term, receiving_decode_fn *decode,
                    void *context);
/* Then makes it a durable snapshot.  -1, with a message: the disk fails; the transfer begins anew
 * too. */
int receiving_end(struct receiving *receiving);

#endif
