#include "base/assert.h"

#include <stdio.h>
#include <stdlib.h>

void cv_broken(const char *what, const char *file, int line) {
    fprintf(stderr, "conclave: broken invariant at %s:%d: %s\n", file, line, what);
    abort();
}
