/* Watches: which connections want to be told of changes at which paths.
 *
 * There are two tables, of data and of children, and a connection has at most one watch for a path
 * in each.  A path need not exist.  Connections are small numbers of the owner's. */
#ifndef CV_TREE_WATCH_H
#define CV_TREE_WATCH_H

#include "base/table.h"
#include "zk/zk.h"

enum watch_table { WATCH_DATA, WATCH_CHILDREN };
enum watch_mode { WATCH_ONCE, WATCH_PERSISTENT, WATCH_RECURSIVE };

struct watch {
    uint32_t path, connection;
    uint32_t next, prev;           /* at the same path, in the same table */
    uint32_t next_held, prev_held; /* of the same connection */
    uint8_t table, mode;
};

struct watched { /* a path */
    char *text;
    uint32_t size, hash;
    uint32_t first[2]; /* by table; both 0: the place is free, and `size` is the next free one */
};

struct watches {
    struct watched *path; /* from 1 */
    struct watch *watch;  /* from 1 */
    uint32_t *held;       /* by connection: the first of its watches */
    uint64_t *told;       /* by connection: the last search that it was told of */
    size_t path_room, watch_room, held_room, told_room;
    uint32_t paths, path_places, free_path, watches, watch_places, free_watch, connections;
    uint32_t recursive; /* how many are */
    uint64_t searches;
    uint64_t seed;
    struct table path_index, watch_index;
};

typedef void watch_tell_fn(void *context, uint32_t connection, int32_t type, struct zk_text path);

void watches_close(struct watches *watches);
void watches_add(struct watches *watches, uint32_t connection, struct zk_text path,
                 enum watch_table table, enum watch_mode mode);
bool watches_has(const struct watches *watches, uint32_t connection, struct zk_text path,
                 enum watch_table table);
bool watches_remove(struct watches *watches, uint32_t connection, struct zk_text path,
                    enum watch_table table);
void watches_forget(struct watches *watches, uint32_t connection);

/* A change at a path (ZK_NODE_CREATED, _DELETED or _DATA_CHANGED): tells everybody who watches it,
 * or its parent's children.  Watches that are not to stay are gone afterwards. */
void watches_fire(struct watches *watches, int32_t type, struct zk_text path, watch_tell_fn *tell,
                  void *context);

#endif
