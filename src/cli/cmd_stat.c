/* conclave stat: what a server knows of a node beside its data. */
#include <inttypes.h>
#include <time.h>

#include "cli/client_commands.h"

static const char doc[] =
    "Shows what a server knows of a node beside its data.\v"
    "Containers and nodes with a TTL look like others: servers do not tell.\n\n"
    "JSON: {path, stat}, with the names of ZooKeeper's documents in small "
    "letters.\n\n" REMOTE_EXIT_STATUS "\n"
    "Examples:\n"
    "  conclave stat /app/config\n"
    "  conclave stat /app/config --json | jq .stat.version\n";

struct request {
    struct remote *remote;
    char *path;
};

static int parse(int key, char *text, struct argp_state *state) {
    struct request *request = state->input;
    switch (key) {
    case ARGP_KEY_INIT: state->child_inputs[0] = request->remote; return 0;
    case ARGP_KEY_ARG:
        if (request->path) return remote_usage("one node at a time, not '%s' as well", text);
        request->path = text;
        return remote_path(text);
    case ARGP_KEY_END: return request->path ? 0 : remote_usage("which node? Give its PATH");
    default: return ARGP_ERR_UNKNOWN;
    }
}

static void print_change(const char *what, int64_t ms, int64_t zxid) {
    char when[48] = "-";
    time_t seconds = (time_t)(ms / 1000);
    struct tm tm;
    if (localtime_r(&seconds, &tm)) strftime(when, sizeof when, "%Y-%m-%d %H:%M:%S %z", &tm);
    printf("%-10s %s, zxid 0x%" PRIx64 "\n", what, when, (uint64_t)zxid);
}

static void print(const struct cv_stat *stat) {
    print_change("created", stat->ctime, stat->czxid);
    print_change("written", stat->mtime, stat->mzxid);
    printf("version    %" PRId32 " (of the ACL: %" PRId32 ")\n", stat->version, stat->aversion);
    printf("data       %" PRId32 " bytes\n", stat->data_length);
    printf("children   %" PRId32 ", changed %" PRId32 " times, zxid 0x%" PRIx64 "\n",
           stat->children, stat->cversion, (uint64_t)stat->pzxid);
    if (stat->ephemeral_owner)
        printf("ephemeral  of session 0x%" PRIx64 "\n", (uint64_t)stat->ephemeral_owner);
}

int stat_run(struct remote *remote, int argc, char **argv) {
    static const struct argp argp = {NULL, parse, "PATH", doc, remote_children, NULL, NULL};
    struct request request = {.remote = remote};
    struct cv_result *result = NULL;
    int status;
    if (!remote_parse(remote, &argp, 0, argc, argv, &request, &status)) return status;
    status = remote_connect(remote);
    if (status) return status;
    struct cv_op op = cv_op_exists(request.path);
    status = remote_do(remote, &op, &result);
    if (status) return status;
    if (remote->json)
        print_json(json_pack("{s:o, s:o}", "path", remote_json_name(request.path), "stat",
                             remote_json_stat(&result->stat)));
    else
        print(&result->stat);
    cv_result_free(result);
    return EXIT_OK;
}
