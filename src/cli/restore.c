/* First the whole tree of the server is read, level by level; then surplus nodes are deleted,
 * children first, and missing ones are created, parents first. */
#include "cli/restore.h"

enum {
    READ_AHEAD = 64,        /* nodes */
    BATCH_BYTES = 1 << 19,  /* well below the longest request */
    BATCH_OPERATIONS = 500, /* a multi delays the server's other clients */
};

struct seen { /* a node of the server */
    size_t path_at;
    int32_t path_size;
    uint32_t parent;    /* index in the same array */
    bool surplus;       /* not in the backup */
    bool has_ephemeral; /* it is one, or one is below it: it cannot be deleted */
};

enum status { MISSING, PRESENT, BLOCKED }; /* blocked: the server has an ephemeral node there */

struct state {
    struct restore *restore;
    const struct tree *tree;
    struct cv_client *client;
    struct bytes paths;
    struct seen *seen;
    size_t seens, room, read;             /* read: so many of them */
    int failed;                           /* the exit code */
    unsigned char *status;                /* by node of the backup: enum status */
    struct cv_op batch[BATCH_OPERATIONS]; /* the operations of a multi; see free_op */
    size_t operations, batch_bytes;
    struct bytes data, acls; /* ids of nodes whose data or ACL differs */
};

/* All paths here have a NUL byte after them. */
static int fail_at(struct state *s, struct zk_text path, int error) {
    if (error != CV_NO_NODE && error != CV_NODE_EXISTS && error != CV_NOT_EMPTY)
        return remote_fail(s->restore->remote, error, path.at);
    return remote_say(EXIT_CONFLICT,
                      "%s: another client has changed the tree meanwhile; run the restore again",
                      path.at);
}

static void report(struct state *s, const char *what, struct zk_text path) {
    if (s->restore->remote->json) {
        json_t *name = remote_json_name(path.at);
        remote_json_line(json_pack("{s:s, s:o}", "change", what, "path", name));
        return;
    }
    printf("%s ", what);
    remote_put(stdout, path.at, (size_t)path.size, REMOTE_NAME);
    putchar('\n');
}

static struct zk_text path_of(const struct state *s, const struct seen *seen) {
    return (struct zk_text){(const char *)s->paths.at + seen->path_at, seen->path_size};
}

static struct zk_text path_in_backup(const struct state *s, node_id id, struct bytes *path) {
    path->used = 0;
    tree_path(s->tree, id, path);
    *bytes_reserve(path, 1) = 0;
    return (struct zk_text){(const char *)path->at, (int32_t)path->used};
}

static bool is_reserved(struct zk_text path) {
    static const char top[] = "/zookeeper";
    int32_t size = sizeof top - 1;
    return path.size >= size && memcmp(path.at, top, (size_t)size) == 0 &&
           (path.size == size || path.at[size] == '/');
}

/* ---- Reading the server ---- */

static void add_seen(struct state *s, uint32_t parent, struct zk_text parent_path,
                     struct zk_text name) {
    s->seen = grown(s->seen, &s->room, s->seens + 1, sizeof *s->seen);
    struct seen *seen = &s->seen[s->seens++];
    *seen = (struct seen){.path_at = s->paths.used, .parent = parent};
    unsigned char *to = bytes_extend(&s->paths, (size_t)parent_path.size + 2 + (size_t)name.size);
    /* Growing `paths` may have moved the path of the parent. */
    parent_path.at = (const char *)s->paths.at + s->seen[parent].path_at;
    if (parent_path.size > 1)
        memcpy(to, parent_path.at, (size_t)parent_path.size), to += parent_path.size;
    *to++ = '/';
    if (name.size) memcpy(to, name.at, (size_t)name.size);
    to[name.size] = 0;
    seen->path_size = (int32_t)(to + name.size - (s->paths.at + seen->path_at));
    s->paths.used = seen->path_at + (size_t)seen->path_size + 1;
    if (is_reserved(path_of(s, seen))) s->seens--, s->paths.used = seen->path_at;
}

/* What is read of a node, in three answers: data, ACL, children. */
struct reading {
    struct state *s;
    uint32_t index;
    bool deleted; /* since its parent was read */
    bool ephemeral, same_data, same_acl;
};

static node_id wanted_at(const struct state *s, struct zk_text path);

/* True and the node of the backup, if there is an answer to compare. */
static bool is_there(struct reading *reading, const struct cv_result *result, node_id *id) {
    struct state *s = reading->s;
    struct zk_text path = path_of(s, &s->seen[reading->index]);
    if (s->failed) return false;
    reading->deleted |= result->error == CV_NO_NODE;
    if (result->error && result->error != CV_NO_NODE) s->failed = fail_at(s, path, result->error);
    *id = wanted_at(s, path);
    return !result->error;
}

static void on_data(const struct cv_result *result, void *arg) {
    struct reading *reading = arg;
    node_id id;
    if (!is_there(reading, result, &id)) return;
    struct zk_text data = {result->data, result->data ? (int32_t)result->size : -1};
    reading->ephemeral = result->stat.ephemeral_owner != 0;
    reading->same_data = id && zk_text_equal(data, node_data(&reading->s->tree->node[id]));
}

static void on_acl(const struct cv_result *result, void *arg) {
    struct reading *reading = arg;
    const struct tree *tree = reading->s->tree;
    node_id id;
    if (!is_there(reading, result, &id) || !id) return;
    struct zk_acls wanted = acl_list(tree, tree->node[id].acl);
    struct zk_acl one;
    bool same = (wanted.count > 0 ? (size_t)wanted.count : 0) == result->acl_count;
    for (size_t i = 0; same && zk_acls_next(&wanted, &one); i++)
        same = one.perms == result->acl[i].permissions &&
               zk_text_equal(one.id.scheme, zk_text_of(result->acl[i].scheme)) &&
               zk_text_equal(one.id.id, zk_text_of(result->acl[i].id));
    reading->same_acl = same;
}

static void report_kept(struct state *s, const struct seen *seen) {
    s->restore->kept++;
    report(s, "keep", path_of(s, seen));
}

/* An ephemeral node stays, and with it all its ancestors. */
static void keep_ephemeral(struct state *s, uint32_t index) {
    report_kept(s, &s->seen[index]);
    for (uint32_t i = index; !s->seen[i].has_ephemeral; i = s->seen[i].parent)
        s->seen[i].has_ephemeral = true;
}

/* The node of the backup with that path; 0: there is none to restore. */
static node_id wanted_at(const struct state *s, struct zk_text path) {
    node_id id = tree_find(s->tree, path);
    return id && !node_is_ephemeral(&s->tree->node[id]) ? id : 0;
}

static void compare(struct reading *reading) {
    struct state *s = reading->s;
    node_id id = wanted_at(s, path_of(s, &s->seen[reading->index]));
    s->seen[reading->index].surplus = !id && !reading->ephemeral;
    if (reading->ephemeral) keep_ephemeral(s, reading->index);
    if (!id) return;
    s->status[id] = reading->ephemeral ? BLOCKED : PRESENT;
    if (reading->ephemeral) return;
    if (!reading->same_data) bytes_add(&s->data, &id, sizeof id);
    if (!reading->same_acl) bytes_add(&s->acls, &id, sizeof id);
}

/* The last answer. */
static void on_children(const struct cv_result *result, void *arg) {
    struct reading *reading = arg;
    struct state *s = reading->s;
    node_id id;
    s->read++;
    bool there = is_there(reading, result, &id);
    for (size_t i = 0; there && i < result->name_count; i++)
        add_seen(s, reading->index, path_of(s, &s->seen[reading->index]),
                 zk_text_of(result->names[i]));
    if (!reading->deleted && !s->failed) compare(reading);
}

/* Starts to read the nodes of which the parents have been read, up to so many. */
static int read_some(struct state *s, struct reading readings[READ_AHEAD]) {
    static cv_done_fn *const done[] = {on_data, on_acl, on_children};
    size_t end = s->read + READ_AHEAD < s->seens ? s->read + READ_AHEAD : s->seens;
    int error = CV_OK;
    for (size_t i = s->read; i < end && !error; i++) {
        struct reading *reading = &readings[i - s->read];
        const char *path = path_of(s, &s->seen[i]).at;
        *reading = (struct reading){.s = s, .index = (uint32_t)i};
        struct cv_op ops[] = {
            cv_op_get(path), {.type = CV_OP_GET_ACL, .path = path}, cv_op_children(path)};
        error = cv_start_all(s->client, ops, 3, done, (void *[]){reading, reading, reading});
    }
    while (!error && s->read < end) error = cv_process_for(s->client, -1);
    return error ? remote_fail(s->restore->remote, error, NULL) : s->failed;
}

static int compare_all(struct state *s) {
    struct reading readings[READ_AHEAD];
    add_seen(s, 0, (struct zk_text){"", 0}, (struct zk_text){"", 0});
    while (s->read < s->seens) {
        int status = read_some(s, readings);
        if (status) return status;
        if (s->restore->progress) s->restore->progress(s->read, s->seens + 1);
    }
    return 0;
}

/* ---- Changing ---- */

/* What an operation points to, except data, is its own. */
static void free_op(struct cv_op *op) {
    free((char *)(uintptr_t)op->path);
    free((struct cv_acl *)(uintptr_t)op->acl);
}

static char *copied(struct zk_text text) {
    char *copy = strndup(text.size > 0 ? text.at : "", text.size > 0 ? (size_t)text.size : 0);
    cv_assert(copy);
    return copy;
}

/* The list and its texts in one block. */
static void set_acl(struct cv_op *op, struct zk_acls acls) {
    size_t count = acls.count > 0 ? (size_t)acls.count : 0;
    struct cv_acl *acl = malloc((count + 1) * sizeof *acl + acls.size);
    cv_assert(acl);
    char *to = (char *)(acl + count + 1);
    struct zk_acl one;
    op->acl = acl;
    while (zk_acls_next(&acls, &one)) {
        struct zk_text texts[] = {one.id.scheme, one.id.id};
        const char *at[2];
        for (int i = 0; i < 2; i++) { /* four bytes of a length become one at the end */
            at[i] = to;
            if (texts[i].size > 0) to = mempcpy(to, texts[i].at, (size_t)texts[i].size);
            *to++ = 0;
        }
        acl[op->acl_count++] = (struct cv_acl){one.perms, at[0], at[1]};
    }
}

static void set_data(struct cv_op *op, struct zk_text data) {
    op->data = data.size < 0 ? NULL : data.at ? data.at : "";
    op->size = data.size > 0 ? (size_t)data.size : 0;
}

static void drop_batch(struct state *s) {
    for (size_t i = 0; i < s->operations; i++) free_op(&s->batch[i]);
    s->operations = s->batch_bytes = 0;
}

/* Which operation of a multi failed, and on which path. */
static int fail_batch(struct state *s, int error, const struct cv_result *result) {
    for (size_t i = 0; result && i < result->result_count; i++)
        if (result->results[i].error)
            return fail_at(s, zk_text_of(s->batch[i].path), result->results[i].error);
    return fail_at(s, zk_text_of("a batch of changes"), error);
}

static int send_batch(struct state *s) {
    struct cv_result *result;
    if (!s->operations) return 0;
    struct cv_op multi = cv_op_multi(s->batch, s->operations);
    int error = cv_call(s->client, &multi, &result);
    int status = error ? fail_batch(s, error, result) : 0;
    cv_result_free(result);
    drop_batch(s);
    return status;
}

/* Takes over what the operation points to. */
static int change(struct state *s, const char *what, struct cv_op op) {
    enum { HEADER = 64 };
    size_t size = HEADER + strlen(op.path) + op.size;
    report(s, what, zk_text_of(op.path));
    if (s->restore->dry_run) return free_op(&op), 0;
    bool is_full = s->batch_bytes + size > BATCH_BYTES || s->operations == BATCH_OPERATIONS;
    int status = is_full ? send_batch(s) : 0;
    if (status) return free_op(&op), status;
    s->batch[s->operations++] = op;
    s->batch_bytes += size;
    return 0;
}

static int delete_surplus(struct state *s) {
    for (size_t i = s->seens; i-- > 1;) {
        const struct seen *seen = &s->seen[i];
        if (!seen->surplus) continue;
        if (seen->has_ephemeral) {
            report_kept(s, seen);
            continue;
        }
        int status = change(s, "delete", cv_op_delete(copied(path_of(s, seen)), -1));
        if (status) return status;
        s->restore->deleted++;
    }
    return send_batch(s);
}

static int create(struct state *s, node_id id, struct zk_text path) {
    const struct node *node = &s->tree->node[id];
    struct cv_op op = cv_op_create(copied(path), NULL, 0, CV_PERSISTENT);
    set_data(&op, node_data(node));
    set_acl(&op, acl_list(s->tree, node->acl));
    if (node->owner == TREE_CONTAINER)
        op.flags = CV_CONTAINER;
    else if (node_is_ttl(node))
        op.ttl = node->owner & TREE_TTL_MAX;
    s->restore->created++;
    return change(s, "create", op);
}

static int create_missing(struct state *s) {
    struct bytes path = {0};
    int status = 0;
    uint32_t up;
    for (node_id id = TREE_ROOT; id && !status; id = tree_walk(s->tree, TREE_ROOT, id, &up)) {
        const struct node *node = &s->tree->node[id];
        if (node->parent && s->status[node->parent] == BLOCKED) s->status[id] = BLOCKED;
        if (s->status[id] != MISSING || node_is_ephemeral(node)) continue;
        struct zk_text at = path_in_backup(s, id, &path);
        if (!is_reserved(at)) status = create(s, id, at);
    }
    if (!status) status = send_batch(s);
    bytes_close(&path);
    return status;
}

/* Calls `act` for each of these nodes in order, until it fails. */
static int for_each(struct state *s, const struct bytes *ids,
                    int (*act)(struct state *s, node_id id, struct zk_text path)) {
    struct bytes path = {0};
    int status = 0;
    for (size_t at = 0; at < ids->used && !status; at += sizeof(node_id)) {
        node_id id;
        memcpy(&id, ids->at + at, sizeof id);
        status = act(s, id, path_in_backup(s, id, &path));
    }
    bytes_close(&path);
    return status;
}

static int write_data(struct state *s, node_id id, struct zk_text path) {
    struct cv_op op = cv_op_set(copied(path), NULL, 0, -1);
    set_data(&op, node_data(&s->tree->node[id]));
    s->restore->written++;
    return change(s, "write", op);
}

static int write_acl(struct state *s, node_id id, struct zk_text path) {
    report(s, "acl", path);
    s->restore->acls++;
    if (s->restore->dry_run) return 0;
    struct cv_op op = {.type = CV_OP_SET_ACL, .path = copied(path), .version = -1};
    set_acl(&op, acl_list(s->tree, s->tree->node[id].acl));
    int error = cv_call(s->client, &op, NULL);
    free_op(&op);
    return error ? fail_at(s, path, error) : 0;
}

/* ACLs come last, for they may forbid the other changes; and one by one: a multi cannot set them.
 */
static int write_differences(struct state *s) {
    int status = for_each(s, &s->data, write_data);
    if (!status) status = send_batch(s);
    return status ? status : for_each(s, &s->acls, write_acl);
}

static int restore_all(struct state *s) {
    int status = compare_all(s);
    if (s->restore->progress) s->restore->progress(1, 1); /* removes the bar: lines follow */
    if (!status) status = delete_surplus(s);
    if (!status) status = create_missing(s);
    return status ? status : write_differences(s);
}

int restore_run(struct restore *restore) {
    struct state *s = calloc(1, sizeof *s);
    cv_assert(s);
    s->restore = restore;
    s->tree = restore->tree;
    s->status = calloc(restore->tree->node_arena.used / sizeof(struct node), 1);
    cv_assert(s->status);
    s->client = restore->remote->client;
    int status = restore_all(s);
    drop_batch(s);
    free(s->status);
    free(s->seen);
    bytes_close(&s->paths);
    bytes_close(&s->data);
    bytes_close(&s->acls);
    free(s);
    return status;
}
