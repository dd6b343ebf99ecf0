/* The model checker: every order of messages, timers, calls, crashes, losses and suspicions.
 *
 * The system that is explored, in which time is only an order:
 *   - Messages are a bag, or with `fifo` a queue per channel; a queue breaks with a crash of its
 *     receiver, as a connection does.
 *   - An application that is idle may ask, as often as `entries` allows, and need not.  One that is
 *     inside leaves at some time.
 *   - Timers are longer than anything else: they fire when nothing else is under way.  `late` of
 *     them may fire although something is; `timeouts` fire at all.
 *   - Up to `crashes` processes crash, at any time, and may come back.  `losses` messages are lost.
 *   - With `detector` every crash and every return is told to everyone at some time, and
 *     `suspicions` times somebody is suspected who is well.
 *   - All answers to a choice are tried. */
#ifndef CV_CHECK_H
#define CV_CHECK_H

#include "judge/judge.h"
#include "process/process.h"

enum { CHECK_PROCESSES_MAX = 31, CHECK_FOREVER = UINT8_MAX };
/* The most that a bound may be; what is above is no bound at all. */
enum { CHECK_FAULTS_MAX = 7, CHECK_TIMEOUTS_MAX = 62, CHECK_ENTRIES_MAX = 200 };

struct check_model {
    const struct cv_algorithm *algorithm;
    uint32_t processes, servers;
    const struct cv_env *env; /* by pid */
    uint8_t entries;          /* of each competitor; CHECK_FOREVER */
    uint8_t crashes, losses, suspicions, late;
    uint8_t timeouts;   /* CHECK_FOREVER */
    uint8_t initiators; /* of an election; any so many of them */
    bool amnesia, fifo, detector, fencing;
};

/* What happens to one process, and is one line of a counterexample. */
enum check_move_type {
    MOVE_RECEIVE,  /* peer: the sender */
    MOVE_LOSE,     /* the network loses a message of `peer` to the process */
    MOVE_MISS,     /* a message of `peer` arrives while the process is down */
    MOVE_TIMEOUT,  /* arg: timer */
    MOVE_ACQUIRE,  /* its application asks */
    MOVE_RELEASE,  /* its application is done */
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
    uint8_t choices; /* the answers to what its step asked, in order */
    uint8_t choice[CHECK_CHOICES_MAX];
    bool entered; /* its application came to be inside */
};

struct check_flight { /* of one message, in the order of sending */
    cv_pid from, to;
    uint32_t sent;  /* the move that sent it, counted from 1; 0: at the start */
    uint32_t ended; /* the move that received, lost or missed it; 0: it is still under way */
    bool lost;      /* by the network: MOVE_LOSE */
};

struct check_path { /* a counterexample */
    struct check_move *move;
    size_t count;
    size_t cycle; /* the moves from here on repeat for ever; count: they do not */
    struct check_flight *flight;
    size_t flight_count;
};

enum check_end {
    CHECK_COMPLETE, /* everything within the bounds was explored */
    CHECK_VIOLATED, /* the search ended with the first violation */
    CHECK_MEMORY,   /* the limit was reached */
    CHECK_DEPTH,    /* nothing beyond the depth asked for was explored */
};

struct check_progress {
    uint64_t states, transitions, frontier, depth, memory;
    double seconds;
};

struct check_search {
    bool depth_first; /* else breadth first: counterexamples are the shortest */
    bool symmetry;    /* states that differ by who is who are one */
    bool order;       /* steps that nobody can see are taken with the next step of the process */
    bool compact;     /* remember a hash of each state; goes depth first */
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
    uint64_t memory;         /* bytes, at the most */
    uint64_t memory_visited; /* of those, what remembers the states that were visited */
    double seconds;
    double omission; /* with `compact`: the probability that a state was taken for another */
    enum check_end end;
    enum verdict_value verdict[PROPERTIES_MAX]; /* as the judge of the problem numbers them */
    bool cut;                                   /* timers were left that had no firing left */
    int violated;                               /* the property of `path`; -1: none */
    struct check_path path[PROPERTIES_MAX];     /* how each came to be violated */
};

/* Why these cannot be explored, or NULL. */
const char *check_refuse(const struct check_model *model, const struct check_search *search);
/* Returns 0, or -1 when the system has no addresses left. */
int check_run(const struct check_model *model, const struct check_search *search,
              struct check_result *result);
void check_free(struct check_result *result);

/* A lower bound for the number of states, by random walks. */
double check_estimate(const struct check_model *model, const struct check_search *search);

#endif
