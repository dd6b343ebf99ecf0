/* conclave peer interactive: the application is whoever types. */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/peer.h"

enum { LINE_MAX_ = 64 };

struct talk {
    struct peer_request *request;
    struct peer_thread *thread;
    enum { IDLE, WAITING, INSIDE } phase; /* of a lock */
    char line[LINE_MAX_];
    size_t used;
    bool quits;
};

static void wake(void *arg) {
    uint64_t one = 1;
    if (write(*(int *)arg, &one, sizeof one) < 0) return; /* it is awake */
}

static void say(const char *text) {
    puts(text);
    fflush(stdout);
}

static void take_tells(struct talk *talk) {
    struct cv_tell tell;
    char text[96];
    while (peer_thread_next(talk->thread, &tell)) {
        char term[24] = "";
        if (tell.term) snprintf(term, sizeof term, " in term %u", tell.term);
        switch (tell.what) {
        case CV_ENTERED:
            talk->phase = INSIDE;
            if (tell.arg)
                snprintf(text, sizeof text, "inside, token %" PRIu64, tell.arg);
            else
                snprintf(text, sizeof text, "inside");
            break;
        case CV_LEFT:
            talk->phase = IDLE;
            snprintf(text, sizeof text, "idle");
            break;
        case CV_ELECTED: snprintf(text, sizeof text, "leads%s", term); break;
        case CV_FOLLOWS:
            snprintf(text, sizeof text, "follows %" PRIu64 "%s", tell.arg, term);
            break;
        case CV_LEADERLESS: snprintf(text, sizeof text, "leaderless"); break;
        default: continue;
        }
        say(text);
    }
}

/* "cut 2" or "heal 2": the network between this peer and another. */
static bool take_parting(struct talk *talk, const char *line) {
    const struct peer_setup *setup = &talk->request->setup;
    char word[8], rest[2];
    unsigned other;
    if (sscanf(line, "%7s %u %1s", word, &other, rest) != 2) return false;
    bool cut = strcmp(word, "cut") == 0;
    if ((!cut && strcmp(word, "heal") != 0) || other == setup->config.self || !other ||
        other > setup->group.processes)
        return false;
    peer_thread_part(talk->thread, other, cut);
    return true;
}

static void take_command(struct talk *talk, const char *line) {
    const struct peer_request *request = talk->request;
    bool lock = request->setup.group.algorithm->problem == CV_MUTEX;
    bool serves = request->setup.config.self <= request->setup.group.servers;
    if (strcmp(line, "quit") == 0 || strcmp(line, "q") == 0) {
        talk->quits = true;
    } else if (strcmp(line, "acquire") == 0 && lock && !serves && talk->phase == IDLE) {
        talk->phase = WAITING;
        say("waits");
        peer_thread_call(talk->thread, CV_ACQUIRE);
    } else if (strcmp(line, "release") == 0 && talk->phase == INSIDE) {
        peer_thread_call(talk->thread, CV_RELEASE);
    } else if (strcmp(line, "campaign") == 0 && !lock) {
        peer_thread_call(talk->thread, CV_CAMPAIGN);
    } else if (*line && !take_parting(talk, line)) {
        fprintf(stderr,
                "conclave: '%s' is nothing that peer %u can do now; there are %s, cut N, heal N "
                "and quit\n",
                line, request->setup.config.self, lock ? "acquire, release" : "campaign");
    }
}

static void read_input(struct talk *talk) {
    char part[256];
    ssize_t size = read(STDIN_FILENO, part, sizeof part);
    if (size <= 0) talk->quits = true;
    for (ssize_t i = 0; i < size && !talk->quits; i++) {
        if (part[i] == '\n') {
            talk->line[talk->used] = 0;
            talk->used = 0;
            take_command(talk, talk->line);
        } else if (talk->used < sizeof talk->line - 1) {
            talk->line[talk->used++] = part[i];
        }
    }
}

static int take_signals(void) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGINT), sigaddset(&set, SIGTERM), sigaddset(&set, SIGHUP);
    sigprocmask(SIG_BLOCK, &set, NULL);
    int signals = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
    if (signals < 0) system_error("signals: %s", strerror(errno));
    return signals;
}

int peer_interact(struct peer_request *request) {
    struct talk talk = {.request = request};
    char error[PEER_ERROR_MAX];
    const char *failure = NULL;
    int signals = take_signals(), woken = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (woken < 0) system_error("no descriptor: %s", strerror(errno));
    talk.thread =
        peer_thread_open(&request->setup.config, &request->setup.credentials, wake, &woken, error);
    if (!talk.thread) system_error("peer %u cannot start: %s", request->setup.config.self, error);
    say(request->setup.config.self <= request->setup.group.servers ? "serves"
        : request->setup.group.algorithm->problem == CV_MUTEX      ? "idle"
                                                                   : "leaderless");
    struct pollfd ready[] = {{woken, POLLIN, 0}, {STDIN_FILENO, POLLIN, 0}, {signals, POLLIN, 0}};
    while (!talk.quits && !(failure = peer_thread_failure(talk.thread))) {
        uint64_t count;
        if (poll(ready, 3, -1) < 0 && errno != EINTR) break;
        if (ready[0].revents && read(woken, &count, sizeof count) < 0) continue;
        take_tells(&talk);
        if (ready[1].revents) read_input(&talk);
        if (ready[2].revents) talk.quits = true;
    }
    if (failure)
        fprintf(stderr, "conclave: peer %u ends: %s\n", request->setup.config.self, failure);
    peer_thread_close(talk.thread);
    close(woken);
    close(signals);
    return failure ? exit_code(EXIT_SYSTEM) : EXIT_OK;
}
