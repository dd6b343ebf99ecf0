/* Arenas in a memory of four gigabytes that only grows: an address costs nothing until it is
 * written to, so an arena has a range of its own here too, a small part of what it asks for. */
#include "base/arena.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"

enum { ARENA_ALIGN = 64, PAGE = 1 << 16, SMALLEST = 4 << 20, LARGEST = 256 << 20, RANGES = 256 };

/* Ranges that were closed, for the next ones; `dirty` bytes of each have been used. */
static struct range {
    unsigned char *base;
    size_t size, dirty;
} unused[RANGES];

/* One of that size, or when none can be made the largest. */
static struct range *find_unused(size_t size) {
    struct range *found = NULL;
    for (struct range *r = unused; r < unused + RANGES; r++)
        if (r->base && (size ? r->size == size : !found || r->size > found->size)) found = r;
    return found;
}

static struct range make_range(size_t size) {
    size_t before = __builtin_wasm_memory_grow(0, size / PAGE);
    return before == SIZE_MAX ? (struct range){0}
                              : (struct range){(void *)(before * PAGE), size, 0};
}

int arena_open(struct arena *arena, uint64_t reserve) {
    size_t size = reserve / 512 < LARGEST ? (size_t)(reserve / 512) : LARGEST;
    if (size < SMALLEST) size = SMALLEST;
    struct range *again = find_unused(size), range = again ? *again : make_range(size);
    if (!range.base && (again = find_unused(0))) range = *again;
    for (; !range.base && size >= SMALLEST / 4; size /= 2) range = make_range(size);
    if (!range.base) return -1;
    memset(range.base, 0, range.dirty);
    if (again) *again = (struct range){0};
    *arena = (struct arena){.base = range.base, .reserved = range.size};
    return 0;
}

void arena_close(struct arena *arena) {
    struct range *r = unused;
    while (r < unused + RANGES && r->base) r++;
    if (arena->base && r < unused + RANGES)
        *r = (struct range){arena->base, arena->reserved, arena->usable};
    *arena = (struct arena){0};
}

void arena_reset(struct arena *arena) {
    if (arena->used) memset(arena->base, 0, arena->used);
    arena->used = 0;
}

void *arena_extend(struct arena *arena, size_t bytes) {
    size_t at = arena->used;
    if (bytes > arena->reserved - at) {
        fprintf(stderr,
                "conclave: out of memory: a part of it has %zu MiB here, and more were asked for; "
                "use fewer processes, or the program conclave outside of the browser\n",
                arena->reserved >> 20);
        exit(3);
    }
    arena->used = at + bytes;
    if (arena->usable < arena->used) arena->usable = arena->used;
    return arena->base + at;
}

void *arena_take(struct arena *arena, size_t bytes) {
    size_t gap = -arena->used & (ARENA_ALIGN - 1);
    return (unsigned char *)arena_extend(arena, gap + bytes) + gap;
}
