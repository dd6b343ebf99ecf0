/* The consensus core and messages that say anything, in any order, among the events of a member's
 * life: what was decided stays, and nothing breaks.
 *
 *   event: one byte, its argument: one byte, and for a message its 64 bytes as they are */
#include "raft/raft.h"

#include <string.h>

enum { ENTRIES_MAX = 4096 };

struct member {
    struct raft raft;
    uint64_t term[ENTRIES_MAX]; /* of what was decided */
    uint64_t decided;
};

static const struct raft_config members = {.count = 3, .at = {{1, 0, 1}, {2, 0, 2}, {3, 0, 1}}};
static const struct raft_config fewer = {.mark = 1, .count = 2, .at = {{1, 0, 1}, {2, 0, 2}}};

static void carry_out(struct member *m, const struct raft_out *out) {
    struct raft *raft = &m->raft;
    cv_assert(raft->committed >= m->decided);
    for (uint64_t i = raft->base; i <= m->decided && i < ENTRIES_MAX; i++)
        if (i && m->term[i]) cv_assert(raft_term_of(raft, i) == m->term[i]);
    for (uint64_t i = m->decided + 1; i <= raft->committed && i < ENTRIES_MAX; i++)
        m->term[i] = i >= raft->base ? raft_term_of(raft, i) : 0;
    m->decided = raft->committed;
    for (uint32_t i = 0; i < out->messages; i++) cv_assert(out->message[i].from == raft->self);
}

static void receive(struct member *m, const uint8_t *bytes, struct raft_out *out) {
    struct raft_message message;
    memcpy(&message, bytes, sizeof message);
    message.to = m->raft.self;
    message.count %= 64; /* as many as a frame could hold here */
    raft_receive(&m->raft, &message, message.kind == RAFT_CONFIG ? &fewer : NULL, out);
}

static void send_all(struct member *m, uint8_t most) {
    struct raft_message message;
    for (uint8_t id = 2; id <= 3; id++)
        for (int i = 0; i < 4 && raft_append_for(&m->raft, id, UINT64_MAX, &message); i++) {
            if (message.count > most) message.count = most;
            raft_sent(&m->raft, &message);
        }
}

static void happen(struct member *m, uint8_t event, uint8_t argument, struct raft_out *out) {
    struct raft *raft = &m->raft;
    uint8_t other = 2 + (argument & 1);
    switch (event % 9) {
    case 0: raft_waited(raft, out); break;
    case 1: raft_beat(raft); break;
    case 2:
        if (raft->last > raft->saved)
            raft_saved(raft, raft->last, raft_term_of(raft, raft->last), out);
        break;
    case 3: raft_propose(raft, 1 + argument % 8); break;
    case 4: raft_lost(raft, other); break;
    case 5: raft_found(raft, other); break;
    case 6: raft_gone(raft, other, out); break;
    case 7: raft_transfer(raft, other, out); break;
    case 8:
        if (raft->saved >= raft->committed) raft_trimmed(raft, raft->committed);
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
    raft_restore_base(&m.raft, 0, 0, &members);
    raft_begin(&m.raft, 0, &out);
    for (size_t at = 0; size - at >= 2;) {
        uint8_t event = bytes[at], argument = bytes[at + 1];
        at += 2;
        memset(&out, 0, sizeof out);
        if (event & 1 && size - at >= sizeof(struct raft_message)) {
            receive(&m, bytes + at, &out);
            at += sizeof(struct raft_message);
        } else {
            happen(&m, event >> 1, argument, &out);
        }
        carry_out(&m, &out);
    }
    return 0;
}
