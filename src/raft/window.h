/* Entries in memory that follow each other: those that are on their way to the disk, to other
 * servers, or to being decided.
 *
 * All their bytes lie one behind the other, as in a batch, so any of them that are of one term and
 * kind are a batch without copying.  It grows at the end, shrinks at both ends, and allocates
 * nothing for an entry. */
#ifndef CV_RAFT_WINDOW_H
#define CV_RAFT_WINDOW_H

#include "base/bytes.h"
#include "raft/batch.h"

struct window_place { /* of an entry */
    uint64_t begin;   /* of its size, counted from the first byte that ever was in the window */
    uint64_t nature;  /* term and kind in one */
};

struct window {
    uint64_t after;             /* index of the entry before the first */
    size_t count;               /* of entries */
    struct window_place *place; /* of the entries from `forgotten` on, and one behind the last */
    size_t forgotten, room;
    struct bytes bytes;
    size_t gone;   /* of `bytes`: those of entries that are forgotten */
    uint64_t base; /* what is counted as the first of `bytes` */
};

/* Empty, behind an entry. */
void window_open(struct window *w, uint64_t after);
void window_close(struct window *w);
void window_reset(struct window *w, uint64_t after);

static inline uint64_t window_last(const struct window *w) { return w->after + w->count; }
/* Of all entries, with their sizes. */
static inline size_t window_bytes(const struct window *w) { return w->bytes.used - w->gone; }

/* ---- Changing it: what was given out before is no longer valid ---- */

/* Takes a batch in, which goes on from what is there or replaces the end of it; one of no entries
 * only takes away.  False: it is no batch of so many entries, and nothing has changed. */
bool window_append(struct window *w, const struct raft_batch *batch);
/* Room for an entry of at most that many bytes at the end, which is written there; window_add then
 * says how many it took, and returns the entry's index. */
unsigned char *window_room(struct window *w, size_t most);
uint64_t window_add(struct window *w, uint64_t term, enum raft_kind kind, size_t size);
/* Forgets entries up to an index. */
void window_trim(struct window *w, uint64_t index);

/* ---- Looking: at entries that are there ---- */

void window_entry(const struct window *w, uint64_t index, struct raft_entry *entry);
/* The longest batch from an entry on with at most that many bytes, or that entry alone.  What is
 * decided is for the caller to say. */
void window_read(const struct window *w, uint64_t index, size_t bytes_max,
                 struct raft_batch *batch);
/* Bytes of the entries from one to another, with their sizes. */
size_t window_span(const struct window *w, uint64_t first, uint64_t last);

#endif
