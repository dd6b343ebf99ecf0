#include "tree/watch.h"

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
        w->path = grown(w->path, &w->path_room, w->path_places + 2, sizeof *w->path);
        number = ++w->path_places;
    }
    w->path[number] = (struct watched){
        .text = malloc((size_t)path.size + 1), .size = (uint32_t)path.size, .hash = hash};
    cv_assert(w->path[number].text);
    memcpy(w->path[number].text, path.at, (size_t)path.size);
    table_add(&w->path_index, hash, number);
    w->paths++;
    return number;
}

static void drop_path(struct watches *w, uint32_t number) {
    struct watched *path = &w->path[number];
    if (path->first[WATCH_DATA] || path->first[WATCH_CHILDREN]) return;
    table_remove(&w->path_index, path->hash, number);
    free(path->text);
    *path = (struct watched){.size = w->free_path};
    w->free_path = number;
    w->paths--;
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

static void know_connection(struct watches *w, uint32_t connection) {
    if (connection < w->connections) return;
    w->held = grown(w->held, &w->held_room, (size_t)connection + 1, sizeof *w->held);
    w->told = grown(w->told, &w->told_room, (size_t)connection + 1, sizeof *w->told);
    for (; w->connections <= connection; w->connections++)
        w->held[w->connections] = 0, w->told[w->connections] = 0;
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
    drop_path(w, watch->path);
    w->recursive -= watch->mode == WATCH_RECURSIVE;
    *watch = (struct watch){.next = w->free_watch};
    w->free_watch = number;
    w->watches--;
}

void watches_add(struct watches *w, uint32_t connection, struct zk_text path,
                 enum watch_table table, enum watch_mode mode) {
    uint32_t at = take_path(w, path), number = find_watch(w, at, connection, table);
    if (number) { /* the latest mode counts */
        w->recursive += (mode == WATCH_RECURSIVE) - (w->watch[number].mode == WATCH_RECURSIVE);
        w->watch[number].mode = (uint8_t)mode;
        return;
    }
    know_connection(w, connection);
    if ((number = w->free_watch)) {
        w->free_watch = w->watch[number].next;
    } else {
        w->watch = grown(w->watch, &w->watch_room, w->watch_places + 2, sizeof *w->watch);
        number = ++w->watch_places;
    }
    w->watch[number] = (struct watch){
        .path = at, .connection = connection, .table = (uint8_t)table, .mode = (uint8_t)mode};
    link_watch(w, number);
    table_add(&w->watch_index, watch_hash(at, connection, table), number);
    w->recursive += mode == WATCH_RECURSIVE;
    w->watches++;
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

void watches_forget(struct watches *w, uint32_t connection) {
    if (connection >= w->connections) return;
    while (w->held[connection]) remove_watch(w, w->held[connection]);
}

void watches_close(struct watches *w) {
    for (uint32_t i = 1; i <= w->path_places; i++) free(w->path[i].text);
    free(w->path);
    free(w->watch);
    free(w->held);
    free(w->told);
    table_close(&w->path_index);
    table_close(&w->watch_index);
    *w = (struct watches){0};
}

/* ---- Firing ---- */

struct firing {
    struct watches *watches;
    int32_t type;
    struct zk_text path; /* where it happened */
    watch_tell_fn *tell;
    void *context;
};

static void tell_once(const struct firing *f, uint32_t connection) {
    struct watches *w = f->watches;
    if (w->told[connection] == w->searches) return;
    w->told[connection] = w->searches;
    f->tell(f->context, connection, f->type, f->path);
}

/* Those who watch a place: the one where it happened, or one above it, where only they are meant
 * who watch everything below. */
static void fire_at(const struct firing *f, enum watch_table table, struct zk_text place,
                    bool above) {
    struct watches *w = f->watches;
    uint32_t at = find_path(w, place, path_hash(w, place));
    for (uint32_t next, number = at ? w->path[at].first[table] : 0; number; number = next) {
        struct watch watch = w->watch[number];
        next = watch.next;
        bool recursive = watch.mode == WATCH_RECURSIVE;
        if (above ? !recursive : recursive && f->type == ZK_NODE_CHILDREN_CHANGED) continue;
        if (watch.mode == WATCH_ONCE) remove_watch(w, number);
        tell_once(f, watch.connection);
    }
}

static struct zk_text parent_of(struct zk_text path) {
    const char *slash = memrchr(path.at, '/', (size_t)path.size);
    int32_t size = slash ? (int32_t)(slash - path.at) : 0;
    return (struct zk_text){path.at, size ? size : 1};
}

static void search(const struct firing *f, enum watch_table table) {
    fire_at(f, table, f->path, false);
    if (!f->watches->recursive || f->type == ZK_NODE_CHILDREN_CHANGED) return;
    for (struct zk_text place = f->path; place.size > 1;) {
        place = parent_of(place);
        fire_at(f, table, place, true);
    }
}

void watches_fire(struct watches *w, int32_t type, struct zk_text path, watch_tell_fn *tell,
                  void *context) {
    if (!w->watches) return;
    struct firing f = {w, type, path, tell, context};
    w->searches++;
    search(&f, WATCH_DATA);
    if (type == ZK_NODE_DATA_CHANGED) return;
    if (type == ZK_NODE_DELETED) search(&f, WATCH_CHILDREN); /* who has been told is not again */
    if (path.size <= 1) return;
    f.type = ZK_NODE_CHILDREN_CHANGED;
    f.path = parent_of(path);
    w->searches++;
    search(&f, WATCH_CHILDREN);
}
