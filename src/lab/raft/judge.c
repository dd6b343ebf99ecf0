/* The safety properties of the Raft paper, judged after every event as far as it can concern
 * them. */
#include <stdarg.h>
#include <string.h>

#include "base/grow.h"
#include "base/hash.h"
#include "lab/raft/lab.h"

void lab_broken(struct lab *lab, const char *format, ...) {
    va_list args;
    if (lab_is_over(lab)) return; /* the first counts */
    va_start(args, format);
    vsnprintf(lab->result->broken, sizeof lab->result->broken, format, args);
    va_end(args);
    if (lab->trace)
        fprintf(lab->trace, "%9.3f ms  BROKEN: %s\n", (double)lab->now / MS, lab->result->broken);
}

void lab_note(struct lab *lab, uint8_t node, uint64_t what, const char *format, ...) {
    va_list args;
    lab->result->hash = rng_mix(lab->result->hash ^ lab->now << 4 ^ node) + what;
    if (!lab->trace) return;
    fprintf(lab->trace, "%9.3f ms  %u ", (double)lab->now / MS, node);
    va_start(args, format);
    vfprintf(lab->trace, format, args);
    va_end(args);
    putc('\n', lab->trace);
}

static bool is_same(const struct lab_entry *a, const struct lab_entry *b) {
    return a->term == b->term && a->value == b->value && a->config == b->config;
}

/* ---- Log matching ---- */

/* Two logs with an entry of the same index and term are equal up to it: such an entry, and the term
 * of the one before it, are the same wherever it is appended. */
void lab_judge_entry(struct lab *lab, struct lab_node *node, uint64_t index) {
    const struct lab_entry *entry = lab_entry(&node->log, index);
    struct lab_birth birth = {index, entry[-1].term, *entry};
    uint32_t hash = hash_bytes((uint64_t[]){index, entry->term}, 16, 0), number;
    if (index <= node->judged)
        lab_broken(lab, "%u replaces entry %llu, which is committed", node->raft.self,
                   (unsigned long long)index);
    for (struct probe p = table_probe(&lab->seen, hash); (number = table_next(&lab->seen, &p));) {
        const struct lab_birth *old = &lab->birth[number];
        if (old->index != index || old->entry.term != entry->term) continue;
        if (old->before_term != birth.before_term || !is_same(&old->entry, entry))
            lab_broken(lab, "two logs have different entries %llu of term %llu",
                       (unsigned long long)index, (unsigned long long)entry->term);
        return;
    }
    lab->birth = grown(lab->birth, &lab->birth_room, ++lab->births + 1, sizeof *lab->birth);
    lab->birth[lab->births] = birth;
    table_add(&lab->seen, hash, (uint32_t)lab->births);
}

/* ---- Election safety and leader completeness ---- */

/* Leader completeness: a leader has all that was committed in earlier terms. */
static void must_have(struct lab *lab, struct lab_node *node, uint64_t index) {
    if (index <= node->raft.snapshot_index || lab->committed_in[index] >= node->raft.term) return;
    if (index > node->raft.last_index || !is_same(&node->log.at[index], &lab->committed.at[index]))
        lab_broken(lab, "%u leads in term %llu without entry %llu, which is committed",
                   node->raft.self, (unsigned long long)node->raft.term, (unsigned long long)index);
}

static void judge_leader(struct lab *lab, struct lab_node *node) {
    uint64_t term = node->raft.term;
    size_t before = lab->leader_room;
    lab->leader_of = grown(lab->leader_of, &lab->leader_room, term + 1, 1);
    memset(lab->leader_of + before, 0, lab->leader_room - before);
    if (lab->leader_of[term] == node->raft.self) return;
    if (lab->leader_of[term])
        lab_broken(lab, "%u and %u lead in term %llu", lab->leader_of[term], node->raft.self,
                   (unsigned long long)term);
    lab->leader_of[term] = node->raft.self;
    lab->result->leaders++;
    lab_note(lab, node->raft.self, term, "LEADS in term %llu", (unsigned long long)term);
    for (uint64_t i = node->raft.snapshot_index + 1; i <= lab->committed.last; i++)
        must_have(lab, node, i);
}

/* ---- State machine safety ---- */

static void judge_committed(struct lab *lab, struct lab_node *node, uint64_t index) {
    const struct lab_entry *entry = lab_entry(&node->log, index);
    if (index <= lab->committed.last) {
        if (!is_same(entry, &lab->committed.at[index]))
            lab_broken(lab, "entry %llu is committed with two values", (unsigned long long)index);
        return;
    }
    if (index > lab->committed.last + 1) {
        lab_broken(lab, "entry %llu is committed before the one before it",
                   (unsigned long long)index);
        return;
    }
    *lab_entry(&lab->committed, index) = *entry;
    lab->committed.last = lab->result->committed = index;
    lab->committed_in =
        grown(lab->committed_in, &lab->committed_room, index + 1, sizeof *lab->committed_in);
    lab->committed_in[index] = node->raft.term;
    for (uint32_t id = 1; id <= lab->nodes; id++) {
        struct lab_node *other = &lab->node[id];
        if (other->state == LAB_UP && other->raft.role == RAFT_LEADER) must_have(lab, other, index);
        lab_lease_read(lab, other); /* a lease that should be over would be noticed now */
    }
}

void lab_judge(struct lab *lab, struct lab_node *node) {
    const struct raft *raft = &node->raft;
    if (raft->role == RAFT_LEADER) judge_leader(lab, node);
    if (raft->commit_index < node->judged)
        lab_broken(lab, "%u lowers its commit index", raft->self);
    while (node->judged < raft->commit_index && !lab_is_over(lab))
        judge_committed(lab, node, ++node->judged);
    if (!lab_is_durable(node, raft->durable_index, raft_term_at(raft, raft->durable_index)))
        lab_broken(lab, "%u believes that entry %llu is durable", raft->self,
                   (unsigned long long)raft->durable_index);
}

/* ---- Messages and reads ---- */

void lab_judge_message(struct lab *lab, struct lab_node *node, const struct raft_message *m) {
    const struct raft *raft = &node->raft;
    if (m->term != node->disk.term)
        lab_broken(lab, "%u sends in term %llu before that is durable", raft->self,
                   (unsigned long long)m->term);
    bool votes = m->type == RAFT_REQUEST_VOTE_RESPONSE && m->request_vote_response.vote_granted &&
                 !m->request_vote_response.pre_vote;
    if (votes && node->disk.vote != m->to)
        lab_broken(lab, "%u votes before that is durable", raft->self);
    const struct raft_append_entries_response *response = &m->append_entries_response;
    bool acknowledges = m->type == RAFT_APPEND_ENTRIES_RESPONSE && !response->rejected;
    if (acknowledges &&
        !lab_is_durable(node, response->match_index, raft_term_at(raft, response->match_index)))
        lab_broken(lab, "%u acknowledges entry %llu before it is durable", raft->self,
                   (unsigned long long)response->match_index);
}

void lab_judge_read(struct lab *lab, struct lab_node *node, uint64_t index, uint64_t floor,
                    const char *how) {
    if (how[2] == 'l')
        lab->result->lease_reads++;
    else
        lab->result->reads++;
    if (index < floor)
        lab_broken(lab, "a read at %u by %s misses committed entries: %llu, not %llu",
                   node->raft.self, how, (unsigned long long)index, (unsigned long long)floor);
}
