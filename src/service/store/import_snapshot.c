/* A snapshot of ZooKeeper:
 *
 *   "ZKSN", version, id of the database
 *   sessions   their count; each its id and its timeout
 *   ACLs       their count; each its number and the list
 *   nodes      parents first; each its path, data, ACL number and statistics; the root's path is
 *              empty, and a path "/" ends them
 *   a seal     Adler-32 of all before it, and "/"
 *   since 3.6  a digest of the tree, and another seal
 *
 * Sessions and ACLs are written first: nodes that clients create meanwhile may refer to others. */
#include <zlib.h>

#include "base/rng.h"
#include "service/store/internal.h"

#define ZK_FIELDS_file_header(F, R)  F(R, i32, magic) F(R, i32, version) F(R, i64, database)
#define ZK_FIELDS_kept_session(F, R) F(R, i64, id) F(R, i32, timeout)
#define ZK_FIELDS_kept_acl(F, R)     F(R, i64, number) F(R, acls, list)
#define ZK_FIELDS_kept_node(F, R)                                                                  \
    F(R, buffer, data)                                                                             \
    F(R, i64, acl)                                                                                 \
    F(R, i64, czxid)                                                                               \
    F(R, i64, mzxid)                                                                               \
    F(R, i64, ctime)                                                                               \
    F(R, i64, mtime)                                                                               \
    F(R, i32, version)                                                                             \
    F(R, i32, creates)                                                                             \
    F(R, i32, aversion)                                                                            \
    F(R, i64, owner)                                                                               \
    F(R, i64, pzxid)
#define ZK_FIELDS_seal(F, R) F(R, i64, checksum) F(R, text, end)

ZK_RECORD_(file_header, "FileHeader")
ZK_RECORD_(kept_session, "session")
ZK_RECORD_(kept_acl, "ACL")
ZK_RECORD_(kept_node, "DataNode")
ZK_RECORD_(seal, "seal")

enum { MAGIC = 0x5a4b534e, VERSION = 2, OPEN_NUMBER = -1, TEXT_MAX = 1 << 30 };

struct acl_numbers { /* of the file -> of the tree */
    struct known_acl {
        int64_t number;
        uint32_t acl;
    } * at;
    size_t room;
    uint32_t count;
    struct table index; /* of slots, from 1 */
};

bool import_header(struct zk_in *in, int32_t magic) {
    struct zk_file_header header;
    return zk_read_file_header(in, &header) && header.magic == magic && header.version == VERSION;
}

/* ---- Sessions and ACLs ---- */

static const char *read_sessions(struct tree *tree, struct zk_in *in) {
    int32_t count;
    struct zk_kept_session session;
    if (!zk_read_i32(in, &count) || count < 0) return "the number of sessions is invalid";
    for (int32_t i = 0; i < count; i++) {
        if (!zk_read_kept_session(in, &session)) return "it ends among the sessions";
        if (!import_is_session(session.id) || session.timeout < 0)
            return "a session has an invalid id or timeout";
        if (session_find(tree, session.id)) return "a session is listed twice";
        import_session(tree, session.id)->timeout_ms = session.timeout;
    }
    return NULL;
}

static uint32_t hash_of(int64_t number) { return (uint32_t)rng_mix((uint64_t)number); }

static uint32_t acl_of(struct acl_numbers *known, int64_t number) {
    uint32_t slot;
    if (number == OPEN_NUMBER) return ACL_OPEN;
    for (struct probe p = table_probe(&known->index, hash_of(number));
         (slot = table_next(&known->index, &p));)
        if (known->at[slot - 1].number == number) return known->at[slot - 1].acl;
    return 0;
}

static const char *read_acls(struct tree *tree, struct zk_in *in, struct acl_numbers *known) {
    int32_t count;
    struct zk_kept_acl acl;
    if (!zk_read_i32(in, &count) || count < 0) return "the number of ACLs is invalid";
    for (int32_t i = 0; i < count; i++) {
        if (!zk_read_kept_acl(in, &acl)) return "it ends among the ACLs";
        if (acl_of(known, acl.number)) return "an ACL is listed twice";
        if (!import_acl_is_sound(acl.list)) return "an ACL is malformed";
        known->at = grown(known->at, &known->room, known->count + 1, sizeof *known->at);
        if (acl.list.count <= 0)
            acl.list = acl_list(tree, ACL_OPEN); /* an empty list allows everything */
        known->at[known->count++] = (struct known_acl){acl.number, acl_take(tree, &acl.list)};
        table_add(&known->index, hash_of(acl.number), known->count);
    }
    return NULL;
}

static void forget_acls(struct tree *tree, struct acl_numbers *known) {
    for (uint32_t i = 0; i < known->count; i++) acl_drop(tree, known->at[i].acl);
    free(known->at);
    table_close(&known->index);
}

bool import_acl_is_sound(struct zk_acls list) {
    struct zk_acl entry;
    while (zk_acls_next(&list, &entry))
        if (!acl_entry_is_sound(&entry)) return false;
    return true;
}

uint32_t import_closed_acl(struct tree *tree) {
    struct bytes out = {0};
    zk_write_acl(&out, &(struct zk_acl){0, {zk_text_of("world"), zk_text_of("anyone")}});
    uint32_t acl = acl_take(tree, &(struct zk_acls){out.at, out.used, 1});
    bytes_close(&out);
    return acl;
}

/* ---- Nodes ---- */

static const char *find_parent(struct tree *tree, struct zk_text path, node_id *parent) {
    *parent = 0;
    if (path.size == 0) return tree->nodes ? "the root is listed twice" : NULL;
    if (!tree->nodes) return "the root is not the first node";
    if (!zk_path_valid(path)) return "a path is invalid";
    const char *slash = memrchr(path.at, '/', (size_t)path.size);
    *parent = tree_find(tree, (struct zk_text){path.at, (int32_t)(slash - path.at)});
    if (!*parent) return "a node comes before its parent";
    if (node_is_ephemeral(&tree->node[*parent])) return "an ephemeral node has children";
    return tree_find(tree, path) ? "a node is listed twice" : NULL;
}

static char *text_of(struct zk_text path, struct zk_text data, uint32_t *name_size) {
    const char *slash = path.size > 0 ? memrchr(path.at, '/', (size_t)path.size) : NULL;
    const char *name = slash ? slash + 1 : "";
    *name_size = slash ? (uint32_t)(path.at + path.size - name) : 0;
    size_t data_size = data.size > 0 ? (size_t)data.size : 0;
    char *text = malloc(*name_size + data_size + 1);
    cv_assert(text);
    memcpy(text, name, *name_size);
    if (data_size) memcpy(text + *name_size, data.at, data_size);
    return text;
}

static const char *add_node(struct tree *tree, struct acl_numbers *known, struct zk_text path,
                            const struct zk_kept_node *kept) {
    struct node node = {.czxid = kept->czxid,
                        .mzxid = kept->mzxid,
                        .pzxid = kept->pzxid,
                        .ctime = kept->ctime,
                        .mtime = kept->mtime,
                        .owner = kept->owner,
                        .data_size = kept->data.size,
                        .version = kept->version,
                        .creates = kept->creates,
                        .aversion = kept->aversion};
    node_id parent;
    const char *why = find_parent(tree, path, &parent);
    if (why) return why;
    if (node.owner && !parent) return "the root has an owner";
    if (node.data_size > TEXT_MAX || path.size > TEXT_MAX) return "a node is too large";
    if (node_is_ephemeral(&node)) import_session(tree, node.owner);
    uint32_t acl = acl_of(known, kept->acl), closed = acl ? 0 : import_closed_acl(tree);
    node.acl = acl ? acl : closed;
    node.text = text_of(path, kept->data, &node.name_size);
    node_insert(tree, &node, parent, path);
    if (closed) acl_drop(tree, closed);
    return NULL;
}

static const char *read_nodes(struct tree *tree, struct zk_in *in, struct acl_numbers *known) {
    for (;;) {
        const unsigned char *begin = in->at;
        struct zk_text path;
        struct zk_kept_node kept;
        if (!zk_read_text(in, &path) || path.size < 0) return "it ends among the nodes";
        if (zk_text_equal(path, zk_text_of("/"))) return tree->nodes ? NULL : "it has no root";
        if (!zk_read_kept_node(in, &kept)) return "it ends among the nodes";
        const char *why = add_node(tree, known, path, &kept);
        if (why) in->at = begin;
        if (why) return why;
    }
}

bool import_snapshot_body(struct tree *tree, struct zk_in *in, const char **why) {
    struct acl_numbers known = {0};
    *why = NULL;
    if (!import_header(in, MAGIC)) *why = "it is not a snapshot (wrong header)";
    if (!*why) *why = read_sessions(tree, in);
    if (!*why) *why = read_acls(tree, in, &known);
    if (!*why) *why = read_nodes(tree, in, &known);
    forget_acls(tree, &known);
    tree->quotas = 0; /* they are counted at the end */
    return !*why;
}

/* ---- The end ---- */

static bool read_seal(struct zk_in *in, const unsigned char *begin) {
    uint32_t checksum = (uint32_t)adler32_z(adler32(0, NULL, 0), begin, (size_t)(in->at - begin));
    struct zk_seal seal;
    return zk_read_seal(in, &seal) && seal.checksum == checksum &&
           zk_text_equal(seal.end, zk_text_of("/"));
}

static const char *check_seals(struct zk_in *in, const unsigned char *begin) {
    enum { SEAL_SIZE = sizeof(int64_t) + sizeof(int32_t) + 1 };
    if (!read_seal(in, begin)) return "its checksum is wrong: it is damaged";
    if (!zk_left(in)) return NULL;
    if (zk_left(in) < SEAL_SIZE) return "it ends within its last checksum";
    in->at = in->end - SEAL_SIZE;
    return read_seal(in, begin) ? NULL : "its last checksum is wrong: it is damaged";
}

bool import_snapshot(struct tree *tree, struct zk_in file, struct import_fault *fault) {
    const unsigned char *begin = file.at;
    if (import_snapshot_body(tree, &file, &fault->why)) fault->why = check_seals(&file, begin);
    fault->offset = (size_t)(file.at - begin);
    return !fault->why;
}
