/* conclave leader: who leads. */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "cli/run.h"
#include "recipe/note.h"

enum { KEY_WATCH = 'w' };

static const struct argp_option options[] = {
    {"watch", KEY_WATCH, NULL, 0, "Go on, and print a line for each change", 1}, {0}};

static const char doc[] =
    "Says who leads an election ('conclave elect NAME').\v"
    "The line has label, host, process, since when, and the token; without a leader it is "
    "'nobody leads'.\n\n"
    "Examples:\n"
    "  conclave leader scheduler\n"
    "  conclave leader scheduler --json | jq -r .host\n"
    "  conclave leader scheduler --watch\n\n"
    "Exit status: 0 somebody leads; 1 nobody does; 2 wrong usage; 3 the system failed; 69 no "
    "server; 77 not allowed.\n";

struct request {
    struct run_election election; /* the first: its parser takes the rest of the command line */
    bool watch;
    char path[NAME_PATH_SIZE + sizeof "/leader"];
    int wake;
};

static int parse(int key, char *text, struct argp_state *state) {
    struct request *request = state->input;
    switch (key) {
    case KEY_WATCH: request->watch = true; return 0;
    default: return run_parse_election(key, text, state);
    }
}

static json_t *describe(const struct cv_result *result) {
    struct note note;
    json_t *report = json_object();
    json_object_set_new(report, "leads", json_boolean(result != NULL));
    if (!result) return report;
    note_read(&note, result->data, result->data ? result->size : 0);
    if (*note.label) json_object_set_new(report, "label", remote_json_name(note.label));
    json_object_set_new(report, "host", remote_json_name(note.host));
    json_object_set_new(report, "pid", json_integer(note.pid));
    json_object_set_new(report, "priority", json_integer(note.priority));
    json_object_set_new(report, "since", json_integer(result->stat.ctime));
    json_object_set_new(report, "token", json_integer(result->stat.czxid));
    return report;
}

static void put(const json_t *report, const char *key, const char *format) {
    const char *text = json_string_value(json_object_get(report, key));
    char shown[512];
    if (text && *text) printf(format, remote_name(shown, sizeof shown, text));
}

static void show(const struct request *request, json_t *report) {
    if (request->election.remote.json) {
        remote_json_line(report);
        return;
    }
    if (!json_is_true(json_object_get(report, "leads"))) {
        puts("nobody leads");
    } else {
        char since[64] = "?";
        struct tm parts;
        time_t seconds = (time_t)(json_integer_value(json_object_get(report, "since")) / 1000);
        if (gmtime_r(&seconds, &parts)) strftime(since, sizeof since, "%Y-%m-%dT%H:%M:%SZ", &parts);
        put(report, "label", "%s on ");
        put(report, "host", "%s ");
        printf("(pid %" PRId64 ") since %s, token %" PRId64 "\n",
               (int64_t)json_integer_value(json_object_get(report, "pid")), since,
               (int64_t)json_integer_value(json_object_get(report, "token")));
    }
    fflush(stdout);
    json_decref(report);
}

static void changed(enum cv_watch_type type, const char *path, void *arg) {
    (void)path;
    uint64_t one = type == CV_WATCH_LOST ? 1u << 16 : 1;
    ssize_t written = write(*(int *)arg, &one, sizeof one);
    (void)written;
}

/* Reads the leader's node with a watch on it, or on its coming. */
static int read_leader(struct request *request, struct cv_result **result) {
    struct cv_op get = cv_op_get(request->path), exists = cv_op_exists(request->path);
    if (request->watch) {
        get.watch = exists.watch = changed;
        get.watch_arg = exists.watch_arg = &request->wake;
    }
    for (;;) {
        int error = cv_call(request->election.remote.client, &get, result);
        if (error != CV_NO_NODE) return error;
        cv_result_free(*result);
        *result = NULL;
        error =
            request->watch ? cv_call(request->election.remote.client, &exists, NULL) : CV_NO_NODE;
        if (error) return error; /* else it has come in between */
    }
}

static int look(struct request *request, int64_t *shown) {
    struct cv_result *result = NULL;
    int error = read_leader(request, &result);
    if (error && error != CV_NO_NODE) {
        cv_result_free(result);
        return error;
    }
    int64_t token = error ? 0 : result->stat.czxid;
    if (token != *shown) show(request, describe(error ? NULL : result));
    *shown = token;
    cv_result_free(result);
    return error;
}

static int watch(struct request *request) {
    int64_t shown = -1;
    for (;;) {
        int error = look(request, &shown);
        if (error && error != CV_NO_NODE && error != CV_CONNECTION_LOSS)
            return remote_fail(&request->election.remote, error, request->path);
        uint64_t count = 0;
        struct pollfd file = {request->wake, POLLIN, 0};
        if (error != CV_CONNECTION_LOSS) poll(&file, 1, -1);
        if (read(request->wake, &count, sizeof count) > 0 && count >= 1u << 16)
            return remote_fail(&request->election.remote, CV_SESSION_EXPIRED, request->path);
    }
}

int cmd_leader(int argc, char **argv) {
    static const struct argp argp = {options, parse, "NAME", doc, remote_children, NULL, NULL};
    struct request request = {0};
    int status;
    int64_t shown = -1;
    if (!remote_parse(&request.election.remote, &argp, 0, argc, argv, &request, &status))
        return status;
    name_path(request.path, NAME_LEADERS, request.election.name);
    strcat(request.path, "/leader");
    request.wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    remote_open(&request.election.remote);
    if (request.watch) {
        status = watch(&request);
    } else {
        int error = look(&request, &shown);
        status = error && error != CV_NO_NODE
                     ? remote_fail(&request.election.remote, error, request.path)
                     : remote_exit_code(error);
    }
    remote_close(&request.election.remote);
    close(request.wake);
    return status;
}
