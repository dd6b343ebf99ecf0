/* Which entry is of which term.  Terms only grow along a log, so the newest entries are kept as
 * runs, and the term of an older one is asked of the owner, who has the log.  However many leaders
 * there were that committed nothing, the record stays as small as it is. */
#include <string.h>

#include "raft/internal.h"

uint64_t raft_term_at(const struct raft *raft, uint64_t index) {
    cv_assert(index >= raft->snapshot_index && index <= raft->last_index);
    for (uint32_t i = raft->runs; i > 0; i--)
        if (raft->run[i - 1].first <= index) return raft->run[i - 1].term;
    return index == raft->snapshot_index ? raft->snapshot_term : raft->term_of(raft->log, index);
}

uint64_t raft_run_begin(const struct raft *raft, uint64_t index) {
    for (uint32_t i = raft->runs; i > 0; i--)
        if (raft->run[i - 1].first <= index) return raft->run[i - 1].first;
    return index;
}

uint64_t raft_run_end(const struct raft *raft, uint64_t index) {
    enum { ASKED_MAX = 1000 };
    for (uint32_t i = raft->runs; i > 0; i--)
        if (raft->run[i - 1].first <= index)
            return i < raft->runs ? raft->run[i].first : raft->last_index + 1;
    uint64_t term = raft_term_at(raft, index), end = index + 1;
    uint64_t limit = raft->runs ? raft->run[0].first : raft->last_index + 1;
    if (limit > index + ASKED_MAX) limit = index + ASKED_MAX;
    while (end < limit && raft_term_at(raft, end) == term) end++;
    return end;
}

static void forget_runs(struct raft *raft, uint32_t count) {
    raft->runs -= count;
    memmove(raft->run, raft->run + count, raft->runs * sizeof *raft->run);
    memset(raft->run + raft->runs, 0, count * sizeof *raft->run);
}

/* A later snapshot index ends runs. */
void raft_set_snapshot_index(struct raft *raft, uint64_t index) {
    uint32_t gone = 0;
    raft->snapshot_term = raft_term_at(raft, index);
    raft->snapshot_index = index;
    while (gone + 1 < raft->runs && raft->run[gone + 1].first <= index + 1) gone++;
    if (raft->runs && index == raft->last_index) gone = raft->runs;
    forget_runs(raft, gone);
    if (raft->runs && raft->run[0].first <= index) raft->run[0].first = index + 1;
}

void raft_extend(struct raft *raft, uint32_t count, uint64_t term) {
    if (!raft->runs || raft->run[raft->runs - 1].term != term) {
        if (raft->runs == RAFT_RUNS_MAX) {
            cv_assert(raft->term_of);
            forget_runs(raft, 1);
        }
        raft->run[raft->runs++] = (struct raft_run){raft->last_index + 1, term};
    }
    raft->last_index += count;
}

void raft_truncate(struct raft *raft, uint64_t last) {
    cv_assert(last >= raft->commit_index && last >= raft->snapshot_index);
    while (raft->runs && raft->run[raft->runs - 1].first > last)
        raft->run[--raft->runs] = (struct raft_run){0};
    raft->last_index = last;
    if (raft->durable_index > last) raft->durable_index = last;
    if (raft->verified_index > last) raft->verified_index = last;
    if (raft->config_index > last) {
        raft->config = raft->previous_config;
        raft->config_index = raft->previous_config_index;
    }
}
