/* Every order of events, at small bounds: a model check of the core, from the same object files.
 *
 * Time is only an order: anybody may stand at any time, without sounding and without waiting for
 * silence, which only make it rarer.  What is sent is there for good and may be received at any
 * time, any number of times, in any order, or never.  To keep the states few, three things are
 * forgotten: what can change nothing at its receiver any more, votes that are refused, and of the
 * messages that only say how far somebody is (answers, and what is decided) all but the newest.
 * What is in a log becomes durable entry by entry, at any time, and a crash leaves what is durable.
 */
#ifndef CV_RAFTLAB_EXPLORE_H
#define CV_RAFTLAB_EXPLORE_H

#include <stdint.h>
#include <stdio.h>

#include "raftlab/raftlab.h"

enum { EXPLORE_NODES = 3, EXPLORE_TERMS_MAX = 7, EXPLORE_ENTRIES_MAX = 7 };

struct explore_bounds {
    const char *start[EXPLORE_NODES]; /* the logs at the beginning: a digit for each entry's term */
    uint32_t terms;                   /* the newest */
    uint32_t entries;                 /* of a log */
    uint32_t crashes;
    bool pledges; /* leaders say what would be decided, too */
};

struct explore_result {
    uint64_t states, transitions, bytes;
    uint64_t leaders, decided; /* states in which somebody leads; the most entries decided */
    char broken[LAB_TEXT_MAX]; /* what did not hold; "": all did */
};

/* `trace`: how it came to what did not hold, or NULL. */
void lab_explore(const struct explore_bounds *bounds, FILE *trace, struct explore_result *result);

#endif
