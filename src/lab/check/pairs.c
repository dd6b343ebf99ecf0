#include "lab/check/pairs.h"

#include <string.h>

#include "base/assert.h"

enum { SLOTS_MIN = 1 << 14 };
#define RESERVE ((uint64_t)1 << 36)

int pairs_open(struct pairs *pairs) {
    *pairs = (struct pairs){0};
    if (arena_open(&pairs->pair_arena, RESERVE) != 0 ||
        arena_open(&pairs->slot_arena, RESERVE) != 0 ||
        arena_open(&pairs->note_arena, RESERVE) != 0) {
        pairs_close(pairs);
        return -1;
    }
    pairs->pair = (uint64_t *)(void *)pairs->pair_arena.base;
    pairs->slot = (_Atomic uint32_t *)(void *)pairs->slot_arena.base;
    pairs->note = (_Atomic uint32_t *)(void *)pairs->note_arena.base;
    pairs_make_room(pairs, true);
    return 0;
}

void pairs_close(struct pairs *pairs) {
    arena_close(&pairs->pair_arena);
    arena_close(&pairs->slot_arena);
    arena_close(&pairs->note_arena);
}

/* ---- Looking up ---- */

/* A slot: the number of the pair in the low bits, a part of its hash above. */
static uint32_t slot_value(const struct pairs *pairs, uint32_t number, uint64_t hash) {
    return number | (uint32_t)((uint64_t)(uint32_t)hash << pairs->number_bits);
}

static uint32_t take_number(struct pairs *pairs, struct pairs_block *block) {
    if (block->next == block->end) {
        uint32_t first =
            atomic_fetch_add_explicit(&pairs->count, block->size, memory_order_relaxed);
        block->next = first + 1;
        block->end = first + 1 + block->size;
    }
    return block->next;
}

uint32_t pairs_put(struct pairs *pairs, struct pairs_block *block, uint64_t pair, uint64_t hash,
                   bool *is_new) {
    uint32_t mask = (uint32_t)(((uint64_t)1 << pairs->number_bits) - 1), own = 0;
    uint32_t tag = slot_value(pairs, 0, hash);
    uint64_t at = pairs_home(pairs, hash);
    for (;;) {
        uint32_t value = atomic_load_explicit(&pairs->slot[at], memory_order_acquire);
        if (!value) {
            own = take_number(pairs, block);
            pairs->pair[own] = pair;
            if (atomic_compare_exchange_strong_explicit(&pairs->slot[at], &value, tag | own,
                                                        memory_order_acq_rel,
                                                        memory_order_acquire)) {
                block->next++;
                return *is_new = true, own;
            }
        }
        if ((value & ~mask) == tag && pairs->pair[value & mask] == pair) {
            if (own) pairs->pair[own] = 0;
            return *is_new = false, value & mask;
        }
        if (++at == pairs->slots) at = 0;
    }
}

/* ---- Growing ---- */

/* The index is cleared and refilled from the pairs, so that no second one is ever needed. */
void pairs_make_room(struct pairs *pairs, bool more) {
    uint64_t slots = !more          ? pairs->slots
                     : pairs->slots ? pairs->slots + pairs->slots / 2
                                    : SLOTS_MIN;
    cv_assert(slots < UINT32_MAX);
    memset((void *)pairs->slot, 0, pairs->slots * sizeof *pairs->slot);
    arena_extend(&pairs->slot_arena, (slots - pairs->slots) * sizeof *pairs->slot);
    arena_extend(&pairs->pair_arena, (slots - pairs->slots) * sizeof *pairs->pair);
    arena_extend(&pairs->note_arena, (slots - pairs->slots) * sizeof *pairs->note);
    pairs->slots = slots;
    pairs->number_bits = 64 - (unsigned)__builtin_clzll(slots - 1);
}

static void put_back(struct pairs *pairs, uint32_t number, uint64_t hash) {
    uint64_t at = pairs_home(pairs, hash);
    uint32_t value = slot_value(pairs, number, hash), empty = 0;
    while (!atomic_compare_exchange_strong_explicit(&pairs->slot[at], &empty, value,
                                                    memory_order_relaxed, memory_order_relaxed)) {
        empty = 0;
        if (++at == pairs->slots) at = 0;
    }
}

void pairs_put_back(struct pairs *pairs, unsigned share, unsigned of) {
    enum { AHEAD = 16 };
    uint64_t count = atomic_load(&pairs->count), first = 1 + count * share / of,
             last = count * (share + 1) / of;
    for (uint64_t i = first; i <= last; i++) {
        if (i + AHEAD <= last) pairs_prefetch(pairs, pair_hash(pairs->pair[i + AHEAD]));
        if (pairs->pair[i]) put_back(pairs, (uint32_t)i, pair_hash(pairs->pair[i]));
    }
}

void pairs_drop_block(struct pairs *pairs, struct pairs_block *block) {
    for (; block->next < block->end; block->next++) pairs->pair[block->next] = 0;
    block->next = block->end = 0;
}

uint64_t pairs_bytes(const struct pairs *pairs) {
    return (uint64_t)atomic_load(&pairs->count) * PAIR_BYTES + pairs->slots * sizeof *pairs->slot;
}
