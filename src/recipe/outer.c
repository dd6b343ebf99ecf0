#include "recipe/outer.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* After "0x": at most as many digits as a session has. */
static bool read_session(const char **at, int64_t *session) {
    static const char digits[] = "0123456789abcdef";
    uint64_t value = 0;
    size_t size = strspn(*at, digits);
    if (!size || size > 16) return false;
    for (const char *end = *at + size; *at < end; ++*at)
        value = value << 4 | (uint64_t)(strchr(digits, **at) - digits);
    memcpy(session, &value, sizeof value);
    return value;
}

size_t outer_read(const char *text, int64_t sessions[OUTER_MAX]) {
    size_t count = 0;
    for (const char *at = text; at && *at; at++) { /* after the space */
        if (count == OUTER_MAX || strncmp(at, "0x", 2) != 0) return 0;
        at += 2;
        if (!read_session(&at, &sessions[count++])) return 0;
        if (!*at) return count;
        if (*at != ' ') return 0;
    }
    return 0;
}

void outer_add(char to[NOTE_TEXT_MAX], const char *text, int64_t session) {
    _Static_assert(OUTER_MAX * sizeof "0x0123456789abcdef" <= NOTE_TEXT_MAX, "");
    int64_t sessions[OUTER_MAX + 1];
    size_t count = outer_read(text, sessions), at = 0;
    sessions[count++] = session;
    for (size_t i = count > OUTER_MAX; i < count; i++)
        at += (size_t)snprintf(to + at, NOTE_TEXT_MAX - at, "%s0x%" PRIx64, at ? " " : "",
                               (uint64_t)sessions[i]);
}
