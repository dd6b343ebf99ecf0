/* The log for operators: one event is one line, a fixed sentence and typed fields.
 *
 *   logger_info("a session expired", LOGGER_HEX("session", id), LOGGER_INT("timeout_ms", timeout));
 *
 * The sentence says what happened, what it means, and what to do if somebody must act; it never
 * holds a value.  Names of fields are snake_case and stay as they are: programs search for them.
 *
 *   text  2026-11-15T03:00:00.123Z info a session expired session=0x10 timeout_ms=4000
 *   json  {"time":"2026-11-15T03:00:00.123Z","level":"info","message":"a session expired",...}
 *
 * Values may come from anybody: what a terminal would take for a command is escaped, a long value
 * is cut and ends in "...", and a field for which the line has no room is left out. */
#ifndef CV_BASE_LOGGER_H
#define CV_BASE_LOGGER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { LOGGER_LINE_MAX = 4096, LOGGER_VALUE_MAX = 1536 }; /* bytes as they are written */

enum logger_level { LOGGER_ERROR, LOGGER_WARNING, LOGGER_INFO, LOGGER_DEBUG };
enum logger_format { LOGGER_FORMAT_TEXT, LOGGER_FORMAT_JSON };

enum logger_type {
    LOGGER_TYPE_STRING,
    LOGGER_TYPE_INT,
    LOGGER_TYPE_UINT,
    LOGGER_TYPE_HEX, /* in JSON a string: not every reader keeps 64 bits of a number */
};

struct logger_field {
    const char *name;
    enum logger_type type;
    union {
        const char *string; /* NULL: empty */
        int64_t int_;
        uint64_t uint;
    };
};

#define LOGGER_STRING(NAME, VALUE)                                                                 \
    { .name = NAME, .type = LOGGER_TYPE_STRING, .string = (VALUE) }
#define LOGGER_INT(NAME, VALUE)                                                                    \
    { .name = NAME, .type = LOGGER_TYPE_INT, .int_ = (VALUE) }
#define LOGGER_UINT(NAME, VALUE)                                                                   \
    { .name = NAME, .type = LOGGER_TYPE_UINT, .uint = (VALUE) }
#define LOGGER_HEX(NAME, VALUE)                                                                    \
    { .name = NAME, .type = LOGGER_TYPE_HEX, .uint = (uint64_t)(VALUE) }

#define logger_log(LEVEL, MESSAGE, ...)                                                            \
    do {                                                                                           \
        const struct logger_field fields_[] = {__VA_ARGS__};                                       \
        logger_write(LEVEL, MESSAGE, fields_, sizeof fields_ / sizeof(struct logger_field));       \
    } while (0)
#define logger_error(...)   logger_log(LOGGER_ERROR, __VA_ARGS__)
#define logger_warning(...) logger_log(LOGGER_WARNING, __VA_ARGS__)
#define logger_info(...)    logger_log(LOGGER_INFO, __VA_ARGS__)
#define logger_debug(...)   logger_log(LOGGER_DEBUG, __VA_ARGS__)

void logger_write(enum logger_level level, const char *message, const struct logger_field *fields,
                  size_t count);

/* Events above the level are left out.  Until it is called: info, text. */
void logger_set(enum logger_level level, enum logger_format format);
/* Takes each line, which ends in a newline, in place of standard error; NULL: that again. */
typedef void logger_output(void *arg, const char *line, size_t size);
void logger_set_output(logger_output *output, void *arg);

const char *logger_level_name(enum logger_level level);
/* False: there is no such name, and nothing is changed. */
bool logger_parse_level(const char *name, enum logger_level *level);
bool logger_parse_format(const char *name, enum logger_format *format);

/* The line of an event without its time, for other writers; returns its size without the 0. */
size_t logger_describe(char line[LOGGER_LINE_MAX], const char *message,
                       const struct logger_field *fields, size_t count);

#endif
