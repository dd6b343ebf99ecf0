/* The node that the name of a lock or an election means.  A name that begins with a slash is a path
 * as it stands, so that programs with other libraries can share it; others are below ours. */
#ifndef CV_RECIPE_NAME_H
#define CV_RECIPE_NAME_H

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define NAME_LOCKS   "/conclave/locks"
#define NAME_LEADERS "/conclave/leaders"
#define NAME_ONCE    "/conclave/once"

enum { NAME_MAX_BYTES = 2048, NAME_PATH_SIZE = NAME_MAX_BYTES + 64 };

static inline const char *name_path(char path[NAME_PATH_SIZE], const char *root, const char *name) {
    snprintf(path, NAME_PATH_SIZE, "%s%s%s", *name == '/' ? "" : root, *name == '/' ? "" : "/",
             name);
    return path;
}

/* Whether a node is a lock of ours or a folder of such, which go when they are empty.  What is
 * above them stays, with its ACL. */
static inline bool name_is_below_locks(const char *path) {
    return strncmp(path, NAME_LOCKS "/", sizeof NAME_LOCKS) == 0;
}

#endif
