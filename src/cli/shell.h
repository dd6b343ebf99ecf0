/* What the parts of `conclave shell` share. */
#ifndef CV_CLI_SHELL_H
#define CV_CLI_SHELL_H

#include <histedit.h>

#include "cli/remote.h"

struct shell {
    struct remote remote;
    EditLine *editor; /* NULL: standard input is no terminal */
    const char *fed;  /* characters that count as typed */
    char prompt[160];
    int status; /* of the last command */
    bool over;
};

/* The next byte of standard input, while the session is kept alive; -1: there is none. */
int shell_byte(struct shell *shell);

/* For the editor: completes the word before the cursor, a command or the path of a node. */
unsigned char shell_complete(EditLine *editor, int key);

#endif
