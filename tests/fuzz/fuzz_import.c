/* Any bytes as files of a ZooKeeper server: if they are accepted, the tree can be saved and loaded
 * again, as a server does.  The first byte chooses the kind of file; as few inputs have valid
 * checksums, the parts inside are tried without them, too. */
#include "base/assert.h"
#include "service/store/internal.h"

enum { SNAPSHOT, SNAPSHOT_BODY, LOG, TRANSACTIONS, KINDS };

struct image {
    struct bytes bytes;
    size_t at;
};

static int write_image(void *context, const void *bytes, size_t size) {
    struct image *image = context;
    bytes_add(&image->bytes, bytes, size);
    return 0;
}

static int read_image(void *context, void *bytes, size_t size) {
    struct image *image = context;
    if (image->bytes.used - image->at < size) return -1;
    memcpy(bytes, image->bytes.at + image->at, size);
    image->at += size;
    return 0;
}

static void check(struct tree *tree) {
    struct image image = {0};
    struct tree again;
    const char *why = NULL;
    cv_assert(tree_save(tree, write_image, &image) == 0);
    cv_assert(tree_open(&again, 7) == 0);
    cv_assert(tree_load(&again, read_image, &image, &why) == 0);
    cv_assert(image.at == image.bytes.used && again.nodes == tree->nodes);
    cv_assert(again.quotas == tree->quotas && again.ephemerals == tree->ephemerals);
    tree_close(&again);
    bytes_close(&image.bytes);
}

/* Each begins with its size, of one byte. */
static bool read_transactions(struct tree *tree, struct zk_in in) {
    while (in.at < in.end) {
        size_t size = *in.at++;
        if (size > zk_left(&in)) size = zk_left(&in);
        if (import_transaction(tree, zk_in_of(in.at, size))) return false;
        in.at += size;
    }
    return true;
}

static bool read_as(struct tree *tree, int kind, struct zk_in in) {
    struct import_fault fault;
    struct import_log log = {0};
    const char *why;
    switch (kind) {
    case SNAPSHOT: return import_snapshot(tree, in, &fault);
    case SNAPSHOT_BODY: return import_snapshot_body(tree, &in, &why);
    case LOG: return import_log(tree, in, &log, &fault);
    default: return read_transactions(tree, in);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
    struct tree tree;
    uint64_t gone;
    if (!size) return 0;
    int kind = bytes[0] % KINDS;
    bool empty = kind == SNAPSHOT || kind == SNAPSHOT_BODY;
    cv_assert((empty ? tree_open_empty(&tree, 5) : tree_open(&tree, 5)) == 0);
    if (read_as(&tree, kind, zk_in_of(bytes + 1, size - 1)) && !import_finish(&tree, &gone))
        check(&tree);
    tree_close(&tree);
    return 0;
}
