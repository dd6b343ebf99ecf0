/* The start, the dispatch of messages, and the invariants. */
#include <string.h>

#include "raft/internal.h"

#define RAFT_TERM_MAX INT32_MAX /* the upper half of a zxid */

#define ONE_MORE(NUMBER, NAME, TITLE) +1
_Static_assert(RAFT_MESSAGE_TYPES == 1 RAFT_MESSAGES(ONE_MORE), "the enum has every message");

struct raft_message *raft_add_message(struct raft *raft, struct raft_out *out,
                                      enum raft_message_type type, uint8_t to) {
    cv_assert(out->messages < RAFT_OUT_MAX);
    struct raft_message *m = &out->message[out->messages++];
    memset(m, 0, sizeof *m); /* equal messages have equal bytes */
    m->type = (uint8_t)type;
    m->from = raft->self;
    m->to = to;
    m->term = raft->term;
    return m;
}

const struct raft_peer *raft_find_peer(const struct raft *raft, uint8_t id) {
    int slot = raft_member_slot(&raft->config, id);
    return slot < 0 ? NULL : &raft->peer[slot];
}

/* ---- Start ---- */

void raft_open(struct raft *raft, uint8_t self, uint64_t term, uint8_t voted_for) {
    memset(raft, 0, sizeof *raft);
    raft->self = self;
    raft->term = term;
    raft->voted_for = voted_for;
}

void raft_restore_snapshot(struct raft *raft, uint64_t index, uint64_t term,
                           const struct raft_config *config) {
    memset(raft->run, 0, sizeof raft->run);
    raft->runs = 0;
    raft->snapshot_index = raft->last_index = raft->durable_index = index;
    raft->commit_index = raft->verified_index = index;
    raft->snapshot_term = term;
    raft->config = raft->previous_config = *config;
    raft->config_index = raft->previous_config_index = index;
    memset(raft->peer, 0, sizeof raft->peer);
}

void raft_restore_entries(struct raft *raft, uint64_t first, uint32_t count, uint64_t term,
                          const struct raft_config *config) {
    cv_assert(first > raft->snapshot_index && first <= raft->last_index + 1);
    if (first <= raft->last_index) raft_truncate(raft, first - 1);
    if (count) raft_extend(raft, count, term);
    raft->durable_index = raft->last_index;
    if (config) raft_adopt_config(raft, raft->last_index, config);
    if (raft->term < term) raft->term = term, raft->voted_for = 0;
}

/* A member that took part before may have promised a leader not to vote for an election timeout; a
 * member that is alone has promised nobody. */
void raft_start(struct raft *raft, uint64_t commit_index, struct raft_out *out) {
    if (commit_index > raft->last_index) commit_index = raft->last_index;
    if (raft->commit_index < commit_index) raft->commit_index = commit_index;
    raft->verified_index = raft->commit_index;
    raft->leader_timed_out = raft->term == 0;
    out->timer = raft->leader_timed_out ? RAFT_TIMER_ELECTION_JITTER : RAFT_TIMER_ELECTION_TIMEOUT;
    bool alone = raft->config.count == 1 && raft->config.at[0].id == raft->self;
    if (alone && !raft->vote_withheld && raft_is_quorum(&raft->config, 1))
        raft_become_candidate(raft, false, out);
    raft_check_invariants(raft);
}

/* ---- Messages ---- */

/* The sender of an older term learns of the current one from the response. */
static void handle_older_term(struct raft *raft, const struct raft_message *m,
                              struct raft_out *out) {
    bool from_leader = m->type == RAFT_APPEND_ENTRIES || m->type == RAFT_INSTALL_SNAPSHOT ||
                       m->type == RAFT_TIMEOUT_NOW;
    if (from_leader)
        raft_add_message(raft, out, RAFT_APPEND_ENTRIES_RESPONSE, m->from)
            ->append_entries_response.rejected = 1;
}

static bool dispatch(struct raft *raft, const struct raft_message *m,
                     const struct raft_config *config, struct raft_out *out) {
    switch (m->type) {
    case RAFT_REQUEST_VOTE_RESPONSE: raft_handle_request_vote_response(raft, m, out); return true;
    case RAFT_APPEND_ENTRIES: return raft_handle_append_entries(raft, m, config, out);
    case RAFT_APPEND_ENTRIES_RESPONSE: return raft_handle_append_entries_response(raft, m, out);
    case RAFT_INSTALL_SNAPSHOT: return raft_handle_install_snapshot(raft, m, out);
    case RAFT_INSTALL_SNAPSHOT_RESPONSE: return raft_handle_install_snapshot_response(raft, m, out);
    case RAFT_TIMEOUT_NOW: return raft_handle_timeout_now(raft, m, out);
    default: return false;
    }
}

static bool is_pre_vote(const struct raft_message *m) {
    return (m->type == RAFT_REQUEST_VOTE && m->request_vote.pre_vote) ||
           (m->type == RAFT_REQUEST_VOTE_RESPONSE && m->request_vote_response.pre_vote);
}

bool raft_receive(struct raft *raft, const struct raft_message *m, const struct raft_config *config,
                  struct raft_out *out) {
    bool sound = m->type && m->type < RAFT_MESSAGE_TYPES && m->from && m->from != raft->self &&
                 m->to == raft->self && m->term <= RAFT_TERM_MAX;
    if (!sound || (!m->term && !is_pre_vote(m))) return false; /* term 0 has pre-votes only */
    /* Terms are finite, and one that nobody can have reached would use them up.  A member that is
     * new has nothing to compare with. */
    if (raft->term && m->term > raft->term + RAFT_TERM_JUMP_MAX) return false;
    if (m->type == RAFT_REQUEST_VOTE) { /* a higher term is not always adopted: see there */
        raft_handle_request_vote(raft, m, out);
    } else if (m->term < raft->term) {
        handle_older_term(raft, m, out);
    } else {
        if (m->term > raft->term) raft_become_follower(raft, m->term, 0, out);
        sound = dispatch(raft, m, config, out);
    }
    raft_check_invariants(raft);
    return sound;
}

/* ---- Invariants ---- */

void raft_check_invariants(const struct raft *raft) {
    /* 1. A snapshot holds what is committed; what is committed or durable is in the log. */
    cv_assert(raft->snapshot_index <= raft->commit_index);
    cv_assert(raft->commit_index <= raft->last_index);
    cv_assert(raft->snapshot_index <= raft->durable_index);
    cv_assert(raft->durable_index <= raft->last_index);
    /* 2. What is verified to be the leader's is in the log, and includes what is committed. */
    cv_assert(raft->commit_index <= raft->verified_index);
    cv_assert(raft->verified_index <= raft->last_index);
    /* 3. Terms grow along the log, and none is newer than the current one. */
    cv_assert(raft->runs == 0 || raft->last_index > raft->snapshot_index);
    for (uint32_t i = 0; i < raft->runs; i++) {
        const struct raft_run *run = &raft->run[i], *before = run - 1;
        cv_assert(i ? run->first > before->first && run->term > before->term
                    : run->first > raft->snapshot_index &&
                          run->term >= raft_term_at(raft, run->first - 1));
        cv_assert(run->first <= raft->last_index && run->term <= raft->term);
    }
    /* 4. A leader voted for itself, and its last entry is of its term; no member whose vote is
     * withheld stands for election. */
    bool leads = raft->role == RAFT_LEADER;
    cv_assert(leads == (raft->leader == raft->self) && (!leads || raft->voted_for == raft->self));
    cv_assert(!leads || raft_term_at(raft, raft->last_index) == raft->term);
    cv_assert(!raft->vote_withheld || raft->role == RAFT_FOLLOWER);
    /* 5. matchIndex < nextIndex <= last + 1, and entries to be sent are in the log. */
    for (uint32_t i = 0; leads && i < raft->config.count; i++) {
        const struct raft_peer *peer = &raft->peer[i];
        if (raft->config.at[i].id == raft->self) continue;
        cv_assert(peer->match_index < peer->next_index);
        cv_assert(peer->next_index <= raft->last_index + 1);
        cv_assert(peer->mode == RAFT_SNAPSHOT || peer->next_index > raft->snapshot_index);
    }
    /* 6. A round is confirmed after it has begun; a pledge is about entries in the log. */
    cv_assert(raft->confirmed_round <= raft->round);
    cv_assert(!leads || raft->pledge <= raft->last_index);
}
