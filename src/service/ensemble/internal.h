/* What the files of the ensemble share. */
#ifndef CV_SERVICE_ENSEMBLE_INTERNAL_H
#define CV_SERVICE_ENSEMBLE_INTERNAL_H

#include "base/rng.h"
#include "service/ensemble/codec.h"
#include "service/ensemble/ensemble.h"
#include "service/log/spare.h"
#include "service/log/vote.h"
#include "service/log/window.h"
#include "service/steps/record.h"
#include "wire/net/link.h"

/* ---- Parts ---- */

struct outbox { /* proposals that are not applied, by sequence number */
    struct window entries;
    struct proposal *proposal; /* a ring, by sequence number; its room is a power of two */
    size_t room;
};

struct members {       /* a configuration */
    struct bytes text; /* lines of a dynamic configuration */
    uint64_t hash;
};

enum { CHANGE_REASON_MAX = 512 };

struct change {           /* of the members, to tree->target; see change.c */
    uint64_t progress_us; /* when the last step towards it was made */
    uint64_t term;        /* in which this leader took it up */
    uint64_t round;       /* members that respond to it count for the next step; 0: not begun */
    uint64_t blocked_us;  /* since when a step has no quorum; 0: all have */
    bool has_stepped;     /* towards it: that is committed */
    bool is_cancelled;    /* that is proposed, and not applied */
    bool is_noted;        /* its end is to be logged */
    bool is_undone;       /* it was given up, and the members become what they were */
    bool is_clients;      /* a client asked for it */
    bool may_have_left;   /* a configuration was applied; this server has not caught up since */
    int32_t error;        /* how the last change ended */
    uint64_t requested_index, requested_term; /* of a leader: the last request in its log */
    struct bytes target, before, origin; /* its own; that of the change before it, which goes on
                                            without it; and the members before all */
    uint64_t refused;                    /* how many were given up */
    char reason[CHANGE_REASON_MAX];      /* of the last of them */
};

enum { READ_INDEX_ROUNDS = 64, READ_INDEX_REQUESTS_MAX = 256 };

struct read_index_request { /* at a leader: it is answered when its round is confirmed */
    uint64_t number, index, term, round;
    uint8_t from;
};

struct read_index {           /* see read_index.c */
    uint64_t number, reached; /* of requests to the leader: the last, and the last reached */
    uint64_t index;           /* the answer to the last */
    uint64_t asked_us, asked_term;
    bool wanted, answered; /* another request is due; the last one has its answer */
    bool round_due;        /* of a leader */
    uint32_t count;
    struct read_index_request request[READ_INDEX_REQUESTS_MAX]; /* of a leader: not confirmed */
    uint64_t round_us[READ_INDEX_ROUNDS];                       /* when rounds began */
};

struct peer_state {     /* another server, by id */
    bool linked;        /* it has an address */
    bool up;            /* our link to it is ready */
    bool rejected;      /* the last attempt met a server that refused the link, or was refused */
    bool guest;         /* the configuration does not name it, but it introduced itself */
    bool introduced;    /* on the link that it has to us */
    bool blank;         /* it had no data when it introduced itself */
    uint64_t process;   /* the incarnation that its last hello named */
    uint64_t ensemble;  /* that its last hello named; 0: it does not know */
    uint64_t seen_us;   /* when that hello came, or when the link that it had to us ended */
    uint32_t directory; /* that its last hello named; 0: its version does not say */
    /* The configuration names another directory than that, and it has not shown that a newer one
     * names that: it is not believed. */
    bool doubted;
    uint64_t named_index;  /* it has applied up to there, and is named by that; 0: it is not */
    uint32_t refused;      /* a directory that was named before the one that is named now */
    uint64_t acknowledged; /* of a leader: by the process before; 0: nothing, or it has that */
    /* Of a leader: what this server has proposed in this term. */
    uint64_t incarnation, sequence; /* of its last entry: see struct tree_proposer */
    uint64_t index;                 /* of that entry in the log */
    uint64_t heard_us;              /* when its last message of this term was complete; 0: never */
    bool forwards_again; /* there was no room for what it has forwarded: it is told when there is */
    bool memory_is_short; /* as it says, on the link that it has to us */
    bool is_helped;       /* a thread reads what it has lost */
    /* It has left, and was sent what is committed up to here, in that round; 0: see leaving.c. */
    uint64_t left_index, left_round;
};

struct tidying { /* of files, by a thread; see tidy.c */
    uv_work_t work;
    bool running;
    enum tidy_kind { TIDY_NOTHING, TIDY_REMOVES, TIDY_PREPARES } kind; /* that runs, or was last */
    uint64_t base;      /* what is older than this snapshot goes */
    int data_directory; /* of the snapshots */
    const char *data_path;
    struct log_removal removal;
    struct spare_work spare;
};

struct disk { /* the files; see disk.c and snapshots.c */
    int data_directory, log_directory;
    struct log log;
    uv_work_t work;
    struct raft_batch batch; /* that is being written, or was last */
    struct bytes batch_copy; /* its bytes, while a thread has it */
    bool writing, failed;    /* writing: by a thread, which has the log until it is done */
    uint64_t write_us;       /* what the last write took */
    uint64_t delayed_entries, delayed_until_us; /* the group commit delay */
    struct tidying tidying;
};

struct snapshotting {
    int process;               /* 0: none is being written */
    uint64_t index, log_bytes; /* what it covers */
    uint64_t base_index;       /* an older one, which is read back meanwhile; 0: none */
    uint64_t begun_us;
    uint64_t last_us;                                 /* how long the last one took */
    uint64_t last_index, last_log_bytes, image_bytes; /* of the last one */
    int64_t zxid, last_zxid;                          /* of this one; of the last one */
    uint64_t retry_us;                                /* after a failure: none before then */
    uint64_t trim_index; /* older files than those of this snapshot can be removed; 0: none */
};

enum { REPORTS_KEPT = 16 };

struct contact { /* with the leader: reports of sessions, and what it has acknowledged */
    uint64_t number;
    uint64_t sent_us[REPORTS_KEPT]; /* by number */
    uint64_t last_us; /* when the newest report was sent that it is known to have received */
};

enum { COMMITS_TIMED = 256 };

struct timings { /* see report.c */
    struct timing {
        uint64_t index, us, entries; /* so many, the last of them that, were appended then */
    } appended[COMMITS_TIMED];       /* of a leader: a ring of those that are not committed */
    uint32_t first, count;
    struct ensemble_election election[ENSEMBLE_ELECTIONS_KEPT]; /* a ring too */
    uint64_t elections;                                         /* that were ever put there */
    uint64_t stood_term; /* the last term in which this server stood for election */
    uint64_t led_term;   /* ... and of which it has known the leader */
    uint8_t transferee;  /* whom it hands leadership to; 0: nobody */
};

struct ensemble {
    const struct settings *settings;
    uv_loop_t *loop;
    struct clock *clock;
    struct busy *busy;
    struct tree *tree;
    void *owner;
    const struct ensemble_callbacks *callbacks;

    struct raft raft;     /* its steps are taken through core.h */
    struct steps *record; /* of them; NULL: none */
    struct window log;    /* entries that are not applied, and some before them for other members */
    uint64_t log_start_term; /* at the start: the term of the entry before those in `log` */
    uint64_t applied_index, applied_term;
    bool unfinished;         /* the entry after applied_index is applied in part */
    uint64_t restored_index; /* the last one in the log at the start */
    struct contact contact;
    struct vote vote;
    struct disk disk;
    struct snapshotting snapshotting;

    size_t memory_max;      /* bytes; see ensemble_limit_memory */
    bool memory_is_short;   /* as the others were told */
    uint32_t short_members; /* that have said so themselves */
    bool forwards_again;    /* some peer */
    struct outbox outbox;
    uint64_t incarnation;                        /* of this process: see struct tree_proposer */
    uint64_t forwarded_sequence, forwarded_term; /* the leader of that term has it up to here */
    uint64_t forwarded_us; /* when it was forwarded, or when some of it was applied */

    struct members members, previous_members; /* in force, as raft.config; see members.c */
    uint64_t complete_hash; /* of a configuration that names all ids; see identity.c */
    /* What brought the first configuration: older snapshots have none.  UINT64_MAX: none yet. */
    uint64_t first_members_index;
    bool began_blank;        /* this process; see identity_found */
    bool is_named;           /* by the configuration that is committed, with its directory */
    uint64_t identity_index; /* the id of the ensemble in this entry is taken when it is durable */
    struct change change;
    bool removed;           /* the leader said that this server is no longer a member */
    uint64_t leader_commit; /* as it said last */

    bool standalone;     /* an ensemble of one, without links */
    struct links *links; /* NULL: standalone, or ended */
    struct tls *tls;     /* of the links; NULL: plain */
    struct peer_state peer[MEMBER_ID_MAX + 1];

    uint8_t known_leader; /* with its term: as the last change of leader was reported */
    uint64_t known_term;
    uint64_t leaderless_us; /* since when; 0: there is a leader, and it can be reached */
    uint64_t leading_us;    /* since when this server leads, if it does */
    uv_timer_t election_timer, heartbeat_timer, deferral_timer, mend_timer;
    uint64_t urgent_index;   /* of a leader: entries up to here go to all members at once */
    uint64_t deferred_index; /* entries up to here are deferred until the timer fires */
    bool deferral_over;
    struct rng rng;

    struct install *install;   /* a snapshot on its way to this server; NULL: none */
    struct catch_up *catch_up; /* entries and snapshots on their way to others; NULL: none */
    struct mend *mend;         /* this server's files are damaged, and it does not take part until
                                  they are mended; NULL: they are not */
    unsigned mended_in_vain;   /* so often, one after another: they were damaged again at once */
    struct read_index read_index;
    struct ensemble_statistics statistics;
    struct timings timings;
    bool draining;
};

static inline void ensemble_wake(struct ensemble *e) { e->callbacks->wake(e->owner); }

/* ---- ensemble.c ---- */

/* Carries out the effects of an event on the core; `payload` came with its message. */
struct message_payload {
    const struct raft_message *message;
    struct raft_batch batch; /* AppendEntries */
    struct zk_text members;  /* the text of a RAFT_CONFIG entry */
    struct zk_in chunk;      /* InstallSnapshot */
};
void ensemble_perform(struct ensemble *ensemble, const struct raft_out *out,
                      const struct message_payload *payload);
/* The configuration in force becomes the last entry, which the core has counted already. */
void ensemble_append_members(struct ensemble *ensemble);
void ensemble_heartbeat(struct ensemble *ensemble);
/* The files are others than those from which the server started: it starts anew with them. */
void ensemble_reopen(struct ensemble *ensemble);
/* The leader, or the link to it, has changed: notes whether there is one that can be reached. */
void ensemble_note_leader(struct ensemble *ensemble);
/* Appends what a server has proposed; false: this server does not lead, or is handing over. */
bool ensemble_append(struct ensemble *ensemble, const unsigned char *bytes, size_t size);

/* ---- room.c ---- */

bool ensemble_can_append(const struct ensemble *ensemble); /* backpressure */
/* Bytes of proposals that a follower has forwarded and that are not applied, unless one has more.
 */
enum { FORWARDED_MAX = 1 << 20 };
bool room_for_forwarded(const struct ensemble *ensemble);
bool room_for_received(const struct ensemble *ensemble); /* more of what the leader sends */
size_t room_in_flight(const struct ensemble *ensemble);  /* bytes, to each member */
size_t room_for_kept(const struct ensemble *ensemble);   /* bytes of applied entries */
void room_tell(struct ensemble *ensemble, uint8_t id);   /* whether memory is short here */
void room_heard(struct ensemble *ensemble, uint8_t from, bool is_short);
void room_ask_to_forward(struct ensemble *ensemble); /* what there was no room for */
void room_shrink(struct ensemble *ensemble); /* gives back what was needed once, and is too much */

/* ---- outbox.c ---- */

void outbox_open(struct outbox *outbox);
void outbox_close(struct outbox *outbox);
uint64_t outbox_add(struct outbox *outbox, const struct tree_entry *entry,
                    const struct proposal *proposal);
/* Removes all up to a sequence number; returns the proposal of the last. */
struct proposal outbox_remove(struct outbox *outbox, uint64_t sequence);
static inline uint64_t outbox_last(const struct outbox *outbox) {
    return window_last(&outbox->entries);
}
/* All up to here is applied. */
static inline uint64_t outbox_applied(const struct outbox *outbox) { return outbox->entries.after; }

/* ---- identity.c ---- */

enum { IDENTITY_VERSION = 4 }; /* of links: the first with ids of directories and introductions */

/* What of a directory's id hellos and configurations have. */
static inline uint32_t identity_of(uint64_t directory_id) {
    uint32_t half = (uint32_t)directory_id;
    return half ? half : 1;
}

/* Checks that the data is this server's, and whether it may vote; whether the log has a
 * configuration.  0, or the exit status. */
int identity_open(struct ensemble *ensemble, bool log_has_config);
/* The vote, to the term of what the log begins with. */
int identity_raise_term(struct ensemble *ensemble);
uint64_t identity_incarnation(const struct ensemble *ensemble); /* for links */
bool identity_is_expected(void *ensemble, uint64_t id, uint64_t of_ensemble, uint32_t directory);
void identity_introduce(struct ensemble *ensemble, uint8_t to);
void identity_gone(struct ensemble *ensemble, uint8_t id); /* its link to us has ended */
/* Of all that have said which directory they have, when the configuration is another. */
void identity_review(struct ensemble *ensemble);
/* Gives a server without data its vote, where an ensemble is founded. */
void identity_found(struct ensemble *ensemble);
/* Whether this server may come to do that: it has neither data nor a leader. */
bool identity_is_founding(const struct ensemble *ensemble);
/* Another server that has data of an ensemble; 0: none that counts was heard of. */
uint8_t identity_knows_data(const struct ensemble *ensemble);
/* The other voters that have not said that they have no data, one bit per slot. */
uint32_t identity_awaited(const struct ensemble *ensemble);
/* False: no server would send that. */
void identity_restarted(struct ensemble *ensemble, uint8_t id);
void identity_answered(struct ensemble *ensemble, const struct raft_message *message);
bool identity_introduced(struct ensemble *ensemble, uint8_t from, uint16_t version,
                         const struct frame_introduction *frame, struct zk_text host);
void identity_committed(struct ensemble *ensemble, struct zk_text members);
void identity_advance(struct ensemble *ensemble);
/* The configuration in force with ids that it does not have; false: it has all that are known. */
bool identity_record(struct ensemble *ensemble, struct bytes *text);
bool identity_is_complete(const struct ensemble *ensemble); /* it has all that there are */

/* ---- replication.c ---- */

/* Entries, heartbeats and commit notifications for the members that can take more.  Urgent is what
 * a client waits for. */
void replicate(struct ensemble *ensemble, bool urgent_only);
/* Starts the deferral, at the end of which entries that were left out are sent or written. */
void replicate_defer(struct ensemble *ensemble);
void forward_outbox(struct ensemble *ensemble);
bool forward_is_possible(const struct ensemble *ensemble);
/* Whether the leader and that server are a quorum. */
bool replicate_is_quorum_with(const struct ensemble *ensemble, uint8_t id);

/* ---- peers.c ---- */

/* As many entries as the batch says, each of them one that can be applied. */
bool peers_entries_are_applicable(const struct raft_batch *batch);

int peers_open(struct ensemble *ensemble);
void peers_send(struct ensemble *ensemble, const struct raft_message *message, const void *payload,
                size_t size);
void peers_flush(struct ensemble *ensemble);
/* Makes links follow the members in force; false: an address of the settings cannot be used. */
bool peers_update(struct ensemble *ensemble);
void peers_refuse(struct ensemble *ensemble, uint8_t id); /* its link ends; it dials again */
void peers_end_unanswered(struct ensemble *ensemble); /* so that they introduce themselves again */
void peers_dismiss(struct ensemble *ensemble, uint8_t id); /* it is told, and the link ends */
void peers_tell_removed(struct ensemble *ensemble); /* those with a link that are no members */
void peers_redial(struct ensemble *ensemble);       /* with what is known now in the hello */
void peers_ask_read_index(struct ensemble *ensemble, uint64_t number);
void peers_tell_memory(struct ensemble *ensemble, uint8_t to);
void peers_ask_to_forward(struct ensemble *ensemble, uint8_t to);
void peers_answer_read_index(struct ensemble *ensemble, uint8_t to, uint64_t number,
                             uint64_t index);
void peers_ask_transfer(struct ensemble *ensemble, uint8_t transferee);
/* A frame to a server, its fields written by the caller before peers_end; NULL: no link. */
struct bytes *peers_begin(struct ensemble *ensemble, uint8_t to, uint32_t type, enum link_lane lane,
                          uint16_t *version);
void peers_end(struct ensemble *ensemble, uint8_t to);

/* ---- disk.c ---- */

/* Writes entries that are not durable; true: some are durable now, and there may be more. */
bool disk_write(struct ensemble *ensemble);
bool disk_has_work(const struct ensemble *ensemble);

/* ---- tidy.c ---- */

/* Begins what is to be done, unless something still is being done. */
void tidy_advance(struct ensemble *ensemble);
/* Snapshots are being removed. */
static inline bool tidy_removes(const struct ensemble *e) {
    return e->disk.tidying.running && e->disk.tidying.kind == TIDY_REMOVES;
}
void tidy_drain(struct ensemble *ensemble); /* what runs need not go on */
void tidy_close(struct ensemble *ensemble); /* when nothing runs any more */

/* ---- snapshots.c ---- */

int snapshots_open(struct ensemble *ensemble); /* 0, or an exit status; the reason is logged */
void snapshots_close(struct ensemble *ensemble);
/* Begins a snapshot if one is due, or `now`. */
void snapshots_take(struct ensemble *ensemble, bool now);
/* The newest one turned out to be damaged: it is set aside, and another one is taken.  False: it
 * cannot be renamed, and is found again. */
bool snapshots_replace_damaged(struct ensemble *ensemble, uint64_t index, const char *reason);

/* 0, or -1; the reason is logged. */
int snapshots_restore(struct ensemble *ensemble);
int snapshots_withhold_vote(struct ensemble *ensemble, const char *why);

/* ---- mend.c ---- */

struct salvage;

/* Takes what is left of the log: this server is to be mended by the others. */
void mend_open(struct ensemble *ensemble, const struct salvage *salvage);
void mend_close(struct ensemble *ensemble);
void mend_start(struct ensemble *ensemble);
void mend_advance(struct ensemble *ensemble);
void mend_leader_heard(struct ensemble *ensemble, uint8_t leader, uint64_t term);
void mend_leader_confirmed(struct ensemble *ensemble, uint8_t leader, uint64_t number);
/* Each false: no server would send that. */
bool mend_answered(struct ensemble *ensemble, uint8_t from, const struct frame_mend_response *frame,
                   struct zk_in entries);
bool mend_chunk_received(struct ensemble *ensemble, uint8_t from,
                         const struct frame_mend_chunk *frame, struct zk_in bytes);
void mend_part_received(struct ensemble *ensemble, uint8_t from);
struct salvage *mend_salvage(struct ensemble *ensemble);
void mend_report(const struct ensemble *ensemble, struct ensemble_mending *report);

/* ---- mend_help.c ---- */

void mend_help(struct ensemble *ensemble, uint8_t to, const struct frame_mend_request *frame);
void mend_help_chunk(struct ensemble *ensemble, uint8_t to,
                     const struct frame_mend_chunk_request *frame);

/* ---- install.c ---- */

void install_receive(struct ensemble *ensemble, const struct raft_message *message,
                     struct zk_in chunk);
void install_advance(struct ensemble *ensemble); /* with what has been loaded */
void install_abandon(struct ensemble *ensemble); /* what is being loaded */
void install_close(struct ensemble *ensemble);

/* ---- catch_up.c ---- */

/* Of a leader: members that need entries which are no longer in memory get them from the log on
 * disk, or a snapshot. */
void catch_up_advance(struct ensemble *ensemble);
bool catch_up_is_active(const struct ensemble *ensemble);
/* An AppendEntries response, before the core gets it. */
void catch_up_answered(struct ensemble *ensemble, const struct raft_message *message);
void catch_up_chunk_answered(struct ensemble *ensemble, const struct raft_message *message);
void catch_up_link_up(struct ensemble *ensemble, uint8_t id); /* what was in flight is lost */
void catch_up_forget(struct ensemble *ensemble, uint8_t id);  /* it is no member any more */
void catch_up_close(struct ensemble *ensemble);

/* ---- read_index.c ---- */

void read_index_open(struct ensemble *ensemble);
void read_index_round_begun(struct ensemble *ensemble, uint64_t round);
void read_index_requested(struct ensemble *ensemble, uint8_t from, uint64_t number);
void read_index_answered(struct ensemble *ensemble, uint64_t number, uint64_t index);
void read_index_advance(struct ensemble *ensemble);
bool read_index_has_work(const struct ensemble *ensemble);

/* ---- leaving.c ---- */

/* A member is no longer one; false: it cannot be served on. */
bool leaving_begin(struct ensemble *ensemble, uint8_t id);
void leaving_advance(struct ensemble *ensemble);
/* Whether the message is the answer of one that has left. */
bool leaving_answered(struct ensemble *ensemble, const struct raft_message *message);

/* ---- members.c ---- */

/* False: the text is no configuration, and `why` says why. */
bool members_read(const void *text, size_t size, struct raft_config *config,
                  struct member_list *list, char *why, size_t why_size);
void members_set(struct members *members, const void *text, size_t size);
/* New members in force: the previous ones are kept for the case that their entry is replaced. */
void members_adopt(struct ensemble *ensemble, const void *text, size_t size);
/* From an entry that the core has taken already.  Where that replaces the entry of another
 * configuration, the core has gone back to the one before it first. */
void members_take(struct ensemble *ensemble, const void *text, size_t size);
/* The core went back to the previous configuration. */
void members_revert(struct ensemble *ensemble);
/* The configuration that a batch of one such entry brings; false: it makes no sense. */
bool members_read_entry(const struct raft_batch *batch, struct raft_config *config,
                        struct zk_text *text);
/* The configuration in force, as the core has it; false: what is wrong with it is logged. */
bool members_in_force(struct ensemble *ensemble, struct raft_config *config);
/* The committed configuration, which is the tree's; empty: there is none yet. */
struct zk_text members_committed(const struct ensemble *ensemble);
/* The version for clients of the configuration in force, if its entry does not bring a new one: the
 * first one has that of its epoch, and ids are no news.  0: it does. */
int64_t members_version(const struct ensemble *ensemble);
/* Adopts those that the tree has; false: it has none that make sense. */
bool members_adopt_committed(struct ensemble *ensemble, struct raft_config *config);

/* ---- report.c ---- */

/* The core has taken a step. */
void report_step(struct ensemble *ensemble);
void report_leader(struct ensemble *ensemble); /* it is another one, or nobody */
/* Of a leader: the last entry was appended; the commit index has moved. */
void report_appended(struct ensemble *ensemble, size_t size);
void report_committed(struct ensemble *ensemble);

/* ---- change.c ---- */

bool change_is_in_progress(const struct ensemble *ensemble);
void change_advance(struct ensemble *ensemble);
void change_close(struct ensemble *ensemble);
/* What a client's reconfig becomes in the log of a leader; false: the entry is no such request. */
bool change_judge(struct ensemble *ensemble, struct zk_in proposed, struct bytes *entry);
/* A configuration is committed and in the tree. */
void change_committed(struct ensemble *ensemble);
void change_removed(struct ensemble *ensemble); /* this server is no longer a member */
/* A leader speaks again to a server that had been removed. */
void change_readmitted(struct ensemble *ensemble);

#endif
