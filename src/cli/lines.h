/* Lines on standard output, of a process that others depend on: it never waits until they are read.
 */
#ifndef CV_CLI_LINES_H
#define CV_CLI_LINES_H

#include <stdbool.h>
#include <stddef.h>

struct lines { /* that were not taken yet */
    char text[4096];
    size_t used;
};

/* Prints a line; what has no room beside those that wait is dropped. */
void lines_say(struct lines *lines, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Tries again what was not taken.  False: something is left. */
bool lines_flush(struct lines *lines);

#endif
