/* A run with random faults, all of it from a seed. */
#include <string.h>

#include "lab/raft/lab.h"

enum { STORM = 8000 * MS, CALM = 20000 * MS, TICK = 10 * MS, MUTE = 150000 * MS };

/* What operators want: members as in `target`, one step after the other.  A member whose data is
 * damaged is replaced by another one, with an empty disk and an id of its own: under the old id it
 * would be held to votes that it has forgotten. */
struct operators {
    struct raft_config target, all;
    uint8_t damaged;
    bool changes_members;
    double mobbing; /* how often a new leader is attacked at once */
    uint64_t leaders_seen;
};

/* ---- Faults ---- */

static struct lab_node *anybody(struct lab *lab) {
    return &lab->node[1 + rng_below(&lab->rng, lab->nodes)];
}

static void heal(struct lab *lab) {
    memset(lab->cut, 0, sizeof lab->cut);
    lab_note(lab, 0, 0, "the network is whole");
}

/* Two parts that do not hear each other, or one of which does not hear the other. */
static void part(struct lab *lab) {
    uint32_t side = (uint32_t)rng_below(&lab->rng, 1u << lab->nodes);
    bool one_way = rng_below(&lab->rng, 2);
    for (uint32_t a = 1; a <= lab->nodes; a++)
        for (uint32_t b = 1; b <= lab->nodes; b++) {
            uint32_t from = side >> (a - 1) & 1, to = side >> (b - 1) & 1;
            lab->cut[a][b] = one_way ? from < to : from != to;
        }
    lab_note(lab, 0, side, "the network is parted%s: %x", one_way ? " one way" : "", side);
}

static void part_from_all(struct lab *lab, struct lab_node *node) {
    uint8_t id = lab_id(lab, node);
    for (uint32_t other = 1; other <= lab->nodes; other++)
        lab->cut[id][other] = lab->cut[other][id] = true;
    lab_note(lab, id, 0, "is cut off");
}

static void kill(struct lab *lab, struct lab_node *node) {
    uint8_t id = lab_id(lab, node);
    if (node->state != LAB_UP) return;
    uint64_t max_us = rng_below(&lab->rng, 2) ? 100 * MS : 2000 * MS;
    lab_crash(lab, node);
    lab_after(lab, 10 * MS + rng_below(&lab->rng, max_us), LAB_START, id);
    for (uint32_t other = 1; other <= lab->nodes; other++)
        if (rng_below(&lab->rng, 2)) lab_peer_down(lab, &lab->node[other], id);
}

/* Whether the others can go on without it, whichever members they know of. */
static bool can_be_spared(struct lab *lab, uint8_t id) {
    for (uint32_t other = 1; other <= lab->nodes; other++) {
        const struct raft *raft = &lab->node[other].raft;
        const struct raft_config *configs[] = {&raft->config, &raft->previous_config};
        for (uint32_t i = 0; i < 2 && configs[i]->count; i++) {
            int slot = raft_member_slot(configs[i], id);
            if (slot >= 0 && !raft_is_quorum(configs[i], ~(1u << slot))) return false;
        }
    }
    return true;
}

/* One of those that are down finds its log damaged when it comes back. */
static void damage(struct lab *lab, struct operators *operators, struct lab_node *node) {
    uint8_t id = lab_id(lab, node);
    if (operators->damaged || node->state != LAB_DOWN || !operators->changes_members) return;
    if (lab->nodes == LAB_NODES_MAX || !can_be_spared(lab, id)) return;
    operators->damaged = id;
    operators->target = operators->all;
    node->state = LAB_DAMAGED;
    lab->result->damaged++;
    lab_note(lab, id, 0, "finds its log damaged, and refuses to take part");
}

/* A new leader soon crashes or is cut off, with entries that only it has. */
static void mob_leader(struct lab *lab, struct operators *operators) {
    struct lab_node *leader = lab_leader(lab);
    if (operators->leaders_seen == lab->result->leaders) return;
    operators->leaders_seen = lab->result->leaders;
    if (!leader || !rng_chance(&lab->rng, operators->mobbing)) return;
    lab_propose(lab, leader, 1);
    if (rng_below(&lab->rng, 3))
        kill(lab, leader);
    else
        part_from_all(lab, leader);
}

static void misfortune(struct lab *lab, struct operators *operators) {
    struct lab_node *node = anybody(lab), *leader = lab_leader(lab);
    if (leader && rng_below(&lab->rng, 2)) node = leader;
    switch (rng_below(&lab->rng, 13)) {
    case 0:
    case 1: kill(lab, node); break;
    case 2:
    case 3: part(lab); break;
    case 4:
    case 5: heal(lab); break;
    case 6: node->disk_us = rng_below(&lab->rng, 2) ? MS : 40 * MS; break;
    case 7: lab_transfer(lab, node, lab_id(lab, anybody(lab))); break;
    case 8: lab_snapshot(lab, node, rng_below(&lab->rng, 20)); break;
    case 9:
        raft_peer_disconnected(&node->raft, lab_id(lab, anybody(lab)));
        raft_peer_connected(&node->raft, lab_id(lab, anybody(lab)));
        break;
    case 10:
        if (leader) lab_peer_down(lab, anybody(lab), lab_id(lab, leader)); /* so it seems */
        break;
    case 11: part_from_all(lab, node); break;
    default: damage(lab, operators, node); break;
    }
}

/* ---- Operators and clients ---- */

static void remove_member(struct raft_config *config, uint8_t id) {
    uint32_t left = 0;
    for (uint32_t i = 0; i < config->count; i++)
        if (config->at[i].id != id) config->at[left++] = config->at[i];
    while (config->count > left) config->at[--config->count] = (struct raft_member){0};
}

static void want_others(struct lab *lab, struct operators *operators) {
    uint32_t slot = (uint32_t)rng_below(&lab->rng, operators->all.count);
    if (operators->damaged) return;
    operators->target = operators->all;
    switch (rng_below(&lab->rng, 4)) {
    case 0: break;
    case 1: operators->target.at[slot].weight = 0; break;
    case 2: operators->target.at[slot].weight = 3; break;
    default: remove_member(&operators->target, operators->all.at[slot].id); break;
    }
}

static void replace(struct lab *lab, struct operators *operators) {
    struct lab_node *other = lab_add_node(lab, &(struct raft_config){0});
    uint16_t weight = raft_find_member(&operators->all, operators->damaged)->weight;
    remove_member(&operators->all, operators->damaged);
    operators->all.at[operators->all.count++] =
        (struct raft_member){.id = lab_id(lab, other), .weight = weight};
    operators->target = operators->all;
    operators->damaged = 0;
    lab_start(lab, other);
}

static void operate(struct lab *lab, struct operators *operators) {
    struct lab_node *leader = lab_leader(lab);
    struct raft_config next;
    if (!leader || !operators->changes_members) return;
    const struct raft *raft = &leader->raft;
    if (operators->damaged) {
        remove_member(&operators->target, operators->damaged);
        if (raft->config_index <= raft->commit_index &&
            !raft_find_member(&raft->config, operators->damaged))
            replace(lab, operators);
    }
    if (raft_config_step(&raft->config, &operators->target, &next)) lab_change(lab, leader, &next);
}

static void clients(struct lab *lab) {
    struct lab_node *node = anybody(lab), *leader = lab_leader(lab);
    if (leader && rng_below(&lab->rng, 4)) node = leader;
    lab_propose(lab, node, 1 + (uint32_t)rng_below(&lab->rng, 3));
    for (uint32_t id = 1; id <= lab->nodes; id++) lab_read(lab, &lab->node[id]);
}

/* ---- The run ---- */

static struct raft_config draw_members(struct rng *rng) {
    struct raft_config config = {.hash = 1, .count = rng_below(rng, 3) ? 3 : 5};
    bool weighed = rng_below(rng, 4) == 0;
    for (uint32_t i = 0; i < config.count; i++)
        config.at[i] = (struct raft_member){
            .id = (uint8_t)(i + 1), .weight = weighed ? (uint16_t)rng_below(rng, 3) + 1 : 1};
    return config;
}

static void draw_weather(struct lab *lab) {
    static const double chances[] = {0, 0, 0.01, 0.1};
    lab->chance.loss = chances[rng_below(&lab->rng, 4)];
    lab->chance.twice = chances[rng_below(&lab->rng, 4)];
    lab->chance.crash = rng_below(&lab->rng, 2) ? 0.0005 : 0;
    lab->chance.delay_us = 200 + rng_below(&lab->rng, 10 * MS);
    lab->leases = rng_below(&lab->rng, 2);
    for (uint32_t id = 1; id <= lab->nodes; id++) {
        lab->node[id].rate = 0.99 + 0.02 * rng_unit(&lab->rng);
        lab->node[id].disk_us = rng_below(&lab->rng, 3) ? MS : 20 * MS;
    }
}

static void tick(struct lab *lab, struct operators *operators, uint64_t trouble) {
    if (rng_below(&lab->rng, 4) == 0) clients(lab);
    mob_leader(lab, operators);
    if (rng_below(&lab->rng, trouble) == 0) misfortune(lab, operators);
    if (rng_below(&lab->rng, 100) == 0) want_others(lab, operators);
    if (rng_below(&lab->rng, 5) == 0) operate(lab, operators);
}

static void events_until(struct lab *lab, uint64_t time) {
    struct lab_event *event;
    while (!lab_is_over(lab) && (event = lab_next(lab, time))) lab_handle(lab, event);
    lab->now = time;
}

/* All are up, are members as operators want them, and have committed the same, all that was
 * proposed. */
static bool is_settled(struct lab *lab, const struct operators *operators) {
    struct lab_node *leader = lab_leader(lab);
    if (!leader || operators->damaged || !raft_may_serve_reads(&leader->raft)) return false;
    if (memcmp(leader->raft.config.at, operators->target.at, sizeof operators->target.at))
        return false;
    for (uint32_t id = 1; id <= lab->nodes; id++) {
        const struct lab_node *node = &lab->node[id];
        if (node->state == LAB_DAMAGED) continue;
        if (node->state != LAB_UP || node->raft.commit_index != leader->raft.last_index)
            return false;
        if (node->raft.last_index != leader->raft.last_index) return false;
    }
    return true;
}

static void count_undecided_terms(struct lab *lab) {
    for (uint32_t id = 1; id <= lab->nodes; id++) {
        const struct raft *raft = &lab->node[id].raft;
        uint64_t count = 0;
        for (uint64_t i = raft->commit_index + 1; i <= raft->last_index; i++)
            count += raft_term_at(raft, i) != raft_term_at(raft, i - 1);
        if (lab->result->undecided_terms < count) lab->result->undecided_terms = count;
    }
}

/* Leader after leader is elected, none is heard, and nothing is committed.  Then hundreds of
 * messages, each with the entries of one term, are under way at once. */
static void mute(struct lab *lab) {
    lab->mute = lab->ordered = true;
    while (lab->now < MUTE && !lab_is_over(lab)) {
        events_until(lab, lab->now + 100 * MS);
        if (rng_below(&lab->rng, 40) == 0) kill(lab, anybody(lab));
        if (lab_leader(lab) && rng_below(&lab->rng, 4) == 0) lab_propose(lab, lab_leader(lab), 1);
    }
    lab->mute = false;
    count_undecided_terms(lab);
}

static void calm(struct lab *lab, struct operators *operators) {
    bool asked = false;
    heal(lab);
    lab->chance.loss = lab->chance.twice = lab->chance.crash = 0;
    operators->target = operators->all;
    for (uint32_t id = 1; id <= lab->nodes; id++) {
        lab->node[id].disk_us = MS;
        lab_start(lab, &lab->node[id]);
    }
    for (uint64_t end = lab->now + CALM; lab->now < end && !lab_is_over(lab);) {
        events_until(lab, lab->now + TICK);
        if (rng_below(&lab->rng, 5) == 0) operate(lab, operators);
        if (!is_settled(lab, operators)) continue;
        if (asked) return;
        asked = lab_propose(lab, lab_leader(lab), 3);
    }
    lab_broken(lab, "the faults are over, and still nothing is committed");
}

void lab_run(uint64_t seed, FILE *trace, struct lab_result *result) {
    struct lab *lab = malloc(sizeof *lab);
    struct rng rng;
    cv_assert(lab);
    rng_seed(&rng, ~seed);
    struct operators operators = {.all = draw_members(&rng), .changes_members = rng_below(&rng, 2)};
    uint64_t trouble = 5 + rng_below(&rng, 60);
    operators.mobbing = rng_below(&rng, 2) ? 0.6 : 0;
    operators.target = operators.all;
    bool begins_mute = rng_below(&rng, 50) == 0;
    lab_open(lab, seed, &operators.all, trace, result);
    draw_weather(lab);
    for (uint32_t id = 1; id <= lab->nodes; id++) lab_start(lab, &lab->node[id]);
    if (begins_mute) mute(lab);
    for (uint64_t end = lab->now + STORM; lab->now < end && !lab_is_over(lab);) {
        events_until(lab, lab->now + TICK);
        tick(lab, &operators, trouble);
    }
    if (!lab_is_over(lab)) calm(lab, &operators);
    lab_close(lab);
    free(lab);
}
