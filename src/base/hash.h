/* The hash of bytes.  Seeded, so that nobody outside can choose what collides. */
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

#endif
