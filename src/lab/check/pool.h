/* A pool of byte strings, each kept once and numbered from 1.
 *
 * States and messages are mostly small numbers in wide fields, so they are kept without their zero
 * bytes: for every eight bytes one that says which of them are not zero, and those. */
#ifndef CV_LAB_CHECK_POOL_H
#define CV_LAB_CHECK_POOL_H

#include "base/arena.h"

enum { POOL_BYTES_MAX = 1 << 14 }; /* of one string */

struct pool {
    struct arena bytes, offset_arena, slot_arena;
    uint32_t *offset; /* by number */
    uint32_t *slot;   /* 0: empty; else a number, and above it a part of the hash */
    uint32_t slots, count;
};

int pool_open(struct pool *pool);
void pool_close(struct pool *pool);
/* The number of a string, which is added when it is new. */
uint32_t pool_put(struct pool *pool, const void *bytes, uint32_t size);
/* Copies a string out and returns its size; `bytes` has room for the longest, in whole words. */
uint32_t pool_get(const struct pool *pool, uint32_t number, void *bytes);
uint64_t pool_bytes(const struct pool *pool);

#endif
