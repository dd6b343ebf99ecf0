/* The consensus core, rule by rule: quorums and membership changes. */
#include "raft_help.h"

/* ---- Quorums ---- */

static struct raft_config hierarchy(uint32_t count, const uint8_t *group, const uint16_t *weight) {
    struct raft_config config = weights(count, weight);
    for (uint32_t i = 0; i < count; i++) config.at[i].group = group[i];
    return config;
}

static void a_quorum_has_more_than_half_of_the_weight(void **state) {
    (void)state;
    static const struct {
        uint32_t count;
        uint16_t weight[5];
        uint32_t set;
        bool quorum;
    } cases[] = {
        {0, {0}, UINT32_MAX, false},  {1, {1}, 1, true},           {1, {0}, 1, false},
        {2, {1, 1}, 1, false},        {2, {1, 1}, 3, true},        {3, {1, 1, 1}, 3, true},
        {3, {1, 1, 1}, 4, false},     {4, {1, 1, 1, 1}, 3, false}, {4, {1, 1, 1, 1}, 7, true},
        {3, {3, 1, 1}, 1, true},      {3, {3, 1, 1}, 6, false},    {3, {2, 1, 1}, 1, false},
        {4, {1, 1, 1, 0}, 9, false},  {4, {1, 1, 1, 0}, 11, true}, {2, {65535, 65535}, 2, false},
        {2, {65534, 65535}, 2, true},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct raft_config config = weights(cases[i].count, cases[i].weight);
        assert_int_equal(raft_is_quorum(&config, cases[i].set), cases[i].quorum);
    }
}

static void a_quorum_has_more_than_half_of_the_groups(void **state) {
    (void)state;
    struct raft_config config = hierarchy(9, (uint8_t[]){1, 1, 1, 2, 2, 2, 3, 3, 3},
                                          (uint16_t[]){1, 1, 1, 1, 1, 1, 1, 1, 1});
    assert_true(raft_is_quorum(&config, 1 | 2 | 8 | 16));
    assert_false(raft_is_quorum(&config, 1 | 2 | 4 | 8 | 64)); /* a majority of one group only */
    config.at[8].weight = config.at[7].weight = config.at[6].weight = 0;
    assert_false(raft_is_quorum(&config, 1 | 2)); /* a group without weight does not count */
    assert_true(raft_is_quorum(&config, 1 | 2 | 8 | 16));
}

static void an_invalid_config_is_recognised(void **state) {
    (void)state;
    struct raft_config config = members(3);
    assert_true(raft_config_is_valid(&config));
    config.at[1].id = 1;
    assert_false(raft_config_is_valid(&config));
    config = members(3);
    config.at[0].id = 0;
    assert_false(raft_config_is_valid(&config));
    config = members(16);
    assert_true(raft_config_is_valid(&config));
    config.count = 17;
    assert_false(raft_config_is_valid(&config));
}

/* ---- Steps ---- */

static bool always_meet(const struct raft_config *a, const struct raft_config *b, uint32_t ids) {
    for (uint32_t one = 0; one < 1u << ids; one++)
        for (uint32_t other = 0; other < 1u << ids; other++) {
            uint32_t set[2] = {0, 0};
            if (one & other) continue; /* they meet, by id */
            for (uint32_t i = 0; i < a->count; i++)
                if (one >> (a->at[i].id - 1) & 1) set[0] |= 1u << i;
            for (uint32_t i = 0; i < b->count; i++)
                if (other >> (b->at[i].id - 1) & 1) set[1] |= 1u << i;
            if (raft_is_quorum(a, set[0]) && raft_is_quorum(b, set[1])) return false;
        }
    return true;
}

/* Digit i of n, to the base `weights_below` + 1, is the weight of member i + 1; the highest digit
 * means that it is not a member. */
static struct raft_config config_numbered(unsigned n, unsigned count, unsigned weights_below) {
    struct raft_config config = {.hash = 1};
    for (unsigned i = 0; i < count; i++, n /= weights_below + 1)
        if (n % (weights_below + 1) < weights_below)
            config.at[config.count++] = (struct raft_member){
                .id = (uint8_t)(i + 1), .weight = (uint16_t)(n % (weights_below + 1))};
    return config;
}

/* Member 1 as a leader that has committed its whole log, with that configuration. */
static struct raft settled_leader(struct raft_config config) {
    struct raft raft = restarted(1, 0, 0, "", config);
    if (raft.role != RAFT_LEADER) elect(&raft);
    make_durable(&raft);
    for (uint32_t i = 0; i < config.count; i++)
        if (config.at[i].id != 1)
            receive(&raft, append_response(config.at[i].id, 1, raft.term, raft.last_index, 0));
    assert_true(raft_may_serve_reads(&raft));
    return raft;
}

/* Every change between configurations of three members with weights up to 3 that is allowed. */
static void quorums_of_configs_one_step_apart_meet(void **state) {
    (void)state;
    enum { COUNT = 3, WEIGHTS_BELOW = 4, ALL = 125 };
    unsigned allowed = 0;
    for (unsigned a = 0; a < ALL; a++) {
        struct raft_config from = config_numbered(a, COUNT, WEIGHTS_BELOW);
        if (!from.count || from.at[0].id != 1 || !from.at[0].weight) continue;
        struct raft leader = settled_leader(from);
        for (unsigned b = 0; b < ALL; b++) {
            struct raft raft = leader;
            struct raft_config to = config_numbered(b, COUNT, WEIGHTS_BELOW);
            if (raft_change_config(&raft, &to, 0) != RAFT_CHANGE_DONE) continue;
            allowed++;
            assert_true(always_meet(&from, &to, COUNT));
            assert_true(raft_is_quorum(&to, UINT32_MAX));
        }
    }
    assert_int_equal(allowed, 436); /* 75 change nothing, 121 the first member, 240 another */
}

static void no_step_moves_a_member_between_groups(void **state) {
    (void)state;
    struct raft raft = settled_leader(members(3));
    struct raft_config to = members(3);
    to.at[2].group = 1;
    assert_int_equal(raft_change_config(&raft, &to, 0), RAFT_CHANGE_TOO_LARGE);
    to = hierarchy(3, (uint8_t[]){0, 1, 2}, (uint16_t[]){1, 1, 1});
    raft = settled_leader(to);
    to.hash++;
    assert_int_equal(raft_change_config(&raft, &to, 0), RAFT_CHANGE_DONE); /* a new address */
    raft = settled_leader(raft.config);
    to.at[0].weight++;
    assert_int_equal(raft_change_config(&raft, &to, 0), RAFT_CHANGE_TOO_LARGE);
}

static void config_steps_lead_to_the_target_configuration(void **state) {
    (void)state;
    enum { COUNT = 4, WEIGHTS_BELOW = 3, ALL = 256 };
    for (unsigned a = 0; a < ALL; a += 3)
        for (unsigned b = 0; b < ALL; b++) {
            struct raft_config at = config_numbered(a, COUNT, WEIGHTS_BELOW),
                               to = config_numbered(b, COUNT, WEIGHTS_BELOW), next;
            unsigned steps = 0;
            to.hash = 2;
            while (raft_config_step(&at, &to, &next)) {
                assert_true(raft_config_is_valid(&next));
                if (raft_is_quorum(&at, UINT32_MAX) && raft_is_quorum(&next, UINT32_MAX))
                    assert_true(always_meet(&at, &next, COUNT));
                at = next;
                assert_in_range(++steps, 1, 20);
            }
            assert_int_equal(at.count, to.count);
            assert_memory_equal(at.at, to.at, sizeof to.at);
        }
}

/* ---- Membership changes ---- */

static struct raft_config with_learner(struct raft_config config, uint8_t id) {
    config.at[config.count++] = (struct raft_member){.id = id};
    config.hash++;
    return config;
}

static void one_membership_change_at_a_time(void **state) {
    (void)state;
    struct raft raft = restarted(1, 0, 0, "", members(3));
    struct raft_config to = with_learner(members(3), 4);
    assert_int_equal(raft_change_config(&raft, &to, 0), RAFT_CHANGE_NOT_LEADER);
    elect(&raft);
    assert_int_equal(raft_change_config(&raft, &to, 0),
                     RAFT_CHANGE_IN_PROGRESS); /* it has committed nothing yet */
    make_durable(&raft);
    receive(&raft, append_response(2, 1, 1, 1, 0));
    assert_int_equal(raft_change_config(&raft, &to, 0), RAFT_CHANGE_DONE);
    assert_int_equal(raft.last_index, 2);
    assert_int_equal(raft.config.count, 4);
    assert_int_equal(raft_find_peer(&raft, 2)->match_index, 1); /* what is known of peers is kept */
    to.at[3].weight = 1;
    assert_int_equal(raft_change_config(&raft, &to, 0), RAFT_CHANGE_IN_PROGRESS);
    make_durable(&raft);
    receive(&raft, append_response(3, 1, 1, 2, 0));
    assert_int_equal(raft.commit_index, 2);
    to.at[3].weight = 2;
    assert_int_equal(raft_change_config(&raft, &to, 0), RAFT_CHANGE_TOO_LARGE);
}

static void a_learner_catches_up_before_it_gets_a_vote(void **state) {
    (void)state;
    struct raft raft = settled_leader(members(3));
    struct raft_config to = with_learner(members(3), 4), voter = to;
    voter.at[3].weight = 1;
    assert_int_equal(raft_change_config(&raft, &to, 0), RAFT_CHANGE_DONE);
    make_durable(&raft);
    receive(&raft, append_response(2, 1, 1, 2, 0));
    assert_int_equal(raft_change_config(&raft, &voter, 0),
                     RAFT_CHANGE_NOT_CAUGHT_UP); /* it has no log yet */
    raft_propose(&raft, 2000);
    make_durable(&raft);
    receive(&raft, append_response(4, 1, 1, 1, 0));
    receive(&raft, append_response(2, 1, 1, raft.last_index, 0));
    assert_int_equal(raft.commit_index, raft.last_index);
    assert_int_equal(raft_change_config(&raft, &voter, 0), RAFT_CHANGE_NOT_CAUGHT_UP);
    receive(&raft, append_response(4, 1, 1, 1500, 0));
    assert_int_equal(raft_change_config(&raft, &voter, 0), RAFT_CHANGE_DONE);
    make_durable(&raft); /* now three of four are needed */
    receive(&raft, append_response(2, 1, 1, raft.last_index, 0));
    assert_int_equal(raft.commit_index, raft.last_index - 1);
    receive(&raft, append_response(4, 1, 1, raft.last_index, 0));
    assert_int_equal(raft.commit_index, raft.last_index);
}

static void an_absent_learner_gets_a_vote_that_is_not_needed(void **state) {
    (void)state;
    struct raft raft = settled_leader(members(3));
    struct raft_config to = with_learner(members(3), 4), voter = to;
    voter.at[3].weight = 1;
    assert_int_equal(raft_change_config(&raft, &to, 0), RAFT_CHANGE_DONE);
    make_durable(&raft);
    receive(&raft, append_response(2, 1, 1, 2, 0));
    uint64_t round = raft_heartbeat(&raft);
    receive(&raft, append_response(2, 1, 1, 2, round));
    assert_int_equal(raft_admit_absent(&raft, &voter, round), RAFT_CHANGE_NO_QUORUM); /* 2 of 4 */
    receive(&raft, append_response(3, 1, 1, 2, round));
    assert_int_equal(raft_change_config(&raft, &voter, round), RAFT_CHANGE_NOT_CAUGHT_UP);
    assert_int_equal(raft_admit_absent(&raft, &voter, round), RAFT_CHANGE_DONE);
    assert_int_equal(raft.config.at[3].weight, 1);
}

static void a_leader_without_a_vote_steps_down_when_that_is_committed(void **state) {
    (void)state;
    struct raft raft = settled_leader(members(3));
    struct raft_config to = members(3);
    to.at[0].weight = 0;
    assert_int_equal(raft_change_config(&raft, &to, 0), RAFT_CHANGE_DONE);
    make_durable(&raft);
    receive(&raft, append_response(3, 1, 1, 2, 0));
    assert_int_equal(raft.role, RAFT_LEADER); /* both of the others are needed */
    struct raft_out out = receive(&raft, append_response(2, 1, 1, 2, 0));
    assert_int_equal(raft.commit_index, 2);
    assert_int_equal(raft.role, RAFT_FOLLOWER);
    assert_true(only_message_is(&out, RAFT_TIMEOUT_NOW, 0));
    for (int i = 0; i < 4; i++) assert_int_equal(fire_timer(&raft).messages, 0);
}

/* It may be the only member that has the entry by which it loses its vote. */
static void a_member_that_loses_its_vote_may_lead_until_that_is_committed(void **state) {
    (void)state;
    struct raft raft = restarted(2, 1, 0, "1", members(3));
    struct raft_config to = members(3);
    to.at[1].weight = 0;
    raft_restore_entries(&raft, 2, 1, 1, &to);
    ask_for_pre_votes(&raft);
    receive(&raft, vote_response(1, 2, 1, PRE_VOTE | GRANTED));
    assert_int_equal(raft.role, RAFT_PRE_CANDIDATE); /* its own vote does not count */
    receive(&raft, vote_response(3, 2, 1, PRE_VOTE | GRANTED));
    receive(&raft, vote_response(1, 2, 2, GRANTED));
    receive(&raft, vote_response(3, 2, 2, GRANTED));
    assert_int_equal(raft.role, RAFT_LEADER);
    make_durable(&raft);
    receive(&raft, append_response(1, 2, 2, 3, 0));
    assert_int_equal(raft.commit_index, 0);
    struct raft_out out = receive(&raft, append_response(3, 2, 2, 3, 0));
    assert_true(only_message_is(&out, RAFT_TIMEOUT_NOW, 0));
    for (int i = 0; i < 4; i++) assert_int_equal(fire_timer(&raft).messages, 0);
}

static void somebody_must_have_a_vote(void **state) {
    (void)state;
    struct raft raft = settled_leader(members(1));
    struct raft_config to = members(1);
    to.at[0].weight = 0;
    assert_int_equal(raft_change_config(&raft, &to, 0), RAFT_CHANGE_NO_VOTER);
    to = (struct raft_config){.count = 17};
    assert_int_equal(raft_change_config(&raft, &to, 0), RAFT_CHANGE_TOO_LARGE);
}

static struct raft_config with_weight(struct raft_config config, uint8_t id, uint16_t weight) {
    config.at[raft_member_slot(&config, id)].weight = weight;
    config.hash++;
    return config;
}

/* {1,2,3} with 2 down: one command must not leave a configuration that has no quorum.  What was
 * heard before the round began does not count. */
static void no_step_is_taken_that_would_leave_no_quorum(void **state) {
    (void)state;
    struct raft_config more = with_weight(members(3), 2, 2), less = with_weight(members(3), 3, 0),
                       without = with_weight(members(3), 2, 0),
                       self = with_weight(members(3), 1, 0);
    struct raft leader = settled_leader(members(3)), raft;
    uint64_t round = raft_heartbeat(&leader);
    assert_int_equal(raft_change_config(&leader, &without, round), RAFT_CHANGE_NO_QUORUM);
    receive(&leader, append_response(3, 1, 1, leader.last_index, round));
    receive(&leader, append_response(2, 1, 1, leader.last_index, round - 1)); /* to an older one */
    assert_int_equal(raft_change_config(&leader, &more, round), RAFT_CHANGE_NO_QUORUM);
    assert_int_equal(raft_change_config(&leader, &less, round), RAFT_CHANGE_NO_QUORUM);
    assert_int_equal(raft_change_config(&leader, &self, round), RAFT_CHANGE_NO_QUORUM);
    assert_int_equal(leader.last_index, leader.commit_index);
    raft = leader;
    assert_int_equal(raft_change_config(&raft, &without, round), RAFT_CHANGE_DONE);
    receive(&leader, append_response(2, 1, 1, leader.last_index, round)); /* it is back */
    assert_int_equal(raft_change_config(&leader, &more, round), RAFT_CHANGE_DONE);
}

static void a_member_that_lags_or_may_not_vote_does_not_count_for_a_step(void **state) {
    (void)state;
    struct raft_config less = with_weight(members(3), 3, 0);
    struct raft raft = settled_leader(members(3));
    raft_propose(&raft, 2000);
    make_durable(&raft);
    receive(&raft, append_response(3, 1, 1, raft.last_index, 0));
    receive(&raft, append_response(2, 1, 1, 500, 0));
    assert_int_equal(raft.commit_index, raft.last_index);
    assert_int_equal(raft_change_config(&raft, &less, 0), RAFT_CHANGE_NO_QUORUM);
    struct raft_message m = append_response(2, 1, 1, 1500, 0);
    m.append_entries_response.vote_withheld = 1;
    receive(&raft, m);
    assert_int_equal(raft_change_config(&raft, &less, 0), RAFT_CHANGE_NO_QUORUM);
    receive(&raft, append_response(2, 1, 1, 1500, 0));
    assert_int_equal(raft_change_config(&raft, &less, 0), RAFT_CHANGE_DONE);
}

static void a_truncated_config_is_reverted(void **state) {
    (void)state;
    struct raft raft = restarted(1, 1, 0, "11", members(3));
    struct raft_config four = with_learner(members(3), 4), five = with_learner(members(3), 5);
    struct raft_message m = append_request(2, 1, 1, 2, 1, 1, 1);
    struct raft_out out = {0};
    m.append_entries.entry_kind = RAFT_CONFIG;
    assert_true(raft_receive(&raft, &m, &four, &out));
    assert_int_equal(raft.config.count, 4);
    assert_int_equal(raft.config_index, 3);
    receive(&raft, append_request(3, 1, 2, 2, 1, 1, 2)); /* a leader without that entry */
    assert_int_equal(raft.config.count, 3);
    assert_int_equal(raft.config_index, 0);
    m = append_request(3, 1, 2, 3, 2, 1, 2);
    m.append_entries.entry_kind = RAFT_CONFIG;
    out = (struct raft_out){0};
    assert_true(raft_receive(&raft, &m, &five, &out));
    assert_int_equal(raft.config.at[3].id, 5);
    /* The same when the log is restored. */
    raft = restarted(1, 1, 0, "11", members(3));
    raft_restore_entries(&raft, 3, 1, 1, &four);
    assert_int_equal(raft.config.count, 4);
    raft_restore_entries(&raft, 3, 0, 2, NULL); /* only truncates */
    assert_int_equal(raft.config.count, 3);
    assert_int_equal(raft.last_index, 2);
}

static void votes_are_weighted(void **state) {
    (void)state;
    struct raft raft = restarted(1, 1, 0, "", weights(4, (uint16_t[]){1, 1, 3, 0}));
    struct raft_out out = ask_for_pre_votes(&raft);
    assert_int_equal(out.messages, 2); /* a learner is not asked */
    receive(&raft, vote_response(2, 1, 1, PRE_VOTE | GRANTED));
    receive(&raft, vote_response(4, 1, 1, PRE_VOTE | GRANTED));
    assert_int_equal(raft.role, RAFT_PRE_CANDIDATE);
    receive(&raft, vote_response(3, 1, 1, PRE_VOTE | GRANTED));
    receive(&raft, vote_response(3, 1, 2, GRANTED));
    assert_int_equal(raft.role, RAFT_LEADER);
    make_durable(&raft);
    receive(&raft, append_response(2, 1, 2, 1, 0));
    receive(&raft, append_response(4, 1, 2, 1, 0));
    assert_int_equal(raft.commit_index, 0);
    receive(&raft, append_response(3, 1, 2, 1, 0));
    assert_int_equal(raft.commit_index, 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_quorum_has_more_than_half_of_the_weight),
        cmocka_unit_test(a_quorum_has_more_than_half_of_the_groups),
        cmocka_unit_test(an_invalid_config_is_recognised),
        cmocka_unit_test(quorums_of_configs_one_step_apart_meet),
        cmocka_unit_test(no_step_moves_a_member_between_groups),
        cmocka_unit_test(config_steps_lead_to_the_target_configuration),
        cmocka_unit_test(one_membership_change_at_a_time),
        cmocka_unit_test(a_learner_catches_up_before_it_gets_a_vote),
        cmocka_unit_test(a_leader_without_a_vote_steps_down_when_that_is_committed),
        cmocka_unit_test(a_member_that_loses_its_vote_may_lead_until_that_is_committed),
        cmocka_unit_test(somebody_must_have_a_vote),
        cmocka_unit_test(an_absent_learner_gets_a_vote_that_is_not_needed),
        cmocka_unit_test(no_step_is_taken_that_would_leave_no_quorum),
        cmocka_unit_test(a_member_that_lags_or_may_not_vote_does_not_count_for_a_step),
        cmocka_unit_test(a_truncated_config_is_reverted),
        cmocka_unit_test(votes_are_weighted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
