/* Memory of a run: one reserved range of addresses that grows in place.
 *
 * Growing never moves memory that was handed out, so pointers stay valid until the arena is closed,
 * and resetting keeps the pages for the next run.  Memory is zeroed, after a reset too. */
#ifndef CV_BASE_ARENA_H
#define CV_BASE_ARENA_H

#include <stddef.h>
#include <stdint.h>

struct arena {
    unsigned char *base;
    size_t used, usable, reserved; /* bytes: handed out, backed by memory, reserved */
};

/* Reserves addresses (not memory), fewer where the system has a limit.  Returns 0, or -1. */
int arena_open(struct arena *arena, uint64_t reserve);
void arena_close(struct arena *arena);
void arena_reset(struct arena *arena);

/* Aligned to 64 bytes.  Ends the program with a message when memory runs out: a simulation cannot
 * continue without it. */
void *arena_take(struct arena *arena, size_t bytes);

/* Extends the newest piece by `bytes`, contiguously. */
void *arena_extend(struct arena *arena, size_t bytes);

#endif
