#include "lab/experiments/saturation.h"

#include "language/language.h"

#include <math.h>

static void configure(struct sim_config *config, uint64_t processes, uint64_t service_us,
                      uint64_t seed) {
    enum { EVENTS_MAX = 2000000 };
    const uint64_t think_us = 100 * service_us;
    const struct cv_algorithm *algorithm = config->algorithm;
    config->processes = processes;
    config->seed = seed;
    /* It ends in the middle of the load: a last round in which fewer and fewer compete would count
     * as time without entries. */
    config->entries = UINT64_MAX;
    config->time_limit = think_us * (processes < 10 ? 1000 / processes : 100);
    if (config->time_limit > SIM_TIME_MAX_US) config->time_limit = SIM_TIME_MAX_US;
    config->progress_timeout = config->time_limit / 4;
    config->event_limit = EVENTS_MAX;
    config->service_time = service_us;
    config->delay = (struct distribution){CONSTANT, (double)service_us / 10, 0};
    config->hold = (struct distribution){CONSTANT, 0, 0};
    config->think = (struct distribution){EXPONENTIAL, (double)think_us, 0};
    const struct cv_option *lease = option_find(algorithm, "lease");
    if (lease) config->option[lease - algorithm->options] = 1000 * service_us;
}

void saturation_measure(struct sim *sim, const struct cv_algorithm *algorithm, uint64_t processes,
                        uint64_t service_us, uint64_t seed, struct saturation_row *row) {
    struct sim_config config;
    config_init(&config, algorithm);
    configure(&config, processes, service_us, seed);
    sim_run(sim, &config, NULL);
    const struct sim_result *result = &sim->result;
    double entries = result->entries ? (double)result->entries : NAN;
    cv_pid busiest = sim_busiest(sim);
    *row = (struct saturation_row){.algorithm = algorithm,
                                   .processes = processes,
                                   .per_second =
                                       (double)result->entries * 1e6 / (double)result->end_us,
                                   .wait_us = (double)result->wait_us / entries,
                                   .messages = (double)result->messages / entries,
                                   .busy = sim_busy(sim, busiest)};
    if (sim_verdicts(sim)[EXCLUSION].value == VIOLATED)
        row->failed = N_("two were inside at once");
    else if (run_is_whole(result->end))
        row->failed = N_("nobody entered any more");
    else if (result->entries < 4 * processes)
        row->failed = N_("it was cut off before all had entered a few times");
    roster_name(&sim->roster, busiest, row->busiest);
    config_free(&config);
}

struct saturation saturation_find(const struct saturation_row *rows, size_t count) {
    const double nearly = 0.95; /* of the most that was measured */
    struct saturation found = {0};
    size_t sound = 0;
    while (sound < count && !rows[sound].failed) sound++;
    if (!sound) return found;
    found = (struct saturation){NULL, rows, rows + sound - 1};
    count = sound;
    for (size_t i = 0; i < count; i++)
        if (rows[i].per_second > found.best->per_second) found.best = &rows[i];
    for (size_t i = 0; i + 1 < count && !found.from; i++)
        if (rows[i].per_second >= nearly * found.best->per_second) found.from = &rows[i];
    return found;
}
