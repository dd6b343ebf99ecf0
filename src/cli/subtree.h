/* The nodes below a node, as they were found one after another: others may change them meanwhile.
 */
#ifndef CV_CLI_SUBTREE_H
#define CV_CLI_SUBTREE_H

#include "base/bytes.h"
#include "cli/remote.h"

struct subtree_node {
    struct cv_stat stat;                  /* when `known` */
    size_t name;                          /* in `names` */
    uint32_t parent, first, count, depth; /* its children are count nodes from `first` on */
    int error;                            /* why its children are not known */
    bool known, gone;
};

/* Parents come before their children, and children are sorted. */
struct subtree {
    const char *path; /* of node 0 */
    struct subtree_node *nodes;
    size_t count, room;
    uint32_t depth; /* how far down; 0: without limit */
    struct bytes names, buffer;
};

/* Returns 0, or the exit code after one line, if the first node cannot be read. */
int subtree_read(struct subtree *tree, struct remote *remote, const char *path, uint32_t depth);
void subtree_close(struct subtree *tree);

const char *subtree_name(const struct subtree *tree, size_t node);
/* Its path; valid until the next call. */
const char *subtree_path(struct subtree *tree, size_t node);
/* The path of a child of that node; valid until the next call. */
const char *subtree_join(struct subtree *tree, const char *path, const char *name);
/* One line for each node whose children could not be read.  0, or the exit code. */
int subtree_report(struct subtree *tree, struct remote *remote);

/* The nodes depth first, with `enter` for each. */
void subtree_visit(struct subtree *tree, void (*enter)(struct subtree *, size_t node, void *arg),
                   void *arg);

#endif
