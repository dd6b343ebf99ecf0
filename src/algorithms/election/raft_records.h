/* What raft keeps and sends, as records: what follows from the rest of the core's state is left
 * out. */
#ifndef CV_ALGORITHMS_ELECTION_RAFT_RECORDS_H
#define CV_ALGORITHMS_ELECTION_RAFT_RECORDS_H

#include "algorithms/election/election.h"
#include "raft/raft.h"

enum { LOG_MAX = 8 };

#define CALL_FIELDS(F, R)                                                                          \
    F(R, u64, last_index, SHOWN)                                                                   \
    F(R, u32, last_term, SHOWN)                                                                    \
    F(R, u32, term, SHOWN)
#define REPLY_FIELDS(F, R)                                                                         \
    F(R, u32, term, SHOWN)                                                                         \
    F(R, u32, yes, NAMED("no|yes"))
#define APPEND_FIELDS(F, R)                                                                        \
    F(R, u32, term, SHOWN)                                                                         \
    F(R, u32, prev_term, INNER)                                                                    \
    F(R, u64, prev_index, SHOWN)                                                                   \
    F(R, u32, entry_term, IF_SET) /* 0: it has no entry, and is a heartbeat or ... */              \
    F(R, u32, number, IF_SET)                                                                      \
    F(R, u64, commit, IF_SET)                                                                      \
    F(R, u64, pledge, INNER)                                                                       \
    F(R, u64, round, INNER)                                                                        \
    F(R, u64, commit_notification, INNER) /* ... this, which needs no response */
#define APPENDED_FIELDS(F, R)                                                                      \
    F(R, u32, term, SHOWN)                                                                         \
    F(R, u32, rejected, NAMED("no|yes"))                                                           \
    F(R, u64, match_index, SHOWN)                                                                  \
    F(R, u64, match_term, INNER)                                                                   \
    F(R, u64, rejected_index, INNER)                                                               \
    F(R, u64, round, INNER)
#define SNAPSHOT_FIELDS(F, R)                                                                      \
    F(R, u64, last_index, SHOWN)                                                                   \
    F(R, u32, last_term, SHOWN)                                                                    \
    F(R, u32, term, SHOWN)
#define ENTRY_FIELDS(F, R, I)                                                                      \
    F(R, u32, term_##I, INNER)                                                                     \
    F(R, u32, number_##I, INNER)
#define LOG_FIELDS(F, R, OF)                                                                       \
    ENTRY_FIELDS(F, R, OF##1)                                                                      \
    ENTRY_FIELDS(F, R, OF##2)                                                                      \
    ENTRY_FIELDS(F, R, OF##3)                                                                      \
    ENTRY_FIELDS(F, R, OF##4)                                                                      \
    ENTRY_FIELDS(F, R, OF##5)                                                                      \
    ENTRY_FIELDS(F, R, OF##6)                                                                      \
    ENTRY_FIELDS(F, R, OF##7)                                                                      \
    ENTRY_FIELDS(F, R, OF##8)
#define STATE_FIELDS(F, R)                                                                         \
    F(R, u32, term, SHOWN)                                                                         \
    F(R, pid, vote, SHOWN)                                                                         \
    F(R, u64, snapshot, IF_SET) /* its last index: the log begins after it */                      \
    F(R, u64, written, INNER)   /* the last index on the disk */                                   \
    LOG_FIELDS(F, R, disk_)                                                                        \
    F(R, u32, snapshot_term, INNER) /* on the disk up to here */                                   \
    F(R, pid, leader, SHOWN)                                                                       \
    F(R, u64, log, IF_SET) /* for traces */                                                        \
    F(R, u64, last, INNER)                                                                         \
    LOG_FIELDS(F, R, log_)                                                                         \
    F(R, u64, unwritten, IF_SET) /* of this log: what is on the disk instead is replaced */        \
    F(R, u64, commit, SHOWN)                                                                       \
    F(R, u64, verified, INNER)                                                                     \
    F(R, u64, term_start, INNER)                                                                   \
    F(R, u64, round, INNER)                                                                        \
    F(R, u64, confirmed_round, INNER)                                                              \
    F(R, u64, pledge, INNER)                                                                       \
    F(R, u16, role, NAMED("follower|pre-candidate|candidate|leader"))                              \
    F(R, u16, leader_timed_out, INNER)                                                             \
    F(R, u32, proposed, INNER) /* by this leader, in its term */
/* What the core knows of another member, as it lies there. */
#define ROW_FIELDS(F, R)                                                                           \
    F(R, u64, match_index, INNER)                                                                  \
    F(R, u64, next_index, INNER)                                                                   \
    F(R, u64, sent_commit_index, INNER)                                                            \
    F(R, u64, sent_pledge, INNER)                                                                  \
    F(R, u64, acked_round, INNER)                                                                  \
    F(R, u8, mode, INNER)                                                                          \
    F(R, u8, vote, INNER)                                                                          \
    F(R, u8, heartbeat_due, INNER)                                                                 \
    F(R, u8, probe_pending, INNER)                                                                 \
    F(R, u8, recently_active, INNER)                                                               \
    F(R, u8, vote_withheld, INNER)                                                                 \
    F(R, u16, reserved, INNER)

CV_RECORD(call, CALL_FIELDS);
CV_RECORD(reply, REPLY_FIELDS);
CV_RECORD(append, APPEND_FIELDS);
CV_RECORD(appended, APPENDED_FIELDS);
CV_RECORD(snapshot, SNAPSHOT_FIELDS);
CV_RECORD(state, STATE_FIELDS);
CV_RECORD(row, ROW_FIELDS);

#define SAME_PLACE(R, TYPE, NAME, AUDIENCE)                                                        \
    _Static_assert(offsetof(struct row, NAME) == offsetof(struct raft_peer, NAME), #NAME);
ROW_FIELDS(SAME_PLACE, row)
_Static_assert(sizeof(struct row) == sizeof(struct raft_peer), "a row is a peer of the core");

_Static_assert(offsetof(struct state, snapshot_term) - offsetof(struct state, term_disk_1) ==
                       LOG_MAX * sizeof(struct cv_log_entry) &&
                   offsetof(struct state, unwritten) - offsetof(struct state, term_log_1) ==
                       LOG_MAX * sizeof(struct cv_log_entry),
               "logs lie in the state");

#endif
