/* A run with random faults, all of it from a seed. */
#include <string.h>

#include "raftlab/lab.h"

enum { STORM = 8000 * MS, CALM = 20000 * MS, TICK = 10 * MS };

/* What people want: members as in `goal`, one step after the other.  A member whose data is damaged
 * is replaced by another one, with an empty disk and an id of its own: under the old id it would
 * still be asked to keep promises that it no longer knows, if only by itself, with the members of
 * long ago at the beginning of its log. */
struct people {
    struct raft_config goal, all;
    uint8_t damaged;
    bool changes_members;
    double mobbing; /* how often a new leader is not left in peace */
    uint64_t leaders_seen;
};

/* ---- What goes wrong ---- */

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
    uint64_t most = rng_below(&lab->rng, 2) ? 100 * MS : 2000 * MS;
    lab_crash(lab, node);
    lab_after(lab, 10 * MS + rng_below(&lab->rng, most), LAB_START, id);
    for (uint32_t other = 1; other <= lab->nodes; other++)
        if (rng_below(&lab->rng, 2)) lab_gone(lab, &lab->node[other], id);
}

/* Whether the others can go on without it, whichever members they know of. */
static bool can_be_spared(struct lab *lab, uint8_t id) {
    for (uint32_t other = 1; other <= lab->nodes; other++) {
        const struct raft *raft = &lab->node[other].raft;
        const struct raft_config *configs[] = {&raft->config, &raft->former};
        for (uint32_t i = 0; i < 2 && configs[i]->count; i++) {
            int place = raft_place(configs[i], id);
            if (place >= 0 && !raft_is_quorum(configs[i], ~(1u << place))) return false;
        }
    }
    return true;
}

/* One of those that are down finds its log damaged when it comes back. */
static void damage(struct lab *lab, struct people *people, struct lab_node *node) {
    uint8_t id = lab_id(lab, node);
    if (people->damaged || node->state != LAB_DOWN || !people->changes_members) return;
    if (lab->nodes == LAB_NODES_MAX || !can_be_spared(lab, id)) return;
    people->damaged = id;
    people->goal = people->all;
    node->state = LAB_DAMAGED;
    lab->result->damaged++;
    lab_note(lab, id, 0, "finds its log damaged, and refuses to take part");
}

/* A new leader soon ends or is alone, with what it has in its log. */
static void mob_leader(struct lab *lab, struct people *people) {
    struct lab_node *leader = lab_leader(lab);
    if (people->leaders_seen == lab->result->leaders) return;
    people->leaders_seen = lab->result->leaders;
    if (!leader || !rng_chance(&lab->rng, people->mobbing)) return;
    lab_propose(lab, leader, 1);
    if (rng_below(&lab->rng, 3))
        kill(lab, leader);
    else
        part_from_all(lab, leader);
}

static void misfortune(struct lab *lab, struct people *people) {
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
        raft_lost(&node->raft, lab_id(lab, anybody(lab)));
        raft_found(&node->raft, lab_id(lab, anybody(lab)));
        break;
    case 10:
        if (leader) lab_gone(lab, anybody(lab), lab_id(lab, leader)); /* so it seems */
        break;
    case 11: part_from_all(lab, node); break;
    default: damage(lab, people, node); break;
    }
}

/* ---- What people want ---- */

static void cut_out(struct raft_config *config, uint8_t id) {
    uint32_t left = 0;
    for (uint32_t i = 0; i < config->count; i++)
        if (config->at[i].id != id) config->at[left++] = config->at[i];
    while (config->count > left) config->at[--config->count] = (struct raft_member){0};
}

static void want_others(struct lab *lab, struct people *people) {
    uint32_t place = (uint32_t)rng_below(&lab->rng, people->all.count);
    if (people->damaged) return;
    people->goal = people->all;
    switch (rng_below(&lab->rng, 4)) {
    case 0: break;
    case 1: people->goal.at[place].weight = 0; break;
    case 2: people->goal.at[place].weight = 3; break;
    default: cut_out(&people->goal, people->all.at[place].id); break;
    }
}

static void replace(struct lab *lab, struct people *people) {
    struct lab_node *other = lab_add_node(lab, &(struct raft_config){0});
    uint16_t weight = raft_member(&people->all, people->damaged)->weight;
    cut_out(&people->all, people->damaged);
    people->all.at[people->all.count++] =
        (struct raft_member){.id = lab_id(lab, other), .weight = weight};
    people->goal = people->all;
    people->damaged = 0;
    lab_start(lab, other);
}

static void operate(struct lab *lab, struct people *people) {
    struct lab_node *leader = lab_leader(lab);
    struct raft_config next;
    if (!leader || !people->changes_members) return;
    const struct raft *raft = &leader->raft;
    if (people->damaged) {
        cut_out(&people->goal, people->damaged);
        if (raft->config_index <= raft->committed && !raft_member(&raft->config, people->damaged))
            replace(lab, people);
    }
    if (raft_step_toward(&raft->config, &people->goal, &next)) lab_change(lab, leader, &next);
}

static void clients(struct lab *lab) {
    struct lab_node *node = anybody(lab), *leader = lab_leader(lab);
    if (leader && rng_below(&lab->rng, 4)) node = leader;
    lab_propose(lab, node, 1 + (uint32_t)rng_below(&lab->rng, 3));
    for (uint32_t id = 1; id <= lab->nodes; id++) lab_read(lab, &lab->node[id]);
}

/* ---- The run ---- */

static struct raft_config draw_members(struct rng *rng) {
    struct raft_config config = {.mark = 1, .count = rng_below(rng, 3) ? 3 : 5};
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

static void tick(struct lab *lab, struct people *people, uint64_t trouble) {
    if (rng_below(&lab->rng, 4) == 0) clients(lab);
    mob_leader(lab, people);
    if (rng_below(&lab->rng, trouble) == 0) misfortune(lab, people);
    if (rng_below(&lab->rng, 100) == 0) want_others(lab, people);
    if (rng_below(&lab->rng, 5) == 0) operate(lab, people);
}

static void events_until(struct lab *lab, uint64_t time) {
    struct lab_event *event;
    while (!lab_is_over(lab) && (event = lab_next(lab, time))) lab_handle(lab, event);
    lab->now = time;
}

/* All are up, are members as people want them, and have decided the same, all that was asked. */
static bool is_settled(struct lab *lab, const struct people *people) {
    struct lab_node *leader = lab_leader(lab);
    if (!leader || people->damaged || !raft_may_read(&leader->raft)) return false;
    if (memcmp(leader->raft.config.at, people->goal.at, sizeof people->goal.at)) return false;
    for (uint32_t id = 1; id <= lab->nodes; id++) {
        const struct lab_node *node = &lab->node[id];
        if (node->state == LAB_DAMAGED) continue;
        if (node->state != LAB_UP || node->raft.committed != leader->raft.last) return false;
        if (node->raft.last != leader->raft.last) return false;
    }
    return true;
}

static void calm(struct lab *lab, struct people *people) {
    bool asked = false;
    heal(lab);
    lab->chance.loss = lab->chance.twice = lab->chance.crash = 0;
    people->goal = people->all;
    for (uint32_t id = 1; id <= lab->nodes; id++) {
        lab->node[id].disk_us = MS;
        lab_start(lab, &lab->node[id]);
    }
    for (uint64_t end = lab->now + CALM; lab->now < end && !lab_is_over(lab);) {
        events_until(lab, lab->now + TICK);
        if (rng_below(&lab->rng, 5) == 0) operate(lab, people);
        if (!is_settled(lab, people)) continue;
        if (asked) return;
        asked = lab_propose(lab, lab_leader(lab), 3);
    }
    lab_broken(lab, "the faults are over, and still nothing is decided");
}

void lab_run(uint64_t seed, FILE *trace, struct lab_result *result) {
    struct lab *lab = malloc(sizeof *lab);
    struct rng rng;
    cv_assert(lab);
    rng_seed(&rng, ~seed);
    struct people people = {.all = draw_members(&rng), .changes_members = rng_below(&rng, 2)};
    uint64_t trouble = 5 + rng_below(&rng, 60);
    people.mobbing = rng_below(&rng, 2) ? 0.6 : 0;
    people.goal = people.all;
    lab_open(lab, seed, &people.all, trace, result);
    draw_weather(lab);
    for (uint32_t id = 1; id <= lab->nodes; id++) lab_start(lab, &lab->node[id]);
    while (lab->now < STORM && !lab_is_over(lab)) {
        events_until(lab, lab->now + TICK);
        tick(lab, &people, trouble);
    }
    if (!lab_is_over(lab)) calm(lab, &people);
    lab_close(lab);
    free(lab);
}
