/* conclave get: the data of a node. */
#include <string.h>
#include <unistd.h>

#include "cli/client_commands.h"
#include "cli/content.h"

static const struct argp_option options[] = {
    {"watch", 'w', NULL, 0, "Go on, and print the data each time they are written", 0},
    {"output", 'o', "FILE", 0, "Write them to this file, as a whole each time", 0},
    {0}};

static const char doc[] =
    "Prints the data of a node.\v"
    "Byte for byte as they are; on a terminal what it would obey is escaped.  With -w each is "
    "followed by a line feed, unless there is one; changes in quick succession may be seen as "
    "one.  -w goes on until the node is removed.\n\n"
    "JSON: {path, data, stat}; data that are no text are {base64: ...}.\n\n" REMOTE_EXIT_STATUS "\n"
    "Examples:\n"
    "  conclave get /app/config\n"
    "  conclave get /app/config -o config.yaml\n"
    "  conclave get -w /app/config -o /etc/app/config\n";

struct request {
    struct remote *remote;
    char *path;
    const char *output;
    bool watch;
};

static int parse(int key, char *text, struct argp_state *state) {
    struct request *request = state->input;
    switch (key) {
    case ARGP_KEY_INIT: state->child_inputs[0] = request->remote; return 0;
    case 'w': request->watch = true; return 0;
    case 'o': request->output = text; return 0;
    case ARGP_KEY_ARG:
        if (request->path) return remote_usage("one node at a time, not '%s' as well", text);
        request->path = text;
        return remote_path(text);
    case ARGP_KEY_END: return request->path ? 0 : remote_usage("which node? Give its PATH");
    default: return ARGP_ERR_UNKNOWN;
    }
}

static int show(const struct request *request, const struct cv_result *result) {
    const char *data = result->data ? result->data : "";
    if (request->output && strcmp(request->output, "-") != 0) {
        int error = content_write(request->output, data, result->size, true);
        if (error) return remote_say(EXIT_SYSTEM, "%s: %s", request->output, strerror(error));
    } else if (request->remote->json) {
        remote_json_line(json_pack("{s:o, s:o, s:o}", "path", remote_json_name(request->path),
                                   "data", remote_json_data(result->data, result->size), "stat",
                                   remote_json_stat(&result->stat)));
    } else {
        content_show(data, result->size);
        bool ended = result->size && data[result->size - 1] == '\n';
        if (request->watch && !ended && !isatty(STDOUT_FILENO)) putchar('\n');
    }
    fflush(stdout);
    return 0;
}

static void changed(enum cv_watch_type type, const char *path, void *arg) {
    (void)type, (void)path;
    *(bool *)arg = true;
}

/* Each read asks for the next event, so that nothing falls in between. */
static int get(const struct request *request) {
    struct remote *remote = request->remote;
    struct cv_op op = cv_op_get(request->path);
    bool has_changed = false;
    int status = 0;
    if (request->watch) {
        op.watch = changed, op.watch_arg = &has_changed;
        remote_catch_signals(remote);
    }
    do {
        struct cv_result *result = NULL;
        has_changed = false;
        status = remote_do(remote, &op, &result);
        if (!status) status = show(request, result);
        cv_result_free(result);
        int signal = 0;
        while (request->watch && !status && !has_changed && !signal)
            signal = remote_wait(remote, CV_FOREVER);
        if (signal) status = 128 + signal;
    } while (request->watch && !status);
    if (request->watch) remote_unwatch(remote, request->path, changed, &has_changed);
    return status;
}

int get_run(struct remote *remote, int argc, char **argv) {
    static const struct argp argp = {options, parse, "PATH", doc, remote_children, NULL, NULL};
    struct request request = {.remote = remote};
    int status;
    if (!remote_parse(remote, &argp, 0, argc, argv, &request, &status)) return status;
    status = remote_connect(remote);
    return status ? status : get(&request);
}
