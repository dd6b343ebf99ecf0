/* The wire of ZooKeeper's clients: known bytes, round trips, and whatever else may arrive. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/rng.h"
#include "wire/zk/zk.h"

#define COUNT(ARRAY) (sizeof(ARRAY) / sizeof(ARRAY)[0])
#define ZEROS_16     "00000000 00000000 00000000 00000000"
#define TEXT(LITERAL)                                                                              \
    (struct zk_text) { LITERAL, sizeof LITERAL - 1 }

/* ---- Helpers ---- */

/* Bytes at the very end of a block, so that a sanitizer notices a read beyond them. */
struct block {
    unsigned char *memory;
    struct zk_in in;
};

static struct block block_of(const void *bytes, size_t size) {
    struct block block = {.memory = malloc(size + 1)};
    assert_non_null(block.memory);
    unsigned char *at = block.memory + 1;
    if (size) memcpy(at, bytes, size);
    block.in = zk_in_of(at, size);
    return block;
}

static struct block hex(const char *digits) {
    unsigned char bytes[512];
    size_t count = 0;
    for (; *digits; digits++) {
        if (isspace((unsigned char)*digits)) continue;
        unsigned byte;
        assert_int_equal(sscanf(digits, "%2x", &byte), 1);
        assert_true(count < sizeof bytes);
        bytes[count++] = (unsigned char)byte;
        digits++;
    }
    return block_of(bytes, count);
}

/* The output is these bytes; it is empty afterwards. */
static void expect(struct bytes *out, const char *digits) {
    struct block block = hex(digits);
    assert_int_equal(out->used, zk_left(&block.in));
    assert_memory_equal(out->at, block.in.at, out->used);
    free(block.memory);
    bytes_close(out);
}

static void expect_text(struct zk_text text, const char *string) {
    assert_true(zk_text_equal(text, string ? zk_text_of(string) : zk_null()));
}

/* The one frame in these bytes. */
static struct zk_in frame_in(const struct block *block) {
    struct zk_in received = block->in, frame = {0};
    assert_int_equal(zk_next_frame(&received, 1048575, &frame), 1);
    assert_int_equal(zk_left(&received), 0);
    return frame;
}

/* ---- Known bytes ---- */

static void connect_is_as_recorded(void **state) {
    static const char request_bytes[] = "0000002d 00000000 0000000000000000 00002710"
                                        "0000000000000000 00000010 " ZEROS_16 "00";
    static const char response_bytes[] = "00000025 00000000 00002710 0100004cfc3a0000 00000010"
                                         "94b1cca791c5b73292306c3bc222ee78 00";
    struct block block = hex(request_bytes);
    struct zk_in in = frame_in(&block);
    struct zk_connect_request request = {0};
    struct bytes out = {0};
    (void)state;
    assert_true(zk_read_connect_request(&in, &request));
    assert_int_equal(request.timeout, 10000);
    assert_int_equal(request.session_id, 0);
    assert_int_equal(request.passwd.size, 16);
    assert_int_equal(request.read_only, 0);
    size_t frame = zk_frame_begin(&out);
    zk_write_connect_request(&out, &request);
    assert_true(zk_frame_end(&out, frame));
    expect(&out, request_bytes);

    struct zk_connect_response response = {
        .timeout = 10000,
        .session_id = 0x0100004cfc3a0000,
        .passwd = TEXT("\x94\xb1\xcc\xa7\x91\xc5\xb7\x32\x92\x30\x6c\x3b\xc2\x22\xee\x78"),
    };
    frame = zk_frame_begin(&out);
    zk_write_connect_response(&out, &response);
    assert_true(zk_frame_end(&out, frame));
    expect(&out, response_bytes);
    free(block.memory);
}

static void old_clients_omit_read_only(void **state) {
    struct block block = hex("0000002c 00000000 0000000000000000 00002710"
                             "0000000000000000 00000010 " ZEROS_16);
    struct zk_in in = frame_in(&block);
    struct zk_connect_request request = {0};
    struct bytes out = {0};
    (void)state;
    assert_int_equal(zk_left(&in), 44);
    assert_true(zk_read_connect_request(&in, &request));
    assert_int_equal(request.read_only, ZK_ABSENT);
    struct zk_connect_response refused = {.passwd = request.passwd, .read_only = ZK_ABSENT};
    size_t frame = zk_frame_begin(&out);
    zk_write_connect_response(&out, &refused);
    assert_true(zk_frame_end(&out, frame));
    expect(&out, "00000024 00000000 00000000 0000000000000000 00000010" ZEROS_16);
    free(block.memory);
}

static void create_is_as_recorded(void **state) {
    struct block block =
        hex("00000032 00000001 00000001 00000002 2f61 00000001 78"
            "00000001 0000001f 00000005 776f726c64 00000006 616e796f6e65 00000000");
    struct zk_in in = frame_in(&block);
    struct zk_request_header header = {0};
    struct zk_create_request create = {0};
    struct bytes out = {0};
    struct zk_acl acl = {0};
    (void)state;
    assert_true(zk_read_request_header(&in, &header));
    assert_int_equal(header.xid, 1);
    assert_int_equal(header.type, ZK_OP_CREATE);
    assert_true(zk_read_create_request(&in, &create));
    assert_int_equal(zk_left(&in), 0);
    expect_text(create.path, "/a");
    expect_text(create.data, "x");
    assert_int_equal(create.flags, ZK_PERSISTENT);
    assert_int_equal(create.acl.count, 1);
    assert_true(zk_acls_next(&create.acl, &acl));
    assert_int_equal(acl.perms, 31);
    expect_text(acl.id.scheme, "world");
    expect_text(acl.id.id, "anyone");
    assert_false(zk_acls_next(&create.acl, &acl));

    assert_true(zk_reply_create(&out, 1, 3, &(struct zk_create_response){create.path}));
    expect(&out, "00000016 00000001 0000000000000003 00000000 00000002 2f61");
    zk_reply(&out, 2, 4, ZK_NODEEXISTS);
    expect(&out, "00000010 00000002 0000000000000004 ffffff92");
    free(block.memory);
}

static void frames_without_a_record_are_as_recorded(void **state) {
    struct bytes out = {0};
    (void)state;
    size_t frame = zk_frame_begin(&out);
    zk_write_request_header(&out, &(struct zk_request_header){ZK_XID_PING, ZK_OP_PING});
    assert_true(zk_frame_end(&out, frame));
    expect(&out, "00000008 fffffffe 0000000b");
    zk_reply(&out, ZK_XID_PING, 4, ZK_OK);
    expect(&out, "00000010 fffffffe 0000000000000004 00000000");

    frame = zk_frame_begin(&out);
    zk_write_request_header(&out, &(struct zk_request_header){3, ZK_OP_CLOSE_SESSION});
    assert_true(zk_frame_end(&out, frame));
    expect(&out, "00000008 00000003 fffffff5");
    zk_reply(&out, 3, 5, ZK_OK);
    expect(&out, "00000010 00000003 0000000000000005 00000000");
}

static void a_notification_is_as_recorded(void **state) {
    struct zk_watcher_event event = {ZK_NODE_DATA_CHANGED, ZK_SYNC_CONNECTED, TEXT("/a")};
    struct bytes out = {0};
    (void)state;
    assert_true(zk_notify(&out, &event));
    expect(&out, "0000001e ffffffff ffffffffffffffff 00000000 00000003 00000003 00000002 2f61");
}

static void a_stat_is_in_its_order(void **state) {
    struct zk_stat stat = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};
    struct bytes out = {0};
    (void)state;
    assert_int_equal(zk_size_stat(&stat), 68);
    assert_true(zk_reply_get_data(&out, 1, 2, &(struct zk_get_data_response){zk_null(), stat}));
    expect(&out, "00000058 00000001 0000000000000002 00000000 ffffffff"
                 "0000000000000001 0000000000000002 0000000000000003 0000000000000004"
                 "00000005 00000006 00000007 0000000000000008 00000009 0000000a 000000000000000b");
}

static void frames_are_cut_from_the_stream(void **state) {
    struct block block = hex("00000001 aa 00000000 00000003 bbcc");
    struct zk_in received = block.in, frame = {0};
    (void)state;
    assert_int_equal(zk_next_frame(&received, 3, &frame), 1);
    assert_int_equal(zk_left(&frame), 1);
    assert_int_equal(*frame.at, 0xaa);
    assert_int_equal(zk_next_frame(&received, 3, &frame), 1);
    assert_int_equal(zk_left(&frame), 0);
    assert_int_equal(zk_next_frame(&received, 3, &frame), 0); /* a byte is missing */
    assert_int_equal(zk_left(&received), 6);
    assert_int_equal(zk_next_frame(&received, 2, &frame), -1);
    received.end = received.at + 3; /* not even a length */
    assert_int_equal(zk_next_frame(&received, 3, &frame), 0);
    free(block.memory);
    block = hex("ffffffff 00");
    assert_int_equal(zk_next_frame(&block.in, INT32_MAX, &frame), -1);
    free(block.memory);
}

/* ---- Any record ---- */

union any {
    max_align_t align;
    union zk_request request;
    union zk_response response;
    struct zk_connect_request connect;
};

/* Where random records have their texts and the elements of their vectors. */
struct source {
    struct rng rng;
    char letters[64];
    struct bytes elements;
};

static struct zk_text random_text(struct source *source) {
    uint64_t kind = rng_below(&source->rng, 8);
    if (kind == 0) return zk_null();
    int32_t size = kind == 1 ? 0 : (int32_t)rng_below(&source->rng, sizeof source->letters);
    return (struct zk_text){source->letters, size};
}

static const struct zk_record *element_of(uint16_t type) {
    return &zk_records[type == ZK_TYPE_acls      ? ZK_RECORD_acl
                       : type == ZK_TYPE_clients ? ZK_RECORD_client
                                                 : ZK_RECORD_none];
}

static void fill(const struct zk_record *record, void *to, struct source *source);

/* All kinds of vector are laid out alike; `texts` stands for each. */
static struct zk_texts random_vector(uint16_t type, struct source *source) {
    size_t begin = source->elements.used;
    int32_t count = (int32_t)rng_below(&source->rng, 5) - 1;
    for (int32_t i = 0; i < count; i++) {
        union any element = {0};
        if (type == ZK_TYPE_texts) {
            zk_write_text(&source->elements, random_text(source));
        } else {
            fill(element_of(type), &element, source);
            element_of(type)->write(&source->elements, &element);
        }
    }
    return (struct zk_texts){source->elements.at + begin, source->elements.used - begin, count};
}

static void fill(const struct zk_record *record, void *to, struct source *source) {
    for (unsigned i = 0; i < record->field_count; i++) {
        const struct zk_field *field = &record->fields[i];
        void *at = (char *)to + field->offset;
        uint64_t bits = rng_next(&source->rng);
        switch ((enum zk_type)field->type) {
        case ZK_TYPE_bool: *(bool *)at = bits & 1; break;
        case ZK_TYPE_late: *(int8_t *)at = (int8_t)(bits % 3) - 1; break;
        case ZK_TYPE_i32: *(int32_t *)at = (int32_t)bits; break;
        case ZK_TYPE_i64: *(int64_t *)at = (int64_t)bits; break;
        case ZK_TYPE_text:
        case ZK_TYPE_buffer: *(struct zk_text *)at = random_text(source); break;
        case ZK_TYPE_id: fill(&zk_records[ZK_RECORD_id], at, source); break;
        case ZK_TYPE_stat: fill(&zk_records[ZK_RECORD_stat], at, source); break;
        case ZK_TYPE_texts:
        case ZK_TYPE_acls:
        case ZK_TYPE_clients: {
            struct zk_texts vector = random_vector(field->type, source);
            memcpy(at, &vector, sizeof vector);
            break;
        }
        }
    }
}

static void same(const struct zk_record *record, const void *a, const void *b);

static void same_vector(const struct zk_texts *a, const struct zk_texts *b) {
    assert_int_equal(a->count, b->count);
    assert_int_equal(a->size, b->size);
    assert_memory_equal(a->at, b->at, a->size);
}

static void same_field(const struct zk_field *field, const void *a, const void *b) {
    switch ((enum zk_type)field->type) {
    case ZK_TYPE_bool:
    case ZK_TYPE_late: assert_memory_equal(a, b, 1); break;
    case ZK_TYPE_i32: assert_memory_equal(a, b, 4); break;
    case ZK_TYPE_i64: assert_memory_equal(a, b, 8); break;
    case ZK_TYPE_text:
    case ZK_TYPE_buffer:
        assert_true(zk_text_equal(*(const struct zk_text *)a, *(const struct zk_text *)b));
        break;
    case ZK_TYPE_id: same(&zk_records[ZK_RECORD_id], a, b); break;
    case ZK_TYPE_stat: same(&zk_records[ZK_RECORD_stat], a, b); break;
    case ZK_TYPE_texts:
    case ZK_TYPE_acls:
    case ZK_TYPE_clients: same_vector(a, b); break;
    }
}

static void same(const struct zk_record *record, const void *a, const void *b) {
    for (unsigned i = 0; i < record->field_count; i++) {
        const struct zk_field *field = &record->fields[i];
        same_field(field, (const char *)a + field->offset, (const char *)b + field->offset);
    }
}

/* Reads every byte that a record points to, and takes every vector apart. */
static unsigned walk_text(struct zk_text text) {
    unsigned sum = 0;
    assert_true(text.size >= -1);
    for (int32_t i = 0; i < text.size; i++) sum += (unsigned char)text.at[i];
    return sum;
}

static unsigned walk(const struct zk_record *record, const void *at) {
    unsigned sum = 0;
    for (unsigned i = 0; i < record->field_count; i++) {
        const struct zk_field *field = &record->fields[i];
        const void *value = (const char *)at + field->offset;
        int32_t count = 0;
        struct zk_text text;
        struct zk_acl acl;
        struct zk_client client;
        struct zk_texts texts = {0};
        switch ((enum zk_type)field->type) {
        case ZK_TYPE_text:
        case ZK_TYPE_buffer: sum += walk_text(*(const struct zk_text *)value); break;
        case ZK_TYPE_texts:
            texts = *(const struct zk_texts *)value;
            for (struct zk_texts left = texts; zk_texts_next(&left, &text); count++)
                sum += walk_text(text);
            break;
        case ZK_TYPE_acls:
            memcpy(&texts, value, sizeof texts);
            for (struct zk_acls left = *(const struct zk_acls *)value; zk_acls_next(&left, &acl);)
                sum += walk_text(acl.id.scheme) + walk_text(acl.id.id), count++;
            break;
        case ZK_TYPE_clients:
            memcpy(&texts, value, sizeof texts);
            for (struct zk_clients left = *(const struct zk_clients *)value;
                 zk_clients_next(&left, &client); count++)
                sum += walk_text(client.scheme) + walk_text(client.user);
            break;
        default: break;
        }
        assert_int_equal(count, texts.count > 0 ? texts.count : 0);
    }
    return sum;
}

static void source_open(struct source *source, uint64_t seed) {
    *source = (struct source){0};
    rng_seed(&source->rng, seed);
    for (size_t i = 0; i < sizeof source->letters; i++)
        source->letters[i] = (char)rng_next(&source->rng);
    bytes_reserve(&source->elements, 1 << 16); /* enough: elements must not move */
}

/* What is left when the end of a record is missing is refused, at every length, except where only
 * the byte is missing that may be. */
static void refuse_truncated(const struct zk_record *record, const struct bytes *out) {
    const struct zk_field *last = &record->fields[record->field_count - 1];
    for (size_t size = 0; size < out->used; size++) {
        struct block block = block_of(out->at, size);
        union any value;
        if (!record->read(&block.in, &value)) {
            free(block.memory);
            continue;
        }
        assert_int_equal(last->type, ZK_TYPE_late);
        assert_int_equal(*((int8_t *)&value + last->offset), ZK_ABSENT);
        assert_int_equal(size, out->used - 1);
        free(block.memory);
    }
}

static void every_record_is_read_back(void **state) {
    struct source source;
    (void)state;
    source_open(&source, 1);
    for (unsigned r = 1; r < ZK_RECORD_COUNT; r++)
        for (int round = 0; round < 40; round++) {
            const struct zk_record *record = &zk_records[r];
            struct bytes out = {0}, again = {0};
            union any value = {0}, read;
            assert_true(record->size <= sizeof value);
            source.elements.used = 0;
            fill(record, &value, &source);
            assert_true(source.elements.used < 1 << 16);
            record->write(&out, &value);
            struct block block = block_of(out.at, out.used);
            assert_true(record->read(&block.in, &read));
            assert_int_equal(zk_left(&block.in), 0);
            same(record, &value, &read);
            walk(record, &read);
            record->write(&again, &read);
            assert_int_equal(again.used, out.used);
            assert_memory_equal(again.at, out.at, out.used);
            refuse_truncated(record, &out);
            free(block.memory);
            bytes_close(&out);
            bytes_close(&again);
        }
    bytes_close(&source.elements);
}

static void bytes_after_a_record_are_ignored(void **state) {
    struct source source;
    (void)state;
    source_open(&source, 2);
    for (unsigned r = 1; r < ZK_RECORD_COUNT; r++) {
        const struct zk_record *record = &zk_records[r];
        struct bytes out = {0};
        union any value = {0}, read;
        if (r == ZK_RECORD_connect_request || r == ZK_RECORD_connect_response) continue;
        fill(record, &value, &source);
        record->write(&out, &value);
        zk_write_i32(&out, -7);
        struct zk_in in = zk_in_of(out.at, out.used);
        assert_true(record->read(&in, &read));
        assert_int_equal(zk_left(&in), 4);
        same(record, &value, &read);
        bytes_close(&out);
    }
    bytes_close(&source.elements);
}

static void null_is_not_empty(void **state) {
    struct block null = hex("ffffffff ffffffff ffffffff 00000000");
    struct block empty = hex("00000000 00000000 00000000 00000000");
    struct zk_create_request of_null = {0}, of_empty = {0};
    struct bytes out = {0};
    struct zk_acl acl = {0};
    (void)state;
    assert_true(zk_read_create_request(&null.in, &of_null));
    assert_true(zk_read_create_request(&empty.in, &of_empty));
    assert_int_equal(of_null.data.size, -1);
    assert_int_equal(of_empty.data.size, 0);
    assert_non_null(of_empty.data.at);
    assert_false(zk_text_equal(of_null.path, of_empty.path));
    assert_int_equal(of_null.acl.count, -1);
    assert_int_equal(of_empty.acl.count, 0);
    zk_write_create_request(&out, &of_null);
    expect(&out, "ffffffff ffffffff ffffffff 00000000");
    zk_write_create_request(&out, &of_empty);
    expect(&out, "00000000 00000000 00000000 00000000");
    assert_false(zk_acls_next(&of_null.acl, &acl));
    assert_false(zk_acls_next(&of_empty.acl, &acl));
    free(null.memory);
    free(empty.memory);
}

static void impossible_lengths_are_refused(void **state) {
    static const char *const bad[] = {
        "fffffffe " ZEROS_16,                       /* below null */
        "80000000 " ZEROS_16,                       /* the minimum */
        "7fffffff " ZEROS_16,                       /* the maximum */
        "00000011 " ZEROS_16,                       /* one too many */
        "00000002 2f61 00000000 fffffffe 00000000", /* a vector below null */
        "00000002 2f61 00000000 7fffffff 00000000", /* of more than there is */
        "00000002 2f61 00000000 40000000 00000000", /* whose size in bytes would wrap around */
    };
    (void)state;
    for (size_t i = 0; i < COUNT(bad); i++) {
        struct block block = hex(bad[i]);
        struct zk_create_request create;
        assert_false(zk_read_create_request(&block.in, &create));
        free(block.memory);
    }
}

static void a_bool_is_any_byte_but_zero(void **state) {
    struct block block = hex("00000002 2f61 80");
    struct zk_exists_request exists = {0};
    struct bytes out = {0};
    (void)state;
    assert_true(zk_read_exists_request(&block.in, &exists));
    assert_int_equal(exists.watch, 1);
    zk_write_exists_request(&out, &exists);
    expect(&out, "00000002 2f61 01");
    free(block.memory);
}

/* ---- Garbage ---- */

static unsigned walk_multi(struct zk_in in, int32_t opcode) {
    struct zk_multi multi;
    struct zk_multi_op op;
    unsigned sum = 0;
    if (!zk_read_multi(&in, opcode, &multi)) return 0;
    for (int32_t left = multi.count; left; left--) {
        assert_true(zk_multi_next(&multi, &op));
        sum += walk(zk_op_of(op.type)->request, &op.of);
    }
    assert_false(zk_multi_next(&multi, &op));
    return sum;
}

/* Mostly small numbers, since lengths and counts have to be such to lead anywhere. */
static void garbage(struct rng *rng, unsigned char *to, size_t words) {
    for (size_t i = 0; i < words; i++) {
        uint64_t bits = rng_next(rng), kind = bits & 7;
        uint64_t word = kind < 5    ? bits >> 8 & 0x0300000003000000
                        : kind == 5 ? (bits >> 8 & 0x7f) << 24
                        : kind == 6 ? bits
                                    : UINT64_MAX;
        memcpy(to + i * 8, &word, 8);
    }
}

static void garbage_does_no_harm(void **state) {
    enum { FRAMES = 1000000, WORDS = 12, SIZE = WORDS * 8 };
    unsigned char *memory = malloc(SIZE);
    unsigned decoded = 0;
    struct rng rng;
    (void)state;
    assert_non_null(memory);
    rng_seed(&rng, 3);
    for (int i = 0; i < FRAMES; i++) {
        uint64_t bits = rng_next(&rng);
        size_t words = 1 + (bits >> 8) % WORDS, size = words * 8 - (bits & 3);
        garbage(&rng, memory + SIZE - words * 8, words);
        struct zk_in in = zk_in_of(memory + SIZE - size, size);
        unsigned r = (unsigned)((bits >> 32) % (ZK_RECORD_COUNT + 1));
        union any value;
        if (r == 0 || r == ZK_RECORD_COUNT) {
            walk_multi(in, r ? ZK_OP_MULTI : ZK_OP_MULTI_READ);
        } else if (zk_records[r].read(&in, &value)) {
            walk(&zk_records[r], &value);
            decoded++;
        }
    }
    assert_true(decoded > FRAMES / 10); /* otherwise nothing was tested */
    free(memory);
}

/* ---- Multi ---- */

static const int32_t in_multi[] = {ZK_OP_CREATE,    ZK_OP_DELETE,  ZK_OP_SET_DATA,
                                   ZK_OP_CHECK,     ZK_OP_CREATE2, ZK_OP_CREATE_CONTAINER,
                                   ZK_OP_CREATE_TTL};
static const int32_t in_multi_read[] = {ZK_OP_GET_DATA, ZK_OP_GET_CHILDREN};

static bool among(int32_t type, const int32_t *types, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (types[i] == type) return true;
    return false;
}

/* A multi of one operation of each number: only those that it may hold are accepted. */
static void a_multi_holds_only_its_operations(void **state) {
    struct source source;
    (void)state;
    source_open(&source, 4);
    for (int32_t type = -20; type < 120; type++) {
        struct bytes out = {0};
        union any value = {0};
        struct zk_multi multi;
        zk_write_multi_header(&out, &(struct zk_multi_header){type, false, -1});
        source.elements.used = 0;
        if (zk_op_of(type)) {
            fill(zk_op_of(type)->request, &value, &source);
            zk_op_of(type)->request->write(&out, &value);
        }
        zk_write_multi_end(&out);
        struct zk_in in = zk_in_of(out.at, out.used), copy = in;
        assert_int_equal(zk_read_multi(&in, ZK_OP_MULTI, &multi),
                         among(type, in_multi, COUNT(in_multi)));
        in = copy;
        assert_int_equal(zk_read_multi(&in, ZK_OP_MULTI_READ, &multi),
                         among(type, in_multi_read, COUNT(in_multi_read)));
        in = copy;
        assert_false(zk_read_multi(&in, 0, &multi));
        bytes_close(&out);
    }
    bytes_close(&source.elements);
}

static void refuse_truncated_multi(const struct bytes *out, int32_t opcode) {
    for (size_t size = 0; size < out->used; size++) {
        struct block block = block_of(out->at, size);
        struct zk_multi multi;
        assert_false(zk_read_multi(&block.in, opcode, &multi));
        free(block.memory);
    }
}

static void multi_comes_back(const int32_t *types, size_t count, int32_t opcode) {
    enum { OPS = 20 };
    struct source source;
    struct bytes out = {0}, again = {0};
    struct zk_multi multi;
    struct zk_multi_op op;
    union zk_request requests[OPS] = {0};
    source_open(&source, 5);
    for (size_t i = 0; i < OPS; i++) {
        fill(zk_op_of(types[i % count])->request, &requests[i], &source);
        zk_write_multi_op(&out, types[i % count], &requests[i]);
    }
    zk_write_multi_end(&out);
    struct block block = block_of(out.at, out.used);
    assert_true(zk_read_multi(&block.in, opcode, &multi));
    assert_int_equal(zk_left(&block.in), 0);
    assert_int_equal(multi.count, OPS);
    for (size_t i = 0; i < OPS; i++) {
        assert_true(zk_multi_next(&multi, &op));
        assert_int_equal(op.type, types[i % count]);
        same(zk_op_of(op.type)->request, &requests[i], &op.of);
        zk_write_multi_op(&again, op.type, &op.of);
    }
    assert_false(zk_multi_next(&multi, &op));
    zk_write_multi_end(&again);
    assert_int_equal(again.used, out.used);
    assert_memory_equal(again.at, out.at, out.used);
    refuse_truncated_multi(&out, opcode);
    free(block.memory);
    bytes_close(&out);
    bytes_close(&again);
    bytes_close(&source.elements);
}

static void every_multi_is_read_back(void **state) {
    (void)state;
    multi_comes_back(in_multi, COUNT(in_multi), ZK_OP_MULTI);
    multi_comes_back(in_multi_read, COUNT(in_multi_read), ZK_OP_MULTI_READ);
}

static void an_empty_multi_is_its_closing_header(void **state) {
    struct block block = hex("ffffffff 01 ffffffff");
    struct zk_in in = block.in;
    struct zk_multi multi;
    struct zk_multi_op op;
    struct zk_result result;
    struct bytes out = {0};
    (void)state;
    assert_true(zk_read_multi(&in, ZK_OP_MULTI, &multi));
    assert_int_equal(multi.count, 0);
    assert_false(zk_multi_next(&multi, &op));
    assert_true(zk_read_results(&block.in, &multi));
    assert_false(zk_results_next(&multi, &result));
    zk_write_multi_end(&out);
    expect(&out, "ffffffff 01 ffffffff");
    free(block.memory);
}

/* One of each, with the types of ZooKeeper's answers. */
static void results_of_a_multi(void **state) {
    struct zk_stat stat = {.czxid = 1, .pzxid = 2};
    union zk_response created = {.create2 = {TEXT("/a"), stat}}, set = {.set_data = {stat}};
    struct bytes out = {0};
    (void)state;
#define STAT                                                                                       \
    "0000000000000001 0000000000000000 0000000000000000 0000000000000000 00000000 00000000"        \
    "00000000 0000000000000000 00000000 00000000 0000000000000002"
    static const char expected[] = "00000001 00 00000000 00000002 2f61"
                                   "00000001 00 00000000 00000002 2f61"
                                   "0000000f 00 00000000 00000002 2f61" STAT
                                   "0000000f 00 00000000 00000002 2f61" STAT "00000002 00 00000000"
                                   "00000005 00 00000000" STAT "0000000d 00 00000000"
                                   "ffffffff 01 ffffffff";
    static const int32_t types[] = {1, 1, 15, 15, 2, 5, 13};
    zk_write_result(&out, ZK_OP_CREATE, &created);
    zk_write_result(&out, ZK_OP_CREATE2, &created);
    zk_write_result(&out, ZK_OP_CREATE_CONTAINER, &created);
    zk_write_result(&out, ZK_OP_CREATE_TTL, &created);
    zk_write_result(&out, ZK_OP_DELETE, NULL);
    zk_write_result(&out, ZK_OP_SET_DATA, &set);
    zk_write_result(&out, ZK_OP_CHECK, NULL);
    zk_write_multi_end(&out);
    expect(&out, expected);

    struct block block = hex(expected);
    struct zk_multi results;
    struct zk_result result;
    assert_true(zk_read_results(&block.in, &results));
    assert_int_equal(results.count, COUNT(types));
    for (size_t i = 0; i < COUNT(types); i++) {
        assert_true(zk_results_next(&results, &result));
        assert_int_equal(result.type, types[i]);
        assert_int_equal(result.err, ZK_OK);
        if (i < 4) expect_text(result.of.create.path, "/a");
    }
    assert_false(zk_results_next(&results, &result));
    free(block.memory);
}

static void a_failed_multi_is_as_recorded(void **state) {
    static const char expected[] = "ffffffff 00 00000000 00000000 ffffffff 00 ffffff9b ffffff9b"
                                   "ffffffff 00 fffffffe fffffffe ffffffff 01 ffffffff";
    static const int32_t errors[] = {ZK_OK, ZK_NONODE, ZK_RUNTIMEINCONSISTENCY};
    struct block block = hex(expected);
    struct bytes out = {0};
    struct zk_multi results;
    struct zk_result result;
    (void)state;
    zk_write_rollback(&out, 3, 1, ZK_NONODE);
    expect(&out, expected);
    assert_true(zk_read_results(&block.in, &results));
    for (size_t i = 0; i < COUNT(errors); i++) {
        assert_true(zk_results_next(&results, &result));
        assert_int_equal(result.type, ZK_OP_ERROR);
        assert_int_equal(result.err, errors[i]);
        assert_int_equal(result.of.error.err, errors[i]);
    }
    assert_false(zk_results_next(&results, &result));
    free(block.memory);
}

static void results_of_a_multi_read(void **state) {
    struct block names = hex("00000001 62 00000001 63");
    union zk_response data = {.get_data = {.data = zk_null()}};
    union zk_response children = {.get_children = {{names.in.at, zk_left(&names.in), 2}}};
    struct bytes out = {0};
    (void)state;
    zk_write_result(&out, ZK_OP_GET_CHILDREN, &children);
    zk_write_result_error(&out, ZK_NOAUTH);
    zk_write_multi_end(&out);
    expect(&out, "00000008 00 00000000 00000002 00000001 62 00000001 63"
                 "ffffffff 00 ffffff9a ffffff9a ffffffff 01 ffffffff");
    zk_write_result(&out, ZK_OP_GET_DATA, &data);
    assert_int_equal(out.used, 9 + 4 + 68);
    for (size_t size = 0; size <= out.used; size++) { /* without its end */
        struct block block = block_of(out.at, size);
        struct zk_multi results;
        assert_false(zk_read_results(&block.in, &results));
        free(block.memory);
    }
    bytes_close(&out);
    free(names.memory);
}

/* ---- Numbers ---- */

static void operations_are_found(void **state) {
    unsigned known = 0;
    (void)state;
    for (int32_t number = -200; number < 300; number++) {
        const struct zk_op *op = zk_op_of(number);
        if (!op) continue;
        known++;
        assert_int_equal(op->number, number);
        assert_non_null(op->request->read);
        assert_non_null(op->response->write);
    }
    assert_int_equal(known, 33);
    assert_null(zk_op_of(10));
    assert_null(zk_op_of(INT32_MAX));
    assert_null(zk_op_of(INT32_MIN));
    assert_string_equal(zk_op_of(104)->lop, "GETACN");
    assert_string_equal(zk_op_of(21)->name, "createTTL");
    assert_string_equal(zk_op_of(21)->request->name, "CreateTTLRequest");
    assert_int_equal(zk_op_of(9)->kind, ZK_KIND_BARRIER);
    assert_int_equal(zk_op_of(13)->kind, ZK_KIND_PART);
}

static void errors_have_names(void **state) {
    (void)state;
    assert_string_equal(zk_error_name(ZK_OK), "OK");
    assert_string_equal(zk_error_name(-101), "NONODE");
    assert_string_equal(zk_error_name(-127), "THROTTLEDOP");
    assert_null(zk_error_name(-126));
    assert_null(zk_error_name(1));
}

/* ---- Paths ---- */

static void paths_are_valid_or_not(void **state) {
    static const struct {
        struct zk_text path;
        bool valid, plausible;
    } of[] = {
        {TEXT("/"), true, true},
        {TEXT("/a"), true, true},
        {TEXT("/a/b"), true, true},
        {TEXT("/..."), true, true},
        {TEXT("/.a/..b/c./d.."), true, true},
        {TEXT("/ "), true, true},
        {TEXT(""), false, false},
        {TEXT("a"), false, false},
        {TEXT("a/b"), false, true},
        {TEXT("//"), false, true},
        {TEXT("/a/"), false, true},
        {TEXT("/a//b"), false, true},
        {TEXT("//a"), false, true},
        {TEXT("/."), false, true},
        {TEXT("/.."), false, true},
        {TEXT("/./a"), false, true},
        {TEXT("/a/../b"), false, true},
        {TEXT("/a/.."), false, true},
        {TEXT("/a\0b"), false, false},
        {TEXT("/a\x01"), false, true},
        {TEXT("/\x1f"), false, true},
        {TEXT("/~"), true, true},
        {TEXT("/\x7f"), false, true},
        {TEXT("/\xc2\x80"), false, true},     /* U+0080 */
        {TEXT("/\xc2\x9f"), false, true},     /* U+009F */
        {TEXT("/\xc2\xa0"), true, true},      /* U+00A0 */
        {TEXT("/\xc3\xa9/b"), true, true},    /* U+00E9 */
        {TEXT("/\xed\x9f\xbf"), true, true},  /* U+D7FF */
        {TEXT("/\xed\xa0\x80"), false, true}, /* U+D800 */
        {TEXT("/\xee\x80\x80"), false, true}, /* U+E000 */
        {TEXT("/\xef\xa3\xbf"), false, true}, /* U+F8FF */
        {TEXT("/\xef\xa4\x80"), true, true},  /* U+F900 */
        {TEXT("/\xef\xbf\xaf"), true, true},  /* U+FFEF */
        {TEXT("/\xef\xbf\xb0"), false, true}, /* U+FFF0 */
        {TEXT("/\xef\xbf\xbf"), false, true}, /* U+FFFF */
        {TEXT("/\xf0\x9f\x98\x80"), false, true},
        {TEXT("/\x80"), false, true},
        {TEXT("/\xc3"), false, true},
        {TEXT("/\xc3/b"), false, true},
        {TEXT("/\xe2\x82"), false, true},
        {TEXT("/\xe2\x28\xa1"), false, true},
        {TEXT("/\xc1\xa1"), false, true},     /* a in two bytes */
        {TEXT("/\xe0\x81\xa1"), false, true}, /* in three */
        {TEXT("/\xe0\x82\xa1"), false, true}, /* U+00A1 in three */
        {TEXT("/\xff"), false, true},
    };
    (void)state;
    for (size_t i = 0; i < COUNT(of); i++) {
        struct block block = block_of(of[i].path.at, (size_t)of[i].path.size);
        struct zk_text path = {(const char *)block.in.at, of[i].path.size};
        if (zk_path_valid(path) != of[i].valid) fail_msg("%s, row %zu", of[i].path.at, i);
        if (zk_path_plausible(path) != of[i].plausible) fail_msg("%s, row %zu", of[i].path.at, i);
        free(block.memory);
    }
    assert_false(zk_path_valid(zk_null()));
    assert_false(zk_path_plausible(zk_null()));
}

static void sequences_are_printed(void **state) {
    static const int32_t fixed[] = {0, 1, 42, INT32_MAX, INT32_MIN, -1, -999999999, -1000000000};
    struct rng rng;
    (void)state;
    rng_seed(&rng, 6);
    for (size_t i = 0; i < 1000; i++) {
        int32_t number = i < COUNT(fixed) ? fixed[i] : (int32_t)rng_next(&rng);
        char to[ZK_SEQUENCE_MAX], expected[16];
        int32_t size = zk_sequence(to, number);
        assert_int_equal(size, snprintf(expected, sizeof expected, "%010d", number));
        assert_memory_equal(to, expected, (size_t)size);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(connect_is_as_recorded),
        cmocka_unit_test(old_clients_omit_read_only),
        cmocka_unit_test(create_is_as_recorded),
        cmocka_unit_test(frames_without_a_record_are_as_recorded),
        cmocka_unit_test(a_notification_is_as_recorded),
        cmocka_unit_test(a_stat_is_in_its_order),
        cmocka_unit_test(frames_are_cut_from_the_stream),
        cmocka_unit_test(every_record_is_read_back),
        cmocka_unit_test(bytes_after_a_record_are_ignored),
        cmocka_unit_test(null_is_not_empty),
        cmocka_unit_test(impossible_lengths_are_refused),
        cmocka_unit_test(a_bool_is_any_byte_but_zero),
        cmocka_unit_test(garbage_does_no_harm),
        cmocka_unit_test(a_multi_holds_only_its_operations),
        cmocka_unit_test(every_multi_is_read_back),
        cmocka_unit_test(an_empty_multi_is_its_closing_header),
        cmocka_unit_test(results_of_a_multi),
        cmocka_unit_test(a_failed_multi_is_as_recorded),
        cmocka_unit_test(results_of_a_multi_read),
        cmocka_unit_test(operations_are_found),
        cmocka_unit_test(errors_have_names),
        cmocka_unit_test(paths_are_valid_or_not),
        cmocka_unit_test(sequences_are_printed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
