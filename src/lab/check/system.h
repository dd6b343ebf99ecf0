/* What can happen to each process, computed once.
 *
 * To the checker a process is a node: its local state, and its inbox of messages in flight.  Steps
 * are pure, so what can happen to a process depends on its node alone: the outcomes of a node are
 * computed when it is first reached, and looked up from then on.  A global state is the nodes of
 * all processes and one word of budgets. */
#ifndef CV_LAB_CHECK_SYSTEM_H
#define CV_LAB_CHECK_SYSTEM_H

#include <pthread.h>

#include "lab/check/check.h"
#include "lab/check/pairs.h"
#include "lab/check/pool.h"

/* ---- The parts of a node ---- */

enum local_phase { APP_IDLE, APP_WAITING, APP_INSIDE, APP_LEAVING };
enum { /* flags of a local part */
       LOCAL_DOWN = 1,
       LOCAL_DECIDED = 2, /* it has a leader */
       LOCAL_LEADS = 4,
       LOCAL_PENDING = 8,     /* its application may still start an election */
       LOCAL_SUPERSEDED = 16, /* a process that entered later has written to the resource */
};

struct local { /* followed by the state and the saved durable prefix */
    cv_pid self;
    uint8_t phase, entries, flags, timers; /* entries: how many it may still ask for */
    uint32_t suspects;                     /* bit per process */
    uint32_t term;                         /* of its leader */
    cv_pid leader;
    uint32_t token; /* of its stay inside, with fencing: the number of the token */
};

struct message {
    cv_pid from;
    uint16_t kind, size; /* of the body, which follows */
};
/* Notices of the failure detector travel like messages, in order, and are never lost. */
enum { KIND_DOWN = 0xfffe, KIND_UP = 0xffff };

enum { NODE_INBOX_MAX = 1000 };

struct node {
    cv_pid process;
    uint32_t local;
    uint32_t count;
    uint32_t inbox[NODE_INBOX_MAX + 1]; /* with FIFO by sender or subject, and age; else notices
                                           first, likewise, then messages by number */
};

/* A node number contains the process. */
enum { NODE_INDEX_BITS = 27 };
static inline cv_pid node_process(uint32_t node) { return node >> NODE_INDEX_BITS; }
static inline uint32_t node_index(uint32_t node) { return node & ((1u << NODE_INDEX_BITS) - 1); }

enum { /* flags of a node, for judging states quickly */
       NODE_DOWN = 1,
       NODE_WAITING = 2,
       NODE_INSIDE = 4,
       NODE_LEADS = 8,
       NODE_UNDECIDED = 16, /* up, and without a leader */
       NODE_QUIESCENT = 32, /* nothing must happen to it, except perhaps a timer */
       NODE_SETTLES = 64,   /* not quiescent, but can become so by invisible steps */
       NODE_ARMED = 128,    /* a timer is set */
       NODE_PENDING = 256,  /* may start an election */
       NODE_NOTICED = 512,  /* a notice of the detector is in its inbox */
};

struct node_info {
    _Atomic uint32_t outcomes; /* their index in `words`; 0: not computed yet */
    uint32_t single;           /* likewise, the outcomes of single events */
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

enum { /* flags of an outcome: what concerns other processes */
       OUT_ENTERED = 1,
       OUT_ELECTED = 2,
       OUT_WRITES = 4, /* it leaves, after a write to the resource with token `value` */
       OUT_CRASH = 8,
       OUT_RECOVER = 16,
       OUT_WRONG = 32,          /* it suspects `peer`, which must be up */
       OUT_WHEN_QUIESCENT = 64, /* a timer: all must be quiescent, or it is late */
       OUT_LATE = 128,          /* a timer that fires although its own process is not quiescent */
       OUT_SETTLES = 256,       /* it becomes quiescent invisibly; taken when all others can, too */
       OUT_INVISIBLE = 512,     /* no other process can observe it */
       OUT_BESIDE = 1024,       /* it happens to a message in flight, not to the process */
       OUT_SUPERSEDED = 2048,   /* it writes although a process that entered later has written */
       OUT_TIMER_CHANGED = 4096, /* it sets or cancels a timer */
       OUT_LOG_CHANGED = 8192,   /* of a process that replicates a log */
       OUT_UNSENT = 16384,       /* a message is lost with its sender `peer`, which must be down */
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

struct single_move { /* of a path; with partial-order reduction an outcome has several */
    uint8_t type, arg, peer, choices;
    uint32_t message; /* that it took from the inbox */
    uint8_t choice[CHECK_CHOICES_MAX];
};

struct outcomes {
    uint32_t count, reserved;
    struct outcome of[];
};

/* ---- The system ---- */

struct local_layout { /* of a local state, by process */
    uint32_t rows, durable;
    cv_pid first;
    uint32_t state_size; /* bytes */
    uint32_t saved;      /* offset of the saved prefix; 0: it is not kept */
    uint32_t size;       /* of all */
};

struct draft { /* an outcome while it is computed */
    struct outcome outcome;
    uint32_t first_send;
    struct single_move move; /* the last of its moves */
    uint32_t hidden;         /* the hidden node that it starts from */
};

struct drafts {
    struct draft *draft;
    struct sending *send;
    size_t count, sends, room, send_room;
};

struct renamings { /* permutations of symmetric processes; the first is the identity */
    uint32_t count;
    cv_pid (*of)[CHECK_PROCESSES_MAX + 1]; /* by process */
};

enum { TOKENS_MAX = 64 };

struct system {
    const struct check_model *model;
    bool order; /* invisible steps join the next visible one */
    /* The bases of what has been published, which never change: every thread reads them all the
     * time, so they share no cache line with anything that is written. */
    struct node_info *infos[CHECK_PROCESSES_MAX + 1]; /* by process */
    const unsigned char *words;
    _Alignas(64) pthread_mutex_t lock; /* of all below, but for what has been published */
    struct pool locals, messages;
    struct pool nodes[CHECK_PROCESSES_MAX + 1]; /* by process */
    struct arena info_arena[CHECK_PROCESSES_MAX + 1], word_arena;
    struct arena head_arena; /* heads of messages, by number */
    struct arena flag_arena; /* flags of a node with that local state and an empty inbox */
    struct pairs reactions;  /* (local state, message) -> index of its outcomes; see single.c */
    struct pairs_block reaction_block;
    struct pairs memo;                      /* (node, change) -> node */
    uint32_t many[CHECK_PROCESSES_MAX + 1]; /* nodes of a process at which it is crowded */
    atomic_bool crowded;                    /* states must be written again with wider fields */
    struct local_layout layout[CHECK_PROCESSES_MAX + 1];
    struct renamings renamings;
    struct cv_out out;
    unsigned char *scratch;     /* a local state for each nested choice, and one before */
    uint32_t local_size;        /* of the largest */
    uint64_t token[TOKENS_MAX]; /* by number */
    uint32_t tokens;
    bool reacting;   /* outcomes end in local states, not in nodes */
    bool explaining; /* every step is computed again, to find its moves */
    struct drafts drafts;
    uint32_t start[CHECK_PROCESSES_MAX + 1]; /* the nodes of the initial state, by process */
    uint32_t start_sends, start_send_at;     /* the messages that were sent by then */
};

int system_open(struct system *system, const struct check_model *model,
                const struct check_search *search);
void system_close(struct system *system);
uint64_t system_bytes(const struct system *system);
uint64_t system_node_bytes(const struct system *system); /* the part of it that holds the nodes */
void renamings_open(struct renamings *renamings, const struct check_model *model);
void renamings_close(struct renamings *renamings);

/* Changes of a node: the number of a message that arrives in its inbox, or one of these. */
enum { SUPERSEDED = 1 << 30, RENAMED = 1u << 31 }; /* RENAMED: plus the index of the renaming */
typedef uint32_t change_fn(struct system *system, uint32_t node, uint32_t what);
/* Looks the changed node up, or has `change` compute it with the lock held. */
uint32_t system_change(struct system *system, struct pairs_block *block, uint32_t node,
                       uint32_t what, change_fn *change);
/* The node with one more message in its inbox. */
change_fn node_add;
/* The node after a process that entered later has written. */
change_fn node_supersede;
/* The node under a renaming. */
change_fn node_rename;
/* A notice of the detector about a process, as a message. */
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
/* The local part of a node, without the state of the algorithm. */
struct local node_local(const struct system *system, uint32_t node);
/* All of it: POOL_BYTES_MAX at most, aligned to 8. */
void node_local_bytes(const struct system *system, uint32_t node, unsigned char *local);

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
/* The moves of an outcome, in order.  They are computed again, because they are seldom wanted.
 * Returns their number; the caller frees them. */
size_t system_moves(struct system *system, uint32_t node, uint32_t outcome,
                    struct single_move **moves);

static inline void pause_briefly(void) {
#ifdef __x86_64__
    for (int i = 0; i < 16; i++) __builtin_ia32_pause();
#endif
}

/* The lock is held for about a microsecond; sleeping for it would cost ten times that. */
static inline void system_lock(struct system *system) {
    for (int tries = 0; tries < 4096; tries++) {
        if (pthread_mutex_trylock(&system->lock) == 0) return;
        pause_briefly();
    }
    pthread_mutex_lock(&system->lock);
}

/* ---- For system.c, node.c, local.c, single.c and outcomes.c; all with the lock held ---- */

/* One event at one node, whose results (one for each combination of choices) become drafts. */
struct trial {
    struct outcome outcome;
    struct single_move move;
    const uint32_t *inbox; /* what is left of the inbox */
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
/* The sender, kind and size of a message. */
static inline struct message message_head(const struct system *system, uint32_t number) {
    return ((const struct message *)(const void *)system->head_arena.base)[number];
}
/* Runs the step on the local state in the scratch memory. */
void local_step(struct system *system, struct trial *trial, const struct cv_event *event);
/* Copies a local state to the scratch memory, for the first choice. */
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
/* Publishes the drafts from the given one on, and returns their index in `words`. */
uint32_t draft_publish(struct system *system, size_t from);

/* The inbox with one more message, in order; returns its new length. */
uint32_t node_inbox_add(const struct system *system, const uint32_t *inbox, uint32_t count,
                        uint32_t message, uint32_t *result);
/* Drafts every event that is possible at a node, each by itself. */
void single_drafts(struct system *system, uint32_t node);

#endif
