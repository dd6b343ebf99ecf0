/* Faults: crashes, recoveries, pauses, drift, partitions, and the oracle that reports them. */
#include <math.h>

#include "lab/sim/internal.h"

/* ---- Faults drawn at a rate ---- */

/* One generator per kind of fault serves all processes: the sum of Poisson processes is one. */
static void draw_next(struct sim *sim, enum sim_event_type type, double per_second) {
    if (per_second <= 0) return;
    double after_us =
        1 - log(1 - rng_unit(&sim->rng)) / per_second * 1e6; /* at least 1: time goes on */
    if (after_us < 1e18) sim_schedule(sim, sim_now(sim) + (uint64_t)after_us, type, 0);
}

static cv_pid anyone(struct sim *sim) {
    return 1 + (cv_pid)rng_below(&sim->rng, sim->roster.processes);
}

static void act(struct sim *sim, const struct sim_action *action);

/* Actions that only configure what comes later: at time 0 they apply before the processes start. */
static bool prepares(const struct sim_action *action) {
    return action->type == ACT_DELAY || action->type == ACT_LOSE || action->type == ACT_CHOOSE;
}

void faults_open(struct sim *sim) {
    const struct sim_config *config = sim->config;
    double n = sim->roster.processes;
    for (size_t i = 0; i < config->action_count; i++) {
        const struct sim_action *action = &config->actions[i];
        uint64_t end = action->at_us + (action->type == ACT_PAUSE ? action->amount : 0);
        if (end > sim->schedule_end_us) sim->schedule_end_us = end;
        if (action->at_us == 0 && prepares(action)) {
            act(sim, action);
            continue;
        }
        uint32_t event = sim_schedule(sim, action->at_us, EV_ACTION, 0);
        sim->event[event].arg = (uint32_t)i;
        sim->actions_left++;
    }
    draw_next(sim, EV_CRASH_SOME, n * config->crash_rate);
    draw_next(sim, EV_PAUSE_SOME, n * config->pause_rate);
    draw_next(sim, EV_PARTITION, config->partition_rate);
    if (config->drift > 0)
        for (cv_pid p = 1; p <= sim->roster.processes; p++)
            sim->process[p].clock = (float)(1 + config->drift * (2 * rng_unit(&sim->rng) - 1));
}

/* ---- The failure detector: an oracle with a delay ---- */

static void hear_of(struct sim *sim, cv_pid p, cv_pid subject, enum cv_event_type type) {
    uint32_t event = sim_schedule(sim, sim_now(sim), EV_DETECT, p);
    sim->event[event].from = subject;
    sim->event[event].arg = type;
}

void faults_suspicion(struct sim *sim, cv_pid p, const struct cv_tell *tell) {
    cv_pid subject = (cv_pid)tell->arg;
    bool down = tell->what == CV_SUSPECT;
    if (down)
        detector_judge_suspects(&sim->detectors, sim_now(sim), p, subject);
    else
        detector_judge_trusts(&sim->detectors, sim_now(sim), p, subject);
    hear_of(sim, p, subject, down ? CV_DOWN : CV_UP);
}

static void tell_all(struct sim *sim, cv_pid subject, enum cv_event_type type) {
    for (cv_pid p = 1; p <= sim->roster.processes; p++)
        if (p != subject) hear_of(sim, p, subject, type);
}

void faults_detect(struct sim *sim, const struct sim_event *event) {
    bool down = event->arg == CV_DOWN;
    struct cv_event e = {.type = down ? CV_DOWN : CV_UP, .arg = event->from};
    if (sim->process[event->process].crashed) return;
    uint32_t cause = sim_note(sim, down ? TR_SUSPECT : TR_TRUST, event->process, event->from, 0);
    if (sim->algorithm->traits & CV_USES_DETECTOR)
        sim_step(sim, event->process, ALGORITHM, &e, cause);
    else if (down)
        sim->load->suspects(sim, event->process, event->from);
}

static void suspect(struct sim *sim, cv_pid p) {
    if (sim->process[p].suspected) return;
    sim->process[p].suspected = true;
    tell_all(sim, p, CV_DOWN);
}

/* An outage has begun: the oracle reports it after its delay. */
static void outage(struct sim *sim, cv_pid p) {
    sim->process[p].outages++;
    if (!sim->config->detector.oracle_us) return;
    uint64_t notice = sim_now(sim) + sim->config->detector.oracle_us;
    uint32_t event = sim_schedule(sim, notice, EV_NOTICE, p);
    sim->event[event].arg = sim->process[p].outages;
}

/* The outage is over.  A process that restarted is reported even when it came back before the
 * delay, because its peers see their connections to it break. */
static void back(struct sim *sim, cv_pid p, bool restarted) {
    if (!sim->config->detector.oracle_us) return;
    if (restarted) {
        suspect(sim, p);
        for (cv_pid q = 1; q <= sim->roster.processes; q++)
            if (q != p && sim->process[q].suspected) hear_of(sim, p, q, CV_DOWN);
    }
    if (sim->process[p].suspected) sim_schedule(sim, sim_now(sim), EV_TRUST, p);
}

static void trust(struct sim *sim, cv_pid p) {
    if (sim->process[p].crashed || sim->process[p].paused) return;
    sim->process[p].suspected = false;
    tell_all(sim, p, CV_UP);
}

/* ---- Crash and recovery ---- */

/* Puts parked events back into the wheel, before those that arrive only now. */
static void unpark(struct sim *sim, cv_pid p) {
    struct sim_process *process = &sim->process[p];
    for (uint32_t index = process->parked.last, before; index; index = before) {
        before = sim->event[index].node.prev;
        sim->event[index].flags &= (uint8_t)~EVENT_PARKED;
        wheel_insert_first(&sim->wheel, index);
    }
    process->parked = (struct wheel_list){0};
    sim->paused -= process->paused;
    process->paused = false;
}

/* Schedules the recovery or the resumption of a process, instead of an earlier one. */
static void come_back(struct sim *sim, cv_pid p, enum sim_event_type type, uint64_t after,
                      bool amnesia) {
    sim_cancel(sim, &sim->process[p].comeback);
    sim->process[p].comeback = sim_schedule(sim, sim_now(sim) + after, type, p);
    sim->event[sim->process[p].comeback].arg = amnesia;
}

static void crash(struct sim *sim, cv_pid p) {
    struct sim_process *process = &sim->process[p];
    if (process->crashed) return;
    for (int m = 0; m < MACHINES; m++)
        for (unsigned t = 0; sim->machine[m].code && t < sim->machine[m].code->timers; t++)
            sim_cancel(sim, &sim->machine[m].timer[(size_t)p * sim->machine[m].code->timers + t]);
    sim_note(sim, TR_CRASH, p, 0, 0);
    process->crashed = true;
    sim_cancel(sim, &process->comeback);
    sim->load->crashed(sim, p);
    unpark(sim, p); /* what it had not received is lost */
    process->incarnation++;
    process->unsent &= (uint8_t) ~(1u << process->incarnation % 8);
    if (sim->service) sim->service[p].free_us = 0;
    sim->result.crashes++;
    if (sim->machine[DETECTOR].code) detector_judge_crash(&sim->detectors, sim_now(sim), p);
    outage(sim, p);
}

/* Sets the state that a machine finds when it boots after a crash. */
static void restore(struct sim *sim, cv_pid p, enum sim_machine m, bool amnesia) {
    const struct machine_state *of = &sim->machine[m].of[p];
    const struct cv_record *record = sim->machine[m].code->state;
    memset(sim->state + of->state, 0, record->size + (size_t)of->rows * record->row_size);
    if (amnesia)
        memset(sim->state + of->saved, 0, of->durable);
    else
        memcpy(sim->state + of->state, sim->state + of->saved, of->durable);
}

static void recover(struct sim *sim, cv_pid p, bool amnesia) {
    struct cv_event restart = {.type = CV_RESTART};
    if (!sim->process[p].crashed) return;
    sim->process[p].crashed = false;
    sim_cancel(sim, &sim->process[p].comeback);
    uint32_t cause = sim_note(sim, TR_RECOVER, p, 0, amnesia);
    sim->load->recovered(sim, p);
    if (sim->machine[DETECTOR].code) detector_judge_recover(&sim->detectors, p);
    for (int m = 0; m < MACHINES; m++) {
        if (!sim->machine[m].code) continue;
        restore(sim, p, (enum sim_machine)m, amnesia);
        sim_step(sim, p, (enum sim_machine)m, &restart, m == ALGORITHM ? cause : 0);
    }
    back(sim, p, true);
}

/* ---- Pauses ---- */

static void pause_process(struct sim *sim, cv_pid p) {
    struct sim_process *process = &sim->process[p];
    if (process->crashed || process->paused) return;
    process->paused = true;
    sim->paused++;
    sim_note(sim, TR_PAUSE, p, 0, 0);
    outage(sim, p);
}

/* What arrived during the pause happens now, in order. */
static void resume(struct sim *sim, cv_pid p) {
    if (!sim->process[p].paused) return;
    sim_cancel(sim, &sim->process[p].comeback);
    sim_note(sim, TR_RESUME, p, 0, 0);
    unpark(sim, p);
    back(sim, p, false);
}

/* ---- Events and actions ---- */

/* What a process has sent may never have left it: half of the crashes that are drawn lose what has
 * not arrived.  Those of a schedule lose what the schedule says. */
static void lose_unsent(struct sim *sim, cv_pid p) {
    struct sim_process *process = &sim->process[p];
    if (rng_next(&sim->rng) & 1) process->unsent |= (uint8_t)(1u << (process->incarnation - 1) % 8);
}

static void crash_some(struct sim *sim) {
    const struct sim_config *config = sim->config;
    cv_pid p = anyone(sim);
    if (!sim->process[p].crashed) {
        crash(sim, p);
        lose_unsent(sim, p);
        if (config->recover) {
            uint64_t after = distribution_draw(&config->recover_after, &sim->rng);
            come_back(sim, p, EV_RECOVER, after, config->amnesia);
        }
    }
    draw_next(sim, EV_CRASH_SOME, sim->roster.processes * config->crash_rate);
}

static void pause_some(struct sim *sim) {
    cv_pid p = anyone(sim);
    if (!sim->process[p].crashed && !sim->process[p].paused) {
        uint64_t length = distribution_draw(&sim->config->pause_for, &sim->rng);
        pause_process(sim, p);
        come_back(sim, p, EV_RESUME, length, false);
    }
    draw_next(sim, EV_PAUSE_SOME, sim->roster.processes * sim->config->pause_rate);
}

static void partition_some(struct sim *sim) {
    if (!sim->side) {
        uint64_t length = distribution_draw(&sim->config->partition_for, &sim->rng);
        network_partition_at_random(sim);
        sim->heal = sim_schedule(sim, sim_now(sim) + length, EV_HEAL, 0);
    }
    draw_next(sim, EV_PARTITION, sim->config->partition_rate);
}

static void act(struct sim *sim, const struct sim_action *action) {
    cv_pid p = action->process;
    switch (action->type) {
    case ACT_ACQUIRE:
    case ACT_CAMPAIGN: sim->load->act(sim, action); break;
    case ACT_CRASH: crash(sim, p); break;
    case ACT_RECOVER: recover(sim, p, action->amnesia); break;
    case ACT_PAUSE:
        pause_process(sim, p);
        if (action->amount && sim->process[p].paused)
            come_back(sim, p, EV_RESUME, action->amount, false);
        break;
    case ACT_RESUME: resume(sim, p); break;
    case ACT_DRIFT: sim->process[p].clock = (float)action->factor; break;
    case ACT_SUSPECT: hear_of(sim, p, action->other, CV_DOWN); break;
    case ACT_TRUST: hear_of(sim, p, action->other, CV_UP); break;
    case ACT_PARTITION: network_partition(sim, action->side); break;
    case ACT_HEAL: network_partition(sim, NULL); break;
    case ACT_DELAY:
    case ACT_LOSE: network_except(sim, action); break;
    case ACT_TIMEOUT: sim_timeout(sim, p, action->amount); break;
    case ACT_CHOOSE: sim_answer(sim, p, action->amount); break;
    }
}

void faults_event(struct sim *sim, const struct sim_event *event) {
    cv_pid p = event->process;
    switch ((enum sim_event_type)event->type) {
    case EV_ACTION:
        sim->actions_left--;
        act(sim, &sim->config->actions[event->arg]);
        break;
    case EV_RECOVER:
        sim->process[p].comeback = 0;
        recover(sim, p, event->arg);
        break;
    case EV_RESUME:
        sim->process[p].comeback = 0;
        resume(sim, p);
        break;
    case EV_NOTICE:
        if (event->arg == sim->process[p].outages &&
            (sim->process[p].crashed || sim->process[p].paused))
            suspect(sim, p);
        break;
    case EV_TRUST: trust(sim, p); break;
    case EV_HEAL:
        sim->heal = 0;
        network_partition(sim, NULL);
        break;
    case EV_CRASH_SOME: crash_some(sim); break;
    case EV_PAUSE_SOME: pause_some(sim); break;
    case EV_PARTITION: partition_some(sim); break;
    default: cv_assert(!"an event of the faults");
    }
}
