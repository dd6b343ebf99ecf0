#include "base/crc32c.h"

#include <string.h>

static uint32_t bit_by_bit(uint32_t crc, const unsigned char *at, size_t size) {
    while (size--) {
        crc ^= *at++;
        for (int bit = 0; bit < 8; bit++) crc = crc >> 1 ^ (crc & 1 ? 0x82f63b78u : 0);
    }
    return crc;
}

#ifdef __x86_64__
#include <nmmintrin.h>

__attribute__((target("sse4.2"))) static uint32_t
by_instruction(uint32_t crc, const unsigned char *at, size_t size) {
    uint64_t wide = crc, word;
    for (; size >= sizeof word; size -= sizeof word, at += sizeof word) {
        memcpy(&word, at, sizeof word);
        wide = _mm_crc32_u64(wide, word);
    }
    crc = (uint32_t)wide;
    while (size--) crc = _mm_crc32_u8(crc, *at++);
    return crc;
}
#endif

uint32_t crc32c(uint32_t crc, const void *bytes, size_t size) {
    crc = ~crc;
#ifdef __x86_64__
    if (__builtin_cpu_supports("sse4.2")) return ~by_instruction(crc, bytes, size);
#endif
    return ~bit_by_bit(crc, bytes, size);
}
