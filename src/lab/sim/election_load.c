/* The load of elections: which processes start one, and when it is over. */
#include "lab/sim/internal.h"

static bool apart(const void *context, cv_pid a, cv_pid b) {
    const struct sim *sim = context;
    return network_cut(sim, a, b) || (sim->part && sim->part[a] != sim->part[b]);
}

/* Numbers the parts of the network as it is now; crashed processes are in none. */
static void find_parts(struct sim *sim) {
    uint32_t n = sim->roster.processes;
    bool *gone = arena_take(&sim->fixed, (size_t)n + 1);
    for (cv_pid p = 1; p <= n; p++) gone[p] = sim->process[p].crashed;
    if (!sim->part) sim->part = arena_take(&sim->fixed, (2 * (size_t)n + 2) * sizeof *sim->part);
    topology_parts(&sim->topology, gone, sim->side, sim->part);
}

static void draw_start(struct sim *sim, cv_pid p) {
    uint64_t after = distribution_draw(&sim->config->start, &sim->rng);
    sim_schedule(sim, sim_now(sim) + after, EV_ASK, p);
    sim->outstanding++;
}

/* The initiators are the first of a random permutation. */
static void draw_initiators(struct sim *sim, uint64_t count) {
    uint32_t n = sim->roster.processes;
    cv_pid *order = arena_take(&sim->fixed, ((size_t)n + 1) * sizeof *order);
    for (cv_pid p = 1; p <= n; p++) order[p] = p;
    for (uint32_t i = 1; i <= count; i++) {
        uint32_t j = i + (uint32_t)rng_below(&sim->rng, n - i + 1);
        cv_pid chosen = order[j];
        order[j] = order[i], order[i] = chosen;
        draw_start(sim, chosen);
    }
}

static void open(struct sim *sim) {
    const struct sim_config *config = sim->config;
    const struct cv_algorithm *algorithm = sim->algorithm;
    struct election_rules rules = {.preference = algorithm->preference,
                                   .terms = algorithm->traits & CV_TERMS,
                                   .anonymous = algorithm->traits & CV_ANONYMOUS,
                                   .ids = sim->topology.ids,
                                   .weights = sim->topology.weights,
                                   .apart = apart,
                                   .context = sim};
    election_judge_open(&sim->election, &sim->fixed, &sim->roster, &rules);
    sim->first_violated = &sim->election.verdict[UNIQUENESS];
    sim->scheduled = config->scripted || config_schedules(config, ACT_CAMPAIGN);
    if (config->network.vertices) find_parts(sim); /* it may have several parts from the start */
    if (sim->scheduled) return;
    if (config->initiators && config->initiators < sim->roster.processes)
        draw_initiators(sim, config->initiators);
    else
        for (cv_pid p = 1; p <= sim->roster.processes; p++) draw_start(sim, p);
}

static bool handle(struct sim *sim, struct sim_event *event) {
    struct cv_event e = {.type = CV_CALL, .arg = CV_CAMPAIGN};
    cv_pid p = event->process;
    sim->outstanding--;
    if (sim->process[p].crashed) return false;
    sim->progress_us = sim_now(sim);
    sim_step(sim, p, ALGORITHM, &e, sim_note(sim, TR_CAMPAIGN, p, CV_NOBODY, 0));
    return false;
}

static void act(struct sim *sim, const struct sim_action *action) {
    sim_schedule_next(sim, EV_ASK, action->process);
    sim->outstanding++;
}

/* The process with that id, which is mostly the last that was elected. */
static cv_pid bearer(const struct sim *sim, uint64_t id) {
    cv_pid p = sim->election.latest;
    if (p && sim->topology.ids[p] == id) return p;
    for (p = sim->roster.processes; p && sim->topology.ids[p] != id;) p--;
    return p;
}

static void told(struct sim *sim, cv_pid p, const struct cv_tell *tell) {
    uint64_t before = sim->election.decided_us;
    election_judge_told(&sim->election, sim_now(sim), p, tell);
    if (sim->election.decided_us != before) sim->progress_us = sim_now(sim);
    if (tell->what == CV_ROUND) {
        if (sim->cause) sim->trace->entry[sim->cause].round = (uint32_t)tell->arg;
        return;
    }
    enum trace_type type = tell->what == CV_ELECTED   ? TR_ELECTED
                           : tell->what == CV_FOLLOWS ? TR_FOLLOWS
                                                      : TR_LEADERLESS;
    uint32_t entry = sim_note(sim, type, p, CV_NOBODY, tell->arg);
    if (entry && type == TR_FOLLOWS) sim->trace->entry[entry].peer = bearer(sim, tell->arg);
    if (entry) sim->trace->entry[entry].term = tell->term;
}

static void crashed(struct sim *sim, cv_pid p) {
    election_judge_crash(&sim->election, p);
    sim->progress_us = sim_now(sim);
}

static void recovered(struct sim *sim, cv_pid p) {
    election_judge_recover(&sim->election, p);
    sim->progress_us = sim_now(sim);
}

static void partitioned(struct sim *sim) {
    election_judge_partition(&sim->election);
    sim->progress_us = sim_now(sim);
}

/* The application of a process that suspects its leader wants an election. */
static void suspects(struct sim *sim, cv_pid p, cv_pid subject) {
    const struct elector *e = &sim->election.of[p];
    if (!e->decided || e->leader_id != sim->topology.ids[subject]) return;
    sim_schedule_next(sim, EV_ASK, p);
    sim->outstanding++;
}

static bool served(const struct sim *sim) {
    if (sim->outstanding || sim->actions_left || !election_judge_settled(&sim->election))
        return false;
    if (sim->wheel.count == sim->background) return true;
    return !config_keeps_failing(sim->config) &&
           sim_now(sim) - sim->progress_us >= sim->config->settle;
}

static bool stalled(const struct sim *sim) {
    return !sim->actions_left && !election_judge_settled(&sim->election);
}

static void close(struct sim *sim, uint64_t now, enum run_end end) {
    const struct election_judge *judge = &sim->election;
    struct sim_result *result = &sim->result;
    find_parts(sim);
    election_judge_close(&sim->election, now, end, sim->part);
    cv_pid leader = election_judge_leader(judge);
    result->leader = leader ? roster_id(&sim->roster, sim->topology.ids[leader]) : 0;
    result->rounds = judge->rounds;
    result->elections = judge->elections;
    result->leader_changes = judge->unexplained;
    result->decided_us = judge->decided_us;
}

const struct sim_load election_load = {open,        handle,   act,    told,    crashed, recovered,
                                       partitioned, suspects, served, stalled, close};
