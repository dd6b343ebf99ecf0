#include "cli/subtree.h"

#include "base/grow.h"
#include "cli/pipeline.h"

const char *subtree_name(const struct subtree *tree, size_t node) {
    return (const char *)tree->names.at + tree->nodes[node].name;
}

const char *subtree_join(struct subtree *tree, const char *path, const char *name) {
    size_t size = strcmp(path, "/") == 0 ? 0 : strlen(path);
    tree->buffer.used = 0;
    bytes_add(&tree->buffer, path, size);
    bytes_add(&tree->buffer, "/", 1);
    bytes_add(&tree->buffer, name, strlen(name) + 1);
    return (const char *)tree->buffer.at;
}

const char *subtree_path(struct subtree *tree, size_t node) {
    if (node == 0) return tree->path;
    size_t size = strcmp(tree->path, "/") == 0 ? 0 : strlen(tree->path), whole = size;
    for (size_t at = node; at; at = tree->nodes[at].parent)
        whole += 1 + strlen(subtree_name(tree, at));
    tree->buffer.used = 0;
    char *to = (char *)bytes_extend(&tree->buffer, whole + 1);
    memcpy(to, tree->path, size);
    to[whole] = 0;
    for (size_t at = node; at; at = tree->nodes[at].parent) {
        const char *name = subtree_name(tree, at);
        size_t length = strlen(name);
        whole -= length;
        memcpy(to + whole, name, length);
        to[--whole] = '/';
    }
    return to;
}

static size_t add(struct subtree *tree, const char *name, uint32_t parent, uint32_t depth) {
    tree->nodes = grown(tree->nodes, &tree->room, tree->count + 1, sizeof *tree->nodes);
    tree->nodes[tree->count] =
        (struct subtree_node){.name = tree->names.used, .parent = parent, .depth = depth};
    bytes_add(&tree->names, name, strlen(name) + 1);
    return tree->count++;
}

static bool describe(void *arg, size_t index, struct cv_op *op) {
    struct subtree *tree = arg;
    if (index >= tree->count) return false;
    const char *path = subtree_path(tree, index);
    bool last = tree->depth && tree->nodes[index].depth >= tree->depth;
    *op = last ? cv_op_exists(path) : cv_op_children(path);
    return true;
}

static int by_name(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static void done(void *arg, size_t index, const struct cv_result *result) {
    struct subtree *tree = arg;
    struct subtree_node *node = &tree->nodes[index];
    node->gone = result->error == CV_NO_NODE;
    node->error = node->gone && index ? 0 : result->error;
    node->known = result->has_stat;
    if (node->known) node->stat = result->stat;
    if (result->error || !result->name_count || tree->count + result->name_count > UINT32_MAX)
        return;
    const char **names = malloc(result->name_count * sizeof *names);
    cv_assert(names);
    memcpy(names, result->names, result->name_count * sizeof *names);
    if (result->name_count) qsort(names, result->name_count, sizeof *names, by_name);
    uint32_t depth = node->depth + 1;
    node->first = (uint32_t)tree->count;
    node->count = (uint32_t)result->name_count;
    for (size_t i = 0; i < result->name_count; i++) add(tree, names[i], (uint32_t)index, depth);
    free(names);
}

int subtree_read(struct subtree *tree, struct remote *remote, const char *path, uint32_t depth) {
    *tree = (struct subtree){.path = path, .depth = depth};
    add(tree, path, 0, 0);
    int error = pipeline_run(
        remote, &(struct pipeline){.describe = describe, .done = done, .arg = tree, .again = true});
    if (!error) error = tree->nodes[0].error;
    return error ? remote_fail(remote, error, path) : 0;
}

void subtree_close(struct subtree *tree) {
    free(tree->nodes);
    bytes_close(&tree->names);
    bytes_close(&tree->buffer);
}

int subtree_report(struct subtree *tree, struct remote *remote) {
    int status = 0;
    for (size_t i = 1; i < tree->count; i++)
        if (tree->nodes[i].error)
            status = remote_fail(remote, tree->nodes[i].error, subtree_path(tree, i));
    return status;
}

void subtree_visit(struct subtree *tree, void (*enter)(struct subtree *, size_t, void *),
                   void *arg) {
    size_t node = 0;
    for (;;) {
        enter(tree, node, arg);
        if (tree->nodes[node].count) {
            node = tree->nodes[node].first;
            continue;
        }
        /* The next sibling, or that of the nearest ancestor that has one. */
        for (;; node = tree->nodes[node].parent) {
            if (node == 0) return;
            const struct subtree_node *parent = &tree->nodes[tree->nodes[node].parent];
            if (node + 1 < (size_t)parent->first + parent->count) break;
        }
        node++;
    }
}
