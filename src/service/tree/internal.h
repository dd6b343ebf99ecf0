/* Private to this folder: what the files of the tree share. */
#ifndef CV_SERVICE_TREE_INTERNAL_H
#define CV_SERVICE_TREE_INTERNAL_H

#include "service/tree/tree.h"

/* ---- Nodes (node.c) ---- */

uint32_t tree_hash(const struct tree *tree, struct zk_text path);
node_id node_new(struct tree *tree);
void node_free(struct tree *tree, node_id id);
void node_link(struct tree *tree, node_id id, node_id parent);
void node_unlink(struct tree *tree, node_id id);

/* ---- Sessions and ACLs ---- */

/* Adds an ephemeral node to the chain of its session, or removes it. */
void session_own(struct tree *tree, node_id id);
void session_disown(struct tree *tree, node_id id);

/* The list as it is to be kept, in tree->scratch; false: it is not allowed. */
bool acl_prepare(struct tree *tree, struct zk_acls given, const struct zk_clients *identities,
                 struct zk_acls *kept);
void acl_share(struct tree *tree, uint32_t acl); /* one more reference */
bool acl_is_to_anyone(const struct zk_acl *entry);
bool acl_read_address(const struct zk_id *id, uint32_t *address, uint32_t *mask);
/* Of a list whose bytes outlive it. */
struct acl_index *acl_index_open(struct zk_acls list, uint64_t seed);
void acl_index_close(struct acl_index *index); /* NULL: there is none */
bool acl_index_allows(const struct acl_index *index, uint64_t seed, int32_t permission,
                      struct zk_clients identities);

/* ---- Changes (change.c) ---- */

/* Containers and nodes with a ttl: they are removed when they are empty or too old. */
bool node_is_expirable(const struct node *node);
/* Notes what the rest of the tree has to know of a node that was inserted as it is. */
void tree_loaded(struct tree *tree, node_id id, struct zk_text path);
/* Replaces the data of a node and nothing else; no watch is notified. */
void change_statistics(struct tree *tree, node_id id, struct zk_text data);
/* As changes_keep, and the opposite: undoes the changes since the last one.  Some of them, each a
 * step; false: not all yet. */
bool changes_keep_some(struct tree *tree, size_t *steps);
bool changes_roll_back_some(struct tree *tree, size_t *steps);
void expirable_forget(struct tree *tree, node_id id);

/* ---- Members (reconfig.c) ---- */

/* Sets tree->target: that of a change in progress is gone on from.  An empty request ends it. */
/* How it would be answered; nothing changes. */
int32_t tree_judge_reconfig(const struct tree *tree, const struct zk_reconfig_request *request);
int32_t tree_reconfigure(struct tree *tree, const struct zk_reconfig_request *request);

/* ---- Quotas (quota.c) ---- */

/* Adds a change to the statistics of the quota that covers the path. */
void quota_count(struct tree *tree, struct zk_text path, int64_t nodes, int64_t bytes);
/* Before the node is unlinked. */
void quota_deleted(struct tree *tree, node_id id, struct zk_text path);
bool quota_exceeded(struct tree *tree, struct zk_text path, int64_t nodes, int64_t bytes);

/* Of the node and all above it, if totals are kept. */
void totals_add(struct tree *tree, node_id id, int64_t nodes, int64_t bytes);
void totals_begin(struct tree *tree, node_id id); /* a new node */
/* Counts the tree, each node a step, unless that is done; false: not all yet. */
bool totals_count_some(struct tree *tree, size_t *steps);
int64_t totals_nodes(struct tree *tree, node_id id); /* when they are counted */
bool totals_are_needed(const struct tree_entry *entry);

#define TREE_RESERVE ((size_t)1 << 38) /* bytes of addresses for arrays by node_id */

/* Takes the versions off the beginning of a list of members: the first of them, 0 for none.  A
 * server of an older version takes such a line for a part of the list, so where it has led or
 * written a snapshot there may be several. */
int64_t tree_take_versions(struct zk_text *text);

#endif
