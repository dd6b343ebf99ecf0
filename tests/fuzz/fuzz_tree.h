/* The invariants of any tree. */
#ifndef CV_FUZZ_TREE_H
#define CV_FUZZ_TREE_H

#include "base/assert.h"
#include "service/tree/tree.h"

static inline int fuzz_write(void *context, const void *bytes, size_t size) {
    bytes_add(context, bytes, size);
    return 0;
}

static inline int fuzz_read(void *context, void *bytes, size_t size) {
    struct zk_in *in = context;
    if (size > zk_left(in)) return -1;
    if (size) memcpy(bytes, in->at, size);
    in->at += size;
    return 0;
}

/* Nodes are found by their paths, and counters and sessions agree with them. */
static inline void fuzz_check_tree(const struct tree *tree) {
    uint32_t nodes = 0, ephemerals = 0, up;
    int64_t bytes = 0;
    struct bytes path = {0};
    for (node_id id = TREE_ROOT; id; id = tree_walk(tree, TREE_ROOT, id, &up)) {
        const struct node *node = &tree->node[id];
        path.used = 0;
        tree_path(tree, id, &path);
        cv_assert(tree_find(tree, (struct zk_text){(char *)path.at, (int32_t)path.used}) == id);
        cv_assert(!node_is_ephemeral(node) || session_find(tree, node->owner));
        nodes++;
        ephemerals += node_is_ephemeral(node);
        bytes += node->name_size + (node->data_size > 0 ? node->data_size : 0);
    }
    cv_assert(nodes == tree->nodes && ephemerals == tree->ephemerals && bytes == tree->bytes);
    bytes_close(&path);
}

/* Saved and loaded, it is as large as it was. */
static inline void fuzz_check_image(const struct tree *tree) {
    struct bytes image = {0}, again = {0};
    struct tree copy;
    const char *why;
    cv_assert(tree_save(tree, fuzz_write, &image) == 0);
    struct zk_in in = zk_in_of(image.at, image.used);
    cv_assert(tree_open(&copy, 2) == 0);
    cv_assert(tree_load(&copy, fuzz_read, &in, &why) == 0 && zk_left(&in) == 0);
    fuzz_check_tree(&copy);
    cv_assert(copy.nodes == tree->nodes && copy.bytes == tree->bytes);
    cv_assert(copy.quotas == tree->quotas && copy.sessions.count == tree->sessions.count);
    tree_close(&copy);
    bytes_close(&image);
    bytes_close(&again);
}

/* Reads everything of every node, without an identity. */
static inline void fuzz_read_all(struct tree *tree) {
    static const int32_t ops[] = {ZK_OP_EXISTS,  ZK_OP_GET_DATA,     ZK_OP_GET_CHILDREN2,
                                  ZK_OP_GET_ACL, ZK_OP_GET_CHILDREN, ZK_OP_GET_ALL_CHILDREN_NUMBER};
    struct zk_clients nobody = {0};
    struct bytes path = {0}, reply = {0};
    uint32_t up;
    for (node_id id = TREE_ROOT; id; id = tree_walk(tree, TREE_ROOT, id, &up))
        for (size_t i = 0; i < sizeof ops / sizeof *ops; i++) {
            path.used = reply.used = 0;
            tree_path(tree, id, &path);
            union zk_request r = {.exists = {{(char *)path.at, (int32_t)path.used}, false}};
            int32_t err = tree_read(tree, ops[i], &r, 0, &nobody, &reply);
            cv_assert(err == ZK_OK || err == ZK_NOAUTH);
        }
    bytes_close(&path);
    bytes_close(&reply);
}

/* Applies an internal entry of the server. */
static inline int32_t fuzz_apply(struct tree *tree, int64_t session, int32_t op,
                                 struct zk_in body) {
    struct tree_entry entry = {
        .time = 5, .session = session, .rules = TREE_EXTENDED_TYPES, .op = op, .body = body};
    struct bytes reply = {0};
    int32_t err = tree_apply(tree, tree->zxid, &entry, &reply);
    bytes_close(&reply);
    return err;
}

#endif
