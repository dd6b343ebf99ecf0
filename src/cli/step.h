/* `conclave sim --step`. */
#ifndef CV_CLI_STEP_H
#define CV_CLI_STEP_H

#include "lab/sim/config.h"

/* Walks through a run as its user says on standard input, and comes back when that is enough. */
void step_through(const struct sim_config *config);

#endif
