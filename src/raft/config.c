/* The configuration: what a quorum is, and how members change so that any two quorums meet. */
#include <string.h>

#include "raft/internal.h"

int raft_member_slot(const struct raft_config *config, uint8_t id) {
    for (uint32_t i = 0; i < config->count; i++)
        if (config->at[i].id == id) return (int)i;
    return -1;
}

const struct raft_member *raft_find_member(const struct raft_config *config, uint8_t id) {
    int slot = raft_member_slot(config, id);
    return slot < 0 ? NULL : &config->at[slot];
}

bool raft_has_vote(const struct raft_config *config, uint8_t id) {
    const struct raft_member *member = raft_find_member(config, id);
    return member && member->weight;
}

bool raft_config_is_valid(const struct raft_config *config) {
    if (config->count > RAFT_MEMBERS_MAX || config->reserved) return false;
    for (uint32_t i = 0; i < config->count; i++) {
        uint8_t before = i ? config->at[i - 1].id : 0;
        if (config->at[i].id <= before) return false;
    }
    return true;
}

bool raft_is_quorum(const struct raft_config *config, uint32_t set) {
    uint32_t groups = 0, won = 0, looked_at = 0;
    for (uint32_t i = 0; i < config->count; i++) {
        uint32_t all = 0, ours = 0;
        if (looked_at & 1u << i) continue;
        for (uint32_t j = i; j < config->count; j++) {
            if (config->at[j].group != config->at[i].group) continue;
            looked_at |= 1u << j;
            all += config->at[j].weight;
            if (set & 1u << j) ours += config->at[j].weight;
        }
        groups += all > 0;
        won += 2 * ours > all;
    }
    return 2 * won > groups;
}

/* ---- In the log ---- */

/* A configuration is in force as soon as it is in the log, committed or not; the previous one is
 * kept for the case that its entry is replaced.  At most one is not committed. */
void raft_adopt_config(struct raft *raft, uint64_t index, const struct raft_config *config) {
    struct raft_peer before[RAFT_MEMBERS_MAX];
    struct raft_config old = raft->config;
    if (memcmp(&old, config, sizeof old) == 0) return; /* repeated by a new leader */
    memcpy(before, raft->peer, sizeof before);
    raft->previous_config = old;
    raft->previous_config_index = raft->config_index;
    raft->config = *config;
    raft->config_index = index;
    memset(raft->peer, 0, sizeof raft->peer);
    for (uint32_t i = 0; i < config->count; i++) {
        int slot = raft_member_slot(&old, config->at[i].id);
        if (slot >= 0)
            raft->peer[i] = before[slot];
        else
            raft->peer[i] =
                (struct raft_peer){.next_index = raft->last_index + 1, .heartbeat_due = 1};
    }
}

/* ---- Changing ---- */

/* The number of steps between two configurations of one group each. */
static uint32_t distance(const struct raft_config *from, const struct raft_config *to) {
    uint32_t steps = 0;
    for (unsigned id = 1; id <= UINT8_MAX; id++) {
        const struct raft_member *a = raft_find_member(from, (uint8_t)id),
                                 *b = raft_find_member(to, (uint8_t)id);
        uint32_t before = a ? a->weight : 0, after = b ? b->weight : 0;
        steps += before < after ? after - before : before - after;
        steps += !a != !b;
        if (a && b && a->group != b->group) steps += 2; /* never one step */
    }
    return steps;
}

static bool same_groups(const struct raft_config *from, const struct raft_config *to) {
    uint8_t group = from->count ? from->at[0].group : 0;
    for (uint32_t i = 0; i < from->count; i++)
        if (from->at[i].group != group) return false;
    for (uint32_t i = 0; i < to->count; i++)
        if (to->at[i].group != group) return false;
    return true;
}

enum { LAG_MAX = 1000 }; /* entries: a member gets them while a configuration is committed */

/* Whether a learner that is to get its vote does not have nearly all of the log, with the
 * configuration in it. */
static bool has_lagging_learner(const struct raft *raft, const struct raft_config *to) {
    for (uint32_t i = 0; i < to->count; i++) {
        int slot = raft_member_slot(&raft->config, to->at[i].id);
        if (slot < 0 || raft->config.at[slot].weight || !to->at[i].weight) continue;
        uint64_t match = raft->peer[slot].match_index;
        if (!match || match + LAG_MAX < raft->last_index) return true;
    }
    return false;
}

uint32_t raft_live_set(const struct raft *raft, const struct raft_config *config, uint64_t round) {
    uint32_t set = 0;
    for (uint32_t i = 0; i < config->count; i++) {
        const struct raft_peer *peer = raft_find_peer(raft, config->at[i].id);
        bool caught_up = peer && peer->match_index + LAG_MAX >= raft->commit_index;
        if (config->at[i].id == raft->self ||
            (caught_up && peer->match_index && peer->acked_round >= round && !peer->vote_withheld))
            set |= 1u << i;
    }
    return set;
}

static enum raft_change change_config(struct raft *raft, const struct raft_config *config,
                                      uint64_t round, bool may_lag) {
    if (!raft_config_is_valid(config)) return RAFT_CHANGE_TOO_LARGE;
    uint32_t steps = distance(&raft->config, config);
    if (raft->role != RAFT_LEADER || raft->transferee) return RAFT_CHANGE_NOT_LEADER;
    if (raft->config_index > raft->commit_index || !raft_may_serve_reads(raft))
        return RAFT_CHANGE_IN_PROGRESS;
    if (steps > 1 || (steps && !same_groups(&raft->config, config))) return RAFT_CHANGE_TOO_LARGE;
    if (!raft_is_quorum(config, UINT32_MAX)) return RAFT_CHANGE_NO_VOTER;
    if (!may_lag && has_lagging_learner(raft, config)) return RAFT_CHANGE_NOT_CAUGHT_UP;
    if (!raft_is_quorum(config, raft_live_set(raft, config, round))) return RAFT_CHANGE_NO_QUORUM;
    raft_extend(raft, 1, raft->term);
    raft->verified_index = raft->last_index;
    raft_adopt_config(raft, raft->last_index, config);
    raft_check_invariants(raft);
    return RAFT_CHANGE_DONE;
}

enum raft_change raft_change_config(struct raft *raft, const struct raft_config *config,
                                    uint64_t round) {
    return change_config(raft, config, round, false);
}

enum raft_change raft_admit_absent(struct raft *raft, const struct raft_config *config,
                                   uint64_t round) {
    return change_config(raft, config, round, true);
}

static void insert_member(struct raft_config *config, const struct raft_member *member) {
    uint32_t at = config->count++;
    for (; at && config->at[at - 1].id > member->id; at--) config->at[at] = config->at[at - 1];
    config->at[at] = *member;
}

static void remove_member(struct raft_config *config, uint32_t slot) {
    config->count--;
    for (uint32_t i = slot; i < config->count; i++) config->at[i] = config->at[i + 1];
    config->at[config->count] = (struct raft_member){0};
}

/* Members are added before any is removed, so that there are always enough.  Members are removed,
 * perhaps because they failed, before others lose weight, so that no quorum needs them meanwhile.
 */
bool raft_config_step(const struct raft_config *from, const struct raft_config *to,
                      struct raft_config *next) {
    *next = *from;
    next->hash = to->hash;
    for (uint32_t i = 0; i < to->count; i++) {
        struct raft_member member = to->at[i];
        int slot = raft_member_slot(from, member.id);
        member.weight = 0;
        if (slot < 0 && next->count < RAFT_MEMBERS_MAX) return insert_member(next, &member), true;
        if (slot >= 0 && from->at[slot].weight < to->at[i].weight)
            return next->at[slot].weight++, true;
    }
    for (uint32_t i = 0; i < from->count; i++) {
        if (raft_find_member(to, from->at[i].id)) continue;
        if (from->at[i].weight) return next->at[i].weight--, true;
        return remove_member(next, i), true;
    }
    for (uint32_t i = 0; i < from->count; i++)
        if (from->at[i].weight > raft_find_member(to, from->at[i].id)->weight)
            return next->at[i].weight--, true;
    return false;
}
