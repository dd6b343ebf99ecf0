#include "cli/words.h"

#include <ctype.h>
#include <string.h>

static int hex(char c) {
    static const char digits[] = "0123456789abcdef";
    const char *at = c ? strchr(digits, tolower((unsigned char)c)) : NULL;
    return at ? (int)(at - digits) : -1;
}

/* After a backslash: one character; NULL: it means nothing. */
static const char *escaped(const char *from, char *to) {
    static const char letters[] = "n\nt\tr\r\\\\\"\"''  ##";
    if (*from == 0) return NULL;
    if (*from == '0') return *to = 0, from + 1;
    if (*from == 'x') {
        int high = hex(from[1]), low = high < 0 ? -1 : hex(from[2]);
        if (low < 0) return NULL;
        *to = (char)(high << 4 | low);
        return from + 3;
    }
    for (const char *at = letters; *at; at += 2)
        if (*at == *from) return *to = at[1], from + 1;
    return NULL;
}

/* One word from `*from` on, written to `to`; returns its end there. */
static char *take(const char **from, char *to, const char **problem) {
    char quote = 0;
    const char *at = *from;
    for (; *at && (quote || !isspace((unsigned char)*at));) {
        if (quote ? *at == quote : *at == '"' || *at == '\'') {
            quote = quote ? 0 : *at;
            at++;
        } else if (*at == '\\' && quote != '\'') {
            at = escaped(at + 1, to++);
            if (!at) return *problem = "a backslash before something that needs none (\\\\)", to;
        } else {
            *to++ = *at++;
        }
    }
    if (quote) *problem = "a quote that is not closed";
    *from = at;
    return to;
}

const char *words_part(struct words *words, char *line) {
    const char *from = line, *problem = NULL;
    words->count = 0;
    for (;;) {
        while (isspace((unsigned char)*from)) from++;
        words->at[words->count] = NULL;
        if (*from == 0 || *from == '#') return NULL;
        if (words->count == WORDS_MAX) return "too many words";
        /* A word is never longer than what it is written as, so that it fits where that was. */
        char *begin = line + (from - line), *end = take(&from, begin, &problem);
        if (problem) return problem;
        if (*from) from++;
        *end = 0;
        words->at[words->count] = begin;
        words->size[words->count++] = (size_t)(end - begin);
    }
}
