/* The consensus core in its laboratory: runs with random faults, and schedules that are known to be
 * hard.  By hand:  test_raft_sim FROM COUNT   that many seeds, without the rest
 *                  test_raft_sim SEED trace   one seed, line by line; or the name of a schedule */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lab/raft/raftlab.h"

enum { SEEDS = 2000 };

static volatile uint64_t running; /* for the message when an invariant of the core is broken */

static void print_seed(int signal_number) {
    char text[64];
    int size = snprintf(text, sizeof text, "seed %" PRIu64 "\n", running);
    if (write(STDERR_FILENO, text, (size_t)size) < 0) _exit(1);
    signal(signal_number, SIG_DFL);
}

static bool runs_well(uint64_t seed, struct lab_result *sum) {
    struct lab_result result;
    running = seed;
    lab_run(seed, NULL, &result);
    if (result.broken[0]) {
        fprintf(stderr, "seed %" PRIu64 ": %s\n", seed, result.broken);
        return false;
    }
    sum->events += result.events;
    sum->time_us += result.time_us;
    sum->leaders += result.leaders;
    sum->committed += result.committed;
    sum->crashes += result.crashes;
    sum->torn += result.torn;
    sum->damaged += result.damaged;
    sum->changes += result.changes;
    sum->installed += result.installed;
    sum->reads += result.reads;
    sum->lease_reads += result.lease_reads;
    if (sum->undecided_terms < result.undecided_terms)
        sum->undecided_terms = result.undecided_terms;
    return true;
}

static void print_sum(const struct lab_result *sum) {
    printf("%.1f hours, %" PRIu64 " events: %" PRIu64 " leaders, %" PRIu64 " committed, %" PRIu64
           " crashes (%" PRIu64 " torn), %" PRIu64 " damaged, %" PRIu64 " changes, %" PRIu64
           " installed, %" PRIu64 " reads, %" PRIu64 " by leases, %" PRIu64 " undecided terms\n",
           (double)sum->time_us / 3.6e9, sum->events, sum->leaders, sum->committed, sum->crashes,
           sum->torn, sum->damaged, sum->changes, sum->installed, sum->reads, sum->lease_reads,
           sum->undecided_terms);
}

static void known_hard_schedules_hold(void **state) {
    (void)state;
    for (uint32_t i = 0; i < lab_schedule_count; i++) {
        struct lab_result result;
        lab_follow(&lab_schedules[i], NULL, &result);
        if (result.broken[0]) fail_msg("%s: %s", lab_schedules[i].name, result.broken);
        assert_true(result.committed > 1);
    }
}

static void thousands_of_random_runs_hold(void **state) {
    (void)state;
    struct lab_result sum = {0};
    for (uint64_t seed = 1; seed <= SEEDS; seed++) assert_true(runs_well(seed, &sum));
    print_sum(&sum);
    /* Every kind of event happens. */
    assert_true(sum.leaders > 2 * SEEDS && sum.committed > 100 * SEEDS && sum.crashes > SEEDS);
    assert_true(sum.torn > SEEDS / 4 && sum.damaged > SEEDS / 20 && sum.changes > SEEDS);
    assert_true(sum.installed > SEEDS / 4 && sum.reads > 10 * SEEDS && sum.lease_reads > SEEDS);
    assert_true(sum.undecided_terms > 100);
}

static void the_same_seed_is_the_same_run(void **state) {
    (void)state;
    struct lab_result a, b, other;
    FILE *trace = fopen("/dev/null", "w");
    assert_non_null(trace);
    for (uint64_t seed = 1; seed <= 10; seed++) {
        lab_run(seed, NULL, &a);
        lab_run(seed + 1000, NULL, &other);
        lab_run(seed, trace, &b);
        assert_memory_equal(&a, &b, sizeof a);
        assert_true(a.hash != other.hash);
    }
    fclose(trace);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_hard_schedules_hold),
        cmocka_unit_test(thousands_of_random_runs_hold),
        cmocka_unit_test(the_same_seed_is_the_same_run),
    };
    signal(SIGABRT, print_seed);
    if (argc < 3) return cmocka_run_group_tests(tests, NULL, NULL);
    struct lab_result sum = {0};
    uint64_t from = strtoull(argv[1], NULL, 10), count = strtoull(argv[2], NULL, 10);
    for (uint32_t i = 0; i < lab_schedule_count; i++)
        if (strcmp(argv[1], lab_schedules[i].name) == 0) {
            lab_follow(&lab_schedules[i], stdout, &sum);
            return sum.broken[0] ? 1 : 0;
        }
    if (strcmp(argv[2], "trace") == 0) {
        lab_run(running = from, stdout, &sum);
        return sum.broken[0] ? 1 : 0;
    }
    int bad = 0;
    for (uint64_t seed = from; seed < from + count; seed++) bad += !runs_well(seed, &sum);
    print_sum(&sum);
    return bad ? 1 : 0;
}
