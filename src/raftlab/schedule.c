/* Runs in which every step is given: schedules that have broken other implementations. */
#include <string.h>

#include "raftlab/lab.h"

enum { EVENTS_MAX = 1000000 };

/* ---- Steps ---- */

static struct raft_config ones(uint32_t count) {
    struct raft_config config = {.mark = 1, .count = count};
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

static void cut_off(struct lab *lab, uint8_t id, bool is_cut) {
    for (uint8_t other = 1; other <= lab->nodes; other++) cut(lab, id, other, is_cut);
}

/* Everybody has noticed the silence, and this one stands; until it leads, or nothing happens. */
static void stand(struct lab *lab, uint8_t id) {
    struct lab_node *node = &lab->node[id];
    for (uint32_t other = 1; other <= lab->nodes; other++)
        while (lab->node[other].state == LAB_UP && !lab->node[other].raft.silent &&
               lab->node[other].raft.leader != other)
            lab_wake(lab, &lab->node[other]);
    lab_wake(lab, node);
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
        lab_beat(lab, &lab->node[leader]);
        settle(lab);
    }
    for (uint32_t id = 1; id <= lab->nodes; id++)
        expect(lab, lab->node[id].raft.committed == lab->node[leader].raft.last, "all the same");
}

/* ---- Figure 8 ---- */

static void figure_8(struct lab *lab) {
    struct lab_node *node = lab->node;
    open_still(lab, 5);
    elect(lab, 1);
    settle(lab);
    expect(lab, lab->decided.last == 1, "the first entry is decided");
    for (uint8_t id = 3; id <= 5; id++) cut(lab, 1, id, true);
    lab_propose(lab, &node[1], 1); /* entry 2, which only 2 gets */
    settle(lab);
    lab_crash(lab, &node[1]);
    cut_off(lab, 2, true);
    elect(lab, 5); /* by 3 and 4, which do not get its entry 2 */
    cut_off(lab, 5, true);
    settle(lab);
    lab_crash(lab, &node[5]);
    memset(lab->cut, 0, sizeof lab->cut);
    cut_off(lab, 4, true);
    lab_start(lab, &node[1]);
    while (!node[1].raft.silent) lab_wake(lab, &node[1]);
    stand(lab, 1); /* it learns the term */
    if (node[1].raft.role != RAFT_LEADER) elect(lab, 1);
    while (raft_peer(&node[1].raft, 3)->match < 2 && step(lab)) continue;
    expect(lab, node[2].raft.last >= 2 && node[3].raft.last == 2, "entry 2 is on three of five");
    expect(lab, node[1].raft.committed == 1, "and that does not decide it");
    cut_off(lab, 1, true);
    lab_crash(lab, &node[1]);
    settle(lab);
    lab_crash(lab, &node[2]);
    memset(lab->cut, 0, sizeof lab->cut);
    lab_start(lab, &node[5]);
    stand(lab, 5);
    if (node[5].raft.role != RAFT_LEADER) elect(lab, 5); /* by 3 and 4: its entry 2 is newer */
    settle(lab);
    expect(lab, lab->decided.last >= 2 && lab->decided.at[2].config, "the entry 2 of 5 is decided");
    come_together(lab, 5);
}

/* ---- Disks ---- */

static void full_disk(struct lab *lab) {
    struct lab_node *node = lab->node;
    open_still(lab, 3);
    elect(lab, 1);
    settle(lab);
    node[1].disk_us = 0; /* no write comes to its end any more */
    lab_propose(lab, &node[1], 3);
    settle(lab);
    expect(lab, lab->decided.last == 4, "the other two decide it");
    expect(lab, node[1].raft.saved == 1, "which the leader has not saved");
    cut_off(lab, 1, true);
    lab_propose(lab, &node[1], 2); /* nobody gets these */
    settle(lab);
    node[1].disk.write.busy = false; /* what was under way is lost */
    lab_crash(lab, &node[1]);        /* at once: nothing was said of what is not there */
    elect(lab, 2);
    lab_propose(lab, &node[2], 2);
    settle(lab);
    expect(lab, lab->decided.last == 7, "the others go on");
    come_together(lab, 2); /* there is room again */
}

/* Commits must not starve: there is always something that is not durable yet. */
static void slow_disk(struct lab *lab) {
    struct raft_config config = ones(3);
    struct lab_event *event;
    uint64_t before = 0;
    lab_open(lab, 1, &config, lab->trace, lab->result);
    for (uint32_t id = 1; id <= 3; id++) {
        lab->node[id].disk_us = 30 * MS;
        lab_start(lab, &lab->node[id]);
    }
    for (uint64_t ms = 0; ms < 5000 && !lab_is_over(lab); ms++) {
        while (!lab_is_over(lab) && (event = lab_next(lab, ms * MS))) lab_handle(lab, event);
        lab->now = ms * MS;
        if (lab_leader(lab)) lab_propose(lab, lab_leader(lab), 1);
        if (ms % 500 != 499 || ms < 1000) continue;
        expect(lab, lab->decided.last > before + 400, "as many are decided as come");
        before = lab->decided.last;
    }
    expect(lab, lab->result->leaders == 1, "one leader all the time");
}

/* ---- Elections ---- */

static void stale_term(struct lab *lab) {
    struct lab_node *node = lab->node;
    open_still(lab, 3);
    elect(lab, 1);
    settle(lab);
    cut_off(lab, 1, true);
    lab_propose(lab, &node[1], 3); /* the longest log, of term 1 */
    settle(lab);
    lab_wake(lab, &node[1]);
    lab_wake(lab, &node[1]);
    expect(lab, node[1].raft.role != RAFT_LEADER, "it steps down");
    for (uint8_t id = 2; id <= 3; id++)
        while (!node[id].raft.silent) lab_wake(lab, &node[id]);
    lab_wake(lab, &node[2]);
    while (node[3].raft.term < 2 && step(lab)) continue;
    lab_crash(lab, &node[2]); /* a candidate that never led: no log is of its term */
    settle(lab);
    cut(lab, 1, 3, false);
    stand(lab, 3);
    expect(lab, node[3].raft.role != RAFT_LEADER, "its log is too short");
    for (int tries = 0; tries < 3 && node[1].raft.role != RAFT_LEADER; tries++) stand(lab, 1);
    expect(lab, node[1].raft.role == RAFT_LEADER && node[1].raft.term > 2, "the longest log leads");
    settle(lab);
    expect(lab, lab->decided.last == 5, "and goes on");
    come_together(lab, 1);
}

/* ---- Messages ---- */

static void malformed_append(struct lab *lab) {
    struct lab_node *node = lab->node;
    open_still(lab, 3);
    elect(lab, 1);
    lab_propose(lab, &node[1], 3);
    settle(lab);
    struct raft_message good = {.type = RAFT_APPEND,
                                .from = 1,
                                .to = 2,
                                .term = 1,
                                .index = 4,
                                .index_term = 1,
                                .entries_term = 1,
                                .count = 1,
                                .round = node[2].raft.round};
    struct raft_message bad[] = {good, good, good, good, good, good, good};
    bad[0].index = UINT64_MAX;
    bad[1].index = 2, bad[1].entries_term = 0;
    bad[2].index_term = 9;
    bad[3].index = 0, bad[3].count = UINT32_MAX;
    bad[4].entries_term = UINT64_MAX;
    bad[5].kind = RAFT_CONFIG;
    bad[6].index = 1, bad[6].index_term = 0;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct raft before = node[2].raft;
        struct raft_out out = {0};
        bool taken = raft_receive(&node[2].raft, &bad[i], NULL, &out);
        expect(lab, !taken && !out.take, "it is dropped");
        expect(lab, memcmp(&before, &node[2].raft, sizeof before) == 0, "nothing changes");
    }
    lab_propose(lab, &node[1], 1);
    settle(lab);
    expect(lab, lab->decided.last == 5, "all goes on");
    come_together(lab, 1);
}

const struct lab_schedule lab_schedules[] = {
    {"figure-8", "an older term's entry on a majority is not decided by being counted", figure_8},
    {"full-disk", "the leader's disk is full", full_disk},
    {"slow-disk", "steady load while every write takes long", slow_disk},
    {"stale-term", "the longest log is that of one who slept through terms", stale_term},
    {"malformed-append", "appends that make no sense", malformed_append},
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
