/* The load of locks: the applications that want the lock, hold it and write to the guarded
 * resource.
 *
 * An application writes when it has entered and once more just before it leaves: the second write
 * is the one that a slow holder makes too late. */
#include <math.h>

#include "lab/sim/internal.h"
#include "process/contract.h"

/* Draws when the application of p asks next, if it ever does. */
static void think(struct sim *sim, cv_pid p) {
    const struct sim_config *config = sim->config;
    uint64_t after;
    if (sim->budget == 0) return;
    if (config->arrivals > 0)
        after = distribution_clamp(-log(1 - rng_unit(&sim->rng)) / config->arrivals * 1e6);
    else
        after = distribution_draw(&config->think, &sim->rng);
    sim->process[p].arrival = sim_schedule(sim, sim_now(sim) + after, EV_ASK, p);
}

static void open(struct sim *sim) {
    const struct sim_config *config = sim->config;
    struct mutex_rules rules = {config->fencing, config->wait_bound, config->starved_after};
    mutex_judge_open(&sim->judge, &sim->fixed, &sim->roster, &rules);
    sim->first_violated = &sim->judge.belief;
    sim->scheduled = config->scripted || config_schedules(config, ACT_ACQUIRE);
    if (sim->scheduled) return; /* the schedule makes all requests */
    sim->budget = sim->config->entries;
    for (cv_pid p = sim->roster.servers + 1; p <= sim->roster.processes; p++) think(sim, p);
}

static void call(struct sim *sim, cv_pid p, uint32_t what, uint32_t cause) {
    struct cv_event e = {.type = CV_CALL, .arg = what};
    sim_step(sim, p, ALGORITHM, &e, cause);
}

/* ---- A stay inside ---- */

static void ask(struct sim *sim, cv_pid p, uint64_t hold_us) {
    struct sim_process *process = &sim->process[p];
    process->app = APP_WAITING;
    process->hold_us = hold_us ? hold_us : distribution_draw(&sim->config->hold, &sim->rng);
    uint32_t cause = sim_note(sim, TR_ASK, p, CV_NOBODY, 0);
    mutex_judge_request(&sim->judge, sim_now(sim), p);
    call(sim, p, CV_ACQUIRE, cause);
}

static void write_resource(struct sim *sim, cv_pid p) {
    bool taken = mutex_judge_write(&sim->judge, sim_now(sim), p);
    if (sim->config->fencing)
        sim_note(sim, taken ? TR_WRITE : TR_REFUSED, p, CV_NOBODY, sim->judge.of[p].token);
}

static void entered(struct sim *sim, cv_pid p, uint64_t token) {
    struct sim_process *process = &sim->process[p];
    if (process->app == APP_INSIDE) contract_inside(sim->algorithm, p);
    sim_note(sim, TR_ENTER, p, CV_NOBODY, token);
    mutex_judge_enter(&sim->judge, sim_now(sim), p, token);
    sim->progress_us = sim_now(sim);
    process->app = APP_INSIDE;
    write_resource(sim, p);
    process->next = sim_schedule(sim, sim_now(sim) + process->hold_us, EV_DONE, p);
}

static void left(struct sim *sim, cv_pid p) {
    struct sim_process *process = &sim->process[p];
    sim_note(sim, TR_LEAVE, p, CV_NOBODY, 0);
    mutex_judge_leave(&sim->judge, sim_now(sim), p);
    sim->progress_us = sim_now(sim);
    sim->outstanding--;
    process->app = APP_IDLE;
    if (process->queued.first) {
        process->next = process->queued.first;
        wheel_unlink(&sim->wheel, &process->queued, process->next);
        wheel_insert(&sim->wheel, process->next, sim_now(sim));
    } else if (!process->arrival && !sim->scheduled) {
        think(sim, p);
    }
}

static void told(struct sim *sim, cv_pid p, const struct cv_tell *tell) {
    switch (tell->what) {
    case CV_ENTERED: entered(sim, p, tell->arg); break;
    case CV_LEFT: left(sim, p); break;
    case CV_WOKEN: sim->result.woken++; break;
    default: cv_assert(!"what a lock tells");
    }
}

/* ---- Requests ---- */

static void make_request(struct sim *sim, struct sim_event *event) {
    if (sim->outstanding++ == 0) sim->progress_us = sim_now(sim);
    event->arg = REQUEST_MADE;
}

/* Returns whether the event was kept: a request that finds its process busy is queued there. */
static bool on_ask(struct sim *sim, struct sim_event *event) {
    cv_pid p = event->process;
    struct sim_process *process = &sim->process[p];
    uint64_t hold_us;
    if (event->arg != REQUEST_MADE) {
        process->arrival = 0;
        if (!sim->budget) return false;
        sim->budget--;
        make_request(sim, event);
        memset(event->body, 0, sizeof hold_us);
        if (sim->config->arrivals > 0) think(sim, p);
    } else if (process->next && event == &sim->event[process->next]) {
        process->next = 0;
    }
    if (process->crashed) { /* it was scheduled for a crashed process */
        sim->outstanding--;
        return false;
    }
    if (process->app != APP_IDLE || process->next) {
        wheel_append(&sim->wheel, &process->queued, (uint32_t)(event - sim->event));
        return true;
    }
    memcpy(&hold_us, event->body, sizeof hold_us);
    ask(sim, p, hold_us);
    return false;
}

static bool handle(struct sim *sim, struct sim_event *event) {
    cv_pid p = event->process;
    if (event->type == EV_ASK) return on_ask(sim, event);
    sim->process[p].next = 0;
    write_resource(sim, p);
    call(sim, p, CV_RELEASE, sim_note(sim, TR_DONE, p, CV_NOBODY, 0));
    return false;
}

static void act(struct sim *sim, const struct sim_action *action) {
    uint32_t index = sim_schedule_next(sim, EV_ASK, action->process);
    make_request(sim, &sim->event[index]);
    memcpy(sim->event[index].body, &action->amount, sizeof action->amount);
}

/* ---- Crashes ---- */

/* Requests that a crash left unserved go back to the budget, for idle processes to make. */
static void make_again(struct sim *sim, uint64_t unserved) {
    sim->outstanding -= unserved;
    if (sim->scheduled) return;
    sim->budget += unserved;
    if (sim->budget > unserved) return; /* no process has run out of requests */
    for (cv_pid p = sim->roster.servers + 1; p <= sim->roster.processes; p++) {
        const struct sim_process *process = &sim->process[p];
        if (!process->crashed && process->app == APP_IDLE && !process->arrival && !process->next)
            think(sim, p);
    }
}

static void crashed(struct sim *sim, cv_pid p) {
    struct sim_process *process = &sim->process[p];
    uint64_t unserved = (process->app == APP_WAITING) + (process->app == APP_IDLE && process->next);
    if (process->app == APP_INSIDE) sim->outstanding--;
    sim_cancel(sim, &process->arrival);
    sim_cancel(sim, &process->next);
    while (process->queued.first) {
        uint32_t index = process->queued.first;
        wheel_unlink(&sim->wheel, &process->queued, index);
        sim_free(sim, index);
        unserved++;
    }
    process->app = APP_IDLE;
    mutex_judge_crash(&sim->judge, sim_now(sim), p);
    sim->progress_us = sim_now(sim);
    if (unserved) make_again(sim, unserved);
}

static void recovered(struct sim *sim, cv_pid p) {
    if (p > sim->roster.servers && !sim->scheduled && !sim->process[p].arrival) think(sim, p);
}

static void partitioned(struct sim *sim) { (void)sim; }

static void suspects(struct sim *sim, cv_pid p, cv_pid subject) {
    (void)sim, (void)p, (void)subject; /* config_check has refused such a run */
}

static bool served(const struct sim *sim) {
    return sim->budget == 0 && sim->outstanding == 0 && sim->actions_left == 0;
}

static bool stalled(const struct sim *sim) { return sim->judge.waiting && !sim->judge.inside; }

static void close(struct sim *sim, uint64_t now, enum run_end end) {
    const struct mutex_judge *judge = &sim->judge;
    struct sim_result *result = &sim->result;
    mutex_judge_close(&sim->judge, now, end);
    result->entries = judge->entries;
    result->requests = judge->requests;
    result->delay_us = judge->delay_us_sum;
    result->wait_us = judge->wait_us_sum;
    result->wait_us_max = judge->wait_us_max;
    result->overtakes_max = judge->overtakes_max;
    result->entries_squared = mutex_judge_squares(judge);
}

const struct sim_load lock_load = {open,        handle,   act,    told,    crashed, recovered,
                                   partitioned, suspects, served, stalled, close};
