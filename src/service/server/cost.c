/* What is refused before it goes into the log.  That may depend on this server alone, on its build
 * or its memory; what is in the log all servers have to judge alike.
 *
 * What a request may cost the servers, beyond its own bytes, is bounded. */
#include "service/server/internal.h"

enum { FEW_IDENTITIES = 128 }; /* bytes: with these no list grows much */

/* An entry of the scheme auth stands for every identity of the connection, so a list may become
 * much longer than it is in the request.  One such entry is always allowed. */
static bool list_grows_too_much(const struct connection *c, struct zk_acls list) {
    struct zk_acl entry;
    size_t added = c->identities.used + (size_t)c->identity_count * sizeof entry.perms;
    size_t max = list.size + CONNECTION_IDENTITIES_MAX, grown = 0;
    while (zk_acls_next(&list, &entry)) {
        if (!zk_text_equal(entry.id.scheme, zk_text_of("auth"))) continue;
        if (grown && grown + added > max) return true;
        grown += added;
    }
    return false;
}

static bool costs_too_much(const struct connection *c, int32_t op,
                           const union zk_request *request) {
    switch (op) {
    case ZK_OP_CREATE:
    case ZK_OP_CREATE2:
    case ZK_OP_CREATE_CONTAINER:
    case ZK_OP_CREATE_TTL: return list_grows_too_much(c, request->create.acl);
    case ZK_OP_SET_ACL: return list_grows_too_much(c, request->set_acl.acl);
    default: return false;
    }
}

static int32_t judge_cost(const struct connection *c, int32_t op, const union zk_request *request) {
    if (!costs_too_much(c, op, request)) return ZK_OK;
    c->server->statistics.refused[REFUSED_cost]++;
    return ZK_INVALIDACL;
}

/* What this node says is what the members are: servers and operators rely on it, so nobody may
 * write there by hand, not even the super user, whom ZooKeeper lets. */
static int32_t judge_path(const struct tree *tree, const struct zk_clients *identities, int32_t op,
                          const union zk_request *request) {
    struct zk_text members = zk_text_of("/zookeeper/config");
    if (op != ZK_OP_SET_DATA || !zk_text_equal(request->set_data.path, members)) return ZK_OK;
    uint32_t acl = tree->node[tree_find(tree, members)].acl;
    return acl_allows(tree, acl, ACL_WRITE, identities) ? ZK_BADARGUMENTS : ZK_NOAUTH;
}

/* Whatever may need more memory than it frees. */
static bool needs_memory(int32_t op) {
    return op != ZK_OP_DELETE && op != ZK_OP_CHECK && op != ZK_OP_SYNC &&
           op != ZK_OP_CLOSE_SESSION && op != ZK_OP_RECONFIG && op != ZK_OP_MULTI;
}

static int32_t judge_memory(struct server *s, int32_t op) {
    if (!needs_memory(op) || !memory_is_short_anywhere(s)) return ZK_OK;
    s->statistics.refused[REFUSED_memory]++;
    return MEMORY_IS_SHORT;
}

static int32_t judge(const struct connection *c, bool fully, int32_t op,
                     const union zk_request *request) {
    struct zk_clients identities = connection_identities(c);
    int32_t err = judge_path(&c->server->tree, &identities, op, request);
    if (!err && fully) err = judge_cost(c, op, request);
    if (!err && fully) err = judge_memory(c->server, op);
    return err;
}

int32_t cost_judge(const struct connection *c, const struct zk_op *op, struct zk_in body) {
    struct zk_multi ops;
    struct zk_multi_op part;
    union zk_request request;
    int32_t err = ZK_OK;
    bool fully = c->identities.used > FEW_IDENTITIES || memory_is_short_anywhere(c->server);
    if (op->number == ZK_OP_MULTI) {
        if (!zk_read_multi(&body, ZK_OP_MULTI, &ops)) return ZK_OK; /* it is refused later */
        while (!err && zk_multi_next(&ops, &part)) err = judge(c, fully, part.type, &part.of);
        return err;
    }
    if (!fully && op->number != ZK_OP_SET_DATA) return ZK_OK;
    if (!op->request->read(&body, &request)) return ZK_OK;
    return judge(c, fully, op->number, &request);
}

int32_t cost_judge_operator(struct server *s, const struct zk_clients *identities,
                            const struct zk_op *op, struct zk_in body) {
    union zk_request request;
    if (!op->request->read(&body, &request)) return ZK_MARSHALLINGERROR;
    int32_t err = judge_path(&s->tree, identities, op->number, &request);
    return err ? err : judge_memory(s, op->number);
}
