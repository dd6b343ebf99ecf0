/* Depth-first search on one thread. */
#include "base/grow.h"
#include "lab/check/search.h"

struct frame { /* a state of the current path */
    uint32_t state;
    uint32_t done; /* number of its steps that were taken */
};

struct depth {
    struct search *search;
    struct worker worker;
    struct frame *stack;
    size_t height, room;
    bool over;
};

static void push(struct depth *d, uint32_t state) {
    d->stack = grown(d->stack, &d->room, d->height + 1, sizeof *d->stack);
    d->stack[d->height++] = (struct frame){state, 0};
    if (d->height - 1 > d->search->result->depth) d->search->result->depth = d->height - 1;
}

static void keep_limits(struct depth *d) {
    struct search *s = d->search;
    struct explorer *e = &s->explorer;
    if (!explorer_crowded(e) && s->result->states % 1024) return;
    uint64_t bytes = explorer_bytes(e) + d->room * sizeof *d->stack;
    if (bytes > s->result->memory) s->result->memory = bytes;
    if (bytes + explorer_growth(e) > s->options->memory) {
        s->result->end = CHECK_MEMORY;
        d->over = true;
        return;
    }
    search_report(s, s->result->states, s->result->transitions, d->height, s->result->depth);
    explorer_make_room(e);
}

/* Takes the next step from the top of the stack that leads to a new state, or pops it. */
static void advance(struct depth *d) {
    struct search *s = d->search;
    struct explorer *e = &s->explorer;
    struct worker *w = &d->worker;
    struct frame *top = &d->stack[d->height - 1];
    bool first = top->done == 0, is_new = false;
    worker_unfold(w, e->states.pair[top->state]);
    worker_expand(w);
    if (first) {
        s->result->transitions += w->step_count;
        s->result->timers_left |= w->timers_left;
        if (w->broken && search_broken(s, top->state, w->broken, true)) d->over = true;
    }
    while (!d->over && top->done < w->step_count) {
        const struct step *step = &w->steps[top->done++];
        uint32_t next = pairs_put(&e->states, &w->states, step->pair, step->hash, &is_new);
        if (is_new) {
            s->result->states++;
            e->states.note[next] = top->state;
        } else {
            s->cyclic = true; /* perhaps: the stack is not searched for it */
        }
        if (step->broken && search_broken(s, top->state, step->broken, false)) d->over = true;
        if (is_new) return push(d, next);
    }
    d->height--;
}

void search_depth(struct search *s) {
    struct depth d = {.search = s};
    uint32_t leaves[LEAVES_MAX];
    bool is_new;
    worker_open(&d.worker, &s->explorer, 1);
    explorer_start(&d.worker, true, leaves);
    worker_place(&d.worker, leaves);
    uint64_t start = worker_fold(&d.worker, leaves);
    push(&d, pairs_put(&s->explorer.states, &d.worker.states, start, pair_hash(start), &is_new));
    s->result->states = 1;
    while (d.height && !d.over) {
        keep_limits(&d);
        if (!d.over) advance(&d);
    }
    worker_close(&d.worker);
    free(d.stack);
}
