/* Entries and batches of them: what a log is made of in memory, on disk and between servers. */
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

/* Consecutive entries of one term and kind, one after the other: each its size (4 bytes), then its
 * bytes.  A batch replaces everything that the log held from `first` on. */
struct raft_batch {
    uint64_t first, term;
    uint64_t commit_index; /* as its writer knew it */
    uint32_t count;
    enum raft_kind kind;
    const unsigned char *bytes;
    size_t size;
};

enum { RAFT_SIZE_BYTES = sizeof(uint32_t) };
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
               "sizes lie in memory as on disk and on the wire: little-endian");

static inline uint64_t raft_batch_last(const struct raft_batch *batch) {
    return batch->first + batch->count - 1;
}

/* Reads the entry that begins at offset `at` (0 at first) and advances `at`.  False at the end, or
 * when the bytes there are no entry: the caller tells the two apart by `at` and the size.  The
 * caller also counts the indexes. */
bool raft_next(const struct raft_batch *batch, size_t *at, struct raft_entry *entry);

#endif
