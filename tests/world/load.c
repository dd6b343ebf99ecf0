/* What users do: registers that are read, written and compared, nodes that are created and deleted,
 * ephemeral nodes, and sequential nodes that stay.  All operations go into one history; those that
 * have to be linearizable also go into another. */
#include <stdio.h>

#include "load.h"

/* ---- Histories ---- */

struct history_operation load_begin(const struct user *u, uint32_t key,
                                    enum history_action action) {
    return history_begin(u->number, key, action, (int64_t)world->now);
}

void load_add(const struct history_operation *o, bool strong) {
    if (strong) history_add(&world->strong, o);
    history_add(&world->weak, o);
}

bool load_outcome(struct history_operation *o, const struct call *call) {
    if (!call->done) return true;
    o->end = (int64_t)call->received;
    switch (call->err) {
    case ZK_OK: o->outcome = HISTORY_OK; return true;
    case ZK_NONODE: o->outcome = HISTORY_NO_NODE; return true;
    case ZK_NODEEXISTS: o->outcome = HISTORY_EXISTS; return true;
    case ZK_BADVERSION: o->outcome = HISTORY_BAD_VERSION; return true;
    case ZK_SESSIONEXPIRED:
    case ZK_SESSIONMOVED: return false;
    default: violated("user %u: an operation fails with %d", o->client, call->err); return false;
    }
}

/* ---- Requests ---- */

struct call *load_create(struct user *u, const char *path, int64_t value, int32_t flags) {
    char text[24];
    struct bytes acl = {0};
    struct zk_acl open = {ACL_ALL, {zk_text_of("world"), zk_text_of("anyone")}};
    snprintf(text, sizeof text, "%lld", (long long)value);
    zk_write_acl(&acl, &open);
    struct zk_create_request request = {
        zk_text_of(path), zk_text_of(text), {acl.at, acl.used, 1}, flags};
    struct call *call = user_ask(u, ZK_OP_CREATE, &request);
    bytes_close(&acl);
    return call;
}

struct call *load_delete(struct user *u, const char *path, int64_t version) {
    struct zk_delete_request request = {zk_text_of(path), (int32_t)version};
    return user_ask(u, ZK_OP_DELETE, &request);
}

struct call *load_set(struct user *u, const char *path, int64_t value, int64_t version) {
    char text[24];
    snprintf(text, sizeof text, "%lld", (long long)value);
    struct zk_set_data_request request = {zk_text_of(path), zk_text_of(text), (int32_t)version};
    return user_ask(u, ZK_OP_SET_DATA, &request);
}

static struct call *ask_get(struct user *u, const char *path, bool watch) {
    return user_look(u, ZK_OP_GET_DATA, path, watch);
}

void load_sync(struct user *u) {
    struct zk_sync_request request = {zk_text_of("/")};
    user_ask(u, ZK_OP_SYNC, &request);
}

static const char *path_of(uint32_t key, char path[PATH_SIZE]) {
    snprintf(path, PATH_SIZE, key < KEYS ? "/r%u" : "/e/u%u", key < KEYS ? key : key - EPHEMERALS);
    return path;
}

static uint32_t any_key(struct user *u) { return (uint32_t)rng_below(&u->rng, KEYS); }

/* ---- Registers ---- */

void load_set_done(struct user *u, struct history_operation *o, const struct call *call) {
    struct zk_in in = zk_in_of(call->body.at, call->body.used);
    struct zk_set_data_response response;
    if (!load_outcome(o, call)) return;
    if (o->outcome == HISTORY_OK) {
        cv_assert(zk_read_set_data_response(&in, &response));
        o->version = response.stat.version;
        if (o->key < KEYS) u->version[o->key] = o->version;
    }
    load_add(o, true);
}

/* The writer tells other users, outside of the servers, and these read at once: a linearizable read
 * has to show the write. */
static void spread(struct user *u, const struct history_operation *o) {
    for (unsigned i = 0; o->outcome == HISTORY_OK && i < world->users; i++) {
        struct user *other = &world->user[i];
        if (!other->idle || other->rumour || rng_chance(&u->rng, 0.3)) continue;
        other->rumour = o->key + 1;
        task_wake(other->task);
    }
}

/* Any version, or the one that was seen last. */
static void write_register(struct user *u, bool compare) {
    char path[PATH_SIZE];
    uint32_t key = any_key(u);
    struct history_operation o = load_begin(u, key, compare ? HISTORY_CAS : HISTORY_WRITE);
    o.value = ++world->last_value;
    if (compare) o.expected = u->version[key];
    user_begin(u);
    struct call *call = load_set(u, path_of(key, path), o.value, compare ? o.expected : -1);
    user_finish(u);
    load_set_done(u, &o, call);
    spread(u, &o);
}

void load_get_done(struct user *u, struct history_operation *o, const struct call *call,
                   bool strong) {
    struct zk_in in = zk_in_of(call->body.at, call->body.used);
    struct zk_get_data_response response = {0};
    char text[24];
    if (!call->done || !load_outcome(o, call)) return;
    if (o->outcome == HISTORY_OK) {
        cv_assert(zk_read_get_data_response(&in, &response));
        snprintf(text, sizeof text, "%.*s", response.data.size, response.data.at);
        o->value = strtoll(text, NULL, 10);
        o->version = response.stat.version;
        if (o->key < KEYS) u->version[o->key] = o->version;
    }
    load_add(o, strong || world->linearizable);
}

static void read_key(struct user *u, uint32_t key, bool strong) {
    char path[PATH_SIZE];
    bool watch = key < KEYS && rng_chance(&u->rng, 0.3);
    struct history_operation o = load_begin(u, key, HISTORY_READ);
    user_begin(u);
    if (strong) load_sync(u);
    struct call *call = ask_get(u, path_of(key, path), watch);
    user_finish(u);
    load_get_done(u, &o, call, strong);
}

static void look_into_rumour(struct user *u) {
    uint32_t key = u->rumour - 1;
    u->rumour = 0;
    if (u->socket) read_key(u, key, false);
}

/* Several requests at once: each read shows the write before it. */
static void write_and_read(struct user *u) {
    char path[PATH_SIZE];
    uint32_t key = any_key(u);
    struct history_operation first = load_begin(u, key, HISTORY_WRITE), second = first;
    struct history_operation read = load_begin(u, key, HISTORY_READ), again = read;
    first.value = ++world->last_value;
    second.value = ++world->last_value;
    path_of(key, path);
    user_begin(u);
    struct call *calls[] = {load_set(u, path, first.value, -1), ask_get(u, path, false),
                            load_set(u, path, second.value, -1), ask_get(u, path, false)};
    user_finish(u);
    load_set_done(u, &first, calls[0]);
    load_get_done(u, &read, calls[1], false);
    load_set_done(u, &second, calls[2]);
    load_get_done(u, &again, calls[3], false);
}

/* ---- Nodes that are created and deleted ---- */

static void create_register(struct user *u, uint32_t key) {
    char path[PATH_SIZE];
    struct history_operation o = load_begin(u, key, HISTORY_CREATE);
    o.value = ++world->last_value;
    user_begin(u);
    struct call *call = load_create(u, path_of(key, path), o.value, ZK_PERSISTENT);
    user_finish(u);
    if (load_outcome(&o, call)) load_add(&o, true);
}

static void delete_register(struct user *u) {
    char path[PATH_SIZE];
    uint32_t key = 1 + (uint32_t)rng_below(&u->rng, KEYS - 1); /* one of them stays */
    struct history_operation o = load_begin(u, key, HISTORY_DELETE);
    if (rng_chance(&u->rng, 0.5)) o.expected = u->version[key];
    user_begin(u);
    struct call *call = load_delete(u, path_of(key, path), o.expected);
    user_finish(u);
    if (load_outcome(&o, call)) load_add(&o, true);
}

static void create_or_delete(struct user *u) {
    if (rng_chance(&u->rng, 0.7))
        create_register(u, any_key(u));
    else
        delete_register(u);
}

/* ---- Ephemeral nodes ---- */

static void create_ephemeral(struct user *u) {
    char path[PATH_SIZE];
    struct history_operation o = load_begin(u, EPHEMERALS + u->number, HISTORY_CREATE);
    o.value = ++world->last_value;
    user_begin(u);
    struct call *call = load_create(u, path_of(o.key, path), o.value, ZK_EPHEMERAL);
    user_finish(u);
    if (!load_outcome(&o, call)) return;
    load_add(&o, true);
    if (o.outcome == HISTORY_OK) u->ephemeral = HAS;
    if (o.outcome == HISTORY_UNKNOWN) u->ephemeral = MAY_HAVE;
}

static void delete_ephemeral(struct user *u) {
    char path[PATH_SIZE];
    struct history_operation o = load_begin(u, EPHEMERALS + u->number, HISTORY_DELETE);
    user_begin(u);
    struct call *call = load_delete(u, path_of(o.key, path), -1);
    user_finish(u);
    if (!load_outcome(&o, call)) return;
    load_add(&o, true);
    u->ephemeral = o.outcome == HISTORY_UNKNOWN ? MAY_HAVE : HAS_NOT;
}

static void look_after_ephemeral(struct user *u) {
    if (u->ephemeral == HAS_NOT)
        create_ephemeral(u);
    else if (rng_chance(&u->rng, 0.2))
        delete_ephemeral(u);
    else
        read_key(u, EPHEMERALS + u->number, true);
}

static void look_at_ephemeral(struct user *u) {
    read_key(u, EPHEMERALS + (uint32_t)rng_below(&u->rng, world->users), true);
}

void load_session_ended(struct user *u, nanos since, nanos until) {
    struct history_operation o = load_begin(u, EPHEMERALS + u->number, HISTORY_DELETE);
    o.start = o.end = (int64_t)since;
    if (u->ephemeral == HAS && until) {
        o.end = (int64_t)until;
        o.outcome = HISTORY_OK;
    }
    if (u->ephemeral != HAS_NOT) load_add(&o, true);
    u->ephemeral = HAS_NOT;
    lock_session_ended(u, since, until);
}

/* ---- Sequential nodes that stay ---- */

static void add_node(struct user *u) {
    struct world *w = world;
    uint32_t number = (uint32_t)w->additions;
    w->addition = grown(w->addition, &w->addition_room, w->additions + 1, sizeof *w->addition);
    w->addition[w->additions++] = (struct addition){.number = number};
    user_begin(u);
    struct call *call = load_create(u, "/q/n-", number, ZK_SEQUENTIAL);
    user_finish(u);
    if (call->done && call->err == ZK_OK) w->addition[number].acknowledged = true;
    if (call->done && call->err && call->err != ZK_SESSIONEXPIRED && call->err != ZK_SESSIONMOVED)
        violated("user %u: adding a node fails with %d", u->number, call->err);
}

/* ---- Sessions ---- */

static void close_session(struct user *u) {
    struct session_record *record = session_record(u->session);
    nanos asked = world->now;
    record->closed = true;
    user_begin(u);
    struct call *call = user_ask(u, ZK_OP_CLOSE_SESSION, NULL);
    user_finish(u);
    bool done = call->done && (call->err == ZK_OK || call->err == ZK_SESSIONEXPIRED);
    if (!done) record->abandoned = true;
    load_session_ended(u, done && call->err == ZK_OK ? asked : u->alive, done ? call->received : 0);
    user_forget(u);
}

/* The client is gone without a close, and starts again with a new session. */
static void abandon_session(struct user *u) {
    session_record(u->session)->abandoned = true;
    load_session_ended(u, u->alive, 0);
    user_forget(u);
}

/* It is disconnected for about as long as its session's timeout. */
static void be_away(struct user *u) {
    nanos length = (nanos)u->timeout_ms * MS;
    user_disconnect(u);
    task_sleep(random_time(&u->rng, length - 300 * MS, length + 900 * MS));
}

/* ---- All of it ---- */

static void create_parents(struct user *u) {
    static const char *const paths[] = {"/q", "/lock", "/e", "/m", "/s", "/t", "/c"};
    for (unsigned i = 0; i < sizeof paths / sizeof *paths && !world->over;) {
        if (!user_connect(u)) return;
        user_begin(u);
        struct call *call = load_create(u, paths[i], 0, ZK_PERSISTENT);
        if (user_finish(u) && (call->err == ZK_OK || call->err == ZK_NODEEXISTS)) i++;
    }
}

static void write_any(struct user *u) { write_register(u, false); }
static void write_compared(struct user *u) { write_register(u, true); }
static void read_new(struct user *u) { read_key(u, any_key(u), true); }
static void read_any(struct user *u) { read_key(u, any_key(u), false); }

static const struct {
    unsigned weight;
    void (*act)(struct user *user);
    enum kind kind; /* of worlds in which it happens */
} acts[] = {
    {15, write_any, KINDS},        {15, write_compared, KINDS},
    {15, read_new, KINDS},         {20, read_any, KINDS},
    {8, write_and_read, KINDS},    {12, create_or_delete, KINDS},
    {10, add_node, KINDS},         {8, look_after_ephemeral, KINDS},
    {5, look_at_ephemeral, KINDS}, {12, lock_cycle, KINDS},
    {2, be_away, KINDS},           {1, close_session, KINDS},
    {1, abandon_session, KINDS},   {25, multi_act, KIND_MULTI},
    {15, guard_act, KIND_GUARD},   {25, lasting_act, KIND_LASTING},
    {20, ttl_act, KIND_TTL},
};

static unsigned weight_of(size_t act) {
    return acts[act].kind == KINDS || world_has(acts[act].kind) ? acts[act].weight : 0;
}

static void act(struct user *u) {
    unsigned total = 0;
    for (size_t i = 0; i < sizeof acts / sizeof *acts; i++) total += weight_of(i);
    uint64_t chosen = rng_below(&u->rng, total);
    size_t at = 0;
    for (; chosen >= weight_of(at); at++) chosen -= weight_of(at);
    acts[at].act(u);
}

/* When the faults have ended every user is served, and all of them read the same. */
static void finish(struct user *u) {
    for (uint32_t key = 0; key < KEYS && !*world->violation;) {
        if (!user_connect(u)) return;
        write_register(u, false);
        size_t before = world->strong.count;
        if (u->socket) read_key(u, key, true);
        if (u->socket && world->strong.count > before) key++;
    }
    if (!user_connect(u)) return;
    if (u->number % 2)
        close_session(u);
    else
        abandon_session(u);
    u->finished = true;
}

void load_run(void *context) {
    struct user *u = context;
    task_sleep(random_time(&u->rng, 0, SECOND));
    create_parents(u);
    while (!world->healed && !*world->violation) {
        if (!user_connect(u)) break;
        act(u);
        u->idle = true;
        if (!world->healed) user_pause(u, random_time(&u->rng, MS, 150 * MS));
        u->idle = false;
        if (u->rumour) look_into_rumour(u);
    }
    finish(u);
    while (true) task_wait(NEVER);
}
