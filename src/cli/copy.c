#include "cli/copy.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/grow.h"
#include "cli/pipeline.h"
#include "cli/subtree.h"

void copy_add(struct copy *copy, const char *relative, bool has_children) {
    copy->items = grown(copy->items, &copy->room, copy->count + 1, sizeof *copy->items);
    copy->items[copy->count++] =
        (struct copy_item){.relative = strdup(relative), .has_children = has_children};
}

static const char *node_path(struct copy *copy, const struct copy_place *place, size_t item) {
    const char *relative = copy->items[item].relative;
    bool root = strcmp(place->path, "/") == 0;
    copy->path.used = 0;
    bytes_add(&copy->path, place->path, root && *relative ? 0 : strlen(place->path));
    bytes_add(&copy->path, relative, strlen(relative) + 1);
    return (const char *)copy->path.at;
}

static struct copy_load *load_of(struct copy *copy, size_t index) { return &copy->loads[index]; }

/* ---- What there is ---- */

/* Ephemeral nodes belong to sessions, and those below /zookeeper to the server. */
static void add_node(struct subtree *tree, size_t node, void *arg) {
    struct copy *copy = arg;
    const struct subtree_node *at = &tree->nodes[node];
    const char *path = subtree_path(tree, node);
    size_t root = strcmp(tree->path, "/") == 0 ? 0 : strlen(tree->path);
    if (at->gone) return;
    if (node && at->known && at->stat.ephemeral_owner)
        copy->left_out++;
    else if (root || (strcmp(path, "/zookeeper") != 0 && strncmp(path, "/zookeeper/", 11) != 0))
        copy_add(copy, node ? path + root : "", at->count > 0);
}

static int list_nodes(struct copy *copy) {
    struct subtree tree;
    struct remote *remote = copy->from.remote;
    if (!copy->recursive) return copy_add(copy, "", false), 0;
    int status = subtree_read(&tree, remote, copy->from.path, 0);
    if (!status) status = subtree_report(&tree, remote);
    if (!status) subtree_visit(&tree, add_node, copy);
    subtree_close(&tree);
    return status;
}

int copy_list(struct copy *copy) {
    return copy->from.remote ? list_nodes(copy) : copy_list_files(copy);
}

int copy_check(struct copy *copy) {
    if (copy->force) return 0;
    if (!copy->to.remote)
        return access(copy->to.path, F_OK) == 0
                   ? remote_say(EXIT_CONFLICT, "%s: it is there already; --force overwrites it",
                                copy->to.path)
                   : 0;
    int error = cv_exists(copy->to.remote->client, copy->to.path, NULL);
    if (error == CV_NO_NODE) return 0;
    return error ? remote_fail(copy->to.remote, error, copy->to.path)
                 : remote_say(EXIT_CONFLICT,
                              "%s: there is such a node already; --force overwrites "
                              "it, and leaves nodes that are there and not here",
                              copy->to.path);
}

/* ---- From nodes ---- */

static bool describe_get(void *arg, size_t index, struct cv_op *op) {
    struct copy *copy = arg;
    if (index >= copy->loaded) return false;
    *op = cv_op_get(node_path(copy, &copy->from, copy->first + index));
    return true;
}

static void done_get(void *arg, size_t index, const struct cv_result *result) {
    struct copy *copy = arg;
    struct copy_load *load = load_of(copy, index);
    load->error = result->error;
    if (!result->error) bytes_add(&load->data, result->data, result->size);
}

static bool describe_acl(void *arg, size_t index, struct cv_op *op) {
    bool more = describe_get(arg, index, op);
    op->type = CV_OP_GET_ACL;
    return more;
}

static void done_acl(void *arg, size_t index, const struct cv_result *result) {
    struct copy *copy = arg;
    struct copy_load *load = load_of(copy, index);
    if (result->error)
        load->error = result->error;
    else
        acl_copy(&load->acl, result->acl, result->acl_count);
}

static int load_nodes(struct copy *copy) {
    struct remote *remote = copy->from.remote;
    struct pipeline get = {describe_get, done_get, copy, true};
    struct pipeline acl = {describe_acl, done_acl, copy, true};
    int error = pipeline_run(remote, &get);
    if (!error && copy->to.remote) error = pipeline_run(remote, &acl);
    if (error) return remote_fail(remote, error, copy->from.path);
    for (size_t i = 0; i < copy->loaded; i++) {
        error = load_of(copy, i)->error;
        if (error && (error != CV_NO_NODE || copy->first + i == 0))
            return remote_fail(remote, error, node_path(copy, &copy->from, copy->first + i));
    }
    return 0;
}

static int load_files(struct copy *copy) {
    int status = 0;
    for (size_t i = 0; i < copy->loaded && !status; i++)
        status = copy_load_file(copy, copy->first + i, load_of(copy, i));
    return status;
}

/* ---- To nodes ---- */

/* What is gone meanwhile is not copied; as an operation that does nothing it keeps its number. */
static bool describe_store(struct copy *copy, size_t index, struct cv_op *op, bool exists) {
    if (index >= copy->loaded) return false;
    const struct copy_load *load = load_of(copy, index);
    const char *path = node_path(copy, &copy->to, copy->first + index);
    const void *data = load->data.used ? (const void *)load->data.at : "";
    if (load->error != (exists ? CV_NODE_EXISTS : 0)) {
        *op = cv_op_exists(path);
    } else if (exists) {
        *op = cv_op_set(path, data, load->data.used, -1);
    } else {
        *op = cv_op_create(path, data, load->data.used, CV_PERSISTENT);
        if (load->acl.count) op->acl = load->acl.entries, op->acl_count = load->acl.count;
    }
    return true;
}

static bool describe_create(void *arg, size_t index, struct cv_op *op) {
    return describe_store(arg, index, op, false);
}

static bool describe_set(void *arg, size_t index, struct cv_op *op) {
    return describe_store(arg, index, op, true);
}

static void done_create(void *arg, size_t index, const struct cv_result *result) {
    struct copy *copy = arg;
    struct copy_load *load = load_of(copy, index);
    if (load->error) return;
    load->error = result->error;
    if (!result->error || (result->error == CV_NODE_EXISTS && copy->force) || copy->status) return;
    copy->status = remote_fail(copy->to.remote, result->error,
                               node_path(copy, &copy->to, copy->first + index));
}

static void done_set(void *arg, size_t index, const struct cv_result *result) {
    struct copy *copy = arg;
    struct copy_load *load = load_of(copy, index);
    if (load->error != CV_NODE_EXISTS || !result->error || copy->status) return;
    copy->status = remote_fail(copy->to.remote, result->error,
                               node_path(copy, &copy->to, copy->first + index));
}

static int store_nodes(struct copy *copy) {
    struct remote *remote = copy->to.remote;
    struct pipeline create = {describe_create, done_create, copy, false};
    struct pipeline set = {describe_set, done_set, copy, true};
    int error = pipeline_run(remote, &create);
    if (!error && !copy->status && copy->force) error = pipeline_run(remote, &set);
    return error ? remote_fail(remote, error, copy->to.path) : copy->status;
}

static int store_files(struct copy *copy) {
    int status = 0;
    for (size_t i = 0; i < copy->loaded && !status; i++)
        if (!load_of(copy, i)->error)
            status = copy_store_file(copy, copy->first + i, load_of(copy, i));
    return status;
}

/* ---- All ---- */

static void unload(struct copy *copy) {
    for (size_t i = 0; i < copy->loaded; i++) {
        bytes_close(&copy->loads[i].data);
        acl_close(&copy->loads[i].acl);
        copy->loads[i].error = 0;
    }
}

int copy_run(struct copy *copy, progress_fn *progress) {
    int status = 0;
    for (copy->first = 0; copy->first < copy->count && !status; copy->first += copy->loaded) {
        size_t left = copy->count - copy->first;
        copy->loaded = left < COPY_AT_ONCE ? left : COPY_AT_ONCE;
        status = copy->from.remote ? load_nodes(copy) : load_files(copy);
        if (!status) status = copy->to.remote ? store_nodes(copy) : store_files(copy);
        unload(copy);
        if (!status && progress) progress(copy->first + copy->loaded, copy->count);
    }
    return status;
}

void copy_close(struct copy *copy) {
    for (size_t i = 0; i < copy->count; i++) free(copy->items[i].relative);
    free(copy->items);
    bytes_close(&copy->path);
    bytes_close(&copy->file);
}
