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
    "Servers give the names of all locks at once; whatever else is asked is asked for a page at a "
    "time, so a million locks can be listed, or looked at page by page with --limit and --after.\n"
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
    if (!row->holder_count)
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
    remote_json_line(object);
}

/* Names in their order: the first that comes after this one. */
static size_t place_after(const struct locks_names *names, const char *after) {
    size_t low = 0, high = names->count;
    while (after && low < high) {
        size_t middle = low + (high - low) / 2;
        if (strcmp(names->at[middle], after) <= 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static int list(struct request *request, const struct locks_names *names) {
    size_t at = place_after(names, request->after), end = names->count;
    if (request->limit && request->limit < end - at) end = at + request->limit;
    if (!request->remote->json && at < end)
        printf("%-24s %-32s %12s %19s %7s\n", "LOCK", "HELD BY", "TOKEN", "SINCE", "WAITING");
    while (at < end) {
        size_t size = end - at < LOCKS_PAGE ? end - at : LOCKS_PAGE;
        struct locks_row *rows;
        int status = locks_look(request->remote, names->at + at, size, &rows);
        for (size_t i = 0; i < size && !status; i++) {
            if (rows[i].error == CV_NO_NODE) continue;
            if (request->remote->json)
                print_row_json(&rows[i]);
            else
                print_row(&rows[i]);
        }
        locks_free(rows, size);
        if (status) return status;
        at += size;
    }
    if (end < names->count && end && !request->remote->json) {
        char name[600];
        printf("%zu more: --after %s\n", names->count - end,
               remote_name(name, sizeof name, names->at[end - 1]));
    }
    return EXIT_OK;
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
    struct locks_names names;
    int status;
    if (!remote_parse(remote, &argp, 0, argc, argv, &request, &status)) return status;
    if ((status = remote_connect(remote))) return status;
    if (request.watch)
        return locks_watch(remote, request.name, request.limit ? request.limit : LOCKS_PAGE);
    if (request.name) return show_one(&request);
    if ((status = locks_names(remote, &names))) return status;
    status = request.deadlocks ? locks_deadlocks(remote, &names) : list(&request, &names);
    locks_names_free(&names);
    return status;
}
