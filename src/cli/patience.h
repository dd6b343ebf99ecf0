/* Waiting that shows for how long on a terminal, and can be interrupted. */
#ifndef CV_CLI_PATIENCE_H
#define CV_CLI_PATIENCE_H

#include "cli/remote.h"

/* All zero: for ever. */
struct patience {
    bool limited;
    int64_t limit; /* ms */
    int signal;    /* that has interrupted it */
};

/* An option's value.  0, or EINVAL after one line. */
int patience_parse(struct patience *patience, const char *option, const char *text);
/* As the library wants it. */
int32_t patience_limit(const struct patience *patience);

/* Calls `once` with a short time, until its result is not CV_OPERATION_TIMEOUT, the time is over,
 * or a signal came (CV_OPERATION_TIMEOUT as well; patience_result knows). */
int patience_wait(struct patience *patience, struct remote *remote, const char *text,
                  int (*once)(struct remote *remote, void *arg, int32_t ms), void *arg);
/* The exit code, after one line if it is not 0. */
int patience_result(const struct patience *patience, struct remote *remote, int error,
                    const char *path);

/* A line on stderr, if that is a terminal; NULL: erases it. */
void patience_note(const char *text);

#endif
