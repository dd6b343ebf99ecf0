/* Lines as people write them: words with quotes. */
#ifndef CV_CLI_WORDS_H
#define CV_CLI_WORDS_H

#include <stddef.h>

enum { WORDS_MAX = 256 };

struct words {
    char *at[WORDS_MAX + 1]; /* ends with NULL; they may hold NUL bytes */
    size_t size[WORDS_MAX];
    int count;
};

/* Parts a line in place: blanks are between words; '...' is as it is; in "..." and outside of
 * quotes \n \t \r \0 \\ \" \' \xNN and a backslash before a blank mean one character; # begins a
 * comment where a word would begin.  NULL, or what is wrong. */
const char *words_part(struct words *words, char *line);

#endif
