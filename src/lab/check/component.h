/* The strongly connected components of the state graph: everything that can repeat. */
#ifndef CV_LAB_CHECK_COMPONENT_H
#define CV_LAB_CHECK_COMPONENT_H

#include "lab/check/search.h"

struct component {
    const uint32_t *states;
    size_t count;
};

struct components {
    struct search *search;
    struct worker worker;
    /* Whether a state belongs to the subgraph that is searched. */
    bool (*belongs)(const struct components *components, uint32_t state);
    /* Called with each component that contains a cycle; returns whether to go on. */
    bool (*found)(struct components *components, const struct component *component);
    void *context;
};

void components_open(struct components *components, struct search *search);
void components_close(struct components *components);
/* Finds them all (Tarjan, Depth-first search and linear graph algorithms, 1972). */
void components_find(struct components *components);
/* The state after a step. */
uint32_t components_next(struct components *components, const struct step *step);
/* Unfolds a state and finds the steps from it. */
void components_expand(struct components *components, uint32_t state);

#endif
