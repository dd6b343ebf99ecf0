/* What `lock`, `once` and `elect` share: their options, the command after "--", the session that a
 * keeper opens, and what the command finds in its environment. */
#ifndef CV_CLI_RUN_H
#define CV_CLI_RUN_H

#include "cli/guard.h"
#include "cli/remote.h"
#include "recipe/name.h"

struct run {
    struct remote remote;
    char **command; /* NULL: none was given */
    const char *label;
    int32_t grace; /* -1: not given */
    bool quiet, verbose;

    struct keeper *keeper;
    char **environment;
    size_t variables, room;
};

/* --ttl, --grace, --label, --quiet, --verbose, and those of remote.h; the input is a struct run. */
extern const struct argp_child run_children[];
#define RUN_DEFAULTS                                                                               \
    { .grace = -1 }

/* Takes the command, which begins after "--", off a command line. */
void run_split(struct run *run, int *argc, char **argv);
/* Whether the command can be found: 0, or EXIT_NOT_FOUND or EXIT_CANNOT_RUN after one line. */
int run_check_command(const struct run *run);
/* NULL, or what is wrong with a name below that root (recipe/name.h). */
const char *run_name_problem(const char *root, const char *name);
/* For a parser: takes the one name of an election.  0, or EINVAL after one line. */
int run_set_election(const char **name, const char *text);

/* A command about one election, and the parser of its command line: the input is this, or begins
 * with it; its children are remote_children. */
struct run_election {
    struct remote remote;
    const char *name;
};
int run_parse_election(int key, char *text, struct argp_state *state);

/* ---- In the keeper ---- */

enum { RUN_AGAIN = -1 }; /* no exit code: the session has ended, and another may be opened */

/* Opens a session: 0, RUN_AGAIN (there was one to resume, which is over), or the exit code, after
 * one line if it is not a signal that has ended it. */
int run_connect(struct run *run);
/* Whether it is in vain to try again. */
bool run_is_final(int error);
/* Waits for the next event while no command runs: 0, or the exit code of the signal. */
int run_wait(struct run *run, int64_t until);
/* Milliseconds for the lease, by the session's timeout. */
void run_set_lease(struct run *run);
/* Adds NAME=VALUE to the environment of the command. */
void run_export(struct run *run, const char *name, const char *value);
/* Whether there is time enough to begin, by a deadline. */
bool run_has_time(const struct run *run, int64_t deadline);

#endif
