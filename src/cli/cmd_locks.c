/* conclave locks: who holds which lock, and who waits for it. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/parse.h"
#include "cli/client_commands.h"
#include "cli/locks.h"

enum { KEY_DEADLOCKS = 256, KEY_LIMIT, KEY_AFTER };

static const struct argp_option options[] = {
    {"watch", 'w', NULL, 0,
     "Go on, and show every change.  Learns from the holds that it sees how long waits will be", 0},
    {"deadlocks", KEY_DEADLOCKS, NULL, 0,
     "Show where sessions wait for each other in a circle, across all locks.  Exit status 1 if "
     "they do",
     0},
    {"limit", KEY_LIMIT, "N", 0, "At most so many locks", 0},
    {"after", KEY_AFTER, "NAME", 0, "Only locks that come after this one: the next page", 0},
    {0}};

static const char doc[] =
    "Lists the locks, in the order of their names: who holds each (label, host and process), the "
    "fencing token, since when, and how many wait.  With NAME, also those who wait, in their "
    "order.\v"
    "With --watch the wait of each place is estimated from the holds that were seen: an interval "
    "that should be right in 80 % of all cases, and how many were.  There is no estimate before "
    "five holds, and none for shared locks and slots.  On a terminal the picture is kept up to "
    "date; otherwise each change is a line.\n\n"
    "A lock comes before those in it (deploy, deploy/prod), and these before the next.  Servers "
    "give the names of all locks in a folder at once; whatever else is asked is asked for a page "
    "at "
    "a time, so a million locks can be listed, or looked at page by page with --limit and "
    "--after.\n"
    "\n"
    "A circle of --deadlocks is one of sessions: if a client waits in one thread and goes on in "
    "another, it is none.  A 'conclave lock' whose command waits in another 'conclave lock' waits "
    "for that one.  Waits for slots are left out, because any of several holders can end them.\n\n"
    "JSON: an object for each lock in a line, {lock, holders: [...], waiting}; with NAME {lock, "
    "holders: [...], queue: [...]}; with --watch {event, lock, ...} for each change; with "
    "--deadlocks {circle: [{waiter, lock, waits_for}, ...]} for each circle, where lock is null if "
    "one waits for what its command has started.\n\n" REMOTE_EXIT_STATUS "\n"
    "Examples:\n"
    "  conclave locks\n"
    "  conclave locks report\n"
    "  conclave locks --watch\n"
    "  conclave locks --deadlocks\n"
    "  conclave locks --limit 100 --after report --json\n";

struct request {
    struct remote *remote;
    const char *name, *after;
    bool watch, deadlocks;
    uint64_t limit;
};

static int parse(int key, char *text, struct argp_state *state) {
    struct request *request = state->input;
    switch (key) {
    case ARGP_KEY_INIT: state->child_inputs[0] = request->remote; return 0;
    case 'w': request->watch = true; return 0;
    case KEY_DEADLOCKS: request->deadlocks = true; return 0;
    case KEY_AFTER: request->after = text; return 0;
    case KEY_LIMIT:
        if (parse_u64(text, &request->limit) != 0 || !request->limit)
            return remote_usage("limit: '%s' is not a number of locks", text);
        return 0;
    case ARGP_KEY_ARG:
        if (request->name) return remote_usage("one lock at a time, not '%s' as well", text);
        request->name = text;
        return locks_check_name(text);
    case ARGP_KEY_END:
        if (request->deadlocks && (request->name || request->watch))
            return remote_usage("--deadlocks looks at all locks, once");
        return 0;
    default: return ARGP_ERR_UNKNOWN;
    }
}

static void print_row(const struct locks_row *row) {
    char who[700], moment[64], name[600];
    remote_name(name, sizeof name, row->name);
    if (row->error == CV_NO_AUTH)
        printf("%-24s %-32s %12s %19s %7s\n", name, "(not allowed to look)", "?", "?", "?");
    else if (!row->holder_count)
        printf("%-24s %-32s %12s %19s %7zu\n", name, "-", "-", "-", row->waiting);
    for (size_t i = 0; i < row->holder_count; i++)
        printf("%-24s %-32s %12" PRId64 " %19s %7zu\n", i ? "" : name,
               locks_who(&row->holders[i], who, sizeof who), row->holders[i].token,
               locks_moment(row->holders[i].held_since, moment, sizeof moment), row->waiting);
}

static void print_row_json(const struct locks_row *row) {
    json_t *object = json_object(), *holders = json_array();
    for (size_t i = 0; i < row->holder_count; i++)
        json_array_append_new(holders, locks_json(&row->holders[i]));
    json_object_set_new(object, "lock", remote_json_name(row->name));
    json_object_set_new(object, "holders", holders);
    json_object_set_new(object, "waiting", json_integer((json_int_t)row->waiting));
    if (row->error == CV_NO_AUTH) json_object_set_new(object, "refused", json_true());
    remote_json_line(object);
}

struct list {
    const struct request *request;
    uint64_t shown;
    char last[4 * NAME_MAX_BYTES + 1]; /* as it is shown */
};

enum { ENOUGH = -1 };

static int show_row(const struct locks_row *row, void *arg) {
    struct list *list = arg;
    const struct request *request = list->request;
    if (request->limit && list->shown == request->limit) {
        if (!request->remote->json) printf("there are more: --after %s\n", list->last);
        return ENOUGH;
    }
    if (request->remote->json) {
        print_row_json(row);
    } else {
        if (!list->shown)
            printf("%-24s %-32s %12s %19s %7s\n", "LOCK", "HELD BY", "TOKEN", "SINCE", "WAITING");
        print_row(row);
    }
    list->shown++;
    remote_name(list->last, sizeof list->last, row->name);
    return 0;
}

static int list(const struct request *request) {
    struct list list = {.request = request};
    struct locks_walk walk = {.remote = request->remote,
                              .after = request->after,
                              .page = request->limit < LOCKS_PAGE ? request->limit : LOCKS_PAGE,
                              .each = show_row,
                              .arg = &list};
    int status = locks_walk(&walk);
    return status == ENOUGH ? EXIT_OK : status;
}

static int show_one(struct request *request) {
    struct cv_contender *contenders;
    size_t count;
    char *path = locks_path(request->name);
    int error = cv_lock_contenders(request->remote->client, path, &contenders, &count);
    int status = error == CV_NO_NODE
                     ? remote_say(EXIT_CONFLICT, "there is no lock '%s'", request->name)
                 : error ? remote_fail(request->remote, error, path)
                         : EXIT_OK;
    if (!status && request->remote->json)
        remote_json_line(locks_json_one(request->name, contenders, count, NULL));
    else if (!status)
        locks_print_one(request->name, contenders, count, NULL);
    free(path);
    free(contenders);
    return status;
}

int locks_run(struct remote *remote, int argc, char **argv) {
    static const struct argp argp = {options, parse, "[NAME]", doc, remote_children, NULL, NULL};
    struct request request = {.remote = remote};
    int status;
    if (!remote_parse(remote, &argp, 0, argc, argv, &request, &status)) return status;
    if ((status = remote_connect(remote))) return status;
    if (request.watch)
        return locks_watch(remote, request.name, request.limit ? request.limit : LOCKS_PAGE);
    if (request.name) return show_one(&request);
    return request.deadlocks ? locks_deadlocks(remote) : list(&request);
}
