/* CRC32C (Castagnoli), by the instruction that x86 has had since 2008, or bit by bit elsewhere. */
#ifndef CV_BASE_CRC32C_H
#define CV_BASE_CRC32C_H

#include <stddef.h>
#include <stdint.h>

/* Continues from `crc`; 0 begins. */
uint32_t crc32c(uint32_t crc, const void *bytes, size_t size);

#endif
