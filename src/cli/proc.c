#include "cli/proc.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* "PID (NAME) STATE PARENT ...", where the name may contain anything; the 22nd is the start. */
bool proc_read(int folder, const char *path, struct proc *proc) {
    char text[512], state;
    int parent, file = openat(folder, path, O_RDONLY | O_CLOEXEC);
    if (file < 0) return false;
    ssize_t size = read(file, text, sizeof text - 1);
    close(file);
    if (size <= 0) return false;
    text[size] = 0;
    *proc = (struct proc){0};
    const char *after = strrchr(text, ')');
    if (!after || sscanf(after + 1,
                         " %c %d %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s "
                         "%*s %" SCNu64,
                         &state, &parent, &proc->start) != 3)
        return false;
    proc->parent = parent;
    proc->dead = state == 'Z' || state == 'X';
    return true;
}

int proc_hold(pid_t pid) {
    char path[32];
    snprintf(path, sizeof path, "/proc/%d", (int)pid);
    return open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

/* A kernel that does not know that way, or does not allow it, is told the number. */
int proc_signal(int hold, pid_t pid, int signal) {
    if (syscall(SYS_pidfd_send_signal, hold, signal, NULL, 0) == 0) return 0;
    return errno == ESRCH ? -1 : kill(pid, signal);
}
