#include "cli/cli.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <unistd.h>

#include "catalogue/catalogue.h"

static const struct command commands[] = {
    {"serve", "a coordination server for ZooKeeper clients", cmd_serve},
    {"up", "an ensemble on this machine, to look at and to break", cmd_up},
    {"ensemble", "who the servers of an ensemble are, and how that changes", cmd_ensemble},
    {"import", "make the data of a ZooKeeper server that of this one", cmd_import},
    {"backup", "all data of a server, running or not, into one file", cmd_backup},
    {"restore", "a backup becomes the data of a server, running or not", cmd_restore},
    {"recover", "look for damage in a server's files, and cut it out", cmd_recover},
    {"sim", "run a lock or an election in the simulator and judge it", cmd_sim},
    {"check", "explore every interleaving of a small system and decide what holds", cmd_check},
    {"history", "whether what clients saw is what one copy could have shown them", cmd_history},
    {"compare", "measured cost of every lock beside its formula", cmd_compare},
    {"odds", "how likely it is that restarts break a quorum", cmd_odds},
    {"timeout", "how long to wait, given what waiting and mistakes cost", cmd_timeout},
    {"merge", "join the results of a sweep that was run in shares", cmd_merge},
    {"list", "the algorithms", cmd_list},
    {"explain", "what an algorithm does, and what breaks it", cmd_explain},
};
enum { COMMANDS = sizeof commands / sizeof commands[0] };

static void report(const char *format, va_list arguments) {
    fputs("conclave: ", stderr);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
}

void usage_error(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    report(format, arguments);
    exit(EXIT_USAGE);
}

void system_error(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    report(format, arguments);
    exit(EXIT_SYSTEM);
}

const struct cv_algorithm *require_algorithm(const char *name) {
    const struct cv_algorithm *algorithm = catalogue_find(name);
    char nearest[256];
    if (algorithm) return algorithm;
    catalogue_nearest(name, nearest, sizeof nearest);
    if (*nearest) usage_error("unknown algorithm '%s'; did you mean %s?", name, nearest);
    usage_error("unknown algorithm '%s'; 'conclave list' shows them all", name);
}

FILE *open_output(const char *path) {
    if (strcmp(path, "-") == 0) return stdout;
    FILE *file = fopen(path, "w");
    if (!file) system_error("%s: %s", path, strerror(errno));
    return file;
}

void close_output(FILE *file, const char *path) {
    if (fflush(file) != 0 || ferror(file) || (file != stdout && fclose(file) != 0))
        system_error("%s: %s", path, strerror(errno));
}

void print_json(json_t *report) {
    if (json_dumpf(report, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(15)) != 0)
        system_error("the report cannot be written: %s", strerror(errno));
    putchar('\n');
    json_decref(report);
}

static void draw_bar(size_t done, size_t all) {
    enum { WIDTH = 40 };
    char bar[WIDTH + 1];
    size_t full = all ? done * WIDTH / all : WIDTH;
    for (size_t i = 0; i < WIDTH; i++) bar[i] = i < full ? '#' : '.';
    bar[WIDTH] = 0;
    fprintf(stderr, "\r[%s] %zu of %zu%s", bar, done, all, done == all ? "\r\033[K" : "");
}

progress_fn *progress_bar(void) { return isatty(STDERR_FILENO) ? draw_bar : NULL; }

json_t *real_or_null(double value) { return isnan(value) ? json_null() : json_real(value); }

static void help(FILE *out) {
    fputs("Usage: conclave COMMAND [OPTION...]\n"
          "Locks and leaders for distributed programs: serve, run, judge, compare.\n\n"
          "Commands:\n",
          out);
    for (int i = 0; i < COMMANDS; i++)
        fprintf(out, "  %-12s %s\n", commands[i].name, commands[i].summary);
    fputs(
        "\nOptions:\n"
        "  --help         show this help; 'conclave COMMAND --help' shows a command's\n"
        "  --version      show the version\n\n"
        "Examples:\n"
        "  conclave serve\n"
        "  conclave sim central --processes 5 --entries 100\n"
        "  conclave sim quorum --scenario scenarios/quorum-amnesia.scenario\n\n"
        "Exit status: 0 all held, 1 a property was violated, 2 wrong usage, 3 the system failed.\n",
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
    _exit(EXIT_SYSTEM);
}

int main(int argc, char **argv) {
    atexit(check_output);
    argp_program_version = "conclave " CONCLAVE_VERSION;
    argp_err_exit_status = EXIT_USAGE;
    if (argc < 2) {
        help(stderr);
        return EXIT_USAGE;
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "help") == 0) return help(stdout), 0;
    if (strcmp(argv[1], "--version") == 0) return puts(argp_program_version), 0;
    for (int i = 0; i < COMMANDS; i++) {
        if (strcmp(argv[1], commands[i].name) != 0) continue;
        char program[64]; /* what the command's own help calls itself */
        snprintf(program, sizeof program, "conclave %s", commands[i].name);
        if (argc == 3 && strcmp(argv[2], "--summary") == 0) return puts(commands[i].summary), 0;
        argv[1] = program;
        return commands[i].run(argc - 1, argv + 1);
    }
    const char *nearest = nearest_command(argv[1]);
    if (nearest) usage_error("unknown command '%s'; did you mean %s?", argv[1], nearest);
    usage_error("unknown command '%s'; 'conclave --help' shows them all", argv[1]);
}
