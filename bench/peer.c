/* Peers beside bare TCP, on loopback:
 *
 *     peer bare BYTES BYTES ROUNDS                    round trips between two processes that do
 *                                                     nothing else: us for each
 *     peer both BYTES BYTES ROUNDS                    the same with two others at once, as a
 *                                                     broadcast and its answers
 *     peer links BYTES BYTES ROUNDS                   the same with one, over a connection for each
 *                                                     direction and with epoll, as links are
 *     peer ALGORITHM DIRECTORY PROCESSES WHO ROUNDS   us for each time that WHO enters and leaves,
 *                                                     while the others only serve
 *
 * With KEY in the environment peers use it, and TLS; without, links are plain. */
#include <arpa/inet.h>
#include <conclave/peer.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { WARM_UP = 2000, OTHERS_MAX = 2 };

static double now_us(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

static void fail(const char *what) {
    perror(what);
    exit(1);
}

/* ---- Bare ---- */

struct ends { /* of a process: where it writes, where it reads, and what it waits with */
    int out, in, epoll;
};

static void transfer(struct ends ends, int size, bool out) {
    char bytes[4096] = {0};
    struct epoll_event event;
    if (!out && ends.epoll >= 0)
        while (epoll_wait(ends.epoll, &event, 1, 10) <= 0) continue;
    for (int done = 0; done < size;) {
        ssize_t moved =
            out ? write(ends.out, bytes, size - done) : read(ends.in, bytes, size - done);
        if (moved <= 0) _exit(0); /* the other end is gone */
        done += (int)moved;
    }
}

static void connection(int *one, int *other) {
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t size = sizeof at;
    int listener = socket(AF_INET, SOCK_STREAM, 0), yes = 1;
    *one = socket(AF_INET, SOCK_STREAM, 0);
    if (bind(listener, (struct sockaddr *)&at, sizeof at) || listen(listener, 1) ||
        getsockname(listener, (struct sockaddr *)&at, &size) ||
        connect(*one, (struct sockaddr *)&at, sizeof at) ||
        (*other = accept(listener, NULL, NULL)) < 0)
        fail("a connection");
    setsockopt(*one, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    setsockopt(*other, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    close(listener);
}

static void wait_by_epoll(struct ends *ends) {
    struct epoll_event event = {.events = EPOLLIN};
    ends->epoll = epoll_create1(0);
    epoll_ctl(ends->epoll, EPOLL_CTL_ADD, ends->in, &event);
}

/* A process that answers. */
static pid_t start_answerer(struct ends *ours, int asked, int answered, bool as_links) {
    struct ends theirs = {.epoll = -1};
    ours->epoll = -1;
    connection(&ours->out, &theirs.in);
    ours->in = ours->out, theirs.out = theirs.in;
    if (as_links) connection(&theirs.out, &ours->in);
    pid_t pid = fork();
    if (as_links) wait_by_epoll(pid ? ours : &theirs);
    if (pid) return pid;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (;;) {
        transfer(theirs, asked, false);
        transfer(theirs, answered, true);
    }
}

static double bare(int others, bool as_links, char **argument) {
    int asked = atoi(argument[0]), answered = atoi(argument[1]), rounds = atoi(argument[2]);
    struct ends ends[OTHERS_MAX];
    pid_t pid[OTHERS_MAX];
    double begin = 0;
    for (int i = 0; i < others; i++) pid[i] = start_answerer(&ends[i], asked, answered, as_links);
    for (int round = -WARM_UP; round < rounds; round++) {
        if (round == 0) begin = now_us();
        for (int i = 0; i < others; i++) transfer(ends[i], asked, true);
        for (int i = 0; i < others; i++) transfer(ends[i], answered, false);
    }
    double us = (now_us() - begin) / rounds;
    for (int i = 0; i < others; i++) kill(pid[i], SIGKILL), waitpid(pid[i], NULL, 0);
    return us;
}

/* ---- Peers ---- */

struct cycles {
    int left; /* of the warm-up, then of those that count */
    int rounds;
    double begin;
    _Atomic double us;
};

static void cycle(struct cv_peer *peer, enum cv_lock_state state, void *arg) {
    struct cycles *cycles = arg;
    if (state != CV_HELD) return;
    cv_peer_release(peer);
    if (--cycles->left == 0 && !cycles->begin) {
        cycles->begin = now_us();
        cycles->left = cycles->rounds;
    } else if (cycles->left == 0) {
        cycles->us = (now_us() - cycles->begin) / cycles->rounds;
        return;
    }
    cv_peer_start(peer);
}

static struct cv_peer *join(const char *algorithm, const char *directory, uint32_t id,
                            struct cycles *cycles) {
    char list[4096], data[4096], why[700];
    struct cv_peer *peer;
    struct cv_peer_options options = {.algorithm = algorithm,
                                      .peers = list,
                                      .data = data,
                                      .id = id,
                                      .key = getenv("KEY"),
                                      .flags = getenv("KEY") ? 0 : CV_PEER_INSECURE,
                                      .on_lock = cycles ? cycle : NULL,
                                      .arg = cycles};
    snprintf(list, sizeof list, "%s/peers.conf", directory);
    snprintf(data, sizeof data, "%s/%u", directory, id);
    if (cv_peer_open(&peer, &options) == CV_OK) return peer;
    fprintf(stderr, "%s\n", cv_peer_explain(peer, why, sizeof why));
    exit(1);
}

static void serve(const char *algorithm, const char *directory, uint32_t id) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    join(algorithm, directory, id, NULL);
    for (;;) pause();
}

static double peers(char **argument) {
    struct cycles cycles = {.left = WARM_UP, .rounds = atoi(argument[4])};
    uint32_t processes = (uint32_t)atoi(argument[2]), who = (uint32_t)atoi(argument[3]);
    pid_t child[64] = {0};
    for (uint32_t id = 1; id <= processes && id < 64; id++)
        if (id != who && (child[id] = fork()) == 0) serve(argument[0], argument[1], id);
    struct cv_peer *peer = join(argument[0], argument[1], who, &cycles);
    cv_peer_start(peer);
    while (!cycles.us) usleep(10000);
    for (uint32_t id = 1; id < 64; id++)
        if (child[id]) kill(child[id], SIGKILL), waitpid(child[id], NULL, 0);
    return cycles.us;
}

int main(int count, char **argument) {
    double us = 0;
    if (count == 5 && strcmp(argument[1], "bare") == 0)
        us = bare(1, false, argument + 2);
    else if (count == 5 && strcmp(argument[1], "both") == 0)
        us = bare(2, false, argument + 2);
    else if (count == 5 && strcmp(argument[1], "links") == 0)
        us = bare(1, true, argument + 2);
    else if (count == 6)
        us = peers(argument + 1);
    else
        return fprintf(stderr, "usage: see the source\n"), 2;
    printf("%.2f\n", us);
    return 0;
}
