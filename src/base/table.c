#include "base/table.h"

#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>

/* ---- Memory ---- */

enum { HUGE_PAGE = 1 << 21 };

static size_t size_of(uint32_t slots) { return slots * sizeof(struct table_slot); }
static bool is_large(uint32_t slots) { return size_of(slots) >= 2 * HUGE_PAGE; }

/* Lookups in a large table are random accesses: with pages of the default size each would miss the
 * TLB.  The system zeroes them as they are touched, not all at once. */
static struct table_slot *map_slots(size_t size) {
    unsigned char *mapped = mmap(NULL, size + HUGE_PAGE, PROT_READ | PROT_WRITE,
                                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    cv_assert(mapped != MAP_FAILED);
    size_t before = -(uintptr_t)mapped & (HUGE_PAGE - 1);
    if (before) munmap(mapped, before);
    munmap(mapped + before + size, HUGE_PAGE - before);
    madvise(mapped + before, size, MADV_HUGEPAGE);
    return (struct table_slot *)(void *)(mapped + before);
}

static struct table_slot *new_slots(uint32_t count) {
    struct table_slot *slots =
        is_large(count) ? map_slots(size_of(count)) : calloc(1, size_of(count));
    cv_assert(slots);
    return slots;
}

static void free_slots(struct table_slot *slots, uint32_t count) {
    if (slots && is_large(count))
        munmap(slots, size_of(count));
    else
        free(slots);
}

static size_t mapped(const struct table_slot *slots, uint32_t count) {
    return slots && is_large(count) ? size_of(count) : 0;
}

size_t table_mapped(const struct table *table) {
    return mapped(table->slot, table->slots) + mapped(table->old, table->old_slots) +
           mapped(table->next, table->slots * 2);
}

void table_close(struct table *table) {
    free_slots(table->slot, table->slots);
    free_slots(table->old, table->old_slots);
    free_slots(table->next, table->slots * 2);
    *table = (struct table){0};
}

/* ---- Growing ---- */

void table_move(struct table *table, uint32_t slots) {
    for (; slots && table->moved < table->old_slots; slots--, table->moved++) {
        struct table_slot slot = table->old[table->moved];
        if (slot.number && slot.number != TABLE_GONE) table_place(table, slot.hash, slot.number);
    }
    if (table->moved < table->old_slots) return;
    /* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): `old` and `next` are never the same */
    free_slots(table->old, table->old_slots);
    table->old = NULL;
    table->old_slots = table->moved = 0;
}

static void resize(struct table *table, uint32_t slots) {
    struct table old = *table;
    cv_assert(slots && slots <= 1u << 31);
    bool prepared = old.next && slots == old.slots * 2;
    if (!prepared) free_slots(old.next, old.slots * 2);
    *table = (struct table){.slot = prepared ? old.next : new_slots(slots),
                            .slots = slots,
                            .used = old.used,
                            .old = old.slot,
                            .old_slots = old.slots};
}

/* It grows after a quarter of its slots were used, and has touched all by then. */
void table_prepare(struct table *table) {
    enum { TOUCHED_EACH = 2 * 4 * 2 * sizeof(struct table_slot) };
    size_t size = size_of(table->slots * 2);
    if (!is_large(table->slots * 2) || table->touched == size) return;
    if (!table->next) table->next = new_slots(table->slots * 2);
    memset((unsigned char *)table->next + table->touched, 0, TOUCHED_EACH);
    table->touched += TOUCHED_EACH;
}

void table_grow(struct table *table) {
    enum { AT_ONCE = 1 << 6 };
    table_move(table, UINT32_MAX);
    resize(table, table->slots ? table->slots * 2 : 64);
    if (table->old_slots <= AT_ONCE) table_move(table, UINT32_MAX);
}

void table_reserve(struct table *table, uint32_t count) {
    uint32_t slots = table->slots ? table->slots : 64;
    while (count > slots / 4 * 3) {
        cv_assert(slots < 1u << 31);
        slots *= 2;
    }
    if (slots == table->slots) return;
    table_move(table, UINT32_MAX);
    resize(table, slots);
    table_move(table, UINT32_MAX);
}

/* ---- While it grows ---- */

uint32_t table_next_old(const struct table *table, struct probe *probe) {
    for (;;) {
        uint32_t at = probe->at;
        const struct table_slot *slot = &table->old[at];
        if (!slot->number) return 0;
        probe->at = (at + 1) & (table->old_slots - 1);
        bool there = at >= table->moved && slot->number != TABLE_GONE;
        if (there && slot->hash == probe->hash) return slot->number;
    }
}

void table_remove_old(struct table *table, uint32_t hash, uint32_t number) {
    uint32_t at = hash & (table->old_slots - 1);
    while (table->old[at].number != number || at < table->moved) {
        cv_assert(table->old[at].number);
        at = (at + 1) & (table->old_slots - 1);
    }
    table->old[at].number = TABLE_GONE;
    table->used--;
}
