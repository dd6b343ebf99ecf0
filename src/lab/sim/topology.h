/* The network of a run: the neighbours, the id and the weight of each process. */
#ifndef CV_LAB_SIM_TOPOLOGY_H
#define CV_LAB_SIM_TOPOLOGY_H

#include "base/arena.h"
#include "lab/sim/config.h"

struct topology {
    uint32_t processes;
    bool complete;    /* there are no lists of neighbours */
    uint32_t degree;  /* of every process on a ring; else 0, and it is looked up */
    uint32_t *offset; /* by pid: where its neighbours begin; one more at the end */
    cv_pid *neighbour;
    /* A one-way ring is logical, anyone can be reached, and goes on: its order, twice in a row, and
     * where the right of each process begins in it; NULL: at its own number. */
    cv_pid *ring;
    uint32_t *place;
    uint64_t *ids, *weights; /* by pid */
};

/* Lays out the network of a checked configuration.  Returns 0, or -1 and a sentence. */
int topology_build(struct topology *topology, const struct sim_config *config, struct arena *arena,
                   char error[SIM_ERROR_MAX]);
/* Fills in what a process knows about the network. */
static inline void topology_env(const struct topology *t, cv_pid p, struct cv_env *env) {
    env->id = t->ids[p];
    env->weight = t->weights[p];
    if (t->ring) {
        env->degree = 1;
        env->neighbours = t->ring + (t->place ? t->place[p] : p);
    } else if (t->degree) {
        env->degree = t->degree;
        env->neighbours = t->neighbour + (size_t)(p - 1) * t->degree;
    } else {
        env->degree = t->complete ? t->processes - 1 : t->offset[p + 1] - t->offset[p];
        env->neighbours = t->complete ? NULL : t->neighbour + t->offset[p];
    }
}
/* Numbers the connected components from 1, by pid, without the processes that are `gone` and the
 * edges between different sides of a partition; returns how many there are.  `gone` and `side` may
 * be NULL.  `part` has room for 2 * (processes + 1); its second half is scratch memory. */
uint32_t topology_parts(const struct topology *topology, const bool *gone,
                        const unsigned char *side, uint32_t *part);

#endif
