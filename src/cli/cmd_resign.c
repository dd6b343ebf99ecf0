/* conclave resign: asks a leader to hand over. */
#include <errno.h>
#include <string.h>

#include "cli/run.h"

static const char doc[] =
    "Asks the leader of an election ('conclave elect NAME') to hand over.\v"
    "Its command is told to end, and whoever is next leads when it has ended; the former leader "
    "stands again, behind the others of its priority.  (One with a higher priority than all others "
    "gets the lead back: end it instead.)  This command does not wait for it: 'conclave leader "
    "NAME "
    "--watch' shows it.\n\n"
    "Examples:\n"
    "  conclave resign scheduler\n\n"
    "Exit status: 0; 1 nobody leads; 2 wrong usage; 3 the system failed; 69 no server; 77 not "
    "allowed.\n";

int cmd_resign(int argc, char **argv) {
    static const struct argp argp = {NULL, run_parse_election, "NAME", doc, remote_children, NULL,
                                     NULL};
    struct run_election request = {0};
    char path[NAME_PATH_SIZE];
    int status;
    if (!remote_parse(&request.remote, &argp, 0, argc, argv, &request, &status)) return status;
    name_path(path, NAME_LEADERS, request.name);
    int error = cv_election_ask_to_resign(remote_open(&request.remote), path);
    if (error == CV_NO_NODE || error == CV_NOT_HELD)
        status = remote_say(EXIT_CONFLICT, "%s: nobody leads", request.name);
    else if (error)
        status = remote_fail(&request.remote, error, path);
    remote_close(&request.remote);
    return status;
}
