/* A command that a client command runs, beside its session. */
#ifndef CV_CLI_SPAWN_H
#define CV_CLI_SPAWN_H

#include <sys/types.h>

#include "cli/remote.h"

/* Runs `remote_command`'s words, with these bytes as standard input if `input` is not NULL, and
 * keeps the session alive meanwhile (remote_catch_signals has been called).  SIGINT, SIGTERM and
 * SIGHUP are passed on.  Returns its exit code: 128 and the signal if one killed it, 126 or 127
 * after one line if it cannot be run, EXIT_NO_SERVER after one line if the session ended meanwhile
 * and `needs_session`; it is told to end then. */
int spawn_run(struct remote *remote, char **command, const void *input, size_t size,
              bool needs_session);

#endif
