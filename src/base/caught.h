/* A broken invariant that does not end the program: whoever gives code that has no resources of its
 * own (the consensus core) a state that may be forged is told instead.
 *
 *   struct caught caught;
 *   if (setjmp(caught.at)) return refuse(caught.what);
 *   catcher = &caught;
 *   ...
 *   catcher = NULL; */
#ifndef CV_BASE_CAUGHT_H
#define CV_BASE_CAUGHT_H

#include <setjmp.h>

struct caught {
    jmp_buf at;
    const char *what;
};

extern _Thread_local struct caught *catcher; /* NULL: the program ends */

#endif
