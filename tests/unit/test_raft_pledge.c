/* The consensus core, rule by rule: who decides by itself, and what the leader makes of that. */
#include "raft_help.h"

static struct raft leader_of(struct raft_config config, const char *log, uint64_t term) {
    struct raft raft = restarted(1, term, 0, log, config);
    elect(&raft);
    return raft;
}

/* A leader of three whose first entry all have and know to be decided. */
static struct raft settled(void) {
    struct raft raft = leader_of(members(3), "", 0);
    saved(&raft);
    for (uint8_t id = 2; id <= 3; id++) {
        sent(&raft, id);
        receive(&raft, appended(id, 1, 1, 1, 0));
    }
    for (uint8_t id = 2; id <= 3; id++)
        if (raft_peer_decided(raft_peer(&raft, id)) < raft.committed) sent(&raft, id);
    assert_int_equal(raft.committed, 1);
    return raft;
}

static struct raft_message with_pledge(struct raft_message m, uint64_t pledge) {
    m.pledge = pledge;
    return m;
}

/* ---- Giving ---- */

static void what_is_decided_once_a_member_has_it_is_pledged(void **state) {
    (void)state;
    struct raft raft = settled();
    raft_propose(&raft, 2);
    assert_int_equal(sent(&raft, 2).pledge, 1); /* the leader itself does not have them yet */
    nothing_for(&raft, 2);
    saved(&raft);
    struct raft_message m = sent(&raft, 2);
    assert_int_equal(m.pledge, 3);
    assert_int_equal(m.other, 1);
    assert_int_equal(sent(&raft, 3).pledge, 3);
    nothing_for(&raft, 2);
}

static void the_others_may_have_it_without_the_leader(void **state) {
    (void)state;
    struct raft raft = settled();
    raft_propose(&raft, 2);
    sent(&raft, 2);
    sent(&raft, 3);
    receive(&raft, appended(3, 1, 1, 2, 0));
    assert_int_equal(raft.committed, 1);
    assert_int_equal(sent(&raft, 2).pledge, 2);
    nothing_for(&raft, 3);
}

static void of_five_one_more_is_needed(void **state) {
    (void)state;
    struct raft raft = leader_of(members(5), "", 0);
    saved(&raft);
    assert_int_equal(sent(&raft, 2).pledge, 0);
    receive(&raft, appended(2, 1, 1, 1, 0));
    assert_int_equal(sent(&raft, 3).pledge, 1);
}

static void weights_count(void **state) {
    (void)state;
    struct raft raft = leader_of(weights(3, (uint16_t[]){1, 1, 3}), "", 0);
    saved(&raft);
    assert_int_equal(sent(&raft, 2).pledge, 0);
    assert_int_equal(sent(&raft, 3).pledge, 1);
}

/* Others may have a newer entry in its place. */
static void an_older_terms_entry_is_not_pledged(void **state) {
    (void)state;
    struct raft raft = leader_of(members(3), "12", 3);
    assert_int_equal(raft.saved, 2);
    assert_int_equal(sent(&raft, 2).pledge, 0);
    saved(&raft);
    assert_int_equal(sent(&raft, 3).pledge, 3);
}

static void a_pledge_that_may_be_lost_is_given_again(void **state) {
    (void)state;
    struct raft raft = settled();
    raft_propose(&raft, 1);
    sent(&raft, 2);
    saved(&raft);
    assert_int_equal(sent(&raft, 2).pledge, 2);
    raft_lost(&raft, 2);
    receive(&raft, appended(2, 1, 1, 2, 0)); /* to what came before the pledge */
    assert_int_equal(raft_peer_decided(raft_peer(&raft, 2)), 0);
    assert_int_equal(sent(&raft, 2).other, 2);
}

/* ---- What follows for the leader ---- */

static void who_knows_by_itself_is_not_told(void **state) {
    (void)state;
    struct raft raft = settled();
    raft_propose(&raft, 1);
    sent(&raft, 3);
    saved(&raft);
    sent(&raft, 2);
    nothing_for(&raft, 2);
    receive(&raft, appended(2, 1, 1, 2, 0));
    assert_int_equal(raft.committed, 2);
    assert_int_equal(raft_peer_decided(raft_peer(&raft, 2)), 2);
    nothing_for(&raft, 2);
    assert_int_equal(sent(&raft, 3).other, 2); /* it does not, as far as anybody knows */
}

/* A client of a member may have seen what its leader does not yet know to be decided. */
static void reads_wait_for_what_was_pledged(void **state) {
    (void)state;
    struct raft raft = settled();
    assert_int_equal(raft_read_index(&raft), 1);
    raft_propose(&raft, 1);
    saved(&raft);
    sent(&raft, 2);
    assert_int_equal(raft.committed, 1);
    assert_int_equal(raft_read_index(&raft), 2);
    receive(&raft, appended(3, 1, 1, 2, 0));
    assert_int_equal(raft_read_index(&raft), 2);
    raft_propose(&raft, 1);
    assert_int_equal(raft_read_index(&raft), 2);
}

/* ---- Being given one ---- */

static void who_was_given_a_pledge_decides_when_it_is_durable(void **state) {
    (void)state;
    struct raft raft = fresh(1, 3);
    receive(&raft, with_pledge(append(2, 1, 1, 0, 0, 2, 1), 2));
    assert_int_equal(raft.committed, 0);
    struct raft_out out = saved(&raft);
    assert_int_equal(raft.committed, 2);
    assert_true(answers(&out, RAFT_APPENDED, 0)); /* the leader does not know yet */
    assert_int_equal(out.message[0].index, 2);
}

static void a_pledge_may_come_late_or_early(void **state) {
    (void)state;
    struct raft raft = fresh(1, 3);
    receive(&raft, append(2, 1, 1, 0, 0, 2, 1));
    saved(&raft);
    assert_int_equal(raft.committed, 0);
    receive(&raft, with_pledge(append(2, 1, 1, 2, 1, 0, 0), 4));
    assert_int_equal(raft.committed, 2); /* as far as it has it */
    receive(&raft, append(2, 1, 1, 2, 1, 3, 1));
    assert_int_equal(raft.committed, 2);
    saved(&raft);
    assert_int_equal(raft.committed, 4);
}

static void an_older_terms_entry_is_not_decided_by_a_pledge(void **state) {
    (void)state;
    struct raft raft = restarted(1, 2, 0, "1", members(3));
    receive(&raft, with_pledge(append(2, 1, 3, 1, 1, 1, 3), 2));
    assert_int_equal(raft.saved, 1);
    assert_int_equal(raft.committed, 0);
    saved(&raft);
    assert_int_equal(raft.committed, 2);
}

static void a_pledge_ends_with_its_term(void **state) {
    (void)state;
    struct raft raft = fresh(1, 3);
    receive(&raft, with_pledge(append(2, 1, 1, 0, 0, 1, 1), 5));
    receive(&raft, append(3, 1, 2, 1, 1, 3, 2)); /* another leader, who has pledged nothing */
    saved(&raft);
    assert_int_equal(raft.committed, 0);
}

static void a_pledge_is_not_taken_into_an_election(void **state) {
    (void)state;
    struct raft raft = fresh(1, 3);
    receive(&raft, with_pledge(append(2, 1, 1, 0, 0, 1, 1), 5));
    elect(&raft);
    assert_int_equal(raft_read_index(&raft), 0);
    saved(&raft);
    assert_int_equal(raft.committed, 0);
}

static void a_pledge_that_makes_no_sense_is_dropped(void **state) {
    (void)state;
    struct raft raft = fresh(1, 3);
    dropped(&raft, with_pledge(append(2, 1, 1, 0, 0, 1, 1), UINT64_MAX));
    assert_int_equal(raft.last, 0);
    assert_int_equal(raft.pledge, 0);
}

/* ---- News ---- */

static void news_are_not_answered(void **state) {
    (void)state;
    struct raft leader = settled();
    raft_propose(&leader, 1);
    assert_false(sent(&leader, 2).flags & RAFT_NEWS); /* entries */
    saved(&leader);
    struct raft_message m = sent(&leader, 2);
    assert_true(m.flags & RAFT_NEWS);
    struct raft raft = restarted(2, 1, 0, "11", members(3));
    struct raft_out out = receive(&raft, m);
    assert_int_equal(out.messages, 0);
    assert_int_equal(raft.committed, 2);
    m.round = 1; /* but that we live is said */
    out = receive(&raft, m);
    assert_true(answers(&out, RAFT_APPENDED, 0));
    raft_beat(&leader);
    assert_false(sent(&leader, 2).flags & RAFT_NEWS);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_decided_once_a_member_has_it_is_pledged),
        cmocka_unit_test(the_others_may_have_it_without_the_leader),
        cmocka_unit_test(of_five_one_more_is_needed),
        cmocka_unit_test(weights_count),
        cmocka_unit_test(an_older_terms_entry_is_not_pledged),
        cmocka_unit_test(a_pledge_that_may_be_lost_is_given_again),
        cmocka_unit_test(who_knows_by_itself_is_not_told),
        cmocka_unit_test(reads_wait_for_what_was_pledged),
        cmocka_unit_test(who_was_given_a_pledge_decides_when_it_is_durable),
        cmocka_unit_test(a_pledge_may_come_late_or_early),
        cmocka_unit_test(an_older_terms_entry_is_not_decided_by_a_pledge),
        cmocka_unit_test(a_pledge_ends_with_its_term),
        cmocka_unit_test(a_pledge_is_not_taken_into_an_election),
        cmocka_unit_test(a_pledge_that_makes_no_sense_is_dropped),
        cmocka_unit_test(news_are_not_answered),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
