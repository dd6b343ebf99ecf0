#include "raft/raft.h"

void raft_open(struct raft *raft, uint64_t term, uint64_t last) {
    *raft = (struct raft){.term = term, .last = last, .saved = last, .applied = last};
}

void raft_close(struct raft *raft) {
    bytes_close(&raft->open);
    bytes_close(&raft->closed);
}

enum { SIZE_BYTES = sizeof(uint32_t) };

unsigned char *raft_room(struct raft *raft, size_t most) {
    return bytes_reserve(&raft->open, SIZE_BYTES + most) + SIZE_BYTES;
}

uint64_t raft_propose(struct raft *raft, size_t size) {
    uint32_t stored = (uint32_t)size;
    cv_assert(stored == size);
    memcpy(bytes_extend(&raft->open, SIZE_BYTES + size), &stored, sizeof stored);
    return ++raft->last;
}

bool raft_to_save(struct raft *raft, struct raft_batch *batch) {
    cv_assert(raft->applied == raft->saved && raft->closed.used == raft->at);
    if (!raft->open.used) return false;
    struct bytes emptied = raft->closed;
    raft->closed = raft->open;
    raft->open = emptied;
    raft->open.used = raft->at = 0;
    *batch = (struct raft_batch){.first = raft->saved + 1,
                                 .term = raft->term,
                                 .count = (uint32_t)(raft->last - raft->saved),
                                 .bytes = raft->closed.at,
                                 .size = raft->closed.used};
    return true;
}

void raft_saved(struct raft *raft, uint64_t index) {
    cv_assert(index >= raft->saved && index <= raft->last);
    raft->saved = index;
}

bool raft_next(const struct raft_batch *batch, size_t *at, struct raft_entry *entry) {
    uint32_t size;
    if (batch->size - *at < SIZE_BYTES) return false;
    memcpy(&size, batch->bytes + *at, sizeof size);
    if (size > batch->size - *at - SIZE_BYTES) return false;
    entry->bytes = batch->bytes + *at + SIZE_BYTES;
    entry->size = size;
    entry->term = batch->term;
    *at += SIZE_BYTES + size;
    return true;
}

bool raft_committed(struct raft *raft, struct raft_entry *entry) {
    if (raft->applied == raft->saved) return false;
    struct raft_batch batch = {
        .term = raft->term, .bytes = raft->closed.at, .size = raft->closed.used};
    cv_assert(raft_next(&batch, &raft->at, entry));
    entry->index = ++raft->applied;
    return true;
}
