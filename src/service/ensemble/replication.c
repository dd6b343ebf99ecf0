/* What a leader sends to which member, and when; and what a follower forwards to its leader. */
#include "service/ensemble/codec.h"
#include "service/ensemble/core.h"
#include "service/ensemble/internal.h"

enum {
    UNSENT_MAX = 4 << 20, /* bytes that a link has not taken */
    APPEND_MAX = 1 << 20, /* bytes of entries in one message */
    PROBE_MAX = 64 << 10, /* bytes of entries in a probe: it may be sent in vain, and often */
    DEFERRAL_MS = 2,
    FORWARD_AGAIN_MS = 2000, /* proposals that are not applied by then are forwarded again ... */
    FORWARD_AGAIN_TIMES = 4, /* ... but the link may have so many times the time that it needs */
};

/* ---- Deferral ---- */

static void deferral_ended(uv_timer_t *timer) {
    struct ensemble *e = timer->data;
    uint64_t done = e->raft.durable_index;
    if (ensemble_leads(e) && e->raft.commit_index < done) done = e->raft.commit_index;
    e->deferral_over = done < e->deferred_index;
    ensemble_wake(e);
}

void replicate_defer(struct ensemble *e) {
    if (uv_is_active((uv_handle_t *)&e->deferral_timer)) return;
    e->deferred_index = e->raft.last_index;
    uv_update_time(e->loop);
    uv_timer_start(&e->deferral_timer, deferral_ended, DEFERRAL_MS, 0);
}

/* ---- The leader's side ---- */

static bool is_link_full(const struct ensemble *e, uint8_t id) {
    return link_unsent(e->links, id) > UNSENT_MAX || !link_takes_bulk(e->links, id);
}

/* By what it has not acknowledged. */
static bool is_behind(const struct ensemble *e, const struct raft_peer *peer) {
    uint64_t first = peer->match_index > e->log.after ? peer->match_index + 1 : e->log.after + 1;
    return peer->mode == RAFT_STREAM &&
           window_span(&e->log, first, peer->next_index - 1) > room_in_flight(e);
}

bool replicate_is_quorum_with(const struct ensemble *e, uint8_t id) {
    const struct raft_config *config = &e->raft.config;
    int self = raft_member_slot(config, e->raft.self), other = raft_member_slot(config, id);
    return self >= 0 && other >= 0 && e->peer[id].up &&
           raft_is_quorum(config, 1u << self | 1u << other);
}

/* Up to which entry a member gets them now.  What the clients of one other server propose is
 * committed when that server has it, if the two are a quorum: the other members get it afterwards,
 * in one message with the commit index, and nobody waits for their disks.  They get it within the
 * deferral all the same. */
static uint64_t last_index_for(const struct ensemble *e, uint8_t id) {
    const struct raft_peer *peer = raft_find_peer(&e->raft, id);
    bool at_once = e->urgent_index >= peer->next_index || e->peer[id].index >= peer->next_index;
    if (peer->mode != RAFT_STREAM || peer->heartbeat_due || e->deferral_over || at_once)
        return e->raft.last_index;
    return e->raft.commit_index;
}

/* Whether no client of that server waits for the message. */
static bool can_wait(const struct ensemble *e, const struct raft_message *m, bool urgent_only) {
    const struct raft_append_entries *append = &m->append_entries;
    uint64_t known = raft_peer_commit_index(raft_find_peer(&e->raft, m->to));
    if (known < e->peer[m->to].index) return false;
    if (append->entry_count)
        return urgent_only && append->prev_log_index + append->entry_count <= e->raft.commit_index;
    return append->commit_notification && (urgent_only || known >= e->raft.commit_index);
}

/* `last`: up to which entry the core was asked. */
static void send_append(struct ensemble *e, struct raft_message *m, uint64_t last) {
    struct raft_append_entries *append = &m->append_entries;
    struct raft_batch batch = {0};
    if (append->entry_count) {
        bool probes = raft_find_peer(&e->raft, m->to)->mode == RAFT_PROBE;
        size_t max = probes ? PROBE_MAX : APPEND_MAX;
        uint64_t first = append->prev_log_index + 1;
        size_t bytes = window_span(&e->log, first, append->prev_log_index + append->entry_count);
        window_read(&e->log, first, bytes < max ? bytes : max, &batch);
        if (probes && batch.size > PROBE_MAX) batch = (struct raft_batch){0};
        append->entry_kind = (uint8_t)batch.kind;
        append->entry_count = batch.count;
    }
    peers_send(e, m, batch.bytes, batch.size);
    core_append_sent(e, m, last);
}

static void replicate_to(struct ensemble *e, uint8_t id, bool urgent_only) {
    const struct raft_peer *peer = raft_find_peer(&e->raft, id);
    struct raft_message m;
    uint64_t last;
    /* However much a member has still to take or to acknowledge: it must not miss its leader, which
     * it would tell no more of what is durable.  Where nothing is overtaken, the heartbeat comes
     * after all that was sent, and a member that has lost some of that says so. */
    bool overtakes = link_bulk_waits(e->links, id) || is_link_full(e, id);
    if (overtakes && core_overtaking_heartbeat(e, id, &m)) peers_send(e, &m, NULL, 0);
    while (!is_link_full(e, id)) {
        bool behind = is_behind(e, peer);
        if (behind && !peer->heartbeat_due) break;
        last = behind ? peer->next_index - 1 : last_index_for(e, id);
        if (!raft_next_append(&e->raft, id, last, &m)) break;
        if (can_wait(e, &m, urgent_only)) return;
        send_append(e, &m, last);
    }
    if (peer->next_index <= e->raft.last_index && last_index_for(e, id) < e->raft.last_index)
        replicate_defer(e);
}

void replicate(struct ensemble *e, bool urgent_only) {
    const struct raft_config *config = &e->raft.config;
    if (!e->links || !ensemble_leads(e)) return;
    for (uint32_t i = 0; i < config->count; i++)
        if (e->peer[config->at[i].id].up) replicate_to(e, config->at[i].id, urgent_only);
}

/* ---- The outbox ---- */

bool forward_is_possible(const struct ensemble *e) {
    const struct outbox *o = &e->outbox;
    size_t under_way = window_span(&o->entries, outbox_applied(o) + 1, e->forwarded_sequence);
    return under_way < FORWARDED_MAX && e->links && e->peer[e->raft.leader].up &&
           link_unsent(e->links, e->raft.leader) <= UNSENT_MAX &&
           link_takes_bulk(e->links, e->raft.leader);
}

/* False: the leader can take no more now. */
static bool forward(struct ensemble *e, const struct raft_batch *batch) {
    uint16_t version;
    if (!forward_is_possible(e)) return false;
    struct bytes *out = peers_begin(e, e->raft.leader, FRAME_TYPE_forward, LINK_BULK, &version);
    if (!out) return false;
    codec_write_forward(out, version,
                        &(struct frame_forward){e->raft.term, outbox_applied(&e->outbox)});
    bytes_add(out, batch->bytes, batch->size);
    peers_end(e, e->raft.leader);
    return true;
}

static void append_batch(struct ensemble *e, const struct raft_batch *batch) {
    struct raft_entry entry;
    for (size_t at = 0; raft_next(batch, &at, &entry); e->forwarded_sequence++) {
        if (!ensemble_append(e, entry.bytes, entry.size)) return;
        e->urgent_index = e->raft.last_index;
    }
}

/* What was forwarded may have been lost with a leader.  What is still on its way was not. */
static bool is_overdue(const struct ensemble *e) {
    uint8_t leader = e->raft.leader;
    if (ensemble_leads(e) || !e->links) return false;
    uint64_t ms = (e->clock->monotonic_us - e->forwarded_us) / 1000;
    if (ms <= FORWARD_AGAIN_MS || link_bulk_waits(e->links, leader)) return false;
    uint64_t needed = link_duration_ms(e->links, leader, window_bytes(&e->outbox.entries));
    return ms > FORWARD_AGAIN_MS + FORWARD_AGAIN_TIMES * needed;
}

void forward_outbox(struct ensemble *e) {
    struct raft_batch batch;
    const struct outbox *o = &e->outbox;
    bool overdue = is_overdue(e);
    /* What an earlier leader was given may be applied before it is forwarded again. */
    bool passed = e->forwarded_sequence < outbox_applied(o);
    if (e->forwarded_term != e->raft.term || overdue || passed)
        e->forwarded_sequence = outbox_applied(o);
    while (e->raft.leader && e->forwarded_sequence < outbox_last(o)) {
        if (e->forwarded_sequence == outbox_applied(o)) e->forwarded_us = e->clock->monotonic_us;
        e->forwarded_term = e->raft.term;
        window_read(&o->entries, e->forwarded_sequence + 1, FORWARDED_MAX, &batch);
        if (!ensemble_leads(e)) {
            if (!forward(e, &batch)) return;
            e->forwarded_sequence += batch.count;
        } else {
            if (!ensemble_can_append(e)) return;
            append_batch(e, &batch);
        }
    }
}
