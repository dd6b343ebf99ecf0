/* Requests that go through the log: as entries, to the ensemble. */
#include "service/server/internal.h"
#include "wire/net/link.h"

enum { AROUND_A_REQUEST = 1024 }; /* the rest of its entry, and of the message that carries it */
_Static_assert(SETTINGS_PACKET_MAX + CONNECTION_IDENTITIES_MAX + AROUND_A_REQUEST <= LINK_FRAME_MAX,
               "any request fits into a frame between servers");

/* What is neither read nor written by permission needs nobody's identities in the log. */
static bool is_checked(int32_t op) { return zk_op_of(op) && zk_op_of(op)->kind == ZK_KIND_WRITE; }

static void propose_entry(struct server *s, struct proposal proposal, struct tree_entry entry) {
    proposal.op = entry.op;
    proposal.proposed_us = s->clock.monotonic_us;
    entry.time = s->clock.now_ms;
    entry.rules |= s->tree.rules;
    ensemble_propose(s->ensemble, &entry, &proposal);
}

void propose(struct server *s, struct connection *c, int64_t session, int32_t xid, int32_t op,
             struct zk_in body) {
    struct proposal proposal = {
        .connection = c ? c->number : 0, .serial = c ? c->serial : 0, .xid = xid};
    struct tree_entry entry = {.session = session, .op = op, .body = body};
    if (c && is_checked(op)) entry.identities = connection_identities(c);
    propose_entry(s, proposal, entry);
}

void propose_ticket(struct server *s, uint32_t ticket, const struct zk_clients *identities,
                    int64_t session, int32_t op, struct zk_in body) {
    propose_entry(
        s, (struct proposal){.serial = ticket},
        (struct tree_entry){.session = session, .identities = *identities, .op = op, .body = body});
}

void propose_error(struct server *s, struct connection *c, int32_t xid, int32_t err) {
    unsigned char body[sizeof err];
    zk_store_i32(body, &err);
    propose(s, c, c->session_id, xid, ZK_OP_ERROR, zk_in_of(body, sizeof body));
}

void propose_expiry(struct server *s, uint32_t slot) {
    const struct session *session = &s->tree.sessions.at[slot];
    struct tree_expiry expiry = {(int64_t)ensemble_term(s->ensemble), (int32_t)session->moves};
    unsigned char body[TREE_EXPIRY_SIZE];
    tree_store_expiry(body, &expiry);
    propose_entry(s, (struct proposal){0},
                  (struct tree_entry){.session = session->id,
                                      .rules = TREE_EXPIRES,
                                      .op = ZK_OP_CLOSE_SESSION,
                                      .body = zk_in_of(body, sizeof body)});
}
