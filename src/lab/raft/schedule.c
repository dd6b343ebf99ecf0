/* Runs in which every step is given.  Those without changes of members are scenarios of the
 * catalogue's raft: scenarios/raft-*.scenario. */
#include <string.h>

#include "lab/raft/lab.h"

enum { EVENTS_MAX = 1000000 };

/* ---- Steps ---- */

static struct raft_config ones(uint32_t count) {
    struct raft_config config = {.hash = 1, .count = count};
    for (uint32_t i = 0; i < count; i++)
        config.at[i] = (struct raft_member){.id = (uint8_t)(i + 1), .weight = 1};
    return config;
}

static void expect(struct lab *lab, bool condition, const char *what) {
    if (!condition) lab_broken(lab, "expected: %s", what);
}

static bool step(struct lab *lab) {
    if (lab->result->events > EVENTS_MAX) lab_broken(lab, "it does not come to rest");
    struct lab_event *event = lab_is_over(lab) ? NULL : lab_next(lab, UINT64_MAX);
    if (event) lab_handle(lab, event);
    return event;
}

static void settle(struct lab *lab) {
    while (step(lab)) continue;
}

static void cut(struct lab *lab, uint8_t a, uint8_t b, bool is_cut) {
    lab->cut[a][b] = lab->cut[b][a] = is_cut;
}

/* All election timeouts have passed, and this one becomes a candidate; until it leads, or nothing
 * happens. */
static void stand(struct lab *lab, uint8_t id) {
    struct lab_node *node = &lab->node[id];
    for (uint32_t other = 1; other <= lab->nodes; other++)
        while (lab->node[other].state == LAB_UP && !lab->node[other].raft.leader_timed_out &&
               lab->node[other].raft.leader != other)
            lab_fire_timer(lab, &lab->node[other]);
    lab_fire_timer(lab, node);
    while (node->raft.role != RAFT_LEADER && step(lab)) continue;
}

static void elect(struct lab *lab, uint8_t id) {
    stand(lab, id);
    expect(lab, lab->node[id].raft.role == RAFT_LEADER, "a leader");
}

static void open_still(struct lab *lab, uint32_t count) {
    struct raft_config config = ones(count);
    lab_open(lab, 1, &config, lab->trace, lab->result);
    lab->still = true;
    for (uint32_t id = 1; id <= count; id++) lab_start(lab, &lab->node[id]);
}

/* All are up and hear each other, and end with the same. */
static void come_together(struct lab *lab, uint8_t leader) {
    memset(lab->cut, 0, sizeof lab->cut);
    for (uint32_t id = 1; id <= lab->nodes; id++) {
        lab->node[id].disk_us = MS;
        lab_start(lab, &lab->node[id]);
    }
    settle(lab);
    for (int beats = 0; beats < 6; beats++) {
        lab_heartbeat(lab, &lab->node[leader]);
        settle(lab);
    }
    for (uint32_t id = 1; id <= lab->nodes; id++)
        expect(lab, lab->node[id].raft.commit_index == lab->node[leader].raft.last_index,
               "all the same");
}

/* ---- The commit index ---- */

/* 1 was cut off with entries that nobody else has, and 2 has committed others at their indexes.
 * Its link to 1 has no room for entries yet, so what comes first is a heartbeat: it refers to the
 * entry that both have, and its commit index to entries that 1 does not have. */
static void commit_index_ahead(struct lab *lab) {
    struct lab_node *node = lab->node;
    struct raft_message heartbeat;
    open_still(lab, 3);
    elect(lab, 1);
    settle(lab);
    cut(lab, 1, 2, true), cut(lab, 1, 3, true);
    lab_propose(lab, &node[1], 2);
    elect(lab, 2); /* by 3 */
    lab_propose(lab, &node[2], 1);
    settle(lab);
    expect(lab, node[2].raft.commit_index == 3, "2 has committed what it has");
    cut(lab, 1, 2, false);
    raft_heartbeat(&node[2].raft);
    expect(lab, raft_next_append(&node[2].raft, 1, 1, &heartbeat), "a heartbeat");
    expect(lab, !heartbeat.append_entries.entry_count, "without entries");
    lab_after(lab, MS, LAB_MESSAGE, 1)->message = heartbeat;
    settle(lab);
    come_together(lab, 2);
}

/* ---- Members ---- */

/* 1 has a change that only 5 knows of.  The next leader has not committed anything yet, and makes
 * another one from the same members.  Two majorities would have nobody in common: 2 and 3 of three,
 * and 1, 4 and 5 of five. */
static void change_in_an_old_term(struct lab *lab) {
    struct lab_node *node = lab->node;
    struct raft_config five = ones(5), three = ones(5);
    open_still(lab, 4);
    lab_start(lab, lab_add_node(lab, &(struct raft_config){0}));
    elect(lab, 1);
    settle(lab);
    five.at[4].weight = 0; /* a learner first */
    lab_change(lab, &node[1], &five);
    for (int beats = 0; beats < 4; beats++) settle(lab), lab_heartbeat(lab, &node[1]);
    settle(lab);
    expect(lab, node[5].raft.commit_index == 2, "5 has learnt the log");
    for (uint8_t id = 2; id <= 4; id++) cut(lab, 1, id, true), cut(lab, 5, id, true);
    five.at[4].weight = 1;
    expect(lab, lab_change(lab, &node[1], &five) == RAFT_CHANGE_DONE, "a voter more");
    settle(lab);
    elect(lab, 2); /* by 3 and 4 */
    three.at[0].weight = three.at[4].weight = 0;
    cut(lab, 2, 4, true);
    lab_change(lab, &node[2], &three); /* not yet */
    settle(lab);
    cut(lab, 1, 4, false);
    for (int tries = 0; tries < 4 && node[1].raft.term < 3; tries++) stand(lab, 1); /* by 4 and 5 */
    expect(lab, node[1].raft.role == RAFT_LEADER, "a leader of five");
    come_together(lab, 1);
}

const struct lab_schedule lab_schedules[] = {
    {"commit-index-ahead", "a commit index comes before the entries that it is about",
     commit_index_ahead},
    {"change-in-an-old-term", "a leader changes the members before it has committed anything",
     change_in_an_old_term},
};
const uint32_t lab_schedule_count = sizeof lab_schedules / sizeof *lab_schedules;

void lab_follow(const struct lab_schedule *schedule, FILE *trace, struct lab_result *result) {
    struct lab *lab = calloc(1, sizeof *lab);
    cv_assert(lab);
    lab->trace = trace;
    lab->result = result;
    schedule->run(lab);
    lab_close(lab);
    free(lab);
}
