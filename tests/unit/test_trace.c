/* The cut of a trace: nothing on which the violation depends is missing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <glob.h>
#include <stdlib.h>
#include <string.h>

#include "algorithms/catalogue.h"
#include "lab/sim/scenario.h"
#include "lab/sim/sim.h"
#include "lab/sim/trace.h"

/* Marks an entry and all that happened before it, by Lamport's definition, one step at a time. */
static void mark_past(const struct trace *trace, size_t index, bool *marked) {
    size_t *stack = calloc(2 * trace->count + 2, sizeof *stack), depth = 0;
    stack[depth++] = index;
    while (depth) {
        size_t i = stack[--depth], before = i - 1;
        const struct trace_entry *entry = &trace->entry[i];
        if (marked[i]) continue;
        marked[i] = true;
        if (entry->type == TR_RECEIVE && entry->match) stack[depth++] = entry->match;
        while (before && (trace->entry[before].process != entry->process ||
                          trace->entry[before].type == TR_LOST))
            before--;
        if (before) stack[depth++] = before;
    }
    free(stack);
}

static size_t last_entry(const struct trace *trace, enum trace_type type, cv_pid p, uint64_t at) {
    size_t found = 0;
    for (size_t i = 1; i < trace->count; i++)
        if (trace->entry[i].type == type && trace->entry[i].process == p &&
            trace->entry[i].time_us <= at)
            found = i;
    return found;
}

/* The entries that a violation consists of: two stays, two leaders, or the arrival of whatever a
 * process that waits for ever has sent since it asked. */
static void mark_violation(const struct trace *trace, const struct sim *sim, bool *marked) {
    if (sim->algorithm->problem == CV_ELECTION) {
        for (int k = 0; k < 2 && sim->election.culprit[0]; k++)
            mark_past(trace,
                      last_entry(trace, TR_ELECTED, sim->election.culprit[k],
                                 sim->election.verdict[UNIQUENESS].at_us),
                      marked);
    } else if (sim->judge.belief.value == VIOLATED) {
        for (int k = 0; k < 2; k++)
            mark_past(trace,
                      last_entry(trace, TR_ENTER, sim->judge.culprit[k], sim->judge.belief.at_us),
                      marked);
    } else {
        for (cv_pid p = 1; p <= sim->roster.processes; p++) {
            size_t asked = last_entry(trace, TR_ASK, p, UINT64_MAX);
            for (size_t i = asked; sim->judge.of[p].waiting && i < trace->count; i++) {
                const struct trace_entry *entry = &trace->entry[i];
                if (entry->type == TR_RECEIVE && entry->peer == p && entry->match > asked)
                    mark_past(trace, i, marked);
                if (entry->process == p && entry->type != TR_LOST) mark_past(trace, i, marked);
            }
        }
    }
}

/* Returns whether the scenario is one whose violation is cut out. */
static bool check_cut(const char *path) {
    struct scenario scenario;
    struct trace trace;
    struct sim sim;
    char error[SCENARIO_ERROR_MAX];
    assert_int_equal(scenario_read(&scenario, path, error), 0);
    assert_int_equal(sim_open(&sim), 0);
    trace_open(&trace, &scenario.config);
    sim_run(&sim, &scenario.config, &trace);
    if (sim.algorithm->problem == CV_ELECTION)
        trace_cut_election(&trace, &sim.election);
    else if (sim_violated(&sim))
        trace_cut_lock(&trace, &sim.judge);
    bool cut = trace.cut, *marked = calloc(trace.count, sizeof *marked);
    if (cut) mark_violation(&trace, &sim, marked);
    size_t needed = 0;
    for (size_t i = 1; i < trace.count; i++) {
        needed += marked[i];
        if (marked[i] && !trace.left_out && !trace_shows(&trace, i))
            fail_msg("%s: entry %zu is missing", path, i);
        if (cut && trace.entry[i].kept && trace.entry[i].type == TR_RECEIVE)
            assert_true(trace.entry[trace.entry[i].match].kept);
    }
    if (cut && !needed) fail_msg("%s: nothing led there", path);
    if (cut) assert_int_equal(trace.left_out, 0);
    free(marked);
    trace_close(&trace);
    sim_close(&sim);
    scenario_free(&scenario);
    return cut;
}

static void test_cuts_are_closed(void **state) {
    glob_t files;
    size_t cuts = 0;
    (void)state;
    assert_int_equal(glob("scenarios/*.scenario", 0, NULL, &files), 0);
    for (size_t i = 0; i < files.gl_pathc; i++) cuts += check_cut(files.gl_pathv[i]);
    assert_true(cuts >= 15);
    globfree(&files);
}

/* The wake-up is missed because of the DELETE, which the one that waits never heard of. */
static void test_the_race(void **state) {
    struct scenario scenario;
    struct trace trace;
    struct sim sim;
    char error[SCENARIO_ERROR_MAX], text[256];
    bool deleted = false;
    (void)state;
    assert_int_equal(scenario_read(&scenario, "scenarios/tree-lock-race.scenario", error), 0);
    assert_int_equal(sim_open(&sim), 0);
    trace_open(&trace, &scenario.config);
    sim_run(&sim, &scenario.config, &trace);
    trace_cut_lock(&trace, &sim.judge);
    for (size_t i = 1; i < trace.count; i++)
        if (trace_shows(&trace, i) && trace.entry[i].type == TR_RECEIVE)
            deleted |=
                strcmp(trace_message(&trace, &trace.entry[i], text, sizeof text), "DELETE") == 0;
    assert_true(deleted);
    trace_close(&trace);
    sim_close(&sim);
    scenario_free(&scenario);
}

/* In a long run the past is everything: what is left out is said, and no arrival lacks its
 * sending. */
static void test_a_long_run(void **state) {
    struct sim_config config;
    struct trace trace;
    struct sim sim;
    char error[SIM_ERROR_MAX];
    size_t shown = 0;
    (void)state;
    config_init(&config, catalogue_find("central"));
    config.entries = 2000;
    assert_int_equal(action_parse(&config, "5s coordinator crash", error), 0);
    assert_int_equal(sim_open(&sim), 0);
    trace_open(&trace, &config);
    sim_run(&sim, &config, &trace);
    assert_true(sim_violated(&sim));
    trace_cut_lock(&trace, &sim.judge);
    for (size_t i = 1; i < trace.count; i++) {
        shown += trace_shows(&trace, i);
        if (trace_shows(&trace, i) && trace.entry[i].type == TR_RECEIVE)
            assert_true(trace_shows(&trace, trace.entry[i].match));
    }
    assert_true(shown > 5 && shown < 400);
    assert_true(trace.left_out > 1000);
    trace_close(&trace);
    sim_close(&sim);
    config_free(&config);
}

/* The lecture's drawing of Yo-Yo: in a round, an answer is no where the value that came down is not
 * the least at its sinks, whether the edge is cut or not; here only 2 is, and 3 at its own leaf. */
static void test_answers_of_yo_yo(void **state) {
    struct scenario scenario;
    struct trace trace;
    struct sim sim;
    char error[SCENARIO_ERROR_MAX], text[256], name[ROSTER_NAME_MAX], answers[256] = "";
    (void)state;
    assert_int_equal(scenario_read(&scenario, "scenarios/yo-yo.scenario", error), 0);
    assert_int_equal(sim_open(&sim), 0);
    trace_open(&trace, &scenario.config);
    sim_run(&sim, &scenario.config, &trace);
    for (size_t i = 1; i < trace.count; i++) {
        const struct trace_entry *entry = &trace.entry[i];
        if (entry->type != TR_SEND) continue;
        trace_message(&trace, entry, text, sizeof text);
        if (!strstr(text, "-YO round=1 answer=no")) continue;
        size_t used = strlen(answers);
        snprintf(answers + used, sizeof answers - used, "%s",
                 roster_name(&trace.roster, entry->process, name));
        used = strlen(answers);
        snprintf(answers + used, sizeof answers - used, "-%s ",
                 roster_name(&trace.roster, entry->peer, name));
    }
    assert_string_equal(answers, "12-4 12-11 20-14 11-4 10-3 14-5 ");
    trace_close(&trace);
    sim_close(&sim);
    scenario_free(&scenario);
}

/* Among equals every process has a state to show; where there are servers, these have. */
static void test_states_of_peers(void **state) {
    static const char *const scenarios[] = {"scenarios/lamport.scenario",
                                            "scenarios/central.scenario"};
    (void)state;
    for (int k = 0; k < 2; k++) {
        struct scenario scenario;
        struct trace trace;
        struct sim sim;
        char error[SCENARIO_ERROR_MAX];
        assert_int_equal(scenario_read(&scenario, scenarios[k], error), 0);
        assert_int_equal(sim_open(&sim), 0);
        trace_open(&trace, &scenario.config);
        sim_run(&sim, &scenario.config, &trace);
        for (size_t i = 1; i < trace.count; i++) {
            const struct trace_entry *entry = &trace.entry[i];
            bool serves = entry->process <= trace.roster.servers;
            if (entry->type == TR_RECEIVE)
                assert_int_equal(entry->note != 0, serves || !trace.roster.servers);
        }
        trace_close(&trace);
        sim_close(&sim);
        scenario_free(&scenario);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cuts_are_closed), cmocka_unit_test(test_the_race),
        cmocka_unit_test(test_a_long_run),      cmocka_unit_test(test_answers_of_yo_yo),
        cmocka_unit_test(test_states_of_peers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
