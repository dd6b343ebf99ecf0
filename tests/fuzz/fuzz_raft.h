/* A message of the consensus core as bytes of a fuzzer's input: type, sender, term, and the fields
 * of that type one after the other, little-endian.  Every value is possible. */
#ifndef CV_FUZZ_RAFT_H
#define CV_FUZZ_RAFT_H

#include <string.h>

#include "raft/raft.h"

struct fuzz_bytes {
    const uint8_t *at;
    size_t left;
};

/* Bytes after the end are 0. */
static inline uint64_t fuzz_read_number(struct fuzz_bytes *bytes, size_t size) {
    uint64_t value = 0;
    for (size_t i = 0; i < size && bytes->left; i++, bytes->left--)
        value |= (uint64_t)*bytes->at++ << 8 * i;
    return value;
}

static inline size_t fuzz_write_number(uint8_t *to, uint64_t value, size_t size) {
    for (size_t i = 0; i < size; i++) to[i] = (uint8_t)(value >> 8 * i);
    return size;
}

static inline struct raft_message fuzz_read_message(struct fuzz_bytes *bytes) {
    struct raft_message m;
    memset(&m, 0, sizeof m);
    m.type = (uint8_t)fuzz_read_number(bytes, 1);
    m.from = (uint8_t)fuzz_read_number(bytes, 1);
    m.term = fuzz_read_number(bytes, sizeof m.term);
    switch (m.type) {
#define FUZZ_READ_FIELD(TYPE, NAME, FROM)                                                          \
    body->NAME = (RAFT_CTYPE_##TYPE)fuzz_read_number(bytes, sizeof body->NAME);
#define FUZZ_READ_MESSAGE(NUMBER, NAME, TITLE)                                                     \
    case NUMBER: {                                                                                 \
        struct raft_##NAME *body = &m.NAME;                                                        \
        RAFT_FIELDS_##NAME(FUZZ_READ_FIELD) break;                                                 \
    }
        RAFT_MESSAGES(FUZZ_READ_MESSAGE)
    }
    return m;
}

/* The number of bytes that were written, at most FUZZ_MESSAGE_MAX. */
enum { FUZZ_MESSAGE_MAX = sizeof(struct raft_message) };

static inline size_t fuzz_write_message(uint8_t *to, const struct raft_message *m) {
    size_t used = fuzz_write_number(to, m->type, 1);
    used += fuzz_write_number(to + used, m->from, 1);
    used += fuzz_write_number(to + used, m->term, sizeof m->term);
    switch (m->type) {
#define FUZZ_WRITE_FIELD(TYPE, NAME, FROM)                                                         \
    used += fuzz_write_number(to + used, body->NAME, sizeof body->NAME);
#define FUZZ_WRITE_MESSAGE(NUMBER, NAME, TITLE)                                                    \
    case NUMBER: {                                                                                 \
        const struct raft_##NAME *body = &m->NAME;                                                 \
        RAFT_FIELDS_##NAME(FUZZ_WRITE_FIELD) break;                                                \
    }
        RAFT_MESSAGES(FUZZ_WRITE_MESSAGE)
    }
    return used;
}

#endif
