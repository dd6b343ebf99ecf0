/* conclave barrier: nobody goes on before all are there. */
#include <stdlib.h>

#include "base/parse.h"
#include "cli/client_commands.h"
#include "cli/patience.h"
#include "cli/spawn.h"

static const struct argp_option options[] = {
    {"wait", 'w', "TIME", 0, "How long to wait at most (default: for ever)", 0}, {0}};

static const char doc[] =
    "Holds others back, or waits for them.\v"
    "'close' makes the barrier, a node; 'wait' returns when there is none; 'open' removes it, and "
    "lets all go on that wait.\n\n"
    "'enter' waits until NUMBER participants have entered, runs the COMMAND, and waits until all "
    "of them have left: they begin and end together.  Its exit status is passed on.  A participant "
    "that dies has left.\n\n"
    "When the time is over the exit status is 75.\n\n" REMOTE_EXIT_STATUS "\n"
    "Examples:\n"
    "  conclave barrier close /maintenance\n"
    "  conclave barrier wait /maintenance -w 10min\n"
    "  conclave barrier open /maintenance\n"
    "  conclave barrier enter /test/start 3 -- ./measure\n";

struct request {
    struct remote *remote;
    const char *what;
    char *path, **command;
    struct patience patience;
    uint64_t participants;
};

static int check(const struct request *request) {
    static const char *const words[] = {"close", "open", "wait", "enter"};
    bool known = false;
    for (int i = 0; i < 4 && request->what; i++) known |= strcmp(words[i], request->what) == 0;
    if (!known) return remote_usage("what to do: close, open, wait or enter, and a PATH");
    if (!request->path) return remote_usage("which barrier? Give the PATH of its node");
    bool enters = strcmp(request->what, "enter") == 0;
    if (enters != (request->participants > 0))
        return enters ? remote_usage("how many participants? Give their NUMBER")
                      : remote_usage("a NUMBER of participants is for 'enter'");
    if (request->command && (!enters || !*request->command))
        return remote_usage("a COMMAND after -- is for 'enter'");
    return 0;
}

static int parse(int key, char *text, struct argp_state *state) {
    struct request *request = state->input;
    switch (key) {
    case ARGP_KEY_INIT: state->child_inputs[0] = request->remote; return 0;
    case 'w': return patience_parse(&request->patience, "wait", text);
    case ARGP_KEY_ARG:
        if (!request->what) return request->what = text, 0;
        if (!request->path) return request->path = text, remote_path(text);
        if (request->participants || parse_u64(text, &request->participants) != 0 ||
            request->participants < 1 || request->participants > INT32_MAX)
            return remote_usage("'%s' is not the NUMBER of participants", text);
        return 0;
    case ARGP_KEY_END: return check(request);
    default: return ARGP_ERR_UNKNOWN;
    }
}

static int wait_once(struct remote *remote, void *arg, int32_t ms) {
    const struct request *request = arg;
    return cv_barrier_wait(remote->client, request->path, ms);
}

static int enter(struct request *request) {
    struct remote *remote = request->remote;
    struct cv_double_barrier *barrier = NULL;
    char text[64];
    int32_t limit = patience_limit(&request->patience);
    snprintf(text, sizeof text, "waiting for %d participants", (int)request->participants);
    patience_note(text);
    int error = cv_double_barrier_enter(&barrier, remote->client, request->path,
                                        (int32_t)request->participants, limit);
    patience_note(NULL);
    if (error) return remote_fail(remote, error, request->path);
    int status = EXIT_OK;
    if (request->command) {
        remote_catch_signals(remote);
        remote_export(remote);
        status = spawn_run(remote, request->command, NULL, 0, true);
    }
    patience_note("waiting until all have left");
    error = cv_double_barrier_leave(barrier, limit);
    patience_note(NULL);
    return status || !error ? status : remote_fail(remote, error, request->path);
}

static int run(struct request *request) {
    struct remote *remote = request->remote;
    int status = remote_connect(remote), error = CV_OK;
    if (status) return status;
    switch (*request->what) {
    case 'c': error = cv_create_all(remote->client, request->path, CV_PERSISTENT); break;
    case 'o':
        error = cv_delete(remote->client, request->path, -1);
        if (error == CV_NO_NODE) error = CV_OK;
        break;
    case 'w':
        error =
            patience_wait(&request->patience, remote, "waiting at the barrier", wait_once, request);
        break;
    default: return enter(request);
    }
    return patience_result(&request->patience, remote, error, request->path);
}

int barrier_run(struct remote *remote, int argc, char **argv) {
    static const struct argp argp = {
        options,
        parse,
        "close PATH\nopen PATH\nwait PATH\nenter PATH NUMBER [-- COMMAND...]",
        doc,
        remote_children,
        NULL,
        NULL};
    struct request request = {.remote = remote};
    request.command = remote_command(&argc, argv);
    int status;
    if (!remote_parse(remote, &argp, 0, argc, argv, &request, &status)) return status;
    return run(&request);
}
