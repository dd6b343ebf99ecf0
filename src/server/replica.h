/* This server's part in the ensemble: the consensus core with what it leaves to its owner, which
 * are the bytes of entries, files, timers and links.  A server alone is an ensemble of one.
 *
 *   replica.c  the turn: what was put forward goes to the leader, entries go to the others and to
 *              the disk, and what is decided comes out in order
 *   peers.c    frames between servers
 *   fresh.c    reads that no write can be newer than
 *   members.c  who they are, as text and as the core knows them
 *   change.c   how they change
 *   install.c  snapshots from and to other servers
 *
 * What clients of this server ask for is numbered and kept in the outbox until it comes back
 * through the log.  Whenever there is a new leader, it is given all of the outbox once more; the
 * tree knows the numbers, and what comes a second time does nothing.  So a client need not know
 * that there was another leader. */
#ifndef CV_SERVER_REPLICA_H
#define CV_SERVER_REPLICA_H

#include "base/rng.h"
#include "net/link.h"
#include "raft/log.h"
#include "raft/raft.h"
#include "raft/vote.h"
#include "raft/window.h"
#include "server/settings.h"
#include "tree/tree.h"

struct server;

enum {
    REPLICA_SILENCE_MS = 500,     /* a leader that was not heard is taken for gone; see raft.h */
    REPLICA_LEADERLESS_MS = 2000, /* clients are kept for that long without a leader */
};

struct members {       /* as text, and hashed; those in force */
    struct bytes text; /* lines of a zoo.cfg */
    uint64_t mark;
};

struct goal {               /* of a change; see change.c */
    struct members members; /* what they are to be; empty: as they are */
    uint64_t step_us;       /* when there last was a step towards it */
    uint64_t term, said;    /* when it was last put forward; when this server did so again */
    bool is_old;            /* it was given up, or there has been another leader since */
    int32_t error;          /* how the last change ended */
};

enum { FRESH_ROUNDS = 64, FRESH_ASKED_MAX = 256 };

struct fresh_asked { /* of a leader: what is decided, who asks, and when the answer is certain */
    uint64_t number, index, term, round;
    uint8_t from;
};

struct fresh {             /* reads that are to be as new as any write before them; see fresh.c */
    uint64_t number, done; /* of questions to the leader: the last one, and the last answered */
    uint64_t index;        /* that its answer waits for */
    uint64_t asked_us, asked_term;
    bool wanted, answered; /* another question; an answer has come */
    bool round_due;        /* of a leader */
    uint32_t count;
    struct fresh_asked asked_by[FRESH_ASKED_MAX];
    uint64_t begun_us[FRESH_ROUNDS]; /* when rounds began */
};

struct came_from {         /* what a server has put forward in this term */
    uint64_t life, number; /* of its last entry: see struct tree_origin */
    uint64_t index;        /* that it has here */
    bool lost;             /* it was said that this server has lost its data */
};

struct replica {
    struct raft raft;
    struct window log;      /* entries that are not applied, and some before them, for others */
    struct window outbox;   /* what was put forward here and is not applied, by number */
    uint64_t life;          /* of this process: see struct tree_origin */
    uint64_t fed, fed_term; /* the leader of that term has been given numbers up to this */
    uint64_t fed_us;        /* when it was, or when one of them came back */
    uint64_t applied, applied_term;
    uint64_t base_term; /* at the start: of the entry before those in memory */
    struct vote vote;
    struct members members, former;
    struct goal goal;
    bool dismissed;      /* the leader said that this server is no member any more */
    struct links *links; /* NULL: alone */
    struct came_from came_from[SETTINGS_ID_MAX + 1]; /* of a leader: by server */
    uint64_t for_all; /* of a leader: the last entry that all others are to get at once */
    bool linked[SETTINGS_ID_MAX + 1], up[SETTINGS_ID_MAX + 1]; /* by server: set; ready */
    uint8_t leader_said;                                       /* in the log for people */
    uint64_t term_said;
    uint64_t leaderless_us; /* since when; 0: there is one, and it can be reached */
    uv_timer_t wait, beat, patience;
    uint64_t patient_for; /* that this is saved; of a leader: and decided */
    bool hurry;           /* that has taken too long */
    struct rng rng;
    struct install *install; /* snapshots on their way; NULL: none */
    struct fresh fresh;
};

/* ---- replica.c ---- */

int replica_open(struct server *server); /* 0, or an exit status; it has said why */
void replica_close(struct server *server);
void replica_start(struct server *server); /* the loop runs */
/* Puts an entry of this server forward: room for it, then its size. */
unsigned char *replica_room(struct server *server, size_t most);
void replica_propose(struct server *server, size_t size);
/* All that can be done now. */
void replica_turn(struct server *server);
/* Something waits for a turn. */
bool replica_has_work(const struct server *server);
bool replica_leads(const struct server *server);
/* Carries out what the core wants. */
void replica_perform(struct server *server, const struct raft_out *out);
/* An entry of the log, put forward by any server; of a leader. */
bool replica_lead_entry(struct server *server, const unsigned char *bytes, size_t size);
/* Something is left for later, and will not be left for long. */
void replica_be_patient(struct server *server);
void replica_hand_over(struct server *server);
/* The members in force become the last entry, which the core has counted already. */
void replica_add_members(struct server *server);
/* Everybody is to hear of the leader now. */
void replica_beat(struct server *server);
/* Whether a leader has room for more entries. */
bool replica_can_lead_more(const struct server *server);
/* There is another leader, or another way to it. */
void replica_note_leader(struct server *server);
/* There has been no leader for too long: what is read here may be old, and nothing can be written.
 */
bool replica_is_lost(const struct server *server);

/* ---- peers.c ---- */

int peers_open(struct server *server);
void peers_close(struct server *server);
void peers_send(struct server *server, const struct raft_message *message);
void peers_send_with(struct server *server, const struct raft_message *message, const void *bytes,
                     size_t size);
/* Entries and news for all members that can take more.  Urgent is what somebody waits for. */
void peers_replicate(struct server *server, bool urgent_only);
bool peers_can_forward(const struct server *server);
/* A part of the outbox; false: the leader can take no more now. */
bool peers_forward(struct server *server, const struct raft_batch *batch);
/* Sessions that were heard of here, to the leader. */
void peers_touch(struct server *server, const int64_t *sessions, size_t count);
void peers_flush(struct server *server);
/* Addresses as the members in force have them. */
bool peers_update(struct server *server); /* false: one of --ensemble cannot be used */

/* Asks the leader what is decided, and answers that. */
void peers_ask_fresh(struct server *server, uint64_t number);
void peers_answer_fresh(struct server *server, uint8_t to, uint64_t number, uint64_t index);

/* Asks the leader to hand over to a server. */
void peers_ask_transfer(struct server *server, uint8_t to);

/* ---- change.c ---- */

/* A request to change the members has been decided: ZK_OK or why it is not done. */
int32_t change_begin(struct server *server, struct zk_in body);
/* These members are decided. */
void change_applied(struct server *server, struct zk_text members);
void change_turn(struct server *server);
/* A leader speaks to a server again that had been removed. */
void change_readmitted(struct server *server);
bool change_is_under_way(const struct server *server);
/* Answers clients that asked for a change that is complete. */
void change_answer(struct server *server);
/* A person's command: add N=HOST:PORT, remove N, weight N=W, transfer N.  False: `why` says why
 * not.
 */
bool change_command(struct server *server, const char *verb, const char *argument, char *why,
                    size_t size);

/* ---- fresh.c ---- */

/* A number that a read waits for, which has come now; see fresh_is_done. */
uint64_t fresh_ticket(struct server *server);
bool fresh_is_done(const struct server *server, uint64_t ticket);
void fresh_turn(struct server *server);
bool fresh_has_work(const struct server *server);
void fresh_round_begun(struct server *server, uint64_t round);
void fresh_asked(struct server *server, uint8_t from, uint64_t number);
void fresh_answered(struct server *server, uint64_t number, uint64_t index);

/* ---- install.c ---- */

void install_turn(struct server *server);
bool install_is_sending(const struct server *server);
void install_message(struct server *server, const struct raft_message *message,
                     const unsigned char *bytes, size_t size);
void install_close(struct server *server);

/* ---- members.c ---- */

/* False: it is no list of members, and `why` says why. */
bool members_read(const unsigned char *text, size_t size, struct raft_config *config,
                  struct settings *settings, char *why, size_t why_size);
/* Those in force, as the core knows them; false: it has said what is wrong with them. */
bool members_in_force(struct server *server, struct raft_config *config);
/* Those that the tree has, as text; empty: none. */
struct zk_text members_text_of_tree(const struct server *server);
/* Those that the tree has, in force from now on; false: it has none that make sense. */
bool members_of_tree(struct server *server, struct raft_config *config);
void members_write(const struct settings *settings, struct bytes *text);
void members_set(struct members *members, const void *text, size_t size);
/* New members: those before them are kept, should the entry that brought these be replaced. */
void members_take(struct replica *replica, const void *text, size_t size);
/* The members that a batch of one such entry brings; false: it makes no sense. */
bool members_read_entry(const struct raft_batch *batch, struct raft_config *config,
                        struct zk_text *text);
bool members_take_entry(struct server *server, const struct raft_batch *batch,
                        struct raft_config *config);

#endif
