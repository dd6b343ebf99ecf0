/* Peers for programs: conclave/peer.h on top of a peer on a thread of its own. */
#include <conclave/peer.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "algorithms/catalogue.h"
#include "base/grow.h"
#include "peer/setup.h"
#include "process/option.h"

struct notice { /* what is to be called back */
    bool of_leader;
    enum cv_lock_state state;
    enum cv_peer_role role;
    uint64_t leader;
    uint32_t term;
};

struct cv_peer {
    struct peer_setup setup;
    struct peer_thread *thread;
    uint32_t flags;
    cv_peer_lock_fn *on_lock;
    cv_peer_leader_fn *on_leader;
    void *arg;
    int fd; /* -1: callbacks come from the thread */

    pthread_mutex_t mutex; /* of all below; nothing of the thread is called while it is held that
                              could call back */
    pthread_cond_t changed;
    bool open;                                   /* the thread can be used */
    enum { OUTSIDE, ASKED, INSIDE, LEFT } phase; /* of the process; LEFT: it has not told it yet */
    bool wanted;                                 /* by the program */
    uint64_t wish;                               /* which of its wishes this is */
    uint64_t token, leader;
    uint32_t term;
    enum cv_peer_role role;
    bool finishing, finished;
    bool lost; /* it cannot go on */
    char why[PEER_ERROR_MAX];
    struct notice *notices;
    size_t notice_count, notice_room;
    bool delivering;
};

static void lock(struct cv_peer *peer) { pthread_mutex_lock(&peer->mutex); }
static void unlock(struct cv_peer *peer) { pthread_mutex_unlock(&peer->mutex); }

/* ---- Callbacks ---- */

static void note(struct cv_peer *peer, struct notice notice) {
    pthread_cond_broadcast(&peer->changed);
    if (notice.of_leader ? !peer->on_leader : !peer->on_lock) return;
    peer->notices = grown(peer->notices, &peer->notice_room, peer->notice_count + 1, sizeof notice);
    peer->notices[peer->notice_count++] = notice;
}

static void note_lock(struct cv_peer *peer, enum cv_lock_state state) {
    note(peer, (struct notice){.state = state});
}

/* One at a time: what a callback brings about is called back when it has returned. */
static void deliver(struct cv_peer *peer) {
    lock(peer);
    bool outermost = !peer->delivering;
    while (outermost && peer->notice_count) {
        struct notice next = peer->notices[0];
        memmove(peer->notices, peer->notices + 1, --peer->notice_count * sizeof next);
        peer->delivering = true;
        unlock(peer);
        if (next.of_leader)
            peer->on_leader(peer, next.role, next.leader, next.term, peer->arg);
        else
            peer->on_lock(peer, next.state, peer->arg);
        lock(peer);
        peer->delivering = false;
    }
    unlock(peer);
}

/* Somebody has noted something: sees to it that it is called back where it should. */
static void announce(struct cv_peer *peer) {
    if (peer->fd < 0 && peer_thread_is_own(peer->thread)) {
        deliver(peer);
    } else if (peer->fd < 0) {
        peer_thread_look(peer->thread);
    } else if (write(peer->fd, &(uint64_t){1}, sizeof(uint64_t)) < 0) {
        return; /* it is readable already */
    }
}

/* ---- What the process tells, on its thread ---- */

/* Returns what is to be called in turn; 0: nothing. */
static uint32_t entered(struct cv_peer *peer, const struct cv_tell *tell) {
    if (!peer->wanted) return peer->phase = LEFT, (uint32_t)CV_RELEASE;
    peer->phase = INSIDE;
    peer->token = tell->arg;
    note_lock(peer, CV_HELD);
    return 0;
}

static void led(struct cv_peer *peer, enum cv_peer_role role, const struct cv_tell *tell) {
    peer->role = role;
    peer->leader = role == CV_PEER_FOLLOWS || role == CV_PEER_LEADS ? tell->arg : 0;
    peer->term = tell->term;
    note(peer, (struct notice){
                   .of_leader = true, .role = role, .leader = peer->leader, .term = peer->term});
}

static uint32_t take(struct cv_peer *peer, const struct cv_tell *tell) {
    switch (tell->what) {
    case CV_ENTERED: return entered(peer, tell);
    case CV_LEFT:
        peer->phase = peer->wanted ? ASKED : OUTSIDE;
        pthread_cond_broadcast(&peer->changed);
        return peer->wanted ? CV_ACQUIRE : 0;
    case CV_ELECTED: led(peer, CV_PEER_LEADS, tell); break;
    case CV_FOLLOWS: led(peer, CV_PEER_FOLLOWS, tell); break;
    case CV_LEADERLESS: led(peer, CV_PEER_LEADERLESS, tell); break;
    default: break;
    }
    return 0;
}

/* Whether the peer is lost, and was not before. */
static bool look_at_the_end(struct cv_peer *peer) {
    const char *failure = peer_thread_failure(peer->thread);
    if (peer_thread_is_over(peer->thread) && !peer->finished) {
        peer->finished = true;
        pthread_cond_broadcast(&peer->changed);
    }
    if (!failure || peer->lost) return false;
    peer->lost = true;
    snprintf(peer->why, sizeof peer->why, "%s", failure);
    peer->token = 0;
    note_lock(peer, CV_LOST_LOCK);
    led(peer, CV_PEER_LOST, &(struct cv_tell){.term = peer->term});
    return true;
}

static void look(void *arg) {
    struct cv_peer *peer = arg;
    struct cv_tell tell;
    lock(peer);
    while (peer->open && !peer->lost && peer_thread_next(peer->thread, &tell)) {
        uint32_t call = take(peer, &tell);
        unlock(peer);
        if (call) peer_thread_call(peer->thread, call);
        lock(peer);
    }
    bool lost = peer->open && look_at_the_end(peer);
    bool any = lost || peer->notice_count;
    unlock(peer);
    if (any) announce(peer);
}

/* ---- Opening and closing ---- */

static int refuse(struct cv_peer *peer, const char *what, const char *why) {
    snprintf(peer->why, sizeof peer->why, "%.300s%.300s", what, why);
    return CV_BAD_ARGUMENTS;
}

static int set_option(struct cv_peer *peer, const char *text) {
    const struct cv_algorithm *code = peer->setup.group.algorithm;
    char name[64], error[256];
    const char *equals = strchr(text, '=');
    size_t length = equals ? (size_t)(equals - text) : strlen(text);
    snprintf(name, sizeof name, "%.*s", length < sizeof name ? (int)length : 0, text);
    const struct cv_option *option = option_find(code, name);
    if (!option) {
        snprintf(error, sizeof error, ": there is no option '%.*s'",
                 (int)(length < 200 ? length : 200), text);
        return refuse(peer, code->name, error);
    }
    if ((option->type == CV_FLAG) != !equals)
        return refuse(peer, name, equals ? ": takes no value" : ": a value is missing");
    if (option_value(option, equals ? equals + 1 : NULL,
                     &peer->setup.group.option[option - code->options], error, sizeof error) != 0)
        return refuse(peer, error, "");
    return CV_OK;
}

static int set_up(struct cv_peer *peer, const struct cv_peer_options *options) {
    struct peer_setup *setup = &peer->setup;
    char error[CATALOGUE_ERROR_MAX];
    if (!options->algorithm || !options->peers)
        return refuse(peer, "an algorithm and a list of peers have to be given", "");
    const struct cv_algorithm *algorithm = catalogue_open(options->algorithm, error);
    if (!algorithm) return refuse(peer, error, "");
    peer_setup_init(setup, algorithm);
    for (const char *const *option = options->options; option && *option; option++)
        if (set_option(peer, *option) != CV_OK) return CV_BAD_ARGUMENTS;
    if (options->heartbeat && (options->heartbeat < 0 ||
                               !peer_setup_heartbeat(setup, (uint64_t)options->heartbeat * 1000)))
        return refuse(peer, "heartbeat: at least 4 ms", "");
    if (options->detector && !peer_setup_detector(setup, options->detector))
        return refuse(peer, "detector: expected fixed:TIME, adaptive:K, phi:X or none", "");
    setup->peers = options->peers;
    setup->config.self = options->id;
    setup->config.data = options->data;
    setup->config.record = options->record;
    setup->config.insecure = options->flags & CV_PEER_INSECURE;
    setup->credentials.key = options->key;
    if (options->tls) {
        setup->credentials.certificate = options->tls->certificate;
        setup->credentials.certificate_key = options->tls->key;
        setup->credentials.authorities = options->tls->authorities;
    }
    int failed = peer_setup_settle(setup, peer->why);
    return !failed ? CV_OK : failed == SETUP_SYSTEM ? CV_SYSTEM_ERROR : CV_BAD_ARGUMENTS;
}

static int start(struct cv_peer *peer) {
    if (peer->flags & CV_PEER_OWN_LOOP) {
        peer->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        if (peer->fd < 0) return refuse(peer, strerror(errno), ""), CV_SYSTEM_ERROR;
    }
    struct peer_thread *thread =
        peer_thread_open(&peer->setup.config, &peer->setup.credentials, look, peer, peer->why);
    if (!thread) return CV_SYSTEM_ERROR;
    lock(peer);
    peer->thread = thread;
    peer->open = true;
    unlock(peer);
    peer_thread_look(thread); /* at what it has told since */
    return CV_OK;
}

int cv_peer_open_sized(struct cv_peer **to, const struct cv_peer_options *given, size_t size) {
    struct cv_peer_options options = {0};
    pthread_condattr_t clock;
    struct cv_peer *peer = *to = calloc(1, sizeof *peer);
    if (!peer) return CV_NO_MEMORY;
    if (given) memcpy(&options, given, size < sizeof options ? size : sizeof options);
    pthread_mutex_init(&peer->mutex, NULL);
    pthread_condattr_init(&clock);
    pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
    pthread_cond_init(&peer->changed, &clock);
    pthread_condattr_destroy(&clock);
    peer->fd = -1;
    peer->flags = options.flags;
    peer->on_lock = options.on_lock;
    peer->on_leader = options.on_leader;
    peer->arg = options.arg;
    int error = set_up(peer, &options);
    return error ? error : start(peer);
}

void cv_peer_close(struct cv_peer *peer) {
    if (!peer) return;
    if (peer->thread) {
        peer_thread_abandon(peer->thread);
        peer_thread_farewell(peer->thread);
        peer_thread_close(peer->thread);
    }
    if (peer->fd >= 0) close(peer->fd);
    pthread_cond_destroy(&peer->changed);
    pthread_mutex_destroy(&peer->mutex);
    peer_setup_free(&peer->setup);
    free(peer->notices);
    free(peer);
}

const char *cv_peer_explain(struct cv_peer *peer, char *text, size_t size) {
    if (!size) return text;
    *text = 0;
    if (!peer) return text;
    lock(peer);
    snprintf(text, size, "%s", peer->why);
    unlock(peer);
    return text;
}

/* ---- Waiting ---- */

/* With the lock held; false: the time is over. */
static bool wait_until(struct cv_peer *peer, const struct timespec *deadline) {
    if (!deadline) return pthread_cond_wait(&peer->changed, &peer->mutex), true;
    return pthread_cond_timedwait(&peer->changed, &peer->mutex, deadline) != ETIMEDOUT;
}

/* When a time from now is over; NULL: never. */
static const struct timespec *deadline_after(int32_t timeout, struct timespec *deadline) {
    if (timeout < 0) return NULL;
    clock_gettime(CLOCK_MONOTONIC, deadline);
    deadline->tv_sec += timeout / 1000;
    deadline->tv_nsec += (long)(timeout % 1000) * 1000000;
    if (deadline->tv_nsec >= 1000000000) deadline->tv_sec++, deadline->tv_nsec -= 1000000000;
    return deadline;
}

/* ---- Locks ---- */

/* Returns CV_OK and the number of the wish. */
static int want(struct cv_peer *peer, uint64_t *wish) {
    const struct group *group = &peer->setup.group;
    uint32_t call = 0;
    int error = CV_OK;
    if (!peer->thread) return CV_CLOSING;
    if (group->algorithm->problem != CV_MUTEX || peer->setup.config.self <= group->servers)
        return CV_UNIMPLEMENTED;
    lock(peer);
    if (peer->lost || peer->finishing || peer->wanted) {
        error = peer->lost ? CV_LOST : peer->finishing ? CV_CLOSING : CV_BUSY;
    } else {
        peer->wanted = true;
        *wish = ++peer->wish;
        if (peer->phase == OUTSIDE) peer->phase = ASKED, call = CV_ACQUIRE;
        note_lock(peer, CV_WAITING);
    }
    unlock(peer);
    if (call) peer_thread_call(peer->thread, call);
    if (!error && peer->on_lock) announce(peer);
    return error;
}

int cv_peer_start(struct cv_peer *peer) { return want(peer, &(uint64_t){0}); }

int cv_peer_acquire(struct cv_peer *peer, int32_t timeout) {
    struct timespec moment;
    uint64_t wish = 0;
    if (peer->thread && peer_thread_is_own(peer->thread)) return CV_WOULD_DEADLOCK;
    const struct timespec *deadline = deadline_after(timeout, &moment);
    int error = want(peer, &wish);
    if (error) return error;
    lock(peer);
    bool in_time = true;
    while (in_time && !peer->lost && peer->wanted && peer->wish == wish && peer->phase != INSIDE)
        in_time = wait_until(peer, deadline);
    bool mine = peer->wanted && peer->wish == wish;
    error = peer->lost ? CV_LOST : !mine ? CV_NOT_HELD : CV_OK;
    if (!error && peer->phase != INSIDE) {
        error = CV_OPERATION_TIMEOUT;
        peer->wanted = false;
        note_lock(peer, CV_IDLE);
    }
    unlock(peer);
    if (error && peer->on_lock) announce(peer);
    return error;
}

int cv_peer_release(struct cv_peer *peer) {
    uint32_t call = 0;
    if (!peer->thread) return CV_CLOSING;
    lock(peer);
    int error = peer->lost ? CV_LOST : peer->wanted ? CV_OK : CV_NOT_HELD;
    if (!error) {
        peer->wanted = false;
        peer->token = 0;
        if (peer->phase == INSIDE) peer->phase = LEFT, call = CV_RELEASE;
        note_lock(peer, CV_IDLE);
    }
    unlock(peer);
    if (call) peer_thread_call(peer->thread, call);
    if (!error && peer->on_lock) announce(peer);
    return error;
}

enum cv_lock_state cv_peer_state(struct cv_peer *peer) {
    lock(peer);
    enum cv_lock_state state = peer->lost              ? CV_LOST_LOCK
                               : !peer->wanted         ? CV_IDLE
                               : peer->phase == INSIDE ? CV_HELD
                                                       : CV_WAITING;
    unlock(peer);
    return state;
}

uint64_t cv_peer_token(struct cv_peer *peer) {
    lock(peer);
    uint64_t token = peer->token;
    unlock(peer);
    return token;
}

/* ---- Elections ---- */

int cv_peer_campaign(struct cv_peer *peer) {
    if (!peer->thread) return CV_CLOSING;
    if (peer->setup.group.algorithm->problem != CV_ELECTION) return CV_UNIMPLEMENTED;
    lock(peer);
    int error = peer->lost ? CV_LOST : peer->finishing ? CV_CLOSING : CV_OK;
    unlock(peer);
    if (!error) peer_thread_call(peer->thread, CV_CAMPAIGN);
    return error;
}

enum cv_peer_role cv_peer_leader(struct cv_peer *peer, uint64_t *leader, uint32_t *term) {
    lock(peer);
    enum cv_peer_role role = peer->role;
    if (leader) *leader = peer->leader;
    if (term) *term = peer->term;
    unlock(peer);
    return role;
}

/* ---- The end ---- */

int cv_peer_finish(struct cv_peer *peer, int32_t timeout) {
    struct timespec moment;
    const struct timespec *deadline = deadline_after(timeout, &moment);
    if (!peer->thread) return CV_CLOSING;
    if (peer_thread_is_own(peer->thread)) return CV_WOULD_DEADLOCK;
    cv_peer_release(peer);
    lock(peer);
    bool first = !peer->finishing, in_time = true;
    peer->finishing = true;
    unlock(peer);
    if (first) peer_thread_done(peer->thread, peer->flags & CV_PEER_STAYS);
    lock(peer);
    while (in_time && !peer->lost && !peer->finished) in_time = wait_until(peer, deadline);
    int error = peer->finished ? CV_OK : peer->lost ? CV_LOST : CV_OPERATION_TIMEOUT;
    unlock(peer);
    return error;
}

/* ---- The program's own loop ---- */

int cv_peer_fd(struct cv_peer *peer) { return peer->fd; }

int cv_peer_process(struct cv_peer *peer) {
    uint64_t count;
    if (peer->fd < 0) return CV_BAD_ARGUMENTS;
    if (read(peer->fd, &count, sizeof count) < 0 && errno != EAGAIN) return CV_SYSTEM_ERROR;
    deliver(peer);
    lock(peer);
    bool lost = peer->lost;
    unlock(peer);
    return lost ? CV_LOST : CV_OK;
}
