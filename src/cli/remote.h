/* What all commands that are clients of a server share: the options that say which server and who
 * is asking, the session, messages and exit codes, and how text from a server is shown.
 *
 * A command has remote_children as the children of its argp and hands its struct remote to them:
 *
 *     case ARGP_KEY_INIT: state->child_inputs[0] = &request->remote; return 0;
 *
 * Its parser returns what remote_usage returns, and nothing here ends the program but remote_open,
 * so that `conclave shell` runs the same commands one after another in one session. */
#ifndef CV_CLI_REMOTE_H
#define CV_CLI_REMOTE_H

#include <conclave.h>

#include "cli/cli.h"

/* Exit codes of client commands, beside those of cli.h.  A command that is run by another passes
 * its own code on. */
enum {
    EXIT_CONFLICT = 1,     /* no such node, another version, not empty, and so on */
    EXIT_NO_SERVER = 69,   /* none could be reached, or the session ended */
    EXIT_TOO_LATE = 72,    /* the command ended by itself, after the lock had been lost */
    EXIT_BUSY = 75,        /* somebody else holds it, or the time was over */
    EXIT_LOST = 76,        /* the lock was lost, and the command was killed */
    EXIT_NOT_ALLOWED = 77, /* credentials or ACL */
    EXIT_CANNOT_RUN = 126,
    EXIT_NOT_FOUND = 127
};
#define REMOTE_EXIT_STATUS                                                                         \
    "Exit status: 0; 1 no such node, another version or the like; 2 wrong usage; 3 the system "    \
    "failed; 69 no server; 75 the time was over; 77 not allowed.\n"

/* What a context may say as well: its names are those of the options. */
enum remote_setting {
    REMOTE_SERVER,
    REMOTE_TLS, /* not NULL: TLS */
    REMOTE_TLS_CA,
    REMOTE_TLS_CERT,
    REMOTE_TLS_KEY,
    REMOTE_TLS_ANY_HOST,
    REMOTE_AUTH_FILE,
    REMOTE_SASL_USER,
    REMOTE_SASL_PASSWORD_FILE,
    REMOTE_SETTINGS
};

struct remote {
    const char *settings[REMOTE_SETTINGS]; /* NULL: not given */
    const char *context;                   /* its name; NULL: none */
    bool json;
    bool alone; /* shows no credentials that are not given here: not those of $CONCLAVE_AUTH */
    /* A command may set what it needs before remote_open (flags, session_timeout, on_state, ...).
     * Both timeouts have options; what is set before these are parsed is their default. */
    struct cv_options options;

    struct cv_client *client; /* when it is open */
    bool shared;              /* the client is that of `conclave shell`, and stays open */
    int signals;              /* a descriptor, after remote_catch_signals; else 0 */
    int interrupted;          /* the last signal that remote_wait has seen; 0: none */
    bool by_terminal;         /* that signal went to all processes of the terminal */
    struct remote_texts *texts;
};

extern const struct argp_child remote_children[];
extern const char *const remote_setting_names[REMOTE_SETTINGS];

/* Parses a command line.  False: the command is over, with *status. */
bool remote_parse(struct remote *remote, const struct argp *argp, unsigned flags, int argc,
                  char **argv, void *input, int *status);

/* Prints one line for a wrong command line.  EINVAL, which a parser returns; the command's exit
 * code then is EXIT_USAGE. */
int remote_usage(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Opens the session (remote->client).  0, or the exit code after one line that says what is wrong.
 */
int remote_connect(struct remote *remote);
/* The same, but ends the program when it fails. */
struct cv_client *remote_open(struct remote *remote);
/* Ends the session, unless it is the shell's, and forgets secrets. */
void remote_close(struct remote *remote);

/* The servers that remote_connect uses, valid until remote_close. */
const char *remote_servers(const struct remote *remote);
/* Tells a child process which server was meant: CONCLAVE_SERVER, CONCLAVE_CONTEXT. */
void remote_export(const struct remote *remote);

/* ---- Waiting ----
 *
 * With CV_NO_THREAD, which the commands on the tree use. */

/* From now on SIGINT, SIGTERM, SIGHUP and SIGCHLD do not end or disturb the program: remote_wait
 * sees them.  Signals that were ignored are still. */
void remote_catch_signals(struct remote *remote);
/* Waits so many ms at most, or for ever, until something has happened, and deals with what came
 * from the server.  Returns the signal that came; 0: none, or SIGCHLD. */
int remote_wait(struct remote *remote, int64_t ms);
/* The same for two clients. */
int remote_wait_both(struct remote *remote, struct remote *other, int64_t ms);
/* Performs an operation and waits; reads are tried again when the connection breaks.  Returns the
 * error.  Free *result, if that is wanted. */
int remote_call(struct remote *remote, const struct cv_op *op, struct cv_result **result);
/* The same, and prints one line when it fails.  0, or the exit code. */
int remote_do(struct remote *remote, const struct cv_op *op, struct cv_result **result);

/* ---- Failures ---- */

/* Prints one line that says what went wrong with `path` (NULL: with nothing in particular), what it
 * means and what to do.  Returns the exit code. */
int remote_fail(struct remote *remote, int error, const char *path);
/* The exit code alone. */
int remote_exit_code(int error);
/* Prints "conclave: ..." in one line; control characters are escaped.  Returns exit_code(code). */
int remote_say(int code, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* NULL, or what is wrong with the path of a node. */
const char *remote_path_problem(const char *path);
/* Checks the path of a node and takes slashes off its end.  0, or EINVAL after one line. */
int remote_path(char *path);
/* Milliseconds of "250ms", "3s"; seconds if there is no unit.  0, or EINVAL after one line. */
int remote_duration(const char *option, const char *text, int64_t *ms);
/* The version of a node.  0, or EINVAL after one line. */
int remote_version(const char *text, int32_t *version);

/* Before what `arg` points to is gone: no event will be told any more. */
void remote_unwatch(struct remote *remote, const char *path, cv_watch_fn *watch, void *arg);

/* Parts a command line at "--": returns the command after it, or NULL. */
char **remote_command(int *argc, char **argv);

/* ---- Text from a server, which may be anything ---- */

/* How control characters and what is no UTF-8 are shown: always as \n, \x1b and so on. */
enum remote_text {
    REMOTE_NAME, /* in one line, unambiguously: \ is \\ */
    REMOTE_LINE, /* in one line */
    REMOTE_PAGE, /* line feeds and tabs stay */
};
void remote_put(FILE *out, const void *text, size_t size, enum remote_text how);
/* As REMOTE_NAME, into a buffer, cut where it ends. */
const char *remote_name(char *buffer, size_t size, const char *text);

/* A string; of what is no UTF-8 an object {"base64": ...}; null for NULL. */
json_t *remote_json_data(const void *data, size_t size);
/* A string; what is no UTF-8 is escaped. */
json_t *remote_json_name(const char *text);
json_t *remote_json_stat(const struct cv_stat *stat);
/* Prints it in one line, for streams, and frees it. */
void remote_json_line(json_t *report);

#endif
