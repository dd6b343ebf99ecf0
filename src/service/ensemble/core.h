/* The steps of the consensus core, as the server takes them: one place, so that none is taken
 * without being recorded.  What only asks the core goes to raft.h directly. */
#ifndef CV_SERVICE_ENSEMBLE_CORE_H
#define CV_SERVICE_ENSEMBLE_CORE_H

#include "service/ensemble/internal.h"

/* Opens the record, if the settings name one.  0, or an exit status; the reason is logged. */
int core_open_record(struct ensemble *ensemble);
uint64_t core_step(struct ensemble *ensemble, const struct step *step, struct raft_out *out);
/* The record begins anew with it. */
void core_start(struct ensemble *ensemble, uint64_t commit_index, struct raft_out *out);

static inline bool core_receive(struct ensemble *e, struct raft_message *message,
                                const struct raft_config *config, struct raft_out *out) {
    struct step step = {.type = STEP_RECEIVE, .message = message, .config = config};
    return core_step(e, &step, out);
}
static inline void core_timer_fired(struct ensemble *e, struct raft_out *out) {
    core_step(e, &(struct step){.type = STEP_TIMER}, out);
}
static inline void core_peer_alive(struct ensemble *e, uint8_t id, struct raft_out *out) {
    core_step(e, &(struct step){.type = STEP_ALIVE, .id = id}, out);
}
static inline uint64_t core_heartbeat(struct ensemble *e) {
    return core_step(e, &(struct step){.type = STEP_HEARTBEAT}, NULL);
}
static inline uint64_t core_propose(struct ensemble *e, uint32_t count) {
    return core_step(e, &(struct step){.type = STEP_PROPOSE, .number = {count}}, NULL);
}
static inline void core_entries_durable(struct ensemble *e, uint64_t index, uint64_t term,
                                        struct raft_out *out) {
    core_step(e, &(struct step){.type = STEP_DURABLE, .number = {index, term}}, out);
}
static inline void core_peer_connected(struct ensemble *e, uint8_t id) {
    core_step(e, &(struct step){.type = STEP_CONNECTED, .id = id}, NULL);
}
static inline void core_peer_disconnected(struct ensemble *e, uint8_t id) {
    core_step(e, &(struct step){.type = STEP_DISCONNECTED, .id = id}, NULL);
}
static inline void core_peer_restarted(struct ensemble *e, uint8_t id) {
    core_step(e, &(struct step){.type = STEP_RESTARTED, .id = id}, NULL);
}
static inline void core_peer_down(struct ensemble *e, uint8_t id, struct raft_out *out) {
    core_step(e, &(struct step){.type = STEP_DOWN, .id = id}, out);
}
static inline bool core_transfer_leadership(struct ensemble *e, uint8_t id, struct raft_out *out) {
    return core_step(e, &(struct step){.type = STEP_TRANSFER, .id = id}, out);
}
/* `last`: what raft_next_append was asked for. */
static inline void core_append_sent(struct ensemble *e, struct raft_message *message,
                                    uint64_t last) {
    struct step step = {.type = STEP_SENT,
                        .id = message->to,
                        .number = {last, message->append_entries.entry_count},
                        .message = message};
    core_step(e, &step, NULL);
}
static inline bool core_overtaking_heartbeat(struct ensemble *e, uint8_t id,
                                             struct raft_message *message) {
    struct step step = {.type = STEP_OVERTAKE, .id = id, .message = message};
    return core_step(e, &step, NULL);
}
static inline void core_compacted(struct ensemble *e, uint64_t index) {
    core_step(e, &(struct step){.type = STEP_COMPACTED, .number = {index}}, NULL);
}
static inline bool core_snapshot_installed(struct ensemble *e, uint64_t index, uint64_t term,
                                           const struct raft_config *config, struct raft_out *out) {
    struct step step = {.type = STEP_INSTALLED, .number = {index, term}, .config = config};
    return core_step(e, &step, out);
}
static inline enum raft_change
core_change_config(struct ensemble *e, const struct raft_config *config, uint64_t round) {
    struct step step = {.type = STEP_CHANGE, .number = {round}, .config = config};
    return (enum raft_change)core_step(e, &step, NULL);
}
static inline enum raft_change core_admit_absent(struct ensemble *e,
                                                 const struct raft_config *config, uint64_t round) {
    struct step step = {.type = STEP_ADMIT, .number = {round}, .config = config};
    return (enum raft_change)core_step(e, &step, NULL);
}
static inline void core_may_vote(struct ensemble *e) {
    core_step(e, &(struct step){.type = STEP_MAY_VOTE}, NULL);
}

#endif
