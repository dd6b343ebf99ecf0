/* Data of nodes, from and to files and command lines. */
#ifndef CV_CLI_CONTENT_H
#define CV_CLI_CONTENT_H

#include "base/bytes.h"
#include "cli/remote.h"

struct content {
    const char *text; /* an argument; NULL: none was given */
    const char *file; /* "-": standard input; NULL: none was given */
    struct bytes read;
    const void *data; /* after content_read; never NULL */
    size_t size;
};

/* Reads the file, if one was given.  0, or the exit code after one line. */
int content_read(struct content *content);
void content_close(struct content *content);

/* Writes a file as a whole: whoever looks sees all of it, or what was there before.  Without
 * `replace` a file that exists stays as it is, and the error is EEXIST.  0, or an errno. */
int content_write(const char *path, const void *data, size_t size, bool replace);

/* Data for standard output: as they are, or escaped and ended with a line feed on a terminal. */
void content_show(const void *data, size_t size);

#endif
