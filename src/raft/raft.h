/* The consensus core, as whoever keeps a replicated state sees it: proposals in, effects out.
 *
 * It is pure: no I/O, no clock, no randomness.  A turn is
 *
 *   raft_propose      any number of times: an entry goes into the batch under way
 *   raft_to_save      what must be durable before anything else may happen; the owner saves it and
 *   raft_saved        says so
 *   raft_committed    what is decided, in order, to be applied by the owner
 *
 * Here it is an ensemble of one, in which what is durable is decided. */
#ifndef CV_RAFT_RAFT_H
#define CV_RAFT_RAFT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"

struct raft_entry {
    uint64_t index, term;
    const unsigned char *bytes;
    size_t size;
};

/* Entries that follow each other, one behind the other: each its size (4 bytes), then its bytes. */
struct raft_batch {
    uint64_t first, term;
    uint32_t count;
    const unsigned char *bytes;
    size_t size;
};

struct raft {
    uint64_t term;
    uint64_t last, saved,
        applied;               /* indexes of entries; committed is `saved` in an ensemble of one */
    struct bytes open, closed; /* the batch under way, and the one that was to be saved */
    size_t at;                 /* in `closed`: the next that was not applied */
};

/* Goes on behind what the log and the last snapshot hold. */
void raft_open(struct raft *raft, uint64_t term, uint64_t last);
void raft_close(struct raft *raft);

/* Room for an entry of at most that many bytes, which is written there; raft_propose then says how
 * many it took, and returns the entry's index. */
unsigned char *raft_room(struct raft *raft, size_t most);
uint64_t raft_propose(struct raft *raft, size_t size);

/* False: there is nothing. */
bool raft_to_save(struct raft *raft, struct raft_batch *batch);
void raft_saved(struct raft *raft, uint64_t index);
bool raft_committed(struct raft *raft, struct raft_entry *entry);

/* Takes the entries of a batch apart: `at` is where the next begins, 0 at first.  False: at the
 * end, or what is there is no entry, which is for the caller to tell by `at` and the size. */
bool raft_next(const struct raft_batch *batch, size_t *at, struct raft_entry *entry);

#endif
