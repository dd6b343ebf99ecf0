/* Structs, decoders and encoders, made from the lists in wire/zk/records.h.  For each record R:
 *
 *   struct zk_R
 *   bool zk_read_R(struct zk_in *, struct zk_R *)          false: malformed
 *   void zk_write_R(struct bytes *, const struct zk_R *)
 *
 * and for each response, `bool zk_reply_NAME(out, xid, zxid, response)`: the whole frame.  A record
 * that was read points into the input and is valid as long.  Bytes after a record are left unread.
 */
#ifndef CV_WIRE_ZK_CODEC_H
#define CV_WIRE_ZK_CODEC_H

#include "wire/zk/numbers.h"
#include "wire/zk/records.h"
#include "wire/zk/wire.h"

#define ZK_CTYPE_bool    bool
#define ZK_CTYPE_late    int8_t /* 0, 1 or ZK_ABSENT */
#define ZK_CTYPE_i32     int32_t
#define ZK_CTYPE_i64     int64_t
#define ZK_CTYPE_text    struct zk_text
#define ZK_CTYPE_buffer  struct zk_text
#define ZK_CTYPE_texts   struct zk_texts
#define ZK_CTYPE_acls    struct zk_acls
#define ZK_CTYPE_clients struct zk_clients
#define ZK_CTYPE_id      struct zk_id
#define ZK_CTYPE_stat    struct zk_stat

#define zk_read_buffer  zk_read_text
#define zk_size_buffer  zk_size_text
#define zk_store_buffer zk_store_text

/* ---- Records ---- */

#define ZK_MEMBER_(R, TYPE, NAME) ZK_CTYPE_##TYPE NAME;
#define ZK_READ_(R, TYPE, NAME)   &&zk_read_##TYPE(in, &record->NAME)
#define ZK_SIZE_(R, TYPE, NAME)   +zk_size_##TYPE(&record->NAME)
#define ZK_STORE_(R, TYPE, NAME)  to = zk_store_##TYPE(to, &record->NAME);

#define ZK_RECORD_(R, TITLE)                                                                       \
    struct zk_##R {                                                                                \
        ZK_FIELDS_##R(ZK_MEMBER_, R)                                                               \
    };                                                                                             \
    static inline bool zk_read_##R(struct zk_in *in, struct zk_##R *record) {                      \
        return true ZK_FIELDS_##R(ZK_READ_, R);                                                    \
    }                                                                                              \
    static inline size_t zk_size_##R(const struct zk_##R *record) {                                \
        return 0 ZK_FIELDS_##R(ZK_SIZE_, R);                                                       \
    }                                                                                              \
    static inline unsigned char *zk_store_##R(unsigned char *to, const struct zk_##R *record) {    \
        ZK_FIELDS_##R(ZK_STORE_, R);                                                               \
        return to;                                                                                 \
    }                                                                                              \
    static inline void zk_write_##R(struct bytes *out, const struct zk_##R *record) {              \
        zk_store_##R(bytes_extend(out, zk_size_##R(record)), record);                              \
    }

#define ZK_REQUEST_(NAME, TITLE)  ZK_RECORD_(NAME##_request, TITLE)
#define ZK_RESPONSE_(NAME, TITLE) ZK_RECORD_(NAME##_response, TITLE)

/* ---- Vectors ----
 *
 * A vector is the bytes of its elements and their number; count -1 is null, which holds nothing and
 * is sent as null.  It is checked as a whole when it is read, so taking elements off its front does
 * not fail.  To keep the vector, take them off a copy:
 *
 *   for (struct zk_texts left = request.data; zk_texts_next(&left, &path);) ...
 *
 * To send one, write the elements somewhere and point to them, or write the record piece by piece.
 */
#define ZK_VECTOR_(V, ELEMENT)                                                                     \
    struct zk_##V {                                                                                \
        const unsigned char *at;                                                                   \
        size_t size; /* in bytes */                                                                \
        int32_t count;                                                                             \
    };                                                                                             \
    static inline bool zk_##V##_next(struct zk_##V *left, struct zk_##ELEMENT *element) {          \
        if (left->count <= 0) return false;                                                        \
        struct zk_in in = zk_in_of(left->at, left->size);                                          \
        if (!zk_read_##ELEMENT(&in, element)) return false;                                        \
        *left = (struct zk_##V){in.at, zk_left(&in), left->count - 1};                             \
        return true;                                                                               \
    }                                                                                              \
    static inline bool zk_read_##V(struct zk_in *in, struct zk_##V *vector) {                      \
        struct zk_##ELEMENT element;                                                               \
        if (!zk_read_i32(in, &vector->count) || vector->count < -1) return false;                  \
        vector->at = in->at;                                                                       \
        for (int32_t i = 0; i < vector->count; i++)                                                \
            if (!zk_read_##ELEMENT(in, &element)) return false;                                    \
        vector->size = (size_t)(in->at - vector->at);                                              \
        return true;                                                                               \
    }                                                                                              \
    static inline size_t zk_size_##V(const struct zk_##V *vector) {                                \
        return sizeof vector->count + vector->size;                                                \
    }                                                                                              \
    static inline unsigned char *zk_store_##V(unsigned char *to, const struct zk_##V *vector) {    \
        to = zk_store_i32(to, &vector->count);                                                     \
        if (vector->size) memcpy(to, vector->at, vector->size);                                    \
        return to + vector->size;                                                                  \
    }

ZK_PARTS(ZK_RECORD_)
ZK_VECTOR_(texts, text)
ZK_VECTOR_(acls, acl)
ZK_VECTOR_(clients, client)
ZK_ENVELOPES(ZK_RECORD_)
ZK_REQUESTS(ZK_REQUEST_)
ZK_RESPONSES(ZK_RESPONSE_)

/* ---- Any request, any response ---- */

#define ZK_REQUEST_MEMBER_(NAME, TITLE)  struct zk_##NAME##_request NAME;
#define ZK_RESPONSE_MEMBER_(NAME, TITLE) struct zk_##NAME##_response NAME;

union zk_request {
    ZK_REQUESTS(ZK_REQUEST_MEMBER_)
};
union zk_response {
    ZK_RESPONSES(ZK_RESPONSE_MEMBER_)
};

/* ---- Whole frames from the server ---- */

/* A reply without a record: to a ping, an error, or a success. */
static inline void zk_reply(struct bytes *out, int32_t xid, int64_t zxid, int32_t err) {
    struct zk_reply_header header = {xid, zxid, err};
    int32_t size = (int32_t)zk_size_reply_header(&header);
    unsigned char *to = bytes_extend(out, sizeof size + (size_t)size);
    zk_store_reply_header(zk_store_i32(to, &size), &header);
}

/* A reply header and one record.  False, and nothing written: the frame would be too long. */
#define ZK_FRAME_(FUNCTION, R)                                                                     \
    static inline bool FUNCTION(struct bytes *out, int32_t xid, int64_t zxid,                      \
                                const struct zk_##R *record) {                                     \
        struct zk_reply_header header = {xid, zxid, 0};                                            \
        size_t size = zk_size_reply_header(&header) + zk_size_##R(record);                         \
        if (size > INT32_MAX) return false;                                                        \
        unsigned char *to = bytes_extend(out, sizeof(int32_t) + size);                             \
        to = zk_store_i32(to, &(int32_t){(int32_t)size});                                          \
        zk_store_##R(zk_store_reply_header(to, &header), record);                                  \
        return true;                                                                               \
    }
#define ZK_REPLY_(NAME, TITLE) ZK_FRAME_(zk_reply_##NAME, NAME##_response)

ZK_RESPONSES(ZK_REPLY_)
ZK_FRAME_(zk_reply_event, watcher_event)

/* The event of a watch. */
static inline bool zk_notify(struct bytes *out, const struct zk_watcher_event *event) {
    return zk_reply_event(out, ZK_XID_EVENT, -1, event);
}

#endif
