/* conclave key: makes a secret in a file that only its owner can read. */
#include <errno.h>

#include "base/secret.h"
#include "cli/cli.h"

static const char doc[] =
    "Makes FILE with a new random secret in it, which only its owner can read (mode 600).  A file "
    "that exists is never overwritten.\v"
    "The servers of an ensemble share such a secret (--peer-key of 'conclave serve').  Copy FILE "
    "to each server's machine by a way that nobody else can read, and give it to the server's "
    "user.  Whoever knows the secret is taken for a server.\n\n"
    "An administrator who is not on a server's machine proves to be one by another secret "
    "(--admin-token-file of 'conclave serve' and 'conclave ensemble').\n\n"
    "Examples:\n"
    "  conclave key /etc/conclave/key\n"
    "  conclave key ~/.conclave-token\n";

static int parse(int key, char *text, struct argp_state *state) {
    const char **file = state->input;
    if (key != ARGP_KEY_ARG) return ARGP_ERR_UNKNOWN;
    if (*file) usage_error("one file at a time, not '%s' as well", text);
    *file = text;
    return 0;
}

int cmd_key(int argc, char **argv) {
    static const struct argp argp = {NULL, parse, "FILE", doc, NULL, NULL, NULL};
    const char *file = NULL;
    argp_parse(&argp, argc, argv, 0, NULL, &file);
    if (!file) usage_error("give the FILE to write the secret to");
    int error = secret_make(file);
    if (error == EEXIST)
        usage_error("%s: there is such a file, and it is left as it is; if the secret has become "
                    "known, remove it first",
                    file);
    if (error) system_error("%s: %s", file, strerror(error));
    printf("%s: a new secret, which only its owner can read\n", file);
    return EXIT_OK;
}
