/* What a laboratory is made of. */
#ifndef CV_LAB_RAFT_LAB_H
#define CV_LAB_RAFT_LAB_H

#include "base/rng.h"
#include "base/table.h"
#include "lab/raft/raftlab.h"
#include "raft/raft.h"

enum {
    LAB_NODES_MAX = 8,
    LAB_BATCH_MAX = 8,  /* entries of a message */
    LAB_WRITE_MAX = 64, /* entries that one write takes to the disk */
    LAB_READS_MAX = 8,
    LAB_ROUNDS = 256, /* whose beginnings are remembered */
};
enum { /* microseconds */
       MS = 1000,
       ELECTION_TIMEOUT = 500 * MS,
       ELECTION_JITTER = 150 * MS,
       HEARTBEAT_INTERVAL = 50 * MS,
       LEASE_MARGIN = 20 * MS,
};

struct lab_entry {
    uint64_t term, value;
    uint32_t config; /* its number; 0: it is none */
};

struct lab_log { /* entries from 1 on; what is in a snapshot is not looked at */
    struct lab_entry *at;
    size_t room;
    uint64_t last;
};

/* ---- The disk ---- */

struct lab_snapshot {
    uint64_t index, term;
    uint32_t config;
};

struct lab_write { /* under way */
    bool busy;
    uint64_t first, committed;
    uint32_t count, batches;
    uint32_t end[LAB_WRITE_MAX]; /* of each batch, which is there as a whole or not at all */
    struct lab_entry entry[LAB_WRITE_MAX];
};

struct lab_disk { /* what a crash leaves */
    uint64_t term, committed;
    uint8_t vote;
    struct lab_snapshot snapshot;
    struct lab_log log;
    struct lab_write write;
};

/* ---- Nodes ---- */

struct lab_read {
    uint64_t round, index; /* it is answered from the state at index, when the round is confirmed */
    uint64_t term, floor;  /* the highest commit index anywhere when it began */
};

enum lab_state { LAB_DOWN, LAB_UP, LAB_DAMAGED };

struct lab_node {
    struct raft raft;
    struct lab_log log; /* as it is in memory */
    struct lab_disk disk;
    enum lab_state state;
    uint32_t incarnation, timer; /* events of an older one are dropped */
    double rate;                 /* of its clock */
    uint64_t judged;             /* what is committed has been looked at up to here */
    uint64_t disk_us;            /* what a write takes; 0: it does not come to its end */
    uint64_t round_at[LAB_ROUNDS];
    struct lab_read read[LAB_READS_MAX];
    uint32_t reads;
};

/* ---- Events ---- */

enum lab_event_type {
    LAB_MESSAGE,
    LAB_TIMER,
    LAB_HEARTBEAT,
    LAB_DURABLE,
    LAB_START,
    LAB_INSTALL,
    LAB_TICK
};

struct lab_event {
    uint8_t type, node;
    uint32_t incarnation, timer;
    uint32_t next_free;
    struct raft_message message;
    uint32_t config; /* of a message's entry, or of a snapshot */
    struct lab_entry entry[LAB_BATCH_MAX];
};

struct lab_key {
    uint64_t time, sequence;
    uint32_t event;
};

struct lab {
    struct rng rng;
    uint64_t now, sequence;
    struct lab_key *heap;
    size_t pending, heap_room;
    struct lab_event *event;
    size_t events, event_room;
    uint32_t free_event;

    uint32_t nodes;
    struct lab_node node[LAB_NODES_MAX + 1];        /* by id */
    bool cut[LAB_NODES_MAX + 1][LAB_NODES_MAX + 1]; /* from, to */
    struct raft_config *config;                     /* all that ever were, by number from 1 */
    size_t configs, config_room;
    uint64_t values;

    struct {                       /* what goes wrong by itself */
        double loss, twice, crash; /* crash: at every step between effects */
        uint64_t delay_us;
    } chance;
    bool leases;
    bool mute;    /* no leader is heard */
    bool ordered; /* messages from one to another arrive in order, as on a connection */
    uint64_t arrival[LAB_NODES_MAX + 1][LAB_NODES_MAX + 1]; /* of the last, if they do */
    bool still; /* timers and heartbeats only where a schedule asks for them */

    /* What the judges know. */
    struct lab_log committed;
    uint64_t *committed_in; /* in the term of which leader */
    size_t committed_room;
    uint8_t *leader_of; /* by term */
    size_t leader_room;
    struct table seen; /* entries by place and term: numbers of ... */
    struct lab_birth {
        uint64_t index, before_term;
        struct lab_entry entry;
    } * birth;
    size_t births, birth_room;

    FILE *trace;
    struct lab_result *result;
};

/* ---- queue.c ---- */

/* An event after that many microseconds, to be filled in. */
struct lab_event *lab_after(struct lab *lab, uint64_t us, enum lab_event_type type, uint8_t node);
/* The next one, if it is not later than `until`; it is there until the next is added. */
struct lab_event *lab_next(struct lab *lab, uint64_t until);

/* ---- disk.c ---- */

struct lab_entry *lab_entry(struct lab_log *log, uint64_t index);       /* with room for it */
uint32_t lab_config(struct lab *lab, const struct raft_config *config); /* its number */
void lab_write(struct lab *lab, struct lab_node *node);                 /* what is to be */
void lab_written(struct lab_node *node);
bool lab_is_durable(const struct lab_node *node, uint64_t index, uint64_t term);
void lab_store_snapshot(struct lab_node *node, struct lab_snapshot snapshot);
void lab_crash(struct lab *lab, struct lab_node *node);
void lab_start(struct lab *lab, struct lab_node *node);

/* ---- node.c ---- */

void lab_open(struct lab *lab, uint64_t seed, const struct raft_config *config, FILE *trace,
              struct lab_result *result);
void lab_close(struct lab *lab);
/* One more, with an empty disk, that knows of those members. */
struct lab_node *lab_add_node(struct lab *lab, const struct raft_config *config);
void lab_perform(struct lab *lab, struct lab_node *node, const struct raft_out *out,
                 const struct lab_event *event);
/* What an owner does after every event: disk, replication, reads. */
void lab_advance(struct lab *lab, struct lab_node *node);
void lab_handle(struct lab *lab, struct lab_event *event);
void lab_fire_timer(struct lab *lab, struct lab_node *node);
void lab_heartbeat(struct lab *lab, struct lab_node *node);
bool lab_propose(struct lab *lab, struct lab_node *node, uint32_t count);
enum raft_change lab_change(struct lab *lab, struct lab_node *node,
                            const struct raft_config *config);
void lab_transfer(struct lab *lab, struct lab_node *node, uint8_t to);
void lab_peer_down(struct lab *lab, struct lab_node *node, uint8_t id);
void lab_snapshot(struct lab *lab, struct lab_node *node, uint64_t kept);
void lab_read(struct lab *lab, struct lab_node *node);
bool lab_lease_read(struct lab *lab, struct lab_node *node); /* false: it may not */
struct lab_node *lab_leader(struct lab *lab);                /* of the newest term, or NULL */

static inline uint8_t lab_id(const struct lab *lab, const struct lab_node *node) {
    return (uint8_t)(node - lab->node);
}

/* ---- text.c ---- */

/* Fields that are 0 are left out. */
const char *lab_message_text(const struct raft_message *m, char text[LAB_TEXT_MAX]);

/* ---- judge.c ---- */

void lab_broken(struct lab *lab, const char *format, ...) __attribute__((format(printf, 2, 3)));
static inline bool lab_is_over(const struct lab *lab) { return lab->result->broken[0]; }
void lab_judge(struct lab *lab, struct lab_node *node);
void lab_judge_message(struct lab *lab, struct lab_node *node, const struct raft_message *m);
/* An entry has come into a log. */
void lab_judge_entry(struct lab *lab, struct lab_node *node, uint64_t index);
void lab_judge_read(struct lab *lab, struct lab_node *node, uint64_t index, uint64_t floor,
                    const char *how);
/* Into the hash, and the trace if there is one. */
void lab_note(struct lab *lab, uint8_t node, uint64_t what, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

#endif
