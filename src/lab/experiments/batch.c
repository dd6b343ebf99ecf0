#include "lab/experiments/batch.h"

#include "language/language.h"

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

const char *const batch_measure_name[BATCH_MEASURES] = {[PER_ENTRY] = N_("messages_per_entry"),
                                                        [DELAY_HOPS] = N_("delay_hops"),
                                                        [WAIT_MS] = N_("wait_ms"),
                                                        [FAIRNESS] = N_("fairness"),
                                                        [MESSAGES] = N_("messages"),
                                                        [DECIDED_MS] = N_("time_ms"),
                                                        [ROUNDS] = N_("rounds"),
                                                        [EVENTS] = N_("events")};

bool batch_measured(enum batch_measure measure, enum cv_problem problem) {
    return measure == EVENTS || (measure >= MESSAGES) == (problem == CV_ELECTION);
}

size_t batch_size(const struct batch *batch) {
    return batch->runs < batch->share ? 0 : (batch->runs - batch->share) / batch->shares + 1;
}

struct work { /* shared by the workers, each of which takes the next run */
    struct batch *batch;
    atomic_size_t next, done;
    atomic_bool failed;
};

static struct batch_row row_of(const struct sim *sim) {
    const struct sim_result *r = &sim->result;
    struct batch_row row = {.seed = sim->config->seed,
                            .events = r->events,
                            .messages = r->messages,
                            .entries = r->entries,
                            .requests = r->requests,
                            .lost = r->lost,
                            .crashes = r->crashes,
                            .end_us = r->end_us,
                            .delay_us = r->delay_us,
                            .wait_us = r->wait_us,
                            .wait_us_max = r->wait_us_max,
                            .overtakes_max = r->overtakes_max,
                            .entries_squared = r->entries_squared,
                            .bytes = r->bytes,
                            .rounds = r->rounds,
                            .elections = r->elections,
                            .leader_changes = r->leader_changes,
                            .leader = r->leader,
                            .decided_us = r->decided_us,
                            .hash = r->hash};
    int properties = sim_properties(sim->algorithm).count;
    for (int i = 0; i < properties; i++) row.verdict[i] = sim_verdicts(sim)[i].value;
    return row;
}

static void *worker(void *argument) {
    struct work *work = argument;
    struct batch *batch = work->batch;
    struct sim_config config = *batch->config;
    struct sim sim;
    if (sim_open(&sim) != 0) {
        work->failed = true;
        return NULL;
    }
    for (size_t i; (i = atomic_fetch_add(&work->next, 1)) < batch->count;) {
        config.seed = batch->config->seed + (batch->share - 1) + i * batch->shares;
        sim_run(&sim, &config, NULL);
        batch->rows[i] = row_of(&sim);
        atomic_fetch_add(&work->done, 1);
    }
    sim_close(&sim);
    return NULL;
}

static void watch(struct work *work, void (*progress)(size_t, size_t)) {
    const struct timespec pause = {.tv_nsec = 100000000};
    while (progress && !work->failed && work->done < work->batch->count) {
        progress(work->done, work->batch->count);
        nanosleep(&pause, NULL);
    }
}

int batch_run(struct batch *batch, void (*progress)(size_t done, size_t all)) {
    enum { JOBS_MAX = 256 };
    pthread_t thread[JOBS_MAX];
    struct work work = {.batch = batch};
    unsigned started = 0;
    batch->count = batch_size(batch);
    batch->rows = calloc(batch->count + 1, sizeof *batch->rows);
    if (!batch->rows) return -1;
    while (started < batch->jobs && started < JOBS_MAX && started < batch->count &&
           pthread_create(&thread[started], NULL, worker, &work) == 0)
        started++;
    if (started == 0 && batch->count) worker(&work);
    watch(&work, progress);
    for (unsigned i = 0; i < started; i++) pthread_join(thread[i], NULL);
    if (progress) progress(batch->count, batch->count);
    return work.failed ? -1 : 0;
}

/* ---- The summary ---- */

static double measure(const struct batch_row *row, enum batch_measure m, double hop_us, double n) {
    double entries = (double)row->entries, squares = (double)row->entries_squared;
    switch (m) {
    case PER_ENTRY: return entries > 0 ? (double)row->messages / entries : NAN;
    case DELAY_HOPS:
        return entries > 0 && hop_us > 0 ? (double)row->delay_us / entries / hop_us : NAN;
    case WAIT_MS: return entries > 0 ? (double)row->wait_us / entries / 1e3 : NAN;
    case FAIRNESS: return squares > 0 ? entries * entries / (n * squares) : NAN;
    case MESSAGES: return (double)row->messages;
    case DECIDED_MS: return (double)row->decided_us / 1e3;
    case ROUNDS: return (double)row->rounds;
    default: return (double)row->events;
    }
}

static void count_verdicts(struct batch_summary *summary, const struct batch_row *row) {
    for (int i = 0; i < PROPERTIES_MAX; i++) {
        summary->held[i] += row->verdict[i] == HELD;
        if (row->verdict[i] != VIOLATED) continue;
        summary->violated[i]++;
        if (!summary->first_failing[i]) summary->first_failing[i] = row;
        if (!summary->first_failing_any) summary->first_failing_any = row;
    }
}

int batch_summarize(const struct batch_row *rows, size_t count, double hop_us, double processes,
                    struct batch_summary *summary) {
    *summary = (struct batch_summary){0};
    double *values = calloc(count + 1, sizeof *values);
    if (!values) return -1;
    for (int m = 0; m < BATCH_MEASURES; m++) {
        size_t known = 0;
        for (size_t i = 0; i < count; i++) {
            double value = measure(&rows[i], (enum batch_measure)m, hop_us, processes);
            if (!isnan(value)) values[known++] = value;
        }
        summary->of[m] = stats_of(values, known);
    }
    for (size_t i = 0; i < count; i++) count_verdicts(summary, &rows[i]);
    free(values);
    return 0;
}
