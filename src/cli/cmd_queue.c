/* conclave queue: work for many, each piece done by one. */
#include <errno.h>
#include <stdlib.h>

#include "cli/client_commands.h"
#include "cli/content.h"
#include "cli/patience.h"
#include "cli/spawn.h"

enum { KEY_PRIORITY = 256 };

static const struct argp_option options[] = {
    {"file", 'f', "FILE", 0, "With 'put': take the data from this file; -: standard input", 0},
    {"priority", KEY_PRIORITY, "NUMBER", 0, "With 'put': lower ones are taken first (default: 100)",
     0},
    {"wait", 'w', "TIME", 0, "With 'take': how long to wait at most (default: for ever)", 0},
    {0}};

static const char doc[] =
    "Puts work into a queue, or takes it out: each piece is done by exactly one.\v"
    "'put' adds DATA at the end.  'take' waits for the first entry and prints it; or gives it to "
    "the COMMAND as standard input, and the entry is done if that exits with 0, and else goes "
    "back.  An entry whose taker dies is taken by another: a piece of work may be begun more than "
    "once, and nobody else does it meanwhile.\n\n"
    "When the time is over the exit status is 75.\n\n"
    "JSON: of 'take' without a COMMAND {path, data}.\n\n" REMOTE_EXIT_STATUS "\n"
    "Examples:\n"
    "  conclave queue put /jobs 'resize 42.png'\n"
    "  conclave queue take /jobs\n"
    "  while conclave queue take /jobs -w 1min -- ./worker; do :; done\n";

struct request {
    struct remote *remote;
    const char *what;
    char *path, **command;
    struct content content;
    struct patience patience;
    int32_t priority;
    struct cv_work *work;
};

static int check(const struct request *request) {
    bool puts = request->what && strcmp(request->what, "put") == 0;
    if (!puts && (!request->what || strcmp(request->what, "take") != 0))
        return remote_usage("what to do: put or take, and a PATH");
    if (!request->path) return remote_usage("which queue? Give the PATH of its node");
    if (puts ? !request->content.text == !request->content.file
             : request->content.text || request->content.file)
        return puts ? remote_usage("give DATA, or --file (- is standard input)")
                    : remote_usage("DATA are for 'put'");
    if (request->command && (puts || !*request->command))
        return remote_usage("a COMMAND after -- is for 'take'");
    return 0;
}

static int parse(int key, char *text, struct argp_state *state) {
    struct request *request = state->input;
    char *end;
    long number;
    switch (key) {
    case ARGP_KEY_INIT: state->child_inputs[0] = request->remote; return 0;
    case 'f': request->content.file = text; return 0;
    case 'w': return patience_parse(&request->patience, "wait", text);
    case KEY_PRIORITY:
        number = strtol(text, &end, 10);
        if (!*text || *end || number < 0 || number > 999)
            return remote_usage("priority: '%s' is not a number from 0 to 999", text);
        request->priority = (int32_t)number;
        return 0;
    case ARGP_KEY_ARG:
        if (!request->what) return request->what = text, 0;
        if (!request->path) return request->path = text, remote_path(text);
        if (request->content.text)
            return remote_usage("'%s' is one word too many; data with blanks need quotes", text);
        request->content.text = text;
        return 0;
    case ARGP_KEY_END: return check(request);
    default: return ARGP_ERR_UNKNOWN;
    }
}

static int put(struct request *request) {
    struct remote *remote = request->remote;
    int error = cv_work_put(remote->client, request->path, request->content.data,
                            request->content.size, request->priority);
    return error ? remote_fail(remote, error, request->path) : EXIT_OK;
}

static int take_once(struct remote *remote, void *arg, int32_t ms) {
    struct request *request = arg;
    return cv_work_take(&request->work, remote->client, request->path, ms);
}

/* Printed before it is done: what cannot be printed is not lost. */
static int print(struct request *request, const void *data, size_t size) {
    if (request->remote->json)
        print_json(json_pack("{s:o, s:o}", "path", remote_json_name(request->path), "data",
                             remote_json_data(data, size)));
    else
        content_show(data, size);
    return fflush(stdout) == 0 ? 0
                               : remote_say(EXIT_SYSTEM,
                                            "the entry could not be written and goes "
                                            "back: %s",
                                            strerror(errno));
}

static int take(struct request *request) {
    struct remote *remote = request->remote;
    size_t size;
    int error =
        patience_wait(&request->patience, remote, "waiting for an entry", take_once, request);
    int status = patience_result(&request->patience, remote, error, request->path);
    if (status) return status;
    const void *data = cv_work_data(request->work, &size);
    if (request->command) {
        remote_export(remote);
        status = spawn_run(remote, request->command, data ? data : "", size, true);
    } else {
        status = print(request, data ? data : "", size);
    }
    error = status ? cv_work_put_back(request->work) : cv_work_done(request->work);
    if (error == CV_NO_SERVER || error == CV_CONNECTION_LOSS) cv_work_free(request->work);
    return error && !status ? remote_fail(remote, error, request->path) : status;
}

int queue_run(struct remote *remote, int argc, char **argv) {
    static const struct argp argp = {
        options, parse, "put PATH [DATA]\ntake PATH [-- COMMAND...]", doc, remote_children,
        NULL,    NULL};
    struct request request = {.remote = remote, .priority = 100};
    request.command = remote_command(&argc, argv);
    int status;
    if (!remote_parse(remote, &argp, 0, argc, argv, &request, &status)) return status;
    status = content_read(&request.content);
    if (!status) status = remote_connect(remote);
    if (!status) status = *request.what == 'p' ? put(&request) : take(&request);
    content_close(&request.content);
    return status;
}
