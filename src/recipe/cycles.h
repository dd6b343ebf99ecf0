/* Who waits for whom across locks, and where that is a circle.
 *
 * Waiters are sessions: one that waits at a lock waits for the sessions before it there, and one
 * under whose lock such a waiter runs waits for that waiter.  In a circle nobody gets on, unless
 * one of them does its waiting in a thread of its own. */
#ifndef CV_RECIPE_CYCLES_H
#define CV_RECIPE_CYCLES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct wait {
    int64_t waiter, holder; /* sessions */
    size_t at;              /* the caller's: which lock, for instance */
    bool outer;             /* not at a lock: the other one runs under the waiter's */
};

/* A place in the queue of a lock. */
struct wait_place {
    int64_t session; /* 0: of none */
    bool holds, shared;
    int32_t slots;     /* more than 1: it wants one of them */
    const char *outer; /* see recipe/outer.h; NULL: none */
};

/* Calls `each` for those before one, by their numbers in the queue, for which it waits: none if it
 * holds. */
void cycles_waits(const struct wait_place *places, size_t waiter,
                  void (*each)(size_t waiter, size_t before, void *arg), void *arg);

/* Calls `each` for the sessions under whose locks a waiter runs, as it says: they wait for it. None
 * if it holds. */
void cycles_outer(const struct wait_place *place, void (*each)(int64_t session, void *arg),
                  void *arg);

/* Calls `found` for circles until every waiter that is in one was in a circle that was told: each
 * one's waits, in their order, the holder of one being the waiter of the next.  Sorts `waits`.
 * Returns how many there were. */
size_t cycles_find(struct wait *waits, size_t count,
                   void (*found)(const struct wait *const *circle, size_t size, void *arg),
                   void *arg);

#endif
