/* conclave counter: a number that many can add to. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "cli/client_commands.h"

enum { KEY_ADD = 256 };

static const struct argp_option options[] = {
    {"add", KEY_ADD, "NUMBER", 0, "Add so much, which may be negative (--add=-1)", 0}, {0}};

static const char doc[] =
    "Prints a counter, or adds to it and prints its new value.\v"
    "A counter is a node with a decimal number as its data, as kazoo has them.  It is made by the "
    "first --add, and 0 before.  Nothing that anybody adds is lost, but if the connection breaks "
    "at the wrong "
    "moment nobody knows whether it was added: the exit status is 69 then.\n\n"
    "JSON: {path, value}.\n\n" REMOTE_EXIT_STATUS "\n"
    "Examples:\n"
    "  conclave counter /visits\n"
    "  conclave counter /visits --add 1\n"
    "  conclave counter /stock --add=-3\n";

struct request {
    struct remote *remote;
    char *path;
    int64_t amount;
    bool add;
};

static int parse(int key, char *text, struct argp_state *state) {
    struct request *request = state->input;
    char *end;
    switch (key) {
    case ARGP_KEY_INIT: state->child_inputs[0] = request->remote; return 0;
    case KEY_ADD:
        errno = 0;
        request->amount = strtoll(text, &end, 10);
        request->add = true;
        return *text && !*end && !errno ? 0 : remote_usage("add: '%s' is not a whole number", text);
    case ARGP_KEY_ARG:
        if (request->path) return remote_usage("one counter at a time, not '%s' as well", text);
        request->path = text;
        return remote_path(text);
    case ARGP_KEY_END: return request->path ? 0 : remote_usage("which counter? Give its PATH");
    default: return ARGP_ERR_UNKNOWN;
    }
}

int counter_run(struct remote *remote, int argc, char **argv) {
    static const struct argp argp = {options, parse, "PATH", doc, remote_children, NULL, NULL};
    struct request request = {.remote = remote};
    int64_t value = 0;
    int status;
    if (!remote_parse(remote, &argp, 0, argc, argv, &request, &status)) return status;
    status = remote_connect(remote);
    if (status) return status;
    int error = CV_OK;
    if (!request.add) error = cv_exists(remote->client, request.path, NULL);
    if (error == CV_NO_NODE)
        error = CV_OK; /* nobody has added to it, and looking does not make it */
    else if (!error)
        error = cv_counter_add(remote->client, request.path, request.amount, &value);
    if (error == CV_BAD_ARGUMENTS)
        return remote_say(EXIT_CONFLICT, "%s: its data are no number, or it would be too large",
                          request.path);
    if (error) return remote_fail(remote, error, request.path);
    if (remote->json)
        print_json(json_pack("{s:o, s:I}", "path", remote_json_name(request.path), "value",
                             (json_int_t)value));
    else
        printf("%" PRId64 "\n", value);
    return EXIT_OK;
}
