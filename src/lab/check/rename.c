/* Symmetry reduction: states that differ only by a permutation of processes are one.
 *
 * The field tables say where a state or a message names a process, and which process a row is
 * about, so a permutation (renaming) can be applied to the bytes of any algorithm.  Of the orbit of
 * a state the least member is kept as the canonical representative (Clarke, Enders, Filkorn & Jha,
 * Exploiting symmetry in temporal logic model checking, 1996). */
#include <stdlib.h>

#include "lab/check/explore.h"

/* ---- The renamings ---- */

static void add_renaming(struct renamings *r, const cv_pid *renaming) {
    r->of = realloc(r->of, (r->count + 1) * sizeof *r->of);
    cv_assert(r->of);
    memcpy(r->of[r->count++], renaming, sizeof *r->of);
}

/* All permutations of the processes from `at` to `last`, combined with all of those after `last`.
 */
static void permute(struct renamings *r, cv_pid *renaming, cv_pid at, cv_pid last, cv_pid end) {
    if (at > last) {
        if (last == end)
            add_renaming(r, renaming);
        else
            permute(r, renaming, last + 1, end, end);
        return;
    }
    for (cv_pid i = at; i <= last; i++) {
        cv_pid chosen = renaming[i];
        renaming[i] = renaming[at], renaming[at] = chosen;
        permute(r, renaming, at + 1, last, end);
        renaming[at] = renaming[i], renaming[i] = chosen;
    }
}

void renamings_open(struct renamings *r, const struct check_model *model) {
    cv_pid renaming[CHECK_PROCESSES_MAX + 1] = {0};
    const struct cv_algorithm *code = model->algorithm;
    *r = (struct renamings){0};
    for (cv_pid p = 1; p <= model->processes; p++) renaming[p] = p;
    if (code->traits & CV_SYMMETRIC) {
        if (model->servers)
            permute(r, renaming, 1, model->servers, model->processes);
        else
            permute(r, renaming, 1, model->processes, model->processes);
    } else if (code->traits & CV_ANONYMOUS && code->topology == CV_RING) {
        for (uint32_t turn = 0; turn < model->processes; turn++) {
            for (cv_pid p = 1; p <= model->processes; p++)
                renaming[p] = (p - 1 + turn) % model->processes + 1;
            add_renaming(r, renaming);
        }
    }
}

void renamings_close(struct renamings *r) {
    free(r->of);
    *r = (struct renamings){0};
}

/* ---- Applying a renaming ---- */

static void rename_fields(const struct cv_field *fields, unsigned count, unsigned char *bytes,
                          const cv_pid *renaming) {
    for (unsigned i = 0; i < count; i++) {
        cv_pid *pids = (cv_pid *)(void *)(bytes + fields[i].offset);
        if (fields[i].type == CV_PID || fields[i].type == CV_QUEUE || fields[i].type == CV_LINK)
            pids[0] = renaming[pids[0]];
        if (fields[i].type == CV_QUEUE || fields[i].type == CV_LINK) pids[1] = renaming[pids[1]];
    }
}

static void rename_state(const struct system *system, const struct local *from, struct local *to,
                         const cv_pid *renaming) {
    const struct cv_record *record = system->model->algorithm->state;
    const struct local_layout *layout = &system->layout[from->self];
    const unsigned char *old = local_state(from) + record->size;
    unsigned char *new = local_state(to) + record->size;
    memcpy(local_state(to), local_state(from), record->size);
    rename_fields(record->fields, record->field_count, local_state(to), renaming);
    for (uint32_t i = 0; i < layout->rows; i++) {
        unsigned char *row = new + (renaming[layout->first + i] - layout->first) * record->row_size;
        memcpy(row, old + i * record->row_size, record->row_size);
        rename_fields(record->row_fields, record->row_field_count, row, renaming);
    }
}

/* The saved prefix consists of whole fields of the head, followed by zeros. */
static void rename_saved(struct system *system, const struct local *from, struct local *to,
                         const cv_pid *renaming) {
    const struct cv_record *record = system->model->algorithm->state;
    const struct local_layout *layout = &system->layout[from->self];
    if (!layout->saved) return;
    unsigned char *saved = (unsigned char *)to + layout->saved;
    memcpy(saved, (const unsigned char *)from + layout->saved, layout->durable);
    for (unsigned i = 0; i < record->field_count; i++)
        if (record->fields[i].offset < layout->durable)
            rename_fields(&record->fields[i], 1, saved, renaming);
}

static uint32_t rename_message(struct system *system, uint32_t number, const cv_pid *renaming) {
    struct message_text text;
    message_get(system, number, &text);
    text.head.from = renaming[text.head.from];
    if (text.head.kind < KIND_DOWN) {
        const struct cv_record *record = &system->model->algorithm->messages[text.head.kind];
        rename_fields(record->fields, record->field_count, text.body, renaming);
    }
    return message_put(system, &text);
}

uint32_t node_rename(struct system *system, uint32_t number, uint32_t what) {
    const cv_pid *renaming = system->renamings.of[what & ~RENAMED];
    struct node node;
    uint32_t inbox[NODE_INBOX_MAX + 1], count = 0;
    node_get(system, number, &node);
    const struct local *local = local_get(system, node.local);
    struct local *copy = local_scratch(system, 1);
    memset(copy, 0, system->local_size);
    *copy = *local;
    copy->self = renaming[local->self];
    copy->leader = renaming[local->leader];
    copy->suspects = 0;
    for (cv_pid p = 1; p <= system->model->processes; p++)
        if (local->suspects & 1u << p) copy->suspects |= 1u << renaming[p];
    rename_state(system, local, copy, renaming);
    rename_saved(system, local, copy, renaming);
    for (uint32_t i = 0; i < node.count; i++)
        count = node_inbox_add(system, inbox, count,
                               rename_message(system, node.inbox[i], renaming), inbox);
    return node_put(system, copy->self, local_put(system, copy), inbox, count);
}

/* The canonical representative is the least of all renamed states. */
void worker_rename(struct worker *worker, uint32_t *leaves) {
    struct explorer *e = worker->explorer;
    const struct renamings *renamings = &e->system.renamings;
    uint32_t n = e->model->processes, best[LEAVES_MAX], renamed[LEAVES_MAX];
    bool election = e->model->algorithm->problem == CV_ELECTION;
    memcpy(best, leaves, (n + 1) * sizeof *best);
    for (uint32_t i = 1; i < renamings->count; i++) {
        const cv_pid *renaming = renamings->of[i];
        for (uint32_t p = 0; p < n; p++)
            renamed[renaming[p + 1] - 1] =
                system_change(&e->system, &worker->memo, leaves[p], RENAMED | i, node_rename);
        renamed[n] = leaves[n];
        if (election)
            renamed[n] = (leaves[n] & ~(31u << LATEST_SHIFT)) | renaming[latest_of(leaves[n])]
                                                                    << LATEST_SHIFT;
        for (uint32_t p = 0; p <= n; p++) {
            if (renamed[p] == best[p]) continue;
            if (renamed[p] < best[p]) memcpy(best, renamed, (n + 1) * sizeof *best);
            break;
        }
    }
    memcpy(leaves, best, (n + 1) * sizeof *best);
}
