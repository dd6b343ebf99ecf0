/* Frames between servers: round trips in every version, pinned bytes, and bytes that are no frame.
 * All messages and fields come from their descriptions, so a new one is tested as it is added. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/rng.h"
#include "service/ensemble/codec.h"

#define COUNT(ARRAY) (sizeof(ARRAY) / sizeof(ARRAY)[0])

enum { FROM_ID = 0xf1, TO_ID = 0xf2 };
static const uint16_t versions[] = {2, 3, 4, 5, 6, 7};

/* ---- Values ---- */

enum mode {
    CONSECUTIVE, /* bytes 1, 2, 3, ... in big-endian order: each byte shows where it belongs */
    EXTREME,
    RANDOM,
};

struct values {
    enum mode mode;
    struct rng rng;
    uint8_t last_byte;
};

static uint64_t extreme(struct rng *rng, size_t size) {
    uint64_t max = UINT64_MAX >> (64 - 8 * size), values[] = {0, 1, max, max - 1, max / 2 + 1};
    return values[rng_below(rng, COUNT(values))];
}

static uint64_t next_value(struct values *values, size_t size) {
    uint64_t value = 0;
    if (values->mode == EXTREME) return extreme(&values->rng, size);
    if (values->mode == RANDOM) return rng_next(&values->rng);
    for (size_t i = 0; i < size; i++) value = value << 8 | ++values->last_byte;
    return value;
}

/* ---- One form for messages and frames ---- */

union body {
    struct raft_message message;
#define FRAME_MEMBER(TYPE, NAME) struct frame_##NAME NAME;
    FRAMES(FRAME_MEMBER)
};

struct kind {
    const char *name;
    void (*fill)(union body *body, struct values *values);
    /* Makes 0 what the version does not carry. */
    void (*forget)(union body *body, uint16_t version);
    void (*write)(struct bytes *out, uint16_t version, const union body *body);
    bool (*read)(struct zk_in *in, uint16_t version, union body *body);
};

#define FILL_FIELD(TYPE, NAME, FROM)                                                               \
    fields->NAME = (RAFT_CTYPE_##TYPE)next_value(values, sizeof fields->NAME);

/* Version 2 has the fields of version 3 of a message, but all u8 but one as single bits. */
static uint64_t carried(uint64_t value, size_t size, const char *name, uint16_t version,
                        uint16_t from) {
    if (from > (version < 3 ? 3 : version) || (version < 3 && strcmp(name, "reserved") == 0))
        return 0;
    return version < 3 && size == 1 && strcmp(name, "entry_kind") != 0 ? value != 0 : value;
}
#define FORGET_MESSAGE_FIELD(TYPE, NAME, FROM)                                                     \
    fields->NAME =                                                                                 \
        (RAFT_CTYPE_##TYPE)carried(fields->NAME, sizeof fields->NAME, #NAME, version, FROM);
#define FORGET_FRAME_FIELD(TYPE, NAME, FROM)                                                       \
    if (version < FROM) fields->NAME = 0;

#define MESSAGE_FUNCTIONS(NUMBER, NAME, TITLE)                                                     \
    static void fill_message_##NAME(union body *body, struct values *values) {                     \
        struct raft_##NAME *fields = &body->message.NAME;                                          \
        body->message.type = NUMBER;                                                               \
        body->message.from = FROM_ID;                                                              \
        body->message.to = TO_ID;                                                                  \
        body->message.term = next_value(values, sizeof body->message.term);                        \
        RAFT_FIELDS_##NAME(FILL_FIELD)                                                             \
    }                                                                                              \
    static void forget_message_##NAME(union body *body, uint16_t version) {                        \
        struct raft_##NAME *fields = &body->message.NAME;                                          \
        RAFT_FIELDS_##NAME(FORGET_MESSAGE_FIELD)                                                   \
    }
RAFT_MESSAGES(MESSAGE_FUNCTIONS)

static void write_message(struct bytes *out, uint16_t version, const union body *body) {
    codec_write_message(out, version, &body->message);
}

static bool read_message(struct zk_in *in, uint16_t version, union body *body) {
    return codec_read_message(in, version, FROM_ID, TO_ID, &body->message);
}

#define FRAME_FUNCTIONS(TYPE, NAME)                                                                \
    static void fill_##NAME(union body *body, struct values *values) {                             \
        struct frame_##NAME *fields = &body->NAME;                                                 \
        (void)fields, (void)values;                                                                \
        FRAME_FIELDS_##NAME(FILL_FIELD)                                                            \
    }                                                                                              \
    static void forget_##NAME(union body *body, uint16_t version) {                                \
        struct frame_##NAME *fields = &body->NAME;                                                 \
        (void)fields, (void)version;                                                               \
        FRAME_FIELDS_##NAME(FORGET_FRAME_FIELD)                                                    \
    }                                                                                              \
    static void write_##NAME(struct bytes *out, uint16_t version, const union body *body) {        \
        codec_write_##NAME(out, version, &body->NAME);                                             \
    }                                                                                              \
    static bool read_##NAME(struct zk_in *in, uint16_t version, union body *body) {                \
        return codec_read_##NAME(in, version, &body->NAME);                                        \
    }
FRAMES(FRAME_FUNCTIONS)

static const struct kind kinds[] = {
#define MESSAGE_KIND(NUMBER, NAME, TITLE)                                                          \
    {TITLE, fill_message_##NAME, forget_message_##NAME, write_message, read_message},
    RAFT_MESSAGES(MESSAGE_KIND)
#define FRAME_KIND(TYPE, NAME) {#NAME, fill_##NAME, forget_##NAME, write_##NAME, read_##NAME},
        FRAMES(FRAME_KIND)};

/* ---- Helpers ---- */

static void fill(const struct kind *kind, struct values *values, union body *body) {
    memset(body, 0, sizeof *body);
    kind->fill(body, values);
}

/* Reads from a block of exactly that size, so that a sanitizer notices a read beyond it. */
static bool read_exactly(const struct kind *kind, uint16_t version, const void *bytes, size_t size,
                         size_t *left, union body *body) {
    unsigned char *copy = malloc(size + 1);
    assert_non_null(copy);
    if (size) memcpy(copy + 1, bytes, size);
    struct zk_in in = zk_in_of(copy + 1, size);
    memset(body, 0, sizeof *body); /* a frame is smaller */
    bool read = kind->read(&in, version, body);
    if (read) assert_ptr_equal(in.end, copy + 1 + size);
    *left = zk_left(&in);
    free(copy);
    return read;
}

static void expect_read(const struct kind *kind, uint16_t version, const struct bytes *bytes,
                        size_t payload, const union body *expected) {
    union body body;
    size_t left;
    assert_true(read_exactly(kind, version, bytes->at, bytes->used, &left, &body));
    assert_int_equal(left, payload);
    assert_memory_equal(&body, expected, sizeof body);
}

static void expect_round_trip(const struct kind *kind, struct values *values, uint16_t version) {
    union body body, expected;
    struct bytes bytes = {0};
    fill(kind, values, &body);
    expected = body;
    kind->forget(&expected, version);
    kind->write(&bytes, version, &body);
    expect_read(kind, version, &bytes, 0, &expected);
    size_t size = 1 + rng_below(&values->rng, 100);
    memset(bytes_extend(&bytes, size), (int)rng_next(&values->rng), size); /* a payload */
    expect_read(kind, version, &bytes, size, &expected);
    bytes_close(&bytes);
}

/* ---- Round trips ---- */

static void reads_what_was_written(void **state) {
    struct values values = {.mode = EXTREME};
    (void)state;
    rng_seed(&values.rng, 1);
    for (int i = 0; i < 4000; i++) {
        values.mode = i % 2 ? EXTREME : RANDOM;
        for (size_t k = 0; k < COUNT(kinds); k++)
            for (size_t v = 0; v < COUNT(versions); v++)
                expect_round_trip(&kinds[k], &values, versions[v]);
    }
}

static void reads_numbers_of_a_payload(void **state) {
    (void)state;
    for (size_t v = 0; v < COUNT(versions); v++) {
        struct bytes bytes = {0};
        uint64_t first, second, value;
        codec_write_u64(&bytes, versions[v], UINT64_C(0x0102030405060708));
        codec_write_u64(&bytes, versions[v], UINT64_MAX - 1);
        assert_int_equal(bytes.used, 16);
        assert_int_equal(bytes.at[0], versions[v] < 3 ? 8 : 1);
        struct zk_in in = zk_in_of(bytes.at, bytes.used);
        assert_true(codec_read_u64(&in, versions[v], &first));
        assert_true(codec_read_u64(&in, versions[v], &second));
        assert_true(first == UINT64_C(0x0102030405060708) && second == UINT64_MAX - 1);
        assert_false(codec_read_u64(&in, versions[v], &value));
        in = zk_in_of(bytes.at, 7);
        assert_false(codec_read_u64(&in, versions[v], &value));
        assert_int_equal(zk_left(&in), 7);
        bytes_close(&bytes);
    }
}

/* ---- Pinned bytes ----
 *
 * Other servers read these bytes: a change of an existing version is an error, however consistent.
 * Those of version 2 were written by the program that had no other. */

struct pinned {
    const char *name;
    const char *version_2, *version_3; /* hexadecimal, with spaces; of CONSECUTIVE values */
    const char *version_4;             /* what it adds at the end; NULL: nothing */
    const char *version_5, *version_6, *version_7; /* the same */
};

#define ZEROS_8 "0000000000000000"

static const struct pinned pinned[] = {
    {"RequestVote",
     "0807060504030201 100f0e0d0c0b0a09 1817161514131211" ZEROS_8 ZEROS_8 ZEROS_8 ZEROS_8
     "00000000 01 05 f1 f2" ZEROS_8,
     "01 0102030405060708 090a0b0c0d0e0f10 1112131415161718 19 1a", NULL, NULL, NULL, NULL},
    {"RequestVote response",
     "0807060504030201" ZEROS_8 ZEROS_8 ZEROS_8 ZEROS_8 ZEROS_8 ZEROS_8
     "00000000 02 03 f1 f2" ZEROS_8,
     "02 0102030405060708 09 0a", NULL, NULL, NULL, NULL},
    {"AppendEntries",
     "0807060504030201 100f0e0d0c0b0a09 1817161514131211 201f1e1d1c1b1a19 2827262524232221"
     "302f2e2d2c2b2a29 3837363534333231 3c3b3a39 03 30 f1 f2 3d 00000000000000",
     "03 0102030405060708 090a0b0c0d0e0f10 1112131415161718 191a1b1c1d1e1f20 2122232425262728"
     "292a2b2c2d2e2f30 3132333435363738 393a3b3c 3d 3e 3f",
     "4041424344454647", NULL, NULL, NULL},
    {"AppendEntries response",
     "0807060504030201 100f0e0d0c0b0a09 1817161514131211 201f1e1d1c1b1a19" ZEROS_8 ZEROS_8
     "2827262524232221 00000000 04 08 f1 f2" ZEROS_8,
     "04 0102030405060708 090a0b0c0d0e0f10 1112131415161718 191a1b1c1d1e1f20 2122232425262728 29",
     "2a", NULL, NULL, NULL},
    {"InstallSnapshot",
     "0807060504030201 100f0e0d0c0b0a09 1817161514131211 201f1e1d1c1b1a19" ZEROS_8
     "2827262524232221" ZEROS_8 "00000000 05 00 f1 f2" ZEROS_8,
     "05 0102030405060708 090a0b0c0d0e0f10 1112131415161718 191a1b1c1d1e1f20 2122232425262728",
     NULL, NULL, NULL, NULL},
    {"InstallSnapshot response",
     "0807060504030201 100f0e0d0c0b0a09" ZEROS_8 "1817161514131211" ZEROS_8 ZEROS_8 ZEROS_8
     "00000000 06 00 f1 f2" ZEROS_8,
     "06 0102030405060708 090a0b0c0d0e0f10 1112131415161718", NULL, NULL, NULL, NULL},
    {"TimeoutNow",
     "0807060504030201" ZEROS_8 ZEROS_8 ZEROS_8 ZEROS_8 ZEROS_8 ZEROS_8
     "00000000 07 00 f1 f2" ZEROS_8,
     "07 0102030405060708 09", NULL, NULL, NULL, NULL},
    {"forward", "0807060504030201 100f0e0d0c0b0a09", "0102030405060708 090a0b0c0d0e0f10", NULL,
     NULL, NULL, NULL},
    {"touch_sessions", "", "", "0102030405060708", NULL, NULL, NULL},
    {"read_index_request", "0807060504030201", "0102030405060708", NULL, NULL, NULL, NULL},
    {"read_index_response", "0807060504030201 100f0e0d0c0b0a09",
     "0102030405060708 090a0b0c0d0e0f10", NULL, NULL, NULL, NULL},
    {"transfer_leadership", "0807060504030201", "0102030405060708", NULL, NULL, NULL, NULL},
    {"removed", "", "", "0102030405060708", NULL, NULL, NULL},
    {"introduction", "", "", "01020304 05", NULL, NULL, "060708090a0b0c0d"},
    {"sessions_touched", "", "", "0102030405060708", NULL, NULL, NULL},
    {"mend_request", "", "", NULL,
     "0102030405060708 090a0b0c0d0e0f10 1112131415161718 191a1b1c1d1e1f20 2122232425262728", NULL,
     NULL},
    {"mend_response", "", "", NULL,
     "0102030405060708 090a0b0c0d0e0f10 1112131415161718 191a1b1c1d1e1f20 2122232425262728"
     "292a2b2c 2d 2e",
     NULL, NULL},
    {"mend_chunk_request", "", "", NULL, "0102030405060708 090a0b0c0d0e0f10", NULL, NULL},
    {"mend_chunk", "", "", NULL, "0102030405060708 090a0b0c0d0e0f10 1112131415161718", NULL, NULL},
    {"memory", "", "", NULL, NULL, "01", NULL},
    {"forward_again", "", "", NULL, NULL, "0102030405060708", NULL},
};

static void add_hex(struct bytes *bytes, const char *digits) {
    unsigned byte;
    for (; *digits; digits++) {
        if (isspace((unsigned char)*digits)) continue;
        assert_int_equal(sscanf(digits++, "%2x", &byte), 1);
        *bytes_extend(bytes, 1) = (unsigned char)byte;
    }
}

static const struct pinned *find_pinned(const char *name) {
    for (size_t i = 0; i < COUNT(pinned); i++)
        if (strcmp(pinned[i].name, name) == 0) return &pinned[i];
    fail_msg("%s has no pinned bytes", name);
    return NULL;
}

static void expect_pinned(const struct kind *kind, uint16_t version, const char *digits) {
    struct values values = {.mode = CONSECUTIVE};
    struct bytes bytes = {0}, expected = {0};
    union body body;
    fill(kind, &values, &body);
    kind->write(&bytes, version, &body);
    add_hex(&expected, digits);
    if (bytes.used != expected.used ||
        (bytes.used && memcmp(bytes.at, expected.at, bytes.used) != 0))
        fail_msg("the bytes of %s have changed in version %u", kind->name, version);
    kind->forget(&body, version);
    expect_read(kind, version, &expected, 0, &body);
    bytes_close(&bytes);
    bytes_close(&expected);
}

static void bytes_are_pinned(void **state) {
    (void)state;
    for (size_t k = 0; k < COUNT(kinds); k++) {
        const struct pinned *bytes = find_pinned(kinds[k].name);
        expect_pinned(&kinds[k], 2, bytes->version_2);
        expect_pinned(&kinds[k], 3, bytes->version_3);
        const char *added[] = {bytes->version_4, bytes->version_5, bytes->version_6,
                               bytes->version_7};
        char all[1024] = "";
        strcat(all, bytes->version_3);
        for (uint16_t v = 0; v < COUNT(added); v++) {
            if (added[v]) strcat(all, added[v]);
            expect_pinned(&kinds[k], 4 + v, all);
        }
    }
    assert_int_equal(COUNT(kinds), COUNT(pinned));
}

static void types_are_pinned(void **state) {
    (void)state;
    assert_int_equal(FRAME_MESSAGE, 1);
    assert_int_equal(FRAME_TYPE_forward, 2);
    assert_int_equal(FRAME_TYPE_touch_sessions, 3);
    assert_int_equal(FRAME_TYPE_read_index_request, 4);
    assert_int_equal(FRAME_TYPE_read_index_response, 5);
    assert_int_equal(FRAME_TYPE_transfer_leadership, 6);
    assert_int_equal(FRAME_TYPE_removed, 7);
    assert_int_equal(FRAME_TYPE_introduction, 8);
    assert_int_equal(FRAME_TYPE_sessions_touched, 9);
    assert_int_equal(FRAME_TYPE_mend_request, 10);
    assert_int_equal(FRAME_TYPE_mend_response, 11);
    assert_int_equal(FRAME_TYPE_mend_chunk_request, 12);
    assert_int_equal(FRAME_TYPE_mend_chunk, 13);
    assert_int_equal(FRAME_TYPE_memory, 14);
    assert_int_equal(FRAME_TYPE_forward_again, 15);
}

/* ---- Version 2 ---- */

enum { V2_TYPE = 60, V2_FLAGS, V2_FROM, V2_TO, V2_RESERVED = 65 }; /* offsets */

static const struct flag {
    enum raft_message_type type;
    size_t field; /* its offset in the message */
    uint8_t bit;
} flags[] = {
    {RAFT_REQUEST_VOTE, offsetof(struct raft_message, request_vote.pre_vote), 1},
    {RAFT_REQUEST_VOTE, offsetof(struct raft_message, request_vote.leadership_transfer), 4},
    {RAFT_REQUEST_VOTE_RESPONSE, offsetof(struct raft_message, request_vote_response.vote_granted),
     2},
    {RAFT_REQUEST_VOTE_RESPONSE, offsetof(struct raft_message, request_vote_response.pre_vote), 1},
    {RAFT_APPEND_ENTRIES, offsetof(struct raft_message, append_entries.lease), 16},
    {RAFT_APPEND_ENTRIES, offsetof(struct raft_message, append_entries.commit_notification), 32},
    {RAFT_APPEND_ENTRIES_RESPONSE, offsetof(struct raft_message, append_entries_response.rejected),
     8},
};

static void each_flag_has_its_bit(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT(flags); i++) {
        struct raft_message m, read;
        struct bytes bytes = {0};
        memset(&m, 0, sizeof m);
        m.type = (uint8_t)flags[i].type;
        ((uint8_t *)&m)[flags[i].field] = 1;
        codec_write_message(&bytes, 2, &m);
        assert_int_equal(bytes.used, CODEC_V2_SIZE);
        assert_int_equal(bytes.at[V2_TYPE], flags[i].type);
        assert_int_equal(bytes.at[V2_FLAGS], flags[i].bit);
        struct zk_in in = zk_in_of(bytes.at, bytes.used);
        assert_true(codec_read_message(&in, 2, 0, 0, &read));
        assert_memory_equal(&read, &m, sizeof m);
        bytes_close(&bytes);
    }
}

/* A sender and a receiver are those of the link, whatever the bytes say; bits and bytes without a
 * meaning have none. */
static void what_has_no_meaning_is_ignored(void **state) {
    (void)state;
    for (uint8_t type = 1; type < RAFT_MESSAGE_TYPES; type++) {
        struct raft_message m, expected;
        unsigned char bytes[CODEC_V2_SIZE] = {[V2_TYPE] = type, [V2_FLAGS] = 0xc0};
        bytes[V2_FROM] = bytes[V2_TO] = 77;
        memset(bytes + V2_RESERVED, 0xff, sizeof bytes - V2_RESERVED);
        memset(&expected, 0, sizeof expected);
        expected.type = type, expected.from = 4, expected.to = 5;
        struct zk_in in = zk_in_of(bytes, sizeof bytes);
        assert_true(codec_read_message(&in, 2, 4, 5, &m));
        assert_memory_equal(&m, &expected, sizeof m);
    }
}

/* ---- What is refused ---- */

static void every_truncation_is_refused(void **state) {
    struct values values = {.mode = CONSECUTIVE};
    (void)state;
    for (size_t k = 0; k < COUNT(kinds); k++)
        for (size_t v = 0; v < COUNT(versions); v++) {
            struct bytes bytes = {0};
            union body body;
            fill(&kinds[k], &values, &body);
            kinds[k].write(&bytes, versions[v], &body);
            for (size_t size = 0, left; size < bytes.used; size++)
                if (read_exactly(&kinds[k], versions[v], bytes.at, size, &left, &body))
                    fail_msg("%s of %zu bytes is accepted in version %u", kinds[k].name, size,
                             versions[v]);
            bytes_close(&bytes);
        }
}

static void unknown_types_are_refused(void **state) {
    unsigned char bytes[100] = {0};
    (void)state;
    for (size_t v = 0; v < COUNT(versions); v++)
        for (unsigned type = 0; type <= UINT8_MAX; type++) {
            struct raft_message m;
            struct zk_in in = zk_in_of(bytes, sizeof bytes);
            bytes[versions[v] < 3 ? V2_TYPE : 0] = (unsigned char)type;
            bool known = type > 0 && type < RAFT_MESSAGE_TYPES;
            assert_int_equal(codec_read_message(&in, versions[v], 1, 2, &m), known);
        }
}

/* ---- Evolution ---- */

/* No field is older than version 2. */
static void a_version_has_only_its_fields(void **state) {
    struct values values = {.mode = CONSECUTIVE};
    struct bytes bytes = {0};
    (void)state;
#define EXPECT_EMPTY(TYPE, NAME)                                                                   \
    {                                                                                              \
        union body body, read;                                                                     \
        struct zk_in in = zk_in_of("abc", 3);                                                      \
        memset(&body, 0, sizeof body);                                                             \
        memset(&read, 0xff, sizeof read);                                                          \
        fill_##NAME(&body, &values);                                                               \
        codec_write_##NAME(&bytes, 1, &body.NAME);                                                 \
        assert_int_equal(bytes.used, 0);                                                           \
        assert_true(codec_read_##NAME(&in, 1, &read.NAME));                                        \
        assert_int_equal(zk_left(&in), 3);                                                         \
        forget_##NAME(&body, 1);                                                                   \
        if (sizeof body.NAME) assert_memory_equal(&body.NAME, &read.NAME, sizeof body.NAME);       \
    }
    FRAMES(EXPECT_EMPTY)
    bytes_close(&bytes);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_what_was_written),
        cmocka_unit_test(reads_numbers_of_a_payload),
        cmocka_unit_test(bytes_are_pinned),
        cmocka_unit_test(types_are_pinned),
        cmocka_unit_test(each_flag_has_its_bit),
        cmocka_unit_test(what_has_no_meaning_is_ignored),
        cmocka_unit_test(every_truncation_is_refused),
        cmocka_unit_test(unknown_types_are_refused),
        cmocka_unit_test(a_version_has_only_its_fields),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
