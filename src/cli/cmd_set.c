/* conclave set: writes the data of a node. */
#include "cli/client_commands.h"
#include "cli/content.h"

enum { KEY_VERSION = 256 };

static const struct argp_option options[] = {
    {"file", 'f', "FILE", 0, "Take the data from this file; -: from standard input", 0},
    {"version", KEY_VERSION, "NUMBER", 0,
     "Only if the node has this version, as 'conclave stat' shows it", 0},
    {0}};

static const char doc[] =
    "Writes the data of a node.\v"
    "The node must exist; 'conclave create' makes one.  With --version nothing is overwritten that "
    "was not seen: if somebody was faster, the exit status is 1.\n\n"
    "JSON: {path, stat}.\n\n" REMOTE_EXIT_STATUS "\n"
    "Examples:\n"
    "  conclave set /app/greeting 'hello, world'\n"
    "  conclave set /app/config --file config.yaml --version 7\n"
    "  gzip -c config.yaml | conclave set /app/config --file -\n";

struct request {
    struct remote *remote;
    char *path;
    struct content content;
    int32_t version;
};

static int parse(int key, char *text, struct argp_state *state) {
    struct request *request = state->input;
    switch (key) {
    case ARGP_KEY_INIT: state->child_inputs[0] = request->remote; return 0;
    case 'f': request->content.file = text; return 0;
    case KEY_VERSION: return remote_version(text, &request->version);
    case ARGP_KEY_ARG:
        if (!request->path) return request->path = text, remote_path(text);
        if (request->content.text)
            return remote_usage("'%s' is one word too many; data with blanks need quotes", text);
        request->content.text = text;
        return 0;
    case ARGP_KEY_END:
        if (!request->path) return remote_usage("which node? Give its PATH, and DATA");
        if (!request->content.text == !request->content.file)
            return remote_usage("give DATA, or --file (- is standard input)");
        return 0;
    default: return ARGP_ERR_UNKNOWN;
    }
}

static int set(struct request *request) {
    struct remote *remote = request->remote;
    struct cv_result *result = NULL;
    int status = content_read(&request->content);
    if (!status) status = remote_connect(remote);
    if (status) return status;
    struct cv_op op =
        cv_op_set(request->path, request->content.data, request->content.size, request->version);
    status = remote_do(remote, &op, &result);
    if (!status && remote->json)
        print_json(json_pack("{s:o, s:o}", "path", remote_json_name(request->path), "stat",
                             remote_json_stat(&result->stat)));
    cv_result_free(result);
    return status;
}

int set_run(struct remote *remote, int argc, char **argv) {
    static const struct argp argp = {options,         parse, "PATH [DATA]", doc,
                                     remote_children, NULL,  NULL};
    struct request request = {.remote = remote, .version = -1};
    int status;
    if (!remote_parse(remote, &argp, 0, argc, argv, &request, &status)) return status;
    status = set(&request);
    content_close(&request.content);
    return status;
}
