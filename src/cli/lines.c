#include "cli/lines.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/logger.h"

/* To make the file itself nonblocking would make it so for everybody who has it open. */
void lines_open(struct lines *lines, int file) {
    struct stat status = {0};
    char path[32];
    snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    fstat(file, &status);
    lines->file = file;
    lines->is_socket = S_ISSOCK(status.st_mode);
    lines->own = S_ISCHR(status.st_mode) || S_ISFIFO(status.st_mode)
                     ? open(path, O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC)
                     : -1;
    lines->used = 0;
    lines->logs = false;
    pthread_mutex_init(&lines->mutex, NULL);
}

/* Whoever reads may have gone; a signal that is ignored here would be ignored by commands. */
static ssize_t write_unsignalled(int file, const char *text, size_t size) {
    sigset_t pipes, before;
    sigemptyset(&pipes);
    sigaddset(&pipes, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &pipes, &before);
    ssize_t written = write(file, text, size);
    int why = errno;
    if (written < 0 && why == EPIPE) sigtimedwait(&pipes, NULL, &(struct timespec){0});
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    errno = why;
    return written;
}

/* As `write`, but at once. */
static ssize_t give(const struct lines *lines) {
    struct pollfd file = {lines->file, POLLOUT, 0};
    if (lines->is_socket)
        return send(lines->file, lines->text, lines->used, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (lines->own >= 0) return write_unsignalled(lines->own, lines->text, lines->used);
    /* A pipe that can be written takes as much at once, and so does a file.  A terminal of another
     * user's, which cannot be opened, might not. */
    _Static_assert(sizeof lines->text <= PIPE_BUF, "it can be written at once");
    if (poll(&file, 1, 0) == 0) return errno = EAGAIN, -1;
    return file.revents & POLLOUT ? write_unsignalled(lines->file, lines->text, lines->used) : 0;
}

/* With the mutex held. */
static bool flush(struct lines *lines) {
    ssize_t size = lines->used ? give(lines) : 0;
    if (size < 0 && (errno == EAGAIN || errno == EINTR)) return false;
    if (size <= 0) size = (ssize_t)lines->used; /* nobody reads any more */
    lines->used -= (size_t)size;
    memmove(lines->text, lines->text + size, lines->used);
    return !lines->used;
}

bool lines_flush(struct lines *lines) {
    pthread_mutex_lock(&lines->mutex);
    bool all = flush(lines);
    pthread_mutex_unlock(&lines->mutex);
    return all;
}

static void add(void *arg, const char *line, size_t size) {
    struct lines *lines = arg;
    pthread_mutex_lock(&lines->mutex);
    flush(lines);
    if (size <= sizeof lines->text - lines->used) {
        memcpy(lines->text + lines->used, line, size);
        lines->used += size;
        flush(lines);
    }
    pthread_mutex_unlock(&lines->mutex);
}

void lines_say(struct lines *lines, const char *format, ...) {
    char line[1024];
    va_list values;
    va_start(values, format);
    int size = vsnprintf(line, sizeof line - 1, format, values);
    va_end(values);
    if (size < 0 || (size_t)size >= sizeof line - 1) return;
    line[size] = '\n';
    add(lines, line, (size_t)size + 1);
}

void lines_take_log(struct lines *lines) {
    lines->logs = true;
    logger_set_output(add, lines);
}

/* Whoever reads may need a moment. */
void lines_close(struct lines *lines) {
    enum { TRIES = 20, PAUSE_MS = 5 };
    for (int i = 0; i < TRIES && !lines_flush(lines); i++) poll(NULL, 0, PAUSE_MS);
    if (lines->logs) logger_set_output(NULL, NULL);
    if (lines->own >= 0) close(lines->own);
    pthread_mutex_destroy(&lines->mutex);
}
