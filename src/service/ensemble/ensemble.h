/* This server's part in the ensemble: a log of entries that all members apply to their trees in the
 * same order.  A server alone is an ensemble of one.
 *
 * The owner (the server) proposes entries on behalf of its clients and gets back, through its
 * callbacks, every entry that is committed.  This folder calls nothing above it but these.
 *
 *   ensemble.c     the loop iteration, leadership, effects of the core, start and end
 *   outbox.c       what was proposed here and is not applied
 *   replication.c  what the leader sends to whom, and when; forwarding to the leader
 *   peers.c        frames from other servers; links and addresses
 *   codec.h        the form of those frames
 *   disk.c         writing the log: at once or by a thread; group commit
 *   snapshots.c    starting from files; taking snapshots; retention
 *   install.c      InstallSnapshot: snapshots from and to other servers
 *   mend.c         damaged files are mended by other servers, before this one takes part
 *   mend_help.c    what this server has of what another has lost
 *   read_index.c   linearizable reads
 *   members.c      the configuration as text and as the core has it
 *   change.c       membership changes; change_request.c: those that are asked for
 *   leaving.c      servers that have left, and still have clients
 *   report.c       figures of replication, and what they are made of
 *
 * An entry that was proposed stays in the outbox, under a sequence number, until it is applied.  A
 * new leader is given the whole outbox again; the tree knows the sequence numbers of each server,
 * so what is committed twice takes effect once.  Clients notice nothing of it. */
#ifndef CV_SERVICE_ENSEMBLE_ENSEMBLE_H
#define CV_SERVICE_ENSEMBLE_ENSEMBLE_H

#include <uv.h>

#include "base/busy.h"
#include "base/clock.h"
#include "base/summary.h"
#include "raft/raft.h"
#include "service/settings/settings.h"
#include "service/tree/tree.h"

struct ensemble;

enum {
    ENSEMBLE_LEADERLESS_TIMES = 4, /* of the election timeout: clients are kept without a leader */
    ENSEMBLE_EXIT_FAILED = 3,      /* exit status: a disk, the network or a key failed */
};

/* ---- What the ensemble calls ---- */

enum ensemble_event {
    ENSEMBLE_ELECTED,      /* this server leads from now on */
    ENSEMBLE_LEADER_KNOWN, /* there is a leader that can be reached, after there was none */
    ENSEMBLE_REMOVED,      /* this server is no longer a member */
};

enum ensemble_applied {
    ENSEMBLE_APPLIED,
    ENSEMBLE_UNFINISHED, /* the tree is between the states before and after the entry */
    ENSEMBLE_LATER,      /* nothing of it is applied */
};

struct ensemble_callbacks {
    /* There is work for the end of this loop iteration: call ensemble_advance then. */
    void (*wake)(void *owner);
    /* The next committed entry.  The owner applies it, and unless it is out of sequence calls
     * ensemble_take_proposal: the outbox keeps what was proposed here until then.  Unless it is
     * applied now, it is the next one again at the next call of ensemble_advance. */
    enum ensemble_applied (*apply)(void *owner, const struct raft_entry *entry);
    /* Nothing more is applied for now: answers can be sent, before a disk is waited for. */
    void (*flush)(void *owner);
    void (*leader_changed)(void *owner, enum ensemble_event event);
    /* The tree was replaced by a snapshot of the leader: the owner's clients have missed entries.
     */
    void (*snapshot_installed)(void *owner);
    /* A configuration is committed and in the tree. */
    void (*members_changed)(void *owner);
    void (*read_index_reached)(void *owner); /* see ensemble_read_index_reached */
    /* Another server, for which this one leads, has heard from that session. */
    void (*session_touched)(void *owner, int64_t session);
};

struct ensemble_config {
    const struct settings *settings;
    uv_loop_t *loop;
    struct clock *clock; /* shared with the owner; both read it when an event arrives */
    struct busy *busy;   /* shared too */
    struct tree *tree;   /* empty; it is filled from the files */
    void *owner;
    const struct ensemble_callbacks *callbacks;
    size_t memory_max; /* bytes, at first; see ensemble_limit_memory */
};

/* ---- Start and end ---- */

/* Reads the data directory into the tree and opens the links.  *status: 0, or an exit status whose
 * reason is logged; then only ensemble_end_links and ensemble_free may follow. */
struct ensemble *ensemble_open(const struct ensemble_config *config, int *status);
void ensemble_start(struct ensemble *ensemble);
/* From now on entries are written at once; then links end.  The loop runs on afterwards. */
void ensemble_drain(struct ensemble *ensemble);
void ensemble_end_links(struct ensemble *ensemble);
void ensemble_free(struct ensemble *ensemble); /* after the loop */

/* The key or the certificate between servers was replaced: links that begin from now on use what is
 * there.  False: it cannot be used, which is logged, and the one before stays. */
bool ensemble_reload_credentials(struct ensemble *ensemble);
/* When the certificate between servers expires, in seconds since 1970; 0: there is none. */
int64_t ensemble_certificate_expiry(const struct ensemble *ensemble);

/* ---- Proposals ---- */

struct proposal { /* the owner's: whom to answer when the entry is applied */
    uint32_t connection, serial;
    int32_t xid, op;
    uint64_t proposed_us;
};

/* The incarnation and the sequence number are filled in. */
void ensemble_propose(struct ensemble *ensemble, struct tree_entry *entry,
                      const struct proposal *proposal);
/* Called by `apply`: whether the entry was proposed here, and by whom. */
bool ensemble_take_proposal(struct ensemble *ensemble, const struct tree_entry *entry,
                            struct proposal *proposal);
uint64_t
ensemble_committed(const struct ensemble *ensemble); /* the index of the last entry that is */
uint64_t ensemble_applied(const struct ensemble *ensemble);
size_t ensemble_pending(const struct ensemble *ensemble); /* proposed and not applied */
/* Backpressure: whether the outbox has no room for more. */
bool ensemble_is_full(const struct ensemble *ensemble);

/* How much memory entries may take, apart from a single one that is larger: those that wait, and
 * those that are kept for members that lag.  What a leader sends must be taken all the same. */
void ensemble_limit_memory(struct ensemble *ensemble, size_t bytes);
size_t ensemble_memory(const struct ensemble *ensemble); /* that they take */
/* Whatever is written here all members have to keep, so each tells the others that its memory is
 * short, and hears it of them. */
void ensemble_tell_memory(struct ensemble *ensemble, bool is_short);
bool ensemble_memory_is_short(const struct ensemble *ensemble); /* of another member */

/* ---- The end of a loop iteration ---- */

/* The group commit delay: whether to wait for more proposals before the disk is asked.  Clients
 * that were just served reads are likely to write next (that is how a lock changes hands), and a
 * shared write to the disk is worth half a wait. */
bool ensemble_delays_commit(struct ensemble *ensemble, bool served_reads);
/* Does all that can be done now: replicates, writes, applies. */
void ensemble_advance(struct ensemble *ensemble);
bool ensemble_has_work(const struct ensemble *ensemble);
/* A few times a second: sessions that were heard from here are reported to the leader. */
void ensemble_touch_sessions(struct ensemble *ensemble, const int64_t *sessions, size_t count);
/* For how long no report is known to have reached a leader. */
uint64_t ensemble_out_of_touch_us(const struct ensemble *ensemble);
/* The child that writes a snapshot; 0: there is none. */
int ensemble_snapshot_process(const struct ensemble *ensemble);
/* A child process has ended; it may be the one that writes a snapshot. */
void ensemble_child_ended(struct ensemble *ensemble);

/* ---- Leadership ---- */

bool ensemble_is_standalone(const struct ensemble *ensemble);
uint64_t ensemble_term(const struct ensemble *ensemble);
bool ensemble_leads(const struct ensemble *ensemble);
/* It has applied what it had on its disk at the start. */
bool ensemble_is_restored(const struct ensemble *ensemble);
/* There has been no leader for too long: reads may be old, and nothing can be written. */
bool ensemble_is_leaderless(const struct ensemble *ensemble);
/* To the member with the longest log. */
void ensemble_transfer_leadership(struct ensemble *ensemble);
bool ensemble_is_writing(const struct ensemble *ensemble); /* a thread writes the log */

/* ---- Linearizable reads ---- */

/* For reads that have arrived by now.  They may be served when the read index of the request, whose
 * number is returned, is reached. */
uint64_t ensemble_request_read_index(struct ensemble *ensemble);
bool ensemble_read_index_reached(const struct ensemble *ensemble, uint64_t number);

/* ---- Members ---- */

/* A reconfig request was applied to the tree, which has the target of the change now. */
void ensemble_change_applied(struct ensemble *ensemble, const struct tree_entry *entry);
/* Whether the clients that asked for a change are to be answered, with *error. */
bool ensemble_change_ended(const struct ensemble *ensemble, int32_t *error);
/* An operator's command: add N=HOST:PORT, remove N, weight N=W, transfer N.  False: `why`. */
bool ensemble_command(struct ensemble *ensemble, const char *verb, const char *argument, char *why,
                      size_t size);

/* ---- Reports ---- */

struct ensemble_statistics {
    struct summary syncs, snapshots; /* microseconds */
    struct summary commits;          /* of a leader: from the log's end to the commit index */
    struct summary leaderless;       /* until a leader could be reached again */
    struct tally proposal_sizes;     /* bytes; of a leader */
    uint64_t elections, elections_won, leader_changes;
    uint64_t transfers, transfers_done; /* of leadership, by this server */
    uint64_t snapshots_sent, snapshots_installed;
    uint64_t proposals, log_bytes, slow_syncs, snapshots_failed, snapshots_damaged;
    uint64_t frames_refused;                   /* from other servers */
    uint64_t mended_entries, mended_snapshots; /* that others brought back, see mend.c */
    uint64_t helped_entries;                   /* that others got from here to mend theirs */
};

enum { ENSEMBLE_DAMAGE_MAX = 512 };

struct ensemble_mending {    /* of damaged files, by the other members */
    bool active;             /* this server takes no part until it is over */
    uint64_t lacking;        /* entries that are still lost, and ... */
    uint64_t first, last;    /* ... the first of them */
    uint64_t mended;         /* entries that were brought back so far */
    uint8_t from;            /* the server that the last came from; 0: none has */
    uint64_t snapshot_index; /* of a snapshot that is on its way; 0: none */
    char damage[ENSEMBLE_DAMAGE_MAX];
};

struct ensemble_status {
    const struct raft *raft;
    uint64_t applied_index, snapshot_index; /* snapshot_index: of the newest one */
    uint64_t snapshot_in_progress;          /* its index; 0: none is being written */
    bool changing;                          /* a membership change is in progress */
    uint64_t changes_refused;               /* membership changes that were given up ... */
    const char *refusal;                    /* ... and why the last of them was */
    bool removed;                           /* this server is no longer a member */
    bool founding;                          /* it has no data, and waits for the other voters ... */
    uint8_t founded_by;    /* nothing is founded, because this server has data; 0: none has */
    uint32_t founding_set; /* ... of these, one bit per slot of the configuration */
    struct ensemble_mending mending;
    int data_directory, log_directory; /* descriptors */
};

/* Another member, as a leader knows it. */
struct ensemble_member {
    bool linked, synced;             /* synced: it gets entries as they come, and is heard */
    uint64_t lag_entries, lag_bytes; /* not known to be on its disk; bytes: of those in memory */
    uint64_t heard_us;               /* when it was heard last in this term; 0: never */
};

/* From then on that server led, in that term; 0: nobody was known to. */
struct ensemble_election {
    int64_t at_ms; /* since 1970 */
    uint64_t term;
    uint8_t leader;
};
enum { ENSEMBLE_ELECTIONS_KEPT = 64 };

struct ensemble_snapshot { /* the newest on disk */
    uint64_t index, bytes; /* 0: there is none */
    int64_t zxid;          /* of its last entry */
    int64_t written_s;     /* since 1970 */
};

struct ensemble_status ensemble_status(const struct ensemble *ensemble);
struct ensemble_member ensemble_member(const struct ensemble *ensemble, uint8_t id);
struct ensemble_snapshot ensemble_snapshot(const struct ensemble *ensemble);
/* The changes of the leader that this server has seen, of the last some: the i-th of them, from the
 * oldest on; NULL after the last. */
const struct ensemble_election *ensemble_election(const struct ensemble *ensemble, uint32_t i);
uint64_t ensemble_leading_us(const struct ensemble *ensemble);    /* for how long; 0: it does not */
uint64_t ensemble_leaderless_us(const struct ensemble *ensemble); /* for how long */
uint32_t ensemble_reads_pending(const struct ensemble *ensemble); /* of a leader: unconfirmed */
const struct ensemble_statistics *ensemble_statistics(const struct ensemble *ensemble);
void ensemble_reset_statistics(struct ensemble *ensemble);
void ensemble_age_statistics(struct ensemble *ensemble); /* once per period of the summaries */
bool ensemble_is_linked(const struct ensemble *ensemble, uint8_t id);
/* Why there is no link to that server, or why its own was refused; NULL: neither is so. */
const char *ensemble_link_problem(const struct ensemble *ensemble, uint8_t id);
/* The configuration in force; and, while there is a change, the target. */
void ensemble_members(const struct ensemble *ensemble, struct member_list *members);
bool ensemble_target_members(const struct ensemble *ensemble, struct member_list *members);

#endif
