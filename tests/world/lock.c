/* ZooKeeper's lock recipe: an ephemeral sequential node for each client; the first holds the lock,
 * and each of the others watches the one before it. */
#include <stdio.h>

#include "load.h"

enum { SEQUENCE = 10 }; /* digits */

struct position {        /* in the queue */
    char own[PATH_SIZE]; /* its path; empty: not there */
    char before[PATH_SIZE];
    long long number;
};

static long long number_of(struct zk_text name) {
    char digits[SEQUENCE + 1];
    if (name.size < SEQUENCE) return -1;
    snprintf(digits, sizeof digits, "%.*s", SEQUENCE, name.at + name.size - SEQUENCE);
    return strtoll(digits, NULL, 10);
}

/* Where it is in the queue, by the beginning of its name; false: not known. */
static bool look(struct user *u, const char *prefix, struct position *position) {
    struct zk_get_children_request request = {zk_text_of("/lock"), false};
    struct zk_get_children_response response;
    struct zk_text name;
    user_begin(u);
    struct call *call = user_ask(u, ZK_OP_GET_CHILDREN, &request);
    if (!user_finish(u) || call->err) return false;
    struct zk_in in = zk_in_of(call->body.at, call->body.used);
    cv_assert(zk_read_get_children_response(&in, &response));
    *position = (struct position){.number = -1};
    for (struct zk_texts left = response.children; zk_texts_next(&left, &name);) {
        if ((size_t)name.size <= strlen(prefix) || memcmp(name.at, prefix, strlen(prefix)) != 0)
            continue;
        if (*position->own) violated("user %u is in the queue twice", u->number);
        snprintf(position->own, sizeof position->own, "/lock/%.*s", name.size, name.at);
        position->number = number_of(name);
    }
    long long best = -1;
    for (struct zk_texts left = response.children; zk_texts_next(&left, &name);) {
        long long number = number_of(name);
        if (number >= position->number || number <= best) continue;
        best = number;
        snprintf(position->before, sizeof position->before, "/lock/%.*s", name.size, name.at);
    }
    return true;
}

/* Waits until the node before it is deleted, or that time. */
static void wait_for(struct user *u, const char *path, nanos until) {
    int64_t session = u->session;
    user_begin(u);
    struct call *call = user_look(u, ZK_OP_EXISTS, path, true);
    if (!user_finish(u) || call->err) return;
    while (user_watches(u, path) && world->now < until && u->session == session) {
        if (!user_connect(u)) return;
        user_pause(u, 20 * MS < until - world->now ? 20 * MS : until - world->now);
    }
    if (user_watches(u, path) && u->socket) { /* then a read must not show a change */
        user_begin(u);
        user_look(u, ZK_OP_EXISTS, path, false);
        user_finish(u);
    }
    user_unwatch(u, path);
}

/* Deletes its node, repeatedly if need be; false: its session ended before. */
static bool leave(struct user *u, const char *path) {
    int64_t session = u->session;
    while (user_connect(u) && u->session == session) {
        user_begin(u);
        struct call *call = load_delete(u, path, -1);
        if (user_finish(u) && (call->err == ZK_OK || call->err == ZK_NONODE)) return true;
    }
    return false;
}

static void hold_and_release(struct user *u, const struct position *position) {
    int64_t session = u->session;
    u->holds = true;
    u->releasing = 0;
    user_pause(u, random_time(&u->rng, MS, 100 * MS));
    u->releasing = world->now;
    struct history_operation o = load_begin(u, LOCK, HISTORY_RELEASE);
    o.token = HISTORY_ANY;
    bool left = leave(u, position->own);
    if (!left || u->session != session || !u->holds) return; /* it was lost with the session */
    o.end = (int64_t)world->now;
    o.outcome = HISTORY_OK;
    u->holds = false;
    load_add(&o, true);
}

/* A release whose answer was lost may have been done before that. */
void lock_session_ended(struct user *u, nanos since, nanos until) {
    struct history_operation o = load_begin(u, LOCK, HISTORY_RELEASE);
    if (!u->holds) return;
    u->holds = false;
    if (u->releasing && u->releasing < since) since = u->releasing;
    o.start = o.end = (int64_t)since;
    if (until) {
        o.end = (int64_t)until;
        o.outcome = HISTORY_OK;
    }
    load_add(&o, true);
}

/* Acquires the lock, if it can be had within some time, and releases it. */
void lock_cycle(struct user *u) {
    char prefix[32], path[PATH_SIZE];
    struct position position = {.number = -1};
    struct history_operation o = load_begin(u, LOCK, HISTORY_ACQUIRE);
    nanos until = world->now + 3 * SECOND;
    int64_t session = u->session;
    bool was_there = false;
    snprintf(prefix, sizeof prefix, "u%u-%u-", u->number, ++u->attempt);
    snprintf(path, sizeof path, "/lock/%s", prefix);
    while (user_connect(u) && u->session == session && !*world->violation) {
        bool there = look(u, prefix, &position);
        if (!there) continue;
        if (!*position.own && was_there)
            violated("user %u: %s is deleted, but its session still exists", u->number, path);
        if (!*position.own) {
            if (world->now >= until) return;
            user_begin(u);
            struct call *call = load_create(u, path, 0, ZK_EPHEMERAL_SEQUENTIAL);
            was_there = user_finish(u) && call->err == ZK_OK;
        } else if (!*position.before) {
            o.end = (int64_t)world->now;
            o.outcome = HISTORY_OK;
            o.token = position.number;
            load_add(&o, true);
            hold_and_release(u, &position);
            return;
        } else if (world->now < until && !world->healed) {
            wait_for(u, position.before, until);
        } else {
            leave(u, position.own);
            return;
        }
    }
}
