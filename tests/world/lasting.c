/* Watches that last: one on a node, one on all below another.  Between two looks through the same
 * connection there is exactly one event for each change. */
#include <stdio.h>

#include "load.h"

static const char *const watched[] = {"/m/a", "/q"}; /* its data; nodes that are added below it */

void lasting_event(struct user *u, int32_t type, struct zk_text path) {
    size_t below = strlen(watched[1]);
    if (type == ZK_NODE_DATA_CHANGED && zk_text_equal(path, zk_text_of(watched[0])))
        u->lasting[0].events++;
    if (type == ZK_NODE_CREATED && (size_t)path.size > below && path.at[below] == '/' &&
        memcmp(path.at, watched[1], below) == 0)
        u->lasting[1].events++;
}

void lasting_lost(struct user *u) {
    for (unsigned i = 0; i < 2; i++) u->lasting[i].set = u->lasting[i].looked = false;
}

static void take_look(struct user *u, unsigned i, const struct call *call) {
    struct lasting *l = &u->lasting[i];
    struct zk_in in = zk_in_of(call->body.at, call->body.used);
    struct zk_exists_response response;
    if (!call->done || call->err || !l->set) return;
    cv_assert(zk_read_exists_response(&in, &response));
    int32_t changes = i ? response.stat.cversion : response.stat.version;
    if (l->looked && l->events != changes - l->changes)
        violated("user %u has had %lld events for %lld changes of %s", u->number,
                 (long long)l->events, (long long)changes - l->changes, watched[i]);
    if (l->looked) world->coverage.lasting_events += (uint64_t)l->events;
    l->looked = true;
    l->changes = changes;
    l->events = 0;
}

static void look(struct user *u) {
    struct call *call[2];
    user_begin(u);
    for (unsigned i = 0; i < 2; i++) {
        struct zk_exists_request request = {zk_text_of(watched[i]), false};
        call[i] = user_ask(u, ZK_OP_EXISTS, &request);
        call[i]->lasting = i + 1;
    }
    user_finish(u);
}

void lasting_answered(struct user *u, const struct call *call) {
    take_look(u, call->lasting - 1, call);
}

/* In one of the two ways, and with the first look. */
static void set(struct user *u) {
    struct bytes text[2] = {{0}, {0}};
    user_begin(u);
    if (rng_chance(&u->rng, 0.5)) {
        for (int i = 0; i < 2; i++) {
            struct zk_add_watch_request request = {zk_text_of(watched[i]), i};
            user_ask(u, ZK_OP_ADD_WATCH, &request);
        }
    } else {
        for (int i = 0; i < 2; i++) zk_write_text(&text[i], zk_text_of(watched[i]));
        struct zk_set_watches2_request request = {
            .relative_zxid = u->zxid,
            .persistent = {text[0].at, text[0].used, 1},
            .persistent_recursive = {text[1].at, text[1].used, 1}};
        user_ask(u, ZK_OP_SET_WATCHES2, &request);
    }
    bool good = user_finish(u);
    for (unsigned i = 0; i < u->calls && good; i++)
        if (u->call[i].err) violated("user %u cannot set a watch that lasts", u->number);
    for (unsigned i = 0; i < 2; i++) bytes_close(&text[i]);
    for (unsigned i = 0; i < 2 && good; i++) u->lasting[i] = (struct lasting){.set = true};
}

void lasting_act(struct user *u) {
    if (!u->lasting[0].set) set(u);
    if (u->socket) look(u);
}
