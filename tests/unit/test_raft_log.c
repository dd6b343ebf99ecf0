/* The consensus core, rule by rule: replication, the commit index, snapshots, and messages that
 * make no sense. */
#include "raft_help.h"

static struct raft leader_with(const char *log, uint64_t term, uint32_t count) {
    struct raft raft = restarted(1, term, 0, log, members(count));
    elect(&raft);
    return raft;
}

/* ---- The commit index ---- */

static void what_is_durable_on_a_quorum_is_committed(void **state) {
    (void)state;
    struct raft raft = leader_with("", 0, 5);
    raft_propose(&raft, 3);
    receive(&raft, append_response(2, 1, 1, 4, 0));
    receive(&raft, append_response(3, 1, 1, 3, 0));
    assert_int_equal(raft.commit_index, 0); /* not durable on its own disk yet */
    receive(&raft, append_response(4, 1, 1, 1, 0));
    assert_int_equal(raft.commit_index, 1); /* but three others are enough */
    make_durable(&raft);
    assert_int_equal(raft.commit_index, 3);
    receive(&raft, append_response(5, 1, 1, 4, 0));
    assert_int_equal(raft.commit_index, 4);
    receive(&raft, append_response(3, 1, 1, 2, 0)); /* late */
    assert_int_equal(raft.commit_index, 4);
    assert_dropped(&raft, append_response(3, 1, 1, 5, 0)); /* beyond the log */
}

/* Figure 8 of the Raft paper: a member may have a newer entry at the index of an older term's. */
static void replicas_of_an_older_terms_entry_are_not_counted(void **state) {
    (void)state;
    struct raft raft = leader_with("12", 3, 5);
    make_durable(&raft);
    receive(&raft, append_response(2, 1, 4, 2, 0));
    receive(&raft, append_response(3, 1, 4, 2, 0));
    assert_int_equal(raft.commit_index, 0);
    receive(&raft, append_response(2, 1, 4, 3, 0));
    assert_int_equal(raft.commit_index, 0);
    receive(&raft, append_response(3, 1, 4, 3, 0));
    assert_int_equal(raft.commit_index, 3);
}

static void a_follower_commits_what_it_has_of_leader_commit(void **state) {
    (void)state;
    struct raft raft = restarted(1, 1, 0, "111", members(3));
    struct raft_message m = append_request(2, 1, 2, 1, 1, 0, 0);
    m.append_entries.leader_commit = 3; /* of the leader's log; entries after 1 may conflict */
    receive(&raft, m);
    assert_int_equal(raft.commit_index, 1);
    m = append_request(2, 1, 2, 1, 1, 1, 1);
    m.append_entries.leader_commit = 3;
    receive(&raft, m);
    assert_int_equal(raft.commit_index, 2);
}

static void nothing_is_acknowledged_before_it_is_durable(void **state) {
    (void)state;
    struct raft raft = new_member(1, 3);
    struct raft_message m = append_request(2, 1, 1, 0, 0, 2, 1);
    struct raft_out out = receive(&raft, m);
    assert_true(out.append_entries);
    assert_int_equal(out.messages, 0);
    m.append_entries.round = 1;
    out = receive(&raft, m); /* a new round is responded to at once */
    assert_false(out.append_entries);
    assert_true(only_message_is(&out, RAFT_APPEND_ENTRIES_RESPONSE, 0));
    assert_int_equal(out.message[0].append_entries_response.match_index, 0);
    assert_int_equal(out.message[0].append_entries_response.round, 1);
    out = make_durable(&raft);
    assert_true(only_message_is(&out, RAFT_APPEND_ENTRIES_RESPONSE, 0));
    assert_int_equal(out.message[0].append_entries_response.match_index, 2);
    assert_int_equal(out.message[0].to, 2);
}

static void an_older_leaders_entries_are_not_acknowledged(void **state) {
    (void)state;
    struct raft raft = restarted(1, 2, 0, "1122", members(3));
    struct raft_out out = receive(&raft, append_request(2, 1, 3, 2, 1, 0, 0));
    /* 3 and 4 may conflict with the leader's log, and then with the next leader's. */
    assert_int_equal(out.message[0].append_entries_response.match_index, 2);
    receive(&raft, append_request(2, 1, 3, 4, 2, 0, 0));
    out = receive(&raft, append_request(3, 1, 4, 2, 1, 0, 0));
    assert_int_equal(out.message[0].append_entries_response.match_index, 2);
}

static void entries_replaced_meanwhile_do_not_become_durable(void **state) {
    (void)state;
    struct raft raft = new_member(1, 3);
    struct raft_out out = {0};
    receive(&raft, append_request(2, 1, 1, 0, 0, 3, 1));
    receive(&raft, append_request(3, 1, 2, 1, 1, 2, 2)); /* replaces 2 and 3 */
    raft_entries_durable(&raft, 3, 1, &out);             /* only the first of the three is left */
    assert_int_equal(raft.durable_index, 1);
    assert_true(only_message_is(&out, RAFT_APPEND_ENTRIES_RESPONSE, 0));
    assert_int_equal(out.message[0].append_entries_response.match_index, 1);
    receive(&raft, append_request(2, 1, 3, 1, 1, 2, 3)); /* replaces them again */
    raft_entries_durable(&raft, 3, 2, &out);
    assert_int_equal(raft.durable_index, 1);
    receive(&raft, append_request(3, 1, 4, 1, 1, 1, 1)); /* by an entry of an older term */
    raft_entries_durable(&raft, 3, 3, &out);
    assert_int_equal(raft.durable_index, 1);
    raft_entries_durable(&raft, 2, 1, &out);
    assert_int_equal(raft.durable_index, 2);
}

static void conflicting_entries_are_truncated(void **state) {
    (void)state;
    struct raft raft = restarted(1, 2, 0, "11122", members(3));
    /* 3 matches, 4 conflicts. */
    struct raft_out out = receive(&raft, append_request(2, 1, 3, 2, 1, 2, 1));
    assert_true(out.append_entries);
    assert_int_equal(out.append_from, 4);
    assert_int_equal(raft.last_index, 4);
    assert_int_equal(raft.durable_index, 3);
    assert_int_equal(raft_term_at(&raft, 4), 1);
    /* A late message truncates nothing. */
    out = receive(&raft, append_request(2, 1, 3, 0, 0, 2, 1));
    assert_false(out.append_entries);
    assert_int_equal(raft.last_index, 4);
    assert_int_equal(out.message[0].append_entries_response.match_index, 3);
}

static void committed_entries_are_never_replaced(void **state) {
    (void)state;
    struct raft raft = restarted(1, 1, 0, "111", members(3));
    struct raft_message m = append_request(2, 1, 2, 3, 1, 0, 0);
    m.append_entries.leader_commit = 3;
    receive(&raft, m);
    assert_int_equal(raft.commit_index, 3);
    struct raft before = raft;
    assert_dropped(&raft, append_request(2, 1, 2, 1, 1, 2, 2));
    assert_dropped(&raft, append_request(2, 1, 2, 2, 2, 0, 0));
    assert_memory_equal(&before, &raft, sizeof raft);
}

/* ---- AppendEntries ---- */

static void a_leader_probes_before_it_streams(void **state) {
    (void)state;
    struct raft raft = leader_with("11", 1, 3);
    struct raft_message m = send_append(&raft, 2);
    assert_int_equal(m.append_entries.prev_log_index, 2);
    assert_int_equal(m.append_entries.prev_log_term, 1);
    assert_int_equal(m.append_entries.entry_count, 1);
    raft_propose(&raft, 1);
    assert_nothing_due(&raft, 2); /* one probe at a time */
    receive(&raft, append_response(2, 1, 2, 3, 0));
    for (uint64_t i = 4; i <= 6; i++) {
        m = send_append(&raft, 2);
        assert_int_equal(m.append_entries.prev_log_index, i - 1);
        assert_int_equal(m.append_entries.entry_count, 1);
        if (i < 6) raft_propose(&raft, 1); /* before the response to the last one */
    }
    assert_nothing_due(&raft, 2);
    assert_int_equal(raft_find_peer(&raft, 2)->match_index, 3);
}

static void a_lost_probe_is_sent_again_with_the_next_heartbeat(void **state) {
    (void)state;
    struct raft raft = leader_with("", 0, 3);
    send_append(&raft, 2);
    assert_nothing_due(&raft, 2);
    raft_heartbeat(&raft);
    assert_int_equal(send_append(&raft, 2).append_entries.entry_count, 1);
    raft_peer_disconnected(&raft, 2);
    assert_int_equal(send_append(&raft, 2).append_entries.entry_count, 1);
}

static void entries_of_a_message_are_of_one_term(void **state) {
    (void)state;
    struct raft raft = leader_with("112", 2, 3);
    send_append(&raft, 2);
    receive(&raft, append_rejection(2, 1, 3, 3, 0, 0));
    struct raft_message m = send_append(&raft, 2);
    assert_int_equal(m.append_entries.prev_log_index, 0);
    assert_int_equal(m.append_entries.entry_count, 2);
    assert_int_equal(m.append_entries.entries_term, 1);
    receive(&raft, append_response(2, 1, 3, 2, 0));
    m = send_append(&raft, 2);
    assert_int_equal(m.append_entries.entry_count, 1);
    assert_int_equal(m.append_entries.entries_term, 2);
    assert_int_equal(send_append(&raft, 2).append_entries.entries_term, 3);
    assert_nothing_due(&raft, 2);
}

static void the_commit_index_is_sent_once(void **state) {
    (void)state;
    struct raft raft = leader_with("", 0, 3);
    make_durable(&raft);
    send_append(&raft, 2);
    receive(&raft, append_response(2, 1, 1, 1, 0));
    struct raft_message m = send_append(&raft, 2);
    assert_int_equal(m.append_entries.entry_count, 0);
    assert_int_equal(m.append_entries.leader_commit, 1);
    assert_nothing_due(&raft, 2);
}

/* Replicates from a leader to a follower until the logs are equal; returns the messages it took. */
static unsigned messages_until_equal(struct raft *leader, struct raft *follower) {
    unsigned messages = 0;
    while (raft_find_peer(leader, follower->self)->match_index < leader->last_index) {
        struct raft_message m = send_append(leader, follower->self);
        assert_in_range(++messages, 1, 30);
        struct raft_out out = receive(follower, m);
        if (out.append_entries) out = make_durable(follower);
        receive(leader, out.message[0]);
    }
    return messages;
}

static void the_last_agreement_is_found_run_by_run(void **state) {
    (void)state;
    static const struct {
        const char *leader, *follower;
        unsigned messages;
    } cases[] = {
        {"1111111111", "", 4},                 /* an empty log: one rejection, then a run each */
        {"1111111111", "1111", 4},             /* a shorter log */
        {"1444444444", "1333333333", 4},       /* conflicting runs */
        {"1222222225555", "1222233333333", 5}, /* with a common prefix */
        {"1111112222", "1111113333", 3},
        {"1133333333", "1122222222", 4},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct raft leader = leader_with(cases[i].leader, 6, 3);
        struct raft follower = restarted(2, 6, 0, cases[i].follower, members(3));
        assert_in_range(messages_until_equal(&leader, &follower), 1, cases[i].messages);
        assert_int_equal(follower.last_index, leader.last_index);
        assert_int_equal(follower.runs, leader.runs);
        assert_memory_equal(follower.run, leader.run, sizeof leader.run);
    }
}

static void any_two_logs_become_equal(void **state) {
    (void)state;
    struct rng rng;
    rng_seed(&rng, 1);
    for (int i = 0; i < 2000; i++) {
        char log[2][16] = {{0}, {0}};
        uint64_t same = rng_below(&rng, 8);
        for (unsigned n = 0; n < 2; n++) {
            char term = '1';
            for (uint64_t at = 0, last = rng_below(&rng, 15); at < last; at++) {
                if (rng_below(&rng, 3) == 0 && term < '7') term++;
                log[n][at] = n && at < same && log[0][at] ? log[0][at] : term;
                term = log[n][at] > term ? log[n][at] : term;
            }
        }
        for (unsigned at = 1; log[1][at]; at++)
            if (log[1][at] < log[1][at - 1]) log[1][at] = log[1][at - 1];
        /* Log matching: after the first conflict no index has the same term in both. */
        for (unsigned at = 0, differs = 0; log[1][at]; at++) {
            differs |= log[0][at] != log[1][at];
            if (differs && log[0][at] == log[1][at]) log[1][at] = 0;
        }
        struct raft leader = leader_with(log[0], 9, 3);
        struct raft follower = restarted(2, 9, 0, log[1], members(3));
        messages_until_equal(&leader, &follower);
        assert_int_equal(follower.last_index, leader.last_index);
        assert_memory_equal(follower.run, leader.run, sizeof leader.run);
    }
}

static void a_late_rejection_changes_nothing(void **state) {
    (void)state;
    struct raft raft = leader_with("1111", 1, 3);
    send_append(&raft, 2);
    receive(&raft, append_rejection(2, 1, 2, 4, 2, 1));
    assert_int_equal(raft_find_peer(&raft, 2)->next_index, 3);
    receive(&raft, append_rejection(2, 1, 2, 4, 0, 0)); /* to the first probe */
    assert_int_equal(raft_find_peer(&raft, 2)->next_index, 3);
    receive(&raft, append_response(2, 1, 2, 5, 0));
    receive(&raft, append_rejection(2, 1, 2, 3, 2, 1));
    assert_int_equal(raft_find_peer(&raft, 2)->mode, RAFT_STREAM);
    assert_int_equal(raft_find_peer(&raft, 2)->match_index, 5);
    receive(&raft, append_rejection(2, 1, 2, 5, 0, 0)); /* it cannot lose what is durable */
    assert_int_equal(raft_find_peer(&raft, 2)->next_index, 6);
}

/* ---- Terms ---- */

/* However many leaders there were that committed nothing: the next one has room for its term, and
 * what it commits commits them all. */
static void hundreds_of_terms_are_undecided_and_then_committed(void **state) {
    (void)state;
    enum { TERMS = 500 };
    struct terms terms = {0}, others = {0};
    struct raft raft = new_member(1, 3), again;
    struct raft_out out = {0};
    struct raft_config config = members(3);
    has_terms(&raft, &terms);
    raft_open(&again, 1, TERMS, 0);
    has_terms(&again, &terms);
    raft_restore_snapshot(&again, 0, 0, &config);
    for (uint64_t term = 1; term <= TERMS; term++) {
        receive(&raft, append_request(2, 1, term, term - 1, term - 1, 1, term));
        note_terms(&terms, &raft);
        if (term % 3) make_durable(&raft);
        raft_restore_entries(&again, term, 1, term, NULL);
    }
    make_durable(&raft);
    raft_start(&again, 0, &out); /* the same after a restart */
    assert_int_equal(again.commit_index, 0);
    for (uint64_t i = 1; i <= TERMS; i++) {
        assert_int_equal(raft_term_at(&raft, i), i);
        assert_int_equal(raft_term_at(&again, i), i);
    }
    elect(&again);
    note_terms(&terms, &again);
    assert_int_equal(again.role, RAFT_LEADER);
    assert_int_equal(again.last_index, TERMS + 1);
    /* A member with an empty log gets all of it, a term at a time. */
    struct raft follower = new_member(3, 3);
    has_terms(&follower, &others);
    make_durable(&again);
    for (int i = 0; i < 3 * TERMS && again.commit_index < TERMS + 1; i++) {
        struct raft_message m;
        raft_heartbeat(&again);
        if (!raft_next_append(&again, 3, UINT64_MAX, &m)) continue;
        raft_append_sent(&again, &m);
        out = receive(&follower, m);
        note_terms(&others, &follower);
        if (out.messages) receive(&again, out.message[out.messages - 1]);
        out = make_durable(&follower);
        if (out.messages) receive(&again, out.message[out.messages - 1]);
    }
    assert_int_equal(again.commit_index, TERMS + 1);
    assert_memory_equal(others.at, terms.at, (TERMS + 2) * sizeof *terms.at);
    raft_compacted(&again, 250);
    assert_int_equal(again.snapshot_term, 250);
    assert_int_equal(raft_term_at(&again, 251), 251);
}

/* A conflict far back, where the terms are the owner's. */
static void hundreds_of_terms_are_replaced(void **state) {
    (void)state;
    enum { TERMS = 300 };
    struct terms terms = {0};
    struct raft raft = new_member(1, 3);
    has_terms(&raft, &terms);
    for (uint64_t term = 1; term <= TERMS; term++) {
        receive(&raft, append_request(2, 1, term, term - 1, term - 1, 1, term));
        note_terms(&terms, &raft);
        make_durable(&raft);
    }
    struct raft_out out = receive(&raft, append_request(3, 1, 400, 250, 260, 1, 400));
    assert_true(out.message[0].append_entries_response.rejected);
    assert_int_equal(out.message[0].append_entries_response.match_index, 249);
    assert_int_equal(out.message[0].append_entries_response.match_term, 249);
    assert_int_equal(raft.last_index, TERMS);
    out = receive(&raft, append_request(3, 1, 400, 200, 200, 2, 400));
    assert_true(out.append_entries);
    assert_int_equal(out.append_from, 201);
    note_terms(&terms, &raft);
    assert_int_equal(raft.last_index, 202);
    assert_int_equal(raft_term_at(&raft, 202), 400);
    assert_int_equal(raft_term_at(&raft, 200), 200);
    assert_int_equal(raft.durable_index, 200);
}

/* ---- Snapshots ---- */

static void a_member_that_needs_compacted_entries_gets_a_snapshot(void **state) {
    (void)state;
    struct raft raft = leader_with("1111", 1, 3);
    make_durable(&raft);
    send_append(&raft, 3);
    receive(&raft, append_response(3, 1, 2, 5, 0));
    assert_int_equal(raft.commit_index, 5);
    send_append(&raft, 2);
    raft_compacted(&raft, 4);
    assert_int_equal(raft_find_peer(&raft, 2)->mode, RAFT_PROBE);
    receive(&raft, append_rejection(2, 1, 2, 4, 2, 1));
    assert_int_equal(raft_find_peer(&raft, 2)->mode, RAFT_SNAPSHOT);
    struct raft_message m = send_append(&raft, 2);
    assert_int_equal(m.append_entries.entry_count, 0); /* only a probe */
    assert_int_equal(m.append_entries.prev_log_index, 4);
    assert_nothing_due(&raft, 2);
    receive(&raft, append_rejection(2, 1, 2, 4, 2, 1));
    assert_int_equal(raft_find_peer(&raft, 2)->mode, RAFT_SNAPSHOT);
    raft_compacted(&raft, 5);
    receive(&raft, append_response(2, 1, 2, 4, 0)); /* an older snapshot is not enough */
    assert_int_equal(raft_find_peer(&raft, 2)->mode, RAFT_SNAPSHOT);
    receive(&raft, append_response(2, 1, 2, 5, 0));
    assert_int_equal(raft_find_peer(&raft, 2)->mode, RAFT_STREAM);
    raft_propose(&raft, 1);
    m = send_append(&raft, 2);
    assert_int_equal(m.append_entries.prev_log_index, 5);
    assert_int_equal(m.append_entries.prev_log_term, 2);
    assert_int_equal(m.append_entries.entry_count, 1);
}

static void a_snapshot_replaces_the_log(void **state) {
    (void)state;
    struct raft raft = restarted(1, 3, 0, "1122", members(3));
    struct raft_config config = members(4);
    receive(&raft, append_request(2, 1, 3, 0, 0, 0, 0));
    struct raft_message chunk = message(RAFT_INSTALL_SNAPSHOT, 2, 1, 3);
    chunk.install_snapshot.last_included_index = 9;
    struct raft_out out = receive(&raft, chunk);
    assert_true(out.snapshot_chunk);
    out = (struct raft_out){0};
    assert_true(raft_snapshot_installed(&raft, 9, 3, &config, &out));
    assert_true(only_message_is(&out, RAFT_APPEND_ENTRIES_RESPONSE, 0));
    assert_int_equal(out.message[0].append_entries_response.match_index, 9);
    assert_int_equal(raft.snapshot_index, 9);
    assert_int_equal(raft.last_index, 9);
    assert_int_equal(raft.commit_index, 9);
    assert_int_equal(raft_term_at(&raft, 9), 3);
    assert_int_equal(raft.config.count, 4);
    assert_false(
        raft_snapshot_installed(&raft, 8, 3, &config, &out)); /* older than the commit index */
    out = receive(&raft, chunk);                              /* again: the response was lost */
    assert_false(out.snapshot_chunk);
    assert_true(only_message_is(&out, RAFT_APPEND_ENTRIES_RESPONSE, 0));
    assert_int_equal(out.message[0].append_entries_response.match_index, 9);
    /* Entries that follow it, and some that it includes. */
    receive(&raft, append_request(2, 1, 3, 9, 3, 1, 3));
    receive(&raft, append_request(2, 1, 3, 7, 2, 4, 3));
    assert_int_equal(raft.last_index, 11);
}

static void a_snapshot_keeps_the_entries_that_follow_it(void **state) {
    (void)state;
    struct raft raft = restarted(1, 3, 0, "1122", members(3));
    struct raft_config config = members(3);
    struct raft_out out = {0};
    assert_true(raft_snapshot_installed(&raft, 3, 2, &config, &out));
    assert_int_equal(raft.last_index, 4);
    assert_int_equal(raft.snapshot_index, 3);
    assert_int_equal(raft_term_at(&raft, 4), 2);
    raft = restarted(1, 3, 0, "1122", members(3));
    assert_true(
        raft_snapshot_installed(&raft, 3, 3, &config, &out)); /* the log's entry conflicts */
    assert_int_equal(raft.last_index, 3);
    assert_int_equal(raft_term_at(&raft, 3), 3);
}

static void responses_to_chunks_go_to_the_owner(void **state) {
    (void)state;
    struct raft raft = leader_with("", 0, 3);
    struct raft_out out = receive(&raft, message(RAFT_INSTALL_SNAPSHOT_RESPONSE, 2, 1, 1));
    assert_true(out.snapshot_chunk);
    fire_timer(&raft); /* the response counts as activity */
    assert_int_equal(raft.role, RAFT_LEADER);
    assert_dropped(&raft, message(RAFT_INSTALL_SNAPSHOT, 2, 1, 1)); /* a term has one leader */
    assert_dropped(&raft, message(RAFT_INSTALL_SNAPSHOT_RESPONSE, 9, 1, 1));
}

/* ---- Malformed messages ---- */

static void malformed_append_entries_are_dropped(void **state) {
    (void)state;
    struct raft raft = restarted(1, 2, 0, "12", members(3));
    struct raft_message good = append_request(2, 1, 2, 2, 2, 1, 2),
                        bad[] = {good, good, good, good, good, good, good, good, good, good};
    bad[0].from = 0;
    bad[1].to = 3;
    bad[2].from = 1;
    bad[3].type = RAFT_MESSAGE_TYPES;
    bad[4].append_entries.prev_log_index = UINT64_MAX;
    bad[5].append_entries.prev_log_term = 3;
    bad[6].append_entries.entries_term = 1;
    bad[7].append_entries.entries_term = 3;
    bad[8].append_entries.entry_kind = RAFT_CONFIG; /* without a configuration */
    bad[9].term = UINT64_MAX;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct raft before = raft;
        assert_dropped(&raft, bad[i]);
        assert_memory_equal(&before, &raft, sizeof raft);
    }
    struct raft_config config = {.count = RAFT_MEMBERS_MAX + 1};
    struct raft_out out = {0};
    bad[8].append_entries.entry_kind = RAFT_CONFIG;
    assert_false(raft_receive(&raft, &bad[8], &config, &out));
    receive(&raft, good);
    assert_dropped(&raft, append_request(3, 1, 2, 2, 2, 1, 2)); /* a second leader of the term */
}

static uint64_t odd_number(struct rng *rng) {
    static const uint64_t edges[] = {0, 1, 2, UINT32_MAX, INT32_MAX, RAFT_INDEX_MAX, UINT64_MAX};
    if (rng_below(rng, 4)) return rng_below(rng, 8);
    return edges[rng_below(rng, sizeof edges / sizeof *edges)] - rng_below(rng, 2);
}

static uint64_t random_u64(struct rng *rng) { return odd_number(rng); }
static uint32_t random_u32(struct rng *rng) { return (uint32_t)odd_number(rng); }
static uint8_t random_u8(struct rng *rng) { return (uint8_t)rng_below(rng, 3); }

static struct raft_message random_message(struct rng *rng) {
    struct raft_message m = {.type = (uint8_t)rng_below(rng, RAFT_MESSAGE_TYPES + 1),
                             .from = (uint8_t)rng_below(rng, 6),
                             .to = 1};
    switch (m.type) {
#define FIELD(TYPE, NAME, FROM) body->NAME = random_##TYPE(rng);
#define MESSAGE(NUMBER, NAME, TITLE)                                                               \
    case NUMBER: {                                                                                 \
        struct raft_##NAME *body = &m.NAME;                                                        \
        RAFT_FIELDS_##NAME(FIELD) break;                                                           \
    }
        RAFT_MESSAGES(MESSAGE)
    }
    /* A huge term is adopted, and little of interest happens after it: it is rare. */
    m.term = rng_below(rng, 50) ? rng_below(rng, 9) : odd_number(rng);
    return m;
}

static void no_message_breaks_an_invariant(void **state) {
    (void)state;
    struct rng rng;
    static struct terms terms;
    rng_seed(&rng, 7);
    for (int i = 0; i < 3000; i++) {
        struct raft raft = restarted(1, 3, 0, "1123", members((uint32_t)rng_below(&rng, 3) + 3));
        struct raft_message m = append_request(2, 1, 4, 2, 1, 0, 0);
        has_terms(&raft, &terms);
        m.append_entries.leader_commit = 2;
        if (rng_below(&rng, 2))
            receive(&raft, m);
        else
            elect(&raft);
        for (int step = 0; step < 40; step++) {
            struct raft_out out = {0};
            struct raft_config config = members((uint32_t)rng_below(&rng, RAFT_MEMBERS_MAX + 1));
            uint64_t before = raft.commit_index, before_term = raft_term_at(&raft, before);
            config.reserved = rng_below(&rng, 9) == 0;
            if (rng_below(&rng, 9) == 0) config.count = RAFT_MEMBERS_MAX + 1;
            m = random_message(&rng);
            bool is_config = m.type == RAFT_APPEND_ENTRIES && m.append_entries.entry_kind;
            raft_receive(&raft, &m, is_config ? &config : NULL, &out);
            assert_true(raft.commit_index >= before);
            note_terms(&terms, &raft);
            if (raft.snapshot_index <= before)
                assert_int_equal(raft_term_at(&raft, before), before_term);
            for (uint8_t id = 1; id < 7; id++)
                if (raft_next_append(&raft, id, UINT64_MAX, &m)) raft_append_sent(&raft, &m);
            if (rng_below(&rng, 8) == 0) fire_timer(&raft), note_terms(&terms, &raft);
            if (rng_below(&rng, 8) == 0) make_durable(&raft);
            if (rng_below(&rng, 8) == 0) raft_heartbeat(&raft);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_durable_on_a_quorum_is_committed),
        cmocka_unit_test(replicas_of_an_older_terms_entry_are_not_counted),
        cmocka_unit_test(a_follower_commits_what_it_has_of_leader_commit),
        cmocka_unit_test(nothing_is_acknowledged_before_it_is_durable),
        cmocka_unit_test(an_older_leaders_entries_are_not_acknowledged),
        cmocka_unit_test(entries_replaced_meanwhile_do_not_become_durable),
        cmocka_unit_test(conflicting_entries_are_truncated),
        cmocka_unit_test(committed_entries_are_never_replaced),
        cmocka_unit_test(a_leader_probes_before_it_streams),
        cmocka_unit_test(a_lost_probe_is_sent_again_with_the_next_heartbeat),
        cmocka_unit_test(entries_of_a_message_are_of_one_term),
        cmocka_unit_test(the_commit_index_is_sent_once),
        cmocka_unit_test(the_last_agreement_is_found_run_by_run),
        cmocka_unit_test(any_two_logs_become_equal),
        cmocka_unit_test(a_late_rejection_changes_nothing),
        cmocka_unit_test(hundreds_of_terms_are_undecided_and_then_committed),
        cmocka_unit_test(hundreds_of_terms_are_replaced),
        cmocka_unit_test(a_member_that_needs_compacted_entries_gets_a_snapshot),
        cmocka_unit_test(a_snapshot_replaces_the_log),
        cmocka_unit_test(a_snapshot_keeps_the_entries_that_follow_it),
        cmocka_unit_test(responses_to_chunks_go_to_the_owner),
        cmocka_unit_test(malformed_append_entries_are_dropped),
        cmocka_unit_test(no_message_breaks_an_invariant),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
