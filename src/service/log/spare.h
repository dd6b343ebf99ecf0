/* The spare: the next segment of the log, made ready ahead of need; and the removal of segments
 * that are not needed any more.  Both are for a thread, since both take long: nothing here touches
 * a struct log but the functions that say so.
 *
 *   spare   spare.log, a file of a segment's size that becomes the next segment under its name
 *
 * A segment that is not needed any more is not removed if there is no spare: it is renamed, and
 * becomes it.  A spare is ready when it was overwritten with zeros, durably.  So a sync of the log
 * only overwrites: nothing has to be allocated, and no extent becomes a written one.
 *
 * The invariants:
 *
 * - A segment gets its name when all that follows its header is zero on the disk, whatever the file
 *   held before.  So after a crash a sector of the last batch holds what was written or zeros,
 * never bytes of an older segment: what is torn and what is damaged are told apart as ever
 * (tail.c).
 * - A segment is overwritten only when its old name is gone from the disk: no crash brings back a
 *   segment of zeros.
 * - A spare that is found at a start is stale, whatever it looks like: its zeros may never have
 *   reached the disk.
 * - Each segment has a key of its own, which is part of the checksums of its batches.  So whoever
 *   still reads a segment while it is overwritten, or a disk that brings old sectors back, finds no
 *   batch of the old segment in the new one, nor of the new one in the old. */
#ifndef CV_SERVICE_LOG_SPARE_H
#define CV_SERVICE_LOG_SPARE_H

#include <stdatomic.h>

#include "service/log/log.h"

#define SPARE_NAME "spare.log"

/* ---- Making one ready ---- */

struct spare_work {
    int directory;
    uint64_t size;
    uint64_t reserve; /* that it leaves free on the disk */
    bool no_sync;
    atomic_bool stop; /* it need not go on */
    int file;         /* the spare; -1: it was not made ready, and is removed */
    int error;        /* then: errno */
};

/* Whether a thread should make a spare ready now, and with what. */
bool spare_is_wanted(const struct log *log, struct spare_work *work);
void spare_prepare(struct spare_work *work);               /* by a thread */
void spare_take(struct log *log, struct spare_work *work); /* what it made belongs to the log */
/* Whether the spare is ready, and still has its name: an operator may have removed or replaced what
 * no segment is.  If not, the log goes on without one. */
bool spare_is_ready(struct log *log);

/* ---- Removing segments ---- */

struct log_removal {
    int directory;
    uint64_t *sequence; /* of the segments */
    size_t count, room;
    bool recycles;       /* one of them may become the spare ... */
    uint64_t spare_size; /* ... if it is of this size */
    bool recycled;
    int error; /* of the first that could not be removed; 0: all were */
};

/* The log forgets the segments that a snapshot of that entry, or a later one, does not need. */
void log_forget(struct log *log, uint64_t index, struct log_removal *removal);
void log_remove(struct log_removal *removal); /* by a thread */
/* The log learns what was done. */
void log_removed(struct log *log, struct log_removal *removal);

#endif
