#include "client/recipe/follow.h"

#include <stdlib.h>
#include <string.h>

struct follow {
    struct cv_client *client;
    struct followers *of; /* NULL: nobody cares any more */
    struct follow *next, **link;
    int tag;
    bool armed, removed;
    char path[];
};

static void detach(struct follow *follow) {
    *follow->link = follow->next;
    if (follow->next) follow->next->link = follow->link;
    follow->of = NULL;
}

static void on_fired(enum cv_watch_type type, const char *path, void *arg) {
    struct follow *follow = arg;
    struct cv_client *client = follow->client;
    (void)path;
    client_lock(client);
    struct followers *of = follow->of;
    if (of) {
        detach(follow);
        /* at the end of a session its listeners are told */
        if (type != CV_WATCH_LOST) of->fired(of->owner, follow->tag, follow->path, type);
        client_wake(client);
    }
    if (!follow->removed) free(follow); /* else the answer to its removal frees it */
    client_unlock(client);
}

static void on_answered(const struct cv_result *result, void *arg) {
    struct follow *follow = arg;
    struct cv_client *client = follow->client;
    client_lock(client);
    struct followers *of = follow->of;
    follow->armed = !result->error;
    if (result->error) detach(follow);
    of->answered(of->owner, follow->tag, follow->path, result);
    client_wake(client);
    client_unlock(client);
    if (result->error) free(follow);
}

int follow_start(struct followers *followers, const char *path, int tag) {
    size_t size = strlen(path) + 1;
    struct follow *follow = calloc(1, sizeof *follow + size);
    if (!follow) return CV_NO_MEMORY;
    *follow = (struct follow){.client = followers->client,
                              .of = followers,
                              .next = followers->first,
                              .link = &followers->first,
                              .tag = tag};
    memcpy(follow->path, path, size);
    struct cv_op op = cv_op_get(follow->path);
    op.watch = on_fired;
    op.watch_arg = follow;
    int error = cv_start(followers->client, &op, on_answered, follow);
    if (error) {
        free(follow);
        return error;
    }
    if (follow->next) follow->next->link = &follow->next;
    followers->first = follow;
    return CV_OK;
}

static void on_removed(const struct cv_result *result, void *arg) {
    (void)result;
    free(arg); /* it cannot fire any more */
}

void follow_forget(struct followers *followers) {
    for (struct follow *follow = followers->first, *next; follow; follow = next) {
        next = follow->next;
        if (!follow->armed) continue;
        struct cv_op op = {.type = CV_OP_REMOVE_WATCH,
                           .path = follow->path,
                           .watch = on_fired,
                           .watch_arg = follow};
        detach(follow);
        /* else it is freed when it fires, at the latest with the session */
        follow->removed = !cv_start(followers->client, &op, on_removed, follow);
    }
}
