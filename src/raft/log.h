/* The log on disk: batches of entries in segments, each file preallocated and written once from its
 * beginning to its end.
 *
 * A batch is what was made durable by one fdatasync, under one checksum, so what a crash leaves
 * half-written is one batch, the last, which nobody was told of.  A batch that is damaged although
 * others follow it was lost in some other way, and is never passed over.
 *
 *   segment  log.<index of its first entry, 16 hexadecimal digits>
 *            header: magic, version; a random key; the first index; checksum
 *   batch    checksum (CRC32C from the key on), size, first index, term, count; the entries
 *
 * Numbers are little-endian; batches begin at multiples of 8. */
#ifndef CV_RAFT_LOG_H
#define CV_RAFT_LOG_H

#include "raft/batch.h"

enum { LOG_MESSAGE_MAX = 512 };

struct log_segment {
    uint64_t first;
    uint64_t key;
};

struct log {
    int directory;          /* its descriptor */
    const char *path;       /* its name, for messages */
    uint64_t segment_bytes; /* what a new segment is given; more for a batch that is larger */
    struct log_segment *segment;
    size_t segments, segment_room;
    int file;          /* of the last segment; -1: there is none */
    uint64_t at, size; /* where the next batch goes there; how much room there is */
    uint64_t next;     /* index of the next entry */
    bool no_sync;      /* trust that the machine will not fail */
    bool read_only;    /* another process may be writing: a torn end is passed over, not cut */
    uint64_t bytes_written, syncs;
    char message[LOG_MESSAGE_MAX]; /* what is wrong, where, and what to do about it */
};

/* Called for each batch behind `after` in order; not 0: stop, with an error that it has told. */
typedef int log_replay_fn(void *context, const struct raft_batch *batch);

/* Opens the log in a directory and replays it.  A torn end is cut, and then *cut is set and the
 * message says where; anything else that is wrong is -1 and a message. */
int log_open(struct log *log, int directory, const char *path, uint64_t after,
             log_replay_fn *replay, void *context, bool *cut);
void log_close(struct log *log);

/* ---- A log that is not in use, for a person who looks at it ---- */

enum log_state {
    LOG_WHOLE,
    LOG_TORN,       /* the last batch was not written to its end, which a crash may leave */
    LOG_DAMAGED,    /* there is more behind what is damaged */
    LOG_UNREADABLE, /* as a whole; the message says why */
};

struct log_finding { /* about one segment */
    const char *name;
    uint64_t first, next; /* its entries: the first, and the one behind the last good one */
    uint64_t at;          /* where in the file the good ones end */
    uint64_t last;        /* entry of which anything is left, behind damage as well */
    enum log_state state;
};

typedef void log_finding_fn(void *context, const struct log_finding *finding);

/* Tells of each segment in order, and changes nothing. */
int log_examine(struct log *log, int directory, const char *path, log_finding_fn *tell,
                void *context);
/* Cuts a segment at an offset. */
int log_cut(struct log *log, uint64_t first, uint64_t at);
/* Renames a segment to damaged.*, which no server reads. */
int log_set_aside(struct log *log, uint64_t first);

/* ---- Writing ---- */

/* Appends a batch and makes it durable.  -1: it may or may not be; the only thing left to do is to
 * stop. */
int log_append(struct log *log, const struct raft_batch *batch);

/* Removes segments all of whose entries are at or before an index. */
int log_trim(struct log *log, uint64_t index);

#endif
