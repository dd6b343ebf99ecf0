/* The consensus core: who is a member, what a quorum is, and how both change. */
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
    assert_false(raft_is_quorum(&config, 1 | 2 | 4 | 8 | 64)); /* five, but of one group enough */
    config.at[8].weight = config.at[7].weight = config.at[6].weight = 0;
    assert_false(raft_is_quorum(&config, 1 | 2)); /* a group without weight does not count */
    assert_true(raft_is_quorum(&config, 1 | 2 | 8 | 16));
}

static void a_config_is_checked(void **state) {
    (void)state;
    struct raft_config config = members(3);
    assert_true(raft_config_is_sound(&config));
    config.at[1].id = 1;
    assert_false(raft_config_is_sound(&config));
    config = members(3);
    config.at[0].id = 0;
    assert_false(raft_config_is_sound(&config));
    config = members(16);
    assert_true(raft_config_is_sound(&config));
    config.count = 17;
    assert_false(raft_config_is_sound(&config));
}

/* ---- Steps ---- */

static bool always_meet(const struct raft_config *a, const struct raft_config *b, uint32_t ids) {
    for (uint32_t one = 0; one < 1u << ids; one++)
        for (uint32_t other = 0; other < 1u << ids; other++) {
            uint32_t set[2] = {0, 0};
            if (one & other) continue; /* by id */
            for (uint32_t i = 0; i < a->count; i++)
                if (one >> (a->at[i].id - 1) & 1) set[0] |= 1u << i;
            for (uint32_t i = 0; i < b->count; i++)
                if (other >> (b->at[i].id - 1) & 1) set[1] |= 1u << i;
            if (raft_is_quorum(a, set[0]) && raft_is_quorum(b, set[1])) return false;
        }
    return true;
}

/* Member i of `count` has the weight that is digit i of n, or is not there: 0 to `base` - 1, and
 * one more for not being there. */
static struct raft_config numbered(unsigned n, unsigned count, unsigned base) {
    struct raft_config config = {.mark = 1};
    for (unsigned i = 0; i < count; i++, n /= base + 1)
        if (n % (base + 1) < base)
            config.at[config.count++] =
                (struct raft_member){.id = (uint8_t)(i + 1), .weight = (uint16_t)(n % (base + 1))};
    return config;
}

/* A leader whose log is decided, with that config; it is 1. */
static struct raft settled_leader(struct raft_config config) {
    struct raft raft = restarted(1, 0, 0, "", config);
    if (raft.role != RAFT_LEADER) elect(&raft);
    saved(&raft);
    for (uint32_t i = 0; i < config.count; i++)
        if (config.at[i].id != 1)
            receive(&raft, appended(config.at[i].id, 1, raft.term, raft.last, 0));
    assert_true(raft_may_read(&raft));
    return raft;
}

/* Every config of three with weights up to 3 into every other that the leader allows. */
static void quorums_of_configs_one_step_apart_meet(void **state) {
    (void)state;
    enum { COUNT = 3, BASE = 4, ALL = 125 };
    unsigned allowed = 0;
    for (unsigned a = 0; a < ALL; a++) {
        struct raft_config from = numbered(a, COUNT, BASE);
        if (!from.count || from.at[0].id != 1 || !from.at[0].weight) continue;
        struct raft leader = settled_leader(from);
        for (unsigned b = 0; b < ALL; b++) {
            struct raft raft = leader;
            struct raft_config to = numbered(b, COUNT, BASE);
            if (raft_change(&raft, &to) != RAFT_CHANGED) continue;
            allowed++;
            assert_true(always_meet(&from, &to, COUNT));
            assert_true(raft_is_quorum(&to, UINT32_MAX));
        }
    }
    assert_int_equal(allowed, 436); /* 75 stay, 121 change the first, 240 another */
}

static void members_move_between_groups_in_no_step(void **state) {
    (void)state;
    struct raft raft = settled_leader(members(3));
    struct raft_config to = members(3);
    to.at[2].group = 1;
    assert_int_equal(raft_change(&raft, &to), RAFT_CHANGE_TOO_LARGE);
    to = hierarchy(3, (uint8_t[]){0, 1, 2}, (uint16_t[]){1, 1, 1});
    raft = settled_leader(to);
    to.mark++;
    assert_int_equal(raft_change(&raft, &to), RAFT_CHANGED); /* an address is another */
    raft = settled_leader(raft.config);
    to.at[0].weight++;
    assert_int_equal(raft_change(&raft, &to), RAFT_CHANGE_TOO_LARGE);
}

static void the_way_leads_to_the_goal_in_allowed_steps(void **state) {
    (void)state;
    enum { COUNT = 4, BASE = 3, ALL = 256 };
    for (unsigned a = 0; a < ALL; a += 3)
        for (unsigned b = 0; b < ALL; b++) {
            struct raft_config at = numbered(a, COUNT, BASE), to = numbered(b, COUNT, BASE), next;
            unsigned steps = 0;
            to.mark = 2;
            while (raft_step_toward(&at, &to, &next)) {
                assert_true(raft_config_is_sound(&next));
                if (raft_is_quorum(&at, UINT32_MAX) && raft_is_quorum(&next, UINT32_MAX))
                    assert_true(always_meet(&at, &next, COUNT));
                at = next;
                assert_in_range(++steps, 1, 20);
            }
            assert_int_equal(at.count, to.count);
            assert_memory_equal(at.at, to.at, sizeof to.at);
        }
}

/* ---- Changing ---- */

static struct raft_config plus(struct raft_config config, uint8_t id) {
    config.at[config.count++] = (struct raft_member){.id = id};
    config.mark++;
    return config;
}

static void one_change_at_a_time(void **state) {
    (void)state;
    struct raft raft = restarted(1, 0, 0, "", members(3));
    struct raft_config to = plus(members(3), 4);
    assert_int_equal(raft_change(&raft, &to), RAFT_CHANGE_NOT_LEADER);
    elect(&raft);
    assert_int_equal(raft_change(&raft, &to), RAFT_CHANGE_UNDER_WAY); /* the leader is too new */
    saved(&raft);
    receive(&raft, appended(2, 1, 1, 1, 0));
    assert_int_equal(raft_change(&raft, &to), RAFT_CHANGED);
    assert_int_equal(raft.last, 2);
    assert_int_equal(raft.config.count, 4);
    assert_int_equal(raft_peer(&raft, 2)->match, 1); /* what is known of the others stays */
    to.at[3].weight = 1;
    assert_int_equal(raft_change(&raft, &to), RAFT_CHANGE_UNDER_WAY);
    saved(&raft);
    receive(&raft, appended(3, 1, 1, 2, 0));
    assert_int_equal(raft.committed, 2);
    to.at[3].weight = 2;
    assert_int_equal(raft_change(&raft, &to), RAFT_CHANGE_TOO_LARGE);
}

static void who_comes_learns_before_it_votes(void **state) {
    (void)state;
    struct raft raft = settled_leader(members(3));
    struct raft_config to = plus(members(3), 4), voter = to;
    voter.at[3].weight = 1;
    assert_int_equal(raft_change(&raft, &to), RAFT_CHANGED);
    saved(&raft);
    receive(&raft, appended(2, 1, 1, 2, 0));
    assert_int_equal(raft_change(&raft, &voter), RAFT_CHANGE_BEHIND); /* it knows nobody yet */
    raft_propose(&raft, 2000);
    saved(&raft);
    receive(&raft, appended(4, 1, 1, 1, 0));
    receive(&raft, appended(2, 1, 1, raft.last, 0));
    assert_int_equal(raft.committed, raft.last);
    assert_int_equal(raft_change(&raft, &voter), RAFT_CHANGE_BEHIND);
    receive(&raft, appended(4, 1, 1, 1500, 0));
    assert_int_equal(raft_change(&raft, &voter), RAFT_CHANGED);
    saved(&raft); /* now three of four are needed */
    receive(&raft, appended(2, 1, 1, raft.last, 0));
    assert_int_equal(raft.committed, raft.last - 1);
    receive(&raft, appended(4, 1, 1, raft.last, 0));
    assert_int_equal(raft.committed, raft.last);
}

static void a_leader_without_a_vote_goes_when_that_is_decided(void **state) {
    (void)state;
    struct raft raft = settled_leader(members(3));
    struct raft_config to = members(3);
    to.at[0].weight = 0;
    assert_int_equal(raft_change(&raft, &to), RAFT_CHANGED);
    saved(&raft);
    receive(&raft, appended(3, 1, 1, 2, 0));
    assert_int_equal(raft.role, RAFT_LEADER); /* of the other two both are needed */
    struct raft_out out = receive(&raft, appended(2, 1, 1, 2, 0));
    assert_int_equal(raft.committed, 2);
    assert_int_equal(raft.role, RAFT_FOLLOWER);
    assert_true(answers(&out, RAFT_CAMPAIGN, 0));
    for (int i = 0; i < 4; i++) assert_int_equal(waited(&raft).messages, 0);
}

/* It may be the only one who has the entry by which it loses its vote. */
static void who_loses_its_vote_stands_until_that_is_decided(void **state) {
    (void)state;
    struct raft raft = restarted(2, 1, 0, "1", members(3));
    struct raft_config to = members(3);
    to.at[1].weight = 0;
    raft_restore(&raft, 2, 1, 1, &to);
    stand_up(&raft);
    receive(&raft, voted(1, 2, 1, RAFT_PRE | RAFT_GRANTED));
    assert_int_equal(raft.role, RAFT_SOUNDING); /* its own does not count */
    receive(&raft, voted(3, 2, 1, RAFT_PRE | RAFT_GRANTED));
    receive(&raft, voted(1, 2, 2, RAFT_GRANTED));
    receive(&raft, voted(3, 2, 2, RAFT_GRANTED));
    assert_int_equal(raft.role, RAFT_LEADER);
    saved(&raft);
    receive(&raft, appended(1, 2, 2, 3, 0));
    assert_int_equal(raft.committed, 0);
    struct raft_out out = receive(&raft, appended(3, 2, 2, 3, 0));
    assert_true(answers(&out, RAFT_CAMPAIGN, 0));
    for (int i = 0; i < 4; i++) assert_int_equal(waited(&raft).messages, 0);
}

static void somebody_must_have_a_vote(void **state) {
    (void)state;
    struct raft raft = settled_leader(members(1));
    struct raft_config to = members(1);
    to.at[0].weight = 0;
    assert_int_equal(raft_change(&raft, &to), RAFT_CHANGE_NO_VOTER);
    to = (struct raft_config){.count = 17};
    assert_int_equal(raft_change(&raft, &to), RAFT_CHANGE_TOO_LARGE);
}

static void a_config_that_is_replaced_is_taken_back(void **state) {
    (void)state;
    struct raft raft = restarted(1, 1, 0, "11", members(3));
    struct raft_config four = plus(members(3), 4), five = plus(members(3), 5);
    struct raft_message m = append(2, 1, 1, 2, 1, 1, 1);
    struct raft_out out = {0};
    m.kind = RAFT_CONFIG;
    assert_true(raft_receive(&raft, &m, &four, &out));
    assert_int_equal(raft.config.count, 4);
    assert_int_equal(raft.config_index, 3);
    receive(&raft, append(3, 1, 2, 2, 1, 1, 2)); /* another leader does not know of it */
    assert_int_equal(raft.config.count, 3);
    assert_int_equal(raft.config_index, 0);
    m = append(3, 1, 2, 3, 2, 1, 2);
    m.kind = RAFT_CONFIG;
    out = (struct raft_out){0};
    assert_true(raft_receive(&raft, &m, &five, &out));
    assert_int_equal(raft.config.at[3].id, 5);
    /* The same from what is on disk. */
    raft = restarted(1, 1, 0, "11", members(3));
    raft_restore(&raft, 3, 1, 1, &four);
    assert_int_equal(raft.config.count, 4);
    raft_restore(&raft, 3, 0, 2, NULL); /* only takes away */
    assert_int_equal(raft.config.count, 3);
    assert_int_equal(raft.last, 2);
}

static void votes_are_weighed(void **state) {
    (void)state;
    struct raft raft = restarted(1, 1, 0, "", weights(4, (uint16_t[]){1, 1, 3, 0}));
    struct raft_out out = stand_up(&raft);
    assert_int_equal(out.messages, 2); /* a learner is not asked */
    receive(&raft, voted(2, 1, 1, RAFT_PRE | RAFT_GRANTED));
    receive(&raft, voted(4, 1, 1, RAFT_PRE | RAFT_GRANTED));
    assert_int_equal(raft.role, RAFT_SOUNDING);
    receive(&raft, voted(3, 1, 1, RAFT_PRE | RAFT_GRANTED));
    receive(&raft, voted(3, 1, 2, RAFT_GRANTED));
    assert_int_equal(raft.role, RAFT_LEADER);
    saved(&raft);
    receive(&raft, appended(2, 1, 2, 1, 0));
    receive(&raft, appended(4, 1, 2, 1, 0));
    assert_int_equal(raft.committed, 0);
    receive(&raft, appended(3, 1, 2, 1, 0));
    assert_int_equal(raft.committed, 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_quorum_has_more_than_half_of_the_weight),
        cmocka_unit_test(a_quorum_has_more_than_half_of_the_groups),
        cmocka_unit_test(a_config_is_checked),
        cmocka_unit_test(quorums_of_configs_one_step_apart_meet),
        cmocka_unit_test(members_move_between_groups_in_no_step),
        cmocka_unit_test(the_way_leads_to_the_goal_in_allowed_steps),
        cmocka_unit_test(one_change_at_a_time),
        cmocka_unit_test(who_comes_learns_before_it_votes),
        cmocka_unit_test(a_leader_without_a_vote_goes_when_that_is_decided),
        cmocka_unit_test(who_loses_its_vote_stands_until_that_is_decided),
        cmocka_unit_test(somebody_must_have_a_vote),
        cmocka_unit_test(a_config_that_is_replaced_is_taken_back),
        cmocka_unit_test(votes_are_weighed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
