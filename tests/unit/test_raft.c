/* The consensus core, rule by rule: elections, leadership transfer, reads. */
#include "raft_help.h"

/* ---- Votes ---- */

static void a_member_votes_once_in_a_term(void **state) {
    (void)state;
    struct raft raft = new_member(1, 5);
    struct raft_out out = receive(&raft, vote_request(2, 1, 3, 0, 0, 0));
    assert_true(only_message_is(&out, RAFT_REQUEST_VOTE_RESPONSE, GRANTED));
    assert_true(out.persist_vote);
    assert_int_equal(out.message[0].term, 3);
    out = receive(&raft, vote_request(3, 1, 3, 0, 0, 0));
    assert_false(only_message_is(&out, RAFT_REQUEST_VOTE_RESPONSE, GRANTED));
    out = receive(&raft, vote_request(2, 1, 3, 0, 0, 0)); /* again: the response was lost */
    assert_true(only_message_is(&out, RAFT_REQUEST_VOTE_RESPONSE, GRANTED));
    raft = restarted(1, 3, 2, "", members(5)); /* the durable vote still counts */
    raft.leader_timed_out = 1;
    out = receive(&raft, vote_request(3, 1, 3, 0, 0, 0));
    assert_false(only_message_is(&out, RAFT_REQUEST_VOTE_RESPONSE, GRANTED));
}

static void a_new_ensemble_elects_its_first_leader(void **state) {
    (void)state;
    struct raft one = new_member(1, 3), two = new_member(2, 3);
    struct raft_out out = ask_for_pre_votes(&one);
    out = receive(&two, out.message[0]); /* of term 0 */
    out = receive(&one, out.message[0]);
    assert_int_equal(one.role, RAFT_CANDIDATE);
    out = receive(&two, out.message[0]);
    receive(&one, out.message[0]);
    assert_int_equal(one.role, RAFT_LEADER);
    assert_int_equal(one.term, 1);
    assert_dropped(&two, message(RAFT_TIMEOUT_NOW, 1, 2, 0));
    assert_dropped(&two, vote_request(3, 2, 0, 0, 0, 0));
}

static void a_candidate_votes_for_itself_only(void **state) {
    (void)state;
    struct raft raft = new_member(1, 3);
    struct raft_out out;
    ask_for_pre_votes(&raft);
    out = receive(&raft, vote_response(2, 1, raft.term, PRE_VOTE | GRANTED));
    assert_int_equal(raft.role, RAFT_CANDIDATE);
    assert_true(out.persist_vote);
    assert_int_equal(raft.voted_for, 1);
    out = receive(&raft, vote_request(3, 1, raft.term, 9, 1, 0));
    assert_false(only_message_is(&out, RAFT_REQUEST_VOTE_RESPONSE, GRANTED));
}

static void only_a_candidate_with_an_up_to_date_log_gets_a_vote(void **state) {
    (void)state;
    static const struct {
        uint64_t last_log_index, last_log_term;
        bool granted;
    } cases[] = {{3, 2, true}, {4, 2, true}, {2, 2, false}, {9, 1, false},
                 {1, 3, true}, {3, 3, true}, {0, 0, false}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (unsigned pre = 0; pre < 2; pre++) {
            struct raft raft = restarted(1, 3, 0, "122", members(3));
            raft.leader_timed_out = 1;
            struct raft_out out =
                receive(&raft, vote_request(2, 1, 3, cases[i].last_log_index,
                                            cases[i].last_log_term, pre ? PRE_VOTE : 0));
            assert_int_equal(only_message_is(&out, RAFT_REQUEST_VOTE_RESPONSE, GRANTED),
                             cases[i].granted);
            assert_int_equal(only_message_is(&out, RAFT_REQUEST_VOTE_RESPONSE, PRE_VOTE), pre);
        }
}

static void a_majority_elects_a_leader(void **state) {
    (void)state;
    struct raft raft = restarted(1, 1, 0, "", members(5));
    ask_for_pre_votes(&raft);
    receive(&raft, vote_response(2, 1, 1, PRE_VOTE | GRANTED));
    receive(&raft, vote_response(2, 1, 1, PRE_VOTE | GRANTED)); /* counts once */
    assert_int_equal(raft.role, RAFT_PRE_CANDIDATE);
    receive(&raft, vote_response(3, 1, 1, PRE_VOTE | GRANTED));
    assert_int_equal(raft.role, RAFT_CANDIDATE);
    receive(&raft, vote_response(2, 1, 2, GRANTED));
    receive(&raft, vote_response(3, 1, 2, 0));
    receive(&raft, vote_response(4, 1, 2, PRE_VOTE | GRANTED)); /* a pre-vote is no vote */
    receive(&raft, vote_response(9, 1, 2, GRANTED));            /* not a member */
    assert_int_equal(raft.role, RAFT_CANDIDATE);
    receive(&raft, vote_response(5, 1, 2, GRANTED));
    assert_int_equal(raft.role, RAFT_LEADER);
}

static void a_vote_of_an_older_term_does_not_count(void **state) {
    (void)state;
    struct raft raft = restarted(1, 5, 0, "", members(3));
    ask_for_pre_votes(&raft);
    receive(&raft, vote_response(2, 1, 5, PRE_VOTE | GRANTED));
    receive(&raft, vote_response(2, 1, 5, GRANTED));
    assert_int_equal(raft.role, RAFT_CANDIDATE);
    assert_int_equal(raft.term, 6);
}

static void a_member_without_a_configuration_grants_no_vote(void **state) {
    (void)state;
    struct raft raft = restarted(1, 0, 0, "", (struct raft_config){0});
    struct raft_out out = receive(&raft, vote_request(2, 1, 3, 5, 2, 0));
    assert_false(only_message_is(&out, RAFT_REQUEST_VOTE_RESPONSE, GRANTED));
    for (int i = 0; i < 5; i++) assert_int_equal(fire_timer(&raft).messages, 0);
}

/* ---- Pre-vote ---- */

static void a_pre_vote_changes_nothing(void **state) {
    (void)state;
    struct raft raft = restarted(1, 4, 2, "14", members(3));
    struct raft_out out = ask_for_pre_votes(&raft);
    assert_false(out.persist_vote);
    assert_int_equal(raft.term, 4);
    assert_int_equal(raft.voted_for, 2);
    assert_int_equal(out.messages, 2);
    assert_int_equal(out.message[0].term, 4);
    assert_true(out.message[0].request_vote.pre_vote);
    for (int i = 0; i < 9; i++) out = fire_timer(&raft); /* alone, for a long time */
    assert_int_equal(raft.term, 4);
    /* A member that is asked changes nothing either. */
    struct raft other = restarted(2, 4, 0, "14", members(3));
    other.leader_timed_out = 1;
    out = receive(&other, vote_request(1, 2, 4, 2, 4, PRE_VOTE));
    assert_true(only_message_is(&out, RAFT_REQUEST_VOTE_RESPONSE, PRE_VOTE | GRANTED));
    assert_false(out.persist_vote);
    assert_int_equal(other.voted_for, 0);
}

static void a_pre_vote_response_brings_a_newer_term(void **state) {
    (void)state;
    struct raft partitioned = restarted(1, 3, 0, "1233", members(3)); /* the longest log of all */
    struct raft other = restarted(2, 5, 3, "12", members(3));
    other.leader_timed_out = 1;
    struct raft_out out = ask_for_pre_votes(&partitioned);
    out = receive(&other, out.message[0]);
    assert_false(only_message_is(&out, RAFT_REQUEST_VOTE_RESPONSE, GRANTED));
    out = receive(&partitioned, out.message[0]);
    assert_int_equal(partitioned.term, 5);
    assert_true(out.persist_vote);
    out = ask_for_pre_votes(&partitioned);
    out = receive(&other, out.message[0]);
    assert_true(only_message_is(&out, RAFT_REQUEST_VOTE_RESPONSE, PRE_VOTE | GRANTED));
}

/* ---- Election timeout ---- */

static void a_follower_that_hears_its_leader_grants_no_vote(void **state) {
    (void)state;
    struct raft raft = new_member(1, 3);
    struct raft_out out = receive(&raft, append_request(2, 1, 1, 0, 0, 0, 0));
    assert_int_equal(out.timer, RAFT_TIMER_ELECTION_TIMEOUT);
    for (unsigned pre = 0; pre < 2; pre++) {
        out = receive(&raft, vote_request(3, 1, 7, 9, 1, pre ? PRE_VOTE : 0));
        assert_false(only_message_is(&out, RAFT_REQUEST_VOTE_RESPONSE, GRANTED));
        assert_int_equal(raft.term, 1);
        assert_int_equal(raft.leader, 2);
    }
    assert_int_equal(fire_timer(&raft).timer, RAFT_TIMER_ELECTION_JITTER);
    out = receive(&raft, vote_request(3, 1, 7, 9, 1, 0));
    assert_true(only_message_is(&out, RAFT_REQUEST_VOTE_RESPONSE, GRANTED));
}

static void a_leader_grants_no_vote(void **state) {
    (void)state;
    struct raft raft = new_member(1, 3);
    elect(&raft);
    struct raft_out out = receive(&raft, vote_request(3, 1, 7, 9, 1, 0));
    assert_false(only_message_is(&out, RAFT_REQUEST_VOTE_RESPONSE, GRANTED));
    assert_int_equal(raft.role, RAFT_LEADER);
}

static void a_restarted_member_grants_no_vote_for_an_election_timeout(void **state) {
    (void)state;
    struct raft raft = restarted(1, 1, 0, "1", members(3));
    struct raft_out out = receive(&raft, vote_request(3, 1, 7, 9, 1, 0));
    assert_false(only_message_is(&out, RAFT_REQUEST_VOTE_RESPONSE, GRANTED));
    /* Even if its weight alone is a quorum; only a single member has promised nobody. */
    raft = restarted(1, 1, 0, "1", weights(2, (uint16_t[]){2, 1}));
    assert_int_equal(raft.role, RAFT_FOLLOWER);
    raft = restarted(1, 1, 0, "1", members(1));
    assert_int_equal(raft.role, RAFT_LEADER);
    assert_int_equal(raft.term, 2);
}

static void a_leader_without_an_active_quorum_steps_down(void **state) {
    (void)state;
    struct raft raft = new_member(1, 5);
    elect(&raft);
    receive(&raft, append_response(2, 1, 1, 0, 0));
    receive(&raft, append_response(3, 1, 1, 0, 0));
    assert_int_equal(fire_timer(&raft).timer, RAFT_TIMER_ELECTION_TIMEOUT);
    assert_int_equal(raft.role, RAFT_LEADER);
    receive(&raft, append_response(4, 1, 1, 0, 0)); /* the others have not responded again */
    assert_int_equal(fire_timer(&raft).timer, RAFT_TIMER_ELECTION_JITTER);
    assert_int_equal(raft.role, RAFT_FOLLOWER);
    assert_int_equal(raft.term, 1);
    assert_int_equal(raft.leader, 0);
    assert_int_equal(raft_propose(&raft, 1), 0);
    assert_int_equal(raft_heartbeat(&raft), 0);
}

static void a_leader_steps_down_in_a_newer_term(void **state) {
    (void)state;
    struct raft raft = new_member(1, 3);
    elect(&raft);
    struct raft_out out = receive(&raft, append_request(2, 1, 3, 0, 0, 1, 3));
    assert_int_equal(raft.role, RAFT_FOLLOWER);
    assert_int_equal(raft.leader, 2);
    assert_true(out.persist_vote && out.append_entries);
    assert_int_equal(out.append_from, 1);
    /* The leader of an older term learns of the newer one from the response. */
    out = receive(&raft, append_request(3, 1, 1, 0, 0, 1, 1));
    assert_true(only_message_is(&out, RAFT_APPEND_ENTRIES_RESPONSE, REJECTED));
    assert_int_equal(out.message[0].term, 3);
}

static void the_end_of_a_leaders_process_ends_the_election_timeout(void **state) {
    (void)state;
    struct raft raft = new_member(1, 3);
    struct raft_out out = {0};
    receive(&raft, append_request(2, 1, 1, 0, 0, 0, 0));
    raft_peer_down(&raft, 3, &out);
    assert_false(raft.leader_timed_out);
    raft_peer_down(&raft, 2, &out);
    assert_true(raft.leader_timed_out);
    assert_int_equal(out.timer, RAFT_TIMER_ELECTION_JITTER);
    /* But a leader with a lease may only seem down from here. */
    struct raft_message leased = append_request(2, 1, 1, 0, 0, 0, 0);
    leased.append_entries.lease = 1;
    receive(&raft, leased);
    raft_peer_down(&raft, 2, &out);
    assert_false(raft.leader_timed_out);
}

/* ---- A new leader ---- */

static void a_leader_begins_with_an_entry_of_its_term(void **state) {
    (void)state;
    struct raft raft = restarted(1, 2, 0, "122", members(3));
    struct raft_out out = elect(&raft);
    assert_true(out.append_config);
    assert_int_equal(raft.last_index, 4);
    assert_int_equal(raft.durable_index, 3);
    assert_int_equal(raft.term_start_index, 4);
    assert_int_equal(raft_term_at(&raft, 4), 3);
    assert_int_equal(raft.config_index, 0); /* the same configuration again is no change */
    assert_int_equal(raft_propose(&raft, 5), 5);
    assert_int_equal(raft.last_index, 9);
    assert_false(raft_may_serve_reads(&raft));
}

/* ---- Leadership transfer ---- */

static struct raft leader_of_three(void) {
    struct raft raft = new_member(1, 3);
    elect(&raft);
    make_durable(&raft);
    send_append(&raft, 2);
    send_append(&raft, 3);
    receive(&raft, append_response(2, 1, 1, 1, 0));
    assert_int_equal(raft.commit_index, 1);
    return raft;
}

static void the_transferee_gets_timeout_now_when_it_has_the_log(void **state) {
    (void)state;
    struct raft raft = leader_of_three();
    struct raft_out out = {0};
    raft_propose(&raft, 2);
    assert_false(raft_transfer_leadership(&raft, 1, &out));
    assert_false(raft_transfer_leadership(&raft, 9, &out));
    assert_true(raft_transfer_leadership(&raft, 2, &out));
    assert_int_equal(out.messages, 0);
    assert_int_equal(raft_propose(&raft, 1), 0); /* no proposals during a transfer */
    out = receive(&raft, append_response(2, 1, 1, 2, 0));
    assert_int_equal(out.messages, 0);
    out = receive(&raft, append_response(2, 1, 1, 3, 0));
    assert_true(only_message_is(&out, RAFT_TIMEOUT_NOW, 0));
    assert_int_equal(out.message[0].to, 2);
    fire_timer(&raft); /* the transfer has timed out */
    assert_int_equal(raft.transferee, 0);
    assert_int_equal(raft_propose(&raft, 1), 4);
}

static void the_transferee_gets_votes_before_the_election_timeout(void **state) {
    (void)state;
    struct raft transferee = new_member(2, 3), other = new_member(3, 3);
    receive(&transferee, append_request(1, 2, 1, 0, 0, 1, 1));
    receive(&other, append_request(1, 3, 1, 0, 0, 1, 1));
    assert_dropped(&transferee, message(RAFT_TIMEOUT_NOW, 3, 2, 1)); /* not from the leader */
    struct raft_out out = receive(&transferee, message(RAFT_TIMEOUT_NOW, 1, 2, 1));
    assert_true(out.persist_vote);
    assert_int_equal(transferee.term, 2);
    assert_int_equal(out.messages, 2);
    assert_int_equal(out.message[1].to, 3);
    out = receive(&other, out.message[1]);
    assert_true(only_message_is(&out, RAFT_REQUEST_VOTE_RESPONSE, GRANTED));
    out = receive(&transferee, out.message[0]);
    assert_int_equal(transferee.role, RAFT_LEADER);
    out = receive(&transferee, message(RAFT_TIMEOUT_NOW, 1, 2, 1)); /* a duplicate */
    assert_int_equal(transferee.term, 2);
    assert_int_equal(transferee.role, RAFT_LEADER);
}

static void a_learner_is_no_transferee(void **state) {
    (void)state;
    struct raft raft = restarted(1, 0, 0, "", weights(3, (uint16_t[]){1, 1, 0}));
    struct raft_out out = {0};
    elect(&raft);
    assert_false(raft_transfer_leadership(&raft, 3, &out));
    assert_int_equal(raft_best_transferee(&raft), 2);
    raft = restarted(3, 0, 0, "", weights(3, (uint16_t[]){1, 1, 0}));
    receive(&raft, append_request(1, 3, 1, 0, 0, 1, 1));
    assert_dropped(&raft, message(RAFT_TIMEOUT_NOW, 1, 3, 1));
    for (int i = 0; i < 5; i++) assert_int_equal(fire_timer(&raft).messages, 0);
    assert_int_equal(raft.role, RAFT_FOLLOWER);
}

/* ---- Reads ---- */

static void a_round_is_confirmed_by_a_quorum_that_responded_to_it(void **state) {
    (void)state;
    struct raft raft = new_member(1, 5);
    elect(&raft);
    assert_int_equal(raft_heartbeat(&raft), 1);
    assert_int_equal(raft_heartbeat(&raft), 2);
    receive(&raft, append_response(2, 1, 1, 0, 2));
    receive(&raft, append_response(2, 1, 1, 0, 2));
    assert_int_equal(raft.confirmed_round, 0);
    receive(&raft, append_response(3, 1, 1, 0, 1));
    assert_int_equal(raft.confirmed_round, 1);
    receive(&raft, append_response(2, 1, 1, 0, 1)); /* late */
    receive(&raft, append_response(4, 1, 1, 0, 2));
    assert_int_equal(raft.confirmed_round, 2);
    assert_dropped(&raft, append_response(5, 1, 1, 0, 3)); /* there is no such round */
}

static void a_follower_responds_to_rounds_of_this_term_only(void **state) {
    (void)state;
    struct raft raft = new_member(1, 3);
    struct raft_message m = append_request(2, 1, 1, 0, 0, 0, 0);
    m.append_entries.round = 57;
    struct raft_out out = receive(&raft, m);
    assert_int_equal(out.message[0].append_entries_response.round, 57);
    ask_for_pre_votes(&raft);
    receive(&raft, vote_response(3, 1, 1, PRE_VOTE | GRANTED));
    assert_int_equal(raft.term, 2);
    m = append_request(3, 1, 2, 0, 0, 0, 0); /* but another candidate won */
    m.append_entries.round = 1;
    out = receive(&raft, m);
    assert_int_equal(out.message[0].append_entries_response.round, 1);
}

static void a_lease_is_announced_in_the_first_message(void **state) {
    (void)state;
    struct raft raft = new_member(1, 3);
    raft.leases_enabled = 1;
    elect(&raft);
    assert_true(send_append(&raft, 2).append_entries.lease);
    assert_false(raft_has_lease(&raft)); /* it has committed nothing in its term */
    make_durable(&raft);
    receive(&raft, append_response(2, 1, 1, 1, 0));
    assert_true(raft_has_lease(&raft));
}

static void timeout_now_revokes_the_lease(void **state) {
    (void)state;
    struct raft raft = leader_of_three();
    struct raft_out out = {0};
    raft.leases_enabled = 1;
    assert_true(raft_has_lease(&raft));
    assert_true(raft_transfer_leadership(&raft, 3, &out));
    assert_true(raft_has_lease(&raft)); /* member 3 does not have the log yet */
    fire_timer(&raft);
    assert_true(raft_transfer_leadership(&raft, 2, &out));
    assert_true(only_message_is(&out, RAFT_TIMEOUT_NOW, 0));
    assert_false(raft_has_lease(&raft));
    receive(&raft, append_response(2, 1, 1, 1, 0));
    fire_timer(&raft); /* member 2 may still act on the message */
    assert_int_equal(raft.transferee, 0);
    assert_false(raft_has_lease(&raft));
    raft_heartbeat(&raft);
    assert_false(send_append(&raft, 2).append_entries.lease);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_member_votes_once_in_a_term),
        cmocka_unit_test(a_new_ensemble_elects_its_first_leader),
        cmocka_unit_test(a_candidate_votes_for_itself_only),
        cmocka_unit_test(only_a_candidate_with_an_up_to_date_log_gets_a_vote),
        cmocka_unit_test(a_majority_elects_a_leader),
        cmocka_unit_test(a_vote_of_an_older_term_does_not_count),
        cmocka_unit_test(a_member_without_a_configuration_grants_no_vote),
        cmocka_unit_test(a_pre_vote_changes_nothing),
        cmocka_unit_test(a_pre_vote_response_brings_a_newer_term),
        cmocka_unit_test(a_follower_that_hears_its_leader_grants_no_vote),
        cmocka_unit_test(a_leader_grants_no_vote),
        cmocka_unit_test(a_restarted_member_grants_no_vote_for_an_election_timeout),
        cmocka_unit_test(a_leader_without_an_active_quorum_steps_down),
        cmocka_unit_test(a_leader_steps_down_in_a_newer_term),
        cmocka_unit_test(the_end_of_a_leaders_process_ends_the_election_timeout),
        cmocka_unit_test(a_leader_begins_with_an_entry_of_its_term),
        cmocka_unit_test(the_transferee_gets_timeout_now_when_it_has_the_log),
        cmocka_unit_test(the_transferee_gets_votes_before_the_election_timeout),
        cmocka_unit_test(a_learner_is_no_transferee),
        cmocka_unit_test(a_round_is_confirmed_by_a_quorum_that_responded_to_it),
        cmocka_unit_test(a_follower_responds_to_rounds_of_this_term_only),
        cmocka_unit_test(a_lease_is_announced_in_the_first_message),
        cmocka_unit_test(timeout_now_revokes_the_lease),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
