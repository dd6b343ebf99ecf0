/* Processes that need time for each message, and where locks saturate because of that. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "algorithms/catalogue.h"
#include "lab/experiments/saturation.h"

enum { SERVICE_US = 300, DELAY_US = 1000 };

struct run {
    struct sim_config config;
    struct sim sim;
};

static void run_open(struct run *run, uint64_t processes, uint64_t service_us) {
    config_init(&run->config, catalogue_find("central"));
    run->config.processes = processes;
    run->config.entries = processes;
    run->config.service_time = service_us;
    run->config.delay = (struct distribution){CONSTANT, DELAY_US, 0};
    run->config.think = run->config.hold = (struct distribution){CONSTANT, 0, 0};
    assert_int_equal(sim_open(&run->sim), 0);
}

static void at(struct run *run, const char *what) {
    char error[SIM_ERROR_MAX];
    assert_int_equal(action_parse(&run->config, what, error), 0);
}

static void run_close(struct run *run) {
    sim_close(&run->sim);
    config_free(&run->config);
}

/* A REQUEST and a GRANT, each under way and then served. */
static void test_each_message_takes_time(void **state) {
    struct run run;
    (void)state;
    run_open(&run, 1, SERVICE_US);
    sim_run(&run.sim, &run.config, NULL);
    assert_int_equal(run.sim.result.entries, 1);
    assert_int_equal(run.sim.result.wait_us, 2 * (DELAY_US + SERVICE_US));
    assert_int_equal(run.sim.service[1].served, 2);
    assert_int_equal(run.sim.service[1].queued_us, 0);
    run_close(&run);
}

/* Three requests at once: the second waits for one service, the third for two. */
static void test_messages_queue(void **state) {
    struct run run;
    (void)state;
    run_open(&run, 3, SERVICE_US);
    at(&run, "0ms p1 acquire hold 50ms");
    at(&run, "0ms p2 acquire hold 50ms");
    at(&run, "0ms p3 acquire hold 50ms");
    sim_run(&run.sim, &run.config, NULL);
    assert_int_equal(run.sim.result.entries, 3);
    assert_int_equal(run.sim.service[1].queued_us, SERVICE_US + 2 * SERVICE_US);
    assert_int_equal(run.sim.service[1].served, 6);
    assert_int_equal(sim_busiest(&run.sim), 1);
    assert_true(sim_busy(&run.sim, 1) > sim_busy(&run.sim, 2));
    run_close(&run);
}

/* What a process had not begun is lost with it, and does not keep its successor busy. */
static void test_a_crash_empties_the_queue(void **state) {
    struct run run;
    (void)state;
    run_open(&run, 3, 20000);
    at(&run, "0ms p1 acquire");
    at(&run, "0ms p2 acquire");
    at(&run, "2ms coordinator crash");
    at(&run, "3ms coordinator recover");
    at(&run, "4ms p3 acquire");
    sim_run(&run.sim, &run.config, NULL);
    assert_int_equal(run.sim.result.entries, 1);
    assert_int_equal(run.sim.result.wait_us, 2 * (DELAY_US + 20000));
    run_close(&run);
}

/* Without a service time nothing is different, and nothing is counted. */
static void test_no_time(void **state) {
    struct run run;
    (void)state;
    run_open(&run, 5, 0);
    sim_run(&run.sim, &run.config, NULL);
    assert_null(run.sim.service);
    assert_int_equal(run.sim.result.entries, 5);
    run_close(&run);
}

static void test_where_it_saturates(void **state) {
    static const double rising[] = {10, 20, 40, 80}, flat[] = {10, 39, 40, 40},
                        falling[] = {10, 40, 20, 5};
    struct saturation_row rows[4] = {
        {.processes = 1}, {.processes = 2}, {.processes = 3}, {.processes = 4}};
    (void)state;
    for (int i = 0; i < 4; i++) rows[i].per_second = rising[i];
    assert_null(saturation_find(rows, 4).from);
    for (int i = 0; i < 4; i++) rows[i].per_second = flat[i];
    assert_ptr_equal(saturation_find(rows, 4).from, &rows[1]);
    for (int i = 0; i < 4; i++) rows[i].per_second = falling[i];
    assert_ptr_equal(saturation_find(rows, 4).from, &rows[1]);
    assert_ptr_equal(saturation_find(rows, 4).last, &rows[3]);
}

/* A coordinator gets two messages for each entry, so it cannot let more in than that allows; and a
 * herd of woken clients costs a lock nearly all that it had. */
static void test_bottlenecks(void **state) {
    struct saturation_row few, many;
    struct sim sim;
    (void)state;
    assert_int_equal(sim_open(&sim), 0);
    saturation_measure(&sim, catalogue_find("central"), 8, 1000, 1, &few);
    saturation_measure(&sim, catalogue_find("central"), 128, 1000, 1, &many);
    assert_string_equal(many.busiest, "coordinator");
    assert_true(many.per_second < 500 && many.per_second > 2 * few.per_second);
    assert_true(many.per_second * 2 / 1000 < many.busy + 0.02);
    assert_true(many.wait_us > 20 * few.wait_us);
    saturation_measure(&sim, catalogue_find("tree-lock"), 8, 1000, 1, &few);
    saturation_measure(&sim, catalogue_find("tree-lock"), 64, 1000, 1, &many);
    assert_true(many.per_second < few.per_second / 2 && many.busy > 0.95);
    sim_close(&sim);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_message_takes_time),   cmocka_unit_test(test_messages_queue),
        cmocka_unit_test(test_a_crash_empties_the_queue), cmocka_unit_test(test_no_time),
        cmocka_unit_test(test_where_it_saturates),        cmocka_unit_test(test_bottlenecks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
