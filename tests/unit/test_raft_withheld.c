/* A member that may have lost entries which it had acknowledged: it has no vote until it has caught
 * up with a leader. */
#include "raft_help.h"

static struct raft shortened(const char *log) {
    struct raft raft = restarted(3, 2, 0, log, members(3));
    raft.vote_withheld = 1;
    return raft;
}

static void it_does_not_stand_for_election(void **state) {
    struct raft raft = shortened("11");
    (void)state;
    for (int i = 0; i < 5; i++) {
        struct raft_out out = fire_timer(&raft);
        assert_int_equal(raft.role, RAFT_FOLLOWER);
        assert_int_equal(out.messages, 0);
        assert_int_not_equal(out.timer, RAFT_TIMER_UNCHANGED);
    }
    assert_dropped(&raft, message(RAFT_TIMEOUT_NOW, 1, 3, 2));
    assert_int_equal(raft.role, RAFT_FOLLOWER);
}

static void it_stays_without_a_leader_even_alone(void **state) {
    struct raft_config config = members(1);
    struct raft raft;
    struct raft_out out = {0};
    (void)state;
    raft_open(&raft, 1, 1, 1);
    raft.vote_withheld = 1;
    raft_restore_snapshot(&raft, 0, 0, &config);
    raft_start(&raft, 0, &out);
    assert_int_equal(raft.role, RAFT_FOLLOWER);
}

static void it_grants_no_vote(void **state) {
    static const unsigned kinds[] = {0, PRE_VOTE, TRANSFER};
    (void)state;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        struct raft raft = shortened("11");
        fire_timer(&raft);
        struct raft_out out = receive(&raft, vote_request(1, 3, 3, 9, 2, kinds[i]));
        only_message_is(&out, RAFT_REQUEST_VOTE_RESPONSE, 0);
        assert_false(out.message[0].request_vote_response.vote_granted);
        assert_int_equal(raft.voted_for, 0);
    }
}

/* The leader's last entry, as the leader says it: with less the member may still lack what it had
 * acknowledged, and with what is not durable it may lose it again. */
static void it_votes_again_when_it_has_caught_up(void **state) {
    struct raft raft = shortened("11");
    (void)state;
    struct raft_out out = receive(&raft, append_request(1, 3, 2, 2, 1, 0, 0));
    assert_true(out.message[0].append_entries_response.vote_withheld);
    assert_true(raft.vote_withheld); /* the leader has not said how long its log is */
    struct raft_message m = append_request(1, 3, 2, 2, 1, 2, 2);
    m.append_entries.last_log_index = 5;
    receive(&raft, m);
    make_durable(&raft);
    assert_true(raft.vote_withheld);
    m = append_request(1, 3, 2, 4, 2, 1, 2);
    m.append_entries.last_log_index = 9; /* it grows; what it was at first is what counts */
    out = receive(&raft, m);
    assert_true(raft.vote_withheld);
    out = make_durable(&raft);
    assert_false(raft.vote_withheld);
    assert_true(out.persist_vote);
    assert_false(out.message[0].append_entries_response.vote_withheld);
}

/* What one term's leader said of its log says nothing about the next one's. */
static void it_begins_anew_with_each_leader(void **state) {
    struct raft raft = shortened("11");
    (void)state;
    struct raft_message m = append_request(1, 3, 2, 2, 1, 0, 0);
    m.append_entries.last_log_index = 3;
    receive(&raft, m);
    assert_int_equal(raft.catch_up_index, 3);
    m = append_request(2, 3, 3, 2, 1, 1, 3);
    m.append_entries.last_log_index = 4;
    receive(&raft, m);
    make_durable(&raft);
    assert_true(raft.vote_withheld);
    receive(&raft, append_request(2, 3, 3, 3, 3, 1, 3));
    make_durable(&raft);
    assert_false(raft.vote_withheld);
}

static struct raft leader(void) {
    struct raft raft = restarted(1, 1, 0, "11", members(3));
    elect(&raft);
    make_durable(&raft);
    return raft;
}

static void a_leader_tells_it_how_long_the_log_is(void **state) {
    struct raft raft = leader();
    (void)state;
    assert_int_equal(send_append(&raft, 3).append_entries.last_log_index, 0);
    struct raft_message m = append_response(3, 1, raft.term, 2, 0);
    m.append_entries_response.vote_withheld = 1;
    receive(&raft, m);
    assert_int_equal(send_append(&raft, 3).append_entries.last_log_index, raft.last_index);
    struct raft_out out = {0};
    assert_false(raft_transfer_leadership(&raft, 3, &out));
    assert_int_equal(raft_best_transferee(&raft), 2);
}

/* A process that comes back with a shorter log is sent what it lacks, and what it had acknowledged
 * before does not count. */
static void what_a_former_process_acknowledged_does_not_count(void **state) {
    struct raft raft = leader();
    (void)state;
    raft_propose(&raft, 2);
    send_append(&raft, 3);
    receive(&raft, append_response(3, 1, raft.term, 3, 0));
    assert_int_equal(raft.commit_index, 3);
    send_append(&raft, 3);
    receive(&raft, append_response(3, 1, raft.term, 5, 0));
    assert_int_equal(raft_find_peer(&raft, 3)->match_index, 5);
    raft_peer_restarted(&raft, 3);
    make_durable(&raft);
    assert_int_equal(raft.commit_index, 3); /* not by itself and the former process */
    struct raft_message m = send_append(&raft, 3);
    assert_int_equal(m.append_entries.prev_log_index, 5);
    receive(&raft, append_rejection(3, 1, raft.term, 5, 2, 1));
    assert_int_equal(send_append(&raft, 3).append_entries.prev_log_index, 2);
}

/* ---- Others that are wrong ---- */

/* Terms are finite: one that nobody can have reached would use them up. */
static void a_term_that_nobody_can_have_reached_is_refused(void **state) {
    struct raft raft = restarted(3, 2, 0, "11", members(3));
    (void)state;
    assert_dropped(&raft, append_request(1, 3, INT32_MAX, 2, 1, 0, 0));
    assert_dropped(&raft, append_response(1, 3, 2 + RAFT_TERM_JUMP_MAX + 1, 0, 0));
    assert_int_equal(raft.term, 2);
    receive(&raft, append_request(1, 3, 2 + RAFT_TERM_JUMP_MAX, 2, 1, 0, 0));
    raft = new_member(3, 3); /* it has nothing to compare with */
    receive(&raft, append_request(1, 3, INT32_MAX, 0, 0, 0, 0));
}

static void a_leader_that_contradicts_what_is_committed_is_reported(void **state) {
    struct raft raft = restarted(3, 2, 0, "11", members(3));
    (void)state;
    struct raft_message m = append_request(1, 3, 2, 2, 1, 0, 0);
    m.append_entries.leader_commit = 2;
    assert_false(receive(&raft, m).contradiction);
    assert_int_equal(raft.commit_index, 2);
    struct raft_message other[] = {append_request(1, 3, 2, 2, 2, 0, 0),
                                   append_request(1, 3, 2, 1, 1, 1, 2)};
    for (int i = 0; i < 2; i++) {
        struct raft_out out = {0};
        assert_false(raft_receive(&raft, &other[i], NULL, &out));
        assert_true(out.contradiction);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_does_not_stand_for_election),
        cmocka_unit_test(it_stays_without_a_leader_even_alone),
        cmocka_unit_test(it_grants_no_vote),
        cmocka_unit_test(it_votes_again_when_it_has_caught_up),
        cmocka_unit_test(it_begins_anew_with_each_leader),
        cmocka_unit_test(a_leader_tells_it_how_long_the_log_is),
        cmocka_unit_test(what_a_former_process_acknowledged_does_not_count),
        cmocka_unit_test(a_term_that_nobody_can_have_reached_is_refused),
        cmocka_unit_test(a_leader_that_contradicts_what_is_committed_is_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
