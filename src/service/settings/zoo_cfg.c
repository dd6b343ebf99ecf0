/* A zoo.cfg is a file of Java's properties: a key, then '=', ':' or white space, then a value;
 * '#' and '!' begin comments; a backslash continues a line or escapes a letter. */
#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/grow.h"
#include "base/hash.h"
#include "base/table.h"
#include "service/settings/internal.h"

/* Where the server.N line of each id is. */
struct server_lines {
    struct {
        const char *name;
        size_t line; /* 0: there is none so far */
    } of[MEMBER_NUMBER_MAX + 1];
};

/* Where other keys were set. */
struct key_lines {
    struct key_line {
        uint64_t hash; /* of the key */
        const char *name;
        size_t line;
    } * at; /* from 1 */
    size_t room;
    uint32_t count;
    struct table index;
};

struct lines { /* of this file and the one that has named it */
    struct server_lines servers;
    struct key_lines keys;
};

struct reader {
    struct settings *settings;
    struct lines *lines;
    const char *name;
    settings_report *report;
    void *context;
    const char *at, *end;    /* what is left to read */
    size_t line;             /* of the last line read */
    char *text;              /* a line with its continuations; room for the whole file */
    size_t size, first_line; /* of that text: its size and first line */
    bool failed;
};

/* The file may hold control characters that a terminal would obey. */
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
        if (!r->size) r->first_line = r->line;
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

/* Four hexadecimal digits; -1: there is something else. */
static int32_t hex4(const char *at, const char *end) {
    int32_t code = 0;
    if (end - at < 4) return -1;
    for (int i = 0; i < 4; i++) {
        if (!isxdigit((unsigned char)at[i])) return -1;
        code = code * 16 + (isdigit((unsigned char)at[i]) ? at[i] - '0' : (at[i] | 32) - 'a' + 10);
    }
    return code;
}

/* The code after "\u", which may be the first half of a surrogate pair; -1: it is not valid. */
static int32_t scan_code(const char **at, const char *end) {
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

/* Replaces the escapes in place, as the result is never longer, and ends it with a zero.  Returns
 * NULL if the text has a zero or a broken \u. */
static char *unescape(char *text, const char *end) {
    static const char letters[] = "tnrf", values[] = "\t\n\r\f";
    char *to = text;
    for (const char *at = text; at < end;) {
        int32_t code = (unsigned char)*at++;
        bool escape = code == '\\' && at < end, wide = escape && *at == 'u';
        if (escape) code = (unsigned char)*at++;
        if (wide) code = scan_code(&at, end);
        if (code <= 0) return NULL;
        const char *letter = escape && !wide ? strchr(letters, code) : NULL;
        if (letter) code = (unsigned char)values[letter - letters];
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

/* Whether the key is server.N, of an id that has a line already: one of the two would be dropped.
 */
static bool is_second_server(struct reader *r, const char *key, char *error, size_t size) {
    static const char optional[] = "zookeeper.", prefix[] = "server.";
    int32_t id;
    if (strncmp(key, optional, strlen(optional)) == 0) key += strlen(optional);
    if (strncmp(key, prefix, strlen(prefix)) != 0 ||
        !settings_number(key + strlen(prefix), 0, MEMBER_NUMBER_MAX, &id))
        return false;
    struct server_lines *servers = &r->lines->servers;
    const char *name = servers->of[id].name;
    size_t line = servers->of[id].line;
    servers->of[id].name = r->name;
    servers->of[id].line = r->first_line;
    snprintf(error, size, "%.60s: there is a server %d in %s:%zu already", key, id,
             name ? name : "", line);
    return line;
}

static struct key_line *find_line(const struct key_lines *lines, uint64_t hash) {
    uint32_t number;
    for (struct probe p = table_probe(&lines->index, (uint32_t)hash);
         (number = table_next(&lines->index, &p));)
        if (lines->at[number].hash == hash) return &lines->at[number];
    return NULL;
}

/* The line that has set the key last, which is this one from now on; its line is 0: there is none.
 */
static struct key_line last_line(struct reader *r, const char *key) {
    static const char optional[] = "zookeeper.";
    struct key_lines *lines = &r->lines->keys;
    if (strncmp(key, optional, strlen(optional)) == 0) key += strlen(optional);
    struct key_line this = {hash_long(key, strlen(key), 0), r->name, r->first_line};
    struct key_line *known = find_line(lines, this.hash);
    if (known) {
        struct key_line last = *known;
        *known = this;
        return last;
    }
    lines->at = grown(lines->at, &lines->room, lines->count + 2, sizeof *lines->at);
    lines->at[++lines->count] = this;
    table_add(&lines->index, (uint32_t)this.hash, lines->count);
    return (struct key_line){0};
}

/* Java takes the last of them and says nothing, so whoever reads the first is deceived. */
static void warn_of_second(struct reader *r, const char *key) {
    struct key_line last = last_line(r, key);
    if (last.line)
        report(r, false, "%s:%zu: %.60s: this value counts, not the one in %s:%zu", r->name,
               r->first_line, key, last.name, last.line);
}

static void set_line(struct reader *r) {
    char *end = r->text + r->size, *stop = key_end(r->text, end), *value = stop;
    char error[SETTINGS_ERROR_MAX];
    while (value < end && is_blank(*value)) value++;
    if (value < end && (*value == '=' || *value == ':')) value++;
    while (value < end && is_blank(*value)) value++;
    value = unescape(value, end);
    char *key = unescape(r->text, stop);
    if (!key || !value) {
        report(r, true, "%s:%zu: a zero byte, or a \\u without the four digits of a character",
               r->name, r->first_line);
        return;
    }
    key = trim(key);
    int outcome = is_second_server(r, key, error, sizeof error)
                      ? SETTINGS_BAD
                      : settings_set(r->settings, key, trim(value), error, sizeof error);
    if (outcome != SETTINGS_SET)
        report(r, outcome == SETTINGS_BAD, "%s:%zu: %s", r->name, r->first_line, error);
    if (outcome == SETTINGS_SET) warn_of_second(r, key);
}

static void lines_close(struct lines *lines) {
    free(lines->keys.at);
    table_close(&lines->keys.index);
}

static int parse(struct settings *settings, struct lines *lines, const char *name, const char *text,
                 size_t size, settings_report *to, void *context) {
    struct reader r = {settings, lines, name, to, context, .at = text, .end = text + size};
    if (size > SETTINGS_FILE_MAX) {
        report(&r, true, "%s: larger than %d bytes", name, SETTINGS_FILE_MAX);
        return -1;
    }
    r.text = malloc(size + 1);
    cv_assert(r.text);
    while (next_line(&r)) set_line(&r);
    free(r.text);
    return r.failed ? -1 : 0;
}

int settings_parse(struct settings *settings, const char *name, const char *text, size_t size,
                   settings_report *to, void *context) {
    struct lines lines = {0};
    int status = parse(settings, &lines, name, text, size, to, context);
    lines_close(&lines);
    return status;
}

/* ---- Files ---- */

/* A dynamic file is named by a line, whose reader looks there for a file that cannot be read. */
static int read_file(struct settings *settings, struct lines *lines, const char *path,
                     const char *named_by, settings_report *to, void *context) {
    struct reader r = {.name = path, .report = to, .context = context};
    FILE *file = fopen(path, "r");
    char *text = file ? malloc(SETTINGS_FILE_MAX + 1) : NULL;
    size_t size = text ? fread(text, 1, SETTINGS_FILE_MAX + 1, file) : 0;
    if (!text || ferror(file))
        report(&r, true, "%s%s: %s", named_by, path, strerror(errno));
    else
        r.failed = parse(settings, lines, path, text, size, to, context) != 0;
    free(text);
    if (file) fclose(file);
    return r.failed ? -1 : 0;
}

static int read_dynamic_file(struct settings *settings, struct lines *lines, settings_report *to,
                             void *context) {
    static const char key[] = "dynamicConfigFile";
    char path[SETTINGS_PATH_MAX], named_by[SETTINGS_PATH_MAX + 64] = "";
    const struct key_line *line = find_line(&lines->keys, hash_long(key, strlen(key), 0));
    strcpy(path, settings->written.dynamic_file);
    *settings->written.dynamic_file = 0;
    if (line) snprintf(named_by, sizeof named_by, "%s:%zu: %s: ", line->name, line->line, key);
    return *path ? read_file(settings, lines, path, named_by, to, context) : 0;
}

int settings_read(struct settings *settings, const char *path, settings_report *to, void *context) {
    struct lines lines = {0};
    int status = read_file(settings, &lines, path, "", to, context);
    if (status == 0) status = read_dynamic_file(settings, &lines, to, context);
    lines_close(&lines);
    return status;
}
