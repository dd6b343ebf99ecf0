/* A set of pairs of numbers, each of which gets a number of its own, from 1.
 *
 * This is the tree compression of states: a state is a pair of pairs of ... of its parts, so parts
 * that many states share are kept once (after Laarman, van de Pol & Weber, Parallel recursive state
 * compression for free, SPIN 2011).  Pairs are stored in the order of their insertion; a hash index
 * of 4 bytes a slot finds them.  The bits of a slot that no number needs hold a part of the hash,
 * so that a wrong slot is seldom followed.
 *
 * Any number of threads may look up and add; none may do so while it grows. */
#ifndef CV_LAB_CHECK_PAIRS_H
#define CV_LAB_CHECK_PAIRS_H

#include <stdatomic.h>
#include <stdbool.h>

#include "base/arena.h"
#include "base/rng.h"

struct pairs {
    struct arena pair_arena, slot_arena, note_arena;
    uint64_t *pair;         /* by number */
    _Atomic uint32_t *note; /* by number: a word for the owner */
    _Atomic uint32_t *slot; /* 0: empty */
    uint64_t slots;
    unsigned number_bits;                /* of a slot; the others are of the hash */
    _Alignas(64) _Atomic uint32_t count; /* the newest number */
};

enum { PAIR_BYTES = sizeof(uint64_t) + sizeof(uint32_t) }; /* a pair and its note */

/* Threads get numbers in blocks, to avoid contention. */
struct pairs_block {
    uint32_t next, end;
    uint32_t size; /* of a block */
};

int pairs_open(struct pairs *pairs);
void pairs_close(struct pairs *pairs);

static inline uint64_t pair_of(uint32_t a, uint32_t b) { return (uint64_t)a << 32 | b; }
static inline uint64_t pair_hash(uint64_t pair) { return rng_mix(pair * 0x9e3779b97f4a7c15u); }

static inline uint64_t pairs_home(const struct pairs *pairs, uint64_t hash) {
    return (hash >> 32) * pairs->slots >> 32;
}
static inline void pairs_prefetch(const struct pairs *pairs, uint64_t hash) {
    __builtin_prefetch((const void *)&pairs->slot[pairs_home(pairs, hash)]);
}

/* The number of a pair, which is added when it is new. */
uint32_t pairs_put(struct pairs *pairs, struct pairs_block *block, uint64_t pair, uint64_t hash,
                   bool *is_new);

/* Whether it has to grow before another state is expanded. */
static inline bool pairs_crowded(const struct pairs *pairs) {
    return atomic_load_explicit(&pairs->count, memory_order_relaxed) > pairs->slots / 4 * 3;
}
/* Growing: one thread makes room (or, without `more`, clears the index because the pairs have
 * changed), then each of `of` threads reinserts its share. */
void pairs_make_room(struct pairs *pairs, bool more);
void pairs_put_back(struct pairs *pairs, unsigned share, unsigned of);
/* Numbers of a block that a thread did not use stay empty. */
void pairs_drop_block(struct pairs *pairs, struct pairs_block *block);
uint64_t pairs_bytes(const struct pairs *pairs);

#endif
