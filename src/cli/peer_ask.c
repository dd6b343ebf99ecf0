/* conclave peer lock, elect, leader and state: what a participant that stays is asked for. */
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <poll.h>
#include <stdlib.h>

#include "cli/cli.h"
#include "cli/peer.h"

enum {
    KEY_SOCKET = 256,
    KEY_GRACE,
    KEY_TIMES,
    KEY_ON_LEADER,
    KEY_ON_FOLLOWER,
    KEY_WATCH,
    KEY_JSON
};

#define OPTION_SOCKET                                                                              \
    {                                                                                              \
        "socket", KEY_SOCKET, "PATH", 0,                                                           \
            "Where the participant is (CONCLAVE_PEER_SOCKET; /run/conclave-peer.socket for root, " \
            "otherwise in XDG_RUNTIME_DIR)",                                                       \
            9                                                                                      \
    }
#define OPTION_GRACE                                                                               \
    {                                                                                              \
        "grace", KEY_GRACE, "TIME", 0,                                                             \
            "Between SIGTERM and SIGKILL when the command has to end (5s)", 1                      \
    }

static const struct argp_option lock_options[] = {
    {"wait", 'w', "TIME", 0, "Wait no longer than this; peers need some milliseconds", 1},
    {"conflict-exit-code", 'E', "CODE", 0, "Exit status with -w if it was not free (75)", 1},
    {"times", KEY_TIMES, "K", 0,
     "Run the command K times, or until it fails, with the lock taken anew (1)", 1},
    OPTION_GRACE,
    {"verbose", 'v', NULL, 0, "Say what is held", 1},
    OPTION_SOCKET,
    {0}};
static const char lock_doc[] =
    "Runs a command inside the critical section of a group of peers, by the participant on this "
    "machine ('conclave peer run').\v"
    "Commands of one machine stand in a queue at their participant; each stay is a wish of its "
    "own, so that other machines have their turn.  The command is cared for as by 'conclave lock'. "
    " "
    "It finds CONCLAVE_PEER (the number of the participant) and CONCLAVE_TOKEN (a fencing token "
    "that grows, if the algorithm has one).  The connection to the participant is left open in it: "
    "while the command, or something that it has started, has it open, nobody else enters, even if "
    "this program is killed, or the participant and another one started in its place.  Only "
    "algorithms that give up on a participant let others in then: by a lease (central-lease), or "
    "by a failure detector (central-elected, token-ring --repair).  A command "
    "must not ask its own participant for the lock again.\n\n"
    "Examples:\n"
    "  conclave peer lock -- ./job\n"
    "  conclave peer lock -w 30s -E 3 --socket ./2.socket -- ./job\n\n"
    "Exit status: the command's, 128+N if signal N has ended it; 64 wrong usage; 69 no "
    "participant; 71 the system failed; 75 too many commands ask the participant, or (-E) the lock "
    "was not free within -w; 76 the "
    "participant has failed, and the command was killed; 77 not allowed; 126 the command cannot be "
    "run; 127 it was not found.\n";

static const struct argp_option elect_options[] = {
    {"on-leader", KEY_ON_LEADER, "COMMAND", 0, "For sh -c, whenever the participant is elected", 1},
    {"on-follower", KEY_ON_FOLLOWER, "COMMAND", 0,
     "For sh -c, whenever another is, or this one does not lead any more", 1},
    OPTION_GRACE,
    OPTION_SOCKET,
    {0}};
static const char elect_doc[] =
    "Says who leads a group of peers, by the participant on this machine ('conclave peer run'), "
    "and runs commands: on each change, or while the participant leads.\v"
    "A line for each change: 'leads ID term N', 'follows ID term N' or 'leaderless'.  The commands "
    "find CONCLAVE_PEER, CONCLAVE_LEADER (the leader's id; empty: none is known), CONCLAVE_TERM "
    "and "
    "CONCLAVE_STATE (leading, following or leaderless), and run one after the other; what has "
    "changed again by then is left out.  If the participant ends while it leads, --on-follower is "
    "run before this program ends; it has the time of --grace, and so has what runs before it.  "
    "What these commands leave running is killed when this program ends.\n\n"
    "Instead of these, a command after '--' runs while the participant leads.  It is told to end "
    "when that does not lead any more, and killed after --grace.\n\n"
    "Examples:\n"
    "  conclave peer elect --on-leader './promote' --on-follower './demote'\n"
    "  conclave peer elect -- ./primary\n\n"
    "Exit status: the command's, 128+N if signal N has ended it; 64 wrong usage; 69 no "
    "participant, or it has ended; 71 the system failed; 76 the participant has failed, and the "
    "command was killed; 77 not allowed; 126 the command cannot be run; 127 it was not found.\n";

static const struct argp_option leader_options[] = {
    {"watch", KEY_WATCH, NULL, 0, "Go on, and print a line for each change", 1},
    OPTION_SOCKET,
    {0}};
static const char leader_doc[] =
    "Prints the id of the leader that the participant on this machine ('conclave peer run') knows, "
    "alone on a line.\v"
    "While it knows none, nothing is printed and the exit status is 1; with --watch that is an "
    "empty line.  Elections without ids have no leader that could be named.\n\n"
    "Examples:\n"
    "  conclave peer leader\n"
    "  conclave peer leader --watch --socket ./2.socket\n\n"
    "Exit status: 0 somebody leads; 1 nobody does; 64 wrong usage; 69 no participant, or it has "
    "ended; 71 the system failed; 77 not allowed.\n";

static const struct argp_option state_options[] = {
    {"watch", KEY_WATCH, NULL, 0, "Go on, and print a line when it has changed", 1},
    {"json", KEY_JSON, NULL, 0, "JSON instead of text", 1},
    OPTION_SOCKET,
    {0}};
static const char state_doc[] =
    "Prints the state of the participant on this machine ('conclave peer run').\v"
    "With --watch another line follows when it has changed, five in a second at most.  A line has "
    "what it does, how many commands here want the lock (with the one that has it), "
    "what the algorithm shows of its own state, as in a trace, and which peers it is connected "
    "with and suspects to be down.  JSON: {id, algorithm, processes, state, token, leader, term, "
    "queue, fields, connected: [...], suspected: [...]}.\n\n"
    "Examples:\n"
    "  conclave peer state\n"
    "  conclave peer state --watch --json | jq .queue\n\n"
    "Exit status: 0; 64 wrong usage; 69 no participant, or it has ended; 71 the system failed; 77 "
    "not allowed.\n";

struct asking {
    struct peer_request request;
    bool watch, json;
};

static int parse(int key, char *text, struct argp_state *state) {
    struct asking *asking = state->input;
    struct peer_request *request = &asking->request;
    switch (key) {
    case KEY_SOCKET: request->socket = peer_path("socket", text); break;
    case 'w':
        if (remote_duration("wait", text, &request->wait) != 0) return EINVAL;
        return request->wait ? 0 : remote_usage("wait: peers need some time to answer each other");
    case 'E': request->busy_code = (int)peer_whole("conflict-exit-code", text, 0, 255); break;
    case 'v': request->run.verbose = true; break;
    case KEY_TIMES: request->times = peer_whole("times", text, 1, 1000000000); break;
    case KEY_GRACE: return peer_grace(&request->run, text);
    case KEY_ON_LEADER: request->on_leader = text; break;
    case KEY_ON_FOLLOWER: request->on_follower = text; break;
    case KEY_WATCH: asking->watch = true; break;
    case KEY_JSON: asking->json = true; break;
    case ARGP_KEY_ARG: usage_error("'%s' is too much; a command comes after '--'", text); break;
    default: return ARGP_ERR_UNKNOWN;
    }
    return 0;
}

/* ---- leader ---- */

/* 0, or the exit code after one line. */
static int ended(struct joined *joined) {
    const char *failure = joined_failure(joined);
    if (!failure && !joined->ends) return 0;
    return remote_say(EXIT_NO_SERVER, "peer %u: %s", joined->id,
                      failure ? failure : "the participant ends");
}

static int leader(struct asking *asking) {
    struct joined joined;
    struct cv_tell tell = {0};
    int code = joined_open(&joined, asking->request.socket, CV_FOREVER);
    if (!code && strcmp(joined.gives, "election") != 0)
        code = remote_say(exit_code(EXIT_USAGE), "peer %u of %s gives no leader", joined.id,
                          joined.algorithm);
    while (!code && (asking->watch || !tell.what)) {
        struct pollfd file = {joined.socket, POLLIN, 0};
        while ((asking->watch || !tell.what) && joined_next(&joined, &tell)) {
            if (!tell.arg) tell.what = CV_LEADERLESS; /* without ids nobody knows who it is */
            if (tell.what != CV_LEADERLESS) printf("%" PRIu64 "\n", tell.arg);
            if (tell.what == CV_LEADERLESS && asking->watch) puts("");
            if (fflush(stdout) != 0)
                return exit_code(EXIT_SYSTEM); /* the end of the program says why */
        }
        if (asking->watch || !tell.what) code = ended(&joined);
        if (!code && (asking->watch || !tell.what)) poll(&file, 1, -1);
    }
    joined_close(&joined);
    return code ? code : tell.what == CV_LEADERLESS ? EXIT_CONFLICT : EXIT_OK;
}

/* ---- state ---- */

static void print_pids(const char *name, const json_t *list) {
    printf("; %s", name);
    for (size_t i = 0; i < json_array_size(list); i++)
        printf(" %d", (int)json_integer_value(json_array_get(list, i)));
    if (!json_array_size(list)) printf(" none");
}

static void print_state(const char *text) {
    json_t *state = json_loads(text, 0, NULL);
    if (!state) return;
    const json_t *leader = json_object_get(state, "leader"), *term = json_object_get(state, "term"),
                 *token = json_object_get(state, "token");
    int queue = (int)json_integer_value(json_object_get(state, "queue"));
    const char *fields = json_string_value(json_object_get(state, "fields"));
    char shown[2048];
    printf("peer %d %s", (int)json_integer_value(json_object_get(state, "id")),
           json_string_value(json_object_get(state, "state")));
    if (leader) printf(" %" JSON_INTEGER_FORMAT, json_integer_value(leader));
    if (json_integer_value(term))
        printf(" in term %" JSON_INTEGER_FORMAT, json_integer_value(term));
    if (token) printf(", token %" JSON_INTEGER_FORMAT, json_integer_value(token));
    if (queue) printf("; %d of this machine", queue);
    if (fields && *fields) printf("; %s", remote_name(shown, sizeof shown, fields));
    print_pids("connected with", json_object_get(state, "connected"));
    print_pids("suspects", json_object_get(state, "suspected"));
    putchar('\n');
    json_decref(state);
}

static int state(struct asking *asking) {
    struct joined joined;
    struct cv_tell tell;
    bool shown = false;
    int code = joined_open(&joined, asking->request.socket, CV_FOREVER);
    if (!code) joined_say(&joined, "state\n");
    while (!code && (asking->watch || !shown)) {
        struct pollfd file = {joined.socket, POLLIN, 0};
        poll(&file, 1, -1);
        while (joined_next(&joined, &tell)) continue;
        if (joined.state && asking->json) puts(joined.state);
        if (joined.state && !asking->json) print_state(joined.state);
        if (fflush(stdout) != 0) return exit_code(EXIT_SYSTEM);
        shown |= joined.state != NULL;
        free(joined.state);
        joined.state = NULL;
        if (asking->watch || !shown) code = ended(&joined);
    }
    joined_close(&joined);
    return code;
}

/* ---- All of them ---- */

static const struct ask {
    const char *name, *words;
    const struct argp_option *options;
    const char *doc;
    int action; /* 0: none that runs a command, but this: */
    int (*print)(struct asking *asking);
} asks[] = {
    {"lock", "-- COMMAND [ARGUMENT...]", lock_options, lock_doc, PEER_LOCK, NULL},
    {"elect", "[-- COMMAND [ARGUMENT...]]", elect_options, elect_doc, PEER_ELECT, NULL},
    {"leader", "", leader_options, leader_doc, 0, leader},
    {"state", "", state_options, state_doc, 0, state},
};

static const struct ask *find(const char *name) {
    for (size_t i = 0; i < sizeof asks / sizeof asks[0]; i++)
        if (strcmp(asks[i].name, name) == 0) return &asks[i];
    return NULL;
}

/* Both would be ended together, whenever the leader changes. */
void peer_check_hooks(const struct peer_request *request) {
    if (request->run.command && (request->on_leader || request->on_follower))
        usage_error("elect: give a command that runs while the participant leads, or what to run "
                    "on changes, not both");
}

bool peer_is_asked(const char *name) { return find(name); }

int peer_ask(int argc, char **argv) {
    const struct ask *ask = find(argv[0]);
    const struct argp argp = {ask->options, parse, ask->words, ask->doc, NULL, NULL, NULL};
    struct joined joined = {.socket = -1};
    struct asking asking = {.request = PEER_DEFAULTS};
    struct peer_request *request = &asking.request;
    char room[PEER_PATH_MAX], name[32];
    int status = 0;
    snprintf(name, sizeof name, "conclave peer %s", ask->name); /* in its help */
    argv[0] = name;
    run_split(&request->run, &argc, argv);
    if (argp_parse(&argp, argc, argv, 0, NULL, &asking) != 0) return exit_code(EXIT_USAGE);
    request->socket = peer_socket_path(request->socket, room);
    if (!request->socket) usage_error("there is no directory for the socket; give --socket PATH");
    if (ask->action == PEER_LOCK && !request->run.command)
        usage_error("lock: give a command after '--'; 'conclave peer lock --help' has an example");
    peer_check_hooks(request);
    if (ask->print && request->run.command) usage_error("%s: it runs no command", ask->name);
    if (request->run.command) status = run_check_command(&request->run);
    if (status || ask->print) return status ? status : ask->print(&asking);
    request->action = ask->action;
    request->joined = &joined;
    return peer_run(request);
}
