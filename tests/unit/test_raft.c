/* The consensus core, rule by rule: elections, hand-over, leases, time. */
#include "raft_help.h"

/* ---- Voting ---- */

static void one_vote_in_a_term(void **state) {
    (void)state;
    struct raft raft = fresh(1, 5);
    struct raft_out out = receive(&raft, vote(2, 1, 3, 0, 0, 0));
    assert_true(answers(&out, RAFT_VOTED, RAFT_GRANTED));
    assert_true(out.save_vote);
    assert_int_equal(out.message[0].term, 3);
    out = receive(&raft, vote(3, 1, 3, 0, 0, 0));
    assert_false(answers(&out, RAFT_VOTED, RAFT_GRANTED));
    out = receive(&raft, vote(2, 1, 3, 0, 0, 0)); /* it asks once more, for the answer was lost */
    assert_true(answers(&out, RAFT_VOTED, RAFT_GRANTED));
    raft = restarted(1, 3, 2, "", members(5)); /* what was saved still counts */
    raft.silent = 1;
    out = receive(&raft, vote(3, 1, 3, 0, 0, 0));
    assert_false(answers(&out, RAFT_VOTED, RAFT_GRANTED));
}

static void a_new_ensemble_elects_its_first_leader(void **state) {
    (void)state;
    struct raft one = fresh(1, 3), two = fresh(2, 3);
    struct raft_out out = stand_up(&one);
    out = receive(&two, out.message[0]); /* of term 0 */
    out = receive(&one, out.message[0]);
    assert_int_equal(one.role, RAFT_CANDIDATE);
    out = receive(&two, out.message[0]);
    receive(&one, out.message[0]);
    assert_int_equal(one.role, RAFT_LEADER);
    assert_int_equal(one.term, 1);
    dropped(&two, message(RAFT_CAMPAIGN, 1, 2, 0));
    dropped(&two, vote(3, 2, 0, 0, 0, 0));
}

static void one_who_stands_votes_for_nobody_else(void **state) {
    (void)state;
    struct raft raft = fresh(1, 3);
    struct raft_out out;
    stand_up(&raft);
    out = receive(&raft, voted(2, 1, raft.term, RAFT_PRE | RAFT_GRANTED));
    assert_int_equal(raft.role, RAFT_CANDIDATE);
    assert_true(out.save_vote);
    assert_int_equal(raft.vote, 1);
    out = receive(&raft, vote(3, 1, raft.term, 9, 1, 0));
    assert_false(answers(&out, RAFT_VOTED, RAFT_GRANTED));
}

static void only_a_log_that_is_as_long_gets_a_vote(void **state) {
    (void)state;
    static const struct {
        uint64_t index, index_term;
        bool granted;
    } cases[] = {{3, 2, true}, {4, 2, true}, {2, 2, false}, {9, 1, false},
                 {1, 3, true}, {3, 3, true}, {0, 0, false}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (unsigned pre = 0; pre < 2; pre++) {
            struct raft raft = restarted(1, 3, 0, "122", members(3));
            raft.silent = 1;
            struct raft_out out = receive(
                &raft, vote(2, 1, 3, cases[i].index, cases[i].index_term, pre ? RAFT_PRE : 0));
            assert_int_equal(answers(&out, RAFT_VOTED, RAFT_GRANTED), cases[i].granted);
            assert_int_equal(answers(&out, RAFT_VOTED, RAFT_PRE), pre);
        }
}

static void a_majority_makes_a_leader(void **state) {
    (void)state;
    struct raft raft = restarted(1, 1, 0, "", members(5));
    stand_up(&raft);
    receive(&raft, voted(2, 1, 1, RAFT_PRE | RAFT_GRANTED));
    receive(&raft, voted(2, 1, 1, RAFT_PRE | RAFT_GRANTED)); /* counts once */
    assert_int_equal(raft.role, RAFT_SOUNDING);
    receive(&raft, voted(3, 1, 1, RAFT_PRE | RAFT_GRANTED));
    assert_int_equal(raft.role, RAFT_CANDIDATE);
    receive(&raft, voted(2, 1, 2, RAFT_GRANTED));
    receive(&raft, voted(3, 1, 2, 0));
    receive(&raft, voted(4, 1, 2, RAFT_PRE | RAFT_GRANTED)); /* that was the other question */
    receive(&raft, voted(9, 1, 2, RAFT_GRANTED));            /* a stranger */
    assert_int_equal(raft.role, RAFT_CANDIDATE);
    receive(&raft, voted(5, 1, 2, RAFT_GRANTED));
    assert_int_equal(raft.role, RAFT_LEADER);
}

static void a_vote_of_an_older_term_does_not_count(void **state) {
    (void)state;
    struct raft raft = restarted(1, 5, 0, "", members(3));
    stand_up(&raft);
    receive(&raft, voted(2, 1, 5, RAFT_PRE | RAFT_GRANTED));
    receive(&raft, voted(2, 1, 5, RAFT_GRANTED));
    assert_int_equal(raft.role, RAFT_CANDIDATE);
    assert_int_equal(raft.term, 6);
}

static void who_knows_nobody_does_not_vote(void **state) {
    (void)state;
    struct raft raft = restarted(1, 0, 0, "", (struct raft_config){0});
    struct raft_out out = receive(&raft, vote(2, 1, 3, 5, 2, 0));
    assert_false(answers(&out, RAFT_VOTED, RAFT_GRANTED));
    for (int i = 0; i < 5; i++) assert_int_equal(waited(&raft).messages, 0);
}

/* ---- Sounding ---- */

static void sounding_changes_nothing(void **state) {
    (void)state;
    struct raft raft = restarted(1, 4, 2, "14", members(3));
    struct raft_out out = stand_up(&raft);
    assert_false(out.save_vote);
    assert_int_equal(raft.term, 4);
    assert_int_equal(raft.vote, 2);
    assert_int_equal(out.messages, 2);
    assert_int_equal(out.message[0].term, 4);
    assert_int_equal(out.message[0].flags, RAFT_PRE);
    for (int i = 0; i < 9; i++) out = waited(&raft); /* alone, for a long time */
    assert_int_equal(raft.term, 4);
    /* Who is asked changes nothing either. */
    struct raft other = restarted(2, 4, 0, "14", members(3));
    other.silent = 1;
    out = receive(&other, vote(1, 2, 4, 2, 4, RAFT_PRE));
    assert_true(answers(&out, RAFT_VOTED, RAFT_PRE | RAFT_GRANTED));
    assert_false(out.save_vote);
    assert_int_equal(other.vote, 0);
}

static void who_slept_through_terms_learns_them_from_the_answer(void **state) {
    (void)state;
    struct raft sleeper = restarted(1, 3, 0, "1233", members(3)); /* the longest log of all */
    struct raft other = restarted(2, 5, 3, "12", members(3));
    other.silent = 1;
    struct raft_out out = stand_up(&sleeper);
    out = receive(&other, out.message[0]);
    assert_false(answers(&out, RAFT_VOTED, RAFT_GRANTED));
    out = receive(&sleeper, out.message[0]);
    assert_int_equal(sleeper.term, 5);
    assert_true(out.save_vote);
    out = stand_up(&sleeper);
    out = receive(&other, out.message[0]);
    assert_true(answers(&out, RAFT_VOTED, RAFT_PRE | RAFT_GRANTED));
}

/* ---- Silence ---- */

static void who_hears_a_leader_votes_for_nobody(void **state) {
    (void)state;
    struct raft raft = fresh(1, 3);
    struct raft_out out = receive(&raft, append(2, 1, 1, 0, 0, 0, 0));
    assert_int_equal(out.wait, RAFT_WAIT_SILENCE);
    for (unsigned pre = 0; pre < 2; pre++) {
        out = receive(&raft, vote(3, 1, 7, 9, 1, pre ? RAFT_PRE : 0));
        assert_false(answers(&out, RAFT_VOTED, RAFT_GRANTED));
        assert_int_equal(raft.term, 1);
        assert_int_equal(raft.leader, 2);
    }
    assert_int_equal(waited(&raft).wait, RAFT_WAIT_TURN);
    out = receive(&raft, vote(3, 1, 7, 9, 1, 0));
    assert_true(answers(&out, RAFT_VOTED, RAFT_GRANTED));
}

static void a_leader_votes_for_nobody(void **state) {
    (void)state;
    struct raft raft = fresh(1, 3);
    elect(&raft);
    struct raft_out out = receive(&raft, vote(3, 1, 7, 9, 1, 0));
    assert_false(answers(&out, RAFT_VOTED, RAFT_GRANTED));
    assert_int_equal(raft.role, RAFT_LEADER);
}

static void who_comes_back_waits_as_if_it_had_promised(void **state) {
    (void)state;
    struct raft raft = restarted(1, 1, 0, "1", members(3));
    struct raft_out out = receive(&raft, vote(3, 1, 7, 9, 1, 0));
    assert_false(answers(&out, RAFT_VOTED, RAFT_GRANTED));
    /* Even if it is a quorum by itself; only one that is alone has promised nobody. */
    raft = restarted(1, 1, 0, "1", weights(2, (uint16_t[]){2, 1}));
    assert_int_equal(raft.role, RAFT_FOLLOWER);
    raft = restarted(1, 1, 0, "1", members(1));
    assert_int_equal(raft.role, RAFT_LEADER);
    assert_int_equal(raft.term, 2);
}

static void a_leader_that_nobody_hears_steps_down(void **state) {
    (void)state;
    struct raft raft = fresh(1, 5);
    elect(&raft);
    receive(&raft, appended(2, 1, 1, 0, 0));
    receive(&raft, appended(3, 1, 1, 0, 0));
    assert_int_equal(waited(&raft).wait, RAFT_WAIT_SILENCE);
    assert_int_equal(raft.role, RAFT_LEADER);
    receive(&raft, appended(4, 1, 1, 0, 0)); /* the others have not been heard again */
    assert_int_equal(waited(&raft).wait, RAFT_WAIT_TURN);
    assert_int_equal(raft.role, RAFT_FOLLOWER);
    assert_int_equal(raft.term, 1);
    assert_int_equal(raft.leader, 0);
    assert_int_equal(raft_propose(&raft, 1), 0);
    assert_int_equal(raft_beat(&raft), 0);
}

static void a_leader_whose_term_is_over_follows(void **state) {
    (void)state;
    struct raft raft = fresh(1, 3);
    elect(&raft);
    struct raft_out out = receive(&raft, append(2, 1, 3, 0, 0, 1, 3));
    assert_int_equal(raft.role, RAFT_FOLLOWER);
    assert_int_equal(raft.leader, 2);
    assert_true(out.save_vote && out.take);
    assert_int_equal(out.take_first, 1);
    /* One that does not know yet is told. */
    out = receive(&raft, append(3, 1, 1, 0, 0, 1, 1));
    assert_true(answers(&out, RAFT_APPENDED, RAFT_REJECTED));
    assert_int_equal(out.message[0].term, 3);
}

static void the_end_of_a_leaders_process_ends_the_silence(void **state) {
    (void)state;
    struct raft raft = fresh(1, 3);
    struct raft_out out = {0};
    receive(&raft, append(2, 1, 1, 0, 0, 0, 0));
    raft_gone(&raft, 3, &out);
    assert_false(raft.silent);
    raft_gone(&raft, 2, &out);
    assert_true(raft.silent);
    assert_int_equal(out.wait, RAFT_WAIT_TURN);
    /* But one with a lease might only seem to have ended. */
    struct raft_message leased = append(2, 1, 1, 0, 0, 0, 0);
    leased.flags = RAFT_LEASED;
    receive(&raft, leased);
    raft_gone(&raft, 2, &out);
    assert_false(raft.silent);
}

/* ---- Leading ---- */

static void a_leader_begins_with_an_entry_of_its_term(void **state) {
    (void)state;
    struct raft raft = restarted(1, 2, 0, "122", members(3));
    struct raft_out out = elect(&raft);
    assert_true(out.add_config);
    assert_int_equal(raft.last, 4);
    assert_int_equal(raft.saved, 3);
    assert_int_equal(raft.term_first, 4);
    assert_int_equal(raft_term_of(&raft, 4), 3);
    assert_int_equal(raft.config_index, 0); /* the config that is said once more is the same one */
    assert_int_equal(raft_propose(&raft, 5), 5);
    assert_int_equal(raft.last, 9);
    assert_false(raft_may_read(&raft));
}

/* ---- Handing over ---- */

static struct raft leader_of_three(void) {
    struct raft raft = fresh(1, 3);
    elect(&raft);
    saved(&raft);
    sent(&raft, 2);
    sent(&raft, 3);
    receive(&raft, appended(2, 1, 1, 1, 0));
    assert_int_equal(raft.committed, 1);
    return raft;
}

static void the_heir_gets_the_word_when_it_has_everything(void **state) {
    (void)state;
    struct raft raft = leader_of_three();
    struct raft_out out = {0};
    raft_propose(&raft, 2);
    assert_false(raft_transfer(&raft, 1, &out));
    assert_false(raft_transfer(&raft, 9, &out));
    assert_true(raft_transfer(&raft, 2, &out));
    assert_int_equal(out.messages, 0);
    assert_int_equal(raft_propose(&raft, 1), 0); /* nothing new meanwhile */
    out = receive(&raft, appended(2, 1, 1, 2, 0));
    assert_int_equal(out.messages, 0);
    out = receive(&raft, appended(2, 1, 1, 3, 0));
    assert_true(answers(&out, RAFT_CAMPAIGN, 0));
    assert_int_equal(out.message[0].to, 2);
    waited(&raft); /* it did not come to it */
    assert_int_equal(raft.heir, 0);
    assert_int_equal(raft_propose(&raft, 1), 4);
}

static void the_heir_is_voted_for_in_spite_of_the_leader(void **state) {
    (void)state;
    struct raft heir = fresh(2, 3), other = fresh(3, 3);
    receive(&heir, append(1, 2, 1, 0, 0, 1, 1));
    receive(&other, append(1, 3, 1, 0, 0, 1, 1));
    dropped(&heir, message(RAFT_CAMPAIGN, 3, 2, 1)); /* not from the leader */
    struct raft_out out = receive(&heir, message(RAFT_CAMPAIGN, 1, 2, 1));
    assert_true(out.save_vote);
    assert_int_equal(heir.term, 2);
    assert_int_equal(out.messages, 2);
    assert_int_equal(out.message[1].to, 3);
    out = receive(&other, out.message[1]);
    assert_true(answers(&out, RAFT_VOTED, RAFT_GRANTED));
    out = receive(&heir, out.message[0]);
    assert_int_equal(heir.role, RAFT_LEADER);
    out = receive(&heir, message(RAFT_CAMPAIGN, 1, 2, 1)); /* the word comes once more */
    assert_int_equal(heir.term, 2);
    assert_int_equal(heir.role, RAFT_LEADER);
}

static void a_learner_is_no_heir(void **state) {
    (void)state;
    struct raft raft = restarted(1, 0, 0, "", weights(3, (uint16_t[]){1, 1, 0}));
    struct raft_out out = {0};
    elect(&raft);
    assert_false(raft_transfer(&raft, 3, &out));
    assert_int_equal(raft_best_heir(&raft), 2);
    raft = restarted(3, 0, 0, "", weights(3, (uint16_t[]){1, 1, 0}));
    receive(&raft, append(1, 3, 1, 0, 0, 1, 1));
    dropped(&raft, message(RAFT_CAMPAIGN, 1, 3, 1));
    for (int i = 0; i < 5; i++) assert_int_equal(waited(&raft).messages, 0);
    assert_int_equal(raft.role, RAFT_FOLLOWER);
}

/* ---- Reads ---- */

static void a_round_is_confirmed_by_a_quorum_that_answered_it(void **state) {
    (void)state;
    struct raft raft = fresh(1, 5);
    elect(&raft);
    assert_int_equal(raft_beat(&raft), 1);
    assert_int_equal(raft_beat(&raft), 2);
    receive(&raft, appended(2, 1, 1, 0, 2));
    receive(&raft, appended(2, 1, 1, 0, 2));
    assert_int_equal(raft.confirmed, 0);
    receive(&raft, appended(3, 1, 1, 0, 1));
    assert_int_equal(raft.confirmed, 1);
    receive(&raft, appended(2, 1, 1, 0, 1)); /* late */
    receive(&raft, appended(4, 1, 1, 0, 2));
    assert_int_equal(raft.confirmed, 2);
    dropped(&raft, appended(5, 1, 1, 0, 3)); /* there is no such round */
}

static void a_follower_answers_the_rounds_of_this_term_only(void **state) {
    (void)state;
    struct raft raft = fresh(1, 3);
    struct raft_message m = append(2, 1, 1, 0, 0, 0, 0);
    m.round = 57;
    struct raft_out out = receive(&raft, m);
    assert_int_equal(out.message[0].round, 57);
    stand_up(&raft);
    receive(&raft, voted(3, 1, 1, RAFT_PRE | RAFT_GRANTED));
    assert_int_equal(raft.term, 2);
    m = append(3, 1, 2, 0, 0, 0, 0); /* but another one won */
    m.round = 1;
    out = receive(&raft, m);
    assert_int_equal(out.message[0].round, 1);
}

static void a_lease_is_told_of_from_the_first_message_on(void **state) {
    (void)state;
    struct raft raft = fresh(1, 3);
    raft.leases = 1;
    elect(&raft);
    assert_int_equal(sent(&raft, 2).flags, RAFT_LEASED);
    assert_false(raft_has_lease(&raft)); /* it does not know yet what is decided */
    saved(&raft);
    receive(&raft, appended(2, 1, 1, 1, 0));
    assert_true(raft_has_lease(&raft));
}

static void a_lease_is_void_once_the_word_is_out(void **state) {
    (void)state;
    struct raft raft = leader_of_three();
    struct raft_out out = {0};
    raft.leases = 1;
    assert_true(raft_has_lease(&raft));
    assert_true(raft_transfer(&raft, 3, &out));
    assert_true(raft_has_lease(&raft)); /* it has not got everything yet */
    waited(&raft);
    assert_true(raft_transfer(&raft, 2, &out));
    assert_true(answers(&out, RAFT_CAMPAIGN, 0));
    assert_false(raft_has_lease(&raft));
    receive(&raft, appended(2, 1, 1, 1, 0));
    waited(&raft); /* the heir did nothing: it may still */
    assert_int_equal(raft.heir, 0);
    assert_false(raft_has_lease(&raft));
    raft_beat(&raft);
    assert_int_equal(sent(&raft, 2).flags, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_vote_in_a_term),
        cmocka_unit_test(a_new_ensemble_elects_its_first_leader),
        cmocka_unit_test(one_who_stands_votes_for_nobody_else),
        cmocka_unit_test(only_a_log_that_is_as_long_gets_a_vote),
        cmocka_unit_test(a_majority_makes_a_leader),
        cmocka_unit_test(a_vote_of_an_older_term_does_not_count),
        cmocka_unit_test(who_knows_nobody_does_not_vote),
        cmocka_unit_test(sounding_changes_nothing),
        cmocka_unit_test(who_slept_through_terms_learns_them_from_the_answer),
        cmocka_unit_test(who_hears_a_leader_votes_for_nobody),
        cmocka_unit_test(a_leader_votes_for_nobody),
        cmocka_unit_test(who_comes_back_waits_as_if_it_had_promised),
        cmocka_unit_test(a_leader_that_nobody_hears_steps_down),
        cmocka_unit_test(a_leader_whose_term_is_over_follows),
        cmocka_unit_test(the_end_of_a_leaders_process_ends_the_silence),
        cmocka_unit_test(a_leader_begins_with_an_entry_of_its_term),
        cmocka_unit_test(the_heir_gets_the_word_when_it_has_everything),
        cmocka_unit_test(the_heir_is_voted_for_in_spite_of_the_leader),
        cmocka_unit_test(a_learner_is_no_heir),
        cmocka_unit_test(a_round_is_confirmed_by_a_quorum_that_answered_it),
        cmocka_unit_test(a_follower_answers_the_rounds_of_this_term_only),
        cmocka_unit_test(a_lease_is_told_of_from_the_first_message_on),
        cmocka_unit_test(a_lease_is_void_once_the_word_is_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
