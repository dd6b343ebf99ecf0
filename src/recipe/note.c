#include "recipe/note.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* ---- The fields, once ---- */

enum field_type { TEXT, NUMBER64, NUMBER32, FLAG };

static const struct field {
    const char *name;
    enum field_type type;
    size_t at;
} fields[] = {
    {"label", TEXT, offsetof(struct note, label)},
    {"host", TEXT, offsetof(struct note, host)},
    {"node", TEXT, offsetof(struct note, node)},
    {"pid", NUMBER64, offsetof(struct note, pid)},
    {"since", NUMBER64, offsetof(struct note, since)},
    {"held", NUMBER64, offsetof(struct note, held)},
    {"token", NUMBER64, offsetof(struct note, token)},
    {"slots", NUMBER32, offsetof(struct note, slots)},
    {"priority", NUMBER32, offsetof(struct note, priority)},
    {"stable", FLAG, offsetof(struct note, stable)},
    {"resign", FLAG, offsetof(struct note, resign)},
    {"outer", TEXT, offsetof(struct note, outer)},
};
enum { FIELDS = sizeof fields / sizeof fields[0] };

void note_copy(char to[NOTE_TEXT_MAX], const char *from, size_t size) {
    if (size >= NOTE_TEXT_MAX) {
        size = NOTE_TEXT_MAX - 1;
        while (size && ((unsigned char)from[size] & 0xc0) == 0x80) size--;
    }
    memcpy(to, from, size);
    memset(to + size, 0, NOTE_TEXT_MAX - size);
}

/* ---- Writing ---- */

static size_t write_text(char *out, const char *text) {
    size_t at = 0;
    out[at++] = '"';
    for (; *text; text++) {
        unsigned char c = (unsigned char)*text;
        if (c < 0x20 || c == 0x7f) {
            at += (size_t)snprintf(out + at, 7, "\\u%04x", c);
        } else {
            if (c == '"' || c == '\\') out[at++] = '\\';
            out[at++] = (char)c;
        }
    }
    out[at++] = '"';
    return at;
}

static int64_t number_of(const struct note *note, const struct field *f) {
    const char *at = (const char *)note + f->at;
    int64_t wide;
    int32_t narrow;
    if (f->type == FLAG) return *(const bool *)(const void *)at;
    if (f->type == NUMBER32) return memcpy(&narrow, at, sizeof narrow), narrow;
    return memcpy(&wide, at, sizeof wide), wide;
}

size_t note_write(const struct note *note, char text[NOTE_MAX]) {
    /* four texts, each character at most six bytes long, and the rest */
    _Static_assert(4 * (6 * NOTE_TEXT_MAX + 16) + 7 * 40 <= 2 * NOTE_MAX, "");
    char whole[2 * NOTE_MAX];
    size_t at = 0;
    for (const struct field *f = fields; f < fields + FIELDS; f++) {
        const char *value = (const char *)note + f->at;
        if (f->type == TEXT ? !*value : !number_of(note, f)) continue;
        size_t before = at;
        at += (size_t)sprintf(whole + at, "%s\"%s\":", at ? "," : "{", f->name);
        if (f->type == TEXT)
            at += write_text(whole + at, value);
        else if (f->type == FLAG)
            at += (size_t)sprintf(whole + at, "true");
        else
            at += (size_t)sprintf(whole + at, "%" PRId64, number_of(note, f));
        if (at > NOTE_MAX - 2) at = before; /* a label of control characters only */
    }
    if (!at) whole[at++] = '{';
    whole[at++] = '}';
    memcpy(text, whole, at);
    text[at] = 0;
    return at;
}

/* ---- Reading ---- */

struct reader {
    const char *at, *end;
};

static void skip_space(struct reader *r) {
    while (r->at < r->end && memchr(" \t\r\n", *r->at, 4)) r->at++;
}

static bool take(struct reader *r, const char *text) {
    size_t size = strlen(text);
    skip_space(r);
    if ((size_t)(r->end - r->at) < size || memcmp(r->at, text, size)) return false;
    r->at += size;
    return true;
}

static bool read_hex4(struct reader *r, uint32_t *value) {
    if (r->end - r->at < 4) return false;
    *value = 0;
    for (int i = 0; i < 4; i++, r->at++) {
        static const char digits[] = "0123456789abcdef0123456789ABCDEF";
        const char *digit = *r->at ? strchr(digits, *r->at) : NULL;
        if (!digit) return false;
        *value = *value * 16 + (uint32_t)((digit - digits) & 15);
    }
    return true;
}

static size_t to_utf8(uint32_t c, char out[4]) {
    if (c < 0x80) return out[0] = (char)c, 1;
    if (c < 0x800) {
        out[0] = (char)(0xc0 | c >> 6);
        out[1] = (char)(0x80 | (c & 63));
        return 2;
    }
    size_t size = c < 0x10000 ? 3 : 4;
    out[0] = (char)(size == 3 ? 0xe0 | c >> 12 : 0xf0 | c >> 18);
    if (size == 4) out[1] = (char)(0x80 | (c >> 12 & 63));
    out[size - 2] = (char)(0x80 | (c >> 6 & 63));
    out[size - 1] = (char)(0x80 | (c & 63));
    return size;
}

/* After the backslash. */
static size_t read_escape(struct reader *r, char out[4]) {
    static const char escapes[] = "\"\\/bfnrt", meant[] = "\"\\/\b\f\n\r\t";
    uint32_t c, low;
    if (r->at == r->end || !*r->at) return 0;
    char kind = *r->at++;
    const char *simple = strchr(escapes, kind);
    if (simple) return out[0] = meant[simple - escapes], 1;
    if (kind != 'u' || !read_hex4(r, &c) || !c) return 0;
    if (c >= 0xd800 && c < 0xe000) {
        if (c >= 0xdc00 || r->end - r->at < 2 || memcmp(r->at, "\\u", 2)) return 0;
        r->at += 2;
        if (!read_hex4(r, &low) || low < 0xdc00 || low >= 0xe000) return 0;
        c = 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00);
    }
    return to_utf8(c, out);
}

static bool read_text(struct reader *r, char to[NOTE_TEXT_MAX]) {
    char whole[NOTE_MAX + 4];
    size_t size = 0;
    if (!take(r, "\"")) return false;
    while (r->at < r->end && *r->at != '"') {
        unsigned char c = (unsigned char)*r->at++;
        size_t added = 1;
        if (c < 0x20 || size >= NOTE_MAX) return false;
        if (c == '\\')
            added = read_escape(r, whole + size);
        else
            whole[size] = (char)c;
        if (!added) return false;
        size += added;
    }
    note_copy(to, whole, size);
    return take(r, "\"");
}

static bool read_number(struct reader *r, int64_t *value) {
    skip_space(r);
    bool negative = r->at < r->end && *r->at == '-';
    const char *begin = r->at += negative;
    *value = 0;
    for (; r->at < r->end && *r->at >= '0' && *r->at <= '9'; r->at++) {
        if (r->at - begin == 18) return false; /* more than any of ours */
        *value = *value * 10 + (*r->at - '0');
    }
    if (negative) *value = -*value;
    return r->at > begin;
}

/* A value of any type that is not an object or a list. */
static bool skip_value(struct reader *r) {
    char text[NOTE_TEXT_MAX];
    skip_space(r);
    if (r->at < r->end && *r->at == '"') return read_text(r, text);
    if (take(r, "true") || take(r, "false") || take(r, "null")) return true;
    const char *begin = r->at;
    while (r->at < r->end && *r->at && strchr("+-.0123456789eE", *r->at)) r->at++;
    return r->at > begin;
}

static bool read_value(struct reader *r, const struct field *f, struct note *note) {
    char *at = (char *)note + f->at;
    int64_t value;
    if (f->type == TEXT) return read_text(r, at);
    if (f->type == FLAG) {
        bool flag = take(r, "true");
        memcpy(at, &flag, sizeof flag);
        return flag || take(r, "false");
    }
    if (!read_number(r, &value)) return false;
    if (f->type == NUMBER64) return memcpy(at, &value, sizeof value), true;
    int32_t narrow = (int32_t)value;
    memcpy(at, &narrow, sizeof narrow);
    return narrow == value;
}

static bool read_member(struct reader *r, struct note *note) {
    char name[NOTE_TEXT_MAX];
    if (!read_text(r, name) || !take(r, ":")) return false;
    for (const struct field *f = fields; f < fields + FIELDS; f++)
        if (!strcmp(name, f->name)) return read_value(r, f, note);
    return skip_value(r);
}

static bool read_object(struct reader *r, struct note *note) {
    if (!take(r, "{")) return false;
    if (!take(r, "}")) {
        do
            if (!read_member(r, note)) return false;
        while (take(r, ","));
        if (!take(r, "}")) return false;
    }
    skip_space(r);
    return r->at == r->end;
}

bool note_read(struct note *note, const void *data, size_t size) {
    struct reader r = {data, (const char *)data + size};
    *note = (struct note){0};
    if (size <= NOTE_MAX && read_object(&r, note)) return true;
    *note = (struct note){0};
    const char *zero = size ? memchr(data, 0, size) : NULL;
    if (size) note_copy(note->label, data, zero ? (size_t)(zero - (const char *)data) : size);
    return false;
}
