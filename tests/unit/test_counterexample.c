/* Counterexamples written by hand, replayed by the simulator move by move; and scenarios that are
 * written and read back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <glob.h>
#include <stdlib.h>
#include <unistd.h>

#include "algorithms/catalogue.h"
#include "lab/experiments/counterexample.h"

#define COUNT(ARRAY) (sizeof(ARRAY) / sizeof(ARRAY)[0])

/* ---- Running a scenario ---- */

struct run {
    struct sim *sim;
    struct trace trace;
};

static struct run run_new(const struct scenario *scenario) {
    struct run run = {.sim = malloc(sizeof *run.sim)};
    assert_non_null(run.sim);
    assert_int_equal(sim_open(run.sim), 0);
    trace_open(&run.trace, &scenario->config);
    sim_run(run.sim, &scenario->config, &run.trace);
    return run;
}

static void run_free(struct run *run) {
    trace_close(&run->trace);
    sim_close(run->sim);
    free(run->sim);
}

static size_t unmet(const struct scenario *scenario, const struct run *run) {
    return scenario_check(scenario, "scenario", run->sim, &run->trace, stderr);
}

/* ---- Writing and reading back ---- */

static void scenario_text(const struct scenario *scenario, char **text) {
    size_t size;
    FILE *out = open_memstream(text, &size);
    assert_non_null(out);
    scenario_write(scenario, out);
    assert_int_equal(fclose(out), 0);
}

static void read_text(struct scenario *scenario, const char *text) {
    char path[] = "/tmp/scenario-XXXXXX", error[SCENARIO_ERROR_MAX];
    int file = mkstemp(path);
    assert_true(file >= 0);
    assert_int_equal(write(file, text, strlen(text)), strlen(text));
    close(file);
    int failed = scenario_read(scenario, path, error);
    unlink(path);
    if (failed) fail_msg("%s\n%s", error, text);
}

/* The scenario that is read back makes the same run, meets as many expectations, and is written the
 * same. */
static void assert_read_back(const struct scenario *scenario, const struct run *run) {
    struct scenario again;
    char *first, *second;
    scenario_text(scenario, &first);
    read_text(&again, first);
    scenario_text(&again, &second);
    assert_string_equal(first, second);
    struct run other = run_new(&again);
    assert_int_equal(other.sim->result.hash, run->sim->result.hash);
    assert_int_equal(other.sim->result.end_us, run->sim->result.end_us);
    assert_int_equal(again.expectation_count, scenario->expectation_count);
    assert_int_equal(unmet(&again, &other), unmet(scenario, run));
    run_free(&other);
    scenario_free(&again);
    free(first);
    free(second);
}

static void scenarios_that_ship_are_read_back(void **state) {
    glob_t files;
    (void)state;
    assert_int_equal(glob("scenarios/*.scenario", 0, NULL, &files), 0);
    for (size_t i = 0; i < files.gl_pathc; i++) {
        struct scenario scenario;
        char error[SCENARIO_ERROR_MAX];
        if (scenario_read(&scenario, files.gl_pathv[i], error) != 0) fail_msg("%s", error);
        struct run run = run_new(&scenario);
        assert_int_equal(unmet(&scenario, &run), 0);
        assert_read_back(&scenario, &run);
        run_free(&run);
        scenario_free(&scenario);
    }
    globfree(&files);
}

static void every_word_is_read_back(void **state) {
    static const char *const texts[] = {
        "title One of each\nalgorithm central-lease\nservers Boss\nprocesses A B\nseed 7\n"
        "entries 9\ntime-limit 2s\nevent-limit 1000\nscripted\ndelay uniform:1ms,1500us\nreorder\n"
        "loss 0.125\ndrift 0.01\nfencing\nwait-bound 3\npatience 9s\nreply\nlease 15ms\n"
        "at 0ms A acquire hold 9ms\nat 5ms delay A * 3ms once\nat 6ms Boss timeout\n"
        "at 7ms partition A | B\nat 8ms heal\nexpect entries 1\nexpect exclusion held\n"
        "expect order A\nexpect refused 0\n",
        "algorithm yo-yo\nedges d,a-b,c-a,e\nattribute load=1,2,3,4,5\nexpect leader nobody\n",
        ("algorithm itai-rodeh\nprocesses 4\nids random\nseed 3\ninitiators 2\n"
         "at 0ms p1 chooses 3\nat 0ms p1 campaign\nexpect rounds 1\nexpect leader p1\n"),
    };
    (void)state;
    for (size_t i = 0; i < COUNT(texts); i++) {
        struct scenario scenario;
        read_text(&scenario, texts[i]);
        struct run run = run_new(&scenario);
        assert_read_back(&scenario, &run);
        run_free(&run);
        scenario_free(&scenario);
    }
}

static void a_written_network_keeps_the_order_of_its_processes(void **state) {
    static const char *const edges[] = {"a-b,b-c", "d,a-b,c-a,e", "b,a,a-b", "a,c,a-b,b-c,x,y"};
    (void)state;
    for (size_t i = 0; i < COUNT(edges); i++) {
        struct scenario one, two;
        char text[64], *written;
        snprintf(text, sizeof text, "algorithm yo-yo\nedges %s\n", edges[i]);
        read_text(&one, text);
        scenario_text(&one, &written);
        if (i == 0) assert_string_equal(written, text);
        read_text(&two, written);
        assert_int_equal(one.config.processes, two.config.processes);
        for (cv_pid p = 1; p <= one.config.processes; p++)
            assert_string_equal(one.config.names[p], two.config.names[p]);
        free(written);
        scenario_free(&one);
        scenario_free(&two);
    }
}

/* ---- Paths ---- */

#define MOVES(...)                                                                                 \
    .move = (struct check_move[]){__VA_ARGS__},                                                    \
    .count = sizeof((struct check_move[]){__VA_ARGS__}) / sizeof(struct check_move)
#define FLIGHTS(...)                                                                               \
    .flight = (struct check_flight[]){__VA_ARGS__},                                                \
    .flight_count = sizeof((struct check_flight[]){__VA_ARGS__}) / sizeof(struct check_flight)
#define DO(TYPE, P, ...)                                                                           \
    { .type = MOVE_##TYPE, .process = (P), __VA_ARGS__ }
#define RECEIVE(P, FROM)   DO(RECEIVE, P, .peer = (FROM))
#define ENTER(P, FROM)     DO(RECEIVE, P, .peer = (FROM), .entered = true)
#define CHOOSE(TYPE, P, K) DO(TYPE, P, .choices = 1, .choice = {K})
#define FLIGHT(FROM, TO, SENT, ENDED)                                                              \
    { .from = (FROM), .to = (TO), .sent = (SENT), .ended = (ENDED) }
#define LOST(FROM, TO, SENT, ENDED)                                                                \
    { .from = (FROM), .to = (TO), .sent = (SENT), .ended = (ENDED), .lost = true }

/* Every message was sent and ended with its moves, and no other was sent. */
static void assert_flights(const struct check_path *path, const struct run *run) {
    size_t k = 0;
    for (size_t i = 1; i < run->trace.count; i++) {
        const struct trace_entry *sending = &run->trace.entry[i];
        if (sending->type != TR_SEND) continue;
        assert_true(k < path->flight_count);
        const struct check_flight *flight = &path->flight[k++];
        assert_int_equal(sending->process, flight->from);
        assert_int_equal(sending->peer, flight->to);
        assert_int_equal(sending->time_us, flight->sent * 1000);
        if (!flight->ended || flight->lost) continue;
        assert_int_not_equal(sending->match, 0);
        assert_int_equal(run->trace.entry[sending->match].time_us, flight->ended * 1000);
    }
    assert_int_equal(k, path->flight_count);
}

/* Every entry happens with its move. */
static void assert_entries(const struct check_path *path, const struct run *run) {
    size_t at = 0;
    for (size_t i = 0; i < path->count; i++) {
        if (!path->move[i].entered) continue;
        do at++;
        while (at < run->trace.count && run->trace.entry[at].type != TR_ENTER);
        assert_true(at < run->trace.count);
        assert_int_equal(run->trace.entry[at].process, path->move[i].process);
        assert_int_equal(run->trace.entry[at].time_us, (i + 1) * 1000);
    }
}

/* Replays the path under the configuration of a scenario; the caller frees both. */
static struct run replay(struct scenario *scenario, const char *configuration,
                         struct check_model model, const struct check_path *path, int property) {
    struct scenario base;
    char error[SIM_ERROR_MAX] = "";
    read_text(&base, configuration);
    if (counterexample_scenario(scenario, &base.config, &model, path, property, error) != 0)
        fail_msg("%s", error);
    scenario_free(&base);
    struct run run = run_new(scenario);
    assert_flights(path, &run);
    assert_entries(path, &run);
    assert_int_equal(unmet(scenario, &run), 0);
    assert_read_back(scenario, &run);
    return run;
}

static void assert_violated(const char *configuration, struct check_model model,
                            const struct check_path *path, int property) {
    struct scenario scenario;
    struct check_path whole = *path;
    whole.cycle = path->count;
    struct run run = replay(&scenario, configuration, model, &whole, property);
    assert_int_equal(scenario.expectation_count, 1);
    assert_int_equal(sim_verdicts(run.sim)[property].value, VIOLATED);
    run_free(&run);
    scenario_free(&scenario);
}

/* c1 to c3 are 1 to 3, p1 is 4 and p2 is 5. */
static void a_coordinator_forgets_its_vote(void **state) {
    (void)state;
    const struct check_path path = {
        MOVES(DO(ACQUIRE, 4), RECEIVE(1, 4), RECEIVE(2, 4), RECEIVE(4, 1), ENTER(4, 2),
              DO(CRASH, 2), DO(RECOVER, 2), DO(ACQUIRE, 5), RECEIVE(2, 5), RECEIVE(3, 5),
              RECEIVE(5, 3), ENTER(5, 2)),
        FLIGHTS(FLIGHT(4, 1, 1, 2), FLIGHT(4, 2, 1, 3), FLIGHT(4, 3, 1, 0), FLIGHT(1, 4, 2, 4),
                FLIGHT(2, 4, 3, 5), FLIGHT(5, 1, 8, 0), FLIGHT(5, 2, 8, 9), FLIGHT(5, 3, 8, 10),
                FLIGHT(2, 5, 9, 12), FLIGHT(3, 5, 10, 11))};
    struct check_model model = {.amnesia = true};
    assert_violated("algorithm quorum\nprocesses 2\nn 3\nm 2\n", model, &path, EXCLUSION);
    model.fifo = true;
    assert_violated("algorithm quorum\nprocesses 2\nn 3\nm 2\n", model, &path, EXCLUSION);
}

/* The tree is 1, p1 is 2 and p2 is 3.  p1 deletes its node between p2's EXISTS and its WATCH. */
static void a_wake_up_is_lost(void **state) {
    (void)state;
    struct check_path path = {MOVES(DO(ACQUIRE, 2), RECEIVE(1, 2), ENTER(2, 1), DO(ACQUIRE, 3),
                                    RECEIVE(1, 3), DO(RELEASE, 2), RECEIVE(1, 2), RECEIVE(3, 1),
                                    RECEIVE(1, 3)),
                              FLIGHTS(FLIGHT(2, 1, 1, 2), FLIGHT(1, 2, 2, 3), FLIGHT(3, 1, 4, 5),
                                      FLIGHT(1, 3, 5, 8), FLIGHT(2, 1, 6, 7), FLIGHT(3, 1, 8, 9))};
    struct check_model model = {0};
    assert_violated("algorithm tree-lock-naive\nprocesses 2\n", model, &path, DEADLOCK);
    path.count--; /* with the WATCH still in flight, which changes nothing any more */
    path.flight[path.flight_count - 1].ended = 0;
    assert_violated("algorithm tree-lock-naive\nprocesses 2\n", model, &path, DEADLOCK);
}

static void a_leader_is_wrongly_suspected(void **state) {
    (void)state;
    const struct check_path path = {
        MOVES(DO(CAMPAIGN, 2), RECEIVE(1, 2), DO(SUSPECT, 1, .peer = 2), DO(TRUST, 1, .peer = 2)),
        FLIGHTS(FLIGHT(2, 1, 1, 2), FLIGHT(1, 2, 4, 0))};
    const char *configuration = "algorithm bully\nprocesses 2\ndetector 20ms\nstart 5ms\n";
    struct check_model model = {.detector = true, .suspicions = 1};
    assert_violated(configuration, model, &path, UNIQUENESS);
    assert_violated(configuration, model, &path, STABILITY);
}

/* p1 draws the better lot and leads, but p2 never hears of it. */
static void the_announcement_of_a_leader_is_lost(void **state) {
    (void)state;
    const struct check_path path = {
        MOVES(CHOOSE(CAMPAIGN, 1, 1), CHOOSE(CAMPAIGN, 2, 0), RECEIVE(2, 1), RECEIVE(1, 2),
              RECEIVE(1, 2), DO(LOSE, 2, .peer = 1)),
        FLIGHTS(FLIGHT(1, 2, 1, 3), FLIGHT(2, 1, 2, 4), FLIGHT(2, 1, 3, 5), LOST(1, 2, 5, 6))};
    assert_violated("algorithm itai-rodeh\nprocesses 2\nseed 5\n",
                    (struct check_model){.losses = 1}, &path, LIVENESS);
}

/* Both draw the same lot in every round: after each round of moves 3 to 6 there is another. */
static void lots_that_are_always_equal_are_replayed_round_by_round(void **state) {
    enum { ROUNDS = 3, ROUND = 4, START = 2 };
    struct check_move move[START + ROUNDS * ROUND] = {CHOOSE(CAMPAIGN, 1, 1),
                                                      CHOOSE(CAMPAIGN, 2, 1)};
    struct check_flight flight[START + ROUNDS * ROUND] = {FLIGHT(1, 2, 1, 3), FLIGHT(2, 1, 2, 4)};
    (void)state;
    for (unsigned round = 0; round < ROUNDS; round++) {
        unsigned i = START + round * ROUND; /* moves up to here */
        memcpy(move + i,
               (struct check_move[]){RECEIVE(2, 1), RECEIVE(1, 2),
                                     DO(RECEIVE, 1, .peer = 2, .choices = 1, .choice = {1}),
                                     DO(RECEIVE, 2, .peer = 1, .choices = 1, .choice = {1})},
               ROUND * sizeof *move);
        bool last = round == ROUNDS - 1;
        memcpy(flight + i,
               (struct check_flight[]){FLIGHT(2, 1, i + 1, i + 3), FLIGHT(1, 2, i + 2, i + 4),
                                       FLIGHT(1, 2, i + 3, last ? 0 : i + 5),
                                       FLIGHT(2, 1, i + 4, last ? 0 : i + 6)},
               ROUND * sizeof *flight);
    }
    const struct check_path path = {move, COUNT(move), START, flight, COUNT(flight), false};
    struct scenario scenario;
    struct run run = replay(&scenario, "algorithm itai-rodeh\nprocesses 2\n",
                            (struct check_model){0}, &path, TERMINATION);
    assert_int_equal(scenario.expectation_count, 0);
    assert_int_equal(run.sim->result.rounds, 1 + ROUNDS);
    assert_int_equal(sim_verdicts(run.sim)[TERMINATION].value, UNKNOWN);
    run_free(&run);
    scenario_free(&scenario);
}

/* The coordinator is 1, p1 is 2 and p2 is 3; the lease ends while p1 is inside. */
static void a_lease_ends_early(void **state) {
    (void)state;
    struct check_path path = {MOVES(DO(ACQUIRE, 2), RECEIVE(1, 2), ENTER(2, 1), DO(ACQUIRE, 3),
                                    RECEIVE(1, 3), DO(TIMEOUT, 1), ENTER(3, 1), DO(RELEASE, 2)),
                              FLIGHTS(FLIGHT(2, 1, 1, 2), FLIGHT(1, 2, 2, 3), FLIGHT(3, 1, 4, 5),
                                      FLIGHT(1, 3, 6, 7), FLIGHT(2, 1, 8, 0))};
    struct check_model model = {.late = 1};
    assert_violated("algorithm central-lease\nprocesses 2\nlease 2s\n", model, &path, EXCLUSION);
    struct scenario scenario;
    model.fencing = true; /* the resource refuses what p1 writes when it leaves */
    path.cycle = 0;       /* nothing is expected, because nothing is violated */
    struct run run = replay(&scenario, "algorithm central-lease\nprocesses 2\nlease 2s\n", model,
                            &path, EXCLUSION);
    assert_int_not_equal(sim_verdicts(run.sim)[EXCLUSION].value, VIOLATED);
    assert_int_equal(run.sim->judge.writes_refused, 1);
    run_free(&run);
    scenario_free(&scenario);
}

/* The token that p1 sends when it starts is lost. */
static void a_message_of_the_first_step_can_be_lost(void **state) {
    (void)state;
    const struct check_path path = {MOVES(DO(LOSE, 2, .peer = 1), DO(ACQUIRE, 2)),
                                    FLIGHTS(LOST(1, 2, 0, 1))};
    assert_violated("algorithm token-ring\nprocesses 2\n", (struct check_model){.losses = 1}, &path,
                    DEADLOCK);
}

/* Requests to a coordinator that crashes: connections lose them, datagrams may arrive after the
 * recovery or while it is down. */
static void connections_break_and_datagrams_do_not(void **state) {
    (void)state;
    const struct check_path broken = {
        MOVES(DO(ACQUIRE, 2), DO(CRASH, 1), DO(ACQUIRE, 3), DO(RECOVER, 1), DO(CRASH, 2),
              DO(RECOVER, 2), RECEIVE(1, 2)),
        FLIGHTS(FLIGHT(2, 1, 1, 0), FLIGHT(3, 1, 3, 0), FLIGHT(2, 1, 6, 7))};
    assert_violated("algorithm central\nprocesses 2\n",
                    (struct check_model){.crashes = 2, .fifo = true}, &broken, DEADLOCK);
    const struct check_path missed = {
        MOVES(DO(ACQUIRE, 2), DO(CRASH, 1), DO(ACQUIRE, 3), DO(MISS, 1, .peer = 3), DO(RECOVER, 1),
              RECEIVE(1, 2), ENTER(2, 1), DO(RELEASE, 2), RECEIVE(1, 2)),
        FLIGHTS(FLIGHT(2, 1, 1, 6), FLIGHT(3, 1, 3, 4), FLIGHT(1, 2, 6, 7), FLIGHT(2, 1, 8, 9))};
    assert_violated("algorithm central\nprocesses 2\n", (struct check_model){.crashes = 1}, &missed,
                    DEADLOCK);
    const struct check_path down = {MOVES(DO(ACQUIRE, 2), DO(CRASH, 1)),
                                    FLIGHTS(FLIGHT(2, 1, 1, 0))};
    assert_violated("algorithm central\nprocesses 1\n", (struct check_model){.crashes = 1}, &down,
                    DEADLOCK);
}

static void names_networks_and_ids_are_those_of_the_model(void **state) {
    (void)state;
    struct scenario scenario;
    const struct check_path path = {MOVES(DO(CAMPAIGN, 1), RECEIVE(2, 1)),
                                    FLIGHTS(FLIGHT(1, 2, 1, 2), FLIGHT(2, 3, 2, 0)), .cycle = 1};
    struct run run = replay(&scenario, "algorithm chang-roberts\nedges x-y,y-z,z-x\nids 5,3,4\n",
                            (struct check_model){0}, &path, LIVENESS);
    assert_string_equal(scenario.config.names[3], "z");
    assert_string_equal(scenario.title, "chang-roberts: liveness violated");
    assert_string_equal(scenario.config.actions[0].text, "1ms delay x y 1ms once");
    run_free(&run);
    scenario_free(&scenario);
    const struct check_path down = {MOVES(DO(ACQUIRE, 2), DO(CRASH, 1)),
                                    FLIGHTS(FLIGHT(2, 1, 1, 0))};
    assert_violated("algorithm central\nservers Boss\nprocesses Ann\nreply\nloss 1\n",
                    (struct check_model){.crashes = 1}, &down, DEADLOCK);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(scenarios_that_ship_are_read_back),
        cmocka_unit_test(every_word_is_read_back),
        cmocka_unit_test(a_written_network_keeps_the_order_of_its_processes),
        cmocka_unit_test(a_coordinator_forgets_its_vote),
        cmocka_unit_test(a_wake_up_is_lost),
        cmocka_unit_test(a_leader_is_wrongly_suspected),
        cmocka_unit_test(the_announcement_of_a_leader_is_lost),
        cmocka_unit_test(lots_that_are_always_equal_are_replayed_round_by_round),
        cmocka_unit_test(a_lease_ends_early),
        cmocka_unit_test(a_message_of_the_first_step_can_be_lost),
        cmocka_unit_test(connections_break_and_datagrams_do_not),
        cmocka_unit_test(names_networks_and_ids_are_those_of_the_model),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
