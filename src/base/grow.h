/* Arrays that grow as they are filled. */
#ifndef CV_BASE_GROW_H
#define CV_BASE_GROW_H

#include <stdlib.h>

#include "base/assert.h"

/* The array, reallocated if it has no room for `needed` items of `item` bytes each.  Ends the
 * program when memory runs out. */
static inline void *grown(void *array, size_t *room, size_t needed, size_t item) {
    if (needed <= *room) return array;
    size_t wanted = *room ? *room * 2 : 64;
    if (wanted < needed) wanted = needed;
    array = realloc(array, wanted * item);
    cv_assert(array);
    *room = wanted;
    return array;
}

/* The array, reallocated if it has room for more than four times as many items as are used. */
static inline void *shrunk(void *array, size_t *room, size_t used, size_t item) {
    enum { LEAST = 64 };
    size_t wanted = used < LEAST ? LEAST : used * 2;
    if (*room / 2 <= wanted) return array;
    array = realloc(array, wanted * item);
    cv_assert(array);
    *room = wanted;
    return array;
}

#endif
