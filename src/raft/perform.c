/* Effects, carried out in the order that raft.h gives. */
#include "raft/raft.h"

void raft_perform(const struct raft_out *out, const struct raft_callbacks *callbacks, void *owner,
                  const void *payload) {
    if (out->persist_vote && !callbacks->persist_vote(owner)) return;
    if (out->append_entries) callbacks->append_entries(owner, out->append_from, payload);
    if (out->append_config) callbacks->append_config(owner);
    if (out->timer) callbacks->start_timer(owner, (enum raft_timer)out->timer);
    for (uint32_t i = 0; i < out->messages; i++)
        if (!callbacks->send(owner, &out->message[i])) return;
    if (out->snapshot_chunk) callbacks->snapshot_chunk(owner, payload);
}
