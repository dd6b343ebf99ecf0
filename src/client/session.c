/* The session: finding a server that serves it, keeping it alive, and knowing until when it is. */
#include <stdarg.h>
#include <stdio.h>
#include <sys/epoll.h>

#include "client/internal.h"

enum {
    PAUSE_MIN = 50,    /* before the second round; then twice as long each time, */
    PAUSE_MAX = 2000,  /* to this */
    ATTEMPT_MIN = 500, /* for one address */
    ATTEMPT_MAX = 10000,
    READ_ONLY_MAX = 10000, /* with a server that has no leader */
    CUT_OFF_MIN = 700,     /* how long a cut-off server answers at least, whatever the timeout */
    LASTING = 1000,        /* a connection that ends sooner was an attempt that failed */
};

static void try_server(struct cv_client *client);

/* ---- Times ---- */

static int32_t at_least(int32_t least, int32_t value) { return value < least ? least : value; }

static int32_t ping_interval(const struct session *session) {
    return at_least(10, session->timeout / 6);
}
/* Also when all that was sent since goes unanswered. */
static int64_t ping_due(const struct session *session) {
    int64_t idle = session->sent + ping_interval(session);
    int64_t silent = session->heard + 2 * ping_interval(session);
    return session->ping_at ? INT64_MAX : idle < silent ? idle : silent;
}

/* A ping is due after a sixth of the timeout, and is to be answered within a third; a sixth of it
 * is left of the lease for finding another server.  Only an unanswered ping counts: we may not have
 * listened ourselves for a while. */
static int64_t give_up_at(const struct session *session) {
    int64_t answer = session->ping_at + at_least(20, session->timeout / 3);
    int64_t silent = session->heard + at_least(20, session->timeout / 2);
    return !session->ping_at ? INT64_MAX : answer > silent ? answer : silent;
}

/* Several addresses share the time that there is, so that one that is dead leaves some to others.
 */
static int32_t attempt_max(const struct cv_client *client) {
    const struct session *session = &client->session;
    int64_t budget = session->timeout;
    if (!session->deadline && client->connect_timeout > 0 && client->connect_timeout < budget)
        budget = client->connect_timeout;
    budget = budget * 3 / 4 / (int64_t)session->servers.count;
    return budget < ATTEMPT_MIN   ? ATTEMPT_MIN
           : budget > ATTEMPT_MAX ? ATTEMPT_MAX
                                  : (int32_t)budget;
}

/* ---- Servers, one after another ---- */

static void forget_connection(struct cv_client *client) {
    struct session *session = &client->session;
    transport_close(&session->transport);
    session->in.used = 0;
    session->control.used = session->control_sent = 0;
    session->ping_at = 0;
    session->auths_sent = session->renewals = 0;
    session->sasl_proof[0] = 0;
    session->renewed = session->send_failed = session->more = false;
    session->connections++;
    if (session->lookup) lookup_end(session->lookup);
    session->lookup = NULL;
}

static void attempt_failed(struct cv_client *client) {
    struct session *session = &client->session;
    session->entry = (session->entry + 1) % session->servers.count;
    if (++session->tried < session->servers.count) {
        try_server(client);
        return;
    }
    session->tried = 0;
    session->phase = PHASE_PAUSE;
    int32_t half = session->pause / 2;
    session->retry_at = cv_now() + half + (int64_t)rng_below(&client->rng, (uint64_t)half + 1);
    session->pause = session->pause * 2 < PAUSE_MAX ? session->pause * 2 : PAUSE_MAX;
}

/* Of several addresses of a server the one is explained that came furthest. */
static void set_reason(struct session *session, const char *reason) {
    struct server_entry *entry = &session->servers.entry[session->entry];
    const struct tls_session *tls = session->transport.tls;
    int reached = 2 * (int)session->phase + (tls && tls_client_is_begun(tls));
    if (reached < session->reached) return;
    session->reached = reached;
    snprintf(entry->reason, sizeof entry->reason, "%s", reason);
}

static void dial_next(struct cv_client *client) {
    struct session *session = &client->session;
    while (session->address < session->addresses.count) {
        const struct address *address = &session->addresses.all[session->address++];
        const char *host = session->servers.entry[session->entry].host;
        session->phase = PHASE_DIAL;
        session->started = cv_now();
        session->connections++;
        if (client->tls && !(session->transport.tls = tls_client_begin(client->tls, host))) {
            set_reason(session, "TLS cannot be used for this name");
            continue;
        }
        if (transport_dial(&session->transport, address) == 0) return;
        set_reason(session, session->transport.reason);
        transport_close(&session->transport);
    }
    attempt_failed(client);
}

static void try_server(struct cv_client *client) {
    struct session *session = &client->session;
    const struct server_entry *entry = &session->servers.entry[session->entry];
    session->started = cv_now();
    session->address = 0;
    session->reached = 0;
    if (lookup_at_once(entry, &session->addresses)) {
        dial_next(client);
        return;
    }
    session->phase = PHASE_LOOKUP;
    session->lookup = lookup_start(entry, client->wake);
    if (session->lookup) return;
    set_reason(session, "its address cannot be looked up: no memory or threads");
    attempt_failed(client);
}

void session_begin(struct cv_client *client) {
    struct session *session = &client->session;
    session->pause = PAUSE_MIN;
    session->transport.fd = -1;
    session->transport.epoll = client->epoll;
    try_server(client);
}

static void looked_up(struct cv_client *client) {
    struct session *session = &client->session;
    if (!lookup_finished(session->lookup, &session->addresses)) return;
    lookup_end(session->lookup);
    session->lookup = NULL;
    if (!session->addresses.count) set_reason(session, session->addresses.reason);
    dial_next(client);
}

void session_broken(struct cv_client *client, const char *format, ...) {
    struct session *session = &client->session;
    char reason[REASON_MAX];
    bool was_up = session->phase == PHASE_UP;
    bool lasted = was_up && cv_now() - session->up_since >= LASTING;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(reason, sizeof reason, format, arguments);
    va_end(arguments);
    set_reason(session, reason);
    transport_abandon(&session->transport);
    forget_connection(client);
    requests_broken(client);
    if (session->phase == PHASE_OVER) return;
    client->state = CV_CONNECTING;
    session->phase = PHASE_PAUSE;
    session->retry_at = INT64_MAX;
    if (client->ending != NOT_ENDING) return;
    if (lasted) {
        session->tried = 0;
        session->pause = PAUSE_MIN;
        session->entry = (session->entry + 1) % session->servers.count;
        try_server(client);
    } else if (!was_up) {
        dial_next(client);
    } else {
        attempt_failed(client);
    }
}

void session_end(struct cv_client *client, enum cv_state state, int error) {
    forget_connection(client);
    client->session.phase = PHASE_OVER;
    client->state = state;
    requests_end(client, error);
}

/* ---- Greeting ---- */

static void greet(struct cv_client *client) {
    struct session *session = &client->session;
    bool resumes = session->id && session->is_known;
    static const char no_password[PASSWORD_SIZE];
    struct zk_connect_request request = {
        .last_zxid_seen = session->last_zxid,
        .timeout = client->wanted_timeout,
        .session_id = resumes ? session->id : 0,
        .passwd = {resumes ? (const char *)session->password : no_password, PASSWORD_SIZE},
        .read_only = (client->flags & CV_ALLOW_READ_ONLY) != 0};
    session->phase = PHASE_GREET;
    session->greeted = cv_now();
    session->control.used = session->control_sent = 0;
    size_t frame = zk_frame_begin(&session->control);
    zk_write_connect_request(&session->control, &request);
    zk_frame_end(&session->control, frame);
    session_flush(client);
}

/* ---- Who we are ---- */

void session_prove(struct cv_client *client, struct zk_text token) {
    struct session *session = &client->session;
    session->phase = PHASE_SASL;
    size_t frame = zk_frame_begin(&session->control);
    zk_write_request_header(&session->control, &(struct zk_request_header){0, ZK_OP_SASL});
    zk_write_sasl_request(&session->control, &(struct zk_sasl_request){token});
    zk_frame_end(&session->control, frame);
    session_flush(client);
}

static void write_identity(struct bytes *out, const struct identity *identity) {
    size_t frame = zk_frame_begin(out);
    zk_write_request_header(out, &(struct zk_request_header){ZK_XID_AUTH, ZK_OP_AUTH});
    zk_write_auth_request(
        out,
        &(struct zk_auth_request){0, zk_text_of(identity->scheme),
                                  (struct zk_text){identity->credential, (int32_t)identity->size}});
    zk_frame_end(out, frame);
}

/* Who we are, what we watch, and then all that waits, in one write. */
void session_greeted(struct cv_client *client) {
    struct session *session = &client->session;
    session->control.used = session->control_sent = 0;
    for (const struct identity *one = client->identities; one; one = one->next) {
        write_identity(&session->control, one);
        session->auths_sent++;
    }
    watches_renew(client, &session->control, &session->renewals);
    session->up_since = session->heard = session->sent = cv_now();
    session->phase = PHASE_UP;
    client->state = session->read_only ? CV_READ_ONLY : CV_CONNECTED;
    session_flush(client);
}

/* ---- Sending ---- */

/* Writes as much of these as is taken; false: not all. */
static bool write_some(struct cv_client *client, const struct bytes *bytes, size_t *done) {
    struct session *session = &client->session;
    while (*done < bytes->used) {
        ssize_t part = transport_write(&session->transport, bytes->at + *done, bytes->used - *done);
        if (part > 0) {
            *done += (size_t)part;
            if (!session->transport.tls && *done < bytes->used) return false;
            continue;
        }
        if (part < 0) {
            session->send_failed = true;
            client_interrupt(client);
        }
        return false;
    }
    return true;
}

static void flush_requests(struct cv_client *client) {
    struct requests *requests = &client->requests;
    bool all = write_some(client, &requests->out, &requests->out_sent);
    if (!all && requests->out_sent < requests->out.used / 2) return;
    requests->out.used -= requests->out_sent;
    requests->out_before += requests->out_sent;
    if (requests->out.used)
        memmove(requests->out.at, requests->out.at + requests->out_sent, requests->out.used);
    requests->out_sent = 0;
}

void session_flush(struct cv_client *client) {
    struct session *session = &client->session;
    bool can_send =
        session->phase == PHASE_GREET || session->phase == PHASE_SASL || session->phase == PHASE_UP;
    if (!can_send || session->transport.fd < 0 || session->send_failed) return;
    if (!write_some(client, &session->control, &session->control_sent)) return;
    if (session->phase == PHASE_UP && client->requests.out_sent < client->requests.out.used)
        flush_requests(client);
}

/* ---- Events ---- */

static void on_dialed(struct cv_client *client) {
    struct session *session = &client->session;
    int connected = transport_connected(&session->transport);
    if (connected > 0)
        greet(client);
    else if (connected < 0)
        session_broken(client, "%s", session->transport.reason);
}

void session_on_socket(struct cv_client *client, uint32_t events) {
    struct session *session = &client->session;
    if (session->transport.fd < 0) return;
    if (session->phase == PHASE_DIAL) {
        on_dialed(client);
        return;
    }
    if (events & EPOLLOUT) {
        if (session->transport.tls) transport_write(&session->transport, NULL, 0);
        session_flush(client);
    }
    if (events & (EPOLLIN | EPOLLHUP | EPOLLERR)) session_receive(client);
}

void session_on_wake(struct cv_client *client) {
    struct session *session = &client->session;
    if (session->phase == PHASE_LOOKUP && session->lookup) looked_up(client);
    if (session->send_failed) session_broken(client, "%s", session->transport.reason);
    if (session->more) {
        session->more = false;
        session_receive(client);
    }
}

static void ping(struct cv_client *client, int64_t now) {
    struct session *session = &client->session;
    struct bytes *out = &client->requests.out;
    size_t frame = zk_frame_begin(out);
    zk_write_request_header(out, &(struct zk_request_header){ZK_XID_PING, ZK_OP_PING});
    zk_frame_end(out, frame);
    session->ping_at = session->sent = now;
    session_flush(client);
}

/* Where there is no leader we stay only until another server may have one again. */
static int64_t leave_at(const struct session *session) {
    bool elsewhere = session->read_only && session->servers.count > 1;
    return elsewhere ? session->up_since + READ_ONLY_MAX : INT64_MAX;
}

static void keep_alive(struct cv_client *client, int64_t now) {
    struct session *session = &client->session;
    if (now >= leave_at(session) && !client->requests.waiting.first)
        session_broken(client, "it has no leader");
    else if (now >= give_up_at(session))
        session_broken(client, "no answer for %d ms", (int)(now - session->heard));
    else if (now >= ping_due(session))
        ping(client, now);
}

void session_on_time(struct cv_client *client) {
    struct session *session = &client->session;
    int64_t now = cv_now();
    switch (session->phase) {
    case PHASE_PAUSE:
        if (now >= session->retry_at) try_server(client);
        break;
    case PHASE_LOOKUP:
    case PHASE_DIAL:
    case PHASE_GREET:
    case PHASE_SASL:
        if (now - session->started < attempt_max(client)) break;
        session_broken(client, session->phase == PHASE_LOOKUP ? "its name is not resolved in time"
                                                              : "timed out");
        break;
    case PHASE_UP: keep_alive(client, now); break;
    case PHASE_OVER: break;
    }
    if (session->phase < PHASE_UP) requests_end_older(client, now - session->timeout, CV_NO_SERVER);
}

int64_t session_next_time(struct cv_client *client) {
    const struct session *session = &client->session;
    const struct request *oldest = client->requests.waiting.first;
    int64_t next = INT64_MAX, give_up;
    switch (session->phase) {
    case PHASE_PAUSE: next = session->retry_at; break;
    case PHASE_LOOKUP:
    case PHASE_DIAL:
    case PHASE_GREET:
    case PHASE_SASL: next = session->started + attempt_max(client); break;
    case PHASE_UP:
        next = session->ping_at ? give_up_at(session) : ping_due(session);
        return session->read_only && leave_at(session) < next ? leave_at(session) : next;
    case PHASE_OVER: return INT64_MAX;
    }
    give_up = oldest ? oldest->at + session->timeout + 1 : INT64_MAX;
    return give_up < next ? give_up : next;
}

/* ---- What is known ---- */

/* A server that is cut off from its leader still answers for a third of the timeout, and for as
 * long as an election takes; one that has no leader answers for ever, and proves nothing. */
void session_answered(struct cv_client *client, int64_t sent_at) {
    struct session *session = &client->session;
    if (session->read_only) return;
    int32_t third = session->timeout - (int32_t)((int64_t)session->timeout * 2 / 3);
    int64_t deadline = sent_at + session->timeout - at_least(CUT_OFF_MIN, third);
    if (deadline > session->deadline) session->deadline = deadline;
}

void session_explain(struct cv_client *client, char *text, size_t size) {
    const struct session *session = &client->session;
    size_t used = 0;
    if (client->bad_options[0]) {
        snprintf(text, size, "%s", client->bad_options);
        return;
    }
    for (size_t i = 0; i < session->servers.count && used < size; i++) {
        const struct server_entry *entry = &session->servers.entry[i];
        char name[HOST_MAX + PORT_MAX + 4];
        server_name(entry, name, sizeof name);
        int part = snprintf(text + used, size - used, "%s%s (%s)",
                            used                          ? ", "
                            : client->state == CV_REFUSED ? "refused: "
                                                          : "no server answers: ",
                            name, entry->reason[0] ? entry->reason : "no answer yet");
        used += (size_t)part;
    }
}

void session_close(struct session *session) {
    transport_close(&session->transport);
    if (session->lookup) lookup_end(session->lookup);
    free(session->addresses.all);
    servers_close(&session->servers);
    bytes_close(&session->control);
    bytes_close(&session->in);
}
