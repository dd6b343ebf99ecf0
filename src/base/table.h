/* A hash index: numbers (not 0) by the hash of what they stand for.  The caller compares:
 *
 *   for (struct probe p = table_probe(&table, hash); (number = table_next(&table, &p));)
 *       if (number stands for the key) ...
 *
 * Open addressing (linear probing) with the hash beside the number, so that growing and removing do
 * not need the keys.  A table that grows moves a few slots with each change, so that none takes
 * long: until all are moved, numbers are in one of two arrays.  The memory of a large one is
 * touched bit by bit before, because the system takes milliseconds to give a huge page.  All zero:
 * empty. */
#ifndef CV_BASE_TABLE_H
#define CV_BASE_TABLE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/assert.h"

struct table_slot {
    uint32_t hash, number; /* number 0: empty */
};
#define TABLE_GONE UINT32_MAX /* a number that was removed from `old` */

struct table {
    struct table_slot *slot;
    uint32_t slots, used;      /* slots: a power of two */
    struct table_slot *old;    /* as it was before it grew; NULL: all is moved */
    uint32_t old_slots, moved; /* the first `moved` are, and stay where they were in chains */
    struct table_slot *next;   /* twice as large, for when it grows; NULL: none yet */
    size_t touched;            /* bytes of it */
};

struct probe {
    uint32_t hash, at;
    bool in_old;
};

static inline struct probe table_probe(const struct table *table, uint32_t hash) {
    return (struct probe){hash, hash & (table->slots - 1), false};
}

uint32_t table_next_old(const struct table *table, struct probe *probe);

static inline uint32_t table_next(const struct table *table, struct probe *probe) {
    if (!table->slots) return 0;
    while (!probe->in_old) {
        const struct table_slot *slot = &table->slot[probe->at];
        if (!slot->number) {
            if (!table->old) return 0;
            *probe = (struct probe){probe->hash, probe->hash & (table->old_slots - 1), true};
            break;
        }
        probe->at = (probe->at + 1) & (table->slots - 1);
        if (slot->hash == probe->hash) return slot->number;
    }
    return table_next_old(table, probe);
}

static inline void table_place(struct table *table, uint32_t hash, uint32_t number) {
    uint32_t at = hash & (table->slots - 1);
    while (table->slot[at].number) at = (at + 1) & (table->slots - 1);
    table->slot[at] = (struct table_slot){hash, number};
}

/* Room for that many, so that adding them does not grow the table. */
void table_reserve(struct table *table, uint32_t count);

void table_grow(struct table *table);
void table_prepare(struct table *table); /* to grow soon */

size_t table_mapped(const struct table *table); /* bytes that malloc does not know of */
void table_move(struct table *table, uint32_t slots);
enum { TABLE_MOVES = 16 }; /* with each change: all are moved long before it grows again */

static inline void table_add(struct table *table, uint32_t hash, uint32_t number) {
    if (table->old) table_move(table, TABLE_MOVES);
    if (table->used >= table->slots / 2) table_prepare(table);
    if (table->used >= table->slots / 4 * 3) table_grow(table);
    table_place(table, hash, number);
    table->used++;
}

void table_remove_old(struct table *table, uint32_t hash, uint32_t number);

/* The number must be there. */
static inline void table_remove(struct table *table, uint32_t hash, uint32_t number) {
    if (table->old) table_move(table, TABLE_MOVES);
    uint32_t mask = table->slots - 1, hole = hash & mask;
    while (table->slot[hole].number != number) {
        if (!table->slot[hole].number && table->old) {
            table_remove_old(table, hash, number);
            return;
        }
        cv_assert(table->slot[hole].number);
        hole = (hole + 1) & mask;
    }
    /* Backward shift: later numbers of the cluster fill the hole, unless it is before their home.
     */
    for (uint32_t at = (hole + 1) & mask; table->slot[at].number; at = (at + 1) & mask) {
        uint32_t home = table->slot[at].hash & mask;
        if (((at - home) & mask) < ((at - hole) & mask)) continue;
        table->slot[hole] = table->slot[at];
        hole = at;
    }
    table->slot[hole].number = 0;
    table->used--;
}

void table_close(struct table *table);

#endif
