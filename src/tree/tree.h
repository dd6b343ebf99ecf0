/* The tree of versioned nodes, with its sessions and ACLs: a pure state machine.
 *
 * It is fed entries in one order, the same on every server, and does no I/O, reads no clock and
 * draws no random number: an entry brings its time, and who asked for it.  What a request may do is
 * decided here, when the entry is applied, so there is nothing to remember of requests that are on
 * their way through the log.
 *
 *   entry.c    a request as it goes through the log
 *   apply.c    what an entry does: which rules it meets, in which order
 *   change.c   the changes themselves, and how they are taken back
 *   node.c     nodes: where they are found, what they hang on
 *   acl.c      lists of who may do what, each kept once
 *   session.c  who is there, and which nodes are theirs
 *   quota.c    how much is below a node, and how much may be
 *   read.c     what a request that changes nothing is answered
 *   image.c    all of it as bytes, for snapshots
 *   watch.c    who wants to be told of changes: not a part of the tree, but told of its events */
#ifndef CV_TREE_TREE_H
#define CV_TREE_TREE_H

#include "base/arena.h"
#include "base/table.h"
#include "zk/zk.h"

/* ---- Nodes ---- */

typedef uint32_t node_id; /* 0: none */
enum { TREE_ROOT = 1 };

struct node {
    int64_t czxid, mzxid, pzxid; /* of the create, the last setData, the last change of a child */
    int64_t ctime, mtime;        /* ms since 1970 */
    int64_t owner;               /* a session, or one of the marks below, or 0 */
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
    uint32_t acl;                       /* its number */
};

/* Owners that are no sessions. */
#define TREE_CONTAINER INT64_MIN
#define TREE_TTL_MARK  ((int64_t)0xff00000000000000u) /* and the ttl below */
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
    int64_t id; /* 0: the place is free */
    int32_t timeout_ms;
    unsigned char password[TREE_PASSWORD_SIZE];
    uint8_t server; /* that it is connected to; requests from elsewhere are not its own any more */
    uint32_t moves; /* how often it has come to a server again */
    node_id owned;  /* the first of its ephemeral nodes; of a free place: the next one */
    uint32_t owned_count;
};

struct sessions {
    struct session *at; /* from 1; a session keeps its place for as long as it lives */
    size_t room;
    uint32_t places, count, free_place;
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
enum { ACL_OPEN = 1 }; /* the number of world:anyone with all permissions, which stays */

struct acl { /* kept once, whoever has it */
    unsigned char *bytes;
    uint32_t size, refs; /* of a free place: the next one, 0 */
    int32_t count;
    uint32_t hash;
};

struct acl_lists {
    struct acl *at; /* from 1 */
    size_t room;
    uint32_t places, free_place;
    struct table index;
};

/* ---- The tree ---- */

/* What settings allow.  They are a part of each entry, so that it comes out the same whenever and
 * wherever it is applied. */
enum tree_rules {
    TREE_EXTENDED_TYPES = 1, /* nodes with a ttl */
    TREE_ENFORCE_QUOTA = 2,
    TREE_SKIP_ACL = 4,
    TREE_X509 = 8,      /* certificates are looked at, so ACLs may name them */
    TREE_RECONFIG = 32, /* clients that may write /zookeeper/config may ask for other members */
    TREE_OWN = 64,      /* a server itself asks, not a client */
    TREE_EXPIRES = 16,  /* a session's end is the leader's decision, not its own: body as below */
};

/* What a change looks like from outside: one of ZK_NODE_CREATED, _DELETED and _DATA_CHANGED.  The
 * first two also change the children of the parent. */
struct tree_event {
    int32_t type;
    size_t path_at, path_size; /* in tree.texts */
    uint32_t acl, parent_acl;  /* who may know */
};

/* Servers number what they put forward, and put it forward again when they cannot know whether it
 * got through: only the number that is next does anything. */
struct tree_origin {
    uint64_t life;   /* of a server's process: random, and the server's number in the lowest byte */
    uint64_t number; /* of the last entry of it that was applied */
};
enum { TREE_SERVERS_MAX = 256 };
static inline uint8_t tree_server_of(uint64_t life) { return (uint8_t)life; }

struct undo;

struct tree {
    int64_t zxid;  /* of the last entry */
    int32_t rules; /* for reads, and of the entry that is being applied */
    uint64_t seed;
    struct arena node_arena;
    struct node *node; /* by number */
    node_id free_nodes;
    uint32_t nodes, ephemerals, quotas;
    int64_t bytes; /* of names and data */
    struct table index;
    struct sessions sessions;
    struct acl_lists acls;
    struct tree_origin origin[TREE_SERVERS_MAX]; /* by server */
    struct bytes texts;                          /* paths of events */
    struct bytes scratch, name;                  /* what is being built */
    struct tree_event *event;
    size_t events, event_room;
    struct undo *undo;
    size_t undos, undo_room;
    node_id *perishable; /* containers and nodes with a ttl, some of which may be gone */
    size_t perishables, perishable_room;
};

int tree_open(struct tree *tree, uint64_t seed); /* 0, or -1 without memory */
void tree_close(struct tree *tree);

node_id tree_find(const struct tree *tree, struct zk_text path);
/* Writes the path of a node at the end of `out`; the node may be gone from the tree. */
void tree_path(const struct tree *tree, node_id id, struct bytes *out);
void tree_stat(const struct node *node, struct zk_stat *stat);
uint32_t tree_descendants(const struct tree *tree, node_id id);
/* The next node after this one with parents before children, 0 at the end.  `up`: by how many
 * levels the new one's parent is above the old one. */
node_id tree_walk(const struct tree *tree, node_id top, node_id id, uint32_t *up);

/* ---- Entries ---- */

enum {                       /* operations that no client can ask for by number */
       TREE_OP_ATTACH = -12, /* the session is at this server now; body as that of its creation */
};

struct tree_entry {  /* what goes through the log */
    int64_t time;    /* ms since 1970, of the leader; it comes first, for the leader to write it */
    uint64_t life;   /* of the server that put it forward, 0: nobody's */
    uint64_t number; /* among that server's */
    int64_t session; /* who asks; 0: the server itself */
    struct zk_clients identities;
    int32_t rules;
    int32_t op;
    struct zk_in body; /* the request, as the client sent it */
};

/* What a leader knew when it decided that a session has expired.  In another term, or if the
 * session has come back meanwhile, it does not count. */
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

/* Applies it, writes the body of the reply (or nothing) and returns an error or ZK_OK, or
 * TREE_AGAIN: it is not the next of its server.  What it changed is in tree->event until the next.
 */
enum { TREE_AGAIN = 1 };
int32_t tree_apply(struct tree *tree, int64_t zxid, const struct tree_entry *entry,
                   struct bytes *reply);
/* An entry that says who the members of the ensemble are, for all to read in /zookeeper/config; the
 * text is empty if there is but one server. */
struct tree_members {
    int64_t time;
    struct zk_text text;
};
size_t tree_members_size(const struct tree_members *members);
void tree_store_members(unsigned char *to, const struct tree_members *members);
bool tree_read_members(struct zk_in in, struct tree_members *members);
void tree_configure(struct tree *tree, int64_t zxid, const struct tree_members *members);
/* The zxid of the next entry: the term above, a count below. */
static inline int64_t tree_next_zxid(const struct tree *tree, uint64_t term) {
    int64_t first = (int64_t)(term << 32);
    return (tree->zxid < first ? first : tree->zxid) + 1;
}
static inline struct zk_text tree_event_path(const struct tree *tree,
                                             const struct tree_event *event) {
    return (struct zk_text){(const char *)tree->texts.at + event->path_at,
                            (int32_t)event->path_size};
}

/* Calls for each node that is due to be removed: an empty container, one whose ttl is over. */
void tree_perished(struct tree *tree, int64_t now, void (*each)(void *context, struct zk_text path),
                   void *context);

/* ---- Reading ---- */

/* The body of the reply to a read, or an error. */
int32_t tree_read(struct tree *tree, int32_t op, const union zk_request *request, int64_t session,
                  const struct zk_clients *identities, struct bytes *reply);

/* ---- Sessions and ACLs ---- */

uint32_t session_find(const struct tree *tree, int64_t id); /* its place; 0: there is none */
bool acl_allows(const struct tree *tree, uint32_t acl, int32_t permission,
                const struct zk_clients *identities);

/* ---- All of it, as bytes ---- */

typedef int tree_write_fn(void *context, const void *bytes, size_t size); /* 0, or -1: it failed */
typedef int tree_read_fn(void *context, void *bytes, size_t size);

int tree_save(const struct tree *tree, tree_write_fn *write, void *context);
/* Into an open tree, which is to be closed if it fails: -1, and *why says what is wrong. */
int tree_load(struct tree *tree, tree_read_fn *read, void *context, const char **why);

/* ---- Between the files ---- */

int tree_open_empty(struct tree *tree, uint64_t seed);
/* The node has come from an image: what is kept beside the nodes takes note. */
void tree_loaded(struct tree *tree, node_id id, struct zk_text path);
uint32_t tree_hash(const struct tree *tree, struct zk_text path);
node_id node_new(struct tree *tree);
void node_free(struct tree *tree, node_id id);
void node_link(struct tree *tree, node_id id, node_id parent);
/* A node that was kept somewhere, with all its numbers.  Its text, which it brings, is the tree's
 * from now on.  The path is free, of the root empty; the session of an ephemeral node is there. */
node_id node_insert(struct tree *tree, const struct node *kept, node_id parent,
                    struct zk_text path);
/* The nodes that every tree has below its root: those that are not there are founded. */
void tree_complete(struct tree *tree);
void node_unlink(struct tree *tree, node_id id);

uint32_t session_add(struct tree *tree, int64_t id, int32_t timeout_ms,
                     const unsigned char password[TREE_PASSWORD_SIZE]);
void session_remove(struct tree *tree, uint32_t place);
void session_own(struct tree *tree, node_id id);
void session_disown(struct tree *tree, node_id id);

/* The list as it is to be kept, in tree->scratch: false when it is not allowed. */
bool acl_prepare(struct tree *tree, struct zk_acls given, const struct zk_clients *identities,
                 struct zk_acls *kept);
/* What the rest relies on, whoever made the list. */
bool acl_entry_is_sound(const struct zk_acl *entry);
uint32_t acl_take(struct tree *tree, const struct zk_acls *list); /* one more has it */
void acl_share(struct tree *tree, uint32_t acl);
void acl_drop(struct tree *tree, uint32_t acl);
struct zk_acls acl_list(const struct tree *tree, uint32_t acl);

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
/* The data of a node, and nothing else of it; nobody is told. */
void change_statistics(struct tree *tree, node_id id, struct zk_text data);
void changes_keep(struct tree *tree);
void changes_take_back(struct tree *tree);
void tree_forget_events(struct tree *tree);

/* Takes account of a change below a node with a quota. */
void quota_count(struct tree *tree, struct zk_text path, int64_t nodes, int64_t bytes);
/* The node has come, or is about to go: it may be one that sets a quota. */
void quota_created(struct tree *tree, node_id id, struct zk_text path);
void quota_deleted(struct tree *tree, struct zk_text path);
void quota_loaded(struct tree *tree, struct zk_text path);
bool quota_exceeded(struct tree *tree, struct zk_text path, int64_t nodes, int64_t bytes);

#endif
