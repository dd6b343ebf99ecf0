/* A search: the explorer, the order of exploration, and the violations found. */
#ifndef CV_LAB_CHECK_SEARCH_H
#define CV_LAB_CHECK_SEARCH_H

#include "lab/check/explore.h"

struct search {
    const struct check_search *options;
    struct explorer explorer;
    struct check_result *result;
    pthread_mutex_t lock;         /* of the violations */
    atomic_bool cyclic;           /* the state graph may contain a cycle */
    unsigned broken;              /* properties that are violated */
    unsigned enough;              /* the search ends when these are violated; 0: it goes on */
    bool explored;                /* every state within the bounds was reached */
    unsigned undecided;           /* properties that cycles may violate, which were not judged */
    enum check_doubt waits_doubt; /* about bounded wait */
    double began, reported;       /* seconds */
    uint64_t probe_limit;         /* states: then it is enough for a probe; 0: it is none */
    bool probed;                  /* the limit was reached */
    uint64_t *level;              /* of a probe: the number of states of each level */
    size_t levels, level_room;
};

/* Records violated properties, by a step from a state or by the state itself; returns whether the
 * search is over. */
bool search_broken(struct search *search, uint32_t state, uint32_t properties, bool in_state);
/* Reports the progress now and then. */
void search_report(struct search *search, uint64_t states, uint64_t transitions, uint64_t frontier,
                   uint64_t depth);

void search_breadth(struct search *search, unsigned threads);
void search_depth(struct search *search);
void search_compact(struct search *search);
/* Finds out how often others enter during one wait. */
void search_waits(struct search *search);
/* Sets `ends_likely` of the result. */
void search_likely(struct search *search);
/* Searches for fair cycles in which a process waits for ever. */
void search_cycles(struct search *search);

#endif
