/* Judging a final state, in which nothing more must happen: the properties that only an end
 * decides. */
#include "lab/check/explore.h"
#include "lab/judge/election.h"
#include "lab/judge/mutex.h"

static bool neighbours(const struct cv_env *env, cv_pid q) {
    if (!env->neighbours) return true;
    for (uint32_t i = 0; i < env->degree; i++)
        if (env->neighbours[i] == q) return true;
    return false;
}

/* Numbers the parts of the network without crashed processes; on a one-way ring by reachability,
 * and on one whose dead are skipped all are one part. */
static void find_parts(const struct worker *worker, const struct election_judge *judge,
                       uint32_t *part) {
    const struct check_model *model = worker->explorer->model;
    uint32_t n = model->processes, changed = 1;
    bool skips =
        model->algorithm->topology == CV_RING && model->algorithm->traits & CV_USES_DETECTOR;
    for (cv_pid p = 1; p <= n; p++) part[p] = p;
    while (changed) {
        changed = 0;
        for (cv_pid p = 1; p <= n; p++)
            for (cv_pid q = 1; q <= n; q++)
                if (!judge->of[p].crashed && !judge->of[q].crashed && part[q] > part[p] &&
                    (skips || neighbours(&model->env[p], q) || neighbours(&model->env[q], p)))
                    part[q] = part[p], changed = 1;
    }
}

static uint32_t judge_election(const struct worker *worker) {
    const struct explorer *e = worker->explorer;
    const struct check_model *model = e->model;
    struct elector of[CHECK_PROCESSES_MAX + 1] = {0};
    uint32_t part[CHECK_PROCESSES_MAX + 1] = {0}, broken = 0;
    struct roster roster = {.processes = model->processes};
    struct election_judge judge = {
        .roster = &roster,
        .rules = {.preference = model->algorithm->preference,
                  .terms = model->algorithm->traits & CV_TERMS,
                  .anonymous = model->algorithm->traits & CV_ANONYMOUS,
                  .ids = model->env[1].ids,
                  .weights = model->env[1].weights},
        .of = of,
        .elections = latest_of(worker->here.at[0][model->processes]) != 0,
    };
    for (cv_pid p = 1; p <= model->processes; p++) {
        struct local local = node_local(&e->system, worker->here.at[0][p - 1]);
        of[p] = (struct elector){.leader_id = local.leader ? model->env[1].ids[local.leader] : 0,
                                 .term = local.term,
                                 .decided = local.flags & LOCAL_DECIDED,
                                 .leads = local.flags & LOCAL_LEADS,
                                 .crashed = local.flags & LOCAL_DOWN};
        judge.live += !of[p].crashed;
        judge.decided += of[p].decided;
        judge.leaders += of[p].leads;
    }
    find_parts(worker, &judge, part);
    election_judge_close(&judge, 0, QUIESCENT, part);
    for (int i = 0; i < ELECTION_PROPERTIES; i++)
        if (judge.verdict[i].value == VIOLATED) broken |= 1u << i;
    return broken;
}

uint32_t worker_judge_end(const struct worker *worker) {
    const struct explorer *e = worker->explorer;
    if (e->model->algorithm->problem == CV_ELECTION) return judge_election(worker);
    for (uint32_t p = 0; p < e->model->processes; p++)
        if (node_flags(&e->system, worker->here.at[0][p]) & NODE_WAITING)
            return 1u << DEADLOCK | 1u << STARVATION | 1u << BOUNDED_WAIT;
    return 0;
}
