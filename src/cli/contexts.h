/* Contexts: names for servers and for who is asking them, in a file of the user's:
 * $XDG_CONFIG_HOME/conclave/contexts, or ~/.config/conclave/contexts.
 *
 *     current = prod
 *
 *     [prod]
 *     server = zk1:2181,zk2:2181/app
 *     tls-ca = /etc/ssl/zk.pem
 *
 * It has the names of files with secrets, no secrets. */
#ifndef CV_CLI_CONTEXTS_H
#define CV_CLI_CONTEXTS_H

#include "cli/remote.h"

struct context {
    char *name;
    char *settings[REMOTE_SETTINGS]; /* NULL: not said */
};

struct contexts {
    char *path;    /* of the file; NULL: nobody knows where the user's files are */
    char *current; /* NULL: none */
    struct context *at;
    size_t count, room;
};

/* Reads the file; it need not be there.  0, or the exit code after one line. */
int contexts_read(struct contexts *contexts);
/* Replaces the file as a whole. */
int contexts_write(const struct contexts *contexts);
void contexts_close(struct contexts *contexts);

struct context *contexts_find(struct contexts *contexts, const char *name);
/* A new one at the end; the pointers of contexts_find are no longer valid. */
struct context *contexts_add(struct contexts *contexts, const char *name);
void contexts_remove(struct contexts *contexts, struct context *context);

#endif
