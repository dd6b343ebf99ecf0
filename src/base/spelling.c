#include "base/spelling.h"

#include <string.h>

unsigned word_distance(const char *a, const char *b) {
    enum { LETTERS_MAX = 64 };
    unsigned row[LETTERS_MAX + 1];
    size_t m = strlen(a), n = strlen(b);
    if (m > LETTERS_MAX || n > LETTERS_MAX) return LETTERS_MAX;
    for (size_t j = 0; j <= n; j++) row[j] = (unsigned)j;
    for (size_t i = 1; i <= m; i++) {
        unsigned diagonal = row[0];
        row[0] = (unsigned)i;
        for (size_t j = 1; j <= n; j++) {
            unsigned change = diagonal + (a[i - 1] != b[j - 1]);
            diagonal = row[j];
            unsigned gap = (row[j] < row[j - 1] ? row[j] : row[j - 1]) + 1;
            row[j] = change < gap ? change : gap;
        }
    }
    return row[n];
}
