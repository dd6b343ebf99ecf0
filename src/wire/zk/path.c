/* Paths: which are valid, and the numbers at the end of sequential ones. */
#include "wire/zk/zk.h"

/* Decodes a character of two or three bytes and returns its length; 0 for everything else.
 * ZooKeeper sees 16-bit units: a character of four bytes is two surrogates there, and broken bytes
 * are U+FFFD. A path may hold neither, so the rest need not be distinguished. */
static int32_t decode(const unsigned char *at, const unsigned char *end, uint32_t *character) {
    int32_t size = *at >= 0xc0 && *at < 0xe0 ? 2 : *at >= 0xe0 && *at < 0xf0 ? 3 : 0;
    if (end - at < size) return 0;
    if (size >= 2 && (at[1] & 0xc0) != 0x80) return 0;
    if (size == 3 && (at[2] & 0xc0) != 0x80) return 0;
    if (size == 2) *character = (at[0] & 0x1fu) << 6 | (at[1] & 0x3fu);
    if (size == 3) *character = (at[0] & 0xfu) << 12 | (at[1] & 0x3fu) << 6 | (at[2] & 0x3fu);
    bool overlong = size && *character < (size == 2 ? 0x80u : 0x800u);
    return overlong ? 0 : size;
}

static bool forbidden(uint32_t character) {
    return character <= 0x1f || (character >= 0x7f && character <= 0x9f) ||
           (character >= 0xd800 && character <= 0xf8ff) || character >= 0xfff0;
}

/* Steps over one component, to a slash or the end; false: the component is invalid. */
static bool step_over(const unsigned char **at, const unsigned char *end) {
    const unsigned char *begin = *at;
    while (*at < end && **at != '/') {
        uint32_t character = **at;
        int32_t size = character < 0x80 ? 1 : decode(*at, end, &character);
        if (!size || forbidden(character)) return false;
        *at += size;
    }
    ptrdiff_t size = *at - begin;
    if (size == 0) return false;
    bool relative = size <= 2 && begin[0] == '.' && begin[size - 1] == '.';
    return !relative;
}

bool zk_path_valid(struct zk_text path) {
    if (path.size < 1 || path.at[0] != '/') return false;
    const unsigned char *at = (const unsigned char *)path.at, *end = at + path.size;
    if (path.size == 1) return true;
    while (at < end) { /* at a slash */
        at++;
        if (!step_over(&at, end)) return false;
    }
    return true;
}

bool zk_path_plausible(struct zk_text path) {
    return path.size > 0 && memchr(path.at, '/', (size_t)path.size) &&
           !memchr(path.at, 0, (size_t)path.size);
}

int32_t zk_sequence(char to[ZK_SEQUENCE_MAX], int32_t number) {
    uint32_t left = number < 0 ? 0u - (uint32_t)number : (uint32_t)number;
    int32_t size = number < 0 && left > 999999999 ? 11 : 10;
    for (int32_t i = size - 1; i >= 0; i--) {
        to[i] = (char)('0' + left % 10);
        left /= 10;
    }
    if (number < 0) to[0] = '-';
    return size;
}
