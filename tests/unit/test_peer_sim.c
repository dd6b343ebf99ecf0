/* A run of the simulator, and peers that get the same events: after each of them the states and the
 * effects are the same. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "algorithms/catalogue.h"
#include "base/assert.h"

/* Both runtimes have machines and channels. */
#define ALGORITHM SIM_ALGORITHM
#define DETECTOR  SIM_DETECTOR
#define MACHINES  SIM_MACHINES
#define machine   sim_machine_of
#define channel   sim_channel
#include "lab/sim/sim.h"
#undef ALGORITHM
#undef DETECTOR
#undef MACHINES
#undef machine
#undef channel

#include "peer/internal.h"
#include "wire/net/stream.h"

enum { PROCESSES = 4, SEEDS = 3, STEPS_MAX = 500 };

/* ---- What the simulator does ---- */

struct seen {
    cv_pid self;
    struct cv_event event;
    unsigned char *body;
    uint64_t hash; /* of what came of it */
};

static struct {
    const struct cv_algorithm *code; /* that is watched */
    struct seen step[STEPS_MAX];
    size_t count;
    bool chose;
    uint32_t processes;
    uint64_t ids[GROUP_PROCESSES_MAX + 1];
} run;

static void watch(void *state, const struct cv_env *env, const struct cv_event *event,
                  struct cv_out *out) {
    run.code->step(state, env, event, out);
    run.chose |= out->choose != 0;
    if (run.count == STEPS_MAX) return;
    struct cv_layout layout = {0};
    run.code->layout(env, &layout);
    size_t size = run.code->state->size + (size_t)layout.rows * run.code->state->row_size;
    struct seen *seen = &run.step[run.count++];
    *seen =
        (struct seen){.self = env->self, .event = *event, .hash = record_hash(state, size, out)};
    run.processes = env->processes;
    run.ids[env->self] = env->id;
    if (event->type != CV_RECV) return;
    seen->body = malloc((size_t)event->size + 1);
    cv_assert(seen->body);
    memcpy(seen->body, event->body, event->size);
    seen->event.body = seen->body;
}

static void simulate(const struct cv_algorithm *code, struct sim_config *config, uint64_t seed) {
    struct cv_algorithm watched = *code;
    struct sim *sim = malloc(sizeof *sim);
    char error[SIM_ERROR_MAX];
    cv_assert(sim);
    watched.step = watch;
    run.code = code;
    run.count = run.chose = 0;
    config_init(config, &watched);
    config->processes = PROCESSES;
    config->entries = 3 * PROCESSES;
    config->seed = seed;
    if (config_check(config, error) != 0) fail_msg("%s: %s", code->name, error);
    assert_int_equal(sim_open(sim), 0);
    sim_run(sim, config, NULL);
    sim_close(sim);
    free(sim);
}

/* ---- What peers do ---- */

struct place {
    uv_loop_t loop;
    struct group group;
    char directory[40], *data[GROUP_PROCESSES_MAX + 1];
    struct peer *peer[GROUP_PROCESSES_MAX + 1];
};

static void told(void *owner, const struct cv_tell *tell) { (void)owner, (void)tell; }
static void failed(void *owner, const char *why) {
    (void)owner;
    fail_msg("%s", why);
}

static void form(struct place *place, const struct sim_config *config) {
    char text[1024], error[GROUP_ERROR_MAX];
    size_t used = 0;
    for (cv_pid p = 1; p <= run.processes; p++) {
        used += (size_t)snprintf(text + used, sizeof text - used, "%u 127.0.0.1:%u", p, 18900 + p);
        if (run.ids[p])
            used += (size_t)snprintf(text + used, sizeof text - used, " id=%lu", run.ids[p]);
        used += (size_t)snprintf(text + used, sizeof text - used, "\n");
    }
    group_init(&place->group, run.code);
    memcpy(place->group.option, config->option, sizeof config->option);
    if (group_parse(&place->group, run.code->name, text, error) != 0) fail_msg("%s", error);
}

static struct peer *start(struct place *place, cv_pid self) {
    char error[PEER_ERROR_MAX];
    cv_assert(asprintf(&place->data[self], "%s/%u", place->directory, self) > 0);
    const struct peer_config config = {.loop = &place->loop,
                                       .group = &place->group,
                                       .self = self,
                                       .data = place->data[self],
                                       .owner = place,
                                       .told = told,
                                       .failed = failed};
    place->peer[self] = peer_open(&config, error);
    if (!place->peer[self]) fail_msg("%s: %s", run.code->name, error);
    return place->peer[self];
}

static void end(struct place *place) {
    for (cv_pid p = 1; p <= run.processes; p++)
        if (place->peer[p]) peer_close(place->peer[p]);
    while (uv_run(&place->loop, UV_RUN_ONCE)) continue;
    for (cv_pid p = 1; p <= run.processes; p++) {
        char path[64];
        if (!place->data[p]) continue;
        snprintf(path, sizeof path, "%s/durable", place->data[p]);
        unlink(path);
        rmdir(place->data[p]);
        free(place->data[p]);
    }
    net_shut(&place->loop);
    group_free(&place->group);
    rmdir(place->directory);
}

/* The network is this test. */
static void repeat(struct place *place) {
    for (size_t i = 0; i < run.count; i++) {
        const struct seen *seen = &run.step[i];
        struct peer *peer = place->peer[seen->self];
        if (!peer)
            peer = start(place, seen->self);
        else
            peer_step(peer, ALGORITHM, &seen->event);
        const struct machine *machine = &peer->machine[ALGORITHM];
        if (record_hash(machine->state, machine->size, &peer->out) != seen->hash)
            fail_msg("%s: step %zu, of process %u, comes out differently", run.code->name, i,
                     seen->self);
    }
}

static void peers_do_what_the_simulator_does(void **state) {
    unsigned algorithms = 0;
    (void)state;
    for (size_t a = 0; a < catalogue_count; a++) {
        if (catalogue[a]->topology == CV_GRAPH) continue; /* its lists need edges */
        for (uint64_t seed = 1; seed <= SEEDS; seed++) {
            struct place *place = calloc(1, sizeof *place);
            struct sim_config config;
            cv_assert(place);
            simulate(catalogue[a], &config, seed);
            strcpy(place->directory, "/tmp/test_peer_sim.XXXXXX");
            assert_non_null(mkdtemp(place->directory));
            assert_int_equal(net_open(&place->loop), 0);
            form(place, &config);
            if (!run.chose) repeat(place); /* peers draw by themselves */
            algorithms += !run.chose && seed == 1;
            end(place);
            for (size_t i = 0; i < run.count; i++) free(run.step[i].body);
            config_free(&config);
            free(place);
        }
    }
    print_message("%u algorithms\n", algorithms);
    assert_true(algorithms + 3 >= catalogue_count);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(peers_do_what_the_simulator_does)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
