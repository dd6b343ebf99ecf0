/* Bytes that grow at their end.  All zero: empty. */
#ifndef CV_BASE_BYTES_H
#define CV_BASE_BYTES_H

#include <string.h>

#include "base/grow.h"

struct bytes {
    unsigned char *at;
    size_t used, room;
};

/* Makes room for more bytes, and returns where they would begin. */
static inline unsigned char *bytes_reserve(struct bytes *bytes, size_t more) {
    if (__builtin_expect(bytes->room - bytes->used < more, 0))
        bytes->at = grown(bytes->at, &bytes->room, bytes->used + more, 1);
    return bytes->at + bytes->used;
}

/* Appends uninitialized bytes, and returns where they begin. */
static inline unsigned char *bytes_extend(struct bytes *bytes, size_t more) {
    unsigned char *to = bytes_reserve(bytes, more);
    bytes->used += more;
    return to;
}

static inline void bytes_add(struct bytes *bytes, const void *from, size_t size) {
    if (size) memcpy(bytes_extend(bytes, size), from, size);
}

/* Gives back memory, if much of it is not used. */
static inline void bytes_shrink(struct bytes *bytes) {
    bytes->at = shrunk(bytes->at, &bytes->room, bytes->used, 1);
}

static inline void bytes_close(struct bytes *bytes) {
    free(bytes->at);
    *bytes = (struct bytes){0};
}

#endif
