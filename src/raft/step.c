/* Which message goes where, how it begins, and what always holds. */
#include <string.h>

#include "raft/raft.h"

#define RAFT_TERM_MAX INT32_MAX /* the upper half of a zxid */

struct raft_message *raft_add_message(struct raft *raft, struct raft_out *out, enum raft_type type,
                                      uint8_t to) {
    cv_assert(out->messages < RAFT_OUT_MAX);
    struct raft_message *m = &out->message[out->messages++];
    *m = (struct raft_message){
        .type = (uint8_t)type, .from = raft->self, .to = to, .term = raft->term};
    return m;
}

const struct raft_peer *raft_peer(const struct raft *raft, uint8_t id) {
    int place = raft_place(&raft->config, id);
    return place < 0 ? NULL : &raft->peer[place];
}

/* ---- Beginning ---- */

void raft_open(struct raft *raft, uint8_t self, uint64_t term, uint8_t vote) {
    memset(raft, 0, sizeof *raft);
    raft->self = self;
    raft->term = term;
    raft->vote = vote;
}

void raft_restore_base(struct raft *raft, uint64_t index, uint64_t term,
                       const struct raft_config *config) {
    memset(raft->run, 0, sizeof raft->run);
    raft->runs = 0;
    raft->base = raft->last = raft->saved = raft->committed = raft->agreed = index;
    raft->base_term = term;
    raft->config = raft->former = *config;
    raft->config_index = raft->former_index = index;
    memset(raft->peer, 0, sizeof raft->peer);
}

void raft_restore(struct raft *raft, uint64_t first, uint32_t count, uint64_t term,
                  const struct raft_config *config) {
    cv_assert(first > raft->base && first <= raft->last + 1);
    if (first <= raft->last) raft_truncate(raft, first - 1);
    if (count) {
        /* If this was one run too many, then the oldest had been decided, or it were not here. */
        if (!raft_has_room(raft, first, term)) raft->committed = raft->run[1].first - 1;
        cv_assert(raft_extend(raft, count, term));
    }
    raft->saved = raft->last;
    if (config) raft_take_config(raft, raft->last, config);
    if (raft->term < term) raft->term = term, raft->vote = 0;
}

/* Who has been here before may have promised somebody to wait, unless there is nobody. */
void raft_begin(struct raft *raft, uint64_t decided, struct raft_out *out) {
    if (decided > raft->last) decided = raft->last;
    if (raft->committed < decided) raft->committed = decided;
    raft->agreed = raft->committed;
    raft->silent = raft->term == 0;
    out->wait = raft->silent ? RAFT_WAIT_TURN : RAFT_WAIT_SILENCE;
    bool alone = raft->config.count == 1 && raft->config.at[0].id == raft->self;
    if (alone && raft_is_quorum(&raft->config, 1)) raft_campaign(raft, false, out);
    raft_check(raft);
}

/* ---- Receiving ---- */

static bool is_from_leader(uint8_t type) {
    return type == RAFT_APPEND || type == RAFT_CHUNK || type == RAFT_CAMPAIGN;
}

/* From a term that is over. */
static void set_right(struct raft *raft, const struct raft_message *m, struct raft_out *out) {
    if (m->type == RAFT_VOTE)
        raft_vote(raft, m, out);
    else if (is_from_leader(m->type))
        raft_add_message(raft, out, RAFT_APPENDED, m->from)->flags = RAFT_REJECTED;
}

static bool campaign_is_asked_for(struct raft *raft, const struct raft_message *m,
                                  struct raft_out *out) {
    if (raft->role == RAFT_LEADER || !raft_has_vote(&raft->config, raft->self)) return false;
    if (raft->leader && raft->leader != m->from) return false;
    raft_campaign(raft, true, out);
    return true;
}

static bool dispatch(struct raft *raft, const struct raft_message *m,
                     const struct raft_config *config, struct raft_out *out) {
    switch (m->type) {
    case RAFT_VOTED: raft_voted(raft, m, out); return true;
    case RAFT_APPEND: return raft_append(raft, m, config, out);
    case RAFT_APPENDED: return raft_appended(raft, m, out);
    case RAFT_CHUNK:
        if (raft->role == RAFT_LEADER || (raft->leader && raft->leader != m->from)) return false;
        raft_chunk(raft, m, out);
        return true;
    case RAFT_CHUNKED: {
        int place = raft_place(&raft->config, m->from);
        if (raft->role != RAFT_LEADER || place < 0) return false;
        raft->peer[place].heard = 1;
        out->chunk = true;
        return true;
    }
    case RAFT_CAMPAIGN: return campaign_is_asked_for(raft, m, out);
    default: return false;
    }
}

bool raft_receive(struct raft *raft, const struct raft_message *m, const struct raft_config *config,
                  struct raft_out *out) {
    bool sound = m->type && m->type < RAFT_TYPES && m->from && m->from != raft->self &&
                 m->to == raft->self && m->term <= RAFT_TERM_MAX;
    bool sounding = (m->type == RAFT_VOTE || m->type == RAFT_VOTED) && m->flags & RAFT_PRE;
    if (!sound || (!m->term && !sounding)) return false; /* before the first term all only sound */
    if (m->type == RAFT_VOTE) { /* a higher term is not always taken: see there */
        raft_vote(raft, m, out);
    } else if (m->term < raft->term) {
        set_right(raft, m, out);
    } else {
        if (m->term > raft->term) raft_follow(raft, m->term, 0, out);
        sound = dispatch(raft, m, config, out);
    }
    raft_check(raft);
    return sound;
}

/* ---- What always holds ---- */

void raft_check(const struct raft *raft) {
    /* 1. What is in a snapshot is decided; what is decided or durable is in the log. */
    cv_assert(raft->base <= raft->committed && raft->committed <= raft->last);
    cv_assert(raft->base <= raft->saved && raft->saved <= raft->last);
    /* 2. What a leader is known to have is in the log, and all that is decided is. */
    cv_assert(raft->committed <= raft->agreed && raft->agreed <= raft->last);
    /* 3. Terms grow along the log, and none is newer than the current one. */
    cv_assert((raft->runs > 0) == (raft->last > raft->base));
    for (uint32_t i = 0; i < raft->runs; i++) {
        const struct raft_run *run = &raft->run[i], *before = run - 1;
        cv_assert(i ? run->first > before->first && run->term > before->term
                    : run->first == raft->base + 1 && run->term >= raft->base_term);
        cv_assert(run->first <= raft->last && run->term <= raft->term);
    }
    /* 4. A leader leads itself, in a term that it voted for itself in, from an entry of its own. */
    bool leads = raft->role == RAFT_LEADER;
    cv_assert(leads == (raft->leader == raft->self) && (!leads || raft->vote == raft->self));
    cv_assert(!leads || raft_term_of(raft, raft->last) == raft->term);
    /* 5. Nobody is known to have more than there is, and who is sent to has what comes before. */
    for (uint32_t i = 0; leads && i < raft->config.count; i++) {
        const struct raft_peer *peer = &raft->peer[i];
        if (raft->config.at[i].id == raft->self) continue;
        cv_assert(peer->match < peer->next && peer->next <= raft->last + 1);
        cv_assert(peer->mode == RAFT_SNAPSHOT || peer->next > raft->base);
    }
    /* 6. A round is answered after it has begun; nothing is pledged that is not there. */
    cv_assert(raft->confirmed <= raft->round);
    cv_assert(!leads || raft->pledge <= raft->last);
}
