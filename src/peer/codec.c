#include "peer/codec.h"

#include <endian.h>

static const uint8_t field_size[] = {[CV_U8] = 1, [CV_U16] = 2, [CV_U32] = 4,   [CV_U64] = 8,
                                     [CV_ID] = 8, [CV_PID] = 4, [CV_QUEUE] = 8, [CV_LINK] = 8};

uint32_t codec_room(const struct codec *codec) {
    uint32_t room = 8;
    for (uint32_t i = 0; i < codec->message_count; i++) {
        const struct cv_record *record = &codec->messages[i];
        uint32_t size = record->size + record->row_size * codec->rows_max;
        if (size > room) room = size;
    }
    return (room + 7) & ~7u;
}

/* ---- The order of bytes ---- */

/* Both ways: a little-endian number is the machine's, or the machine's is little-endian. */
static void swap_number(unsigned char *to, const unsigned char *from, unsigned size) {
    uint16_t u16;
    uint32_t u32;
    uint64_t u64;
    switch (size) {
    case 2: memcpy(&u16, from, 2), u16 = htole16(u16), memcpy(to, &u16, 2); break;
    case 4: memcpy(&u32, from, 4), u32 = htole32(u32), memcpy(to, &u32, 4); break;
    case 8: memcpy(&u64, from, 8), u64 = htole64(u64), memcpy(to, &u64, 8); break;
    default: *to = *from;
    }
}

static void swap_fields(const struct cv_field *fields, unsigned count, unsigned char *to,
                        const unsigned char *from) {
    for (unsigned i = 0; i < count; i++) {
        unsigned at = fields[i].offset, size = field_size[fields[i].type];
        bool pair = fields[i].type == CV_QUEUE || fields[i].type == CV_LINK;
        swap_number(to + at, from + at, pair ? 4 : size);
        if (pair) swap_number(to + at + 4, from + at + 4, 4);
    }
}

static void swap_all(const struct cv_record *record, unsigned char *to, const unsigned char *from,
                     size_t size) {
    swap_fields(record->fields, record->field_count, to, from);
    for (size_t at = record->size; at < size; at += record->row_size)
        swap_fields(record->row_fields, record->row_field_count, to + at, from + at);
}

void codec_write(const struct codec *codec, uint16_t kind, const void *body, uint32_t size,
                 unsigned char *bytes) {
    cv_assert(kind < codec->message_count);
    swap_all(&codec->messages[kind], bytes, body, size);
}

/* ---- What is well-formed ---- */

static uint32_t names_of(const char *values) {
    uint32_t count = 1;
    for (; *values; values++) count += *values == '|';
    return count;
}

static uint64_t value_of(const unsigned char *at, unsigned size) {
    uint64_t value = 0;
    memcpy(&value, at, size);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    value >>= 8 * (8 - size);
#endif
    return value;
}

static const char *check_fields(const struct codec *codec, const struct cv_field *fields,
                                unsigned count, const unsigned char *at) {
    for (unsigned i = 0; i < count; i++) {
        const unsigned char *field = at + fields[i].offset;
        unsigned type = fields[i].type;
        if (type >= CV_PID) {
            uint64_t process = value_of(field, 4),
                     other = type == CV_PID ? 0 : value_of(field + 4, 4);
            if (process > codec->processes || other > codec->processes)
                return "it names a process that does not exist";
        } else if (fields[i].values &&
                   value_of(field, field_size[type]) >= names_of(fields[i].values)) {
            return "a value is none of those that the field may have";
        }
    }
    return NULL;
}

static const struct cv_field *field_of(const struct cv_field *fields, unsigned count,
                                       uint8_t type) {
    for (unsigned i = 0; i < count; i++)
        if (fields[i].type == type) return &fields[i];
    return NULL;
}

/* One list from the first to the last, and no link outside it. */
static const char *check_queue(const struct codec *codec, const struct cv_record *record,
                               const struct cv_field *of_queue, const struct cv_field *of_link,
                               const unsigned char *body) {
    struct cv_queue queue;
    struct cv_link link;
    uint32_t linked = 0, walked = 0;
    cv_pid before = CV_NOBODY;
    const unsigned char *links = body + record->size + of_link->offset;
    memcpy(&queue, body + of_queue->offset, sizeof queue);
    for (cv_pid p = 1; p <= codec->processes; p++) {
        memcpy(&link, links + (size_t)record->row_size * (p - 1), sizeof link);
        linked += link.next || link.prev || queue.first == p;
    }
    for (cv_pid p = queue.first; p && walked <= codec->processes; walked++) {
        memcpy(&link, links + (size_t)record->row_size * (p - 1), sizeof link);
        if (link.prev != before) return "its queue is no list";
        before = p;
        p = link.next;
    }
    return before == queue.last && walked == linked ? NULL : "its queue is no list";
}

const char *codec_read(const struct codec *codec, uint32_t kind, const unsigned char *bytes,
                       size_t size, void *body) {
    if (kind >= codec->message_count) return "it is of a kind that does not exist";
    const struct cv_record *record = &codec->messages[kind];
    if (size < record->size) return "it is too short";
    size_t over = size - record->size;
    size_t rows = record->row_size ? over / record->row_size : 0;
    if (rows * record->row_size != over) return "it does not end with a whole row";
    if (rows > codec->rows_max) return "it has more rows than there can be";
    const struct cv_field *queue = field_of(record->fields, record->field_count, CV_QUEUE);
    const struct cv_field *link = field_of(record->row_fields, record->row_field_count, CV_LINK);
    if (link && rows != codec->processes) return "it does not have a row for each process";
    unsigned char *to = body;
    swap_all(record, to, bytes, size);
    const char *wrong = check_fields(codec, record->fields, record->field_count, to);
    for (size_t i = 0; i < rows && !wrong; i++)
        wrong = check_fields(codec, record->row_fields, record->row_field_count,
                             to + record->size + i * record->row_size);
    if (!wrong && queue && link) wrong = check_queue(codec, record, queue, link, to);
    return wrong;
}
