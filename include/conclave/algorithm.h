/* conclave/algorithm.h: a lock or an election of one's own, for `conclave sim` and `conclave
 * check`.
 *
 *   conclave new lock mine     writes mine/mine.c, which works, and a Makefile
 *   make -C mine               compiles it alone, to mine/mine.so
 *   conclave sim mine/mine.so  runs it; check, explain, compare and scenarios take it as well
 *
 * The algorithms that come with Conclave are written against this same header, so such a file can
 * be put among them as it is.
 *
 * An algorithm is a process: events in, effects out.  It is one pure function over one flat record.
 * It performs no I/O, allocates nothing, reads no clock, draws no random number and has no
 * variables of its own, so that the same code runs under the simulator and under the model checker,
 * which calls it from several threads.
 *
 * What runtimes rely on:
 *   - Processes are numbered from 1; 0 is nobody.  Servers (a coordinator) come first.
 *   - State is a head and rows, one row for each process that this one keeps a record of, with no
 *     pointers and no padding, zeroed before CV_START: clone is memcpy, equality is memcmp.
 *   - The durable prefix survives a crash as it was at the last cv_save; CV_RESTART finds the rest
 *     zeroed, and everything zeroed after amnesia.
 *   - Effects are applied in one order: save, timers, sends, tells.  Nothing leaves a process
 *     before what it depends on is durable.
 *   - step() accepts any well-formed message from any process at any time.  A codec rejects
 *     malformed bytes before they get here; a broken invariant asserts. */
#ifndef CONCLAVE_ALGORITHM_H
#define CONCLAVE_ALGORITHM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* An invariant that is checked in every build.  The condition has no side effects. */
#ifdef CV_BUILT_IN /* one of the algorithms that come with Conclave */
#include "base/assert.h"
#else
#include <stdio.h>
#include <stdlib.h>

static inline _Noreturn void cv_broken(const char *what, const char *file, int line) {
    fprintf(stderr, "conclave: broken invariant at %s:%d: %s\n", file, line, what);
    abort();
}
#define cv_assert(CONDITION) ((CONDITION) ? (void)0 : cv_broken(#CONDITION, __FILE__, __LINE__))
#endif

/* ---- Records: states and messages, described once ----
 *
 * A record is a head of fields, followed by rows in some records.  One list of fields generates the
 * C struct and the table that serves the printed trace, JSON and the checker's symmetry reduction.
 * The struct has no padding (checked here), so its bytes are its value.
 *
 * Pictures of an election colour a process by the first field of its head whose values have names:
 * 0 is at rest, and the others take part.  A column of rows whose values have names is the way of
 * the edge to the i-th neighbour: 0 is unknown, 1 comes in, 2 goes out, 3 is cut.  A pid of the
 * name `toward` is the edge of a tree. */

typedef uint32_t cv_pid;
enum { CV_NOBODY = 0 };

struct cv_queue { /* processes in order; see the end of this header */
    cv_pid first, last;
};
struct cv_link { /* a row's neighbours in the queue; all zero when it is in none */
    cv_pid next, prev;
};

enum cv_type { CV_U8, CV_U16, CV_U32, CV_U64, CV_ID, CV_PID, CV_QUEUE, CV_LINK };
/* The audience of a field. */
enum cv_audience {
    CV_INNER,  /* a debugger alone; with names for its values, pictures */
    CV_SHOWN,  /* a reader of the trace */
    CV_IF_SET, /* the same, where it is not 0; of rows: with the process that it is about */
};

struct cv_field {
    const char *name;
    uint16_t offset;
    uint8_t type, audience;
    const char *values; /* names for 0, 1, ... as "no|yes"; NULL: it is printed as a number */
};

struct cv_record {
    const char *name;
    const struct cv_field *fields, *row_fields;
    uint16_t field_count, size;
    uint16_t row_field_count, row_size;
};

/* #define GRANT_FIELDS(F, R) F(R, u32, number, SHOWN) F(R, u64, fence, SHOWN)
 * CV_RECORD(grant, GRANT_FIELDS);     struct grant and its table
 * CV_TABLE("GRANT", grant)            a cv_record without rows
 * CV_TABLE_ROWS("state", head, row)   one with rows */
#define CV_CTYPE_u8    uint8_t
#define CV_CTYPE_u16   uint16_t
#define CV_CTYPE_u32   uint32_t
#define CV_CTYPE_u64   uint64_t
#define CV_CTYPE_id    uint64_t /* of a process in an election; 0 is none */
#define CV_CTYPE_pid   cv_pid
#define CV_CTYPE_queue struct cv_queue
#define CV_CTYPE_link  struct cv_link
#define CV_TAG_u8      CV_U8
#define CV_TAG_u16     CV_U16
#define CV_TAG_u32     CV_U32
#define CV_TAG_u64     CV_U64
#define CV_TAG_id      CV_ID
#define CV_TAG_pid     CV_PID
#define CV_TAG_queue   CV_QUEUE
#define CV_TAG_link    CV_LINK

#define CV_MEMBER_(R, TYPE, NAME, AUDIENCE) CV_CTYPE_##TYPE NAME;
#define CV_SIZE_(R, TYPE, NAME, AUDIENCE)   +sizeof(CV_CTYPE_##TYPE)
#define CV_FIELD_(R, TYPE, NAME, AUDIENCE)                                                         \
    {#NAME, (uint16_t)offsetof(struct R, NAME), CV_TAG_##TYPE, CV_FOR_##AUDIENCE},
#define CV_FOR_INNER         CV_INNER, NULL
#define CV_FOR_SHOWN         CV_SHOWN, NULL
#define CV_FOR_IF_SET        CV_IF_SET, NULL
#define CV_FOR_NAMED(VALUES) CV_SHOWN, VALUES /* F(R, u32, phase, NAMED("idle|waiting")) */
#define CV_FOR_DRAWN(VALUES) CV_INNER, VALUES /* the same, for pictures alone */
#define CV_RECORD(R, LIST)                                                                         \
    struct R {                                                                                     \
        LIST(CV_MEMBER_, R)                                                                        \
    };                                                                                             \
    _Static_assert(sizeof(struct R) == 0 LIST(CV_SIZE_, R), #R " has no padding");                 \
    static const struct cv_field R##_fields[] = {LIST(CV_FIELD_, R)}

#define CV_COUNT_(ARRAY) (sizeof(ARRAY) / sizeof(ARRAY)[0])
#define CV_TABLE(NAME, R)                                                                          \
    { NAME, R##_fields, NULL, CV_COUNT_(R##_fields), sizeof(struct R), 0, 0 }
#define CV_TABLE_ROWS(NAME, R, ROW)                                                                \
    {                                                                                              \
        NAME, R##_fields, ROW##_fields, CV_COUNT_(R##_fields), sizeof(struct R),                   \
            CV_COUNT_(ROW##_fields), sizeof(struct ROW)                                            \
    }

/* ---- Processes ---- */

enum { CV_TIMERS_MAX = 4, CV_TELLS_MAX = 4, CV_OPTIONS_MAX = 8, CV_KINDS_MAX = 16 };

/* Addresses that are not one process. */
#define CV_OTHERS  UINT32_MAX       /* everyone but the sender */
#define CV_SERVERS (UINT32_MAX - 1) /* processes 1 to env->servers */

struct cv_env { /* constant for a process during a run; never part of its state */
    cv_pid self;
    uint32_t processes;     /* all of them: pids 1 to processes */
    uint32_t servers;       /* pids 1 to servers are servers, the others compete */
    const uint64_t *option; /* CV_OPTIONS_MAX values, in the order of the algorithm's table */
    /* Elections: */
    uint64_t id, weight;           /* of this process; ids are unique and above 0 */
    const uint64_t *ids, *weights; /* of every process, by pid, for algorithms that may know them */
    uint32_t degree;               /* neighbours; on a ring the first is to the right */
    /* NULL on a complete network, where all are neighbours.  On a one-way ring whose algorithm uses
     * a failure detector the others follow, each after the one to its left. */
    const cv_pid *neighbours;
    bool detector; /* a failure detector may report CV_DOWN and CV_UP */
};

enum cv_event_type {
    CV_START,   /* first boot */
    CV_RESTART, /* boot after a crash */
    CV_RECV,    /* from, kind, body */
    CV_TIMEOUT, /* arg: timer */
    CV_CALL,    /* arg: what the application asks for, below */
    CV_CHOICE,  /* arg: the answer to cv_choose */
    CV_DOWN,    /* arg: a process that the failure detector suspects */
    CV_UP,      /* arg: one that it trusts again */
    CV_HAND_ON, /* it is about to end, and wants nothing; arg: a process that stays */
};

/* What the application asks for, and what the algorithm tells it. */
enum { CV_ACQUIRE = 1, CV_RELEASE, CV_CAMPAIGN };
enum cv_tell_type {
    CV_ENTERED = 1, /* arg: fencing token, 0 when the algorithm has none */
    CV_LEFT,
    CV_WOKEN,      /* it was woken by a change that it waited for */
    CV_ELECTED,    /* it leads in this term; arg: its id, 0 when it has none */
    CV_FOLLOWS,    /* another leads in this term; arg: the leader's id, 0 when unknown */
    CV_LEADERLESS, /* it knows no leader any more */
    CV_ROUND,      /* arg: its current round of the election */
    CV_SUSPECT,    /* a detector to its host; arg: the process that seems down */
    CV_TRUST,      /* arg: the process that is back */
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
    uint32_t choose;                      /* k > 0: the step wants a choice in [0, k) */
    uint32_t used, room;                  /* bytes of sends */
    unsigned char *sends;
    struct {
        uint64_t min_us, max_us; /* the runtime draws from it; to the checker it is "some time" */
    } timer[CV_TIMERS_MAX];
    struct cv_tell tell[CV_TELLS_MAX];
};

typedef void cv_step_fn(void *state, const struct cv_env *env, const struct cv_event *event,
                        struct cv_out *out);

struct cv_layout { /* of the state of a process, by its role; zeroed before layout() */
    uint32_t rows;
    cv_pid first;          /* row i is about process first + i */
    uint32_t durable;      /* bytes of the durable prefix, which cv_save keeps */
    uint32_t sends;        /* maximum of one step, when above CV_SENDS_DEFAULT */
    uint32_t message_rows; /* of the longest message; a step sends at most two of these */
    /* Nobody acts on how long a process is away, by a timer or by a failure detector: one that ends
     * in order goes on later where it was. */
    bool patient;
};
enum { CV_SENDS_DEFAULT = 8 };

#define CV_UNSET UINT64_MAX /* an option that was not given and has no default */
enum cv_option_type { CV_NUMBER, CV_DURATION, CV_FLAG };
struct cv_option {
    const char *name, *summary;
    enum cv_option_type type;
    uint64_t default_value, min, max;
};

enum cv_problem { CV_MUTEX = 1, CV_ELECTION = 2, CV_DETECTOR = 4 }; /* bits */
/* The network that an algorithm needs. */
enum cv_topology {
    CV_COMPLETE, /* everyone can reach everyone */
    CV_RING,     /* one neighbour, to the right */
    CV_TWO_WAY_RING,
    CV_GRAPH, /* any connected one */
};
/* The process that ought to be elected. */
enum cv_preference { CV_ANYONE, CV_HIGHEST, CV_LOWEST };
/* Traits, as bits. */
enum {
    CV_FENCED = 1,          /* tells CV_ENTERED with a token that grows from entry to entry */
    CV_USES_DETECTOR = 2,   /* acts on CV_DOWN and CV_UP */
    CV_NEVER_QUIESCENT = 4, /* sends even while nobody wants anything */
    CV_TERMS = 8,           /* leaders are unique within a term, not in time */
    CV_ANONYMOUS = 16,      /* makes no use of ids */
    CV_SYMMETRIC = 32,      /* treats processes of one role alike */
    CV_UNBOUNDED = 64,      /* its state grows without bound even though nobody enters */
    CV_DRAWS = 128,         /* draws lots, and ends with probability 1, not in every run */
    CV_HANDS_ON = 256,      /* at CV_HAND_ON it gives away what the others need of it */
    CV_NO_WAY_BACK = 512,   /* who has crashed takes part no more */
    CV_FROM_FILE = 32768,   /* set by the program: its effects are checked, step by step */
};

/* What a process that replicates a log has of it, for the judges: the entries from `first` on
 * (those before are in a snapshot, and committed). */
struct cv_log_entry {
    uint32_t term, number;
};
struct cv_log {
    uint64_t first, last, commit; /* indexes; commit: known to be committed up to here */
    uint32_t term;                /* of the process */
    bool leads;
    const struct cv_log_entry *entry; /* inside the state */
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
    /* Why these options cannot be combined, or NULL. */
    const char *(*refuse)(const struct cv_env *env);
    void (*layout)(const struct cv_env *env, struct cv_layout *layout);
    cv_step_fn *step;
    uint16_t traits;
    uint8_t problem, message_count, option_count, timers;
    uint8_t topology, preference; /* of elections */
    /* Of an election whose leader replicates a log; else NULL. */
    void (*log)(const void *state, struct cv_log *log);
};

/* The members that every descriptor sets alike. */
#define CV_MACHINE CV_MACHINE_WITH(layout)
#define CV_MACHINE_WITH(LAYOUT)                                                                    \
    .state = &state_table, .messages = messages, .message_count = CV_COUNT_(messages),             \
    .layout = LAYOUT, .step = step
#define CV_OPTIONS .options = options, .option_count = CV_COUNT_(options)

/* ---- The descriptor of a file: CV_ALGORITHM(mine) = {.name = "mine", ...}; ----
 *
 * Compiled alone, a file has one of them, which the program finds in the shared library under the
 * name of CV_MODULE.  A library of another version is refused, so CV_MODULE_VERSION rises with
 * every change of this header that an algorithm could notice.  The version and the sizes keep their
 * places for ever. */

enum { CV_MODULE_VERSION = 3, CV_MODULE_SIZES = 10 };
#define CV_MODULE_MAGIC                                                                            \
    { 'c', 'o', 'n', 'c', 'l', 'a', 'v', 'e' }

struct cv_module {
    char magic[8];
    uint32_t version;
    uint16_t size[CV_MODULE_SIZES]; /* of the structs that both sides read */
    const char *source;             /* the file that was compiled */
    const struct cv_algorithm *algorithm;
    struct cv_algorithm loaded; /* for the program: the algorithm, under the name of its file */
};

#define CV_MODULE conclave_algorithm
#define CV_MODULE_SIZES_                                                                           \
    {                                                                                              \
        sizeof(struct cv_module), sizeof(struct cv_algorithm), sizeof(struct cv_record),           \
            sizeof(struct cv_field), sizeof(struct cv_option), sizeof(struct cv_env),              \
            sizeof(struct cv_event), sizeof(struct cv_send), sizeof(struct cv_out),                \
            sizeof(struct cv_layout)                                                               \
    }

#ifdef CV_BUILT_IN
#define CV_ALGORITHM(NAME)                                                                         \
    extern const struct cv_algorithm cv_##NAME;                                                    \
    const struct cv_algorithm cv_##NAME
#else
#define CV_ALGORITHM(NAME)                                                                         \
    static const struct cv_algorithm cv_##NAME;                                                    \
    __attribute__((visibility("default"))) struct cv_module CV_MODULE = {                          \
        CV_MODULE_MAGIC, CV_MODULE_VERSION, CV_MODULE_SIZES_, __FILE__, &cv_##NAME, {0}};          \
    static const struct cv_algorithm cv_##NAME
#endif

/* ---- Effects, for step() ---- */

static inline void *cv_send_raw(struct cv_out *out, uint32_t to, uint16_t kind, uint32_t size) {
    uint32_t bytes = (uint32_t)sizeof(struct cv_send) + ((size + 7) & ~7u);
    cv_assert(bytes <= out->room - out->used && "layout() says how much a step sends");
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

/* A message with rows: the head is filled in; the rows are zero, for the caller to write. */
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

/* (Re)starts a timer that fires once, after a time from min_us to max_us. */
static inline void cv_timer(struct cv_out *out, unsigned timer, uint64_t min_us, uint64_t max_us) {
    cv_assert(timer < CV_TIMERS_MAX);
    out->timers_cancelled &= (uint8_t) ~(1u << timer);
    out->timers_set |= (uint8_t)(1u << timer);
    out->timer[timer].min_us = min_us, out->timer[timer].max_us = max_us;
}

static inline void cv_timer_cancel(struct cv_out *out, unsigned timer) {
    cv_assert(timer < CV_TIMERS_MAX);
    out->timers_set &= (uint8_t) ~(1u << timer);
    out->timers_cancelled |= (uint8_t)(1u << timer);
}

static inline bool cv_serves(const struct cv_env *env) { return env->self <= env->servers; }

/* ---- Queues of processes, inside a state ----
 *
 * Every operation takes constant time, equal queues have equal bytes, and the row of a process says
 * whether it is in the queue.  The links live in the rows, so a state that keeps a row per process
 * can queue them all without more memory. */

struct cv_links {
    unsigned char *base; /* the link of process `first` */
    size_t stride;
    cv_pid first;
};

static inline struct cv_link *cv_link(struct cv_links links, cv_pid p) {
    return (struct cv_link *)(void *)(links.base + links.stride * (p - links.first));
}

static inline bool cv_queued(const struct cv_queue *queue, struct cv_links links, cv_pid p) {
    return queue->first == p || cv_link(links, p)->prev != CV_NOBODY;
}

static inline void cv_queue_push(struct cv_queue *queue, struct cv_links links, cv_pid p) {
    cv_link(links, p)->prev = queue->last;
    if (queue->last)
        cv_link(links, queue->last)->next = p;
    else
        queue->first = p;
    queue->last = p;
}

static inline void cv_queue_remove(struct cv_queue *queue, struct cv_links links, cv_pid p) {
    struct cv_link *link = cv_link(links, p);
    if (link->prev)
        cv_link(links, link->prev)->next = link->next;
    else
        queue->first = link->next;
    if (link->next)
        cv_link(links, link->next)->prev = link->prev;
    else
        queue->last = link->prev;
    *link = (struct cv_link){0};
}

static inline cv_pid cv_queue_pop(struct cv_queue *queue, struct cv_links links) {
    cv_pid p = queue->first;
    if (p) cv_queue_remove(queue, links, p);
    return p;
}

#endif
