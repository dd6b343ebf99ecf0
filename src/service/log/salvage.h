/* What is left of a damaged log, and what it lacks: the entries that it held in the end, those that
 * are intact and those that are not.  The others of an ensemble have them
 * (service/ensemble/mend.c); when all are there again, the log is written anew.
 *
 * An entry is known by its index and its term, and the header of a batch says both although its
 * entries are damaged.  Where headers are damaged too, the neighbours bound what was there: entries
 * before and after of one term leave no other term in between.  But a batch replaces what it
 * replaces, so after such a place an entry before it counts only if it was known to be committed,
 * or if a later entry is of its term: whoever has both has the same log up to there (Log Matching).
 */
#ifndef CV_SERVICE_LOG_SALVAGE_H
#define CV_SERVICE_LOG_SALVAGE_H

#include "service/log/log.h"

struct salvage_piece { /* consecutive entries of one batch, or of none that is left */
    uint64_t first, count;
    uint64_t term; /* 0: not known, and not the same for all of them, perhaps */
    bool intact;
    uint64_t sequence, offset; /* of the batch; 0: it is not on the disk */
    struct raft_batch filled;  /* then: as it came from elsewhere */
};

struct salvage {
    struct log log;       /* for its directory, its segments and its messages */
    uint64_t after, term; /* of the snapshot from which the log is to continue; 0 and 0: none */
    uint64_t lost_snapshot;
    struct salvage_piece *piece; /* without gap, from after + 1 on */
    size_t pieces, room;
    struct salvage_piece *dropped; /* intact, but it is not known whether the log still held them:
                                    * whoever lost an entry of this index and term may have it */
    size_t dropped_count, dropped_room;
    uint64_t commit_index;      /* as the log says */
    bool tail_lost;             /* after the last piece something was lost, and nobody knows what */
    bool illogical;             /* good batches contradict each other: this is no damage */
    char what[LOG_MESSAGE_MAX]; /* the first damage */
    bool *damaged;              /* by segment */
    struct salvage_scan *scan;
    void *view; /* of a segment, while entries are read */
};

/* Reads the log in a directory as far as that is possible.  `lost_snapshot`: index of one that is
 * damaged, so that the log is known to have led there; 0: none.  `vote_term`: the newest term of
 * this server.  -1, and log.message: the directory cannot be read. */
int salvage_open(struct salvage *salvage, int directory, const char *path, uint64_t after,
                 uint64_t term, uint64_t lost_snapshot, uint64_t vote_term);
void salvage_close(struct salvage *salvage);

static inline uint64_t salvage_last(const struct salvage *s) {
    const struct salvage_piece *end = s->pieces ? &s->piece[s->pieces - 1] : NULL;
    return end ? end->first + end->count - 1 : s->after;
}
bool salvage_is_whole(const struct salvage *salvage); /* no entry is lacking, up to the last */
uint64_t salvage_lacking(const struct salvage *salvage);

/* ---- What it has ---- */

/* The term of an entry, intact or not; 0: it is not known, or there is no such entry. */
uint64_t salvage_term_at(const struct salvage *salvage, uint64_t index);
/* So many entries, from that one on, are of its term; 0: it is not known. */
uint64_t salvage_run(const struct salvage *salvage, uint64_t index);
/* Intact entries from an index on, at most up to `last` and bytes_max bytes, or one; until the next
 * call.  False: that entry is not intact, or not there. */
bool salvage_read(struct salvage *salvage, uint64_t index, uint64_t last, size_t bytes_max,
                  struct raft_batch *batch);
/* The same from what was dropped, of the newest term. */
bool salvage_read_dropped(struct salvage *salvage, uint64_t index, uint64_t last, size_t bytes_max,
                          struct raft_batch *batch);

/* ---- What it lacks ---- */

struct salvage_hole {
    uint64_t first, last, term;   /* term 0: not known */
    uint64_t pin_index, pin_term; /* a later entry of this log; whoever has it has those of the
                                   * hole, too; 0: there is none */
    uint64_t term_min, term_max;  /* the neighbours' */
};

/* The first hole that ends at an index or after it. */
bool salvage_find_hole(const struct salvage *salvage, uint64_t from, struct salvage_hole *hole);
/* Up to where entries of another log, from the first of a hole on, are those that were lost; 0:
 * none is known to be.  pinned: that log has the hole's pin; commit_index: it knows that so many
 * are committed. */
uint64_t salvage_recognize(const struct salvage *salvage, const struct salvage_hole *hole,
                           const struct raft_batch *batch, bool pinned, uint64_t commit_index);
/* Entries from elsewhere, whose first is that of a hole; those beyond the hole, or after `last`,
 * are left out. */
void salvage_fill(struct salvage *salvage, const struct raft_batch *batch, uint64_t last);

/* The term of entries of a hole, from its first on: another log that is equal up to there has it.
 */
void salvage_learn(struct salvage *salvage, uint64_t first, uint64_t count, uint64_t term);

/* ---- The end ---- */

/* Gives up an entry and all that follow it. */
void salvage_cut(struct salvage *salvage, uint64_t index);
/* Writes what it has as one new segment, which takes the place of all others at once, durably; then
 * sets those aside that are damaged.  There is no hole.  `old_format`, `segment_bytes`, `no_sync`:
 * as in struct log.  -1, and log.message. */
int salvage_write(struct salvage *salvage, bool old_format, uint64_t segment_bytes, bool no_sync);

#endif
