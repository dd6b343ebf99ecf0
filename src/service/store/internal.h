/* Private to this folder: what the files of the import share. */
#ifndef CV_SERVICE_STORE_INTERNAL_H
#define CV_SERVICE_STORE_INTERNAL_H

#include "service/store/import.h"

struct import_fault { /* in a file */
    size_t offset;
    const char *why;
};

/* The header of both kinds of files. */
bool import_header(struct zk_in *in, int32_t magic);
/* Reads a file into a tree without nodes, whose zxid is set.  The sessions and ACLs of some nodes
 * may be unknown until import_finish. */
bool import_snapshot(struct tree *tree, struct zk_in file, struct import_fault *fault);
/* The same up to the checksums at its end, to which *in is advanced. */
bool import_snapshot_body(struct tree *tree, struct zk_in *in, const char **why);

struct import_log {
    uint64_t transactions;
    size_t torn_at; /* offset of an incomplete last record; 0: there is none */
    void (*progress)(void *context, size_t done);
    void *context;
};
/* Applies the transactions after tree->zxid, which advances. */
bool import_log(struct tree *tree, struct zk_in file, struct import_log *log,
                struct import_fault *fault);
/* Applies one transaction; NULL, or what is wrong with it. */
const char *import_transaction(struct tree *tree, struct zk_in record);

/* Ends sessions that no transaction opened, counts quotas, and adds the nodes that every tree has.
 * NULL, or what is wrong with the tree. */
const char *import_finish(struct tree *tree, uint64_t *sessions_ended);

/* The marks of containers and of nodes with a ttl are not ids of sessions. */
static inline bool import_is_session(int64_t id) {
    return node_is_ephemeral(&(struct node){.owner = id});
}
/* Finds or adds a session, of which only the id may be known so far. */
struct session *import_session(struct tree *tree, int64_t id);
enum { IMPORT_TIMEOUT_UNKNOWN = -1 };
/* The password that ZooKeeper gives a session: 16 bytes of java.util.Random. */
void import_password(int64_t session, unsigned char password[TREE_PASSWORD_SIZE]);

/* Whether the tree accepts a list. */
bool import_acl_is_sound(struct zk_acls list);
/* A list that allows nothing, for a node whose ACL is not known yet. */
uint32_t import_closed_acl(struct tree *tree);

#endif
