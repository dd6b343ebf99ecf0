/* What happens with probability 1 though not in every run: draws that never decide.
 *
 * An algorithm that draws lots until they differ can go on for ever, with probability 0.  That no
 * draws keep it from its end for good shows in the states: from every one of them some draws lead
 * to a final state in which all properties hold.  A search with a depth limit sees the ends of the
 * states that are far enough from the limit. */
#include <stdlib.h>

#include "lab/check/component.h"

struct prospects {
    struct components components;
    uint32_t count;
    uint32_t *level; /* by state: its number of steps from the start */
    bool *ends;      /* by state: an end is within reach */
};

static bool reaches_an_end(struct prospects *p, uint32_t state) {
    struct worker *w = &p->components.worker;
    components_expand(&p->components, state);
    if (w->final) return true;
    for (size_t i = 0; i < w->step_count; i++)
        if (p->ends[components_next(&p->components, &w->steps[i])]) return true;
    return false;
}

/* Goes backwards through the states, because steps mostly lead to later ones, until nothing new is
 * found. */
static void look_back(struct prospects *p, uint64_t depth) {
    const struct pairs *states = &p->components.search->explorer.states;
    for (bool news = true; news;) {
        news = false;
        for (uint32_t i = p->count; i; i--)
            if (states->pair[i] && !p->ends[i] && p->level[i] < depth && reaches_an_end(p, i))
                p->ends[i] = news = true;
    }
}

void search_likely(struct search *s) {
    struct explorer *e = &s->explorer;
    struct prospects p = {.count = atomic_load(&e->states.count)};
    uint64_t first = s->options->depth;
    if (!(e->model->algorithm->traits & CV_DRAWS) || s->result->end != CHECK_DEPTH || s->broken)
        return;
    if (explorer_bytes(e) + 5 * (uint64_t)p.count > s->options->memory) return;
    p.level = calloc((size_t)p.count + 1, sizeof *p.level);
    p.ends = calloc((size_t)p.count + 1, sizeof *p.ends);
    cv_assert(p.level && p.ends);
    for (uint32_t i = 1; i <= p.count; i++)
        if (e->states.note[i]) p.level[i] = p.level[e->states.note[i]] + 1;
    components_open(&p.components, s);
    look_back(&p, s->options->depth);
    for (uint32_t i = 1; i <= p.count; i++)
        if (e->states.pair[i] && !p.ends[i] && p.level[i] < first) first = p.level[i];
    if (first > s->options->depth / 2) s->result->ends_likely = first - 1;
    components_close(&p.components);
    free(p.level);
    free(p.ends);
}
