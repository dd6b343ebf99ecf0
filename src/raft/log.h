/* The log on disk: batches of entries in segments, each file preallocated and written once from its
 * beginning to its end.
 *
 * It is a journal.  A batch stands in the place of all that was there from its first entry on, so
 * what a later leader replaces is not rewritten: the newer batch comes behind it.  What the batches
 * before it said to be decided is never replaced.
 *
 * A batch is what was made durable by one fdatasync, under one checksum, so what a crash leaves
 * half-written is one batch, the last, which nobody was told of.  A batch that is damaged although
 * others follow it was lost in some other way, and is never passed over.
 *
 *   segment  log.<its number in the sequence of segments, 16 hexadecimal digits>
 *            header: magic, version; a random key; its number; how the log stood where it begins
 *            (struct log_end); checksum
 *   batch    checksum (CRC32C from the key on), size, first index, term, decided up to, count,
 *            kind; the entries
 *
 * Numbers are little-endian; batches begin at multiples of 8.
 *
 * The invariant of segments: numbers follow each other without a gap, and each segment begins as
 * the one before it ends, or it is fresh: then a snapshot leads up to it, and nothing before it
 * does.  Entries may go back from one segment to the next, numbers never do.  Where a segment
 * begins, there were no entries from `next` on, so whatever is in force of those is in it or
 * behind it: a snapshot of `next - 1` or later needs no segment before it.  Reading begins at the
 * last segment of which that is true, and trimming removes what is before it. */
#ifndef CV_RAFT_LOG_H
#define CV_RAFT_LOG_H

#include "raft/batch.h"

enum { LOG_MESSAGE_MAX = 1024 };
#define LOG_INDEX_MAX (UINT64_MAX >> 1) /* no sum of two overflows */

/* What to do about damage: a server alone has nothing else, a member of an ensemble has others. */
#define LOG_ADVICE                                                                                 \
    "'conclave recover' says what can be saved; a member of an ensemble need not save anything: "  \
    "have the others remove it ('conclave ensemble remove'), and let it join with an empty "       \
    "directory under a new number"

struct log_segment {
    uint64_t sequence, key;
    uint64_t next; /* where it begins; 0: its header cannot be read */
};

struct log_end {              /* how far a log goes */
    uint64_t next, committed; /* index of the next entry; all up to here are decided */
    uint64_t term;            /* of the entry before the next */
    uint64_t at;              /* in the last segment: where the next batch goes; 0: there is none */
};

struct log {
    int directory;          /* its descriptor */
    const char *path;       /* its name, for messages */
    uint64_t segment_bytes; /* what a new segment is given; more for a batch that is larger */
    struct log_segment *segment;
    size_t segments, segment_room;
    struct log_end end;
    int file;       /* of the last segment; -1: the next batch begins a new one */
    uint64_t size;  /* how much room there is in it */
    bool no_sync;   /* trust that the machine will not fail */
    bool read_only; /* another process may be writing: a torn end is passed over, not cut */
    uint64_t bytes_written, syncs;
    char message[LOG_MESSAGE_MAX]; /* what is wrong, where, and what to do about it */
};

/* Called for each batch in order, without what is at or before `after`.  One of no entries only
 * takes away what it replaces.  Not 0: stop, with an error that it has told. */
typedef int log_replay_fn(void *context, const struct raft_batch *batch);

/* Opens the log in a directory and replays what is behind entry `after`, which is of that term: the
 * last of a snapshot, or 0 and 0.  Entries that do not go on from that one count no more than if
 * they had been replaced.  A torn end is cut, and then *cut is set and the message says where;
 * anything else that is wrong is -1 and a message. */
int log_open(struct log *log, int directory, const char *path, uint64_t after, uint64_t term,
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
    uint64_t sequence;
    uint64_t begins;      /* the entry that was next where it begins */
    uint64_t first, next; /* its entries: the first, and the one behind the last good one */
    uint64_t at;          /* where in the file the good ones end */
    uint64_t last;        /* entry of which anything is left, behind damage as well */
    enum log_state state;
    bool leads_on; /* it begins as the one before it ends */
};

typedef void log_finding_fn(void *context, const struct log_finding *finding);

/* Tells of each segment in order, and changes nothing. */
int log_examine(struct log *log, int directory, const char *path, log_finding_fn *tell,
                void *context);
/* Cuts a segment at an offset. */
int log_cut(struct log *log, uint64_t sequence, uint64_t at);
/* Renames a segment to damaged.*, which no server reads. */
int log_set_aside(struct log *log, uint64_t sequence);

/* ---- Writing ---- */

/* Appends a batch, which may replace entries that are not decided, and makes it durable.  -1: it
 * may or may not be; the only thing left to do is to stop. */
int log_append(struct log *log, const struct raft_batch *batch);

/* Goes on behind a snapshot of that entry, whatever the log held.  The snapshot has its name before
 * this is called.  Nothing is written: until the next batch is appended, opening the log comes to
 * the same, but for entries that do go on from the snapshot's. */
void log_reset(struct log *log, uint64_t after, uint64_t term);

/* Removes segments that a snapshot of that entry, or a later one, does not need. */
int log_trim(struct log *log, uint64_t index);

#endif
