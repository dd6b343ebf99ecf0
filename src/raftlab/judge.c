/* What must always hold, looked at after every event, as far as it concerns what has changed. */
#include <stdarg.h>
#include <string.h>

#include "base/grow.h"
#include "base/hash.h"
#include "raftlab/lab.h"

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

/* ---- Logs ---- */

/* Logs that have an entry of one term in one place are the same up to there: what such an entry is,
 * and the term of the one before, is the same wherever it comes into a log. */
void lab_judge_entry(struct lab *lab, struct lab_node *node, uint64_t index) {
    const struct lab_entry *entry = lab_entry(&node->log, index);
    struct lab_birth birth = {index, entry[-1].term, *entry};
    uint32_t hash = hash_bytes((uint64_t[]){index, entry->term}, 16, 0), number;
    if (index <= node->judged)
        lab_broken(lab, "%u replaces entry %llu, which is decided", node->raft.self,
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

/* ---- Leaders ---- */

/* A leader has all that was decided in terms before its own. */
static void must_have(struct lab *lab, struct lab_node *node, uint64_t index) {
    if (index <= node->raft.base || lab->decided_in[index] >= node->raft.term) return;
    if (index > node->raft.last || !is_same(&node->log.at[index], &lab->decided.at[index]))
        lab_broken(lab, "%u leads in term %llu without entry %llu, which is decided",
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
    for (uint64_t i = node->raft.base + 1; i <= lab->decided.last; i++) must_have(lab, node, i);
}

/* ---- What is decided ---- */

static void judge_decided(struct lab *lab, struct lab_node *node, uint64_t index) {
    const struct lab_entry *entry = lab_entry(&node->log, index);
    if (index <= lab->decided.last) {
        if (!is_same(entry, &lab->decided.at[index]))
            lab_broken(lab, "entry %llu is decided in two ways", (unsigned long long)index);
        return;
    }
    if (index > lab->decided.last + 1) {
        lab_broken(lab, "entry %llu is decided before the one before it",
                   (unsigned long long)index);
        return;
    }
    *lab_entry(&lab->decided, index) = *entry;
    lab->decided.last = lab->result->decided = index;
    lab->decided_in =
        grown(lab->decided_in, &lab->decided_room, index + 1, sizeof *lab->decided_in);
    lab->decided_in[index] = node->raft.term;
    for (uint32_t id = 1; id <= lab->nodes; id++) {
        struct lab_node *other = &lab->node[id];
        if (other->state == LAB_UP && other->raft.role == RAFT_LEADER) must_have(lab, other, index);
        lab_lease_read(lab, other); /* now is when a lease that should be over is noticed */
    }
}

void lab_judge(struct lab *lab, struct lab_node *node) {
    const struct raft *raft = &node->raft;
    if (raft->role == RAFT_LEADER) judge_leader(lab, node);
    if (raft->committed < node->judged)
        lab_broken(lab, "%u takes back what was decided", raft->self);
    while (node->judged < raft->committed && !lab_is_over(lab))
        judge_decided(lab, node, ++node->judged);
    if (!lab_is_durable(node, raft->saved, raft_term_of(raft, raft->saved)))
        lab_broken(lab, "%u believes that entry %llu is durable", raft->self,
                   (unsigned long long)raft->saved);
}

/* ---- What is said, and read ---- */

void lab_judge_message(struct lab *lab, struct lab_node *node, const struct raft_message *m) {
    const struct raft *raft = &node->raft;
    if (m->term != node->disk.term)
        lab_broken(lab, "%u speaks in term %llu before that is durable", raft->self,
                   (unsigned long long)m->term);
    bool votes = m->type == RAFT_VOTED && m->flags & RAFT_GRANTED && !(m->flags & RAFT_PRE);
    if (votes && node->disk.vote != m->to)
        lab_broken(lab, "%u votes before that is durable", raft->self);
    bool has = m->type == RAFT_APPENDED && !(m->flags & RAFT_REJECTED);
    if (has && !lab_is_durable(node, m->index, raft_term_of(raft, m->index)))
        lab_broken(lab, "%u says that it has entry %llu before that is durable", raft->self,
                   (unsigned long long)m->index);
}

void lab_judge_read(struct lab *lab, struct lab_node *node, uint64_t index, uint64_t floor,
                    const char *how) {
    if (how[2] == 'l')
        lab->result->lease_reads++;
    else
        lab->result->reads++;
    if (index < floor)
        lab_broken(lab, "a read at %u by %s misses what was decided: %llu, not %llu",
                   node->raft.self, how, (unsigned long long)index, (unsigned long long)floor);
}
