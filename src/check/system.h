/* What each process can do, worked out once.
 *
 * A process as the checker sees it is a node: what it remembers and what it was told (its local
 * part), and what is on the way to it.  Steps are pure, so what can happen to a process depends on
 * its node alone: for each node the outcomes are worked out when it is first met, and looked up
 * from then on.  A state of the whole system is the nodes of its processes and one word of budgets.
 */
#ifndef CV_CHECK_SYSTEM_H
#define CV_CHECK_SYSTEM_H

#include <pthread.h>

#include "check/check.h"
#include "check/pairs.h"
#include "check/pool.h"

/* ---- The parts of a node ---- */

enum local_phase { APP_IDLE, APP_WAITING, APP_INSIDE, APP_LEAVING };
enum { /* flags of a local part */
       LOCAL_DOWN = 1,
       LOCAL_DECIDED = 2, /* it has a leader */
       LOCAL_LEADS = 4,
       LOCAL_PENDING = 8,     /* its application is still to start an election */
       LOCAL_SUPERSEDED = 16, /* somebody who entered later has written to the resource */
};

struct local { /* followed by the state and the durable prefix of it that was saved */
    cv_pid self;
    uint8_t phase, entries, flags, timers; /* entries: that it may still ask for */
    uint32_t suspects;                     /* bit per process */
    uint32_t term;                         /* of its leader */
    cv_pid leader;
    uint32_t token; /* of its stay, with fencing: its number */
};

struct message {
    cv_pid from;
    uint16_t kind, size; /* of the body, which follows */
};
/* What the failure detector says travels like a message, in order, and is never lost. */
enum { KIND_DOWN = 0xfffe, KIND_UP = 0xffff };

enum { NODE_INBOX_MAX = 1000 };

struct node {
    cv_pid process;
    uint32_t local;
    uint32_t count;
    uint32_t inbox[NODE_INBOX_MAX + 1]; /* with FIFO by sender or subject, and age; else notices
                                           first, likewise, then messages by number */
};

/* Nodes are numbered process by process, and the number says which. */
enum { NODE_INDEX_BITS = 27 };
static inline cv_pid node_process(uint32_t node) { return node >> NODE_INDEX_BITS; }
static inline uint32_t node_index(uint32_t node) { return node & ((1u << NODE_INDEX_BITS) - 1); }

enum { /* what a state needs to know of a node at once */
       NODE_DOWN = 1,
       NODE_WAITING = 2,
       NODE_INSIDE = 4,
       NODE_LEADS = 8,
       NODE_UNDECIDED = 16, /* up, and without a leader */
       NODE_CALM = 32,      /* nothing is under way that must happen, but perhaps a timer */
       NODE_SETTLES = 64,   /* not calm, but may become so without anybody noticing */
       NODE_ARMED = 128,    /* a timer is set */
       NODE_PENDING = 256,  /* may start an election */
       NODE_NOTICED = 512,  /* a notice of the detector is on the way */
};

struct node_info {
    _Atomic uint32_t outcomes; /* where they are, when they are known; 0: not yet */
    uint32_t single;           /* likewise, of one event each */
    uint32_t flags;
};

/* ---- Outcomes ---- */

enum budget {
    NO_BUDGET,
    FOR_CRASH,
    FOR_LOSS,
    FOR_SUSPICION,
    FOR_LATE,
    FOR_TIMEOUT,
    FOR_CAMPAIGN,
    BUDGETS
};

enum { /* flags of an outcome: what the others have to know */
       OUT_ENTERED = 1,
       OUT_ELECTED = 2,
       OUT_WRITES = 4, /* it leaves, and writes to the resource before, with token `value` */
       OUT_CRASH = 8,
       OUT_RECOVER = 16,
       OUT_WRONG = 32,        /* it suspects `peer`, which must be up */
       OUT_QUIET = 64,        /* a timer: everybody must be calm, or it is late */
       OUT_LATE = 128,        /* a timer that fires although its own process is not calm */
       OUT_SETTLES = 256,     /* it becomes calm, unnoticed: for when all others can, too */
       OUT_SILENT = 512,      /* nobody can notice */
       OUT_BESIDE = 1024,     /* happens to what is on the way, not to the process */
       OUT_SUPERSEDED = 2048, /* it writes although somebody who entered later has written */
       OUT_STIRS = 4096,      /* it sets or cancels a timer */
};

struct outcome {
    uint32_t node;  /* of the process, afterwards */
    uint32_t value; /* token or term */
    uint32_t at;    /* its sends */
    uint16_t flags;
    uint8_t budget, peer;
    uint32_t sends, reserved;
};
_Static_assert(sizeof(struct outcome) % 8 == 0, "outcomes are kept in words of 8 bytes");

struct sending {
    uint32_t to, message;
};

struct single_move { /* of a path; several make up an outcome when steps are reduced */
    uint8_t type, arg, peer, choices;
    uint32_t message; /* that it took from the inbox */
    uint8_t choice[CHECK_CHOICES_MAX];
};

struct outcomes {
    uint32_t count, reserved;
    struct outcome of[];
};

/* ---- The system ---- */

struct place { /* of the parts of a local part, by process */
    uint32_t rows, durable;
    cv_pid first;
    uint32_t state_size; /* bytes */
    uint32_t saved;      /* where the saved prefix begins; 0: it is not kept */
    uint32_t size;       /* of all */
};

struct draft { /* an outcome while it is worked out */
    struct outcome outcome;
    uint32_t first_send;
    struct single_move move; /* the last of its moves */
    uint32_t hidden;         /* which of the hidden nodes it starts from */
};

struct drafts {
    struct draft *draft;
    struct sending *send;
    size_t count, sends, room, send_room;
};

struct renamings { /* of processes that nobody can tell apart; the first changes nothing */
    uint32_t count;
    cv_pid (*of)[CHECK_PROCESSES_MAX + 1]; /* by process */
};

enum { TOKENS_MAX = 64 };

struct system {
    const struct check_model *model;
    bool order; /* silent steps are taken with the next that is not */
    /* Where what has been published begins, which stays so: every thread reads these all the time,
     * so they share no cache line with anything that is written. */
    struct node_info *infos[CHECK_PROCESSES_MAX + 1]; /* by process */
    const unsigned char *words;
    _Alignas(64) pthread_mutex_t lock; /* of all below, but for what has been published */
    struct pool locals, messages;
    struct pool nodes[CHECK_PROCESSES_MAX + 1]; /* by process */
    struct arena info_arena[CHECK_PROCESSES_MAX + 1], word_arena;
    struct arena head_arena; /* heads of messages, by number */
    struct arena flag_arena; /* flags of a node with that local part and nothing on the way */
    struct pairs reactions;  /* (local part, message) -> where its outcomes are: see receive */
    struct pairs_block reaction_block;
    struct pairs memo;                      /* (node, what becomes of it) -> node */
    uint32_t many[CHECK_PROCESSES_MAX + 1]; /* so many nodes of a process make it crowded */
    atomic_bool crowded;                    /* it is: states must be written with wider numbers */
    struct place place[CHECK_PROCESSES_MAX + 1];
    struct renamings renamings;
    struct cv_out out;
    unsigned char *scratch;     /* a local part for each choice under way, and one before */
    uint32_t local_size;        /* of the largest */
    uint64_t token[TOKENS_MAX]; /* by number */
    uint32_t tokens;
    bool reacting;   /* outcomes end in local parts, not in nodes */
    bool explaining; /* every step is taken again, for its moves are wanted */
    struct drafts drafts;
    uint32_t start[CHECK_PROCESSES_MAX + 1]; /* the nodes of the initial state, by process */
    uint32_t start_sends, start_send_at;     /* what was sent by then */
};

int system_open(struct system *system, const struct check_model *model,
                const struct check_search *search);
void system_close(struct system *system);
uint64_t system_bytes(const struct system *system);
uint64_t system_node_bytes(const struct system *system); /* of those, what says what nodes are */
void renamings_open(struct renamings *renamings, const struct check_model *model);
void renamings_close(struct renamings *renamings);

/* What becomes of a node: a message number, or one of these. */
enum { SUPERSEDED = 1 << 30, RENAMED = 1u << 31 }; /* RENAMED: and by which renaming */
typedef uint32_t change_fn(struct system *system, uint32_t node, uint32_t what);
/* Looks it up, or has `change` work it out with the lock held. */
uint32_t system_change(struct system *system, struct pairs_block *block, uint32_t node,
                       uint32_t what, change_fn *change);
/* The node with a message more on the way to it. */
change_fn node_add;
/* The node, now that somebody who entered later has written. */
change_fn node_supersede;
/* The node, renamed. */
change_fn node_rename;
/* What the detector says of a process, as a message. */
uint32_t system_notice(struct system *system, uint16_t kind, cv_pid about);

static inline struct node_info *node_info(const struct system *system, uint32_t node) {
    return system->infos[node_process(node)] + node_index(node);
}
static inline uint32_t node_flags(const struct system *system, uint32_t node) {
    return node_info(system, node)->flags;
}
void node_get(const struct system *system, uint32_t number, struct node *node);
/* Whether what the process sends to another is lost: the connection has broken, since the other
 * crashed, and it has not noticed yet. */
bool node_cut_off(const struct system *system, uint32_t number, cv_pid from);
/* What a process remembers and was told, without its state. */
struct local node_local(const struct system *system, uint32_t node);

const struct outcomes *system_find_outcomes(struct system *system, uint32_t node);
static inline const void *system_words(const struct system *system, uint32_t at) {
    return system->words + (size_t)at * 8;
}
static inline const struct outcomes *system_outcomes(struct system *system, uint32_t node) {
    uint32_t at = atomic_load_explicit(&node_info(system, node)->outcomes, memory_order_acquire);
    return at ? system_words(system, at) : system_find_outcomes(system, node);
}
static inline const struct sending *outcome_sends(const struct system *system,
                                                  const struct outcome *outcome) {
    return system_words(system, outcome->at);
}
/* The moves that an outcome is made of, in order: found again, for they are seldom wanted.  Returns
 * how many; the caller frees them. */
size_t system_moves(struct system *system, uint32_t node, uint32_t outcome,
                    struct single_move **moves);

static inline void pause_briefly(void) {
#ifdef __x86_64__
    for (int i = 0; i < 16; i++) __builtin_ia32_pause();
#endif
}

/* The lock is held for a microsecond or so: whoever sleeps for it pays ten times that. */
static inline void system_lock(struct system *system) {
    for (int tries = 0; tries < 4096; tries++) {
        if (pthread_mutex_trylock(&system->lock) == 0) return;
        pause_briefly();
    }
    pthread_mutex_lock(&system->lock);
}

/* ---- Between the files; all with the lock held ---- */

/* One event at one node, whose ends (one for each way the choices fall) become drafts. */
struct trial {
    struct outcome outcome;
    struct single_move move;
    const uint32_t *inbox; /* what is left on the way to it */
    uint32_t inbox_count;
    uint32_t first_send;
};
enum { MESSAGE_MAX = POOL_BYTES_MAX - 64 };
struct message_text { /* a message with its body */
    struct message head;
    _Alignas(8) unsigned char body[MESSAGE_MAX];
};
uint32_t message_put(struct system *system, const struct message_text *text);
void message_get(const struct system *system, uint32_t number, struct message_text *text);
/* Who a message is from, and what it is. */
static inline struct message message_head(const struct system *system, uint32_t number) {
    return ((const struct message *)(const void *)system->head_arena.base)[number];
}
/* Runs the step on the local part in the scratch memory. */
void local_step(struct system *system, struct trial *trial, const struct cv_event *event);
/* Copies a local part to the scratch memory, in the place of the first choice. */
struct local *local_get(struct system *system, uint32_t number);
static inline struct local *local_scratch(const struct system *system, unsigned choices) {
    return (struct local *)(void *)(system->scratch + (size_t)choices * system->local_size);
}
static inline unsigned char *local_state(const struct local *local) {
    return (unsigned char *)(uintptr_t)(local + 1);
}
uint32_t local_put(struct system *system, const struct local *local);
uint32_t node_put(struct system *system, cv_pid p, uint32_t local, const uint32_t *inbox,
                  uint32_t count);
void draft_end(struct system *system, const struct trial *trial, const struct local *local);
void draft_send(struct system *system, uint32_t to, uint32_t message);
void draft_add(struct drafts *drafts, struct draft draft);
/* Moves the drafts from the given one on to where they stay, and returns their place. */
uint32_t draft_publish(struct system *system, size_t from);

/* The inbox with a message more, in its place; returns how many there are. */
uint32_t node_inbox_add(const struct system *system, const uint32_t *inbox, uint32_t count,
                        uint32_t message, uint32_t *result);
/* Every event that is possible at a node, each by itself. */
void single_drafts(struct system *system, uint32_t node);

#endif
