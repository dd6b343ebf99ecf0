/* What a request that changes nothing is answered. */
#include "tree/tree.h"

static bool readable(const struct tree *tree, node_id id, const struct zk_clients *identities) {
    return acl_allows(tree, tree->node[id].acl, ACL_READ, identities);
}

static void write_children(const struct tree *tree, node_id id, struct bytes *out) {
    const struct node *node = &tree->node[id];
    uint32_t count = node_children(node);
    zk_write_i32(out, (int32_t)count);
    for (node_id child = count ? node->first_child : 0; child; child = tree->node[child].next)
        zk_write_text(out, node_name(&tree->node[child]));
}

static void write_stat(const struct tree *tree, node_id id, struct bytes *out) {
    struct zk_stat stat;
    tree_stat(&tree->node[id], &stat);
    zk_write_stat(out, &stat);
}

/* Without the right to administer, the secret half of a digest is not shown. */
static void write_acl(const struct tree *tree, node_id id, const struct zk_clients *identities,
                      struct bytes *out) {
    struct zk_acls left = acl_list(tree, tree->node[id].acl);
    struct zk_acl entry;
    bool whole = acl_allows(tree, tree->node[id].acl, ACL_ADMIN, identities);
    zk_write_i32(out, left.count);
    while (zk_acls_next(&left, &entry)) {
        if (!whole && zk_text_equal(entry.id.scheme, zk_text_of("digest"))) {
            const char *colon = memchr(entry.id.id.at, ':', (size_t)entry.id.id.size);
            size_t user = (size_t)(colon - entry.id.id.at) + 1;
            zk_write_i32(out, entry.perms);
            zk_write_text(out, entry.id.scheme);
            zk_write_i32(out, (int32_t)user + 1);
            unsigned char *to = bytes_extend(out, user + 1);
            memcpy(to, entry.id.id.at, user);
            to[user] = 'x';
        } else {
            zk_write_acl(out, &entry);
        }
    }
}

static bool begins_with(struct zk_text text, struct zk_text prefix) {
    return prefix.size <= 0 ||
           (text.size >= prefix.size && memcmp(text.at, prefix.at, (size_t)prefix.size) == 0);
}

static int32_t ephemerals(struct tree *tree, int64_t session, struct zk_text prefix,
                          struct bytes *reply) {
    uint32_t place = session_find(tree, session);
    size_t count_at = reply->used;
    int32_t count = 0;
    zk_write_i32(reply, 0);
    for (node_id id = place ? tree->sessions.at[place].owned : 0; id;
         id = tree->node[id].next_owned) {
        tree->scratch.used = 0;
        tree_path(tree, id, &tree->scratch);
        struct zk_text path = {(const char *)tree->scratch.at, (int32_t)tree->scratch.used};
        if (!begins_with(path, prefix)) continue;
        zk_write_text(reply, path);
        count++;
    }
    zk_store_i32(reply->at + count_at, &count);
    return ZK_OK;
}

/* Of all these the request begins with a path, and is about the node there. */
static int32_t read_node(struct tree *tree, int32_t op, node_id id,
                         const struct zk_clients *identities, struct bytes *reply) {
    const struct node *node = &tree->node[id];
    bool admin = op == ZK_OP_GET_ACL && acl_allows(tree, node->acl, ACL_ADMIN, identities);
    if (op != ZK_OP_EXISTS && !admin && !readable(tree, id, identities)) return ZK_NOAUTH;
    switch (op) {
    case ZK_OP_GET_DATA: zk_write_text(reply, node_data(node)); break;
    case ZK_OP_GET_CHILDREN:
    case ZK_OP_GET_CHILDREN2: write_children(tree, id, reply); break;
    case ZK_OP_GET_ACL: write_acl(tree, id, identities, reply); break;
    case ZK_OP_GET_ALL_CHILDREN_NUMBER:
        zk_write_i32(reply, (int32_t)tree_descendants(tree, id));
        return ZK_OK;
    default: break;
    }
    if (op != ZK_OP_GET_CHILDREN) write_stat(tree, id, reply);
    return ZK_OK;
}

int32_t tree_read(struct tree *tree, int32_t op, const union zk_request *request, int64_t session,
                  const struct zk_clients *identities, struct bytes *reply) {
    struct zk_text path = request->get_acl.path;
    if (op == ZK_OP_GET_EPHEMERALS) return ephemerals(tree, session, path, reply);
    if (path.size < 0) return ZK_MARSHALLINGERROR;
    if (op == ZK_OP_EXISTS && memchr(path.at, 0, (size_t)path.size)) return ZK_BADARGUMENTS;
    node_id id = tree_find(tree, path);
    return id ? read_node(tree, op, id, identities, reply) : ZK_NONODE;
}
