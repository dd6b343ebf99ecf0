/* Successors of a state: which outcomes are enabled, what they change, what they violate. */
#include "base/grow.h"
#include "lab/check/explore.h"
#include "lab/judge/log.h"
#include "lab/judge/mutex.h"

void worker_open(struct worker *worker, struct explorer *explorer, uint32_t block) {
    *worker = (struct worker){.explorer = explorer,
                              .states = {.size = block},
                              .inner = {.size = block},
                              .budgets = {.size = 1},
                              .memo = {.size = block}};
}

void worker_close(struct worker *worker) { free(worker->steps); }

void explorer_start(struct worker *worker, bool renamed, uint32_t *leaves) {
    const struct check_model *model = worker->explorer->model;
    for (uint32_t i = 0; i < model->processes; i++)
        leaves[i] = worker->explorer->system.start[i + 1];
    leaves[model->processes] =
        (uint32_t)model->crashes << budget_shift[FOR_CRASH] |
        (uint32_t)model->losses << budget_shift[FOR_LOSS] |
        (uint32_t)model->suspicions << budget_shift[FOR_SUSPICION] |
        (uint32_t)model->late << budget_shift[FOR_LATE] |
        (uint32_t)(model->timeouts == CHECK_FOREVER ? TIMEOUTS_FOREVER : model->timeouts)
            << budget_shift[FOR_TIMEOUT] |
        (uint32_t)model->initiators << budget_shift[FOR_CAMPAIGN];
    if (renamed && worker->explorer->system.renamings.count > 1) worker_rename(worker, leaves);
}

/* ---- Enabled outcomes ---- */

static uint32_t flags_of(const struct worker *worker, uint32_t process) {
    return node_flags(&worker->explorer->system, worker->here.at[0][process]);
}

static uint32_t budgets(const struct worker *worker) {
    return worker->here.at[0][worker->explorer->model->processes];
}

static bool is_calm(const struct worker *worker, uint32_t process) {
    uint32_t flags = flags_of(worker, process);
    bool starts = flags & NODE_PENDING && budget_left(budgets(worker), FOR_CAMPAIGN);
    return flags & NODE_QUIESCENT && !starts;
}

static bool may_settle(const struct worker *worker, uint32_t process) {
    bool starts =
        flags_of(worker, process) & NODE_PENDING && budget_left(budgets(worker), FOR_CAMPAIGN);
    return is_calm(worker, process) || (flags_of(worker, process) & NODE_SETTLES && !starts);
}

/* Takes the cost of the outcome from the budgets, and returns whether they suffice. */
static bool pay(const struct worker *worker, uint32_t process, const struct outcome *outcome,
                uint32_t *word) {
    if (outcome->flags & OUT_SETTLES) return worker->settles == process + 1;
    if (outcome->flags & OUT_WRONG && flags_of(worker, outcome->peer - 1u) & NODE_DOWN)
        return false;
    if (outcome->flags & OUT_UNSENT) return flags_of(worker, outcome->peer - 1u) & NODE_DOWN;
    if (!outcome->budget) return true;
    if (!budget_left(*word, outcome->budget)) return false;
    bool forever =
        outcome->budget == FOR_TIMEOUT && budget_left(*word, FOR_TIMEOUT) == TIMEOUTS_FOREVER;
    if (!forever) *word -= 1u << budget_shift[outcome->budget];
    bool late =
        outcome->flags & OUT_LATE || (outcome->flags & OUT_WHEN_QUIESCENT && !worker->quiescent);
    if (!late) return true;
    if (!budget_left(*word, FOR_LATE)) return false;
    *word -= 1u << budget_shift[FOR_LATE];
    return true;
}

/* Whether a timer would fire here, on time or late, if `timeouts` were larger. */
static bool only_timeouts_lack(const struct worker *worker, const struct outcome *outcome) {
    bool on_time = outcome->flags & OUT_WHEN_QUIESCENT && worker->quiescent;
    return outcome->budget == FOR_TIMEOUT && !budget_left(budgets(worker), FOR_TIMEOUT) &&
           (on_time || budget_left(budgets(worker), FOR_LATE));
}

/* ---- Effects and violations ---- */

static uint32_t change(struct worker *worker, uint32_t node, uint32_t what, change_fn *how) {
    return system_change(&worker->explorer->system, &worker->memo, node, what, how);
}

/* The resource accepts the write of a process that enters unless it has seen a newer token; then
 * every process that is still inside is superseded. */
static void enter_fenced(struct worker *worker, uint32_t process, uint32_t token,
                         uint32_t *leaves) {
    const struct explorer *e = worker->explorer;
    uint32_t *word = &leaves[e->model->processes];
    if (e->system.token[token] < e->system.token[token_of(*word)]) return;
    *word = (*word & ((1u << LATEST_SHIFT) - 1)) | token << LATEST_SHIFT;
    for (uint32_t q = 0; q < e->model->processes; q++)
        if (q != process && node_flags(&e->system, leaves[q]) & NODE_INSIDE)
            leaves[q] = change(worker, leaves[q], SUPERSEDED, node_supersede);
}

static uint32_t enter(struct worker *worker, uint32_t process, uint32_t token, uint32_t *leaves) {
    const struct explorer *e = worker->explorer;
    if (e->model->fencing) return enter_fenced(worker, process, token, leaves), 0;
    for (uint32_t q = 0; q < e->model->processes; q++)
        if (q != process && flags_of(worker, q) & NODE_INSIDE) return 1u << EXCLUSION;
    return 0;
}

static uint32_t elect(const struct worker *worker, uint32_t process, uint32_t term,
                      uint32_t *leaves) {
    const struct explorer *e = worker->explorer;
    bool terms = e->model->algorithm->traits & CV_TERMS;
    uint32_t *word = &leaves[e->model->processes], latest = latest_of(*word), broken = 0;
    for (uint32_t q = 0; q < e->model->processes; q++)
        if (q != process && flags_of(worker, q) & NODE_LEADS &&
            (!terms || node_local(&e->system, worker->here.at[0][q]).term == term))
            broken |= 1u << UNIQUENESS;
    if (latest && latest != process + 1 && !(*word & LATEST_FAILED)) broken |= 1u << STABILITY;
    *word = (*word & ((1u << LATEST_SHIFT) - 1)) | (process + 1) << LATEST_SHIFT;
    return broken;
}

/* The log of a process, in `local`; false: it is down. */
static bool log_of(const struct system *system, uint32_t node, unsigned char *local,
                   struct cv_log *log) {
    node_local_bytes(system, node, local);
    system->model->algorithm->log(local_state((const struct local *)(const void *)local), log);
    return !(node_flags(system, node) & NODE_DOWN);
}

static uint32_t judge_logs(const struct worker *worker, uint32_t process, uint32_t node) {
    const struct explorer *e = worker->explorer;
    _Alignas(8) unsigned char here[POOL_BYTES_MAX], there[POOL_BYTES_MAX];
    struct cv_log stepped, other;
    uint32_t broken = 0;
    if (!log_of(&e->system, node, here, &stepped)) return 0;
    for (uint32_t q = 0; q < e->model->processes; q++)
        if (q != process && log_of(&e->system, worker->here.at[0][q], there, &other))
            broken |= logs_break(&stepped, &other);
    return broken;
}

/* Computes the leaves after an outcome that was paid for; returns the properties that it violates.
 */
static uint32_t apply(struct worker *worker, uint32_t process, const struct outcome *outcome,
                      uint32_t word, uint32_t *leaves) {
    struct explorer *e = worker->explorer;
    const struct sending *sends = outcome_sends(&e->system, outcome);
    uint32_t n = e->model->processes, broken = 0;
    memcpy(leaves, worker->here.at[0], n * sizeof *leaves);
    leaves[n] = word;
    leaves[process] = outcome->node;
    bool noticed = node_flags(&e->system, outcome->node) & NODE_NOTICED;
    for (unsigned i = 0; i < outcome->sends; i++)
        if (!noticed || !node_cut_off(&e->system, outcome->node, sends[i].to))
            leaves[sends[i].to - 1] =
                change(worker, leaves[sends[i].to - 1], sends[i].message, node_add);
    if (outcome->flags & OUT_ENTERED) broken |= enter(worker, process, outcome->value, leaves);
    if (outcome->flags & OUT_ELECTED) broken |= elect(worker, process, outcome->value, leaves);
    if (e->model->algorithm->log && outcome->flags & (OUT_LOG_CHANGED | OUT_RECOVER))
        broken |= judge_logs(worker, process, outcome->node);
    if (outcome->flags & OUT_SUPERSEDED &&
        e->system.token[outcome->value] >= e->system.token[token_of(word)])
        broken |= 1u << EXCLUSION;
    if (outcome->flags & OUT_CRASH && e->model->algorithm->problem == CV_ELECTION &&
        latest_of(word) == process + 1)
        leaves[n] |= LATEST_FAILED;
    if (outcome->flags & OUT_RECOVER && e->model->detector)
        for (uint32_t q = 0; q < n; q++)
            if (q != process && flags_of(worker, q) & NODE_DOWN)
                leaves[process] = change(worker, leaves[process], e->down_notice[q + 1], node_add);
    return broken;
}

/* ---- Expanding ---- */

static void add_step(struct worker *worker, struct step step) {
    worker->steps =
        grown(worker->steps, &worker->step_room, worker->step_count + 1, sizeof *worker->steps);
    worker->steps[worker->step_count++] = step;
}

static void expand_process(struct worker *worker, uint32_t process,
                           const struct outcomes *outcomes) {
    struct explorer *e = worker->explorer;
    uint32_t leaves[LEAVES_MAX];
    for (uint32_t i = 0; i < outcomes->count; i++) {
        const struct outcome *outcome = &outcomes->of[i];
        uint32_t word = budgets(worker);
        if (!pay(worker, process, outcome, &word)) {
            worker->timers_left |= only_timeouts_lack(worker, outcome);
            continue;
        }
        struct step step = {.process = (uint8_t)process, .outcome = (uint16_t)i};
        step.broken = apply(worker, process, outcome, word, leaves) & e->judged;
        if (e->system.renamings.count > 1) worker_rename(worker, leaves);
        step.pair = worker_fold(worker, leaves);
        step.hash = pair_hash(step.pair);
        pairs_prefetch(&e->states, step.hash);
        add_step(worker, step);
    }
}

void worker_expand(struct worker *worker) {
    struct explorer *e = worker->explorer;
    const struct outcomes *outcomes[CHECK_PROCESSES_MAX];
    uint32_t n = e->model->processes, all = 0;
    bool settles = true, settled = true;
    worker->step_count = 0;
    worker->broken = 0;
    worker->timers_left = false;
    worker->settles = CV_NOBODY;
    for (uint32_t p = 0; p < n; p++)
        outcomes[p] = system_outcomes(&e->system, worker->here.at[0][p]);
    for (uint32_t p = n; p-- > 0;) {
        all |= flags_of(worker, p);
        settles &= may_settle(worker, p);
        settled &= is_calm(worker, p);
        if (!is_calm(worker, p)) worker->settles = p + 1;
    }
    worker->quiescent = settled;
    if (!settles || settled || !e->model->algorithm->timers) worker->settles = CV_NOBODY;
    for (uint32_t p = 0; p < n; p++) expand_process(worker, p, outcomes[p]);
    bool timers = e->model->algorithm->timers;
    worker->final = timers ? settled && !(all & NODE_ARMED) : settles;
    if (e->model->recovers && all & NODE_DOWN) worker->final = false;
    if (worker->final) worker->broken = worker_judge_end(worker) & e->judged;
}

void worker_follow(struct worker *worker, const struct step *step, uint32_t *leaves) {
    struct explorer *e = worker->explorer;
    const struct outcomes *outcomes =
        system_outcomes(&e->system, worker->here.at[0][step->process]);
    uint32_t word = budgets(worker);
    bool paid = pay(worker, step->process, &outcomes->of[step->outcome], &word);
    cv_assert(paid);
    apply(worker, step->process, &outcomes->of[step->outcome], word, leaves);
}
