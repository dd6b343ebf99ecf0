/* The part of Jansson that the laboratory's commands use, under its names. */
#ifndef CV_MODULE_JANSSON_H
#define CV_MODULE_JANSSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

typedef long long json_int_t;
typedef enum {
    JSON_OBJECT,
    JSON_ARRAY,
    JSON_STRING,
    JSON_INTEGER,
    JSON_REAL,
    JSON_TRUE,
    JSON_FALSE,
    JSON_NULL
} json_type;

typedef struct json {
    json_type type;
    unsigned references;
    union {
        json_int_t integer;
        double real;
        char *string;
        struct {
            struct json **item;
            char **key; /* of an object */
            size_t count, room;
        };
    };
} json_t;

typedef struct {
    int line, column, position;
    char source[80], text[160];
} json_error_t;

#define JSON_INDENT(N)         ((size_t)(N))
#define JSON_REAL_PRECISION(N) ((size_t)(N) << 11)
enum { JSON_COMPACT = 0x20, JSON_ENCODE_ANY = 0x200, JSON_REJECT_DUPLICATES = 1 };

json_t *json_object(void);
json_t *json_array(void);
json_t *json_string(const char *text); /* NULL when it is no UTF-8 */
json_t *json_sprintf(const char *format, ...) __attribute__((format(printf, 1, 2)));
json_t *json_integer(json_int_t value);
json_t *json_real(double value); /* NULL when JSON cannot say it */
json_t *json_true(void);
json_t *json_false(void);
json_t *json_null(void);
#define json_boolean(VALUE) ((VALUE) ? json_true() : json_false())
/* An object of pairs "s:" and one of s, s?, i, I, f, b, o, O or [..]; NULL when a part is. */
json_t *json_pack(const char *format, ...);

void json_decref(json_t *json);
static inline json_t *json_incref(json_t *json) {
    if (json) json->references++;
    return json;
}
int json_object_set_new(json_t *object, const char *key, json_t *value);
static inline int json_object_set(json_t *object, const char *key, json_t *value) {
    return json_object_set_new(object, key, json_incref(value));
}
int json_object_update(json_t *object, json_t *other);
int json_array_append_new(json_t *array, json_t *value);
json_t *json_copy(json_t *json);

json_t *json_object_get(const json_t *object, const char *key);
json_t *json_array_get(const json_t *array, size_t index);
size_t json_array_size(const json_t *array);
const char *json_string_value(const json_t *json);
json_int_t json_integer_value(const json_t *json);
double json_real_value(const json_t *json);
double json_number_value(const json_t *json);
int json_equal(const json_t *a, const json_t *b);
static inline bool json_is(const json_t *json, json_type type) {
    return json && json->type == type;
}
#define json_is_object(JSON)  json_is(JSON, JSON_OBJECT)
#define json_is_array(JSON)   json_is(JSON, JSON_ARRAY)
#define json_is_string(JSON)  json_is(JSON, JSON_STRING)
#define json_is_integer(JSON) json_is(JSON, JSON_INTEGER)
#define json_is_real(JSON)    json_is(JSON, JSON_REAL)
#define json_is_number(JSON)  (json_is_integer(JSON) || json_is_real(JSON))
#define json_is_true(JSON)    json_is(JSON, JSON_TRUE)
#define json_is_false(JSON)   json_is(JSON, JSON_FALSE)
#define json_is_null(JSON)    json_is(JSON, JSON_NULL)
#define json_is_boolean(JSON) (json_is_true(JSON) || json_is_false(JSON))

int json_dumpf(const json_t *json, FILE *out, size_t flags);
json_t *json_loadb(const char *text, size_t size, size_t flags, json_error_t *error);
json_t *json_loads(const char *text, size_t flags, json_error_t *error);
json_t *json_load_file(const char *path, size_t flags, json_error_t *error);

#endif
