/* JSON as text: written as Jansson writes it, and read. */
#include <ctype.h>
#include <errno.h>
#include <jansson.h>
#include <stdlib.h>

#include "base/assert.h"
#include "base/utf8.h"

/* ---- Writing ---- */

static void put_string(FILE *out, const char *text) {
    static const char escapes[] = "\"\"\\\\\bb\ff\nn\rr\tt";
    putc('"', out);
    for (; *text; text++) {
        unsigned char c = (unsigned char)*text;
        const char *escape = NULL;
        for (const char *e = escapes; *e && !escape; e += 2)
            if ((unsigned char)*e == c) escape = e;
        if (escape)
            fprintf(out, "\\%c", escape[1]);
        else if (c < 0x20)
            fprintf(out, "\\u%04X", c);
        else
            putc(c, out);
    }
    putc('"', out);
}

/* With a point or an exponent always, and no sign or zeros before the exponent's digits. */
static void put_real(FILE *out, double value, int precision) {
    char text[64];
    snprintf(text, sizeof text, "%.*g", precision ? precision : 17, value);
    char *exponent = strchr(text, 'e');
    if (!exponent) {
        fprintf(out, strchr(text, '.') ? "%s" : "%s.0", text);
        return;
    }
    char *digits = exponent + 1;
    bool negative = *digits == '-';
    while (*digits && strchr("+-0", *digits)) digits++;
    fprintf(out, "%.*s%s%s", (int)(exponent + 1 - text), text, negative ? "-" : "", digits);
}

static void new_line(FILE *out, size_t indent, size_t depth) {
    if (indent) fprintf(out, "\n%*s", (int)(indent * depth), "");
}

static void put(FILE *out, const json_t *json, size_t flags, size_t depth);

static void put_all(FILE *out, const json_t *json, size_t flags, size_t depth) {
    bool object = json->type == JSON_OBJECT, compact = flags & JSON_COMPACT;
    size_t indent = flags & 0x1f;
    putc(object ? '{' : '[', out);
    for (size_t i = 0; i < json->count; i++) {
        if (i) fputs(indent || compact ? "," : ", ", out);
        new_line(out, indent, depth + 1);
        if (object) {
            put_string(out, json->key[i]);
            fputs(compact ? ":" : ": ", out);
        }
        put(out, json->item[i], flags, depth + 1);
    }
    if (json->count) new_line(out, indent, depth);
    putc(object ? '}' : ']', out);
}

static void put(FILE *out, const json_t *json, size_t flags, size_t depth) {
    switch (json->type) {
    case JSON_OBJECT:
    case JSON_ARRAY: put_all(out, json, flags, depth); break;
    case JSON_STRING: put_string(out, json->string); break;
    case JSON_INTEGER: fprintf(out, "%lld", json->integer); break;
    case JSON_REAL: put_real(out, json->real, (int)(flags >> 11 & 0x1f)); break;
    case JSON_TRUE: fputs("true", out); break;
    case JSON_FALSE: fputs("false", out); break;
    case JSON_NULL: fputs("null", out); break;
    }
}

int json_dumpf(const json_t *json, FILE *out, size_t flags) {
    if (!json) return -1;
    put(out, json, flags, 0);
    return ferror(out) ? -1 : 0;
}

/* ---- Reading ---- */

enum { DEPTH_MAX = 64 };

struct reading {
    const char *at, *end;
    bool unique; /* keys must be */
    int depth;
};

static json_t *read_value(struct reading *r);

static void skip_space(struct reading *r) {
    while (r->at < r->end && strchr(" \t\r\n", *r->at) && *r->at) r->at++;
}

static bool take(struct reading *r, char c) {
    skip_space(r);
    if (r->at == r->end || *r->at != c) return false;
    r->at++;
    return true;
}

static bool read_hex(struct reading *r, uint32_t *code) {
    char digits[5] = {0};
    if (r->end - r->at < 4) return false;
    memcpy(digits, r->at, 4);
    for (int i = 0; i < 4; i++)
        if (!isxdigit((unsigned char)digits[i])) return false;
    r->at += 4;
    *code = (uint32_t)strtoul(digits, NULL, 16);
    return true;
}

static char *put_code(char *to, uint32_t code) {
    if (code < 0x80) return *to = (char)code, to + 1;
    if (code < 0x800) {
        *to++ = (char)(0xc0 | code >> 6);
    } else {
        if (code < 0x10000) {
            *to++ = (char)(0xe0 | code >> 12);
        } else {
            *to++ = (char)(0xf0 | code >> 18);
            *to++ = (char)(0x80 | (code >> 12 & 0x3f));
        }
        *to++ = (char)(0x80 | (code >> 6 & 0x3f));
    }
    *to++ = (char)(0x80 | (code & 0x3f));
    return to;
}

/* What follows a backslash; NULL when it cannot. */
static char *read_escape(struct reading *r, char *to) {
    static const char letters[] = "\"\"\\\\//b\bf\fn\nr\rt\t";
    if (r->at == r->end) return NULL;
    char letter = *r->at++;
    for (const char *l = letters; *l; l += 2)
        if (*l == letter) return *to = l[1], to + 1;
    uint32_t code, low;
    if (letter != 'u' || !read_hex(r, &code) || !code) return NULL;
    if (code >> 10 == 0xd800 >> 10) {
        if (r->end - r->at < 6 || r->at[0] != '\\' || r->at[1] != 'u') return NULL;
        r->at += 2;
        if (!read_hex(r, &low) || low >> 10 != 0xdc00 >> 10) return NULL;
        code = 0x10000 + ((code & 0x3ff) << 10 | (low & 0x3ff));
    } else if (code >> 10 == 0xdc00 >> 10) {
        return NULL;
    }
    return put_code(to, code);
}

/* A string whose opening quote was taken; the caller frees it. */
static char *read_text(struct reading *r) {
    char *text = malloc((size_t)(r->end - r->at) + 1), *to = text;
    cv_assert(text);
    while (to && r->at < r->end && *r->at != '"') {
        unsigned char c = (unsigned char)*r->at++;
        if (c == '\\')
            to = read_escape(r, to);
        else if (c < 0x20)
            to = NULL;
        else
            *to++ = (char)c;
    }
    if (!to || r->at == r->end) return free(text), NULL;
    r->at++;
    *to = 0;
    return text;
}

static json_t *read_number(struct reading *r) {
    char text[64] = {0}, *end;
    size_t size = 0;
    while (r->at + size < r->end && size < sizeof text - 1 && r->at[size] &&
           strchr("+-.eE0123456789", r->at[size]))
        size++;
    memcpy(text, r->at, size);
    errno = 0;
    bool real = strpbrk(text, ".eE") != NULL;
    json_int_t integer = real ? 0 : strtoll(text, &end, 10);
    double value = real ? strtod(text, &end) : 0;
    if (!size || *end || errno == ERANGE) return NULL;
    r->at += size;
    return real ? json_real(value) : json_integer(integer);
}

static json_t *read_word(struct reading *r) {
    static const struct {
        const char *word;
        json_t *(*make)(void);
    } words[] = {{"true", json_true}, {"false", json_false}, {"null", json_null}};
    for (size_t i = 0; i < 3; i++) {
        size_t size = strlen(words[i].word);
        if ((size_t)(r->end - r->at) < size || memcmp(r->at, words[i].word, size) != 0) continue;
        r->at += size;
        return words[i].make();
    }
    return NULL;
}

/* The members of an array or an object, up to its end. */
static bool read_members(struct reading *r, json_t *all, char end) {
    if (take(r, end)) return true;
    do {
        char *key = NULL;
        if (end == '}' && (!take(r, '"') || !(key = read_text(r)))) return false;
        bool right = end == ']' || (take(r, ':') && !(r->unique && json_object_get(all, key)));
        json_t *value = right ? read_value(r) : NULL;
        if (value && key) json_object_set_new(all, key, value);
        if (value && !key) json_array_append_new(all, value);
        free(key);
        if (!value) return false;
    } while (take(r, ','));
    return take(r, end);
}

static json_t *read_all(struct reading *r, json_t *all, char end) {
    bool right = ++r->depth <= DEPTH_MAX && read_members(r, all, end);
    r->depth--;
    if (right) return all;
    json_decref(all);
    return NULL;
}

static json_t *read_value(struct reading *r) {
    if (take(r, '{')) return read_all(r, json_object(), '}');
    if (take(r, '[')) return read_all(r, json_array(), ']');
    if (take(r, '"')) {
        char *text = read_text(r);
        json_t *json = text ? json_string(text) : NULL;
        free(text);
        return json;
    }
    return r->at < r->end && isalpha((unsigned char)*r->at) ? read_word(r) : read_number(r);
}

json_t *json_loadb(const char *text, size_t size, size_t flags, json_error_t *error) {
    struct reading r = {text, text + size, flags & JSON_REJECT_DUPLICATES, 0};
    json_t *json = read_value(&r);
    skip_space(&r);
    if (json && r.at == r.end && (json_is_object(json) || json_is_array(json))) return json;
    json_decref(json);
    if (error) {
        *error = (json_error_t){.position = (int)(r.at - text), .line = 1};
        for (const char *c = text; c < r.at; c++) error->line += *c == '\n';
        snprintf(error->text, sizeof error->text, "this is not JSON");
    }
    return NULL;
}

json_t *json_loads(const char *text, size_t flags, json_error_t *error) {
    return json_loadb(text, strlen(text), flags, error);
}

json_t *json_load_file(const char *path, size_t flags, json_error_t *error) {
    char *text = NULL;
    size_t size = 0, room = 0, got;
    FILE *file = fopen(path, "r");
    if (!file) {
        if (error) snprintf(error->text, sizeof error->text, "unable to open %.100s", path);
        return NULL;
    }
    do {
        text = realloc(text, room = size + (1 << 16));
        cv_assert(text);
        size += got = fread(text + size, 1, room - size, file);
    } while (got);
    fclose(file);
    json_t *json = json_loadb(text, size, flags, error);
    free(text);
    return json;
}
