/* For how long a lock was held, as its contenders come and go: what estimates of waits are made
 * from.  Only of a plain lock, in whose queue each waits for all before it. */
#ifndef CV_RECIPE_HOLDS_H
#define CV_RECIPE_HOLDS_H

#include "recipe/waits.h"

enum { HOLDS_QUEUE_MAX = 256 };

struct holds {
    int32_t queue[HOLDS_QUEUE_MAX]; /* sequence numbers of those who are there, the holder first */
    size_t count;
    int64_t since_ms; /* the first of them holds it, by the caller's clock; and ... */
    bool seen;        /* ... it was seen when that began */
    struct waits waits;
};

/* Goes on from what is there now, unless that is what it knows already.  False: there are too many
 * to follow. */
bool holds_look(struct holds *holds, const int32_t *queue, size_t count, int64_t since_ms);
/* One has come, or has gone. */
void holds_join(struct holds *holds, int32_t sequence, int64_t now_ms);
void holds_leave(struct holds *holds, int32_t sequence, int64_t now_ms);

#endif
