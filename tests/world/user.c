/* Clients: a session that moves from server to server, requests, replies, events. */
#include <stdio.h>

#include "world.h"

#define PING_AFTER(U)   ((nanos)(U)->timeout_ms * MS / 3)
#define READ_TIMEOUT(U) ((nanos)(U)->timeout_ms * MS * 2 / 3)

static const char *name_of(const struct user *u) {
    static char name[8];
    snprintf(name, sizeof name, "u%u", u->number);
    return name;
}

/* ---- Bytes ---- */

static void changed(void *owner) { task_wake(owner); }

static bool is_lost(const struct user *u) {
    const struct socket *s = u->socket;
    return !s || s->error || (s->ended && !wire_unread(s));
}

void user_disconnect(struct user *u) {
    if (u->socket) trace(name_of(u), "is disconnected from s%d", u->server);
    if (u->socket) wire_close(u->socket);
    u->socket = NULL;
    u->attached = false;
    lasting_lost(u);
    u->in.used = u->out.used = 0;
}

static void flush(struct user *u) {
    if (!u->out.used || is_lost(u)) return;
    size_t sent = wire_send(u->socket, u->out.at, u->out.used);
    memmove(u->out.at, u->out.at + sent, u->out.used - sent);
    u->out.used -= sent;
    u->sent = world->now;
}

static void receive(struct user *u) {
    while (u->socket && wire_unread(u->socket)) {
        size_t size = wire_unread(u->socket);
        wire_read(u->socket, bytes_extend(&u->in, size), size);
        u->heard = world->now;
    }
}

/* ---- Watches ---- */

static struct user_watch *find_watch(const struct user *u, const char *path) {
    for (unsigned i = 0; i < WATCHES_MAX; i++)
        if (u->watch[i].set && strcmp(u->watch[i].path, path) == 0)
            return (struct user_watch *)&u->watch[i];
    return NULL;
}

bool user_watches(const struct user *u, const char *path) { return find_watch(u, path) != NULL; }

void user_unwatch(struct user *u, const char *path) {
    struct user_watch *watch = find_watch(u, path);
    if (watch) watch->set = false;
}

static void add_watch(struct user *u, const char *path, int64_t seen) {
    struct user_watch *slot = find_watch(u, path);
    for (unsigned i = 0; !slot && i < WATCHES_MAX; i++)
        if (!u->watch[i].set) slot = &u->watch[i];
    if (!slot) return;
    *slot = (struct user_watch){.seen = seen, .set = true};
    snprintf(slot->path, sizeof slot->path, "%s", path);
}

/* A user that watches a node gets the event before it can read the change. */
static void look_answered(struct user *u, const struct call *call) {
    struct zk_in in = zk_in_of(call->body.at, call->body.used);
    struct zk_get_data_response data = {0};
    struct zk_exists_response exists = {0};
    const struct user_watch *watch = find_watch(u, call->path);
    bool good = call->err || (call->op == ZK_OP_EXISTS ? zk_read_exists_response(&in, &exists)
                                                       : zk_read_get_data_response(&in, &data));
    cv_assert(good);
    int64_t changed_at = call->op == ZK_OP_EXISTS ? exists.stat.mzxid : data.stat.mzxid;
    if (watch && watch->seen != changed_at)
        violated("user %u reads %s as of zxid 0x%llx, without an event for the change "
                 "since 0x%llx",
                 u->number, call->path, (unsigned long long)changed_at,
                 (unsigned long long)watch->seen);
    if (call->watch && !call->err) add_watch(u, call->path, changed_at);
}

static void event_came(struct user *u, struct zk_in *frame) {
    struct zk_watcher_event event;
    if (!zk_read_watcher_event(frame, &event)) {
        violated("user %u receives a malformed event", u->number);
        return;
    }
    trace(name_of(u), "event %d of %.*s", event.type, event.path.size, event.path.at);
    world->coverage.events++;
    lasting_event(u, event.type, event.path);
    for (unsigned i = 0; i < WATCHES_MAX; i++) {
        struct user_watch *w = &u->watch[i];
        if (!w->set || !zk_text_equal(zk_text_of(w->path), event.path)) continue;
        w->set = false;
    }
}

/* ---- Replies ---- */

static bool goes_through_log(int32_t op) {
    const struct zk_op *known = zk_op_of(op);
    return known->kind == ZK_KIND_WRITE || known->kind == ZK_KIND_BARRIER ||
           op == ZK_OP_CLOSE_SESSION;
}

static void reply_came(struct user *u, const struct zk_reply_header *header, struct zk_in *frame) {
    struct call *call = &u->call[u->answered];
    if (u->answered == u->calls || call->xid != header->xid) {
        violated("user %u gets the reply to %d out of order", u->number, header->xid);
        return;
    }
    bool is_of_tree = call->op != ZK_OP_AUTH;
    if (is_of_tree && header->zxid < u->zxid)
        violated("user %u goes back from zxid 0x%llx to 0x%llx", u->number,
                 (unsigned long long)u->zxid, (unsigned long long)header->zxid);
    if (is_of_tree) u->zxid = header->zxid;
    u->answered++;
    trace(name_of(u), "%s %d is answered %d, zxid 0x%llx", zk_op_of(call->op)->name, call->xid,
          header->err, (unsigned long long)header->zxid);
    call->done = true;
    call->received = world->now;
    call->err = header->err;
    bytes_add(&call->body, frame->at, zk_left(frame));
    if (*call->path) look_answered(u, call);
    if (call->lasting) lasting_answered(u, call);
    bool refused = header->err == ZK_SESSIONEXPIRED || header->err == ZK_SESSIONMOVED;
    if (goes_through_log(call->op) && !refused && call->sent > u->alive) u->alive = call->sent;
}

static void take_frames(struct user *u) {
    struct zk_in received = zk_in_of(u->in.at, u->in.used), frame;
    struct zk_reply_header header;
    while (zk_next_frame(&received, 1 << 24, &frame) == 1) {
        if (!zk_read_reply_header(&frame, &header)) {
            violated("user %u receives a malformed reply", u->number);
            return;
        }
        if (header.xid == ZK_XID_EVENT)
            event_came(u, &frame);
        else if (header.xid != ZK_XID_PING)
            reply_came(u, &header, &frame);
        else
            judge_ping(u);
    }
    size_t taken = u->in.used - zk_left(&received);
    memmove(u->in.at, u->in.at + taken, u->in.used - taken);
    u->in.used -= taken;
}

/* ---- Requests ---- */

static void write_request(struct user *u, int32_t xid, int32_t op, const void *record) {
    size_t frame = zk_frame_begin(&u->out);
    zk_write_request_header(&u->out, &(struct zk_request_header){xid, op});
    const struct bytes *body = op == ZK_OP_MULTI || op == ZK_OP_MULTI_READ ? record : NULL;
    if (body)
        bytes_add(&u->out, body->at, body->used);
    else if (record)
        zk_op_of(op)->request->write(&u->out, record);
    zk_frame_end(&u->out, frame);
}

void user_begin(struct user *u) {
    for (unsigned i = 0; i < CALLS_MAX; i++) bytes_close(&u->call[i].body);
    memset(u->call, 0, sizeof u->call);
    u->calls = u->answered = 0;
}

struct call *user_ask(struct user *u, int32_t op, const void *record) {
    cv_assert(u->calls < CALLS_MAX);
    struct call *call = &u->call[u->calls++];
    *call = (struct call){.xid = ++u->xid, .op = op, .sent = world->now};
    if (op == ZK_OP_AUTH) call->xid = ZK_XID_AUTH;
    if (op == ZK_OP_SET_WATCHES || op == ZK_OP_SET_WATCHES2) call->xid = ZK_XID_SET_WATCHES;
    trace(name_of(u), "asks s%d: %s %d", u->server, zk_op_of(op)->name, call->xid);
    if (u->socket) write_request(u, call->xid, op, record);
    world->coverage.operations++;
    return call;
}

struct call *user_look(struct user *u, int32_t op, const char *path, bool watch) {
    struct zk_exists_request request = {zk_text_of(path), watch}; /* getData has the same record */
    struct call *call = user_ask(u, op, &request);
    snprintf(call->path, sizeof call->path, "%s", path);
    call->watch = watch;
    return call;
}

/* Waits until then, or for all answers; false: the connection is lost. */
static bool attend(struct user *u, nanos until, bool for_answers) {
    for (;;) {
        flush(u);
        receive(u);
        take_frames(u);
        if (for_answers && u->answered == u->calls) return true;
        bool timed_out = world->now - u->heard >= READ_TIMEOUT(u) && u->sent > u->heard;
        if (is_lost(u) || timed_out || *world->violation) {
            user_disconnect(u);
            return false;
        }
        if (world->now >= until || (!for_answers && u->rumour)) return true;
        if (world->now - u->sent >= PING_AFTER(u)) {
            write_request(u, ZK_XID_PING, ZK_OP_PING, NULL);
            u->ping_sent[u->pings++ % PINGS_MAX] = world->now;
            continue;
        }
        nanos ping = u->sent + PING_AFTER(u), timeout = u->heard + READ_TIMEOUT(u), next = until;
        if (ping < next) next = ping;
        if (u->sent > u->heard && timeout < next) next = timeout;
        task_wait(next > world->now ? next : world->now + MS);
    }
}

bool user_finish(struct user *u) {
    bool good = u->socket && attend(u, NEVER, true);
    world->coverage.unknown += u->calls - u->answered;
    return good;
}

bool user_pause(struct user *u, nanos length) {
    nanos until = world->now + length;
    user_begin(u);
    if (u->socket) return attend(u, until, false);
    while (world->now < until) task_wait(until);
    return false;
}

/* ---- Sessions ---- */

struct session_record *session_record(int64_t id) {
    for (size_t i = world->sessions; i-- > 0;)
        if (world->session[i].id == id) return &world->session[i];
    return NULL;
}

static void remember_session(struct user *u) {
    struct world *w = world;
    w->session = grown(w->session, &w->session_room, w->sessions + 1, sizeof *w->session);
    w->session[w->sessions++] =
        (struct session_record){.id = u->session, .user = u->number, .timeout_ms = u->timeout_ms};
    u->sessions++;
}

void user_forget(struct user *u) {
    user_disconnect(u);
    u->session = 0;
    memset(u->password, 0, sizeof u->password);
    memset(u->watch, 0, sizeof u->watch);
    memset(u->heard_by, 0, sizeof u->heard_by);
}

static void refused(struct user *u) {
    const struct session_record *record = session_record(u->session);
    if (u->session && !(record && (record->expired || record->closed)))
        violated("user %u is refused session 0x%llx, which was neither closed nor expired",
                 u->number, (unsigned long long)u->session);
    trace(name_of(u), "its session has ended");
    if (u->session) load_session_ended(u, u->alive, world->now);
    user_forget(u);
}

static void accepted(struct user *u, const struct zk_connect_response *r, nanos asked) {
    bool is_new = !u->session;
    if (r->passwd.size != sizeof u->password || (!is_new && r->session_id != u->session)) {
        violated("user %u is given another session", u->number);
        return;
    }
    u->session = r->session_id;
    memcpy(u->password, r->passwd.at, sizeof u->password);
    u->timeout_ms = r->timeout;
    u->attached = true;
    if (asked > u->alive) u->alive = asked;
    if (is_new) remember_session(u);
    struct session_record *record = session_record(u->session);
    record->attached = asked;
    record->timeout_ms = u->timeout_ms;
    judge_attached(record);
    world->coverage.moves += !is_new;
    trace(name_of(u), "%s session 0x%llx at s%d", is_new ? "has" : "goes on with",
          (unsigned long long)u->session, u->server);
}

/* Waits for the answer to the handshake. */
static bool shake_hands(struct user *u) {
    struct zk_connect_request request = {.last_zxid_seen = u->zxid,
                                         .timeout = u->timeout_ms,
                                         .session_id = u->session,
                                         .passwd = {u->password, sizeof u->password},
                                         .read_only = 0};
    struct zk_connect_response response;
    struct zk_in received, frame;
    nanos asked = world->now, until = asked + READ_TIMEOUT(u);
    size_t begin = zk_frame_begin(&u->out);
    zk_write_connect_request(&u->out, &request);
    zk_frame_end(&u->out, begin);
    do {
        flush(u);
        receive(u);
        received = zk_in_of(u->in.at, u->in.used);
        if (zk_next_frame(&received, 4096, &frame) == 1) break;
        if (is_lost(u) || world->now >= until || *world->violation) return false;
        task_wait(until);
    } while (true);
    if (!zk_read_connect_response(&frame, &response)) {
        violated("user %u receives a malformed answer to a handshake", u->number);
        return false;
    }
    if (response.session_id)
        accepted(u, &response, asked);
    else
        refused(u);
    u->in.used = 0; /* nothing can have followed */
    return response.session_id != 0;
}

static bool dial(struct user *u) {
    for (unsigned tries = 0; tries < 50; tries++) {
        u->server = 1 + (int)rng_below(&u->rng, world->servers);
        if (may_serve(&world->machine[u->server])) break;
    }
    u->socket = wire_connect(u->host, u->server - 1, CLIENT_PORT);
    u->socket->owner = u->task;
    u->socket->changed = changed;
    u->heard = u->sent = world->now;
    u->pings = u->pings_answered = 0;
    nanos until = world->now + READ_TIMEOUT(u) / 2;
    while (u->socket->state == SOCKET_CONNECTING && !u->socket->error && world->now < until)
        task_wait(until);
    return u->socket->state == SOCKET_OPEN && shake_hands(u);
}

/* Sets its watches again; events tell what it has missed. */
static bool watch_again(struct user *u) {
    struct bytes paths = {0};
    int32_t count = 0;
    for (unsigned i = 0; i < WATCHES_MAX; i++) {
        if (!u->watch[i].set) continue;
        zk_write_text(&paths, zk_text_of(u->watch[i].path));
        count++;
    }
    bool good = true;
    if (count) {
        struct zk_set_watches_request request = {.relative_zxid = u->zxid,
                                                 .data = {paths.at, paths.used, count}};
        user_begin(u);
        user_ask(u, ZK_OP_SET_WATCHES, &request);
        good = user_finish(u);
        if (good && u->call[0].err) violated("user %u cannot set its watches again", u->number);
    }
    bytes_close(&paths);
    return good;
}

bool user_connect(struct user *u) {
    while (is_lost(u)) {
        user_disconnect(u);
        if (world->over || *world->violation) return false;
        if (dial(u) && (!world_has(KIND_GUARD) || guard_authenticate(u)) && watch_again(u))
            return true;
        user_disconnect(u);
        task_sleep(random_time(&u->rng, 10 * MS, 300 * MS));
    }
    return !world->over;
}
