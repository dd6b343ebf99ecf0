/* The owner of a core, as a server is one: it carries out what the core wants, in the order that
 * raft.h gives.  Between any two effects the power may fail. */
#include <string.h>

#include "raftlab/lab.h"

/* ---- Opening ---- */

void lab_open(struct lab *lab, uint64_t seed, const struct raft_config *config, FILE *trace,
              struct lab_result *result) {
    memset(lab, 0, sizeof *lab);
    memset(result, 0, sizeof *result);
    rng_seed(&lab->rng, seed);
    lab->trace = trace;
    lab->result = result;
    lab->chance.delay_us = MS;
    *lab_entry(&lab->decided, 0) = (struct lab_entry){0};
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
    free(lab->decided.at);
    free(lab->decided_in);
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
    if (rng_chance(&lab->rng, lab->chance.loss)) return;
    for (int copies = 1 + rng_chance(&lab->rng, lab->chance.twice); copies > 0; copies--) {
        uint64_t us = 1 + rng_below(&lab->rng, 2 * lab->chance.delay_us);
        if (!lab->still && rng_below(&lab->rng, 50) == 0) us += rng_below(&lab->rng, 200 * MS);
        struct lab_event *event = lab_after(lab, us, LAB_MESSAGE, m->to);
        uint32_t life = event->life, timer = event->timer;
        *event = *letter;
        event->type = LAB_MESSAGE;
        event->node = m->to;
        event->life = life;
        event->timer = timer;
    }
}

static void send(struct lab *lab, struct lab_node *node, const struct raft_message *m) {
    struct lab_event letter = {.message = *m};
    lab_judge_message(lab, node, m);
    for (uint32_t i = 0; m->type == RAFT_APPEND && i < m->count; i++) {
        letter.entry[i] = *lab_entry(&node->log, m->index + 1 + i);
        letter.config = letter.entry[i].config;
    }
    if (m->type == RAFT_CHUNK) letter.config = node->disk.snapshot.config;
    post(lab, &letter);
}

static void take_entries(struct lab *lab, struct lab_node *node, uint64_t first,
                         const struct lab_event *event) {
    const struct raft_message *m = &event->message;
    for (uint64_t i = first; i <= m->index + m->count; i++) {
        *lab_entry(&node->log, i) = event->entry[i - m->index - 1];
        lab_judge_entry(lab, node, i);
    }
}

static void add_config(struct lab *lab, struct lab_node *node) {
    struct raft *raft = &node->raft;
    *lab_entry(&node->log, raft->last) =
        (struct lab_entry){.term = raft->term, .config = lab_config(lab, &raft->config)};
    lab_judge_entry(lab, node, raft->last);
}

static void set_timer(struct lab *lab, struct lab_node *node, uint8_t wait) {
    uint64_t us = wait == RAFT_WAIT_SILENCE ? SILENCE : rng_below(&lab->rng, TURN);
    node->timer++;
    if (!lab->still)
        lab_after(lab, (uint64_t)((double)us * node->rate), LAB_TIMER, lab_id(lab, node));
}

/* A snapshot comes as one chunk, and takes its time to be stored. */
static void take_chunk(struct lab *lab, struct lab_node *node, const struct lab_event *event) {
    if (event->message.type != RAFT_CHUNK) return;
    struct raft_message answer = {.type = RAFT_CHUNKED,
                                  .from = node->raft.self,
                                  .to = event->message.from,
                                  .term = node->raft.term};
    send(lab, node, &answer);
    struct lab_event *later =
        lab_after(lab, 1 + rng_below(&lab->rng, 20 * MS), LAB_INSTALL, node->raft.self);
    later->message = event->message;
    later->config = event->config;
}

void lab_carry_out(struct lab *lab, struct lab_node *node, const struct raft_out *out,
                   const struct lab_event *event) {
    if (out->save_vote) {
        if (power_fails(lab, node)) return;
        node->disk.term = node->raft.term;
        node->disk.vote = node->raft.vote;
        if (power_fails(lab, node)) return;
    }
    if (out->take) take_entries(lab, node, out->take_first, event);
    if (out->add_config) add_config(lab, node);
    if (out->wait) set_timer(lab, node, out->wait);
    if (out->chunk) take_chunk(lab, node, event);
    for (uint32_t i = 0; i < out->messages; i++) {
        if (power_fails(lab, node)) return;
        send(lab, node, &out->message[i]);
    }
}

/* ---- After every event ---- */

/* How many entries from one on a message may carry: a config is alone in its own. */
static uint32_t together(struct lab *lab, struct lab_node *node, uint64_t first, uint32_t most) {
    uint32_t count = 0, limit = 1 + (uint32_t)rng_below(&lab->rng, LAB_BATCH_MAX);
    if (lab->still) limit = LAB_BATCH_MAX;
    while (count < most && count < limit) {
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
        while (raft_append_for(&node->raft, id, UINT64_MAX, &m)) {
            m.count = together(lab, node, m.index + 1, m.count);
            m.kind =
                m.count && lab_entry(&node->log, m.index + 1)->config ? RAFT_CONFIG : RAFT_NORMAL;
            if (!m.count) m.entries_term = 0;
            raft_sent(&node->raft, &m);
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
        if (raft->confirmed < read.round || raft->committed < read.index)
            node->read[left++] = read;
        else
            lab_judge_read(lab, node, read.index, read.floor, "a round");
    }
    node->reads = left;
}

void lab_turn(struct lab *lab, struct lab_node *node) {
    if (node->state != LAB_UP) return;
    lab_write(lab, node);
    replicate(lab, node);
    answer_reads(lab, node);
    lab_judge(lab, node);
}

/* ---- What may happen ---- */

static void receive(struct lab *lab, struct lab_node *node, const struct lab_event *event) {
    const struct raft_message *m = &event->message;
    const struct raft_config *config = m->kind == RAFT_CONFIG ? &lab->config[event->config] : NULL;
    struct raft_out out = {0};
    if (lab->cut[m->from][m->to]) return;
    lab_note(lab, lab_id(lab, node), m->type * 31 + m->index * 7 + m->term,
             "from %u: %s%s of term %llu, flags %u, index %llu (term %llu), %u of term %llu, "
             "other %llu, pledge %llu, round %llu",
             m->from,
             (const char *[]){"?", "vote", "voted", "append", "appended", "chunk", "chunked",
                              "campaign"}[m->type],
             m->kind ? " (config)" : "", (unsigned long long)m->term, m->flags,
             (unsigned long long)m->index, (unsigned long long)m->index_term, m->count,
             (unsigned long long)m->entries_term, (unsigned long long)m->other,
             (unsigned long long)m->pledge, (unsigned long long)m->round);
    raft_receive(&node->raft, m, config, &out);
    lab_carry_out(lab, node, &out, event);
}

static void install(struct lab *lab, struct lab_node *node, const struct lab_event *event) {
    struct raft *raft = &node->raft;
    struct lab_snapshot snapshot = {event->message.index, event->message.index_term, event->config};
    struct raft_out out = {0};
    if (node->disk.write.busy) { /* one after the other */
        struct lab_event *later = lab_after(lab, MS, LAB_INSTALL, raft->self);
        later->message = event->message;
        later->config = event->config;
        return;
    }
    if (!raft_installed(raft, snapshot.index, snapshot.term, &lab->config[snapshot.config], &out))
        return;
    lab_note(lab, raft->self, snapshot.index, "installs a snapshot up to %llu",
             (unsigned long long)snapshot.index);
    lab_store_snapshot(node, snapshot);
    *lab_entry(&node->log, snapshot.index) = (struct lab_entry){.term = snapshot.term};
    node->judged = snapshot.index;
    lab->result->installed++;
    lab_carry_out(lab, node, &out, NULL);
}

static void saved(struct lab *lab, struct lab_node *node) {
    struct lab_write *write = &node->disk.write;
    struct raft_out out = {0};
    uint64_t last = write->first + write->count - 1;
    lab_written(node);
    lab_note(lab, node->raft.self, last, "has saved its log up to %llu", (unsigned long long)last);
    raft_saved(&node->raft, last, write->entry[write->count - 1].term, &out);
    lab_carry_out(lab, node, &out, NULL);
}

void lab_wake(struct lab *lab, struct lab_node *node) {
    struct raft_out out = {0};
    if (node->state != LAB_UP) return;
    raft_waited(&node->raft, &out);
    lab_note(lab, node->raft.self, node->raft.role, "has waited");
    lab_carry_out(lab, node, &out, NULL);
    lab_turn(lab, node);
}

/* Members that need a snapshot are sent one, which must reach the base. */
static void send_snapshots(struct lab *lab, struct lab_node *node) {
    for (uint8_t id = 1; id <= lab->nodes; id++) {
        const struct raft_peer *peer = raft_peer(&node->raft, id);
        if (!peer || id == node->raft.self || peer->mode != RAFT_SNAPSHOT) continue;
        if (node->disk.snapshot.index < node->raft.base) lab_snapshot(lab, node, UINT64_MAX);
        struct raft_message m = {.type = RAFT_CHUNK,
                                 .from = node->raft.self,
                                 .to = id,
                                 .term = node->raft.term,
                                 .index = node->disk.snapshot.index,
                                 .index_term = node->disk.snapshot.term};
        send(lab, node, &m);
    }
}

static uint64_t begin_round(struct lab *lab, struct lab_node *node) {
    uint64_t round = raft_beat(&node->raft);
    if (round) node->round_at[round % LAB_ROUNDS] = lab->now;
    return round;
}

void lab_beat(struct lab *lab, struct lab_node *node) {
    if (node->state != LAB_UP || !begin_round(lab, node)) return;
    send_snapshots(lab, node);
    lab_turn(lab, node);
}

void lab_handle(struct lab *lab, struct lab_event *pending) {
    struct lab_event event = *pending; /* what happens adds others */
    struct lab_node *node = &lab->node[event.node];
    lab->result->events++;
    if (event.type == LAB_START) {
        lab_start(lab, node);
        return;
    }
    if (node->state != LAB_UP) return;
    if (event.type != LAB_MESSAGE && event.life != node->life) return;
    switch (event.type) {
    case LAB_MESSAGE: receive(lab, node, &event); break;
    case LAB_INSTALL: install(lab, node, &event); break;
    case LAB_SAVED: saved(lab, node); break;
    case LAB_TIMER:
        if (event.timer == node->timer) lab_wake(lab, node);
        return;
    case LAB_BEAT:
        lab_after(lab, (uint64_t)(BEAT * node->rate), LAB_BEAT, event.node);
        lab_beat(lab, node);
        return;
    default: return;
    }
    lab_turn(lab, node);
}

/* ---- What clients and people want ---- */

bool lab_propose(struct lab *lab, struct lab_node *node, uint32_t count) {
    if (node->state != LAB_UP) return false;
    uint64_t first = raft_propose(&node->raft, count);
    for (uint64_t i = first; first && i < first + count; i++) {
        *lab_entry(&node->log, i) =
            (struct lab_entry){.term = node->raft.term, .value = ++lab->values};
        lab_judge_entry(lab, node, i);
    }
    if (!first) return false;
    lab_note(lab, node->raft.self, first, "is given %u entries from %llu on", count,
             (unsigned long long)first);
    lab_turn(lab, node);
    return true;
}

enum raft_change lab_change(struct lab *lab, struct lab_node *node,
                            const struct raft_config *config) {
    enum raft_change result = raft_change(&node->raft, config);
    if (result != RAFT_CHANGED) return result;
    add_config(lab, node);
    lab->result->changes++;
    char text[LAB_TEXT_MAX];
    for (uint32_t i = 0, at = 0; i < config->count; i++)
        at += (uint32_t)snprintf(text + at, sizeof text - at, " %u:%u", config->at[i].id,
                                 config->at[i].weight);
    lab_note(lab, node->raft.self, node->raft.last, "changes the members, by entry %llu:%s",
             (unsigned long long)node->raft.last, text);
    lab_turn(lab, node);
    return result;
}

void lab_transfer(struct lab *lab, struct lab_node *node, uint8_t to) {
    struct raft_out out = {0};
    if (node->state != LAB_UP || !raft_transfer(&node->raft, to, &out)) return;
    lab_note(lab, node->raft.self, to, "hands over to %u", to);
    lab_carry_out(lab, node, &out, NULL);
    lab_turn(lab, node);
}

void lab_gone(struct lab *lab, struct lab_node *node, uint8_t id) {
    struct raft_out out = {0};
    if (node->state != LAB_UP) return;
    raft_gone(&node->raft, id, &out);
    lab_note(lab, node->raft.self, id, "is told that %u has ended", id);
    lab_carry_out(lab, node, &out, NULL);
    lab_turn(lab, node);
}

void lab_snapshot(struct lab *lab, struct lab_node *node, uint64_t kept) {
    struct raft *raft = &node->raft;
    if (node->state != LAB_UP || raft->committed <= node->disk.snapshot.index) return;
    const struct raft_config *config =
        raft->config_index <= raft->committed ? &raft->config : &raft->former;
    lab_store_snapshot(node,
                       (struct lab_snapshot){raft->committed, raft_term_of(raft, raft->committed),
                                             lab_config(lab, config)});
    lab_note(lab, raft->self, raft->committed, "takes a snapshot up to %llu",
             (unsigned long long)raft->committed);
    if (kept < raft->committed) raft_trimmed(raft, raft->committed - kept);
}

void lab_read(struct lab *lab, struct lab_node *node) {
    struct raft *raft = &node->raft;
    if (node->state != LAB_UP || !raft_may_read(raft) || node->reads == LAB_READS_MAX) return;
    node->read[node->reads++] = (struct lab_read){.round = begin_round(lab, node),
                                                  .index = raft_read_index(raft),
                                                  .term = raft->term,
                                                  .floor = lab->decided.last};
    lab_turn(lab, node);
}

bool lab_lease_read(struct lab *lab, struct lab_node *node) {
    const struct raft *raft = &node->raft;
    if (node->state != LAB_UP || !raft_has_lease(raft) || !raft->confirmed) return false;
    if (raft->round - raft->confirmed >= LAB_ROUNDS) return false;
    double elapsed = (double)(lab->now - node->round_at[raft->confirmed % LAB_ROUNDS]) / node->rate;
    if (elapsed > SILENCE - MARGIN) return false;
    if (raft->committed < raft_read_index(raft)) return false;
    lab_judge_read(lab, node, raft->committed, lab->decided.last, "a lease");
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
