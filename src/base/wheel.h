/* A hierarchical timer wheel: pending events in order of time, then of insertion, at a constant
 * cost each.
 *
 * The lowest level has a slot for each of 4,096 ticks, so that near events go to their final slot
 * at once; each level above has 64 slots, each as wide as the whole level below.  A node is on the
 * lowest level whose span it shares with the present, so it moves down at most once per level.  The
 * nodes of a slot are in the order of insertion: an earlier node of the same time has always been
 * moved down before a later one can be inserted below.  Nodes are records of the caller, 64 bytes
 * each, that begin with a wheel_node and are addressed by index; index 0 means none.
 *
 * A slot whose bit is not set is zero, so a wheel is cleared at the cost of what is in it. */
#ifndef CV_BASE_WHEEL_H
#define CV_BASE_WHEEL_H

#include <stddef.h>
#include <stdint.h>

#include "base/assert.h"

enum {
    WHEEL_NEAR_BITS = 12,
    WHEEL_NEAR = 1 << WHEEL_NEAR_BITS,
    WHEEL_BITS = 6,
    WHEEL_SLOTS = 1 << WHEEL_BITS,
    WHEEL_LEVELS = 9, /* above the lowest: together they span 64 bits */
    WHEEL_NODE_BYTES = 64,
};

struct wheel_node {
    uint64_t time;
    uint32_t next, prev;
};

struct wheel_list {
    uint32_t first, last;
};

struct wheel {
    uint64_t now, count;
    unsigned char *nodes; /* the caller's records */
    uint64_t near_words;  /* bit per word of near_slots that is not zero */
    uint64_t near_slots[WHEEL_NEAR / 64];
    uint64_t far_slots[WHEEL_LEVELS];
    struct wheel_list near[WHEEL_NEAR];
    struct wheel_list far[WHEEL_LEVELS][WHEEL_SLOTS];
};

static inline struct wheel_node *wheel_at(const struct wheel *w, uint32_t index) {
    return (struct wheel_node *)(void *)(w->nodes + (size_t)index * WHEEL_NODE_BYTES);
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

static inline unsigned wheel_shift(unsigned level) { return WHEEL_NEAR_BITS + WHEEL_BITS * level; }

/* For a time that does not share the lowest level with the present. */
static inline unsigned wheel_level(uint64_t now, uint64_t time) {
    return (unsigned)(63 - __builtin_clzll(now ^ time) - WHEEL_NEAR_BITS) / WHEEL_BITS;
}

static inline unsigned wheel_slot(uint64_t time, unsigned level) {
    return (unsigned)(time >> wheel_shift(level)) & (WHEEL_SLOTS - 1);
}

static inline void wheel_place(struct wheel *w, uint32_t index) {
    uint64_t time = wheel_at(w, index)->time;
    if ((time ^ w->now) < WHEEL_NEAR) {
        unsigned slot = (unsigned)time & (WHEEL_NEAR - 1);
        wheel_append(w, &w->near[slot], index);
        w->near_slots[slot / 64] |= (uint64_t)1 << slot % 64;
        w->near_words |= (uint64_t)1 << slot / 64;
    } else {
        unsigned level = wheel_level(w->now, time), slot = wheel_slot(time, level);
        wheel_append(w, &w->far[level][slot], index);
        w->far_slots[level] |= (uint64_t)1 << slot;
    }
}

static inline void wheel_unlink_near(struct wheel *w, unsigned slot, uint32_t index) {
    wheel_unlink(w, &w->near[slot], index);
    if (w->near[slot].first) return;
    w->near_slots[slot / 64] &= ~((uint64_t)1 << slot % 64);
    if (!w->near_slots[slot / 64]) w->near_words &= ~((uint64_t)1 << slot / 64);
}

/* Forgets all nodes and the time: as new, with the same `nodes`. */
static inline void wheel_clear(struct wheel *w) {
    for (; w->near_words; w->near_words &= w->near_words - 1) {
        unsigned word = (unsigned)__builtin_ctzll(w->near_words);
        for (uint64_t *slots = &w->near_slots[word]; *slots; *slots &= *slots - 1)
            w->near[word * 64 + (unsigned)__builtin_ctzll(*slots)] = (struct wheel_list){0};
    }
    for (unsigned level = 0; level < WHEEL_LEVELS; level++)
        for (uint64_t *slots = &w->far_slots[level]; *slots; *slots &= *slots - 1)
            w->far[level][__builtin_ctzll(*slots)] = (struct wheel_list){0};
    w->now = w->count = 0;
}

static inline void wheel_insert(struct wheel *w, uint32_t index, uint64_t time) {
    cv_assert(time >= w->now);
    wheel_at(w, index)->time = time;
    w->count++;
    wheel_place(w, index);
}

/* Puts a node before all others of the present. */
static inline void wheel_insert_first(struct wheel *w, uint32_t index) {
    unsigned slot = (unsigned)w->now & (WHEEL_NEAR - 1);
    struct wheel_list *list = &w->near[slot];
    struct wheel_node *node = wheel_at(w, index);
    if (!list->first) {
        wheel_insert(w, index, w->now);
        return;
    }
    *node = (struct wheel_node){.time = w->now, .next = list->first};
    wheel_at(w, list->first)->prev = index;
    list->first = index;
    w->count++;
}

static inline void wheel_remove(struct wheel *w, uint32_t index) {
    uint64_t time = wheel_at(w, index)->time;
    w->count--;
    if ((time ^ w->now) < WHEEL_NEAR) {
        wheel_unlink_near(w, (unsigned)time & (WHEEL_NEAR - 1), index);
    } else {
        unsigned level = wheel_level(w->now, time), slot = wheel_slot(time, level);
        wheel_unlink(w, &w->far[level][slot], index);
        if (!w->far[level][slot].first) w->far_slots[level] &= ~((uint64_t)1 << slot);
    }
}

/* Spreads the earliest far slot over the levels below it. */
static inline void wheel_cascade(struct wheel *w) {
    unsigned level = 0;
    while (!w->far_slots[level]) level++;
    unsigned slot = (unsigned)__builtin_ctzll(w->far_slots[level]);
    unsigned above = wheel_shift(level) + WHEEL_BITS;
    uint64_t high = above < 64 ? w->now >> above << above : 0;
    w->now = high | (uint64_t)slot << wheel_shift(level);
    uint32_t index = w->far[level][slot].first;
    w->far[level][slot] = (struct wheel_list){0};
    w->far_slots[level] &= ~((uint64_t)1 << slot);
    while (index) {
        uint32_t next = wheel_at(w, index)->next;
        wheel_place(w, index);
        index = next;
    }
}

/* Takes out the earliest node and moves the present to its time; 0 when there is none. */
static inline uint32_t wheel_pop(struct wheel *w) {
    if (!w->count) return 0;
    while (!w->near_words) wheel_cascade(w);
    unsigned word = (unsigned)__builtin_ctzll(w->near_words);
    unsigned slot = word * 64 + (unsigned)__builtin_ctzll(w->near_slots[word]);
    uint32_t index = w->near[slot].first;
    w->now = wheel_at(w, index)->time;
    wheel_unlink_near(w, slot, index);
    w->count--;
    return index;
}

#endif
