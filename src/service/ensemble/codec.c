#include "service/ensemble/codec.h"

#include <endian.h>

/* ---- Numbers ---- */

void codec_write_u64(struct bytes *out, uint16_t version, uint64_t value) {
    value = version < CODEC_VERSION_TYPED ? htole64(value) : htobe64(value);
    bytes_add(out, &value, sizeof value);
}

bool codec_read_u64(struct zk_in *in, uint16_t version, uint64_t *value) {
    if (zk_left(in) < sizeof *value) return false;
    memcpy(value, in->at, sizeof *value);
    *value = version < CODEC_VERSION_TYPED ? le64toh(*value) : be64toh(*value);
    in->at += sizeof *value;
    return true;
}

static void codec_write_u32(struct bytes *out, uint16_t version, uint32_t value) {
    value = version < CODEC_VERSION_TYPED ? htole32(value) : htobe32(value);
    bytes_add(out, &value, sizeof value);
}

static bool codec_read_u32(struct zk_in *in, uint16_t version, uint32_t *value) {
    if (zk_left(in) < sizeof *value) return false;
    memcpy(value, in->at, sizeof *value);
    *value = version < CODEC_VERSION_TYPED ? le32toh(*value) : be32toh(*value);
    in->at += sizeof *value;
    return true;
}

static void codec_write_u8(struct bytes *out, uint16_t version, uint8_t value) {
    (void)version;
    bytes_add(out, &value, sizeof value);
}

static bool codec_read_u8(struct zk_in *in, uint16_t version, uint8_t *value) {
    (void)version;
    if (!zk_left(in)) return false;
    *value = *in->at++;
    return true;
}

/* ---- Frames ---- */

#define WRITE_FIELD(TYPE, NAME, FROM)                                                              \
    if (version >= FROM) codec_write_##TYPE(out, version, body->NAME);
#define READ_FIELD(TYPE, NAME, FROM)                                                               \
    if (version >= FROM && !codec_read_##TYPE(in, version, &body->NAME)) return false;

#define FRAME(TYPE, NAME)                                                                          \
    void codec_write_##NAME(struct bytes *out, uint16_t version,                                   \
                            const struct frame_##NAME *body) {                                     \
        (void)out, (void)version, (void)body;                                                      \
        FRAME_FIELDS_##NAME(WRITE_FIELD)                                                           \
    }                                                                                              \
    bool codec_read_##NAME(struct zk_in *in, uint16_t version, struct frame_##NAME *body) {        \
        (void)in, (void)version;                                                                   \
        memset(body, 0, sizeof *body);                                                             \
        FRAME_FIELDS_##NAME(READ_FIELD) return true;                                               \
    }
FRAMES(FRAME)

/* ---- Messages of the core: type, term, fields ---- */

void codec_write_message(struct bytes *out, uint16_t version, const struct raft_message *m) {
    if (version < CODEC_VERSION_TYPED) {
        codec_v2_write_message(out, m);
        return;
    }
    codec_write_u8(out, version, m->type);
    codec_write_u64(out, version, m->term);
    switch (m->type) {
#define WRITE_MESSAGE(NUMBER, NAME, TITLE)                                                         \
    case NUMBER: {                                                                                 \
        const struct raft_##NAME *body = &m->NAME;                                                 \
        RAFT_FIELDS_##NAME(WRITE_FIELD) break;                                                     \
    }
        RAFT_MESSAGES(WRITE_MESSAGE)
    }
}

static bool read_fields(struct zk_in *in, uint16_t version, struct raft_message *m) {
    if (!codec_read_u8(in, version, &m->type) || !codec_read_u64(in, version, &m->term))
        return false;
    switch (m->type) {
#define READ_MESSAGE(NUMBER, NAME, TITLE)                                                          \
    case NUMBER: {                                                                                 \
        struct raft_##NAME *body = &m->NAME;                                                       \
        RAFT_FIELDS_##NAME(READ_FIELD) return true;                                                \
    }
        RAFT_MESSAGES(READ_MESSAGE)
    default: return false;
    }
}

bool codec_read_message(struct zk_in *in, uint16_t version, uint8_t from, uint8_t to,
                        struct raft_message *m) {
    memset(m, 0, sizeof *m); /* equal messages have equal bytes */
    if (!(version < CODEC_VERSION_TYPED ? codec_v2_read_message(in, m)
                                        : read_fields(in, version, m)))
        return false;
    m->from = from;
    m->to = to;
    return true;
}
