#include "cli/run.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/grow.h"
#include "recipe/contend.h"
#include "recipe/election.h"

extern char **environ;

/* ---- Options ---- */

enum { KEY_TTL = 0x6000, KEY_GRACE, KEY_LABEL };

static const struct argp_option options[] = {
    {"ttl", KEY_TTL, "TIME", 0,
     "How long after our last sign of life the server gives it to the next: the same as "
     "--session-timeout (default: 15s)",
     2},
    {"grace", KEY_GRACE, "TIME", 0,
     "Between SIGTERM and SIGKILL when it is lost (default: a sixth of --ttl, at most 5s)", 2},
    {"label", KEY_LABEL, "TEXT", 0, "Who and why; others can read it", 2},
    {"quiet", 'q', NULL, 0, "Say only what went wrong", 2},
    {"verbose", 'v', NULL, 0, "Say what is waited for and what is held", 2},
    {0}};

static int parse_ms(const char *option, const char *text, int32_t least, int32_t *to) {
    int64_t ms;
    if (remote_duration(option, text, &ms) != 0) return EINVAL;
    if (ms < least || ms > INT32_MAX)
        return remote_usage("%s: '%s' is not between %dms and 24d", option, text, least);
    *to = (int32_t)ms;
    return 0;
}

static int check(const struct run *run) {
    if (run->quiet && run->verbose) return remote_usage("either --quiet or --verbose");
    enum { DEFAULT_TTL = 15000 };
    int32_t given = run->remote.options.session_timeout, timeout = given ? given : DEFAULT_TTL;
    if (run->grace > lease_most_grace(timeout))
        return remote_usage("grace: %d ms do not fit into a --ttl of %d ms; at most a third of it",
                            run->grace, timeout);
    return 0;
}

static int parse(int key, char *text, struct argp_state *state) {
    struct run *run = state->input;
    switch (key) {
    case ARGP_KEY_INIT: state->child_inputs[0] = &run->remote; return 0;
    case KEY_TTL: return parse_ms("ttl", text, 1, &run->remote.options.session_timeout);
    case KEY_GRACE: return parse_ms("grace", text, 0, &run->grace);
    case KEY_LABEL: run->label = text; return 0;
    case 'q': run->quiet = true; return 0;
    case 'v': run->verbose = true; return 0;
    case ARGP_KEY_END: return check(run);
    default: return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp argp_of_run = {options, parse, NULL, NULL, remote_children, NULL, NULL};
const struct argp_child run_children[] = {{&argp_of_run, 0, NULL, 0}, {0}};

void run_split(struct run *run, int *argc, char **argv) {
    for (int i = 1; i < *argc; i++) {
        if (strcmp(argv[i], "--") != 0) continue;
        run->command = argv[i + 1] ? &argv[i + 1] : NULL;
        argv[i] = NULL;
        *argc = i;
        return;
    }
}

/* A part of a name after the first, which is a child of what may be a lock or an election itself.
 */
static bool is_taken(const char *part) {
    struct contender contender;
    struct candidate candidate;
    return contend_parse(&contender, part) || election_parse(&candidate, part);
}

const char *run_name_problem(const char *root, const char *name) {
    if (!*name) return "a name has at least one character";
    if (*name != '/' && strchr(name, '/') && strcmp(root, NAME_ONCE) == 0)
        return "a name has no slashes; a path begins with one";
    if (strcmp(name, "/") == 0) return "the node at the top cannot be one";
    if (strlen(name) > NAME_MAX_BYTES) return "it is too long";
    char path[NAME_PATH_SIZE];
    const char *problem = remote_path_problem(name_path(path, "", name));
    if (problem) return problem;
    char *rest = strchr(path + 1, '/'), *part = rest ? strtok_r(rest, "/", &rest) : NULL;
    for (; part; part = strtok_r(NULL, "/", &rest)) {
        if (is_taken(part)) return "a part of it looks like the node of one who waits";
        if (strcmp(root, NAME_LEADERS) == 0 && strcmp(part, ELECTION_LEADER) == 0)
            return "'" ELECTION_LEADER "' is the node of who leads";
    }
    return NULL;
}

int run_set_election(const char **name, const char *text) {
    const char *problem = run_name_problem(NAME_LEADERS, text);
    if (problem) return remote_usage("'%s' is no name of an election: %s", text, problem);
    if (*name) return remote_usage("one NAME at a time, not '%s' as well", text);
    *name = text;
    return 0;
}

int run_parse_election(int key, char *text, struct argp_state *state) {
    struct run_election *request = state->input;
    switch (key) {
    case ARGP_KEY_INIT: state->child_inputs[0] = &request->remote; return 0;
    case ARGP_KEY_ARG: return run_set_election(&request->name, text);
    case ARGP_KEY_END: return request->name ? 0 : remote_usage("give the NAME of an election");
    default: return ARGP_ERR_UNKNOWN;
    }
}

/* ---- The command ---- */

static int try_file(const char *path) {
    struct stat status;
    if (stat(path, &status) != 0) return EXIT_NOT_FOUND;
    return S_ISREG(status.st_mode) && access(path, X_OK) == 0 ? 0 : EXIT_CANNOT_RUN;
}

static int search(const char *name) {
    const char *path = getenv("PATH");
    int result = EXIT_NOT_FOUND;
    char file[4096];
    if (strchr(name, '/') || !path) return strchr(name, '/') ? try_file(name) : 0;
    for (; result && path; path = strchr(path, ':') ? strchr(path, ':') + 1 : NULL) {
        int size = (int)strcspn(path, ":");
        snprintf(file, sizeof file, "%.*s/%s", size ? size : 1, size ? path : ".", name);
        int found = try_file(file);
        if (found != EXIT_NOT_FOUND) result = found;
    }
    return result;
}

int run_check_command(const struct run *run) {
    const char *name = run->command[0];
    int code = *name ? search(name) : EXIT_NOT_FOUND;
    if (code == EXIT_NOT_FOUND)
        return remote_say(code, "%s: command not found; nothing was run", name);
    return code ? remote_say(code, "%s: it cannot be executed; nothing was run", name) : 0;
}

static void add_variable(struct run *run, char *entry) {
    run->environment = grown(run->environment, &run->room, run->variables + 2, sizeof(char *));
    run->environment[run->variables++] = entry;
    run->environment[run->variables] = NULL;
}

void run_export(struct run *run, const char *name, const char *value) {
    size_t size = strlen(name);
    char *entry;
    if (!run->environment)
        for (char **from = environ; *from; from++) add_variable(run, *from);
    if (asprintf(&entry, "%s=%s", name, value) < 0) system_error("out of memory");
    for (size_t i = 0; i < run->variables; i++)
        if (strncmp(run->environment[i], entry, size + 1) == 0) {
            run->environment[i] = entry;
            return;
        }
    add_variable(run, entry);
}

/* ---- The session ---- */

static void state_changed(struct cv_client *client, enum cv_state state, void *arg) {
    (void)client, (void)state;
    keeper_wake(arg);
}

bool run_is_final(int error) {
    switch (error) {
    case CV_OK:
    case CV_CONNECTION_LOSS:
    case CV_OPERATION_TIMEOUT:
    case CV_REQUEST_TIMEOUT:
    case CV_THROTTLED:
    case CV_SESSION_EXPIRED:
    case CV_SESSION_MOVED:
    case CV_CLOSING:
    case CV_NO_SERVER:
    case CV_TLS_FAILED:
    case CV_NO_NODE: /* ours: somebody has deleted it */
    case CV_LOST:
    case CV_NOT_HELD: return false;
    default: return true;
    }
}

int run_wait(struct run *run, int64_t until) {
    switch (keeper_next(run->keeper, until)) {
    case KEEPER_INTERRUPTED:
        atomic_store(&run->keeper->lease->ended_by, run->keeper->signal);
        return 128 + run->keeper->signal;
    case KEEPER_ALONE: return 128 + SIGKILL;
    default: return 0;
    }
}

static int wait_for_session(struct run *run, int64_t until) {
    for (;;) {
        switch (cv_state(run->remote.client)) {
        case CV_CONNECTED: return 0;
        case CV_EXPIRED: return RUN_AGAIN;
        case CV_REFUSED: return remote_fail(&run->remote, CV_AUTH_FAILED, NULL);
        default: break;
        }
        if (lease_now() >= until) return remote_fail(&run->remote, CV_NO_SERVER, NULL);
        int code = run_wait(run, until);
        if (code) return code;
    }
}

void run_set_lease(struct run *run) {
    struct lease *lease = run->keeper->lease;
    int32_t timeout = cv_session_timeout(run->remote.client), most = lease_most_grace(timeout);
    int32_t grace = run->grace < 0 ? lease_default_grace(timeout) : run->grace;
    if (grace > most) {
        if (!run->quiet)
            remote_say(0, "the server allows a --ttl of %d ms, so that --grace is %d ms", timeout,
                       most);
        grace = most;
    }
    atomic_store(&lease->grace, grace);
    atomic_store(&lease->margin, lease_margin(timeout));
    run->keeper->look_every = timeout / 12 > 10 ? timeout / 12 : 10;
}

/* Whatever is missing below it is made, but not the node that --server names. */
static int check_chroot(struct run *run) {
    const char *chroot = strchr(remote_servers(&run->remote), '/');
    if (!chroot || cv_exists(run->remote.client, "/", NULL) != CV_NO_NODE) return 0;
    return remote_say(EXIT_CONFLICT, "server: there is no node %s, below which all paths are to be",
                      chroot);
}

int run_connect(struct run *run) {
    struct cv_options *given = &run->remote.options;
    given->flags |= CV_DO_NOT_WAIT;
    given->on_state = state_changed;
    given->arg = run->keeper;
    int32_t limit = given->connect_timeout ? given->connect_timeout : 10000;
    int code = remote_connect(&run->remote);
    if (!code) code = wait_for_session(run, lease_now() + limit);
    if (!code) code = check_chroot(run);
    if (!code) run_set_lease(run);
    return code;
}

bool run_has_time(const struct run *run, int64_t deadline) {
    const struct lease *lease = run->keeper->lease;
    return lease_now() < deadline - atomic_load(&lease->margin) - atomic_load(&lease->grace);
}
