/* A counterexample of the model checker as a scenario, which the simulator replays move by move. */
#ifndef CV_LAB_EXPERIMENTS_COUNTEREXAMPLE_H
#define CV_LAB_EXPERIMENTS_COUNTEREXAMPLE_H

#include "lab/check/check.h"
#include "lab/sim/scenario.h"

/* Makes the scenario of a path that violates a property: move i happens at i ms and nothing else
 * does, each message takes as long as it did in the path, and a message that was in flight at the
 * end never arrives.  `config` is what the model was built from: the algorithm, its options, the
 * processes and their network; its load and its faults are left out, because the path has its own.
 *
 * A path that ends in a cycle is replayed as it is, so the caller repeats the moves and flights of
 * the cycle as often as they are to be shown.  The scenario expects nothing of it, because only an
 * endless repetition violates the property.  Nor does that of a walk, for which `property` is -1.
 *
 * Returns 0, or -1 and a sentence in `error`. */
int counterexample_scenario(struct scenario *scenario, const struct sim_config *config,
                            const struct check_model *model, const struct check_path *path,
                            int property, char error[SIM_ERROR_MAX]);

#endif
