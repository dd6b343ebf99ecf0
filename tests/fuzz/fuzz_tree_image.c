/* Any bytes as the image of a tree: what is loaded is a tree, and can be used as one.
 *
 *   make fuzz F=tree_image */
#include "fuzz_tree.h"

struct perished {
    struct tree *tree;
    struct bytes paths;
    int32_t count;
};

static void note(void *context, struct zk_text path) {
    struct perished *p = context;
    zk_write_text(&p->paths, path);
    p->count++;
}

/* All that can end does so. */
static void end_all(struct tree *tree) {
    struct perished p = {.tree = tree};
    struct zk_text path;
    for (uint32_t place = 1; place <= tree->sessions.places; place++)
        if (tree->sessions.at[place].id)
            cv_assert(fuzz_apply(tree, tree->sessions.at[place].id, ZK_OP_CLOSE_SESSION,
                                 (struct zk_in){0}) == ZK_OK);
    cv_assert(!tree->ephemerals && !tree->sessions.count);
    tree_perished(tree, INT64_MAX, note, &p);
    struct zk_texts left = {p.paths.at, p.paths.used, p.count};
    while (zk_texts_next(&left, &path)) {
        struct bytes body = {0};
        zk_write_text(&body, path);
        fuzz_apply(tree, 0, ZK_OP_DELETE_CONTAINER, zk_in_of(body.at, body.used));
        bytes_close(&body);
    }
    bytes_close(&p.paths);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
    struct zk_in in = zk_in_of(bytes, size);
    struct tree tree;
    const char *why = NULL;
    cv_assert(tree_open(&tree, 1) == 0);
    int status = tree_load(&tree, fuzz_read, &in, &why);
    cv_assert((status == 0) == (why == NULL));
    if (status == 0) {
        fuzz_check_tree(&tree);
        fuzz_check_image(&tree);
        fuzz_read_all(&tree);
        end_all(&tree);
        fuzz_check_tree(&tree);
    }
    tree_close(&tree);
    return 0;
}
