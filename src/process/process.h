/* A process: events in, effects out.
 *
 * An algorithm is one pure function over one flat record.  It performs no I/O, allocates nothing,
 * reads no clock and draws no random number, so that the same object file runs under the simulator,
 * the model checker and the network.
 *
 * What runtimes rely on:
 *   - Processes are numbered from 1; 0 is nobody.  Those that serve (a coordinator) come first.
 *   - State is a head and rows, one row for each process that this one keeps a record of, with no
 *     pointers and no padding, zeroed before CV_START: clone is memcpy, equality is memcmp.
 *   - The durable prefix survives a crash as it was at the last cv_save; CV_RESTART finds the rest
 *     zeroed, and everything zeroed after amnesia.
 *   - Effects are applied in one order: save, timers, sends, tells.  Nothing leaves a process
 *     before what it depends on is durable.
 *   - step() accepts any well-formed message from anyone at any time.  Malformed bytes die in the
 *     codec and never get here; a broken invariant asserts. */
#ifndef CV_PROCESS_H
#define CV_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/assert.h"
#include "process/record.h"

enum { CV_TIMERS_MAX = 4, CV_TELLS_MAX = 4, CV_OPTIONS_MAX = 8, CV_KINDS_MAX = 16 };

/* Addresses that are not one process. */
#define CV_OTHERS  UINT32_MAX       /* everyone but the sender */
#define CV_SERVERS (UINT32_MAX - 1) /* processes 1 to env->servers */

struct cv_env { /* constant for a process of a run; never part of its state */
    cv_pid self;
    uint32_t processes;     /* all of them: pids 1 to processes */
    uint32_t servers;       /* pids 1 to servers serve, the others compete */
    const uint64_t *option; /* CV_OPTIONS_MAX values, in the order of the algorithm's table */
    /* Elections: */
    uint64_t id, weight;           /* of this process; ids are unique and above 0 */
    const uint64_t *ids, *weights; /* of every process, by pid, for those who may know them */
    uint32_t degree;               /* neighbours; on a ring the first is to the right */
    const cv_pid *neighbours;      /* NULL on a complete network: everyone is a neighbour */
};

enum cv_event_type {
    CV_START,   /* first boot */
    CV_RESTART, /* boot after a crash */
    CV_RECV,    /* from, kind, body */
    CV_TIMEOUT, /* arg: timer */
    CV_CALL,    /* arg: what the application asks, below */
    CV_CHOICE,  /* arg: the answer to cv_choose */
    CV_DOWN,    /* arg: a process that the failure detector suspects */
    CV_UP,      /* arg: one that it trusts again */
};

/* What the application asks for, and what it is told. */
enum { CV_ACQUIRE = 1, CV_RELEASE, CV_CAMPAIGN };
enum cv_tell_type {
    CV_ENTERED = 1, /* arg: fencing token, 0 when the algorithm has none */
    CV_LEFT,
    CV_WOKEN,      /* it waited for a change, and was told of one */
    CV_ELECTED,    /* it leads, in this term; arg: its id, 0 when it has none */
    CV_FOLLOWS,    /* another leads, in this term; arg: that one's id, 0 when unknown */
    CV_LEADERLESS, /* it knows of no leader any more */
    CV_ROUND,      /* arg: the round of the election that it is in */
    CV_SUSPECT,    /* a detector to its host; arg: the process that seems down */
    CV_TRUST,      /* arg: the one that is back */
};

struct cv_event {
    enum cv_event_type type;
    uint32_t arg;
    cv_pid from;
    uint16_t kind;
    uint16_t reserved;
    uint32_t size; /* bytes of body */
    const void *body;
};

struct cv_send { /* followed by its body, padded to 8 bytes */
    uint32_t to; /* a process, CV_OTHERS or CV_SERVERS */
    uint16_t kind;
    uint16_t reserved;
    uint32_t size;
    uint32_t reserved2;
};

struct cv_tell {
    uint64_t arg;
    uint32_t what, term;
};

struct cv_out { /* filled by step, drained by the runtime */
    uint8_t save, tells;
    uint8_t timers_set, timers_cancelled; /* bit per timer */
    uint32_t choose;                      /* k > 0: wants a choice in [0, k) */
    uint32_t used, room;                  /* bytes of sends */
    unsigned char *sends;
    struct {
        uint64_t min_us, max_us; /* the runtime draws; to the checker it is "some time" */
    } timer[CV_TIMERS_MAX];
    struct cv_tell tell[CV_TELLS_MAX];
};

typedef void cv_step_fn(void *state, const struct cv_env *env, const struct cv_event *event,
                        struct cv_out *out);

struct cv_layout { /* of one process's state, by its role; zeroed before it is asked for */
    uint32_t rows;
    cv_pid first;          /* row i is about process first + i */
    uint32_t durable;      /* bytes at the front that cv_save keeps */
    uint32_t sends;        /* effects of one step at the most, when more than CV_SENDS_USUAL */
    uint32_t message_rows; /* of the longest message; at most two such are sent in one step */
};
enum { CV_SENDS_USUAL = 8 };

#define CV_UNSET UINT64_MAX /* an option that was not given and has no usual value of its own */
enum cv_option_type { CV_NUMBER, CV_DURATION, CV_FLAG };
struct cv_option {
    const char *name, *summary;
    enum cv_option_type type;
    uint64_t usual, least, most;
};

enum cv_problem { CV_MUTEX = 1, CV_ELECTION = 2, CV_DETECTOR = 4 }; /* bits */
/* What it needs of the network. */
enum cv_topology {
    CV_COMPLETE, /* everyone can reach everyone */
    CV_RING,     /* one neighbour, to the right */
    CV_TWO_WAY_RING,
    CV_GRAPH, /* any connected one */
};
/* Who ought to be elected. */
enum cv_preference { CV_ANYONE, CV_HIGHEST, CV_LOWEST };
/* Traits, as bits. */
enum {
    CV_FENCED = 1,        /* tells CV_ENTERED with a token that grows from entry to entry */
    CV_USES_DETECTOR = 2, /* acts on CV_DOWN and CV_UP */
    CV_NEVER_RESTS = 4,   /* sends even while nobody wants anything */
    CV_TERMS = 8,         /* leaders are unique within a term, not in time */
    CV_ANONYMOUS = 16,    /* makes no use of ids */
    CV_SYMMETRIC = 32,    /* makes no difference between processes of one role */
    CV_GROWS = 64,        /* something grows for as long as it runs, though nobody enters */
};

struct cv_algorithm {
    const char *name;    /* as typed */
    const char *summary; /* one line */
    const char *paper, *cost, *delay;
    const char *tolerates;   /* which failures, in a few words */
    const char *server_name; /* "coordinator"; NULL when all processes are alike */
    const struct cv_record *state, *messages;
    const struct cv_option *options;
    uint32_t (*servers)(const uint64_t *option);
    /* Why these options make no sense together, or NULL. */
    const char *(*refuse)(const struct cv_env *env);
    void (*layout)(const struct cv_env *env, struct cv_layout *layout);
    cv_step_fn *step;
    uint8_t problem, traits, message_count, option_count, timers;
    uint8_t topology, preference; /* of elections */
};

/* The bytes of sends that one step may write. */
static inline uint32_t cv_out_room(const struct cv_algorithm *code,
                                   const struct cv_layout *layout) {
    uint32_t head = 0, row = 0, sends = layout->sends ? layout->sends : CV_SENDS_USUAL;
    for (unsigned i = 0; i < code->message_count; i++) {
        if (code->messages[i].size > head) head = code->messages[i].size;
        if (code->messages[i].row_size > row) row = code->messages[i].row_size;
    }
    return sends * ((uint32_t)sizeof(struct cv_send) + ((head + 7) & ~7u)) +
           2 * ((layout->message_rows * row + 7) & ~7u);
}

/* What every descriptor says in the same words. */
#define CV_MACHINE CV_MACHINE_WITH(layout)
#define CV_MACHINE_WITH(LAYOUT)                                                                    \
    .state = &state_table, .messages = messages, .message_count = CV_COUNT_(messages),             \
    .layout = LAYOUT, .step = step
#define CV_OPTIONS .options = options, .option_count = CV_COUNT_(options)

/* ---- What step() writes with ---- */

static inline void *cv_send_raw(struct cv_out *out, uint32_t to, uint16_t kind, uint32_t size) {
    uint32_t bytes = (uint32_t)sizeof(struct cv_send) + ((size + 7) & ~7u);
    cv_assert(bytes <= out->room - out->used);
    struct cv_send *send = (struct cv_send *)(void *)(out->sends + out->used);
    out->used += bytes;
    if (size & 7) memset(out->sends + out->used - 8, 0, 8); /* the padding is part of the bytes */
    *send = (struct cv_send){.to = to, .kind = kind, .size = size};
    return send + 1;
}

/* cv_send(out, to, REQUEST, request, .number = 7): the body's type is named and checked. */
#define cv_send(OUT, TO, KIND, RECORD, ...)                                                        \
    memcpy(cv_send_raw((OUT), (TO), (KIND), sizeof(struct RECORD)), &(struct RECORD){__VA_ARGS__}, \
           sizeof(struct RECORD))

/* A message with rows: the head is filled in, the rows are zero and are the caller's to write. */
#define cv_send_rows(OUT, TO, KIND, RECORD, ROW, COUNT, ...)                                       \
    ((struct ROW *)cv_send_rows_((OUT), (TO), (KIND), &(struct RECORD){__VA_ARGS__},               \
                                 sizeof(struct RECORD), (uint32_t)((COUNT) * sizeof(struct ROW))))
static inline void *cv_send_rows_(struct cv_out *out, uint32_t to, uint16_t kind, const void *head,
                                  uint32_t size, uint32_t rows_size) {
    unsigned char *body = cv_send_raw(out, to, kind, size + rows_size);
    memcpy(body, head, size);
    memset(body + size, 0, rows_size);
    return body + size;
}

static inline void cv_tell(struct cv_out *out, enum cv_tell_type what, uint64_t arg) {
    cv_assert(out->tells < CV_TELLS_MAX);
    out->tell[out->tells++] = (struct cv_tell){.what = what, .arg = arg};
}

static inline void cv_tell_term(struct cv_out *out, enum cv_tell_type what, uint64_t arg,
                                uint32_t term) {
    cv_tell(out, what, arg);
    out->tell[out->tells - 1].term = term;
}

static inline void cv_save(struct cv_out *out) { out->save = 1; }

static inline void cv_choose(struct cv_out *out, uint32_t k) { out->choose = k; }

/* (Re)starts a timer that fires once, after a time between the two. */
static inline void cv_timer(struct cv_out *out, unsigned timer, uint64_t min_us, uint64_t max_us) {
    out->timers_cancelled &= (uint8_t) ~(1u << timer);
    out->timers_set |= (uint8_t)(1u << timer);
    out->timer[timer].min_us = min_us, out->timer[timer].max_us = max_us;
}

static inline void cv_timer_cancel(struct cv_out *out, unsigned timer) {
    out->timers_set &= (uint8_t) ~(1u << timer);
    out->timers_cancelled |= (uint8_t)(1u << timer);
}

static inline void cv_out_reset(struct cv_out *out) {
    out->save = out->tells = out->timers_set = out->timers_cancelled = 0;
    out->choose = out->used = 0;
}

static inline bool cv_serves(const struct cv_env *env) { return env->self <= env->servers; }

#endif
