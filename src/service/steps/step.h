/* A step of the consensus core as data: an event with all that it brings.  The server takes its
 * steps through here, and so does a replay of what it has recorded (lab/servers): both run the same
 * code on the same arguments. */
#ifndef CV_SERVICE_STEPS_STEP_H
#define CV_SERVICE_STEPS_STEP_H

#include "raft/raft.h"

/* S(NAME, IDS, NUMBERS, EFFECTS): whether it is about a member, how many numbers it brings, and
 * whether it has effects.  The order is that of the files. */
#define STEPS(S)                                                                                   \
    S(START, 0, 1, 1)   /* the commit index */                                                     \
    S(RECEIVE, 0, 0, 1) /* a message, and perhaps a configuration */                               \
    S(TIMER, 0, 0, 1)                                                                              \
    S(ALIVE, 1, 0, 1)                                                                              \
    S(HEARTBEAT, 0, 0, 0)                                                                          \
    S(PROPOSE, 0, 1, 0) /* how many entries */                                                     \
    S(DURABLE, 0, 2, 1) /* index and term */                                                       \
    S(CONNECTED, 1, 0, 0)                                                                          \
    S(DISCONNECTED, 1, 0, 0)                                                                       \
    S(RESTARTED, 1, 0, 0)                                                                          \
    S(DOWN, 1, 0, 1)                                                                               \
    S(TRANSFER, 1, 0, 1)                                                                           \
    S(SENT, 1, 2, 0)      /* AppendEntries: up to which entry it may go, and how many it has */    \
    S(OVERTAKE, 1, 0, 0)  /* the heartbeat is in `message` then */                                 \
    S(COMPACTED, 0, 1, 0) /* index */                                                              \
    S(INSTALLED, 0, 2, 1) /* index and term, and a configuration */                                \
    S(CHANGE, 0, 1, 0)    /* the round, and a configuration */                                     \
    S(ADMIT, 0, 1, 0)     /* the same */                                                           \
    S(MAY_VOTE, 0, 0, 0)  /* the owner says so: it founds the ensemble */

#define STEP_ENUM_(NAME, IDS, NUMBERS, EFFECTS) STEP_##NAME,
enum step_type { STEP_NONE, STEPS(STEP_ENUM_) STEP_TYPES };

struct step_shape {
    uint8_t ids, numbers, effects;
};
extern const struct step_shape step_shapes[STEP_TYPES];

struct step {
    uint8_t type; /* enum step_type */
    uint8_t id;
    uint64_t number[2];
    struct raft_message *message;     /* received or sent */
    const struct raft_config *config; /* or NULL */
};

/* Takes the step; `out` may be NULL where it has no effects.  Returns what the core returns. */
uint64_t step_take(struct raft *raft, const struct step *step, struct raft_out *out);

/* Whether the owner sends `step->message`, beside the messages of the effects. */
static inline bool step_is_sending(const struct step *step, uint64_t result) {
    return step->type == STEP_SENT || (step->type == STEP_OVERTAKE && result);
}

/* What came of a step: the state, the effects, and what the core returned. */
uint32_t step_hash(const struct raft *raft, const struct step *step, const struct raft_out *out,
                   uint64_t result);

const char *step_name(uint8_t type);

#endif
