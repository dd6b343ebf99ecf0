/* First all of the server's tree is looked at, level by level; then what is too much is deleted,
 * children first, and what is missing is made, parents first. */
#include "client/restore.h"

#include <stdarg.h>

#include "client/client.h"

enum {
    LOOKED_AT_ONCE = 64,    /* nodes */
    BATCH_BYTES = 1 << 19,  /* well below the longest request */
    BATCH_OPERATIONS = 500, /* all of them hold up the server's other clients */
};

struct seen { /* a node of the server */
    size_t path_at;
    int32_t path_size;
    uint32_t above; /* its parent, in the same array */
    bool surplus;   /* not in the backup */
    bool held;      /* has an ephemeral node below it, and so cannot go */
};

enum mark { MARK_NONE, MARK_THERE, MARK_BLOCKED }; /* blocked: an ephemeral node is in its place */

struct state {
    struct restore *restore;
    const struct tree *tree;
    struct client client;
    struct bytes paths;
    struct seen *seen;
    size_t seens, room;
    unsigned char *mark; /* by node of the backup: enum mark */
    struct bytes batch;  /* the operations of a multi */
    int operations;
    struct bytes data, acls; /* of nodes that are there, but differ: ids */
};

__attribute__((format(printf, 2, 3))) static int fail(struct state *s, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(s->restore->message, sizeof s->restore->message, format, arguments);
    va_end(arguments);
    return -1;
}

static int fail_client(struct state *s) {
    return fail(s, "%s: %s", s->restore->address, s->client.message);
}

static int fail_answer(struct state *s) {
    return fail(s, "%s: what the server answers is not the protocol", s->restore->address);
}

static int fail_at(struct state *s, struct zk_text path, int32_t err) {
    const char *name = zk_error_name(err);
    return fail(s, "%.*s: %s%s", path.size, path.at, name ? name : "the server refuses",
                err == ZK_NOAUTH ? "; CONCLAVE_AUTH=user:password in the environment says who "
                                   "you are, and the super user may do all"
                : err == ZK_NONODE || err == ZK_NODEEXISTS || err == ZK_NOTEMPTY
                    ? "; another client has changed the tree meanwhile: run it again"
                    : "");
}

static void say(struct state *s, const char *what, struct zk_text path) {
    fprintf(s->restore->out, "%s %.*s\n", what, path.size, path.at);
}

static struct zk_text path_of(const struct state *s, const struct seen *seen) {
    return (struct zk_text){(const char *)s->paths.at + seen->path_at, seen->path_size};
}

static struct zk_text path_in_backup(const struct state *s, node_id id, struct bytes *path) {
    path->used = 0;
    tree_path(s->tree, id, path);
    return (struct zk_text){(const char *)path->at, (int32_t)path->used};
}

static bool is_own(struct zk_text path) { /* of the server */
    static const char top[] = "/zookeeper";
    int32_t size = sizeof top - 1;
    return path.size >= size && memcmp(path.at, top, (size_t)size) == 0 &&
           (path.size == size || path.at[size] == '/');
}

/* ---- Looking ---- */

static void add_seen(struct state *s, uint32_t above, struct zk_text parent, struct zk_text name) {
    s->seen = grown(s->seen, &s->room, s->seens + 1, sizeof *s->seen);
    struct seen *seen = &s->seen[s->seens++];
    *seen = (struct seen){.path_at = s->paths.used, .above = above};
    unsigned char *to = bytes_extend(&s->paths, (size_t)parent.size + 1 + (size_t)name.size);
    /* The parent's path may have moved with the others. */
    parent.at = (const char *)s->paths.at + s->seen[above].path_at;
    if (parent.size > 1) memcpy(to, parent.at, (size_t)parent.size), to += parent.size;
    *to++ = '/';
    if (name.size) memcpy(to, name.at, (size_t)name.size);
    seen->path_size = (int32_t)(to + name.size - (s->paths.at + seen->path_at));
    s->paths.used = seen->path_at + (size_t)seen->path_size;
    if (is_own(path_of(s, seen))) s->seens--, s->paths.used = seen->path_at;
}

struct answer {
    bool gone; /* since its parent was looked at */
    bool ephemeral, same_data, same_acl;
};

/* The data of a node, compared with what it is to be. */
static int compare_data(struct state *s, struct zk_text path, node_id id, struct answer *answer) {
    struct zk_get_data_response response;
    struct zk_in body;
    int32_t err;
    if (client_receive(&s->client, &err, &body) != 0) return fail_client(s);
    answer->gone |= err == ZK_NONODE;
    if (err == ZK_NONODE) return 0;
    if (err) return fail_at(s, path, err);
    if (!zk_read_get_data_response(&body, &response)) return fail_answer(s);
    answer->ephemeral = response.stat.ephemeral_owner != 0;
    answer->same_data = id && zk_text_equal(response.data, node_data(&s->tree->node[id]));
    return 0;
}

static int compare_acl(struct state *s, struct zk_text path, node_id id, struct answer *answer) {
    struct zk_get_acl_response response;
    struct zk_in body;
    int32_t err;
    if (client_receive(&s->client, &err, &body) != 0) return fail_client(s);
    answer->gone |= err == ZK_NONODE;
    if (err == ZK_NONODE) return 0;
    if (err) return fail_at(s, path, err);
    if (!zk_read_get_acl_response(&body, &response)) return fail_answer(s);
    struct zk_acls wanted = id ? acl_list(s->tree, s->tree->node[id].acl) : (struct zk_acls){0};
    answer->same_acl = id && response.acl.size == wanted.size &&
                       memcmp(response.acl.at, wanted.at, wanted.size) == 0;
    return 0;
}

static int add_children(struct state *s, uint32_t above) {
    struct zk_get_children_response response;
    struct zk_text name;
    struct zk_in body;
    int32_t err;
    if (client_receive(&s->client, &err, &body) != 0) return fail_client(s);
    if (err == ZK_NONODE) return 0;
    struct zk_text path = path_of(s, &s->seen[above]);
    if (err) return fail_at(s, path, err);
    if (!zk_read_get_children_response(&body, &response)) return fail_answer(s);
    while (zk_texts_next(&response.children, &name)) add_seen(s, above, path, name);
    return 0;
}

/* An ephemeral node stays, and with it all that is above it. */
static void hold(struct state *s, uint32_t place) {
    s->restore->kept++;
    say(s, "keep", path_of(s, &s->seen[place]));
    for (uint32_t i = place; !s->seen[i].held; i = s->seen[i].above) s->seen[i].held = true;
}

/* The node of the backup that belongs at a path; 0: none does. */
static node_id wanted_at(const struct state *s, struct zk_text path) {
    node_id id = tree_find(s->tree, path);
    return id && !node_is_ephemeral(&s->tree->node[id]) ? id : 0;
}

static int look_at(struct state *s, uint32_t place) {
    struct zk_text path = path_of(s, &s->seen[place]);
    node_id id = wanted_at(s, path);
    struct answer answer = {0};
    if (compare_data(s, path, id, &answer) != 0 || compare_acl(s, path, id, &answer) != 0 ||
        add_children(s, place) != 0)
        return -1;
    if (answer.gone) return 0;
    s->seen[place].surplus = !id && !answer.ephemeral;
    if (answer.ephemeral) hold(s, place);
    if (!id) return 0;
    s->mark[id] = answer.ephemeral ? MARK_BLOCKED : MARK_THERE;
    if (answer.ephemeral) return 0;
    if (!answer.same_data) bytes_add(&s->data, &id, sizeof id);
    if (!answer.same_acl) bytes_add(&s->acls, &id, sizeof id);
    return 0;
}

static int look_at_all(struct state *s) {
    add_seen(s, 0, (struct zk_text){"", 0}, (struct zk_text){"", 0});
    for (size_t done = 0; done < s->seens;) {
        size_t end = done + LOOKED_AT_ONCE < s->seens ? done + LOOKED_AT_ONCE : s->seens;
        for (size_t i = done; i < end; i++) {
            struct zk_text path = path_of(s, &s->seen[i]);
            client_send(&s->client, ZK_OP_GET_DATA, &(struct zk_get_data_request){path, false});
            client_send(&s->client, ZK_OP_GET_ACL, &(struct zk_get_acl_request){path});
            client_send(&s->client, ZK_OP_GET_CHILDREN,
                        &(struct zk_get_children_request){path, false});
        }
        for (; done < end; done++)
            if (look_at(s, (uint32_t)done) != 0) return -1;
        if (s->restore->progress) s->restore->progress(done, s->seens + 1);
    }
    return 0;
}

/* ---- Changing ---- */

/* Which operation of a multi failed, and on which path. */
static int check_results(struct state *s, struct zk_in *body) {
    struct zk_in sent = zk_in_of(s->batch.at, s->batch.used);
    struct zk_multi operations, results;
    struct zk_multi_op operation;
    struct zk_result result;
    if (!zk_read_multi(&sent, ZK_OP_MULTI, &operations) || !zk_read_results(body, &results))
        return fail_answer(s);
    while (zk_results_next(&results, &result) && zk_multi_next(&operations, &operation))
        if (result.type == ZK_OP_ERROR && result.err) /* each request begins with the path */
            return fail_at(s, operation.of.delete.path, result.err);
    return 0;
}

static int send_batch(struct state *s) {
    struct zk_in body;
    int32_t err;
    if (!s->operations) return 0;
    zk_write_multi_end(&s->batch);
    client_send_body(&s->client, ZK_OP_MULTI, &s->batch);
    if (client_receive(&s->client, &err, &body) != 0) return fail_client(s);
    if (err) return fail_at(s, zk_text_of("a batch of changes"), err);
    if (check_results(s, &body) != 0) return -1;
    s->batch.used = 0;
    s->operations = 0;
    return 0;
}

static int change(struct state *s, const char *what, int32_t type,
                  const union zk_request *request) {
    say(s, what, request->delete.path);
    if (s->restore->dry_run) return 0;
    size_t size = zk_size_multi_header(&(struct zk_multi_header){0}) + request->create.path.size;
    if (type != ZK_OP_DELETE && request->create.data.size > 0)
        size += (size_t)request->create.data.size;
    if ((s->batch.used + size > BATCH_BYTES || s->operations == BATCH_OPERATIONS) &&
        send_batch(s) != 0)
        return -1;
    zk_write_multi_op(&s->batch, type, request);
    s->operations++;
    return 0;
}

static int delete_surplus(struct state *s) {
    for (size_t i = s->seens; i-- > 1;) {
        const struct seen *seen = &s->seen[i];
        if (!seen->surplus) continue;
        if (seen->held) {
            s->restore->kept++;
            say(s, "keep", path_of(s, seen));
            continue;
        }
        union zk_request request = {.delete = {path_of(s, seen), -1}};
        if (change(s, "delete", ZK_OP_DELETE, &request) != 0) return -1;
        s->restore->deleted++;
    }
    return send_batch(s);
}

static int create(struct state *s, node_id id, struct zk_text path) {
    const struct node *node = &s->tree->node[id];
    struct zk_acls acl = acl_list(s->tree, node->acl);
    union zk_request request = {.create_ttl = {path, node_data(node), acl, ZK_PERSISTENT, 0}};
    int32_t type = ZK_OP_CREATE;
    if (node->owner == TREE_CONTAINER) {
        type = ZK_OP_CREATE_CONTAINER;
        request.create.flags = ZK_CONTAINER;
    } else if (node_is_ttl(node)) {
        type = ZK_OP_CREATE_TTL;
        request.create.flags = ZK_TTL;
        request.create_ttl.ttl = node->owner & TREE_TTL_MAX;
    }
    s->restore->created++;
    return change(s, "create", type, &request);
}

static int create_missing(struct state *s) {
    struct bytes path = {0};
    int status = 0;
    uint32_t up;
    for (node_id id = TREE_ROOT; id && !status; id = tree_walk(s->tree, TREE_ROOT, id, &up)) {
        const struct node *node = &s->tree->node[id];
        if (node->parent && s->mark[node->parent] == MARK_BLOCKED) s->mark[id] = MARK_BLOCKED;
        if (s->mark[id] != MARK_NONE || node_is_ephemeral(node)) continue;
        struct zk_text at = path_in_backup(s, id, &path);
        if (!is_own(at)) status = create(s, id, at);
    }
    if (!status) status = send_batch(s);
    bytes_close(&path);
    return status;
}

/* Does something to each of these nodes, in order, until that fails. */
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
    union zk_request request = {.set_data = {path, node_data(&s->tree->node[id]), -1}};
    s->restore->written++;
    return change(s, "write", ZK_OP_SET_DATA, &request);
}

static int write_acl(struct state *s, node_id id, struct zk_text path) {
    struct zk_set_acl_request request = {path, acl_list(s->tree, s->tree->node[id].acl), -1};
    struct zk_in body;
    int32_t err;
    say(s, "acl", path);
    s->restore->acls++;
    if (s->restore->dry_run) return 0;
    client_send(&s->client, ZK_OP_SET_ACL, &request);
    if (client_receive(&s->client, &err, &body) != 0) return fail_client(s);
    return err ? fail_at(s, path, err) : 0;
}

/* ACLs come last, for they may forbid what comes before; and one by one, as a multi takes none. */
static int write_what_differs(struct state *s) {
    if (for_each(s, &s->data, write_data) != 0 || send_batch(s) != 0) return -1;
    return for_each(s, &s->acls, write_acl);
}

/* ---- All of it ---- */

static int restore_all(struct state *s) {
    if (s->restore->secret && client_authenticate(&s->client, s->restore->secret) != 0)
        return fail_client(s);
    if (look_at_all(s) != 0) return -1;
    if (s->restore->progress) s->restore->progress(1, 1); /* the bar is gone: lines follow */
    bool done = delete_surplus(s) == 0 && create_missing(s) == 0 && write_what_differs(s) == 0;
    return done ? 0 : -1;
}

int restore_run(struct restore *restore) {
    struct state s = {.restore = restore, .tree = restore->tree};
    if (client_open(&s.client, restore->address) != 0) return fail_client(&s);
    s.mark = calloc(restore->tree->node_arena.used / sizeof(struct node), 1);
    cv_assert(s.mark);
    int status = restore_all(&s);
    client_close(&s.client);
    free(s.mark);
    free(s.seen);
    bytes_close(&s.paths);
    bytes_close(&s.batch);
    bytes_close(&s.data);
    bytes_close(&s.acls);
    return status;
}
