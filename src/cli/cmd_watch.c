/* conclave watch: what happens to a node, as it happens. */
#include <stdlib.h>

#include "base/bytes.h"
#include "base/parse.h"
#include "cli/client_commands.h"
#include "cli/spawn.h"

static const struct argp_option options[] = {
    {"recursive", 'R', NULL, 0, "Also all nodes below it", 0},
    {"count", 'n', "NUMBER", 0, "End after so many events", 0},
    {0}};

static const char doc[] =
    "Prints what happens to a node, one event in a line, or runs a command for each.\v"
    "Events are 'created', 'deleted', 'changed' (its data) and 'children' (one was created or "
    "deleted; not with -R, where that is an event of the child), and the path.  The first line is "
    "'watching': from then on every event is seen, so look at the node then.  'reconnected' says "
    "that the connection was broken, and that events may have been missed meanwhile: look again.  "
    "The node need not exist.\n\n"
    "A COMMAND is run once for each of these, one after another, with CONCLAVE_EVENT and "
    "CONCLAVE_PATH in its environment; its exit status does not matter.\n\n"
    "JSON: {event, path} in each line.\n\n"
    "Servers know this since ZooKeeper 3.6.\n\n" REMOTE_EXIT_STATUS "\n"
    "Examples:\n"
    "  conclave watch /app/config\n"
    "  conclave watch -R /workers\n"
    "  conclave watch /app/config -- sh -c 'conclave get /app/config >config && reload'\n";

struct event {
    enum cv_watch_type type;
    size_t path; /* in `paths` */
};

struct request {
    struct remote *remote;
    char *path, **command;
    uint64_t count; /* 0: for ever */
    bool recursive;
    struct bytes events, paths; /* that were not told yet */
};

static int parse(int key, char *text, struct argp_state *state) {
    struct request *request = state->input;
    switch (key) {
    case ARGP_KEY_INIT: state->child_inputs[0] = request->remote; return 0;
    case 'R': request->recursive = true; return 0;
    case 'n':
        if (parse_u64(text, &request->count) != 0 || request->count == 0)
            return remote_usage("count: '%s' is not a number from 1 on", text);
        return 0;
    case ARGP_KEY_ARG:
        if (request->path) return remote_usage("one node at a time, not '%s' as well", text);
        request->path = text;
        return remote_path(text);
    case ARGP_KEY_END:
        if (!request->path) return remote_usage("which node? Give its PATH");
        if (request->command && !*request->command) return remote_usage("which COMMAND after --?");
        return 0;
    default: return ARGP_ERR_UNKNOWN;
    }
}

static void happened(enum cv_watch_type type, const char *path, void *arg) {
    struct request *request = arg;
    struct event event = {.type = type, .path = request->paths.used};
    bytes_add(&request->events, &event, sizeof event);
    bytes_add(&request->paths, path, strlen(path) + 1);
}

static int tell(struct request *request, const char *event, const char *path) {
    if (request->command) {
        setenv("CONCLAVE_EVENT", event, 1);
        setenv("CONCLAVE_PATH", path, 1);
        int status = spawn_run(request->remote, request->command, NULL, 0, false);
        if (request->remote->interrupted) return 128 + request->remote->interrupted;
        return status == EXIT_CANNOT_RUN || status == EXIT_NOT_FOUND ? status : 0;
    }
    if (request->remote->json) {
        remote_json_line(json_pack("{s:s, s:o}", "event", event, "path", remote_json_name(path)));
        return 0;
    }
    printf("%s ", event);
    remote_put(stdout, path, strlen(path), REMOTE_NAME);
    putchar('\n');
    fflush(stdout);
    return 0;
}

static const char *event_name(enum cv_watch_type type) {
    switch (type) {
    case CV_NODE_CREATED: return "created";
    case CV_NODE_DELETED: return "deleted";
    case CV_NODE_CHANGED: return "changed";
    case CV_NODE_CHILDREN_CHANGED: return "children";
    case CV_WATCH_RENEWED: return "reconnected";
    default: return NULL;
    }
}

/* More may come while they are told. */
static int tell_all(struct request *request, uint64_t *told) {
    int status = 0;
    for (size_t at = 0; at < request->events.used && !status; at += sizeof(struct event)) {
        struct event event;
        memcpy(&event, request->events.at + at, sizeof event);
        if (event.type == CV_WATCH_LOST)
            return remote_fail(request->remote, CV_SESSION_EXPIRED, request->path);
        char *path = strdup((char *)request->paths.at + event.path);
        status = tell(request, event_name(event.type), path);
        free(path);
        if (++*told == request->count) break;
    }
    request->events.used = request->paths.used = 0;
    return status;
}

/* Subscribes first, and says so then: whoever looks after that misses nothing. */
static int watch(struct request *request) {
    struct remote *remote = request->remote;
    struct cv_op op = cv_op_add_watch(request->path,
                                      request->recursive ? CV_WATCH_RECURSIVE : CV_WATCH_PERSISTENT,
                                      happened, request);
    int status = remote_do(remote, &op, NULL), signal = 0;
    uint64_t told = 0;
    if (status) return status;
    if (request->command) remote_export(remote);
    status = tell(request, "watching", request->path);
    while (!status && !signal && (!request->count || told < request->count)) {
        if (!request->events.used) signal = remote_wait(remote, CV_FOREVER);
        status = signal ? 128 + signal : tell_all(request, &told);
    }
    remote_unwatch(remote, request->path, happened, request);
    return status;
}

int watch_run(struct remote *remote, int argc, char **argv) {
    static const struct argp argp = {
        options, parse, "PATH\nPATH -- COMMAND...", doc, remote_children, NULL, NULL};
    struct request request = {.remote = remote};
    request.command = remote_command(&argc, argv);
    int status;
    if (!remote_parse(remote, &argp, 0, argc, argv, &request, &status)) return status;
    status = remote_connect(remote);
    remote_catch_signals(remote);
    if (!status) status = watch(&request);
    bytes_close(&request.events);
    bytes_close(&request.paths);
    return status;
}
