/* The descendants of a process, wherever they have gone: into other process groups and sessions, or
 * away from parents that have died.  For the last the process must be a sub-reaper, which inherits
 * them. */
#ifndef CV_CLI_FAMILY_H
#define CV_CLI_FAMILY_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct stranger {
    pid_t pid;
    uint64_t start; /* another one with that number has another */
};

/* That of this process. */
struct family {
    struct stranger *strangers; /* descendants that it had before it adopted anybody */
    size_t count;
    pid_t unkillable; /* one that the last signal was not allowed to reach; 0: none */
};

/* Has orphans among our descendants become our children.  Those that we have now are somebody
 * else's, such as what a shell has started before it became this program, and stay alive. */
void family_adopt(struct family *family);

/* Sends a signal to all descendants of this process.  Returns how many there were. */
int family_signal(struct family *family, int signal);
/* The same for those of a child of ours. */
void family_signal_below(pid_t child, int signal);
/* The same for another process, which is held (proc.h), and those of it; to itself first. */
void family_signal_too(pid_t root, int hold, int signal);

/* Kills all descendants of this process, which must have adopted orphans, and waits until none is
 * left: those that fork meanwhile are found by the next look. */
void family_kill(struct family *family);

#endif
