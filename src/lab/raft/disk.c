/* What is durable.  A batch is on the disk as a whole or not at all, and a write takes several; a
 * crash leaves the first few of those in flight.  A batch replaces all that was there from its
 * first entry on. */
#include <string.h>

#include "base/grow.h"
#include "lab/raft/lab.h"

struct lab_entry *lab_entry(struct lab_log *log, uint64_t index) {
    log->at = grown(log->at, &log->room, index + 1, sizeof *log->at);
    return &log->at[index];
}

uint32_t lab_config(struct lab *lab, const struct raft_config *config) {
    for (size_t i = 1; i <= lab->configs; i++)
        if (memcmp(&lab->config[i], config, sizeof *config) == 0) return (uint32_t)i;
    lab->config = grown(lab->config, &lab->config_room, ++lab->configs + 1, sizeof *lab->config);
    lab->config[lab->configs] = *config;
    return (uint32_t)lab->configs;
}

/* ---- Writing ---- */

void lab_write(struct lab *lab, struct lab_node *node) {
    struct raft *raft = &node->raft;
    struct lab_write *write = &node->disk.write;
    if (write->busy || raft->durable_index == raft->last_index) return;
    *write = (struct lab_write){
        .busy = true, .first = raft->durable_index + 1, .committed = raft->commit_index};
    for (uint64_t i = write->first; i <= raft->last_index && write->count < LAB_WRITE_MAX; i++) {
        const struct lab_entry *entry = lab_entry(&node->log, i), *before = entry - 1;
        bool apart = write->count && (entry->term != before->term || entry->config ||
                                      before->config || rng_below(&lab->rng, 4) == 0);
        if (apart) write->end[write->batches++] = write->count;
        write->entry[write->count++] = *entry;
    }
    write->end[write->batches++] = write->count;
    if (node->disk_us)
        lab_after(lab, 1 + rng_below(&lab->rng, 2 * node->disk_us), LAB_DURABLE, lab_id(lab, node));
}

/* The first few batches of the write under way are on the disk. */
static void put_batches(struct lab_disk *disk, uint32_t batches) {
    struct lab_write *write = &disk->write;
    for (uint32_t i = 0; i < (batches ? write->end[batches - 1] : 0); i++) {
        uint64_t index = write->first + i;
        if (index <= disk->snapshot.index) continue;
        *lab_entry(&disk->log, index) = write->entry[i];
        disk->log.last = index;
    }
    if (batches && disk->committed < write->committed) disk->committed = write->committed;
}

void lab_written(struct lab_node *node) {
    put_batches(&node->disk, node->disk.write.batches);
    node->disk.write.busy = false;
}

bool lab_is_durable(const struct lab_node *node, uint64_t index, uint64_t term) {
    const struct lab_disk *disk = &node->disk;
    if (index <= disk->snapshot.index) return true;
    return index <= disk->log.last && disk->log.at[index].term == term;
}

/* Entries that do not go on from the snapshot count no more. */
void lab_store_snapshot(struct lab_node *node, struct lab_snapshot snapshot) {
    struct lab_disk *disk = &node->disk;
    bool goes_on =
        snapshot.index <= disk->log.last && disk->log.at[snapshot.index].term == snapshot.term;
    disk->snapshot = snapshot;
    if (goes_on) return;
    *lab_entry(&disk->log, snapshot.index) = (struct lab_entry){.term = snapshot.term};
    disk->log.last = snapshot.index;
}

/* ---- Life and death ---- */

void lab_crash(struct lab *lab, struct lab_node *node) {
    struct lab_write *write = &node->disk.write;
    if (node->state != LAB_UP) return;
    uint32_t left = write->busy ? (uint32_t)rng_below(&lab->rng, write->batches + 1) : 0;
    if (write->busy) put_batches(&node->disk, left);
    lab->result->torn += write->busy && left < write->batches;
    write->busy = false;
    node->state = LAB_DOWN;
    node->incarnation++;
    node->reads = 0;
    lab->result->crashes++;
    lab_note(lab, lab_id(lab, node), left, "crashes; its log is durable up to %llu",
             (unsigned long long)node->disk.log.last);
}

static uint64_t term_of_entry(const void *log, uint64_t index) {
    const struct lab_log *entries = log;
    return entries->at[index].term;
}

void lab_start(struct lab *lab, struct lab_node *node) {
    struct lab_disk *disk = &node->disk;
    struct raft *raft = &node->raft;
    struct raft_out out = {0};
    if (node->state != LAB_DOWN) return;
    uint8_t id = lab_id(lab, node);
    node->state = LAB_UP;
    node->incarnation++;
    raft_open(raft, id, disk->term, disk->vote);
    raft->leases_enabled = lab->leases;
    raft->term_of = term_of_entry;
    raft->log = &node->log;
    raft_restore_snapshot(raft, disk->snapshot.index, disk->snapshot.term,
                          &lab->config[disk->snapshot.config]);
    for (uint64_t i = disk->snapshot.index + 1; i <= disk->log.last; i++) {
        const struct lab_entry *entry = &disk->log.at[i];
        *lab_entry(&node->log, i) = *entry;
        raft_restore_entries(raft, i, 1, entry->term,
                             entry->config ? &lab->config[entry->config] : NULL);
    }
    *lab_entry(&node->log, disk->snapshot.index) = (struct lab_entry){.term = disk->snapshot.term};
    node->judged = disk->snapshot.index;
    lab_note(lab, id, raft->last_index, "starts with term %llu, vote %u, log up to %llu",
             (unsigned long long)raft->term, raft->voted_for, (unsigned long long)raft->last_index);
    raft_start(raft, disk->committed, &out);
    if (!lab->still) lab_after(lab, rng_below(&lab->rng, HEARTBEAT_INTERVAL), LAB_HEARTBEAT, id);
    lab_perform(lab, node, &out, NULL);
    lab_advance(lab, node);
}
