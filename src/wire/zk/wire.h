/* The primitives of the wire: big-endian integers, texts with their length in front, frames.
 *
 * Each type has three functions, and a record of such types is made of the same three
 * (wire/zk/codec.h):
 *
 *   zk_read_T   takes a value off the front of the input; false: the input is too short
 *   zk_size_T   the number of bytes of an encoded value
 *   zk_store_T  stores a value where there is room for it, and returns the address after it
 *
 * Sizes are known before anything is stored, so a record costs one look at the room and then plain
 * stores. */
#ifndef CV_WIRE_ZK_WIRE_H
#define CV_WIRE_ZK_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/bytes.h"

/* A string or a buffer: bytes of the frame it was read from, not a copy.  Null is not empty. */
struct zk_text {
    const char *at;
    int32_t size; /* -1: null */
};

static inline struct zk_text zk_null(void) { return (struct zk_text){NULL, -1}; }

static inline struct zk_text zk_text_of(const char *string) {
    return (struct zk_text){string, (int32_t)strlen(string)};
}

static inline bool zk_text_equal(struct zk_text a, struct zk_text b) {
    return a.size == b.size && (a.size <= 0 || memcmp(a.at, b.at, (size_t)a.size) == 0);
}

/* ---- Input ---- */

struct zk_in { /* what is left to read */
    const unsigned char *at, *end;
};

static inline struct zk_in zk_in_of(const void *bytes, size_t size) {
    const unsigned char *at = bytes; /* perhaps NULL, when there are none */
    return (struct zk_in){at, size ? at + size : at};
}

static inline size_t zk_left(const struct zk_in *in) { return (size_t)(in->end - in->at); }

static inline bool zk_read_bool(struct zk_in *in, bool *value) {
    if (in->at == in->end) return false;
    *value = *in->at++ != 0;
    return true;
}

/* A bool that old clients omit: it can only be the last field of a frame. */
enum { ZK_ABSENT = -1 };

static inline bool zk_read_late(struct zk_in *in, int8_t *value) {
    *value = ZK_ABSENT;
    if (in->at < in->end) *value = *in->at++ != 0;
    return true;
}

static inline bool zk_read_i32(struct zk_in *in, int32_t *value) {
    uint32_t raw;
    if (zk_left(in) < sizeof raw) return false;
    memcpy(&raw, in->at, sizeof raw);
    *value = (int32_t)__builtin_bswap32(raw);
    in->at += sizeof raw;
    return true;
}

static inline bool zk_read_i64(struct zk_in *in, int64_t *value) {
    uint64_t raw;
    if (zk_left(in) < sizeof raw) return false;
    memcpy(&raw, in->at, sizeof raw);
    *value = (int64_t)__builtin_bswap64(raw);
    in->at += sizeof raw;
    return true;
}

static inline bool zk_read_text(struct zk_in *in, struct zk_text *text) {
    *text = zk_null();
    if (!zk_read_i32(in, &text->size) || text->size < -1) return false;
    if (text->size == -1) return true;
    if ((size_t)text->size > zk_left(in)) return false;
    text->at = (const char *)in->at;
    in->at += text->size;
    return true;
}

/* Takes the next frame off the received bytes: 1, or 0 when it is not complete yet, or -1 when its
 * length is not allowed. */
static inline int zk_next_frame(struct zk_in *received, int32_t max_size, struct zk_in *frame) {
    struct zk_in in = *received;
    int32_t size;
    if (!zk_read_i32(&in, &size)) return 0;
    if (size < 0 || size > max_size) return -1;
    if ((size_t)size > zk_left(&in)) return 0;
    *frame = zk_in_of(in.at, (size_t)size);
    received->at = frame->end;
    return 1;
}

/* ---- Output ---- */

static inline size_t zk_size_bool(const bool *value) { return (void)value, 1; }
static inline size_t zk_size_late(const int8_t *value) { return *value != ZK_ABSENT; }
static inline size_t zk_size_i32(const int32_t *value) { return sizeof *value; }
static inline size_t zk_size_i64(const int64_t *value) { return sizeof *value; }
static inline size_t zk_size_text(const struct zk_text *text) {
    return sizeof text->size + (text->size > 0 ? (size_t)text->size : 0);
}

static inline unsigned char *zk_store_bool(unsigned char *to, const bool *value) {
    *to = *value;
    return to + 1;
}

static inline unsigned char *zk_store_late(unsigned char *to, const int8_t *value) {
    if (*value != ZK_ABSENT) *to++ = *value != 0;
    return to;
}

static inline unsigned char *zk_store_i32(unsigned char *to, const int32_t *value) {
    uint32_t raw = __builtin_bswap32((uint32_t)*value);
    memcpy(to, &raw, sizeof raw);
    return to + sizeof raw;
}

static inline unsigned char *zk_store_i64(unsigned char *to, const int64_t *value) {
    uint64_t raw = __builtin_bswap64((uint64_t)*value);
    memcpy(to, &raw, sizeof raw);
    return to + sizeof raw;
}

static inline unsigned char *zk_store_text(unsigned char *to, const struct zk_text *text) {
    to = zk_store_i32(to, &text->size);
    if (text->size <= 0) return to;
    memcpy(to, text->at, (size_t)text->size);
    return to + text->size;
}

/* For records that are written piece by piece: a vector is its count, then its elements. */
static inline void zk_write_i32(struct bytes *out, int32_t value) {
    zk_store_i32(bytes_extend(out, sizeof value), &value);
}

static inline void zk_write_text(struct bytes *out, struct zk_text text) {
    zk_store_text(bytes_extend(out, zk_size_text(&text)), &text);
}

/* ---- Frames ---- */

/* Begins a frame, whose length is not known yet; the result is for zk_frame_end. */
static inline size_t zk_frame_begin(struct bytes *out) {
    size_t frame = out->used;
    bytes_extend(out, sizeof(int32_t));
    return frame;
}

/* False, and the frame is removed: it is too long. */
static inline bool zk_frame_end(struct bytes *out, size_t frame) {
    size_t size = out->used - frame - sizeof(int32_t);
    if (size > INT32_MAX) {
        out->used = frame;
        return false;
    }
    zk_store_i32(out->at + frame, &(int32_t){(int32_t)size});
    return true;
}

#endif
