/* Any bytes as entries of the log, each after its size in two bytes: valid entries are applied, and
 * the tree stays consistent.
 *
 *   make fuzz F=entry */
#include "fuzz_tree.h"

enum { SESSIONS = 3 };

static void open_session(struct tree *tree, int64_t id) {
    unsigned char body[4 + TREE_PASSWORD_SIZE] = {0, 0, 16};
    cv_assert(fuzz_apply(tree, id, ZK_OP_CREATE_SESSION, zk_in_of(body, sizeof body)) == ZK_OK);
}

/* An entry is stored as it was read. */
static void check_entry(struct zk_in raw, const struct tree_entry *entry) {
    size_t size = tree_entry_size(entry);
    unsigned char *stored = malloc(size);
    cv_assert(stored && size == zk_left(&raw));
    tree_store_entry(stored, entry);
    cv_assert(memcmp(stored, raw.at, size) == 0);
    free(stored);
}

static void apply(struct tree *tree, struct zk_in raw) {
    struct tree_entry entry;
    struct bytes reply = {0};
    struct zk_in in = raw;
    if (!tree_read_entry(&in, &entry)) return;
    check_entry(raw, &entry);
    /* The server never gives a session an id that is a mark of nodes. */
    if (entry.op == ZK_OP_CREATE_SESSION) entry.session &= INT64_C(0x7fffffffffffffff);
    if (entry.op == ZK_OP_CREATE_SESSION && !entry.session) return;
    uint32_t nodes = tree->nodes;
    int32_t err = tree_apply(tree, tree->zxid + 1, &entry, &reply);
    cv_assert(!tree->undos);
    if (err) cv_assert(tree->nodes == nodes && !tree->events);
    bytes_close(&reply);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
    struct zk_in in = zk_in_of(bytes, size);
    struct tree tree;
    cv_assert(tree_open(&tree, 1) == 0);
    for (int64_t id = 1; id <= SESSIONS; id++) open_session(&tree, id);
    while (zk_left(&in) >= 2) {
        size_t part = (size_t)in.at[0] << 8 | in.at[1];
        in.at += 2;
        if (part > zk_left(&in)) part = zk_left(&in);
        apply(&tree, zk_in_of(in.at, part));
        in.at += part;
    }
    fuzz_check_tree(&tree);
    fuzz_check_image(&tree);
    fuzz_read_all(&tree);
    tree_close(&tree);
    return 0;
}
