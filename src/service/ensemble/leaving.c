/* A server that has left the ensemble serves the clients that it has, as ZooKeeper's do.
 *
 * The leader that removed it goes on sending it what is committed, with heartbeats, and takes what
 * its clients propose.  It has no vote and no place in the core: nothing that it says counts.  This
 * ends with the link, with the leader, or when it falls behind what the leader has in memory; then
 * it is told that it is no longer a member, and its clients go elsewhere. */
#include "service/ensemble/internal.h"

enum {
    UNSENT_MAX = 4 << 20, /* bytes that a link has not taken */
    APPEND_MAX = 1 << 20, /* bytes of entries in one message */
};

bool leaving_begin(struct ensemble *e, uint8_t id) {
    struct peer_state *peer = &e->peer[id];
    if (!ensemble_leads(e) || !peer->up || !e->raft.commit_index) return false;
    peer->left_index = e->raft.commit_index; /* if it does not have that, it says so */
    peer->left_round = 0;
    peer->guest = true;
    return true;
}

static void end(struct ensemble *e, uint8_t id) {
    e->peer[id].left_index = 0;
    peers_dismiss(e, id);
}

static void send_batch(struct ensemble *e, uint8_t id, const struct raft_batch *batch) {
    struct peer_state *peer = &e->peer[id];
    struct raft_message m;
    memset(&m, 0, sizeof m);
    m.type = RAFT_APPEND_ENTRIES;
    m.from = e->raft.self;
    m.to = id;
    m.term = e->raft.term;
    m.append_entries.prev_log_index = peer->left_index;
    m.append_entries.prev_log_term = raft_term_at(&e->raft, peer->left_index);
    m.append_entries.leader_commit = e->raft.commit_index;
    m.append_entries.entries_term = batch->term;
    m.append_entries.round = e->raft.round;
    m.append_entries.entry_count = batch->count;
    m.append_entries.entry_kind = (uint8_t)batch->kind;
    peers_send(e, &m, batch->bytes, batch->size);
    peer->left_index += batch->count;
    peer->left_round = e->raft.round;
}

static void send_committed(struct ensemble *e, uint8_t id) {
    const struct peer_state *peer = &e->peer[id];
    struct raft_batch batch = {0};
    while (peer->left_index < e->raft.commit_index) {
        if (link_unsent(e->links, id) > UNSENT_MAX || !link_takes_bulk(e->links, id)) break;
        uint64_t first = peer->left_index + 1;
        size_t bytes = window_span(&e->log, first, e->raft.commit_index);
        window_read(&e->log, first, bytes < APPEND_MAX ? bytes : APPEND_MAX, &batch);
        send_batch(e, id, &batch);
    }
    if (peer->left_round < e->raft.round) send_batch(e, id, &(struct raft_batch){0});
}

void leaving_advance(struct ensemble *e) {
    if (!e->links || !ensemble_leads(e)) return;
    for (unsigned id = 1; id <= MEMBER_ID_MAX; id++) {
        const struct peer_state *peer = &e->peer[id];
        if (!peer->left_index) continue;
        if (peer->up && peer->left_index >= e->log.after)
            send_committed(e, (uint8_t)id);
        else
            end(e, (uint8_t)id);
    }
}

bool leaving_answered(struct ensemble *e, const struct raft_message *m) {
    struct peer_state *peer = &e->peer[m->from];
    const struct raft_append_entries_response *response = &m->append_entries_response;
    bool is_current = m->term == e->raft.term && ensemble_leads(e);
    if (!peer->left_index || m->type != RAFT_APPEND_ENTRIES_RESPONSE || !is_current) return false;
    if (!response->rejected || response->match_index >= peer->left_index) return true;
    peer->left_index = response->match_index; /* 0: it ends */
    if (!peer->left_index) end(e, m->from);
    return true;
}
