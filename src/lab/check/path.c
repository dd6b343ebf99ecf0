#include "lab/check/path.h"

#include "base/grow.h"

/* ---- Messages in flight ---- */

static bool is_down(const struct walk *walk, cv_pid p) {
    const struct system *system = &walk->worker.explorer->system;
    return node_flags(system, walk->worker.here.at[0][p - 1]) & NODE_DOWN;
}

static void send(struct walk *walk, const struct sending *sending, bool cut_off) {
    const struct system *system = &walk->worker.explorer->system;
    struct message message = message_head(system, sending->message);
    struct check_path *path = &walk->path;
    if (message.kind >= KIND_DOWN) return;
    path->flight =
        grown(path->flight, &walk->flight_room, path->flight_count + 1, sizeof *path->flight);
    path->flight[path->flight_count] = (struct check_flight){
        .from = message.from, .to = sending->to, .sent = (uint32_t)path->count};
    if (cut_off) {
        path->flight[path->flight_count].ended = (uint32_t)path->count;
        path->flight[path->flight_count].lost = true;
    } else if (!(system->model->fifo && is_down(walk, sending->to))) {
        walk->open = grown(walk->open, &walk->open_room, walk->open_count + 1, sizeof *walk->open);
        walk->open[walk->open_count++] =
            (struct open_flight){sending->message, (uint32_t)path->flight_count};
    }
    path->flight_count++;
}

static void forget(struct walk *walk, size_t at) {
    memmove(walk->open + at, walk->open + at + 1, (--walk->open_count - at) * sizeof *walk->open);
}

/* Of equal messages the oldest arrives. */
static void arrive(struct walk *walk, cv_pid to, uint32_t message, bool lost) {
    for (size_t i = 0; i < walk->open_count; i++) {
        struct check_flight *flight = &walk->path.flight[walk->open[i].flight];
        if (walk->open[i].message != message || flight->to != to) continue;
        flight->ended = (uint32_t)walk->path.count;
        flight->lost = lost;
        forget(walk, i);
        return;
    }
}

static void break_connections(struct walk *walk, cv_pid p) {
    for (size_t i = walk->open_count; i-- > 0;)
        if (walk->path.flight[walk->open[i].flight].to == p) forget(walk, i);
}

/* ---- Moves ---- */

static void move(struct walk *walk, cv_pid p, const struct single_move *single, bool entered) {
    struct check_path *path = &walk->path;
    path->move = grown(path->move, &walk->move_room, path->count + 1, sizeof *path->move);
    struct check_move *made = &path->move[path->count++];
    *made = (struct check_move){.type = single->type,
                                .process = p,
                                .peer = single->peer,
                                .arg = single->arg,
                                .choices = single->choices,
                                .entered = entered};
    memcpy(made->choice, single->choice, sizeof made->choice);
    if (single->type == MOVE_RECEIVE || single->type == MOVE_LOSE || single->type == MOVE_MISS)
        arrive(walk, p, single->message, single->type == MOVE_LOSE);
    if (single->type == MOVE_CRASH && walk->worker.explorer->model->fifo)
        break_connections(walk, p);
}

void walk_step(struct walk *walk, const struct step *step) {
    struct worker *w = &walk->worker;
    struct system *system = &w->explorer->system;
    const struct outcomes *all = system_outcomes(system, w->here.at[0][step->process]);
    const struct outcome *outcome = &all->of[step->outcome];
    uint32_t leaves[LEAVES_MAX];
    struct single_move *moves;
    size_t count = system_moves(system, w->here.at[0][step->process], step->outcome, &moves);
    for (size_t i = 0; i < count; i++)
        move(walk, step->process + 1u, &moves[i], outcome->flags & OUT_ENTERED && i + 1 == count);
    free(moves);
    for (unsigned i = 0; i < outcome->sends; i++) {
        const struct sending *sending = &outcome_sends(system, outcome)[i];
        send(walk, sending, node_cut_off(system, outcome->node, sending->to));
    }
    worker_follow(w, step, leaves);
    worker_place(w, leaves);
}

void walk_look(struct walk *walk) {
    struct explorer *e = walk->worker.explorer;
    uint32_t leaves[LEAVES_MAX];
    memcpy(leaves, walk->worker.here.at[0], sizeof leaves);
    if (explorer_make_room(e)) worker_place(&walk->worker, leaves);
    worker_expand(&walk->worker);
}

static void take_step_to(struct walk *walk, uint64_t pair, int process) {
    for (size_t i = 0; i < walk->worker.step_count; i++) {
        const struct step *step = &walk->worker.steps[i];
        if (step->pair != pair || (process >= 0 && step->process != process)) continue;
        walk_step(walk, &walk->worker.steps[i]);
        return;
    }
    cv_assert(!"the state is one step away");
}

void walk_to(struct walk *walk, uint64_t word) {
    walk_look(walk);
    take_step_to(walk, word, -1);
}

/* The expansion may write all states anew, so the pair is looked up after it. */
void walk_on_to(struct walk *walk, uint32_t state, int process) {
    walk_look(walk);
    take_step_to(walk, walk->worker.explorer->states.pair[state], process);
}

void walk_breaking(struct walk *walk, int property) {
    walk_look(walk);
    for (size_t i = 0; i < walk->worker.step_count; i++) {
        if (!(walk->worker.steps[i].broken & 1u << property)) continue;
        walk_step(walk, &walk->worker.steps[i]);
        return;
    }
}

/* ---- Paths ---- */

void walk_open(struct walk *walk, struct explorer *e) {
    uint32_t leaves[LEAVES_MAX];
    *walk = (struct walk){.path = {.cycle = SIZE_MAX}};
    worker_open(&walk->worker, e, 1);
    explorer_start(&walk->worker, false, leaves);
    worker_place(&walk->worker, leaves);
    const struct sending *sends = system_words(&e->system, e->system.start_send_at);
    for (uint32_t i = 0; i < e->system.start_sends; i++) send(walk, &sends[i], false);
}

struct check_path walk_close(struct walk *walk) {
    worker_close(&walk->worker);
    free(walk->open);
    if (walk->path.cycle > walk->path.count) walk->path.cycle = walk->path.count;
    return walk->path;
}

void walk_to_state(struct walk *walk, const struct search *search, uint32_t state) {
    const struct pairs *states = &search->explorer.states;
    uint32_t *chain = NULL;
    size_t count = 0, room = 0;
    for (; states->note[state]; state = states->note[state]) {
        chain = grown(chain, &room, count + 1, sizeof *chain);
        chain[count++] = state;
    }
    while (count) walk_on_to(walk, chain[--count], -1);
    free(chain);
}

void walk_settle(struct walk *walk) {
    struct worker *w = &walk->worker;
    for (uint32_t p = 0; p < w->explorer->model->processes; p++) {
        const struct outcomes *all = system_outcomes(&w->explorer->system, w->here.at[0][p]);
        uint32_t i = 0;
        while (i < all->count && !(all->of[i].flags & OUT_SETTLES)) i++;
        if (i == all->count) continue;
        struct step step = {.process = (uint8_t)p, .outcome = (uint16_t)i};
        w->settles = p + 1;
        walk_step(walk, &step);
    }
}

struct check_path path_to(struct search *search, int property) {
    const struct violation *violation = &search->explorer.violation[property];
    struct walk walk;
    walk_open(&walk, &search->explorer);
    walk_to_state(&walk, search, violation->state);
    if (violation->in_state)
        walk_settle(&walk);
    else
        walk_breaking(&walk, property);
    return walk_close(&walk);
}
