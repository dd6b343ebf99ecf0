/* How long a loop was busy, and with what: the time between two waits is charged to the kinds of
 * work that were done in it.
 *
 * Nobody else is heard while an iteration lasts, so the longest one is what an operator wants to
 * know, and which kind of work made it long. */
#ifndef CV_BASE_BUSY_H
#define CV_BASE_BUSY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/summary.h"

enum busy_kind {
    BUSY_OTHER,
    BUSY_REQUESTS, /* that are answered at once */
    BUSY_APPLY,
    BUSY_SENDING, /* to clients */
    BUSY_MEMBERS, /* messages of other servers */
    BUSY_DISK,    /* waiting for the log to be durable */
    BUSY_SNAPSHOT,
    BUSY_INSTALL, /* a snapshot of the leader */
    BUSY_EXPIRY,
    BUSY_REPORTS, /* words, metrics and commands */
    BUSY_KIND_COUNT,
};

struct busy_spread { /* of iterations, by how long they took: since the start */
    uint64_t count, total_us;
    uint64_t bucket[SUMMARY_BOUNDS]; /* as those of a summary */
};

struct busy {
    enum busy_kind kind;                   /* that is being done */
    uint64_t since_ns;                     /* when it was begun or went on */
    uint64_t waited_ns;                    /* in all, by the end of the last iteration */
    uint64_t waits_ns;                     /* when this iteration began to wait ... */
    uint64_t interrupted_ns;               /* ... and how long it had when a signal came */
    uint64_t spent_ns[BUSY_KIND_COUNT];    /* in this iteration */
    uint64_t max_us;                       /* the longest iteration ... */
    uint64_t kind_max_us[BUSY_KIND_COUNT]; /* ... and the longest time of each kind in one */
    struct busy_spread iterations, work[BUSY_KIND_COUNT]; /* that did some of that work */
};

void busy_begin(struct busy *busy);
/* From now on time is charged to another kind; returns the one before, to which to go back. */
enum busy_kind busy_with(struct busy *busy, enum busy_kind kind);
/* The loop waits for events from now on. */
void busy_waits(struct busy *busy);
/* A signal has ended the wait at `woken_ns` of CLOCK_MONOTONIC: libuv does not count such a wait.
 */
void busy_interrupted(struct busy *busy, uint64_t woken_ns);
/* How long this iteration has been busy, us.  `waited_ns`: how long the loop has waited for events,
 * ever; it did so while busy with BUSY_OTHER. */
uint64_t busy_iteration_ended(struct busy *busy, uint64_t waited_ns, enum busy_kind *mostly);
void busy_reset(struct busy *busy); /* the maxima */
const char *busy_kind_name(enum busy_kind kind);

#endif
