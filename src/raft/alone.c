#include "raft/alone.h"

void alone_open(struct alone *raft, uint64_t term, uint64_t last) {
    *raft = (struct alone){.term = term, .last = last, .saved = last, .applied = last};
}

void alone_close(struct alone *raft) {
    bytes_close(&raft->open);
    bytes_close(&raft->closed);
}

unsigned char *alone_room(struct alone *raft, size_t most) {
    return bytes_reserve(&raft->open, RAFT_SIZE_BYTES + most) + RAFT_SIZE_BYTES;
}

uint64_t alone_propose(struct alone *raft, size_t size) {
    uint32_t stored = (uint32_t)size;
    cv_assert(stored == size);
    memcpy(bytes_extend(&raft->open, RAFT_SIZE_BYTES + size), &stored, sizeof stored);
    return ++raft->last;
}

bool alone_to_save(struct alone *raft, struct raft_batch *batch) {
    cv_assert(raft->applied == raft->saved && raft->closed.used == raft->at);
    if (!raft->open.used) return false;
    struct bytes emptied = raft->closed;
    raft->closed = raft->open;
    raft->open = emptied;
    raft->open.used = raft->at = 0;
    *batch = (struct raft_batch){.first = raft->saved + 1,
                                 .term = raft->term,
                                 .committed = raft->last,
                                 .count = (uint32_t)(raft->last - raft->saved),
                                 .bytes = raft->closed.at,
                                 .size = raft->closed.used};
    return true;
}

void alone_saved(struct alone *raft, uint64_t index) {
    cv_assert(index >= raft->saved && index <= raft->last);
    raft->saved = index;
}

bool alone_committed(struct alone *raft, struct raft_entry *entry) {
    if (raft->applied == raft->saved) return false;
    struct raft_batch batch = {
        .term = raft->term, .bytes = raft->closed.at, .size = raft->closed.used};
    cv_assert(raft_next(&batch, &raft->at, entry));
    entry->index = ++raft->applied;
    return true;
}
