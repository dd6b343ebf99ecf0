/* A timer wheel: pending events in order of time, then of insertion, at a constant cost each.
 *
 * Level k has 64 slots of 64^k ticks.  A node sits on the level of the highest digit (base 64) in
 * which its time differs from the present, so it moves down at most once per level, and whatever
 * shares a slot was inserted in the order in which it stands there: an earlier node of the same time
 * has always been moved down before a later one can be inserted below.  Nodes are records of the
 * caller that begin with a wheel_node, addressed by index; index 0 means none. */
#ifndef CV_BASE_WHEEL_H
#define CV_BASE_WHEEL_H

#include <stddef.h>
#include <stdint.h>

#include "base/assert.h"

enum { WHEEL_BITS = 6, WHEEL_SLOTS = 1 << WHEEL_BITS, WHEEL_LEVELS = 11 };

struct wheel_node {
    uint64_t time;
    uint32_t next, prev;
};

struct wheel_list {
    uint32_t first, last;
};

struct wheel {
    uint64_t now;
    unsigned char *nodes; /* the caller's records */
    size_t stride;        /* bytes from one to the next */
    uint64_t count;
    uint32_t levels; /* bit per level that holds anything */
    uint64_t occupied[WHEEL_LEVELS];
    struct wheel_list slot[WHEEL_LEVELS][WHEEL_SLOTS];
};

static inline struct wheel_node *wheel_at(const struct wheel *w, uint32_t index) {
    return (struct wheel_node *)(w->nodes + w->stride * index);
}

static inline void wheel_append(const struct wheel *w, struct wheel_list *list, uint32_t index) {
    struct wheel_node *node = wheel_at(w, index);
    node->next = 0;
    node->prev = list->last;
    if (list->last)
        wheel_at(w, list->last)->next = index;
    else
        list->first = index;
    list->last = index;
}

static inline void wheel_unlink(const struct wheel *w, struct wheel_list *list, uint32_t index) {
    const struct wheel_node *node = wheel_at(w, index);
    if (node->prev)
        wheel_at(w, node->prev)->next = node->next;
    else
        list->first = node->next;
    if (node->next)
        wheel_at(w, node->next)->prev = node->prev;
    else
        list->last = node->prev;
}

static inline unsigned wheel_level(uint64_t now, uint64_t time) {
    return now == time ? 0 : (unsigned)(63 - __builtin_clzll(now ^ time)) / WHEEL_BITS;
}

static inline unsigned wheel_slot(uint64_t time, unsigned level) {
    return (unsigned)(time >> (WHEEL_BITS * level)) & (WHEEL_SLOTS - 1);
}

static inline void wheel_place(struct wheel *w, uint32_t index) {
    uint64_t time = wheel_at(w, index)->time;
    unsigned level = wheel_level(w->now, time), slot = wheel_slot(time, level);
    wheel_append(w, &w->slot[level][slot], index);
    w->occupied[level] |= (uint64_t)1 << slot;
    w->levels |= 1u << level;
}

static inline void wheel_clear_if_empty(struct wheel *w, unsigned level, unsigned slot) {
    if (w->slot[level][slot].first) return;
    w->occupied[level] &= ~((uint64_t)1 << slot);
    if (!w->occupied[level]) w->levels &= ~(1u << level);
}

static inline void wheel_insert(struct wheel *w, uint32_t index, uint64_t time) {
    cv_assert(time >= w->now);
    wheel_at(w, index)->time = time;
    w->count++;
    wheel_place(w, index);
}

static inline void wheel_remove(struct wheel *w, uint32_t index) {
    uint64_t time = wheel_at(w, index)->time;
    unsigned level = wheel_level(w->now, time), slot = wheel_slot(time, level);
    wheel_unlink(w, &w->slot[level][slot], index);
    wheel_clear_if_empty(w, level, slot);
    w->count--;
}

/* Spreads the earliest occupied slot above level 0 over the levels below it. */
static inline void wheel_cascade(struct wheel *w) {
    unsigned level = (unsigned)__builtin_ctz(w->levels);
    unsigned slot = (unsigned)__builtin_ctzll(w->occupied[level]);
    unsigned shift = WHEEL_BITS * level;
    uint64_t above = shift + WHEEL_BITS < 64 ? w->now >> (shift + WHEEL_BITS) << WHEEL_BITS : 0;
    w->now = (above | slot) << shift;
    uint32_t index = w->slot[level][slot].first;
    w->slot[level][slot] = (struct wheel_list){0};
    wheel_clear_if_empty(w, level, slot);
    while (index) {
        uint32_t next = wheel_at(w, index)->next;
        wheel_place(w, index);
        index = next;
    }
}

/* Takes out the earliest node and moves the present to its time; 0 when there is none. */
static inline uint32_t wheel_pop(struct wheel *w) {
    if (!w->count) return 0;
    while (!(w->levels & 1)) wheel_cascade(w);
    unsigned slot = (unsigned)__builtin_ctzll(w->occupied[0]);
    uint32_t index = w->slot[0][slot].first;
    w->now = wheel_at(w, index)->time;
    wheel_unlink(w, &w->slot[0][slot], index);
    wheel_clear_if_empty(w, 0, slot);
    w->count--;
    return index;
}

#endif
