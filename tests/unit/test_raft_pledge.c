/* The consensus core, rule by rule: pledges, by which a follower commits before its leader does. */
#include "raft_help.h"

static struct raft leader_of(struct raft_config config, const char *log, uint64_t term) {
    struct raft raft = restarted(1, term, 0, log, config);
    elect(&raft);
    return raft;
}

/* A leader of three whose first entry is committed on all of them. */
static struct raft settled_leader(void) {
    struct raft raft = leader_of(members(3), "", 0);
    make_durable(&raft);
    for (uint8_t id = 2; id <= 3; id++) {
        send_append(&raft, id);
        receive(&raft, append_response(id, 1, 1, 1, 0));
    }
    for (uint8_t id = 2; id <= 3; id++)
        if (raft_peer_commit_index(raft_find_peer(&raft, id)) < raft.commit_index)
            send_append(&raft, id);
    assert_int_equal(raft.commit_index, 1);
    return raft;
}

static struct raft_message with_pledge(struct raft_message m, uint64_t pledge) {
    m.append_entries.pledge = pledge;
    return m;
}

/* ---- Pledging ---- */

static void what_a_member_completes_a_quorum_for_is_pledged(void **state) {
    (void)state;
    struct raft raft = settled_leader();
    raft_propose(&raft, 2);
    assert_int_equal(send_append(&raft, 2).append_entries.pledge,
                     1); /* the leader's are not durable yet */
    assert_nothing_due(&raft, 2);
    make_durable(&raft);
    struct raft_message m = send_append(&raft, 2);
    assert_int_equal(m.append_entries.pledge, 3);
    assert_int_equal(m.append_entries.leader_commit, 1);
    assert_int_equal(send_append(&raft, 3).append_entries.pledge, 3);
    assert_nothing_due(&raft, 2);
}

static void a_pledge_does_not_need_the_leaders_own_disk(void **state) {
    (void)state;
    struct raft raft = settled_leader();
    raft_propose(&raft, 2);
    send_append(&raft, 2);
    send_append(&raft, 3);
    receive(&raft, append_response(3, 1, 1, 2, 0));
    assert_int_equal(raft.commit_index, 1);
    assert_int_equal(send_append(&raft, 2).append_entries.pledge, 2);
    assert_nothing_due(&raft, 3);
}

static void a_pledge_of_five_needs_one_more_member(void **state) {
    (void)state;
    struct raft raft = leader_of(members(5), "", 0);
    make_durable(&raft);
    assert_int_equal(send_append(&raft, 2).append_entries.pledge, 0);
    receive(&raft, append_response(2, 1, 1, 1, 0));
    assert_int_equal(send_append(&raft, 3).append_entries.pledge, 1);
}

static void a_pledge_counts_weights(void **state) {
    (void)state;
    struct raft raft = leader_of(weights(3, (uint16_t[]){1, 1, 3}), "", 0);
    make_durable(&raft);
    assert_int_equal(send_append(&raft, 2).append_entries.pledge, 0);
    assert_int_equal(send_append(&raft, 3).append_entries.pledge, 1);
}

/* A member may have a newer entry at its index. */
static void an_older_terms_entry_is_not_pledged(void **state) {
    (void)state;
    struct raft raft = leader_of(members(3), "12", 3);
    assert_int_equal(raft.durable_index, 2);
    assert_int_equal(send_append(&raft, 2).append_entries.pledge, 0);
    make_durable(&raft);
    assert_int_equal(send_append(&raft, 3).append_entries.pledge, 3);
}

static void a_pledge_that_may_be_lost_is_sent_again(void **state) {
    (void)state;
    struct raft raft = settled_leader();
    raft_propose(&raft, 1);
    send_append(&raft, 2);
    make_durable(&raft);
    assert_int_equal(send_append(&raft, 2).append_entries.pledge, 2);
    raft_peer_disconnected(&raft, 2);
    receive(&raft, append_response(2, 1, 1, 2, 0)); /* to the message before the pledge */
    assert_int_equal(raft_peer_commit_index(raft_find_peer(&raft, 2)), 0);
    assert_int_equal(send_append(&raft, 2).append_entries.leader_commit, 2);
}

/* ---- The leader's side ---- */

static void a_member_that_commits_by_a_pledge_is_not_notified(void **state) {
    (void)state;
    struct raft raft = settled_leader();
    raft_propose(&raft, 1);
    send_append(&raft, 3);
    make_durable(&raft);
    send_append(&raft, 2);
    assert_nothing_due(&raft, 2);
    receive(&raft, append_response(2, 1, 1, 2, 0));
    assert_int_equal(raft.commit_index, 2);
    assert_int_equal(raft_peer_commit_index(raft_find_peer(&raft, 2)), 2);
    assert_nothing_due(&raft, 2);
    assert_int_equal(send_append(&raft, 3).append_entries.leader_commit,
                     2); /* it has not responded */
}

/* A follower's client may have seen an entry that the leader has not committed yet. */
static void the_read_index_includes_pledges(void **state) {
    (void)state;
    struct raft raft = settled_leader();
    assert_int_equal(raft_read_index(&raft), 1);
    raft_propose(&raft, 1);
    make_durable(&raft);
    send_append(&raft, 2);
    assert_int_equal(raft.commit_index, 1);
    assert_int_equal(raft_read_index(&raft), 2);
    receive(&raft, append_response(3, 1, 1, 2, 0));
    assert_int_equal(raft_read_index(&raft), 2);
    raft_propose(&raft, 1);
    assert_int_equal(raft_read_index(&raft), 2);
}

/* ---- The follower's side ---- */

static void a_follower_commits_what_is_pledged_when_it_is_durable(void **state) {
    (void)state;
    struct raft raft = new_member(1, 3);
    receive(&raft, with_pledge(append_request(2, 1, 1, 0, 0, 2, 1), 2));
    assert_int_equal(raft.commit_index, 0);
    struct raft_out out = make_durable(&raft);
    assert_int_equal(raft.commit_index, 2);
    /* The leader commits when it has the response. */
    assert_true(only_message_is(&out, RAFT_APPEND_ENTRIES_RESPONSE, 0));
    assert_int_equal(out.message[0].append_entries_response.match_index, 2);
}

static void a_pledge_may_come_late_or_early(void **state) {
    (void)state;
    struct raft raft = new_member(1, 3);
    receive(&raft, append_request(2, 1, 1, 0, 0, 2, 1));
    make_durable(&raft);
    assert_int_equal(raft.commit_index, 0);
    receive(&raft, with_pledge(append_request(2, 1, 1, 2, 1, 0, 0), 4));
    assert_int_equal(raft.commit_index, 2); /* what it has of it */
    receive(&raft, append_request(2, 1, 1, 2, 1, 3, 1));
    assert_int_equal(raft.commit_index, 2);
    make_durable(&raft);
    assert_int_equal(raft.commit_index, 4);
}

static void a_pledge_does_not_commit_an_older_terms_entry(void **state) {
    (void)state;
    struct raft raft = restarted(1, 2, 0, "1", members(3));
    receive(&raft, with_pledge(append_request(2, 1, 3, 1, 1, 1, 3), 2));
    assert_int_equal(raft.durable_index, 1);
    assert_int_equal(raft.commit_index, 0);
    make_durable(&raft);
    assert_int_equal(raft.commit_index, 2);
}

static void a_pledge_ends_with_its_term(void **state) {
    (void)state;
    struct raft raft = new_member(1, 3);
    receive(&raft, with_pledge(append_request(2, 1, 1, 0, 0, 1, 1), 5));
    receive(&raft, append_request(3, 1, 2, 1, 1, 3, 2)); /* another leader, without a pledge */
    make_durable(&raft);
    assert_int_equal(raft.commit_index, 0);
}

static void a_candidate_forgets_its_pledge(void **state) {
    (void)state;
    struct raft raft = new_member(1, 3);
    receive(&raft, with_pledge(append_request(2, 1, 1, 0, 0, 1, 1), 5));
    elect(&raft);
    assert_int_equal(raft_read_index(&raft), 0);
    make_durable(&raft);
    assert_int_equal(raft.commit_index, 0);
}

static void a_pledge_that_makes_no_sense_is_dropped(void **state) {
    (void)state;
    struct raft raft = new_member(1, 3);
    assert_dropped(&raft, with_pledge(append_request(2, 1, 1, 0, 0, 1, 1), UINT64_MAX));
    assert_int_equal(raft.last_index, 0);
    assert_int_equal(raft.pledge, 0);
}

/* ---- Commit notifications ---- */

static void a_commit_notification_gets_no_response(void **state) {
    (void)state;
    struct raft leader = settled_leader();
    raft_propose(&leader, 1);
    assert_false(send_append(&leader, 2).append_entries.commit_notification); /* entries */
    make_durable(&leader);
    struct raft_message m = send_append(&leader, 2);
    assert_true(m.append_entries.commit_notification);
    struct raft raft = restarted(2, 1, 0, "11", members(3));
    struct raft_out out = receive(&raft, m);
    assert_int_equal(out.messages, 0);
    assert_int_equal(raft.commit_index, 2);
    m.append_entries.round = 1; /* but a new round is responded to */
    out = receive(&raft, m);
    assert_true(only_message_is(&out, RAFT_APPEND_ENTRIES_RESPONSE, 0));
    raft_heartbeat(&leader);
    assert_false(send_append(&leader, 2).append_entries.commit_notification);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_a_member_completes_a_quorum_for_is_pledged),
        cmocka_unit_test(a_pledge_does_not_need_the_leaders_own_disk),
        cmocka_unit_test(a_pledge_of_five_needs_one_more_member),
        cmocka_unit_test(a_pledge_counts_weights),
        cmocka_unit_test(an_older_terms_entry_is_not_pledged),
        cmocka_unit_test(a_pledge_that_may_be_lost_is_sent_again),
        cmocka_unit_test(a_member_that_commits_by_a_pledge_is_not_notified),
        cmocka_unit_test(the_read_index_includes_pledges),
        cmocka_unit_test(a_follower_commits_what_is_pledged_when_it_is_durable),
        cmocka_unit_test(a_pledge_may_come_late_or_early),
        cmocka_unit_test(a_pledge_does_not_commit_an_older_terms_entry),
        cmocka_unit_test(a_pledge_ends_with_its_term),
        cmocka_unit_test(a_candidate_forgets_its_pledge),
        cmocka_unit_test(a_pledge_that_makes_no_sense_is_dropped),
        cmocka_unit_test(a_commit_notification_gets_no_response),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
