/* conclave unlock: takes a lock away from its holder. */
#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>

#include "cli/client_commands.h"
#include "cli/locks.h"

static const struct argp_option options[] = {
    {"force", 'f', NULL, 0, "Take the lock away from whoever holds it", 0},
    {"yes", 'y', NULL, 0, "Do not ask", 0},
    {0}};

static const char doc[] =
    "Takes a lock away from its holder, after showing who that is and asking.  The next in the "
    "queue gets it; whoever waits stays in the queue.\v"
    "A lock is released by its holder, or goes with its holder's session.  This is for a holder "
    "that lives but will never be done.  'conclave lock' notices and kills its command; a program "
    "that does not notice goes on, beside the next holder, unless the resource is fenced "
    "(docs/FENCING.md).\n\n"
    "JSON: {lock, removed: [...]}.\n\n" REMOTE_EXIT_STATUS "\n"
    "Examples:\n"
    "  conclave unlock --force report\n"
    "  conclave unlock --force --yes report\n";

struct request {
    struct remote *remote;
    const char *name;
    bool force, yes;
};

static int parse(int key, char *text, struct argp_state *state) {
    struct request *request = state->input;
    switch (key) {
    case ARGP_KEY_INIT: state->child_inputs[0] = request->remote; return 0;
    case 'f': request->force = true; return 0;
    case 'y': request->yes = true; return 0;
    case ARGP_KEY_ARG:
        if (request->name) return remote_usage("one lock at a time, not '%s' as well", text);
        request->name = text;
        return locks_check_name(text);
    case ARGP_KEY_END:
        if (!request->name) return remote_usage("which lock? Give its NAME");
        if (!request->force)
            return remote_usage("a lock is released by its holder; --force takes it away");
        return 0;
    default: return ARGP_ERR_UNKNOWN;
    }
}

/* Asks on a terminal.  Else somebody must have said yes before. */
static int ask(const struct request *request, const struct cv_contender *contenders, size_t count) {
    char answer[16];
    if (request->yes) return EXIT_OK;
    if (!isatty(STDIN_FILENO) || !isatty(STDERR_FILENO))
        return remote_say(EXIT_USAGE, "there is no terminal to ask on; --yes does it unasked");
    locks_print_one(request->name, contenders, count, NULL);
    fflush(stdout);
    fputs("Its holder may not notice, and go on.  Take the lock away? [y/N] ", stderr);
    if (fgets(answer, sizeof answer, stdin) && (answer[0] == 'y' || answer[0] == 'Y'))
        return EXIT_OK;
    return remote_say(EXIT_CONFLICT, "nothing was done");
}

/* Removes the node of one holder, and no other, whatever has happened meanwhile. */
static int take_away(struct request *request, const char *path, const struct cv_contender *holder) {
    char *node, who[700];
    if (asprintf(&node, "%s/%s", path, holder->node) < 0) return EXIT_SYSTEM;
    struct cv_op op = cv_op_delete(node, -1);
    int error = remote_call(request->remote, &op, NULL);
    int status = error && error != CV_NO_NODE ? remote_fail(request->remote, error, node) : EXIT_OK;
    if (!status && !request->remote->json)
        printf("%s with token %" PRId64 " %s\n", locks_who(holder, who, sizeof who), holder->token,
               error ? "has released it meanwhile" : "does not hold it any more");
    free(node);
    return status;
}

int unlock_run(struct remote *remote, int argc, char **argv) {
    static const struct argp argp = {options, parse, "NAME", doc, remote_children, NULL, NULL};
    struct request request = {.remote = remote};
    struct cv_contender *contenders = NULL;
    size_t count = 0, holders = 0;
    int status;
    if (!remote_parse(remote, &argp, 0, argc, argv, &request, &status)) return status;
    if ((status = remote_connect(remote))) return status;
    char *path = locks_path(request.name);
    int error = cv_lock_contenders(remote->client, path, &contenders, &count);
    if (error && error != CV_NO_NODE) status = remote_fail(remote, error, path);
    while (holders < count && contenders[holders].holds) holders++;
    if (!status && !holders)
        status = remote_say(EXIT_CONFLICT, "nobody holds the lock '%s'", request.name);
    if (!status) status = ask(&request, contenders, count);
    json_t *removed = json_array();
    for (size_t i = 0; i < holders && !status; i++) {
        status = take_away(&request, path, &contenders[i]);
        json_array_append_new(removed, locks_json(&contenders[i]));
    }
    if (!status && remote->json)
        remote_json_line(json_pack("{s:s, s:O}", "lock", request.name, "removed", removed));
    json_decref(removed);
    free(path);
    free(contenders);
    return status;
}
