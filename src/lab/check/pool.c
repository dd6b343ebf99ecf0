#include "lab/check/pool.h"

#include <string.h>

#include "base/assert.h"
#include "base/rng.h"

enum { NUMBER_BITS = 27 }; /* of a slot */
enum { SLOTS_MIN = 1 << 10, HEAD = 2, SQUEEZED_MAX = HEAD + POOL_BYTES_MAX / 8 * 9 };
#define RESERVE ((uint64_t)1 << 32)

static void add_slots(struct pool *pool, uint32_t more) {
    arena_extend(&pool->slot_arena, more * sizeof *pool->slot);
    arena_extend(&pool->offset_arena, more * sizeof *pool->offset);
    pool->slots += more;
}

int pool_open(struct pool *pool) {
    *pool = (struct pool){0};
    if (arena_open(&pool->bytes, RESERVE) != 0 || arena_open(&pool->offset_arena, RESERVE) != 0 ||
        arena_open(&pool->slot_arena, RESERVE) != 0) {
        pool_close(pool);
        return -1;
    }
    pool->offset = (uint32_t *)(void *)pool->offset_arena.base;
    pool->slot = (uint32_t *)(void *)pool->slot_arena.base;
    add_slots(pool, SLOTS_MIN);
    return 0;
}

void pool_close(struct pool *pool) {
    arena_close(&pool->bytes);
    arena_close(&pool->offset_arena);
    arena_close(&pool->slot_arena);
}

/* ---- Without zeros ---- */

static uint32_t squeeze(const unsigned char *bytes, uint32_t size, unsigned char *to) {
    uint32_t used = HEAD;
    to[0] = (unsigned char)size, to[1] = (unsigned char)(size >> 8);
    for (uint32_t at = 0; at < size; at += 8) {
        uint32_t mask = used++;
        to[mask] = 0;
        for (uint32_t i = at; i < at + 8 && i < size; i++) {
            if (!bytes[i]) continue;
            to[mask] |= (unsigned char)(1u << (i - at));
            to[used++] = bytes[i];
        }
    }
    return used;
}

static uint32_t squeezed_size(const unsigned char *squeezed) {
    uint32_t size = squeezed[0] | (uint32_t)squeezed[1] << 8, used = HEAD;
    for (uint32_t at = 0; at < size; at += 8)
        used += 1 + (uint32_t)__builtin_popcount(squeezed[used]);
    return used;
}

uint32_t pool_get(const struct pool *pool, uint32_t number, void *bytes) {
    const unsigned char *from = pool->bytes.base + pool->offset[number];
    unsigned char *to = bytes;
    uint32_t size = from[0] | (uint32_t)from[1] << 8;
    from += HEAD;
    for (uint32_t at = 0; at < size; at += 8) {
        memset(to + at, 0, 8);
        for (unsigned mask = *from++; mask; mask &= mask - 1)
            to[at + (unsigned)__builtin_ctz(mask)] = *from++;
    }
    return size;
}

/* ---- Finding ---- */

static uint64_t hash_of(const unsigned char *bytes, uint32_t size) {
    uint64_t hash = size, word;
    uint32_t i = 0;
    for (; i + 8 <= size; i += 8) {
        memcpy(&word, bytes + i, 8);
        hash = rng_mix(hash ^ word);
    }
    word = 0;
    if (i < size) memcpy(&word, bytes + i, size - i);
    return rng_mix(hash ^ word);
}

static uint32_t home(const struct pool *pool, uint64_t hash) {
    return (uint32_t)((hash >> 32) * pool->slots >> 32);
}

/* A slot: the number in the low bits, a part of the hash above. */
static uint32_t slot_value(uint32_t number, uint64_t hash) {
    return number | (uint32_t)hash << NUMBER_BITS;
}

static uint32_t next_slot(const struct pool *pool, uint32_t at) {
    return at + 1 == pool->slots ? 0 : at + 1;
}

static void grow(struct pool *pool) {
    memset(pool->slot, 0, pool->slots * sizeof *pool->slot);
    add_slots(pool, pool->slots / 2);
    for (uint32_t i = 1; i <= pool->count; i++) {
        const unsigned char *kept = pool->bytes.base + pool->offset[i];
        uint64_t hash = hash_of(kept, squeezed_size(kept));
        uint32_t at = home(pool, hash);
        while (pool->slot[at]) at = next_slot(pool, at);
        pool->slot[at] = slot_value(i, hash);
    }
}

uint32_t pool_put(struct pool *pool, const void *bytes, uint32_t size) {
    unsigned char squeezed[SQUEEZED_MAX];
    cv_assert(size <= POOL_BYTES_MAX);
    uint32_t used = squeeze(bytes, size, squeezed);
    if (pool->count >= pool->slots / 4 * 3) grow(pool);
    uint64_t hash = hash_of(squeezed, used);
    uint32_t at = home(pool, hash), tag = slot_value(0, hash);
    for (uint32_t slot; (slot = pool->slot[at]); at = next_slot(pool, at)) {
        uint32_t number = slot & ((1u << NUMBER_BITS) - 1);
        if (slot != (tag | number)) continue;
        const unsigned char *kept = pool->bytes.base + pool->offset[number];
        size_t room = pool->bytes.used - pool->offset[number];
        if (room >= used && memcmp(kept, squeezed, used) == 0) return number;
    }
    size_t offset = pool->bytes.used;
    cv_assert(offset + used < UINT32_MAX);
    memcpy(arena_extend(&pool->bytes, used), squeezed, used);
    cv_assert(pool->count + 1 < 1u << NUMBER_BITS);
    pool->slot[at] = slot_value(++pool->count, hash);
    pool->offset[pool->count] = (uint32_t)offset;
    return pool->count;
}

uint64_t pool_bytes(const struct pool *pool) {
    return pool->bytes.used + pool->slots * sizeof *pool->slot + pool->count * sizeof *pool->offset;
}
