/* Which kinds of things may happen in a world, beside those that may in any.  A world has some of
 * them, by its seed: each has a coin of its own, so that a new kind changes nothing in worlds that
 * do not have it. */
#include <stdio.h>
#include <string.h>

#include "world.h"

static const struct {
    const char *name;
    double share; /* of the worlds that have it */
    bool off;     /* by default, because the servers cannot bear it yet */
} kinds[KINDS] = {
    [KIND_MEMBERS] = {"members", 0.3, false}, [KIND_WEIGHTS] = {"weights", 0.2, false},
    [KIND_SYNCS] = {"syncs", 0.2, false},     [KIND_ROT] = {"rot", 0.2, false},
    [KIND_READS] = {"reads", 0.1, false},     [KIND_WIPES] = {"wipes", 0.2, false},
    [KIND_PARTIAL] = {"partial", 0.2, false}, [KIND_FLIPS] = {"flips", 0.2, false},
    [KIND_STALLS] = {"stalls", 0.2, false},   [KIND_DRIFT] = {"drift", 0.3, false},
    [KIND_SUSPEND] = {"suspend", 0.2, false}, [KIND_TERMS] = {"terms", 0.05, false},
    [KIND_CHUNKS] = {"chunks", 0.4, false},   [KIND_MULTI] = {"multi", 0.4, false},
    [KIND_GUARD] = {"guard", 0.3, false},     [KIND_LASTING] = {"lasting", 0.4, false},
    [KIND_TTL] = {"ttl", 0.2, false},         [KIND_DAMAGE] = {"damage", 0.15, false},
};

uint64_t kinds_default(void) {
    uint64_t set = 0;
    for (unsigned i = 0; i < KINDS; i++) set |= (uint64_t)!kinds[i].off << i;
    return set;
}

bool kinds_read(const char *text, uint64_t *set, const char **end) {
    *set = 0;
    for (const char *at = text; *at; at += *at == ',') {
        size_t size = strcspn(at, ",");
        unsigned i = 0;
        while (i < KINDS && (strlen(kinds[i].name) != size || memcmp(kinds[i].name, at, size))) i++;
        *end = at;
        if (i == KINDS) return false;
        *set |= (uint64_t)1 << i;
        at += size;
    }
    return true;
}

uint64_t kinds_choose(uint64_t seed, uint64_t permitted, bool all) {
    uint64_t set = 0;
    for (unsigned i = 0; i < KINDS; i++) {
        struct rng coin;
        rng_seed(&coin, seed * 64 + i + ((uint64_t)1 << 50));
        set |= (uint64_t)(all || rng_chance(&coin, kinds[i].share)) << i;
    }
    return set & permitted;
}

void kinds_print(void) {
    for (unsigned i = 0; i < KINDS; i++)
        printf("%-16s %s\n", kinds[i].name, kinds[i].off ? "" : "by default");
}
