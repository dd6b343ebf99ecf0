/* Reading the record of a server. */
#include <errno.h>

#include "base/crc32c.h"
#include "base/little.h"
#include "service/steps/record.h"

enum { CHECKPOINT_HEAD = 42 };
#define TERM_MAX INT32_MAX

/* ---- Blocks ---- */

static enum steps_read refuse(struct steps_reader *r, const char *why) {
    snprintf(r->error, sizeof r->error, "%.200s: %s", r->name, why);
    return STEPS_READ_BAD;
}

bool steps_is_record(FILE *file) {
    unsigned char begin[STEPS_BLOCK_HEAD + 5];
    return fread(begin, 1, sizeof begin, file) == sizeof begin &&
           begin[STEPS_BLOCK_HEAD] == STEPS_CHECKPOINT &&
           get32(begin + STEPS_BLOCK_HEAD + 1) == STEPS_MAGIC;
}

void steps_reader_open(struct steps_reader *r, const char *name, FILE *file) {
    *r = (struct steps_reader){.name = name, .file = file, .at_begin = true};
}

void steps_reader_close(struct steps_reader *r) {
    if (r->file) fclose(r->file);
    bytes_close(&r->block);
    r->file = NULL;
}

static enum steps_read torn(struct steps_reader *r, size_t size) {
    r->torn = size;
    return STEPS_READ_EOF;
}

/* STEPS_READ_STEP: there is another block.  A last block that is not whole was being written when
 * the machine stopped. */
static enum steps_read next_block(struct steps_reader *r) {
    unsigned char head[STEPS_BLOCK_HEAD];
    size_t got = fread(head, 1, sizeof head, r->file);
    if (got < sizeof head) return ferror(r->file) ? refuse(r, strerror(errno)) : torn(r, got);
    size_t size = get32(head);
    if (!size || size > STEPS_BLOCK_MAX)
        return refuse(r, "it is damaged: a block has no such size");
    r->block.used = r->at = 0;
    got = fread(bytes_reserve(&r->block, size), 1, size, r->file);
    if (got < size && ferror(r->file)) return refuse(r, strerror(errno));
    if (got < size) return torn(r, sizeof head + got);
    r->block.used = size;
    if (crc32c(0, r->block.at, size) == get32(head + 4)) return STEPS_READ_STEP;
    if (fgetc(r->file) == EOF) return torn(r, sizeof head + size);
    return refuse(r, "it is damaged: the checksum of a block is wrong");
}

/* ---- Entries ---- */

struct cursor {
    const unsigned char *at, *end;
    bool bad;
};

static uint64_t get(struct cursor *in) {
    uint64_t number = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
        if (in->at == in->end) break;
        unsigned char byte = *in->at++;
        if (shift == 63 && byte > 1) break;
        number |= (uint64_t)(byte & 127) << shift;
        if (byte < 128) return number;
    }
    in->bad = true;
    return 0;
}

static uint64_t get_up_to(struct cursor *in, uint64_t max) {
    uint64_t number = get(in);
    if (number > max) in->bad = true;
    return in->bad ? 0 : number;
}

static const unsigned char *get_bytes(struct cursor *in, size_t size) {
    const unsigned char *at = in->at;
    if ((size_t)(in->end - at) < size) {
        in->bad = true;
        return NULL;
    }
    in->at += size;
    return at;
}

static uint8_t get_byte(struct cursor *in) {
    const unsigned char *at = get_bytes(in, 1);
    return at ? *at : 0;
}

#define MAX_u8  UINT8_MAX
#define MAX_u32 UINT32_MAX
#define MAX_u64 UINT64_MAX

static void get_message(struct cursor *in, struct raft_message *m) {
    memset(m, 0, sizeof *m);
    m->type = get_byte(in);
    m->from = get_byte(in);
    m->to = get_byte(in);
    m->term = get(in);
    switch (m->type) {
#define GET_FIELD_(TYPE, NAME, FROM) body->NAME = (RAFT_CTYPE_##TYPE)get_up_to(in, MAX_##TYPE);
#define GET_(NUMBER, NAME, TITLE)                                                                  \
    case NUMBER: {                                                                                 \
        struct raft_##NAME *body = &m->NAME;                                                       \
        RAFT_FIELDS_##NAME(GET_FIELD_) break;                                                      \
    }
        RAFT_MESSAGES(GET_)
    default: in->bad = true;
    }
    if (m->type == RAFT_APPEND_ENTRIES && m->append_entries.entry_count > STEPS_ENTRIES_MAX)
        in->bad = true;
}

static void get_config(struct cursor *in, struct steps_reader *r, bool checked) {
    const unsigned char *at = get_bytes(in, sizeof r->config);
    if (!at) return;
    memcpy(&r->config, at, sizeof r->config);
    r->step.config = &r->config;
    if (r->config.count > RAFT_MEMBERS_MAX || (checked && !raft_config_is_valid(&r->config)))
        in->bad = true;
}

/* What an owner promises of its arguments. */
static bool is_allowed(const struct step *step) {
    const uint64_t *number = step->number;
    switch (step->type) {
    case STEP_DURABLE:
    case STEP_INSTALLED: return number[0] <= RAFT_INDEX_MAX && number[1] <= TERM_MAX;
    case STEP_PROPOSE: return number[0] && number[0] <= STEPS_ENTRIES_MAX;
    case STEP_SENT: return number[1] <= STEPS_ENTRIES_MAX;
    default: return true;
    }
}

static enum steps_read read_step(struct steps_reader *r, struct cursor *in, uint8_t type) {
    struct step *step = &r->step;
    *step = (struct step){.type = type, .message = &r->message};
    if (!type || type >= STEP_TYPES) return refuse(r, "it has an entry of no known kind");
    const unsigned char *hash = get_bytes(in, 4);
    r->hash = hash ? get32(hash) : 0;
    if (step_shapes[type].ids) step->id = get_byte(in);
    for (unsigned i = 0; i < step_shapes[type].numbers; i++) step->number[i] = get(in);
    if (type == STEP_RECEIVE) {
        uint8_t has_config = get_byte(in);
        get_message(in, &r->message);
        if (has_config) get_config(in, r, false);
    } else if (type == STEP_INSTALLED || type == STEP_CHANGE || type == STEP_ADMIT) {
        get_config(in, r, true);
    }
    if (in->bad || !is_allowed(step)) return refuse(r, "it has a step that no server records");
    return STEPS_READ_STEP;
}

/* ---- Checkpoints ---- */

/* The runs are those of a log after the snapshot, and the core has the newest. */
static bool runs_fit(const struct checkpoint *c) {
    const struct raft *raft = &c->raft;
    uint64_t first = raft->snapshot_index + 1, term = raft->snapshot_term;
    if (!c->runs != (raft->last_index == raft->snapshot_index)) return false;
    if (raft->runs > RAFT_RUNS_MAX || raft->runs > c->runs) return false;
    for (uint32_t i = 0; i < c->runs; i++) {
        struct raft_run run = checkpoint_run(c, i);
        bool follows = i ? run.first > first && run.term > term : run.first == first;
        if (!follows || run.term < term || run.first > raft->last_index) return false;
        first = run.first;
        term = run.term;
        uint32_t known = c->runs - raft->runs;
        if (i >= known && memcmp(&run, &raft->run[i - known], sizeof run) != 0) return false;
    }
    return true;
}

static bool state_fits(const struct checkpoint *c) {
    const struct raft *raft = &c->raft;
    if (!raft_config_is_valid(&raft->config) || !raft_config_is_valid(&raft->previous_config))
        return false;
    for (unsigned i = 0; i < RAFT_MEMBERS_MAX; i++)
        if (raft->peer[i].mode > RAFT_SNAPSHOT || raft->peer[i].next_index > RAFT_INDEX_MAX + 1 ||
            raft->peer[i].match_index > RAFT_INDEX_MAX)
            return false;
    return raft->self && raft->role <= RAFT_LEADER && raft->term <= TERM_MAX &&
           raft->last_index <= RAFT_INDEX_MAX && raft->snapshot_index <= raft->last_index &&
           raft->round <= RAFT_INDEX_MAX && raft->pledge <= RAFT_INDEX_MAX && runs_fit(c);
}

static enum steps_read read_checkpoint(struct steps_reader *r, struct cursor *in) {
    struct checkpoint *c = &r->checkpoint;
    const unsigned char *head = get_bytes(in, CHECKPOINT_HEAD - 1);
    if (!head || get32(head) != STEPS_MAGIC) return refuse(r, "this is no record of a server");
    if (get32(head + 5) != sizeof c->raft)
        return refuse(r, "it is of a version of Conclave whose core has another state");
    *c = (struct checkpoint){.reason = head[4],
                             .incarnation = get64(head + 9),
                             .ensemble = get64(head + 17),
                             .step = get64(head + 25),
                             .time_ms = get64(head + 33)};
    const unsigned char *state = get_bytes(in, sizeof c->raft), *count = get_bytes(in, 4);
    if (!state || !count) return refuse(r, "it has a checkpoint that is cut off");
    memcpy(&c->raft, state, sizeof c->raft);
    c->raft.term_of = NULL;
    c->raft.log = NULL;
    c->runs = get32(count);
    c->run = get_bytes(in, c->runs * sizeof(struct raft_run));
    if (!c->run || c->reason >= STEPS_REASONS || !state_fits(c))
        return refuse(r, "it has a checkpoint with a state that no server can be in");
    return STEPS_READ_CHECKPOINT;
}

enum steps_read steps_read(struct steps_reader *r) {
    if (r->at == r->block.used) {
        enum steps_read found = next_block(r);
        if (found == STEPS_READ_EOF && r->at_begin)
            return refuse(r, "this is no record, or it has not one whole step");
        if (found != STEPS_READ_STEP) return found;
    }
    struct cursor in = {r->block.at + r->at, r->block.at + r->block.used, false};
    uint8_t type = get_byte(&in);
    if (r->at_begin && type != STEPS_CHECKPOINT) return refuse(r, "this is no record of a server");
    enum steps_read found = type == STEPS_CHECKPOINT   ? read_checkpoint(r, &in)
                            : type == STEPS_END        ? STEPS_READ_END
                            : type == STEPS_END_MISSED ? STEPS_READ_END_MISSED
                                                       : read_step(r, &in, type);
    r->at_begin = false;
    r->at = (size_t)(in.at - r->block.at);
    return found;
}
