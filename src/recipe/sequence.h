/* The numbers that servers add to the names of sequential nodes. */
#ifndef CV_RECIPE_SEQUENCE_H
#define CV_RECIPE_SEQUENCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Serial numbers: whether `a` was given out before `b`, which must be less than 2^31 apart. */
static inline bool sequence_before(int32_t a, int32_t b) {
    return (int32_t)((uint32_t)a - (uint32_t)b) < 0;
}

/* Serial numbers have no order as such, and names may be anything; the distance from one of them
 * is an order in any case, and theirs if they are of one node. */
static inline int32_t sequence_rank(int32_t sequence, int32_t origin) {
    return (int32_t)((uint32_t)sequence - (uint32_t)origin);
}

/* As the servers write it, "%010d": ten characters, eleven for large negative ones. */
static inline bool sequence_parse(const char *text, int32_t *sequence) {
    size_t size = strlen(text), at = text[0] == '-';
    int64_t value = 0;
    if (size != 10 && !(size == 11 && at && text[1] != '0')) return false;
    for (size_t i = at; i < size; i++) {
        if (text[i] < '0' || text[i] > '9') return false;
        value = value * 10 + (text[i] - '0');
    }
    if (at) value = -value;
    if (value > INT32_MAX || value < INT32_MIN) return false;
    *sequence = (int32_t)value;
    return true;
}

#endif
