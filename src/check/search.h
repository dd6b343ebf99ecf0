/* A search: the explorer, the order in which it goes, and what it has found. */
#ifndef CV_CHECK_SEARCH_H
#define CV_CHECK_SEARCH_H

#include "check/explore.h"

struct search {
    const struct check_search *options;
    struct explorer explorer;
    struct check_result *result;
    pthread_mutex_t lock; /* of the violations */
    atomic_bool cyclic;   /* a step led to a state that may have led to it */
    unsigned broken;      /* properties */
    unsigned enough;      /* when these are broken the search is over; 0: it goes on */
    unsigned undecided;   /* properties: there may be cycles, but who waits in them is not known */
    double began, reported; /* seconds */
    uint64_t most;          /* states: then it is enough for a probe; 0: it is none */
    bool probed;            /* it was */
    uint64_t *level;        /* of a probe: how many states each level has */
    size_t levels, level_room;
};

/* Takes note of properties that are broken, by a step from a state or by the state itself; returns
 * whether the search is over. */
bool search_broken(struct search *search, uint32_t state, uint32_t properties, bool in_state);
/* Tells of the progress, now and then. */
void search_report(struct search *search, uint64_t states, uint64_t transitions, uint64_t frontier,
                   uint64_t depth);

void search_breadth(struct search *search, unsigned threads);
void search_depth(struct search *search);
void search_compact(struct search *search);
/* Whether somebody may wait for ever although everybody else goes on. */
void search_cycles(struct search *search);

#endif
