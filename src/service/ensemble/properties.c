#include "service/ensemble/properties.h"

static bool is_blank(unsigned char c) { return c == ' ' || c == '\t' || c == '\f'; }

static bool is_end(unsigned char c) { return c == ',' || c == '\n' || c == '\r'; }

static bool take(struct zk_text *rest, unsigned char *c) {
    if (rest->size <= 0) return false;
    *c = (unsigned char)*rest->at++;
    rest->size--;
    return true;
}

/* A backslash at the end of a line continues it, without the blanks at the beginning of the next.
 * Escapes stay as they are.  False: there is no line left with anything in it. */
static bool read_line(struct zk_text *rest, struct bytes *line) {
    bool begins = true, escapes = false;
    unsigned char c;
    line->used = 0;
    while (take(rest, &c)) {
        if (begins && is_blank(c)) continue;
        begins = false;
        bool says_nothing = !line->used && (c == '#' || c == '!');
        while (says_nothing && !is_end(c))
            if (!take(rest, &c)) return false;
        if (!is_end(c)) {
            escapes = c == '\\' && !escapes;
            bytes_add(line, &c, 1);
            continue;
        }
        if (line->used && !escapes) return true;
        if (escapes) line->used--;
        if (escapes && c == '\r' && rest->size > 0 && *rest->at == '\n') take(rest, &c);
        begins = true;
        escapes = false;
    }
    if (escapes) line->used--;
    return line->used > 0;
}

static bool take_code(struct zk_text *rest, unsigned char *code) {
    enum { DIGITS = 4 };
    unsigned value = 0;
    if (rest->size < DIGITS) return false;
    for (int i = 0; i < DIGITS; i++) {
        unsigned char c = (unsigned char)rest->at[i], low = c | 0x20;
        if (c >= '0' && c <= '9')
            value = 16 * value + (c - '0');
        else if (low >= 'a' && low <= 'f')
            value = 16 * value + (low - 'a' + 10);
        else
            return false;
    }
    rest->at += DIGITS;
    rest->size -= DIGITS;
    *code = value < 0x80 ? (unsigned char)value : 0; /* no name or number has any other */
    return true;
}

static bool unescape(struct zk_text text, struct bytes *to) {
    static const char names[] = "tnrf", meant[] = "\t\n\r\f";
    unsigned char c;
    to->used = 0;
    while (take(&text, &c)) {
        if (c == '\\' && take(&text, &c)) {
            const char *name = memchr(names, c, sizeof names - 1);
            if (c == 'u' && !take_code(&text, &c)) return false;
            if (name) c = (unsigned char)meant[name - names];
        }
        bytes_add(to, &c, 1);
    }
    return true;
}

/* The key ends at the first blank, colon or equals sign that is not escaped.  Between it and the
 * value there are blanks, and one such sign at most. */
enum properties_found properties_next(struct properties *p) {
    size_t key = 0;
    bool escapes = false, parted = false;
    if (!read_line(&p->rest, &p->line)) return PROPERTIES_END;
    const unsigned char *at = p->line.at;
    for (; key < p->line.used; key++) {
        if (!escapes && (is_blank(at[key]) || at[key] == '=' || at[key] == ':')) break;
        escapes = at[key] == '\\' && !escapes;
    }
    size_t value = key;
    for (; value < p->line.used; value++) {
        bool parts = !parted && (at[value] == '=' || at[value] == ':');
        if (!parts && !is_blank(at[value])) break;
        parted |= parts;
    }
    bool good =
        unescape((struct zk_text){(const char *)at, (int32_t)key}, &p->key) &&
        unescape((struct zk_text){(const char *)at + value, (int32_t)(p->line.used - value)},
                 &p->value);
    return good ? PROPERTIES_ONE : PROPERTIES_BROKEN;
}

void properties_close(struct properties *p) {
    bytes_close(&p->line);
    bytes_close(&p->key);
    bytes_close(&p->value);
}
