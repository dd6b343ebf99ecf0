/* What /proc says of a process, and signals that reach nobody else.
 *
 * The number of a process that has ended may soon be another's.  A hold on a process, a descriptor
 * of its folder in /proc, never becomes another's. */
#ifndef CV_CLI_PROC_H
#define CV_CLI_PROC_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct proc {
    pid_t parent;
    bool dead;
    uint64_t start; /* of two with the same number, when each began */
};

/* Reads a file `stat`, relative to a folder.  False: the process has ended. */
bool proc_read(int folder, const char *path, struct proc *proc);

/* -1 and errno: ENOENT if there is no such process. */
int proc_hold(pid_t pid);
/* Sends a signal to the process that is held, whose number was `pid`. */
int proc_signal(int hold, pid_t pid, int signal);

#endif
