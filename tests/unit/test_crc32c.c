/* The checksum beside its definition, by each way to compute it that this machine has. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/crc32c.h"
#include "base/rng.h"

enum { LONGEST = 100000, ALIGNMENTS = 8, SEED = 0x12345678 };

static unsigned char bytes[LONGEST + ALIGNMENTS];

static uint32_t bit_by_bit(uint32_t crc, const void *from, size_t size) {
    const unsigned char *at = from;
    crc = ~crc;
    for (size_t i = 0; i < 8 * size; i++) {
        uint32_t bit = (crc ^ at[i / 8] >> i % 8) & 1;
        crc = crc >> 1 ^ (bit ? 0x82f63b78u : 0);
    }
    return ~crc;
}

/* Each test is run for each implementation. */
static crc32c_function *crc_of(void **state) {
    return ((const struct crc32c_implementation *)*state)->function;
}

static int fill(void **state) {
    struct rng rng;
    (void)state;
    rng_seed(&rng, 1);
    for (size_t i = 0; i < sizeof bytes; i++) bytes[i] = (unsigned char)rng_next(&rng);
    return 0;
}

static void known_values(void **state) { /* RFC 3720, B.4; the first is the usual check value */
    static const unsigned char read_command[48] = {
        [0] = 0x01,  [1] = 0xc0,  [16] = 0x14, [22] = 0x04,
        [27] = 0x14, [31] = 0x18, [32] = 0x28, [40] = 0x02};
    crc32c_function *crc = crc_of(state);
    unsigned char zeros[32] = {0}, ones[32], up[32], down[32];
    memset(ones, 0xff, sizeof ones);
    for (unsigned char i = 0; i < 32; i++) up[i] = i, down[i] = 31 - i;
    assert_int_equal(crc(0, "123456789", 9), 0xe3069283);
    assert_int_equal(crc(0, zeros, 32), 0x8a9136aa);
    assert_int_equal(crc(0, ones, 32), 0x62a8ab43);
    assert_int_equal(crc(0, up, 32), 0x46dd794e);
    assert_int_equal(crc(0, down, 32), 0x113fdb5c);
    assert_int_equal(crc(0, read_command, 48), 0xd9963a56);
    assert_int_equal(crc(0, "", 0), 0);
    assert_int_equal(crc(SEED, "", 0), SEED);
}

/* Three long lanes, three short ones and a rest fit in. */
static void every_size_at_every_alignment(void **state) {
    crc32c_function *crc = crc_of(state);
    for (size_t from = 0; from < ALIGNMENTS; from++) {
        uint32_t expected = SEED;
        for (size_t size = 0; size < 3600; size++) {
            assert_int_equal(crc(SEED, bytes + from, size), expected);
            expected = bit_by_bit(expected, bytes + from + size, 1);
        }
    }
}

static void long_inputs_whole_and_in_parts(void **state) {
    crc32c_function *crc = crc_of(state);
    struct rng rng;
    rng_seed(&rng, 2);
    for (int round = 0; round < 60; round++) {
        uint32_t seed = (uint32_t)rng_next(&rng), continued = seed;
        const unsigned char *from = bytes + rng_below(&rng, ALIGNMENTS);
        size_t size = round ? rng_below(&rng, LONGEST + 1) : LONGEST;
        uint32_t expected = bit_by_bit(seed, from, size);
        assert_int_equal(crc(seed, from, size), expected);
        for (size_t at = 0, part; at < size; at += part) {
            part = rng_below(&rng, size - at + 1);
            continued = crc(continued, from + at, part);
        }
        assert_int_equal(continued, expected);
    }
}

static void zeros_count(void **state) { /* in lanes of zeros only the combination changes it */
    static const unsigned char zeros[LONGEST];
    crc32c_function *crc = crc_of(state);
    uint32_t expected = SEED;
    for (size_t size = 0; size <= LONGEST; size += 1000) {
        assert_int_equal(crc(SEED, zeros, size), expected);
        expected = bit_by_bit(expected, zeros, 1000);
    }
}

static bool always(void) { return true; }

int main(void) {
    static const struct crc32c_implementation chosen = {"crc32c(), the choice", always, crc32c};
    const struct crc32c_implementation *it = crc32c_implementations;
    int failed = 0, tried = 0;
    for (; it; it = it == &chosen ? NULL : it[1].name ? it + 1 : &chosen) {
        if (!it->is_available()) {
            print_message("%s: not on this machine\n", it->name);
            continue;
        }
        void *state = (void *)it;
        const struct CMUnitTest tests[] = {
            cmocka_unit_test_prestate(known_values, state),
            cmocka_unit_test_prestate(every_size_at_every_alignment, state),
            cmocka_unit_test_prestate(long_inputs_whole_and_in_parts, state),
            cmocka_unit_test_prestate(zeros_count, state),
        };
        print_message("%s:\n", it->name);
        failed += cmocka_run_group_tests_name(it->name, tests, fill, NULL);
        tried++;
    }
    return failed || tried < 2;
}
