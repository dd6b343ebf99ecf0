/* Who leads: decided from the names of an election's children.
 *
 * A candidate is a node OWNER__candidatePRIORITY__SEQUENCE; the leader has, besides, the node
 * `leader`, which only one can create.  Candidates are in the order of their priorities, the
 * highest first, then of their sequence numbers.  The first one watches the leader's node and
 * becomes the leader when there is none; each of the others watches the candidate before it, so
 * that an end wakes few.  One that comes later with a higher priority is the first then; who was
 * first before looks again when its watch fires, and finds it. */
#ifndef CV_RECIPE_ELECTION_H
#define CV_RECIPE_ELECTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ELECTION_LEADER "leader"

struct candidate {
    const char *name;
    const char *owner; /* not terminated */
    uint32_t owner_size;
    int32_t priority, sequence;
    int32_t rank; /* grows with the sequence, within one list */
};

/* Whether a name is a candidate's; `candidate` then points into it. */
bool election_parse(struct candidate *candidate, const char *name);
/* Parses names into `candidates`, which has room for all of them, and orders them. */
size_t election_list(struct candidate *candidates, const char *const *names, size_t count);

struct election_verdict {
    const struct candidate *mine;  /* NULL: I am no candidate */
    const struct candidate *ahead; /* whom to watch; NULL: I am the first */
    int32_t position;              /* how many are ahead */
};

struct election_verdict election_judge(const struct candidate *candidates, size_t count,
                                       const char *owner, size_t owner_size);

/* Whether the first candidate asks the leader to resign. */
struct election_term {
    int32_t priority; /* the leader's */
    bool stable;      /* it keeps the lead while it is well */
    bool asked;       /* somebody has asked it already */
};
bool election_asks(const struct election_term *term, int32_t my_priority, bool i_am_patient);

#endif
