/* conclave rm: removes nodes. */
#include "cli/client_commands.h"
#include "cli/pipeline.h"
#include "cli/subtree.h"

enum { KEY_VERSION = 256 };

static const struct argp_option options[] = {
    {"recursive", 'r', NULL, 0, "Also all nodes below it", 0},
    {"version", KEY_VERSION, "NUMBER", 0,
     "Only if the node has this version, as 'conclave stat' shows it", 0},
    {0}};

static const char doc[] =
    "Removes a node.\v"
    "With -r the nodes below it go first, one by one, from the bottom up: what others see "
    "meanwhile is a tree that shrinks.  If somebody adds nodes in time, those and the nodes above "
    "them stay, and the exit status is 1.  For all or nothing see 'conclave multi'.\n\n"
    "JSON: {path, removed}.\n\n" REMOTE_EXIT_STATUS "\n"
    "Examples:\n"
    "  conclave rm /app/greeting\n"
    "  conclave rm /app/config --version 7\n"
    "  conclave rm -r /app\n";

struct request {
    struct remote *remote;
    char *path;
    int32_t version;
    bool recursive;
};

static int parse(int key, char *text, struct argp_state *state) {
    struct request *request = state->input;
    switch (key) {
    case ARGP_KEY_INIT: state->child_inputs[0] = request->remote; return 0;
    case 'r': request->recursive = true; return 0;
    case KEY_VERSION: return remote_version(text, &request->version);
    case ARGP_KEY_ARG:
        if (request->path) return remote_usage("one node at a time, not '%s' as well", text);
        request->path = text;
        return remote_path(text);
    case ARGP_KEY_END:
        if (!request->path) return remote_usage("which node? Give its PATH");
        if (strcmp(request->path, "/") == 0) return remote_usage("the root cannot be removed");
        if (request->recursive && request->version >= 0)
            return remote_usage("--version is for one node, and not with -r");
        return 0;
    default: return ARGP_ERR_UNKNOWN;
    }
}

/* ---- From the bottom up ---- */

struct removal {
    struct remote *remote;
    struct subtree tree;
    size_t removed;
    int status;
    progress_fn *progress;
};

static bool describe(void *arg, size_t index, struct cv_op *op) {
    struct removal *removal = arg;
    if (index >= removal->tree.count || removal->status) return false;
    *op = cv_op_delete(subtree_path(&removal->tree, removal->tree.count - 1 - index), -1);
    return true;
}

static void done(void *arg, size_t index, const struct cv_result *result) {
    struct removal *removal = arg;
    size_t all = removal->tree.count;
    if (result->error == CV_OK)
        removal->removed++;
    else if (result->error == CV_NOT_EMPTY && !removal->status)
        removal->status = remote_say(EXIT_CONFLICT, "%s: it got new children meanwhile",
                                     subtree_path(&removal->tree, all - 1 - index));
    else if (result->error != CV_NO_NODE && !removal->status)
        removal->status = remote_fail(removal->remote, result->error,
                                      subtree_path(&removal->tree, all - 1 - index));
    if (removal->progress && (index % 1000 == 0 || index + 1 == all))
        removal->progress(index + 1, all);
}

static int remove_all(struct request *request, size_t *removed) {
    struct removal removal = {.remote = request->remote, .progress = progress_bar()};
    int status = subtree_read(&removal.tree, request->remote, request->path, 0);
    if (!status) status = subtree_report(&removal.tree, request->remote);
    if (!status) {
        int error = pipeline_run(
            request->remote,
            &(struct pipeline){.describe = describe, .done = done, .arg = &removal, .again = true});
        status = removal.status;
        if (error && !status) status = remote_fail(request->remote, error, request->path);
    }
    *removed = removal.removed;
    subtree_close(&removal.tree);
    return status;
}

int rm_run(struct remote *remote, int argc, char **argv) {
    static const struct argp argp = {options, parse, "PATH", doc, remote_children, NULL, NULL};
    struct request request = {.remote = remote, .version = -1};
    size_t removed = 1;
    int status;
    if (!remote_parse(remote, &argp, 0, argc, argv, &request, &status)) return status;
    status = remote_connect(remote);
    if (status) return status;
    struct cv_op op = cv_op_delete(request.path, request.version);
    status = request.recursive ? remove_all(&request, &removed) : remote_do(remote, &op, NULL);
    if (!status && remote->json)
        print_json(json_pack("{s:o, s:I}", "path", remote_json_name(request.path), "removed",
                             (json_int_t)removed));
    return status;
}
