/* What front and keeper say to each other. */
#ifndef CV_CLI_GUARD_INTERNAL_H
#define CV_CLI_GUARD_INTERNAL_H

#include "cli/guard.h"

/* Over the channel go single bytes: signals from the front to the keeper, and these back. */
enum guard_message {
    GUARD_RUNS = 'R', /* a command is about to run under the lease */
    GUARD_STOP = 'S', /* the command has stopped, or wants the terminal: stop as well */
    GUARD_HELD = 'H', /* the lock is held for the caller's shell (--fd): return to it */
    GUARD_DONE = 'D', /* the shell needs the lock no more */
};

/* Signals that a caller may send, and SIGCHLD. */
void guard_signals(sigset_t *set);
/* A timer of CLOCK_BOOTTIME, and when it goes off; LEASE_NONE: never. */
int guard_timer(void);
void guard_set_timer(int timer, int64_t moment);

/* Leaves the shell's job: its descriptors, its group, its directory. */
void guard_leave(const struct descriptor *descriptor);

/* Gets the keeper's side ready; it runs in a process group of its own. */
void keeper_open(struct keeper *keeper, struct lease *lease, int channel, const sigset_t *mask,
                 pid_t front);

#endif
