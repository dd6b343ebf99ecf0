/* The messages of the consensus core, each described once: the RPCs of the Raft paper and their
 * responses, pre-vote and TimeoutNow of the dissertation.
 *
 * From each list of fields follow the struct, the encoding between servers (service/ensemble) and
 * the traces of the laboratory.  Every message also carries its sender's term, pre-votes too: a
 * member that slept through terms learns of them from the first answer.
 *
 * The bytes of entries and of snapshots travel after the message and never reach the core. */
#ifndef CV_RAFT_MESSAGE_H
#define CV_RAFT_MESSAGE_H

#include <stdint.h>

/* F(TYPE, NAME, FROM): FROM is the first version of the protocol that has the field.  Fields are
 * only ever added, at the end and with a new version; a receiver takes those it does not get for
 * 0. */

/* May I lead?  With pre_vote: would you vote for me?  Nothing changes by that question.  With
 * leadership_transfer the leader itself asked for the election (TimeoutNow). */
#define RAFT_FIELDS_request_vote(F)                                                                \
    F(u64, last_log_index, 3)                                                                      \
    F(u64, last_log_term, 3)                                                                       \
    F(u8, pre_vote, 3)                                                                             \
    F(u8, leadership_transfer, 3)

#define RAFT_FIELDS_request_vote_response(F)                                                       \
    F(u8, vote_granted, 3)                                                                         \
    F(u8, pre_vote, 3)

/* Entries after prev_log_index, all of one term and kind; without any it is a heartbeat, or a
 * commit notification, which needs no response.  Everything up to `pledge` is committed as soon as
 * the receiver has it, durable.  With `lease` the leader serves reads for as long as its followers'
 * election timeouts last.  A receiver whose vote is withheld is told the leader's last_log_index.
 */
#define RAFT_FIELDS_append_entries(F)                                                              \
    F(u64, prev_log_index, 3)                                                                      \
    F(u64, prev_log_term, 3)                                                                       \
    F(u64, leader_commit, 3)                                                                       \
    F(u64, pledge, 3)                                                                              \
    F(u64, entries_term, 3)                                                                        \
    F(u64, round, 3)                                                                               \
    F(u32, entry_count, 3)                                                                         \
    F(u8, entry_kind, 3)                                                                           \
    F(u8, lease, 3)                                                                                \
    F(u8, commit_notification, 3)                                                                  \
    F(u64, last_log_index, 4)

/* Accepted: the log is durable and the leader's up to match_index.  Rejected: the receiver does
 * not have rejected_index as the leader does; both may agree at match_index, which is of
 * match_term here. */
#define RAFT_FIELDS_append_entries_response(F)                                                     \
    F(u64, match_index, 3)                                                                         \
    F(u64, match_term, 3)                                                                          \
    F(u64, rejected_index, 3)                                                                      \
    F(u64, round, 3)                                                                               \
    F(u8, rejected, 3)                                                                             \
    F(u8, vote_withheld, 4)

/* The bytes of a snapshot's file from `offset` on, of file_size in all. */
#define RAFT_FIELDS_install_snapshot(F)                                                            \
    F(u64, last_included_index, 3)                                                                 \
    F(u64, last_included_term, 3)                                                                  \
    F(u64, offset, 3)                                                                              \
    F(u64, file_size, 3)

#define RAFT_FIELDS_install_snapshot_response(F)                                                   \
    F(u64, last_included_index, 3)                                                                 \
    F(u64, next_offset, 3)

/* Stand for election at once: leadership transfer. */
#define RAFT_FIELDS_timeout_now(F) F(u8, reserved, 3)

/* M(NUMBER, NAME, TITLE): the number is that of the wire. */
#define RAFT_MESSAGES(M)                                                                           \
    M(1, request_vote, "RequestVote")                                                              \
    M(2, request_vote_response, "RequestVote response")                                            \
    M(3, append_entries, "AppendEntries")                                                          \
    M(4, append_entries_response, "AppendEntries response")                                        \
    M(5, install_snapshot, "InstallSnapshot")                                                      \
    M(6, install_snapshot_response, "InstallSnapshot response")                                    \
    M(7, timeout_now, "TimeoutNow")

enum raft_message_type {
    RAFT_REQUEST_VOTE = 1,
    RAFT_REQUEST_VOTE_RESPONSE,
    RAFT_APPEND_ENTRIES,
    RAFT_APPEND_ENTRIES_RESPONSE,
    RAFT_INSTALL_SNAPSHOT,
    RAFT_INSTALL_SNAPSHOT_RESPONSE,
    RAFT_TIMEOUT_NOW,
    RAFT_MESSAGE_TYPES,
};

#define RAFT_CTYPE_u8                  uint8_t
#define RAFT_CTYPE_u32                 uint32_t
#define RAFT_CTYPE_u64                 uint64_t
#define RAFT_MEMBER_(TYPE, NAME, FROM) RAFT_CTYPE_##TYPE NAME;
#define RAFT_STRUCT_(NUMBER, NAME, TITLE)                                                          \
    struct raft_##NAME {                                                                           \
        RAFT_FIELDS_##NAME(RAFT_MEMBER_)                                                           \
    };
#define RAFT_UNION_(NUMBER, NAME, TITLE) struct raft_##NAME NAME;

RAFT_MESSAGES(RAFT_STRUCT_)

struct raft_message {
    uint64_t term;          /* the sender's current term */
    uint8_t type, from, to; /* enum raft_message_type; ids of members */
    union {
        RAFT_MESSAGES(RAFT_UNION_)
    };
};

#endif
