/* The tree of versioned nodes, with its sessions and ACLs: a pure state machine.
 *
 * Every server applies the same entries in the same order.  The tree does no I/O, reads no clock
 * and draws no random number: an entry brings its time and the identity of the client.  Requests
 * are checked when their entry is applied, so nothing has to be remembered of requests that are
 * still on their way through the log.
 *
 *   entry.c     a request as it goes through the log
 *   apply.c     what an entry does: which checks it passes, in which order
 *   change.c    the changes themselves, and how they are rolled back
 *   node.c      nodes: the index of paths, parents and children
 *   acl.c       ACLs, each list kept once
 *   acl_index.c what long ACLs grant
 *   session.c   sessions and their ephemeral nodes
 *   quota.c     the statistics and limits of subtrees
 *   reconfig.c  what the members of the ensemble are to become
 *   read.c      answers to requests that change nothing
 *   image.c     the whole tree as bytes, for snapshots
 *   watch.c     watches: not a part of the tree, but fired by its events
 *   internal.h  what only these files share */
#ifndef CV_SERVICE_TREE_TREE_H
#define CV_SERVICE_TREE_TREE_H

#include "base/arena.h"
#include "base/clock.h"
#include "base/table.h"
#include "wire/zk/zk.h"

/* ---- Nodes ---- */

typedef uint32_t node_id; /* 0: none */
enum { TREE_ROOT = 1 };

/* A container or a node with a ttl: since when this server has found it as it is. */
struct expirable {
    int64_t mzxid;    /* another than the node has now: it was not looked at yet */
    int64_t since_ms; /* by the clock that is never set; may be before its beginning */
};

enum { EXPIRABLE_GROUP = 64 };
struct expirable_group {  /* so many nodes, by number */
    uint64_t nodes;       /* a bit for each that can expire */
    struct expirable *at; /* NULL: none could yet */
};

struct node {
    int64_t czxid, mzxid, pzxid; /* of the create, the last setData, the last change of a child */
    int64_t ctime, mtime;        /* ms since 1970 */
    int64_t owner;               /* a session, or one of the marks below, or 0: persistent */
    char *text;                  /* the name, then the data */
    uint32_t name_size;
    int32_t data_size; /* -1: null */
    uint32_t hash;     /* of the path */
    node_id parent;
    node_id next, prev; /* among the children of the parent, in no order */
    union {
        struct {
            node_id first_child;
            uint32_t children;
        };
        struct { /* an ephemeral node has no children, but others of the same session */
            node_id next_owned, prev_owned;
        };
    };
    int32_t version, creates, aversion; /* creates: of children, ever */
    uint32_t acl;                       /* index in acl_lists */
};

/* Owners that are not sessions. */
#define TREE_CONTAINER INT64_MIN
#define TREE_TTL_MARK  ((int64_t)0xff00000000000000u) /* the ttl is in the lower bits */
#define TREE_TTL_MAX   ((int64_t)0xffffffffff)        /* ms */

static inline bool node_is_ttl(const struct node *node) {
    return (node->owner & TREE_TTL_MARK) == TREE_TTL_MARK;
}
static inline bool node_is_ephemeral(const struct node *node) {
    return node->owner && node->owner != TREE_CONTAINER && !node_is_ttl(node);
}
static inline uint32_t node_children(const struct node *node) {
    return node_is_ephemeral(node) ? 0 : node->children;
}
static inline struct zk_text node_name(const struct node *node) {
    return (struct zk_text){node->text, (int32_t)node->name_size};
}
static inline struct zk_text node_data(const struct node *node) {
    return (struct zk_text){node->text + node->name_size, node->data_size};
}

/* ---- Sessions ---- */

enum { TREE_PASSWORD_SIZE = 16 };

struct session {
    int64_t id; /* 0: the slot is free */
    int32_t timeout_ms;
    unsigned char password[TREE_PASSWORD_SIZE];
    uint8_t server; /* it is connected to; requests through any other get ZK_SESSIONMOVED */
    uint32_t moves; /* how often its client has reconnected */
    node_id owned;  /* the first of its ephemeral nodes; of a free slot: the next free one */
    uint32_t owned_count;
};

struct sessions {
    struct session *at; /* from 1; a session keeps its slot until it ends */
    size_t room;
    uint32_t slots, count, free_slot;
    struct table index;
};

/* ---- ACLs ---- */

enum {
    ACL_READ = 1,
    ACL_WRITE = 2,
    ACL_CREATE = 4,
    ACL_DELETE = 8,
    ACL_ADMIN = 16,
    ACL_ALL = 31,
};
enum { ACL_OPEN = 1 }; /* the list world:anyone with all permissions, always there */

struct acl { /* kept once for all nodes that have it */
    unsigned char *bytes;
    uint32_t size, refs; /* of a free slot: the next free one, 0 */
    int32_t count;
    uint32_t hash;
    struct acl_index *long_index; /* NULL: it is short */
};

struct acl_lists {
    struct acl *at; /* from 1 */
    size_t room;
    uint32_t slots, free_slot;
    struct table index;
};

/* ---- The tree ---- */

/* Settings that decide what an entry does.  They are part of each entry, so that its result is the
 * same whenever and wherever it is applied. */
enum tree_rules {
    TREE_EXTENDED_TYPES = 1, /* nodes with a ttl */
    TREE_ENFORCE_QUOTA = 2,
    TREE_SKIP_ACL = 4,
    TREE_X509 = 8,      /* clients show certificates, so ACLs may name them */
    TREE_EXPIRES = 16,  /* the leader ends an expired session: the body is a tree_expiry */
    TREE_RECONFIG = 32, /* clients that may write /zookeeper/config may change the members */
    TREE_INTERNAL = 64, /* the request of a server itself, not of a client */
};

/* A change as watches see it: ZK_NODE_CREATED, _DELETED or _DATA_CHANGED.  The first two also
 * change the children of the parent. */
struct tree_event {
    int32_t type;
    size_t path_at, path_size; /* in tree.texts */
    uint32_t acl, parent_acl;  /* only clients that may read are notified */
};

/* The last entry of a server that was applied.  A server proposes an entry again when it cannot
 * know whether it was committed, so entries carry sequence numbers, and only the next one is
 * applied. */
struct tree_proposer {
    uint64_t incarnation; /* of the server's process: random, the server's id in the lowest byte */
    uint64_t sequence;
};
enum { TREE_SERVERS_MAX = 256 };
static inline uint8_t tree_server_of(uint64_t incarnation) { return (uint8_t)incarnation; }

struct tree_total {
    int64_t nodes, bytes; /* bytes of data */
};

struct undo;

/* How far an entry has got that is applied in several steps. */
struct tree_progress {
    enum {
        TREE_BETWEEN,  /* two entries */
        TREE_COUNTING, /* what the next entry needs to know; it has not begun */
        TREE_OPERATING,
        TREE_ROLLING_BACK,
        TREE_KEEPING,
        TREE_CLOSING,
    } stage; /* of a multi; the last: of the end of a session */
    int64_t zxid;
    size_t taken, reply_begin; /* of a multi: bytes of operations that are done; of the reply */
    int32_t count, done, err;  /* ... how many; how many are done; what the next one failed with */
};

struct tree {
    int64_t zxid;  /* of the last entry */
    int32_t rules; /* of this server, for reads; of the entry while it is applied */
    uint64_t seed;
    struct arena node_arena;
    struct node *node; /* by node_id */
    node_id free_nodes;
    uint32_t nodes, ephemerals, quotas;
    struct table quota_index; /* nodes with limits */
    struct arena totals;      /* struct tree_total by node_id, of its subtree */
    node_id counted;          /* while they are counted */
    bool totals_known;
    int64_t bytes; /* of names and data */
    struct table index;
    struct sessions sessions;
    struct acl_lists acls;
    struct tree_proposer proposer[TREE_SERVERS_MAX]; /* by server */
    struct bytes target; /* lines: what a change of the members leads to; empty: there is none */
    struct bytes texts;  /* paths of events */
    struct bytes scratch, name; /* texts under construction */
    struct tree_event *event;
    size_t events, event_room;
    struct undo *undo;
    size_t undos, undo_room;
    struct tree_progress progress;
    struct expirable_group *expirable;
    bool expirables_known; /* they were looked at since the tree was opened or loaded ... */
    int64_t known_zxid;    /* ... for the first time when it was at this zxid */
    size_t expirables, expirable_room;
};

int tree_open(struct tree *tree, uint64_t seed); /* 0, or -1: out of memory */
void tree_close(struct tree *tree);

node_id tree_find(const struct tree *tree, struct zk_text path);
/* Appends the path of a node to `out`; the node may be unlinked. */
void tree_path(const struct tree *tree, node_id id, struct bytes *out);
void tree_stat(const struct node *node, struct zk_stat *stat);
/* The next node in pre-order (parents before children), 0 at the end.  `up`: how many levels to go
 * up from the old node to the parent of the new one. */
node_id tree_walk(const struct tree *tree, node_id top, node_id id, uint32_t *up);

/* ---- Entries ---- */

enum {                       /* operations that clients cannot request */
       TREE_OP_ATTACH = -12, /* the session reconnects here; same body as createSession */
};

struct tree_entry { /* a request in the log */
    int64_t time;   /* ms since 1970; first in the entry, so that the leader can set it in place */
    uint64_t incarnation; /* of the server that proposed it; 0: none */
    uint64_t sequence;    /* among that server's entries */
    int64_t session;      /* 0: the server itself */
    struct zk_clients identities;
    int32_t rules;
    int32_t op;
    struct zk_in body; /* the request, as the client sent it */
};

/* What the leader knew when it expired a session.  The expiry has no effect in another term, or if
 * the client has reconnected meanwhile. */
struct tree_expiry {
    int64_t term;
    int32_t moves;
};
enum { TREE_EXPIRY_SIZE = 12 };
void tree_store_expiry(unsigned char to[TREE_EXPIRY_SIZE], const struct tree_expiry *expiry);
bool tree_read_expiry(struct zk_in in, struct tree_expiry *expiry);

size_t tree_entry_size(const struct tree_entry *entry);
void tree_store_entry(unsigned char *to, const struct tree_entry *entry);
bool tree_read_entry(struct zk_in *in, struct tree_entry *entry);

/* What may take several loop iterations has so many steps in each, which are counted down.  One is
 * an item, or so many of its bytes if it is long. */
enum { TREE_STEP_BYTES = 1024 };
static inline size_t tree_steps(size_t bytes) { return 1 + bytes / TREE_STEP_BYTES; }
static inline void tree_step_over(size_t bytes, size_t *steps) {
    size_t cost = tree_steps(bytes);
    *steps -= cost < *steps ? cost : *steps;
}

/* Applies an entry, writes the body of the reply (or nothing) and returns ZK_OK, an error, or
 * TREE_OUT_OF_SEQUENCE: the entry is not the next of its server, and has no effect.  tree->event
 * holds the changes until the next entry. */
enum { TREE_OUT_OF_SEQUENCE = 1 };
int32_t tree_apply(struct tree *tree, int64_t zxid, const struct tree_entry *entry,
                   struct bytes *reply);
/* The same, in so many steps at most: a step is an operation, or a node of a session that ends,
 * unless its path is long.  TREE_UNFINISHED: the tree is between the states
 * before and after the entry, and nobody but an operator may see it, until further calls with the
 * same entry and reply have finished it.  The result is the same in however many calls. */
enum { TREE_UNFINISHED = 2 };
int32_t tree_apply_some(struct tree *tree, int64_t zxid, const struct tree_entry *entry,
                        struct bytes *reply, size_t *steps);
static inline bool tree_is_unfinished(const struct tree *tree) {
    return tree->progress.stage != TREE_BETWEEN;
}
/* How many events are certain.  Those of a multi are not before its end; those of the end of a
 * session are forgotten by the next call. */
static inline size_t tree_certain_events(const struct tree *tree) {
    bool certain = tree->progress.stage == TREE_BETWEEN || tree->progress.stage == TREE_CLOSING;
    return certain ? tree->events : 0;
}
/* An entry with the members of the ensemble, which clients read in /zookeeper/config; the text of a
 * standalone server is empty. */
struct tree_members {
    int64_t time;
    struct zk_text text;
    int64_t version; /* of the configuration for clients; 0: the zxid of the entry */
};
size_t tree_members_size(const struct tree_members *members);
void tree_store_members(unsigned char *to, const struct tree_members *members);
bool tree_read_members(struct zk_in in, struct tree_members *members);
void tree_configure(struct tree *tree, int64_t zxid, const struct tree_members *members);
/* The committed members, and their version; empty and 0: there are none yet. */
struct zk_text tree_members_text(const struct tree *tree);
int64_t tree_members_version(const struct tree *tree);
int64_t tree_members_zxid(const struct tree *tree); /* that a reconfig is compared with */
/* As a server alone has it. */
void tree_forget_members(struct tree *tree);
/* What a reconfig request makes of members, appended to `target`; an error: `why` says why. */
int32_t tree_plan_members(struct zk_text from, const struct zk_reconfig_request *request,
                          struct bytes *target, char *why, size_t size);
/* The zxid of the next entry: the term in the upper half, a counter in the lower. */
static inline int64_t tree_next_zxid(const struct tree *tree, uint64_t term) {
    int64_t first = (int64_t)(term << 32);
    return (tree->zxid < first ? first : tree->zxid) + 1;
}
static inline struct zk_text tree_event_path(const struct tree *tree,
                                             const struct tree_event *event) {
    return (struct zk_text){(const char *)tree->texts.at + event->path_at,
                            (int32_t)event->path_size};
}

/* Calls `each` (NULL: nobody) for each node that is due to be removed: empty containers, and nodes
 * whose ttl is over.  It is over when it is by the times in the log, which may have been set, and
 * by the clock that is never set, from when this server first found the node as it is.  What was
 * there before the first call is believed to be as old as its time says.  Looks at so many of those
 * that can expire, from a node on, and returns where to go on; 0: that were all. */
node_id tree_find_expired(struct tree *tree, node_id from, size_t steps, const struct clock *clock,
                          void (*each)(void *context, struct zk_text path), void *context);

/* ---- Reading ---- */

/* Writes the body of the reply to a read, or returns an error. */
int32_t tree_read(struct tree *tree, int32_t op, const union zk_request *request, int64_t session,
                  const struct zk_clients *identities, struct bytes *reply);
/* The same, in so many steps at most, which are counted down: a step is a node in a list.
 * TREE_UNFINISHED: call again with the same request, reply and `reading`, which is all zero at
 * first, before the tree changes. */
struct tree_reading {
    bool begun;
    node_id next; /* to be listed */
    int32_t count;
    size_t count_at; /* in the reply */
};
int32_t tree_read_some(struct tree *tree, int32_t op, const union zk_request *request,
                       int64_t session, const struct zk_clients *identities, struct bytes *reply,
                       struct tree_reading *reading, size_t *steps);

/* About how many steps a read of one node would take of the tree as it is. */
size_t tree_expected_steps(const struct tree *tree, int32_t op, const union zk_request *request);

/* ---- Sessions and ACLs ---- */

uint32_t session_find(const struct tree *tree, int64_t id); /* its slot; 0: no such session */
bool acl_allows(const struct tree *tree, uint32_t acl, int32_t permission,
                const struct zk_clients *identities);
struct zk_acls acl_list(const struct tree *tree, uint32_t acl);

/* ---- The whole tree as bytes ---- */

typedef int tree_write_fn(void *context, const void *bytes, size_t size); /* 0, or -1 */
typedef int tree_read_fn(void *context, void *bytes, size_t size);

int tree_save(const struct tree *tree, tree_write_fn *write, void *context);
/* Into an open tree.  -1: *why says what is wrong, and the tree has to be closed. */
int tree_load(struct tree *tree, tree_read_fn *read, void *context, const char **why);

/* ---- Building a tree without entries: for the import of other servers' files ---- */

/* A tree with the one ACL that every tree has, and without nodes. */
int tree_open_empty(struct tree *tree, uint64_t seed);
/* A node from elsewhere, with all its numbers; the tree takes over its text.  The path is not in
 * the tree yet (the root's is empty), and the session of an ephemeral node is. */
node_id node_insert(struct tree *tree, const struct node *kept, node_id parent,
                    struct zk_text path);
/* Creates those of the nodes below /zookeeper that every tree has and this one lacks. */
void tree_complete(struct tree *tree);

uint32_t session_add(struct tree *tree, int64_t id, int32_t timeout_ms,
                     const unsigned char password[TREE_PASSWORD_SIZE]);
void session_remove(struct tree *tree, uint32_t slot);

/* What every list in a tree satisfies, wherever it came from. */
bool acl_entry_is_sound(const struct zk_acl *entry);
uint32_t acl_take(struct tree *tree, const struct zk_acls *list); /* one more reference to it */
void acl_drop(struct tree *tree, uint32_t acl);

struct creation {
    struct zk_text path, data;
    node_id parent;
    struct zk_acls acl;
    int64_t owner, zxid, time;
};
node_id change_create(struct tree *tree, const struct creation *creation);
void change_delete(struct tree *tree, node_id id, struct zk_text path, int64_t zxid);
void change_data(struct tree *tree, node_id id, struct zk_text path, struct zk_text data,
                 int64_t zxid, int64_t time);
/* Makes the changes since the last call final: they can no longer be rolled back. */
void changes_keep(struct tree *tree);
void tree_forget_events(struct tree *tree);

/* The node may be one that sets a quota. */
void quota_loaded(struct tree *tree, node_id id, struct zk_text path);
void quota_created(struct tree *tree, node_id id, struct zk_text path);

#endif
