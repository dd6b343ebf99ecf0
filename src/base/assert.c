#include "base/assert.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/caught.h"

_Thread_local struct caught *catcher;

void cv_broken(const char *what, const char *file, int line) {
    struct caught *caught = catcher;
    if (caught) {
        catcher = NULL;
        caught->what = what;
        longjmp(caught->at, 1);
    }
    fprintf(stderr, "conclave: broken invariant at %s:%d: %s\n", file, line, what);
    abort();
}
