/* Starvation: a cycle in which a process waits for ever, the others go on, and nothing that is
 * enabled all the time is postponed for ever (weak fairness).
 *
 * The obligations: every message in flight arrives, every notice of the detector is heard, a
 * process that is inside leaves, one that is down comes back where the model says so, and a timer
 * that is set and left alone fires, where timers fire at all.  A strongly connected component is
 * fair when each obligation is fulfilled or not enabled somewhere in it; then a tour of the
 * component is a fair run in which a process waits for ever. */
#include "base/grow.h"
#include "lab/check/component.h"
#include "lab/check/path.h"
#include "lab/judge/election.h"
#include "lab/judge/mutex.h"

struct obligation { /* what must happen to a process: it receives a message; 0: it leaves */
    uint32_t process, message;
    bool done;
};

struct waiting {
    unsigned char *looping; /* by state: it is in a cycle of the whole graph */
    uint32_t process;       /* that waits */
    uint32_t *in;           /* by state: its index in the component, from 1; 0: it is not in it */
    struct walk walk;
    bool found;
    /* Of the current component: */
    const struct component *component;
    struct obligation *obligations;
    size_t obligation_count, obligation_room;
    uint32_t moved;          /* bit per process that does something in it */
    uint32_t timers_touched; /* bit per process whose timers are touched in it */
    bool fires;              /* a timer fires in it */
};

static struct waiting *waiting_of(const struct components *c) { return c->context; }

/* ---- Subgraphs ---- */

static bool everything(const struct components *c, uint32_t state) {
    (void)c, (void)state;
    return true;
}

static bool loops(struct components *c, const struct component *component) {
    for (size_t i = 0; i < component->count; i++) waiting_of(c)->looping[component->states[i]] = 1;
    waiting_of(c)->found = true;
    return true;
}

static bool waits(const struct components *c, uint32_t state) {
    const struct waiting *w = waiting_of(c);
    struct explorer *e = &c->search->explorer;
    struct worker worker = {.explorer = e};
    if (!w->looping[state]) return false;
    worker_unfold(&worker, e->states.pair[state]);
    return node_flags(&e->system, worker.here.at[0][w->process]) & (NODE_WAITING | NODE_UNDECIDED);
}

/* ---- Obligations ---- */

static void add_obligation(struct waiting *w, uint32_t process, uint32_t message) {
    w->obligations =
        grown(w->obligations, &w->obligation_room, w->obligation_count + 1, sizeof *w->obligations);
    w->obligations[w->obligation_count++] = (struct obligation){process, message, false};
}

/* The obligations of the first state. */
static void list_obligations(struct waiting *w, const struct components *c, const uint32_t *nodes) {
    const struct system *system = &c->search->explorer.system;
    struct node node;
    w->obligation_count = 0;
    for (uint32_t p = 0; p < system->model->processes; p++) {
        if (node_flags(system, nodes[p]) & NODE_DOWN) continue;
        node_get(system, nodes[p], &node);
        for (uint32_t i = 0; i < node.count; i++)
            if (!i || node.inbox[i] != node.inbox[i - 1]) add_obligation(w, p, node.inbox[i]);
        if (node_local(system, nodes[p]).phase == APP_INSIDE) add_obligation(w, p, 0);
    }
}

static bool is_due(const struct system *system, const struct obligation *obligation,
                   uint32_t number) {
    struct node node;
    if (node_flags(system, number) & NODE_DOWN) return false;
    if (!obligation->message) return node_local(system, number).phase == APP_INSIDE;
    node_get(system, number, &node);
    for (uint32_t i = 0; i < node.count; i++)
        if (node.inbox[i] == obligation->message) return true;
    return false;
}

/* Whether a step from the expanded state fulfils the obligation. */
static bool does(struct components *c, const struct obligation *obligation,
                 const struct step *step) {
    struct system *system = &c->search->explorer.system;
    uint32_t node = c->worker.here.at[0][step->process];
    const struct outcome *outcome = &system_outcomes(system, node)->of[step->outcome];
    struct single_move *moves;
    bool done = false;
    if (obligation->process != step->process) return false;
    if (!obligation->message) return outcome->flags & OUT_WRITES;
    size_t count = system_moves(system, node, step->outcome, &moves);
    for (size_t i = 0; i < count; i++) done |= moves[i].message == obligation->message;
    free(moves);
    return done;
}

static void tick_step(struct waiting *w, struct components *c, const struct step *step) {
    struct system *system = &c->search->explorer.system;
    uint32_t node = c->worker.here.at[0][step->process];
    const struct outcome *outcome = &system_outcomes(system, node)->of[step->outcome];
    bool fires = outcome->flags & (OUT_WHEN_QUIESCENT | OUT_LATE);
    if (!(outcome->flags & OUT_BESIDE)) w->moved |= 1u << step->process;
    if (fires || outcome->flags & OUT_TIMER_CHANGED) w->timers_touched |= 1u << step->process;
    w->fires |= fires;
    for (size_t d = 0; d < w->obligation_count; d++)
        if (!w->obligations[d].done) w->obligations[d].done = does(c, &w->obligations[d], step);
}

static void tick_state(struct waiting *w, const struct components *c, const uint32_t *nodes) {
    for (size_t d = 0; d < w->obligation_count; d++)
        if (!is_due(&c->search->explorer.system, &w->obligations[d],
                    nodes[w->obligations[d].process]))
            w->obligations[d].done = true;
}

/* A process without a step in the component must have no obligation, unless it could fulfil it by
 * invisible steps. */
static bool may_rest(const struct components *c, uint32_t node) {
    uint32_t flags = node_flags(&c->search->explorer.system, node);
    return flags & (NODE_QUIESCENT | NODE_SETTLES);
}

/* Crashes are counted, so who is down in a state of a cycle is down in all of them. */
static bool somebody_is_down(const struct explorer *e, const uint32_t *nodes) {
    for (uint32_t p = 0; p < e->model->processes; p++)
        if (node_flags(&e->system, nodes[p]) & NODE_DOWN) return true;
    return false;
}

static bool is_fair(struct waiting *w, struct components *c, const struct component *component) {
    const struct explorer *e = &c->search->explorer;
    uint32_t n = e->model->processes, armed = 0;
    bool quiescent = true;
    w->moved = w->timers_touched = 0;
    w->fires = false;
    for (size_t i = 0; i < component->count; i++) {
        components_expand(c, component->states[i]);
        if (i == 0 && e->model->recovers && somebody_is_down(e, c->worker.here.at[0])) return false;
        if (i == 0) list_obligations(w, c, c->worker.here.at[0]);
        tick_state(w, c, c->worker.here.at[0]);
        quiescent &= c->worker.quiescent;
        for (uint32_t p = 0; p < n && i == 0; p++)
            if (node_flags(&e->system, c->worker.here.at[0][p]) & NODE_ARMED) armed |= 1u << p;
        for (size_t s = 0; s < c->worker.step_count; s++)
            if (w->in[components_next(c, &c->worker.steps[s])])
                tick_step(w, c, &c->worker.steps[s]);
    }
    components_expand(c, component->states[0]);
    for (size_t d = 0; d < w->obligation_count; d++) {
        uint32_t p = w->obligations[d].process;
        bool idle = !(w->moved & 1u << p) && may_rest(c, c->worker.here.at[0][p]);
        if (!w->obligations[d].done && !idle) return false;
    }
    return !((quiescent || w->fires) && armed & ~w->timers_touched);
}

/* ---- The tour ---- */

/* The steps of a shortest way through the component to a step that ticks off a obligation, or that
 * is of a process (obligation -1), or that leads back to the first state (process -1). */
struct goal {
    int obligation, process;
};

static bool reaches(struct waiting *w, struct components *c, const struct goal *goal,
                    const struct step *step, uint32_t next) {
    if (goal->obligation < 0 && goal->process < 0) return next == w->component->states[0];
    if (goal->obligation < 0) return step->process == goal->process;
    const struct obligation *obligation = &w->obligations[goal->obligation];
    if (does(c, obligation, step)) return true;
    struct worker worker = {.explorer = &c->search->explorer};
    worker_unfold(&worker, worker.explorer->states.pair[next]);
    return !is_due(&worker.explorer->system, obligation, worker.here.at[0][obligation->process]);
}

/* Goes on to the next state, and ticks off the obligations that are not enabled there. */
static void go_to(struct waiting *w, struct components *c, uint32_t state, int process) {
    struct worker worker = {.explorer = &c->search->explorer};
    walk_on_to(&w->walk, state, process);
    worker_unfold(&worker, worker.explorer->states.pair[state]);
    tick_state(w, c, worker.here.at[0]);
}

/* Walks from `from` until the goal is reached and returns the state then. */
static uint32_t walk_on(struct waiting *w, struct components *c, uint32_t from,
                        const struct goal *goal) {
    size_t count = w->component->count, head = 0, tail = 0;
    uint32_t *queue = calloc(2 * (count + 1), sizeof *queue), *came = queue + count + 1, end = 0;
    cv_assert(queue);
    uint32_t last = 0, target = 0;
    queue[tail++] = from;
    came[w->in[from]] = from;
    while (head < tail && !end) {
        uint32_t at = queue[head++];
        components_expand(c, at);
        for (size_t i = 0; i < c->worker.step_count && !end; i++) {
            uint32_t next = components_next(c, &c->worker.steps[i]);
            if (!w->in[next]) continue;
            if (reaches(w, c, goal, &c->worker.steps[i], next))
                end = next, last = at, target = c->worker.steps[i].process;
            if (came[w->in[next]]) continue;
            came[w->in[next]] = at;
            queue[tail++] = next;
        }
    }
    cv_assert(end);
    size_t length = 0;
    for (uint32_t at = last; at != from; at = came[w->in[at]]) queue[length++] = at;
    while (length) go_to(w, c, queue[--length], -1);
    go_to(w, c, end, goal->obligation < 0 && goal->process >= 0 ? (int)target : -1);
    free(queue);
    return end;
}

static bool has_moved(const struct walk *walk, cv_pid p) {
    for (size_t i = walk->path.cycle; i < walk->path.count; i++)
        if (walk->path.move[i].process == p) return true;
    return false;
}

/* Visits a step of every process that moves in the component, fulfils every obligation, and
 * returns. */
static void tour(struct waiting *w, struct components *c) {
    uint32_t first = w->component->states[0], at = first;
    uint32_t n = c->search->explorer.model->processes;
    walk_open(&w->walk, &c->search->explorer);
    walk_to_state(&w->walk, c->search, first);
    w->walk.path.cycle = w->walk.path.count;
    for (size_t d = 0; d < w->obligation_count; d++) w->obligations[d].done = false;
    for (uint32_t p = 0; p < n; p++)
        if (w->moved & 1u << p && !has_moved(&w->walk, p + 1))
            at = walk_on(w, c, at, &(struct goal){-1, (int)p});
    for (size_t d = 0; d < w->obligation_count; d++)
        if (w->moved & 1u << w->obligations[d].process && !w->obligations[d].done)
            at = walk_on(w, c, at, &(struct goal){(int)d, -1});
    if (at != first) walk_on(w, c, at, &(struct goal){-1, -1});
}

/* ---- The search ---- */

static bool starves(struct components *c, const struct component *component) {
    struct waiting *w = waiting_of(c);
    for (size_t i = 0; i < component->count; i++) w->in[component->states[i]] = (uint32_t)i + 1;
    w->component = component;
    if (is_fair(w, c, component)) {
        w->found = true;
        tour(w, c);
    }
    for (size_t i = 0; i < component->count; i++) w->in[component->states[i]] = 0;
    return !w->found;
}

/* Who waits for ever, waits beyond every bound. */
static void break_bounded_wait(struct search *s) {
    const struct check_path *path = &s->result->path[STARVATION];
    struct check_path *copy = &s->result->path[BOUNDED_WAIT];
    if (!(s->explorer.judged & 1u << BOUNDED_WAIT) || s->broken & 1u << BOUNDED_WAIT) return;
    s->broken |= 1u << BOUNDED_WAIT;
    *copy = *path;
    copy->move = malloc((path->count + 1) * sizeof *copy->move);
    copy->flight = malloc((path->flight_count + 1) * sizeof *copy->flight);
    cv_assert(copy->move && copy->flight);
    memcpy(copy->move, path->move, path->count * sizeof *copy->move);
    if (path->flight_count)
        memcpy(copy->flight, path->flight, path->flight_count * sizeof *copy->flight);
}

void search_cycles(struct search *s) {
    struct explorer *e = &s->explorer;
    int property = e->model->algorithm->problem == CV_ELECTION ? LIVENESS : STARVATION;
    uint32_t count = atomic_load(&e->states.count);
    struct components c;
    if (!atomic_load(&s->cyclic) || !(e->judged & 1u << property) || s->broken & 1u << property)
        return;
    s->undecided = 1u << property;
    if (e->hashed) return;
    if (explorer_bytes(e) + 25 * (uint64_t)count > s->options->memory) {
        s->result->end = CHECK_MEMORY;
        return;
    }
    struct waiting w = {.looping = calloc((size_t)count + 1, 1),
                        .in = calloc((size_t)count + 1, sizeof *w.in)};
    cv_assert(w.looping && w.in);
    components_open(&c, s);
    c.context = &w;
    c.belongs = everything, c.found = loops;
    components_find(&c);
    bool cycles = w.found;
    w.found = false;
    if (!cycles || e->system.renamings.count <= 1) s->undecided = 0;
    c.belongs = waits, c.found = starves;
    for (w.process = 0; cycles && !s->undecided && w.process < e->model->processes && !w.found;
         w.process++)
        components_find(&c);
    if (w.found) {
        s->broken |= 1u << property;
        s->result->path[property] = walk_close(&w.walk);
        if (property == STARVATION && e->model->algorithm->problem == CV_MUTEX)
            break_bounded_wait(s);
    }
    components_close(&c);
    free(w.looping);
    free(w.in);
    free(w.obligations);
}
