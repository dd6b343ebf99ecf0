/* conclave recover: which files of a server are damaged, and what can be done. */
#include "cli/cli.h"
#include "store/recover.h"

enum { KEY_DATA = 256, KEY_LOG, KEY_CUT };

static const struct argp_option options[] = {
    {"data", KEY_DATA, "DIR", 0, "The server's data (./conclave-data)", 0},
    {"log", KEY_LOG, "DIR", 0, "Where it keeps its log, if elsewhere", 0},
    {"cut", KEY_CUT, NULL, 0,
     "Cut the log where it is damaged, and rename what cannot be used to damaged.*", 0},
    {0}};

static const char doc[] =
    "Looks at every snapshot and every segment of the log in the data directory of a server that "
    "is not running, and says which are good, where the others are damaged, and what is lost.  "
    "Nothing is changed without --cut.\v"
    "Exit status: 0 all is good (or is, now that it was cut), 1 there is damage, 2 wrong usage, 3 "
    "the system failed.\n\n"
    "Examples:\n"
    "  conclave recover --data /var/lib/conclave\n"
    "  conclave recover --data /var/lib/conclave --cut\n";

static int parse(int key, char *text, struct argp_state *state) {
    struct recover *recover = state->input;
    switch (key) {
    case KEY_DATA: recover->directory = text; return 0;
    case KEY_LOG: recover->log_directory = text; return 0;
    case KEY_CUT: recover->cut = true; return 0;
    case ARGP_KEY_ARG: usage_error("'%s' is not expected here", text);
    default: return ARGP_ERR_UNKNOWN;
    }
}

int cmd_recover(int argc, char **argv) {
    static const struct argp argp = {options, parse, NULL, doc, NULL, NULL, NULL};
    struct recover recover = {.directory = "conclave-data", .out = stdout};
    argp_parse(&argp, argc, argv, 0, NULL, &recover);
    switch (recover_run(&recover)) {
    case RECOVER_GOOD: return EXIT_OK;
    case RECOVER_DAMAGED: return EXIT_VIOLATED;
    default: fflush(stdout); system_error("%s", recover.message);
    }
}
