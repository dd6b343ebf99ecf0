/* UTF-8 text of a user, character by character; it may hold any bytes. */
#ifndef CV_BASE_UTF8_H
#define CV_BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { UTF8_BROKEN = 0xfffd };

/* Steps over one character and returns its code point: 0 at the end, UTF8_BROKEN for an invalid
 * byte. Surrogates and noncharacters count as broken too. */
static inline uint32_t utf8_next(const char **text) {
    static const uint32_t min[] = {0, 0, 0x80, 0x800, 0x10000};
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
    if (!size || code < min[size] || code > 0x10ffff) return UTF8_BROKEN;
    return (code >= 0xd800 && code < 0xe000) || (code & 0xfffe) == 0xfffe ? UTF8_BROKEN : code;
}

/* The bytes of a text's first characters that fit into `most` bytes. */
static inline size_t utf8_fit(const char *text, size_t most) {
    size_t bytes = strnlen(text, most + 1);
    if (bytes <= most) return bytes;
    for (bytes = most; bytes && ((unsigned char)text[bytes] & 0xc0) == 0x80;) bytes--;
    return bytes;
}

/* Shortens a text that was cut because its buffer is full to whole characters. */
static inline void utf8_mend(char *text, size_t size) {
    size_t length = strlen(text), start = length;
    if (length + 1 < size || !length) return;
    while (start && ((unsigned char)text[start - 1] & 0xc0) == 0x80) start--;
    const char *last = text + (start ? start - 1 : 0);
    if ((unsigned char)*last >= 0x80 && utf8_next(&last) == UTF8_BROKEN)
        text[start ? start - 1 : 0] = 0;
}

/* utf8_next of a text that ends elsewhere and may hold NUL bytes, which are characters too; it must
 * not be at its end. */
static inline uint32_t utf8_take(const char **text, const char *end, bool *broken) {
    char copy[5] = {0}; /* utf8_next wants an end, and takes a NUL byte for it */
    size_t left = (size_t)(end - *text);
    memcpy(copy, *text, left < 4 ? left : 4);
    const char *at = copy;
    uint32_t code = utf8_next(&at);
    if (at == copy) at++; /* a NUL byte */
    *broken = code == UTF8_BROKEN && memcmp(copy, "\xef\xbf\xbd", 3) != 0;
    *text += at - copy;
    return code;
}

#endif
