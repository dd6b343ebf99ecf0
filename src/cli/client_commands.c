#include "cli/client_commands.h"

/* One thread: what comes from the server is dealt with while a command waits. */
static int run_alone(client_fn *run, int argc, char **argv) {
    struct remote remote = {.options.flags = CV_NO_THREAD};
    int status = run(&remote, argc, argv);
    remote_close(&remote);
    return status;
}

#define X(name)                                                                                    \
    int cmd_##name(int argc, char **argv) { return run_alone(name##_run, argc, argv); }
CLIENT_COMMANDS(X)
#undef X

const struct client_command client_commands[] = {
#define X(name) {#name, name##_run},
    CLIENT_COMMANDS(X)
#undef X
        {0}};
