#include "lab/check/walk.h"

#include <stdlib.h>

#include "base/grow.h"
#include "lab/check/path.h"

/* ---- Copies, which outlive the explorer ---- */

static void *copied(const void *bytes, size_t size) {
    void *copy = malloc(size + 1);
    cv_assert(copy);
    return memcpy(copy, bytes, size);
}

static struct walk_message message_of(const struct system *system, uint32_t number, cv_pid to) {
    struct message_text text;
    message_get(system, number, &text);
    return (struct walk_message){.from = text.head.from,
                                 .to = to,
                                 .kind = text.head.kind,
                                 .size = text.head.size,
                                 .body = copied(text.body, text.head.size)};
}

static bool has_message(enum check_move_type type) {
    return type == MOVE_RECEIVE || type == MOVE_LOSE || type == MOVE_MISS;
}

static struct walk_step step_of(struct walk *walk, const struct step *step) {
    struct system *system = &walk->worker.explorer->system;
    cv_pid p = step->process + 1u;
    struct single_move *moves;
    size_t count = system_moves(system, walk->worker.here.at[0][p - 1], step->outcome, &moves);
    struct walk_step result = {.broken = step->broken};
    cv_assert(count == 1); /* nothing is reduced */
    result.move = (struct check_move){.type = moves->type,
                                      .process = p,
                                      .peer = moves->peer,
                                      .arg = moves->arg,
                                      .choices = moves->choices};
    memcpy(result.move.choice, moves->choice, sizeof result.move.choice);
    if (has_message(moves->type)) result.message = message_of(system, moves->message, p);
    free(moves);
    return result;
}

/* ---- The state ---- */

static void show_inbox(const struct system *system, uint32_t number, size_t *room,
                       struct check_walk *result) {
    struct node node;
    node_get(system, number, &node);
    for (uint32_t i = 0; i < node.count; i++) {
        if (message_head(system, node.inbox[i]).kind >= KIND_DOWN) continue;
        result->flight =
            grown(result->flight, room, result->flight_count + 1, sizeof *result->flight);
        result->flight[result->flight_count++] = message_of(system, node.inbox[i], node.process);
    }
}

static void show_state(const struct walk *walk, struct check_walk *result) {
    const struct system *system = &walk->worker.explorer->system;
    size_t room = 0;
    for (cv_pid p = 1; p <= system->model->processes; p++) {
        _Alignas(8) unsigned char local[POOL_BYTES_MAX];
        uint32_t node = walk->worker.here.at[0][p - 1], flags = node_flags(system, node);
        const struct local_layout *layout = &system->layout[p];
        node_local_bytes(system, node, local);
        result->process[p] = (struct walk_process){
            .down = flags & NODE_DOWN,
            .waits = flags & NODE_WAITING,
            .inside = flags & NODE_INSIDE,
            .leads = flags & NODE_LEADS,
            .state =
                copied(local_state((const struct local *)(const void *)local), layout->state_size),
            .rows = layout->rows,
            .first = layout->first};
        show_inbox(system, node, &room, result);
    }
}

static void show_steps(struct walk *walk, struct check_walk *result) {
    const struct worker *worker = &walk->worker;
    size_t room = 0;
    result->step = grown(NULL, &room, worker->step_count + 1, sizeof *result->step);
    for (size_t i = 0; i < worker->step_count; i++)
        result->step[result->step_count++] = step_of(walk, &worker->steps[i]);
    result->final = worker->final;
    result->broken = worker->broken;
}

int check_walk(const struct check_model *model, const uint32_t *steps, size_t count,
               struct check_walk *result) {
    const struct check_search search = {.keep_going = true, .memory = UINT64_MAX};
    struct explorer explorer;
    struct walk walk;
    size_t room = 0, taken = 0;
    *result = (struct check_walk){0};
    if (explorer_open(&explorer, model, &search) != 0) return -1;
    walk_open(&walk, &explorer);
    walk_look(&walk);
    for (; taken < count && steps[taken] - 1 < walk.worker.step_count; taken++) {
        const struct step step = walk.worker.steps[steps[taken] - 1];
        result->walked = grown(result->walked, &room, taken + 1, sizeof *result->walked);
        result->walked[result->walked_count++] = step_of(&walk, &step);
        walk_step(&walk, &step);
        walk_look(&walk);
    }
    show_state(&walk, result);
    show_steps(&walk, result);
    result->path = walk_close(&walk);
    result->path.goes_on = true;
    explorer_close(&explorer);
    return taken < count ? (int)taken + 1 : 0;
}

void check_walk_free(struct check_walk *result) {
    for (size_t i = 0; i < result->walked_count; i++) free(result->walked[i].message.body);
    for (size_t i = 0; i < result->step_count; i++) free(result->step[i].message.body);
    for (size_t i = 0; i < result->flight_count; i++) free(result->flight[i].body);
    for (cv_pid p = 1; p <= CHECK_PROCESSES_MAX; p++) free(result->process[p].state);
    free(result->walked);
    free(result->step);
    free(result->flight);
    free(result->path.move);
    free(result->path.flight);
    *result = (struct check_walk){0};
}
