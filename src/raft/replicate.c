/* How the log becomes the same everywhere, and what of it is decided. */
#include "raft/raft.h"

/* ---- The leader's side ---- */

static void confirm(struct raft *raft) {
    for (uint32_t i = 0; i < raft->config.count; i++) {
        uint64_t round = raft->config.at[i].id == raft->self ? raft->round : raft->peer[i].round;
        uint32_t set = 0;
        if (round <= raft->confirmed) continue;
        for (uint32_t j = 0; j < raft->config.count; j++)
            if (raft->config.at[j].id == raft->self || raft->peer[j].round >= round) set |= 1u << j;
        if (raft_is_quorum(&raft->config, set)) raft->confirmed = round;
    }
}

uint64_t raft_beat(struct raft *raft) {
    if (raft->role != RAFT_LEADER) return 0;
    raft->round++;
    for (uint32_t i = 0; i < raft->config.count; i++) {
        raft->peer[i].due = 1;
        raft->peer[i].waiting = 0; /* what was lost is asked once more */
    }
    confirm(raft);
    return raft->round;
}

uint64_t raft_propose(struct raft *raft, uint32_t count) {
    if (raft->role != RAFT_LEADER || raft->heir || raft->last >= RAFT_INDEX_MAX) return 0;
    raft_extend(raft, count, raft->term); /* its first entry has made room for the term */
    raft->agreed = raft->last;
    return raft->last - count + 1;
}

/* The end of the run that an entry is in: entries of one message are of one term. */
static uint64_t end_of_run(const struct raft *raft, uint64_t index) {
    for (uint32_t i = 0; i < raft->runs; i++)
        if (raft->run[i].first > index) return raft->run[i].first;
    return raft->last + 1;
}

/* The last entry that a quorum would have if the members in a set had all of them.  One of an older
 * term is decided with the first of this one, never by being counted: others may have a newer one
 * in its place. */
static uint64_t last_decided(const struct raft *raft, uint32_t with) {
    uint64_t decided = raft->committed;
    for (uint32_t i = 0; i < raft->config.count; i++) {
        uint64_t index = raft->peer[i].match;
        uint32_t set = with;
        if (index <= decided || index < raft->term_first) continue;
        for (uint32_t j = 0; j < raft->config.count; j++)
            if (raft->peer[j].match >= index) set |= 1u << j;
        if (raft_is_quorum(&raft->config, set)) decided = index;
    }
    return decided;
}

uint64_t raft_read_index(const struct raft *raft) {
    return raft->committed > raft->pledge ? raft->committed : raft->pledge;
}

uint64_t raft_peer_decided(const struct raft_peer *peer) {
    uint64_t itself = peer->match < peer->pledge ? peer->match : peer->pledge;
    return itself > peer->told ? itself : peer->told;
}

/* Whether there is more than a member knows, among the entries that it was sent. */
static bool is_news(uint64_t known, uint64_t index, uint64_t next) {
    return known < index && known + 1 < next;
}

/* Who is to get a snapshot is asked, when something is due, whether it still needs one. */
bool raft_append_for(const struct raft *raft, uint8_t id, uint64_t last, struct raft_message *m) {
    int place = raft_place(&raft->config, id);
    if (raft->role != RAFT_LEADER || place < 0 || id == raft->self) return false;
    const struct raft_peer *peer = &raft->peer[place];
    bool asks = peer->mode == RAFT_SNAPSHOT;
    uint64_t next = asks ? raft->base + 1 : peer->next;
    if (last > raft->last) last = raft->last;
    bool entries = !asks && next <= last;
    uint64_t pledge = last_decided(raft, 1u << place);
    bool news =
        peer->mode == RAFT_STREAM && (is_news(raft_peer_decided(peer), raft->committed, next) ||
                                      is_news(peer->pledge, pledge, next));
    if (peer->mode == RAFT_PROBE && peer->waiting) return false;
    if (!entries && !news && !peer->due) return false;
    *m = (struct raft_message){.type = RAFT_APPEND,
                               .from = raft->self,
                               .to = id,
                               .term = raft->term,
                               .flags = raft->leases && !raft->lease_void ? RAFT_LEASED : 0,
                               .index = next - 1,
                               .index_term = raft_term_of(raft, next - 1),
                               .other = raft->committed,
                               .pledge = pledge,
                               .round = raft->round};
    if (!entries && !peer->due) m->flags |= RAFT_NEWS;
    if (!entries) return true;
    uint64_t end = end_of_run(raft, next), count = (end <= last ? end : last + 1) - next;
    m->entries_term = raft_term_of(raft, next);
    m->count = count < UINT32_MAX ? (uint32_t)count : UINT32_MAX;
    return true;
}

void raft_sent(struct raft *raft, const struct raft_message *m) {
    int place = raft_place(&raft->config, m->to);
    cv_assert(place >= 0);
    struct raft_peer *peer = &raft->peer[place];
    peer->due = 0;
    if (raft->pledge < m->pledge) raft->pledge = m->pledge;
    if (peer->mode == RAFT_PROBE) peer->waiting = 1;
    if (peer->mode != RAFT_STREAM) return;
    cv_assert(m->index + 1 == peer->next && m->index + m->count <= raft->last);
    peer->next += m->count;
    peer->told = m->other < peer->next ? m->other : peer->next - 1;
    peer->pledge = m->pledge < peer->next ? m->pledge : peer->next - 1;
}

static void probe_from(struct raft *raft, struct raft_peer *peer, uint64_t next) {
    peer->mode = RAFT_PROBE;
    peer->waiting = 0;
    peer->told = peer->pledge = 0;
    peer->due = 1;
    peer->next = next > peer->match ? next : peer->match + 1;
    if (peer->next <= raft->base) peer->mode = RAFT_SNAPSHOT;
}

/* Where the logs may agree: not behind what the other has there, nor in a term that is newer. */
static uint64_t last_agreement(const struct raft *raft, uint64_t index, uint64_t term) {
    if (index > raft->last) index = raft->last;
    while (index > raft->base && raft_term_of(raft, index) > term) {
        uint32_t i = raft->runs;
        while (raft->run[i - 1].first > index) i--;
        index = raft->run[i - 1].first - 1;
    }
    return index;
}

void raft_decide(struct raft *raft, struct raft_out *out) {
    uint64_t before = raft->committed;
    raft->committed = last_decided(raft, 0);
    if (raft->committed == before || raft->committed < raft->config_index) return;
    if (raft_has_vote(&raft->config, raft->self)) return;
    /* The others have decided that it is no longer one of those who vote. */
    uint8_t heir = raft_best_heir(raft);
    if (heir) raft_add_message(raft, out, RAFT_CAMPAIGN, heir);
    raft_follow(raft, raft->term, 0, out);
}

bool raft_appended(struct raft *raft, const struct raft_message *m, struct raft_out *out) {
    int place = raft_place(&raft->config, m->from);
    if (raft->role != RAFT_LEADER || place < 0 || m->index > raft->last || m->round > raft->round)
        return false;
    struct raft_peer *peer = &raft->peer[place];
    peer->heard = 1;
    if (m->round > peer->round) peer->round = m->round;
    confirm(raft);
    if (m->flags & RAFT_REJECTED) {
        bool late = peer->mode == RAFT_PROBE ? m->other + 1 != peer->next : m->other < peer->match;
        if (late || peer->mode == RAFT_SNAPSHOT || m->index >= m->other) return true;
        probe_from(raft, peer, last_agreement(raft, m->index, m->index_term) + 1);
        return true;
    }
    if (m->index > peer->match) peer->match = m->index;
    if (peer->next <= peer->match) peer->next = peer->match + 1;
    if (peer->next > raft->base) {
        peer->mode = RAFT_STREAM;
        peer->waiting = 0;
    }
    raft_decide(raft, out);
    if (raft->heir == m->from) raft_hand_over(raft, out);
    return true;
}

/* ---- The follower's side ---- */

static struct raft_message *answer(struct raft *raft, struct raft_out *out) {
    struct raft_message *m = raft_add_message(raft, out, RAFT_APPENDED, raft->leader);
    m->index = raft->saved < raft->agreed ? raft->saved : raft->agreed;
    m->round = raft->round;
    return m;
}

/* What it was given a pledge for is decided when it is there; see last_decided. */
static void redeem(struct raft *raft) {
    uint64_t index = raft->pledge < raft->saved ? raft->pledge : raft->saved;
    if (index > raft->agreed) index = raft->agreed;
    if (raft->committed < index && raft_term_of(raft, index) == raft->term) raft->committed = index;
}

static void reject(struct raft *raft, const struct raft_message *append, struct raft_out *out) {
    struct raft_message *m = answer(raft, out);
    m->flags = RAFT_REJECTED;
    m->other = append->index;
    m->index = last_agreement(raft, append->index - 1, append->index_term);
    if (m->index < raft->committed) m->index = raft->committed;
    m->index_term = raft_term_of(raft, m->index);
}

/* Whether what comes behind the message's index can go behind the same entry here. */
static bool is_joined(const struct raft *raft, const struct raft_message *m) {
    if (m->index < raft->base) return true; /* decided, so it is the same */
    return m->index <= raft->last && raft_term_of(raft, m->index) == m->index_term;
}

static bool makes_sense(const struct raft *raft, const struct raft_message *m,
                        const struct raft_config *config) {
    if (m->index > RAFT_INDEX_MAX || m->round > RAFT_INDEX_MAX) return false;
    if (m->pledge > RAFT_INDEX_MAX) return false;
    if (m->index_term > m->term || (m->index == 0) != (m->index_term == 0)) return false;
    if (m->count && (m->entries_term < m->index_term || m->entries_term > m->term)) return false;
    if (m->count && !m->entries_term) return false;
    if (m->kind > RAFT_CONFIG || (m->kind == RAFT_CONFIG) != (config != NULL)) return false;
    if (config && (m->count != 1 || !raft_config_is_sound(config))) return false;
    if (raft->role == RAFT_LEADER || (raft->leader && raft->leader != m->from)) return false;
    return m->index > raft->committed || is_joined(raft, m);
}

/* The first of the entries that the log does not have, or one behind the last. */
static uint64_t first_missing(const struct raft *raft, const struct raft_message *m) {
    uint64_t end = m->index + m->count;
    uint64_t first = (m->index > raft->base ? m->index : raft->base) + 1;
    while (first <= end && first <= raft->last && raft_term_of(raft, first) == m->entries_term)
        first++;
    return first;
}

/* What is there and differs is replaced, with all behind it. */
static void take(struct raft *raft, const struct raft_message *m, uint64_t first,
                 const struct raft_config *config, struct raft_out *out) {
    uint64_t end = m->index + m->count;
    if (first <= raft->last) raft_truncate(raft, first - 1);
    cv_assert(raft_extend(raft, (uint32_t)(end - first + 1), m->entries_term));
    if (config) raft_take_config(raft, end, config);
    out->take = true;
    out->take_first = first;
}

bool raft_append(struct raft *raft, const struct raft_message *m, const struct raft_config *config,
                 struct raft_out *out) {
    if (!makes_sense(raft, m, config)) return false;
    bool new_round = m->round > raft->round;
    raft_hear(raft, m, out);
    if (new_round) raft->round = m->round;
    raft->leased = m->flags & RAFT_LEASED ? 1 : 0;
    if (!is_joined(raft, m)) {
        reject(raft, m, out);
        return true;
    }
    uint64_t end = m->index + m->count, known = m->other;
    uint64_t first = first_missing(raft, m);
    if (first <= end) {
        if (first <= raft->committed || m->entries_term < raft_term_of(raft, first - 1))
            return false;
        if (!raft_has_room(raft, first, m->entries_term)) return true; /* it will come again */
        take(raft, m, first, config, out);
    }
    if (raft->agreed < end) raft->agreed = end;
    if (known > raft->agreed) known = raft->agreed;
    if (raft->committed < known) raft->committed = known;
    if (raft->pledge < m->pledge) raft->pledge = m->pledge;
    redeem(raft);
    /* What was taken is answered when it is durable, but that we live is said at once. */
    if (new_round || (!out->take && !(m->flags & RAFT_NEWS))) answer(raft, out);
    return true;
}

/* Of a snapshot that is not needed any more: the leader may not have heard that. */
void raft_chunk(struct raft *raft, const struct raft_message *m, struct raft_out *out) {
    raft_hear(raft, m, out);
    out->chunk = m->index > raft->committed;
    if (!out->chunk) answer(raft, out);
}

/* ---- Both ---- */

void raft_saved(struct raft *raft, uint64_t index, uint64_t term, struct raft_out *out) {
    index = last_agreement(raft, index, term); /* its end may have been replaced meanwhile */
    if (index <= raft->saved || raft_term_of(raft, index) != term) return;
    raft->saved = index;
    if (raft->role == RAFT_LEADER) {
        int place = raft_place(&raft->config, raft->self);
        if (place >= 0) raft->peer[place].match = index;
        raft_decide(raft, out);
    } else {
        redeem(raft);
        if (raft->leader) answer(raft, out);
    }
    raft_check(raft);
}

void raft_lost(struct raft *raft, uint8_t id) {
    int place = raft_place(&raft->config, id);
    if (raft->role != RAFT_LEADER || place < 0) return;
    struct raft_peer *peer = &raft->peer[place];
    if (peer->mode == RAFT_STREAM) probe_from(raft, peer, peer->match + 1);
    peer->waiting = 0;
}

void raft_found(struct raft *raft, uint8_t id) {
    int place = raft_place(&raft->config, id);
    if (place < 0) return;
    raft->peer[place].due = 1;
    raft->peer[place].waiting = 0;
}

/* ---- Snapshots ---- */

void raft_trimmed(struct raft *raft, uint64_t index) {
    if (index <= raft->base) return;
    cv_assert(index <= raft->committed);
    raft_set_base(raft, index);
    if (raft->saved < index) raft->saved = index;
    for (uint32_t i = 0; i < raft->config.count; i++)
        if (raft->peer[i].next <= index) raft->peer[i].mode = RAFT_SNAPSHOT;
}

bool raft_installed(struct raft *raft, uint64_t index, uint64_t term,
                    const struct raft_config *config, struct raft_out *out) {
    if (index <= raft->committed || raft->role == RAFT_LEADER) return false;
    bool same = index <= raft->last && raft_term_of(raft, index) == term;
    if (same) {
        raft->committed = index;
        raft_set_base(raft, index);
        if (raft->saved < index) raft->saved = index;
    } else {
        raft_restore_base(raft, index, term, config);
    }
    if (raft->config_index > index) {
        raft->former = *config;
        raft->former_index = index;
    } else {
        raft_take_config(raft, index, config);
    }
    if (raft->agreed < index) raft->agreed = index;
    if (raft->leader) answer(raft, out);
    raft_check(raft);
    return true;
}
