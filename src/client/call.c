/* Operations: started, or waited for. */
#include <stdio.h>
#include <stdlib.h>

#include "client/internal.h"

int cv_start_all(struct cv_client *client, const struct cv_op *ops, size_t count,
                 cv_done_fn *const *done, void *const *args) {
    int error = CV_OK;
    client_cork(client);
    for (size_t i = 0; count > 1 && i < count && !error; i++)
        error = request_check(client, &ops[i]); /* all or none */
    if (!error && count > 1 && !requests_reserve(client, count)) error = CV_NO_MEMORY;
    for (size_t i = 0; i < count && !error; i++) {
        error = request_start(client, &ops[i], done ? done[i] : NULL, args ? args[i] : NULL, NULL);
        if (!error || i == 0) continue;
        /* those before it will call back, so the others have to, too */
        request_fail(client, done ? done[i] : NULL, args ? args[i] : NULL, error);
        error = CV_OK;
    }
    client_uncork(client);
    return error;
}

int cv_start(struct cv_client *client, const struct cv_op *op, cv_done_fn *done, void *arg) {
    return cv_start_all(client, op, 1, &done, &arg);
}

/* ---- Waiting ---- */

static void wait_for(struct cv_client *client, struct waiter *waiter) {
    client->waiters++;
    while (!waiter->done)
        if (client->threaded)
            pthread_cond_wait(&waiter->answered, &client->mutex);
        else
            client_process(client, -1);
    if (--client->waiters == 0) pthread_cond_broadcast(&client->changed);
}

int cv_call(struct cv_client *client, const struct cv_op *op, struct cv_result **result) {
    struct waiter waiter = {.answered = PTHREAD_COND_INITIALIZER};
    if (result) *result = NULL;
    if (client_in_callback(client)) return CV_WOULD_DEADLOCK;
    client_cork(client);
    int error = request_start(client, op, NULL, NULL, &waiter);
    client->corked--;
    session_flush(client);
    if (!error) wait_for(client, &waiter);
    client_unlock(client);
    pthread_cond_destroy(&waiter.answered);
    if (error) return error;
    if (result)
        *result = waiter.result;
    else
        cv_result_free(waiter.result);
    return waiter.error;
}

void cv_result_free(struct cv_result *result) { free(result); }

/* ---- The everyday ones ---- */

int cv_create(struct cv_client *client, const char *path, const void *data, size_t size,
              int32_t flags, char *created, size_t created_size) {
    struct cv_op op = cv_op_create(path, data, size, flags);
    struct cv_result *result;
    int error = cv_call(client, &op, &result);
    if (!error && created && created_size) snprintf(created, created_size, "%s", result->path);
    cv_result_free(result);
    return error;
}

/* From the top to the node's parent.  Those that exist are passed over; so are those that may not
 * be created, because they may exist. */
static int create_parents(struct cv_client *client, const char *path) {
    char *part = strdup(path);
    int error = part ? CV_OK : CV_NO_MEMORY;
    for (char *slash = part ? strchr(part + 1, '/') : NULL; slash && !error;
         slash = strchr(slash + 1, '/')) {
        *slash = 0;
        error = cv_create(client, part, NULL, 0, CV_PERSISTENT, NULL, 0);
        if (error == CV_NODE_EXISTS || error == CV_NO_AUTH) error = CV_OK;
        *slash = '/';
    }
    free(part);
    return error;
}

int cv_create_all(struct cv_client *client, const char *path, int32_t flags) {
    if (!path_is_good(path, (flags & CV_SEQUENTIAL) != 0)) return CV_BAD_ARGUMENTS;
    int error = cv_create(client, path, NULL, 0, flags, NULL, 0);
    if (error == CV_NO_NODE) {
        error = create_parents(client, path);
        if (!error) error = cv_create(client, path, NULL, 0, flags, NULL, 0);
    }
    return error == CV_NODE_EXISTS ? CV_OK : error;
}

int cv_delete(struct cv_client *client, const char *path, int32_t version) {
    return cv_call(client, &(struct cv_op){.type = CV_OP_DELETE, .path = path, .version = version},
                   NULL);
}

int cv_exists(struct cv_client *client, const char *path, struct cv_stat *stat) {
    struct cv_op op = cv_op_exists(path);
    struct cv_result *result;
    int error = cv_call(client, &op, &result);
    if (!error && stat) *stat = result->stat;
    cv_result_free(result);
    return error;
}

int cv_get(struct cv_client *client, const char *path, struct cv_result **result) {
    struct cv_op op = cv_op_get(path);
    return cv_call(client, &op, result);
}

int cv_set(struct cv_client *client, const char *path, const void *data, size_t size,
           int32_t version) {
    struct cv_op op = cv_op_set(path, data, size, version);
    return cv_call(client, &op, NULL);
}

int cv_children(struct cv_client *client, const char *path, struct cv_result **result) {
    struct cv_op op = cv_op_children(path);
    return cv_call(client, &op, result);
}
