#include "cli/health.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

pid_t health_start(struct run *run, const char *command) {
    pid_t pid = keeper_fork(run->keeper);
    if (pid != 0) return pid;
    int nothing = open("/dev/null", O_RDONLY);
    if (nothing >= 0) dup2(nothing, STDIN_FILENO);
    execle("/bin/sh", "sh", "-c", command, (char *)NULL, run->environment);
    _exit(EXIT_NOT_FOUND);
}

void health_look(struct health *health, struct run *run) {
    int64_t now = lease_now();
    if (!health->command) {
        health->known = health->well = true;
    } else if (health->check && now >= health->limit) {
        kill(-health->check, SIGKILL);
        health->limit = LEASE_NONE;
    } else if (!health->check && now >= health->next) {
        health->check = health_start(run, health->command);
        health->limit = now + health->every;
        if (health->check < 0) health_ended(health, health->check, 1);
    }
}

int64_t health_next(const struct health *health) {
    if (!health->command) return LEASE_NONE;
    return health->check ? health->limit : health->next;
}

void health_ended(struct health *health, pid_t pid, int status) {
    if (!health->command || pid != health->check) return;
    bool by_us = health->limit == LEASE_NONE; /* it took too long */
    int signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    health->check = 0;
    health->next = lease_now() + health->every;
    /* One that has died with the command, which was told to end, says nothing. */
    if (!by_us && (signal == SIGTERM || signal == SIGKILL)) return;
    health->known = true;
    health->well = WIFEXITED(status) && WEXITSTATUS(status) == 0;
}
