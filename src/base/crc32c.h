/* CRC32C (Castagnoli): by the processor's instruction where it has one, from tables elsewhere. */
#ifndef CV_BASE_CRC32C_H
#define CV_BASE_CRC32C_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef uint32_t crc32c_function(uint32_t crc, const void *bytes, size_t size);

/* Continues from `crc`; 0 begins. */
crc32c_function crc32c;

/* What crc32c() chooses from: the first that is available.  For tests. */
struct crc32c_implementation {
    const char *name;
    bool (*is_available)(void);
    crc32c_function *function;
};
extern const struct crc32c_implementation crc32c_implementations[]; /* ends with one of no name */

#endif
