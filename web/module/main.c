/* The laboratory's commands in a module that a page runs. */
#include <stdio.h>
#include <stdlib.h>

#include "cli/cli.h"
#include "language/language.h"

static const struct command commands[] = {
    {"sim", "", cmd_sim},         {"check", "", cmd_check},     {"compare", "", cmd_compare},
    {"odds", "", cmd_odds},       {"timeout", "", cmd_timeout}, {"list", "", cmd_list},
    {"explain", "", cmd_explain}, {"museum", "", cmd_museum},   {"exercise", "", cmd_exercise},
};

int main(int argc, char **argv) {
    static char buffer[1 << 16], program[64];
    setvbuf(stdout, buffer, _IOFBF, sizeof buffer);
    argp_program_version = "conclave " CONCLAVE_VERSION;
    argp_err_exit_status = EXIT_USAGE;
    const char *name = argc > 1 ? argv[1] : "";
    for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++) {
        if (strcmp(name, commands[i].name) != 0) continue;
        snprintf(program, sizeof program, "conclave %s", name);
        argv[1] = program;
        return commands[i].run(argc - 1, argv + 1);
    }
    usage_error("'%s' is no command that runs in a page", name);
}
