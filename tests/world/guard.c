/* Nodes that only one user may read and write: each user has one, and tries the others'. */
#include <stdio.h>

#include "load.h"

enum { GUARDED = 24 }; /* keys in the histories, by user */

static const char *path_of(unsigned number, char path[PATH_SIZE]) {
    snprintf(path, PATH_SIZE, "/s/u%u", number);
    return path;
}

static void write_guard(struct bytes *acl) {
    zk_write_acl(acl, &(struct zk_acl){ACL_ALL, {zk_text_of("auth"), zk_text_of("")}});
}

bool guard_authenticate(struct user *u) {
    char secret[24];
    snprintf(secret, sizeof secret, "u%u:secret%u", u->number, u->number);
    struct zk_auth_request request = {0, zk_text_of("digest"), zk_text_of(secret)};
    user_begin(u);
    struct call *call = user_ask(u, ZK_OP_AUTH, &request);
    bool good = user_finish(u);
    if (good && call->err) violated("user %u cannot authenticate: %d", u->number, call->err);
    return good;
}

static void create_own(struct user *u) {
    char path[PATH_SIZE], text[24];
    struct bytes acl = {0};
    struct history_operation o = load_begin(u, GUARDED + u->number, HISTORY_CREATE);
    o.value = ++world->last_value;
    snprintf(text, sizeof text, "%lld", (long long)o.value);
    write_guard(&acl);
    struct zk_create_request request = {zk_text_of(path_of(u->number, path)),
                                        zk_text_of(text),
                                        {acl.at, acl.used, 1},
                                        ZK_PERSISTENT};
    user_begin(u);
    struct call *call = user_ask(u, ZK_OP_CREATE, &request);
    user_finish(u);
    bytes_close(&acl);
    if (!load_outcome(&o, call)) return;
    load_add(&o, true);
    u->guards |= o.outcome == HISTORY_OK || o.outcome == HISTORY_EXISTS;
}

static void use_own(struct user *u) {
    char path[PATH_SIZE];
    bool write = rng_chance(&u->rng, 0.5);
    struct history_operation o =
        load_begin(u, GUARDED + u->number, write ? HISTORY_WRITE : HISTORY_READ);
    if (write) o.value = ++world->last_value;
    path_of(u->number, path);
    user_begin(u);
    struct call *call =
        write ? load_set(u, path, o.value, HISTORY_ANY) : user_look(u, ZK_OP_GET_DATA, path, false);
    user_finish(u);
    if (write)
        load_set_done(u, &o, call);
    else
        load_get_done(u, &o, call, false);
}

/* Nothing of it may succeed.  A server that lags may not know the node yet. */
static void try_another(struct user *u, unsigned number) {
    char path[PATH_SIZE];
    struct bytes acl = {0};
    uint64_t chosen = rng_below(&u->rng, 3);
    struct call *call;
    path_of(number, path);
    user_begin(u);
    if (chosen == 0) {
        call = load_set(u, path, ++world->last_value, HISTORY_ANY);
    } else if (chosen == 1) {
        write_guard(&acl);
        struct zk_set_acl_request request = {zk_text_of(path), {acl.at, acl.used, 1}, HISTORY_ANY};
        call = user_ask(u, ZK_OP_SET_ACL, &request);
        bytes_close(&acl);
    } else {
        struct zk_get_data_request request = {zk_text_of(path), false};
        call = user_ask(u, ZK_OP_GET_DATA, &request);
    }
    user_finish(u);
    world->coverage.trespasses += call->done;
    bool lags = chosen == 2 && call->err == ZK_NONODE;
    if (call->done && call->err != ZK_NOAUTH && !lags && call->err != ZK_SESSIONEXPIRED &&
        call->err != ZK_SESSIONMOVED)
        violated("user %u may do something with %s: %d", u->number, path, call->err);
}

void guard_act(struct user *u) {
    unsigned other = (unsigned)rng_below(&u->rng, world->users);
    if (!u->guards)
        create_own(u);
    else if (other != u->number && world->user[other].guards)
        try_another(u, other);
    else
        use_own(u);
}
