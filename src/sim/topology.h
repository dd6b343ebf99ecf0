/* Who can reach whom, and what everyone is called by the algorithm: neighbours, ids and weights. */
#ifndef CV_SIM_TOPOLOGY_H
#define CV_SIM_TOPOLOGY_H

#include "base/arena.h"
#include "sim/config.h"

struct topology {
    uint32_t processes;
    bool complete;    /* nobody needs a list */
    uint32_t degree;  /* of everyone, on a ring; else 0, and it is looked up */
    uint32_t *offset; /* by pid: where its neighbours begin; one more at the end */
    cv_pid *neighbour;
    uint64_t *ids, *weights; /* by pid */
};

/* Lays out the network of a checked configuration.  Returns 0, or -1 and a sentence. */
int topology_build(struct topology *topology, const struct sim_config *config, struct arena *arena,
                   char error[SIM_ERROR_MAX]);
/* What a process knows of the network. */
static inline void topology_env(const struct topology *t, cv_pid p, struct cv_env *env) {
    env->id = t->ids[p];
    env->weight = t->weights[p];
    if (t->degree) {
        env->degree = t->degree;
        env->neighbours = t->neighbour + (size_t)(p - 1) * t->degree;
    } else {
        env->degree = t->complete ? t->processes - 1 : t->offset[p + 1] - t->offset[p];
        env->neighbours = t->complete ? NULL : t->neighbour + t->offset[p];
    }
}
/* Numbers the connected parts from 1, by pid, leaving out those for which `gone` is true and edges
 * between different sides of a partition; returns how many there are.  `gone` and `side` may be
 * NULL. `part` has room for 2 * (processes + 1), of which the second half is used up. */
uint32_t topology_parts(const struct topology *topology, const bool *gone,
                        const unsigned char *side, uint32_t *part);

#endif
