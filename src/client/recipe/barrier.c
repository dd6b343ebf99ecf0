/* Barriers. */
#include <stdlib.h>
#include <string.h>

#include "client/recipe/recipe.h"

int cv_barrier_wait(struct cv_client *client, const char *path, int32_t timeout) {
    int64_t until = recipe_until(timeout);
    struct recipe_signal *signal = recipe_signal_new(client);
    int error = signal ? CV_OK : CV_NO_MEMORY;
    while (!error) {
        error = recipe_call_watching(client, signal, cv_op_get(path), NULL);
        if (recipe_is_lost(error))
            error = until != CV_FOREVER && cv_now() >= until ? CV_OPERATION_TIMEOUT : CV_OK;
        else if (!error)
            error = recipe_signal_wait(signal, until);
    }
    recipe_signal_free(signal);
    return error == CV_NO_NODE ? CV_OK : error;
}

/* ---- Double barriers ----
 *
 * Participants are ephemeral children; the last one to enter adds the child `ready`, which the
 * others wait for.  Whoever leaves deletes its child and waits until there is none but `ready`,
 * which the last one deletes. */

#define READY "ready"

struct cv_double_barrier {
    struct cv_client *client;
    struct recipe_signal *signal;
    char *path, *node, *ready;
};

static void free_barrier(struct cv_double_barrier *b) {
    recipe_signal_free(b->signal);
    free(b->path);
    free(b->node);
    free(b->ready);
    free(b);
}

static struct cv_double_barrier *new_barrier(struct cv_client *client, const char *path) {
    char guid[GUID_SIZE + 1];
    struct cv_double_barrier *b = calloc(1, sizeof *b);
    if (!b) return NULL;
    recipe_guid(guid);
    *b = (struct cv_double_barrier){.client = client,
                                    .signal = recipe_signal_new(client),
                                    .path = strdup(path),
                                    .node = recipe_child(path, guid),
                                    .ready = recipe_child(path, READY)};
    if (b->signal && b->path && b->node && b->ready) return b;
    free_barrier(b);
    return NULL;
}

static bool is_past(int64_t until) { return until != CV_FOREVER && cv_now() >= until; }

/* Creates a node; that it is there already is fine. */
static int create(struct cv_double_barrier *b, const char *path, int32_t flags) {
    int error = cv_create(b->client, path, NULL, 0, flags, NULL, 0);
    if (error == CV_NO_NODE && !(error = recipe_make_container(b->client, b->path)))
        error = cv_create(b->client, path, NULL, 0, flags, NULL, 0);
    return error == CV_NODE_EXISTS ? CV_OK : error;
}

static bool is_among(const char *name, const struct cv_result *names) {
    for (size_t i = 0; i < names->name_count; i++)
        if (!strcmp(name, names->names[i])) return true;
    return false;
}

/* How many participants there are: of these only, unless that is NULL. */
static int32_t count_participants(const struct cv_result *r, const struct cv_result *of) {
    int32_t count = 0;
    for (size_t i = 0; r && i < r->name_count; i++)
        count += strcmp(r->names[i], READY) != 0 && (!of || is_among(r->names[i], of));
    return count;
}

/* Whoever sees `ready` come goes on, though it may be gone since, with who had made it. */
static int await_ready(struct cv_double_barrier *b, int32_t wanted, int64_t until) {
    for (;;) {
        /* the watch comes before the look, so that neither `ready` nor the last one is missed */
        struct cv_result *r = NULL;
        int error = recipe_call_watching(b->client, b->signal, cv_op_exists(b->ready), NULL);
        if (!error || recipe_signal_saw_creation(b->signal)) return CV_OK;
        if (error == CV_NO_NODE) error = cv_children(b->client, b->path, &r);
        bool complete = !error && count_participants(r, NULL) >= wanted;
        cv_result_free(r);
        if (complete) {
            error = create(b, b->ready, CV_EPHEMERAL);
            if (!error) return CV_OK;
        } else if (!error) {
            error = recipe_signal_wait(b->signal, until);
        }
        if (error && !recipe_is_lost(error)) return error;
        if (is_past(until)) return CV_OPERATION_TIMEOUT;
    }
}

int cv_double_barrier_enter(struct cv_double_barrier **entered, struct cv_client *client,
                            const char *path, int32_t count, int32_t timeout) {
    int64_t until = recipe_until(timeout);
    *entered = NULL;
    if (!path || path[0] != '/' || count < 1) return CV_BAD_ARGUMENTS;
    struct cv_double_barrier *b = new_barrier(client, path);
    if (!b) return CV_NO_MEMORY;
    int error;
    do error = create(b, b->node, CV_EPHEMERAL);
    while (recipe_is_lost(error) && !is_past(until));
    if (!error) error = await_ready(b, count, until);
    if (error) {
        (void)cv_delete(client, b->node, -1);
        free_barrier(b);
        return error;
    }
    *entered = b;
    return CV_OK;
}

/* Those who enter while others are still leaving are not waited for. */
int cv_double_barrier_leave(struct cv_double_barrier *b, int32_t timeout) {
    int64_t until = recipe_until(timeout);
    struct cv_result *inside = NULL, *r;
    int error;
    while (recipe_is_lost(error = cv_children(b->client, b->path, &inside)) && !is_past(until)) {
    }
    if (!error || recipe_is_lost(error)) {
        do error = cv_delete(b->client, b->node, -1);
        while (recipe_is_lost(error) && !is_past(until));
    }
    if (error == CV_NO_NODE) error = CV_OK;
    while (!error) {
        error = recipe_call_watching(b->client, b->signal, cv_op_children(b->path), &r);
        bool all_left = !error && (!inside || count_participants(r, inside) == 0);
        cv_result_free(r);
        if (all_left) break;
        if (!error) error = recipe_signal_wait(b->signal, until);
        if (recipe_is_lost(error) && error != CV_OPERATION_TIMEOUT && !is_past(until))
            error = CV_OK;
    }
    if (!error) (void)cv_delete(b->client, b->ready, -1);
    if (error == CV_NO_NODE) error = CV_OK; /* all have left, and the barrier is gone */
    cv_result_free(inside);
    free_barrier(b);
    return error;
}
