/* Entries of the record as bytes. */
#include "base/little.h"
#include "service/steps/record.h"

static unsigned char *put(unsigned char *to, uint64_t number) {
    for (; number >= 128; number >>= 7) *to++ = (unsigned char)(number | 128);
    *to++ = (unsigned char)number;
    return to;
}

static unsigned char *put_message(unsigned char *to, const struct raft_message *m) {
    *to++ = m->type;
    *to++ = m->from;
    *to++ = m->to;
    to = put(to, m->term);
    switch ((enum raft_message_type)m->type) {
#define PUT_FIELD_(TYPE, NAME, FROM) to = put(to, body->NAME);
#define PUT_(NUMBER, NAME, TITLE)                                                                  \
    case NUMBER: {                                                                                 \
        const struct raft_##NAME *body = &m->NAME;                                                 \
        RAFT_FIELDS_##NAME(PUT_FIELD_) break;                                                      \
    }
        RAFT_MESSAGES(PUT_)
    case RAFT_MESSAGE_TYPES: break;
    }
    return to;
}

size_t steps_write(unsigned char *to, const struct step *step, uint32_t hash) {
    unsigned char *begin = to;
    *to++ = step->type;
    put32(to, hash);
    to += 4;
    if (step_shapes[step->type].ids) *to++ = step->id;
    for (unsigned i = 0; i < step_shapes[step->type].numbers; i++) to = put(to, step->number[i]);
    if (step->type == STEP_RECEIVE) {
        *to++ = step->config != NULL;
        to = put_message(to, step->message);
    }
    if (step->config) {
        memcpy(to, step->config, sizeof *step->config);
        to += sizeof *step->config;
    }
    return (size_t)(to - begin);
}

/* ---- Checkpoints ---- */

/* Terms grow along a log, so the end of a run is found by halving. */
static uint64_t last_of_run(const struct raft *raft, uint64_t first, uint64_t end) {
    uint64_t term = raft_term_at(raft, first);
    while (first + 1 < end) {
        uint64_t middle = first + (end - first) / 2;
        if (raft_term_at(raft, middle) == term)
            first = middle;
        else
            end = middle;
    }
    return first;
}

/* Those that the core has forgotten, too. */
static uint32_t put_runs(struct bytes *to, const struct raft *raft) {
    uint32_t count = 0;
    for (uint64_t at = raft->snapshot_index + 1; at <= raft->last_index; count++) {
        struct raft_run run = {at, raft_term_at(raft, at)};
        bytes_add(to, &run, sizeof run);
        at = last_of_run(raft, at, raft->last_index + 1) + 1;
    }
    return count;
}

void steps_write_checkpoint(struct bytes *to, const struct checkpoint *checkpoint,
                            const struct raft *raft) {
    struct raft state = *raft;
    unsigned char head[1 + 4 + 1 + 4 + 4 * 8];
    state.term_of = NULL;
    state.log = NULL;
    head[0] = STEPS_CHECKPOINT;
    put32(head + 1, STEPS_MAGIC);
    head[5] = checkpoint->reason;
    put32(head + 6, sizeof state);
    put64(head + 10, checkpoint->incarnation);
    put64(head + 18, checkpoint->ensemble);
    put64(head + 26, checkpoint->step);
    put64(head + 34, checkpoint->time_ms);
    bytes_add(to, head, sizeof head);
    bytes_add(to, &state, sizeof state);
    size_t count_at = to->used;
    bytes_extend(to, 4);
    uint32_t runs = put_runs(to, raft);
    put32(to->at + count_at, runs);
}
