/* Consecutive entries in memory: those on their way to the disk, to other servers, or to being
 * committed.
 *
 * Their bytes are contiguous, as in a batch, so any range of them of one term and kind is a batch
 * without copying.  A window grows at its end, shrinks at both ends, and allocates nothing for an
 * entry. */
#ifndef CV_SERVICE_LOG_WINDOW_H
#define CV_SERVICE_LOG_WINDOW_H

#include "base/bytes.h"
#include "raft/batch.h"

struct window_slot {    /* of an entry */
    uint64_t begin;     /* of its size, counted from the first byte that ever was in the window */
    uint64_t term_kind; /* both in one */
};

struct window {
    uint64_t after;           /* index of the entry before the first */
    size_t count;             /* of entries */
    struct window_slot *slot; /* from `trimmed_slots` on: one per entry, and one for the end */
    size_t trimmed_slots, slot_room;
    struct bytes bytes;
    size_t trimmed_bytes; /* at the front of `bytes`: those of trimmed entries */
    uint64_t bytes_begin; /* what the first of `bytes` counts as, see window_slot.begin */
};

/* An empty window: the next entry is the one after `after`. */
void window_open(struct window *w, uint64_t after);
void window_close(struct window *w);
void window_reset(struct window *w, uint64_t after);

static inline uint64_t window_last(const struct window *w) { return w->after + w->count; }
/* Of all entries, with their sizes. */
static inline size_t window_bytes(const struct window *w) {
    return w->bytes.used - w->trimmed_bytes;
}

/* Of its buffers, as far as they are filled. */
static inline size_t window_memory(const struct window *w) {
    return w->bytes.used + (w->trimmed_slots + w->count) * sizeof *w->slot;
}

/* ---- Changing: pointers into the window become invalid ---- */

/* Appends a batch, which continues the window or replaces its end; a batch without entries only
 * removes.  False: the batch is malformed, and nothing has changed. */
bool window_append(struct window *w, const struct raft_batch *batch);
/* Where to write the next entry, with room for `max_size` bytes; window_add then takes the size
 * that was written, and returns the entry's index. */
unsigned char *window_room(struct window *w, size_t max_size);
uint64_t window_add(struct window *w, uint64_t term, enum raft_kind kind, size_t size);
/* Removes the entries up to an index. */
void window_trim(struct window *w, uint64_t index);
/* Gives back memory, if it has more than so many bytes and uses few of them. */
void window_shrink(struct window *w, size_t max);

/* ---- Reading entries of the window ---- */

void window_entry(const struct window *w, uint64_t index, struct raft_entry *entry);
/* The longest batch that begins with an entry and has at most bytes_max bytes, or that entry alone.
 * The caller sets its commit index. */
void window_read(const struct window *w, uint64_t index, size_t bytes_max,
                 struct raft_batch *batch);
/* Bytes of the entries from first to last, with their sizes. */
size_t window_span(const struct window *w, uint64_t first, uint64_t last);

#endif
