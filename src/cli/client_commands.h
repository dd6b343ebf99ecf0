/* The commands on the tree of a server: each runs alone, with a session of its own, or in
 * `conclave shell`. */
#ifndef CV_CLI_CLIENT_COMMANDS_H
#define CV_CLI_CLIENT_COMMANDS_H

#include "cli/remote.h"

/* Returns the exit code.  argv[0] is for messages. */
typedef int client_fn(struct remote *remote, int argc, char **argv);

#define CLIENT_COMMANDS(X)                                                                         \
    X(ls)                                                                                          \
    X(get)                                                                                         \
    X(set)                                                                                         \
    X(create)                                                                                      \
    X(rm)                                                                                          \
    X(stat) X(acl) X(tree) X(watch) X(cp) X(multi) X(barrier) X(counter) X(queue) X(locks) X(unlock)

#define X(name) client_fn name##_run;
CLIENT_COMMANDS(X)
#undef X

struct client_command {
    const char *name;
    client_fn *run;
};
/* Ends with a name that is NULL. */
extern const struct client_command client_commands[];

#endif
