/* The model checker: every order of messages, timers, calls, crashes, losses and suspicions.
 *
 * The model, in which time is only an order:
 *   - The messages in flight are a bag, or with `fifo` a queue per channel, which breaks with a
 * crash of its receiver, as a connection does.
 *   - An application that is idle may ask, as often as `entries` allows, and need not.  One that is
 *     inside leaves at some time.
 *   - Timers are longer than anything else: they fire when nothing else is under way.  `late` of
 *     them may fire although something is; `timeouts` bounds all firings.
 *   - Up to `crashes` processes crash, at any time, and may come back; with `recovers` they do.
 *     What a process has sent, and what has not arrived when it crashes, may be lost with it.
 *   - `losses` messages are lost.
 *   - With `detector` every crash and every recovery is reported to every process at some time, and
 *     `suspicions` times a process is suspected wrongly.
 *   - All answers to a nondeterministic choice are tried. */
#ifndef CV_LAB_CHECK_CHECK_H
#define CV_LAB_CHECK_CHECK_H

#include "lab/judge/judge.h"
#include "process/process.h"

enum { CHECK_PROCESSES_MAX = 31, CHECK_FOREVER = UINT8_MAX };
/* The maximum of each bound. */
enum { CHECK_FAULTS_MAX = 7, CHECK_TIMEOUTS_MAX = 62, CHECK_ENTRIES_MAX = 200 };

struct check_model {
    const struct cv_algorithm *algorithm;
    uint32_t processes, servers;
    const struct cv_env *env; /* by pid */
    uint8_t entries;          /* of each competitor; CHECK_FOREVER */
    uint8_t crashes, losses, suspicions, late;
    uint8_t timeouts;   /* CHECK_FOREVER */
    uint8_t initiators; /* of an election: any processes, up to this many */
    bool amnesia, recovers, fifo, detector, fencing;
    /* More entries of others than this, during one wait whose request has arrived, are no bounded
     * wait, and as many as that are starvation; 0: no bound. */
    uint32_t wait_bound, starved_after;
};

/* One event at one process: a line of a counterexample. */
enum check_move_type {
    MOVE_RECEIVE,  /* peer: the sender */
    MOVE_LOSE,     /* the network loses a message of `peer` to the process */
    MOVE_MISS,     /* a message of `peer` arrives while the process is down */
    MOVE_TIMEOUT,  /* arg: timer */
    MOVE_ACQUIRE,  /* its application asks for the lock */
    MOVE_RELEASE,  /* its application is done with the lock */
    MOVE_CAMPAIGN, /* its application wants an election */
    MOVE_CRASH,
    MOVE_RECOVER,
    MOVE_SUSPECT, /* it hears that `peer` is down */
    MOVE_TRUST,   /* it hears that `peer` is back */
};
enum { CHECK_CHOICES_MAX = 8 };

struct check_move {
    enum check_move_type type;
    cv_pid process, peer;
    uint32_t arg;
    uint8_t choices; /* the answers to the choices of its step, in order */
    uint8_t choice[CHECK_CHOICES_MAX];
    bool entered; /* its application entered */
};

struct check_flight { /* of one message, from send to arrival, in the order of sends */
    cv_pid from, to;
    uint32_t sent;  /* the move that sent it, counted from 1; 0: at the start */
    uint32_t ended; /* the move that received, lost or missed it; 0: it is still in flight */
    bool lost;      /* by the network: MOVE_LOSE */
};

struct check_path { /* a counterexample */
    struct check_move *move;
    size_t count;
    size_t cycle; /* the moves from here on repeat for ever; count: they do not */
    struct check_flight *flight;
    size_t flight_count;
    bool goes_on; /* it need not be followed to a final state */
};

enum check_end {
    CHECK_COMPLETE, /* everything within the bounds was explored */
    CHECK_VIOLATED, /* the search ended with the first violation */
    CHECK_MEMORY,   /* the memory limit was reached */
    CHECK_DEPTH,    /* the depth limit was reached */
};

/* Why a property is unknown. */
enum check_doubt {
    NO_DOUBT,
    NOT_ASKED,        /* it was not to be judged */
    AFTER_THE_FIRST,  /* the search ended with a violation of another property */
    BEYOND_DEPTH,     /* what lies beyond the depth limit was not explored */
    BEYOND_MEMORY,    /* nor what did not fit into the memory */
    BEYOND_TIMEOUTS,  /* nor what happens after the last timeout that is allowed */
    CYCLES_UNSEEN,    /* whether a cycle violates it was not judged */
    REDUCED,          /* who waits was not judged, because states or orders were left out */
    ALL_ENTRIES_USED, /* during one wait others can use up all entries: no bound shows */
};

struct check_progress {
    uint64_t states, transitions, frontier, depth, memory;
    double seconds;
};

struct check_search {
    bool depth_first; /* else breadth first: counterexamples are shortest */
    bool symmetry;    /* symmetry reduction: states that differ by a permutation are one */
    bool order;       /* partial-order reduction: invisible steps join the next step */
    bool compact;     /* hash compaction; goes depth first */
    bool keep_going;  /* after the first violation */
    unsigned threads; /* 0: all cores */
    uint64_t memory;  /* bytes */
    uint64_t depth;   /* 0: no limit */
    unsigned judged;  /* bit per property of the problem; 0: all that can be decided */
    void (*progress)(void *context, const struct check_progress *progress); /* or NULL */
    void *context;
};

struct check_result {
    uint64_t states, transitions, depth;
    uint64_t memory;         /* maximum in bytes */
    uint64_t memory_visited; /* the part of it that holds the visited states */
    double seconds;
    double omission; /* with `compact`: the probability that a state was omitted */
    enum check_end end;
    enum verdict_value verdict[PROPERTIES_MAX]; /* in the order of the judge of the problem */
    enum check_doubt doubt[PROPERTIES_MAX];     /* why it is unknown */
    int overtakes;    /* at most so many entries of others during one wait; -1: not known */
    bool timers_left; /* a timer would have fired when `timeouts` was used up */
    /* With choices that are drawn, of a search that the depth limit ended: from every state of so
     * many first steps an end is within reach in which all hold.  Then no draws put that end off
     * for ever, except with probability 0; see likely.c.  0: that is not known. */
    uint64_t ends_likely;
    int violated;                           /* the first property that was violated; -1: none */
    struct check_path path[PROPERTIES_MAX]; /* a counterexample to each */
};

/* Why these cannot be explored, or NULL. */
const char *check_refuse(const struct check_model *model, const struct check_search *search);
/* Returns 0, or -1 when there is no address space left. */
int check_run(const struct check_model *model, const struct check_search *search,
              struct check_result *result);
void check_free(struct check_result *result);

/* A low estimate of the number of states. */
double check_estimate(const struct check_model *model, const struct check_search *search);

#endif
