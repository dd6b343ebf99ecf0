/* fixed, adaptive and phi: failure detectors by heartbeat.
 *
 * Each process sends a HEARTBEAT to all others once per interval, and suspects a process that has
 * been silent for too long; a HEARTBEAT from a suspect clears it.  What is too long:
 *   - fixed: a configured time.  A long one is slow to detect, a short one makes mistakes.
 *   - adaptive: the mean of the gaps seen so far plus k mean deviations (Jacobson, SIGCOMM 1988;
 *     Bertier et al., DSN 2002), so that it follows the network.
 *   - phi: the time after which the probability of still hearing something is below 10^-phi, if
 *     gaps are normally distributed (Hayashibara et al., The phi accrual failure detector, SRDS
 *     2004).
 *
 * Cost: N(N-1) messages per interval.  What breaks it: no detector is right in an asynchronous
 * network.  A process that is only slow is suspected by each of the three.
 *
 * The detector reads no clock: silence is counted in ticks of its own timer, four to an interval,
 * and gaps are averaged with weight 1/16 for the newest, in sixteenths of a tick. */
#include "algorithms/detector/detector.h"

enum { HEARTBEAT, KINDS };
enum { TICK, TIMERS };
enum { TICKS_PER_INTERVAL = 4, UNIT = 16, WEIGHT = 16 };

#define HEARTBEAT_FIELDS(F, R) F(R, u32, number, INNER)
#define STATE_FIELDS(F, R)                                                                         \
    F(R, u32, ticks, INNER) /* until the next heartbeat */                                         \
    F(R, u32, number, INNER)
#define ROW_FIELDS(F, R)                                                                           \
    F(R, u32, silent, INNER) /* ticks since its last heartbeat */                                  \
    F(R, u32, mean, INNER)   /* of the gaps, in units; 0: none was seen yet */                     \
    F(R, u32, spread, INNER) /* mean deviation in units; for phi: variance in units squared */     \
    F(R, u32, suspected, INNER)

CV_RECORD(heartbeat, HEARTBEAT_FIELDS);
CV_RECORD(state, STATE_FIELDS);
CV_RECORD(row, ROW_FIELDS);

static struct row *row_of(struct state *s, cv_pid p) { return (struct row *)(s + 1) + (p - 1); }

static uint32_t square_root(uint32_t x) {
    uint32_t root = 0;
    for (uint32_t bit = 1u << 15; bit; bit >>= 1)
        if ((uint64_t)(root | bit) * (root | bit) <= x) root |= bit;
    return root;
}

/* ---- How long a silence is too long, in ticks ---- */

static uint32_t limit_fixed(const struct row *row, const struct cv_env *env) {
    (void)row;
    uint64_t tick_us = env->option[DETECTOR_INTERVAL] / TICKS_PER_INTERVAL;
    return (uint32_t)((env->option[DETECTOR_LIMIT] + tick_us - 1) / tick_us);
}

/* Until a gap was seen, the limit is ten intervals. */
static uint32_t limit_of_gaps(const struct row *row, uint64_t beyond) {
    if (!row->mean) return 10 * TICKS_PER_INTERVAL;
    return (uint32_t)((row->mean + beyond + UNIT - 1) / UNIT) +
           1; /* ticks are counted, not measured */
}

static uint32_t limit_adaptive(const struct row *row, const struct cv_env *env) {
    uint32_t deviation = row->spread > UNIT / 2 ? row->spread : UNIT / 2;
    return limit_of_gaps(row, env->option[DETECTOR_LIMIT] * deviation / 1000);
}

/* The number of standard deviations above the mean at which the upper tail of a normal distribution
 * falls below 10^-phi, in thousandths, for phi from 0 to 16; between whole numbers it is nearly
 * linear. */
static uint64_t deviations_of_phi(uint64_t phi_thousandths) {
    static const uint32_t z[] = {0,    1282, 2326, 3090, 3719, 4265, 4753, 5199, 5612,
                                 5998, 6361, 6706, 7034, 7349, 7651, 7941, 8222};
    uint64_t whole = phi_thousandths / 1000, part = phi_thousandths % 1000;
    return whole >= 16 ? z[16] : z[whole] + (z[whole + 1] - z[whole]) * part / 1000;
}

static uint32_t limit_phi(const struct row *row, const struct cv_env *env) {
    uint32_t deviation = square_root(row->spread);
    if (deviation < UNIT / 2) deviation = UNIT / 2;
    return limit_of_gaps(row, deviations_of_phi(env->option[DETECTOR_LIMIT]) * deviation / 1000);
}

/* ---- Heartbeats received ---- */

static void average(uint32_t *value, uint32_t sample) {
    int64_t away = (int64_t)sample - (int64_t)*value;
    int64_t change = (away + (away < 0 ? -WEIGHT / 2 : WEIGHT / 2)) / WEIGHT; /* to the nearest */
    *value = (uint32_t)((int64_t)*value + change);
}

static void learn(struct row *row, bool squares) {
    uint32_t gap = row->silent > 4000 ? 4000 * UNIT : row->silent * UNIT;
    if (!row->mean) {
        row->mean = gap ? gap : 1;
        return;
    }
    uint32_t deviation = gap > row->mean ? gap - row->mean : row->mean - gap;
    average(&row->spread, squares ? deviation * deviation : deviation);
    average(&row->mean, gap);
    if (!row->mean) row->mean = 1;
}

static void on_heartbeat(struct state *s, cv_pid p, bool squares, struct cv_out *out) {
    struct row *row = row_of(s, p);
    if (row->suspected) { /* the gap of an outage says nothing about the network */
        row->suspected = 0;
        cv_tell(out, CV_TRUST, p);
    } else {
        learn(row, squares);
    }
    row->silent = 0;
}

/* ---- Ticks ---- */

static void arm(const struct cv_env *env, struct cv_out *out) {
    uint64_t tick_us = env->option[DETECTOR_INTERVAL] / TICKS_PER_INTERVAL;
    cv_timer(out, TICK, tick_us, tick_us);
}

static void send_heartbeats(struct state *s, struct cv_out *out) {
    if (s->ticks-- > 0) return;
    s->ticks = TICKS_PER_INTERVAL - 1;
    s->number++;
    cv_send(out, CV_OTHERS, HEARTBEAT, heartbeat, .number = s->number);
}

static void watch(struct state *s, const struct cv_env *env,
                  uint32_t (*limit)(const struct row *, const struct cv_env *),
                  struct cv_out *out) {
    for (cv_pid p = 1; p <= env->processes; p++) {
        struct row *row = row_of(s, p);
        if (p == env->self) continue;
        row->silent++;
        if (row->suspected || row->silent <= limit(row, env)) continue;
        if (out->tells == CV_TELLS_MAX) continue; /* the rest follows at the next tick */
        row->suspected = 1;
        cv_tell(out, CV_SUSPECT, p);
    }
}

static void run(struct state *s, const struct cv_env *env, const struct cv_event *e,
                uint32_t (*limit)(const struct row *, const struct cv_env *), bool squares,
                struct cv_out *out) {
    switch (e->type) {
    case CV_START:
    case CV_RESTART: arm(env, out); break;
    case CV_RECV: on_heartbeat(s, e->from, squares, out); break;
    case CV_TIMEOUT:
        arm(env, out);
        send_heartbeats(s, out);
        watch(s, env, limit, out);
        break;
    default: break;
    }
}

static void step_fixed(void *state, const struct cv_env *env, const struct cv_event *e,
                       struct cv_out *out) {
    run(state, env, e, limit_fixed, false, out);
}

static void step_adaptive(void *state, const struct cv_env *env, const struct cv_event *e,
                          struct cv_out *out) {
    run(state, env, e, limit_adaptive, false, out);
}

static void step_phi(void *state, const struct cv_env *env, const struct cv_event *e,
                     struct cv_out *out) {
    run(state, env, e, limit_phi, true, out);
}

static void layout(const struct cv_env *env, struct cv_layout *layout) {
    layout->rows = env->processes;
    layout->first = 1;
}

static const struct cv_record state_table = CV_TABLE_ROWS("state", state, row);
static const struct cv_record messages[KINDS] = {CV_TABLE("HEARTBEAT", heartbeat)};

#define DETECTOR                                                                                   \
    .cost = "N(N-1) per interval", .delay = "", .state = &state_table, .messages = messages,       \
    .message_count = KINDS, .layout = layout, .problem = CV_DETECTOR, .timers = TIMERS

const struct cv_algorithm cv_detector_fixed = {
    .name = "fixed",
    .summary = "suspects a process that has been silent for a set time",
    .paper = "Chandra & Toueg, Unreliable failure detectors, JACM 1996",
    .step = step_fixed,
    DETECTOR,
};
const struct cv_algorithm cv_detector_adaptive = {
    .name = "adaptive",
    .summary = "suspects after the mean gap between heartbeats plus k mean deviations",
    .paper = "Bertier, Marin & Sens, An adaptable failure detector, DSN 2002",
    .step = step_adaptive,
    DETECTOR,
};
const struct cv_algorithm cv_detector_phi = {
    .name = "phi",
    .summary = "suspects when the probability of a later heartbeat is below 10^-phi",
    .paper = "Hayashibara, Defago, Yared & Katayama, The phi accrual failure detector, SRDS 2004",
    .step = step_phi,
    DETECTOR,
};
