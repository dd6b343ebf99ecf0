/* What a lock needs that has a bully elect its coordinator: the state and the options of bully. */
#ifndef CV_ALGORITHMS_ELECTION_BULLY_H
#define CV_ALGORITHMS_ELECTION_BULLY_H

#include "process/process.h"

enum { BULLY_TRANSMISSION, BULLY_PROCESSING, BULLY_HANDOVER, BULLY_OPTIONS };
enum { BULLY_TIMERS = 2, BULLY_KINDS = 3 };

#define BULLY_STATE_FIELDS(F, R)                                                                   \
    F(R, pid, leader, SHOWN)                                                                       \
    F(R, u32, phase, NAMED("normal|asking|answered|announced"))                                    \
    F(R, u64, uptime, INNER)   /* in periods */                                                    \
    F(R, u64, standing, INNER) /* the uptime when its current election began */

#define BULLY_OPTION_ROWS                                                                          \
    [BULLY_TRANSMISSION] = {"transmission",                                                        \
                            "Tt: the longest that a message takes",                                \
                            CV_DURATION,                                                           \
                            10000,                                                                 \
                            0,                                                                     \
                            1000000000000},                                                        \
    [BULLY_PROCESSING] = {"processing",                                                            \
                          "Tp: the longest that a process takes to answer",                        \
                          CV_DURATION,                                                             \
                          1000,                                                                    \
                          0,                                                                       \
                          1000000000000},                                                          \
    [BULLY_HANDOVER] = {"handover",  "announce, then wait this long before leading",               \
                        CV_DURATION, 0,                                                            \
                        0,           1000000000000}

/* A message there and back, and the time to answer it. */
static inline uint64_t bully_answer_us(const struct cv_env *env) {
    return 2 * env->option[BULLY_TRANSMISSION] + env->option[BULLY_PROCESSING];
}

extern const struct cv_algorithm cv_bully;

#endif
