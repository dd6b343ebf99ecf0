/* Two nodes that are always changed together, by multis: to every reader they are one register.
 * Multis that fail change nothing, and say which of their operations failed. */
#include <stdio.h>

#include "load.h"

enum { PAIR = 8 }; /* its key in the histories */

static const char *const paths[] = {"/m/a", "/m/b"};

/* ---- Requests ---- */

static struct zk_text text_of(char text[24], int64_t value) {
    snprintf(text, 24, "%lld", (long long)value);
    return zk_text_of(text);
}

static void add_set(struct bytes *body, unsigned which, int64_t value) {
    char text[24];
    union zk_request request = {
        .set_data = {zk_text_of(paths[which]), text_of(text, value), HISTORY_ANY}};
    zk_write_multi_op(body, ZK_OP_SET_DATA, &request);
}

static void add_create(struct bytes *body, unsigned which, int64_t value) {
    char text[24];
    struct bytes acl = {0};
    struct zk_acl open = {ACL_ALL, {zk_text_of("world"), zk_text_of("anyone")}};
    zk_write_acl(&acl, &open);
    union zk_request request = {
        .create = {
            zk_text_of(paths[which]), text_of(text, value), {acl.at, acl.used, 1}, ZK_PERSISTENT}};
    zk_write_multi_op(body, ZK_OP_CREATE, &request);
    bytes_close(&acl);
}

static void add_check(struct bytes *body, unsigned which, int64_t version) {
    union zk_request request = {.check = {zk_text_of(paths[which]), (int32_t)version}};
    zk_write_multi_op(body, ZK_OP_CHECK, &request);
}

/* A delete of a node that never is. */
static void add_failure(struct bytes *body) {
    union zk_request request = {.delete = {zk_text_of("/m/none"), HISTORY_ANY}};
    zk_write_multi_op(body, ZK_OP_DELETE, &request);
}

static struct call *ask(struct user *u, int32_t op, struct bytes *body) {
    zk_write_multi_end(body);
    struct call *call = user_ask(u, op, body);
    bytes_close(body);
    world->coverage.multis++;
    return call;
}

/* ---- Answers ---- */

/* The first error; each operation after that is not tried, and says so. */
static int32_t judge_results(struct user *u, const struct call *call, int32_t operations) {
    struct zk_in in = zk_in_of(call->body.at, call->body.used);
    struct zk_multi results;
    struct zk_result result;
    int32_t err = ZK_OK;
    if (call->err) return call->err;
    bool good = zk_read_results(&in, &results) && results.count == operations;
    for (int32_t i = 0; good && i < operations; i++) {
        good = zk_results_next(&results, &result);
        bool failed = good && result.type == ZK_OP_ERROR && result.err;
        if (err) good = failed && result.err == ZK_RUNTIMEINCONSISTENCY;
        if (!err && failed) err = result.err;
    }
    if (!good) violated("user %u gets results of a multi that make no sense", u->number);
    return err;
}

static bool take(struct user *u, struct history_operation *o, struct call *call,
                 int32_t operations) {
    if (call->done) call->err = judge_results(u, call, operations);
    return load_outcome(o, call);
}

/* ---- Acts ---- */

static void create_pair(struct user *u) {
    struct bytes body = {0};
    struct history_operation o = load_begin(u, PAIR, HISTORY_CREATE);
    o.value = ++world->last_value;
    add_create(&body, 0, o.value);
    add_create(&body, 1, o.value);
    user_begin(u);
    struct call *call = ask(u, ZK_OP_MULTI, &body);
    user_finish(u);
    if (take(u, &o, call, 2)) load_add(&o, true);
}

static void write_pair(struct user *u, bool compare) {
    struct bytes body = {0};
    struct history_operation o = load_begin(u, PAIR, compare ? HISTORY_CAS : HISTORY_WRITE);
    o.value = ++world->last_value;
    if (compare) o.expected = u->pair_version;
    if (compare) add_check(&body, (unsigned)rng_below(&u->rng, 2), o.expected);
    add_set(&body, 0, o.value);
    add_set(&body, 1, o.value);
    user_begin(u);
    struct call *call = ask(u, ZK_OP_MULTI, &body);
    user_finish(u);
    if (!take(u, &o, call, compare ? 3 : 2)) return;
    load_add(&o, true);
    if (o.outcome == HISTORY_NO_NODE && u->socket) create_pair(u);
}

/* What it would have written is not in the histories, so nobody may read it. */
static void fail_to_write(struct user *u) {
    struct bytes body = {0};
    add_set(&body, 0, ++world->last_value);
    add_failure(&body);
    add_set(&body, 1, world->last_value);
    user_begin(u);
    struct call *call = ask(u, ZK_OP_MULTI, &body);
    if (!user_finish(u)) return;
    int32_t err = judge_results(u, call, 3);
    world->coverage.failed_multis++;
    if (err != ZK_NONODE && err != ZK_SESSIONEXPIRED && err != ZK_SESSIONMOVED)
        violated("user %u: a multi that cannot succeed is answered %d", u->number, err);
}

/* Both as of the same moment. */
static void take_pair(struct user *u, struct history_operation *o, const struct call *call) {
    struct zk_in in = zk_in_of(call->body.at, call->body.used);
    struct zk_multi results;
    struct zk_result result[2];
    char text[24];
    if (!call->done || !load_outcome(o, call)) return;
    bool good = zk_read_results(&in, &results) && results.count == 2 &&
                zk_results_next(&results, &result[0]) && zk_results_next(&results, &result[1]);
    cv_assert(good);
    const struct zk_get_data_response *a = &result[0].of.get_data, *b = &result[1].of.get_data;
    bool missing = result[0].type == ZK_OP_ERROR;
    bool same = result[0].type == result[1].type &&
                (missing ? result[0].err == result[1].err
                         : zk_text_equal(a->data, b->data) && a->stat.version == b->stat.version &&
                               a->stat.mzxid == b->stat.mzxid);
    if (!same) violated("user %u sees half of a multi", u->number);
    if (missing) {
        o->outcome = HISTORY_NO_NODE;
    } else {
        snprintf(text, sizeof text, "%.*s", a->data.size, a->data.at);
        o->value = strtoll(text, NULL, 10);
        o->version = u->pair_version = a->stat.version;
    }
}

static void read_pair(struct user *u) {
    struct bytes body = {0};
    struct history_operation o = load_begin(u, PAIR, HISTORY_READ);
    bool strong = rng_chance(&u->rng, 0.5);
    for (unsigned i = 0; i < 2; i++) {
        union zk_request request = {.get_data = {zk_text_of(paths[i]), false}};
        zk_write_multi_op(&body, ZK_OP_GET_DATA, &request);
    }
    user_begin(u);
    if (strong) load_sync(u);
    struct call *call = ask(u, ZK_OP_MULTI_READ, &body);
    user_finish(u);
    take_pair(u, &o, call);
    if (o.outcome != HISTORY_UNKNOWN) load_add(&o, strong || world->linearizable);
}

void multi_act(struct user *u) {
    uint64_t chosen = rng_below(&u->rng, 10);
    if (chosen < 3)
        write_pair(u, false);
    else if (chosen < 6)
        write_pair(u, true);
    else if (chosen < 7)
        fail_to_write(u);
    else
        read_pair(u);
}
