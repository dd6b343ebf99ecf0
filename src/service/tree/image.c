/* The whole tree as bytes, for snapshots: the target of a change of the members if there is one
 * (else the image is of version 2, which had none), the last sequence number of each server,
 * sessions, ACLs,
 * then nodes with parents before their children, each with the number of levels to go up from the
 * one before it.  Integers are big-endian, as on the wire.  The caller has checked the bytes, but
 * they are not trusted: a wrong number is an error, never a wrong address. */
#include "base/grow.h"
#include "service/tree/internal.h"

#define MAGIC           "conclave tree 3\n"
#define MAGIC_NO_TARGET "conclave tree 2\n"
enum { MAGIC_SIZE = sizeof MAGIC - 1, PIECE = 1 << 16, TEXT_MAX = 1 << 30 };

#define NODE_NUMBERS(F)                                                                            \
    F(i64, czxid)                                                                                  \
    F(i64, mzxid)                                                                                  \
    F(i64, pzxid)                                                                                  \
    F(i64, ctime)                                                                                  \
    F(i64, mtime)                                                                                  \
    F(i64, owner)                                                                                  \
    F(i32, version)                                                                                \
    F(i32, creates)                                                                                \
    F(i32, aversion)

/* ---- Writing ---- */

struct sink {
    struct bytes out;
    tree_write_fn *write;
    void *context;
    bool failed;
};

static void flush(struct sink *sink, size_t min_bytes) {
    if (sink->out.used < min_bytes) return;
    if (!sink->failed && sink->write(sink->context, sink->out.at, sink->out.used) != 0)
        sink->failed = true;
    sink->out.used = 0;
}

static void write_i64(struct bytes *out, int64_t value) {
    zk_store_i64(bytes_extend(out, sizeof value), &value);
}

static void write_proposers(const struct tree *tree, struct bytes *out) {
    for (uint32_t i = 0; i < TREE_SERVERS_MAX; i++) {
        if (!tree->proposer[i].incarnation) continue;
        write_i64(out, (int64_t)tree->proposer[i].incarnation);
        write_i64(out, (int64_t)tree->proposer[i].sequence);
    }
    write_i64(out, 0);
}

static void write_sessions(const struct tree *tree, struct sink *sink) {
    const struct sessions *s = &tree->sessions;
    zk_write_i32(&sink->out, (int32_t)s->count);
    for (uint32_t slot = 1; slot <= s->slots; slot++) {
        const struct session *session = &s->at[slot];
        if (!session->id) continue;
        write_i64(&sink->out, session->id);
        zk_write_i32(&sink->out, session->timeout_ms);
        zk_write_i32(&sink->out, session->server);
        zk_write_i32(&sink->out, (int32_t)session->moves);
        memcpy(bytes_extend(&sink->out, TREE_PASSWORD_SIZE), session->password, TREE_PASSWORD_SIZE);
        flush(sink, PIECE);
    }
}

static void write_acls(const struct tree *tree, struct sink *sink) {
    zk_write_i32(&sink->out, (int32_t)tree->acls.slots);
    for (uint32_t slot = 1; slot <= tree->acls.slots; slot++) {
        const struct acl *acl = &tree->acls.at[slot];
        zk_write_i32(&sink->out, acl->refs ? acl->count : 0);
        zk_write_text(&sink->out, (struct zk_text){(const char *)acl->bytes,
                                                   acl->refs ? (int32_t)acl->size : 0});
        flush(sink, PIECE);
    }
}

#define WRITE_i64          write_i64
#define WRITE_i32          zk_write_i32
#define WRITE_(TYPE, NAME) WRITE_##TYPE(out, node->NAME);

static void write_node(const struct node *node, uint32_t up, struct bytes *out) {
    zk_write_i32(out, (int32_t)up);
    NODE_NUMBERS(WRITE_)
    zk_write_i32(out, (int32_t)node->acl);
    zk_write_text(out, node_name(node));
    zk_write_text(out, node_data(node));
}

int tree_save(const struct tree *tree, tree_write_fn *write, void *context) {
    struct sink sink = {.write = write, .context = context};
    const struct bytes *target = &tree->target;
    memcpy(bytes_extend(&sink.out, MAGIC_SIZE), target->used ? MAGIC : MAGIC_NO_TARGET, MAGIC_SIZE);
    write_i64(&sink.out, tree->zxid);
    if (target->used)
        zk_write_text(&sink.out, (struct zk_text){(const char *)target->at, (int32_t)target->used});
    write_proposers(tree, &sink.out);
    write_sessions(tree, &sink);
    write_acls(tree, &sink);
    zk_write_i32(&sink.out, (int32_t)tree->nodes);
    uint32_t up = 0;
    for (node_id id = TREE_ROOT; id && !sink.failed; id = tree_walk(tree, TREE_ROOT, id, &up)) {
        write_node(&tree->node[id], up, &sink.out);
        flush(&sink, PIECE);
    }
    flush(&sink, 1);
    bytes_close(&sink.out);
    return sink.failed ? -1 : 0;
}

/* ---- Reading ---- */

struct source {
    tree_read_fn *read;
    void *context;
    const char *why; /* NULL until it fails */
    uint32_t *acl;   /* indexes of the image -> of the tree */
    uint32_t acls;
    struct bytes path; /* of the node that was read last */
    node_id last;
};

static bool fail(struct source *source, const char *why) {
    if (!source->why) source->why = why;
    return false;
}

static bool take(struct source *source, void *bytes, size_t size) {
    if (source->why) return false;
    return source->read(source->context, bytes, size) == 0 || fail(source, "it ends too early");
}

static int32_t read_i32(struct source *source) {
    unsigned char raw[4] = {0};
    int32_t value;
    take(source, raw, sizeof raw);
    zk_read_i32(&(struct zk_in){raw, raw + sizeof raw}, &value);
    return value;
}

static int64_t read_i64(struct source *source) {
    unsigned char raw[8] = {0};
    int64_t value;
    take(source, raw, sizeof raw);
    zk_read_i64(&(struct zk_in){raw, raw + sizeof raw}, &value);
    return value;
}

static void read_target(struct tree *tree, struct source *source) {
    enum { TARGET_MAX = 1 << 16 };
    int32_t size = read_i32(source);
    if (size <= 0 || size > TARGET_MAX)
        fail(source, "its target of the members is empty or too large");
    if (!source->why) take(source, bytes_extend(&tree->target, (size_t)size), (size_t)size);
}

static bool read_proposers(struct tree *tree, struct source *source) {
    for (int i = 0; i <= TREE_SERVERS_MAX; i++) {
        uint64_t incarnation = (uint64_t)read_i64(source);
        if (!incarnation) return !source->why;
        tree->proposer[tree_server_of(incarnation)] =
            (struct tree_proposer){incarnation, (uint64_t)read_i64(source)};
    }
    return fail(source, "it has too many servers");
}

static bool read_sessions(struct tree *tree, struct source *source) {
    int32_t count = read_i32(source);
    for (int32_t i = 0; i < count && !source->why; i++) {
        unsigned char password[TREE_PASSWORD_SIZE];
        int64_t id = read_i64(source);
        int32_t timeout_ms = read_i32(source), server = read_i32(source);
        int32_t moves = read_i32(source);
        if (!take(source, password, sizeof password)) return false;
        if (!node_is_ephemeral(&(struct node){.owner = id}) || session_find(tree, id))
            return fail(source, "a session is invalid or listed twice");
        uint32_t slot = session_add(tree, id, timeout_ms, password);
        tree->sessions.at[slot].server = (uint8_t)server;
        tree->sessions.at[slot].moves = (uint32_t)moves;
    }
    return !source->why;
}

static bool read_acl(struct tree *tree, struct source *source, uint32_t number) {
    struct zk_acls list = {.count = read_i32(source)};
    struct zk_acl entry;
    int32_t size = read_i32(source);
    if (size < 0 || size > TEXT_MAX) return fail(source, "the size of an ACL is invalid");
    list.size = (size_t)size;
    tree->scratch.used = 0;
    unsigned char *bytes = bytes_extend(&tree->scratch, list.size + 1);
    if (!take(source, bytes, list.size)) return false;
    list.at = bytes;
    if (!list.count) return true; /* a free slot */
    struct zk_in in = zk_in_of(bytes, list.size);
    for (int32_t i = 0; i < list.count; i++)
        if (!zk_read_acl(&in, &entry) || !acl_entry_is_sound(&entry))
            return fail(source, "an ACL is malformed");
    if (zk_left(&in)) return fail(source, "an ACL is too long");
    source->acl[number] = acl_take(tree, &list);
    return true;
}

static bool read_acls(struct tree *tree, struct source *source) {
    int32_t count = read_i32(source);
    size_t room = 0;
    for (int32_t i = 1; i <= count && !source->why; i++) {
        source->acl = grown(source->acl, &room, (size_t)i + 1, sizeof *source->acl);
        source->acls = (uint32_t)i;
        source->acl[i] = 0;
        read_acl(tree, source, (uint32_t)i);
    }
    return !source->why;
}

#define SIZE_(TYPE, NAME) +sizeof(((struct node *)0)->NAME)
#define READ_(TYPE, NAME) zk_read_##TYPE(&in, &node->NAME);
struct fixed { /* the fields of a node before its name */
    int32_t up, acl, name_size;
};
enum { FIXED_SIZE = sizeof(struct fixed) NODE_NUMBERS(SIZE_) };

static bool read_fixed(struct source *source, struct fixed *fixed, struct node *node) {
    unsigned char raw[FIXED_SIZE] = {0};
    struct zk_in in = zk_in_of(raw, sizeof raw);
    if (!take(source, raw, sizeof raw)) return false;
    zk_read_i32(&in, &fixed->up);
    NODE_NUMBERS(READ_)
    zk_read_i32(&in, &fixed->acl);
    return zk_read_i32(&in, &fixed->name_size);
}

/* Goes up from the last node to the parent of the next one, and cuts `path` to that of the parent.
 */
static node_id climb(struct tree *tree, struct source *source, int32_t up) {
    node_id id = source->last;
    for (; up > 0 && id; up--) {
        source->path.used -= id == TREE_ROOT ? 0 : tree->node[id].name_size + 1;
        id = tree->node[id].parent;
    }
    return up == 0 ? id : 0;
}

static bool read_node(struct tree *tree, struct source *source, bool is_root) {
    struct node node = {0};
    struct fixed fixed;
    if (!read_fixed(source, &fixed, &node)) return false;
    node_id parent = climb(tree, source, fixed.up);
    uint32_t acl = (uint32_t)fixed.acl;
    int32_t name_size = fixed.name_size;
    if (!is_root && (!parent || node_is_ephemeral(&tree->node[parent])))
        return fail(source, "a node has no parent");
    if (acl < 1 || acl > source->acls || !source->acl[acl])
        return fail(source, "a node has no ACL");
    if (is_root ? name_size != 0 : name_size < 1 || name_size > TEXT_MAX)
        return fail(source, "the size of a name is invalid");
    if (is_root && node.owner) return fail(source, "the root has an owner");
    unsigned char *name = bytes_extend(&source->path, (size_t)name_size + !is_root);
    if (!is_root) *name++ = '/';
    take(source, name, (size_t)name_size);
    node.data_size = read_i32(source);
    if (node.data_size < -1 || node.data_size > TEXT_MAX)
        return fail(source, "the size of data is invalid");
    if (node_is_ephemeral(&node) && !session_find(tree, node.owner))
        return fail(source, "an ephemeral node has no session");
    struct zk_text path = {(const char *)source->path.at, (int32_t)source->path.used};
    if (!source->why && !is_root && (tree_find(tree, path) || !zk_path_valid(path)))
        return fail(source, "a path is invalid or listed twice");
    size_t data_size = node.data_size > 0 ? (size_t)node.data_size : 0;
    node.text = malloc((size_t)name_size + data_size + 1);
    cv_assert(node.text);
    if (name_size) memcpy(node.text, name, (size_t)name_size);
    node.name_size = (uint32_t)name_size;
    if (!take(source, node.text + name_size, data_size)) return free(node.text), false;
    node.acl = source->acl[acl];
    source->last = node_insert(tree, &node, parent, path);
    return true;
}

/* The nodes and ACLs of the image replace those that a new tree begins with. */
static void make_empty(struct tree *tree) {
    uint64_t seed = tree->seed;
    int32_t rules = tree->rules;
    tree_close(tree);
    int status = tree_open_empty(tree, seed);
    cv_assert(status == 0);
    tree->rules = rules;
}

int tree_load(struct tree *tree, tree_read_fn *read, void *context, const char **why) {
    struct source source = {.read = read, .context = context};
    char magic[MAGIC_SIZE] = {0};
    make_empty(tree);
    take(&source, magic, sizeof magic);
    bool has_target = memcmp(magic, MAGIC, MAGIC_SIZE) == 0;
    if (!has_target && memcmp(magic, MAGIC_NO_TARGET, MAGIC_SIZE) != 0)
        fail(&source, "it is not a tree of this version");
    tree->zxid = read_i64(&source);
    if (has_target) read_target(tree, &source);
    bytes_reserve(&source.path, 1); /* the path of the root is empty, but not NULL */
    if (read_proposers(tree, &source) && read_sessions(tree, &source) && read_acls(tree, &source)) {
        int32_t count = read_i32(&source);
        if (count < 1) fail(&source, "it has no root");
        if (!source.why) table_reserve(&tree->index, count < 1 << 24 ? (uint32_t)count : 1 << 24);
        for (int32_t i = 0; i < count && !source.why; i++) read_node(tree, &source, i == 0);
    }
    for (uint32_t i = 1; i <= source.acls; i++) /* the nodes hold references of their own */
        if (source.acl[i] && source.acl[i] != ACL_OPEN) acl_drop(tree, source.acl[i]);
    free(source.acl);
    bytes_close(&source.path);
    *why = source.why;
    return source.why ? -1 : 0;
}
