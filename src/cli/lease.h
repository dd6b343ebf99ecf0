/* A lease by the local clock: until when a command may run, and when it must be told to end.
 *
 * A command that holds a lock is told to end (SIGTERM) `grace` before it is killed, and is killed
 * `margin` before the deadline, after which the servers may give the lock to another.  Two
 * processes watch that (see guard.h), and share this record; whoever sees a moment pass first
 * acts. */
#ifndef CV_CLI_LEASE_H
#define CV_CLI_LEASE_H

#include <stdatomic.h>
#include <stdint.h>
#include <time.h>

#define LEASE_NONE INT64_MAX /* the deadline of what may run as long as it likes */

struct lease {
    _Atomic int64_t deadline; /* of CLOCK_BOOTTIME, ms */
    _Atomic int32_t grace, margin;
    _Atomic int32_t running;  /* a command runs under it, or is about to */
    _Atomic int32_t told;     /* SIGTERM has been sent */
    _Atomic int32_t ended_by; /* the signal that ended the command */
    _Atomic int32_t said;     /* that it was lost */
};

enum lease_step { LEASE_GOOD, LEASE_TELL, LEASE_KILL };

static inline int64_t lease_now(void) {
    struct timespec now;
    clock_gettime(CLOCK_BOOTTIME, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Prints that it was lost, unless that has been said; `word` may be NULL. */
void lease_say_lost(struct lease *lease, const char *word);

/* What must have happened by now. */
enum lease_step lease_step(const struct lease *lease, int64_t now);
/* The moment of the next step, LEASE_NONE if there is none. */
int64_t lease_next(const struct lease *lease, int64_t now);

/* How long before the deadline everything must be dead: time for a busy machine to kill. */
int32_t lease_margin(int32_t session_timeout);
/* The grace that is used unless told otherwise, and the most that a session leaves room for. */
int32_t lease_default_grace(int32_t session_timeout);
int32_t lease_most_grace(int32_t session_timeout);

#endif
