/* The tree as the page browses it: some children of a node, and a node.
 *
 * Whoever asks without the administrators' token sees what a client without credentials sees.  The
 * work for a request is bounded: children are listed a page at a time, in the order in which the
 * tree links them, and the name of the last one leads to the next page.  Names may be long, so a
 * page is bounded in bytes, too. */
#include <inttypes.h>
#include <openssl/evp.h>

#include "service/admin/http.h"

enum {
    CHILDREN = 200, /* of a page, unless the request says otherwise */
    CHILDREN_MAX = 1000,
    BYTES_MAX = 1 << 20, /* of a page, after which no other child is listed */
    DATA_MAX = 1 << 20,  /* bytes that are shown */
    WATCHES_MAX = 10000  /* that are counted */
};

/* ---- Who asks, and for which node ---- */

struct asking {
    const struct http_request *request;
    struct tree *tree;
    struct zk_text path;
    struct zk_clients identities;
    node_id id;
};

static bool begin(const struct http_request *request, struct asking *asking, struct answer *error) {
    struct server *s = request->door->server;
    struct zk_text path = http_argument(request, "path");
    if (path.size < 0) path = zk_text_of("/");
    *asking = (struct asking){.request = request, .tree = &s->tree, .path = path};
    if (!page_reader(request, &asking->identities, error)) return false;
    if (!zk_path_valid(path))
        *error = page_error(MHD_HTTP_BAD_REQUEST, "BadArguments", "that is no path of a node");
    else if (!(asking->id = tree_find(&s->tree, path)))
        *error = page_error(MHD_HTTP_NOT_FOUND, "NoNode", "there is no such node");
    return asking->id != 0;
}

/* ---- Children ---- */

static void add_child(struct bytes *out, const struct node *child) {
    json_add_text(out, node_name(child));
    report_print(out, ",\"children\":%" PRIu32 ",\"bytes\":%" PRId32 ",\"ephemeral\":%s}",
                 node_children(child), child->data_size > 0 ? child->data_size : 0,
                 node_is_ephemeral(child) ? "true" : "false");
}

/* The child after which a page begins; 0: it is gone. */
static node_id child_named(const struct asking *asking, struct zk_text name) {
    struct bytes path = {0};
    bytes_add(&path, asking->path.at, asking->id == TREE_ROOT ? 0 : (size_t)asking->path.size);
    bytes_add(&path, "/", 1);
    bytes_add(&path, name.at, (size_t)name.size);
    node_id id = tree_find(asking->tree, (struct zk_text){(char *)path.at, (int32_t)path.used});
    bytes_close(&path);
    return id && asking->tree->node[id].parent == asking->id ? id : 0;
}

static node_id first_of(const struct asking *asking, const struct node *node) {
    struct zk_text after = http_argument(asking->request, "after");
    if (after.size >= 0) return child_named(asking, after);
    return node_children(node) ? node->first_child : 0;
}

struct answer page_tree(const struct http_request *request) {
    struct asking asking;
    struct answer answer = {MHD_HTTP_OK, HTTP_JSON, {0}, NULL};
    unsigned limit = page_limit(request, CHILDREN, CHILDREN_MAX), count = 0;
    if (!begin(request, &asking, &answer)) return answer;
    const struct node *nodes = asking.tree->node, *node = &nodes[asking.id];
    bool refused = !acl_allows(asking.tree, node->acl, ACL_READ, &asking.identities);
    bool goes_on = http_argument(request, "after").size >= 0;
    node_id child = refused ? 0 : first_of(&asking, node);
    if (goes_on && !refused && !child)
        return page_error(MHD_HTTP_GONE, "Gone", "the last child of the page before is gone");
    if (goes_on && child) child = nodes[child].next;
    report_print(&answer.text, "{\"path\":");
    json_add_text(&answer.text, asking.path);
    report_print(&answer.text,
                 ",\"refused\":%s,\"order\":\"tree\",\"total\":%" PRIu32 ",\"children\":[",
                 refused ? "true" : "false", node_children(node));
    for (; child && count < limit && answer.text.used <= BYTES_MAX; child = nodes[child].next) {
        report_print(&answer.text, count++ ? ",\n{\"name\":" : "\n{\"name\":");
        add_child(&answer.text, &nodes[child]);
    }
    report_print(&answer.text, "],\"more\":%s}\n", child ? "true" : "false");
    return answer;
}

/* ---- A node ---- */

void page_add_stat(struct bytes *out, const struct zk_stat *stat, const struct node *node) {
    report_print(out,
                 "{\"czxid\":%" PRId64 ",\"mzxid\":%" PRId64 ",\"pzxid\":%" PRId64
                 ",\"ctime\":%" PRId64 ",\"mtime\":%" PRId64 ",\"version\":%" PRId32
                 ",\"cversion\":%" PRId32 ",\"aversion\":%" PRId32
                 ",\"ephemeralOwner\":\"0x%" PRIx64 "\",\"dataLength\":%" PRId32
                 ",\"numChildren\":%" PRId32,
                 stat->czxid, stat->mzxid, stat->pzxid, stat->ctime, stat->mtime, stat->version,
                 stat->cversion, stat->aversion, (uint64_t)stat->ephemeral_owner, stat->data_length,
                 stat->num_children);
    if (node && node->owner == TREE_CONTAINER) report_print(out, ",\"container\":true");
    if (node && node_is_ttl(node))
        report_print(out, ",\"ttl\":%" PRId64, (int64_t)(node->owner & TREE_TTL_MAX));
    report_print(out, "}");
}

static void add_acl(struct bytes *out, struct zk_acls list) {
    static const char letters[] = "rwcda"; /* by bit */
    struct zk_acl entry;
    report_print(out, "[");
    for (bool first = true; zk_acls_next(&list, &entry); first = false) {
        report_print(out, first ? "{\"scheme\":" : ",{\"scheme\":");
        json_add_text(out, entry.id.scheme);
        report_print(out, ",\"id\":");
        json_add_text(out, entry.id.id);
        report_print(out, ",\"perms\":\"");
        for (unsigned i = 0; letters[i]; i++)
            if (entry.perms & 1 << i) bytes_add(out, &letters[i], 1);
        report_print(out, "\"}");
    }
    report_print(out, "]");
}

static void add_data(struct bytes *out, struct zk_text data) {
    int size = data.size < DATA_MAX ? data.size : DATA_MAX;
    if (data.size < 0) {
        report_print(out, "null");
        return;
    }
    bytes_add(out, "\"", 1);
    unsigned char *to = bytes_reserve(out, 4 * (((size_t)size + 2) / 3) + 1);
    out->used += (size_t)EVP_EncodeBlock(to, (const unsigned char *)data.at, size);
    bytes_add(out, "\"", 1);
    if (size < data.size) report_print(out, ",\"truncated\":true");
}

/* What a client with these identities is answered. */
static bool read_as_client(const struct asking *asking, int32_t op, struct bytes *reply) {
    union zk_request request = {.get_data = {.path = asking->path}};
    reply->used = 0;
    return tree_read(asking->tree, op, &request, 0, &asking->identities, reply) == ZK_OK;
}

struct answer page_node(const struct http_request *request) {
    struct asking asking;
    struct answer answer = {MHD_HTTP_OK, HTTP_JSON, {0}, NULL};
    struct bytes reply = {0}, *out = &answer.text;
    struct zk_get_acl_response acl;
    struct zk_get_data_response data;
    if (!begin(request, &asking, &answer)) return answer;
    const struct node *node = &asking.tree->node[asking.id];
    struct zk_stat stat;
    tree_stat(node, &stat);
    report_print(out, "{\"path\":");
    json_add_text(out, asking.path);
    report_print(out, ",\"stat\":");
    page_add_stat(out, &stat, node);
    report_print(out, ",\"acl\":");
    if (read_as_client(&asking, ZK_OP_GET_ACL, &reply) &&
        zk_read_get_acl_response(&(struct zk_in){reply.at, reply.at + reply.used}, &acl))
        add_acl(out, acl.acl);
    else
        report_print(out, "null");
    bool refused =
        !read_as_client(&asking, ZK_OP_GET_DATA, &reply) ||
        !zk_read_get_data_response(&(struct zk_in){reply.at, reply.at + reply.used}, &data);
    report_print(out, ",\"refused\":%s,\"data\":", refused ? "true" : "false");
    add_data(out, refused ? zk_null() : data.data);
    report_print(out, ",\"watches\":%" PRIu32 "}\n",
                 watches_count(&request->door->server->watches, asking.path, WATCHES_MAX));
    bytes_close(&reply);
    return answer;
}
