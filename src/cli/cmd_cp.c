/* conclave cp: copies nodes and files. */
#include <stdlib.h>

#include "cli/client_commands.h"
#include "cli/copy.h"

enum { KEY_FORCE = 256 };

static const struct argp_option options[] = {
    {"recursive", 'r', NULL, 0, "Also all nodes or files below it", 0},
    {"force", KEY_FORCE, NULL, 0,
     "Overwrite what is there; what is there and not in the source stays", 0},
    {0}};

static const char doc[] =
    "Copies nodes to files, files to nodes, or nodes to nodes, also to those of another server.\v"
    "':/PATH' is a node of --server; 'HOST:PORT:/PATH' one of another server, which sees no "
    "credentials; 'CONTEXT:/PATH' one of the server that 'conclave context' knows by that name, "
    "with its credentials; all else is a file ('./a:/b' too).  TO is the name of the copy itself, "
    "also if there is a directory of that name.\n\n"
    "As files, a node without children is a file, and one with children a directory, with its data "
    "in the file '%data'.  In names of files %25 is '%', and so on.  Between nodes ACLs are "
    "copied, "
    "too; from files, everybody may do everything with the new nodes.  Ephemeral nodes, and those "
    "below /zookeeper, are left out.  Each node or file is written as a whole, but not all of them "
    "at once.\n\n"
    "JSON: {copied, left_out}.\n\n" REMOTE_EXIT_STATUS "\n"
    "Examples:\n"
    "  conclave cp :/app/config config.yaml\n"
    "  conclave cp -r :/app backup\n"
    "  conclave cp -r --force backup :/app\n"
    "  conclave cp -r --server zk1:2181 :/app zk2:2181:/app\n"
    "  conclave cp -r prod:/app staging:/app\n";

struct request {
    struct remote *remote;
    struct copy copy;
    struct remote others[2]; /* servers that are named in FROM and TO */
    char *places[2];
    int count;
};

static int parse(int key, char *text, struct argp_state *state) {
    struct request *request = state->input;
    switch (key) {
    case ARGP_KEY_INIT: state->child_inputs[0] = request->remote; return 0;
    case 'r': request->copy.recursive = true; return 0;
    case KEY_FORCE: request->copy.force = true; return 0;
    case ARGP_KEY_ARG:
        if (request->count == 2) return remote_usage("FROM and TO, and not '%s' as well", text);
        request->places[request->count++] = text;
        return 0;
    case ARGP_KEY_END:
        return request->count == 2 ? 0 : remote_usage("give FROM and TO; a node is :/PATH");
    default: return ARGP_ERR_UNKNOWN;
    }
}

/* Which server, if any, and the path there. */
static int understand(struct request *request, int number, struct copy_place *place) {
    char *text = request->places[number], *at = strstr(text, ":/");
    *place = (struct copy_place){.path = text};
    if (!at || memchr(text, '/', (size_t)(at - text))) return 0;
    *at++ = 0;
    place->path = at;
    place->remote = request->remote;
    if (remote_path(at) != 0) return EXIT_USAGE;
    if (!*text) return 0;
    struct remote *other = &request->others[number];
    other->options = (struct cv_options){
        .flags = CV_NO_THREAD, .connect_timeout = request->remote->options.connect_timeout};
    if (strchr(text, ':'))
        other->settings[REMOTE_SERVER] = text, other->alone = true;
    else
        other->context = text;
    place->remote = other;
    return 0;
}

static bool is_below(const char *path, const char *top) {
    size_t size = strcmp(top, "/") == 0 ? 0 : strlen(top);
    return strncmp(path, top, size) == 0 && (path[size] == '/' || !path[size]);
}

static int prepare(struct request *request) {
    struct copy *copy = &request->copy;
    int status = understand(request, 0, &copy->from);
    if (!status) status = understand(request, 1, &copy->to);
    if (status) return status;
    if (!copy->from.remote && !copy->to.remote)
        return remote_say(EXIT_USAGE, "neither is a node, which is written as :/PATH");
    if (copy->from.remote && copy->from.remote == copy->to.remote && copy->recursive &&
        is_below(copy->to.path, copy->from.path))
        return remote_say(EXIT_USAGE, "'%s' cannot be copied into itself", copy->from.path);
    return 0;
}

/* The target is asked for when the source is known: that may take long. */
static int run(struct request *request) {
    struct copy *copy = &request->copy;
    int status = prepare(request);
    if (!status && copy->from.remote) status = remote_connect(copy->from.remote);
    if (!status) status = copy_list(copy);
    if (!status && copy->to.remote) status = remote_connect(copy->to.remote);
    if (!status) status = copy_check(copy);
    if (!status) status = copy_run(copy, progress_bar());
    if (status) return status;
    if (request->remote->json)
        print_json(json_pack("{s:I, s:I}", "copied", (json_int_t)copy->count, "left_out",
                             (json_int_t)copy->left_out));
    else if (copy->left_out)
        remote_say(0, "%zu ephemeral nodes were left out: they belong to sessions", copy->left_out);
    return EXIT_OK;
}

int cp_run(struct remote *remote, int argc, char **argv) {
    static const struct argp argp = {options, parse, "FROM TO", doc, remote_children, NULL, NULL};
    struct request *request = calloc(1, sizeof *request);
    int status = EXIT_SYSTEM;
    if (!request) return status;
    request->remote = remote;
    if (remote_parse(remote, &argp, 0, argc, argv, request, &status)) status = run(request);
    copy_close(&request->copy);
    for (int i = 0; i < 2; i++) remote_close(&request->others[i]);
    free(request);
    return status;
}
