/* Replication: how the log becomes the same on all members, and what of it is committed. */
#include <string.h>

#include "raft/internal.h"

/* ---- The leader's side ---- */

static void confirm_rounds(struct raft *raft) {
    for (uint32_t i = 0; i < raft->config.count; i++) {
        bool is_self = raft->config.at[i].id == raft->self;
        uint64_t round = is_self ? raft->round : raft->peer[i].acked_round;
        uint32_t set = 0;
        if (round <= raft->confirmed_round) continue;
        for (uint32_t j = 0; j < raft->config.count; j++)
            if (raft->config.at[j].id == raft->self || raft->peer[j].acked_round >= round)
                set |= 1u << j;
        if (raft_is_quorum(&raft->config, set)) raft->confirmed_round = round;
    }
}

uint64_t raft_heartbeat(struct raft *raft) {
    if (raft->role != RAFT_LEADER) return 0;
    raft->round++;
    for (uint32_t i = 0; i < raft->config.count; i++) {
        raft->peer[i].heartbeat_due = 1;
        raft->peer[i].probe_pending = 0; /* a lost probe is sent again */
    }
    confirm_rounds(raft);
    return raft->round;
}

uint64_t raft_propose(struct raft *raft, uint32_t count) {
    if (raft->role != RAFT_LEADER || raft->transferee || raft->last_index >= RAFT_INDEX_MAX)
        return 0;
    raft_extend(raft, count, raft->term);
    raft->verified_index = raft->last_index;
    return raft->last_index - count + 1;
}

/* The commit index if the members in the set `with` had the whole log.  An entry of an older term
 * is committed with the first entry of this term, never by being counted: a member may have a newer
 * one at its index (the paper's Figure 8). */
static uint64_t commit_index_with(const struct raft *raft, uint32_t with) {
    uint64_t commit_index = raft->commit_index;
    for (uint32_t i = 0; i < raft->config.count; i++) {
        uint64_t index = raft->peer[i].match_index;
        uint32_t set = with;
        if (index <= commit_index || index < raft->term_start_index) continue;
        for (uint32_t j = 0; j < raft->config.count; j++)
            if (raft->peer[j].match_index >= index) set |= 1u << j;
        if (raft_is_quorum(&raft->config, set)) commit_index = index;
    }
    return commit_index;
}

uint64_t raft_read_index(const struct raft *raft) {
    return raft->commit_index > raft->pledge ? raft->commit_index : raft->pledge;
}

uint64_t raft_peer_commit_index(const struct raft_peer *peer) {
    uint64_t by_pledge =
        peer->match_index < peer->sent_pledge ? peer->match_index : peer->sent_pledge;
    return by_pledge > peer->sent_commit_index ? by_pledge : peer->sent_commit_index;
}

/* Whether an index says more than a member knows, about entries that it was sent. */
static bool is_worth_sending(uint64_t known, uint64_t index, uint64_t next_index) {
    return known < index && known + 1 < next_index;
}

/* A member that needs a snapshot is asked with each heartbeat whether it still does. */
bool raft_next_append(const struct raft *raft, uint8_t id, uint64_t last, struct raft_message *m) {
    int slot = raft_member_slot(&raft->config, id);
    if (raft->role != RAFT_LEADER || slot < 0 || id == raft->self) return false;
    const struct raft_peer *peer = &raft->peer[slot];
    bool needs_snapshot = peer->mode == RAFT_SNAPSHOT;
    uint64_t next = needs_snapshot ? raft->snapshot_index + 1 : peer->next_index;
    if (last > raft->last_index) last = raft->last_index;
    bool entries = !needs_snapshot && next <= last;
    uint64_t pledge = commit_index_with(raft, 1u << slot);
    bool notify = peer->mode == RAFT_STREAM &&
                  (is_worth_sending(raft_peer_commit_index(peer), raft->commit_index, next) ||
                   is_worth_sending(peer->sent_pledge, pledge, next));
    if (peer->mode == RAFT_PROBE && peer->probe_pending) return false;
    if (!entries && !notify && !peer->heartbeat_due) return false;
    memset(m, 0, sizeof *m);
    m->type = RAFT_APPEND_ENTRIES;
    m->from = raft->self;
    m->to = id;
    m->term = raft->term;
    struct raft_append_entries *append = &m->append_entries;
    append->prev_log_index = next - 1;
    append->prev_log_term = raft_term_at(raft, next - 1);
    append->leader_commit = raft->commit_index;
    append->pledge = pledge;
    append->round = raft->round;
    append->lease = raft->leases_enabled && !raft->lease_revoked;
    append->commit_notification = !entries && !peer->heartbeat_due;
    append->last_log_index = peer->vote_withheld ? raft->last_index : 0;
    if (!entries) return true;
    uint64_t end = raft_run_end(raft, next), count = (end <= last ? end : last + 1) - next;
    append->entries_term = raft_term_at(raft, next);
    append->entry_count = count < UINT32_MAX ? (uint32_t)count : UINT32_MAX;
    return true;
}

void raft_append_sent(struct raft *raft, const struct raft_message *m) {
    const struct raft_append_entries *append = &m->append_entries;
    int slot = raft_member_slot(&raft->config, m->to);
    cv_assert(slot >= 0);
    struct raft_peer *peer = &raft->peer[slot];
    peer->heartbeat_due = 0;
    if (raft->pledge < append->pledge) raft->pledge = append->pledge;
    if (peer->mode == RAFT_PROBE) peer->probe_pending = 1;
    if (peer->mode != RAFT_STREAM) return;
    uint64_t last = append->prev_log_index + append->entry_count;
    cv_assert(append->prev_log_index + 1 == peer->next_index && last <= raft->last_index);
    peer->next_index = last + 1;
    peer->sent_commit_index = append->leader_commit < last ? append->leader_commit : last;
    peer->sent_pledge = append->pledge < last ? append->pledge : last;
}

/* What the member is known to have precedes it, or nothing: every log agrees there. */
bool raft_overtaking_heartbeat(struct raft *raft, uint8_t id, struct raft_message *m) {
    int slot = raft_member_slot(&raft->config, id);
    if (raft->role != RAFT_LEADER || slot < 0 || id == raft->self) return false;
    struct raft_peer *peer = &raft->peer[slot];
    if (peer->mode != RAFT_STREAM || !peer->heartbeat_due) return false;
    peer->heartbeat_due = 0;
    uint64_t known = peer->match_index >= raft->snapshot_index ? peer->match_index : 0;
    memset(m, 0, sizeof *m);
    m->type = RAFT_APPEND_ENTRIES;
    m->from = raft->self;
    m->to = id;
    m->term = raft->term;
    m->append_entries.prev_log_index = known;
    m->append_entries.prev_log_term = known ? raft_term_at(raft, known) : 0;
    m->append_entries.leader_commit = raft->commit_index;
    m->append_entries.round = raft->round;
    m->append_entries.lease = raft->leases_enabled && !raft->lease_revoked;
    return true;
}

static void probe_from(struct raft *raft, struct raft_peer *peer, uint64_t next) {
    peer->mode = RAFT_PROBE;
    peer->probe_pending = 0;
    peer->sent_commit_index = peer->sent_pledge = 0;
    peer->heartbeat_due = 1;
    peer->next_index = next > peer->match_index ? next : peer->match_index + 1;
    if (peer->next_index <= raft->snapshot_index) peer->mode = RAFT_SNAPSHOT;
}

/* The last index at which this log can agree with one that has `term` at `index`. */
static uint64_t last_agreement(const struct raft *raft, uint64_t index, uint64_t term) {
    if (index > raft->last_index) index = raft->last_index;
    while (index > raft->snapshot_index && raft_term_at(raft, index) > term)
        index = raft_run_begin(raft, index) - 1;
    return index;
}

static void advance_commit_index(struct raft *raft, struct raft_out *out) {
    uint64_t before = raft->commit_index;
    raft->commit_index = commit_index_with(raft, 0);
    if (raft->commit_index == before || raft->commit_index < raft->config_index) return;
    if (raft_has_vote(&raft->config, raft->self)) return;
    /* The committed configuration takes this leader's vote away: it steps down. */
    uint8_t transferee = raft_best_transferee(raft);
    if (transferee) raft_add_message(raft, out, RAFT_TIMEOUT_NOW, transferee);
    raft_become_follower(raft, raft->term, 0, out);
}

static void handle_rejection(struct raft *raft, struct raft_peer *peer,
                             const struct raft_append_entries_response *response) {
    bool late = peer->mode == RAFT_PROBE ? response->rejected_index + 1 != peer->next_index
                                         : response->rejected_index < peer->match_index;
    if (late || peer->mode == RAFT_SNAPSHOT || response->match_index >= response->rejected_index)
        return;
    uint64_t agreed = last_agreement(raft, response->match_index, response->match_term);
    probe_from(raft, peer, agreed + 1);
}

bool raft_handle_append_entries_response(struct raft *raft, const struct raft_message *m,
                                         struct raft_out *out) {
    const struct raft_append_entries_response *response = &m->append_entries_response;
    int slot = raft_member_slot(&raft->config, m->from);
    if (raft->role != RAFT_LEADER || slot < 0 || response->match_index > raft->last_index ||
        response->round > raft->round)
        return false;
    struct raft_peer *peer = &raft->peer[slot];
    peer->recently_active = 1;
    peer->vote_withheld = response->vote_withheld ? 1 : 0;
    if (response->round > peer->acked_round) peer->acked_round = response->round;
    confirm_rounds(raft);
    if (response->rejected) {
        handle_rejection(raft, peer, response);
        return true;
    }
    if (response->match_index > peer->match_index) peer->match_index = response->match_index;
    if (peer->next_index <= peer->match_index) peer->next_index = peer->match_index + 1;
    if (peer->next_index > raft->snapshot_index) {
        peer->mode = RAFT_STREAM;
        peer->probe_pending = 0;
    }
    advance_commit_index(raft, out);
    if (raft->transferee == m->from) raft_continue_transfer(raft, out);
    return true;
}

/* ---- The follower's side ---- */

static struct raft_append_entries_response *respond(struct raft *raft, struct raft_out *out) {
    struct raft_append_entries_response *response =
        &raft_add_message(raft, out, RAFT_APPEND_ENTRIES_RESPONSE, raft->leader)
             ->append_entries_response;
    response->match_index =
        raft->durable_index < raft->verified_index ? raft->durable_index : raft->verified_index;
    response->round = raft->round;
    response->vote_withheld = raft->vote_withheld;
    return response;
}

/* A pledge commits what is durable here; the rule of commit_index_with about older terms holds. */
static void redeem_pledge(struct raft *raft) {
    uint64_t index = raft->pledge < raft->durable_index ? raft->pledge : raft->durable_index;
    if (index > raft->verified_index) index = raft->verified_index;
    if (raft->commit_index < index && raft_term_at(raft, index) == raft->term)
        raft->commit_index = index;
}

/* This member has all that it can ever have acknowledged, so it may vote again. */
static void end_catch_up(struct raft *raft, struct raft_out *out) {
    uint64_t target = raft->catch_up_index;
    if (!target || raft->durable_index < target || raft->verified_index < target) return;
    raft->vote_withheld = 0;
    raft->catch_up_index = 0;
    out->persist_vote = true;
}

static void reject(struct raft *raft, const struct raft_append_entries *append,
                   struct raft_out *out) {
    struct raft_append_entries_response *response = respond(raft, out);
    response->rejected = 1;
    response->rejected_index = append->prev_log_index;
    response->match_index = last_agreement(raft, append->prev_log_index - 1, append->prev_log_term);
    if (response->match_index < raft->commit_index) response->match_index = raft->commit_index;
    response->match_term = raft_term_at(raft, response->match_index);
}

/* The log matching check: this log has the entry that comes before those of the message. */
static bool has_previous(const struct raft *raft, const struct raft_append_entries *append) {
    if (append->prev_log_index < raft->snapshot_index) return true; /* committed, so it matches */
    return append->prev_log_index <= raft->last_index &&
           raft_term_at(raft, append->prev_log_index) == append->prev_log_term;
}

static bool makes_sense(const struct raft *raft, const struct raft_message *m,
                        const struct raft_config *config) {
    const struct raft_append_entries *a = &m->append_entries;
    if (a->prev_log_index > RAFT_INDEX_MAX || a->round > RAFT_INDEX_MAX) return false;
    if (a->pledge > RAFT_INDEX_MAX || a->last_log_index > RAFT_INDEX_MAX) return false;
    if (a->prev_log_term > m->term || (a->prev_log_index == 0) != (a->prev_log_term == 0))
        return false;
    if (a->entry_count && (a->entries_term < a->prev_log_term || a->entries_term > m->term))
        return false;
    if (a->entry_count && !a->entries_term) return false;
    if (a->entry_kind > RAFT_CONFIG || (a->entry_kind == RAFT_CONFIG) != (config != NULL))
        return false;
    if (config && (a->entry_count != 1 || !raft_config_is_valid(config))) return false;
    if (raft->role == RAFT_LEADER || (raft->leader && raft->leader != m->from)) return false;
    return true;
}

/* The first of the message's entries that the log does not have, or the index after the last. */
static uint64_t first_missing(const struct raft *raft, const struct raft_append_entries *append) {
    uint64_t end = append->prev_log_index + append->entry_count, prev = append->prev_log_index;
    uint64_t first = (prev > raft->snapshot_index ? prev : raft->snapshot_index) + 1;
    while (first <= end && first <= raft->last_index &&
           raft_term_at(raft, first) == append->entries_term)
        first++;
    return first;
}

/* A conflicting entry is replaced, with all that follow it. */
static void append_entries(struct raft *raft, const struct raft_append_entries *append,
                           uint64_t first, const struct raft_config *config, struct raft_out *out) {
    uint64_t end = append->prev_log_index + append->entry_count;
    if (first <= raft->last_index) raft_truncate(raft, first - 1);
    raft_extend(raft, (uint32_t)(end - first + 1), append->entries_term);
    if (config) raft_adopt_config(raft, end, config);
    out->append_entries = true;
    out->append_from = first;
}

bool raft_handle_append_entries(struct raft *raft, const struct raft_message *m,
                                const struct raft_config *config, struct raft_out *out) {
    const struct raft_append_entries *append = &m->append_entries;
    if (!makes_sense(raft, m, config)) return false;
    if (append->prev_log_index <= raft->commit_index && !has_previous(raft, append)) {
        out->contradiction = true;
        return false;
    }
    bool new_round = append->round > raft->round;
    raft_leader_heard(raft, m, out);
    if (new_round) raft->round = append->round;
    raft->leader_leased = append->lease ? 1 : 0;
    if (!has_previous(raft, append)) {
        reject(raft, append, out);
        return true;
    }
    uint64_t end = append->prev_log_index + append->entry_count;
    uint64_t leader_commit = append->leader_commit, first = first_missing(raft, append);
    if (first <= end) {
        out->contradiction = first <= raft->commit_index;
        if (out->contradiction || append->entries_term < raft_term_at(raft, first - 1))
            return false;
        append_entries(raft, append, first, config, out);
    }
    if (raft->verified_index < end) raft->verified_index = end;
    if (leader_commit > raft->verified_index) leader_commit = raft->verified_index;
    if (raft->commit_index < leader_commit) raft->commit_index = leader_commit;
    if (raft->pledge < append->pledge) raft->pledge = append->pledge;
    redeem_pledge(raft);
    if (raft->vote_withheld && !raft->catch_up_index) raft->catch_up_index = append->last_log_index;
    end_catch_up(raft, out);
    /* New entries are acknowledged when they are durable; a round is responded to at once. */
    if (new_round || (!out->append_entries && !append->commit_notification)) respond(raft, out);
    return true;
}

/* A response tells a leader that did not know it that the snapshot is not needed any more. */
bool raft_handle_install_snapshot(struct raft *raft, const struct raft_message *m,
                                  struct raft_out *out) {
    if (raft->role == RAFT_LEADER || (raft->leader && raft->leader != m->from)) return false;
    if (m->install_snapshot.last_included_index > RAFT_INDEX_MAX ||
        m->install_snapshot.last_included_term > m->term)
        return false;
    raft_leader_heard(raft, m, out);
    out->snapshot_chunk = m->install_snapshot.last_included_index > raft->commit_index;
    if (!out->snapshot_chunk) respond(raft, out);
    return true;
}

bool raft_handle_install_snapshot_response(struct raft *raft, const struct raft_message *m,
                                           struct raft_out *out) {
    int slot = raft_member_slot(&raft->config, m->from);
    if (raft->role != RAFT_LEADER || slot < 0) return false;
    raft->peer[slot].recently_active = 1;
    out->snapshot_chunk = true;
    return true;
}

/* ---- Both sides ---- */

void raft_entries_durable(struct raft *raft, uint64_t index, uint64_t term, struct raft_out *out) {
    index = last_agreement(raft, index, term); /* its end may have been replaced meanwhile */
    if (index <= raft->durable_index || raft_term_at(raft, index) != term) return;
    raft->durable_index = index;
    if (raft->role == RAFT_LEADER) {
        int slot = raft_member_slot(&raft->config, raft->self);
        if (slot >= 0) raft->peer[slot].match_index = index;
        advance_commit_index(raft, out);
    } else {
        redeem_pledge(raft);
        end_catch_up(raft, out);
        if (raft->leader) respond(raft, out);
    }
    raft_check_invariants(raft);
}

void raft_peer_disconnected(struct raft *raft, uint8_t id) {
    int slot = raft_member_slot(&raft->config, id);
    if (raft->role != RAFT_LEADER || slot < 0) return;
    struct raft_peer *peer = &raft->peer[slot];
    if (peer->mode == RAFT_STREAM) probe_from(raft, peer, peer->match_index + 1);
    peer->probe_pending = 0;
}

void raft_peer_restarted(struct raft *raft, uint8_t id) {
    int slot = raft_member_slot(&raft->config, id);
    if (raft->role != RAFT_LEADER || slot < 0) return;
    struct raft_peer *peer = &raft->peer[slot];
    uint64_t next = peer->next_index;
    peer->match_index = 0;
    probe_from(raft, peer, next);
}

void raft_peer_connected(struct raft *raft, uint8_t id) {
    int slot = raft_member_slot(&raft->config, id);
    if (slot < 0) return;
    raft->peer[slot].heartbeat_due = 1;
    raft->peer[slot].probe_pending = 0;
}

/* ---- Snapshots ---- */

void raft_compacted(struct raft *raft, uint64_t index) {
    if (index <= raft->snapshot_index) return;
    cv_assert(index <= raft->commit_index);
    raft_set_snapshot_index(raft, index);
    if (raft->durable_index < index) raft->durable_index = index;
    for (uint32_t i = 0; i < raft->config.count; i++)
        if (raft->peer[i].next_index <= index) raft->peer[i].mode = RAFT_SNAPSHOT;
}

bool raft_snapshot_installed(struct raft *raft, uint64_t index, uint64_t term,
                             const struct raft_config *config, struct raft_out *out) {
    if (index <= raft->commit_index || raft->role == RAFT_LEADER) return false;
    bool in_log = index <= raft->last_index && raft_term_at(raft, index) == term;
    if (in_log) {
        raft->commit_index = index;
        raft_set_snapshot_index(raft, index);
        if (raft->durable_index < index) raft->durable_index = index;
    } else {
        raft_restore_snapshot(raft, index, term, config);
    }
    if (raft->config_index > index) {
        raft->previous_config = *config;
        raft->previous_config_index = index;
    } else {
        raft_adopt_config(raft, index, config);
    }
    if (raft->verified_index < index) raft->verified_index = index;
    if (raft->leader) respond(raft, out);
    raft_check_invariants(raft);
    return true;
}
