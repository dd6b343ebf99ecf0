/* Members: what a quorum is, and how members change without two quorums that do not meet. */
#include <string.h>

#include "raft/raft.h"

int raft_place(const struct raft_config *config, uint8_t id) {
    for (uint32_t i = 0; i < config->count; i++)
        if (config->at[i].id == id) return (int)i;
    return -1;
}

const struct raft_member *raft_member(const struct raft_config *config, uint8_t id) {
    int place = raft_place(config, id);
    return place < 0 ? NULL : &config->at[place];
}

bool raft_has_vote(const struct raft_config *config, uint8_t id) {
    const struct raft_member *member = raft_member(config, id);
    return member && member->weight;
}

bool raft_config_is_sound(const struct raft_config *config) {
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

/* A config that is in the log is in force, decided or not; the one before is kept for the case that
 * its entry is replaced.  There is never more than one that is not decided. */
void raft_take_config(struct raft *raft, uint64_t index, const struct raft_config *config) {
    struct raft_peer before[RAFT_MEMBERS_MAX];
    struct raft_config old = raft->config;
    if (memcmp(&old, config, sizeof old) == 0) return; /* said once more, by a new leader */
    memcpy(before, raft->peer, sizeof before);
    raft->former = old;
    raft->former_index = raft->config_index;
    raft->config = *config;
    raft->config_index = index;
    memset(raft->peer, 0, sizeof raft->peer);
    for (uint32_t i = 0; i < config->count; i++) {
        int place = raft_place(&old, config->at[i].id);
        if (place >= 0)
            raft->peer[i] = before[place];
        else
            raft->peer[i] = (struct raft_peer){.next = raft->last + 1, .due = 1};
    }
}

/* ---- Changing ---- */

/* How far apart two configs are, in steps; of one group each. */
static uint32_t distance(const struct raft_config *from, const struct raft_config *to) {
    uint32_t steps = 0;
    for (unsigned id = 1; id <= UINT8_MAX; id++) {
        const struct raft_member *a = raft_member(from, (uint8_t)id),
                                 *b = raft_member(to, (uint8_t)id);
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

/* The one that is to get its first vote has nearly all of the log, and knows the members. */
static bool is_behind(const struct raft *raft, const struct raft_config *to) {
    enum { BEHIND_MAX = 1000 }; /* entries, which it gets while it waits for the vote */
    for (uint32_t i = 0; i < to->count; i++) {
        int place = raft_place(&raft->config, to->at[i].id);
        if (place < 0 || raft->config.at[place].weight || !to->at[i].weight) continue;
        uint64_t match = raft->peer[place].match;
        if (!match || match + BEHIND_MAX < raft->last) return true;
    }
    return false;
}

enum raft_change raft_change(struct raft *raft, const struct raft_config *config) {
    if (!raft_config_is_sound(config)) return RAFT_CHANGE_TOO_LARGE;
    uint32_t steps = distance(&raft->config, config);
    if (raft->role != RAFT_LEADER || raft->heir) return RAFT_CHANGE_NOT_LEADER;
    if (raft->config_index > raft->committed || !raft_may_read(raft)) return RAFT_CHANGE_UNDER_WAY;
    if (steps > 1 || (steps && !same_groups(&raft->config, config))) return RAFT_CHANGE_TOO_LARGE;
    if (!raft_is_quorum(config, UINT32_MAX)) return RAFT_CHANGE_NO_VOTER;
    if (is_behind(raft, config)) return RAFT_CHANGE_BEHIND;
    if (!raft_extend(raft, 1, raft->term)) return RAFT_CHANGE_UNDER_WAY;
    raft->agreed = raft->last;
    raft_take_config(raft, raft->last, config);
    raft_check(raft);
    return RAFT_CHANGED;
}

static void put(struct raft_config *config, const struct raft_member *member) {
    uint32_t at = config->count++;
    for (; at && config->at[at - 1].id > member->id; at--) config->at[at] = config->at[at - 1];
    config->at[at] = *member;
}

static void cut(struct raft_config *config, uint32_t place) {
    config->count--;
    for (uint32_t i = place; i < config->count; i++) config->at[i] = config->at[i + 1];
    config->at[config->count] = (struct raft_member){0};
}

/* Who comes does so before anyone goes, so that there are always enough; and who goes, perhaps
 * because it is broken, does so before others lose weight, so that it is not needed meanwhile. */
bool raft_step_toward(const struct raft_config *from, const struct raft_config *to,
                      struct raft_config *next) {
    *next = *from;
    next->mark = to->mark;
    for (uint32_t i = 0; i < to->count; i++) {
        struct raft_member member = to->at[i];
        int place = raft_place(from, member.id);
        member.weight = 0;
        if (place < 0 && next->count < RAFT_MEMBERS_MAX) return put(next, &member), true;
        if (place >= 0 && from->at[place].weight < to->at[i].weight)
            return next->at[place].weight++, true;
    }
    for (uint32_t i = 0; i < from->count; i++) {
        if (raft_member(to, from->at[i].id)) continue;
        if (from->at[i].weight) return next->at[i].weight--, true;
        return cut(next, i), true;
    }
    for (uint32_t i = 0; i < from->count; i++)
        if (from->at[i].weight > raft_member(to, from->at[i].id)->weight)
            return next->at[i].weight--, true;
    return false;
}
