/* Judges that look into the ensemble, whose words and the world's are not all different. */
#include "service/ensemble/internal.h"
#include "service/log/salvage.h"

__attribute__((format(printf, 1, 2))) void violated(const char *format, ...);
void __real_peers_send(struct ensemble *ensemble, const struct raft_message *message,
                       const void *payload, size_t size);
void __wrap_peers_send(struct ensemble *ensemble, const struct raft_message *message,
                       const void *payload, size_t size);
void __real_mend_leader_confirmed(struct ensemble *ensemble, uint8_t leader, uint64_t number);
void __wrap_mend_leader_confirmed(struct ensemble *ensemble, uint8_t leader, uint64_t number);
void __real_salvage_cut(struct salvage *salvage, uint64_t index);
void __wrap_salvage_cut(struct salvage *salvage, uint64_t index);
const struct raft *core_of_server(unsigned number);
bool acts_as_leader(const struct ensemble *ensemble);
bool knows_its_ensemble(const struct ensemble *ensemble);
const struct raft *raft_of(const struct ensemble *ensemble);
uint64_t applied_index_of(const struct ensemble *ensemble);
bool helps_others(const struct ensemble *ensemble);

/* Nothing is sent in a term that is not durable. */
void __wrap_peers_send(struct ensemble *e, const struct raft_message *message, const void *payload,
                       size_t size) {
    if ((message->type == RAFT_APPEND_ENTRIES || message->type == RAFT_INSTALL_SNAPSHOT) &&
        e->raft.role != RAFT_LEADER)
        violated("server %u sends what only a leader does, in term %llu", e->raft.self,
                 (unsigned long long)message->term);
    if (message->term != e->vote.term)
        violated("server %u sends in term %llu, and term %llu is durable", e->raft.self,
                 (unsigned long long)message->term, (unsigned long long)e->vote.term);
    __real_peers_send(e, message, payload, size);
}

/* ---- Mending ---- */

static uint8_t confirmed; /* this leader has just said to a server that is mended that it leads */

void __wrap_mend_leader_confirmed(struct ensemble *e, uint8_t leader, uint64_t number) {
    confirmed = leader;
    __real_mend_leader_confirmed(e, leader, number);
    confirmed = 0;
}

/* What the leader has is mended.  Whoever gives it up gives up with it what follows, which may be
 * intact nowhere else. */
void __wrap_salvage_cut(struct salvage *salvage, uint64_t index) {
    const struct raft *leader = confirmed ? core_of_server(confirmed) : NULL;
    uint64_t term = salvage_term_at(salvage, index);
    bool has = leader && leader->role == RAFT_LEADER && index > leader->snapshot_index &&
               index <= leader->last_index && raft_term_at(leader, index) == term;
    if (has)
        violated("entry %llu of term %llu is given up, and server %u has it, the leader",
                 (unsigned long long)index, (unsigned long long)term, leader->self);
    __real_salvage_cut(salvage, index);
}

/* ---- For judges that look at the world ---- */

bool acts_as_leader(const struct ensemble *e) {
    return e->raft.role == RAFT_LEADER && e->known_leader == e->raft.self &&
           e->known_term == e->raft.term;
}

bool knows_its_ensemble(const struct ensemble *e) { return e->vote.ensemble_id != 0; }

const struct raft *raft_of(const struct ensemble *e) { return &e->raft; }
uint64_t applied_index_of(const struct ensemble *e) { return e->applied_index; }

bool helps_others(const struct ensemble *e) { return catch_up_is_active(e); }
