/* Frames from the server.  Nothing in them is trusted: what does not fit ends the connection. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>

#include "client/internal.h"

enum { PIECE = 1 << 16, FRAME_MAX = 1 << 30, READS_MAX = 16, LARGE = 1 << 20 };

static const char MALFORMED[] = "its answer is malformed; is it a ZooKeeper or Conclave server?";

/* ---- The greeting ---- */

static void on_greeting(struct cv_client *client, struct zk_in *frame) {
    struct session *session = &client->session;
    struct zk_connect_response response;
    if (!zk_read_connect_response(frame, &response) || response.protocol_version != 0) {
        session_broken(client, "%s", MALFORMED);
        return;
    }
    if (!response.session_id || response.timeout <= 0) {
        if (session->id && session->is_known)
            session_end(client, CV_EXPIRED, CV_SESSION_EXPIRED);
        else
            session_broken(client, "it refuses to open a session");
        return;
    }
    if (response.passwd.size != PASSWORD_SIZE) {
        session_broken(client, "%s", MALFORMED);
        return;
    }
    if (session->id && session->is_known && response.session_id != session->id) {
        session_end(client, CV_EXPIRED, CV_SESSION_EXPIRED);
        return;
    }
    if (response.timeout < session->timeout) session->deadline = 0; /* it was longer than it is */
    session->id = response.session_id;
    memcpy(session->password, response.passwd.at, PASSWORD_SIZE);
    session->timeout = response.timeout;
    session->read_only = response.read_only == 1;
    if (!session->read_only) session->is_known = true;
    session_answered(client, session->greeted);
    if (client->sasl_user)
        session_prove(client, zk_text_of(""));
    else
        session_greeted(client);
}

/* ---- SASL ---- */

static void refused(struct cv_client *client, const char *why) {
    struct session *session = &client->session;
    struct server_entry *entry = &session->servers.entry[session->entry];
    snprintf(entry->reason, sizeof entry->reason, "%s", why);
    session_end(client, CV_REFUSED, CV_AUTH_FAILED);
}

static void answer_challenge(struct cv_client *client, struct zk_text challenge) {
    struct session *session = &client->session;
    struct bytes answer = {0};
    char nonce[NONCE_MAX];
    unsigned char random[(NONCE_MAX - 1) / 2];
    if (getrandom(random, sizeof random, 0) != sizeof random) {
        session_broken(client, "there are no random numbers for SASL");
        return;
    }
    for (size_t i = 0; i < sizeof random; i++) snprintf(nonce + 2 * i, 3, "%02x", random[i]);
    struct sasl_identity who = {client->sasl_user,
                                client->sasl_password ? client->sasl_password : "",
                                "zookeeper/zk-sasl-md5", nonce};
    if (sasl_answer(&who, challenge, &answer, session->sasl_proof))
        session_prove(client, (struct zk_text){(const char *)answer.at, (int32_t)answer.used});
    else
        refused(client, "its challenge is not one of DIGEST-MD5");
    bytes_close(&answer);
}

static void on_sasl(struct cv_client *client, const struct zk_reply_header *header,
                    struct zk_in *body) {
    struct session *session = &client->session;
    struct zk_sasl_response response;
    if (header->err)
        refused(client, header->err == ZK_AUTHFAILED ? "it does not accept the user or the password"
                                                     : "it does not have SASL");
    else if (!zk_read_sasl_response(body, &response))
        session_broken(client, "%s", MALFORMED);
    else if (!session->sasl_proof[0])
        answer_challenge(client, response.token);
    else if (!sasl_is_proven(response.token, session->sasl_proof))
        refused(client, "it does not know the password itself");
    else
        session_greeted(client);
}

/* ---- Answers ---- */

static void on_event(struct cv_client *client, struct zk_in *body) {
    struct zk_watcher_event event;
    if (!zk_read_watcher_event(body, &event) || event.type < ZK_NODE_CREATED ||
        event.type > ZK_NODE_CHILDREN_CHANGED) {
        session_broken(client, "%s", MALFORMED);
        return;
    }
    watch_event(client, &event);
}

static void forget_identity(struct cv_client *client, struct identity *identity) {
    struct identity **link = &client->identities;
    while (*link && *link != identity) link = &(*link)->next;
    if (!*link) return;
    *link = identity->next;
    identity_free(identity);
}

static void on_auth(struct cv_client *client, const struct zk_reply_header *header) {
    struct session *session = &client->session;
    struct cv_result result = {.error = header->err};
    if (session->auths_sent) { /* of the greeting */
        session->auths_sent--;
        if (!header->err) return;
        refused(client, "it does not accept the authentication");
        return;
    }
    struct request *request = queue_take(&client->requests.auth);
    if (!request) return;
    if (header->err) forget_identity(client, request->identity);
    session_answered(client, request->at);
    if (request->waiter) {
        request->error = header->err;
        queue_add(&client->requests.ended, request);
    } else {
        request_finish(client, request, &result);
    }
}

static void on_renewed(struct cv_client *client, const struct zk_reply_header *header) {
    struct session *session = &client->session;
    if (header->err) { /* what is watched is not known: another server may take it */
        session_broken(client, "it does not renew the watches (%d)", (int)header->err);
        return;
    }
    if (session->renewals && --session->renewals == 0) session->renewed = true;
}

static void on_answer(struct cv_client *client, const struct zk_reply_header *header,
                      struct zk_in *body) {
    struct requests *requests = &client->requests;
    struct request *request = requests->waiting.first;
    int error;
    if (!request || request->xid != header->xid ||
        request->begin >= requests->out_before + requests->out_sent) {
        session_broken(client, "it has answered a request that was not made");
        return;
    }
    size_t chroot = strlen(client->session.servers.chroot);
    struct cv_result *result =
        reply_decode(request, header, body, chroot, &requests->result, &error);
    if (!result && error == CV_MARSHALLING_ERROR) {
        session_broken(client, "%s", MALFORMED);
        return;
    }
    queue_take(&requests->waiting);
    if (header->err != ZK_SESSIONEXPIRED && header->err != ZK_SESSIONMOVED)
        session_answered(client, request->at);
    if (!result) {
        request->error = error;
        queue_add(&requests->ended, request);
        return;
    }
    if (request->watcher) watch_register(client, request->watcher, header->err);
    request->watcher = NULL;
    bool expired = header->err == ZK_SESSIONEXPIRED;
    request_finish(client, request, result);
    if (expired && client->session.phase == PHASE_UP)
        session_end(client, CV_EXPIRED, CV_SESSION_EXPIRED);
}

static void on_frame(struct cv_client *client, struct zk_in *frame) {
    struct session *session = &client->session;
    struct zk_reply_header header;
    if (session->phase == PHASE_GREET) {
        on_greeting(client, frame);
        return;
    }
    if (!zk_read_reply_header(frame, &header)) {
        session_broken(client, "%s", MALFORMED);
        return;
    }
    if (session->phase == PHASE_SASL) {
        on_sasl(client, &header, frame);
        return;
    }
    if (header.zxid > session->last_zxid) session->last_zxid = header.zxid;
    switch (header.xid) {
    case ZK_XID_EVENT: on_event(client, frame); return;
    case ZK_XID_AUTH: on_auth(client, &header); return;
    case ZK_XID_SET_WATCHES: on_renewed(client, &header); return;
    case ZK_XID_PING:
        if (session->ping_at) session_answered(client, session->ping_at);
        session->ping_at = 0;
        return;
    default: on_answer(client, &header, frame);
    }
}

/* ---- Bytes ---- */

/* Room for more bytes; false: there is none. */
static bool make_room(struct bytes *in) {
    if (in->room - in->used >= PIECE) return true;
    size_t room = in->room ? in->room * 2 : 2 * (size_t)PIECE;
    unsigned char *at = realloc(in->at, room);
    if (!at) return false;
    in->at = at;
    in->room = room;
    return true;
}

/* Takes whole frames off what was received; false: the connection is no more. */
static bool take_frames(struct cv_client *client) {
    struct session *session = &client->session;
    uint64_t connection = session->connections;
    struct zk_in received = zk_in_of(session->in.at, session->in.used), frame;
    int found;
    while ((found = zk_next_frame(&received, FRAME_MAX, &frame)) > 0) {
        on_frame(client, &frame);
        if (session->connections != connection) return false;
    }
    if (found < 0) {
        session_broken(client, "%s", MALFORMED);
        return false;
    }
    size_t left = zk_left(&received);
    if (!left && session->in.room > LARGE) bytes_close(&session->in); /* a large answer was there */
    if (left && left < session->in.used) memmove(session->in.at, received.at, left);
    session->in.used = left;
    return true;
}

void session_receive(struct cv_client *client) {
    struct session *session = &client->session;
    /* What TLS has decrypted does not show at the socket, so the rest is seen to at once. */
    for (int reads = 0;; reads++) {
        if (reads == READS_MAX && !session->transport.tls) return;
        if (reads == READS_MAX) {
            session->more = true;
            client_interrupt(client);
            return;
        }
        if (!make_room(&session->in)) {
            session_broken(client, "its answer takes more memory than there is");
            return;
        }
        size_t room = session->in.room - session->in.used;
        ssize_t part = transport_read(&session->transport, session->in.at + session->in.used, room);
        if (part < 0) {
            session_broken(client, "%s", session->transport.reason);
            return;
        }
        if (part == 0) return;
        session->in.used += (size_t)part;
        session->heard = client->round;
        if (!take_frames(client)) return;
        if ((size_t)part < room && !session->transport.tls) return;
    }
}
