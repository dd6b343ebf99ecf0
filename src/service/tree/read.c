/* Answers to requests that change nothing. */
#include "service/tree/internal.h"

static bool readable(const struct tree *tree, node_id id, const struct zk_clients *identities) {
    return acl_allows(tree, tree->node[id].acl, ACL_READ, identities);
}

/* A list of which some is written, by steps; false: not all yet. */

static bool write_children(const struct tree *tree, node_id id, struct bytes *out,
                           struct tree_reading *reading, size_t *steps) {
    const struct node *node = &tree->node[id];
    uint32_t count = node_children(node);
    if (!reading->begun) {
        zk_write_i32(out, (int32_t)count);
        *reading = (struct tree_reading){.begun = true, .next = count ? node->first_child : 0};
    }
    while (reading->next && *steps) {
        const struct node *child = &tree->node[reading->next];
        tree_step_over((size_t)node_name(child).size, steps);
        zk_write_text(out, node_name(child));
        reading->next = child->next;
    }
    return !reading->next;
}

static bool count_descendants(struct tree *tree, node_id top, int32_t *count, size_t *steps) {
    bool is_root = top == TREE_ROOT; /* for which nothing has to be counted */
    if (!is_root && !totals_count_some(tree, steps)) return false;
    *count = (int32_t)(is_root ? tree->nodes : totals_nodes(tree, top)) - 1;
    return true;
}

static void write_stat(const struct tree *tree, node_id id, struct bytes *out) {
    struct zk_stat stat;
    tree_stat(&tree->node[id], &stat);
    zk_write_stat(out, &stat);
}

/* Without ADMIN permission a client does not see the secret half of a digest, as in ZooKeeper. */
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

static bool write_ephemerals(struct tree *tree, int64_t session, struct zk_text prefix,
                             struct bytes *reply, struct tree_reading *reading, size_t *steps) {
    enum { NAME_BYTES = 64 };
    if (!reading->begun) {
        uint32_t slot = session_find(tree, session);
        *reading = (struct tree_reading){.begun = true,
                                         .next = slot ? tree->sessions.at[slot].owned : 0,
                                         .count_at = reply->used};
        zk_write_i32(reply, 0);
    }
    while (reading->next && *steps) {
        tree->scratch.used = 0;
        tree_path(tree, reading->next, &tree->scratch);
        struct zk_text path = {(const char *)tree->scratch.at, (int32_t)tree->scratch.used};
        size_t cost = 1 + tree->scratch.used / NAME_BYTES; /* it was put together from names */
        *steps -= cost < *steps ? cost : *steps;
        reading->next = tree->node[reading->next].next_owned;
        if (!begins_with(path, prefix)) continue;
        zk_write_text(reply, path);
        reading->count++;
    }
    zk_store_i32(reply->at + reading->count_at, &reading->count);
    return !reading->next;
}

/* All these requests begin with the path of the node. */
static int32_t read_node(struct tree *tree, int32_t op, node_id id,
                         const struct zk_clients *identities, struct bytes *reply,
                         struct tree_reading *reading, size_t *steps) {
    const struct node *node = &tree->node[id];
    bool admin = op == ZK_OP_GET_ACL && acl_allows(tree, node->acl, ACL_ADMIN, identities);
    if (op != ZK_OP_EXISTS && !admin && !readable(tree, id, identities)) return ZK_NOAUTH;
    switch (op) {
    case ZK_OP_GET_DATA: zk_write_text(reply, node_data(node)); break;
    case ZK_OP_GET_CHILDREN:
    case ZK_OP_GET_CHILDREN2:
        if (!write_children(tree, id, reply, reading, steps)) return TREE_UNFINISHED;
        break;
    case ZK_OP_GET_ACL: write_acl(tree, id, identities, reply); break;
    case ZK_OP_GET_ALL_CHILDREN_NUMBER:
        if (!count_descendants(tree, id, &reading->count, steps)) return TREE_UNFINISHED;
        zk_write_i32(reply, reading->count);
        return ZK_OK;
    default: break;
    }
    if (op != ZK_OP_GET_CHILDREN) write_stat(tree, id, reply);
    return ZK_OK;
}

size_t tree_expected_steps(const struct tree *tree, int32_t op, const union zk_request *request) {
    enum { UNKNOWN = 1 << 20 };
    struct zk_text path = request->get_data.path;
    bool is_of_children = op == ZK_OP_GET_CHILDREN || op == ZK_OP_GET_CHILDREN2;
    if (op != ZK_OP_GET_DATA && !is_of_children) return op == ZK_OP_EXISTS ? 1 : UNKNOWN;
    if (path.size < 0) return 1;
    const struct node *node = &tree->node[tree_find(tree, path)];
    if (is_of_children) return 1 + node_children(node);
    int32_t size = node_data(node).size; /* less than none: null */
    return tree_steps(size > 0 ? (size_t)size : 0);
}

int32_t tree_read_some(struct tree *tree, int32_t op, const union zk_request *request,
                       int64_t session, const struct zk_clients *identities, struct bytes *reply,
                       struct tree_reading *reading, size_t *steps) {
    struct zk_text path = request->get_acl.path;
    if (op == ZK_OP_GET_EPHEMERALS)
        return write_ephemerals(tree, session, path, reply, reading, steps) ? ZK_OK
                                                                            : TREE_UNFINISHED;
    if (path.size < 0) return ZK_MARSHALLINGERROR;
    if (op == ZK_OP_EXISTS && memchr(path.at, 0, (size_t)path.size)) return ZK_BADARGUMENTS;
    node_id id = tree_find(tree, path);
    return id ? read_node(tree, op, id, identities, reply, reading, steps) : ZK_NONODE;
}

int32_t tree_read(struct tree *tree, int32_t op, const union zk_request *request, int64_t session,
                  const struct zk_clients *identities, struct bytes *reply) {
    struct tree_reading reading = {0};
    size_t all = SIZE_MAX;
    return tree_read_some(tree, op, request, session, identities, reply, &reading, &all);
}
