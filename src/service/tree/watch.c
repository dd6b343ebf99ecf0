#include "service/tree/watch.h"

#include "base/grow.h"
#include "base/hash.h"
#include "base/rng.h"

/* ---- Paths ---- */

static uint32_t path_hash(const struct watches *w, struct zk_text path) {
    return hash_bytes(path.at, (size_t)path.size, w->seed);
}

static uint32_t find_path(const struct watches *w, struct zk_text path, uint32_t hash) {
    uint32_t number;
    for (struct probe p = table_probe(&w->path_index, hash);
         (number = table_next(&w->path_index, &p));)
        if (w->path[number].size == (uint32_t)path.size &&
            memcmp(w->path[number].text, path.at, (size_t)path.size) == 0)
            return number;
    return 0;
}

static uint32_t take_path(struct watches *w, struct zk_text path) {
    uint32_t hash = path_hash(w, path), number = find_path(w, path, hash);
    if (number) return number;
    if ((number = w->free_path)) {
        w->free_path = w->path[number].size;
    } else {
        w->path = grown(w->path, &w->path_room, w->path_slots + 2, sizeof *w->path);
        number = ++w->path_slots;
    }
    w->path[number] = (struct watched_path){
        .text = malloc((size_t)path.size + 1), .size = (uint32_t)path.size, .hash = hash};
    cv_assert(w->path[number].text);
    memcpy(w->path[number].text, path.at, (size_t)path.size);
    table_add(&w->path_index, hash, number);
    w->path_bytes += (size_t)path.size;
    w->paths++;
    return number;
}

static void drop_path(struct watches *w, uint32_t number) {
    struct watched_path *path = &w->path[number];
    if (path->first[WATCH_DATA] || path->first[WATCH_CHILDREN]) return;
    table_remove(&w->path_index, path->hash, number);
    free(path->text);
    w->path_bytes -= path->size;
    *path = (struct watched_path){.size = w->free_path};
    w->free_path = number;
    w->paths--;
}

/* ---- Recursive watches ---- */

static uint64_t rolling_hash(const struct watches *w, const struct watched_path *path) {
    uint64_t hash = 0;
    for (uint32_t i = 0; i < path->size; i++)
        hash = hash_roll(hash, (unsigned char)path->text[i], HASH_POINT(w->seed));
    return hash;
}

static void count_recursive(struct watches *w, uint32_t number, int change) {
    struct watched_path *path = &w->path[number];
    if (change > 0 && path->recursive++ == 0) {
        path->rolling_hash = rolling_hash(w, path);
        table_add(&w->recursive_index, (uint32_t)path->rolling_hash, number);
    }
    if (change < 0 && --path->recursive == 0)
        table_remove(&w->recursive_index, (uint32_t)path->rolling_hash, number);
    w->recursive += (uint32_t)change;
}

/* ---- Watches ---- */

static uint32_t watch_hash(uint32_t path, uint32_t connection, unsigned table) {
    return (uint32_t)rng_mix((uint64_t)path << 32 | connection << 1 | table);
}

static uint32_t find_watch(const struct watches *w, uint32_t path, uint32_t connection,
                           unsigned table) {
    uint32_t number;
    for (struct probe p = table_probe(&w->watch_index, watch_hash(path, connection, table));
         (number = table_next(&w->watch_index, &p));)
        if (w->watch[number].path == path && w->watch[number].connection == connection &&
            w->watch[number].table == table)
            return number;
    return 0;
}

static void add_connection(struct watches *w, uint32_t connection) {
    if (connection < w->connections) return;
    w->held = grown(w->held, &w->held_room, (size_t)connection + 1, sizeof *w->held);
    w->notified =
        grown(w->notified, &w->notified_room, (size_t)connection + 1, sizeof *w->notified);
    for (; w->connections <= connection; w->connections++)
        w->held[w->connections] = 0, w->notified[w->connections] = 0;
}

static void link_watch(struct watches *w, uint32_t number) {
    struct watch *watch = &w->watch[number];
    uint32_t *first = &w->path[watch->path].first[watch->table];
    uint32_t *held = &w->held[watch->connection];
    watch->next = *first;
    watch->next_held = *held;
    if (*first) w->watch[*first].prev = number;
    if (*held) w->watch[*held].prev_held = number;
    *first = *held = number;
}

static void remove_watch(struct watches *w, uint32_t number) {
    struct watch *watch = &w->watch[number];
    if (watch->next) w->watch[watch->next].prev = watch->prev;
    if (watch->prev)
        w->watch[watch->prev].next = watch->next;
    else
        w->path[watch->path].first[watch->table] = watch->next;
    if (watch->next_held) w->watch[watch->next_held].prev_held = watch->prev_held;
    if (watch->prev_held)
        w->watch[watch->prev_held].next_held = watch->next_held;
    else
        w->held[watch->connection] = watch->next_held;
    table_remove(&w->watch_index, watch_hash(watch->path, watch->connection, watch->table), number);
    count_recursive(w, watch->path, -(watch->mode == WATCH_RECURSIVE));
    drop_path(w, watch->path);
    *watch = (struct watch){.next = w->free_watch};
    w->free_watch = number;
    w->watches--;
}

void watches_add(struct watches *w, uint32_t connection, struct zk_text path,
                 enum watch_table table, enum watch_mode mode) {
    uint32_t at = take_path(w, path), number = find_watch(w, at, connection, table);
    if (number) { /* the latest mode counts */
        count_recursive(w, at,
                        (mode == WATCH_RECURSIVE) - (w->watch[number].mode == WATCH_RECURSIVE));
        w->watch[number].mode = (uint8_t)mode;
        return;
    }
    add_connection(w, connection);
    if ((number = w->free_watch)) {
        w->free_watch = w->watch[number].next;
    } else {
        w->watch = grown(w->watch, &w->watch_room, w->watch_slots + 2, sizeof *w->watch);
        number = ++w->watch_slots;
    }
    w->watch[number] = (struct watch){
        .path = at, .connection = connection, .table = (uint8_t)table, .mode = (uint8_t)mode};
    link_watch(w, number);
    table_add(&w->watch_index, watch_hash(at, connection, table), number);
    count_recursive(w, at, mode == WATCH_RECURSIVE);
    w->watches++;
}

uint32_t watches_count(const struct watches *w, struct zk_text path, uint32_t max) {
    uint32_t number = find_path(w, path, path_hash(w, path)), count = 0;
    for (unsigned table = WATCH_DATA; number && table <= WATCH_CHILDREN; table++)
        for (uint32_t at = w->path[number].first[table]; at && count < max; at = w->watch[at].next)
            count++;
    return count;
}

size_t watches_weight(const struct watches *w) {
    enum { AROUND_A_TEXT = 32, INDEX = 32 };
    return w->path_bytes + w->paths * (sizeof *w->path + AROUND_A_TEXT + INDEX) +
           w->watches * (sizeof *w->watch + INDEX);
}

static uint32_t find(const struct watches *w, uint32_t connection, struct zk_text path,
                     enum watch_table table) {
    uint32_t at = find_path(w, path, path_hash(w, path));
    return at ? find_watch(w, at, connection, table) : 0;
}

bool watches_has(const struct watches *w, uint32_t connection, struct zk_text path,
                 enum watch_table table) {
    return find(w, connection, path, table) != 0;
}

bool watches_remove(struct watches *w, uint32_t connection, struct zk_text path,
                    enum watch_table table) {
    uint32_t number = find(w, connection, path, table);
    if (number) remove_watch(w, number);
    return number != 0;
}

bool watches_forget(struct watches *w, uint32_t connection, size_t *steps) {
    if (connection >= w->connections) return true;
    for (; w->held[connection] && *steps; --*steps) remove_watch(w, w->held[connection]);
    return !w->held[connection];
}

void watches_close(struct watches *w) {
    for (uint32_t i = 1; i <= w->path_slots; i++) free(w->path[i].text);
    free(w->path);
    free(w->watch);
    free(w->held);
    free(w->notified);
    table_close(&w->path_index);
    table_close(&w->watch_index);
    table_close(&w->recursive_index);
    *w = (struct watches){0};
}

/* ---- Firing ---- */

struct firing {
    struct watches *watches;
    int32_t type;
    struct zk_text path; /* of the change */
    watch_notify_fn *notify;
    void *context;
};

static void notify_once(const struct firing *f, uint32_t connection) {
    struct watches *w = f->watches;
    if (w->notified[connection] == w->searches) return;
    w->notified[connection] = w->searches;
    f->notify(f->context, connection, f->type, f->path);
}

/* Fires the watches at a path: the one of the change, or an ancestor, where only recursive watches
 * are meant. */
static void fire_at(const struct firing *f, enum watch_table table, uint32_t path,
                    bool is_ancestor) {
    struct watches *w = f->watches;
    for (uint32_t next, number = path ? w->path[path].first[table] : 0; number; number = next) {
        struct watch watch = w->watch[number];
        next = watch.next;
        bool recursive = watch.mode == WATCH_RECURSIVE;
        if (is_ancestor ? !recursive : recursive && f->type == ZK_NODE_CHILDREN_CHANGED) continue;
        if (watch.mode == WATCH_ONCE) remove_watch(w, number);
        notify_once(f, watch.connection);
    }
}

/* One pass over the path, however deep it is.  The hash decides: to compare each prefix would take
 * as long as the square of the path, and equal hashes of different paths, of 61 bits at a secret
 * point, would only notify somebody of a change elsewhere. */
static void fire_at_ancestors(const struct firing *f, enum watch_table table) {
    const struct watches *w = f->watches;
    struct zk_text path = f->path;
    uint64_t hash = 0;
    for (int32_t i = 0; i + 1 < path.size; i++) {
        hash = hash_roll(hash, (unsigned char)path.at[i], HASH_POINT(w->seed));
        if (i && path.at[i + 1] != '/') continue;
        uint32_t number;
        for (struct probe p = table_probe(&w->recursive_index, (uint32_t)hash);
             (number = table_next(&w->recursive_index, &p));)
            if (w->path[number].size == (uint32_t)i + 1 && w->path[number].rolling_hash == hash)
                fire_at(f, table, number, true);
    }
}

static struct zk_text parent_of(struct zk_text path) {
    const char *slash = memrchr(path.at, '/', (size_t)path.size);
    int32_t size = slash ? (int32_t)(slash - path.at) : 0;
    return (struct zk_text){path.at, size ? size : 1};
}

static void search(const struct firing *f, enum watch_table table) {
    struct watches *w = f->watches;
    fire_at(f, table, find_path(w, f->path, path_hash(w, f->path)), false);
    if (w->recursive && f->type != ZK_NODE_CHILDREN_CHANGED) fire_at_ancestors(f, table);
}

void watches_fire(struct watches *w, int32_t type, struct zk_text path, watch_notify_fn *notify,
                  void *context) {
    if (!w->watches) return;
    struct firing f = {w, type, path, notify, context};
    w->searches++;
    search(&f, WATCH_DATA);
    if (type == ZK_NODE_DATA_CHANGED) return;
    if (type == ZK_NODE_DELETED) search(&f, WATCH_CHILDREN); /* no connection is notified twice */
    if (path.size <= 1) return;
    f.type = ZK_NODE_CHILDREN_CHANGED;
    f.path = parent_of(path);
    w->searches++;
    search(&f, WATCH_CHILDREN);
}
