/* What the model checker found, as a scenario that the simulator replays move by move. */
#ifndef CV_LAB_COUNTEREXAMPLE_H
#define CV_LAB_COUNTEREXAMPLE_H

#include "check/check.h"
#include "sim/scenario.h"

/* Makes the scenario of a path that violates a property: move i happens at i ms and nothing else
 * does, each message takes as long as it did in the path, and what was still to come at the end
 * never comes.  `config` says what the model was made from: the algorithm, its options, the
 * processes and their network; its load and its faults are left out, for the path has its own.
 *
 * A path that ends in a cycle is replayed as it stands, so the caller repeats the cycle as often as
 * it is to be seen, moves and flights; nothing is expected of it, since only its never ending
 * violates the property.
 *
 * Returns 0, or -1 and a sentence in `error`. */
int counterexample_scenario(struct scenario *scenario, const struct sim_config *config,
                            const struct check_model *model, const struct check_path *path,
                            int property, char error[SIM_ERROR_MAX]);

#endif
