/* Watches: which connections are notified of changes at which paths.
 *
 * There are two tables, of data and of children, and a connection has at most one watch for a path
 * in each.  A path need not exist.  The owner numbers its connections with small integers. */
#ifndef CV_SERVICE_TREE_WATCH_H
#define CV_SERVICE_TREE_WATCH_H

#include "base/table.h"
#include "wire/zk/zk.h"

enum watch_table { WATCH_DATA, WATCH_CHILDREN };
enum watch_mode { WATCH_ONCE, WATCH_PERSISTENT, WATCH_RECURSIVE };

struct watch {
    uint32_t path, connection;
    uint32_t next, prev;           /* at the same path, in the same table */
    uint32_t next_held, prev_held; /* of the same connection */
    uint8_t table, mode;
};

struct watched_path {
    char *text;
    uint32_t size, hash;
    uint32_t first[2];     /* by table; both 0: the slot is free, and `size` is the next free one */
    uint32_t recursive;    /* how many watches are ... */
    uint64_t rolling_hash; /* ... and if any: by hash_roll */
};

struct watches {
    struct watched_path *path; /* from 1 */
    struct watch *watch;       /* from 1 */
    uint32_t *held;            /* by connection: the first of its watches */
    uint64_t *notified;        /* by connection: the last search that notified it */
    size_t path_room, watch_room, held_room, notified_room;
    uint32_t paths, path_slots, free_path, watches, watch_slots, free_watch, connections;
    uint32_t recursive; /* how many watches are */
    size_t path_bytes;  /* of all paths */
    uint64_t searches;
    uint64_t seed;
    struct table path_index, watch_index;
    struct table recursive_index; /* paths with recursive watches, by hash_roll */
};

typedef void watch_notify_fn(void *context, uint32_t connection, int32_t type, struct zk_text path);

void watches_close(struct watches *watches);
void watches_add(struct watches *watches, uint32_t connection, struct zk_text path,
                 enum watch_table table, enum watch_mode mode);
bool watches_has(const struct watches *watches, uint32_t connection, struct zk_text path,
                 enum watch_table table);
bool watches_remove(struct watches *watches, uint32_t connection, struct zk_text path,
                    enum watch_table table);
/* How many there are at a path, of both tables; no more than `max` are counted. */
uint32_t watches_count(const struct watches *watches, struct zk_text path, uint32_t max);
/* About how many bytes they keep. */
size_t watches_weight(const struct watches *watches);
/* All watches of a connection, each a step; false: not all yet. */
bool watches_forget(struct watches *watches, uint32_t connection, size_t *steps);

/* A change at a path (ZK_NODE_CREATED, _DELETED or _DATA_CHANGED): notifies the connections that
 * watch it, or the children of its parent, and removes the one-time watches among theirs. */
void watches_fire(struct watches *watches, int32_t type, struct zk_text path,
                  watch_notify_fn *notify, void *context);

#endif
