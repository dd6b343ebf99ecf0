/* Text that came from a person, letter by letter, whatever bytes it is made of. */
#ifndef CV_BASE_UTF8_H
#define CV_BASE_UTF8_H

#include <stddef.h>
#include <stdint.h>

enum { UTF8_BROKEN = 0xfffd };

/* Steps over one letter and returns its code: 0 at the end, UTF8_BROKEN for a byte that is part of
 * none.  Codes that no document may hold count as broken too. */
static inline uint32_t utf8_next(const char **text) {
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    const unsigned char *at = (const unsigned char *)*text;
    if (*at == 0) return 0;
    size_t size = *at < 0x80   ? 1
                  : *at < 0xc0 ? 0
                  : *at < 0xe0 ? 2
                  : *at < 0xf0 ? 3
                  : *at < 0xf8 ? 4
                               : 0;
    uint32_t code = size <= 1 ? *at : *at & (0xffu >> (size + 1));
    for (size_t i = 1; i < size; i++) {
        if ((at[i] & 0xc0) != 0x80) size = 0;
        code = code << 6 | (at[i] & 0x3f);
    }
    *text += size ? size : 1;
    if (!size || code < least[size] || code > 0x10ffff) return UTF8_BROKEN;
    return (code >= 0xd800 && code < 0xe000) || (code & 0xfffe) == 0xfffe ? UTF8_BROKEN : code;
}

#endif
