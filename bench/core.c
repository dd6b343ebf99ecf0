/* The consensus core alone: three members in one process, their logs in memory, messages handed
 * over as they are.  A client has so many commands outstanding; each is decided, and taken out of
 * all three logs.  Prints a line of JSON.
 *
 *   core [SECONDS [OUTSTANDING [BYTES]]]
 *
 * Twice: with as many commands in a message as there are, which is how servers under load send
 * them, and with each in a message of its own, answered on its own. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "raft/raft.h"
#include "raft/window.h"

enum { MEMBERS = 3 };

struct member {
    struct raft raft;
    struct window log;
    uint64_t applied, sum;
};

struct core {
    struct member member[MEMBERS]; /* the first leads */
    size_t size;                   /* of a command */
    unsigned outstanding;
    uint32_t most; /* commands in a message */
    /* Answers on their way to the leader, in a ring: as many as there can be. */
    struct raft_message *answer;
    size_t first, count, room;
};

static double seconds_now(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* ---- Messages ---- */

static void carry_out(struct core *core, const struct raft_out *out) {
    for (uint32_t i = 0; i < out->messages; i++) {
        const struct raft_message *m = &out->message[i];
        cv_assert(m->type == RAFT_APPENDED && core->count < core->room);
        core->answer[(core->first + core->count++) % core->room] = *m;
    }
}

static void save(struct core *core, struct member *member) {
    struct raft_out out = {0};
    struct raft *raft = &member->raft;
    raft_saved(raft, raft->last, raft_term_of(raft, raft->last), &out);
    carry_out(core, &out);
}

static void hand_over(struct core *core, struct member *to, const struct raft_message *m,
                      const struct raft_batch *batch) {
    struct raft_out out = {0};
    cv_assert(raft_receive(&to->raft, m, NULL, &out));
    cv_assert(!out.take || out.take_first == batch->first);
    if (out.take) cv_assert(window_append(&to->log, batch));
    carry_out(core, &out);
    if (out.take) save(core, to);
}

static void replicate(struct core *core, struct member *to) {
    struct member *leader = &core->member[0];
    struct raft_message m;
    struct raft_batch batch;
    while (raft_append_for(&leader->raft, to->raft.self, UINT64_MAX, &m)) {
        batch = (struct raft_batch){0};
        if (m.count > core->most) m.count = core->most;
        if (m.count)
            window_read(&leader->log, m.index + 1, m.count * (core->size + RAFT_SIZE_BYTES),
                        &batch);
        cv_assert(batch.count == m.count);
        raft_sent(&leader->raft, &m);
        hand_over(core, to, &m, &batch);
    }
}

static void answer_leader(struct core *core) {
    struct raft_out out = {0};
    struct raft_message m = core->answer[core->first];
    core->first = (core->first + 1) % core->room;
    core->count--;
    cv_assert(raft_receive(&core->member[0].raft, &m, NULL, &out));
    carry_out(core, &out);
}

/* ---- Commands ---- */

static void propose(struct core *core, unsigned count) {
    struct member *leader = &core->member[0];
    cv_assert(raft_propose(&leader->raft, count));
    for (unsigned i = 0; i < count; i++) {
        memset(window_room(&leader->log, core->size), 'c', core->size);
        window_add(&leader->log, leader->raft.term, RAFT_NORMAL, core->size);
    }
    save(core, leader);
    for (unsigned i = 1; i < MEMBERS; i++) replicate(core, &core->member[i]);
}

static void apply(struct member *member) {
    struct raft_entry entry;
    if (member->applied == member->raft.committed) return;
    while (member->applied < member->raft.committed) {
        window_entry(&member->log, ++member->applied, &entry);
        member->sum += entry.bytes[entry.size - 1];
    }
    window_trim(&member->log, member->applied);
    raft_trimmed(&member->raft, member->applied);
}

static void turn(struct core *core, unsigned count) {
    const struct raft *leader = &core->member[0].raft;
    while (leader->last - leader->committed + count > core->outstanding) answer_leader(core);
    propose(core, count);
    for (unsigned i = 0; i < MEMBERS; i++) apply(&core->member[i]);
}

/* ---- Beginning ---- */

static void elect(struct core *core) {
    struct raft *leader = &core->member[0].raft;
    struct raft_out out = {0};
    while (leader->role != RAFT_SOUNDING) raft_waited(leader, &out);
    while (leader->role != RAFT_LEADER) {
        uint8_t pre = leader->role == RAFT_SOUNDING ? RAFT_PRE : 0;
        struct raft_message vote = {.type = RAFT_VOTED,
                                    .from = 2,
                                    .to = leader->self,
                                    .term = leader->term,
                                    .flags = (uint8_t)(RAFT_GRANTED | pre)};
        cv_assert(raft_receive(leader, &vote, NULL, &out));
    }
}

/* The leader's first entry is the config; it has gone round before the clock runs. */
static void begin(struct core *core) {
    struct raft_config config = {
        .mark = 1, .count = MEMBERS, .at = {{1, 0, 1}, {2, 0, 1}, {3, 0, 1}}};
    for (uint8_t i = 0; i < MEMBERS; i++) {
        struct member *member = &core->member[i];
        struct raft_out out = {0};
        raft_open(&member->raft, i + 1, 0, 0);
        raft_restore_base(&member->raft, 0, 0, &config);
        raft_begin(&member->raft, 0, &out);
        window_open(&member->log, 0);
    }
    struct member *leader = &core->member[0];
    elect(core);
    memset(window_room(&leader->log, core->size), 0, core->size);
    window_add(&leader->log, leader->raft.term, RAFT_NORMAL, core->size);
    save(core, leader);
    while (leader->raft.committed < leader->raft.last) {
        for (unsigned i = 1; i < MEMBERS; i++) replicate(core, &core->member[i]);
        while (core->count) answer_leader(core);
    }
}

static void end(struct core *core) {
    for (unsigned i = 0; i < MEMBERS; i++) window_close(&core->member[i].log);
    free(core->answer);
}

static double commits_per_second(double seconds, unsigned outstanding, size_t size, uint32_t most,
                                 unsigned each_turn) {
    struct core core = {.size = size, .outstanding = outstanding, .most = most};
    core.room = 16 * (size_t)outstanding + 64;
    core.answer = malloc(core.room * sizeof *core.answer);
    cv_assert(core.answer);
    begin(&core);
    double start = seconds_now(), now = start;
    uint64_t before = core.member[0].raft.committed;
    while ((now = seconds_now()) < start + seconds)
        for (unsigned i = 0; i < 1000; i += each_turn) turn(&core, each_turn);
    double rate = (double)(core.member[0].raft.committed - before) / (now - start);
    for (unsigned i = 0; i < MEMBERS; i++)
        cv_assert(core.member[i].applied > before && core.member[i].sum);
    end(&core);
    return rate;
}

int main(int argc, char **argv) {
    double seconds = argc > 1 ? atof(argv[1]) : 2;
    unsigned outstanding = argc > 2 ? (unsigned)atoi(argv[2]) : 1000;
    size_t size = argc > 3 ? (size_t)atoi(argv[3]) : 100;
    if (seconds <= 0 || outstanding < 10 || outstanding > 100000 || !size || size > 1 << 20) {
        fputs("Usage: core [SECONDS [OUTSTANDING (from 10) [BYTES]]]\n", stderr);
        return 2;
    }
    /* A tenth at a time, so that some are always on their way. */
    double batched = commits_per_second(seconds, outstanding, size, UINT32_MAX, outstanding / 10);
    double single = commits_per_second(seconds, outstanding, size, 1, 1);
    printf("{\"outstanding\": %u, \"bytes\": %zu, \"batched_per_second\": %.0f, "
           "\"single_per_second\": %.0f}\n",
           outstanding, size, batched, single);
}
