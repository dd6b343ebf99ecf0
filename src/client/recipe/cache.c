/* A subtree in memory.
 *
 * A recursive watch tells which nodes change; each is read again then.  Answers and events come in
 * the order in which the server made them, so what comes last is newest.  After a reconnect nobody
 * knows what was missed: all is read again, and what is not found is dropped. */
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "client/recipe/recipe.h"

struct cached {
    char *path;
    void *data; /* NULL: null */
    size_t size;
    struct cv_stat stat;
    uint64_t seen; /* in which reading of all */
};

struct cv_cache {
    struct cv_client *client;
    char *path;
    cv_cache_fn *on_change;
    void *arg;
    struct cached **node; /* in the order of their paths, a node before what is below it */
    size_t count, room;
    uint64_t reading, complete; /* which reading of all is under way, which was the last one */
    size_t answers;             /* that it waits for */
    bool broken;                /* one of its answers was lost: it is not complete */
    bool closing, over, watching, notifying;
    struct client_task end;
    uint32_t references;
};

/* ---- The nodes ---- */

/* As strcmp, but a slash comes before everything else. */
static int compare_paths(const char *a, const char *b) {
    while (*a && *a == *b) a++, b++;
    int one = *a == '/' ? 1 : (unsigned char)*a, other = *b == '/' ? 1 : (unsigned char)*b;
    return one - other;
}

static size_t find(const struct cv_cache *cache, const char *path, bool *found) {
    size_t low = 0, high = cache->count;
    *found = false;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = compare_paths(cache->node[middle]->path, path);
        if (order == 0) *found = true;
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void free_node(struct cached *node) {
    free(node->path);
    free(node->data);
    free(node);
}

static bool is_below(const char *path, const char *top) {
    size_t size = strlen(top);
    if (size == 1) return path[1] != 0;
    return !strncmp(path, top, size) && path[size] == '/';
}

/* Removes a node and what is below it. */
static bool drop(struct cv_cache *cache, const char *path) {
    bool found;
    size_t first = find(cache, path, &found), last = first;
    while (last < cache->count &&
           ((last == first && found) || is_below(cache->node[last]->path, path)))
        free_node(cache->node[last++]);
    memmove(&cache->node[first], &cache->node[last], (cache->count - last) * sizeof *cache->node);
    cache->count -= last - first;
    return last > first;
}

static bool copy_data(struct cached *node, const struct cv_result *r) {
    void *data = r->data ? malloc(r->size + 1) : NULL;
    if (r->data && !data) return false;
    if (data) memcpy(data, r->data, r->size + 1);
    free(node->data);
    node->data = data;
    node->size = r->size;
    node->stat = r->stat;
    return true;
}

static struct cached *insert(struct cv_cache *cache, size_t at, const char *path) {
    if (cache->count == cache->room) {
        size_t room = cache->room ? 2 * cache->room : 64;
        struct cached **grown = realloc(cache->node, room * sizeof *grown);
        if (!grown) return NULL;
        cache->node = grown;
        cache->room = room;
    }
    struct cached *node = calloc(1, sizeof *node);
    if (!node || !(node->path = strdup(path))) {
        free(node);
        return NULL;
    }
    memmove(&cache->node[at + 1], &cache->node[at], (cache->count - at) * sizeof *cache->node);
    cache->node[at] = node;
    cache->count++;
    return node;
}

/* What has changed: 0 if nothing. */
static int store(struct cv_cache *cache, const char *path, const struct cv_result *r) {
    bool found;
    size_t at = find(cache, path, &found);
    struct cached *node = found ? cache->node[at] : insert(cache, at, path);
    if (!node) return 0;
    bool same = found && node->stat.mzxid == r->stat.mzxid && node->stat.czxid == r->stat.czxid;
    node->seen = cache->reading;
    if (!copy_data(node, r)) return 0;
    return !found ? CV_NODE_CREATED : same ? 0 : CV_NODE_CHANGED;
}

/* ---- Reading ---- */

struct question {
    struct cv_cache *cache;
    uint64_t reading; /* 0: not part of one */
    bool children;
    char path[];
};

static void ask(struct cv_cache *cache, const char *path, bool children, bool all);

static void free_cache(struct cv_cache *cache) {
    for (size_t i = 0; i < cache->count; i++) free_node(cache->node[i]);
    free(cache->node);
    free(cache->path);
    free(cache);
}

static void run_end(struct client_task *task) {
    free_cache((struct cv_cache *)((char *)task - offsetof(struct cv_cache, end)));
}

static void unreference(struct cv_cache *cache) {
    if (--cache->references) return;
    cv_assert(cache->closing);
    cache->end.run = run_end;
    client_post(cache->client, &cache->end);
}

/* Calls back, without the lock; the caller has a reference. */
static void tell(struct cv_cache *cache, int type, const char *path) {
    if (!type || !cache->on_change || cache->closing || !cache->complete) return;
    cache->notifying = true;
    client_unlock(cache->client);
    cache->on_change((enum cv_watch_type)type, path, cache->arg);
    client_lock(cache->client);
    cache->notifying = false;
    client_wake(cache->client);
}

/* All was read: what was not seen is gone. */
static void complete(struct cv_cache *cache) {
    for (size_t i = 0; i < cache->count && !cache->closing;) {
        if (cache->node[i]->seen == cache->reading) {
            i++;
            continue;
        }
        char *path = strdup(cache->node[i]->path); /* drop frees the node's own */
        if (!path) {
            i++;
            continue;
        }
        drop(cache, path);
        tell(cache, CV_NODE_DELETED, path);
        free(path);
        i = 0; /* the callback may have changed something */
    }
    cache->complete = cache->reading;
    client_wake(cache->client);
}

static void on_children(struct cv_cache *cache, const char *path, const struct cv_result *r) {
    for (size_t i = 0; i < r->name_count; i++) {
        char *child = recipe_child(path, r->names[i]);
        if (!child) continue;
        ask(cache, child, false, true);
        ask(cache, child, true, true);
        free(child);
    }
}

static void on_answer(const struct cv_result *r, void *arg) {
    struct question *q = arg;
    struct cv_cache *cache = q->cache;
    struct cv_client *client = cache->client;
    client_lock(client);
    bool counts = q->reading && q->reading == cache->reading;
    int change = 0;
    if (!cache->closing) {
        if (counts && recipe_is_lost(r->error)) cache->broken = true;
        client_cork(client);
        if (!r->error && q->children)
            on_children(cache, q->path, r);
        else if (!r->error)
            change = store(cache, q->path, r);
        else if (r->error == CV_NO_NODE && !q->children && drop(cache, q->path))
            change = CV_NODE_DELETED;
        client_uncork(client);
        tell(cache, change, q->path);
        if (counts && --cache->answers == 0 && !cache->broken && q->reading == cache->reading)
            complete(cache);
    }
    unreference(cache);
    client_unlock(client);
    free(q);
}

static void ask(struct cv_cache *cache, const char *path, bool children, bool all) {
    size_t size = strlen(path) + 1;
    struct question *q = malloc(sizeof *q + size);
    if (!q) return;
    *q = (struct question){
        .cache = cache, .reading = all ? cache->reading : 0, .children = children};
    memcpy(q->path, path, size);
    struct cv_op op = children ? cv_op_children(q->path) : cv_op_get(q->path);
    if (cv_start(cache->client, &op, on_answer, q)) {
        free(q);
        return;
    }
    cache->references++;
    cache->answers += all;
}

static void read_all(struct cv_cache *cache) {
    cache->reading++;
    cache->answers = 0;
    cache->broken = false;
    client_cork(cache->client);
    ask(cache, cache->path, false, true);
    ask(cache, cache->path, true, true);
    client_uncork(cache->client);
}

/* ---- Events ---- */

static void on_event(enum cv_watch_type type, const char *path, void *arg) {
    struct cv_cache *cache = arg;
    struct cv_client *client = cache->client;
    client_lock(client);
    cache->references++;
    if (type == CV_WATCH_LOST) {
        cache->over = true;
        cache->watching = false;
        client_wake(client);
        unreference(cache); /* the watch's */
    } else if (!cache->closing && type == CV_WATCH_RENEWED) {
        read_all(cache);
    } else if (!cache->closing && type == CV_NODE_DELETED) {
        if (drop(cache, path)) tell(cache, CV_NODE_DELETED, path);
    } else if (!cache->closing) {
        ask(cache, path, false, false);
        /* a node that comes during the first reading has children that it may not see */
        if (type == CV_NODE_CREATED && !cache->complete) ask(cache, path, true, true);
    }
    unreference(cache);
    client_unlock(client);
}

/* ---- What programs call ---- */

static bool is_complete(void *arg) {
    const struct cv_cache *cache = arg;
    return cache->complete > 0 || cache->over;
}

static int open_cache(struct cv_cache *cache) {
    struct cv_op watch = cv_op_add_watch(cache->path, CV_WATCH_RECURSIVE, on_event, cache);
    int error;
    cache->references++;
    while ((error = cv_call(cache->client, &watch, NULL)) == CV_CONNECTION_LOSS) {
    }
    client_lock(cache->client);
    if (error) {
        unreference(cache);
    } else {
        cache->watching = true;
        read_all(cache);
        error = client_wait(cache->client, is_complete, cache, CV_FOREVER);
        if (!error && cache->over) error = CV_SESSION_EXPIRED;
    }
    client_unlock(cache->client);
    return error;
}

int cv_cache_open(struct cv_cache **opened, struct cv_client *client, const char *path,
                  cv_cache_fn *on_change, void *arg) {
    *opened = NULL;
    if (!path || path[0] != '/') return CV_BAD_ARGUMENTS;
    if (client_in_callback(client)) return CV_WOULD_DEADLOCK;
    struct cv_cache *cache = calloc(1, sizeof *cache);
    if (!cache) return CV_NO_MEMORY;
    *cache = (struct cv_cache){.client = client,
                               .path = strdup(path),
                               .on_change = on_change,
                               .arg = arg,
                               .references = 1};
    int error = cache->path ? open_cache(cache) : CV_NO_MEMORY;
    if (error)
        cv_cache_close(cache);
    else
        *opened = cache;
    return error;
}

static void on_removed(const struct cv_result *r, void *arg) {
    struct cv_cache *cache = arg;
    struct cv_client *client = cache->client;
    (void)r;
    client_lock(client);
    if (cache->watching) {
        cache->watching = false;
        unreference(cache);
    }
    unreference(cache);
    client_unlock(client);
}

static bool is_quiet(void *arg) { return !((struct cv_cache *)arg)->notifying; }

void cv_cache_close(struct cv_cache *cache) {
    if (!cache) return;
    struct cv_client *client = cache->client;
    struct cv_op op = {
        .type = CV_OP_REMOVE_WATCH, .path = cache->path, .watch = on_event, .watch_arg = cache};
    client_lock(client);
    (void)client_wait(client, is_quiet, cache, CV_FOREVER); /* not in a callback of its own */
    cache->closing = true;
    if (cache->watching && !cv_start(client, &op, on_removed, cache)) cache->references++;
    unreference(cache);
    client_unlock(client);
}

int cv_cache_get(struct cv_cache *cache, const char *path, struct cv_result **result) {
    bool found;
    int error = CV_NO_NODE;
    *result = NULL;
    client_lock(cache->client);
    size_t at = find(cache, path, &found);
    if (found) {
        const struct cached *node = cache->node[at];
        struct cv_result *r = calloc(1, sizeof *r + node->size + 1);
        error = r ? CV_OK : CV_NO_MEMORY;
        if (r) {
            *r = (struct cv_result){.size = node->size, .has_stat = true, .stat = node->stat};
            if (node->data) r->data = memcpy(r + 1, node->data, node->size + 1);
            *result = r;
        }
    }
    client_unlock(cache->client);
    return error;
}

/* The name of a child, if a path is a child of another; else NULL. */
static const char *name_below(const char *path, const char *top) {
    const char *name = path + (top[1] ? strlen(top) : 0) + 1;
    return strchr(name, '/') ? NULL : name;
}

int cv_cache_children(struct cv_cache *cache, const char *path, struct cv_result **result) {
    bool found;
    int error = CV_NO_NODE;
    *result = NULL;
    client_lock(cache->client);
    size_t first = find(cache, path, &found), count = 0, size = 0, last = first + 1;
    for (; found && last < cache->count && is_below(cache->node[last]->path, path); last++) {
        const char *name = name_below(cache->node[last]->path, path);
        if (name) count++, size += strlen(name) + 1;
    }
    struct cv_result *r = found ? calloc(1, sizeof *r + count * sizeof(char *) + size + 1) : NULL;
    if (r) {
        const char **names = (const char **)(r + 1);
        char *text = (char *)(names + count);
        *r = (struct cv_result){.names = names, .has_stat = true, .stat = cache->node[first]->stat};
        for (size_t i = first + 1; i < last; i++) {
            const char *name = name_below(cache->node[i]->path, path);
            if (!name) continue;
            names[r->name_count++] = strcpy(text, name);
            text += strlen(name) + 1;
        }
        *result = r;
    }
    if (found) error = r ? CV_OK : CV_NO_MEMORY;
    client_unlock(cache->client);
    return error;
}
