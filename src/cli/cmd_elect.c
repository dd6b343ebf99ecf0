/* conclave elect: runs a command while it leads. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/parse.h"
#include "cli/health.h"
#include "cli/waiting.h"

enum { KEY_PRIORITY = 256, KEY_STABLE, KEY_HEALTHY, KEY_EVERY, KEY_CHANGE, KEY_KEEP, KEY_ONCE };

static const struct argp_option options[] = {
    {"priority", KEY_PRIORITY, "N", 0,
     "Who has the highest leads; a leader with a lower one hands over (default: 0)", 1},
    {"stable", KEY_STABLE, NULL, 0,
     "Do not hand over to a candidate with a higher priority while all is well", 1},
    {"healthy", KEY_HEALTHY, "COMMAND", 0,
     "For sh -c.  While it fails, or takes longer than the interval, do not stand, and hand over",
     1},
    {"healthy-every", KEY_EVERY, "TIME", 0,
     "The interval of that check, which fails if it takes longer (default: 5s)", 1},
    {"on-change", KEY_CHANGE, "COMMAND", 0,
     "For sh -c, whenever CONCLAVE_STATE has changed: leading, standing, lost, unhealthy; it "
     "belongs "
     "to the command, and a lead is handed on when it has ended as well",
     1},
    {"keep-running", KEY_KEEP, NULL, 0,
     "The command goes on when the lead is lost: SIGUSR1 says lost, SIGUSR2 says leading again", 1},
    {"once", KEY_ONCE, NULL, 0, "Do not stand again after the lead was lost", 1},
    {0}};

static const char doc[] =
    "Stands for election, and runs a command while it leads.\v"
    "The command is started when we lead, with CONCLAVE_TOKEN (a number that grows from leader to "
    "leader), CONCLAVE_LOCK (the name) and CONCLAVE_SERVER.  When it ends by itself, the lead is "
    "handed on and its exit status is ours.  When the lead has to be handed over, to a candidate "
    "with a higher priority, by 'conclave resign NAME' or because the check fails, the command "
    "gets SIGTERM, after --grace SIGKILL, and the next candidate leads when it is gone; then we "
    "stand again.  When the session cannot be renewed, all of that happens before the server can "
    "give the lead to another, as with 'conclave lock'.\n\n"
    "With --keep-running the command is started when we lead first, and then told by signals.  "
    "SIGUSR1 comes --grace before another can lead, so it has that long to stop what only a leader "
    "may do, unless a process of this program is stopped.  The file named by CONCLAVE_TOKEN_FILE "
    "has the token while we lead, and is empty "
    "otherwise; it is written before the signal.\n\n"
    "Examples:\n"
    "  conclave elect scheduler -- scheduler --foreground\n"
    "  conclave elect db --priority 10 --healthy 'pg_isready -q' -- promote-and-wait\n"
    "  conclave elect web --stable --on-change 'logger \"web: $CONCLAVE_STATE\"' -- serve\n\n"
    "Exit status: the command's, 128+N if signal N has ended it; 76 with --once, the lead was lost "
    "and the command killed; 72 the command ended by itself, but the lead had been lost before; 69 "
    "no server; 77 not allowed; 126 the command cannot be run; 127 it was not found; 64 wrong "
    "usage; 65 the server refused; 71 the system failed.\n";

struct request {
    struct run run;
    const char *name, *on_change;
    int32_t priority;
    bool stable, keep_running, once;
    struct health health;

    struct waiting waiting;
    struct cv_election *election;
    bool standing;    /* cv_election_stand was called, and not undone */
    bool leading;     /* the command has been told so */
    bool leaving;     /* it was told to end, because the lead must be handed over */
    bool renew;       /* the lead was lost: begin again, in a new session */
    bool started;     /* and its end has not been dealt with */
    const char *told; /* the state that on_change was told */
    int64_t leave_at; /* with --keep-running: when the lead is handed over */
    char token_file[64];
};

/* ---- The command line ---- */

static int parse_priority(const char *text, int32_t *to) {
    char *end;
    errno = 0;
    long value = strtol(text, &end, 10);
    if (errno || *end || end == text || value < -1000000 || value > 1000000)
        return remote_usage("priority: '%s' is not a number from -1000000 to 1000000", text);
    *to = (int32_t)value;
    return 0;
}

static int parse(int key, char *text, struct argp_state *state) {
    struct request *request = state->input;
    switch (key) {
    case ARGP_KEY_INIT: state->child_inputs[0] = &request->run; return 0;
    case KEY_PRIORITY: return parse_priority(text, &request->priority);
    case KEY_STABLE: request->stable = true; return 0;
    case KEY_HEALTHY: request->health.command = text; return 0;
    case KEY_EVERY:
        if (remote_duration("healthy-every", text, &request->health.every) != 0) return EINVAL;
        return request->health.every > 0 ? 0 : remote_usage("healthy-every: more than nothing");
    case KEY_CHANGE: request->on_change = text; return 0;
    case KEY_KEEP: request->keep_running = true; return 0;
    case KEY_ONCE: request->once = true; return 0;
    case ARGP_KEY_ARG: return run_set_election(&request->name, text);
    case ARGP_KEY_END:
        if (!request->name || !request->run.command)
            return remote_usage("give a NAME, and a command after '--'");
        if (request->run.remote.json)
            return remote_usage("json: what is printed is the command's; see 'conclave leader'");
        return 0;
    default: return ARGP_ERR_UNKNOWN;
    }
}

/* ---- Telling ---- */

static void tell_change(struct request *request, const char *state) {
    if (request->told && strcmp(request->told, state) == 0) return;
    request->told = state;
    waiting_end(&request->waiting);
    if (request->run.verbose) remote_say(0, "%s: %s", request->name, state);
    if (!request->on_change) return;
    run_export(&request->run, "CONCLAVE_STATE", state);
    health_start(&request->run, request->on_change);
}

static void write_token(struct request *request, const char *text) {
    FILE *file = *request->token_file ? fopen(request->token_file, "w") : NULL;
    if (!file) return;
    fputs(text, file);
    fclose(file);
}

static void make_token_file(struct request *request) {
    const char *directory = getenv("TMPDIR");
    snprintf(request->token_file, sizeof request->token_file, "%.40s/conclave-token-XXXXXX",
             directory && strlen(directory) < 40 ? directory : "/tmp");
    int file = mkstemp(request->token_file);
    if (file < 0) system_error("%s: %s", request->token_file, strerror(errno));
    close(file);
    run_export(&request->run, "CONCLAVE_TOKEN_FILE", request->token_file);
}

static void prepare_environment(struct request *request) {
    struct run *run = &request->run;
    remote_export(&run->remote);
    run_export(run, "CONCLAVE_LOCK", request->name);
    if (request->keep_running && !*request->token_file) make_token_file(request);
}

/* ---- Leading ---- */

static int64_t deadline(void *arg) {
    struct request *request = arg;
    return request->election ? cv_election_deadline(request->election) : 0;
}

static bool is_lost(const struct request *request) {
    return !request->election || cv_election_state(request->election) == CV_LEADERSHIP_LOST ||
           cv_election_state(request->election) == CV_NOT_STANDING;
}

/* 0, or the exit code. */
static int lead(struct request *request) {
    struct run *run = &request->run;
    char token[32];
    if (!run_has_time(run, deadline(request))) return 0; /* it will be lost, or renewed */
    snprintf(token, sizeof token, "%" PRId64, cv_election_token(request->election));
    request->leading = true;
    run_export(run, "CONCLAVE_TOKEN", token);
    tell_change(request, "leading");
    write_token(request, token);
    if (run->keeper->command) return keeper_tell(run->keeper, SIGUSR2), 0;
    if (keeper_start(run->keeper, run->command, run->environment) != 0) {
        request->leading = false;
        if (errno == ETIME) return 0; /* as above */
        return remote_say(EXIT_SYSTEM, "no process can be started: %s", strerror(errno));
    }
    request->started = true;
    return 0;
}

static void resign(struct request *request) {
    request->leading = request->leaving = request->standing = false;
    request->leave_at = LEASE_NONE;
    if (request->election) cv_election_resign(request->election);
}

/* The lead must be handed over: first the command has to end, or to know. */
static void leave(struct request *request) {
    struct run *run = &request->run;
    if (request->leaving) return;
    request->leaving = true;
    if (!request->keep_running) {
        keeper_end(run->keeper);
        return;
    }
    write_token(request, "");
    keeper_tell(run->keeper, SIGUSR1);
    request->leave_at = lease_now() + atomic_load(&run->keeper->lease->grace);
}

/* With --keep-running: told before another can lead. */
static void lose(struct request *request) {
    write_token(request, "");
    if (!request->leaving) keeper_tell(request->run.keeper, SIGUSR1);
    tell_change(request, "lost");
    request->leading = false;
    request->renew = true;
}

static void watch_lead(struct request *request) {
    struct run *run = &request->run;
    bool lost = is_lost(request);
    if (request->keep_running) {
        if (lost || !run_has_time(run, deadline(request)))
            lose(request);
        else if (lease_now() >= request->leave_at)
            resign(request);
    } else if (lost) {
        keeper_kill(run->keeper);
    }
    if (!request->leading) return;
    if (!request->health.well || cv_election_state(request->election) == CV_SHOULD_RESIGN)
        leave(request);
}

/* ---- Standing ---- */

static void changed(struct cv_election *election, enum cv_candidate_state state, void *arg) {
    (void)election, (void)state;
    keeper_wake(arg);
}

static int open_election(struct request *request) {
    struct run *run = &request->run;
    char path[NAME_PATH_SIZE];
    name_path(path, NAME_LEADERS, request->name);
    struct cv_election_options given = {
        .priority = request->priority,
        .stable = request->stable,
        .label = run->label,
        .on_change = changed,
        .arg = run->keeper,
    };
    int error = cv_election_open(&request->election, run->remote.client, path, &given);
    return error ? remote_fail(&run->remote, error, path) : 0;
}

/* We stand no more, without having said so.  0: try again; or the exit code. */
static int fell(struct request *request, int error) {
    request->standing = false;
    if (run_is_final(error)) {
        char path[NAME_PATH_SIZE];
        return remote_fail(&request->run.remote, error,
                           name_path(path, NAME_LEADERS, request->name));
    }
    return 0;
}

static int stand(struct request *request) {
    enum cv_candidate_state state = cv_election_state(request->election);
    if (request->standing && state == CV_NOT_STANDING) {
        int code = fell(request, cv_election_error(request->election));
        if (code) return code;
    } else if (request->standing && (!request->health.well || state == CV_LEADERSHIP_LOST)) {
        resign(request);
    } else if (request->standing && (state == CV_LEADING || state == CV_SHOULD_RESIGN)) {
        return lead(request);
    } else if (!request->standing && request->health.well) {
        request->standing = cv_election_stand(request->election) == CV_OK;
    }
    if (request->health.known)
        tell_change(request, request->health.well ? "standing" : "unhealthy");
    return 0;
}

/* What has become of the command: 0, or the exit code. */
static int ended(struct request *request, bool *over) {
    struct keeper *keeper = request->run.keeper;
    *over = true;
    request->started = false;
    if (keeper->alone) return 128 + SIGKILL;
    if (keeper->lost && keeper_was_killed(keeper)) {
        int code = remote_say(EXIT_LOST, "%s: the lead was lost, and the command was killed",
                              request->name);
        tell_change(request, "lost");
        *over = request->once;
        request->renew = true;
        return code;
    }
    int code = keeper_code(keeper);
    if (keeper->lost || (request->leading && !request->keep_running && is_lost(request)))
        return remote_say(
            EXIT_TOO_LATE,
            "%s: the lead had been lost before the command ended, with exit status %d",
            request->name, code);
    if (request->leaving && !keeper->asked && !request->keep_running) {
        *over = request->once;
        resign(request);
    }
    return code;
}

/* With --keep-running, the moment at which the command must be told unless the lease is renewed. */
static int64_t moment_to_tell(struct request *request) {
    const struct lease *lease = request->run.keeper->lease;
    return deadline(request) - atomic_load(&lease->margin) - atomic_load(&lease->grace);
}

/* Nothing tells when a lease is renewed, nor when what could not be started can be. */
static bool must_look_soon(struct request *request) {
    if (request->leading) return request->keep_running;
    if (!request->standing)
        return request->health.well && (!request->run.keeper->command || request->keep_running);
    return cv_election_deadline(request->election) != 0;
}

static int64_t next_look(struct request *request) {
    const struct run *run = &request->run;
    int64_t next = health_next(&request->health), look = LEASE_NONE;
    if (request->standing && !request->leading && !run->keeper->command)
        look = waiting_show(&request->waiting, request->name, 1);
    if (must_look_soon(request)) {
        int64_t soon = lease_now() + run->keeper->look_every;
        if (request->leading && moment_to_tell(request) < soon) soon = moment_to_tell(request);
        if (soon < look) look = soon;
    }
    if (request->leave_at < next) next = request->leave_at;
    return look < next ? look : next;
}

/* One session.  RUN_AGAIN: it has ended. */
static int campaign(struct request *request) {
    struct run *run = &request->run;
    struct keeper *keeper = run->keeper;
    for (;;) {
        int code = 0;
        bool over = false;
        health_look(&request->health, run);
        if (request->leading) watch_lead(request);
        if (request->renew) return RUN_AGAIN;
        if (!request->leading && (!keeper->command || request->keep_running)) code = stand(request);
        if (code) return code;
        if (cv_state(run->remote.client) == CV_EXPIRED && !request->leading) return RUN_AGAIN;
        code = run_wait(run, next_look(request));
        if (code) return code;
        if (request->started && !keeper->command) code = ended(request, &over);
        if (over) return code;
        if (request->renew) return RUN_AGAIN;
    }
}

static void child_ended(pid_t pid, int status, void *arg) {
    struct request *request = arg;
    health_ended(&request->health, pid, status);
    keeper_wake(request->run.keeper);
}

/* Without a connection the candidate goes with its session: to close it would wait for a server. */
static void close_session(struct request *request) {
    struct cv_client *client = request->run.remote.client;
    if (request->election && cv_state(client) == CV_CONNECTED) cv_election_close(request->election);
    request->election = NULL;
    request->standing = request->leading = request->leaving = request->renew = false;
    request->leave_at = LEASE_NONE;
    if (request->run.remote.client) cv_close(request->run.remote.client);
    request->run.remote.client = NULL;
}

/* The first server must be there; later ones may take their time. */
static int connect_again(struct request *request) {
    for (bool first = !request->told;;) {
        int code = run_connect(&request->run);
        if (code != RUN_AGAIN && (first || code != EXIT_NO_SERVER)) return code;
        close_session(request);
        if (request->started && !request->run.keeper->command)
            return keeper_code(request->run.keeper);
    }
}

static int keep(struct keeper *keeper, void *arg) {
    struct request *request = arg;
    int code = RUN_AGAIN;
    request->run.keeper = keeper;
    keeper->deadline = deadline;
    keeper->on_child = child_ended;
    keeper->arg = request;
    keeper->patient = request->keep_running;
    waiting_begin(&request->waiting, request->run.quiet, false);
    while (code == RUN_AGAIN) {
        code = connect_again(request);
        if (!code) prepare_environment(request);
        if (!code) code = open_election(request);
        if (!code) code = campaign(request);
        if (code != RUN_AGAIN) break;
        close_session(request);
    }
    waiting_end(&request->waiting);
    if (*request->token_file) unlink(request->token_file);
    close_session(request);
    remote_close(&request->run.remote);
    return code;
}

int cmd_elect(int argc, char **argv) {
    static const struct argp argp = {
        options, parse, "NAME -- COMMAND [ARGUMENT...]", doc, run_children, NULL, NULL};
    struct request request = {
        .run = RUN_DEFAULTS, .health = {.every = 5000}, .leave_at = LEASE_NONE};
    int status;
    exit_from_64();
    run_split(&request.run, &argc, argv);
    if (!remote_parse(&request.run.remote, &argp, 0, argc, argv, &request, &status)) return status;
    if ((status = run_check_command(&request.run))) return status;
    return guard(keep, &request, NULL, NULL);
}
