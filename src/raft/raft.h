/* The consensus core: one member's part in replicating a log, by Raft with pre-vote, check-quorum,
 * leases, leadership transfer, weighted quorums and pledges.
 *
 * It is a pure step over one flat record, as the algorithms of the laboratory are: no I/O, no
 * clock, no randomness, no memory of its own, and no pointers but that to the owner's log, so a
 * copy is memcpy.  It knows the log by indexes and terms only; the bytes of entries stay with the
 * owner.
 *
 *   message.h    what members send each other
 *   election.c   election timeout, pre-vote, RequestVote, TimeoutNow
 *   replicate.c  AppendEntries, the commit index, snapshots
 *   config.c     members, weights, quorums, membership changes
 *   terms.c      which entry is of which term
 *   step.c       dispatch of messages; the invariants
 *   perform.c    effects, carried out in their order
 *
 * An owner (the server's ensemble, the laboratory) feeds it events.  Each fills in a struct
 * raft_out, which raft_perform carries out in this order:
 *
 *   1. the term and the vote become durable, before anything is sent
 *   2. entries are appended to the log in memory (raft_entries_durable says when they are on disk)
 *   3. the timer is started
 *   4. messages are sent
 *   5. a chunk of a snapshot is handed on
 *
 * An owner's loop:
 *
 *   for (;;) {
 *       struct raft_out out = {0};
 *       raft_receive(raft, &message, config, &out);   // or another event: a timer, a disk, ...
 *       raft_perform(&out, &callbacks, owner, entries);
 *       while (applied < raft->commit_index) apply(++applied);
 *       for (each other member)
 *           while (raft_next_append(raft, id, raft->last_index, &message))
 *               send(&message), raft_append_sent(raft, &message);
 *       write_to_disk(raft->durable_index + 1, raft->last_index);  // then raft_entries_durable
 *   }
 *
 * A leader may send entries before they are durable on its own disk; no member acknowledges an
 * entry before it is durable there. */
#ifndef CV_RAFT_RAFT_H
#define CV_RAFT_RAFT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/assert.h"
#include "raft/batch.h"
#include "raft/message.h"

enum {
    RAFT_MEMBERS_MAX = 16,
    RAFT_RUNS_MAX = 8,
    RAFT_TERM_JUMP_MAX = 1 << 20, /* no member sleeps through that many elections */
};
#define RAFT_INDEX_MAX (UINT64_MAX >> 1) /* the sum of two never overflows */

/* ---- Configuration ---- */

/* A set of members is a quorum when, in more than half of the groups, it has more than half of the
 * weight.  A member of weight 0 is a learner: it gets the log and has no vote. */
struct raft_member {
    uint8_t id; /* from 1 */
    uint8_t group;
    uint16_t weight;
};

struct raft_config {
    uint64_t hash; /* of the owner's own description of the members, addresses included */
    uint32_t count;
    uint32_t reserved;
    struct raft_member at[RAFT_MEMBERS_MAX]; /* by ascending id */
};

/* ---- State ---- */

enum raft_role {
    RAFT_FOLLOWER,
    RAFT_PRE_CANDIDATE, /* asks whether it would be elected; its term is as it was */
    RAFT_CANDIDATE,
    RAFT_LEADER,
};

enum raft_mode {                /* how a leader replicates to a member */
                 RAFT_PROBE,    /* one message at a time, until it is known where the logs agree */
                 RAFT_STREAM,   /* without waiting for responses */
                 RAFT_SNAPSHOT, /* not at all: the member needs entries that the log no longer has
                                 */
};

enum raft_vote { RAFT_VOTE_PENDING, RAFT_VOTE_GRANTED, RAFT_VOTE_DENIED };

struct raft_peer {              /* what is known of another member; of a leader, unless noted */
    uint64_t match_index;       /* its log is durable and the leader's up to here */
    uint64_t next_index;        /* the next entry to send */
    uint64_t sent_commit_index; /* the commit index that it was sent */
    uint64_t sent_pledge;       /* the pledge that it was sent */
    uint64_t acked_round;       /* the newest round that it has responded to */
    uint8_t mode;               /* enum raft_mode */
    uint8_t vote;               /* of a candidate: enum raft_vote */
    uint8_t heartbeat_due;      /* it is to get a message even if there is nothing new */
    uint8_t probe_pending;      /* RAFT_PROBE: the response is awaited */
    uint8_t recently_active;    /* it responded since the quorum was last checked */
    uint8_t vote_withheld;      /* it said so: see struct raft */
    uint8_t reserved[2];
};

struct raft_run { /* entries of one term, up to where the next run begins */
    uint64_t first, term;
};

struct raft {
    uint64_t term;                          /* the current one */
    uint64_t snapshot_index, snapshot_term; /* the log in memory begins after it */
    uint64_t last_index;                    /* of the log in memory */
    uint64_t durable_index;                 /* of the log on this member's disk */
    uint64_t commit_index;
    uint64_t verified_index;   /* up to here the log is known to be this term's leader's */
    uint64_t term_start_index; /* of a leader: the first entry of its term */
    uint64_t round;            /* of a leader: the newest heartbeat round; else: the newest seen */
    uint64_t confirmed_round;  /* of a leader: the newest round that a quorum responded to */
    uint64_t pledge;           /* of a leader: the highest that it sent; else: the one received */
    uint64_t catch_up_index;   /* with vote_withheld: the last entry of this term's leader, as it
                                  said after this start; 0: it has not said so */
    uint64_t config_index, previous_config_index; /* the entries that brought them */
    struct raft_config config;                    /* in force, committed or not */
    struct raft_config previous_config; /* in force again if the entry of `config` is replaced */
    /* Set after raft_open: the term of an entry of the owner's log, which is after snapshot_index
     * and was in the log before this event.  It is needed when the log has more runs than fit. */
    uint64_t (*term_of)(const void *log, uint64_t index);
    const void *log;
    struct raft_peer peer[RAFT_MEMBERS_MAX]; /* by slot, as in config */
    struct raft_run run[RAFT_RUNS_MAX];      /* the newest; see terms.c */
    uint32_t runs;
    uint8_t self, voted_for, leader; /* ids; 0: nobody */
    uint8_t role;                    /* enum raft_role */
    uint8_t leader_timed_out;        /* no leader was heard for an election timeout */
    uint8_t leader_leased;           /* the leader relies on this member's election timeout */
    uint8_t transferee;              /* of a leader: leadership is being transferred to it */
    uint8_t lease_revoked;           /* of a leader: somebody may be elected in this term at once */
    uint8_t leases_enabled;          /* a setting, made after raft_open */
    /* This member may have lost entries that it had acknowledged, so it neither votes nor stands
     * for election until its log has reached catch_up_index.  The leader has all that was committed
     * with its acknowledgement, because nobody is elected by it meanwhile.  The owner sets it after
     * raft_open and keeps it with the vote. */
    uint8_t vote_withheld;
    uint8_t reserved[2];
};

/* ---- Effects ---- */

enum raft_timer {
    RAFT_TIMER_UNCHANGED,
    RAFT_TIMER_ELECTION_TIMEOUT, /* the same on all members: a live leader is heard in it */
    RAFT_TIMER_ELECTION_JITTER,  /* short and random, so that not all become candidates at once */
};

enum { RAFT_OUT_MAX = RAFT_MEMBERS_MAX + 2 };

struct raft_out {
    bool persist_vote;    /* the term, voted_for and vote_withheld */
    bool append_entries;  /* those of the message, from append_from on; they replace what the */
    uint64_t append_from; /* log has from there on */
    bool append_config;   /* of a new leader: the configuration in force, as the last entry */
    bool contradiction;   /* the leader's log has another entry where this one is committed: one of
                           * the two is not of this ensemble, or has lost data */
    bool snapshot_chunk;  /* the message is InstallSnapshot or its response, and is current */
    uint8_t timer;        /* enum raft_timer: restart it; raft_timer_fired when it is over */
    uint32_t messages;
    struct raft_message message[RAFT_OUT_MAX];
};

/* How an owner carries effects out.  False: it has stopped, and the rest does not happen. */
struct raft_callbacks {
    bool (*persist_vote)(void *owner); /* durable when it returns */
    void (*append_entries)(void *owner, uint64_t from, const void *entries);
    void (*append_config)(void *owner);
    void (*start_timer)(void *owner, enum raft_timer timer);
    bool (*send)(void *owner, const struct raft_message *message);
    void (*snapshot_chunk)(void *owner, const void *chunk);
};

/* `payload`: what came with the message, as the owner has it; it is handed back to the owner's
 * append_entries and snapshot_chunk. */
void raft_perform(const struct raft_out *out, const struct raft_callbacks *callbacks, void *owner,
                  const void *payload);

/* ---- Start ---- */

/* From what is durable: the vote, then the snapshot (or 0, 0), then the log after it batch by
 * batch, with its configurations; then raft_start. */
void raft_open(struct raft *raft, uint8_t self, uint64_t term, uint8_t voted_for);
void raft_restore_snapshot(struct raft *raft, uint64_t index, uint64_t term,
                           const struct raft_config *config);
void raft_restore_entries(struct raft *raft, uint64_t first, uint32_t count, uint64_t term,
                          const struct raft_config *config);
/* Everything up to commit_index is known to be committed. */
void raft_start(struct raft *raft, uint64_t commit_index, struct raft_out *out);

/* ---- Events ---- */

/* A message, with the configuration that it carries if its entries' kind is RAFT_CONFIG (else
 * NULL).  Any values are safe.  False: the message is of no use; its effects count all the same,
 * for it may have brought a newer term. */
bool raft_receive(struct raft *raft, const struct raft_message *message,
                  const struct raft_config *config, struct raft_out *out);
void raft_timer_fired(struct raft *raft, struct raft_out *out);
/* A message from that member is on its way here, and arrives slowly: it is not silent. */
void raft_peer_alive(struct raft *raft, uint8_t id, struct raft_out *out);
/* Stands for election at once, without a pre-vote; the timer and TimeoutNow lead here. */
void raft_become_candidate(struct raft *raft, bool leadership_transfer, struct raft_out *out);
/* Begins a round: every member is due a message, and its response confirms that this member still
 * leads (ReadIndex).  Returns the round; 0: not a leader.  The owner calls it at the heartbeat
 * interval, and for reads. */
uint64_t raft_heartbeat(struct raft *raft);
/* The leader's owner has appended entries.  Returns the index of the first; 0: not a leader, or
 * leadership is being transferred. */
uint64_t raft_propose(struct raft *raft, uint32_t count);
/* The log is durable here up to that entry. */
void raft_entries_durable(struct raft *raft, uint64_t index, uint64_t term, struct raft_out *out);
void raft_peer_connected(struct raft *raft, uint8_t id);
void raft_peer_disconnected(struct raft *raft, uint8_t id); /* messages may have been lost */
/* The member's process is another one than before, and its log may have become shorter. */
void raft_peer_restarted(struct raft *raft, uint8_t id);
/* The member's process has ended. */
void raft_peer_down(struct raft *raft, uint8_t id, struct raft_out *out);
/* Leadership transfer to a voter; false: not possible.  It is under way while raft.transferee is
 * set. */
bool raft_transfer_leadership(struct raft *raft, uint8_t id, struct raft_out *out);

/* ---- Replication: of a leader ---- */

/* The AppendEntries that is due for a member, with the most entries that it may carry, none after
 * `last`; false: none is due.  The owner may lower entry_count, and then calls raft_append_sent. */
bool raft_next_append(const struct raft *raft, uint8_t id, uint64_t last,
                      struct raft_message *message);
void raft_append_sent(struct raft *raft, const struct raft_message *message);
/* A heartbeat that is due for a member in RAFT_STREAM and may overtake the entries on their way to
 * it: it refers to none of them.  False: none is due. */
bool raft_overtaking_heartbeat(struct raft *raft, uint8_t id, struct raft_message *message);

/* ---- Snapshots ---- */

/* The owner is about to drop the entries up to index, all of them applied and durable in some form.
 */
void raft_compacted(struct raft *raft, uint64_t index);
/* A snapshot from the leader is durable and loaded: the log begins after it.  False: it is older
 * than the commit index. */
bool raft_snapshot_installed(struct raft *raft, uint64_t index, uint64_t term,
                             const struct raft_config *config, struct raft_out *out);

/* ---- Membership ---- */

enum raft_change {
    RAFT_CHANGE_DONE,
    RAFT_CHANGE_NOT_LEADER,
    RAFT_CHANGE_IN_PROGRESS,   /* another one, or the leader has committed nothing yet: try again */
    RAFT_CHANGE_TOO_LARGE,     /* more than one step, or there are groups */
    RAFT_CHANGE_NOT_CAUGHT_UP, /* a learner gets its vote when it has the log: try again */
    RAFT_CHANGE_NO_VOTER,      /* nobody would have a vote */
    RAFT_CHANGE_NO_QUORUM,     /* raft_live_set is no quorum of the new configuration */
};

/* Quorums of configurations that are one step apart have a member in common.  A step adds or
 * removes a member of weight 0, or changes a weight by one, or changes nothing but the hash.  The
 * owner appends the configuration as the last entry.
 *
 * A configuration takes force at once, and one without a quorum could neither be committed nor
 * undone.  So the members must form one that have responded to `round`: the owner begins it when
 * the change is wanted, because what was heard before may be of a member that has failed since. */
enum raft_change raft_change_config(struct raft *raft, const struct raft_config *config,
                                    uint64_t round);
/* The same, but a learner gets its vote whether or not it has the log.  A quorum must respond
 * without it. */
enum raft_change raft_admit_absent(struct raft *raft, const struct raft_config *config,
                                   uint64_t round);
/* Of a leader: those members of a configuration, one bit per slot, that have responded to that
 * heartbeat round or a later one, have nearly all that is committed, and may vote. */
uint32_t raft_live_set(const struct raft *raft, const struct raft_config *config, uint64_t round);
/* The next configuration on the way from one to another; false: they have the same members. */
bool raft_config_step(const struct raft_config *from, const struct raft_config *to,
                      struct raft_config *next);
bool raft_config_is_valid(const struct raft_config *config);
const struct raft_member *raft_find_member(const struct raft_config *config, uint8_t id);
int raft_member_slot(const struct raft_config *config, uint8_t id); /* -1: not a member */
bool raft_has_vote(const struct raft_config *config, uint8_t id);
bool raft_is_quorum(const struct raft_config *config, uint32_t set); /* one bit per slot */

/* ---- Queries ---- */

/* For an index from snapshot_index to last_index. */
uint64_t raft_term_at(const struct raft *raft, uint64_t index);
const struct raft_peer *raft_find_peer(const struct raft *raft, uint8_t id); /* or NULL */
/* The commit index that a member is known to know of. */
uint64_t raft_peer_commit_index(const struct raft_peer *peer);
/* The voter with most of the log, for a transfer; 0: there is none. */
uint8_t raft_best_transferee(const struct raft *raft);
/* Whether reads may be served from what is applied, once that reaches the read index: the leader
 * has committed an entry of its term, so it knows all that was committed before it. */
static inline bool raft_may_serve_reads(const struct raft *raft) {
    return raft->role == RAFT_LEADER && raft->commit_index >= raft->term_start_index;
}
/* The highest index that anybody may take for committed by now: a member with a pledge may know
 * before the leader does. */
uint64_t raft_read_index(const struct raft *raft);
static inline bool raft_has_lease(const struct raft *raft) {
    return raft_may_serve_reads(raft) && raft->leases_enabled && !raft->lease_revoked;
}

#endif
