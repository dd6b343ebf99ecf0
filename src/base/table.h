/* A hash index: numbers (not 0) by the hash of what they stand for.  Whoever looks up compares:
 *
 *   for (struct probe p = table_probe(&table, hash); (number = table_next(&table, &p));)
 *       if (is what was looked for) ...
 *
 * Open addressing with the hash beside the number, so that growing and removing need nothing of
 * what is indexed.  All zero: empty. */
#ifndef CV_BASE_TABLE_H
#define CV_BASE_TABLE_H

#include <stdint.h>
#include <stdlib.h>

#include "base/assert.h"

struct table_slot {
    uint32_t hash, number; /* number 0: empty */
};

struct table {
    struct table_slot *slot;
    uint32_t slots, used; /* slots: a power of two */
};

struct probe {
    uint32_t hash, at;
};

static inline struct probe table_probe(const struct table *table, uint32_t hash) {
    return (struct probe){hash, hash & (table->slots - 1)};
}

static inline uint32_t table_next(const struct table *table, struct probe *probe) {
    if (!table->slots) return 0;
    for (;;) {
        const struct table_slot *slot = &table->slot[probe->at];
        if (!slot->number) return 0;
        probe->at = (probe->at + 1) & (table->slots - 1);
        if (slot->hash == probe->hash) return slot->number;
    }
}

static inline void table_place(struct table *table, uint32_t hash, uint32_t number) {
    uint32_t at = hash & (table->slots - 1);
    while (table->slot[at].number) at = (at + 1) & (table->slots - 1);
    table->slot[at] = (struct table_slot){hash, number};
}

/* Room for that many, so that adding them does not stop to grow. */
void table_reserve(struct table *table, uint32_t count);

static inline void table_add(struct table *table, uint32_t hash, uint32_t number) {
    if (table->used >= table->slots / 4 * 3) table_reserve(table, table->used + 1);
    table_place(table, hash, number);
    table->used++;
}

/* The number must be there. */
static inline void table_remove(struct table *table, uint32_t hash, uint32_t number) {
    uint32_t mask = table->slots - 1, hole = hash & mask;
    while (table->slot[hole].number != number) {
        cv_assert(table->slot[hole].number);
        hole = (hole + 1) & mask;
    }
    /* What was pushed beyond the hole by what is in it moves up. */
    for (uint32_t at = (hole + 1) & mask; table->slot[at].number; at = (at + 1) & mask) {
        uint32_t home = table->slot[at].hash & mask;
        if (((at - home) & mask) < ((at - hole) & mask)) continue;
        table->slot[hole] = table->slot[at];
        hole = at;
    }
    table->slot[hole].number = 0;
    table->used--;
}

static inline void table_close(struct table *table) {
    free(table->slot);
    *table = (struct table){0};
}

#endif
