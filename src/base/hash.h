/* The hash of bytes.  It is seeded, so that clients cannot choose colliding keys. */
#ifndef CV_BASE_HASH_H
#define CV_BASE_HASH_H

#include <stdint.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

static inline uint64_t hash_long(const void *bytes, size_t size, uint64_t seed) {
    return XXH3_64bits_withSeed(bytes, size, seed);
}

static inline uint32_t hash_bytes(const void *bytes, size_t size, uint64_t seed) {
    return (uint32_t)hash_long(bytes, size, seed);
}

/* A hash that one pass gives for every prefix: a polynomial modulo a prime, at a secret point
 * (below the prime).  Begin with 0. */
#define HASH_PRIME       (((uint64_t)1 << 61) - 1)
#define HASH_POINT(SEED) ((SEED) % (HASH_PRIME - 256) + 256)
static inline uint64_t hash_roll(uint64_t hash, unsigned char byte, uint64_t point) {
    unsigned __int128 sum = (unsigned __int128)hash * point + byte + 1;
    uint64_t folded = (uint64_t)(sum & HASH_PRIME) + (uint64_t)(sum >> 61);
    return folded >= HASH_PRIME ? folded - HASH_PRIME : folded;
}

#endif
