/* Any bytes as the image of a tree: if they are loaded, the tree can be used.
 *
 *   make fuzz F=tree_image */
#include "fuzz_tree.h"

struct expired {
    struct tree *tree;
    struct bytes paths;
    int32_t count;
};

static void note(void *context, struct zk_text path) {
    struct expired *p = context;
    zk_write_text(&p->paths, path);
    p->count++;
}

/* As the leader does, whichever server the client was connected to. */
static void expire(struct tree *tree, const struct session *session) {
    int64_t zxid = tree->zxid;
    unsigned char body[TREE_EXPIRY_SIZE];
    struct tree_entry entry = {.time = 5,
                               .session = session->id,
                               .rules = TREE_EXPIRES,
                               .op = ZK_OP_CLOSE_SESSION,
                               .body = zk_in_of(body, sizeof body)};
    tree_store_expiry(body, &(struct tree_expiry){zxid >> 32, (int32_t)session->moves});
    struct bytes reply = {0};
    cv_assert(tree_apply(tree, zxid, &entry, &reply) == ZK_OK);
    bytes_close(&reply);
}

/* Ends all sessions, and deletes all expirable nodes. */
static void end_all(struct tree *tree) {
    struct expired p = {.tree = tree};
    struct zk_text path;
    for (uint32_t place = 1; place <= tree->sessions.slots; place++)
        if (tree->sessions.at[place].id) expire(tree, &tree->sessions.at[place]);
    cv_assert(!tree->ephemerals && !tree->sessions.count);
    struct clock first = {0}, late = {.now_ms = INT64_MAX, .monotonic_us = INT64_MAX};
    tree_find_expired(tree, 1, SIZE_MAX, &first, NULL, NULL);
    tree_find_expired(tree, 1, SIZE_MAX, &late, note, &p);
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
