/* No bound makes a violated property look as if it held, and no verdict contradicts another: every
 * algorithm, with faults and loads drawn at random, is checked and run to its end, and then within
 * all kinds of bounds. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>

#include "algorithms/catalogue.h"
#include "lab/check/check.h"
#include "lab/judge/implications.h"
#include "lab/sim/sim.h"

/* How many of each algorithm are drawn; ROUNDS=1000 for a soak. */
static uint32_t rounds(void) {
    const char *text = getenv("ROUNDS");
    return text ? (uint32_t)strtoul(text, NULL, 10) : 6;
}

static void set(struct sim_config *config, const char *name, const char *value) {
    char error[SIM_ERROR_MAX] = "";
    if (setting_apply(config, setting_find(name), value, error) != 0)
        fail_msg("%s %s: %s", name, value ? value : "", error);
}

__attribute__((format(printf, 3, 4))) static void setf(struct sim_config *config, const char *name,
                                                       const char *format, ...) {
    char text[64];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    set(config, name, text);
}

static unsigned draw(struct rng *rng, unsigned below) { return (unsigned)rng_below(rng, below); }
static bool one_in(struct rng *rng, unsigned many) { return draw(rng, many) == 0; }

/* What follows from a violation is violated, too; `partial`: or was not decided. */
static void assert_sense(const struct cv_algorithm *code, const enum verdict_value *values,
                         bool partial) {
    for (const struct implication *i = implications; i->because; i++) {
        bool follows = false;
        for (int p = 0; p < PROPERTIES_MAX; p++)
            if (i->others & 1u << p)
                follows |= values[p] == VIOLATED || (partial && values[p] == UNKNOWN);
        bool wrong = implication_applies(i, code) && values[i->violated] == VIOLATED && !follows;
        if (wrong) print_error("%s: not so: %s\n", code->name, i->because);
        assert_false(wrong);
    }
}

/* ---- The checker ---- */

struct drawn { /* a model, and what it points to */
    struct sim_config config;
    struct arena arena;
    struct check_model model;
};

static void draw_model(struct drawn *d, const struct cv_algorithm *code, struct rng *rng) {
    char error[SIM_ERROR_MAX] = "";
    struct topology topology = {0};
    bool election = code->problem == CV_ELECTION;
    config_init(&d->config, code);
    setf(&d->config, "processes", "%u", 2 + one_in(rng, 2));
    assert_int_equal(arena_open(&d->arena, (size_t)1 << 24), 0);
    struct roster roster = config_roster(&d->config);
    if (election) assert_int_equal(topology_build(&topology, &d->config, &d->arena, error), 0);
    struct cv_env *env = arena_take(&d->arena, (roster.processes + 1) * sizeof *env);
    for (cv_pid p = 1; p <= roster.processes; p++) {
        env[p] = (struct cv_env){.self = p,
                                 .processes = roster.processes,
                                 .servers = roster.servers,
                                 .option = d->config.option,
                                 .ids = topology.ids,
                                 .weights = topology.weights};
        if (election) topology_env(&topology, p, &env[p]);
    }
    d->model = (struct check_model){.algorithm = code,
                                    .processes = roster.processes,
                                    .servers = roster.servers,
                                    .env = env,
                                    .entries = (uint8_t)(1 + one_in(rng, 3)),
                                    .crashes = one_in(rng, 3),
                                    .losses = one_in(rng, 3),
                                    .late = code->timers && one_in(rng, 2),
                                    .timeouts = (uint8_t)(1 + draw(rng, 3)),
                                    .initiators = (uint8_t)(1 + draw(rng, roster.processes)),
                                    .fifo = one_in(rng, 2)};
    if (one_in(rng, 3)) d->model.wait_bound = 1 + draw(rng, 3);
    if (one_in(rng, 3)) d->model.starved_after = 1 + draw(rng, 3);
    if (election || code->traits & CV_USES_DETECTOR) {
        d->model.detector = one_in(rng, 2);
        d->model.suspicions = d->model.detector && one_in(rng, 2);
    }
    d->model.amnesia = d->model.crashes && one_in(rng, 2);
}

static void drawn_free(struct drawn *d) {
    arena_close(&d->arena);
    config_free(&d->config);
}

enum { MEMORY = 1 << 20 };

/* Bounds of the search, or of the timers; what is searched stays the same. */
static void draw_bounds(struct check_model *model, struct check_search *search, struct rng *rng) {
    *search = (struct check_search){.memory = MEMORY, .threads = 1, .keep_going = !one_in(rng, 3)};
    search->symmetry = one_in(rng, 4);
    search->order = one_in(rng, 3);
    switch (draw(rng, 6)) {
    case 0: search->depth = 1 + draw(rng, 30); break;
    case 1: search->memory = (300 << 10) + draw(rng, 200 << 10); break;
    case 2: model->timeouts = (uint8_t)draw(rng, model->timeouts + 1u); break;
    case 3: search->compact = true; break;
    case 4: search->depth_first = true; break;
    default: search->judged = 1 + draw(rng, 63); break;
    }
}

static void assert_no_false_verdict(const struct check_model *model,
                                    const struct check_search *search,
                                    const struct check_result *all,
                                    const struct check_result *some) {
    assert_sense(model->algorithm, some->verdict, true);
    for (int i = 0; i < PROPERTIES_MAX; i++) {
        enum verdict_value truth = all->verdict[i], said = some->verdict[i];
        assert_true((said == UNKNOWN) == (some->doubt[i] != NO_DOUBT));
        bool wrong = (truth == VIOLATED && said == HELD) || (truth == HELD && said == VIOLATED);
        if (wrong)
            print_error("%s of %u: property %d is %s, but said to be %s (entries %u crashes %u "
                        "losses %u suspicions %u late %u timeouts %u initiators %u fifo %d; depth "
                        "%llu memory %llu compact %d order %d symmetry %d)\n",
                        model->algorithm->name, model->processes, i, verdict_word(truth),
                        verdict_word(said), model->entries, model->crashes, model->losses,
                        model->suspicions, model->late, model->timeouts, model->initiators,
                        model->fifo, (unsigned long long)search->depth,
                        (unsigned long long)search->memory, search->compact, search->order,
                        search->symmetry);
        assert_false(wrong);
    }
}

/* Returns how often a bound left something unknown that is violated. */
static unsigned check_within_bounds(const struct drawn *d, struct rng *rng) {
    struct check_search whole = {.memory = MEMORY, .threads = 1, .keep_going = true, .judged = 511};
    struct check_result all, some;
    unsigned hidden = 0;
    if (!d->model.algorithm->timers && d->model.algorithm->traits & CV_UNBOUNDED) whole.depth = 30;
    if (check_refuse(&d->model, &whole)) return 0;
    assert_int_equal(check_run(&d->model, &whole, &all), 0);
    for (int i = 0; i < 4; i++) {
        struct check_model model = d->model;
        struct check_search search;
        draw_bounds(&model, &search, rng);
        if (whole.depth && !search.depth) search.depth = 1 + draw(rng, 30);
        if (check_refuse(&model, &search)) continue;
        assert_int_equal(check_run(&model, &search, &some), 0);
        assert_no_false_verdict(&model, &search, &all, &some);
        for (int p = 0; p < PROPERTIES_MAX; p++)
            hidden += all.verdict[p] == VIOLATED && some.verdict[p] == UNKNOWN;
        check_free(&some);
    }
    check_free(&all);
    return hidden;
}

static void no_bound_of_a_check_hides_a_violation(void **state) {
    struct rng rng;
    unsigned hidden = 0;
    (void)state;
    rng_seed(&rng, 17);
    for (size_t i = 0; i < catalogue_count; i++)
        for (uint32_t round = 0; round < rounds(); round++) {
            static struct drawn drawn;
            draw_model(&drawn, catalogue[i], &rng);
            hidden += check_within_bounds(&drawn, &rng);
            drawn_free(&drawn);
        }
    assert_true(hidden > 100); /* else the bounds bound nothing */
}

/* A timer that could only fire late, were there another timeout: a message would stop it first. */
static void no_bound_of_timers_hides_a_late_one(void **state) {
    struct rng rng;
    unsigned hidden = 0;
    (void)state;
    rng_seed(&rng, 18);
    for (size_t i = 0; i < catalogue_count; i++) {
        static struct drawn drawn;
        struct check_search search = {.memory = MEMORY, .threads = 1, .keep_going = true};
        struct check_result all, some;
        if (!catalogue[i]->timers) continue;
        draw_model(&drawn, catalogue[i], &rng);
        struct check_model *model = &drawn.model;
        model->crashes = model->losses = model->suspicions = model->amnesia = 0;
        model->late = model->timeouts = model->entries = 1;
        if (!check_refuse(model, &search)) {
            assert_int_equal(check_run(model, &search, &all), 0);
            model->timeouts = 0;
            assert_int_equal(check_run(model, &search, &some), 0);
            assert_no_false_verdict(model, &search, &all, &some);
            for (int p = 0; p < PROPERTIES_MAX; p++)
                hidden += all.verdict[p] == VIOLATED && some.verdict[p] == UNKNOWN;
            check_free(&all);
            check_free(&some);
        }
        drawn_free(&drawn);
    }
    assert_true(hidden > 0);
}

/* ---- The simulator ---- */

static void draw_faults(struct sim_config *config, struct rng *rng) {
    if (one_in(rng, 4)) setf(config, "loss", "0.%u", draw(rng, 3));
    if (one_in(rng, 4)) setf(config, "duplicate", "0.%u", draw(rng, 3));
    if (one_in(rng, 2)) set(config, "reorder", NULL);
    if (one_in(rng, 3)) setf(config, "pause-rate", "%u/s", 1 + draw(rng, 5));
    if (one_in(rng, 4)) setf(config, "partition-rate", "%u/s", 1 + draw(rng, 3));
    if (!one_in(rng, 3)) return;
    setf(config, "crash-rate", "%u/s", 1 + draw(rng, 5));
    if (one_in(rng, 4)) return;
    set(config, "recover", NULL);
    if (one_in(rng, 2)) set(config, "amnesia", NULL);
}

static void draw_run(struct sim_config *config, const struct cv_algorithm *code, struct rng *rng) {
    char error[SIM_ERROR_MAX] = "";
    bool lock = code->problem == CV_MUTEX;
    config_init(config, code);
    setf(config, "seed", "%u", draw(rng, 1u << 30));
    setf(config, "processes", "%u", 2 + draw(rng, 7));
    setf(config, "delay", "exponential:%ums", 1 + draw(rng, 10));
    set(config, "patience", "2s");
    if (lock) {
        setf(config, "entries", "%u", 1 + draw(rng, 300));
        if (one_in(rng, 2)) set(config, "think", "0ms");
        if (one_in(rng, 2)) setf(config, "starved-after", "%u", 1 + draw(rng, 40));
        if (one_in(rng, 2)) setf(config, "wait-bound", "%u", 1 + draw(rng, 40));
        if (code->traits & CV_FENCED && one_in(rng, 3)) set(config, "fencing", NULL);
    } else {
        setf(config, "initiators", "%u", draw(rng, 3));
        if (one_in(rng, 2)) set(config, "ids", "random");
    }
    if (one_in(rng, 2)) draw_faults(config, rng);
    if ((!lock || code->traits & CV_USES_DETECTOR) && one_in(rng, 2))
        set(config, "detector", one_in(rng, 2) ? "20ms" : "phi:8");
    set(config, "event-limit", "20000");
    if (config_keeps_failing(config)) set(config, "time-limit", "5s");
    if (config_check(config, error) != 0) fail_msg("%s", error);
}

static void assert_run_makes_sense(const struct sim *sim) {
    enum verdict_value values[PROPERTIES_MAX] = {UNKNOWN};
    for (int i = 0; i < sim_properties(sim->algorithm).count; i++)
        values[i] = sim_verdicts(sim)[i].value;
    assert_sense(sim->algorithm, values, false);
}

/* A run that is cut short is the first part of the whole one. */
static unsigned cut_short(struct sim *whole, struct sim *part, const struct sim_config *config,
                          struct rng *rng) {
    struct sim_config cut = *config;
    unsigned hidden = 0;
    bool by_time = !config_keeps_failing(config) && one_in(rng, 2);
    if (by_time)
        cut.time_limit = 1 + rng_below(rng, whole->result.end_us + 1);
    else
        cut.event_limit = 1 + rng_below(rng, whole->result.events + 1);
    sim_run(part, &cut, NULL);
    assert_run_makes_sense(whole);
    assert_run_makes_sense(part);
    struct properties properties = sim_properties(config->algorithm);
    for (int i = 0; i < properties.count; i++) {
        const struct verdict *truth = &sim_verdicts(whole)[i], *said = &sim_verdicts(part)[i];
        bool wrong = truth->value == VIOLATED && said->value == HELD;
        wrong |= truth->value == HELD && said->value == VIOLATED;
        if (wrong) {
            print_error("%s is %s, but said to be %s: ", properties.name[i],
                        verdict_word(truth->value), verdict_word(said->value));
            config_command(&cut, stderr);
            print_error("\n");
        }
        assert_false(wrong);
        hidden += truth->value == VIOLATED && said->value == UNKNOWN;
    }
    return hidden;
}

static void no_end_of_a_run_hides_a_violation(void **state) {
    static struct sim whole, part;
    struct rng rng;
    unsigned hidden = 0;
    (void)state;
    rng_seed(&rng, 18);
    assert_int_equal(sim_open(&whole), 0);
    assert_int_equal(sim_open(&part), 0);
    for (size_t i = 0; i < catalogue_count; i++)
        for (uint32_t round = 0; round < 4 * rounds(); round++) {
            struct sim_config config;
            draw_run(&config, catalogue[i], &rng);
            sim_run(&whole, &config, NULL);
            hidden += cut_short(&whole, &part, &config, &rng);
            config_free(&config);
        }
    assert_true(hidden > 100);
    sim_close(&whole);
    sim_close(&part);
}

static void contradictions_are_seen(void **state) {
    const struct cv_algorithm *lock = catalogue_find("voting"), *bully = catalogue_find("bully"),
                              *anyone = catalogue_find("majority-terms");
    enum verdict_value values[PROPERTIES_MAX] = {HELD, HELD, VIOLATED, HELD};
    (void)state;
    assert_ptr_equal(verdicts_contradict(lock, values), &implications[1]);
    values[3] = UNKNOWN;
    assert_null(verdicts_contradict(lock, values));
    values[1] = VIOLATED, values[2] = HELD;
    assert_ptr_equal(verdicts_contradict(lock, values), &implications[0]);
    enum verdict_value split[PROPERTIES_MAX] = {HELD, HELD, HELD, HELD, VIOLATED, HELD};
    assert_non_null(verdicts_contradict(bully, split));
    assert_null(verdicts_contradict(anyone, split));
    split[0] = VIOLATED;
    assert_null(verdicts_contradict(bully, split));
    enum verdict_value nobody[PROPERTIES_MAX] = {VIOLATED, HELD, VIOLATED, HELD, HELD, HELD};
    assert_null(verdicts_contradict(bully, nobody));
    nobody[0] = HELD;
    assert_non_null(verdicts_contradict(bully, nobody));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(contradictions_are_seen),
        cmocka_unit_test(no_bound_of_a_check_hides_a_violation),
        cmocka_unit_test(no_bound_of_timers_hides_a_late_one),
        cmocka_unit_test(no_end_of_a_run_hides_a_violation),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
