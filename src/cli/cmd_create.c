/* conclave create: makes a node. */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "cli/acl_text.h"
#include "cli/client_commands.h"
#include "cli/content.h"
#include "cli/spawn.h"

enum { KEY_TTL = 256, KEY_CONTAINER, KEY_ACL };

static const struct argp_option options[] = {
    {"ephemeral", 'e', NULL, 0, "It ends with the session, that is, with this command", 0},
    {"sequential", 's', NULL, 0, "Add a number to its name, which grows in each parent", 0},
    {"ttl", KEY_TTL, "TIME", 0, "Removed when nobody has written it, nor its children, for so long",
     0},
    {"container", KEY_CONTAINER, NULL, 0, "Removed some time after its last child", 0},
    {"acl", KEY_ACL, "ACL", 0, "Who may do what (default: world:anyone:cdrwa)", 0},
    {"parents", 'p', NULL, 0, "Also make the nodes above it that are missing", 0},
    {"file", 'f', "FILE", 0, "Take the data from this file; -: from standard input", 0},
    {0}};

static const char doc[] =
    "Makes a node, and prints its path.\v"
    "An ephemeral node lives as long as the session that made it.  With -e the session is held "
    "while the COMMAND after -- runs, whose exit status is passed on, or until the program is "
    "interrupted; in 'conclave shell', until that ends.  If the session is lost meanwhile, the "
    "COMMAND gets SIGTERM and the exit status is 69.  (To run a command while nobody else does, "
    "see 'conclave lock'.)\n\n" ACL_HELP "\n"
    "JSON: {path, stat}; stat is null if the server does not tell.\n\n" REMOTE_EXIT_STATUS "\n"
    "Examples:\n"
    "  conclave create /app/greeting 'hello, world'\n"
    "  conclave create -p /app/config/eu --file eu.yaml --acl auth::cdrwa,world:anyone:r\n"
    "  conclave create -s /app/job- 'run it'\n"
    "  conclave create -e /workers/$(hostname) -- ./worker\n";

struct request {
    struct remote *remote;
    char *path, **command;
    struct content content;
    struct acl_text acl;
    int32_t flags;
    int64_t ttl;
    bool parents;
};

/* The name of a sequential node may be its number alone. */
static int check_path(char *path, bool sequential) {
    size_t size = strlen(path);
    if (!sequential || size < 2 || path[size - 1] != '/') return remote_path(path);
    path[size - 1] = 0;
    const char *problem = remote_path_problem(path);
    path[size - 1] = '/';
    return problem ? remote_usage("'%s': %s", path, problem) : 0;
}

static int check(struct request *request) {
    if (!request->path) return remote_usage("which node? Give its PATH");
    if (request->content.text && request->content.file)
        return remote_usage("either DATA or --file, not both");
    if (request->ttl && request->flags & (CV_EPHEMERAL | CV_CONTAINER))
        return remote_usage("--ttl is for nodes that are neither ephemeral nor containers");
    if (request->flags & CV_CONTAINER && request->flags != CV_CONTAINER)
        return remote_usage("a container is neither ephemeral nor sequential");
    if (request->command && !(request->flags & CV_EPHEMERAL))
        return remote_usage("a COMMAND is for ephemeral nodes (-e), which live as long as it");
    if (request->command && !*request->command) return remote_usage("which COMMAND after --?");
    return check_path(request->path, request->flags & CV_SEQUENTIAL);
}

static int parse(int key, char *text, struct argp_state *state) {
    struct request *request = state->input;
    switch (key) {
    case ARGP_KEY_INIT: state->child_inputs[0] = request->remote; return 0;
    case 'e': request->flags |= CV_EPHEMERAL; return 0;
    case 's': request->flags |= CV_SEQUENTIAL; return 0;
    case 'p': request->parents = true; return 0;
    case 'f': request->content.file = text; return 0;
    case KEY_CONTAINER: request->flags |= CV_CONTAINER; return 0;
    case KEY_TTL:
        if (remote_duration("ttl", text, &request->ttl) != 0) return EINVAL;
        return request->ttl > 0 ? 0 : remote_usage("ttl: it must be longer than 0");
    case KEY_ACL:
        if (request->acl.copy) return remote_usage("acl: once; several are parted by commas");
        return acl_parse(&request->acl, text);
    case ARGP_KEY_ARG:
        if (!request->path) return request->path = text, 0;
        if (request->content.text)
            return remote_usage("'%s' is one word too many; data with blanks need quotes", text);
        request->content.text = text;
        return 0;
    case ARGP_KEY_END: return check(request);
    default: return ARGP_ERR_UNKNOWN;
    }
}

/* While an ephemeral node is there. */
static int stay(struct request *request, const char *path) {
    struct remote *remote = request->remote;
    remote_catch_signals(remote);
    if (request->command) {
        setenv("CONCLAVE_PATH", path, 1);
        remote_export(remote);
        return spawn_run(remote, request->command, NULL, 0, true);
    }
    if (remote->shared) return 0;
    if (isatty(STDERR_FILENO))
        remote_say(0, "the node ends with this command, which waits until it is interrupted "
                      "(Ctrl-C); 'conclave create -e PATH -- COMMAND' waits for another command");
    fflush(stdout);
    int signal = 0;
    while (!signal) {
        enum cv_state state = cv_state(remote->client);
        if (state == CV_EXPIRED || state == CV_REFUSED)
            return remote_fail(remote, CV_SESSION_EXPIRED, path);
        signal = remote_wait(remote, CV_FOREVER);
    }
    return EXIT_OK;
}

static int make_parents(struct request *request) {
    char *end = strrchr(request->path, '/');
    if (!request->parents || end == request->path) return 0;
    *end = 0;
    int error = cv_create_all(request->remote->client, request->path, CV_PERSISTENT);
    int status = error ? remote_fail(request->remote, error, request->path) : 0;
    *end = '/';
    return status;
}

static int create(struct request *request) {
    struct remote *remote = request->remote;
    struct cv_result *result = NULL;
    int status = content_read(&request->content);
    if (!status) status = remote_connect(remote);
    if (!status) status = make_parents(request);
    if (status) return status;
    struct cv_op op =
        cv_op_create(request->path, request->content.data, request->content.size, request->flags);
    op.ttl = request->ttl;
    if (request->acl.count) op.acl = request->acl.entries, op.acl_count = request->acl.count;
    int error = remote_call(remote, &op, &result);
    if (error == CV_NO_NODE)
        status = remote_say(EXIT_CONFLICT,
                            "%s: there is no node above it; -p makes those that are missing",
                            request->path);
    else if (error)
        status = remote_fail(remote, error, request->path);
    else if (remote->json)
        print_json(json_pack("{s:o, s:o}", "path", remote_json_name(result->path), "stat",
                             result->has_stat ? remote_json_stat(&result->stat) : json_null()));
    else {
        remote_put(stdout, result->path, strlen(result->path), REMOTE_NAME);
        putchar('\n');
    }
    if (!status && request->flags & CV_EPHEMERAL) status = stay(request, result->path);
    cv_result_free(result);
    return status;
}

int create_run(struct remote *remote, int argc, char **argv) {
    static const struct argp argp = {
        options, parse, "PATH [DATA]\nPATH -e -- COMMAND...", doc, remote_children, NULL, NULL};
    struct request request = {.remote = remote};
    request.command = remote_command(&argc, argv);
    int status;
    if (remote_parse(remote, &argp, 0, argc, argv, &request, &status)) status = create(&request);
    content_close(&request.content);
    acl_close(&request.acl);
    return status;
}
