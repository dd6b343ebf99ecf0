/* conclave lock: runs a command while it holds a lock, or several. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/parse.h"
#include "cli/run.h"
#include "cli/session_file.h"
#include "cli/waiting.h"
#include "recipe/outer.h"

/* The variable that tells wrappers inside this one whose command they are. */
#define SESSIONS "CONCLAVE_SESSIONS"

enum {
    KEY_SLOTS = 256,
    KEY_FD,
    KEY_HOLD,
    KEY_SESSION,
    KEY_PRINT_TOKEN,
    KEY_RECIPE,
    NAMES_MAX = 64
};

static const struct argp_option options[] = {
    {"nonblock", 'n', NULL, 0, "Do not wait: exit if somebody else holds it", 1},
    {"wait", 'w', "TIME", 0, "Wait no longer than this", 1},
    {"conflict-exit-code", 'E', "CODE", 0, "Exit status with -n or -w if it was not free (75)", 1},
    {"shared", 's', NULL, 0, "A shared lock: excludes only exclusive ones", 1},
    {"slots", KEY_SLOTS, "N", 0, "A semaphore: so many may hold it at once; all must say the same",
     1},
    {"fd", KEY_FD, "N", 0, "Hold it for the calling shell until its descriptor N is closed", 1},
    {"print-token", KEY_PRINT_TOKEN, NULL, 0, "With --fd: print the fencing token", 1},
    {"hold", KEY_HOLD, NULL, 0,
     "Run no command: print 'held TOKEN', and hold it until standard input ends", 1},
    {"recipe", KEY_RECIPE, "NAME", 0,
     "Whose clients can share the lock: curator (also go-zookeeper's), curator-rw, curator-latch, "
     "kazoo, or any (curator)",
     1},
    {"session", KEY_SESSION, "FILE", 0,
     "Keep the session in FILE (and FILE.lock); with that, a wrapper that was ended by a signal "
     "takes up its lock "
     "again",
     1},
    {0}};

static const char doc[] =
    "Waits for a lock, runs a command while it holds it, and exits with the command's status.\v"
    "Grants are first in, first out.  The command gets CONCLAVE_LOCK (the name), CONCLAVE_TOKEN (a "
    "number that grows with every grant of that lock; whoever keeps the resource refuses a smaller "
    "one than it has seen) and CONCLAVE_SERVER.  With several NAMEs all of them are taken, always "
    "in the same order, or none; the two variables are those of the first, and CONCLAVE_TOKENS has "
    "NAME=TOKEN for each.  CONCLAVE_SESSIONS tells a 'conclave lock' within the command under "
    "which "
    "sessions it runs, for 'conclave locks --deadlocks'.\n\n"
    "No shell is in between; standard input passes through, and signals are forwarded.  The lock "
    "is released when the command and everything that it has started is gone, wherever that has "
    "gone to.  If the session cannot be renewed, the command gets SIGTERM, and after --grace "
    "SIGKILL, so that all is over before the server can give the lock to another, by the local "
    "clock and whether or not a server is reached.  Killing this program kills the command.  A "
    "command that was paused with all of this for longer than --ttl can be too late to notice; "
    "only the token excludes that.  What belongs to another user cannot be killed: 'sudo conclave "
    "lock', not 'conclave lock ... -- sudo'.\n\n"
    "A NAME may have slashes (deploy/prod).  One that begins with a slash is the path of the "
    "lock's "
    "node, which programs with other libraries may use at the same time; others are below "
    "/conclave/locks.  --recipe says which libraries: Curator's InterProcessMutex and "
    "go-zookeeper's Lock (curator); Curator's InterProcessReadWriteLock (curator-rw); its "
    "LeaderLatch (curator-latch); kazoo's Lock (kazoo).  These do not wait for each other, so the "
    "lock is refused while others compete for it by another recipe, except with 'any': only for "
    "those that are known to wait for Curator's, as kazoo's with extra_lock_patterns=['-lock-'].\n"
    "\n"
    "In a script, --fd takes the lock now and holds it until the descriptor is closed, also by "
    "the end of the script.  If the lock is lost, all who have the descriptor open are killed; one "
    "line says so unless standard error is a pipe.  For programs that talk to it, --hold prints "
    "'held' and the token of each NAME when it has the lock, and 'lost' before another can have "
    "it (exit status 76); nobody is killed.\n\n"
    "Examples:\n"
    "  conclave lock report -- make report\n"
    "  conclave lock -n nightly --label 'nightly backup' -- backup.sh || echo 'already running'\n"
    "  conclave lock -w 30s --slots 3 build -- make -j8\n"
    "  conclave lock accounts ledger -- transfer 100\n"
    "  exec 9>/dev/null; conclave lock report --fd 9 || exit; make report; exec 9>&-\n"
    "  coproc L { conclave lock --hold report; }; read -r _ token <&${L[0]}\n\n"
    "Exit status: the command's, 128+N if signal N has ended it; 75 (or -E) busy or timed out; "
    "76 the lock was lost and the command killed; 72 the command ended by itself, but the lock had "
    "been lost before; 69 no server; 77 not allowed; 126 the command cannot be run; 127 it was not "
    "found; 64 wrong usage; 65 the server refused; 71 the system failed.\n";

struct request {
    struct run run;
    char *names[NAMES_MAX];
    char *paths[NAMES_MAX]; /* of their nodes */
    size_t count;
    int64_t wait; /* ms; CV_FOREVER */
    int busy_code;
    bool shared, print_token, hold;
    int32_t slots;
    enum cv_lock_recipe recipe;
    int fd; /* -1: none */
    const char *session;

    struct descriptor descriptor;
    struct session_file file;
    struct waiting waiting;
    int64_t until; /* when waiting is over; 0: -n, and no session was had yet */
    /* In the order in which they are taken. */
    struct cv_lock *locks[NAMES_MAX];
    size_t order[NAMES_MAX];
    size_t held;
};

/* ---- The command line ---- */

static int parse_number(const char *option, const char *text, uint64_t least, uint64_t most,
                        int *to) {
    uint64_t value;
    if (parse_u64(text, &value) != 0 || value < least || value > most)
        return remote_usage("%s: '%s' is not a number from %" PRIu64 " to %" PRIu64, option, text,
                            least, most);
    *to = (int)value;
    return 0;
}

static int parse_recipe(const char *text, enum cv_lock_recipe *to) {
    static const char *const names[] = {[CV_CURATOR] = "curator",
                                        [CV_CURATOR_RW] = "curator-rw",
                                        [CV_CURATOR_LATCH] = "curator-latch",
                                        [CV_KAZOO] = "kazoo",
                                        [CV_ANY_RECIPE] = "any"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(text, names[i]) == 0) return *to = (enum cv_lock_recipe)i, 0;
    return remote_usage("recipe: '%s' is neither curator, curator-rw, curator-latch, kazoo nor any",
                        text);
}

static int add_name(struct request *request, char *name) {
    const char *problem = run_name_problem(NAME_LOCKS, name);
    if (problem) return remote_usage("'%s' is no name of a lock: %s", name, problem);
    if (request->count == NAMES_MAX) return remote_usage("at most %d locks at once", NAMES_MAX);
    char path[NAME_PATH_SIZE];
    name_path(path, NAME_LOCKS, name);
    for (size_t i = 0; i < request->count; i++)
        if (strcmp(request->paths[i], path) == 0)
            return remote_usage("'%s' is named twice; it would wait for itself", name);
    request->names[request->count] = name;
    request->paths[request->count] = strdup(path);
    if (!request->paths[request->count++]) system_error("no memory");
    return 0;
}

static int check(const struct request *request) {
    if (!request->count) return remote_usage("give the NAME of a lock, and a command after '--'");
    if ((request->fd >= 0) + request->hold + (request->run.command != NULL) > 1)
        return remote_usage("either --fd, --hold or a command");
    if (request->fd < 0 && !request->hold && !request->run.command)
        return remote_usage("give a command after '--', as in 'conclave lock %s -- make report'",
                            request->names[0]);
    if (request->print_token && request->fd < 0) return remote_usage("--print-token: with --fd");
    if (request->run.remote.json && request->run.command)
        return remote_usage("json: what is printed is the command's; it is for --hold and --fd");
    if (request->shared && request->slots > 1)
        return remote_usage("either --shared or --slots: a semaphore has no shared holders");
    if (request->recipe == CV_CURATOR_RW && request->slots > 1)
        return remote_usage("either --recipe curator-rw or --slots: that lock has none");
    if (request->recipe == CV_CURATOR_LATCH && (request->slots > 1 || request->shared))
        return remote_usage("recipe: a latch is exclusive, without --shared and --slots");
    return 0;
}

static int parse(int key, char *text, struct argp_state *state) {
    struct request *request = state->input;
    switch (key) {
    case ARGP_KEY_INIT: state->child_inputs[0] = &request->run; return 0;
    case 'n': request->wait = 0; return 0;
    case 'w': return remote_duration("wait", text, &request->wait);
    case 'E': return parse_number("conflict-exit-code", text, 0, 255, &request->busy_code);
    case 's': request->shared = true; return 0;
    case KEY_SLOTS: return parse_number("slots", text, 1, 1000000, &request->slots);
    case KEY_RECIPE: return parse_recipe(text, &request->recipe);
    case KEY_FD: return parse_number("fd", text, 0, 1000000, &request->fd);
    case KEY_SESSION: request->session = text; return 0;
    case KEY_HOLD: request->hold = true; return 0;
    case KEY_PRINT_TOKEN: request->print_token = true; return 0;
    case ARGP_KEY_ARG: return add_name(request, text);
    case ARGP_KEY_END: return check(request);
    default: return ARGP_ERR_UNKNOWN;
    }
}

/* Everybody takes several locks in the order of their paths, so that nobody waits in a circle. */
static void put_in_order(struct request *request) {
    for (size_t i = 0; i < request->count; i++) {
        size_t at = i;
        for (; at && strcmp(request->paths[request->order[at - 1]], request->paths[i]) > 0; at--)
            request->order[at] = request->order[at - 1];
        request->order[at] = i;
    }
}

/* ---- Taking the locks ---- */

static void lock_changed(struct cv_lock *lock, enum cv_lock_state state, void *arg) {
    (void)lock, (void)state;
    keeper_wake(arg);
}

static int open_lock(struct request *request, size_t at) {
    const char *path = request->paths[request->order[at]];
    struct cv_lock_options given = {
        .kind = request->shared ? CV_SHARED : CV_EXCLUSIVE,
        .slots = request->slots,
        .recipe = request->recipe,
        .label = request->run.label,
        .on_change = lock_changed,
        .arg = request->run.keeper,
        .node = session_file_node(&request->file, path),
        .outer = getenv(SESSIONS),
    };
    return cv_lock_open(&request->locks[at], request->run.remote.client, path, &given);
}

static bool all_held(const struct request *request) {
    for (size_t i = 0; i < request->held; i++)
        if (cv_lock_state(request->locks[i]) != CV_HELD) return false;
    return true;
}

/* No exit code yet: that of -E may be 0, which would be success. */
enum { BUSY = RUN_AGAIN - 1 };

/* `held`: by somebody else, as a server has said. */
static int busy(struct request *request, size_t at, bool held) {
    waiting_end(&request->waiting);
    const char *name = request->names[request->order[at]];
    bool asked = request->wait == 0 && !request->run.verbose;
    if (asked || request->run.quiet) return BUSY;
    const char *not_run = request->run.command ? "; the command was not run" : "";
    if (held)
        remote_say(0, "%s: somebody else holds it ('conclave locks %s' shows who)%s", name, name,
                   not_run);
    else
        remote_say(0, "%s: no server has said in time who holds it%s", name, not_run);
    return BUSY;
}

/* Why a lock is not ours: the session may have ended, then all begins again. */
static int failed(struct request *request, size_t at, int error) {
    struct run *run = &request->run;
    if (error == CV_BUSY || error == CV_OPERATION_TIMEOUT) return busy(request, at, true);
    waiting_end(&request->waiting);
    if (run_is_final(error))
        return remote_fail(&run->remote, error, request->paths[request->order[at]]);
    if (run->verbose)
        remote_say(0, "%s: %s; waiting again", request->names[request->order[at]],
                   cv_error_text(error));
    return RUN_AGAIN;
}

static int wait_for(struct request *request, size_t at) {
    struct cv_lock *lock = request->locks[at];
    for (;;) {
        enum cv_lock_state state = cv_lock_state(lock);
        if (state == CV_HELD) return 0;
        if (state != CV_WAITING) return failed(request, at, cv_lock_error(lock));
        if (!all_held(request)) return failed(request, at, CV_LOST);
        if (cv_state(request->run.remote.client) == CV_EXPIRED)
            return failed(request, at, CV_SESSION_EXPIRED);
        int32_t before = cv_lock_position(lock);
        bool late = lease_now() >= request->until;
        if (late && before < 0 && request->wait == 0) { /* it may be free */
            waiting_end(&request->waiting);
            return remote_fail(&request->run.remote, CV_NO_SERVER, NULL);
        }
        if (late || (before > 0 && request->wait == 0)) return busy(request, at, before > 0);
        session_file_note(&request->file, request->run.remote.client, request->locks, at + 1);
        int64_t look = waiting_show(&request->waiting, request->names[request->order[at]], before);
        int code = run_wait(&request->run, look < request->until ? look : request->until);
        if (code) return waiting_end(&request->waiting), code;
    }
}

static int take(struct request *request, size_t at) {
    int error = open_lock(request, at);
    if (!error) error = cv_lock_start(request->locks[at]);
    if (error) return failed(request, at, error);
    int code = wait_for(request, at);
    if (!code) request->held++;
    return code;
}

static int64_t deadline(void *arg) {
    struct request *request = arg;
    int64_t first = LEASE_NONE;
    for (size_t i = 0; i < request->held; i++) {
        int64_t one = cv_lock_deadline(request->locks[i]);
        if (one < first) first = one;
    }
    return first;
}

/* One session: 0 when all are held. */
static int attempt(struct request *request) {
    struct run *run = &request->run;
    request->held = 0;
    session_file_resume(&request->file, &run->remote.options);
    int code = run_connect(run);
    if (!code && !request->until) /* for the answer of a server, not for other holders */
        request->until = lease_now() + cv_session_timeout(run->remote.client);
    for (size_t i = 0; !code && i < request->count; i++) code = take(request, i);
    if (!code && (!all_held(request) || !run_has_time(run, deadline(request)))) code = RUN_AGAIN;
    return code;
}

/* Ends the session.  RUN_AGAIN, or the exit code when there is no time left. */
static int begin_again(struct request *request) {
    session_file_forget(&request->file);
    if (request->run.remote.client) cv_close(request->run.remote.client);
    request->run.remote.client = NULL;
    return request->until && lease_now() >= request->until ? busy(request, 0, false) : RUN_AGAIN;
}

static int acquire(struct request *request) {
    int code;
    do {
        code = attempt(request);
        if (code == RUN_AGAIN) code = begin_again(request);
    } while (code == RUN_AGAIN);
    return code;
}

/* ---- Holding them ---- */

/* The token of the lock that was named there. */
static int64_t token_of(const struct request *request, size_t name) {
    size_t at = 0;
    while (request->order[at] != name) at++;
    return cv_lock_token(request->locks[at]);
}

/* What --hold says when it has them. */
static char *describe_json(const struct request *request) {
    json_t *report = json_object(), *tokens = json_object();
    for (size_t i = 0; i < request->count; i++)
        json_object_set_new(tokens, request->names[i], json_integer(token_of(request, i)));
    json_object_set_new(report, "state", json_string("held"));
    json_object_set_new(report, "tokens", tokens);
    char *text = json_dumps(report, JSON_COMPACT);
    json_decref(report);
    return text;
}

static char *describe(const struct request *request) {
    char *text = NULL;
    size_t size;
    if (request->run.remote.json) return describe_json(request);
    FILE *out = open_memstream(&text, &size);
    if (!out) system_error("out of memory");
    fputs("held", out);
    for (size_t i = 0; i < request->count; i++) fprintf(out, " %" PRId64, token_of(request, i));
    fclose(out);
    return text;
}

/* The command that does what --hold promises. */
static char **command_to_hold(const struct request *request, char *words[6]) {
    words[0] = "/bin/sh";
    words[1] = "-c";
    words[2] =
        "printf '%s\\n' \"$1\" 2>/dev/null || exit 71; while read -r line; do :; done; exit 0";
    words[3] = "conclave";
    words[4] = describe(request);
    words[5] = NULL;
    return words;
}

static void print_token(const struct request *request, const char *token) {
    if (request->run.remote.json)
        puts(describe_json(request));
    else
        puts(token);
    fflush(stdout);
}

static void export(struct request *request) {
    struct run *run = &request->run;
    char token[32], sessions[NOTE_TEXT_MAX], *all = NULL;
    size_t size;
    remote_export(&run->remote);
    FILE *tokens = open_memstream(&all, &size);
    if (!tokens) system_error("out of memory");
    for (size_t i = 0; i < request->count; i++) {
        snprintf(token, sizeof token, "%" PRId64, token_of(request, i));
        if (i == 0) run_export(run, "CONCLAVE_TOKEN", token);
        if (i == 0 && request->print_token) print_token(request, token);
        fprintf(tokens, "%s%s=%s", i ? " " : "", request->names[i], token);
        if (run->verbose) remote_say(0, "%s is held, token %s", request->names[i], token);
    }
    fclose(tokens);
    run_export(run, "CONCLAVE_LOCK", request->names[0]);
    run_export(run, "CONCLAVE_TOKENS", all);
    outer_add(sessions, getenv(SESSIONS), cv_session_id(run->remote.client));
    run_export(run, SESSIONS, sessions);
    free(all);
}

static bool is_lost(void *arg) { return !all_held(arg); }

static const char *reason(int error) {
    if (error == CV_NO_NODE) return "somebody has taken it away";
    return error == CV_SESSION_EXPIRED ? "the session is over" : "no server has answered in time";
}

/* What --hold says. */
static const char *last_word(const struct request *request) {
    if (!request->hold) return NULL;
    return request->run.remote.json ? "{\"state\":\"lost\"}\n" : "lost\n";
}

static int say_lost(struct request *request, size_t at, int error) {
    const struct keeper *keeper = request->run.keeper;
    const char *name = request->names[request->order[at]], *why = reason(error);
    if (request->hold) {
        lease_say_lost(keeper->lease, last_word(request));
        return remote_say(EXIT_LOST, "%s was lost (%s)", name, why);
    }
    if (request->fd >= 0)
        return remote_say(EXIT_TOO_LATE, "%s had been lost (%s) before descriptor %d was closed",
                          name, why, request->fd);
    if (keeper_was_killed(keeper))
        return remote_say(EXIT_LOST, "%s was lost (%s), and the command was killed", name, why);
    return remote_say(EXIT_TOO_LATE,
                      "%s had been lost (%s) before the command ended, with exit status %d", name,
                      why, keeper_code(keeper));
}

/* By the clock all may be held still: then it is too late to be sure of that. */
static int say_which_was_lost(struct request *request) {
    size_t at = 0;
    while (at < request->held && cv_lock_state(request->locks[at]) == CV_HELD) at++;
    if (at == request->held) return say_lost(request, 0, CV_CONNECTION_LOSS);
    return say_lost(request, at, cv_lock_error(request->locks[at]));
}

static void note_error(const struct cv_result *result, void *arg) { *(int *)arg = result->error; }

/* Deletes our nodes, and ends the session after that in the same breath.  The errors are those of
 * the locks in the order in which they were taken. */
static void give_back(struct request *request, int *errors) {
    struct cv_client *client = request->run.remote.client;
    for (size_t i = 0; i < request->held; i++) {
        char node[4400];
        struct cv_op op = cv_op_delete(cv_lock_node(request->locks[i], node, sizeof node), -1);
        int error = cv_start(client, &op, note_error, &errors[i]);
        if (error) errors[i] = error;
    }
    remote_close(&request->run.remote);
}

static int release(struct request *request, bool lost, int code) {
    struct run *run = &request->run;
    struct keeper *keeper = run->keeper;
    int errors[NAMES_MAX];
    if (request->session && (keeper->asked || keeper->alone)) {
        cv_detach(run->remote.client); /* the next wrapper takes it up again */
        return code;
    }
    session_file_forget(&request->file);
    give_back(request, errors);
    for (size_t i = 0; i < request->held && !lost; i++) {
        if (errors[i] == CV_OK) continue;
        lost = true; /* one line is enough */
        if (errors[i] == CV_NO_NODE) return say_lost(request, i, errors[i]);
        remote_say(0,
                   "no server could be told that %s is free; it will be when the session expires",
                   request->names[request->order[i]]);
    }
    return code;
}

static int run_command(struct request *request) {
    struct run *run = &request->run;
    struct keeper *keeper = run->keeper;
    char *words[6], **command = request->hold ? command_to_hold(request, words) : run->command;
    if (keeper_start(keeper, command, run->environment) != 0) {
        if (errno == ETIME) return RUN_AGAIN;
        return release(request, false,
                       remote_say(EXIT_SYSTEM, "no process can be started: %s", strerror(errno)));
    }
    while (keeper_next(keeper, LEASE_NONE) != KEEPER_ENDED)
        if (!all_held(request)) keeper_kill(keeper);
    bool lost = keeper->lost || !all_held(request);
    return release(request, lost, lost ? say_which_was_lost(request) : keeper_code(keeper));
}

static int hold(struct request *request) {
    struct keeper *keeper = request->run.keeper;
    waiting_begin(&request->waiting, request->run.quiet, request->run.verbose);
    int code = acquire(request);
    waiting_end(&request->waiting);
    if (code) return remote_close(&request->run.remote), code;
    session_file_note(&request->file, request->run.remote.client, request->locks, request->count);
    export(request);
    if (request->fd < 0) return run_command(request);
    code = keeper_hand_over(keeper, &request->descriptor, is_lost);
    if (code == EXIT_LOST)
        remote_say(code, "%s was lost, and all who had descriptor %d open were killed",
                   request->names[0], request->fd);
    return release(request, code == EXIT_LOST, code);
}

static int keep(struct keeper *keeper, void *arg) {
    struct request *request = arg;
    int code;
    request->run.keeper = keeper;
    keeper->deadline = deadline;
    keeper->arg = request;
    do {
        code = hold(request);
        if (code == RUN_AGAIN) code = begin_again(request);
    } while (code == RUN_AGAIN);
    return code == BUSY ? request->busy_code : code;
}

int cmd_lock(int argc, char **argv) {
    static const struct argp argp = {
        options, parse,        "NAME... -- COMMAND [ARGUMENT...]\nNAME... --fd N\nNAME... --hold",
        doc,     run_children, NULL,
        NULL};
    struct request request = {
        .run = RUN_DEFAULTS, .wait = CV_FOREVER, .busy_code = EXIT_BUSY, .slots = 1, .fd = -1};
    int status;
    exit_from_64();
    run_split(&request.run, &argc, argv);
    if (!remote_parse(&request.run.remote, &argp, 0, argc, argv, &request, &status)) return status;
    if (request.run.command && (status = run_check_command(&request.run))) return status;
    if (request.fd >= 0) {
        const char *problem = descriptor_mark(&request.descriptor, request.fd);
        if (problem) usage_error("--fd %d: %s", request.fd, problem);
    }
    if (request.session && (status = session_file_open(&request.file, request.session)))
        return status == EXIT_BUSY ? request.busy_code : status;
    if (request.session && request.fd >= 0)
        fcntl(request.file.lock, F_SETFD, FD_CLOEXEC); /* ours */
    put_in_order(&request);
    request.until = request.wait < 0 ? LEASE_NONE : request.wait ? lease_now() + request.wait : 0;
    return guard(keep, &request, request.fd >= 0 ? &request.descriptor : NULL, last_word(&request));
}
