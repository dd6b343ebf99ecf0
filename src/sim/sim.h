/* The simulator: virtual time, a network, faults and a load, around the processes of one run.
 *
 * Everything that happens is an event in one timer wheel; equal times keep the order of insertion,
 * so the configuration alone decides the run.  One struct sim serves run after run without new
 * memory. */
#ifndef CV_SIM_H
#define CV_SIM_H

#include "base/arena.h"
#include "base/wheel.h"
#include "judge/detector.h"
#include "judge/election.h"
#include "judge/mutex.h"
#include "sim/config.h"
#include "sim/topology.h"
#include "sim/trace.h"

struct sim_result {
    uint64_t events, messages, entries, requests, end_us, hash;
    uint64_t by_kind[CV_KINDS_MAX]; /* messages sent */
    uint64_t bytes;                 /* of the bodies of those messages */
    uint64_t heartbeats;            /* messages of the failure detectors, counted apart */
    uint64_t lost, crashes, woken;
    enum run_end end;
    uint64_t violation_event;   /* how many events had happened at the first violation, or 0 */
    uint64_t delay_us, wait_us; /* summed over the entries: since wanted and free, since wanted */
    uint64_t wait_us_max, overtakes_max;
    uint64_t entries_squared; /* summed over the competitors */
    /* Elections: */
    uint64_t rounds, elections, leader_changes; /* changes that no failure explains */
    uint64_t leader;     /* the id of the one leader at the end, 0: none or unknown */
    uint64_t decided_us; /* when the last process made up its mind */
};

/* Message times before the entry, on average; NAN when nobody entered or messages take no time. */
double sim_delay_hops(const struct sim_result *result, const struct sim_config *config);
/* Jain's index over the competitors' entries: 1 when all had the same, 1/N when one had them all.
 */
double sim_fairness(const struct sim_result *result, const struct sim_config *config);

enum sim_event_type {
    EV_MESSAGE, /* process, from, kind, size, body */
    EV_TIMER,   /* process; arg: timer */
    EV_CHOICE,  /* process; arg: the answer */
    EV_DETECT,  /* process hears of `from`; arg: CV_DOWN or CV_UP */
    EV_ASK,     /* process: its application wants the lock; arg: REQUEST_MADE */
    EV_DONE,    /* process: its application is done with the lock; all above wait out a pause */
    EV_ACTION,  /* arg: index of a scheduled action */
    EV_RECOVER, /* process; arg: amnesia */
    EV_RESUME,  /* process */
    EV_NOTICE,  /* process: the detector may now say that it is down; arg: of which outage */
    EV_TRUST,   /* process: the detector says that it is back */
    EV_HEAL,
    EV_CRASH_SOME, /* the faults drawn at a rate, each of which draws its successor */
    EV_PAUSE_SOME,
    EV_PARTITION,
};

enum { SIM_BODY_MAX = 24, SIM_BODY_UNIT = 64 };
/* Flags of an event. */
enum {
    EVENT_BACKGROUND = 1,  /* a fault generator, which keeps no run alive */
    EVENT_PARKED = 2,      /* out of the wheel until its process runs on */
    EVENT_OF_DETECTOR = 4, /* of the process's failure detector, not of its algorithm */
    EVENT_ARMED = 8,       /* a timer outside the wheel, until the schedule lets it fire */
};

struct sim_event {
    struct wheel_node node;
    cv_pid process, from;
    uint32_t size;
    uint32_t arg;   /* for a long body: its place among the long bodies */
    uint32_t cause; /* the trace entry behind it, while tracing */
    uint8_t type, flags, kind;
    uint8_t life; /* of the receiver when it was sent, modulo 256 */
    _Alignas(8) unsigned char body[SIM_BODY_MAX];
};
_Static_assert(sizeof(struct sim_event) == WHEEL_NODE_BYTES, "an event is one cache line");

enum app_phase { APP_IDLE, APP_WAITING, APP_INSIDE };
enum { REQUEST_MADE = 1 }; /* arg of EV_ASK: it has been counted */

/* A process is an algorithm and, in some runs, a failure detector beside it: each is a machine with
 * states, timers and messages of its own, and what the detector tells, the algorithm hears. */
enum sim_machine { ALGORITHM, DETECTOR, MACHINES };

struct machine_state {
    uint64_t state, saved; /* where its state and its durable prefix are kept, in bytes */
    uint32_t rows, durable;
};

struct machine {
    const struct cv_algorithm *code; /* NULL: there is none */
    const uint64_t *option;
    struct machine_state *of; /* by pid */
    uint64_t stride;          /* from one state to the next, when all are alike; else 0 */
    uint32_t *timer;          /* event of each timer of each process */
};

struct sim_process {
    uint64_t hold_us;
    uint32_t arrival;         /* EV_ASK under way: the next request */
    uint32_t next;            /* EV_DONE, or EV_ASK of a request that had to wait */
    uint32_t comeback;        /* EV_RESUME or EV_RECOVER under way */
    struct wheel_list queued; /* requests that came while it was busy */
    uint32_t outages;         /* crashes and pauses so far */
    uint32_t lives;           /* crashes so far */
    bool crashed, paused, suspected;
    uint8_t app;
    struct wheel_list parked; /* what waits for the end of a pause */
    float clock;              /* how fast its clock runs */
};

struct channel { /* a scheduled exception to the run's delay or to its reliability */
    cv_pid from, to;
    bool loses;    /* else it delays */
    bool stays;    /* until a newer one takes its place */
    uint64_t left; /* else: for so many messages */
    struct distribution delay;
};

struct fifo_slot { /* when the newest message of a channel arrives */
    uint64_t channel, arrives_us;
};

struct sim {
    const struct sim_config *config;
    const struct cv_algorithm *algorithm;
    struct trace *trace; /* NULL: nobody is looking */
    struct roster roster;
    struct cv_env env;
    struct cv_out out;
    struct wheel wheel;
    struct rng rng;
    struct arena fixed, event_arena, body_arena;
    struct sim_event *event;
    uint32_t event_count, event_free;
    uint32_t body_free[32]; /* long bodies by power of two, in units of 64 bytes */
    struct sim_process *process;
    struct machine machine[MACHINES];
    unsigned char *state;
    const struct sim_load *load;
    struct topology topology;
    uint64_t hash;
    uint32_t cause;        /* the trace entry whose step is being applied */
    uint64_t background;   /* pending events that keep no run alive */
    uint64_t budget;       /* requests that may still be made */
    uint64_t outstanding;  /* requests, or starts of elections, that are not over */
    uint64_t actions_left; /* scheduled ones */
    bool scheduled;        /* the actions say who asks when */
    uint32_t paused;       /* how many processes are */
    uint64_t progress_us;  /* when something was last achieved */
    uint64_t patience_us;
    uint32_t heal;             /* EV_HEAL under way */
    const unsigned char *side; /* of a partition, by pid; NULL: none */
    unsigned char *random_side;
    bool plain; /* the network only delays */
    struct channel *channel;
    size_t channel_count;
    struct wheel_list answers; /* EV_CHOICE: to choices that are still to come, the oldest first */
    struct fifo_slot *fifo, *fifo_spare;
    uint64_t fifo_used, fifo_size;
    struct mutex_judge judge; /* of locks */
    struct election_judge election;
    struct detector_judge detectors;
    uint32_t *part; /* of the network each process is in, when there may be several; else NULL */
    const struct verdict *first_violated; /* the verdict that can fall before the end */
    struct sim_result result;
};

/* What the processes are asked to do, and by whom it is judged: locks or elections. */
struct sim_load {
    void (*open)(struct sim *sim);
    /* EV_ASK and EV_DONE; returns whether the event was kept. */
    bool (*event)(struct sim *sim, struct sim_event *event);
    void (*act)(struct sim *sim, const struct sim_action *action); /* ACT_ACQUIRE, ACT_CAMPAIGN */
    void (*told)(struct sim *sim, cv_pid p, const struct cv_tell *tell);
    void (*crashed)(struct sim *sim, cv_pid p);
    void (*recovered)(struct sim *sim, cv_pid p);
    void (*partitioned)(struct sim *sim);
    /* For algorithms that do not listen to detectors themselves. */
    void (*suspects)(struct sim *sim, cv_pid p, cv_pid subject);
    bool (*served)(const struct sim *sim);   /* all that was wanted has happened */
    bool (*hopeless)(const struct sim *sim); /* something is wanted, and patience is lost */
    void (*close)(struct sim *sim, uint64_t now, enum run_end end);
};
extern const struct sim_load lock_load, election_load;

/* Returns 0, or -1 when the system has no addresses left. */
int sim_open(struct sim *sim);
void sim_close(struct sim *sim);
/* Runs a checked configuration to its end; `trace` may be NULL.  Never fails. */
void sim_run(struct sim *sim, const struct sim_config *config, struct trace *trace);

/* What is judged in runs of this problem, and the verdicts of the last run, in the same order. */
struct properties sim_properties(enum cv_problem problem);
const struct verdict *sim_verdicts(const struct sim *sim);
bool sim_violated(const struct sim *sim);

/* ---- Between the simulator's files ---- */

/* run.c */
static inline uint32_t sim_event_new(struct sim *sim, enum sim_event_type type, cv_pid process) {
    uint32_t index = sim->event_free;
    if (index) {
        sim->event_free = sim->event[index].node.next;
    } else {
        arena_extend(&sim->event_arena, sizeof(struct sim_event));
        index = sim->event_count++;
    }
    struct sim_event *event = &sim->event[index];
    event->type = (uint8_t)type;
    event->flags = type >= EV_CRASH_SOME ? EVENT_BACKGROUND : 0;
    event->process = process;
    event->from = event->size = event->arg = event->cause = 0;
    sim->background += event->flags;
    return index;
}
static inline uint32_t sim_schedule(struct sim *sim, uint64_t time, enum sim_event_type type,
                                    cv_pid process) {
    uint32_t index = sim_event_new(sim, type, process);
    wheel_insert(&sim->wheel, index, time);
    return index;
}
/* Adds to the trace, when somebody is looking, and returns the entry; else 0. */
uint32_t sim_note(struct sim *sim, enum trace_type type, cv_pid p, cv_pid peer, uint64_t arg);
/* Before everything else. */
uint32_t sim_schedule_next(struct sim *sim, enum sim_event_type type, cv_pid process);
void sim_cancel(struct sim *sim, uint32_t *event);
void sim_free(struct sim *sim, uint32_t event);
/* Lets a timer of the algorithm fire now, if it is armed. */
void sim_timeout(struct sim *sim, cv_pid p, uint64_t timer);
/* Answers the next choice of p that has no answer yet. */
void sim_answer(struct sim *sim, cv_pid p, uint64_t answer);
void sim_step(struct sim *sim, cv_pid p, enum sim_machine machine, const struct cv_event *event,
              uint32_t cause);
static inline uint64_t sim_now(const struct sim *sim) { return sim->wheel.now; }
static inline void *sim_state(const struct sim *sim, cv_pid p, enum sim_machine m) {
    const struct machine *machine = &sim->machine[m]; /* a state's place need not be looked up */
    return sim->state + (machine->stride ? machine->of[1].state + (p - 1) * machine->stride
                                         : machine->of[p].state);
}
static inline enum sim_machine sim_machine_of(const struct sim_event *event) {
    return event->flags & EVENT_OF_DETECTOR ? DETECTOR : ALGORITHM;
}

/* network.c */
void network_open(struct sim *sim);
void network_send(struct sim *sim, cv_pid from, enum sim_machine machine,
                  const struct cv_send *send, uint32_t cause);
void network_free_long(struct sim *sim, const struct sim_event *event);
static inline const void *network_body(const struct sim *sim, const struct sim_event *event) {
    return event->size > SIM_BODY_MAX ? sim->body_arena.base + (size_t)event->arg * SIM_BODY_UNIT
                                      : event->body;
}
bool network_loses(const struct sim *sim, const struct sim_event *event);
static inline bool network_cut(const struct sim *sim, cv_pid a, cv_pid b) {
    return sim->side && sim->side[a] != sim->side[b];
}
void network_partition(struct sim *sim, const unsigned char *side);
void network_partition_at_random(struct sim *sim);
void network_except(struct sim *sim, const struct sim_action *action);

/* faults.c */
void faults_open(struct sim *sim);
void faults_event(struct sim *sim, const struct sim_event *event);
void faults_detect(struct sim *sim, const struct sim_event *event);
/* A detector told its process whom to suspect, or whom to trust again. */
void faults_suspicion(struct sim *sim, cv_pid p, const struct cv_tell *tell);

#endif
