/* The sequential specification of an object: a node and a lock. */
#ifndef CV_LAB_JUDGE_HISTORY_MODEL_H
#define CV_LAB_JUDGE_HISTORY_MODEL_H

#include "lab/judge/history.h"

enum { NODE_ABSENT = -1, LOCK_FREE = -1 };

struct history_state {
    int64_t value, version; /* of the node */
    int64_t holder, token;  /* of the lock; the newest token */
};

static inline struct history_state history_state_first(void) {
    return (struct history_state){NODE_ABSENT, 0, LOCK_FREE, -1};
}

/* Applies the operation to the state and returns what the object answers. */
enum history_outcome history_act(const struct history_operation *o, struct history_state *state);

/* Whether the object can answer as it did; the state is then the next one.  For an operation of
 * unknown outcome: whether it can take effect. */
bool history_step(const struct history_operation *o, struct history_state *state);

static inline bool history_sets_value(const struct history_operation *o) {
    return o->action == HISTORY_WRITE || o->action == HISTORY_CAS ||
           o->action == HISTORY_CAS_VALUE || o->action == HISTORY_CREATE;
}

static inline bool history_is_of_lock(const struct history_operation *o) {
    return o->action == HISTORY_ACQUIRE || o->action == HISTORY_RELEASE;
}

#endif
