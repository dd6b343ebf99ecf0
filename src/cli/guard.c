/* The front: stands for the command towards shell and terminal, and watches the keeper. */
#include "cli/guard.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/guard_internal.h"
#include "cli/proc.h"
#include "cli/remote.h"

enum {
    KEEPER_LATE_MS = 1000, /* then it hangs, and is killed: what it would start dies with it */
    KILL_EVERY_MS = 10,
};

struct front {
    struct lease *lease;
    const char *last_word;               /* NULL: none */
    const struct descriptor *descriptor; /* NULL: the lease is for a command */
    struct family family;
    pid_t keeper;
    int keeper_hold; /* it is no child of ours when we are detached; -1 without /proc */
    int channel, signals, timer;
    bool detached; /* the caller's shell goes on, and we watch for it */
    bool done;     /* ... and it needs the lock no more */
};

/* ---- What both sides use ---- */

/* A signal that the caller ignores is not ours to forward: nohup, or a job in the background. */
void guard_signals(sigset_t *set) {
    static const int wanted[] = {SIGTERM, SIGINT,   SIGHUP,  SIGQUIT, SIGUSR1,
                                 SIGUSR2, SIGWINCH, SIGTSTP, SIGCONT};
    sigemptyset(set);
    sigaddset(set, SIGCHLD);
    for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++) {
        struct sigaction action;
        if (sigaction(wanted[i], NULL, &action) == 0 && action.sa_handler != SIG_IGN)
            sigaddset(set, wanted[i]);
    }
}

int guard_timer(void) { return timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK); }

void guard_set_timer(int timer, int64_t moment) {
    struct itimerspec when = {0};
    if (moment < 1) moment = 1; /* zero would switch it off */
    if (moment != LEASE_NONE)
        when.it_value = (struct timespec){moment / 1000, moment % 1000 * 1000000};
    timerfd_settime(timer, TFD_TIMER_ABSTIME, &when, NULL);
}

/* ---- The lease, when the keeper does not see to it ---- */

/* The keeper comes first, also on a busy machine. */
static int64_t lag(const struct front *front) { return atomic_load(&front->lease->margin) / 2; }

static void signal_holders(const struct front *front, int signal) {
    if (front->descriptor)
        descriptor_signal(front->descriptor, signal);
    else
        family_signal_below(front->keeper, signal);
}

static void kill_keeper(const struct front *front) {
    if (front->keeper_hold >= 0)
        proc_signal(front->keeper_hold, front->keeper, SIGKILL);
    else if (!front->detached)
        kill(front->keeper, SIGKILL);
}

static void enforce(struct front *front) {
    struct lease *lease = front->lease;
    if (atomic_load(&lease->running) == 0) return;
    int64_t now = lease_now() - lag(front);
    enum lease_step step = lease_step(lease, now);
    if (step == LEASE_TELL && !atomic_exchange(&lease->told, 1)) {
        signal_holders(front, SIGTERM);
        signal_holders(front, SIGCONT);
    }
    if (step != LEASE_KILL) return;
    atomic_store(&lease->told, 1); /* a keeper that is only late does not renew it any more */
    signal_holders(front, SIGKILL);
    lease_say_lost(lease, front->last_word);
    if (now >= lease_next(lease, now) + KEEPER_LATE_MS) kill_keeper(front);
}

static void set_timer(struct front *front) {
    const struct lease *lease = front->lease;
    int64_t next = LEASE_NONE, now = lease_now();
    if (atomic_load(&lease->running)) next = lease_next(lease, now - lag(front));
    if (next != LEASE_NONE) next += lag(front);
    if (next <= now) next = now + KILL_EVERY_MS; /* whatever has been started meanwhile */
    guard_set_timer(front->timer, next);
}

/* ---- Signals ---- */

/* With all of its job, as the terminal would: the shell gets the terminal back. */
static void stop(void) {
    sigset_t stops;
    sigemptyset(&stops);
    sigaddset(&stops, SIGTSTP);
    kill(0, SIGTSTP);
    sigprocmask(SIG_UNBLOCK, &stops, NULL); /* stopped here, unless nobody could continue us */
    sigprocmask(SIG_BLOCK, &stops, NULL);
}

static void forward(struct front *front, int signal) {
    unsigned char byte = (unsigned char)signal;
    if (signal == SIGCHLD || front->detached) return; /* the channel tells */
    if (signal == SIGTSTP && atomic_load(&front->lease->running) == 0)
        stop();
    else
        send(front->channel, &byte, 1, MSG_NOSIGNAL | MSG_DONTWAIT);
}

static void read_signals(struct front *front) {
    struct signalfd_siginfo info;
    while (read(front->signals, &info, sizeof info) == sizeof info)
        forward(front, (int)info.ssi_signo);
}

/* ---- A lock for the caller's shell ---- */

/* Returns to the shell, and leaves behind who watches the keeper. */
static void detach(struct front *front) {
    fflush(NULL);
    pid_t pid = fork();
    if (pid != 0) _exit(pid < 0 ? exit_code(EXIT_SYSTEM) : EXIT_OK);
    front->detached = true;
    guard_leave(front->descriptor);
}

/* Those that are not closed on exec were open before us.  To keep them would be to hold, for
 * example, the lock that another one stands for. */
static void close_inherited(void) {
    DIR *files = opendir("/proc/self/fd");
    if (!files) return;
    for (struct dirent *entry; (entry = readdir(files));) {
        int file = atoi(entry->d_name);
        if (file > STDERR_FILENO && fcntl(file, F_GETFD) == 0) close(file);
    }
    closedir(files);
}

/* Not if somebody may wait for the end of the pipe, nor if it may be a copy of the descriptor. */
static bool may_keep_errors(const struct descriptor *descriptor) {
    struct stat errors, file;
    if (fstat(STDERR_FILENO, &errors) != 0 || fstat(descriptor->again, &file) != 0) return false;
    return !S_ISFIFO(errors.st_mode) &&
           (errors.st_dev != file.st_dev || errors.st_ino != file.st_ino);
}

void guard_leave(const struct descriptor *descriptor) {
    int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
    setpgid(0, 0);
    close_inherited();
    if (nothing >= 0) {
        dup2(nothing, STDIN_FILENO);
        dup2(nothing, STDOUT_FILENO);
        if (!may_keep_errors(descriptor)) dup2(nothing, STDERR_FILENO);
        if (nothing > STDERR_FILENO) close(nothing);
    }
    if (chdir("/") != 0) return; /* then some disk cannot be unmounted */
}

/* ---- The end ---- */

/* A shell that runs a script ends it when a command has died of Ctrl-C, not when it has exited. */
static int pass_on(int code, int ended_by) {
    if (ended_by != SIGINT) return code;
    sigset_t interrupts;
    sigemptyset(&interrupts);
    sigaddset(&interrupts, SIGINT);
    signal(SIGINT, SIG_DFL);
    raise(SIGINT);
    sigprocmask(SIG_UNBLOCK, &interrupts, NULL);
    return code;
}

/* The command had the terminal, and nobody is left who would give it back. */
static void take_terminal(void) {
    int terminal = open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY);
    if (terminal < 0) return;
    pid_t group = tcgetpgrp(terminal);
    if (group > 0 && kill(-group, 0) != 0 && errno == ESRCH) tcsetpgrp(terminal, getpgrp());
    close(terminal);
}

/* The keeper is gone; whatever is left of the command is ours now. */
static int finish(struct front *front) {
    int status = 0;
    if (front->detached) {
        if (!front->done) descriptor_kill(front->descriptor);
        _exit(EXIT_OK);
    }
    bool running = atomic_load(&front->lease->running) != 0;
    while (waitpid(front->keeper, &status, 0) < 0 && errno == EINTR) {
    }
    if (!WIFEXITED(status) || running) family_kill(&front->family);
    if (WIFEXITED(status))
        return pass_on(WEXITSTATUS(status), atomic_load(&front->lease->ended_by));
    take_terminal();
    int code = 128 + WTERMSIG(status);
    if (!running) return remote_say(code, "the process that waits for the lock was killed");
    lease_say_lost(front->lease, front->last_word);
    if (lease_step(front->lease, lease_now()) == LEASE_KILL)
        return remote_say(EXIT_LOST, "the lock was lost, because it was not renewed in time; the "
                                     "command was killed");
    bool leased = atomic_load(&front->lease->deadline) != LEASE_NONE;
    return remote_say(EXIT_LOST,
                      "the process that watches over the lock was killed, and the "
                      "command with it%s",
                      leased ? "; the lock ends with its session" : "");
}

/* True: the keeper is gone. */
static bool read_channel(struct front *front) {
    char message;
    ssize_t size = recv(front->channel, &message, 1, MSG_DONTWAIT);
    if (size < 0 && (errno == EAGAIN || errno == EINTR)) return false;
    if (size == 1 && message == GUARD_STOP) stop();
    if (size == 1 && message == GUARD_HELD) detach(front);
    if (size == 1 && message == GUARD_DONE) front->done = true;
    return size != 1;
}

static int watch(struct front *front) {
    for (;;) {
        enforce(front);
        set_timer(front);
        struct pollfd files[] = {
            {front->channel, POLLIN, 0}, {front->signals, POLLIN, 0}, {front->timer, POLLIN, 0}};
        if (poll(files, 3, -1) < 0) continue;
        enforce(front); /* first of all, whatever has happened: we may have slept */
        if (files[1].revents) read_signals(front);
        if (files[0].revents && read_channel(front)) return finish(front);
    }
}

static _Noreturn void keep_and_exit(keep_fn *keep, void *arg, struct lease *lease, int channel,
                                    const sigset_t *mask, pid_t caller) {
    struct keeper keeper;
    keeper_open(&keeper, lease, channel, mask, caller);
    int code = keep(&keeper, arg);
    family_kill(&keeper.family);
    exit(code);
}

int guard(keep_fn *keep, void *arg, const struct descriptor *descriptor, const char *last_word) {
    int ends[2];
    sigset_t signals, blocked, mask;
    struct family family;
    struct lease *lease =
        mmap(NULL, sizeof *lease, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (lease == MAP_FAILED || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
        system_error("no memory or file descriptors are left: %s", strerror(errno));
    atomic_store(&lease->deadline, LEASE_NONE);
    guard_signals(&signals);
    blocked = signals;
    sigaddset(&blocked, SIGTTOU); /* who stands in the background may give the terminal away */
    sigprocmask(SIG_BLOCK, &blocked, &mask);
    family_adopt(&family);
    fflush(NULL);
    pid_t caller = getpid(), keeper = fork();
    if (keeper < 0) system_error("no process can be started: %s", strerror(errno));
    if (keeper == 0) {
        close(ends[0]);
        keep_and_exit(keep, arg, lease, ends[1], &mask, caller);
    }
    close(ends[1]);
    struct front front = {.lease = lease,
                          .descriptor = descriptor,
                          .last_word = last_word,
                          .family = family,
                          .keeper = keeper,
                          .keeper_hold = proc_hold(keeper),
                          .channel = ends[0]};
    front.signals = signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
    front.timer = guard_timer();
    if (front.signals < 0 || front.timer < 0) {
        kill(keeper, SIGKILL);
        system_error("no file descriptors are left: %s", strerror(errno));
    }
    return watch(&front);
}
