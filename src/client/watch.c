/* Watches: who is to be told what happens at a path. */
#include <stdlib.h>

#include "base/hash.h"
#include "client/internal.h"

enum { RENEWAL_MAX = 100 << 10 }; /* of one request; servers take 1 MB, older ones 128 kB */

struct watched { /* a path */
    struct watcher *first;
    int32_t size;
    uint32_t hash;
    char path[];
};

struct watch_call {
    cv_watch_fn *call;
    void *arg;
};

/* ---- Paths ---- */

static uint32_t find(struct cv_client *client, struct zk_text path, uint32_t hash) {
    struct watches *watches = &client->watches;
    uint32_t number;
    for (struct probe p = table_probe(&watches->index, hash);
         (number = table_next(&watches->index, &p));) {
        const struct watched *node = watches->node[number - 1];
        if (zk_text_equal((struct zk_text){node->path, node->size}, path)) return number;
    }
    return 0;
}

static struct watched *at(struct cv_client *client, struct zk_text path) {
    uint32_t number = find(client, path, hash_bytes(path.at, (size_t)path.size, client->seed));
    return number ? client->watches.node[number - 1] : NULL;
}

static struct watched *add(struct cv_client *client, struct zk_text path) {
    struct watches *watches = &client->watches;
    uint32_t hash = hash_bytes(path.at, (size_t)path.size, client->seed), number;
    if ((number = find(client, path, hash))) return watches->node[number - 1];
    struct watched *node = malloc(sizeof *node + (size_t)path.size + 1);
    cv_assert(node);
    *node = (struct watched){.size = path.size, .hash = hash};
    memcpy(node->path, path.at, (size_t)path.size);
    node->path[path.size] = 0;
    if (watches->unused_count) {
        number = watches->unused[--watches->unused_count];
    } else {
        watches->node = grown(watches->node, &watches->room, watches->nodes + 1, sizeof node);
        number = (uint32_t)++watches->nodes;
    }
    watches->node[number - 1] = node;
    table_add(&watches->index, hash, number);
    return node;
}

static void drop_if_empty(struct cv_client *client, struct watched *node) {
    struct watches *watches = &client->watches;
    if (node->first) return;
    uint32_t number = find(client, (struct zk_text){node->path, node->size}, node->hash);
    table_remove(&watches->index, node->hash, number);
    watches->node[number - 1] = NULL;
    watches->unused = grown(watches->unused, &watches->unused_room, watches->unused_count + 1,
                            sizeof *watches->unused);
    watches->unused[watches->unused_count++] = number;
    free(node);
}

/* ---- Registering ---- */

static bool has_kind(const struct watched *node, enum watch_kind kind) {
    for (const struct watcher *watcher = node->first; watcher; watcher = watcher->next)
        if (watcher->kind == kind) return true;
    return false;
}

struct watcher *watcher_new(struct zk_text path, const struct cv_op *op) {
    struct watcher *watcher = malloc(sizeof *watcher + (size_t)path.size + 1);
    if (!watcher) return NULL;
    *watcher = (struct watcher){.kind = op->type == CV_OP_CHILDREN ? WATCH_CHILD
                                        : op->type == CV_OP_ADD_WATCH
                                            ? op->flags == CV_WATCH_RECURSIVE ? WATCH_RECURSIVE
                                                                              : WATCH_PERSISTENT
                                        : op->type == CV_OP_EXISTS ? WATCH_EXIST
                                                                   : WATCH_DATA,
                                .call = op->watch,
                                .arg = op->watch_arg,
                                .path_size = path.size};
    memcpy(watcher->path, path.at, (size_t)path.size);
    watcher->path[path.size] = 0;
    return watcher;
}

bool watch_is_covered(struct cv_client *client, struct zk_text path, enum cv_op_type type) {
    if (type == CV_OP_ADD_WATCH) return false;
    const struct watched *node = at(client, path);
    return node && (has_kind(node, WATCH_PERSISTENT) || has_kind(node, WATCH_RECURSIVE));
}

void watch_register(struct cv_client *client, struct watcher *watcher, int32_t error) {
    bool missing = watcher->kind == WATCH_EXIST && error == ZK_NONODE;
    if (error && !missing) {
        free(watcher);
        return;
    }
    if (watcher->kind == WATCH_EXIST && !missing) watcher->kind = WATCH_DATA;
    client->watches.recursive += watcher->kind == WATCH_RECURSIVE;
    struct watched *node = add(client, (struct zk_text){watcher->path, watcher->path_size});
    struct watcher **last = &node->first;
    while (*last) last = &(*last)->next;
    watcher->next = NULL;
    *last = watcher;
}

static void free_watcher(struct cv_client *client, struct watcher *watcher) {
    client->watches.recursive -= watcher->kind == WATCH_RECURSIVE;
    free(watcher);
}

bool watch_remove(struct cv_client *client, struct zk_text path, const struct cv_op *op,
                  bool *left) {
    struct watched *node = at(client, path);
    bool removed = false;
    *left = false;
    if (!node) return false;
    for (struct watcher **link = &node->first, *watcher; (watcher = *link);) {
        if (op->watch && (watcher->call != op->watch || watcher->arg != op->watch_arg)) {
            link = &watcher->next;
            continue;
        }
        *link = watcher->next;
        free_watcher(client, watcher);
        removed = true;
    }
    *left = node->first != NULL;
    drop_if_empty(client, node);
    return removed;
}

/* ---- Events ---- */

static bool concerns(enum watch_kind kind, int32_t type) {
    switch (kind) {
    case WATCH_DATA:
    case WATCH_EXIST: return type != ZK_NODE_CHILDREN_CHANGED;
    case WATCH_CHILD: return type == ZK_NODE_CHILDREN_CHANGED || type == ZK_NODE_DELETED;
    case WATCH_PERSISTENT: return true;
    case WATCH_RECURSIVE: return type != ZK_NODE_CHILDREN_CHANGED;
    }
    return false;
}

static void note(struct cv_client *client, const struct watcher *watcher) {
    struct watch_call call = {watcher->call, watcher->arg};
    bytes_add(&client->watches.called, &call, sizeof call);
}

/* Those at the path itself; what is not to stay is removed. */
static void collect(struct cv_client *client, struct zk_text path, int32_t type) {
    struct watched *node = at(client, path);
    if (!node) return;
    for (struct watcher **link = &node->first, *watcher; (watcher = *link);) {
        bool stays = watcher->kind == WATCH_PERSISTENT || watcher->kind == WATCH_RECURSIVE;
        bool called = concerns(watcher->kind, type);
        if (called) note(client, watcher);
        if (called && !stays) {
            *link = watcher->next;
            free_watcher(client, watcher);
        } else {
            link = &watcher->next;
        }
    }
    drop_if_empty(client, node);
}

static struct zk_text parent_of(struct zk_text path) {
    do path.size--;
    while (path.size > 0 && path.at[path.size] != '/');
    if (!path.size) path.size = 1;
    return path;
}

/* Those of ancestors that watch all that is below them. */
static void collect_above(struct cv_client *client, struct zk_text path) {
    while (path.size > 1) {
        path = parent_of(path);
        const struct watched *node = at(client, path);
        for (const struct watcher *watcher = node ? node->first : NULL; watcher;
             watcher = watcher->next)
            if (watcher->kind == WATCH_RECURSIVE) note(client, watcher);
    }
}

/* Calls those that were noted.  A watch that is removed meanwhile may be called once more; what it
 * points to is there until the removal is reported. */
static void call_noted(struct cv_client *client, int32_t type, const char *path) {
    struct bytes noted = client->watches.called;
    client->watches.called = (struct bytes){0};
    for (size_t done = 0; done < noted.used; done += sizeof(struct watch_call)) {
        struct watch_call call;
        memcpy(&call, noted.at + done, sizeof call);
        CALL_BACK(client, call.call((enum cv_watch_type)type, path, call.arg));
    }
    noted.used = 0;
    bytes_close(&client->watches.called);
    client->watches.called = noted;
}

/* The path without the chroot, to be freed. */
static char *shown(struct cv_client *client, struct zk_text path) {
    size_t skip = strlen(client->session.servers.chroot), size = (size_t)path.size;
    char *text = size > skip ? strndup(path.at + skip, size - skip) : strdup("/");
    cv_assert(text);
    return text;
}

static void happened(struct cv_client *client, struct zk_text path, int32_t type) {
    collect(client, path, type);
    if (client->watches.recursive && type != ZK_NODE_CHILDREN_CHANGED) collect_above(client, path);
    if (!client->watches.called.used) return;
    char *text = shown(client, path);
    call_noted(client, type, text);
    free(text);
}

void watch_event(struct cv_client *client, const struct zk_watcher_event *event) {
    const char *chroot = client->session.servers.chroot;
    struct zk_text path = event->path;
    size_t skip = strlen(chroot);
    if (path.size < 1 || (size_t)path.size < skip || memcmp(path.at, chroot, skip) != 0) return;
    happened(client, path, event->type);
    /* Where all below a node is watched, ZooKeeper no longer tells that its children change. */
    if (!client->watches.recursive || path.size < 2) return;
    if (event->type != ZK_NODE_CREATED && event->type != ZK_NODE_DELETED) return;
    const struct watched *above = at(client, parent_of(path));
    if (above && has_kind(above, WATCH_RECURSIVE) && has_kind(above, WATCH_CHILD))
        happened(client, parent_of(path), ZK_NODE_CHILDREN_CHANGED);
}

/* ---- A new connection, or none any more ---- */

/* The lists of one request; each path is in all that concern it. */
struct renewal {
    struct bytes list[WATCH_RECURSIVE + 1];
    int32_t count[WATCH_RECURSIVE + 1];
    size_t size;
    uint32_t *requests;
};

static struct zk_texts texts(const struct renewal *renewal, enum watch_kind kind) {
    return (struct zk_texts){renewal->list[kind].at, renewal->list[kind].used,
                             renewal->count[kind]};
}

static void write_renewal(struct cv_client *client, struct renewal *renewal, struct bytes *out) {
    bool stays = renewal->count[WATCH_PERSISTENT] || renewal->count[WATCH_RECURSIVE];
    struct zk_set_watches2_request request = {
        client->session.last_zxid,        texts(renewal, WATCH_DATA),
        texts(renewal, WATCH_EXIST),      texts(renewal, WATCH_CHILD),
        texts(renewal, WATCH_PERSISTENT), texts(renewal, WATCH_RECURSIVE)};
    if (!renewal->size) return;
    size_t frame = zk_frame_begin(out);
    zk_write_request_header(
        out, &(struct zk_request_header){ZK_XID_SET_WATCHES,
                                         stays ? ZK_OP_SET_WATCHES2 : ZK_OP_SET_WATCHES});
    if (stays)
        zk_write_set_watches2_request(out, &request);
    else /* its fields are the first of the other's, and older servers know it */
        zk_write_set_watches_request(
            out, &(struct zk_set_watches_request){request.relative_zxid, request.data,
                                                  request.exist, request.child});
    zk_frame_end(out, frame);
    for (int kind = 0; kind <= WATCH_RECURSIVE; kind++)
        renewal->list[kind].used = 0, renewal->count[kind] = 0;
    renewal->size = 0;
    ++*renewal->requests;
}

void watches_renew(struct cv_client *client, struct bytes *out, uint32_t *requests) {
    struct renewal renewal = {.requests = requests};
    *requests = 0;
    for (size_t i = 0; i < client->watches.nodes; i++) {
        const struct watched *node = client->watches.node[i];
        for (int kind = 0; node && kind <= WATCH_RECURSIVE; kind++) {
            if (!has_kind(node, (enum watch_kind)kind)) continue;
            zk_write_text(&renewal.list[kind], (struct zk_text){node->path, node->size});
            renewal.count[kind]++;
            renewal.size += sizeof(int32_t) + (size_t)node->size;
        }
        if (renewal.size > RENEWAL_MAX) write_renewal(client, &renewal, out);
    }
    write_renewal(client, &renewal, out);
    for (int kind = 0; kind <= WATCH_RECURSIVE; kind++) bytes_close(&renewal.list[kind]);
}

/* Tells watchers of one path, without the chroot. */
static void tell(struct cv_client *client, const struct watched *node, int32_t type) {
    char *path = shown(client, (struct zk_text){node->path, node->size});
    for (const struct watcher *watcher = node->first; watcher; watcher = watcher->next)
        if (type == CV_WATCH_LOST || watcher->kind >= WATCH_PERSISTENT) note(client, watcher);
    call_noted(client, type, path);
    free(path);
}

void watches_tell_renewed(struct cv_client *client) {
    for (size_t i = 0; i < client->watches.nodes; i++)
        if (client->watches.node[i]) tell(client, client->watches.node[i], CV_WATCH_RENEWED);
}

void watches_lost(struct cv_client *client) {
    struct watches all = client->watches; /* callbacks can add no others: the session is over */
    client->watches = (struct watches){0};
    for (size_t i = 0; i < all.nodes; i++) {
        if (!all.node[i]) continue;
        tell(client, all.node[i], CV_WATCH_LOST);
    }
    bytes_close(&client->watches.called);
    watches_free(&all);
}

void watches_free(struct watches *watches) {
    for (size_t i = 0; i < watches->nodes; i++) {
        struct watched *node = watches->node[i];
        for (struct watcher *watcher = node ? node->first : NULL, *next; watcher; watcher = next) {
            next = watcher->next;
            free(watcher);
        }
        free(node);
    }
    free(watches->node);
    free(watches->unused);
    table_close(&watches->index);
    bytes_close(&watches->called);
    *watches = (struct watches){0};
}
