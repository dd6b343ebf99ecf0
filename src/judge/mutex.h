/* The judge of mutual exclusion.
 *
 * It hears of requests, entries, exits, crashes and writes to the guarded resource, at a constant
 * cost each, and decides the four properties that a lock owes its users.  "Two believe they hold
 * the lock" and "two wrote to the resource" are told apart: a resource that checks fencing tokens
 * is safe from the first as long as the second does not happen. */
#ifndef CV_JUDGE_MUTEX_H
#define CV_JUDGE_MUTEX_H

#include <stdbool.h>

#include "base/arena.h"
#include "judge/judge.h"
#include "process/roster.h"

enum mutex_property { EXCLUSION, DEADLOCK, STARVATION, BOUNDED_WAIT, MUTEX_PROPERTIES };
extern const char *const mutex_property_name[MUTEX_PROPERTIES];

struct mutex_rules {
    bool fencing;            /* the resource refuses tokens older than one it has seen */
    uint64_t overtakes_most; /* a wait that is overtaken more often breaks the bound; 0: no bound */
    uint64_t starved_after;  /* overtakings of one wait that count as starvation */
};

struct mutex_competitor {
    uint64_t requested_us, entries_before; /* of the wait under way */
    uint64_t entry, token;                 /* of the stay under way */
    uint32_t entries;
    bool waiting, inside;
};

struct mutex_judge {
    const struct roster *roster;
    struct mutex_rules rules;
    struct mutex_competitor *of; /* by pid */
    uint32_t inside, waiting;
    uint64_t entries, requests;
    uint64_t left_us; /* when the section was last left */
    uint64_t delay_us_sum,
        wait_us_sum; /* from the later of request and exit, and from the request */
    uint64_t overtakes_max, wait_us_max; /* the observed bounds */
    cv_pid overtaken_most;
    cv_pid overtaken;                /* the first that was overtaken too often, CV_NOBODY: none */
    uint64_t overlaps;               /* entries while another was inside */
    uint64_t writes, writes_refused; /* at the resource */
    uint64_t writes_late;            /* taken although a later holder had written */
    uint64_t newest_entry, newest_token; /* that the resource has seen */
    cv_pid newest_writer;
    struct verdict verdict[MUTEX_PROPERTIES];
    struct verdict belief; /* exclusion in the processes' own eyes */
    cv_pid culprit[2];     /* the two that were inside together first */
};

void mutex_judge_open(struct mutex_judge *judge, struct arena *arena, const struct roster *roster,
                      const struct mutex_rules *rules);
void mutex_judge_request(struct mutex_judge *judge, uint64_t now, cv_pid p);
void mutex_judge_enter(struct mutex_judge *judge, uint64_t now, cv_pid p, uint64_t token);
void mutex_judge_leave(struct mutex_judge *judge, uint64_t now, cv_pid p);
void mutex_judge_crash(struct mutex_judge *judge, uint64_t now, cv_pid p);
/* Returns whether the resource took the write. */
bool mutex_judge_write(struct mutex_judge *judge, uint64_t now, cv_pid p);
/* The run is over: the properties that only an end can decide are decided. */
void mutex_judge_close(struct mutex_judge *judge, uint64_t now, enum run_end end);

/* The sum of the squares of the competitors' entries, for judging fairness. */
uint64_t mutex_judge_squares(const struct mutex_judge *judge);

#endif
