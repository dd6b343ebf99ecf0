/* The consensus core alone: three members in one process, their logs in memory, messages passed as
 * structs.  A client has so many commands outstanding; each is committed, applied, and compacted
 * out of all three logs.  Prints a line of JSON.
 *
 *   core [SECONDS [OUTSTANDING [BYTES]]]
 *
 * Twice: with as many commands in a message as there are, which is how servers under load send
 * them, and with each in a message of its own, acknowledged on its own. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "raft/raft.h"
#include "service/log/window.h"

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
    uint32_t batch_max; /* commands in a message */
    /* Responses on their way to the leader, in a ring that is large enough for all. */
    struct raft_message *response;
    size_t first, count, capacity;
};

static double seconds_now(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* ---- Messages ---- */

static void queue_responses(struct core *core, const struct raft_out *out) {
    for (uint32_t i = 0; i < out->messages; i++) {
        const struct raft_message *m = &out->message[i];
        cv_assert(m->type == RAFT_APPEND_ENTRIES_RESPONSE && core->count < core->capacity);
        core->response[(core->first + core->count++) % core->capacity] = *m;
    }
}

static void make_durable(struct core *core, struct member *member) {
    struct raft_out out = {0};
    struct raft *raft = &member->raft;
    raft_entries_durable(raft, raft->last_index, raft_term_at(raft, raft->last_index), &out);
    queue_responses(core, &out);
}

static void deliver(struct core *core, struct member *to, const struct raft_message *m,
                    const struct raft_batch *batch) {
    struct raft_out out = {0};
    cv_assert(raft_receive(&to->raft, m, NULL, &out));
    cv_assert(!out.append_entries || out.append_from == batch->first);
    if (out.append_entries) cv_assert(window_append(&to->log, batch));
    queue_responses(core, &out);
    if (out.append_entries) make_durable(core, to);
}

static void replicate(struct core *core, struct member *to) {
    struct member *leader = &core->member[0];
    struct raft_message m;
    struct raft_batch batch;
    while (raft_next_append(&leader->raft, to->raft.self, UINT64_MAX, &m)) {
        batch = (struct raft_batch){0};
        struct raft_append_entries *append = &m.append_entries;
        if (append->entry_count > core->batch_max) append->entry_count = core->batch_max;
        if (append->entry_count)
            window_read(&leader->log, append->prev_log_index + 1,
                        append->entry_count * (core->size + RAFT_SIZE_BYTES), &batch);
        cv_assert(batch.count == append->entry_count);
        raft_append_sent(&leader->raft, &m);
        deliver(core, to, &m, &batch);
    }
}

static void deliver_response(struct core *core) {
    struct raft_out out = {0};
    struct raft_message m = core->response[core->first];
    core->first = (core->first + 1) % core->capacity;
    core->count--;
    cv_assert(raft_receive(&core->member[0].raft, &m, NULL, &out));
    queue_responses(core, &out);
}

/* ---- Commands ---- */

static void propose(struct core *core, unsigned count) {
    struct member *leader = &core->member[0];
    cv_assert(raft_propose(&leader->raft, count));
    for (unsigned i = 0; i < count; i++) {
        memset(window_room(&leader->log, core->size), 'c', core->size);
        window_add(&leader->log, leader->raft.term, RAFT_NORMAL, core->size);
    }
    make_durable(core, leader);
    for (unsigned i = 1; i < MEMBERS; i++) replicate(core, &core->member[i]);
}

static void apply(struct member *member) {
    struct raft_entry entry;
    if (member->applied == member->raft.commit_index) return;
    while (member->applied < member->raft.commit_index) {
        window_entry(&member->log, ++member->applied, &entry);
        member->sum += entry.bytes[entry.size - 1];
    }
    window_trim(&member->log, member->applied);
    raft_compacted(&member->raft, member->applied);
}

static void iterate(struct core *core, unsigned count) {
    const struct raft *leader = &core->member[0].raft;
    while (leader->last_index - leader->commit_index + count > core->outstanding)
        deliver_response(core);
    propose(core, count);
    for (unsigned i = 0; i < MEMBERS; i++) apply(&core->member[i]);
}

/* ---- Start ---- */

static void elect(struct core *core) {
    struct raft *leader = &core->member[0].raft;
    struct raft_out out = {0};
    while (leader->role != RAFT_PRE_CANDIDATE) raft_timer_fired(leader, &out);
    while (leader->role != RAFT_LEADER) {
        struct raft_message vote = {.type = RAFT_REQUEST_VOTE_RESPONSE,
                                    .from = 2,
                                    .to = leader->self,
                                    .term = leader->term};
        vote.request_vote_response.vote_granted = 1;
        vote.request_vote_response.pre_vote = leader->role == RAFT_PRE_CANDIDATE;
        cv_assert(raft_receive(leader, &vote, NULL, &out));
    }
}

/* The leader's first entry is the configuration; it is committed before the clock runs. */
static void start(struct core *core) {
    struct raft_config config = {
        .hash = 1, .count = MEMBERS, .at = {{1, 0, 1}, {2, 0, 1}, {3, 0, 1}}};
    for (uint8_t i = 0; i < MEMBERS; i++) {
        struct member *member = &core->member[i];
        struct raft_out out = {0};
        raft_open(&member->raft, i + 1, 0, 0);
        raft_restore_snapshot(&member->raft, 0, 0, &config);
        raft_start(&member->raft, 0, &out);
        window_open(&member->log, 0);
    }
    struct member *leader = &core->member[0];
    elect(core);
    memset(window_room(&leader->log, core->size), 0, core->size);
    window_add(&leader->log, leader->raft.term, RAFT_NORMAL, core->size);
    make_durable(core, leader);
    while (leader->raft.commit_index < leader->raft.last_index) {
        for (unsigned i = 1; i < MEMBERS; i++) replicate(core, &core->member[i]);
        while (core->count) deliver_response(core);
    }
}

static void end(struct core *core) {
    for (unsigned i = 0; i < MEMBERS; i++) window_close(&core->member[i].log);
    free(core->response);
}

static double commits_per_second(double seconds, unsigned outstanding, size_t size,
                                 uint32_t batch_max, unsigned each_iteration) {
    struct core core = {.size = size, .outstanding = outstanding, .batch_max = batch_max};
    core.capacity = 16 * (size_t)outstanding + 64;
    core.response = malloc(core.capacity * sizeof *core.response);
    cv_assert(core.response);
    start(&core);
    double began = seconds_now(), now = began;
    uint64_t before = core.member[0].raft.commit_index;
    while ((now = seconds_now()) < began + seconds)
        for (unsigned i = 0; i < 1000; i += each_iteration) iterate(&core, each_iteration);
    double rate = (double)(core.member[0].raft.commit_index - before) / (now - began);
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
    /* A tenth at a time, so that some are always in flight. */
    double batched = commits_per_second(seconds, outstanding, size, UINT32_MAX, outstanding / 10);
    double single = commits_per_second(seconds, outstanding, size, 1, 1);
    printf("{\"outstanding\": %u, \"bytes\": %zu, \"batched_per_second\": %.0f, "
           "\"single_per_second\": %.0f}\n",
           outstanding, size, batched, single);
}
