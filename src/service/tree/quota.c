/* Quotas.  The quota of P is two nodes below /zookeeper/quota/P: zookeeper_limits, which clients
 * write, and zookeeper_stats, whose text is kept up to date here without changing its version. */
#include <stdio.h>

#include "base/hash.h"
#include "service/tree/internal.h"

#define QUOTA_ROOT "/zookeeper/quota"
#define LIMITS     "/zookeeper_limits"
#define STATS      "/zookeeper_stats"
enum { QUOTA_ROOT_SIZE = sizeof QUOTA_ROOT - 1 };

struct amounts {
    int64_t count, bytes, count_hard, bytes_hard;
};

static bool ends_with(struct zk_text path, const char *end) {
    int32_t size = (int32_t)strlen(end);
    return path.size >= size && memcmp(path.at + path.size - size, end, (size_t)size) == 0;
}

static bool is_below_quota(struct zk_text path) {
    return path.size > QUOTA_ROOT_SIZE && memcmp(path.at, QUOTA_ROOT "/", QUOTA_ROOT_SIZE + 1) == 0;
}

/* ---- The texts ---- */

/* The number after a key, such as the 5 of "count=5". */
static int64_t amount(const char *text, const char *key, int64_t absent) {
    for (const char *at = text; (at = strstr(at, key)); at++)
        if (at == text || at[-1] == ',' || at[-1] == ';')
            return strtoll(at + strlen(key), NULL, 10);
    return absent;
}

static struct amounts read_amounts(const struct node *node, int64_t absent) {
    char text[256] = {0};
    struct zk_text data = node_data(node);
    if (data.size > 0)
        memcpy(text, data.at,
               (size_t)data.size < sizeof text ? (size_t)data.size : sizeof text - 1);
    return (struct amounts){amount(text, "count=", absent), amount(text, "bytes=", absent),
                            amount(text, "countHardLimit=", absent),
                            amount(text, "byteHardLimit=", absent)};
}

static void write_stats(struct tree *tree, node_id id, int64_t count, int64_t bytes) {
    char text[64];
    int size =
        snprintf(text, sizeof text, "count=%lld,bytes=%lld", (long long)count, (long long)bytes);
    change_statistics(tree, id, (struct zk_text){text, size});
}

/* ---- The quota that covers a path ---- */

/* By the hash of the path that the limits are about. */
static uint64_t add_to_hash(const struct tree *tree, uint64_t hash, char byte) {
    return hash_roll(hash, (unsigned char)byte, HASH_POINT(tree->seed));
}

static uint32_t hash_of_target(const struct tree *tree, struct zk_text limits) {
    uint64_t hash = 0;
    for (int32_t i = QUOTA_ROOT_SIZE; i < limits.size - (int32_t)(sizeof LIMITS - 1); i++)
        hash = add_to_hash(tree, hash, limits.at[i]);
    return (uint32_t)hash;
}

/* Whether the limits are about the path of that many bytes. */
static bool is_about(const struct tree *tree, node_id limits, const char *path, int32_t size) {
    const char *end = path + size;
    for (node_id id = tree->node[limits].parent;; id = tree->node[id].parent) {
        const struct node *node = &tree->node[id];
        if (end == path) return id == tree_find(tree, zk_text_of(QUOTA_ROOT));
        if (end - path <= (ptrdiff_t)node->name_size) return false;
        end -= node->name_size;
        if (memcmp(end, node->text, node->name_size) != 0 || *--end != '/') return false;
    }
}

/* The limits of the longest prefix of a path that has limits; 0: none has.  One pass: a path can be
 * very deep. */
static node_id governing(struct tree *tree, struct zk_text path) {
    node_id found = 0;
    int32_t size = 0;
    uint64_t hash = 0;
    for (int32_t i = 0; i < path.size; i++) {
        hash = add_to_hash(tree, hash, path.at[i]);
        if (i + 1 < path.size && path.at[i + 1] != '/') continue;
        struct probe p = table_probe(&tree->quota_index, (uint32_t)hash);
        node_id limits = table_next(&tree->quota_index, &p);
        for (; limits; limits = table_next(&tree->quota_index, &p)) found = limits, size = i + 1;
    }
    /* Equal hashes of different paths are possible, and as good as never met. */
    if (!found || is_about(tree, found, path.at, size)) return found;
    while (size > 0 && path.at[--size] != '/') {
    }
    return governing(tree, (struct zk_text){path.at, size});
}

static node_id statistics_beside(struct tree *tree, node_id limits) {
    struct bytes path = {0};
    tree_path(tree, tree->node[limits].parent, &path);
    bytes_add(&path, STATS, sizeof STATS - 1);
    node_id id = tree_find(tree, (struct zk_text){(char *)path.at, (int32_t)path.used});
    bytes_close(&path);
    return id;
}

void quota_count(struct tree *tree, struct zk_text path, int64_t nodes, int64_t bytes) {
    if (!tree->quotas || (!nodes && !bytes)) return;
    node_id limits = governing(tree, path);
    node_id stats = limits ? statistics_beside(tree, limits) : 0;
    if (!stats) return;
    struct amounts now = read_amounts(&tree->node[stats], 0);
    /* Clients can write this text too: the numbers may be anything. */
    write_stats(tree, stats, (int64_t)((uint64_t)now.count + (uint64_t)nodes),
                (int64_t)((uint64_t)now.bytes + (uint64_t)bytes));
}

bool quota_exceeded(struct tree *tree, struct zk_text path, int64_t nodes, int64_t bytes) {
    if (!tree->quotas || !(tree->rules & TREE_ENFORCE_QUOTA)) return false;
    node_id limits = governing(tree, path);
    node_id stats = limits ? statistics_beside(tree, limits) : 0;
    if (!limits || !stats) return false;
    struct amounts limit = read_amounts(&tree->node[limits], -1),
                   now = read_amounts(&tree->node[stats], 0);
    return (limit.count_hard > -1 && nodes > 0 && now.count > limit.count_hard - nodes) ||
           (limit.bytes_hard > -1 && bytes > 0 && now.bytes > limit.bytes_hard - bytes);
}

/* ---- Subtrees ----
 *
 * Once somebody has set a quota, or asked how many nodes there are below another, the totals of
 * every subtree are kept: counting one anew each time would let a short request cost as much as the
 * whole tree. */

static struct tree_total *total_of(struct tree *tree, node_id id) {
    size_t needed = ((size_t)id + 1) * sizeof(struct tree_total);
    if (tree->totals.used < needed) arena_extend(&tree->totals, needed - tree->totals.used);
    return (struct tree_total *)(void *)tree->totals.base + id;
}

static struct tree_total own_total(const struct node *node) {
    return (struct tree_total){1, node->data_size > 0 ? node->data_size : 0};
}

static void add_total(struct tree *tree, node_id id, struct tree_total more) {
    struct tree_total *total = total_of(tree, id);
    total->nodes += more.nodes;
    total->bytes += more.bytes;
}

void totals_add(struct tree *tree, node_id id, int64_t nodes, int64_t bytes) {
    tree->counted = 0; /* if only some are, by a reader that has gone: they are counted anew */
    if (!tree->totals_known) return;
    for (; id; id = tree->node[id].parent) add_total(tree, id, (struct tree_total){nodes, bytes});
}

void totals_begin(struct tree *tree, node_id id) {
    tree->counted = 0;
    if (tree->totals_known) *total_of(tree, id) = (struct tree_total){0};
}

bool totals_count_some(struct tree *tree, size_t *steps) {
    uint32_t up;
    if (!tree->totals_known && !tree->counted) {
        int opened = tree->totals.base ? 0 : arena_open(&tree->totals, TREE_RESERVE);
        cv_assert(opened == 0);
        tree->counted = TREE_ROOT;
        *total_of(tree, TREE_ROOT) = own_total(&tree->node[TREE_ROOT]);
    }
    for (; !tree->totals_known; --*steps) {
        if (!*steps) return false;
        node_id id = tree->counted, next = tree_walk(tree, TREE_ROOT, id, &up);
        for (; up; up--, id = tree->node[id].parent)
            add_total(tree, tree->node[id].parent, *total_of(tree, id));
        if (next) *total_of(tree, next) = own_total(&tree->node[next]);
        tree->counted = next;
        tree->totals_known = !next;
    }
    return true;
}

int64_t totals_nodes(struct tree *tree, node_id id) { return total_of(tree, id)->nodes; }

bool totals_are_needed(const struct tree_entry *entry) {
    size_t size = zk_left(&entry->body);
    return size && memmem(entry->body.at, size, STATS, sizeof STATS - 1);
}

/* ---- Nodes that set a quota ---- */

static void count_all(struct tree *tree, node_id stats, struct zk_text path) {
    int32_t size = path.size - QUOTA_ROOT_SIZE - (int32_t)(sizeof STATS - 1);
    node_id top = tree_find(tree, (struct zk_text){path.at + QUOTA_ROOT_SIZE, size});
    struct tree_total total = {0};
    size_t all = SIZE_MAX;
    if (size <= 0) return;
    totals_count_some(tree, &all); /* an import has not */
    if (top) total = *total_of(tree, top);
    write_stats(tree, stats, total.nodes, total.bytes);
}

static bool is_limits(struct zk_text path) {
    return is_below_quota(path) && ends_with(path, LIMITS);
}

void quota_loaded(struct tree *tree, node_id id, struct zk_text path) {
    if (!is_limits(path)) return;
    table_add(&tree->quota_index, hash_of_target(tree, path), id);
    tree->quotas++;
}

void quota_created(struct tree *tree, node_id id, struct zk_text path) {
    quota_loaded(tree, id, path);
    if (is_below_quota(path) && ends_with(path, STATS)) count_all(tree, id, path);
}

void quota_deleted(struct tree *tree, node_id id, struct zk_text path) {
    if (!is_limits(path)) return;
    table_remove(&tree->quota_index, hash_of_target(tree, path), id);
    tree->quotas--;
}
