/* Sessions as this server sees them: the handshake, who is connected, whose time is up.
 *
 * That there is a session is a part of the tree, and goes through the log; when it was last heard
 * of is not. */
#include <sys/random.h>

#include "server/server.h"

struct live *session_live(struct server *s, uint32_t place) {
    cv_assert(place);
    s->live = grown(s->live, &s->live_room, (size_t)place + 1, sizeof *s->live);
    for (; s->lives <= place; s->lives++) s->live[s->lives] = (struct live){0};
    return &s->live[place];
}

static uint64_t clock_ms(const struct server *s) { return s->clock_us / 1000; }

/* What other servers hear of comes to the leader a little later. */
static void renew(struct server *s, struct live *live) {
    uint64_t late = s->replica.links ? 2 * SESSIONS_TOLD_MS : 0;
    live->deadline_ms = clock_ms(s) + (uint64_t)live->timeout_ms + late;
}

void session_touch(struct connection *c) {
    struct server *s = c->server;
    if (!c->session) return;
    struct live *live = session_live(s, c->session);
    renew(s, live);
    if (live->touched || !s->replica.links) return;
    live->touched = true;
    s->touched = grown(s->touched, &s->touch_room, s->touches + 1, sizeof *s->touched);
    s->touched[s->touches++] = c->session_id;
}

void sessions_tell_leader(struct server *s) {
    if (!replica_leads(s)) peers_touch(s, s->touched, s->touches);
    for (size_t i = 0; i < s->touches; i++) {
        uint32_t place = session_find(&s->tree, s->touched[i]);
        if (place) session_live(s, place)->touched = false;
    }
    s->touches = 0;
}

void session_heard(struct server *s, int64_t id) {
    uint32_t place = session_find(&s->tree, id);
    if (place) renew(s, session_live(s, place));
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

/* No session: the client is to begin again. */
static void refuse(struct connection *c) {
    respond(c, NULL, 0);
    connection_end_after(c);
}

static void attach(struct connection *c, uint32_t place, int32_t timeout_ms) {
    struct server *s = c->server;
    struct live *live = session_live(s, place);
    if (live->connection) connection_end(s->connection[live->connection]);
    live->connection = c->number;
    live->timeout_ms = timeout_ms;
    renew(s, live);
    c->session = place;
    c->session_id = s->tree.sessions.at[place].id;
    c->state = CONNECTION_OPEN;
    c->last_op = ZK_OP_CREATE_SESSION;
    respond(c, &s->tree.sessions.at[place], timeout_ms);
}

/* Through the log, as all that others must know: what this server reads afterwards is at least as
 * new as what the client has seen elsewhere. */
static void ask_for(struct connection *c, int64_t id, int32_t op, int32_t timeout_ms,
                    const char password[TREE_PASSWORD_SIZE]) {
    unsigned char body[sizeof(int32_t) + TREE_PASSWORD_SIZE];
    zk_store_i32(body, &timeout_ms);
    memcpy(body + sizeof(int32_t), password, TREE_PASSWORD_SIZE);
    c->state = CONNECTION_JOINING;
    commit_propose(c->server, c, id, 0, op, zk_in_of(body, sizeof body));
}

static void resume(struct connection *c, const struct zk_connect_request *r, int32_t timeout_ms) {
    static const char none[TREE_PASSWORD_SIZE];
    bool possible = r->passwd.size == TREE_PASSWORD_SIZE;
    ask_for(c, possible ? r->session_id : 0 /* nobody's */, TREE_OP_ATTACH, timeout_ms,
            possible ? r->passwd.at : none);
}

static void begin(struct connection *c, int32_t timeout_ms) {
    struct server *s = c->server;
    char password[TREE_PASSWORD_SIZE];
    cv_assert(getrandom(password, TREE_PASSWORD_SIZE, 0) == TREE_PASSWORD_SIZE);
    while (session_find(&s->tree, s->next_session_id)) s->next_session_id++;
    ask_for(c, s->next_session_id++, ZK_OP_CREATE_SESSION, timeout_ms, password);
}

void session_joined(struct connection *c, int64_t id, int32_t err) {
    uint32_t place = session_find(&c->server->tree, id);
    if (c->seen_zxid > c->server->tree.zxid)
        connection_end(c); /* it has seen what was never known here */
    else if (err || !place)
        refuse(c);
    else
        attach(c, place, c->server->tree.sessions.at[place].timeout_ms);
    connection_go_on(c);
}

/* ---- Without a leader ---- */

/* A session that is known goes on, and a new one is only known here. */
static void read_only(struct connection *c, const struct zk_connect_request *r,
                      int32_t timeout_ms) {
    struct server *s = c->server;
    struct session unknown = {.id = s->next_session_id++, .timeout_ms = timeout_ms};
    uint32_t place = r->session_id ? session_find(&s->tree, r->session_id) : 0;
    const struct session *session = place ? &s->tree.sessions.at[place] : &unknown;
    bool proven = place && r->passwd.size == TREE_PASSWORD_SIZE &&
                  memcmp(r->passwd.at, session->password, TREE_PASSWORD_SIZE) == 0;
    if (r->session_id && !proven) {
        refuse(c);
        return;
    }
    cv_assert(getrandom(unknown.password, TREE_PASSWORD_SIZE, 0) == TREE_PASSWORD_SIZE);
    c->read_only = true;
    c->session_id = session->id;
    c->state = CONNECTION_OPEN;
    respond(c, session, timeout_ms);
}

void sessions_without_leader(struct server *s) {
    for (uint32_t i = 1; i <= s->connection_places; i++)
        if (s->connection[i] && s->connection[i]->state != CONNECTION_NEW &&
            !s->connection[i]->read_only)
            connection_end(s->connection[i]);
}

void sessions_with_leader(struct server *s) {
    for (uint32_t i = 1; i <= s->connection_places; i++)
        if (s->connection[i] && s->connection[i]->read_only) connection_end(s->connection[i]);
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
    c->server->statistics.joins++;
    if (replica_is_lost(c->server) && c->server->settings.read_only_mode && r.read_only == 1)
        read_only(c, &r, timeout_ms);
    else if (replica_is_lost(c->server))
        connection_end(c); /* it may try another server */
    else if (r.session_id)
        resume(c, &r, timeout_ms);
    else
        begin(c, timeout_ms);
}

/* ---- The end ---- */

void session_ended(struct server *s, uint32_t place) {
    struct live *live = session_live(s, place);
    struct connection *c = live->connection ? s->connection[live->connection] : NULL;
    *live = (struct live){0};
    if (!c) return;
    c->session = 0;
    if (c->state != CONNECTION_LEAVING) connection_end(c);
}

void session_moved(struct server *s, int64_t id, struct connection *c) {
    uint32_t place = session_find(&s->tree, id);
    struct live *live = session_live(s, place);
    live->timeout_ms = s->tree.sessions.at[place].timeout_ms;
    live->closing = false;
    renew(s, live);
    if (!c && live->connection) connection_end(s->connection[live->connection]);
}

void sessions_renew(struct server *s) {
    const struct sessions *sessions = &s->tree.sessions;
    for (uint32_t place = 1; place <= sessions->places; place++) {
        if (!sessions->at[place].id) continue;
        struct live *live = session_live(s, place);
        live->timeout_ms = sessions->at[place].timeout_ms;
        live->closing = false;
        renew(s, live);
    }
}

void sessions_start(struct server *s) {
    sessions_renew(s);
    uint32_t id = s->settings.server_id >= 0 ? (uint32_t)s->settings.server_id : 1;
    if (id > 254) id = 254; /* a byte of ones is the mark of a ttl */
    s->next_session_id = (int64_t)((uint64_t)id << 56 | ((uint64_t)s->now_ms << 24) >> 8);
}

static void expire(struct server *s, uint32_t place) {
    int64_t id = s->tree.sessions.at[place].id;
    s->live[place].closing = true;
    s->statistics.expired++;
    server_say("info", "session expired session=0x%llx timeout_ms=%d", (unsigned long long)id,
               s->live[place].timeout_ms);
    commit_expire(s, place);
}

void sessions_lengthen(struct server *s, uint64_t ms) {
    for (uint32_t place = 1; place < s->lives; place++) s->live[place].deadline_ms += ms;
}

/* It is the leader that decides. */
void sessions_check(struct server *s) {
    const struct sessions *sessions = &s->tree.sessions;
    if (!replica_leads(s)) return;
    for (uint32_t place = 1; place <= sessions->places; place++) {
        if (!sessions->at[place].id) continue;
        struct live *live = session_live(s, place);
        if (!live->closing && live->deadline_ms < clock_ms(s)) expire(s, place);
    }
}
