/* Entries, and batches of them: what the log is made of, in memory, on disk and on the way between
 * servers. */
#ifndef CV_RAFT_BATCH_H
#define CV_RAFT_BATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum raft_kind {
    RAFT_NORMAL, /* bytes of the owner of the log */
    RAFT_CONFIG, /* the members, as the owner writes them; such an entry is a batch of its own */
};

struct raft_entry {
    uint64_t index, term;
    enum raft_kind kind;
    const unsigned char *bytes;
    size_t size;
};

/* Entries that follow each other and are of one term and kind, one behind the other: each its size
 * (4 bytes), then its bytes.  It stands in the place of all that was there from `first` on. */
struct raft_batch {
    uint64_t first, term;
    uint64_t committed; /* all up to here were known to be decided */
    uint32_t count;
    enum raft_kind kind;
    const unsigned char *bytes;
    size_t size;
};

enum { RAFT_SIZE_BYTES = sizeof(uint32_t) };

static inline uint64_t raft_batch_last(const struct raft_batch *batch) {
    return batch->first + batch->count - 1;
}

/* Takes the entries of a batch apart: `at` is where the next begins, 0 at first.  False: at the
 * end, or what is there is no entry, which is for the caller to tell by `at` and the size.  The
 * entry's index is the caller's to count. */
bool raft_next(const struct raft_batch *batch, size_t *at, struct raft_entry *entry);

#endif
