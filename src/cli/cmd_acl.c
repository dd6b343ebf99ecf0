/* conclave acl: who may do what with a node. */
#include "cli/acl_text.h"
#include "cli/client_commands.h"

enum { KEY_VERSION = 256 };

static const struct argp_option options[] = {
    {"version", KEY_VERSION, "NUMBER", 0,
     "Only if the ACL has this version, as 'conclave stat' shows it", 0},
    {0}};

static const char doc[] =
    "Shows who may do what with a node, or changes it.\v"
    "What is printed can be given as ACL, lines joined by commas.  ACLs are not "
    "inherited.\n\n" ACL_HELP "\n"
    "JSON: {path, acl: [{scheme, id, permissions}], version}.\n\n" REMOTE_EXIT_STATUS "\n"
    "Examples:\n"
    "  conclave acl /app\n"
    "  conclave acl /app world:anyone:r,digest:ann:k3yoHQ0kX0p6q7eqmvHpV4iTgzs=:cdrwa\n"
    "  CONCLAVE_AUTH=ann:secret conclave acl /app auth::cdrwa\n";

struct request {
    struct remote *remote;
    char *path;
    struct acl_text acl;
    int32_t version;
};

static int parse(int key, char *text, struct argp_state *state) {
    struct request *request = state->input;
    switch (key) {
    case ARGP_KEY_INIT: state->child_inputs[0] = request->remote; return 0;
    case KEY_VERSION: return remote_version(text, &request->version);
    case ARGP_KEY_ARG:
        if (!request->path) return request->path = text, remote_path(text);
        if (request->acl.copy) return remote_usage("one ACL; several entries are parted by commas");
        return acl_parse(&request->acl, text);
    case ARGP_KEY_END: return request->path ? 0 : remote_usage("which node? Give its PATH");
    default: return ARGP_ERR_UNKNOWN;
    }
}

static void print(struct request *request, const struct cv_result *result) {
    char permissions[8];
    json_t *array = json_array();
    for (size_t i = 0; i < result->acl_count; i++) {
        const struct cv_acl *acl = &result->acl[i];
        acl_permissions(acl->permissions, permissions);
        if (request->remote->json) {
            json_array_append_new(
                array, json_pack("{s:o, s:o, s:s}", "scheme", remote_json_name(acl->scheme), "id",
                                 remote_json_name(acl->id), "permissions", permissions));
            continue;
        }
        remote_put(stdout, acl->scheme, strlen(acl->scheme), REMOTE_NAME);
        putchar(':');
        remote_put(stdout, acl->id, strlen(acl->id), REMOTE_NAME);
        printf(":%s\n", permissions);
    }
    if (request->remote->json)
        print_json(json_pack("{s:o, s:O, s:i}", "path", remote_json_name(request->path), "acl",
                             array, "version", result->stat.aversion));
    json_decref(array);
}

static int run(struct request *request) {
    struct remote *remote = request->remote;
    struct cv_result *result = NULL;
    int status = remote_connect(remote);
    if (status) return status;
    struct cv_op set = {.type = CV_OP_SET_ACL,
                        .path = request->path,
                        .version = request->version,
                        .acl = request->acl.entries,
                        .acl_count = request->acl.count};
    struct cv_op get = {.type = CV_OP_GET_ACL, .path = request->path};
    if (request->acl.count) return remote_do(remote, &set, NULL);
    status = remote_do(remote, &get, &result);
    if (!status) print(request, result);
    cv_result_free(result);
    return status;
}

int acl_run(struct remote *remote, int argc, char **argv) {
    static const struct argp argp = {options,         parse, "PATH [ACL]", doc,
                                     remote_children, NULL,  NULL};
    struct request request = {.remote = remote, .version = -1};
    int status;
    if (remote_parse(remote, &argp, 0, argc, argv, &request, &status)) status = run(&request);
    acl_close(&request.acl);
    return status;
}
