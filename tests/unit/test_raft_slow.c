/* Slow links: heartbeats that overtake entries, and messages that take long to arrive. */
#include "raft_help.h"

/* A leader of three members, the entries of which have been sent to member 2 and not answered. */
static struct raft sending_leader(void) {
    struct raft raft = restarted(1, 1, 1, "11", members(3));
    struct raft_out out = {0};
    struct raft_message m;
    raft_become_candidate(&raft, false, &out);
    receive(&raft, vote_response(2, 1, 2, GRANTED));
    assert_int_equal(raft.role, RAFT_LEADER);
    make_durable(&raft);
    assert_true(raft_next_append(&raft, 2, raft.last_index, &m));
    raft_append_sent(&raft, &m);
    receive(&raft, append_response(2, 1, 2, 3, 0));
    assert_int_equal(raft_find_peer(&raft, 2)->mode, RAFT_STREAM);
    assert_int_equal(raft_propose(&raft, 5), 4);
    assert_true(raft_next_append(&raft, 2, raft.last_index, &m));
    assert_int_equal(m.append_entries.entry_count, 5);
    raft_append_sent(&raft, &m);
    return raft;
}

/* It refers to what the member has; the entries that come later fit all the same. */
static void heartbeats_overtake_entries(void **state) {
    struct raft raft = sending_leader(), before;
    struct raft follower = restarted(2, 2, 0, "112", members(3));
    struct raft_message m;
    (void)state;
    assert_false(raft_overtaking_heartbeat(&raft, 2, &m));
    uint64_t round = raft_heartbeat(&raft);
    before = raft;
    assert_true(raft_overtaking_heartbeat(&raft, 2, &m));
    assert_int_equal(m.append_entries.prev_log_index, 3);
    assert_int_equal(m.append_entries.prev_log_term, 2);
    assert_int_equal(m.append_entries.entry_count, 0);
    assert_int_equal(m.append_entries.round, round);
    assert_int_equal(raft_find_peer(&raft, 2)->next_index, raft_find_peer(&before, 2)->next_index);
    assert_false(raft_overtaking_heartbeat(&raft, 2, &m)); /* one is enough */
    struct raft_out out = receive(&follower, m);
    assert_int_equal(out.timer, RAFT_TIMER_ELECTION_TIMEOUT);
    only_message_is(&out, RAFT_APPEND_ENTRIES_RESPONSE, 0);
    assert_false(out.message[0].append_entries_response.rejected);
    receive(&raft, out.message[0]);
    assert_int_equal(raft_find_peer(&raft, 2)->mode, RAFT_STREAM);
    assert_int_equal(raft.confirmed_round, round);
}

/* A member whose entries are no longer in memory is told nothing that it might not have. */
static void what_is_compacted_is_not_referred_to(void **state) {
    struct raft raft = sending_leader();
    struct raft follower = restarted(2, 2, 0, "112", members(3));
    struct raft_message m;
    (void)state;
    make_durable(&raft);
    receive(&raft, append_response(3, 1, 2, 8, 0));
    assert_int_equal(raft.commit_index, 8);
    raft_compacted(&raft, 6);
    raft_heartbeat(&raft);
    assert_true(raft_overtaking_heartbeat(&raft, 2, &m));
    assert_int_equal(m.append_entries.prev_log_index, 0);
    assert_int_equal(m.append_entries.prev_log_term, 0);
    struct raft_out out = receive(&follower, m);
    only_message_is(&out, RAFT_APPEND_ENTRIES_RESPONSE, 0);
    assert_false(out.message[0].append_entries_response.rejected);
    assert_int_equal(follower.last_index, 3);
}

static void only_streams_are_overtaken(void **state) {
    struct raft raft = sending_leader();
    struct raft_message m;
    (void)state;
    raft_heartbeat(&raft);
    assert_false(raft_overtaking_heartbeat(&raft, 3, &m)); /* it is probed */
    assert_false(raft_overtaking_heartbeat(&raft, 1, &m));
    assert_false(raft_overtaking_heartbeat(&raft, 9, &m));
    raft_peer_disconnected(&raft, 2);
    assert_false(raft_overtaking_heartbeat(&raft, 2, &m));
    struct raft follower = restarted(2, 2, 0, "112", members(3));
    assert_false(raft_overtaking_heartbeat(&follower, 1, &m));
}

/* Bytes of the leader are a sign of life, those of others are not. */
static void a_message_on_its_way_is_no_silence(void **state) {
    struct raft raft = restarted(2, 2, 0, "112", members(3));
    struct raft_out out = {0};
    (void)state;
    raft_peer_alive(&raft, 1, &out);
    assert_int_equal(out.timer, RAFT_TIMER_UNCHANGED); /* nobody leads */
    receive(&raft, append_request(1, 2, 2, 3, 2, 0, 0));
    raft_peer_alive(&raft, 3, &out);
    assert_int_equal(out.timer, RAFT_TIMER_UNCHANGED);
    raft_peer_alive(&raft, 1, &out);
    assert_int_equal(out.timer, RAFT_TIMER_ELECTION_TIMEOUT);
    fire_timer(&raft);
    out = (struct raft_out){0};
    raft_peer_alive(&raft, 1, &out); /* it has been given up: only a message brings it back */
    assert_int_equal(out.timer, RAFT_TIMER_UNCHANGED);
    assert_int_equal(raft.leader, 0);
}

/* Nor is one of a follower: the leader keeps its quorum. */
static void a_follower_that_sends_slowly_is_active(void **state) {
    struct raft raft = sending_leader();
    struct raft_out out = {0};
    (void)state;
    fire_timer(&raft);
    raft_peer_alive(&raft, 9, &out); /* no member */
    raft_peer_alive(&raft, 2, &out);
    assert_int_equal(out.timer, RAFT_TIMER_UNCHANGED);
    fire_timer(&raft);
    assert_int_equal(raft.role, RAFT_LEADER);
    fire_timer(&raft);
    assert_int_equal(raft.role, RAFT_FOLLOWER);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(heartbeats_overtake_entries),
        cmocka_unit_test(what_is_compacted_is_not_referred_to),
        cmocka_unit_test(only_streams_are_overtaken),
        cmocka_unit_test(a_message_on_its_way_is_no_silence),
        cmocka_unit_test(a_follower_that_sends_slowly_is_active),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
