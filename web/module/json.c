/* Values of JSON, made and written as Jansson does. */
#include <jansson.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>

#include "base/assert.h"
#include "base/utf8.h"

static json_t *make(json_type type) {
    json_t *json = calloc(1, sizeof *json);
    cv_assert(json);
    json->type = type;
    json->references = 1;
    return json;
}

json_t *json_object(void) { return make(JSON_OBJECT); }
json_t *json_array(void) { return make(JSON_ARRAY); }
json_t *json_true(void) { return make(JSON_TRUE); }
json_t *json_false(void) { return make(JSON_FALSE); }
json_t *json_null(void) { return make(JSON_NULL); }

json_t *json_integer(json_int_t value) {
    json_t *json = make(JSON_INTEGER);
    json->integer = value;
    return json;
}

json_t *json_real(double value) {
    if (!isfinite(value)) return NULL;
    json_t *json = make(JSON_REAL);
    json->real = value;
    return json;
}

static bool is_utf8(const char *text) {
    for (const char *at = text; *at;) {
        const char *from = at;
        if (utf8_next(&at) == UTF8_BROKEN && strncmp(from, "\xef\xbf\xbd", 3) != 0) return false;
    }
    return true;
}

json_t *json_string(const char *text) {
    if (!text || !is_utf8(text)) return NULL;
    json_t *json = make(JSON_STRING);
    json->string = strdup(text);
    cv_assert(json->string);
    return json;
}

json_t *json_sprintf(const char *format, ...) {
    char *text = NULL;
    va_list arguments;
    va_start(arguments, format);
    int size = vasprintf(&text, format, arguments);
    va_end(arguments);
    if (size < 0) return NULL;
    json_t *json = json_string(text);
    free(text);
    return json;
}

void json_decref(json_t *json) {
    if (!json || --json->references) return;
    if (json->type == JSON_STRING) free(json->string);
    if (json->type == JSON_OBJECT || json->type == JSON_ARRAY) {
        for (size_t i = 0; i < json->count; i++) {
            json_decref(json->item[i]);
            if (json->type == JSON_OBJECT) free(json->key[i]);
        }
        free(json->item);
        free(json->key);
    }
    free(json);
}

/* ---- Objects and arrays ---- */

static void append(json_t *json, const char *key, json_t *value) {
    if (json->count == json->room) {
        json->room = json->room ? 2 * json->room : 4;
        json->item = realloc(json->item, json->room * sizeof *json->item);
        if (key) json->key = realloc(json->key, json->room * sizeof *json->key);
        cv_assert(json->item && (!key || json->key));
    }
    if (key) json->key[json->count] = strdup(key);
    cv_assert(!key || json->key[json->count]);
    json->item[json->count++] = value;
}

int json_object_set_new(json_t *object, const char *key, json_t *value) {
    if (!json_is_object(object) || !value) return json_decref(value), -1;
    for (size_t i = 0; i < object->count; i++) {
        if (strcmp(object->key[i], key) != 0) continue;
        json_decref(object->item[i]);
        object->item[i] = value;
        return 0;
    }
    append(object, key, value);
    return 0;
}

int json_object_update(json_t *object, json_t *other) {
    for (size_t i = 0; i < other->count; i++)
        json_object_set(object, other->key[i], other->item[i]);
    return 0;
}

int json_array_append_new(json_t *array, json_t *value) {
    if (!json_is_array(array) || !value) return json_decref(value), -1;
    append(array, NULL, value);
    return 0;
}

json_t *json_copy(json_t *json) {
    if (!json_is_object(json) && !json_is_array(json)) return json_incref(json);
    json_t *copy = make(json->type);
    for (size_t i = 0; i < json->count; i++)
        append(copy, json->key ? json->key[i] : NULL, json_incref(json->item[i]));
    return copy;
}

json_t *json_object_get(const json_t *object, const char *key) {
    for (size_t i = 0; json_is_object(object) && i < object->count; i++)
        if (strcmp(object->key[i], key) == 0) return object->item[i];
    return NULL;
}

json_t *json_array_get(const json_t *array, size_t index) {
    return index < json_array_size(array) ? array->item[index] : NULL;
}

size_t json_array_size(const json_t *array) { return json_is_array(array) ? array->count : 0; }

const char *json_string_value(const json_t *json) {
    return json_is_string(json) ? json->string : NULL;
}

json_int_t json_integer_value(const json_t *json) {
    return json_is_integer(json) ? json->integer : 0;
}

double json_real_value(const json_t *json) { return json_is_real(json) ? json->real : 0; }

double json_number_value(const json_t *json) {
    return json_is_integer(json) ? (double)json->integer : json_real_value(json);
}

int json_equal(const json_t *a, const json_t *b) {
    if (!a || !b || a->type != b->type) return 0;
    switch (a->type) {
    case JSON_INTEGER: return a->integer == b->integer;
    case JSON_REAL: return a->real == b->real;
    case JSON_STRING: return strcmp(a->string, b->string) == 0;
    case JSON_OBJECT:
    case JSON_ARRAY:
        if (a->count != b->count) return 0;
        for (size_t i = 0; i < a->count; i++)
            if (!json_equal(a->item[i], a->key ? json_object_get(b, a->key[i]) : b->item[i]))
                return 0;
        return 1;
    default: return 1;
    }
}

/* ---- Packing ---- */

struct packing {
    const char *at;
    va_list arguments;
    bool failed;
};

static json_t *pack_value(struct packing *packing);

static char next_letter(struct packing *packing) {
    while (*packing->at && strchr(" ,:", *packing->at)) packing->at++;
    return *packing->at ? *packing->at++ : 0;
}

static json_t *pack_text(struct packing *packing) {
    const char *text = va_arg(packing->arguments, const char *);
    bool optional = *packing->at == '?';
    if (optional) packing->at++;
    return !text && optional ? json_null() : json_string(text);
}

static json_t *pack_all(struct packing *packing, json_t *all, char end) {
    for (;;) {
        char letter = next_letter(packing);
        cv_assert(letter);
        if (letter == end) return all;
        const char *key = NULL;
        if (end == '}')
            key = va_arg(packing->arguments, const char *);
        else
            packing->at--;
        json_t *value = pack_value(packing);
        if (!value) packing->failed = true;
        if (value && key) json_object_set_new(all, key, value);
        if (value && !key) json_array_append_new(all, value);
    }
}

static json_t *pack_value(struct packing *packing) {
    switch (next_letter(packing)) {
    case '{': return pack_all(packing, json_object(), '}');
    case '[': return pack_all(packing, json_array(), ']');
    case 's': return pack_text(packing);
    case 'i': return json_integer(va_arg(packing->arguments, int));
    case 'I': return json_integer(va_arg(packing->arguments, json_int_t));
    case 'f': return json_real(va_arg(packing->arguments, double));
    case 'b': return json_boolean(va_arg(packing->arguments, int));
    case 'o': return va_arg(packing->arguments, json_t *);
    case 'O': return json_incref(va_arg(packing->arguments, json_t *));
    default: cv_assert(!"a letter that json_pack knows"); return NULL;
    }
}

json_t *json_pack(const char *format, ...) {
    struct packing packing = {.at = format};
    va_start(packing.arguments, format);
    json_t *json = pack_value(&packing);
    va_end(packing.arguments);
    if (!packing.failed) return json;
    json_decref(json);
    return NULL;
}
