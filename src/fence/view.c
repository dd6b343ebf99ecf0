#include "fence/view.h"

#include <conclave.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/logger.h"
#include "recipe/contend.h"
#include "recipe/name.h"
#include "recipe/note.h"

enum { RETRY_MS = 1000 };

/* What the client's thread notes (below `mutex`) for the loop, which makes every step. */
struct news {
    bool came, fired; /* an answer; a watch */
    int error;
    char *first; /* name of the first contender; NULL: there is none */
    int64_t token;
};

/* A look at one lock: sync and list, in one write, then the first of its contenders. */
struct look {
    struct fence_view *view;
    char *path;
    uint64_t asked, answers; /* the newest question; the one that the look under way answers */
    enum { RESTING, LISTING, FINDING, FINDING_LOCK } step;
    bool again, failed, complained;
    /* A watch will tell when the lock's children change or, without a node, when it gets one; and
     * it is the request under way that sets that watch, unless it fails. */
    bool watched, watching;
    struct news news;
};

struct fence_view {
    uv_async_t async;
    uv_timer_t retry;
    pthread_mutex_t mutex;
    const struct cv_options *servers;
    struct cv_client *client;
    struct look *looks;
    size_t count;
    const struct fence_view_calls *calls;
    void *owner;
    bool connected;
    int handles;
    /* Below the mutex: */
    bool state_came;
    enum cv_state state;
};

/* ---- In the client's thread ---- */

static void state_changed(struct cv_client *client, enum cv_state state, void *arg) {
    struct fence_view *view = arg;
    (void)client;
    pthread_mutex_lock(&view->mutex);
    view->state_came = true;
    view->state = state;
    pthread_mutex_unlock(&view->mutex);
    uv_async_send(&view->async);
}

static void watch_fired(enum cv_watch_type type, const char *path, void *arg) {
    struct look *look = arg;
    (void)type, (void)path;
    pthread_mutex_lock(&look->view->mutex);
    look->news.fired = true;
    pthread_mutex_unlock(&look->view->mutex);
    uv_async_send(&look->view->async);
}

static void came(struct look *look, int error, char *first, int64_t token) {
    pthread_mutex_lock(&look->view->mutex);
    struct news *news = &look->news;
    if (!news->error) news->error = error; /* that of the sync is the first */
    news->came = true;
    news->first = first;
    news->token = token;
    pthread_mutex_unlock(&look->view->mutex);
    uv_async_send(&look->view->async);
}

static void synced(const struct cv_result *result, void *arg) {
    struct look *look = arg;
    pthread_mutex_lock(&look->view->mutex);
    look->news.error = result->error;
    pthread_mutex_unlock(&look->view->mutex);
}

/* The name of the first contender, or NULL. */
static char *first_of(const struct cv_result *result) {
    struct contender *contenders = calloc(result->name_count + 1, sizeof *contenders);
    cv_assert(contenders);
    size_t count = contend_list(contenders, result->names, result->name_count);
    char *first = count ? strdup(contenders[0].name) : NULL;
    cv_assert(first || !count);
    free(contenders);
    return first;
}

static void listed(const struct cv_result *result, void *arg) {
    came(arg, result->error, result->error == CV_OK ? first_of(result) : NULL, 0);
}

/* A node that has replaced another keeps that one's token. */
static int64_t token_of(const struct cv_result *result) {
    struct note note;
    note_read(&note, result->data, result->data ? result->size : 0);
    return note.token ? note.token : result->stat.czxid;
}

static void found(const struct cv_result *result, void *arg) {
    came(arg, result->error, NULL, result->error == CV_OK ? token_of(result) : 0);
}

static void found_lock(const struct cv_result *result, void *arg) {
    came(arg, result->error, NULL, 0);
}

/* ---- On the loop ---- */

static size_t number_of(const struct look *look) { return (size_t)(look - look->view->looks); }

static void failed(struct look *look, int error) {
    struct fence_view *view = look->view;
    look->step = RESTING;
    look->failed = true;
    if (look->watching) look->watched = false;
    if (error != CV_CONNECTION_LOSS && error != CV_NO_SERVER && error != CV_SESSION_EXPIRED &&
        error != CV_CLOSING && !look->complained) {
        logger_warning("the servers do not say who holds a lock", LOGGER_STRING("path", look->path),
                       LOGGER_STRING("error", cv_error_text(error)));
        look->complained = true;
    }
    view->calls->reached(view->owner, number_of(look), false);
}

static void start(struct look *look) {
    if (!look->view->connected) return;
    if (look->step != RESTING) {
        look->again = true;
        return;
    }
    struct cv_op ops[2] = {cv_op_sync(look->path), cv_op_children(look->path)};
    cv_done_fn *const done[2] = {synced, listed};
    void *const args[2] = {look, look};
    look->watching = !look->watched;
    if (look->watching) ops[1].watch = watch_fired, ops[1].watch_arg = look;
    look->step = LISTING;
    look->watched = true;
    look->again = look->failed = false;
    look->answers = look->asked;
    int error = cv_start_all(look->view->client, ops, 2, done, args);
    if (error) failed(look, error);
}

/* The first contender; or, if the lock has no node, whether and when it gets one. */
static void ask_more(struct look *look, const char *first) {
    char path[4096];
    snprintf(path, sizeof path, "%s%s%s", look->path, first ? "/" : "", first ? first : "");
    struct cv_op op = first ? cv_op_get(path) : cv_op_exists(path);
    look->watching = !first;
    if (!first) op.watch = watch_fired, op.watch_arg = look, look->watched = true;
    look->step = first ? FINDING : FINDING_LOCK;
    int error = cv_start(look->view->client, &op, first ? found : found_lock, look);
    if (error) failed(look, error);
}

static void conclude(struct look *look, int64_t holder) {
    struct fence_view *view = look->view;
    look->step = RESTING;
    look->complained = false;
    view->calls->reached(view->owner, number_of(look), true);
    view->calls->heard(view->owner, number_of(look), look->answers, holder);
    if (look->again) start(look);
}

static void look_again(struct look *look) {
    look->step = RESTING;
    start(look);
}

static void take_answer(struct look *look, const struct news *news) {
    bool is_there = news->error == CV_OK;
    if (!is_there && news->error != CV_NO_NODE) {
        failed(look, news->error);
        return;
    }
    switch (look->step) {
    case LISTING:
        /* Without a node a watch that is still there is the one for its coming. */
        if (is_there ? !news->first : look->watched && !look->watching)
            conclude(look, 0);
        else
            ask_more(look, news->first);
        return;
    case FINDING:
        if (is_there)
            conclude(look, news->token);
        else
            look_again(look); /* it has gone in between */
        return;
    case FINDING_LOCK:
        if (is_there) { /* it has come in between, and its children are not watched */
            look->watched = false;
            look_again(look);
        } else {
            conclude(look, 0);
        }
        return;
    case RESTING: return;
    }
}

static void take_news(struct look *look) {
    pthread_mutex_lock(&look->view->mutex);
    struct news news = look->news;
    if (news.came)
        look->news = (struct news){0};
    else
        look->news.fired = false;
    pthread_mutex_unlock(&look->view->mutex);
    if (news.fired) look->watched = false;
    if (news.came) take_answer(look, &news);
    if (news.fired) start(look);
    if (news.came) free(news.first);
}

static void reopen(struct fence_view *view);

static void take_state(struct fence_view *view, enum cv_state state) {
    view->connected = state == CV_CONNECTED;
    if (view->connected) {
        for (size_t i = 0; i < view->count; i++) start(&view->looks[i]);
        return;
    }
    for (size_t i = 0; i < view->count; i++) view->calls->reached(view->owner, i, false);
    if (state == CV_EXPIRED) reopen(view);
}

static void something_came(uv_async_t *async) {
    struct fence_view *view = async->data;
    pthread_mutex_lock(&view->mutex);
    bool changed = view->state_came;
    enum cv_state state = view->state;
    view->state_came = false;
    pthread_mutex_unlock(&view->mutex);
    if (changed) take_state(view, state);
    for (size_t i = 0; i < view->count; i++) take_news(&view->looks[i]);
}

/* Nothing of the last client comes any more. */
static void forget(struct fence_view *view) {
    cv_close(view->client);
    view->client = NULL;
    view->connected = view->state_came = false;
    for (size_t i = 0; i < view->count; i++) {
        struct look *look = &view->looks[i];
        free(look->news.first);
        look->news = (struct news){0};
        look->step = RESTING;
        look->again = look->watched = look->failed = false;
    }
}

static int open_client(struct fence_view *view) {
    struct cv_options options = *view->servers;
    options.flags |= CV_DO_NOT_WAIT;
    options.on_state = state_changed;
    options.arg = view;
    return cv_open(&view->client, &options);
}

static void reopen(struct fence_view *view) {
    forget(view);
    open_client(view); /* if it fails, `retry` tries again */
}

/* Looks that have failed, and clients that were refused, have another chance, a little later. */
static void retry(uv_timer_t *timer) {
    struct fence_view *view = timer->data;
    enum cv_state state = view->client ? cv_state(view->client) : CV_CLOSED;
    if (state == CV_CLOSED || state == CV_REFUSED || state == CV_EXPIRED) {
        if (view->client) forget(view);
        open_client(view);
        return;
    }
    for (size_t i = 0; i < view->count; i++)
        if (view->looks[i].failed) start(&view->looks[i]);
}

uint64_t fence_view_ask(struct fence_view *view, size_t lock) {
    struct look *look = &view->looks[lock];
    uint64_t question = ++look->asked;
    start(look);
    return question;
}

struct fence_view *fence_view_open(uv_loop_t *loop, const struct cv_options *servers,
                                   const char *root, const char *const *locks, size_t count,
                                   const struct fence_view_calls *calls, void *owner, char *message,
                                   size_t size) {
    struct fence_view *view = calloc(1, sizeof *view);
    cv_assert(view);
    *view = (struct fence_view){.servers = servers, .count = count, .calls = calls, .owner = owner};
    view->looks = calloc(count, sizeof *view->looks);
    cv_assert(view->looks);
    for (size_t i = 0; i < count; i++) {
        view->looks[i].view = view;
        char path[NAME_PATH_SIZE];
        view->looks[i].path = strdup(name_path(path, root, locks[i]));
        cv_assert(view->looks[i].path);
    }
    pthread_mutex_init(&view->mutex, NULL);
    uv_async_init(loop, &view->async, something_came);
    uv_timer_init(loop, &view->retry);
    view->async.data = view->retry.data = view;
    view->handles = 2;
    uv_timer_start(&view->retry, retry, RETRY_MS, RETRY_MS);
    int error = open_client(view);
    if (error == CV_OK) return view;
    snprintf(message, size, "the servers' names cannot be used: %s", cv_error_text(error));
    fence_view_close(view);
    return NULL;
}

static void handle_closed(uv_handle_t *handle) {
    struct fence_view *view = handle->data;
    if (--view->handles) return;
    for (size_t i = 0; i < view->count; i++) {
        free(view->looks[i].path);
        free(view->looks[i].news.first);
    }
    pthread_mutex_destroy(&view->mutex);
    free(view->looks);
    free(view);
}

void fence_view_close(struct fence_view *view) {
    if (view->client) cv_close(view->client);
    view->client = NULL;
    uv_close((uv_handle_t *)&view->async, handle_closed);
    uv_close((uv_handle_t *)&view->retry, handle_closed);
}
