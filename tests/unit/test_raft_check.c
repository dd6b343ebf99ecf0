/* The consensus core, model checked at small bounds: every order of events.  By hand:
 *   test_raft_check TERMS ENTRIES CRASHES [plain] [LOG LOG LOG]
 * plain: without pledges.  With them, two terms and two entries are 19,623,884 states, and the two
 * logs that differ with four terms 19,972,074: 2 GiB and two minutes each. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "raftlab/explore.h"

static struct explore_result explored(const struct explore_bounds *bounds) {
    struct explore_result result;
    lab_explore(bounds, stderr, &result);
    printf("%" PRIu64 " states, %" PRIu64 " transitions, up to %" PRIu64 " decided, %" PRIu64
           " MiB%s%s\n",
           result.states, result.transitions, result.decided, result.bytes >> 20,
           result.broken[0] ? ": " : "", result.broken);
    return result;
}

/* What was pinned is what was looked at: another count is another core, or other bounds. */
static void holds(const struct explore_bounds *bounds, uint64_t states, uint64_t decided) {
    struct explore_result result = explored(bounds);
    if (result.broken[0]) fail_msg("%s", result.broken);
    assert_int_equal(result.decided, decided);
    assert_int_equal(result.states, states);
}

static void two_terms_and_a_crash(void **state) {
    (void)state;
    holds(
        &(struct explore_bounds){
            {"", "", ""}, .terms = 2, .entries = 1, .crashes = 1, .pledges = true},
        539204, 1);
}

static void a_leader_that_lost_what_it_had_not_saved(void **state) {
    (void)state;
    holds(
        &(struct explore_bounds){
            {"1", "1", ""}, .terms = 2, .entries = 2, .crashes = 1, .pledges = true},
        338231, 2);
}

/* The beginning of Figure 8: entries 1 of two terms, and two more terms to decide either. */
static void two_logs_that_differ(void **state) {
    (void)state;
    holds(&(struct explore_bounds){{"1", "2", ""}, .terms = 4, .entries = 2}, 2228551, 2);
}

static void two_logs_that_differ_and_pledges(void **state) {
    (void)state;
    holds(&(struct explore_bounds){{"1", "2", ""}, .terms = 3, .entries = 2, .pledges = true},
          1992764, 2);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_terms_and_a_crash),
        cmocka_unit_test(a_leader_that_lost_what_it_had_not_saved),
        cmocka_unit_test(two_logs_that_differ),
        cmocka_unit_test(two_logs_that_differ_and_pledges),
    };
    if (argc < 4) return cmocka_run_group_tests(tests, NULL, NULL);
    bool plain = argc > 4 && strcmp(argv[4], "plain") == 0;
    struct explore_bounds bounds = {{"", "", ""},
                                    (uint32_t)atoi(argv[1]),
                                    (uint32_t)atoi(argv[2]),
                                    (uint32_t)atoi(argv[3]),
                                    !plain};
    char **log = argv + 4 + plain;
    for (int i = 0; i < EXPLORE_NODES && log < argv + argc; i++) bounds.start[i] = *log++;
    return explored(&bounds).broken[0] ? 1 : 0;
}
