#include "lab/experiments/saturation.h"

#include "language/language.h"

#include <math.h>

static void configure(struct sim_config *config, uint64_t processes, uint64_t service_us,
                      uint64_t seed) {
    enum { EVENTS_MAX = 1000000 };
    const struct cv_algorithm *algorithm = config->algorithm;
    config->processes = processes;
    config->seed = seed;
    config->entries = processes * 20 > 1000 ? processes * 20 : 1000;
    config->event_limit = EVENTS_MAX;
    config->service_time = service_us;
    config->delay = (struct distribution){CONSTANT, (double)service_us / 10, 0};
    config->hold = (struct distribution){CONSTANT, 0, 0};
    config->think = (struct distribution){EXPONENTIAL, 100 * (double)service_us, 0};
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
    else if (result->end != ALL_SERVED)
        row->failed = N_("it was cut off before all had entered");
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
