/* Nodes: one flat array, an index by the hash of the whole path, and links.
 *
 * One probe of the index finds a node however deep it is; the names on the way up from it confirm
 * that it is the right one. */
#include <stdlib.h>

#include "base/hash.h"
#include "service/tree/internal.h"

/* The list world:anyone with these permissions. */
static uint32_t anyone(struct tree *tree, int32_t permissions) {
    struct bytes out = {0};
    zk_write_acl(&out, &(struct zk_acl){permissions, {zk_text_of("world"), zk_text_of("anyone")}});
    uint32_t acl = acl_take(tree, &(struct zk_acls){out.at, out.used, 1});
    bytes_close(&out);
    return acl;
}

static node_id add_first(struct tree *tree, node_id parent, const char *path, const char *name) {
    node_id id = node_new(tree);
    tree->node[id] = (struct node){.text = strdup(name),
                                   .name_size = (uint32_t)strlen(name),
                                   .hash = tree_hash(tree, zk_text_of(path)),
                                   .acl = ACL_OPEN};
    cv_assert(tree->node[id].text);
    acl_share(tree, ACL_OPEN);
    node_link(tree, id, parent);
    return id;
}

int tree_open_empty(struct tree *tree, uint64_t seed) {
    *tree = (struct tree){.seed = seed};
    if (arena_open(&tree->node_arena, TREE_RESERVE) != 0) return -1;
    tree->node = (struct node *)(void *)tree->node_arena.base;
    arena_extend(&tree->node_arena, sizeof(struct node)); /* node_id 0 is none */
    uint32_t open = anyone(tree, ACL_ALL);
    cv_assert(open == ACL_OPEN);
    return 0;
}

void tree_complete(struct tree *tree) {
    static const char above[] = "/zookeeper", quota[] = "/zookeeper/quota",
                      settings[] = "/zookeeper/config";
    node_id top = tree_find(tree, zk_text_of(above));
    if (!top) top = add_first(tree, TREE_ROOT, above, "zookeeper");
    if (!tree_find(tree, zk_text_of(quota))) add_first(tree, top, quota, "quota");
    if (tree_find(tree, zk_text_of(settings))) return;
    struct node *config = &tree->node[add_first(tree, top, settings, "config")];
    config->aversion = -1; /* as in ZooKeeper */
    acl_drop(tree, config->acl);
    config->acl = anyone(tree, ACL_READ);
}

int tree_open(struct tree *tree, uint64_t seed) {
    if (tree_open_empty(tree, seed) != 0) return -1;
    add_first(tree, 0, "/", "");
    tree_complete(tree);
    return 0;
}

void tree_close(struct tree *tree) {
    size_t nodes = tree->node_arena.used / sizeof(struct node);
    for (size_t i = 1; i < nodes; i++) free(tree->node[i].text);
    for (uint32_t i = 1; i <= tree->acls.slots; i++) {
        acl_index_close(tree->acls.at[i].long_index);
        free(tree->acls.at[i].bytes);
    }
    free(tree->acls.at);
    free(tree->sessions.at);
    table_close(&tree->index);
    table_close(&tree->acls.index);
    table_close(&tree->sessions.index);
    bytes_close(&tree->target);
    bytes_close(&tree->texts);
    bytes_close(&tree->scratch);
    bytes_close(&tree->name);
    free(tree->event);
    free(tree->undo);
    for (size_t i = 0; i < tree->expirable_room; i++) free(tree->expirable[i].at);
    free(tree->expirable);
    table_close(&tree->quota_index);
    if (tree->totals.base) arena_close(&tree->totals);
    arena_close(&tree->node_arena);
}

/* ---- Finding ---- */

uint32_t tree_hash(const struct tree *tree, struct zk_text path) {
    return hash_bytes(path.at, path.size > 0 ? (size_t)path.size : 0, tree->seed);
}

/* Compares the names from the node up to the root with the path from its end. */
static bool is_at(const struct tree *tree, const struct node *node, struct zk_text path) {
    const char *end = path.at + path.size;
    for (; node->parent; node = &tree->node[node->parent]) {
        if (end - path.at <= (ptrdiff_t)node->name_size) return false;
        end -= node->name_size;
        if (memcmp(end, node->text, node->name_size) != 0 || *--end != '/') return false;
    }
    return end == path.at;
}

node_id tree_find(const struct tree *tree, struct zk_text path) {
    if (path.size == 0 || (path.size == 1 && path.at[0] == '/')) return TREE_ROOT;
    if (path.size < 0) return 0;
    uint32_t hash = tree_hash(tree, path);
    node_id id;
    for (struct probe p = table_probe(&tree->index, hash); (id = table_next(&tree->index, &p));)
        if (id != TREE_ROOT && is_at(tree, &tree->node[id], path)) return id;
    return 0;
}

void tree_path(const struct tree *tree, node_id id, struct bytes *out) {
    size_t size = 0;
    for (node_id i = id; tree->node[i].parent; i = tree->node[i].parent)
        size += tree->node[i].name_size + 1;
    if (size == 0) {
        *bytes_extend(out, 1) = '/';
        return;
    }
    unsigned char *end = bytes_extend(out, size) + size;
    for (node_id i = id; tree->node[i].parent; i = tree->node[i].parent) {
        end -= tree->node[i].name_size;
        memcpy(end, tree->node[i].text, tree->node[i].name_size);
        *--end = '/';
    }
}

node_id tree_walk(const struct tree *tree, node_id top, node_id id, uint32_t *up) {
    *up = 0;
    if (node_children(&tree->node[id])) return tree->node[id].first_child;
    for (; id != top; id = tree->node[id].parent) {
        ++*up;
        if (tree->node[id].next) return tree->node[id].next;
    }
    return 0;
}

void tree_stat(const struct node *node, struct zk_stat *stat) {
    uint32_t children = node_children(node);
    *stat = (struct zk_stat){
        .czxid = node->czxid,
        .mzxid = node->mzxid,
        .ctime = node->ctime,
        .mtime = node->mtime,
        .version = node->version,
        .cversion = (int32_t)(2 * (uint32_t)node->creates - children), /* creates + deletes */
        .aversion = node->aversion,
        .ephemeral_owner = node_is_ephemeral(node) ? node->owner : 0,
        .data_length = node->data_size > 0 ? node->data_size : 0,
        .num_children = (int32_t)children,
        .pzxid = node->pzxid,
    };
}

/* ---- Adding and removing ---- */

node_id node_new(struct tree *tree) {
    node_id id = tree->free_nodes;
    if (id) {
        tree->free_nodes = tree->node[id].next;
        tree->node[id] = (struct node){0};
        return id;
    }
    size_t last = tree->node_arena.used / sizeof(struct node);
    cv_assert(last < UINT32_MAX);
    arena_extend(&tree->node_arena, sizeof(struct node));
    return (node_id)last;
}

void node_free(struct tree *tree, node_id id) {
    struct node *node = &tree->node[id];
    if (node_is_expirable(node)) expirable_forget(tree, id);
    acl_drop(tree, node->acl);
    free(node->text);
    *node = (struct node){.next = tree->free_nodes};
    tree->free_nodes = id;
}

static int64_t data_bytes(const struct node *node) {
    return node->data_size > 0 ? node->data_size : 0;
}

static int64_t weight(const struct node *node) { return node->name_size + data_bytes(node); }

void node_link(struct tree *tree, node_id id, node_id parent) {
    struct node *node = &tree->node[id], *above = &tree->node[parent];
    node->parent = parent;
    table_add(&tree->index, node->hash, id);
    tree->nodes++;
    tree->bytes += weight(node);
    totals_begin(tree, id);
    totals_add(tree, id, 1, data_bytes(node));
    if (node_is_ephemeral(node)) {
        session_own(tree, id);
        tree->ephemerals++;
    }
    if (!parent) return;
    node->prev = 0;
    node->next = above->first_child;
    if (node->next) tree->node[node->next].prev = id;
    above->first_child = id;
    above->children++;
}

node_id node_insert(struct tree *tree, const struct node *kept, node_id parent,
                    struct zk_text path) {
    node_id id = node_new(tree);
    tree->node[id] = *kept;
    tree->node[id].hash = tree_hash(tree, parent ? path : zk_text_of("/"));
    acl_share(tree, kept->acl);
    node_link(tree, id, parent);
    tree_loaded(tree, id, path);
    return id;
}

void node_unlink(struct tree *tree, node_id id) {
    struct node *node = &tree->node[id], *above = &tree->node[node->parent];
    table_remove(&tree->index, node->hash, id);
    tree->nodes--;
    tree->bytes -= weight(node);
    totals_add(tree, id, -1, -data_bytes(node));
    if (node_is_ephemeral(node)) {
        session_disown(tree, id);
        tree->ephemerals--;
    }
    if (node->prev)
        tree->node[node->prev].next = node->next;
    else
        above->first_child = node->next;
    if (node->next) tree->node[node->next].prev = node->prev;
    above->children--;
}
