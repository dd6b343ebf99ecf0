/* The consensus core, rule by rule: how logs become the same, what is decided, snapshots, and
 * messages that make no sense. */
#include "raft_help.h"

static struct raft leader_with(const char *log, uint64_t term, uint32_t count) {
    struct raft raft = restarted(1, term, 0, log, members(count));
    elect(&raft);
    return raft;
}

/* ---- Deciding ---- */

static void what_a_quorum_has_is_decided(void **state) {
    (void)state;
    struct raft raft = leader_with("", 0, 5);
    raft_propose(&raft, 3);
    receive(&raft, appended(2, 1, 1, 4, 0));
    receive(&raft, appended(3, 1, 1, 3, 0));
    assert_int_equal(raft.committed, 0); /* its own are not durable yet */
    receive(&raft, appended(4, 1, 1, 1, 0));
    assert_int_equal(raft.committed, 1); /* but three others are enough */
    saved(&raft);
    assert_int_equal(raft.committed, 3);
    receive(&raft, appended(5, 1, 1, 4, 0));
    assert_int_equal(raft.committed, 4);
    receive(&raft, appended(3, 1, 1, 2, 0)); /* late */
    assert_int_equal(raft.committed, 4);
    dropped(&raft, appended(3, 1, 1, 5, 0)); /* more than there is */
}

/* Figure 8 of the Raft paper: others may have a newer entry in the place of an older term's. */
static void an_older_terms_entry_is_not_counted(void **state) {
    (void)state;
    struct raft raft = leader_with("12", 3, 5);
    saved(&raft);
    receive(&raft, appended(2, 1, 4, 2, 0));
    receive(&raft, appended(3, 1, 4, 2, 0));
    assert_int_equal(raft.committed, 0);
    receive(&raft, appended(2, 1, 4, 3, 0));
    assert_int_equal(raft.committed, 0);
    receive(&raft, appended(3, 1, 4, 3, 0));
    assert_int_equal(raft.committed, 3);
}

static void a_follower_learns_what_is_decided_of_what_it_has(void **state) {
    (void)state;
    struct raft raft = restarted(1, 1, 0, "111", members(3));
    struct raft_message m = append(2, 1, 2, 1, 1, 0, 0);
    m.other = 3; /* of the leader's log; ours may go on otherwise behind 1 */
    receive(&raft, m);
    assert_int_equal(raft.committed, 1);
    m = append(2, 1, 2, 1, 1, 1, 1);
    m.other = 3;
    receive(&raft, m);
    assert_int_equal(raft.committed, 2);
}

static void nothing_is_said_to_be_there_before_it_is_durable(void **state) {
    (void)state;
    struct raft raft = fresh(1, 3);
    struct raft_message m = append(2, 1, 1, 0, 0, 2, 1);
    struct raft_out out = receive(&raft, m);
    assert_true(out.take);
    assert_int_equal(out.messages, 0);
    m.round = 1;
    out = receive(&raft, m); /* a new round is answered at once */
    assert_false(out.take);
    assert_true(answers(&out, RAFT_APPENDED, 0));
    assert_int_equal(out.message[0].index, 0);
    assert_int_equal(out.message[0].round, 1);
    out = saved(&raft);
    assert_true(answers(&out, RAFT_APPENDED, 0));
    assert_int_equal(out.message[0].index, 2);
    assert_int_equal(out.message[0].to, 2);
}

static void what_an_older_leader_left_is_not_said_to_be_there(void **state) {
    (void)state;
    struct raft raft = restarted(1, 2, 0, "1122", members(3));
    struct raft_out out = receive(&raft, append(2, 1, 3, 2, 1, 0, 0));
    assert_int_equal(out.message[0].index, 2); /* 3 and 4 may be others there */
    receive(&raft, append(2, 1, 3, 4, 2, 0, 0));
    out = receive(&raft, append(3, 1, 4, 2, 1, 0, 0)); /* and in the next one's log once more */
    assert_int_equal(out.message[0].index, 2);
}

static void what_was_replaced_meanwhile_is_not_durable(void **state) {
    (void)state;
    struct raft raft = fresh(1, 3);
    struct raft_out out = {0};
    receive(&raft, append(2, 1, 1, 0, 0, 3, 1));
    receive(&raft, append(3, 1, 2, 1, 1, 2, 2)); /* stands where 2 and 3 were */
    raft_saved(&raft, 3, 1, &out);               /* of the first three one is left */
    assert_int_equal(raft.saved, 1);
    assert_true(answers(&out, RAFT_APPENDED, 0));
    assert_int_equal(out.message[0].index, 1);
    receive(&raft, append(2, 1, 3, 1, 1, 2, 3)); /* and once more */
    raft_saved(&raft, 3, 2, &out);
    assert_int_equal(raft.saved, 1);
    receive(&raft, append(3, 1, 4, 1, 1, 1, 1)); /* by an entry that is older */
    raft_saved(&raft, 3, 3, &out);
    assert_int_equal(raft.saved, 1);
    raft_saved(&raft, 2, 1, &out);
    assert_int_equal(raft.saved, 2);
}

static void what_differs_is_replaced_with_all_behind_it(void **state) {
    (void)state;
    struct raft raft = restarted(1, 2, 0, "11122", members(3));
    struct raft_out out = receive(&raft, append(2, 1, 3, 2, 1, 2, 1)); /* 3 is the same, 4 is not */
    assert_true(out.take);
    assert_int_equal(out.take_first, 4);
    assert_int_equal(raft.last, 4);
    assert_int_equal(raft.saved, 3);
    assert_int_equal(raft_term_of(&raft, 4), 1);
    /* One that came late takes nothing away. */
    out = receive(&raft, append(2, 1, 3, 0, 0, 2, 1));
    assert_false(out.take);
    assert_int_equal(raft.last, 4);
    assert_int_equal(out.message[0].index, 3);
}

static void what_is_decided_is_never_replaced(void **state) {
    (void)state;
    struct raft raft = restarted(1, 1, 0, "111", members(3));
    struct raft_message m = append(2, 1, 2, 3, 1, 0, 0);
    m.other = 3;
    receive(&raft, m);
    assert_int_equal(raft.committed, 3);
    struct raft before = raft;
    dropped(&raft, append(2, 1, 2, 1, 1, 2, 2));
    dropped(&raft, append(2, 1, 2, 2, 2, 0, 0));
    assert_memory_equal(&before, &raft, sizeof raft);
}

/* ---- Sending ---- */

static void a_leader_asks_first_and_streams_then(void **state) {
    (void)state;
    struct raft raft = leader_with("11", 1, 3);
    struct raft_message m = sent(&raft, 2);
    assert_int_equal(m.index, 2);
    assert_int_equal(m.index_term, 1);
    assert_int_equal(m.count, 1);
    raft_propose(&raft, 1);
    nothing_for(&raft, 2); /* one at a time */
    receive(&raft, appended(2, 1, 2, 3, 0));
    for (uint64_t i = 4; i <= 6; i++) {
        m = sent(&raft, 2);
        assert_int_equal(m.index, i - 1);
        assert_int_equal(m.count, 1);
        if (i < 6) raft_propose(&raft, 1); /* without an answer to what came before */
    }
    nothing_for(&raft, 2);
    assert_int_equal(raft_peer(&raft, 2)->match, 3);
}

static void a_probe_that_was_lost_is_sent_again_with_the_next_beat(void **state) {
    (void)state;
    struct raft raft = leader_with("", 0, 3);
    sent(&raft, 2);
    nothing_for(&raft, 2);
    raft_beat(&raft);
    assert_int_equal(sent(&raft, 2).count, 1);
    raft_lost(&raft, 2);
    assert_int_equal(sent(&raft, 2).count, 1);
}

static void entries_of_a_message_are_of_one_term(void **state) {
    (void)state;
    struct raft raft = leader_with("112", 2, 3);
    sent(&raft, 2);
    receive(&raft, rejected(2, 1, 3, 3, 0, 0));
    struct raft_message m = sent(&raft, 2);
    assert_int_equal(m.index, 0);
    assert_int_equal(m.count, 2);
    assert_int_equal(m.entries_term, 1);
    receive(&raft, appended(2, 1, 3, 2, 0));
    m = sent(&raft, 2);
    assert_int_equal(m.count, 1);
    assert_int_equal(m.entries_term, 2);
    assert_int_equal(sent(&raft, 2).entries_term, 3);
    nothing_for(&raft, 2);
}

static void what_is_decided_is_told_once(void **state) {
    (void)state;
    struct raft raft = leader_with("", 0, 3);
    saved(&raft);
    sent(&raft, 2);
    receive(&raft, appended(2, 1, 1, 1, 0));
    struct raft_message m = sent(&raft, 2);
    assert_int_equal(m.count, 0);
    assert_int_equal(m.other, 1);
    nothing_for(&raft, 2);
}

/* Answers the leader with the core of a follower until the logs are the same; how many asks. */
static unsigned asks_until_same(struct raft *leader, struct raft *follower) {
    unsigned asks = 0;
    while (raft_peer(leader, follower->self)->match < leader->last) {
        struct raft_message m = sent(leader, follower->self);
        assert_in_range(++asks, 1, 30);
        struct raft_out out = receive(follower, m);
        if (out.take) out = saved(follower);
        receive(leader, out.message[0]);
    }
    return asks;
}

static void agreement_is_found_run_by_run(void **state) {
    (void)state;
    static const struct {
        const char *leader, *follower;
        unsigned asks;
    } cases[] = {
        {"1111111111", "", 4},                 /* nothing: once to hear so, then a run each */
        {"1111111111", "1111", 4},             /* less */
        {"1444444444", "1333333333", 4},       /* a run of each in the other's place */
        {"1222222225555", "1222233333333", 5}, /* and entries in common before */
        {"1111112222", "1111113333", 3},
        {"1133333333", "1122222222", 4},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct raft leader = leader_with(cases[i].leader, 6, 3);
        struct raft follower = restarted(2, 6, 0, cases[i].follower, members(3));
        assert_in_range(asks_until_same(&leader, &follower), 1, cases[i].asks);
        assert_int_equal(follower.last, leader.last);
        assert_int_equal(follower.runs, leader.runs);
        assert_memory_equal(follower.run, leader.run, sizeof leader.run);
    }
}

static void any_two_logs_become_the_same(void **state) {
    (void)state;
    struct rng rng;
    rng_seed(&rng, 1);
    for (int i = 0; i < 2000; i++) {
        char log[2][16] = {{0}, {0}};
        uint64_t same = rng_below(&rng, 8);
        for (unsigned n = 0; n < 2; n++) {
            char term = '1';
            for (uint64_t at = 0, last = rng_below(&rng, 15); at < last; at++) {
                if (rng_below(&rng, 3) == 0 && term < '8') term++;
                log[n][at] = n && at < same && log[0][at] ? log[0][at] : term;
                term = log[n][at] > term ? log[n][at] : term;
            }
        }
        for (unsigned at = 1; log[1][at]; at++)
            if (log[1][at] < log[1][at - 1]) log[1][at] = log[1][at - 1];
        /* Entries of one term and place are the same: terms of the follower's own are even. */
        for (unsigned at = 0, differs = 0; log[1][at]; at++) {
            differs |= log[0][at] != log[1][at];
            if (differs && log[0][at] == log[1][at]) log[1][at] = 0;
        }
        struct raft leader = leader_with(log[0], 9, 3);
        struct raft follower = restarted(2, 9, 0, log[1], members(3));
        asks_until_same(&leader, &follower);
        assert_int_equal(follower.last, leader.last);
        assert_memory_equal(follower.run, leader.run, sizeof leader.run);
    }
}

static void a_late_rejection_changes_nothing(void **state) {
    (void)state;
    struct raft raft = leader_with("1111", 1, 3);
    sent(&raft, 2);
    receive(&raft, rejected(2, 1, 2, 4, 2, 1));
    assert_int_equal(raft_peer(&raft, 2)->next, 3);
    receive(&raft, rejected(2, 1, 2, 4, 0, 0)); /* of the first ask */
    assert_int_equal(raft_peer(&raft, 2)->next, 3);
    receive(&raft, appended(2, 1, 2, 5, 0));
    receive(&raft, rejected(2, 1, 2, 3, 2, 1));
    assert_int_equal(raft_peer(&raft, 2)->mode, RAFT_STREAM);
    assert_int_equal(raft_peer(&raft, 2)->match, 5);
    receive(&raft, rejected(2, 1, 2, 5, 0, 0)); /* it cannot have lost what was durable */
    assert_int_equal(raft_peer(&raft, 2)->next, 6);
}

/* ---- Terms ---- */

static void a_log_of_very_many_terms_is_kept(void **state) {
    (void)state;
    struct raft raft, again;
    struct raft_out out = {0};
    struct raft_config config = members(3);
    raft_open(&again, 1, 200, 0);
    raft_restore_base(&again, 0, 0, &config);
    raft = fresh(1, 3);
    for (uint64_t term = 1; term <= 200; term++) {
        struct raft_message m = append(2, 1, term, term - 1, term - 1, 1, term);
        m.other = term - 1;
        receive(&raft, m);
        saved(&raft);
        raft_restore(&again, term, 1, term, NULL);
    }
    assert_int_equal(raft.last, 200);
    assert_int_equal(raft.runs, RAFT_RUNS_MAX);
    assert_int_equal(raft.base, 200 - RAFT_RUNS_MAX);
    raft_begin(&again, 0, &out); /* the same after a restart */
    assert_int_equal(again.last, 200);
    assert_int_equal(again.base, raft.base);
    assert_int_equal(again.committed, again.base);
    assert_memory_equal(again.run, raft.run, sizeof raft.run);
}

static void without_room_for_a_term_nothing_changes(void **state) {
    (void)state;
    for (unsigned durable = 0; durable < 2; durable++) {
        struct raft raft = fresh(1, 3);
        for (uint64_t term = 1; term <= RAFT_RUNS_MAX; term++) {
            struct raft_message m = append(2, 1, term, term - 1, term - 1, 1, term);
            m.other = durable ? 0 : term - 1; /* not decided, or decided and not durable */
            receive(&raft, m);
            if (durable) saved(&raft);
        }
        uint64_t last = raft.last, term = last + 1;
        struct raft_out out = receive(&raft, append(2, 1, term, last, last, 1, term));
        assert_false(out.take);
        assert_int_equal(out.messages, 0);
        assert_int_equal(raft.last, last);
        stand_up(&raft);
        receive(&raft, voted(2, 1, raft.term, RAFT_PRE | RAFT_GRANTED));
        receive(&raft, voted(2, 1, raft.term, RAFT_GRANTED));
        assert_int_equal(raft.role, RAFT_CANDIDATE); /* nor is there for an entry of its own */
        struct raft_message m = append(3, 1, raft.term + 1, last, last, 0, 0);
        m.other = last;
        receive(&raft, m);
        saved(&raft);
        out = receive(&raft, append(3, 1, raft.term, last, last, 1, raft.term));
        assert_true(out.take);
    }
}

/* ---- Snapshots ---- */

static void who_needs_what_is_gone_gets_a_snapshot(void **state) {
    (void)state;
    struct raft raft = leader_with("1111", 1, 3);
    saved(&raft);
    sent(&raft, 3);
    receive(&raft, appended(3, 1, 2, 5, 0));
    assert_int_equal(raft.committed, 5);
    sent(&raft, 2);
    raft_trimmed(&raft, 4);
    assert_int_equal(raft_peer(&raft, 2)->mode, RAFT_PROBE);
    receive(&raft, rejected(2, 1, 2, 4, 2, 1));
    assert_int_equal(raft_peer(&raft, 2)->mode, RAFT_SNAPSHOT);
    struct raft_message m = sent(&raft, 2);
    assert_int_equal(m.count, 0); /* only asks whether it is still so */
    assert_int_equal(m.index, 4);
    nothing_for(&raft, 2);
    receive(&raft, rejected(2, 1, 2, 4, 2, 1));
    assert_int_equal(raft_peer(&raft, 2)->mode, RAFT_SNAPSHOT);
    raft_trimmed(&raft, 5);
    receive(&raft, appended(2, 1, 2, 4, 0)); /* an older one is not enough */
    assert_int_equal(raft_peer(&raft, 2)->mode, RAFT_SNAPSHOT);
    receive(&raft, appended(2, 1, 2, 5, 0));
    assert_int_equal(raft_peer(&raft, 2)->mode, RAFT_STREAM);
    raft_propose(&raft, 1);
    m = sent(&raft, 2);
    assert_int_equal(m.index, 5);
    assert_int_equal(m.index_term, 2);
    assert_int_equal(m.count, 1);
}

static void a_snapshot_stands_in_the_place_of_the_log(void **state) {
    (void)state;
    struct raft raft = restarted(1, 3, 0, "1122", members(3));
    struct raft_config config = members(4);
    receive(&raft, append(2, 1, 3, 0, 0, 0, 0));
    struct raft_message chunk = message(RAFT_CHUNK, 2, 1, 3);
    chunk.index = 9;
    struct raft_out out = receive(&raft, chunk);
    assert_true(out.chunk);
    out = (struct raft_out){0};
    assert_true(raft_installed(&raft, 9, 3, &config, &out));
    assert_true(answers(&out, RAFT_APPENDED, 0));
    assert_int_equal(out.message[0].index, 9);
    assert_int_equal(raft.base, 9);
    assert_int_equal(raft.last, 9);
    assert_int_equal(raft.committed, 9);
    assert_int_equal(raft_term_of(&raft, 9), 3);
    assert_int_equal(raft.config.count, 4);
    assert_false(raft_installed(&raft, 8, 3, &config, &out)); /* older than what is decided */
    out = receive(&raft, chunk); /* once more: the answer may have been lost */
    assert_false(out.chunk);
    assert_true(answers(&out, RAFT_APPENDED, 0));
    assert_int_equal(out.message[0].index, 9);
    /* What goes on from it, and what it has already. */
    receive(&raft, append(2, 1, 3, 9, 3, 1, 3));
    receive(&raft, append(2, 1, 3, 7, 2, 4, 3));
    assert_int_equal(raft.last, 11);
}

static void a_snapshot_leaves_what_goes_on_from_it(void **state) {
    (void)state;
    struct raft raft = restarted(1, 3, 0, "1122", members(3));
    struct raft_config config = members(3);
    struct raft_out out = {0};
    assert_true(raft_installed(&raft, 3, 2, &config, &out));
    assert_int_equal(raft.last, 4);
    assert_int_equal(raft.base, 3);
    assert_int_equal(raft_term_of(&raft, 4), 2);
    raft = restarted(1, 3, 0, "1122", members(3));
    assert_true(raft_installed(&raft, 3, 3, &config, &out)); /* ours was another one */
    assert_int_equal(raft.last, 3);
    assert_int_equal(raft_term_of(&raft, 3), 3);
}

static void the_answers_to_chunks_are_the_owners(void **state) {
    (void)state;
    struct raft raft = leader_with("", 0, 3);
    struct raft_out out = receive(&raft, message(RAFT_CHUNKED, 2, 1, 1));
    assert_true(out.chunk);
    waited(&raft); /* it has been heard */
    assert_int_equal(raft.role, RAFT_LEADER);
    dropped(&raft, message(RAFT_CHUNK, 2, 1, 1)); /* there is one leader in a term */
    dropped(&raft, message(RAFT_CHUNKED, 9, 1, 1));
}

/* ---- What makes no sense ---- */

static void malformed_appends_are_dropped(void **state) {
    (void)state;
    struct raft raft = restarted(1, 2, 0, "12", members(3));
    struct raft_message good = append(2, 1, 2, 2, 2, 1, 2),
                        bad[] = {good, good, good, good, good, good, good, good, good, good};
    bad[0].from = 0;
    bad[1].to = 3;
    bad[2].from = 1;
    bad[3].type = RAFT_TYPES;
    bad[4].index = UINT64_MAX;
    bad[5].index_term = 3;
    bad[6].entries_term = 1;
    bad[7].entries_term = 3;
    bad[8].kind = RAFT_CONFIG; /* without one */
    bad[9].term = UINT64_MAX;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct raft before = raft;
        dropped(&raft, bad[i]);
        assert_memory_equal(&before, &raft, sizeof raft);
    }
    struct raft_config config = {.count = RAFT_MEMBERS_MAX + 1};
    struct raft_out out = {0};
    bad[8].kind = RAFT_CONFIG;
    assert_false(raft_receive(&raft, &bad[8], &config, &out));
    receive(&raft, good);
    dropped(&raft, append(3, 1, 2, 2, 2, 1, 2)); /* a second leader of the term */
}

static uint64_t odd_number(struct rng *rng) {
    static const uint64_t edges[] = {0, 1, 2, UINT32_MAX, INT32_MAX, RAFT_INDEX_MAX, UINT64_MAX};
    if (rng_below(rng, 4)) return rng_below(rng, 8);
    return edges[rng_below(rng, sizeof edges / sizeof *edges)] - rng_below(rng, 2);
}

static struct raft_message random_message(struct rng *rng) {
    struct raft_message m = {.index = odd_number(rng),
                             .index_term = odd_number(rng),
                             .other = odd_number(rng),
                             .entries_term = odd_number(rng),
                             .round = odd_number(rng),
                             .count = (uint32_t)odd_number(rng),
                             .type = (uint8_t)rng_below(rng, RAFT_TYPES + 1),
                             .flags = (uint8_t)rng_below(rng, 33),
                             .from = (uint8_t)rng_below(rng, 6),
                             .to = 1,
                             .kind = (uint8_t)(rng_below(rng, 8) == 0)};
    /* Huge terms are taken, so they come seldom: nothing is of interest after them. */
    m.term = rng_below(rng, 50) ? rng_below(rng, 9) : odd_number(rng);
    return m;
}

static void no_message_breaks_an_invariant(void **state) {
    (void)state;
    struct rng rng;
    rng_seed(&rng, 7);
    for (int i = 0; i < 3000; i++) {
        struct raft raft = restarted(1, 3, 0, "1123", members((uint32_t)rng_below(&rng, 3) + 3));
        struct raft_message m = append(2, 1, 4, 2, 1, 0, 0);
        m.other = 2;
        if (rng_below(&rng, 2))
            receive(&raft, m);
        else
            elect(&raft);
        for (int step = 0; step < 40; step++) {
            struct raft_out out = {0};
            struct raft_config config = members((uint32_t)rng_below(&rng, RAFT_MEMBERS_MAX + 1));
            uint64_t before = raft.committed, before_term = raft_term_of(&raft, before);
            config.reserved = rng_below(&rng, 9) == 0;
            if (rng_below(&rng, 9) == 0) config.count = RAFT_MEMBERS_MAX + 1;
            m = random_message(&rng);
            raft_receive(&raft, &m, m.kind ? &config : NULL, &out);
            assert_true(raft.committed >= before);
            if (raft.base <= before) assert_int_equal(raft_term_of(&raft, before), before_term);
            for (uint8_t id = 1; id < 7; id++)
                if (raft_append_for(&raft, id, UINT64_MAX, &m)) raft_sent(&raft, &m);
            if (rng_below(&rng, 8) == 0) waited(&raft);
            if (rng_below(&rng, 8) == 0) saved(&raft);
            if (rng_below(&rng, 8) == 0) raft_beat(&raft);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_a_quorum_has_is_decided),
        cmocka_unit_test(an_older_terms_entry_is_not_counted),
        cmocka_unit_test(a_follower_learns_what_is_decided_of_what_it_has),
        cmocka_unit_test(nothing_is_said_to_be_there_before_it_is_durable),
        cmocka_unit_test(what_an_older_leader_left_is_not_said_to_be_there),
        cmocka_unit_test(what_was_replaced_meanwhile_is_not_durable),
        cmocka_unit_test(what_differs_is_replaced_with_all_behind_it),
        cmocka_unit_test(what_is_decided_is_never_replaced),
        cmocka_unit_test(a_leader_asks_first_and_streams_then),
        cmocka_unit_test(a_probe_that_was_lost_is_sent_again_with_the_next_beat),
        cmocka_unit_test(entries_of_a_message_are_of_one_term),
        cmocka_unit_test(what_is_decided_is_told_once),
        cmocka_unit_test(agreement_is_found_run_by_run),
        cmocka_unit_test(any_two_logs_become_the_same),
        cmocka_unit_test(a_late_rejection_changes_nothing),
        cmocka_unit_test(a_log_of_very_many_terms_is_kept),
        cmocka_unit_test(without_room_for_a_term_nothing_changes),
        cmocka_unit_test(who_needs_what_is_gone_gets_a_snapshot),
        cmocka_unit_test(a_snapshot_stands_in_the_place_of_the_log),
        cmocka_unit_test(a_snapshot_leaves_what_goes_on_from_it),
        cmocka_unit_test(the_answers_to_chunks_are_the_owners),
        cmocka_unit_test(malformed_appends_are_dropped),
        cmocka_unit_test(no_message_breaks_an_invariant),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
