/* The simulator: virtual time, a network, faults and a load, around the processes of one run.
 *
 * Everything that happens is an event in one timer wheel; events of equal time keep the order of
 * insertion, so the configuration alone determines the run.  One struct sim serves run after run
 * without allocating again. */
#ifndef CV_LAB_SIM_SIM_H
#define CV_LAB_SIM_SIM_H

#include "base/arena.h"
#include "base/wheel.h"
#include "lab/judge/detector.h"
#include "lab/judge/election.h"
#include "lab/judge/mutex.h"
#include "lab/sim/config.h"
#include "lab/sim/topology.h"
#include "lab/sim/trace.h"

struct sim_result {
    uint64_t events, messages, entries, requests, end_us, hash;
    uint64_t by_kind[CV_KINDS_MAX]; /* messages sent */
    uint64_t bytes;                 /* of the bodies of those messages */
    uint64_t heartbeats; /* messages of the failure detectors, which `messages` leaves out */
    uint64_t lost, crashes, woken;
    enum run_end end;
    uint64_t violation_event;   /* the number of events at the first violation, or 0 */
    uint64_t delay_us, wait_us; /* sums over the entries: since wanted and free, since wanted */
    uint64_t wait_us_max, overtakes_max;
    uint64_t entries_squared; /* summed over the competitors */
    /* Elections: */
    uint64_t rounds, elections, leader_changes; /* leader_changes: those that no failure explains */
    uint64_t leader;     /* the id of the one leader at the end, as written; 0 also: none */
    uint64_t decided_us; /* when the last process decided */
};

/* Message times before the entry, on average; NAN when nobody entered or messages take no time. */
double sim_delay_hops(const struct sim_result *result, const struct sim_config *config);
/* Jain's index over the entries of the competitors: 1 when all had equally many, 1/N when one had
 * them all. */
double sim_fairness(const struct sim_result *result, const struct sim_config *config);

/* A process is an algorithm and, in some runs, a failure detector beside it: each is a machine with
 * states, timers and messages of its own, and the algorithm hears what the detector tells. */
enum sim_machine { ALGORITHM, DETECTOR, MACHINES };

struct machine {
    const struct cv_algorithm *code; /* NULL: there is none */
    const uint64_t *option;
    struct machine_state *of; /* by pid */
    uint64_t stride;          /* from one state to the next when all have the same size; else 0 */
    uint32_t *timer;          /* event of each timer of each process */
};

/* A process that needs time for each message: what has kept it busy. */
struct sim_service {
    uint64_t free_us;   /* when it has done what has arrived */
    uint64_t served;    /* messages */
    uint64_t queued_us; /* the sum of their waits */
};

struct sim {
    const struct sim_config *config;
    const struct cv_algorithm *algorithm;
    struct trace *trace; /* NULL: the run is not traced */
    struct roster roster;
    struct cv_env env;
    struct cv_out out;
    struct rng rng;
    struct arena fixed, event_arena, body_arena;
    struct sim_event *event;
    uint32_t event_count, event_free;
    uint32_t body_free[32]; /* long bodies by power of two, in units of 64 bytes */
    struct sim_process *process;
    struct sim_service *service; /* by pid; NULL: messages take no time */
    struct machine machine[MACHINES];
    unsigned char *state;
    const struct sim_load *load;
    struct topology topology;
    uint64_t hash;
    uint32_t cause;           /* the trace entry whose step is being applied */
    uint64_t background;      /* pending events that do not keep the run alive */
    uint64_t budget;          /* requests that may still be made */
    uint64_t outstanding;     /* requests, or starts of elections, that are not done */
    uint64_t actions_left;    /* of the schedule */
    uint64_t schedule_end_us; /* when it is done, and its pauses are over */
    bool scheduled;           /* the schedule makes all requests */
    uint32_t paused;          /* number of paused processes */
    uint64_t progress_us;     /* when there was last progress */
    uint64_t progress_timeout_us;
    uint32_t heal;             /* EV_HEAL under way */
    const unsigned char *side; /* of a partition, by pid; NULL: none */
    unsigned char *random_side;
    bool plain; /* the network only delays messages, and the run is not traced */
    struct channel *channel;
    size_t channel_count;
    struct wheel_list answers; /* EV_CHOICE: answers to choices to come, the oldest first */
    struct fifo_slot *fifo, *fifo_spare;
    uint64_t fifo_used, fifo_size;
    struct mutex_judge judge; /* of locks */
    struct election_judge election;
    struct detector_judge detectors;
    uint32_t *part; /* of the network, by pid, when there may be several; else NULL */
    const struct verdict *first_violated; /* the verdict that can be violated before the end */
    struct sim_result result;
    struct wheel wheel; /* the last: most of the bytes, and a new run does not zero them */
};

/* Returns 0, or -1 when there is no address space left. */
int sim_open(struct sim *sim);
void sim_close(struct sim *sim);
/* Runs a checked configuration to its end; `trace` may be NULL.  Never fails. */
void sim_run(struct sim *sim, const struct sim_config *config, struct trace *trace);

/* The properties that are judged for this problem, and the last run's verdicts, in that order. */
struct properties sim_properties(const struct cv_algorithm *algorithm);
const struct verdict *sim_verdicts(const struct sim *sim);
bool sim_violated(const struct sim *sim);

/* The part of the time that a process was busy, when messages take time. */
double sim_busy(const struct sim *sim, cv_pid p);
/* The process that was busy most. */
cv_pid sim_busiest(const struct sim *sim);

#endif
