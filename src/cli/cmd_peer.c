/* conclave peer: one of several processes that give each other locks and leaders, with no server.
 */
#include <errno.h>
#include <stdlib.h>

#include "algorithms/catalogue.h"
#include "base/logger.h"
#include "base/parse.h"
#include "cli/options.h"
#include "cli/peer.h"

enum {
    KEY_ALGORITHM = KEY_OWN,
    KEY_ID,
    KEY_PEERS,
    KEY_DATA,
    KEY_AMNESIA,
    KEY_RECORD,
    KEY_KEY,
    KEY_CERT,
    KEY_CERT_KEY,
    KEY_CA,
    KEY_INSECURE,
    KEY_SOCKET,
    KEY_DETECTOR,
    KEY_HEARTBEAT,
    KEY_TIMES,
    KEY_STAY,
    KEY_GRACE,
    KEY_ON_LEADER,
    KEY_ON_FOLLOWER,
    KEY_INTERACTIVE,
    KEY_LOG_LEVEL,
};

static const struct argp_option options[] = {
    {0, 0, 0, 0, "The group:", 1},
    {"algorithm", KEY_ALGORITHM, "NAME", 0, "see conclave list; the same for all peers", 1},
    {"id", KEY_ID, "N", 0, "which of the peers this is", 1},
    {"peers", KEY_PEERS, "FILE", 0, "the list of all peers; the same for all", 1},
    {"data", KEY_DATA, "DIR", 0,
     "what this peer keeps over a restart (conclave-peer-N, beside the list)", 1},
    {"amnesia", KEY_AMNESIA, NULL, 0, "come back without it, to see what that breaks", 1},
    {"record", KEY_RECORD, "FILE", 0,
     "write down what happens; 'conclave trace' replays and judges it", 1},
    {"detector", KEY_DETECTOR, "KIND", 0,
     "failure detector: fixed:TIME, adaptive:K, phi:X or none (fixed:1s where it is of use)", 1},
    {"heartbeat", KEY_HEARTBEAT, "TIME", 0, "interval of its heartbeats (100ms)", 1},
    {0, 0, 0, 0, "What is done:", 2},
    {"times", KEY_TIMES, "K", 0,
     "lock: run the command K times, or until it fails, with the lock taken anew (1)", 2},
    {"socket", KEY_SOCKET, "PATH", 0,
     "run: where commands find it (CONCLAVE_PEER_SOCKET; /run/conclave-peer.socket for root, "
     "otherwise in XDG_RUNTIME_DIR)",
     2},
    {"stay", KEY_STAY, NULL, 0, "serve the others until a signal, even when all are done", 2},
    {"grace", KEY_GRACE, "TIME", 0, "between SIGTERM and SIGKILL when the command has to end (5s)",
     2},
    {"on-leader", KEY_ON_LEADER, "COMMAND", 0, "elect: for sh -c, whenever this peer is elected",
     2},
    {"on-follower", KEY_ON_FOLLOWER, "COMMAND", 0,
     "elect: for sh -c, whenever another is, or this one does not lead any more", 2},
    {"interactive", KEY_INTERACTIVE, NULL, 0, "the same as the word", 2},
    {"verbose", 'v', NULL, 0, "say what is waited for and what is held", 2},
    {"log-level", KEY_LOG_LEVEL, "LEVEL", 0, "error, warning, info or debug (warning)", 2},
    {0, 0, 0, 0, "How peers know each other:", 3},
    {"key", KEY_KEY, "FILE", 0,
     "a secret that all share (see conclave key); on loopback alone it is made: FILE of --peers, "
     "with .key",
     3},
    {"tls-cert", KEY_CERT, "FILE", 0, "a certificate for this peer, in PEM", 3},
    {"tls-key", KEY_CERT_KEY, "FILE", 0, "its private key", 3},
    {"tls-ca", KEY_CA, "FILE", 0,
     "the authority of the certificates of all peers: who has one of it is a peer", 3},
    {"insecure", KEY_INSECURE, NULL, 0, "none of these: whoever reaches the port is believed", 3},
    {0}};

static const char doc[] =
    "Takes part in a group of processes that give each other locks and leaders, with no server.\v"
    "The algorithm is one of the laboratory's, the same object file.  A participant stays, one on "
    "each machine, and other commands ask it through a socket:\n\n"
    "  run                 takes part until a signal, and says what changes\n"
    "  lock -- COMMAND     runs the command inside the critical section\n"
    "  elect -- COMMAND    runs the command while the participant leads\n"
    "  leader              says who leads\n"
    "  state               shows the state of the participant\n"
    "  up                  starts a whole group in this terminal\n\n"
    "Each of them has a --help.  With --algorithm, --id and --peers a command is a participant of "
    "its own:\n\n"
    "  lock -- COMMAND     runs the command inside the critical section\n"
    "  elect               stands for election, and says who leads\n"
    "  elect -- COMMAND    the same, and runs the command while this peer leads\n"
    "  serve               takes part and wants nothing, as coordinators do\n"
    "  interactive         shows its state, and reads acquire, release, campaign and quit; cut N\n"
    "                      and heal N are for the network between it and peer N\n\n"
    "The command is cared for as by 'conclave lock', and gets CONCLAVE_PEER (the number) and "
    "CONCLAVE_TOKEN (a fencing token that grows, if the algorithm has one); --on-leader and "
    "--on-follower get CONCLAVE_LEADER (its id), CONCLAVE_TERM and CONCLAVE_STATE.\n\n"
    "The list of peers has a line for each: its number (1, 2, 3, ...), its address, and, if it "
    "matters, id=N and weight=N.  For a network that is neither complete nor a ring it has "
    "edges=N,N "
    "too, the numbers of neighbours, or there is a line 'edges 1-2 2-3 ...'.  Peers of another "
    "algorithm, with other options or another list are "
    "refused.  A list of three:\n\n"
    "  1 127.0.0.1:7101\n"
    "  2 127.0.0.1:7102\n"
    "  3 127.0.0.1:7103\n\n"
    "Most algorithms need every peer: one that has done its work serves the others until all of "
    "them are done.  SIGTERM or Ctrl-C ends it before: it hands on what it holds for all where the "
    "algorithm can, and goes on there when it is started again with its data (with a failure "
    "detector it is one that has crashed).  A group that has ended because all were done begins "
    "anew when all of its peers have been started again.  Without a server there is no lease: a "
    "peer that is cut off keeps what it has. "
    " "
    "'conclave explain NAME' says what breaks an algorithm, and 'conclave check NAME' shows it.  "
    "Times of algorithms "
    "are twenty times the laboratory's, for networks that answer within some milliseconds; a slow "
    "one "
    "needs larger ones.\n\n"
    "Examples:\n"
    "  conclave peer run --algorithm ricart-agrawala --id 2 --peers peers.conf\n"
    "  conclave peer lock -- ./job\n"
    "  conclave peer --algorithm ricart-agrawala --id 2 --peers peers.conf lock -- ./job\n"
    "  conclave peer --algorithm bully --id 1 --peers peers.conf elect --on-leader 'echo I "
    "lead'\n\n"
    "Exit status: the command's, 128+N if signal N has ended it; 76 this peer has failed, and the "
    "command was killed; 126 the command cannot be run; 127 it was not found; 64 wrong usage; 71 "
    "the system failed, or this peer was cut off and has to restart.\n";

uint64_t peer_whole(const char *option, const char *text, uint64_t min, uint64_t max) {
    char error[128];
    uint64_t value;
    if (count_parse(option, text, min, max, &value, error, sizeof error) != 0)
        usage_error("%s", error);
    return value;
}

const char *peer_path(const char *option, const char *text) {
    if (!*text) usage_error("%s: an empty path leads nowhere", option);
    return text;
}

int peer_grace(struct run *run, const char *text) {
    int64_t ms;
    if (remote_duration("grace", text, &ms) != 0) return EINVAL;
    if (ms > INT32_MAX) return remote_usage("grace: '%s' is more than 24d", text);
    run->grace = (int32_t)ms;
    return 0;
}

static void set_action(struct peer_request *request, const char *text) {
    static const char *const names[] = {"lock", "elect", "serve", "interactive", "run"};
    if (request->action) usage_error("one of run, lock, elect and serve, not '%s' as well", text);
    for (int i = 0; i < 5; i++)
        if (strcmp(text, names[i]) == 0) request->action = PEER_LOCK + i;
    if (!request->action)
        usage_error("'%s' is not run, lock, elect, leader, state, up, serve or interactive", text);
}

static void set_level(const char *text) {
    for (int level = LOGGER_ERROR; level <= LOGGER_DEBUG; level++)
        if (strcmp(text, logger_level_name(level)) == 0) {
            logger_set(level, LOGGER_FORMAT_TEXT);
            return;
        }
    usage_error("log-level: '%s' is not error, warning, info or debug", text);
}

static int parse(int key, char *text, struct argp_state *state) {
    struct peer_request *request = state->input;
    struct peer_config *config = &request->setup.config;
    uint64_t heartbeat;
    if (key >= KEY_OPTION && key < KEY_OWN) {
        const struct cv_option *option = &request->setup.group.algorithm->options[key - KEY_OPTION];
        char error[256];
        if (option_value(option, text, &request->setup.group.option[key - KEY_OPTION], error,
                         sizeof error) != 0)
            usage_error("%s", error);
        return 0;
    }
    switch (key) {
    case KEY_ALGORITHM: break; /* it was read before all others */
    case KEY_ID: config->self = (cv_pid)peer_whole("id", text, 1, GROUP_PROCESSES_MAX); break;
    case KEY_PEERS: request->setup.peers = peer_path("peers", text); break;
    case KEY_DATA: config->data = peer_path("data", text); break;
    case KEY_AMNESIA: config->amnesia = true; break;
    case KEY_RECORD: config->record = peer_path("record", text); break;
    case KEY_KEY: request->setup.credentials.key = text; break;
    case KEY_CERT: request->setup.credentials.certificate = text; break;
    case KEY_CERT_KEY: request->setup.credentials.certificate_key = text; break;
    case KEY_CA: request->setup.credentials.authorities = text; break;
    case KEY_INSECURE: config->insecure = true; break;
    case KEY_DETECTOR:
        if (!peer_setup_detector(&request->setup, text))
            usage_error("detector: '%s' is not fixed:TIME, adaptive:K, phi:X or none", text);
        break;
    case KEY_HEARTBEAT:
        if (parse_duration(text, &heartbeat) != 0 ||
            !peer_setup_heartbeat(&request->setup, heartbeat))
            usage_error("heartbeat: '%s' is not " DURATION_SYNTAX ", at least 4ms", text);
        break;
    case KEY_TIMES:
        request->of_command = "times";
        request->times = peer_whole("times", text, 1, 1000000000);
        break;
    case KEY_SOCKET: request->socket = peer_path("socket", text); break;
    case KEY_STAY: request->stay = true; break;
    case KEY_GRACE: request->of_command = "grace"; return peer_grace(&request->run, text);
    case KEY_ON_LEADER:
        request->of_command = "on-leader";
        request->on_leader = text;
        break;
    case KEY_ON_FOLLOWER:
        request->of_command = "on-follower";
        request->on_follower = text;
        break;
    case KEY_INTERACTIVE: set_action(request, "interactive"); break;
    case KEY_LOG_LEVEL: set_level(text); break;
    case 'v': request->run.verbose = true; break;
    case ARGP_KEY_ARG: set_action(request, text); break;
    default: return ARGP_ERR_UNKNOWN;
    }
    return 0;
}

/* The algorithm decides which options there are. */
static const struct cv_algorithm *find_algorithm(int argc, char **argv) {
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
        if (strncmp(argv[i], "--algorithm=", 12) == 0) return require_algorithm(argv[i] + 12);
        if (strcmp(argv[i], "--algorithm") == 0 && i + 1 < argc)
            return require_algorithm(argv[i + 1]);
    }
    return NULL;
}

/* ---- What must fit together ---- */

static void check(struct peer_request *request) {
    const struct peer_setup *setup = &request->setup;
    const struct cv_algorithm *code = setup->group.algorithm;
    char error[PEER_ERROR_MAX];
    if (!setup->peers || !setup->config.self || !request->action)
        usage_error("give --algorithm, --id, --peers, and one of run, lock, elect and serve; "
                    "'conclave peer --help' has an example");
    int failed = peer_setup_settle(&request->setup, error);
    if (failed == SETUP_SYSTEM) system_error("%s", error);
    if (failed) usage_error("%s", error);
    if (request->action == PEER_LOCK && (code->problem != CV_MUTEX || !request->run.command))
        usage_error(code->problem != CV_MUTEX ? "%s elects, and gives no locks"
                                              : "lock: give a command after '--' (%s)",
                    code->name);
    if (request->action == PEER_ELECT && code->problem != CV_ELECTION)
        usage_error("%s gives locks, and elects nobody", code->name);
    if (request->action < PEER_SERVE && setup->config.self <= setup->group.servers)
        usage_error("peer %u is a %s: it can only serve", setup->config.self, code->server_name);
    if (request->action >= PEER_SERVE && request->run.command)
        usage_error("run, serve and interactive: they have no command");
    if (request->action >= PEER_SERVE && request->of_command)
        usage_error("%s: it is an option of 'conclave peer lock' or 'elect', which ask the "
                    "participant that runs",
                    request->of_command);
    peer_check_hooks(request);
}

/* Without an algorithm: whoever wants to ask a participant may have put options first. */
static _Noreturn void refuse_without_algorithm(int argc, char **argv) {
    for (int i = 1; i < argc; i++)
        if (peer_is_asked(argv[i]))
            usage_error("peer: '%s' comes before its options, and asks the participant that runs; "
                        "or it takes an --algorithm",
                        argv[i]);
    usage_error("peer: which --algorithm? For instance ricart-agrawala; see conclave list");
}

int cmd_peer(int argc, char **argv) {
    struct option_table table;
    struct peer_request request = PEER_DEFAULTS;
    int status = 0;
    if (argc > 1 && strcmp(argv[1], "up") == 0) {
        argv[1] = "conclave peer up"; /* its name in its help */
        return peer_up(argc - 1, argv + 1);
    }
    exit_from_64();
    if (argc > 1 && peer_is_asked(argv[1]) && !find_algorithm(argc, argv))
        return peer_ask(argc - 1, argv + 1);
    logger_set(LOGGER_WARNING, LOGGER_FORMAT_TEXT);
    run_split(&request.run, &argc, argv);
    const struct cv_algorithm *algorithm = find_algorithm(argc, argv);
    option_table_open(&table, sizeof options / sizeof options[0]);
    for (const struct argp_option *o = options; o->name || o->doc; o++)
        option_add(&table, *o, NULL);
    if (algorithm) peer_setup_init(&request.setup, algorithm);
    if (algorithm) option_add_algorithm(&table, algorithm, request.setup.group.option, 4);
    const struct argp argp = {
        table.options,
        parse,
        "run|lock|elect|serve|interactive [-- COMMAND [ARGUMENT...]]\nlock|elect|leader|state "
        "[OPTION...] [-- COMMAND [ARGUMENT...]]\nup [OPTION...]",
        doc,
        NULL,
        NULL,
        NULL};
    if (argp_parse(&argp, argc, argv, 0, NULL, &request) != 0) return exit_code(EXIT_USAGE);
    option_table_close(&table);
    if (!algorithm) refuse_without_algorithm(argc, argv);
    check(&request);
    if (request.run.command) status = run_check_command(&request.run);
    if (!status && request.action == PEER_INTERACTIVE)
        status = peer_interact(&request);
    else if (!status && request.action == PEER_RUN)
        status = peer_stay(&request);
    else if (!status)
        status = peer_run(&request);
    peer_setup_free(&request.setup);
    return status;
}
