/* What the simulator's files share: events, processes, the network, faults and loads. */
#ifndef CV_LAB_SIM_INTERNAL_H
#define CV_LAB_SIM_INTERNAL_H

#include "lab/sim/sim.h"

enum sim_event_type {
    EV_MESSAGE, /* process, from, kind, size, body */
    EV_TIMER,   /* process; arg: timer */
    EV_CHOICE,  /* process; arg: the answer */
    EV_DETECT,  /* process hears about `from`; arg: CV_DOWN or CV_UP */
    EV_ASK,     /* process: its application wants the lock; arg: REQUEST_MADE */
    EV_DONE,    /* process: its application is done with the lock; a pause parks all above */
    EV_ACTION,  /* arg: index of a scheduled action */
    EV_RECOVER, /* process; arg: amnesia */
    EV_RESUME,  /* process */
    EV_NOTICE,  /* process: the oracle may now report it as down; arg: number of the outage */
    EV_TRUST,   /* process: the oracle reports it as back */
    EV_HEAL,
    EV_CRASH_SOME, /* faults drawn at a rate; each draws the next one */
    EV_PAUSE_SOME,
    EV_PARTITION,
};

enum { SIM_BODY_MAX = 24, SIM_BODY_UNIT = 64 };
/* Flags of an event. */
enum {
    EVENT_BACKGROUND = 1,  /* of a fault generator, which does not keep the run alive */
    EVENT_PARKED = 2,      /* out of the wheel until its process resumes */
    EVENT_OF_DETECTOR = 4, /* for the failure detector of the process, not its algorithm */
    EVENT_ARMED = 8,       /* a timer outside the wheel, until the schedule lets it fire */
    EVENT_SERVED = 16,     /* a message for which the receiver has had its time */
    EVENT_SENDER = 32,     /* a message: times the incarnation of its sender, modulo 8 */
};

struct sim_event {
    struct wheel_node node;
    cv_pid process, from;
    uint32_t size;
    uint32_t arg;   /* for a long body: its index in body_arena */
    uint32_t cause; /* the trace entry that led to it, while tracing */
    uint8_t type, flags, kind;
    uint8_t incarnation; /* of the receiver when it was sent, modulo 256 */
    _Alignas(8) unsigned char body[SIM_BODY_MAX];
};
_Static_assert(sizeof(struct sim_event) == WHEEL_NODE_BYTES, "an event is one cache line");

enum app_phase { APP_IDLE, APP_WAITING, APP_INSIDE };
enum { REQUEST_MADE = 1 }; /* arg of EV_ASK: the request has been counted */

struct machine_state {
    uint64_t state, saved; /* offsets of its state and of its saved durable prefix */
    uint32_t rows, durable;
};

struct sim_process {
    uint64_t hold_us;
    uint32_t arrival;         /* the EV_ASK of the next request */
    uint32_t next;            /* EV_DONE, or the EV_ASK of a request that had to wait */
    uint32_t comeback;        /* the pending EV_RESUME or EV_RECOVER */
    struct wheel_list queued; /* requests that came while it was busy */
    uint32_t outages;         /* crashes and pauses so far */
    uint32_t incarnation;     /* crashes so far */
    bool crashed, paused, suspected;
    uint8_t app;
    uint8_t unsent; /* bit per incarnation, modulo 8: what it had sent when it crashed is lost */
    struct wheel_list parked; /* events that wait for the end of a pause */
    float clock;              /* the rate of its clock */
};

struct channel { /* a scheduled exception to the delay or the loss of the run */
    cv_pid from, to;
    bool loses;    /* else it delays */
    bool stays;    /* until a newer one replaces it */
    uint64_t left; /* else: the number of messages that it is for */
    struct distribution delay;
};

struct fifo_slot { /* when the newest message of a channel arrives */
    uint64_t channel, arrives_us;
};

/* A load: what the applications ask for, and the judge of it; of locks or of elections. */
struct sim_load {
    void (*open)(struct sim *sim);
    /* EV_ASK and EV_DONE; returns whether the event was kept. */
    bool (*event)(struct sim *sim, struct sim_event *event);
    void (*act)(struct sim *sim, const struct sim_action *action); /* ACT_ACQUIRE, ACT_CAMPAIGN */
    void (*told)(struct sim *sim, cv_pid p, const struct cv_tell *tell);
    void (*crashed)(struct sim *sim, cv_pid p);
    void (*recovered)(struct sim *sim, cv_pid p);
    void (*partitioned)(struct sim *sim);
    /* For algorithms that do not use the failure detector themselves. */
    void (*suspects)(struct sim *sim, cv_pid p, cv_pid subject);
    bool (*served)(const struct sim *sim);  /* everything that was asked for has happened */
    bool (*stalled)(const struct sim *sim); /* something was asked for, and there is no progress */
    void (*close)(struct sim *sim, uint64_t now, enum run_end end);
};
extern const struct sim_load lock_load, election_load;

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
/* Adds to the trace and returns the entry; 0 when the run is not traced. */
uint32_t sim_note(struct sim *sim, enum trace_type type, cv_pid p, cv_pid peer, uint64_t arg);
/* Schedules an event before all others. */
uint32_t sim_schedule_next(struct sim *sim, enum sim_event_type type, cv_pid process);
void sim_cancel(struct sim *sim, uint32_t *event);
void sim_free(struct sim *sim, uint32_t event);
/* Lets a timer of the algorithm fire now, if it is armed. */
void sim_timeout(struct sim *sim, cv_pid p, uint64_t timer);
/* Provides the answer to the next choice of p that has none yet. */
void sim_answer(struct sim *sim, cv_pid p, uint64_t answer);
void sim_step(struct sim *sim, cv_pid p, enum sim_machine machine, const struct cv_event *event,
              uint32_t cause);
static inline uint64_t sim_now(const struct sim *sim) { return sim->wheel.now; }
static inline void *sim_state(const struct sim *sim, cv_pid p, enum sim_machine m) {
    const struct machine *machine = &sim->machine[m]; /* a stride saves a lookup */
    return sim->state + (machine->stride ? machine->of[1].state + (p - 1) * machine->stride
                                         : machine->of[p].state);
}
static inline enum sim_machine sim_machine_of(const struct sim_event *event) {
    return event->flags & EVENT_OF_DETECTOR ? DETECTOR : ALGORITHM;
}

/* service.c */
void service_open(struct sim *sim);
/* Whether the message has to wait for its receiver; it comes back then. */
bool service_queues(struct sim *sim, uint32_t event);

/* ending.c */
/* Tells the trace how the run ended: what was violated, and who waits for whom. */
void ending_record(struct sim *sim);

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
/* The detector of p suspects a process, or trusts it again. */
void faults_suspicion(struct sim *sim, cv_pid p, const struct cv_tell *tell);

#endif
