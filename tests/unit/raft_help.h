/* Cores with a log, their events, and messages to them. */
#ifndef CV_TEST_RAFT_HELP_H
#define CV_TEST_RAFT_HELP_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/rng.h"
#include "raft/raft.h"

/* Members 1, 2, ... with these weights, in one group. */
static inline struct raft_config weights(uint32_t count, const uint16_t *weight) {
    struct raft_config config = {.hash = 1, .count = count};
    for (uint32_t i = 0; i < count; i++)
        config.at[i] = (struct raft_member){.id = (uint8_t)(i + 1), .weight = weight[i]};
    return config;
}

static inline struct raft_config members(uint32_t count) {
    static const uint16_t ones[RAFT_MEMBERS_MAX] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
    return weights(count, ones);
}

/* A member after a restart; `log` has a digit for the term of each entry. */
static inline struct raft restarted(uint8_t self, uint64_t term, uint8_t voted_for, const char *log,
                                    struct raft_config config) {
    struct raft raft;
    struct raft_out out = {0};
    raft_open(&raft, self, term, voted_for);
    raft_restore_snapshot(&raft, 0, 0, &config);
    for (uint64_t i = 0; log[i]; i++)
        raft_restore_entries(&raft, i + 1, 1, (uint64_t)(log[i] - '0'), NULL);
    raft_start(&raft, 0, &out);
    return raft;
}

/* The log of a core with very many terms, as an owner has it. */
struct terms {
    uint64_t at[4096];
};

static inline uint64_t term_of(const void *log, uint64_t index) {
    const struct terms *terms = log;
    return terms->at[index % 4096];
}

/* After an event, with its effects: the owner has what is new. */
static inline void note_terms(struct terms *terms, const struct raft *raft) {
    uint64_t first = raft->runs ? raft->run[0].first : raft->last_index;
    if (raft->last_index > first + 4095) first = raft->last_index - 4095;
    for (uint64_t i = first; i <= raft->last_index; i++)
        terms->at[i % 4096] = raft_term_at(raft, i);
}

static inline void has_terms(struct raft *raft, const struct terms *terms) {
    raft->term_of = term_of;
    raft->log = terms;
}

static inline struct raft new_member(uint8_t self, uint32_t count) {
    return restarted(self, 0, 0, "", members(count));
}

/* ---- Events ---- */

static inline struct raft_out fire_timer(struct raft *raft) {
    struct raft_out out = {0};
    raft_timer_fired(raft, &out);
    return out;
}

static inline struct raft_out receive(struct raft *raft, struct raft_message m) {
    struct raft_out out = {0};
    assert_true(raft_receive(raft, &m, NULL, &out));
    return out;
}

static inline void assert_dropped(struct raft *raft, struct raft_message m) {
    struct raft_out out = {0};
    assert_false(raft_receive(raft, &m, NULL, &out));
}

static inline struct raft_out make_durable(struct raft *raft) {
    struct raft_out out = {0};
    raft_entries_durable(raft, raft->last_index, raft_term_at(raft, raft->last_index), &out);
    return out;
}

/* ---- Messages ---- */

static inline struct raft_message message(enum raft_message_type type, uint8_t from, uint8_t to,
                                          uint64_t term) {
    return (struct raft_message){.type = (uint8_t)type, .from = from, .to = to, .term = term};
}

enum { PRE_VOTE = 1, GRANTED = 2, TRANSFER = 4, REJECTED = 8 }; /* flags of these helpers */

static inline struct raft_message vote_request(uint8_t from, uint8_t to, uint64_t term,
                                               uint64_t last_log_index, uint64_t last_log_term,
                                               unsigned flags) {
    struct raft_message m = message(RAFT_REQUEST_VOTE, from, to, term);
    m.request_vote.last_log_index = last_log_index;
    m.request_vote.last_log_term = last_log_term;
    m.request_vote.pre_vote = (flags & PRE_VOTE) != 0;
    m.request_vote.leadership_transfer = (flags & TRANSFER) != 0;
    return m;
}

static inline struct raft_message vote_response(uint8_t from, uint8_t to, uint64_t term,
                                                unsigned flags) {
    struct raft_message m = message(RAFT_REQUEST_VOTE_RESPONSE, from, to, term);
    m.request_vote_response.vote_granted = (flags & GRANTED) != 0;
    m.request_vote_response.pre_vote = (flags & PRE_VOTE) != 0;
    return m;
}

/* AppendEntries; without entries it is a heartbeat. */
static inline struct raft_message append_request(uint8_t from, uint8_t to, uint64_t term,
                                                 uint64_t prev_log_index, uint64_t prev_log_term,
                                                 uint32_t entry_count, uint64_t entries_term) {
    struct raft_message m = message(RAFT_APPEND_ENTRIES, from, to, term);
    m.append_entries.prev_log_index = prev_log_index;
    m.append_entries.prev_log_term = prev_log_term;
    m.append_entries.entry_count = entry_count;
    m.append_entries.entries_term = entries_term;
    return m;
}

static inline struct raft_message append_response(uint8_t from, uint8_t to, uint64_t term,
                                                  uint64_t match_index, uint64_t round) {
    struct raft_message m = message(RAFT_APPEND_ENTRIES_RESPONSE, from, to, term);
    m.append_entries_response.match_index = match_index;
    m.append_entries_response.round = round;
    return m;
}

static inline struct raft_message append_rejection(uint8_t from, uint8_t to, uint64_t term,
                                                   uint64_t rejected_index, uint64_t match_index,
                                                   uint64_t match_term) {
    struct raft_message m = append_response(from, to, term, match_index, 0);
    m.append_entries_response.rejected = 1;
    m.append_entries_response.rejected_index = rejected_index;
    m.append_entries_response.match_term = match_term;
    return m;
}

/* Sends the AppendEntries that is due for a member. */
static inline struct raft_message send_append(struct raft *raft, uint8_t to) {
    struct raft_message m;
    assert_true(raft_next_append(raft, to, UINT64_MAX, &m));
    raft_append_sent(raft, &m);
    return m;
}

static inline void assert_nothing_due(const struct raft *raft, uint8_t to) {
    struct raft_message m;
    assert_false(raft_next_append(raft, to, UINT64_MAX, &m));
}

/* ---- Elections ---- */

/* The election timeout passes, and the member asks for pre-votes. */
static inline struct raft_out ask_for_pre_votes(struct raft *raft) {
    struct raft_out out = fire_timer(raft);
    for (int i = 0; i < 3 && raft->role == RAFT_FOLLOWER; i++) out = fire_timer(raft);
    assert_int_not_equal(raft->role, RAFT_FOLLOWER);
    return out;
}

/* Every member votes for it. */
static inline struct raft_out elect(struct raft *raft) {
    struct raft_out out = ask_for_pre_votes(raft);
    for (unsigned pre = 0; pre < 2; pre++)
        for (uint32_t i = 0; i < raft->config.count && raft->role != RAFT_LEADER; i++) {
            unsigned flags = GRANTED | (raft->role == RAFT_PRE_CANDIDATE ? PRE_VOTE : 0);
            if (raft->config.at[i].id == raft->self) continue;
            out =
                receive(raft, vote_response(raft->config.at[i].id, raft->self, raft->term, flags));
        }
    assert_int_equal(raft->role, RAFT_LEADER);
    return out;
}

/* Asserts that there is one message, of that type; returns whether it has those flags. */
static inline bool only_message_is(const struct raft_out *out, enum raft_message_type type,
                                   unsigned flags) {
    const struct raft_message *m = &out->message[0];
    unsigned has = 0;
    assert_int_equal(out->messages, 1);
    assert_int_equal(m->type, type);
    if (type == RAFT_REQUEST_VOTE_RESPONSE)
        has = (m->request_vote_response.vote_granted ? GRANTED : 0u) |
              (m->request_vote_response.pre_vote ? PRE_VOTE : 0u);
    if (type == RAFT_APPEND_ENTRIES_RESPONSE)
        has = m->append_entries_response.rejected ? REJECTED : 0u;
    return (has & flags) == flags;
}

#endif
