#include "cli/cli.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/spelling.h"
#include "language/language.h"

static const struct command commands[] = {
    {"serve", "a coordination server for ZooKeeper clients", cmd_serve},
    {"lock", "run a command while holding a lock", cmd_lock},
    {"once", "run a command on one of many machines, once", cmd_once},
    {"elect", "stand for election, and run a command while leading", cmd_elect},
    {"leader", "say who leads an election", cmd_leader},
    {"candidates", "who leads an election, and who would be next", cmd_candidates},
    {"resign", "ask the leader of an election to hand over", cmd_resign},
    {"up", "an ensemble on this machine, to look at and to break", cmd_up},
    {"ensemble", "show and change the members of an ensemble", cmd_ensemble},
    {"key", "make a secret for servers or administrators", cmd_key},
    {"locks", "who holds which lock, and who waits for it", cmd_locks},
    {"unlock", "take a lock away from its holder", cmd_unlock},
    {"fence", "a proxy that lets only the holder of a lock write to a resource", cmd_fence},
    {"import", "take over the data of a ZooKeeper server", cmd_import},
    {"backup", "write all data of a server, running or not, to one file", cmd_backup},
    {"restore", "put a backup back into a server, running or not", cmd_restore},
    {"recover", "look for damage in a server's files, and cut it out", cmd_recover},
    {"ls", "the children of a node", cmd_ls},
    {"get", "the data of a node", cmd_get},
    {"set", "write the data of a node", cmd_set},
    {"create", "make a node", cmd_create},
    {"rm", "remove nodes", cmd_rm},
    {"stat", "versions, times and owner of a node", cmd_stat},
    {"acl", "who may do what with a node", cmd_acl},
    {"tree", "the nodes below a node, drawn", cmd_tree},
    {"watch", "what happens to a node, as it happens", cmd_watch},
    {"cp", "copy nodes and files, also between servers", cmd_cp},
    {"multi", "several changes, all or none", cmd_multi},
    {"barrier", "hold others back, or begin and end together", cmd_barrier},
    {"counter", "a number that many can add to", cmd_counter},
    {"queue", "work for many, each piece done by one", cmd_queue},
    {"context", "names for servers and for who is asking them", cmd_context},
    {"shell", "the commands on the tree in one session", cmd_shell},
    {"cheat", "one page that reminds of these commands", cmd_cheat},
    {"peer", "locks and leaders among peers, with no server", cmd_peer},
    {"trace", "join what peers or servers have recorded, replay it and judge it", cmd_trace},
    {"sim", "run a lock or an election in the simulator and judge it", cmd_sim},
    {"check", "explore every interleaving of a small system and decide what holds", cmd_check},
    {"history", "decide whether a history of operations is linearizable", cmd_history},
    {"compare", "measured cost of every lock or election beside its formula", cmd_compare},
    {"odds", "the probability that restarts break a quorum", cmd_odds},
    {"timeout", "how long to wait, given what waiting and mistakes cost", cmd_timeout},
    {"merge", "merge the results of a sweep that was run in shares", cmd_merge},
    {"exercise", "questions about these algorithms, whose answers are graded", cmd_exercise},
    {"museum", "published faults of consensus and of locks, and what finds them", cmd_museum},
    {"lab", "the laboratory in a browser", cmd_lab},
    {"new", "begin an algorithm of your own", cmd_new},
    {"list", "the algorithms", cmd_list},
    {"explain", "what an algorithm does, and what breaks it", cmd_explain},
};
enum { COMMANDS = sizeof commands / sizeof commands[0] };

static void help(FILE *out) {
    fputs("Usage: conclave COMMAND [OPTION...]\n"
          "Locks and leaders for distributed programs: serve, run, judge, compare.\n\n"
          "Commands:\n",
          out);
    for (int i = 0; i < COMMANDS; i++)
        fprintf(out, "  %-12s %s\n", commands[i].name, commands[i].summary);
    fputs("\nOptions:\n"
          "  --help         show this help; 'conclave COMMAND --help' shows a command's\n"
          "  --version      show the version\n\n"
          "Examples:\n"
          "  conclave serve\n"
          "  conclave lock report -- make report\n"
          "  conclave lab --open\n"
          "  conclave sim central --processes 5 --entries 100\n"
          "  conclave sim quorum --scenario scenarios/quorum-amnesia.scenario\n\n"
          "Exit status of the laboratory: 0 nothing was violated, 1 a property was, 2 wrong use,\n"
          "3 the system failed, 4 a check came to its limit.  Others: see their --help.\n",
          out);
}

static const char *nearest_command(const char *name) {
    const char *nearest = NULL;
    unsigned best = 3;
    for (int i = 0; i < COMMANDS; i++) {
        unsigned distance = word_distance(name, commands[i].name);
        if (distance < best) best = distance, nearest = commands[i].name;
    }
    return nearest;
}

/* A report that could not be written must not look like success. */
static void check_output(void) {
    if (fflush(stdout) == 0 && !ferror(stdout)) return;
    fprintf(stderr, "conclave: the output could not be written: %s\n", strerror(errno));
    _exit(exit_code(EXIT_SYSTEM));
}

/* Options that argp would refuse, and show as they are. */
static void check_options(char **arguments) {
    for (; *arguments && strcmp(*arguments, "--") != 0; arguments++) {
        if (strncmp(*arguments, "--", 2) != 0) continue;
        for (const char *at = *arguments; *at && *at != '='; at++)
            if (iscntrl((unsigned char)*at) && !isspace((unsigned char)*at))
                usage_error("unrecognized option '%s'", *arguments);
    }
}

/* The others, which programs read and operators search for, speak English. */
static bool is_laboratory(int (*run)(int argc, char **argv)) {
    static int (*const laboratory[])(int argc, char **argv) = {
        cmd_sim,   cmd_check,    cmd_compare, cmd_odds, cmd_timeout, cmd_trace,
        cmd_merge, cmd_exercise, cmd_new,     cmd_list, cmd_explain};
    for (size_t i = 0; i < sizeof laboratory / sizeof laboratory[0]; i++)
        if (laboratory[i] == run) return true;
    return false;
}

/* What the caller has left undone.  Files of ours must not become standard ones; the command that
 * is run finds those closed as they were.  And ends of children that are ignored tell no status. */
static void complete_surroundings(void) {
    int nothing;
    do nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
    while (nothing >= 0 && nothing <= STDERR_FILENO);
    if (nothing >= 0) close(nothing);
    signal(SIGCHLD, SIG_DFL);
}

int main(int argc, char **argv) {
    complete_surroundings();
    atexit(check_output);
    argp_program_version = "conclave " CONCLAVE_VERSION;
    argp_err_exit_status = EXIT_USAGE;
    setenv("ARGP_HELP_FMT", "rmargin=100", 0); /* examples of commands must not be wrapped */
    if (argc < 2) {
        help(stderr);
        return EXIT_USAGE;
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "help") == 0) return help(stdout), 0;
    if (strcmp(argv[1], "--version") == 0) return puts(argp_program_version), 0;
    for (int i = 0; i < COMMANDS; i++) {
        if (strcmp(argv[1], commands[i].name) != 0) continue;
        char program[64]; /* the name in the help of the command */
        snprintf(program, sizeof program, "conclave %s", commands[i].name);
        if (argc == 3 && strcmp(argv[2], "--summary") == 0) return puts(commands[i].summary), 0;
        check_options(argv + 2);
        if (is_laboratory(commands[i].run)) language_choose(language_of_environment());
        argv[1] = program;
        return commands[i].run(argc - 1, argv + 1);
    }
    const char *nearest = nearest_command(argv[1]);
    if (nearest) usage_error("unknown command '%s'; did you mean %s?", argv[1], nearest);
    usage_error("unknown command '%s'; 'conclave --help' shows them all", argv[1]);
}
