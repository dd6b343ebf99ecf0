/* Writes of operators, who have no connection.  An entry that writes belongs to a session, so each
 * of these has one of its own, which is begun before it and closed after it; the three are proposed
 * together, and applied in their order. */
#include "service/server/internal.h"

int32_t server_propose(struct server *s, uint32_t ticket, const struct zk_clients *identities,
                       int32_t op, struct zk_in body) {
    static const struct zk_clients none = {NULL, 0, 0};
    unsigned char opening[SESSION_OPENING_SIZE];
    if (!ensemble_status(s->ensemble).raft->leader || s->leaving_us) return ZK_NOTREADONLY;
    if (ensemble_is_full(s->ensemble)) return ZK_THROTTLEDOP;
    int32_t err = cost_judge_operator(s, identities, zk_op_of(op), body);
    if (err) return err;
    int64_t id = session_opening(s, s->settings.session_ms_min, opening);
    propose_ticket(s, 0, &none, id, ZK_OP_CREATE_SESSION, zk_in_of(opening, sizeof opening));
    propose_ticket(s, ticket, identities, id, op, body);
    propose_ticket(s, 0, &none, id, ZK_OP_CLOSE_SESSION, zk_in_of(NULL, 0));
    return ZK_OK;
}
