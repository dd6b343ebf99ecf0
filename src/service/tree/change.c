/* The changes: create, delete, set data.  Each leaves a record of how to undo it, for a multi of
 * which a later operation fails; what was deleted or replaced is freed when the changes are kept.
 */
#include "base/grow.h"
#include "service/tree/internal.h"

enum undo_kind { UNDO_CREATE, UNDO_DELETE, UNDO_DATA };

struct undo {
    enum undo_kind kind;
    node_id id;
    struct node before; /* the parent of what was created or deleted; else the node */
};

static void note_undo(struct tree *tree, enum undo_kind kind, node_id id,
                      const struct node *before) {
    tree->undo = grown(tree->undo, &tree->undo_room, tree->undos + 1, sizeof *tree->undo);
    tree->undo[tree->undos++] = (struct undo){kind, id, *before};
}

static void add_event(struct tree *tree, int32_t type, const struct node *node,
                      struct zk_text path) {
    uint32_t parent_acl = node->parent ? tree->node[node->parent].acl : node->acl;
    tree->event = grown(tree->event, &tree->event_room, tree->events + 1, sizeof *tree->event);
    tree->event[tree->events++] =
        (struct tree_event){type, tree->texts.used, (size_t)path.size, node->acl, parent_acl};
    memcpy(bytes_extend(&tree->texts, (size_t)path.size), path.at, (size_t)path.size);
    acl_share(tree, node->acl); /* the event may outlive the node */
    acl_share(tree, parent_acl);
}

void tree_forget_events(struct tree *tree) {
    for (size_t i = 0; i < tree->events; i++) {
        acl_drop(tree, tree->event[i].acl);
        acl_drop(tree, tree->event[i].parent_acl);
    }
    tree->events = 0;
    tree->texts.used = 0;
}

static char *text_of(struct zk_text name, struct zk_text data) {
    size_t data_size = data.size > 0 ? (size_t)data.size : 0;
    char *text = malloc((size_t)name.size + data_size + 1);
    cv_assert(text);
    if (name.size) memcpy(text, name.at, (size_t)name.size);
    if (data_size) memcpy(text + name.size, data.at, data_size);
    return text;
}

static int64_t size_of(struct zk_text data) { return data.size > 0 ? data.size : 0; }

static void note_expirable(struct tree *tree, node_id id) {
    size_t before = tree->expirable_room, number = id / EXPIRABLE_GROUP;
    tree->expirable =
        grown(tree->expirable, &tree->expirable_room, number + 1, sizeof *tree->expirable);
    memset(tree->expirable + before, 0, (tree->expirable_room - before) * sizeof *tree->expirable);
    struct expirable_group *group = &tree->expirable[number];
    if (!group->at) group->at = calloc(EXPIRABLE_GROUP, sizeof *group->at);
    cv_assert(group->at);
    group->at[id % EXPIRABLE_GROUP] = (struct expirable){0};
    group->nodes |= (uint64_t)1 << id % EXPIRABLE_GROUP;
    tree->expirables++;
}

void expirable_forget(struct tree *tree, node_id id) {
    tree->expirable[id / EXPIRABLE_GROUP].nodes &= ~((uint64_t)1 << id % EXPIRABLE_GROUP);
    tree->expirables--;
}

bool node_is_expirable(const struct node *node) {
    return node->owner == TREE_CONTAINER || node_is_ttl(node);
}

void tree_loaded(struct tree *tree, node_id id, struct zk_text path) {
    if (node_is_expirable(&tree->node[id])) note_expirable(tree, id);
    quota_loaded(tree, id, path);
}

node_id change_create(struct tree *tree, const struct creation *c) {
    const char *slash = memrchr(c->path.at, '/', (size_t)c->path.size);
    struct zk_text name = {slash + 1, (int32_t)(c->path.at + c->path.size - slash - 1)};
    node_id id = node_new(tree);
    note_undo(tree, UNDO_CREATE, id, &tree->node[c->parent]);
    tree->node[id] = (struct node){
        .czxid = c->zxid,
        .mzxid = c->zxid,
        .pzxid = c->zxid,
        .ctime = c->time,
        .mtime = c->time,
        .owner = c->owner,
        .text = text_of(name, c->data),
        .name_size = (uint32_t)name.size,
        .data_size = c->data.size,
        .hash = tree_hash(tree, c->path),
        .acl = acl_take(tree, &c->acl),
    };
    struct node *parent = &tree->node[c->parent];
    parent->creates = (int32_t)((uint32_t)parent->creates + 1);
    parent->pzxid = c->zxid;
    node_link(tree, id, c->parent);
    if (node_is_expirable(&tree->node[id])) note_expirable(tree, id);
    quota_count(tree, c->path, 1, size_of(c->data));
    quota_created(tree, id, c->path);
    add_event(tree, ZK_NODE_CREATED, &tree->node[id], c->path);
    return id;
}

void change_delete(struct tree *tree, node_id id, struct zk_text path, int64_t zxid) {
    struct node *node = &tree->node[id], *parent = &tree->node[node->parent];
    note_undo(tree, UNDO_DELETE, id, parent);
    quota_deleted(tree, id, path);
    add_event(tree, ZK_NODE_DELETED, node, path);
    node_unlink(tree, id);
    parent->pzxid = zxid;
    quota_count(tree, path, -1, -size_of(node_data(node)));
}

/* The old text is freed when the changes are kept. */
static void replace_data(struct tree *tree, node_id id, struct zk_text data) {
    struct node *node = &tree->node[id];
    note_undo(tree, UNDO_DATA, id, node);
    int64_t more = size_of(data) - size_of(node_data(node));
    tree->bytes += more;
    totals_add(tree, id, 0, more);
    node->text = text_of(node_name(node), data);
    node->data_size = data.size;
}

void change_statistics(struct tree *tree, node_id id, struct zk_text data) {
    replace_data(tree, id, data);
}

void change_data(struct tree *tree, node_id id, struct zk_text path, struct zk_text data,
                 int64_t zxid, int64_t time) {
    struct node *node = &tree->node[id];
    int64_t more = size_of(data) - size_of(node_data(node));
    replace_data(tree, id, data);
    node->version = (int32_t)((uint32_t)node->version + 1);
    node->mzxid = zxid;
    node->mtime = time;
    quota_count(tree, path, 0, more);
    add_event(tree, ZK_NODE_DATA_CHANGED, node, path);
}

bool changes_keep_some(struct tree *tree, size_t *steps) {
    for (; tree->undos && *steps; --*steps) {
        struct undo *undo = &tree->undo[--tree->undos];
        if (undo->kind == UNDO_DELETE) node_free(tree, undo->id);
        if (undo->kind == UNDO_DATA) free(undo->before.text);
    }
    return !tree->undos;
}

void changes_keep(struct tree *tree) {
    size_t all = SIZE_MAX;
    changes_keep_some(tree, &all);
}

/* ---- Rolling back ---- */

static struct zk_text path_of(struct tree *tree, node_id id) {
    tree->scratch.used = 0;
    tree_path(tree, id, &tree->scratch);
    return (struct zk_text){(const char *)tree->scratch.at, (int32_t)tree->scratch.used};
}

/* The counters of the parent; linking and unlinking restores its children. */
static void restore_parent(struct tree *tree, node_id parent, const struct node *before) {
    tree->node[parent].creates = before->creates;
    tree->node[parent].pzxid = before->pzxid;
}

/* The statistics of quotas are data of nodes, whose changes have their own undo records. */

static void roll_back_create(struct tree *tree, const struct undo *undo) {
    quota_deleted(tree, undo->id, path_of(tree, undo->id));
    node_unlink(tree, undo->id);
    restore_parent(tree, tree->node[undo->id].parent, &undo->before);
    node_free(tree, undo->id);
}

static void roll_back_delete(struct tree *tree, const struct undo *undo) {
    node_id parent = tree->node[undo->id].parent;
    node_link(tree, undo->id, parent);
    quota_loaded(tree, undo->id, path_of(tree, undo->id));
    restore_parent(tree, parent, &undo->before);
}

static void roll_back_data(struct tree *tree, const struct undo *undo) {
    struct node *node = &tree->node[undo->id];
    int64_t more = size_of(node_data(&undo->before)) - size_of(node_data(node));
    tree->bytes += more;
    totals_add(tree, undo->id, 0, more);
    free(node->text);
    node->text = undo->before.text;
    node->data_size = undo->before.data_size;
    node->version = undo->before.version;
    node->mzxid = undo->before.mzxid;
    node->mtime = undo->before.mtime;
}

bool changes_roll_back_some(struct tree *tree, size_t *steps) {
    for (; tree->undos && *steps; --*steps) {
        const struct undo *undo = &tree->undo[--tree->undos];
        switch (undo->kind) {
        case UNDO_CREATE: roll_back_create(tree, undo); break;
        case UNDO_DELETE: roll_back_delete(tree, undo); break;
        case UNDO_DATA: roll_back_data(tree, undo); break;
        }
    }
    if (!tree->undos) tree_forget_events(tree);
    return !tree->undos;
}
