/* The loop: take the earliest event, step a process, apply the effects in their order. */
#include <math.h>

#include "lab/judge/implications.h"
#include "lab/judge/log.h"
#include "lab/sim/internal.h"
#include "process/contract.h"

#define GIB              ((uint64_t)1 << 30)
#define ELECTION_TIME_US 60000000u /* when faults never end, and no limit is set */

int sim_open(struct sim *sim) {
    *sim = (struct sim){0};
    if (arena_open(&sim->fixed, 256 * GIB) != 0 || arena_open(&sim->event_arena, 256 * GIB) != 0 ||
        arena_open(&sim->body_arena, 256 * GIB) != 0) {
        sim_close(sim);
        return -1;
    }
    return 0;
}

void sim_close(struct sim *sim) {
    arena_close(&sim->fixed);
    arena_close(&sim->event_arena);
    arena_close(&sim->body_arena);
}

/* ---- Events ---- */

void sim_free(struct sim *sim, uint32_t index) {
    sim->event[index].node.next = sim->event_free;
    sim->event_free = index;
}

uint32_t sim_schedule_next(struct sim *sim, enum sim_event_type type, cv_pid process) {
    uint32_t index = sim_event_new(sim, type, process);
    wheel_insert_first(&sim->wheel, index);
    return index;
}

void sim_cancel(struct sim *sim, uint32_t *event) {
    if (!*event) return;
    if (sim->event[*event].flags & EVENT_PARKED)
        wheel_unlink(&sim->wheel, &sim->process[sim->event[*event].process].parked, *event);
    else if (!(sim->event[*event].flags & EVENT_ARMED))
        wheel_remove(&sim->wheel, *event);
    sim_free(sim, *event);
    *event = 0;
}

uint32_t sim_note(struct sim *sim, enum trace_type type, cv_pid p, cv_pid peer, uint64_t arg) {
    if (!sim->trace) return 0;
    return trace_add(sim->trace, (struct trace_entry){.type = type,
                                                      .process = p,
                                                      .peer = peer,
                                                      .arg = arg,
                                                      .cause = sim->cause,
                                                      .time_us = sim_now(sim)});
}

/* ---- Opening a run ---- */

static void set_env(struct sim *sim, cv_pid p, const struct machine *machine) {
    sim->env.self = p;
    sim->env.option = machine->option;
    if (sim->algorithm->problem != CV_ELECTION) return;
    topology_env(&sim->topology, p, &sim->env);
}

/* Lays out the states of a machine after the first `size` bytes, and returns the new size. */
static uint64_t lay_out(struct sim *sim, struct machine *machine, uint64_t size) {
    uint32_t n = sim->roster.processes;
    uint64_t begin = size, first = 0;
    bool alike = true;
    machine->of = arena_take(&sim->fixed, ((size_t)n + 1) * sizeof *machine->of);
    machine->timer =
        arena_take(&sim->fixed, ((size_t)n + 1) * machine->code->timers * sizeof *machine->timer);
    for (cv_pid p = 1; p <= n; p++) {
        struct machine_state *of = &machine->of[p];
        set_env(sim, p, machine);
        struct cv_layout layout = contract_layout(machine->code, &sim->env);
        of->rows = layout.rows;
        of->durable = layout.durable;
        of->state = size;
        size += machine->code->state->size + (uint64_t)layout.rows * machine->code->state->row_size;
        of->saved = size = (size + 7) & ~(uint64_t)7;
        size += (layout.durable + 7) & ~7u;
        uint32_t room = cv_out_room(machine->code, &layout);
        if (room > sim->out.room) sim->out.room = room;
        if (p == 1) first = size - begin;
        alike = alike && size - begin == p * first;
    }
    machine->stride = alike ? first : 0;
    return size;
}

static double longest_fault(const struct sim_config *config) {
    double pause = config->pause_rate > 0 ? distribution_mean(&config->pause_for) : 0;
    double split = config->partition_rate > 0 ? distribution_mean(&config->partition_for) : 0;
    double crash = config->crash_rate > 0 ? distribution_mean(&config->recover_after) : 0;
    return fmax(pause, fmax(split, crash));
}

/* A token may need a whole round of a large ring before a process enters, and faults end. */
static uint64_t default_progress_timeout(const struct sim *sim) {
    const struct sim_config *config = sim->config;
    double round = distribution_mean(&config->delay) * sim->roster.processes;
    double timeout =
        fmax(60e6, 10 * longest_fault(config)) + 4 * round + 100 * distribution_mean(&config->hold);
    return timeout < (double)SIM_TIME_MAX_US ? (uint64_t)timeout : SIM_TIME_MAX_US;
}

static void open_run(struct sim *sim, const struct sim_config *config, struct trace *trace) {
    arena_reset(&sim->fixed);
    arena_reset(&sim->body_arena);
    sim->event_arena.used = 0; /* not zeroed: events are written before they are read */
    struct arena fixed = sim->fixed, event_arena = sim->event_arena, body_arena = sim->body_arena;
    wheel_clear(&sim->wheel);
    memset(sim, 0, offsetof(struct sim, wheel));
    sim->fixed = fixed, sim->event_arena = event_arena, sim->body_arena = body_arena;
    sim->config = config;
    sim->algorithm = config->algorithm;
    sim->roster = config_roster(config);
    sim->trace = trace;
    sim->event = (struct sim_event *)(void *)sim->event_arena.base;
    arena_extend(&sim->event_arena, sizeof(struct sim_event)); /* index 0 is none */
    sim->event_count = 1;
    sim->wheel.nodes = sim->event_arena.base;
    sim->env = (struct cv_env){.processes = sim->roster.processes,
                               .servers = sim->roster.servers,
                               .option = config->option,
                               .detector = *config->detector.text ||
                                           config_schedules(config, ACT_SUSPECT) ||
                                           config_schedules(config, ACT_TRUST)};
    sim->process = arena_take(&sim->fixed, (sim->roster.processes + 1) * sizeof *sim->process);
    for (cv_pid p = 1; p <= sim->roster.processes; p++) sim->process[p].clock = 1;
    sim->progress_timeout_us =
        config->progress_timeout ? config->progress_timeout : default_progress_timeout(sim);
    rng_seed(&sim->rng, config->seed);
    if (sim->algorithm->problem == CV_ELECTION) {
        char error[SIM_ERROR_MAX];
        int failed = topology_build(&sim->topology, config, &sim->fixed, error);
        cv_assert(!failed); /* config_check has built it once */
        sim->env.ids = sim->topology.ids;
        sim->env.weights = sim->topology.weights;
        if (trace) trace_network(trace, &sim->topology);
    }
    sim->machine[ALGORITHM] = (struct machine){.code = config->algorithm, .option = config->option};
    sim->machine[DETECTOR] =
        (struct machine){.code = config->detector.code, .option = config->detector.option};
    uint64_t size = 0;
    for (int m = 0; m < MACHINES; m++)
        if (sim->machine[m].code) size = lay_out(sim, &sim->machine[m], size);
    sim->state = arena_take(&sim->fixed, size);
    sim->out.sends = arena_take(&sim->fixed, sim->out.room);
    if (sim->machine[DETECTOR].code)
        detector_judge_open(&sim->detectors, &sim->fixed, sim->roster.processes);
    network_open(sim);
    service_open(sim);
    faults_open(sim);
    sim->load = sim->algorithm->problem == CV_ELECTION ? &election_load : &lock_load;
    sim->load->open(sim);
}

/* ---- Effects ---- */

static uint32_t arm(struct sim *sim, cv_pid p, uint64_t after) {
    if (!sim->config->scripted) return sim_schedule(sim, sim_now(sim) + after, EV_TIMER, p);
    uint32_t event = sim_event_new(sim, EV_TIMER, p);
    sim->event[event].flags |= EVENT_ARMED;
    return event;
}

static void apply_timers(struct sim *sim, cv_pid p, enum sim_machine m, uint32_t cause) {
    struct cv_out *out = &sim->out;
    const struct machine *machine = &sim->machine[m];
    for (unsigned changed = out->timers_set | out->timers_cancelled; changed;
         changed &= changed - 1) {
        unsigned t = (unsigned)__builtin_ctz(changed);
        uint32_t *event = &machine->timer[(size_t)p * machine->code->timers + t];
        cv_assert(t < machine->code->timers);
        sim_cancel(sim, event);
        if (!(out->timers_set & 1u << t)) continue;
        uint64_t min = out->timer[t].min_us, max = out->timer[t].max_us;
        uint64_t after = max > min ? min + rng_below(&sim->rng, max - min + 1) : min;
        float clock = sim->process[p].clock;
        if (clock != 1) after = (uint64_t)((double)after / (double)clock);
        *event = arm(sim, p, after);
        sim->event[*event].arg = t;
        sim->event[*event].cause = cause;
        if (m == DETECTOR) sim->event[*event].flags |= EVENT_OF_DETECTOR;
    }
}

void sim_timeout(struct sim *sim, cv_pid p, uint64_t timer) {
    const struct machine *machine = &sim->machine[ALGORITHM];
    uint32_t index = machine->timer[(size_t)p * machine->code->timers + timer];
    struct sim_event *event = &sim->event[index];
    if (!index || event->flags & EVENT_PARKED) return; /* a parked timer has fired */
    if (!(event->flags & EVENT_ARMED)) wheel_remove(&sim->wheel, index);
    event->flags &= (uint8_t)~EVENT_ARMED;
    wheel_insert_first(&sim->wheel, index);
}

void sim_answer(struct sim *sim, cv_pid p, uint64_t answer) {
    uint32_t event = sim_event_new(sim, EV_CHOICE, p);
    sim->event[event].arg = (uint32_t)answer;
    wheel_append(&sim->wheel, &sim->answers, event);
}

/* Takes the answer of the schedule; draws one when there is none, or none in range. */
static void choose(struct sim *sim, cv_pid p, uint32_t choices, uint32_t cause) {
    uint32_t event = sim->answers.first;
    while (event && sim->event[event].process != p) event = sim->event[event].node.next;
    bool answered = event && sim->event[event].arg < choices;
    if (event) {
        wheel_unlink(&sim->wheel, &sim->answers, event);
        wheel_insert(&sim->wheel, event, sim_now(sim));
    } else {
        event = sim_schedule(sim, sim_now(sim), EV_CHOICE, p);
    }
    if (!answered) sim->event[event].arg = (uint32_t)rng_below(&sim->rng, choices);
    sim->event[event].cause = cause;
}

/* Durable prefixes are short, so the loop is cheaper than a call. */
static inline void save(struct sim *sim, const struct machine_state *of) {
    const unsigned char *from = sim->state + of->state;
    unsigned char *to = sim->state + of->saved;
    uint32_t i = 0;
    for (; i + 8 <= of->durable; i += 8) memcpy(to + i, from + i, 8);
    if (i < of->durable) memcpy(to + i, from + i, 4);
}

static void apply_tells(struct sim *sim, cv_pid p, enum sim_machine m) {
    for (unsigned i = 0; i < sim->out.tells; i++) {
        const struct cv_tell *tell = &sim->out.tell[i];
        if (m == ALGORITHM)
            sim->load->told(sim, p, tell);
        else
            faults_suspicion(sim, p, tell);
    }
}

static void apply(struct sim *sim, cv_pid p, enum sim_machine m, uint32_t cause) {
    struct cv_out *out = &sim->out;
    if (out->save) save(sim, &sim->machine[m].of[p]);
    if (out->timers_set | out->timers_cancelled) apply_timers(sim, p, m, cause);
    for (uint32_t at = 0; at < out->used;) {
        const struct cv_send *send = (const void *)(out->sends + at);
        network_send(sim, p, m, send, cause);
        at += (uint32_t)sizeof *send + ((send->size + 7) & ~7u);
    }
    if (out->choose) choose(sim, p, out->choose, cause);
    if (out->tells) apply_tells(sim, p, m);
}

/* Records the state for the reader of a trace: of a server where there are some, else of anyone. */
static void show_state(struct sim *sim, cv_pid p, uint32_t cause) {
    struct cv_layout layout = {0};
    if (sim->roster.servers && !cv_serves(&sim->env)) return;
    sim->algorithm->layout(&sim->env, &layout);
    trace_state(sim->trace, cause, sim_state(sim, p, ALGORITHM), layout.rows, layout.first);
}

static void judge_log(struct sim *sim, cv_pid p) {
    const struct cv_algorithm *code = sim->algorithm;
    struct cv_log stepped, other;
    code->log(sim_state(sim, p, ALGORITHM), &stepped);
    for (cv_pid q = 1; q <= sim->roster.processes; q++) {
        if (q == p || sim->process[q].crashed) continue;
        code->log(sim_state(sim, q, ALGORITHM), &other);
        log_judge_pair(&sim->election, sim_now(sim), p, &stepped, q, &other);
    }
}

void sim_step(struct sim *sim, cv_pid p, enum sim_machine m, const struct cv_event *event,
              uint32_t cause) {
    const struct machine *machine = &sim->machine[m];
    set_env(sim, p, machine);
    cv_out_reset(&sim->out);
    contract_step(machine->code, sim_state(sim, p, m), &sim->env, event, &sim->out);
    sim->cause = cause;
    if (cause) show_state(sim, p, cause);
    apply(sim, p, m, cause);
    if (__builtin_expect(sim->algorithm->log && m == ALGORITHM, 0)) judge_log(sim, p);
}

/* ---- The loop ---- */

/* The hash of the run: a chain of one multiplication per event.  The inputs of a link are
 * multiplied by constants outside the chain, so that the processor need not wait for the link
 * before. */
static inline void hash_event(struct sim *sim, const struct sim_event *event) {
    bool message = event->type == EV_MESSAGE;
    uint64_t link = event->node.time * 0x9e3779b97f4a7c15u;
    link ^= ((uint64_t)event->process << 32 | event->from) * 0xc2b2ae3d27d4eb4fu;
    link ^= (message ? (uint64_t)event->kind << 32 | event->size
                     : (uint64_t)event->arg << 8 | event->type) *
            0x165667b19e3779f9u;
    if (message) {
        const unsigned char *body = network_body(sim, event);
        for (uint32_t at = 0; at < event->size; at += 8) { /* bodies are padded with zeros */
            uint64_t word;
            memcpy(&word, body + at, 8);
            link ^= rng_rotate(word * (0xd6e8feb86659fd93u + 2 * at), 29);
        }
    }
    sim->hash = (rng_rotate(sim->hash, 23) ^ link ^ link >> 32) * 0x9fb21c651e98df25u;
}

static bool park(struct sim *sim, uint32_t index) {
    struct sim_event *event = &sim->event[index];
    if (!sim->paused || event->type > EV_DONE || !sim->process[event->process].paused) return false;
    event->flags |= EVENT_PARKED;
    wheel_append(&sim->wheel, &sim->process[event->process].parked, index);
    return true;
}

static void receive(struct sim *sim, struct sim_event *event) {
    cv_pid p = event->process;
    struct cv_event e = {.type = CV_RECV,
                         .from = event->from,
                         .kind = event->kind,
                         .size = event->size,
                         .body = network_body(sim, event)};
    bool lost = network_loses(sim, event);
    uint32_t cause = 0;
    if (sim->trace && sim_machine_of(event) == ALGORITHM) {
        cause = trace_add(sim->trace, (struct trace_entry){.type = lost ? TR_LOST : TR_RECEIVE,
                                                           .process = p,
                                                           .peer = event->from,
                                                           .match = event->cause,
                                                           .cause = event->cause,
                                                           .kind = event->kind,
                                                           .time_us = sim_now(sim)});
        trace_body(sim->trace, cause, e.body, e.size);
    }
    if (!lost && sim_machine_of(event) == DETECTOR)
        detector_judge_heard(&sim->detectors, sim_now(sim), p, event->from);
    if (lost)
        sim->result.lost++;
    else
        sim_step(sim, p, sim_machine_of(event), &e, cause);
}

static void fire(struct sim *sim, struct sim_event *event) {
    cv_pid p = event->process;
    enum sim_machine m = sim_machine_of(event);
    const struct machine *machine = &sim->machine[m];
    bool timer = event->type == EV_TIMER;
    uint32_t cause = 0;
    if (timer) machine->timer[(size_t)p * machine->code->timers + event->arg] = 0;
    if (sim->process[p].crashed) return;
    if (sim->trace && m == ALGORITHM)
        cause = trace_add(sim->trace, (struct trace_entry){.type = timer ? TR_TIMER : TR_CHOICE,
                                                           .process = p,
                                                           .arg = event->arg,
                                                           .cause = event->cause,
                                                           .time_us = sim_now(sim)});
    struct cv_event e = {.type = timer ? CV_TIMEOUT : CV_CHOICE, .arg = event->arg};
    sim_step(sim, p, m, &e, cause);
}

static void dispatch(struct sim *sim, uint32_t index) {
    struct sim_event *event = &sim->event[index];
    switch (event->type) {
    case EV_MESSAGE:
        receive(sim, event);
        if (event->size > SIM_BODY_MAX) network_free_long(sim, event);
        break;
    case EV_TIMER:
    case EV_CHOICE: fire(sim, event); break;
    case EV_DETECT: faults_detect(sim, event); break;
    case EV_ASK:
    case EV_DONE:
        if (sim->load->event(sim, event)) return;
        break;
    default: faults_event(sim, event); break;
    }
    sim_free(sim, index);
}

/* A run that faults keep from ending has shown something when somebody has led. */
static bool lasted(const struct sim *sim, bool failing) {
    return failing && sim->election.elections;
}

/* Faults may keep an election from ending for ever, and so may wrong suspicions. */
static uint64_t time_limit(const struct sim *sim, bool failing) {
    if (sim->config->time_limit) return sim->config->time_limit;
    if (failing) return ELECTION_TIME_US;
    if (sim->algorithm->problem != CV_ELECTION || !sim->machine[DETECTOR].code)
        return SIM_TIME_MAX_US;
    uint64_t least = default_progress_timeout(sim), timeout = sim->progress_timeout_us;
    return sim->schedule_end_us + (timeout > least ? timeout : least);
}

static enum run_end loop(struct sim *sim) {
    const struct sim_config *config = sim->config;
    const bool played = config->scripted &&
                        config->time_limit; /* a script runs to its end even when all is served */
    const bool rests =
        played || (!(sim->algorithm->traits & CV_NEVER_QUIESCENT) && !sim->machine[DETECTOR].code);
    const bool failing = sim->algorithm->problem == CV_ELECTION && config_keeps_failing(config);
    const uint64_t end = time_limit(sim, failing);
    for (;;) {
        if (sim->wheel.count == sim->background && !failing)
            return sim->load->served(sim) ? ALL_SERVED : QUIESCENT;
        if (!rests && !sim->outstanding && sim->load->served(sim)) return ALL_SERVED;
        if (sim->result.events >= config->event_limit) return EVENT_LIMIT;
        uint32_t index = wheel_pop(&sim->wheel);
        uint64_t now = sim_now(sim);
        if (now > end)
            return lasted(sim, failing) || (played && sim->load->served(sim)) ? LASTED : TIME_LIMIT;
        if (now - sim->progress_us > sim->progress_timeout_us &&
            now > sim->schedule_end_us + sim->progress_timeout_us && sim->load->stalled(sim))
            return NO_PROGRESS;
        if (park(sim, index)) continue;
        if (sim->service && service_queues(sim, index)) continue;
        sim->result.events++;
        sim->background -= sim->event[index].flags & EVENT_BACKGROUND;
        if (sim->trace) {
            sim->trace->event = sim->result.events;
            sim->trace->recording = sim->result.events >= sim->trace->from_event;
        }
        hash_event(sim, &sim->event[index]);
        sim->cause = 0;
        dispatch(sim, index);
        if (sim->first_violated->value == VIOLATED && !sim->result.violation_event)
            sim->result.violation_event = sim->result.events;
    }
}

static void start_processes(struct sim *sim) {
    struct cv_event start = {.type = CV_START};
    for (cv_pid p = 1; p <= sim->roster.processes; p++) {
        bool shown = sim->trace && p <= sim->roster.servers;
        struct trace_entry entry = {.type = TR_START, .process = p};
        sim_step(sim, p, ALGORITHM, &start, shown ? trace_add(sim->trace, entry) : 0);
        if (sim->machine[DETECTOR].code) sim_step(sim, p, DETECTOR, &start, 0);
    }
}

static void assert_sense(const struct sim *sim) {
    enum verdict_value values[PROPERTIES_MAX] = {UNKNOWN};
    for (int i = 0; i < sim_properties(sim->algorithm).count; i++)
        values[i] = sim_verdicts(sim)[i].value;
    cv_assert(!verdicts_contradict(sim->algorithm, values));
}

void sim_run(struct sim *sim, const struct sim_config *config, struct trace *trace) {
    open_run(sim, config, trace);
    start_processes(sim);
    enum run_end end = loop(sim);
    struct sim_result *result = &sim->result;
    result->end = end;
    result->end_us = sim_now(sim);
    if ((end == TIME_LIMIT || end == LASTED) && config->time_limit)
        result->end_us = config->time_limit;
    sim->load->close(sim, result->end_us, end);
    assert_sense(sim);
    if (sim->machine[DETECTOR].code) detector_judge_close(&sim->detectors, result->end_us);
    if (trace) ending_record(sim);
    if (!result->violation_event && sim_violated(sim)) result->violation_event = result->events;
    result->hash = rng_mix(sim->hash);
}

struct properties sim_properties(const struct cv_algorithm *algorithm) {
    if (algorithm->problem == CV_ELECTION)
        return (struct properties){election_property_name, election_properties(algorithm)};
    return (struct properties){mutex_property_name, MUTEX_PROPERTIES};
}

const struct verdict *sim_verdicts(const struct sim *sim) {
    return sim->algorithm->problem == CV_ELECTION ? sim->election.verdict : sim->judge.verdict;
}

bool sim_violated(const struct sim *sim) {
    return any_violated(sim_verdicts(sim), sim_properties(sim->algorithm).count);
}

double sim_delay_hops(const struct sim_result *result, const struct sim_config *config) {
    double hop = distribution_mean(&config->delay);
    if (result->entries == 0 || hop <= 0) return NAN;
    return (double)result->delay_us / (double)result->entries / hop;
}

double sim_fairness(const struct sim_result *result, const struct sim_config *config) {
    double entries = (double)result->entries;
    if (result->entries_squared == 0) return 1;
    return entries * entries / ((double)config->processes * (double)result->entries_squared);
}
