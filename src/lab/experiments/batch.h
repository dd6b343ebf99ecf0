/* Many seeds of one configuration, run in parallel, and their summary. */
#ifndef CV_LAB_EXPERIMENTS_BATCH_H
#define CV_LAB_EXPERIMENTS_BATCH_H

#include "lab/experiments/stats.h"
#include "lab/sim/sim.h"

/* A run in whole numbers, so that results can be written, read and merged without loss. */
#define BATCH_COLUMNS(C)                                                                           \
    C(seed)                                                                                        \
    C(events)                                                                                      \
    C(messages)                                                                                    \
    C(entries)                                                                                     \
    C(requests)                                                                                    \
    C(lost)                                                                                        \
    C(crashes)                                                                                     \
    C(end_us)                                                                                      \
    C(delay_us)                                                                                    \
    C(wait_us)                                                                                     \
    C(wait_us_max)                                                                                 \
    C(overtakes_max)                                                                               \
    C(entries_squared) C(bytes) C(rounds) C(elections) C(leader_changes) C(leader) C(decided_us)
struct batch_row {
#define C(NAME) uint64_t NAME;
    BATCH_COLUMNS(C)
#undef C
    uint64_t hash;
    enum verdict_value verdict[PROPERTIES_MAX];
};

struct batch {
    const struct sim_config *config; /* its seed is the first */
    uint64_t runs;                   /* in all shares together */
    uint32_t share, shares;          /* this is share 1..shares; it has every shares-th seed */
    unsigned jobs;
    struct batch_row *rows; /* owned */
    size_t count;
};

/* The number of runs of this share. */
size_t batch_size(const struct batch *batch);
/* Runs them.  The calling thread calls `progress` now and then; it may be NULL. */
int batch_run(struct batch *batch, void (*progress)(size_t done, size_t all));

/* The measures that are summarized. */
enum batch_measure {
    PER_ENTRY,
    DELAY_HOPS,
    WAIT_MS,
    FAIRNESS,
    MESSAGES,
    DECIDED_MS,
    ROUNDS,
    EVENTS,
    BATCH_MEASURES
};
extern const char *const batch_measure_name[BATCH_MEASURES];
bool batch_measured(enum batch_measure measure, enum cv_problem problem);

struct batch_summary {
    struct stats of[BATCH_MEASURES];
    size_t held[PROPERTIES_MAX], violated[PROPERTIES_MAX];
    const struct batch_row *first_failing[PROPERTIES_MAX]; /* NULL: none */
    const struct batch_row *first_failing_any;
};

/* `hop_us`: the mean delay of a message; `processes`: how many compete.  Rows are in order of
 * seed.  Returns 0, or -1 when memory runs out. */
int batch_summarize(const struct batch_row *rows, size_t count, double hop_us, double processes,
                    struct batch_summary *summary);

#endif
