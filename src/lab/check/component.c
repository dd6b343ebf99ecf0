#include "lab/check/component.h"

#include "base/grow.h"

struct visit { /* of a state; its steps lead to next[first] to next[end - 1] */
    uint32_t state;
    size_t first, done, end;
    bool loops; /* a step leads back to it */
};

struct tarjan {
    struct components *components;
    uint32_t *order,
        *low; /* by state: Tarjan's indices; order 0: not visited, low 0: its component is known */
    uint32_t *open; /* states whose component is not known yet */
    size_t open_count;
    struct visit *stack;
    size_t height, stack_room;
    uint32_t *next;
    size_t next_count, next_room;
    uint32_t visited;
    bool over;
};

void components_open(struct components *c, struct search *search) {
    *c = (struct components){.search = search};
    worker_open(&c->worker, &search->explorer, 1);
}

void components_close(struct components *c) { worker_close(&c->worker); }

void components_expand(struct components *c, uint32_t state) {
    struct explorer *e = &c->search->explorer;
    explorer_make_room(e);
    worker_unfold(&c->worker, e->states.pair[state]);
    worker_expand(&c->worker);
}

uint32_t components_next(struct components *c, const struct step *step) {
    bool is_new;
    uint32_t state =
        pairs_put(&c->search->explorer.states, &c->worker.states, step->pair, step->hash, &is_new);
    cv_assert(!is_new);
    return state;
}

static void enter(struct tarjan *t, uint32_t state) {
    struct components *c = t->components;
    struct visit visit = {.state = state, .first = t->next_count, .done = t->next_count};
    t->order[state] = t->low[state] = ++t->visited;
    t->open[t->open_count++] = state;
    components_expand(c, state);
    for (size_t i = 0; i < c->worker.step_count; i++) {
        uint32_t next = components_next(c, &c->worker.steps[i]);
        visit.loops |= next == state;
        if (next == state || !c->belongs(c, next)) continue;
        t->next = grown(t->next, &t->next_room, t->next_count + 1, sizeof *t->next);
        t->next[t->next_count++] = next;
    }
    visit.end = t->next_count;
    t->stack = grown(t->stack, &t->stack_room, t->height + 1, sizeof *t->stack);
    t->stack[t->height++] = visit;
}

static void leave(struct tarjan *t, const struct visit *visit) {
    uint32_t state = visit->state;
    t->next_count = visit->first;
    t->height--;
    if (t->height) {
        uint32_t above = t->stack[t->height - 1].state;
        if (t->low[state] < t->low[above]) t->low[above] = t->low[state];
    }
    if (t->low[state] != t->order[state]) return;
    size_t first = t->open_count;
    while (t->open[--first] != state) t->low[t->open[first]] = 0;
    t->low[state] = 0;
    struct component component = {t->open + first, t->open_count - first};
    t->open_count = first;
    if (component.count > 1 || visit->loops)
        t->over = !t->components->found(t->components, &component);
}

static void go_on(struct tarjan *t) {
    struct visit *top = &t->stack[t->height - 1];
    if (top->done == top->end) {
        struct visit visit = *top;
        leave(t, &visit);
        return;
    }
    uint32_t next = t->next[top->done++];
    if (!t->order[next])
        enter(t, next);
    else if (t->low[next] && t->order[next] < t->low[top->state])
        t->low[top->state] = t->order[next];
}

void components_find(struct components *c) {
    const struct pairs *states = &c->search->explorer.states;
    uint32_t count = atomic_load(&states->count);
    struct tarjan t = {.components = c};
    t.order = calloc(3 * ((size_t)count + 1), sizeof *t.order);
    cv_assert(t.order);
    t.low = t.order + count + 1;
    t.open = t.low + count + 1;
    for (uint32_t i = 1; i <= count && !t.over; i++) {
        if (!states->pair[i] || t.order[i] || !c->belongs(c, i)) continue;
        enter(&t, i);
        while (t.height && !t.over) go_on(&t);
    }
    free(t.order);
    free(t.stack);
    free(t.next);
}
