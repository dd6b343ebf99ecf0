/* A CRC is a polynomial over GF(2) modulo the generator, in reflected order: the top bit is x^0.
 *
 * Everything rests on one operation, which is linear: crc * x^(8n), the CRC after n more bytes of
 * zero.  It is four lookups, one for each byte of the crc, in tables for that n.  With n of 4 and 8
 * they are those of slicing-by-8.  With n of a lane's length they join lanes: a CRC instruction
 * takes several cycles but can begin in each, so long inputs are cut into three lanes that are
 * worked on side by side. */
#include "base/crc32c.h"

#include <endian.h>
#include <string.h>

/* ---- Tables, computed by the compiler ---- */

#define TIMES_X(v) ((v) >> 1 ^ ((v) % 2 ? 0x82f63b78u : 0))
#define POWERS_8(p, first, a, b, c, d, e, f, g, h)                                                 \
    p##a = (first), p##b = TIMES_X(p##a), p##c = TIMES_X(p##b), p##d = TIMES_X(p##c),              \
    p##e = TIMES_X(p##d), p##f = TIMES_X(p##e), p##g = TIMES_X(p##f), p##h = TIMES_X(p##g)
/* The names p0 ... p31 for first * x^0 ... first * x^31. */
#define POWERS(p, first)                                                                           \
    POWERS_8(p, first, 0, 1, 2, 3, 4, 5, 6, 7),                                                    \
        POWERS_8(p, TIMES_X(p##7), 8, 9, 10, 11, 12, 13, 14, 15),                                  \
        POWERS_8(p, TIMES_X(p##15), 16, 17, 18, 19, 20, 21, 22, 23),                               \
        POWERS_8(p, TIMES_X(p##23), 24, 25, 26, 27, 28, 29, 30, 31)

/* All sums of v with some of the others: a row of a table, since the operation is linear.  The last
 * of them stands for the lowest bit of the index. */
#define SUMS_1(v, a)      (v), (v) ^ (a)
#define SUMS_2(v, a, ...) SUMS_1(v, __VA_ARGS__), SUMS_1((v) ^ (a), __VA_ARGS__)
#define SUMS_3(v, a, ...) SUMS_2(v, __VA_ARGS__), SUMS_2((v) ^ (a), __VA_ARGS__)
#define SUMS_4(v, a, ...) SUMS_3(v, __VA_ARGS__), SUMS_3((v) ^ (a), __VA_ARGS__)
#define SUMS_5(v, a, ...) SUMS_4(v, __VA_ARGS__), SUMS_4((v) ^ (a), __VA_ARGS__)
#define SUMS_6(v, a, ...) SUMS_5(v, __VA_ARGS__), SUMS_5((v) ^ (a), __VA_ARGS__)
#define SUMS_7(v, a, ...) SUMS_6(v, __VA_ARGS__), SUMS_6((v) ^ (a), __VA_ARGS__)
#define SUMS_8(v, a, ...) SUMS_7(v, __VA_ARGS__), SUMS_7((v) ^ (a), __VA_ARGS__)
#define ROW(p, a, b, c, d, e, f, g, h)                                                             \
    { SUMS_8(0u, p##a, p##b, p##c, p##d, p##e, p##f, p##g, p##h) }
#define TABLE(p)                                                                                   \
    {                                                                                              \
        ROW(p, 24, 25, 26, 27, 28, 29, 30, 31), ROW(p, 16, 17, 18, 19, 20, 21, 22, 23),            \
            ROW(p, 8, 9, 10, 11, 12, 13, 14, 15), ROW(p, 0, 1, 2, 3, 4, 5, 6, 7)                   \
    }

enum { SHORT_LANE = 128, LONG_LANE = 1024 }; /* bytes */
enum {
    POWERS(four_, 0x82f63b78u),  /* x^(8 * 4) */
    POWERS(eight_, 0x6ea2d55cu), /* x^(8 * 8) */
    POWERS(short_, 0xb8fdb1e7u), /* x^(8 * SHORT_LANE) */
    POWERS(long_, 0xe4172b16u),  /* x^(8 * LONG_LANE) */
};

typedef const uint32_t zeros_table[4][256];
static zeros_table after_4 = TABLE(four_), after_8 = TABLE(eight_);

static inline uint32_t after_zeros(zeros_table table, uint32_t crc) {
    return table[0][crc & 255] ^ table[1][crc >> 8 & 255] ^ table[2][crc >> 16 & 255] ^
           table[3][crc >> 24];
}

static inline uint64_t load(const unsigned char *at) {
    uint64_t word;
    memcpy(&word, at, sizeof word);
    return le64toh(word);
}

/* ---- Slicing-by-8 ---- */

static bool always(void) { return true; }

static uint32_t by_tables(uint32_t crc, const void *bytes, size_t size) {
    const unsigned char *at = bytes;
    crc = ~crc;
    for (; size >= 8; size -= 8, at += 8) {
        uint64_t word = load(at) ^ crc;
        crc = after_zeros(after_8, (uint32_t)word) ^ after_zeros(after_4, (uint32_t)(word >> 32));
    }
    while (size--) crc = crc >> 8 ^ after_4[3][(crc ^ *at++) & 255];
    return ~crc;
}

/* ---- The instruction ---- */

#if defined __x86_64__
#include <nmmintrin.h>
#define INSTRUCTION "SSE4.2"
#define TARGET      __attribute__((target("sse4.2")))
typedef uint64_t crc_register; /* the upper half is zero; to narrow it would take a cycle a word */
static inline bool has_instruction(void) { return __builtin_cpu_supports("sse4.2"); }
TARGET static inline crc_register add_word(crc_register crc, uint64_t word) {
    return _mm_crc32_u64(crc, word);
}
TARGET static inline crc_register add_byte(crc_register crc, unsigned char byte) {
    return _mm_crc32_u8((uint32_t)crc, byte);
}

#elif defined __aarch64__ && defined __linux__
#include <arm_acle.h>
#include <sys/auxv.h>
#ifndef HWCAP_CRC32 /* musl leaves it to the kernel's headers */
#define HWCAP_CRC32 (1 << 7)
#endif
#define INSTRUCTION "Armv8 CRC32"
#ifdef __clang__ /* its header declares the intrinsics only if the whole program may use them */
#define TARGET    __attribute__((target("crc")))
#define __crc32cd __builtin_arm_crc32cd
#define __crc32cb __builtin_arm_crc32cb
#else
#define TARGET __attribute__((target("+crc")))
#endif
typedef uint32_t crc_register;
static inline bool has_instruction(void) { return getauxval(AT_HWCAP) & HWCAP_CRC32; }
TARGET static inline crc_register add_word(crc_register crc, uint64_t word) {
    return __crc32cd(crc, word);
}
TARGET static inline crc_register add_byte(crc_register crc, unsigned char byte) {
    return __crc32cb(crc, byte);
}
#endif

#ifdef INSTRUCTION
static zeros_table after_short_lane = TABLE(short_), after_long_lane = TABLE(long_);

TARGET static inline crc_register three_lanes(crc_register crc, const unsigned char *at,
                                              size_t lane, zeros_table after_lane) {
    crc_register second = 0, third = 0;
    for (const unsigned char *end = at + lane; at < end; at += 8) {
        crc = add_word(crc, load(at));
        second = add_word(second, load(at + lane));
        third = add_word(third, load(at + 2 * lane));
    }
    second ^= after_zeros(after_lane, (uint32_t)crc);
    return third ^ after_zeros(after_lane, (uint32_t)second);
}

TARGET static uint32_t by_instruction(uint32_t seed, const void *bytes, size_t size) {
    const unsigned char *at = bytes;
    crc_register crc = ~seed;
    for (; size >= 3 * LONG_LANE; size -= 3 * LONG_LANE, at += 3 * LONG_LANE)
        crc = three_lanes(crc, at, LONG_LANE, after_long_lane);
    for (; size >= 3 * SHORT_LANE; size -= 3 * SHORT_LANE, at += 3 * SHORT_LANE)
        crc = three_lanes(crc, at, SHORT_LANE, after_short_lane);
    for (; size >= 8; size -= 8, at += 8) crc = add_word(crc, load(at));
    while (size--) crc = add_byte(crc, *at++);
    return ~(uint32_t)crc;
}
#endif

const struct crc32c_implementation crc32c_implementations[] = {
#ifdef INSTRUCTION
    {INSTRUCTION, has_instruction, by_instruction},
#endif
    {"slicing-by-8", always, by_tables},
    {0},
};

/* getauxval() takes as long as 40 bytes do, so glibc's dynamic linker chooses, once.  musl's
 * cannot; and under the thread sanitizer a resolver would call what is not linked yet. */
#if defined __aarch64__ && defined __GLIBC__ && !defined __SANITIZE_THREAD__
__attribute__((used)) static crc32c_function *resolve(uint64_t capabilities) {
    return capabilities & HWCAP_CRC32 ? by_instruction : by_tables;
}
crc32c_function crc32c __attribute__((ifunc("resolve")));
#else
uint32_t crc32c(uint32_t crc, const void *bytes, size_t size) {
#ifdef INSTRUCTION
    if (has_instruction()) return by_instruction(crc, bytes, size);
#endif
    return by_tables(crc, bytes, size);
}
#endif
