/* conclave once: of all machines that run the same cron job, one runs the command. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "base/parse.h"
#include "cli/once_record.h"
#include "cli/run.h"

enum { KEY_SLOT = 256, KEY_RETRY, KEY_KEEP, LOOKS = 20 };

static const struct argp_option options[] = {
    {"slot", KEY_SLOT, "NAME", 0, "Which of its runs this is, such as 2026-11-15T03:00", 1},
    {"retry", KEY_RETRY, NULL, 0,
     "Run it again if who ran it has died or was stopped before its end; all must say so", 1},
    {"keep", KEY_KEEP, "N", 0, "How many slots of NAME are remembered (default: 100)", 1},
    {0}};

static const char doc[] =
    "Runs a command once for each slot, on whichever machine comes first.\v"
    "The slot is claimed before the command is run, for good: at most one runs it.  The others "
    "exit with status 0 and say who did, when, and how it ended.  The oldest slots are forgotten "
    "when there are more than --keep.\n\n"
    "Without --retry a command whose machine dies is not run again for this slot.  With it, the "
    "claim is a lease, as that of 'conclave lock': when the session cannot be renewed the command "
    "is killed, and the next one that asks runs it again, also if a signal has ended this program. "
    " CONCLAVE_TOKEN grows with every run.\n\n"
    "Examples:\n"
    "  conclave once backup --slot \"$(date -u +%Y-%m-%dT%H:00)\" -- backup.sh\n"
    "  conclave once billing --slot \"$(date +%Y-%m)\" --retry -- bill-everybody\n\n"
    "Exit status: the command's, 128+N if signal N has ended it; 0 if another one runs or has run "
    "it; with --retry, 76 the claim was lost and the command killed, 72 the command ended by "
    "itself, "
    "but the claim had been lost before; 69 no server; 77 not allowed; 126 the command cannot be "
    "run; 127 it was not found; 64 wrong usage; 65 the server refused; 71 the system failed.\n";

struct request {
    struct run run;
    const char *name, *slot;
    bool retry;
    int keep;
    char folder[NAME_PATH_SIZE], path[2 * NAME_PATH_SIZE], runner[2 * NAME_PATH_SIZE + 32];
    struct once_record record; /* ours */
    int32_t version;           /* of the slot's node */
    int64_t token;
};

static int set_name(const char *what, const char *text, const char **to) {
    const char *problem = run_name_problem(NAME_ONCE, text);
    if (problem) return remote_usage("'%s' is no %s: %s", text, what, problem);
    if (*to) return remote_usage("one %s at a time, not '%s' as well", what, text);
    *to = text;
    return 0;
}

static int check(const struct request *request) {
    if (!request->name || !request->slot || !request->run.command)
        return remote_usage("give a NAME, a --slot, and a command after '--'");
    return 0;
}

static int parse(int key, char *text, struct argp_state *state) {
    struct request *request = state->input;
    uint64_t keep;
    switch (key) {
    case ARGP_KEY_INIT: state->child_inputs[0] = &request->run; return 0;
    case KEY_SLOT:
        if (strchr(text, '/')) return remote_usage("slot: '%s' has a slash", text);
        return set_name("slot", text, &request->slot);
    case KEY_RETRY: request->retry = true; return 0;
    case KEY_KEEP:
        if (parse_u64(text, &keep) != 0 || keep < 1 || keep > 100000)
            return remote_usage("keep: '%s' is not a number from 1 to 100000", text);
        request->keep = (int)keep;
        return 0;
    case ARGP_KEY_ARG: return set_name("name", text, &request->name);
    case ARGP_KEY_END: return check(request);
    default: return ARGP_ERR_UNKNOWN;
    }
}

/* ---- Claiming ---- */

static int claim(struct request *request, bool again) {
    char *text = once_record_write(&request->record);
    struct cv_result *result = NULL;
    struct cv_op ops[] = {
        again ? cv_op_set(request->path, text, strlen(text), request->version)
              : cv_op_create(request->path, text, strlen(text), CV_PERSISTENT),
        cv_op_create(request->runner, "", 0, CV_EPHEMERAL),
    };
    struct cv_op multi = cv_op_multi(ops, 2);
    int error = cv_call(request->run.remote.client, &multi, &result);
    if (!error && result) request->token = result->zxid;
    request->version = again ? request->version + 1 : 0;
    cv_result_free(result);
    free(text);
    return error;
}

static int say_who(struct request *request, const struct once_record *other, bool alive) {
    if (request->run.quiet) return EXIT_OK;
    if (request->run.remote.json) {
        json_t *report = once_record_json(other);
        json_object_set_new(report, "name", remote_json_name(request->name));
        json_object_set_new(report, "slot", remote_json_name(request->slot));
        json_object_set_new(report, "alive", json_boolean(alive));
        print_json(report);
        return EXIT_OK;
    }
    printf("%s %s ", request->name, request->slot);
    once_record_say(other, alive, stdout);
    putchar('\n');
    return EXIT_OK;
}

enum verdict { OURS, THEIRS, LOOK_AGAIN };

static bool is_unanswered(int error) {
    return error == CV_CONNECTION_LOSS || error == CV_SESSION_EXPIRED;
}

/* Opens a session, or another one if this is over: 0, or the exit code. */
static int connect_again(struct request *request) {
    struct remote *remote = &request->run.remote;
    int code = 0;
    while (!code && (!remote->client || cv_state(remote->client) == CV_EXPIRED)) {
        if (remote->client) cv_close(remote->client);
        remote->client = NULL;
        code = run_connect(&request->run);
        if (code == RUN_AGAIN) code = 0;
    }
    return code;
}

/* Whether the slot, which exists, is ours after all: by a claim whose answer was lost, or because
 * its runner is gone and it may be run again. */
static enum verdict look(struct request *request, int *code) {
    struct cv_client *client = request->run.remote.client;
    struct cv_result *result = NULL;
    struct cv_stat runner;
    struct once_record other;
    int seen = cv_exists(client, request->runner, &runner); /* before its end is noted */
    bool alive = seen == CV_OK;
    if (seen && seen != CV_NO_NODE) return LOOK_AGAIN; /* whether it lives is not known */
    int error = cv_get(client, request->path, &result);
    if (error) {
        cv_result_free(result);
        *code = error == CV_NO_NODE || is_unanswered(error)
                    ? 0
                    : remote_fail(&request->run.remote, error, request->path);
        return *code ? THEIRS : LOOK_AGAIN;
    }
    once_record_read(&other, result->data, result->size);
    request->version = result->stat.version;
    request->token = result->stat.mzxid;
    cv_result_free(result);
    /* Without --retry it is ours for good, whatever has become of the session. */
    if (strcmp(other.id, request->record.id) == 0 &&
        (!request->retry || (alive && runner.ephemeral_owner == cv_session_id(client))))
        return OURS;
    if (!other.ended && !alive && request->retry && other.retry) {
        error = claim(request, true);
        return error ? LOOK_AGAIN : OURS;
    }
    *code = say_who(request, &other, alive);
    return THEIRS;
}

/* THEIRS: with the exit code, which may be 0. */
static enum verdict compete(struct request *request, int *code) {
    struct run *run = &request->run;
    for (int i = 0; i < LOOKS; i++) {
        if ((*code = connect_again(request))) return THEIRS;
        int error = claim(request, false);
        if (!error) return OURS;
        if (error == CV_NO_NODE)
            error = cv_create_all(run->remote.client, request->folder, CV_PERSISTENT);
        enum verdict verdict = LOOK_AGAIN;
        if (error == CV_NODE_EXISTS || is_unanswered(error))
            verdict = look(request, code);
        else if (error) {
            *code = remote_fail(&run->remote, error, request->path);
            return THEIRS;
        }
        if (verdict != LOOK_AGAIN) return verdict;
    }
    *code = remote_fail(&run->remote, CV_CONNECTION_LOSS, request->path);
    return THEIRS;
}

/* ---- Afterwards ---- */

static int note_in_this_session(struct request *request, const char *text) {
    struct cv_op ops[] = {cv_op_set(request->path, text, strlen(text), request->version),
                          cv_op_delete(request->runner, -1)};
    struct cv_op multi = cv_op_multi(ops, 2);
    return cv_call(request->run.remote.client, &multi, NULL);
}

/* The session has ended meanwhile, but the claim is ours for good. */
static int note_in_another(struct request *request, const char *text) {
    struct remote *remote = &request->run.remote;
    if (connect_again(request) != 0) return CV_NO_SERVER;
    return cv_set(remote->client, request->path, text, strlen(text), request->version);
}

static int note(struct request *request) {
    char *text = once_record_write(&request->record);
    int error = note_in_this_session(request, text);
    if (error && !request->retry) error = note_in_another(request, text);
    free(text);
    return error;
}

static int finish(struct request *request) {
    struct run *run = &request->run;
    struct keeper *keeper = run->keeper;
    int code = keeper_code(keeper);
    if (keeper->lost && keeper_was_killed(keeper))
        return remote_say(EXIT_LOST,
                          "%s %s: no server has answered in time; the command was "
                          "killed, and another may run it",
                          request->name, request->slot);
    bool stopped = keeper->alone || (keeper->asked && code); /* before its end */
    if (request->retry && stopped) return code;              /* another runs it */
    request->record.ended = once_now();
    request->record.status = code;
    int error = note(request);
    if (error && request->retry && (keeper->lost || error != CV_CONNECTION_LOSS))
        return remote_say(EXIT_TOO_LATE,
                          "%s %s: the claim had been lost before the command ended, with exit "
                          "status %d; another may run it",
                          request->name, request->slot, code);
    if (error)
        remote_say(0, "%s %s: the command has ended, but that could not be noted: %s",
                   request->name, request->slot, cv_error_text(error));
    else
        once_prune(run->remote.client, request->folder, request->slot, request->keep);
    return code;
}

static int64_t deadline(void *arg) {
    struct request *request = arg;
    return request->retry ? cv_session_deadline(request->run.remote.client) : LEASE_NONE;
}

static int run_command(struct request *request) {
    struct run *run = &request->run;
    char token[32];
    snprintf(token, sizeof token, "%" PRId64, request->token);
    remote_export(&run->remote);
    run_export(run, "CONCLAVE_TOKEN", token);
    run_export(run, "CONCLAVE_LOCK", request->name);
    run_export(run, "CONCLAVE_SLOT", request->slot);
    if (keeper_start(run->keeper, run->command, run->environment) != 0)
        return errno == ETIME
                   ? remote_say(EXIT_LOST,
                                "%s %s: no server has answered in time; the command was "
                                "not run, and another may run it",
                                request->name, request->slot)
                   : remote_say(EXIT_SYSTEM, "no process can be started: %s", strerror(errno));
    while (keeper_next(run->keeper, LEASE_NONE) != KEEPER_ENDED)
        if (request->retry && cv_state(run->remote.client) == CV_EXPIRED) keeper_kill(run->keeper);
    return finish(request);
}

static int keep(struct keeper *keeper, void *arg) {
    struct request *request = arg;
    request->run.keeper = keeper;
    keeper->deadline = deadline;
    keeper->arg = request;
    int code = 0;
    if (compete(request, &code) == OURS) code = run_command(request);
    remote_close(&request->run.remote);
    return code;
}

int cmd_once(int argc, char **argv) {
    static const struct argp argp = {
        options, parse, "NAME --slot SLOT -- COMMAND [ARGUMENT...]", doc, run_children, NULL, NULL};
    struct request request = {.run = RUN_DEFAULTS, .keep = 100};
    int status;
    exit_from_64();
    run_split(&request.run, &argc, argv);
    if (!remote_parse(&request.run.remote, &argp, 0, argc, argv, &request, &status)) return status;
    if ((status = run_check_command(&request.run))) return status;
    name_path(request.folder, NAME_ONCE, request.name);
    snprintf(request.path, sizeof request.path, "%s/%s", request.folder, request.slot);
    snprintf(request.runner, sizeof request.runner, "%s/runner", request.path);
    once_record_begin(&request.record, request.run.label, request.retry);
    return guard(keep, &request, NULL, NULL);
}
