/* A run, event by event, in either direction: at each step the states of the processes and what is
 * on its way.  Nothing but the configuration decides a run, so going back is to run it again. */
#ifndef CV_LAB_SIM_REPLAY_H
#define CV_LAB_SIM_REPLAY_H

#include "lab/sim/sim.h"

struct replay {
    struct sim_config config; /* that of the run, but for its end; it shares what that one has */
    struct sim sim;
    struct trace trace;
    size_t *first; /* entry of each step, and the end of the last; steps are numbered from 1 */
    size_t steps;
};

/* Returns 0, or -1 when there is no address space left. */
int replay_open(struct replay *replay, const struct sim_config *config);
void replay_close(struct replay *replay);
/* Writes what happens in a step, and how things are after it. */
void replay_show(struct replay *replay, size_t step, FILE *out);

#endif
