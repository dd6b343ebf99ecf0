/* The owner of a core, as the server's ensemble is one: it provides the callbacks of raft_perform.
 * Between any two effects the power may fail. */
#include <string.h>

#include "lab/raft/lab.h"

/* ---- Opening ---- */

void lab_open(struct lab *lab, uint64_t seed, const struct raft_config *config, FILE *trace,
              struct lab_result *result) {
    memset(lab, 0, sizeof *lab);
    memset(result, 0, sizeof *result);
    rng_seed(&lab->rng, seed);
    lab->trace = trace;
    lab->result = result;
    lab->chance.delay_us = MS;
    *lab_entry(&lab->committed, 0) = (struct lab_entry){0};
    for (uint32_t i = 0; i < config->count; i++) lab_add_node(lab, config);
}

struct lab_node *lab_add_node(struct lab *lab, const struct raft_config *config) {
    struct lab_node *node = &lab->node[++lab->nodes];
    cv_assert(lab->nodes <= LAB_NODES_MAX);
    node->rate = 1;
    node->disk_us = MS;
    *lab_entry(&node->disk.log, 0) = (struct lab_entry){0};
    node->disk.snapshot.config = lab_config(lab, config);
    return node;
}

void lab_close(struct lab *lab) {
    lab->result->time_us = lab->now;
    for (uint32_t id = 1; id <= lab->nodes; id++) {
        free(lab->node[id].log.at);
        free(lab->node[id].disk.log.at);
    }
    free(lab->heap);
    free(lab->event);
    free(lab->config);
    free(lab->committed.at);
    free(lab->committed_in);
    free(lab->leader_of);
    free(lab->birth);
    table_close(&lab->seen);
}

/* ---- Effects ---- */

static bool power_fails(struct lab *lab, struct lab_node *node) {
    if (!rng_chance(&lab->rng, lab->chance.crash)) return false;
    lab_crash(lab, node);
    lab_after(lab, 20 * MS + rng_below(&lab->rng, 1000 * MS), LAB_START, lab_id(lab, node));
    return true;
}

/* What one message becomes on the way. */
static void post(struct lab *lab, const struct lab_event *letter) {
    const struct raft_message *m = &letter->message;
    if (m->to > lab->nodes || lab->cut[m->from][m->to]) return;
    if (lab->mute && m->type == RAFT_APPEND_ENTRIES) return;
    if (rng_chance(&lab->rng, lab->chance.loss)) return;
    for (int copies = 1 + rng_chance(&lab->rng, lab->chance.twice); copies > 0; copies--) {
        uint64_t us = 1 + rng_below(&lab->rng, 2 * lab->chance.delay_us);
        if (!lab->still && rng_below(&lab->rng, 50) == 0) us += rng_below(&lab->rng, 200 * MS);
        uint64_t *last = &lab->arrival[m->from][m->to];
        if (lab->ordered && lab->now + us <= *last) us = *last + 1 - lab->now;
        *last = lab->now + us;
        struct lab_event *event = lab_after(lab, us, LAB_MESSAGE, m->to);
        uint32_t incarnation = event->incarnation, timer = event->timer;
        *event = *letter;
        event->type = LAB_MESSAGE;
        event->node = m->to;
        event->incarnation = incarnation;
        event->timer = timer;
    }
}

static void send(struct lab *lab, struct lab_node *node, const struct raft_message *m) {
    struct lab_event letter = {.message = *m};
    lab_judge_message(lab, node, m);
    const struct raft_append_entries *append = &m->append_entries;
    for (uint32_t i = 0; m->type == RAFT_APPEND_ENTRIES && i < append->entry_count; i++) {
        letter.entry[i] = *lab_entry(&node->log, append->prev_log_index + 1 + i);
        letter.config = letter.entry[i].config;
    }
    if (m->type == RAFT_INSTALL_SNAPSHOT) letter.config = node->disk.snapshot.config;
    post(lab, &letter);
}

/* ---- The callbacks of raft_perform ---- */

struct performer {
    struct lab *lab;
    struct lab_node *node;
};

static bool persist_vote(void *owner) {
    struct performer *p = owner;
    if (power_fails(p->lab, p->node)) return false;
    p->node->disk.term = p->node->raft.term;
    p->node->disk.vote = p->node->raft.voted_for;
    return !power_fails(p->lab, p->node);
}

static void append_entries(void *owner, uint64_t from, const void *payload) {
    struct performer *p = owner;
    const struct lab_event *event = payload;
    const struct raft_append_entries *append = &event->message.append_entries;
    for (uint64_t i = from; i <= append->prev_log_index + append->entry_count; i++) {
        *lab_entry(&p->node->log, i) = event->entry[i - append->prev_log_index - 1];
        lab_judge_entry(p->lab, p->node, i);
    }
}

static void append_config(void *owner) {
    struct performer *p = owner;
    struct raft *raft = &p->node->raft;
    *lab_entry(&p->node->log, raft->last_index) =
        (struct lab_entry){.term = raft->term, .config = lab_config(p->lab, &raft->config)};
    lab_judge_entry(p->lab, p->node, raft->last_index);
}

static void start_timer(void *owner, enum raft_timer timer) {
    struct performer *p = owner;
    struct lab *lab = p->lab;
    uint64_t us = timer == RAFT_TIMER_ELECTION_TIMEOUT ? ELECTION_TIMEOUT
                                                       : rng_below(&lab->rng, ELECTION_JITTER);
    p->node->timer++;
    if (!lab->still)
        lab_after(lab, (uint64_t)((double)us * p->node->rate), LAB_TIMER, lab_id(lab, p->node));
}

static bool send_one(void *owner, const struct raft_message *m) {
    struct performer *p = owner;
    if (power_fails(p->lab, p->node)) return false;
    send(p->lab, p->node, m);
    return true;
}

/* A snapshot comes as one chunk, and takes its time to be stored. */
static void snapshot_chunk(void *owner, const void *payload) {
    struct performer *p = owner;
    const struct lab_event *event = payload;
    if (event->message.type != RAFT_INSTALL_SNAPSHOT) return;
    struct raft_message response = {.type = RAFT_INSTALL_SNAPSHOT_RESPONSE,
                                    .from = p->node->raft.self,
                                    .to = event->message.from,
                                    .term = p->node->raft.term};
    send(p->lab, p->node, &response);
    struct lab_event *later =
        lab_after(p->lab, 1 + rng_below(&p->lab->rng, 20 * MS), LAB_INSTALL, p->node->raft.self);
    later->message = event->message;
    later->config = event->config;
}

void lab_perform(struct lab *lab, struct lab_node *node, const struct raft_out *out,
                 const struct lab_event *event) {
    static const struct raft_callbacks callbacks = {.persist_vote = persist_vote,
                                                    .append_entries = append_entries,
                                                    .append_config = append_config,
                                                    .start_timer = start_timer,
                                                    .send = send_one,
                                                    .snapshot_chunk = snapshot_chunk};
    raft_perform(out, &callbacks, &(struct performer){lab, node}, event);
}

/* ---- After every event ---- */

/* How many entries from `first` on a message carries: a configuration is alone in its own. */
static uint32_t together(struct lab *lab, struct lab_node *node, uint64_t first, uint32_t max) {
    uint32_t count = 0, limit = 1 + (uint32_t)rng_below(&lab->rng, LAB_BATCH_MAX);
    if (lab->still) limit = LAB_BATCH_MAX;
    while (count < max && count < limit) {
        bool config = lab_entry(&node->log, first + count)->config;
        if (config && count) break;
        count++;
        if (config) break;
    }
    return count;
}

static void replicate(struct lab *lab, struct lab_node *node) {
    for (uint8_t id = 1; id <= lab->nodes; id++) {
        struct raft_message m;
        if (!lab->still && rng_below(&lab->rng, 8) == 0) continue; /* it can take no more now */
        while (raft_next_append(&node->raft, id, UINT64_MAX, &m)) {
            struct raft_append_entries *append = &m.append_entries;
            uint64_t first = append->prev_log_index + 1;
            append->entry_count = together(lab, node, first, append->entry_count);
            bool config = append->entry_count && lab_entry(&node->log, first)->config;
            append->entry_kind = config ? RAFT_CONFIG : RAFT_NORMAL;
            if (!append->entry_count) append->entries_term = 0;
            raft_append_sent(&node->raft, &m);
            send(lab, node, &m);
        }
    }
}

static void answer_reads(struct lab *lab, struct lab_node *node) {
    const struct raft *raft = &node->raft;
    uint32_t left = 0;
    for (uint32_t i = 0; i < node->reads; i++) {
        struct lab_read read = node->read[i];
        if (raft->role != RAFT_LEADER || raft->term != read.term) continue;
        if (raft->confirmed_round < read.round || raft->commit_index < read.index)
            node->read[left++] = read;
        else
            lab_judge_read(lab, node, read.index, read.floor, "a round");
    }
    node->reads = left;
}

void lab_advance(struct lab *lab, struct lab_node *node) {
    if (node->state != LAB_UP) return;
    lab_write(lab, node);
    replicate(lab, node);
    answer_reads(lab, node);
    lab_judge(lab, node);
}

/* ---- Events ---- */

static void receive(struct lab *lab, struct lab_node *node, const struct lab_event *event) {
    const struct raft_message *m = &event->message;
    bool is_config = m->type == RAFT_APPEND_ENTRIES && m->append_entries.entry_kind == RAFT_CONFIG;
    const struct raft_config *config = is_config ? &lab->config[event->config] : NULL;
    struct raft_out out = {0};
    char text[LAB_TEXT_MAX];
    if (lab->cut[m->from][m->to]) return;
    lab_note(lab, lab_id(lab, node), m->type * 31 + m->term, "from %u: %s", m->from,
             lab->trace ? lab_message_text(m, text) : "");
    raft_receive(&node->raft, m, config, &out);
    lab_perform(lab, node, &out, event);
}

static void install(struct lab *lab, struct lab_node *node, const struct lab_event *event) {
    struct raft *raft = &node->raft;
    const struct raft_install_snapshot *m = &event->message.install_snapshot;
    struct lab_snapshot snapshot = {m->last_included_index, m->last_included_term, event->config};
    struct raft_out out = {0};
    if (node->disk.write.busy) { /* one after the other */
        struct lab_event *later = lab_after(lab, MS, LAB_INSTALL, raft->self);
        later->message = event->message;
        later->config = event->config;
        return;
    }
    if (!raft_snapshot_installed(raft, snapshot.index, snapshot.term, &lab->config[snapshot.config],
                                 &out))
        return;
    lab_note(lab, raft->self, snapshot.index, "installs a snapshot up to %llu",
             (unsigned long long)snapshot.index);
    lab_store_snapshot(node, snapshot);
    *lab_entry(&node->log, snapshot.index) = (struct lab_entry){.term = snapshot.term};
    node->judged = snapshot.index;
    lab->result->installed++;
    lab_perform(lab, node, &out, NULL);
}

static void entries_durable(struct lab *lab, struct lab_node *node) {
    struct lab_write *write = &node->disk.write;
    struct raft_out out = {0};
    uint64_t last = write->first + write->count - 1;
    lab_written(node);
    lab_note(lab, node->raft.self, last, "has a durable log up to %llu", (unsigned long long)last);
    raft_entries_durable(&node->raft, last, write->entry[write->count - 1].term, &out);
    lab_perform(lab, node, &out, NULL);
}

void lab_fire_timer(struct lab *lab, struct lab_node *node) {
    struct raft_out out = {0};
    if (node->state != LAB_UP) return;
    raft_timer_fired(&node->raft, &out);
    lab_note(lab, node->raft.self, node->raft.role, "is woken by its timer");
    lab_perform(lab, node, &out, NULL);
    lab_advance(lab, node);
}

/* A snapshot for a member must reach the core's snapshot index. */
static void send_snapshots(struct lab *lab, struct lab_node *node) {
    for (uint8_t id = 1; id <= lab->nodes; id++) {
        const struct raft_peer *peer = raft_find_peer(&node->raft, id);
        if (!peer || id == node->raft.self || peer->mode != RAFT_SNAPSHOT) continue;
        if (node->disk.snapshot.index < node->raft.snapshot_index)
            lab_snapshot(lab, node, UINT64_MAX);
        struct raft_message m = {
            .type = RAFT_INSTALL_SNAPSHOT,
            .from = node->raft.self,
            .to = id,
            .term = node->raft.term,
            .install_snapshot = {.last_included_index = node->disk.snapshot.index,
                                 .last_included_term = node->disk.snapshot.term}};
        send(lab, node, &m);
    }
}

static uint64_t begin_round(struct lab *lab, struct lab_node *node) {
    uint64_t round = raft_heartbeat(&node->raft);
    if (round) node->round_at[round % LAB_ROUNDS] = lab->now;
    return round;
}

void lab_heartbeat(struct lab *lab, struct lab_node *node) {
    if (node->state != LAB_UP || !begin_round(lab, node)) return;
    send_snapshots(lab, node);
    lab_advance(lab, node);
}

void lab_handle(struct lab *lab, struct lab_event *pending) {
    struct lab_event event = *pending; /* handling it adds others */
    struct lab_node *node = &lab->node[event.node];
    lab->result->events++;
    if (event.type == LAB_START) {
        lab_start(lab, node);
        return;
    }
    if (node->state != LAB_UP) return;
    if (event.type != LAB_MESSAGE && event.incarnation != node->incarnation) return;
    switch (event.type) {
    case LAB_MESSAGE: receive(lab, node, &event); break;
    case LAB_INSTALL: install(lab, node, &event); break;
    case LAB_DURABLE: entries_durable(lab, node); break;
    case LAB_TIMER:
        if (event.timer == node->timer) lab_fire_timer(lab, node);
        return;
    case LAB_HEARTBEAT:
        lab_after(lab, (uint64_t)(HEARTBEAT_INTERVAL * node->rate), LAB_HEARTBEAT, event.node);
        lab_heartbeat(lab, node);
        return;
    default: return;
    }
    lab_advance(lab, node);
}

/* ---- Clients and operators ---- */

bool lab_propose(struct lab *lab, struct lab_node *node, uint32_t count) {
    if (node->state != LAB_UP) return false;
    uint64_t first = raft_propose(&node->raft, count);
    for (uint64_t i = first; first && i < first + count; i++) {
        *lab_entry(&node->log, i) =
            (struct lab_entry){.term = node->raft.term, .value = ++lab->values};
        lab_judge_entry(lab, node, i);
    }
    if (!first) return false;
    lab_note(lab, node->raft.self, first, "appends %u entries from %llu on", count,
             (unsigned long long)first);
    lab_advance(lab, node);
    return true;
}

enum raft_change lab_change(struct lab *lab, struct lab_node *node,
                            const struct raft_config *config) {
    enum raft_change result = raft_change_config(&node->raft, config, node->raft.confirmed_round);
    if (result != RAFT_CHANGE_DONE) return result;
    append_config(&(struct performer){lab, node});
    lab->result->changes++;
    char text[LAB_TEXT_MAX];
    for (uint32_t i = 0, at = 0; i < config->count; i++)
        at += (uint32_t)snprintf(text + at, sizeof text - at, " %u:%u", config->at[i].id,
                                 config->at[i].weight);
    lab_note(lab, node->raft.self, node->raft.last_index, "changes the members, by entry %llu:%s",
             (unsigned long long)node->raft.last_index, text);
    lab_advance(lab, node);
    return result;
}

void lab_transfer(struct lab *lab, struct lab_node *node, uint8_t to) {
    struct raft_out out = {0};
    if (node->state != LAB_UP || !raft_transfer_leadership(&node->raft, to, &out)) return;
    lab_note(lab, node->raft.self, to, "transfers leadership to %u", to);
    lab_perform(lab, node, &out, NULL);
    lab_advance(lab, node);
}

void lab_peer_down(struct lab *lab, struct lab_node *node, uint8_t id) {
    struct raft_out out = {0};
    if (node->state != LAB_UP) return;
    raft_peer_down(&node->raft, id, &out);
    lab_note(lab, node->raft.self, id, "is notified that %u has ended", id);
    lab_perform(lab, node, &out, NULL);
    lab_advance(lab, node);
}

void lab_snapshot(struct lab *lab, struct lab_node *node, uint64_t kept) {
    struct raft *raft = &node->raft;
    if (node->state != LAB_UP || raft->commit_index <= node->disk.snapshot.index) return;
    const struct raft_config *config =
        raft->config_index <= raft->commit_index ? &raft->config : &raft->previous_config;
    lab_store_snapshot(node, (struct lab_snapshot){raft->commit_index,
                                                   raft_term_at(raft, raft->commit_index),
                                                   lab_config(lab, config)});
    lab_note(lab, raft->self, raft->commit_index, "takes a snapshot up to %llu",
             (unsigned long long)raft->commit_index);
    if (kept < raft->commit_index) raft_compacted(raft, raft->commit_index - kept);
}

void lab_read(struct lab *lab, struct lab_node *node) {
    struct raft *raft = &node->raft;
    if (node->state != LAB_UP || !raft_may_serve_reads(raft) || node->reads == LAB_READS_MAX)
        return;
    node->read[node->reads++] = (struct lab_read){.round = begin_round(lab, node),
                                                  .index = raft_read_index(raft),
                                                  .term = raft->term,
                                                  .floor = lab->committed.last};
    lab_advance(lab, node);
}

bool lab_lease_read(struct lab *lab, struct lab_node *node) {
    const struct raft *raft = &node->raft;
    if (node->state != LAB_UP || !raft_has_lease(raft) || !raft->confirmed_round) return false;
    if (raft->round - raft->confirmed_round >= LAB_ROUNDS) return false;
    double elapsed =
        (double)(lab->now - node->round_at[raft->confirmed_round % LAB_ROUNDS]) / node->rate;
    if (elapsed > ELECTION_TIMEOUT - LEASE_MARGIN) return false;
    if (raft->commit_index < raft_read_index(raft)) return false;
    lab_judge_read(lab, node, raft->commit_index, lab->committed.last, "a lease");
    return true;
}

struct lab_node *lab_leader(struct lab *lab) {
    struct lab_node *leader = NULL;
    for (uint32_t id = 1; id <= lab->nodes; id++) {
        struct lab_node *node = &lab->node[id];
        if (node->state != LAB_UP || node->raft.role != RAFT_LEADER) continue;
        if (!leader || node->raft.term > leader->raft.term) leader = node;
    }
    return leader;
}
