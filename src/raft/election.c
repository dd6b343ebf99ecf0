/* Who leads.
 *
 * A leader that lives is heard within the time of silence.  Until that time is over nobody votes
 * against it (so it may rely on it: check-quorum and leases), unless it handed over itself.  Then,
 * after a short random time, a member sounds the others out (pre-vote: nothing changes, so one who
 * comes back from a lonely place disturbs nobody), and if it would win, it stands for a new term.
 *
 * Every message carries its sender's real term, those of a sounding too: who has slept through
 * terms learns of them from the first answer, and its longer log counts again. */
#include <string.h>

#include "raft/raft.h"

static uint32_t ballots(const struct raft *raft) {
    uint32_t set = 0;
    for (uint32_t i = 0; i < raft->config.count; i++)
        if (raft->peer[i].ballot == RAFT_YES) set |= 1u << i;
    return set;
}

static void clear_peers(struct raft *raft) {
    for (uint32_t i = 0; i < raft->config.count; i++)
        raft->peer[i] = (struct raft_peer){.next = raft->last + 1};
}

/* What a leader said is nobody's word any more. */
static void forget_leader(struct raft *raft) {
    raft->agreed = raft->committed; /* what is decided is in every leader's log */
    raft->round = raft->pledge = 0;
}

void raft_follow(struct raft *raft, uint64_t term, uint8_t leader, struct raft_out *out) {
    if (term > raft->term || raft->role == RAFT_LEADER) forget_leader(raft);
    if (term > raft->term) {
        raft->term = term;
        raft->vote = 0;
        out->save_vote = true;
    }
    if (raft->role == RAFT_LEADER) {
        raft->silent = 1;
        out->wait = RAFT_WAIT_TURN;
    }
    raft->role = RAFT_FOLLOWER;
    raft->leader = leader;
    raft->term_first = raft->confirmed = 0;
    raft->heir = raft->lease_void = 0;
    clear_peers(raft);
}

void raft_hear(struct raft *raft, const struct raft_message *m, struct raft_out *out) {
    if (raft->role != RAFT_FOLLOWER) raft_follow(raft, raft->term, m->from, out);
    raft->leader = m->from;
    raft->silent = 0;
    out->wait = RAFT_WAIT_SILENCE;
}

/* ---- Standing ---- */

static void ask_all(struct raft *raft, uint8_t flags, struct raft_out *out) {
    clear_peers(raft);
    for (uint32_t i = 0; i < raft->config.count; i++) {
        const struct raft_member *member = &raft->config.at[i];
        if (member->id == raft->self) raft->peer[i].ballot = RAFT_YES;
        if (member->id == raft->self || !member->weight) continue;
        struct raft_message *m = raft_add_message(raft, out, RAFT_VOTE, member->id);
        m->index = raft->last;
        m->index_term = raft_term_of(raft, raft->last);
        m->flags = flags;
    }
    out->wait = RAFT_WAIT_TURN;
}

static void lead(struct raft *raft, struct raft_out *out) {
    if (!raft_extend(raft, 1, raft->term)) return; /* no room for its first entry */
    raft->role = RAFT_LEADER;
    raft->leader = raft->self;
    raft->silent = raft->leased = 0;
    raft->term_first = raft->last;
    raft->agreed = raft->last;
    raft->confirmed = 0;
    clear_peers(raft);
    for (uint32_t i = 0; i < raft->config.count; i++) {
        raft->peer[i].next = raft->last;
        raft->peer[i].due = 1;
        if (raft->config.at[i].id == raft->self) raft->peer[i].match = raft->saved;
    }
    out->add_config = true;
    out->wait = RAFT_WAIT_SILENCE;
}

void raft_campaign(struct raft *raft, bool handed_over, struct raft_out *out) {
    raft->role = RAFT_CANDIDATE;
    raft->leader = 0;
    raft->term++;
    raft->vote = raft->self;
    forget_leader(raft);
    out->save_vote = true;
    out->messages = 0;
    ask_all(raft, handed_over ? RAFT_HANDED_OVER : 0, out);
    if (raft_is_quorum(&raft->config, ballots(raft))) lead(raft, out);
}

static void sound(struct raft *raft, struct raft_out *out) {
    raft->role = RAFT_SOUNDING;
    raft->leader = 0;
    ask_all(raft, RAFT_PRE, out);
    if (raft_is_quorum(&raft->config, ballots(raft))) raft_campaign(raft, false, out);
}

/* ---- Voting ---- */

static bool is_as_long(const struct raft *raft, const struct raft_message *m) {
    uint64_t own = raft_term_of(raft, raft->last);
    return m->index_term > own || (m->index_term == own && m->index >= raft->last);
}

/* Who knows of no members is new, or has lost what it knew, and with it perhaps a vote. */
void raft_vote(struct raft *raft, const struct raft_message *m, struct raft_out *out) {
    bool pre = m->flags & RAFT_PRE;
    bool free = raft->config.count && (raft->silent || m->flags & RAFT_HANDED_OVER);
    if (m->term > raft->term && free) raft_follow(raft, m->term, 0, out);
    bool granted = free && m->term == raft->term && is_as_long(raft, m) &&
                   (pre ? raft->role != RAFT_LEADER : !raft->vote || raft->vote == m->from);
    if (granted && !pre) {
        raft->vote = m->from;
        out->save_vote = true;
        out->wait = RAFT_WAIT_SILENCE; /* the other one's turn */
    }
    struct raft_message *answer = raft_add_message(raft, out, RAFT_VOTED, m->from);
    answer->flags = (granted ? RAFT_GRANTED : 0) | (pre ? RAFT_PRE : 0);
}

void raft_voted(struct raft *raft, const struct raft_message *m, struct raft_out *out) {
    bool pre = m->flags & RAFT_PRE;
    int place = raft_place(&raft->config, m->from);
    if (place < 0 || raft->role != (pre ? RAFT_SOUNDING : RAFT_CANDIDATE)) return;
    raft->peer[place].ballot = m->flags & RAFT_GRANTED ? RAFT_YES : RAFT_NO;
    if (!raft_is_quorum(&raft->config, ballots(raft))) return;
    if (pre)
        raft_campaign(raft, false, out);
    else
        lead(raft, out);
}

/* ---- Time ---- */

static bool is_heard_by_quorum(struct raft *raft) {
    uint32_t set = 0;
    for (uint32_t i = 0; i < raft->config.count; i++) {
        if (raft->peer[i].heard || raft->config.at[i].id == raft->self) set |= 1u << i;
        raft->peer[i].heard = 0;
    }
    return raft_is_quorum(&raft->config, set);
}

/* Who loses its vote by an entry that is not decided may be the only one who has that entry, and is
 * needed to have it decided. */
static bool may_stand(const struct raft *raft) {
    return raft_has_vote(&raft->config, raft->self) ||
           (raft->config_index > raft->committed && raft_has_vote(&raft->former, raft->self));
}

void raft_waited(struct raft *raft, struct raft_out *out) {
    if (raft->role == RAFT_LEADER) {
        raft->heir = 0; /* it has had its time */
        out->wait = RAFT_WAIT_SILENCE;
        if (!is_heard_by_quorum(raft)) raft_follow(raft, raft->term, 0, out);
    } else if (!raft->silent) {
        raft->silent = 1;
        raft->leader = 0;
        out->wait = RAFT_WAIT_TURN;
    } else if (may_stand(raft)) {
        sound(raft, out);
    } else {
        out->wait = RAFT_WAIT_SILENCE;
    }
    raft_check(raft);
}

/* A leader whose process has ended relies on nothing any more; but one that only seems so from
 * here might, if it has a lease. */
void raft_gone(struct raft *raft, uint8_t id, struct raft_out *out) {
    if (raft->role != RAFT_FOLLOWER || raft->leader != id || raft->leased) return;
    raft->leader = 0;
    raft->silent = 1;
    out->wait = RAFT_WAIT_TURN;
    raft_check(raft);
}

/* ---- Handing over ---- */

uint8_t raft_best_heir(const struct raft *raft) {
    int best = -1;
    for (uint32_t i = 0; i < raft->config.count; i++) {
        if (raft->config.at[i].id == raft->self || !raft->config.at[i].weight) continue;
        if (best < 0 || raft->peer[i].match > raft->peer[best].match) best = (int)i;
    }
    return best < 0 ? 0 : raft->config.at[best].id;
}

/* Once the heir has all of the log, and only then. */
void raft_hand_over(struct raft *raft, struct raft_out *out) {
    const struct raft_peer *heir = raft_peer(raft, raft->heir);
    if (!raft->heir || !heir || heir->match != raft->last) return;
    raft->lease_void = 1; /* the word is out, and may be acted upon late */
    raft_add_message(raft, out, RAFT_CAMPAIGN, raft->heir);
}

bool raft_transfer(struct raft *raft, uint8_t id, struct raft_out *out) {
    if (raft->role != RAFT_LEADER || id == raft->self || !raft_has_vote(&raft->config, id))
        return false;
    raft->heir = id;
    out->wait = RAFT_WAIT_SILENCE; /* all of its time */
    raft_hand_over(raft, out);
    raft_check(raft);
    return true;
}
