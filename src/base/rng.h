/* Random numbers that are the same on every machine for the same seed: xoshiro256++ (Blackman and
 * Vigna), its state filled by splitmix64. */
#ifndef CV_BASE_RNG_H
#define CV_BASE_RNG_H

#include <stdint.h>

struct rng {
    uint64_t s[4];
};

static inline uint64_t
rng_mix(uint64_t x) { /* splitmix64's finalizer: every bit reaches every bit */
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

static inline void rng_seed(struct rng *rng, uint64_t seed) {
    for (int i = 0; i < 4; i++) rng->s[i] = rng_mix(seed += 0x9e3779b97f4a7c15u);
}

static inline uint64_t rng_rotate(uint64_t x, int k) { return (x << k) | (x >> (64 - k)); }

static inline uint64_t rng_next(struct rng *rng) {
    uint64_t *s = rng->s, result = rng_rotate(s[0] + s[3], 23) + s[0], t = s[1] << 17;
    s[2] ^= s[0], s[3] ^= s[1], s[1] ^= s[2], s[0] ^= s[3];
    s[2] ^= t, s[3] = rng_rotate(s[3], 45);
    return result;
}

/* Uniform in [0, 1). */
static inline double rng_unit(struct rng *rng) { return (double)(rng_next(rng) >> 11) * 0x1p-53; }

/* Uniform in [0, bound), without the bias of a plain remainder (Lemire's method). */
static inline uint64_t rng_below(struct rng *rng, uint64_t bound) {
    unsigned __int128 product = (unsigned __int128)rng_next(rng) * bound;
    if ((uint64_t)product < bound)
        for (uint64_t floor = -bound % bound; (uint64_t)product < floor;)
            product = (unsigned __int128)rng_next(rng) * bound;
    return (uint64_t)(product >> 64);
}

/* True with the given probability. */
static inline int rng_chance(struct rng *rng, double probability) {
    return probability > 0 && rng_unit(rng) < probability;
}

#endif
