/* A lasting partial partition: some servers reach some others, perhaps in one direction only.  As
 * long as a quorum of them reach each other, or a leader reaches a quorum, the ensemble goes on. */
#include <stdio.h>

#include "world.h"

enum { SETTLE_S = 4, BOUND_S = 5 };

static struct rng *rng(void) { return &world->faults; }

static uint64_t committed_before;

/* The newest configuration, and who leads by it; NULL: there is none.  A former leader that does
 * not know of a newer term may lack committed entries, and then no quorum elects it again. */
static const struct raft *newest_core(void) {
    const struct raft *newest = NULL;
    uint64_t term = 0;
    for (unsigned i = 1; i <= world->servers; i++) {
        const struct raft *raft = core_of(&world->machine[i]);
        if (!raft || raft->term < term) continue;
        if (raft->term > term) newest = NULL;
        term = raft->term;
        if (raft->role == RAFT_LEADER) newest = raft;
    }
    return newest;
}

static uint64_t newest_commit(void) {
    uint64_t newest = 0;
    for (unsigned i = 1; i <= world->servers; i++) {
        const struct raft *raft = core_of(&world->machine[i]);
        if (raft && raft->commit_index > newest) newest = raft->commit_index;
    }
    return newest;
}

static bool goes_on(void) { return newest_commit() > committed_before + 1; }
static bool is_never(void) { return false; }
static bool has_leader(void) { return newest_core() != NULL; }

/* A member that mends its files does not take part, and may have no vote when that is done. */
static bool may_vote(const struct machine *m) {
    const struct raft *core = core_of(m);
    return core && !core->vote_withheld && !m->rotten &&
           !ensemble_status(m->server->ensemble).mending.active;
}

/* By slot: a quorum of members that run, chosen by chance; 0: there is none. */
static uint32_t choose_quorum(const struct raft_config *config) {
    uint32_t set = 0;
    for (unsigned tries = 0; tries < 100 && !raft_is_quorum(config, set); tries++) {
        uint32_t slot = (uint32_t)rng_below(rng(), config->count);
        if (may_vote(&world->machine[config->at[slot].id])) set |= 1u << slot;
    }
    return raft_is_quorum(config, set) ? set : 0;
}

/* Cuts by chance what need not be whole; returns what was cut, one bit for each direction. */
static uint64_t cut(const struct raft *raft, uint32_t quorum, bool star) {
    const struct raft_config *config = &raft->config;
    uint64_t cuts = 0;
    for (uint32_t a = 0; a < config->count; a++) {
        for (uint32_t b = 0; b < config->count; b++) {
            bool chosen = quorum >> a & 1 && quorum >> b & 1;
            bool hub = config->at[a].id == raft->self || config->at[b].id == raft->self;
            if (a == b || (chosen && (!star || hub)) || rng_chance(rng(), 0.5)) continue;
            world->blocked[config->at[a].id - 1][config->at[b].id - 1] = true;
            if (rng_chance(rng(), 0.6))
                world->blocked[config->at[b].id - 1][config->at[a].id - 1] = true;
            cuts |= (uint64_t)1 << (a * 8 + b);
        }
    }
    return cuts;
}

void partial_run(void) {
    faults_heal();
    if (!world_run(has_leader, world->now + SETTLE_S * SECOND)) return;
    const struct raft *raft = newest_core();
    int hub = raft_member_slot(&raft->config, raft->self);
    if (world_has(KIND_MEMBERS)) return; /* a change may make another quorum necessary */
    uint32_t quorum = choose_quorum(&raft->config);
    bool star = hub >= 0 && !raft->transferee && rng_chance(rng(), 0.4);
    if (!quorum) return;
    if (star) quorum |= 1u << hub;
    uint64_t cuts = cut(raft, quorum, star);
    trace("", "a partial partition: %s of %x, %llx is cut", star ? "a star" : "a whole quorum",
          quorum, (unsigned long long)cuts);
    world->coverage.partials++;
    if (world_run(is_never, world->now + SETTLE_S * SECOND)) return;
    committed_before = newest_commit();
    if (!world_run(goes_on, world->now + BOUND_S * SECOND))
        violated("a quorum can reach each other, and nothing is committed for %d s", BOUND_S);
}
