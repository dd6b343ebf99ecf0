/* Waiting for the server, for signals and for children, in one thread. */
#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "cli/remote.h"

void remote_catch_signals(struct remote *remote) {
    static const int caught[] = {SIGINT, SIGTERM, SIGHUP, SIGCHLD};
    sigset_t set;
    if (remote->signals) return;
    sigemptyset(&set);
    for (size_t i = 0; i < sizeof caught / sizeof caught[0]; i++) {
        struct sigaction action;
        if (sigaction(caught[i], NULL, &action) == 0 && action.sa_handler != SIG_IGN)
            sigaddset(&set, caught[i]);
    }
    sigprocmask(SIG_BLOCK, &set, NULL);
    remote->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    if (remote->signals < 0) remote->signals = 0;
}

static int take_signal(struct remote *remote) {
    struct signalfd_siginfo info;
    if (!remote->signals || read(remote->signals, &info, sizeof info) != sizeof info) return 0;
    if (info.ssi_signo == SIGCHLD) return 0;
    remote->by_terminal = info.ssi_code == SI_KERNEL;
    return remote->interrupted = (int)info.ssi_signo;
}

int remote_wait_both(struct remote *remote, struct remote *other, int64_t ms) {
    int timeout = ms == CV_FOREVER ? -1 : ms > INT32_MAX ? INT32_MAX : (int)ms;
    struct pollfd polled[] = {
        {.fd = cv_fd(remote->client), .events = POLLIN},
        {.fd = remote->signals ? remote->signals : -1, .events = POLLIN},
        {.fd = other ? cv_fd(other->client) : -1, .events = POLLIN},
    };
    poll(polled, 3, timeout);
    cv_process(remote->client);
    if (other) cv_process(other->client);
    return take_signal(remote);
}

int remote_wait(struct remote *remote, int64_t ms) { return remote_wait_both(remote, NULL, ms); }

int remote_call(struct remote *remote, const struct cv_op *op, struct cv_result **result) {
    enum { TRIES = 3 };
    bool reads = op->type == CV_OP_EXISTS || op->type == CV_OP_GET || op->type == CV_OP_CHILDREN ||
                 op->type == CV_OP_GET_ACL;
    for (int i = 1;; i++) {
        int error = cv_call(remote->client, op, result);
        if (error != CV_CONNECTION_LOSS || !reads || i == TRIES) return error;
        if (result) cv_result_free(*result);
    }
}

static void ignore(const struct cv_result *result, void *arg) { (void)result, (void)arg; }

void remote_unwatch(struct remote *remote, const char *path, cv_watch_fn *watch, void *arg) {
    struct cv_op op = {.type = CV_OP_REMOVE_WATCH, .path = path, .watch = watch, .watch_arg = arg};
    cv_start(remote->client, &op, ignore, NULL); /* counts at once, whatever the server says */
}

int remote_do(struct remote *remote, const struct cv_op *op, struct cv_result **result) {
    int error = remote_call(remote, op, result);
    if (error == CV_OK) return 0;
    if (result) cv_result_free(*result), *result = NULL;
    return remote_fail(remote, error, op->path);
}

char **remote_command(int *argc, char **argv) {
    for (int i = 1; i < *argc; i++) {
        if (strcmp(argv[i], "--") != 0) continue;
        argv[i] = NULL;
        *argc = i;
        return argv + i + 1;
    }
    return NULL;
}
