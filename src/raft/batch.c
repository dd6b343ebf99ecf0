#include "raft/batch.h"

#include <string.h>

bool raft_next(const struct raft_batch *batch, size_t *at, struct raft_entry *entry) {
    uint32_t size;
    if (batch->size - *at < RAFT_SIZE_BYTES) return false;
    memcpy(&size, batch->bytes + *at, sizeof size);
    if (size > batch->size - *at - RAFT_SIZE_BYTES) return false;
    entry->bytes = batch->bytes + *at + RAFT_SIZE_BYTES;
    entry->size = size;
    entry->term = batch->term;
    entry->kind = batch->kind;
    *at += RAFT_SIZE_BYTES + size;
    return true;
}
