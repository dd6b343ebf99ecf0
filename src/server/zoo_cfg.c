/* A zoo.cfg is a file of Java's properties: a key, then '=', ':' or white space, then a value;
 * '#' and '!' begin comments; a backslash continues a line or escapes a letter. */
#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "server/settings.h"

struct reader {
    struct settings *settings;
    const char *name;
    settings_report *report;
    void *context;
    const char *at, *end;  /* what is left to read */
    size_t line;           /* how many lines are behind */
    char *text;            /* a line as continued; room for the whole file */
    size_t size, its_line; /* of that text, and where it began */
    bool failed;
};

/* Whoever wrote the file may have put anything into it that a terminal would obey. */
__attribute__((format(printf, 3, 4))) static void report(struct reader *r, bool failed,
                                                         const char *format, ...) {
    char text[SETTINGS_PATH_MAX + SETTINGS_ERROR_MAX];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    for (char *at = text; *at; at++)
        if (iscntrl((unsigned char)*at)) *at = '?';
    r->failed |= failed;
    r->report(r->context, failed, text);
}

/* ---- Lines ---- */

static bool is_blank(char letter) { return letter == ' ' || letter == '\t' || letter == '\f'; }

/* Steps over one line as it stands in the file and returns its size without its end. */
static size_t step_line(struct reader *r) {
    const char *begin = r->at, *stop = begin;
    while (stop < r->end && *stop != '\n' && *stop != '\r') stop++;
    r->at = stop;
    if (r->at < r->end && *r->at++ == '\r' && r->at < r->end && *r->at == '\n') r->at++;
    r->line++;
    return (size_t)(stop - begin);
}

/* The next line with its continuations, of which each loses its indent. */
static bool next_line(struct reader *r) {
    r->size = 0;
    while (r->at < r->end) {
        const char *from = r->at;
        size_t size = step_line(r);
        for (; size && is_blank(*from); size--) from++;
        if (!r->size && (!size || *from == '#' || *from == '!')) continue;
        if (!r->size) r->its_line = r->line;
        memcpy(r->text + r->size, from, size);
        r->size += size;
        size_t slashes = 0;
        while (slashes < size && from[size - 1 - slashes] == '\\') slashes++;
        if (slashes % 2 == 0) return true;
        r->size--;
    }
    return r->size > 0;
}

/* ---- Escapes ---- */

/* Four hexadecimal digits; -1: they are not. */
static int32_t hex4(const char *at, const char *end) {
    int32_t code = 0;
    if (end - at < 4) return -1;
    for (int i = 0; i < 4; i++) {
        if (!isxdigit((unsigned char)at[i])) return -1;
        code = code * 16 + (isdigit((unsigned char)at[i]) ? at[i] - '0' : (at[i] | 32) - 'a' + 10);
    }
    return code;
}

/* What follows "\u", which may be the first half of a pair; -1: no letter. */
static int32_t take_code(const char **at, const char *end) {
    int32_t code = hex4(*at, end);
    if (code < 0) return -1;
    *at += 4;
    if ((code & ~0x7ff) != 0xd800) return code;
    bool pair = code < 0xdc00 && end - *at >= 2 && (*at)[0] == '\\' && (*at)[1] == 'u';
    int32_t low = pair ? hex4(*at + 2, end) : -1;
    if ((low & ~0x3ff) != 0xdc00) return -1;
    *at += 6;
    return 0x10000 + ((code & 0x3ff) << 10) + (low & 0x3ff);
}

static char *put_utf8(char *to, int32_t code) {
    int more = code < 0x80 ? 0 : code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
    static const uint8_t lead[] = {0, 0xc0, 0xe0, 0xf0};
    *to++ = (char)(lead[more] | code >> 6 * more);
    while (more--) *to++ = (char)(0x80 | (code >> 6 * more & 0x3f));
    return to;
}

/* The text with its escapes replaced, in place, which is never longer, and with a zero behind it.
 * Returns NULL if it cannot be one: a zero within, a broken \u. */
static char *unescape(char *text, const char *end) {
    static const char letters[] = "tnrf", meant[] = "\t\n\r\f";
    char *to = text;
    for (const char *at = text; at < end;) {
        int32_t code = (unsigned char)*at++;
        bool escape = code == '\\' && at < end, wide = escape && *at == 'u';
        if (escape) code = (unsigned char)*at++;
        if (wide) code = take_code(&at, end);
        if (code <= 0) return NULL;
        const char *letter = escape && !wide ? strchr(letters, code) : NULL;
        if (letter) code = meant[letter - letters];
        if (wide)
            to = put_utf8(to, code);
        else
            *to++ = (char)code;
    }
    *to = 0;
    return text;
}

/* ---- Keys and values ---- */

static char *trim(char *text) {
    char *end = text + strlen(text);
    while (end > text && (unsigned char)end[-1] <= ' ') *--end = 0;
    while (*text && (unsigned char)*text <= ' ') text++;
    return text;
}

/* Where the key ends: at a separator that has no backslash before it. */
static char *key_end(char *at, const char *end) {
    for (; at < end && *at != '=' && *at != ':' && !is_blank(*at); at++)
        if (*at == '\\' && at + 1 < end) at++;
    return at;
}

static void take_line(struct reader *r) {
    char *end = r->text + r->size, *stop = key_end(r->text, end), *value = stop;
    char error[SETTINGS_ERROR_MAX];
    while (value < end && is_blank(*value)) value++;
    if (value < end && (*value == '=' || *value == ':')) value++;
    while (value < end && is_blank(*value)) value++;
    value = unescape(value, end);
    char *key = unescape(r->text, stop);
    if (!key || !value) {
        report(r, true, "%s:%zu: not text, or a \\u without its four digits", r->name, r->its_line);
        return;
    }
    int outcome = settings_set(r->settings, trim(key), trim(value), error, sizeof error);
    if (outcome != SETTINGS_SET)
        report(r, outcome == SETTINGS_BAD, "%s:%zu: %s", r->name, r->its_line, error);
}

int settings_parse(struct settings *settings, const char *name, const char *text, size_t size,
                   settings_report *to, void *context) {
    struct reader r = {settings, name, to, context, .at = text, .end = text + size};
    if (size > SETTINGS_FILE_MAX) {
        report(&r, true, "%s: larger than %d bytes", name, SETTINGS_FILE_MAX);
        return -1;
    }
    r.text = malloc(size + 1);
    cv_assert(r.text);
    while (next_line(&r)) take_line(&r);
    free(r.text);
    return r.failed ? -1 : 0;
}

/* ---- Files ---- */

static int read_file(struct settings *settings, const char *path, settings_report *to,
                     void *context) {
    struct reader r = {.name = path, .report = to, .context = context};
    FILE *file = fopen(path, "r");
    char *text = file ? malloc(SETTINGS_FILE_MAX + 1) : NULL;
    size_t size = text ? fread(text, 1, SETTINGS_FILE_MAX + 1, file) : 0;
    if (!text || ferror(file))
        report(&r, true, "%s: %s", path, strerror(errno));
    else
        r.failed = settings_parse(settings, path, text, size, to, context) != 0;
    free(text);
    if (file) fclose(file);
    return r.failed ? -1 : 0;
}

int settings_read(struct settings *settings, const char *path, settings_report *to, void *context) {
    char members[SETTINGS_PATH_MAX];
    if (read_file(settings, path, to, context) != 0) return -1;
    strcpy(members, settings->written.dynamic_file);
    *settings->written.dynamic_file = 0;
    return *members ? read_file(settings, members, to, context) : 0;
}
