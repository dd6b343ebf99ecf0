/* How the frames between servers may change: the codec, compiled for a made-up frame that got new
 * fields with version 4.  A server of version 3 neither sends nor expects them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "service/ensemble/codec.h"

#define FRAME_FIELDS_made_up(F)                                                                    \
    F(u64, number, 2)                                                                              \
    F(u8, kind, 3)                                                                                 \
    F(u32, count, 4)                                                                               \
    F(u64, reason, 4)
#undef FRAMES
#define FRAMES(M) M(99, made_up)
FRAMES(FRAME_STRUCT_)

/* The program's own codec is linked, too. */
#define codec_write_u64     made_up_write_u64
#define codec_read_u64      made_up_read_u64
#define codec_write_message made_up_write_message
#define codec_read_message  made_up_read_message
FRAMES(FRAME_FUNCTIONS_)
#include "service/ensemble/codec.c"

static const struct frame_made_up full = {
    .number = 0x0102030405060708, .kind = 9, .count = 0x0a0b0c0d, .reason = 0x0e0f101112131415};

static size_t encode(unsigned char *to, uint16_t version) {
    struct bytes bytes = {0};
    codec_write_made_up(&bytes, version, &full);
    size_t size = bytes.used;
    memcpy(to, bytes.at, size);
    bytes_close(&bytes);
    return size;
}

static bool decode(const unsigned char *bytes, size_t size, uint16_t version,
                   struct frame_made_up *frame, size_t *left) {
    struct zk_in in = zk_in_of(bytes, size);
    memset(frame, 0xff, sizeof *frame);
    bool whole = codec_read_made_up(&in, version, frame);
    *left = zk_left(&in);
    return whole;
}

static void each_version_writes_its_fields(void **state) {
    unsigned char bytes[64];
    (void)state;
    assert_int_equal(encode(bytes, 2), 8);
    assert_memory_equal(bytes, "\10\7\6\5\4\3\2\1", 8);
    assert_int_equal(encode(bytes, 3), 9);
    assert_memory_equal(bytes, "\1\2\3\4\5\6\7\10\11", 9);
    assert_int_equal(encode(bytes, 4), 21);
    assert_memory_equal(bytes, "\1\2\3\4\5\6\7\10\11\12\13\14\15\16\17\20\21\22\23\24\25", 21);
    assert_int_equal(encode(bytes, 5), 21);
}

static void an_older_version_leaves_the_rest(void **state) {
    unsigned char bytes[64];
    struct frame_made_up frame;
    size_t left, size = encode(bytes, 4);
    (void)state;
    assert_true(decode(bytes, size, 4, &frame, &left));
    assert_true(left == 0 && frame.count == full.count && frame.reason == full.reason);
    assert_true(decode(bytes, size, 3, &frame, &left)); /* the rest would be a payload */
    assert_int_equal(left, 12);
    assert_true(frame.number == full.number && frame.kind == full.kind);
    assert_true(frame.count == 0 && frame.reason == 0);
}

static void a_newer_version_needs_its_fields(void **state) {
    unsigned char bytes[64];
    struct frame_made_up frame;
    size_t left, size = encode(bytes, 3);
    (void)state;
    assert_true(decode(bytes, size, 3, &frame, &left));
    assert_false(decode(bytes, size, 4, &frame, &left));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_version_writes_its_fields),
        cmocka_unit_test(an_older_version_leaves_the_rest),
        cmocka_unit_test(a_newer_version_needs_its_fields),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
