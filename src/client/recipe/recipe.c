#include "client/recipe/recipe.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "base/assert.h"

void recipe_guid(char guid[GUID_SIZE + 1]) {
    unsigned char random[GUID_SIZE / 2];
    cv_assert(getrandom(random, sizeof random, 0) == (ssize_t)sizeof random);
    for (size_t i = 0; i < sizeof random; i++) snprintf(guid + 2 * i, 3, "%02x", random[i]);
}

int64_t recipe_wall_clock(void) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

void recipe_note(struct note *note, const char *label) {
    *note = (struct note){.pid = getpid(), .since = recipe_wall_clock()};
    if (label) note_copy(note->label, label, strlen(label));
    if (gethostname(note->host, sizeof note->host)) note->host[0] = 0;
    note->host[sizeof note->host - 1] = 0;
}

char *recipe_child(const char *path, const char *name) {
    size_t size = strlen(path) + strlen(name) + 2;
    char *child = malloc(size);
    if (child) snprintf(child, size, "%s/%s", strcmp(path, "/") ? path : "", name);
    return child;
}

const char *recipe_name(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

int recipe_make_container(struct cv_client *client, const char *path) {
    int error = cv_create_all(client, path, CV_CONTAINER);
    return error == CV_UNIMPLEMENTED ? cv_create_all(client, path, CV_PERSISTENT) : error;
}

/* ---- Signals ---- */

/* A watch of a signal.  It may outlive it: then it has none, and is about to be removed. */
struct signal_watch {
    struct cv_client *client;
    struct recipe_signal *signal;
    struct signal_watch *next, **link;
    enum cv_op_type type;
    bool armed, removed;
    char path[];
};

struct recipe_signal {
    struct cv_client *client;
    struct signal_watch *watches;
    bool on, created;
};

struct recipe_signal *recipe_signal_new(struct cv_client *client) {
    struct recipe_signal *signal = calloc(1, sizeof *signal);
    if (signal) signal->client = client;
    return signal;
}

static void detach(struct signal_watch *watch) {
    if (!watch->signal) return;
    *watch->link = watch->next;
    if (watch->next) watch->next->link = watch->link;
    watch->signal = NULL;
}

static void on_signal(enum cv_watch_type type, const char *path, void *arg) {
    struct signal_watch *watch = arg;
    struct cv_client *client = watch->client;
    (void)path;
    client_lock(client);
    if (watch->signal) {
        watch->signal->on = true;
        watch->signal->created |= type == CV_NODE_CREATED;
        detach(watch);
        client_wake(client);
    }
    if (!watch->removed) free(watch); /* else the answer to its removal frees it */
    client_unlock(client);
}

static void on_removed(const struct cv_result *r, void *arg) {
    (void)r;
    free(arg); /* it cannot fire any more */
}

static bool is_watched(const struct recipe_signal *signal, const struct cv_op *op) {
    for (const struct signal_watch *watch = signal->watches; watch; watch = watch->next)
        if (watch->armed && watch->type == op->type && !strcmp(watch->path, op->path)) return true;
    return false;
}

static struct signal_watch *add_watch(struct recipe_signal *signal, const struct cv_op *op) {
    size_t size = strlen(op->path) + 1;
    struct signal_watch *watch = malloc(sizeof *watch + size);
    if (!watch) return NULL;
    *watch = (struct signal_watch){.client = signal->client,
                                   .signal = signal,
                                   .next = signal->watches,
                                   .link = &signal->watches,
                                   .type = op->type};
    memcpy(watch->path, op->path, size);
    if (watch->next) watch->next->link = &watch->next;
    signal->watches = watch;
    return watch;
}

static bool is_on(void *arg) {
    const struct recipe_signal *signal = arg;
    return signal->on || cv_state(signal->client) > CV_READ_ONLY;
}

int recipe_signal_wait(struct recipe_signal *signal, int64_t until) {
    client_lock(signal->client);
    int error = client_wait(signal->client, is_on, signal, until);
    if (!error && !signal->on) error = CV_SESSION_EXPIRED;
    signal->on = false;
    client_unlock(signal->client);
    return error;
}

bool recipe_signal_saw_creation(const struct recipe_signal *signal) {
    client_lock(signal->client);
    bool created = signal->created;
    client_unlock(signal->client);
    return created;
}

void recipe_signal_free(struct recipe_signal *signal) {
    if (!signal) return;
    struct cv_client *client = signal->client;
    client_lock(client);
    while (signal->watches) {
        struct signal_watch *watch = signal->watches;
        struct cv_op op = {.type = CV_OP_REMOVE_WATCH,
                           .path = watch->path,
                           .watch = on_signal,
                           .watch_arg = watch};
        detach(watch);
        /* else it is freed when it fires, at the latest with the session */
        watch->removed = !cv_start(client, &op, on_removed, watch);
    }
    client_unlock(client);
    free(signal);
}

/* A read that failed left no watch, unless it was about a node that is not there.  One that has
 * fired by now is not among the signal's any more. */
static void answered(struct recipe_signal *signal, const struct signal_watch *of, int error) {
    struct signal_watch *watch = signal->watches;
    while (watch && watch != of) watch = watch->next;
    if (!watch) return;
    watch->armed = !error || (error == CV_NO_NODE && watch->type == CV_OP_EXISTS);
    if (watch->armed) return;
    detach(watch);
    free(watch);
}

int recipe_call_watching(struct cv_client *client, struct recipe_signal *signal, struct cv_op op,
                         struct cv_result **result) {
    struct signal_watch *watch = NULL;
    if (result) *result = NULL;
    client_lock(client);
    bool is_new = !is_watched(signal, &op);
    if (is_new) watch = add_watch(signal, &op);
    client_unlock(client);
    if (is_new && !watch) return CV_NO_MEMORY;
    if (is_new) op.watch = on_signal, op.watch_arg = watch;
    int error = cv_call(client, &op, result);
    client_lock(client);
    if (is_new) answered(signal, watch, error);
    client_unlock(client);
    return error;
}
