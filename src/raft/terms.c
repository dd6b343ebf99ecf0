/* Which entry is of which term: runs, since terms only grow along a log. */
#include "raft/raft.h"

uint64_t raft_term_of(const struct raft *raft, uint64_t index) {
    cv_assert(index >= raft->base && index <= raft->last);
    for (uint32_t i = raft->runs; i > 0; i--)
        if (raft->run[i - 1].first <= index) return raft->run[i - 1].term;
    return raft->base_term;
}

/* A base further on takes runs away. */
void raft_set_base(struct raft *raft, uint64_t index) {
    uint32_t gone = 0;
    raft->base_term = raft_term_of(raft, index);
    raft->base = index;
    while (gone + 1 < raft->runs && raft->run[gone + 1].first <= index + 1) gone++;
    if (raft->runs && index == raft->last) gone = raft->runs;
    raft->runs -= gone;
    for (uint32_t i = 0; i < raft->runs; i++) raft->run[i] = raft->run[i + gone];
    for (uint32_t i = raft->runs; i < raft->runs + gone; i++) raft->run[i] = (struct raft_run){0};
    if (raft->runs && raft->run[0].first <= index) raft->run[0].first = index + 1;
}

/* The oldest run is as good as in a snapshot, if it is decided and durable. */
bool raft_has_room(const struct raft *raft, uint64_t first, uint64_t term) {
    uint32_t before = raft->runs;
    while (before && raft->run[before - 1].first >= first) before--;
    if (before < RAFT_RUNS_MAX || raft->run[before - 1].term == term) return true;
    uint64_t end = raft->run[1].first - 1;
    return end <= raft->committed && end <= raft->saved;
}

bool raft_extend(struct raft *raft, uint32_t count, uint64_t term) {
    if (!raft_has_room(raft, raft->last + 1, term)) return false;
    if (!raft->runs || raft->run[raft->runs - 1].term != term) {
        if (raft->runs == RAFT_RUNS_MAX) raft_trimmed(raft, raft->run[1].first - 1);
        raft->run[raft->runs++] = (struct raft_run){raft->last + 1, term};
    }
    raft->last += count;
    return true;
}

void raft_truncate(struct raft *raft, uint64_t last) {
    cv_assert(last >= raft->committed && last >= raft->base);
    while (raft->runs && raft->run[raft->runs - 1].first > last)
        raft->run[--raft->runs] = (struct raft_run){0};
    raft->last = last;
    if (raft->saved > last) raft->saved = last;
    if (raft->agreed > last) raft->agreed = last;
    if (raft->config_index > last) {
        raft->config = raft->former;
        raft->config_index = raft->former_index;
    }
}
