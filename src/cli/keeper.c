/* The keeper: starts the command, renews its lease, and sees to it that nothing is left of it. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/guard_internal.h"
#include "cli/remote.h"

void keeper_open(struct keeper *keeper, struct lease *lease, int channel, const sigset_t *mask,
                 pid_t front) {
    sigset_t signals;
    guard_signals(&signals);
    *keeper = (struct keeper){.lease = lease,
                              .channel = channel,
                              .mask = *mask,
                              .front_group = getpgrp(),
                              .file = -1,
                              .look_every = 1000,
                              .kill_at = LEASE_NONE};
    prctl(PR_SET_PDEATHSIG, SIGCONT); /* see guard.h */
    if (getppid() != front) _exit(exit_code(EXIT_SYSTEM));
    setpgid(0, 0);
    family_adopt(&keeper->family);
    keeper->signals = signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
    keeper->timer = guard_timer();
    keeper->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    keeper->terminal = open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY);
    if (keeper->signals < 0 || keeper->timer < 0 || keeper->wake < 0)
        system_error("no file descriptors are left: %s", strerror(errno));
}

void keeper_wake(struct keeper *keeper) {
    uint64_t one = 1;
    ssize_t written = write(keeper->wake, &one, sizeof one);
    (void)written; /* it fails only when it is about to wake anyway */
}

static void tell_front(const struct keeper *keeper, char message) {
    send(keeper->channel, &message, 1, MSG_NOSIGNAL | MSG_DONTWAIT);
}

/* ---- Starting ---- */

/* The child dies with the keeper, also if that has died before the child could say so. */
pid_t keeper_fork(struct keeper *keeper) {
    pid_t parent = getpid(), pid = fork();
    if (pid > 0) setpgid(pid, pid);
    if (pid != 0) return pid;
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(128 + SIGKILL);
    sigprocmask(SIG_SETMASK, &keeper->mask, NULL);
    return 0;
}

static _Noreturn void become(char *const *argv, char *const *environment) {
    execvpe(argv[0], argv, environment);
    int code = errno == ENOENT ? EXIT_NOT_FOUND : EXIT_CANNOT_RUN;
    dprintf(STDERR_FILENO, "conclave: %s: %s\n", argv[0],
            code == EXIT_NOT_FOUND ? "command not found" : strerror(errno));
    _exit(code);
}

/* The deadline as it is known now.  One that was reached is not taken back: by then the command
 * has been told to end, or has slept past it. */
static void renew(struct keeper *keeper) {
    struct lease *lease = keeper->lease;
    if (keeper->lost || atomic_load(&lease->told)) return;
    bool timed = keeper->deadline && !keeper->patient;
    atomic_store(&lease->deadline, timed ? keeper->deadline(keeper->arg) : LEASE_NONE);
}

int keeper_start(struct keeper *keeper, char *const *argv, char *const *environment) {
    keeper->gone = keeper->killing = keeper->lost = keeper->asked = keeper->said = false;
    keeper->hung_up = false;
    keeper->wants_terminal = keeper->has_terminal = false;
    keeper->kill_at = LEASE_NONE;
    atomic_store(&keeper->lease->told, 0);
    atomic_store(&keeper->lease->ended_by, 0);
    renew(keeper);
    if (lease_step(keeper->lease, lease_now()) != LEASE_GOOD) { /* something took its time */
        errno = ETIME;
        return -1;
    }
    atomic_store(&keeper->lease->running, 1); /* from now on the front watches */
    tell_front(keeper, GUARD_RUNS);
    pid_t pid = keeper_fork(keeper);
    if (pid == 0 && lease_step(keeper->lease, lease_now()) == LEASE_KILL) _exit(128 + SIGKILL);
    if (pid == 0) become(argv, environment);
    if (pid < 0) atomic_store(&keeper->lease->running, 0);
    keeper->command = pid < 0 ? 0 : pid;
    return pid < 0 ? -1 : 0;
}

/* ---- The terminal ----
 *
 * The command starts in the background of the terminal, and gets it when it first wants it: it
 * stops then, by SIGTTIN or SIGTTOU.  So a pager behind the command in a pipeline can have the
 * terminal, if the command does not want it. */

static bool give_terminal(struct keeper *keeper) {
    if (keeper->terminal < 0 || tcgetpgrp(keeper->terminal) != keeper->front_group) return false;
    keeper->has_terminal = tcsetpgrp(keeper->terminal, keeper->command) == 0;
    return keeper->has_terminal;
}

static void take_terminal(struct keeper *keeper) {
    if (keeper->has_terminal) tcsetpgrp(keeper->terminal, keeper->front_group);
    keeper->has_terminal = false;
}

static void go_on(struct keeper *keeper) {
    if (keeper->wants_terminal) give_terminal(keeper);
    if (keeper->gone || kill(-keeper->command, SIGCONT) != 0)
        family_signal(&keeper->family, SIGCONT);
}

/* Whoever has stopped it by SIGSTOP continues it as well.  In the other cases the shell does, when
 * it has seen the front stop. */
static void command_stopped(struct keeper *keeper, int signal) {
    if (signal != SIGTSTP && signal != SIGTTIN && signal != SIGTTOU) return;
    if (signal != SIGTSTP) {
        keeper->wants_terminal = true;
        if (give_terminal(keeper)) {
            kill(-keeper->command, SIGCONT);
            return;
        }
    }
    take_terminal(keeper);
    tell_front(keeper, GUARD_STOP);
}

/* ---- Telling and killing ---- */

static bool ends(int signal) {
    return signal == SIGTERM || signal == SIGINT || signal == SIGHUP || signal == SIGQUIT;
}

void keeper_tell(struct keeper *keeper, int signal) {
    if (!keeper->command) return;
    if (signal == SIGCONT) {
        go_on(keeper);
    } else if (signal == SIGUSR1 || signal == SIGUSR2) {
        if (!keeper->gone) kill(keeper->command, signal);
    } else if (keeper->gone || kill(-keeper->command, signal) != 0) {
        family_signal(&keeper->family, signal);
    }
    keeper->hung_up |= signal == SIGHUP;
    keeper->asked |= ends(signal) && signal != SIGHUP;
}

static void tell_to_end(struct keeper *keeper) {
    family_signal(&keeper->family, SIGTERM);
    family_signal(&keeper->family, SIGCONT); /* what is stopped would not hear it */
}

void keeper_end(struct keeper *keeper) {
    if (!keeper->command || keeper->kill_at != LEASE_NONE) return;
    keeper->kill_at = lease_now() + atomic_load(&keeper->lease->grace);
    tell_to_end(keeper);
}

/* Nothing else can be done: sudo's processes, for example, are not those of who calls it. */
static void say_unkillable(struct keeper *keeper) {
    if (!keeper->family.unkillable || keeper->said) return;
    keeper->said = true;
    remote_say(0,
               "process %d belongs to another user and cannot be killed; it goes on, also when "
               "somebody else holds the lock",
               (int)keeper->family.unkillable);
}

static void kill_all(struct keeper *keeper) {
    keeper->killing = true;
    if (!keeper->gone) kill(-keeper->command, SIGKILL); /* those that matter most, at once */
    family_signal(&keeper->family, SIGKILL);
    say_unkillable(keeper);
}

void keeper_kill(struct keeper *keeper) {
    if (!keeper->command) return;
    keeper->lost = true;
    kill_all(keeper);
}

static void enforce(struct keeper *keeper) {
    if (!keeper->command) return;
    int64_t now = lease_now();
    enum lease_step step = lease_step(keeper->lease, now);
    if (step == LEASE_KILL) {
        keeper_kill(keeper);
    } else if (step == LEASE_TELL) {
        keeper->lost = true;
        if (!atomic_exchange(&keeper->lease->told, 1)) tell_to_end(keeper);
    }
    if (keeper->killing || keeper->alone || now >= keeper->kill_at) kill_all(keeper);
}

/* ---- Events ---- */

/* When the command has ended, one that it has left behind in its group may read the terminal. */
static bool stands_for_command(const struct keeper *keeper, pid_t pid) {
    return pid == keeper->command ||
           (keeper->command && keeper->gone && getpgid(pid) == keeper->command);
}

/* False: there are no children any more, and so no descendants. */
static bool reap(struct keeper *keeper) {
    int status;
    pid_t pid;
    while ((pid = waitpid(-1, &status, WNOHANG | WUNTRACED | __WALL)) > 0) {
        if (WIFSTOPPED(status) && stands_for_command(keeper, pid)) {
            command_stopped(keeper, WSTOPSIG(status));
        } else if (pid == keeper->command && !keeper->gone) {
            keeper->gone = true;
            keeper->status = status;
            keeper->asked |= keeper->hung_up && WIFSIGNALED(status) && WTERMSIG(status) == SIGHUP;
        } else if (!WIFSTOPPED(status) && keeper->on_child) {
            keeper->on_child(pid, status, keeper->arg);
        }
    }
    return pid == 0 || errno != ECHILD;
}

static bool command_is_over(struct keeper *keeper) {
    bool children = reap(keeper);
    if (!keeper->command) return false;
    if (children && keeper->gone && keeper->asked) keeper_end(keeper); /* what it left behind */
    if (children) return false;
    take_terminal(keeper);
    keeper->lost |= atomic_load(&keeper->lease->told) != 0;
    if (WIFSIGNALED(keeper->status) && !keeper->lost)
        atomic_store(&keeper->lease->ended_by, WTERMSIG(keeper->status));
    atomic_store(&keeper->lease->running, 0);
    keeper->command = 0;
    return true;
}

static bool take_signal(struct keeper *keeper, int signal) {
    if (signal == SIGCHLD) return false;
    if (keeper->command) return keeper_tell(keeper, signal), false;
    keeper->signal = signal;
    return ends(signal);
}

static bool read_signals(struct keeper *keeper) {
    struct signalfd_siginfo info;
    bool interrupted = false;
    while (!interrupted && read(keeper->signals, &info, sizeof info) == sizeof info)
        interrupted = take_signal(keeper, (int)info.ssi_signo);
    return interrupted;
}

static bool read_channel(struct keeper *keeper) {
    unsigned char signal;
    if (keeper->alone) return false;
    ssize_t size = recv(keeper->channel, &signal, 1, MSG_DONTWAIT);
    if (size == 1) return take_signal(keeper, signal);
    if (size < 0 && (errno == EAGAIN || errno == EINTR)) return false;
    keeper->alone = true;
    return false;
}

static int64_t next_look(const struct keeper *keeper, int64_t until) {
    int64_t now = lease_now(), next = until;
    if (!keeper->command) return next;
    int64_t step = lease_next(keeper->lease, now), look = now + keeper->look_every;
    if (keeper->killing) look = now + (keeper->family.unkillable ? 100 : 3); /* forked meanwhile */
    if (step < next) next = step;
    if (keeper->kill_at < next) next = keeper->kill_at;
    return look < next ? look : next;
}

enum keeper_event keeper_next(struct keeper *keeper, int64_t until) {
    for (;;) {
        enforce(keeper); /* before anything else: we may have slept */
        if (command_is_over(keeper)) return KEEPER_ENDED;
        if (keeper->alone && !keeper->command) return KEEPER_ALONE;
        renew(keeper);
        guard_set_timer(keeper->timer, next_look(keeper, until));
        struct pollfd files[] = {{keeper->alone ? -1 : keeper->channel, POLLIN, 0},
                                 {keeper->signals, POLLIN, 0},
                                 {keeper->wake, POLLIN, 0},
                                 {keeper->timer, POLLIN, 0},
                                 {keeper->file, POLLIN, 0}};
        if (poll(files, 5, -1) < 0) continue;
        enforce(keeper);
        if (files[1].revents && read_signals(keeper)) return KEEPER_INTERRUPTED;
        if (files[0].revents && read_channel(keeper)) return KEEPER_INTERRUPTED;
        uint64_t count;
        if (read(keeper->wake, &count, sizeof count) > 0 || files[4].revents) return KEEPER_WOKEN;
        if (lease_now() >= until) return KEEPER_TIME;
    }
}

bool keeper_was_killed(const struct keeper *keeper) {
    int status = keeper->status;
    return atomic_load(&keeper->lease->told) ||
           (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

int keeper_code(const struct keeper *keeper) {
    return WIFEXITED(keeper->status) ? WEXITSTATUS(keeper->status) : 128 + WTERMSIG(keeper->status);
}

/* ---- A lock for the caller's shell ---- */

static void descriptor_closed(void *arg) { keeper_wake(arg); }

/* True: it is lost, and all are dead. */
static bool enforce_on_shell(struct keeper *keeper, const struct descriptor *descriptor,
                             bool lost) {
    struct lease *lease = keeper->lease;
    enum lease_step step = lost ? LEASE_KILL : lease_step(lease, lease_now());
    if (step == LEASE_TELL && !atomic_exchange(&lease->told, 1)) {
        descriptor_signal(descriptor, SIGTERM);
        descriptor_signal(descriptor, SIGCONT);
    }
    if (step == LEASE_KILL) descriptor_kill(descriptor);
    return step == LEASE_KILL;
}

/* Nobody watches us any more, but the lock is held. */
static void go_on_alone(struct keeper *keeper) {
    close(keeper->channel);
    keeper->channel = -1;
    keeper->alone = false;
}

int keeper_hand_over(struct keeper *keeper, struct descriptor *descriptor,
                     bool (*lost)(void *arg)) {
    struct lease *lease = keeper->lease;
    renew(keeper);
    guard_leave(descriptor);
    if (descriptor_watch(descriptor, descriptor_closed, keeper) != 0) return exit_code(EXIT_SYSTEM);
    atomic_store(&lease->running, 1);
    tell_front(keeper, GUARD_HELD);
    int code = EXIT_OK;
    while (!code && !atomic_load(&descriptor->closed)) {
        int64_t now = lease_now(), next = lease_next(lease, now), look = now + keeper->look_every;
        if (enforce_on_shell(keeper, descriptor, lost(keeper->arg))) code = EXIT_LOST;
        renew(keeper);
        if (!code && keeper_next(keeper, look < next ? look : next) == KEEPER_ALONE)
            go_on_alone(keeper);
    }
    atomic_store(&lease->running, 0);
    if (!code) tell_front(keeper, GUARD_DONE);
    return code;
}
