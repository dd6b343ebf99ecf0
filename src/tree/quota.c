/* Quotas.  The quota of P is two nodes below /zookeeper/quota/P: zookeeper_limits, which clients
 * write, and zookeeper_stats, whose text is kept up to date here, behind its version's back. */
#include <stdio.h>

#include "tree/tree.h"

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

/* The number behind a word, such as the 5 of "count=5". */
static int64_t amount(const char *text, const char *word, int64_t unsaid) {
    for (const char *at = text; (at = strstr(at, word)); at++)
        if (at == text || at[-1] == ',' || at[-1] == ';')
            return strtoll(at + strlen(word), NULL, 10);
    return unsaid;
}

static struct amounts read_amounts(const struct node *node, int64_t unsaid) {
    char text[256] = {0};
    struct zk_text data = node_data(node);
    if (data.size > 0)
        memcpy(text, data.at,
               (size_t)data.size < sizeof text ? (size_t)data.size : sizeof text - 1);
    return (struct amounts){amount(text, "count=", unsaid), amount(text, "bytes=", unsaid),
                            amount(text, "countHardLimit=", unsaid),
                            amount(text, "byteHardLimit=", unsaid)};
}

static void write_stats(struct tree *tree, node_id id, int64_t count, int64_t bytes) {
    char text[64];
    int size =
        snprintf(text, sizeof text, "count=%lld,bytes=%lld", (long long)count, (long long)bytes);
    change_statistics(tree, id, (struct zk_text){text, size});
}

/* ---- Whose quota it is ---- */

/* The limits or statistics of the longest prefix of a path that has limits; 0: none has. */
static node_id governing(struct tree *tree, struct zk_text path, const char *which) {
    struct bytes at = {0};
    node_id found = 0;
    for (int32_t size = path.size; !found && size > 1;) {
        at.used = 0;
        memcpy(bytes_extend(&at, QUOTA_ROOT_SIZE), QUOTA_ROOT, QUOTA_ROOT_SIZE);
        memcpy(bytes_extend(&at, (size_t)size), path.at, (size_t)size);
        size_t place = at.used;
        memcpy(bytes_extend(&at, sizeof LIMITS - 1), LIMITS, sizeof LIMITS - 1);
        if (tree_find(tree, (struct zk_text){(char *)at.at, (int32_t)at.used})) {
            at.used = place;
            memcpy(bytes_extend(&at, strlen(which)), which, strlen(which));
            found = tree_find(tree, (struct zk_text){(char *)at.at, (int32_t)at.used});
            break;
        }
        while (size > 0 && path.at[--size] != '/') {
        }
    }
    bytes_close(&at);
    return found;
}

void quota_count(struct tree *tree, struct zk_text path, int64_t nodes, int64_t bytes) {
    if (!tree->quotas || (!nodes && !bytes)) return;
    node_id stats = governing(tree, path, STATS);
    if (!stats) return;
    struct amounts now = read_amounts(&tree->node[stats], 0);
    /* Clients write this text, too: what they say may be anything. */
    write_stats(tree, stats, (int64_t)((uint64_t)now.count + (uint64_t)nodes),
                (int64_t)((uint64_t)now.bytes + (uint64_t)bytes));
}

bool quota_exceeded(struct tree *tree, struct zk_text path, int64_t nodes, int64_t bytes) {
    if (!tree->quotas || !(tree->rules & TREE_ENFORCE_QUOTA)) return false;
    node_id limits = governing(tree, path, LIMITS), stats = governing(tree, path, STATS);
    if (!limits || !stats) return false;
    struct amounts most = read_amounts(&tree->node[limits], -1),
                   now = read_amounts(&tree->node[stats], 0);
    return (most.count_hard > -1 && nodes > 0 && now.count > most.count_hard - nodes) ||
           (most.bytes_hard > -1 && bytes > 0 && now.bytes > most.bytes_hard - bytes);
}

/* ---- Nodes that set one ---- */

/* What is below the node that statistics are about, it included. */
static void count_all(struct tree *tree, node_id stats, struct zk_text path) {
    int32_t size = path.size - QUOTA_ROOT_SIZE - (int32_t)(sizeof STATS - 1);
    node_id top = tree_find(tree, (struct zk_text){path.at + QUOTA_ROOT_SIZE, size});
    int64_t count = 0, bytes = 0;
    uint32_t up;
    if (size <= 0) return;
    for (node_id id = top; id; id = tree_walk(tree, top, id, &up)) {
        count++;
        bytes += tree->node[id].data_size > 0 ? tree->node[id].data_size : 0;
    }
    write_stats(tree, stats, count, bytes);
}

void quota_loaded(struct tree *tree, struct zk_text path) {
    if (is_below_quota(path) && ends_with(path, LIMITS)) tree->quotas++;
}

void quota_created(struct tree *tree, node_id id, struct zk_text path) {
    quota_loaded(tree, path);
    if (is_below_quota(path) && ends_with(path, STATS)) count_all(tree, id, path);
}

void quota_deleted(struct tree *tree, struct zk_text path) {
    if (is_below_quota(path) && ends_with(path, LIMITS)) tree->quotas--;
}
