/* A walk through the state graph: a state that given steps lead to, and what can happen there. */
#ifndef CV_LAB_CHECK_WALK_H
#define CV_LAB_CHECK_WALK_H

#include "lab/check/check.h"

struct walk_message {
    cv_pid from, to;
    uint16_t kind;
    uint32_t size;
    unsigned char *body;
};

struct walk_step {
    struct check_move move;
    struct walk_message message; /* which it concerns; no body: none */
    unsigned broken;             /* bit per property that it violates */
};

struct walk_process {
    bool down, waits, inside, leads;
    unsigned char *state; /* of its algorithm */
    uint32_t rows;
    cv_pid first;
};

struct check_walk {
    struct check_path path; /* the steps so far */
    struct walk_step *walked, *step;
    size_t walked_count, step_count; /* so far, and from here */
    struct walk_process process[CHECK_PROCESSES_MAX + 1];
    struct walk_message *flight; /* what is in flight, by receiver */
    size_t flight_count;
    bool final;      /* nothing more must happen here */
    unsigned broken; /* bit per property that such an end violates */
};

/* Takes the steps, each by its number from 1 on among those that are possible where it is taken.
 * Returns 0; -1: there is no memory; or the number of the first step that is none, from 1 on: then
 * the walk is at the state before it.  check_walk_free in any case. */
int check_walk(const struct check_model *model, const uint32_t *steps, size_t count,
               struct check_walk *result);
void check_walk_free(struct check_walk *result);

#endif
