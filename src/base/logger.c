#include "base/logger.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/utf8.h"

#ifndef LOGGER_LEVEL
#define LOGGER_LEVEL LOGGER_INFO
#endif

/* The only variable of the program that is not on a stack or in an object that is passed on: it is
 * set once, before anything happens, and every room may log. */
static struct {
    enum logger_level level;
    enum logger_format format;
    logger_output *output;
    void *arg; /* of the output */
} logger_configuration = {.level = LOGGER_LEVEL};

static const char *const level_names[] = {[LOGGER_ERROR] = "error",
                                          [LOGGER_WARNING] = "warning",
                                          [LOGGER_INFO] = "info",
                                          [LOGGER_DEBUG] = "debug"};

/* ---- Settings ---- */

void logger_set(enum logger_level level, enum logger_format format) {
    logger_configuration.level = level;
    logger_configuration.format = format;
}

void logger_set_output(logger_output *output, void *arg) {
    logger_configuration.output = output;
    logger_configuration.arg = arg;
}

const char *logger_level_name(enum logger_level level) { return level_names[level]; }

bool logger_parse_level(const char *name, enum logger_level *level) {
    for (int i = LOGGER_ERROR; i <= LOGGER_DEBUG; i++)
        if (strcmp(name, level_names[i]) == 0) return *level = (enum logger_level)i, true;
    return false;
}

bool logger_parse_format(const char *name, enum logger_format *format) {
    bool json = strcmp(name, "json") == 0;
    if (!json && strcmp(name, "text") != 0) return false;
    *format = json ? LOGGER_FORMAT_JSON : LOGGER_FORMAT_TEXT;
    return true;
}

/* ---- Lines ---- */

enum { LINE_END = 4 }; /* room for what every line ends with */

struct line {
    char *text; /* LOGGER_LINE_MAX bytes */
    size_t used;
    bool json, full;
};

static void add_bytes(struct line *line, const char *bytes, size_t size) {
    if (size > LOGGER_LINE_MAX - LINE_END - line->used) line->full = true;
    if (line->full) return;
    memcpy(line->text + line->used, bytes, size);
    line->used += size;
}

static void add(struct line *line, const char *text) { add_bytes(line, text, strlen(text)); }

/* What a terminal obeys, and what makes it show a line in another order than it is written. */
static bool is_control(uint32_t code) {
    return code < 0x20 || (code >= 0x7f && code < 0xa0) || (code >= 0x200e && code <= 0x200f) ||
           (code >= 0x2028 && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069);
}

/* Writes one letter as it stands between quotes, and returns its size. */
static size_t escape(char to[32], const char **at, bool json) {
    const char *from = *at;
    uint32_t code = utf8_next(at);
    size_t size = (size_t)(*at - from), used = 0;
    if (code == '"' || code == '\\') return to[0] = '\\', to[1] = (char)code, 2;
    if (code == '\n') return memcpy(to, "\\n", 2), 2;
    if (code == '\t') return memcpy(to, "\\t", 2), 2;
    if (code == '\r') return memcpy(to, "\\r", 2), 2;
    if (is_control(code) || (code == UTF8_BROKEN && json))
        return (size_t)snprintf(to, 32, "\\u%04" PRIx32, code);
    if (code != UTF8_BROKEN) return memcpy(to, from, size), size;
    for (size_t i = 0; i < size; i++)
        used += (size_t)snprintf(to + used, 32 - used, "\\x%02x", (unsigned char)from[i]);
    return used;
}

static void add_quoted(struct line *line, const char *text) {
    static const char cut[] = "...";
    char letter[32];
    size_t first = line->used;
    add(line, "\"");
    while (*text && !line->full) {
        size_t size = escape(letter, &text, line->json);
        if (line->used - first + size > LOGGER_VALUE_MAX - sizeof cut) {
            add(line, cut);
            break;
        }
        add_bytes(line, letter, size);
    }
    add(line, "\"");
}

static bool needs_quotes(const char *text) {
    if (!*text || strlen(text) > LOGGER_VALUE_MAX - 8) return true;
    for (; *text; text++)
        if (*text <= ' ' || *text >= 0x7f || strchr("\"\\=", *text)) return true;
    return false;
}

static void add_field(struct line *line, const struct logger_field *field) {
    char number[32];
    add(line, line->json ? ",\"" : " ");
    add(line, field->name);
    add(line, line->json ? "\":" : "=");
    switch (field->type) {
    case LOGGER_TYPE_STRING:
        if (!field->string)
            add(line, "\"\"");
        else if (line->json || needs_quotes(field->string))
            add_quoted(line, field->string);
        else
            add(line, field->string);
        return;
    case LOGGER_TYPE_INT: snprintf(number, sizeof number, "%" PRId64, field->int_); break;
    case LOGGER_TYPE_UINT: snprintf(number, sizeof number, "%" PRIu64, field->uint); break;
    case LOGGER_TYPE_HEX:
        snprintf(number, sizeof number, line->json ? "\"0x%" PRIx64 "\"" : "0x%" PRIx64,
                 field->uint);
        break;
    }
    add(line, number);
}

/* A field that does not fit is left out as a whole, so that the line stays what it is. */
static void add_fields(struct line *line, const struct logger_field *fields, size_t count) {
    for (size_t i = 0; i < count; i++) {
        size_t before = line->used;
        add_field(line, &fields[i]);
        if (line->full) line->used = before;
        line->full = false;
    }
}

size_t logger_describe(char text[LOGGER_LINE_MAX], const char *message,
                       const struct logger_field *fields, size_t count) {
    struct line line = {.text = text};
    add(&line, message);
    add_fields(&line, fields, count);
    text[line.used] = 0;
    return line.used;
}

static void add_head(struct line *line, enum logger_level level, const char *message) {
    char seconds[32], time[48];
    struct timespec now;
    struct tm parts;
    clock_gettime(CLOCK_REALTIME, &now);
    gmtime_r(&now.tv_sec, &parts);
    strftime(seconds, sizeof seconds, "%Y-%m-%dT%H:%M:%S", &parts);
    snprintf(time, sizeof time, "%s.%03ldZ", seconds, now.tv_nsec / 1000000);
    add(line, line->json ? "{\"time\":\"" : "");
    add(line, time);
    add(line, line->json ? "\",\"level\":\"" : " ");
    add(line, level_names[level]);
    add(line, line->json ? "\",\"message\":" : " ");
    if (line->json)
        add_quoted(line, message);
    else
        add(line, message);
}

void logger_write(enum logger_level level, const char *message, const struct logger_field *fields,
                  size_t count) {
    char text[LOGGER_LINE_MAX];
    struct line line = {.text = text, .json = logger_configuration.format == LOGGER_FORMAT_JSON};
    if (level > logger_configuration.level) return;
    add_head(&line, level, message);
    add_fields(&line, fields, count);
    if (line.json) text[line.used++] = '}';
    text[line.used++] = '\n';
    text[line.used] = 0;
    if (logger_configuration.output)
        logger_configuration.output(logger_configuration.arg, text, line.used);
    else
        fwrite(text, 1, line.used, stderr); /* unbuffered: one write, so lines do not mix */
}
