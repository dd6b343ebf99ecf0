/* The log on disk: batches of entries in segments.  A segment is a file of zeros that is written
 * once, from its beginning to its end.  Files of old segments become new ones (spare.h).
 *
 * The log is a journal.  A batch replaces everything from its first entry on, so what a later
 * leader replaces is not rewritten: the newer batch comes after it.  No batch replaces an entry
 * that an earlier batch knew to be committed.
 *
 * A batch is made durable by one fdatasync.  So a crash leaves at most one torn batch, the last,
 * and nothing in it was acknowledged.  A batch that is damaged although others follow it was lost
 * in some other way, and is never skipped.  Whether the last batch is torn or damaged is told by
 * what is missing of it (tail.c), and by the mark, a file that says how far the log was durable
 * (mark.c).
 *
 *   segment  log.<its sequence number, 16 hexadecimal digits>
 *            header: magic, version; a random key; sequence number; state of the log where the
 *            segment begins (struct log_end); size of the file; origin; checksum
 *   batch    magic (mixed with the key), size, first index, term, commit index, count, kind,
 *            number of sectors that are zero, checksum of the entries, term of the entry before
 *            them, checksum of the header (both CRC32C from the key on); the entries; an end mark
 *
 * Integers are little-endian; batches begin at multiples of 8.  Version 2 of segments had no size
 * of the file, one checksum for the header and the entries of a batch, and no end mark.  It is
 * read, and written for as long as an older program may have to read the log again.
 *
 * The invariant of segments: sequence numbers have no gap, and each segment begins where the one
 * before it ends, or it is fresh: then a snapshot leads up to it, and no earlier segment does.
 * Indexes of entries may go back from one segment to the next, sequence numbers never do.  Where a
 * segment begins, the log held no entry from `next_index` on, so the valid ones of those are in
 * this segment or a later one: a snapshot of `next_index - 1` or later needs no earlier segment.
 * Reading begins at the last segment for which that holds, and trimming removes those before it. */
#ifndef CV_SERVICE_LOG_LOG_H
#define CV_SERVICE_LOG_LOG_H

#include "raft/batch.h"
#include "service/log/file.h"

#define MARK_NAME "mark"
enum { LOG_MESSAGE_MAX = 1024 };
#define LOG_INDEX_MAX (UINT64_MAX >> 1) /* no sum of two overflows */

/* What to do about damage: a standalone server has nothing else, a member of an ensemble has the
 * other members. */
#define LOG_ADVICE                                                                                 \
    "'conclave recover' shows what can be saved; a member of an ensemble that does not start can " \
    "be removed ('conclave ensemble remove') and join again with an empty directory"

struct log_segment {
    uint64_t sequence, key;
    uint64_t next_index; /* of the log where the segment begins; 0: its header is unreadable */
};

struct log_end {
    uint64_t next_index, commit_index;
    uint64_t term;   /* of the entry before next_index */
    uint64_t offset; /* in the last segment, of the next batch; 0: there is no segment */
};

struct log_mark { /* up to where the log is known to have been durable; see mark.c */
    uint64_t number;
    uint64_t sequence, key, offset; /* the segment, and where it ended; 0: none */
    uint64_t next_index;
};

enum log_spare { /* the next segment, made ready ahead of need: see spare.h */
                 SPARE_MISSING,
                 SPARE_STALE, /* it has to be overwritten */
                 SPARE_READY,
                 SPARE_GIVEN_UP, /* it cannot be made ready; it is tried again after the next
                                    segment has begun */
};

struct log {
    int directory;          /* its descriptor */
    const char *path;       /* its name, for messages */
    uint64_t segment_bytes; /* size of a segment, unless a single batch needs more, or no spare is
                               ready */
    bool old_format;        /* new segments are of version 2, which an older program can read */
    bool old_segment;       /* the last one is */
    struct log_segment *segment;
    size_t segments, segment_room;
    struct log_end end;
    int file;         /* of the last segment; -1: the next batch begins a new one */
    uint64_t size;    /* of the last segment, preallocated */
    uint64_t inode;   /* of the last segment's file */
    bool end_damaged; /* until log_give_up_end, from there on: a disk that fails may give ... */
    uint64_t damaged_from, last_batch; /* ... something else at the next attempt (offsets) */
    enum log_spare spare;
    int spare_file; /* if it is ready */
    uint64_t spare_size;
    int mark_file;
    struct log_mark mark;
    uint32_t origin; /* random, of this log: in its segments, and in the snapshots beside it; 0: not
                        known, as older programs made none */
    bool no_sync;    /* trust that the machine will not fail */
    bool read_only;  /* another process may be writing: a torn end is skipped, not cut */
    uint64_t bytes_written, syncs;
    char message[LOG_MESSAGE_MAX]; /* what is wrong, where, and what to do about it */
};

/* Called for each batch in order, without the entries up to `after`.  A batch without entries only
 * removes what it replaces.  Not 0: stop; the callback has reported the error. */
typedef int log_replay_fn(void *context, const struct raft_batch *batch);

enum log_state {
    LOG_WHOLE,
    LOG_TORN,        /* the last batch was never completed, as a crash may leave it */
    LOG_END_DAMAGED, /* so is all that follows, and it may have been acknowledged */
    LOG_DAMAGED,     /* good batches, or another segment, follow the damage */
    LOG_UNREADABLE,  /* as a whole; the message says why */
    LOG_MISSING,     /* the segment at which the log ended */
};

/* Opens the log in a directory and replays the entries after entry `after` of that term: the last
 * entry of a snapshot, or 0 and 0.  Entries that do not continue from that one count as replaced.
 *
 * *end says how the log ended, and unless it was whole the message says why.  A torn end is cut. An
 * end that is damaged is left as it is (LOG_END_DAMAGED): log_give_up_end cuts it, and nothing can
 * be appended before; if the log is read only, it is a fault.  Any other fault is -1 and a message.
 */
int log_open(struct log *log, int directory, const char *path, uint64_t after, uint64_t term,
             log_replay_fn *replay, void *context, enum log_state *end);
/* Cuts a damaged end.  What was there may have been acknowledged: a member of an ensemble has made
 * durable that it does not vote, before. */
int log_give_up_end(struct log *log);
void log_close(struct log *log);

/* ---- Inspecting and repairing a log that is not in use ---- */

struct log_finding { /* about one segment */
    const char *name;
    uint64_t sequence;
    uint64_t start_index;       /* next_index of the log where the segment begins */
    uint64_t first, next_index; /* its good entries: the first, and one after the last */
    uint64_t offset;            /* where the good batches end */
    uint64_t last;              /* entry of which anything is left, after damage as well */
    enum log_state state;
    const char *what; /* of a state other than LOG_WHOLE and LOG_UNREADABLE */
    bool continues;   /* it begins where the one before it ends */
};

typedef void log_finding_fn(void *context, const struct log_finding *finding);

/* Reports each segment in order, and changes nothing. */
int log_examine(struct log *log, int directory, const char *path, log_finding_fn *report,
                void *context);
/* Cuts a segment at an offset. */
int log_cut(struct log *log, uint64_t sequence, uint64_t offset);
/* Renames a segment to damaged.*, which no server reads. */
int log_set_aside(struct log *log, uint64_t sequence);
/* Removes the mark, when the log was cut on purpose. */
int log_forget_mark(struct log *log);

/* ---- Writing ---- */

/* Appends a batch, which may replace uncommitted entries, and makes it durable.  -1: the batch may
 * or may not be durable; the only thing left to do is to stop. */
int log_append(struct log *log, const struct raft_batch *batch);
/* Whether the batch will begin a segment, which takes much longer. */
bool log_begins_segment(const struct log *log, const struct raft_batch *batch);

/* Continues after a snapshot of that entry, whatever the log held.  The snapshot already has its
 * final name.  Nothing is written: until the next batch is appended, opening the log has the same
 * result, except that entries which do continue from the snapshot's stay. */
void log_reset(struct log *log, uint64_t after, uint64_t term);

/* Removes segments that a snapshot of that entry, or a later one, does not need; at once (spare.h
 * has the parts that a thread can do). */
int log_trim(struct log *log, uint64_t index);

#endif
