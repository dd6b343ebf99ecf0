#include "peer/thread.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/grow.h"
#include "base/secret.h"
#include "peer/awake.h"
#include "wire/net/tls.h"

enum {
    WISH_CUT = 1 << 24, /* and the process */
    WISH_MEND = 1 << 25,
    WISH_DONE = UINT32_MAX,
    WISH_STAY = UINT32_MAX - 1,
    WISH_CLOSE = UINT32_MAX - 2,
    WISH_LOOK = UINT32_MAX - 3,
    WISH_VIEW = UINT32_MAX - 4,
    WISH_HAND_ON = UINT32_MAX - 5,
    WISH_ABANDON = UINT32_MAX - 6,
};
enum { FAREWELL_NS = 2000000000, FAREWELL_STEP_US = 5000 };

struct peer_thread {
    uv_loop_t loop;
    uv_async_t asked;
    pthread_t thread;
    struct peer *peer;
    struct tls *tls;
    void (*wake)(void *arg);
    void *arg;
    pthread_mutex_t mutex; /* of all below */
    uint32_t *wishes;
    size_t wish_count, wish_room;
    struct cv_tell *tells;
    size_t tell_count, tell_room;
    struct peer_view *view; /* somebody waits for it; NULL: nobody */
    pthread_cond_t viewed;
    bool over;
    int unsaved; /* why it could not be suspended; 0 */
    char failure[PEER_ERROR_MAX];
};

/* ---- On the loop ---- */

static void told(void *owner, const struct cv_tell *tell) {
    struct peer_thread *t = owner;
    pthread_mutex_lock(&t->mutex);
    t->tells = grown(t->tells, &t->tell_room, t->tell_count + 1, sizeof *t->tells);
    t->tells[t->tell_count++] = *tell;
    pthread_mutex_unlock(&t->mutex);
    t->wake(t->arg);
}

static void all_done(void *owner) {
    struct peer_thread *t = owner;
    pthread_mutex_lock(&t->mutex);
    t->over = true;
    pthread_mutex_unlock(&t->mutex);
    t->wake(t->arg);
}

static void failed(void *owner, const char *why) {
    struct peer_thread *t = owner;
    pthread_mutex_lock(&t->mutex);
    snprintf(t->failure, sizeof t->failure, "%s", why);
    pthread_mutex_unlock(&t->mutex);
    t->wake(t->arg);
}

static void grant(struct peer_thread *t, uint32_t wish) {
    switch (wish) {
    case WISH_DONE:
    case WISH_STAY: peer_done(t->peer, wish == WISH_STAY); break;
    case WISH_CLOSE:
        peer_flush(t->peer); /* the end of a stay, too, reaches the others */
        t->unsaved = peer_suspend(t->peer);
        peer_close(t->peer);
        t->peer = NULL;
        uv_close((uv_handle_t *)&t->asked, NULL);
        break;
    case WISH_HAND_ON: peer_hand_on(t->peer); break;
    case WISH_ABANDON: peer_abandon(t->peer); break;
    case WISH_LOOK: t->wake(t->arg); break;
    case WISH_VIEW:
        pthread_mutex_lock(&t->mutex);
        peer_look(t->peer, t->view);
        t->view = NULL;
        pthread_cond_signal(&t->viewed);
        pthread_mutex_unlock(&t->mutex);
        break;
    default:
        if (wish & (WISH_CUT | WISH_MEND))
            peer_part(t->peer, wish & ~(uint32_t)(WISH_CUT | WISH_MEND), wish & WISH_CUT);
        else
            peer_call(t->peer, wish);
    }
}

static void asked(uv_async_t *async) {
    struct peer_thread *t = async->data;
    pthread_mutex_lock(&t->mutex);
    uint32_t *wishes = t->wishes;
    size_t count = t->wish_count;
    t->wishes = NULL;
    t->wish_count = t->wish_room = 0;
    pthread_mutex_unlock(&t->mutex);
    for (size_t i = 0; i < count; i++) grant(t, wishes[i]);
    free(wishes);
}

/* If so, others were let in first. */
static bool stays_awake(const struct peer_thread *t, struct awake *awake) {
    uint64_t now = uv_hrtime();
    if (!t->peer || !awake_stays(awake, now, peer_messages(t->peer))) return false;
    sched_yield();
    awake_offered(awake, now, uv_hrtime());
    return true;
}

static void *run(void *arg) {
    struct peer_thread *t = arg;
    pthread_mutex_lock(&t->mutex); /* until `thread` is known, see start_thread */
    pthread_mutex_unlock(&t->mutex);
    struct awake awake = {0};
    while (uv_run(&t->loop, stays_awake(t, &awake) ? UV_RUN_NOWAIT : UV_RUN_ONCE)) continue;
    return NULL;
}

/* ---- For the application ---- */

/* Who wishes the same again before it was granted gets it once. */
static void wish(struct peer_thread *t, uint32_t what) {
    if (peer_thread_is_own(t)) {
        grant(t, what);
        return;
    }
    pthread_mutex_lock(&t->mutex);
    if (!t->wish_count || t->wishes[t->wish_count - 1] != what) {
        t->wishes = grown(t->wishes, &t->wish_room, t->wish_count + 1, sizeof *t->wishes);
        t->wishes[t->wish_count++] = what;
    }
    pthread_mutex_unlock(&t->mutex);
    uv_async_send(&t->asked);
}

bool peer_thread_is_own(const struct peer_thread *t) {
    return pthread_equal(t->thread, pthread_self());
}

/* When the loop has run to its end: nothing uses the TLS any more. */
static void free_all(struct peer_thread *t) {
    if (t->tls) tls_close(t->tls);
    pthread_mutex_destroy(&t->mutex);
    pthread_cond_destroy(&t->viewed);
    free(t->tells);
    free(t->wishes);
    free(t);
}

static int start_thread(struct peer_thread *t) {
    sigset_t all, before;
    sigfillset(&all); /* signals are the application's */
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pthread_mutex_lock(&t->mutex);
    int failed = pthread_create(&t->thread, NULL, run, t);
    pthread_mutex_unlock(&t->mutex);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return failed;
}

/* What TLS has only logged. */
static bool explain_key(const char *path, char *error) {
    struct secret key;
    const char *problem = secret_read(path, &key);
    secret_forget(&key);
    snprintf(error, PEER_ERROR_MAX, "the key cannot be used: %.400s: %s", path,
             problem ? problem : "TLS cannot be started");
    return false;
}

static bool explain_files(const struct tls_files *files, char *error) {
    const char *path[] = {files->certificate, files->key, files->authorities};
    for (int i = 0; i < 3; i++) {
        if (access(path[i], R_OK) == 0) continue;
        snprintf(error, PEER_ERROR_MAX, "the certificate cannot be used: %.400s: %s", path[i],
                 strerror(errno));
        return false;
    }
    snprintf(error, PEER_ERROR_MAX, "the certificate cannot be used: %.180s, %.180s, %.180s",
             path[0], path[1], path[2]);
    return false;
}

static bool open_credentials(struct peer_thread *t, const struct peer_credentials *given,
                             char *error) {
    if (given->key) {
        t->tls = tls_open_key(given->key);
        if (!t->tls) return explain_key(given->key, error);
    } else if (given->certificate) {
        const struct tls_files files = {.certificate = given->certificate,
                                        .key = given->certificate_key,
                                        .authorities = given->authorities};
        t->tls = tls_open(&files, TLS_CLIENTS_CERTIFIED);
        if (!t->tls) return explain_files(&files, error);
    }
    return true;
}

/* With everything else open: starts the peer and the thread. */
static bool start(struct peer_thread *t, const struct peer_config *config, char *error) {
    struct peer_config own = *config;
    own.loop = &t->loop;
    own.tls = t->tls;
    own.owner = t;
    own.told = told, own.all_done = all_done, own.failed = failed;
    int unasked = uv_async_init(&t->loop, &t->asked, asked);
    if (unasked) {
        snprintf(error, PEER_ERROR_MAX, "%s", uv_strerror(unasked));
        net_shut(&t->loop);
        return false;
    }
    t->asked.data = t;
    t->peer = peer_open(&own, error);
    if (t->peer && start_thread(t) == 0) return true;
    if (t->peer) snprintf(error, PEER_ERROR_MAX, "no thread can be started");
    if (t->peer) peer_suspend(t->peer), peer_close(t->peer);
    t->peer = NULL;
    uv_close((uv_handle_t *)&t->asked, NULL);
    run(t);
    net_shut(&t->loop);
    return false;
}

struct peer_thread *peer_thread_open(const struct peer_config *config,
                                     const struct peer_credentials *credentials,
                                     void (*wake)(void *arg), void *arg,
                                     char error[PEER_ERROR_MAX]) {
    struct peer_thread *t = calloc(1, sizeof *t);
    cv_assert(t);
    t->wake = wake, t->arg = arg;
    pthread_mutex_init(&t->mutex, NULL);
    pthread_cond_init(&t->viewed, NULL);
    if (open_credentials(t, credentials, error)) {
        int failed = net_open(&t->loop);
        if (failed) snprintf(error, PEER_ERROR_MAX, "%s", uv_strerror(failed));
        if (!failed && start(t, config, error)) return t;
    }
    free_all(t);
    return NULL;
}

void peer_thread_call(struct peer_thread *t, uint32_t what) { wish(t, what); }
void peer_thread_part(struct peer_thread *t, cv_pid p, bool cut) {
    wish(t, (cut ? WISH_CUT : WISH_MEND) | p);
}
void peer_thread_done(struct peer_thread *t, bool stays) { wish(t, stays ? WISH_STAY : WISH_DONE); }

void peer_thread_abandon(struct peer_thread *t) { wish(t, WISH_ABANDON); }

void peer_thread_look(struct peer_thread *t) { wish(t, WISH_LOOK); }

void peer_thread_view(struct peer_thread *t, struct peer_view *view) {
    pthread_mutex_lock(&t->mutex);
    t->view = view;
    pthread_mutex_unlock(&t->mutex);
    wish(t, WISH_VIEW);
    pthread_mutex_lock(&t->mutex);
    while (t->view) pthread_cond_wait(&t->viewed, &t->mutex);
    pthread_mutex_unlock(&t->mutex);
}

static bool all_have_it(struct peer_thread *t) {
    struct peer_view view;
    bool all = true;
    peer_thread_view(t, &view);
    for (cv_pid p = 1; p <= GROUP_PROCESSES_MAX; p++) all &= !(view.other[p] & PEER_BEHIND);
    free(view.state);
    return all;
}

void peer_thread_farewell(struct peer_thread *t) {
    uint64_t until = uv_hrtime() + FAREWELL_NS;
    do wish(t, WISH_HAND_ON);
    while (!peer_thread_failure(t) && !all_have_it(t) && uv_hrtime() < until &&
           usleep(FAREWELL_STEP_US) == 0);
}

bool peer_thread_next(struct peer_thread *t, struct cv_tell *tell) {
    pthread_mutex_lock(&t->mutex);
    bool any = t->tell_count;
    if (any) {
        *tell = t->tells[0];
        memmove(t->tells, t->tells + 1, --t->tell_count * sizeof *t->tells);
    }
    pthread_mutex_unlock(&t->mutex);
    return any;
}

bool peer_thread_is_over(struct peer_thread *t) {
    pthread_mutex_lock(&t->mutex);
    bool over = t->over;
    pthread_mutex_unlock(&t->mutex);
    return over;
}

const char *peer_thread_failure(struct peer_thread *t) {
    pthread_mutex_lock(&t->mutex);
    const char *failure = *t->failure ? t->failure : NULL; /* it is written once */
    pthread_mutex_unlock(&t->mutex);
    return failure;
}

int peer_thread_close(struct peer_thread *t) {
    wish(t, WISH_CLOSE);
    pthread_join(t->thread, NULL);
    net_shut(&t->loop);
    int unsaved = t->unsaved;
    free_all(t);
    return unsaved;
}
