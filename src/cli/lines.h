/* Lines on standard output or standard error, of a process that others depend on: it never waits
 * until they are read. */
#ifndef CV_CLI_LINES_H
#define CV_CLI_LINES_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

struct lines {
    int file; /* as it was given */
    int own;  /* the same, opened anew, so that it never blocks here; -1: it cannot be */
    bool is_socket;
    bool logs;             /* the log goes there */
    pthread_mutex_t mutex; /* of all below */
    char text[4096];       /* that was not taken yet */
    size_t used;
};

void lines_open(struct lines *lines, int file);
/* Prints a line; what has no room beside those that wait is dropped. */
void lines_say(struct lines *lines, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* The same for the log: from now on its lines go there.  Only one at a time. */
void lines_take_log(struct lines *lines);
/* Tries again what was not taken.  False: something is left. */
bool lines_flush(struct lines *lines);
void lines_close(struct lines *lines);

#endif
