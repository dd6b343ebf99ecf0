/* The judge of mutual exclusion.
 *
 * It observes requests, entries, exits, crashes and writes to the guarded resource, in constant
 * time each, and decides the four properties that a lock owes its users.  Two processes that
 * believe they hold the lock differ from two that wrote to the resource: with fencing tokens
 * exclusion is judged at the resource. */
#ifndef CV_LAB_JUDGE_MUTEX_H
#define CV_LAB_JUDGE_MUTEX_H

#include <stdbool.h>

#include "base/arena.h"
#include "lab/judge/judge.h"
#include "process/roster.h"

enum mutex_property { EXCLUSION, DEADLOCK, STARVATION, BOUNDED_WAIT, MUTEX_PROPERTIES };
extern const char *const mutex_property_name[MUTEX_PROPERTIES];

struct mutex_rules {
    bool fencing;             /* the resource refuses tokens older than one it has seen */
    uint64_t overtakes_bound; /* on the entries of others during one wait; 0: no bound */
    uint64_t starved_after;   /* this many entries of others during one wait are starvation */
};

struct mutex_competitor {
    uint64_t requested_us, entries_before; /* of the current wait */
    uint64_t entry, token;                 /* of the current stay inside */
    uint32_t entries;
    bool waiting, inside;
};

struct mutex_judge {
    const struct roster *roster;
    struct mutex_rules rules;
    struct mutex_competitor *of; /* by pid */
    uint32_t inside, waiting;
    uint64_t entries, requests;
    uint64_t left_us; /* when the critical section was last left */
    uint64_t delay_us_sum,
        wait_us_sum; /* from the later of request and exit, and from the request */
    uint64_t overtakes_max, wait_us_max; /* the observed bounds */
    cv_pid most_overtaken;
    cv_pid overtaken;                /* the first that was overtaken too often, CV_NOBODY: none */
    uint64_t overlaps;               /* entries while another was inside */
    uint64_t writes, writes_refused; /* at the resource */
    uint64_t writes_late;            /* accepted although a later holder had written */
    uint64_t newest_entry, newest_token; /* that the resource has seen */
    cv_pid newest_writer;
    struct verdict verdict[MUTEX_PROPERTIES];
    struct verdict belief; /* exclusion as the processes believe it, without fencing */
    cv_pid culprit[2];     /* the two that were inside together first */
};

void mutex_judge_open(struct mutex_judge *judge, struct arena *arena, const struct roster *roster,
                      const struct mutex_rules *rules);
void mutex_judge_request(struct mutex_judge *judge, uint64_t now, cv_pid p);
void mutex_judge_enter(struct mutex_judge *judge, uint64_t now, cv_pid p, uint64_t token);
void mutex_judge_leave(struct mutex_judge *judge, uint64_t now, cv_pid p);
void mutex_judge_crash(struct mutex_judge *judge, uint64_t now, cv_pid p);
/* Returns whether the resource accepted the write. */
bool mutex_judge_write(struct mutex_judge *judge, uint64_t now, cv_pid p);
/* Ends the run, and decides the properties that only the end can decide. */
void mutex_judge_close(struct mutex_judge *judge, uint64_t now, enum run_end end);

/* The sum of the squares of the competitors' entries, for judging fairness. */
uint64_t mutex_judge_squares(const struct mutex_judge *judge);

#endif
