/* Pictures: what they say about a run is so.  How they look is not tested here. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "algorithms/catalogue.h"
#include "lab/sim/scenario.h"
#include "lab/sim/sim.h"
#include "lab/sim/trace_graph.h"
#include "lab/sim/trace_svg.h"

struct run {
    struct scenario scenario;
    struct trace trace;
    struct sim sim;
};

static void run_opened(struct run *run) {
    assert_int_equal(sim_open(&run->sim), 0);
    trace_open(&run->trace, &run->scenario.config);
    sim_run(&run->sim, &run->scenario.config, &run->trace);
}

static void run_scenario(struct run *run, const char *name) {
    char path[100], error[SCENARIO_ERROR_MAX];
    snprintf(path, sizeof path, "scenarios/%s.scenario", name);
    assert_int_equal(scenario_read(&run->scenario, path, error), 0);
    run_opened(run);
}

static void run_close(struct run *run) {
    trace_close(&run->trace);
    sim_close(&run->sim);
    scenario_free(&run->scenario);
}

/* ---- Who waits for whom ---- */

/* "P1-P3@P4 P3-P5@P6": in the order of the processes. */
static void assert_waits(const char *scenario, const char *expected) {
    struct run run;
    char text[400] = "", who[ROSTER_NAME_MAX], whom[ROSTER_NAME_MAX], at[ROSTER_NAME_MAX];
    run_scenario(&run, scenario);
    for (size_t i = 0; i < run.trace.wait_count; i++) {
        const struct trace_wait *wait = &run.trace.wait[i];
        const struct roster *roster = &run.trace.roster;
        size_t used = strlen(text);
        snprintf(text + used, sizeof text - used, "%s%s-%s%s%s", used ? " " : "",
                 roster_name(roster, wait->who, who), roster_name(roster, wait->whom, whom),
                 wait->at ? "@" : "", wait->at ? roster_name(roster, wait->at, at) : "");
    }
    assert_string_equal(text, expected);
    run_close(&run);
}

static void test_waits(void **state) {
    (void)state;
    assert_waits("maekawa-deadlock", "P1-P3@P4 P3-P5@P6 P5-P1");
    assert_waits("central-dead-holder", "Part2-Part1@Coordinator Part3-Part1@Coordinator");
    assert_waits("central-dead-coordinator", "Part2-Coordinator Part3-Coordinator");
    assert_waits("ricart-agrawala-crash", "P0-P1 P2-P0 P2-P1");
    assert_waits("maekawa", "");
    assert_waits("token-ring-lost", "");
}

static void test_sentence(void **state) {
    struct run run;
    (void)state;
    run_scenario(&run, "maekawa-deadlock");
    assert_string_equal(run.trace.violated,
                        "deadlock, starvation, bounded_wait violated: P1, P3 and 1 more wait for "
                        "ever: nothing is under way that could let anyone in\n");
    run_close(&run);
    run_scenario(&run, "maekawa");
    assert_string_equal(run.trace.violated, "");
    run_close(&run);
}

/* ---- Stages ---- */

/* "ELECTION:3 ANSWER:2 end"; "=": a drawing without messages. */
static void assert_frames(const char *scenario, const char *expected) {
    struct run run;
    struct graph_picture picture;
    char text[600] = "";
    run_scenario(&run, scenario);
    graph_open(&picture, &run.trace);
    for (size_t i = 0; i < picture.frame_count; i++) {
        const struct frame *frame = &picture.frame[i];
        size_t used = strlen(text);
        if (!frame->stage || frame->still)
            snprintf(text + used, sizeof text - used, "%s", frame->stage ? "= " : "end");
        else
            snprintf(text + used, sizeof text - used, "%s:%u ",
                     run.trace.algorithm->messages[picture.stage[frame->stage - 1].kind].name,
                     picture.stage[frame->stage - 1].messages);
    }
    assert_string_equal(text, expected);
    graph_close(&picture);
    run_close(&run);
}

static void test_frames(void **state) {
    (void)state;
    assert_frames("bully-003", "ELECTION:3 ANSWER:2 ELECTION:3 ANSWER:1 COORDINATOR:7 end");
    assert_frames("yo-yo", "ID:24 = YO-:12 -YO:12 = YO-:7 -YO:7 = LEADER:10 end");
    assert_frames("franklin", "VALUE:16 VALUE:16 VALUE:16 LEADER:8 end");
    assert_frames("maekawa-deadlock", "REQUEST:6 GRANT:3 end");
    assert_frames("raymond", "REQUEST:2 REQUEST:1 TOKEN:1 TOKEN:1 REQUEST:1 TOKEN:1 TOKEN:1 end");
}

static uint32_t standing_as(const struct graph_picture *picture, uint8_t standing) {
    uint32_t count = 0;
    for (cv_pid p = 1; p <= picture->trace->roster.processes; p++)
        count += picture->standing[p].now == standing;
    return count;
}

/* Each round of Franklin's figure leaves those that beat both neighbours. */
static void test_rounds(void **state) {
    enum { ACTIVE = STANDING_VALUES + 1, PASSIVE = STANDING_VALUES };
    static const uint32_t active[] = {8, 4, 1, 0, 0}, leaders[] = {0, 0, 0, 1, 1};
    struct run run;
    struct graph_picture picture;
    (void)state;
    run_scenario(&run, "franklin");
    graph_open(&picture, &run.trace);
    assert_int_equal(picture.frame_count, 5);
    for (size_t i = 0; i < 5; i++) {
        graph_look(&picture, &picture.frame[i]);
        assert_int_equal(standing_as(&picture, ACTIVE), active[i]);
        assert_int_equal(standing_as(&picture, STANDING_LEADS), leaders[i]);
        assert_int_equal(standing_as(&picture, PASSIVE), i == 4 ? 0 : 8 - active[i] - leaders[i]);
    }
    assert_int_equal(standing_as(&picture, STANDING_FOLLOWS), 7);
    graph_close(&picture);
    run_close(&run);
}

/* In the drawing of the answers an edge is still as it was, and both ends see it alike. */
static void test_ways(void **state) {
    struct run run;
    struct graph_picture picture;
    (void)state;
    run_scenario(&run, "yo-yo");
    graph_open(&picture, &run.trace);
    cv_pid two = roster_find(&run.trace.roster, "2"), ten = roster_find(&run.trace.roster, "10");
    cv_pid three = roster_find(&run.trace.roster, "3");
    static const enum way of_two[] = {WAY_UNKNOWN, WAY_OUT, WAY_OUT, WAY_OUT, WAY_OUT};
    static const enum way of_three[] = {WAY_UNKNOWN, WAY_OUT, WAY_OUT, WAY_OUT, WAY_IN};
    for (size_t i = 0; i < 5; i++) {
        graph_look(&picture, &picture.frame[i]);
        assert_int_equal(graph_way(&picture, two, ten), of_two[i]);
        assert_int_equal(graph_way(&picture, three, ten), of_three[i]);
        assert_true((graph_way(&picture, ten, three) == WAY_IN) == (of_three[i] == WAY_OUT));
    }
    graph_close(&picture);
    run_close(&run);
}

/* Idle heartbeats are drawn once. */
static void test_folded(void **state) {
    struct run run = {0};
    struct graph_picture picture;
    uint32_t folded = 0;
    (void)state;
    run_scenario(&run, "majority-terms-partition");
    graph_open(&picture, &run.trace);
    for (size_t i = 0; i < picture.frame_count; i++) folded += picture.frame[i].folded;
    assert_true(folded > 0);
    assert_true(picture.frame_count < picture.stage_count);
    graph_close(&picture);
    run_close(&run);
}

/* ---- Pages ---- */

static size_t spans_from(const struct layout *layout, enum shape shape, int x) {
    size_t count = 0;
    for (size_t i = 0; i < layout->span_count; i++)
        count += layout->span[i].shape == shape && layout->span[i].from == x;
    return count;
}

/* The pages have every entry once, none is wide, and each goes on where the one before ended. */
static void test_pages(void **state) {
    struct run run = {0};
    size_t waiting = 0, inside = 0, at = 1;
    (void)state;
    config_init(&run.scenario.config, catalogue_find("central"));
    run.scenario.config.entries = 200;
    run_opened(&run);
    uint64_t pages = 1;
    for (uint64_t page = 1; page <= pages; page++) {
        struct layout layout;
        layout_open(&layout, &run.trace, page);
        pages = layout.pages;
        assert_int_equal(layout.page, page);
        assert_true(layout.right < 5000);
        assert_true(layout.drawn_count > 0);
        if (page > 1) {
            assert_int_equal(spans_from(&layout, SHAPE_WAITING, layout.left), waiting);
            assert_int_equal(spans_from(&layout, SHAPE_INSIDE, layout.left), inside);
        }
        for (size_t i = 0; i < layout.drawn_count; i++, at++) {
            while (!layout_draws(&layout, at)) at++;
            assert_int_equal(layout.drawn[i], at);
            enum trace_type type = run.trace.entry[at].type;
            waiting += type == TR_ASK;
            waiting -= type == TR_ENTER;
            inside += type == TR_ENTER;
            inside -= type == TR_LEAVE;
        }
        if (page == pages) assert_int_equal(layout.skipped + layout.drawn_count, layout.total);
        layout_close(&layout);
    }
    assert_true(pages > 3);
    run_close(&run);
}

static void test_last_page(void **state) {
    struct run run = {0};
    struct layout layout;
    (void)state;
    config_init(&run.scenario.config, catalogue_find("central"));
    run.scenario.config.entries = 200;
    run_opened(&run);
    layout_open(&layout, &run.trace, 1000000);
    assert_int_equal(layout.page, layout.pages);
    layout_close(&layout);
    run_close(&run);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_waits),  cmocka_unit_test(test_sentence),
        cmocka_unit_test(test_frames), cmocka_unit_test(test_rounds),
        cmocka_unit_test(test_ways),   cmocka_unit_test(test_folded),
        cmocka_unit_test(test_pages),  cmocka_unit_test(test_last_page),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
