/* Who is at a lock or at an election, as everybody can see it: from the names of its children, and
 * from what is in them. */
#ifndef CV_RECIPE_ROLL_H
#define CV_RECIPE_ROLL_H

#include "recipe/contend.h"
#include "recipe/note.h"

struct roll_entry {
    const char *name;
    enum contend_kind kind; /* of a candidate: exclusive */
    bool is_candidate;
    int32_t priority; /* of a candidate */

    /* Whoever reads the node fills these in. */
    struct note note;
    int64_t session, czxid, ctime;

    bool holds;
    int32_t slots;
    int64_t token;
    int64_t since;      /* wall clock, ms: when it joined the queue */
    int64_t held_since; /* ... and when it got it; 0: it waits */
    bool held_known;    /* it has said so; else that is when its node was created */
};

struct roll_leader { /* the leader's node of an election; all zero: there is none */
    struct note note;
    int64_t czxid, ctime;
};

/* Fills in who is there, in the order in which they are served; there is room for all names.  The
 * mark of an upgrade is left out: its owner is there as a shared one.  False: there is no memory.
 */
bool roll_list(struct roll_entry *entries, const char *const *names, size_t count, size_t *listed);
/* Who holds it, when all have been read. */
void roll_judge(struct roll_entry *entries, size_t count, const struct roll_leader *leader);

#endif
