/* Replaying the steps of servers. */
#include "lab/servers/replay.h"

#include <inttypes.h>
#include <stdarg.h>

#include "base/caught.h"
#include "lab/servers/picture.h"
#include "raft/internal.h"

enum { ASKED_MAX = 1 << 24 }; /* no log in memory has more entries */

__attribute__((format(printf, 3, 4))) static int fail(struct servers_replay *r, const char *name,
                                                      const char *format, ...) {
    int length = snprintf(r->error, sizeof r->error, "%.200s: ", name);
    va_list args;
    va_start(args, format);
    vsnprintf(r->error + length, sizeof r->error - (size_t)length, format, args);
    va_end(args);
    return -1;
}

/* ---- The log ---- */

/* The core asks for one entry after the other. */
static uint64_t term_of(const void *log, uint64_t index) {
    struct servers_replay *r = (struct servers_replay *)(uintptr_t)log;
    cv_assert(r->runs && index >= r->run[0].first && ++r->asked <= ASKED_MAX);
    size_t i = r->asked_run < r->runs ? r->asked_run : r->runs - 1;
    while (r->run[i].first > index) i--;
    while (i + 1 < r->runs && r->run[i + 1].first <= index) i++;
    r->asked_run = i;
    return r->run[i].term;
}

static void add_run(struct servers_replay *r, struct raft_run run) {
    r->run = grown(r->run, &r->room, r->runs + 1, sizeof *r->run);
    r->run[r->runs++] = run;
}

/* Those before the core's oldest run are the log's still; those up to the snapshot are not. */
static void follow_runs(struct servers_replay *r) {
    const struct raft *raft = &r->raft;
    uint64_t known = raft->runs ? raft->run[0].first : raft->last_index + 1;
    size_t gone = 0;
    while (r->runs && r->run[r->runs - 1].first >= known) r->runs--;
    for (uint32_t i = 0; i < raft->runs; i++) add_run(r, raft->run[i]);
    while (gone < r->runs && (gone + 1 < r->runs ? r->run[gone + 1].first - 1 : raft->last_index) <=
                                 raft->snapshot_index)
        gone++;
    if (gone) memmove(r->run, r->run + gone, (r->runs - gone) * sizeof *r->run);
    r->runs -= gone;
    if (r->runs && r->run[0].first <= raft->snapshot_index)
        r->run[0].first = raft->snapshot_index + 1;
}

static struct judged_runs judged(const struct servers_replay *r) {
    return (struct judged_runs){r->run, r->runs};
}

/* ---- Steps ---- */

/* The message of an owner, made anew. */
static bool make_message(struct servers_replay *r, struct steps_reader *in) {
    const struct step *step = &in->step;
    struct raft_append_entries *append = &in->message.append_entries;
    if (!raft_next_append(&r->raft, step->id, step->number[0], &in->message) ||
        append->entry_count < step->number[1])
        return false;
    append->entry_count = (uint32_t)step->number[1];
    return true;
}

static int replay_step(struct servers_replay *r, struct steps_reader *in) {
    struct raft_out out;
    struct raft *raft = &r->raft;
    struct raft_run before[RAFT_RUNS_MAX];
    uint32_t runs_before = raft->runs;
    const struct step *step = &in->step;
    memset(&out, 0, offsetof(struct raft_out, message));
    memcpy(before, raft->run, runs_before * sizeof before[0]);
    r->asked = 0;
    if (step->type == STEP_SENT && !make_message(r, in))
        return fail(r, in->name, "step %" PRIu64 ": it has sent what the core did not ask for",
                    r->steps + 1);
    uint64_t result = step_take(raft, step, &out);
    if (step_hash(raft, step, &out, result) != in->hash && !r->any_hash)
        return fail(r, in->name,
                    "step %" PRIu64 " (%s) does not end as it was recorded: another core has taken "
                    "it, or the record is not true",
                    r->steps + 1, step_name(step->type));
    r->steps++;
    r->incarnation_step++;
    if (raft->runs != runs_before || memcmp(before, raft->run, runs_before * sizeof before[0]) != 0)
        follow_runs(r);
    if (r->judge) servers_judge_step(r->judge, raft, judged(r));
    if (r->picture && !servers_picture_step(r->picture, raft, step, &out, result))
        return fail(r, in->name, "too long for a picture: a million messages are too many");
    return 0;
}

/* Between what was read last and this checkpoint, of one process. */
static bool is_gap(const struct servers_replay *r, const struct checkpoint *c) {
    bool later = r->incarnation == c->incarnation && r->incarnation_step < c->step;
    return c->reason == STEPS_MISSED || later;
}

/* A file that goes on where another one ends has to begin in the same state. */
static int replay_checkpoint(struct servers_replay *r, struct steps_reader *in) {
    const struct checkpoint *c = &in->checkpoint;
    struct raft before = r->raft;
    bool follows = c->reason == STEPS_ROTATED && r->incarnation == c->incarnation &&
                   r->incarnation_step == c->step;
    before.term_of = NULL;
    before.log = NULL;
    if (follows && memcmp(&before, &c->raft, sizeof before) != 0)
        return fail(r, in->name, "it does not begin in the state in which the file before ends");
    if (c->ensemble && r->ensemble && c->ensemble != r->ensemble)
        return fail(r, in->name, "it is of another ensemble than the first record");
    if (c->ensemble) r->ensemble = c->ensemble;
    r->starts += c->reason == STEPS_BEGUN;
    r->missed += is_gap(r, c);
    r->incarnation = c->incarnation;
    r->incarnation_step = c->step;
    r->raft = c->raft;
    r->raft.term_of = term_of;
    r->raft.log = r;
    r->runs = 0;
    for (uint32_t i = 0; i < c->runs; i++) add_run(r, checkpoint_run(c, i));
    r->asked = 0;
    raft_check_invariants(&r->raft);
    if (r->judge && !follows) servers_judge_begin(r->judge, &r->raft, judged(r));
    if (r->picture) servers_picture_begin(r->picture, c);
    return 0;
}

static int replay_entries(struct servers_replay *r, struct steps_reader *in) {
    for (;;) {
        switch (steps_read(in)) {
        case STEPS_READ_EOF: return 0;
        case STEPS_READ_END: break;
        case STEPS_READ_END_MISSED: r->missed++; break;
        case STEPS_READ_BAD: memcpy(r->error, in->error, sizeof r->error); return -1;
        case STEPS_READ_CHECKPOINT:
            if (replay_checkpoint(r, in) != 0) return -1;
            break;
        case STEPS_READ_STEP:
            if (replay_step(r, in) != 0) return -1;
            break;
        }
    }
}

/* The core checks its own invariants, and a forged record may break them. */
static int replay_guarded(struct servers_replay *r, struct steps_reader *in) {
    struct caught caught;
    if (setjmp(caught.at))
        return fail(r, in->name, "after step %" PRIu64 " the core is in no possible state (%s)",
                    r->steps, caught.what);
    catcher = &caught;
    int failed = replay_entries(r, in);
    catcher = NULL;
    return failed;
}

int servers_replay_file(struct servers_replay *r, const char *name, FILE *file) {
    struct steps_reader in;
    steps_reader_open(&in, name, file);
    int failed = replay_guarded(r, &in);
    r->files++;
    r->torn += in.torn > 0;
    steps_reader_close(&in);
    return failed;
}

void servers_replay_close(struct servers_replay *r) {
    free(r->run);
    *r = (struct servers_replay){0};
}
