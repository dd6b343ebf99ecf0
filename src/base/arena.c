#include "base/arena.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/assert.h"

enum { ARENA_ALIGN = 64, ARENA_STEP_MIN = 1 << 16, ARENA_LARGE = 8 << 20 };

static void *reserve_addresses(uint64_t bytes) {
    return mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
}

/* The address space may be limited (ulimit -v, a sanitizer): then others need a part of it, too. */
static uint64_t part_of_addresses(uint64_t wanted) {
    enum { OTHERS = 16 };
    void *most;
    while ((most = reserve_addresses(wanted)) == MAP_FAILED)
        if ((wanted /= 2) < ARENA_STEP_MIN) return 0;
    munmap(most, wanted);
    return wanted / OTHERS;
}

int arena_open(struct arena *arena, uint64_t reserve) {
    void *base = reserve_addresses(reserve);
    if (base == MAP_FAILED) {
        reserve = part_of_addresses(reserve);
        if (reserve < ARENA_STEP_MIN) return -1;
        base = reserve_addresses(reserve);
        if (base == MAP_FAILED) return -1;
    }
    *arena = (struct arena){.base = base, .reserved = reserve};
    return 0;
}

void arena_close(struct arena *arena) {
    if (arena->base) munmap(arena->base, arena->reserved);
    *arena = (struct arena){0};
}

void arena_reset(struct arena *arena) {
    if (arena->used) memset(arena->base, 0, arena->used);
    arena->used = 0;
}

static void grow(struct arena *arena, size_t needed) {
    size_t usable = arena->usable + arena->usable / 2;
    if (usable < needed + ARENA_STEP_MIN) usable = needed + ARENA_STEP_MIN;
    usable = (usable + 4095) & ~(size_t)4095;
    if (usable > arena->reserved) usable = arena->reserved;
    if (needed > usable) {
        fprintf(stderr,
                "conclave: out of address space: %zu MiB were asked for of %zu, which is what "
                "'ulimit -v' leaves; raise it, or use fewer processes\n",
                needed >> 20, arena->reserved >> 20);
        exit(3);
    }
    if (mprotect(arena->base, usable, PROT_READ | PROT_WRITE) != 0) {
        fprintf(stderr, "conclave: out of memory: %zu MiB were asked for; use fewer processes\n",
                needed >> 20);
        exit(3);
    }
    arena->usable = usable;
    if (usable >= ARENA_LARGE) madvise(arena->base, usable, MADV_HUGEPAGE);
}

void *arena_extend(struct arena *arena, size_t bytes) {
    size_t at = arena->used;
    cv_assert(bytes <= SIZE_MAX - at);
    if (at + bytes > arena->usable) grow(arena, at + bytes);
    arena->used = at + bytes;
    return arena->base + at;
}

void *arena_take(struct arena *arena, size_t bytes) {
    size_t gap = -arena->used & (ARENA_ALIGN - 1);
    return (unsigned char *)arena_extend(arena, gap + bytes) + gap;
}
