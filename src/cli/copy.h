/* Copies of trees: from nodes or files to nodes or files.
 *
 * As files a node without children is a file, and one with children a directory, in which the file
 * "%data" has its data, if there are any.  In names, '%' and what a terminal would obey are written
 * as %25 and so on, so that no node is called "%data". */
#ifndef CV_CLI_COPY_H
#define CV_CLI_COPY_H

#include "base/bytes.h"
#include "cli/acl_text.h"
#include "cli/remote.h"

struct copy_place {
    struct remote *remote; /* NULL: files */
    const char *path;
};

struct copy_item {
    char *relative; /* below the place: "" or "/a/b" with the names of nodes */
    bool has_children;
};

/* What an item holds while it is under way. */
struct copy_load {
    struct bytes data;
    struct acl_text acl;
    int error;
};

enum { COPY_AT_ONCE = 256 };

struct copy {
    struct copy_place from, to;
    bool recursive, force;
    struct copy_item *items; /* parents first */
    size_t count, room, left_out;
    struct copy_load loads[COPY_AT_ONCE]; /* of the items from `first` on */
    size_t first, loaded;
    struct bytes path, file;
    int status;
};

/* Finds out what there is to copy.  Each returns 0, or the exit code after one line. */
int copy_list(struct copy *copy);
/* Whether something is in the way. */
int copy_check(struct copy *copy);
int copy_run(struct copy *copy, progress_fn *progress);
void copy_close(struct copy *copy);

/* For copy.c: the files of a directory as items, one file's data, and one item as a file. */
int copy_list_files(struct copy *copy);
int copy_load_file(struct copy *copy, size_t item, struct copy_load *load);
int copy_store_file(struct copy *copy, size_t item, const struct copy_load *load);
void copy_add(struct copy *copy, const char *relative, bool has_children);

#endif
