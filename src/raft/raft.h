/* The consensus core: one server's part in agreeing on a log with the others.
 *
 * It is a pure step over one flat record, as the algorithms of the laboratory are: no I/O, no
 * clock, no randomness, no memory of its own, and no pointers, so a copy is memcpy.  It knows the
 * log by its indexes and terms only; the bytes of entries stay with the owner.
 *
 *   terms.c      which entry is of which term
 *   config.c     members, weights, what a quorum is, how members change
 *   election.c   silence, sounding, voting, leading, handing over
 *   replicate.c  what a leader sends, what a follower takes, what is decided
 *   step.c       which message goes where; the invariants
 *
 * Each event fills in a struct raft_out, which the owner carries out in this order:
 *
 *   1. save the term and the vote, before anything leaves
 *   2. take entries into the log (they are durable later: raft_saved says so)
 *   3. timers
 *   4. messages
 *
 * and then looks at raft.committed for what may be applied, and asks raft_append_for about each
 * member that can take more.  A leader may send entries that it has not saved itself; nobody says
 * that an entry is there before it is durable. */
#ifndef CV_RAFT_RAFT_H
#define CV_RAFT_RAFT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/assert.h"
#include "raft/batch.h"

enum { RAFT_MEMBERS_MAX = 16, RAFT_RUNS_MAX = 64 };
#define RAFT_INDEX_MAX (UINT64_MAX >> 1) /* no sum of two overflows */

/* ---- Members ---- */

/* A set is a quorum when in more than half of the groups it has more than half of the weight.  Who
 * weighs nothing learns, and has no vote. */
struct raft_member {
    uint8_t id; /* from 1 */
    uint8_t group;
    uint16_t weight;
};

struct raft_config {
    uint64_t mark; /* of the whole of it, addresses and all, as the owner has it: a hash */
    uint32_t count;
    uint32_t reserved;
    struct raft_member at[RAFT_MEMBERS_MAX]; /* in the order of ids */
};

/* ---- Messages ---- */

enum raft_type {
    RAFT_VOTE = 1, /* may I lead?  index, index_term: the last entry that I have */
    RAFT_VOTED,    /* the answer */
    RAFT_APPEND,   /* entries behind index, which is of index_term */
    RAFT_APPENDED, /* index: what I have as you do, and durable */
    RAFT_CHUNK,    /* a part of a snapshot up to index; the rest is the owners' affair */
    RAFT_CHUNKED,  /* the answer, theirs too */
    RAFT_CAMPAIGN, /* lead in my stead */
    RAFT_TYPES
};

enum {                       /* flags */
       RAFT_PRE = 1,         /* vote: only asks; voted: answers that */
       RAFT_GRANTED = 2,     /* voted */
       RAFT_HANDED_OVER = 4, /* vote: the leader itself asked me to */
       RAFT_REJECTED = 8, /* appended: index is where we may agree, other the one I do not have */
       RAFT_LEASED = 16,  /* append: I answer reads for as long as you promise to wait */
       RAFT_NEWS = 32,    /* append: nothing but what is decided; it needs no answer */
};

struct raft_message {
    uint64_t term; /* the sender's own */
    uint64_t index, index_term;
    uint64_t other;        /* append: what is decided; appended and rejected: what was asked for */
    uint64_t pledge;       /* append: what is decided as soon as you have it, durable */
    uint64_t entries_term; /* of all entries in it */
    uint64_t round;        /* append: the leader's; appended: the one that is answered */
    uint32_t count;        /* of entries */
    uint8_t type, flags, from, to;
    uint8_t kind; /* of the entries: enum raft_kind */
    uint8_t reserved[7];
};

/* ---- The state ---- */

enum raft_role {
    RAFT_FOLLOWER,
    RAFT_SOUNDING, /* asks whether it would be elected, and changes nothing yet */
    RAFT_CANDIDATE,
    RAFT_LEADER,
};

enum raft_mode {                /* how a leader sends to a member */
                 RAFT_PROBE,    /* one message at a time, until it is clear where the logs agree */
                 RAFT_STREAM,   /* without waiting for answers */
                 RAFT_SNAPSHOT, /* nothing: it needs entries that are no longer there */
};

enum raft_ballot { RAFT_UNSAID, RAFT_YES, RAFT_NO };

struct raft_peer {   /* what is known of a member */
    uint64_t match;  /* up to here its log is as ours, and durable */
    uint64_t next;   /* to be sent */
    uint64_t told;   /* it has been told that all up to here is decided */
    uint64_t pledge; /* and that all up to here is, once it has it */
    uint64_t round;  /* the newest that it has answered */
    uint8_t mode;    /* enum raft_mode */
    uint8_t ballot;  /* enum raft_ballot */
    uint8_t due;     /* it is to hear from us, even if there is no news */
    uint8_t waiting; /* probing: an answer is awaited */
    uint8_t heard;   /* since the quorum was last looked at */
    uint8_t reserved[3];
};

struct raft_run { /* entries of one term, up to where the next run begins */
    uint64_t first, term;
};

struct raft {
    uint64_t term;
    uint64_t base, base_term; /* entries up to here are only in a snapshot */
    uint64_t last, saved;     /* of the log; of what is durable of it */
    uint64_t committed;
    uint64_t agreed;     /* up to here the log is the leader's of this term */
    uint64_t term_first; /* of a leader: the first entry of its term */
    uint64_t round;      /* of a leader: the newest that it began; else: the newest heard of */
    uint64_t confirmed;  /* of a leader: the newest that a quorum has answered */
    uint64_t pledge; /* of a leader: the most that it gave to anybody; else: what it was given */
    uint64_t config_index, former_index; /* entries that brought them */
    struct raft_config config, former;   /* in force; what it was before, should it be taken back */
    struct raft_peer peer[RAFT_MEMBERS_MAX]; /* as in config */
    struct raft_run run[RAFT_RUNS_MAX];
    uint32_t runs;
    uint8_t self, vote, leader; /* 0: nobody */
    uint8_t role;               /* enum raft_role */
    uint8_t silent;             /* no leader has been heard for long enough: it may be voted out */
    uint8_t leased;             /* the leader relies on our patience */
    uint8_t heir;               /* of a leader: to whom it hands over */
    uint8_t lease_void;         /* of a leader: in this term somebody may lead without waiting */
    uint8_t leases;             /* a setting, from raft_open on: when leading, rely on leases */
    uint8_t reserved[3];
};

/* ---- Effects ---- */

enum raft_wait {
    RAFT_AS_IT_WAS,
    RAFT_WAIT_SILENCE, /* a fixed time, the same everywhere: a leader that lives is heard in it */
    RAFT_WAIT_TURN,    /* a short random time, so that not all stand up at once */
};

enum { RAFT_OUT_MAX = RAFT_MEMBERS_MAX + 2 };

struct raft_out {
    bool save_vote;      /* term and vote */
    bool take;           /* the entries of the message, from take_first on; they replace */
    uint64_t take_first; /* whatever the log has from there */
    bool add_config;     /* of a new leader: the config in force, as one entry: the last */
    bool chunk;          /* the message is a chunk, or the answer to one, and it is in order */
    uint8_t wait;        /* enum raft_wait: (re)start the timer whose end is raft_waited */
    uint32_t messages;
    struct raft_message message[RAFT_OUT_MAX];
};

/* ---- Beginning ---- */

/* All that was durable: the vote, then the snapshot that the state was read from (or 0, 0), then
 * the log behind it, batch by batch, with its configs.  Then raft_begin. */
void raft_open(struct raft *raft, uint8_t self, uint64_t term, uint8_t vote);
void raft_restore_base(struct raft *raft, uint64_t index, uint64_t term,
                       const struct raft_config *config);
void raft_restore(struct raft *raft, uint64_t first, uint32_t count, uint64_t term,
                  const struct raft_config *config);
/* `decided`: all up to there is known to be. */
void raft_begin(struct raft *raft, uint64_t decided, struct raft_out *out);

/* ---- Events ---- */

/* A message, with the config that it carries if its kind is RAFT_CONFIG (NULL otherwise).  Any
 * values are taken: what makes no sense is dropped, and false. */
bool raft_receive(struct raft *raft, const struct raft_message *message,
                  const struct raft_config *config, struct raft_out *out);
void raft_waited(struct raft *raft, struct raft_out *out); /* the timer has come to its end */
/* It is time to be heard: everybody gets a message of a new round, whose number is returned.  Of a
 * leader only; the owner calls it every so often, and for reads. */
uint64_t raft_beat(struct raft *raft);
/* Entries at the end of the log, put there by the leader's owner.  Returns the first one's index;
 * 0: not a leader, or one that is handing over. */
uint64_t raft_propose(struct raft *raft, uint32_t count);
/* The log is durable up to that entry. */
void raft_saved(struct raft *raft, uint64_t index, uint64_t term, struct raft_out *out);
void raft_lost(struct raft *raft, uint8_t id);  /* messages to it may have been lost */
void raft_found(struct raft *raft, uint8_t id); /* it can be reached again */
/* Its process has ended. */
void raft_gone(struct raft *raft, uint8_t id, struct raft_out *out);
/* Hand over to a member with a vote; false: not possible.  It is under way while raft.heir is. */
bool raft_transfer(struct raft *raft, uint8_t id, struct raft_out *out);

/* ---- What a leader sends ---- */

/* The message that is due for a member, with the most entries that it may carry in `count`, none of
 * them behind `last`; false: none.  The owner may carry fewer, says so in `count`, and then calls
 * raft_sent. */
bool raft_append_for(const struct raft *raft, uint8_t id, uint64_t last,
                     struct raft_message *message);
void raft_sent(struct raft *raft, const struct raft_message *message);

/* ---- Snapshots ---- */

/* The owner has forgotten entries up to index, all of them applied, and durable in some form.  The
 * base also moves by itself when there are too many runs, so a snapshot that a member is sent must
 * reach the base, whatever the owner still has. */
void raft_trimmed(struct raft *raft, uint64_t index);
/* A snapshot has come, and is durable and loaded: the log begins behind it.  False: it is older
 * than what is decided here. */
bool raft_installed(struct raft *raft, uint64_t index, uint64_t term,
                    const struct raft_config *config, struct raft_out *out);

/* ---- Members ---- */

enum raft_change {
    RAFT_CHANGED,
    RAFT_CHANGE_NOT_LEADER,
    RAFT_CHANGE_UNDER_WAY, /* another one, or the leader is too new: try again */
    RAFT_CHANGE_TOO_LARGE, /* more than one step, or there are groups */
    RAFT_CHANGE_BEHIND,    /* a learner gets its vote when it has caught up: try again */
    RAFT_CHANGE_NO_VOTER,  /* nobody would be left */
};

/* Two quorums of configs that are one step apart have a member in common.  A step adds or removes a
 * member without weight, or changes a weight by one, or nothing but the mark.  The entry is the
 * last of the log. */
enum raft_change raft_change(struct raft *raft, const struct raft_config *config);
/* The next config on the way from one to another; false: they have the same members. */
bool raft_step_toward(const struct raft_config *from, const struct raft_config *to,
                      struct raft_config *next);
bool raft_config_is_sound(const struct raft_config *config);
const struct raft_member *raft_member(const struct raft_config *config, uint8_t id); /* or NULL */
bool raft_has_vote(const struct raft_config *config, uint8_t id);
bool raft_is_quorum(const struct raft_config *config, uint32_t set); /* bits by place */

/* ---- Looking ---- */

uint64_t raft_term_of(const struct raft *raft, uint64_t index);         /* from base to last */
const struct raft_peer *raft_peer(const struct raft *raft, uint8_t id); /* or NULL */
/* What a member is known to take for decided. */
uint64_t raft_peer_decided(const struct raft_peer *peer);
/* The voter that has most of the log, to hand over to; 0: there is none. */
uint8_t raft_best_heir(const struct raft *raft);
/* Whether reads may be answered from what is applied, once that reaches the read index: the leader
 * knows all that was decided before it. */
static inline bool raft_may_read(const struct raft *raft) {
    return raft->role == RAFT_LEADER && raft->committed >= raft->term_first;
}
/* All that anybody may take for decided by now: who was given a pledge may know before the leader
 * does. */
uint64_t raft_read_index(const struct raft *raft);
static inline bool raft_has_lease(const struct raft *raft) {
    return raft_may_read(raft) && raft->leases && !raft->lease_void;
}

/* ---- Between the files ---- */

int raft_place(const struct raft_config *config, uint8_t id); /* -1: not a member */
struct raft_message *raft_add_message(struct raft *raft, struct raft_out *out, enum raft_type type,
                                      uint8_t to);
/* Whether there is for an entry of that term in that place, with what is before it: runs are
 * counted. */
bool raft_has_room(const struct raft *raft, uint64_t first, uint64_t term);
/* Lengthens the log by entries of a term; false: there is no room. */
bool raft_extend(struct raft *raft, uint32_t count, uint64_t term);
void raft_truncate(struct raft *raft, uint64_t last);
void raft_set_base(struct raft *raft, uint64_t index);
void raft_take_config(struct raft *raft, uint64_t index, const struct raft_config *config);
void raft_follow(struct raft *raft, uint64_t term, uint8_t leader, struct raft_out *out);
/* A leader has been heard. */
void raft_hear(struct raft *raft, const struct raft_message *m, struct raft_out *out);
void raft_vote(struct raft *raft, const struct raft_message *m, struct raft_out *out);
void raft_voted(struct raft *raft, const struct raft_message *m, struct raft_out *out);
void raft_campaign(struct raft *raft, bool handed_over, struct raft_out *out);
void raft_hand_over(struct raft *raft, struct raft_out *out);
bool raft_append(struct raft *raft, const struct raft_message *m, const struct raft_config *config,
                 struct raft_out *out);
bool raft_appended(struct raft *raft, const struct raft_message *m, struct raft_out *out);
void raft_chunk(struct raft *raft, const struct raft_message *m, struct raft_out *out);
void raft_decide(struct raft *raft, struct raft_out *out);
void raft_check(const struct raft *raft);

#endif
