/* Sessions: the handshake and the session tracker.
 *
 * That a session exists is a part of the tree, and goes through the log; when it was last heard
 * from is known to this server, and to the leader, only. */
#include <sys/random.h>

#include "base/logger.h"
#include "service/server/internal.h"

struct tracked_session *session_tracked(struct server *s, uint32_t slot) {
    struct session_tracker *tracker = &s->sessions;
    cv_assert(slot);
    tracker->at = grown(tracker->at, &tracker->room, (size_t)slot + 1, sizeof *tracker->at);
    for (; tracker->count <= slot; tracker->count++)
        tracker->at[tracker->count] = (struct tracked_session){0};
    return &tracker->at[slot];
}

static uint64_t clock_ms(const struct server *s) { return s->clock.monotonic_us / 1000; }

/* The leader learns of sessions at other servers a little later. */
static void renew(struct server *s, struct tracked_session *tracked) {
    uint64_t late = !ensemble_is_standalone(s->ensemble) ? 2 * SESSIONS_REPORT_MS : 0;
    tracked->deadline_ms =
        clock_ms(s) + (uint64_t)tracked->timeout_ms + late - s->sessions.extended_ms;
}

static void touch(struct server *s, uint32_t slot) {
    struct tracked_session *tracked = session_tracked(s, slot);
    renew(s, tracked);
    if (tracked->touched || ensemble_is_standalone(s->ensemble)) return;
    tracked->touched = true;
    s->sessions.touched = grown(s->sessions.touched, &s->sessions.touched_room,
                                s->sessions.touched_count + 1, sizeof *s->sessions.touched);
    s->sessions.touched[s->sessions.touched_count++] = s->tree.sessions.at[slot].id;
}

void session_touch(struct connection *c) {
    if (c->session) touch(c->server, c->session);
}

/* 0: this server has no such session, or the password is another. */
static uint32_t find_proven(const struct server *s, const struct zk_connect_request *r) {
    uint32_t slot = session_find(&s->tree, r->session_id);
    bool proven = slot && r->passwd.size == TREE_PASSWORD_SIZE &&
                  memcmp(r->passwd.at, s->tree.sessions.at[slot].password, TREE_PASSWORD_SIZE) == 0;
    return proven ? slot : 0;
}

void session_touch_proven(struct server *s, const struct zk_connect_request *r) {
    uint32_t slot = find_proven(s, r);
    if (slot) touch(s, slot);
}

void sessions_report(struct server *s) {
    ensemble_touch_sessions(s->ensemble, s->sessions.touched, s->sessions.touched_count);
    for (size_t i = 0; i < s->sessions.touched_count; i++) {
        uint32_t slot = session_find(&s->tree, s->sessions.touched[i]);
        if (slot) session_tracked(s, slot)->touched = false;
    }
    s->sessions.touched_count = 0;
}

/* The leader has not heard of this server for so long that the client had better go elsewhere while
 * its session lasts: the leader may have heard from it last a third of its timeout before, and the
 * client needs some time to find another server.  During an election none is better. */
bool session_is_out_of_touch(const struct connection *c) {
    uint64_t election_us = (uint64_t)c->server->settings.election_timeout_ms * 1400;
    if (!c->session) return false;
    uint64_t bears_us = (uint64_t)c->server->sessions.at[c->session].timeout_ms * 1000 / 3;
    if (bears_us < election_us) bears_us = election_us;
    return ensemble_out_of_touch_us(c->server->ensemble) > bears_us;
}

void sessions_end_out_of_touch(struct server *s) {
    for (uint32_t i = 1; i <= s->connections.slots; i++)
        if (s->connections.at[i] && session_is_out_of_touch(s->connections.at[i]))
            connection_end(s->connections.at[i]);
}

void session_touched(struct server *s, int64_t id) {
    uint32_t slot = session_find(&s->tree, id);
    if (slot) renew(s, session_tracked(s, slot));
}

/* ---- The handshake ---- */

static void respond(struct connection *c, const struct session *session, int32_t timeout_ms) {
    static const char nobody[TREE_PASSWORD_SIZE];
    struct zk_connect_response response = {
        .timeout = timeout_ms,
        .session_id = session ? session->id : 0,
        .passwd = {session ? (const char *)session->password : nobody, TREE_PASSWORD_SIZE},
        .read_only = c->answers_read_only ? c->read_only : ZK_ABSENT,
    };
    size_t frame = zk_frame_begin(&c->stream.out);
    zk_write_connect_response(&c->stream.out, &response);
    zk_frame_end(&c->stream.out, frame);
    c->sent++;
    c->server->statistics.sent++;
    connection_dirty(c);
}

static void new_password(unsigned char password[TREE_PASSWORD_SIZE]) {
    ssize_t size = getrandom(password, TREE_PASSWORD_SIZE, 0);
    cv_assert(size == TREE_PASSWORD_SIZE);
}

/* No session: the client has to begin again. */
static void refuse(struct connection *c) {
    respond(c, NULL, 0);
    connection_end_after(c);
}

static void attach(struct connection *c, uint32_t slot, int32_t timeout_ms) {
    struct server *s = c->server;
    struct tracked_session *tracked = session_tracked(s, slot);
    if (tracked->connection) connection_end(s->connections.at[tracked->connection]);
    tracked->connection = c->number;
    tracked->timeout_ms = timeout_ms;
    renew(s, tracked);
    c->session = slot;
    c->session_id = s->tree.sessions.at[slot].id;
    c->state = CONNECTION_OPEN;
    c->last_op = ZK_OP_CREATE_SESSION;
    respond(c, &s->tree.sessions.at[slot], timeout_ms);
}

static void write_opening(unsigned char body[SESSION_OPENING_SIZE], int32_t timeout_ms,
                          const void *password) {
    zk_store_i32(body, &timeout_ms);
    memcpy(body + sizeof timeout_ms, password, TREE_PASSWORD_SIZE);
}

int64_t session_opening(struct server *s, int32_t timeout_ms,
                        unsigned char body[SESSION_OPENING_SIZE]) {
    unsigned char password[TREE_PASSWORD_SIZE];
    new_password(password);
    write_opening(body, timeout_ms, password);
    while (session_find(&s->tree, s->sessions.next_id)) s->sessions.next_id++;
    return s->sessions.next_id++;
}

/* Through the log, because other servers must know; what this server reads afterwards is at least
 * as new as what the client has seen elsewhere. */
static void propose_session(struct connection *c, int64_t id, int32_t op,
                            const unsigned char body[SESSION_OPENING_SIZE]) {
    c->state = CONNECTION_CONNECTING;
    propose(c->server, c, id, 0, op, zk_in_of(body, SESSION_OPENING_SIZE));
}

static void resume(struct connection *c, const struct zk_connect_request *r, int32_t timeout_ms) {
    static const char none[TREE_PASSWORD_SIZE];
    unsigned char body[SESSION_OPENING_SIZE];
    bool possible = r->passwd.size == TREE_PASSWORD_SIZE;
    session_touch_proven(c->server, r);
    write_opening(body, timeout_ms, possible ? r->passwd.at : none);
    propose_session(c, possible ? r->session_id : 0 /* nobody's */, TREE_OP_ATTACH, body);
}

static void begin(struct connection *c, int32_t timeout_ms) {
    unsigned char body[SESSION_OPENING_SIZE];
    int64_t id = session_opening(c->server, timeout_ms, body);
    propose_session(c, id, ZK_OP_CREATE_SESSION, body);
}

void session_connected(struct connection *c, int64_t id, int32_t err) {
    uint32_t slot = session_find(&c->server->tree, id);
    if (c->seen_zxid > c->server->tree.zxid)
        connection_end(c); /* it has seen what this server does not have */
    else if (err || !slot)
        refuse(c);
    else
        attach(c, slot, c->server->tree.sessions.at[slot].timeout_ms);
    connection_process(c);
}

/* ---- Without a leader ---- */

/* A session that the tree has goes on; a new one is known to this server only. */
static void read_only(struct connection *c, const struct zk_connect_request *r,
                      int32_t timeout_ms) {
    struct server *s = c->server;
    struct session unknown = {.id = s->sessions.next_id++, .timeout_ms = timeout_ms};
    uint32_t slot = r->session_id ? find_proven(s, r) : 0;
    const struct session *session = slot ? &s->tree.sessions.at[slot] : &unknown;
    if (r->session_id && !slot) {
        refuse(c);
        return;
    }
    new_password(unknown.password);
    c->read_only = true;
    c->session_id = session->id;
    c->state = CONNECTION_OPEN;
    respond(c, session, timeout_ms);
}

void sessions_without_leader(struct server *s) {
    for (uint32_t i = 1; i <= s->connections.slots; i++) {
        struct connection *c = s->connections.at[i];
        if (!c || c->state == CONNECTION_NEW || c->read_only) continue;
        s->statistics.refused[REFUSED_leaderless] += c->state == CONNECTION_CONNECTING;
        connection_end(c);
    }
}

/* What the leader acknowledges of the report says that it is reached again, before the first
 * session that begins now would be ended for the time in which it was not. */
void sessions_with_leader(struct server *s) {
    sessions_report(s);
    for (uint32_t i = 1; i <= s->connections.slots; i++)
        if (s->connections.at[i] && s->connections.at[i]->read_only)
            connection_end(s->connections.at[i]);
}

void session_connect(struct connection *c, struct zk_in *frame) {
    const struct settings *settings = &c->server->settings;
    struct zk_connect_request r;
    if (!zk_read_connect_request(frame, &r)) {
        connection_end(c);
        return;
    }
    c->seen_zxid = r.last_zxid_seen;
    int32_t timeout_ms = r.timeout;
    if (timeout_ms < settings->session_ms_min) timeout_ms = settings->session_ms_min;
    if (timeout_ms > settings->session_ms_max) timeout_ms = settings->session_ms_max;
    c->answers_read_only = r.read_only != ZK_ABSENT;
    c->received++;
    c->server->statistics.received++;
    c->server->statistics.sessions_asked++;
    if (ensemble_is_leaderless(c->server->ensemble) && c->server->settings.read_only_mode &&
        r.read_only == 1)
        read_only(c, &r, timeout_ms);
    else if (ensemble_is_leaderless(c->server->ensemble)) {
        c->server->statistics.refused[REFUSED_leaderless]++;
        connection_end(c); /* it may try another server */
    } else if (r.session_id)
        resume(c, &r, timeout_ms);
    else
        begin(c, timeout_ms);
}

/* ---- The end ---- */

void session_ended(struct server *s, uint32_t slot) {
    struct tracked_session *tracked = session_tracked(s, slot);
    struct connection *c = tracked->connection ? s->connections.at[tracked->connection] : NULL;
    *tracked = (struct tracked_session){0};
    if (!c) return;
    c->session = 0;
    if (c->state != CONNECTION_CLOSING) connection_end(c);
}

void session_moved(struct server *s, int64_t id, struct connection *c) {
    uint32_t slot = session_find(&s->tree, id);
    struct tracked_session *tracked = session_tracked(s, slot);
    tracked->timeout_ms = s->tree.sessions.at[slot].timeout_ms;
    tracked->closing = false;
    renew(s, tracked);
    if (!c && tracked->connection) connection_end(s->connections.at[tracked->connection]);
}

void sessions_renew(struct server *s) {
    const struct sessions *sessions = &s->tree.sessions;
    for (uint32_t slot = 1; slot <= sessions->slots; slot++) {
        if (!sessions->at[slot].id) continue;
        struct tracked_session *tracked = session_tracked(s, slot);
        tracked->timeout_ms = sessions->at[slot].timeout_ms;
        tracked->closing = false;
        renew(s, tracked);
    }
}

void sessions_restart(struct server *s) {
    if (s->sessions.count) memset(s->sessions.at, 0, s->sessions.count * sizeof *s->sessions.at);
    sessions_renew(s);
}

void sessions_start(struct server *s) {
    sessions_renew(s);
    uint32_t id = s->settings.server_id >= 0 ? (uint32_t)s->settings.server_id : 1;
    if (id > 254) id = 254; /* 255 as the first byte marks the owner of a TTL node */
    s->sessions.next_id = (int64_t)((uint64_t)id << 56 | ((uint64_t)s->clock.now_ms << 24) >> 8);
}

static void expire(struct server *s, uint32_t slot) {
    int64_t id = s->tree.sessions.at[slot].id;
    s->sessions.at[slot].closing = true;
    s->statistics.expired++;
    logger_debug("a session expired", LOGGER_HEX("session", id),
                 LOGGER_INT("timeout_ms", s->sessions.at[slot].timeout_ms));
    propose_expiry(s, slot);
}

void sessions_extend(struct server *s, uint64_t ms) { s->sessions.extended_ms += ms; }

/* However many expire, that is one line of the log. */
static void end_check(struct server *s) {
    struct session_tracker *tracker = &s->sessions;
    if (tracker->expired)
        logger_info("sessions expired, as nothing was heard from them for their timeout",
                    LOGGER_UINT("sessions", tracker->expired),
                    LOGGER_HEX("session", tracker->last_expired));
    tracker->check_next = 0;
    tracker->expired = 0;
}

/* The leader expires sessions. */
void sessions_check(struct server *s) {
    enum { CHECKS_PER_STEP = 16 }; /* most have not expired, which is seen at once */
    struct session_tracker *tracker = &s->sessions;
    const struct sessions *sessions = &s->tree.sessions;
    uint64_t checks = CHECKS_PER_STEP * (uint64_t)s->settings.loop_steps;
    uint64_t expiries = tracker->expired + (uint64_t)s->settings.loop_steps;
    bool leads = ensemble_leads(s->ensemble);
    uint32_t slot = tracker->check_next;
    for (; leads && slot <= sessions->slots && checks && tracker->expired < expiries; slot++) {
        checks--;
        if (!sessions->at[slot].id) continue;
        if (session_tracked(s, slot)->closing || session_deadline_ms(s, slot) >= clock_ms(s))
            continue;
        tracker->expired++;
        tracker->last_expired = sessions->at[slot].id;
        expire(s, slot);
    }
    tracker->check_next = slot;
    if (!leads || slot > sessions->slots) end_check(s);
}
