/* What the files of the core share. */
#ifndef CV_RAFT_INTERNAL_H
#define CV_RAFT_INTERNAL_H

#include "raft/raft.h"

struct raft_message *raft_add_message(struct raft *raft, struct raft_out *out,
                                      enum raft_message_type type, uint8_t to);
void raft_check_invariants(const struct raft *raft);

/* ---- terms.c ---- */

/* Entries from raft_run_begin up to before raft_run_end are of the term of that one; those beyond
 * may be, too. */
uint64_t raft_run_begin(const struct raft *raft, uint64_t index);
uint64_t raft_run_end(const struct raft *raft, uint64_t index);
/* Lengthens the log by entries of a term. */
void raft_extend(struct raft *raft, uint32_t count, uint64_t term);
void raft_truncate(struct raft *raft, uint64_t last);
void raft_set_snapshot_index(struct raft *raft, uint64_t index);

/* ---- config.c ---- */

void raft_adopt_config(struct raft *raft, uint64_t index, const struct raft_config *config);

/* ---- election.c ---- */

void raft_become_follower(struct raft *raft, uint64_t term, uint8_t leader, struct raft_out *out);
/* A message from this term's leader restarts the election timeout. */
void raft_leader_heard(struct raft *raft, const struct raft_message *m, struct raft_out *out);
void raft_handle_request_vote(struct raft *raft, const struct raft_message *m,
                              struct raft_out *out);
void raft_handle_request_vote_response(struct raft *raft, const struct raft_message *m,
                                       struct raft_out *out);
bool raft_handle_timeout_now(struct raft *raft, const struct raft_message *m, struct raft_out *out);
/* Sends TimeoutNow to the transferee once it has all of the log. */
void raft_continue_transfer(struct raft *raft, struct raft_out *out);

/* ---- replicate.c ---- */

bool raft_handle_append_entries(struct raft *raft, const struct raft_message *m,
                                const struct raft_config *config, struct raft_out *out);
bool raft_handle_append_entries_response(struct raft *raft, const struct raft_message *m,
                                         struct raft_out *out);
bool raft_handle_install_snapshot(struct raft *raft, const struct raft_message *m,
                                  struct raft_out *out);
bool raft_handle_install_snapshot_response(struct raft *raft, const struct raft_message *m,
                                           struct raft_out *out);

#endif
