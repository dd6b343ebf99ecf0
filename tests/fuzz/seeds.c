/* Makes the seeds of the corpora for the server's files: a small tree with one of everything, as an
 * image, as the entries that make it, as a log of those entries and as a snapshot.
 *
 *   gcc -std=gnu17 -Isrc -D_GNU_SOURCE -o seeds tests/fuzz/seeds.c \
 *       $(ls src/tree/?*.c src/raft/?*.c src/zk/?*.c src/base/?*.c) -lm -lzstd
 *   ./seeds tests/fuzz/corpus */
#include "fuzz_files.h"
#include "fuzz_tree.h"
#include "raft/log.h"
#include "raft/snapshot.h"
#include "raft/window.h"

enum { SESSION = 1, SEGMENT_BYTES = 2048 };

static const char *corpus;
static struct tree tree;
static struct bytes entries; /* each behind its size, as fuzz_entry.c wants them */
static struct window window;

static void keep(const char *target, const char *name, const void *bytes, size_t size) {
    char path[512];
    snprintf(path, sizeof path, "%s/%s/%s", corpus, target, name);
    FILE *file = fopen(path, "wb");
    cv_assert(file && fwrite(bytes, 1, size, file) == size);
    fclose(file);
}

static void add(int32_t op, struct zk_in body) {
    struct bytes reply = {0}, identities = {0};
    zk_write_client(&identities, &(struct zk_client){zk_text_of("digest"), zk_text_of("u:p")});
    struct tree_entry entry = {.time = 1000,
                               .session = SESSION,
                               .identities = {identities.at, identities.used, 1},
                               .rules = TREE_EXTENDED_TYPES | TREE_ENFORCE_QUOTA,
                               .op = op,
                               .body = body};
    size_t size = tree_entry_size(&entry);
    cv_assert(size <= UINT16_MAX);
    unsigned char *to = bytes_extend(&entries, size + 2);
    to[0] = (unsigned char)(size >> 8);
    to[1] = (unsigned char)size;
    tree_store_entry(to + 2, &entry);
    tree_store_entry(window_room(&window, size), &entry);
    window_add(&window, 1, RAFT_NORMAL, size);
    cv_assert(tree_apply(&tree, tree.zxid + 1, &entry, &reply) == ZK_OK);
    bytes_close(&reply);
    bytes_close(&identities);
}

static void ask(int32_t op, const union zk_request *request) {
    struct bytes body = {0};
    zk_op_of(op)->request->write(&body, request);
    add(op, zk_in_of(body.at, body.used));
    bytes_close(&body);
}

static void create(int32_t op, const char *path, const char *data, const char *scheme,
                   const char *id, int32_t flags) {
    struct bytes acl = {0};
    zk_write_acl(&acl, &(struct zk_acl){ACL_ALL, {zk_text_of(scheme), zk_text_of(id)}});
    union zk_request r = {
        .create_ttl = {zk_text_of(path), zk_text_of(data), {acl.at, acl.used, 1}, flags, 60000}};
    ask(op, &r);
    bytes_close(&acl);
}

static void add_multi(void) {
    struct bytes body = {0};
    union zk_request set = {.set_data = {zk_text_of("/a"), zk_text_of("more"), -1}};
    union zk_request check = {.check = {zk_text_of("/a"), 1}};
    union zk_request gone = {.delete = {zk_text_of("/none"), -1}};
    zk_write_multi_op(&body, ZK_OP_SET_DATA, &set);
    zk_write_multi_op(&body, ZK_OP_CHECK, &check);
    zk_write_multi_op(&body, ZK_OP_DELETE, &gone); /* and all is taken back */
    zk_write_multi_end(&body);
    add(ZK_OP_MULTI, zk_in_of(body.at, body.used));
    bytes_close(&body);
}

static void make_tree(void) {
    unsigned char session[4 + TREE_PASSWORD_SIZE] = {0, 0, 16};
    add(ZK_OP_CREATE_SESSION, zk_in_of(session, sizeof session));
    create(ZK_OP_CREATE, "/a", "data", "world", "anyone", ZK_PERSISTENT);
    create(ZK_OP_CREATE2, "/a/s", "", "auth", "", ZK_EPHEMERAL_SEQUENTIAL);
    create(ZK_OP_CREATE_CONTAINER, "/c", "", "digest", "u:p", ZK_CONTAINER);
    create(ZK_OP_CREATE_TTL, "/t", "", "ip", "10.0.0.0/8", ZK_TTL);
    create(ZK_OP_CREATE, "/zookeeper/quota/a", "", "world", "anyone", ZK_PERSISTENT);
    create(ZK_OP_CREATE, "/zookeeper/quota/a/zookeeper_limits",
           "count=5,bytes=5=;byteHardLimit=9;countHardLimit=9", "world", "anyone", ZK_PERSISTENT);
    create(ZK_OP_CREATE, "/zookeeper/quota/a/zookeeper_stats", "", "world", "anyone",
           ZK_PERSISTENT);
    add_multi();
}

static int ignore(void *context, const struct raft_batch *batch) {
    return (void)context, (void)batch, 0;
}

/* A log in a new directory, closed, as a file behind the byte that asks for checksums to be put
 * right, as fuzz_log.c does. */
static void keep_log(const char *name, const struct raft_batch *batch, size_t batches, long more) {
    struct log log = {.segment_bytes = SEGMENT_BYTES};
    unsigned char file[1 + SEGMENT_BYTES] = {3};
    bool cut;
    fuzz_file("none", "", 0);
    cv_assert(log_open(&log, fuzz_directory, fuzz_path, 0, 0, ignore, NULL, &cut) == 0);
    for (size_t i = 0; i < batches; i++) cv_assert(log_append(&log, &batch[i]) == 0);
    cv_assert(log.segments == 1 && log.end.at + 500 < sizeof file);
    size_t used = log.end.at;
    log_close(&log);
    int segment = openat(fuzz_directory, "log.0000000000000001", O_RDONLY | O_CLOEXEC);
    cv_assert(segment >= 0 && read(segment, file + 1, SEGMENT_BYTES) > 0);
    close(segment);
    keep("log", name, file, (size_t)((long)used + 1 + more));
}

static void keep_logs(void) {
    struct raft_batch batch[4];
    window_read(&window, 1, SIZE_MAX, &batch[0]);
    uint64_t last = raft_batch_last(&batch[0]);
    const unsigned char *text = (const unsigned char *)"\1\0\0\0x\1\0\0\0y";
    batch[0].committed = last;
    batch[1] = (struct raft_batch){last + 1, 2, last, 2, RAFT_NORMAL, text, 10};
    batch[2] = (struct raft_batch){last + 2, 3, last, 1, RAFT_CONFIG, text, 5}; /* replaces */
    batch[3] = (struct raft_batch){last + 3, 3, last + 2, 1, RAFT_NORMAL, text, 5};
    keep_log("whole", batch, 1, 0);
    keep_log("torn", batch, 1, -20);
    keep_log("room-left", batch, 1, 500);
    keep_log("replaced", batch, 4, 0);
}

static void keep_snapshot(const struct bytes *image) {
    struct snapshots s = {.directory = fuzz_directory, .path = fuzz_path};
    struct snapshot_writer *writer = snapshot_begin(&s, 1, 1);
    unsigned char file[8192] = {1};
    cv_assert(writer && snapshot_write(writer, image->at, image->used) == 0);
    cv_assert(snapshot_end(writer, 1) == 0);
    int snapshot = openat(fuzz_directory, "snapshot.0000000000000001", O_RDONLY | O_CLOEXEC);
    ssize_t size = read(snapshot, file + 1, sizeof file - 1);
    cv_assert(snapshot >= 0 && size > 0);
    close(snapshot);
    keep("snapshot", "tree", file, 1 + (size_t)size);
    keep("snapshot", "cut", file, (size_t)size - 9);
}

int main(int count, char **arguments) {
    struct bytes image = {0};
    if (count != 2) return 2;
    corpus = arguments[1];
    window_open(&window, 0);
    cv_assert(tree_open(&tree, 1) == 0 && tree_save(&tree, fuzz_write, &image) == 0);
    keep("tree_image", "new", image.at, image.used);
    make_tree();
    image.used = 0;
    cv_assert(tree_save(&tree, fuzz_write, &image) == 0);
    keep("tree_image", "one-of-everything", image.at, image.used);
    keep("entry", "one-of-everything", entries.at, entries.used);
    keep_logs();
    keep_snapshot(&image);
    return 0;
}
