/* Elections.
 *
 * A live leader is heard within the election timeout.  Until that has passed no member votes
 * against it, so the leader may rely on its followers (check-quorum, leases), unless it transferred
 * leadership itself.  After the timeout and a short random jitter a member asks for pre-votes:
 * nothing changes by them, so a member that comes back from a partition disturbs nobody.  If a
 * quorum would vote for it, it becomes a candidate in a new term. */
#include "raft/internal.h"

static uint32_t granted_votes(const struct raft *raft) {
    uint32_t set = 0;
    for (uint32_t i = 0; i < raft->config.count; i++)
        if (raft->peer[i].vote == RAFT_VOTE_GRANTED) set |= 1u << i;
    return set;
}

static void reset_peers(struct raft *raft) {
    for (uint32_t i = 0; i < raft->config.count; i++)
        raft->peer[i] = (struct raft_peer){.next_index = raft->last_index + 1};
}

/* What a leader of an older term said does not bind the next one. */
static void forget_leader(struct raft *raft) {
    raft->verified_index = raft->commit_index; /* every leader's log has what is committed */
    raft->round = raft->pledge = raft->catch_up_index = 0;
}

void raft_become_follower(struct raft *raft, uint64_t term, uint8_t leader, struct raft_out *out) {
    if (term > raft->term || raft->role == RAFT_LEADER) forget_leader(raft);
    if (term > raft->term) {
        raft->term = term;
        raft->voted_for = 0;
        out->persist_vote = true;
    }
    if (raft->role == RAFT_LEADER) {
        raft->leader_timed_out = 1;
        out->timer = RAFT_TIMER_ELECTION_JITTER;
    }
    raft->role = RAFT_FOLLOWER;
    raft->leader = leader;
    raft->term_start_index = raft->confirmed_round = 0;
    raft->transferee = raft->lease_revoked = 0;
    reset_peers(raft);
}

void raft_leader_heard(struct raft *raft, const struct raft_message *m, struct raft_out *out) {
    if (raft->role != RAFT_FOLLOWER) raft_become_follower(raft, raft->term, m->from, out);
    raft->leader = m->from;
    raft->leader_timed_out = 0;
    out->timer = RAFT_TIMER_ELECTION_TIMEOUT;
}

void raft_peer_alive(struct raft *raft, uint8_t id, struct raft_out *out) {
    int slot = raft_member_slot(&raft->config, id);
    if (raft->role == RAFT_LEADER && slot >= 0) raft->peer[slot].recently_active = 1;
    if (raft->role == RAFT_FOLLOWER && raft->leader == id && !raft->leader_timed_out)
        out->timer = RAFT_TIMER_ELECTION_TIMEOUT;
}

/* ---- Candidates ---- */

static void request_votes(struct raft *raft, bool pre_vote, bool leadership_transfer,
                          struct raft_out *out) {
    reset_peers(raft);
    for (uint32_t i = 0; i < raft->config.count; i++) {
        const struct raft_member *member = &raft->config.at[i];
        if (member->id == raft->self) raft->peer[i].vote = RAFT_VOTE_GRANTED;
        if (member->id == raft->self || !member->weight) continue;
        struct raft_request_vote *request =
            &raft_add_message(raft, out, RAFT_REQUEST_VOTE, member->id)->request_vote;
        request->last_log_index = raft->last_index;
        request->last_log_term = raft_term_at(raft, raft->last_index);
        request->pre_vote = pre_vote;
        request->leadership_transfer = leadership_transfer;
    }
    out->timer = RAFT_TIMER_ELECTION_JITTER;
}

static void become_leader(struct raft *raft, struct raft_out *out) {
    raft_extend(raft, 1, raft->term);
    raft->role = RAFT_LEADER;
    raft->leader = raft->self;
    raft->leader_timed_out = raft->leader_leased = 0;
    raft->term_start_index = raft->last_index;
    raft->verified_index = raft->last_index;
    raft->confirmed_round = 0;
    reset_peers(raft);
    for (uint32_t i = 0; i < raft->config.count; i++) {
        raft->peer[i].next_index = raft->last_index;
        raft->peer[i].heartbeat_due = 1;
        if (raft->config.at[i].id == raft->self) raft->peer[i].match_index = raft->durable_index;
    }
    out->append_config = true;
    out->timer = RAFT_TIMER_ELECTION_TIMEOUT;
}

void raft_become_candidate(struct raft *raft, bool leadership_transfer, struct raft_out *out) {
    raft->role = RAFT_CANDIDATE;
    raft->leader = 0;
    raft->term++;
    raft->voted_for = raft->self;
    forget_leader(raft);
    out->persist_vote = true;
    out->messages = 0;
    request_votes(raft, false, leadership_transfer, out);
    if (raft_is_quorum(&raft->config, granted_votes(raft))) become_leader(raft, out);
}

static void become_pre_candidate(struct raft *raft, struct raft_out *out) {
    raft->role = RAFT_PRE_CANDIDATE;
    raft->leader = 0;
    request_votes(raft, true, false, out);
    if (raft_is_quorum(&raft->config, granted_votes(raft))) raft_become_candidate(raft, false, out);
}

/* ---- Votes ---- */

static bool is_up_to_date(const struct raft *raft, const struct raft_request_vote *candidate) {
    uint64_t own_term = raft_term_at(raft, raft->last_index);
    return candidate->last_log_term > own_term ||
           (candidate->last_log_term == own_term && candidate->last_log_index >= raft->last_index);
}

/* A member without a configuration is new, or has lost its data and with it perhaps a vote: it
 * grants none. */
void raft_handle_request_vote(struct raft *raft, const struct raft_message *m,
                              struct raft_out *out) {
    const struct raft_request_vote *request = &m->request_vote;
    bool may_vote = raft->config.count && !raft->vote_withheld &&
                    (raft->leader_timed_out || request->leadership_transfer);
    if (m->term > raft->term && may_vote) raft_become_follower(raft, m->term, 0, out);
    bool granted = may_vote && m->term == raft->term && is_up_to_date(raft, request) &&
                   (request->pre_vote ? raft->role != RAFT_LEADER
                                      : !raft->voted_for || raft->voted_for == m->from);
    if (granted && !request->pre_vote) {
        raft->voted_for = m->from;
        out->persist_vote = true;
        out->timer = RAFT_TIMER_ELECTION_TIMEOUT; /* the candidate gets its time to lead */
    }
    struct raft_request_vote_response *response =
        &raft_add_message(raft, out, RAFT_REQUEST_VOTE_RESPONSE, m->from)->request_vote_response;
    response->vote_granted = granted;
    response->pre_vote = request->pre_vote;
}

void raft_handle_request_vote_response(struct raft *raft, const struct raft_message *m,
                                       struct raft_out *out) {
    const struct raft_request_vote_response *response = &m->request_vote_response;
    int slot = raft_member_slot(&raft->config, m->from);
    if (slot < 0 || raft->role != (response->pre_vote ? RAFT_PRE_CANDIDATE : RAFT_CANDIDATE))
        return;
    raft->peer[slot].vote = response->vote_granted ? RAFT_VOTE_GRANTED : RAFT_VOTE_DENIED;
    if (!raft_is_quorum(&raft->config, granted_votes(raft))) return;
    if (response->pre_vote)
        raft_become_candidate(raft, false, out);
    else
        become_leader(raft, out);
}

/* ---- Time ---- */

static bool is_quorum_active(struct raft *raft) {
    uint32_t set = 0;
    for (uint32_t i = 0; i < raft->config.count; i++) {
        if (raft->peer[i].recently_active || raft->config.at[i].id == raft->self) set |= 1u << i;
        raft->peer[i].recently_active = 0;
    }
    return raft_is_quorum(&raft->config, set);
}

/* A member that loses its vote by an entry that is not committed may be the only one that has this
 * entry, and is needed to commit it. */
static bool may_become_candidate(const struct raft *raft) {
    return !raft->vote_withheld && (raft_has_vote(&raft->config, raft->self) ||
                                    (raft->config_index > raft->commit_index &&
                                     raft_has_vote(&raft->previous_config, raft->self)));
}

void raft_timer_fired(struct raft *raft, struct raft_out *out) {
    if (raft->role == RAFT_LEADER) {
        raft->transferee = 0; /* it has had its time */
        out->timer = RAFT_TIMER_ELECTION_TIMEOUT;
        if (!is_quorum_active(raft)) raft_become_follower(raft, raft->term, 0, out);
    } else if (!raft->leader_timed_out) {
        raft->leader_timed_out = 1;
        raft->leader = 0;
        out->timer = RAFT_TIMER_ELECTION_JITTER;
    } else if (may_become_candidate(raft)) {
        become_pre_candidate(raft, out);
    } else {
        out->timer = RAFT_TIMER_ELECTION_TIMEOUT;
    }
    raft_check_invariants(raft);
}

/* A leader whose process has ended relies on nothing any more.  With a lease that is not taken for
 * granted: a leader that only seems down from here still serves reads by it. */
void raft_peer_down(struct raft *raft, uint8_t id, struct raft_out *out) {
    if (raft->role != RAFT_FOLLOWER || raft->leader != id || raft->leader_leased) return;
    raft->leader = 0;
    raft->leader_timed_out = 1;
    out->timer = RAFT_TIMER_ELECTION_JITTER;
    raft_check_invariants(raft);
}

/* ---- Leadership transfer ---- */

uint8_t raft_best_transferee(const struct raft *raft) {
    int best = -1;
    for (uint32_t i = 0; i < raft->config.count; i++) {
        if (raft->config.at[i].id == raft->self || !raft->config.at[i].weight) continue;
        if (raft->peer[i].vote_withheld) continue;
        if (best < 0 || raft->peer[i].match_index > raft->peer[best].match_index) best = (int)i;
    }
    return best < 0 ? 0 : raft->config.at[best].id;
}

void raft_continue_transfer(struct raft *raft, struct raft_out *out) {
    const struct raft_peer *transferee = raft_find_peer(raft, raft->transferee);
    if (!raft->transferee || !transferee || transferee->match_index != raft->last_index) return;
    raft->lease_revoked = 1; /* the transferee may act on this message at any later time */
    raft_add_message(raft, out, RAFT_TIMEOUT_NOW, raft->transferee);
}

bool raft_transfer_leadership(struct raft *raft, uint8_t id, struct raft_out *out) {
    if (raft->role != RAFT_LEADER || id == raft->self || !raft_has_vote(&raft->config, id))
        return false;
    if (raft_find_peer(raft, id)->vote_withheld) return false;
    raft->transferee = id;
    out->timer = RAFT_TIMER_ELECTION_TIMEOUT; /* the transfer may take that long */
    raft_continue_transfer(raft, out);
    raft_check_invariants(raft);
    return true;
}

bool raft_handle_timeout_now(struct raft *raft, const struct raft_message *m,
                             struct raft_out *out) {
    if (raft->role == RAFT_LEADER || !raft_has_vote(&raft->config, raft->self)) return false;
    if (raft->vote_withheld || (raft->leader && raft->leader != m->from)) return false;
    raft_become_candidate(raft, true, out);
    return true;
}
