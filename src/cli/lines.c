#include "cli/lines.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* A pipe that can be written takes PIPE_BUF bytes at once.  (To make it nonblocking instead would
 * make it so for everybody who has it open.) */
bool lines_flush(struct lines *lines) {
    _Static_assert(sizeof lines->text <= PIPE_BUF, "it can be written at once");
    struct pollfd file = {STDOUT_FILENO, POLLOUT, 0};
    if (!lines->used || poll(&file, 1, 0) <= 0) return !lines->used;
    ssize_t size = file.revents == POLLOUT ? write(STDOUT_FILENO, lines->text, lines->used) : 0;
    if (size < 0 && (errno == EAGAIN || errno == EINTR)) return false;
    if (size <= 0) size = (ssize_t)lines->used; /* nobody reads any more */
    lines->used -= (size_t)size;
    memmove(lines->text, lines->text + size, lines->used);
    return !lines->used;
}

void lines_say(struct lines *lines, const char *format, ...) {
    size_t room = sizeof lines->text - lines->used;
    va_list values;
    va_start(values, format);
    int size = vsnprintf(lines->text + lines->used, room, format, values);
    va_end(values);
    if (size < 0 || (size_t)size + 1 >= room) return;
    lines->used += (size_t)size;
    lines->text[lines->used++] = '\n';
    lines_flush(lines);
}
