/* Commands and compilers that an exercise runs.  None goes on without the exercise, and a signal
 * that ends the exercise leaves no files of an answer behind: from the moment that there are some,
 * such signals stay pending, are looked for while a child runs, and take effect when the files are
 * gone. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/exercise.h"
#include "language/language.h"

struct exercise_child {
    pid_t pid;
    int end, output; /* ready when it has ended; what it writes, -1: that is not captured */
};

/* Not those that are ignored, as under nohup: held back, they would be pending all the same. */
static sigset_t ending_signals(void) {
    static const int ending[] = {SIGINT, SIGTERM, SIGHUP};
    sigset_t set;
    sigemptyset(&set);
    for (size_t i = 0; i < sizeof ending / sizeof *ending; i++) {
        struct sigaction action;
        if (sigaction(ending[i], NULL, &action) == 0 && action.sa_handler != SIG_IGN)
            sigaddset(&set, ending[i]);
    }
    return set;
}

void answer_hold_signals(bool hold) {
    sigset_t set = ending_signals();
    sigprocmask(hold ? SIG_BLOCK : SIG_UNBLOCK, &set, NULL);
}

/* True in the child, which ends with this process. */
static bool fork_child(struct exercise_child *child, bool captured) {
    int ends[2] = {-1, -1};
    pid_t parent = getpid();
    fflush(NULL);
    if (captured && pipe2(ends, O_CLOEXEC) != 0) system_error("pipe: %s", strerror(errno));
    pid_t pid = fork();
    if (pid < 0) system_error("fork: %s", strerror(errno));
    if (pid) {
        *child = (struct exercise_child){pid, (int)syscall(SYS_pidfd_open, pid, 0), ends[0]};
        if (child->end < 0) system_error("pidfd_open: %s", strerror(errno));
        if (captured) close(ends[1]);
        return false;
    }
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent) _exit(EXIT_SYSTEM); /* it has ended before that */
    answer_hold_signals(false);
    if (captured) dup2(ends[1], STDOUT_FILENO);
    return true;
}

/* Up to the end of the child, and of what it writes; false: a signal has come before. */
static bool await_end(const struct exercise_child *child, int signals, struct bytes *output) {
    bool captured = child->output >= 0;
    struct pollfd ready[] = {{.fd = captured ? child->output : child->end, .events = POLLIN},
                             {.fd = signals, .events = POLLIN}};
    unsigned char part[4096];
    for (;;) {
        if (poll(ready, 2, -1) < 0) {
            if (errno != EINTR) system_error("poll: %s", strerror(errno));
            continue;
        }
        if (ready[1].revents) return false;
        ssize_t size = captured ? read(child->output, part, sizeof part) : 0;
        if (size == 0) return true;
        if (size > 0) bytes_add(output, part, (size_t)size);
        if (size < 0 && errno != EINTR) system_error("read: %s", strerror(errno));
    }
}

/* A compiler is given the time to remove its own files; what it has started may still make one. */
static _Noreturn void end_early(const struct exercise_child *child, const struct answer *answer) {
    enum { PATIENCE_MS = 5000, MOMENT_MS = 20, MOMENTS = 100 };
    struct pollfd end = {.fd = child->end, .events = POLLIN};
    kill(child->pid, SIGTERM);
    if (poll(&end, 1, PATIENCE_MS) == 0) kill(child->pid, SIGKILL);
    waitpid(child->pid, NULL, 0);
    for (int i = 0; i < MOMENTS && !answer_remove_files(answer); i++) poll(NULL, 0, MOMENT_MS);
    answer_hold_signals(false); /* the end */
    _exit(EXIT_SYSTEM);
}

static int wait_for(struct exercise_child *child, const struct answer *answer,
                    struct bytes *output) {
    sigset_t set = ending_signals();
    int status, signals = signalfd(-1, &set, SFD_CLOEXEC); /* read by nobody */
    if (signals < 0) system_error("signalfd: %s", strerror(errno));
    if (!await_end(child, signals, output)) end_early(child, answer);
    close(signals);
    close(child->end);
    if (child->output >= 0) close(child->output);
    while (waitpid(child->pid, &status, 0) < 0)
        if (errno != EINTR) system_error("waitpid: %s", strerror(errno));
    return status;
}

/* In the child: an answer that never ends is ended. */
static _Noreturn void become(char **words, unsigned long seconds) {
    struct rlimit cpu = {.rlim_cur = seconds, .rlim_max = seconds + 1}, core = {0};
    setrlimit(RLIMIT_CPU, &cpu);
    setrlimit(RLIMIT_CORE, &core);
    execv("/proc/self/exe", words);
    _exit(EXIT_SYSTEM);
}

int exercise_run(char **words, unsigned long seconds, const struct answer *answer,
                 struct bytes *output) {
    struct exercise_child child;
    if (fork_child(&child, output)) {
        if (!output) setenv("LC_ALL", language_chosen() == PORTUGUESE ? "pt" : "C", 1);
        become(words, seconds);
    }
    int status = wait_for(&child, answer, output);
    return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

int exercise_compile(char **words, const struct answer *answer) {
    enum { NO_COMPILER = 127 };
    struct exercise_child child;
    if (fork_child(&child, false)) {
        execvp(words[0], words);
        _exit(NO_COMPILER);
    }
    int status = wait_for(&child, answer, NULL);
    return WIFEXITED(status) ? WEXITSTATUS(status) : EXIT_SYSTEM;
}
