/* Cores with a log, and messages to them, in few words. */
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
    struct raft_config config = {.mark = 1, .count = count};
    for (uint32_t i = 0; i < count; i++)
        config.at[i] = (struct raft_member){.id = (uint8_t)(i + 1), .weight = weight[i]};
    return config;
}

static inline struct raft_config members(uint32_t count) {
    static const uint16_t ones[RAFT_MEMBERS_MAX] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
    return weights(count, ones);
}

/* One that comes back with a log: a digit for the term of each entry. */
static inline struct raft restarted(uint8_t self, uint64_t term, uint8_t vote, const char *log,
                                    struct raft_config config) {
    struct raft raft;
    struct raft_out out = {0};
    raft_open(&raft, self, term, vote);
    raft_restore_base(&raft, 0, 0, &config);
    for (uint64_t i = 0; log[i]; i++) raft_restore(&raft, i + 1, 1, (uint64_t)(log[i] - '0'), NULL);
    raft_begin(&raft, 0, &out);
    return raft;
}

static inline struct raft fresh(uint8_t self, uint32_t count) {
    return restarted(self, 0, 0, "", members(count));
}

/* ---- Events ---- */

static inline struct raft_out waited(struct raft *raft) {
    struct raft_out out = {0};
    raft_waited(raft, &out);
    return out;
}

static inline struct raft_out receive(struct raft *raft, struct raft_message m) {
    struct raft_out out = {0};
    assert_true(raft_receive(raft, &m, NULL, &out));
    return out;
}

static inline void dropped(struct raft *raft, struct raft_message m) {
    struct raft_out out = {0};
    assert_false(raft_receive(raft, &m, NULL, &out));
}

static inline struct raft_out saved(struct raft *raft) {
    struct raft_out out = {0};
    raft_saved(raft, raft->last, raft_term_of(raft, raft->last), &out);
    return out;
}

/* ---- Messages, all of them to `to` ---- */

static inline struct raft_message message(enum raft_type type, uint8_t from, uint8_t to,
                                          uint64_t term) {
    return (struct raft_message){.type = (uint8_t)type, .from = from, .to = to, .term = term};
}

static inline struct raft_message vote(uint8_t from, uint8_t to, uint64_t term, uint64_t index,
                                       uint64_t index_term, uint8_t flags) {
    struct raft_message m = message(RAFT_VOTE, from, to, term);
    m.index = index;
    m.index_term = index_term;
    m.flags = flags;
    return m;
}

static inline struct raft_message voted(uint8_t from, uint8_t to, uint64_t term, uint8_t flags) {
    struct raft_message m = message(RAFT_VOTED, from, to, term);
    m.flags = flags;
    return m;
}

/* Entries behind `index`, all of one term. */
static inline struct raft_message append(uint8_t from, uint8_t to, uint64_t term, uint64_t index,
                                         uint64_t index_term, uint32_t count,
                                         uint64_t entries_term) {
    struct raft_message m = message(RAFT_APPEND, from, to, term);
    m.index = index;
    m.index_term = index_term;
    m.count = count;
    m.entries_term = entries_term;
    return m;
}

static inline struct raft_message appended(uint8_t from, uint8_t to, uint64_t term, uint64_t index,
                                           uint64_t round) {
    struct raft_message m = message(RAFT_APPENDED, from, to, term);
    m.index = index;
    m.round = round;
    return m;
}

static inline struct raft_message rejected(uint8_t from, uint8_t to, uint64_t term, uint64_t asked,
                                           uint64_t index, uint64_t index_term) {
    struct raft_message m = appended(from, to, term, index, 0);
    m.flags = RAFT_REJECTED;
    m.other = asked;
    m.index_term = index_term;
    return m;
}

/* The message that is due for a member, sent. */
static inline struct raft_message sent(struct raft *raft, uint8_t to) {
    struct raft_message m;
    assert_true(raft_append_for(raft, to, UINT64_MAX, &m));
    raft_sent(raft, &m);
    return m;
}

static inline void nothing_for(const struct raft *raft, uint8_t to) {
    struct raft_message m;
    assert_false(raft_append_for(raft, to, UINT64_MAX, &m));
}

/* ---- Elections ---- */

/* It notices the silence and sounds the others out. */
static inline struct raft_out stand_up(struct raft *raft) {
    struct raft_out out = waited(raft);
    for (int i = 0; i < 3 && raft->role == RAFT_FOLLOWER; i++) out = waited(raft);
    assert_int_not_equal(raft->role, RAFT_FOLLOWER);
    return out;
}

/* Everybody votes for it. */
static inline struct raft_out elect(struct raft *raft) {
    struct raft_out out = stand_up(raft);
    for (unsigned pre = 0; pre < 2; pre++)
        for (uint32_t i = 0; i < raft->config.count && raft->role != RAFT_LEADER; i++) {
            uint8_t flags = RAFT_GRANTED | (raft->role == RAFT_SOUNDING ? RAFT_PRE : 0);
            if (raft->config.at[i].id == raft->self) continue;
            out = receive(raft, voted(raft->config.at[i].id, raft->self, raft->term, flags));
        }
    assert_int_equal(raft->role, RAFT_LEADER);
    return out;
}

static inline bool answers(const struct raft_out *out, enum raft_type type, uint8_t flags) {
    assert_int_equal(out->messages, 1);
    assert_int_equal(out->message[0].type, type);
    return (out->message[0].flags & flags) == flags;
}

#endif
