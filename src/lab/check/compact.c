/* Depth-first search with hash compaction: of each visited state only 32 bits of its hash and their
 * slot are kept (Wolper & Leroy, Reliable hashing without collision detection, 1993).
 *
 * A state whose bits are found in its probe sequence is taken for visited.  The probability that
 * this was ever wrong, the omission probability, follows from the number of comparisons and is
 * reported.  The table cannot grow, because the full hash is gone: when it is full the search
 * begins again with a larger one. */
#include <math.h>

#include "base/grow.h"
#include "lab/check/path.h"

enum { SLOTS_MIN = 1 << 18, GROWTH = 8 };

struct frame { /* a state of the current path */
    uint64_t word;
    uint32_t done; /* number of its steps that were taken */
};

struct compact {
    struct search *search;
    struct worker worker;
    uint32_t *table;
    uint64_t slots, used, compared;
    struct frame *stack;
    uint32_t *leaves; /* of each state on the stack */
    size_t height, room, leaf_room, width;
    bool over, full;
};

/* Returns whether the state is new, and marks it as visited. */
static bool visit(struct compact *c, uint64_t hash) {
    uint32_t fingerprint = (uint32_t)hash ? (uint32_t)hash : 1;
    uint64_t at = (uint64_t)((unsigned __int128)hash * c->slots >> 64), compared = 0;
    for (; c->table[at]; at = at + 1 == c->slots ? 0 : at + 1, compared++)
        if (c->table[at] == fingerprint) return false;
    c->table[at] = fingerprint;
    c->compared += compared;
    c->full = ++c->used >= c->slots / 8 * 7;
    return true;
}

static void push(struct compact *c, uint64_t word, const uint32_t *leaves) {
    c->stack = grown(c->stack, &c->room, c->height + 1, sizeof *c->stack);
    c->leaves = grown(c->leaves, &c->leaf_room, (c->height + 1) * c->width, sizeof *c->leaves);
    memcpy(c->leaves + c->height * c->width, leaves, c->width * sizeof *leaves);
    c->stack[c->height++] = (struct frame){word, 0};
    if (c->height - 1 > c->search->result->depth) c->search->result->depth = c->height - 1;
}

/* The path to a violation is the stack, and perhaps one more step. */
static void broken(struct compact *c, uint32_t properties, bool in_state) {
    struct search *s = c->search;
    uint32_t new = properties & ~s->broken;
    if (search_broken(s, 1, properties, in_state)) c->over = true;
    for (; new; new &= new - 1) {
        int property = __builtin_ctz(new);
        struct walk walk;
        walk_open(&walk, &s->explorer);
        for (size_t i = 1; i < c->height; i++) walk_to(&walk, c->stack[i].word);
        if (in_state)
            walk_settle(&walk);
        else
            walk_breaking(&walk, property);
        s->result->path[property] = walk_close(&walk);
    }
}

static uint64_t bytes_of(const struct compact *c) {
    return explorer_bytes(&c->search->explorer) + c->slots * sizeof *c->table +
           c->room * sizeof *c->stack + c->leaf_room * sizeof *c->leaves;
}

static void keep_limits(struct compact *c) {
    struct search *s = c->search;
    explorer_make_room(&s->explorer);
    if (s->result->states % 1024) return;
    uint64_t bytes = bytes_of(c);
    if (bytes > s->result->memory) s->result->memory = bytes;
    if (bytes > s->options->memory) s->result->end = CHECK_MEMORY, c->over = true;
    search_report(s, s->result->states, s->result->transitions, c->height, s->result->depth);
}

static void advance(struct compact *c) {
    struct search *s = c->search;
    struct worker *w = &c->worker;
    struct frame *top = &c->stack[c->height - 1];
    uint32_t leaves[LEAVES_MAX];
    bool first = top->done == 0;
    memcpy(w->here.at[0], c->leaves + (c->height - 1) * c->width, c->width * sizeof *leaves);
    worker_expand(w);
    if (first) {
        s->result->transitions += w->step_count;
        s->result->timers_left |= w->timers_left;
        if (w->broken) broken(c, w->broken, true);
    }
    while (!c->over && top->done < w->step_count) {
        struct step step = w->steps[top->done++];
        if (step.broken) broken(c, step.broken, false);
        if (!visit(c, step.hash)) {
            atomic_store(&s->cyclic, true);
            continue;
        }
        s->result->states++;
        worker_follow(w, &step, leaves);
        if (s->explorer.system.renamings.count > 1) worker_rename(w, leaves);
        return push(c, step.pair, leaves);
    }
    c->height--;
}

static void search_with(struct compact *c, uint64_t slots) {
    struct search *s = c->search;
    uint32_t leaves[LEAVES_MAX];
    explorer_start(&c->worker, true, leaves);
    uint64_t start = worker_fold(&c->worker, leaves);
    c->slots = slots;
    c->table = calloc(slots, sizeof *c->table);
    cv_assert(c->table);
    c->used = c->compared = c->height = 0;
    c->full = false;
    s->result->states = 1;
    s->result->transitions = s->result->depth = 0;
    visit(c, pair_hash(start));
    push(c, start, leaves);
    while (c->height && !c->over && !c->full) {
        keep_limits(c);
        if (!c->over) advance(c);
    }
    free(c->table);
}

void search_compact(struct search *s) {
    struct compact c = {.search = s, .width = s->explorer.model->processes + 1};
    worker_open(&c.worker, &s->explorer, 1);
    uint64_t slots = SLOTS_MIN;
    do {
        search_with(&c, slots);
        uint64_t max_slots = s->options->memory / 4 * 3 / sizeof *c.table;
        slots = slots * GROWTH < max_slots ? slots * GROWTH : max_slots;
        if (c.full && slots <= c.slots) {
            s->result->end = CHECK_MEMORY;
            break;
        }
    } while (c.full && !c.over);
    s->result->omission = -expm1(-(double)c.compared * 0x1p-32);
    s->result->memory_visited = c.slots * sizeof *c.table;
    worker_close(&c.worker);
    free(c.stack);
    free(c.leaves);
}
