/* The consensus core, as whoever keeps a replicated state sees it: proposals in, effects out.
 *
 * It is pure: no I/O, no clock, no randomness.  A turn is
 *
 *   alone_propose      any number of times: an entry goes into the batch under way
 *   alone_to_save      what must be durable before anything else may happen; the owner saves it and
 *   alone_saved        says so
 *   alone_committed    what is decided, in order, to be applied by the owner
 *
 * Here it is an ensemble of one, in which what is durable is decided. */
#ifndef CV_RAFT_ALONE_H
#define CV_RAFT_ALONE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "raft/batch.h"

struct alone {
    uint64_t term;
    uint64_t last, saved,
        applied;               /* indexes of entries; committed is `saved` in an ensemble of one */
    struct bytes open, closed; /* the batch under way, and the one that was to be saved */
    size_t at;                 /* in `closed`: the next that was not applied */
};

/* Goes on behind what the log and the last snapshot hold. */
void alone_open(struct alone *raft, uint64_t term, uint64_t last);
void alone_close(struct alone *raft);

/* Room for an entry of at most that many bytes, which is written there; alone_propose then says how
 * many it took, and returns the entry's index. */
unsigned char *alone_room(struct alone *raft, size_t most);
uint64_t alone_propose(struct alone *raft, size_t size);

/* False: there is nothing. */
bool alone_to_save(struct alone *raft, struct raft_batch *batch);
void alone_saved(struct alone *raft, uint64_t index);
bool alone_committed(struct alone *raft, struct raft_entry *entry);

#endif
