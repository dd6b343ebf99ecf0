/* The consensus core: messages with any values, in any order, among a member's other events.  What
 * is committed stays, and no invariant breaks.
 *
 *   event: one byte, its argument: one byte, and for an odd event a message (fuzz_raft.h) */
#include "fuzz_raft.h"

enum { ENTRIES_MAX = 4096 };

struct member {
    struct raft raft;
    uint64_t term[ENTRIES_MAX]; /* of committed entries */
    uint64_t commit_index;
    uint64_t log[ENTRIES_MAX]; /* the terms of all entries, as an owner has them */
};

static uint64_t term_of(const void *log, uint64_t index) {
    return ((const uint64_t *)log)[index % ENTRIES_MAX];
}

/* The owner has what is new: it is in the newest runs. */
static void note_terms(struct member *m, const struct raft_out *out, uint64_t last) {
    struct raft *raft = &m->raft;
    if (out->append_entries && out->append_from <= last) last = out->append_from - 1;
    for (uint64_t i = last + 1; i <= raft->last_index; i++)
        m->log[i % ENTRIES_MAX] = raft_term_at(raft, i);
}

static const struct raft_config members = {.count = 3, .at = {{1, 0, 1}, {2, 0, 2}, {3, 0, 1}}};
static const struct raft_config fewer = {.hash = 1, .count = 2, .at = {{1, 0, 1}, {2, 0, 2}}};

static void check(struct member *m, const struct raft_out *out) {
    struct raft *raft = &m->raft;
    cv_assert(raft->commit_index >= m->commit_index);
    for (uint64_t i = raft->snapshot_index; i <= m->commit_index && i < ENTRIES_MAX; i++)
        if (i && m->term[i]) cv_assert(raft_term_at(raft, i) == m->term[i]);
    for (uint64_t i = m->commit_index + 1; i <= raft->commit_index && i < ENTRIES_MAX; i++)
        m->term[i] = i >= raft->snapshot_index ? raft_term_at(raft, i) : 0;
    m->commit_index = raft->commit_index;
    for (uint32_t i = 0; i < out->messages; i++) cv_assert(out->message[i].from == raft->self);
}

/* A frame holds so many entries here: the core takes the time that their number asks for. */
enum { ENTRY_COUNT_MAX = 63 };

static void receive(struct member *m, struct fuzz_bytes *bytes, struct raft_out *out) {
    struct raft_message message = fuzz_read_message(bytes);
    bool append = message.type == RAFT_APPEND_ENTRIES;
    message.to = m->raft.self;
    if (append) message.append_entries.entry_count %= ENTRY_COUNT_MAX + 1;
    bool is_config = append && message.append_entries.entry_kind == RAFT_CONFIG;
    raft_receive(&m->raft, &message, is_config ? &fewer : NULL, out);
}

static void send_all(struct member *m, uint8_t entries_max) {
    struct raft_message message;
    for (uint8_t id = 2; id <= 3; id++)
        for (int i = 0; i < 4 && raft_next_append(&m->raft, id, UINT64_MAX, &message); i++) {
            if (message.append_entries.entry_count > entries_max)
                message.append_entries.entry_count = entries_max;
            raft_append_sent(&m->raft, &message);
        }
}

static void happen(struct member *m, uint8_t event, uint8_t argument, struct raft_out *out) {
    struct raft *raft = &m->raft;
    uint8_t other = 2 + (argument & 1);
    switch (event % 9) {
    case 0: raft_timer_fired(raft, out); break;
    case 1: raft_heartbeat(raft); break;
    case 2:
        if (raft->last_index > raft->durable_index)
            raft_entries_durable(raft, raft->last_index, raft_term_at(raft, raft->last_index), out);
        break;
    case 3: raft_propose(raft, 1 + argument % 8); break;
    case 4: raft_peer_disconnected(raft, other); break;
    case 5: raft_peer_connected(raft, other); break;
    case 6: raft_peer_down(raft, other, out); break;
    case 7: raft_transfer_leadership(raft, other, out); break;
    case 8:
        if (raft->durable_index >= raft->commit_index) raft_compacted(raft, raft->commit_index);
        break;
    }
    send_all(m, argument);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
    static struct member m;
    struct raft_out out = {0};
    memset(&m, 0, sizeof m);
    raft_open(&m.raft, 1, 0, 0);
    m.raft.term_of = term_of;
    m.raft.log = m.log;
    raft_restore_snapshot(&m.raft, 0, 0, &members);
    raft_start(&m.raft, 0, &out);
    struct fuzz_bytes input = {bytes, size};
    while (input.left >= 2) {
        uint8_t event = (uint8_t)fuzz_read_number(&input, 1),
                argument = (uint8_t)fuzz_read_number(&input, 1);
        memset(&out, 0, sizeof out);
        uint64_t last = m.raft.last_index;
        if (last + 2 * ENTRY_COUNT_MAX > m.raft.snapshot_index + ENTRIES_MAX) break;
        if (event & 1)
            receive(&m, &input, &out);
        else
            happen(&m, event >> 1, argument, &out);
        note_terms(&m, &out, last);
        check(&m, &out);
    }
    return 0;
}
