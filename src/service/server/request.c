/* Requests that are answered without the log: reads, authentication. */
#include "service/server/internal.h"

static void reply(struct connection *c, int32_t xid, int64_t zxid, int32_t err) {
    reply_end(c, reply_begin(c), xid, zxid, err);
}

/* ---- Reads ---- */

/* What reading leaves a watch on; -1: nothing. */
static int watch_table_of(int32_t op, int32_t err) {
    switch (op) {
    case ZK_OP_EXISTS: return err == ZK_OK || err == ZK_NONODE ? WATCH_DATA : -1;
    case ZK_OP_GET_DATA: return err == ZK_OK ? WATCH_DATA : -1;
    case ZK_OP_GET_CHILDREN:
    case ZK_OP_GET_CHILDREN2: return err == ZK_OK ? WATCH_CHILDREN : -1;
    default: return -1;
    }
}

static int32_t read_one(struct connection *c, int32_t op, const union zk_request *request,
                        struct bytes *out, struct tree_reading *list, size_t *steps) {
    struct server *s = c->server;
    struct zk_clients identities = connection_identities(c);
    int32_t err =
        tree_read_some(&s->tree, op, request, c->session_id, &identities, out, list, steps);
    int table = watch_table_of(op, err);
    if (table < 0 || !request->exists.watch) return err; /* each begins with a path and a watch */
    int32_t refused = watching_begin(c, request->exists.path, (enum watch_table)table, WATCH_ONCE);
    return refused ? refused : err;
}

/* A short request can ask for much more than any client takes. */
static int32_t read_many(struct connection *c, struct zk_in *body, struct bytes *out, size_t all,
                         struct read_progress *progress, size_t *steps) {
    enum { ANSWER_PACKETS_MAX = 4 };
    size_t max = ANSWER_PACKETS_MAX * (size_t)c->server->settings.packet_bytes_max;
    const unsigned char *first = body->at;
    struct zk_multi ops;
    struct zk_multi_op op;
    if (!progress->begun) {
        if (!zk_read_multi(body, ZK_OP_MULTI_READ, &ops)) return ZK_MARSHALLINGERROR;
        *progress = (struct read_progress){.begun = true, .left = ops.count};
    }
    ops = (struct zk_multi){{first + progress->taken, body->end}, progress->left};
    for (; progress->left; progress->left--) {
        if (!*steps) return TREE_UNFINISHED;
        size_t begin = out->used;
        bool read = zk_multi_next(&ops, &op);
        cv_assert(read); /* all were when it was begun */
        if (!progress->list.begun)
            zk_write_multi_header(out, &(struct zk_multi_header){op.type, false, ZK_OK});
        int32_t err = read_one(c, op.type, &op.of, out, &progress->list, steps);
        if (out->used - all > max) return ZK_SYSTEMERROR;
        if (err == TREE_UNFINISHED) return err;
        progress->list = (struct tree_reading){0};
        progress->taken = (size_t)(ops.left.at - first);
        tree_step_over(out->used - begin, steps);
        if (!err) continue;
        out->used = begin;
        zk_write_result_error(out, err);
    }
    zk_write_multi_end(out);
    return ZK_OK;
}

/* ---- Reads that may take several loop iterations ---- */

static bool is_list(int32_t op) {
    return op == ZK_OP_GET_CHILDREN || op == ZK_OP_GET_CHILDREN2 || op == ZK_OP_GET_EPHEMERALS ||
           op == ZK_OP_GET_ALL_CHILDREN_NUMBER || op == ZK_OP_MULTI_READ;
}

static int32_t read_list(struct connection *c, int32_t op, struct zk_in *body, size_t reply,
                         struct read_progress *progress, size_t *steps) {
    struct bytes *out = &c->stream.out;
    union zk_request request;
    if (op == ZK_OP_MULTI_READ) return read_many(c, body, out, reply, progress, steps);
    if (!zk_op_of(op)->request->read(body, &request)) return ZK_MARSHALLINGERROR;
    return read_one(c, op, &request, out, &progress->list, steps);
}

void reading_drop(struct server *s) {
    bytes_close(&s->reading.reply);
    if (s->reading.listing) s->admin->close_listing(s->reading.listing);
    s->reading = (struct reading){0};
    s->reading_ended = true;
    s->committed_then = ensemble_committed(s->ensemble);
}

/* Such a read is not to wait for entries. */
static bool entries_wait_for(const struct connection *c) { return c->passed && c->waiting; }

/* Between two of them what is committed is applied. */
static bool others_read(const struct connection *c) {
    const struct server *s = c->server;
    return reading_is_on(s) || (s->reading_ended && !entries_wait_for(c));
}

static enum request_status wait(struct connection *c) {
    connection_wait(c);
    return REQUEST_WAITS;
}

/* What is there of the reply becomes the server's reading, unless there is another one. */
static enum request_status become_reading(struct connection *c, size_t reply,
                                          const struct read_progress *progress) {
    struct reading *reading = &c->server->reading;
    struct bytes *out = &c->stream.out;
    c->awaits_reading = others_read(c);
    if (!c->awaits_reading) {
        *reading = (struct reading){.connection = c->number, .progress = *progress};
        reading->progress.list.count_at -= reply;
        bytes_add(&reading->reply, out->at + reply, out->used - reply);
    }
    out->used = reply;
    return wait(c);
}

static enum request_status begin_list(struct connection *c, const struct zk_request_header *header,
                                      struct zk_in *body) {
    struct server *s = c->server;
    struct read_progress progress = {0};
    size_t *steps = s->connections.resuming ? &s->steps.reread : &s->steps.read;
    bool must_wait = !*steps || (c->awaits_reading && others_read(c));
    if (must_wait && !entries_wait_for(c)) return wait(c);
    size_t reply = reply_begin(c);
    int32_t err = read_list(c, header->type, body, reply, &progress, steps);
    if (err == TREE_UNFINISHED) return become_reading(c, reply, &progress);
    reply_end(c, reply, header->xid, s->tree.zxid, err);
    return REQUEST_ANSWERED;
}

/* Whoever comes next finds the memory that it had taken. */
static void give_up(struct server *s, struct connection *c) {
    s->statistics.refused[REFUSED_memory]++;
    bytes_close(&c->stream.out);
    reply_begin(c);
    s->reading.reply.used = 0;
    memory_measure(s);
}

/* The reply grows in a buffer of its own: what is in that of the connection may be sent. */
static enum request_status
go_on_with_list(struct connection *c, const struct zk_request_header *header, struct zk_in *body) {
    struct server *s = c->server;
    struct reading *reading = &s->reading;
    struct bytes before = c->stream.out;
    c->stream.out = reading->reply;
    int32_t err = read_list(c, header->type, body, 0, &reading->progress, &s->steps.reading);
    reading->reply.used = c->stream.out.used; /* which counts */
    if (!memory_allows_answer(s, c->stream.out.used)) {
        give_up(s, c);
        err = MEMORY_IS_SHORT;
    }
    if (err == TREE_UNFINISHED) {
        reading->reply = c->stream.out;
        c->stream.out = before;
        return wait(c);
    }
    reply_end(c, 0, header->xid, s->tree.zxid, err);
    reading->reply = before;
    if (before.used) { /* it comes first */
        bytes_add(&reading->reply, c->stream.out.at, c->stream.out.used);
        before = c->stream.out;
        c->stream.out = reading->reply;
        reading->reply = before;
    }
    reading_drop(s);
    return REQUEST_ANSWERED;
}

static enum request_status answer_list(struct connection *c, const struct zk_request_header *header,
                                       struct zk_in *body) {
    bool goes_on = c->server->reading.connection == c->number;
    enum request_status status =
        goes_on ? go_on_with_list(c, header, body) : begin_list(c, header, body);
    c->untimed += status == REQUEST_ANSWERED;
    return status;
}

void reading_go_on(struct server *s) {
    if (s->reading.connection)
        connection_process(s->connections.at[s->reading.connection]);
    else
        s->admin->go_on(s);
}

/* Events are sent before the reply.  Who does not get all its watches back has to know: clients
 * look at no error here, or end for one that they do not know, but when they are disconnected they
 * go to another server. */
static enum request_status
restore_watches(struct connection *c, const struct zk_request_header *header, struct zk_in *body) {
    int32_t err = watching_restore(c, header->type, body);
    if (err == TREE_UNFINISHED) return wait(c);
    if (err == MEMORY_IS_SHORT) return REQUEST_REFUSED;
    reply(c, header->xid, c->server->tree.zxid, err);
    return REQUEST_ANSWERED;
}

/* ---- Authentication ---- */

static bool authenticate(struct connection *c, const struct zk_request_header *header,
                         struct zk_in *body) {
    struct zk_auth_request r;
    bool good = zk_read_auth_request(body, &r) && identity_prove(c, &r);
    if (!good) c->server->statistics.refused[REFUSED_authentication]++;
    reply(c, header->xid, 0, good ? ZK_OK : ZK_AUTHFAILED);
    return good;
}

/* Of a digest only the user is shown. */
static int32_t who_am_i(struct connection *c, struct bytes *out) {
    struct zk_client identity;
    struct zk_clients left = connection_identities(c);
    zk_write_i32(out, left.count);
    while (zk_clients_next(&left, &identity)) {
        const char *colon = memchr(identity.user.at, ':', (size_t)identity.user.size);
        if (colon && zk_text_equal(identity.scheme, zk_text_of("digest")))
            identity.user.size = (int32_t)(colon - identity.user.at);
        zk_write_client(out, &identity);
    }
    return ZK_OK;
}

/* ---- Any of them ---- */

static int32_t answer(struct connection *c, int32_t op, struct zk_in *body, struct bytes *out) {
    union zk_request r;
    struct tree_reading none = {0};
    size_t all = SIZE_MAX;
    if (op == ZK_OP_WHO_AM_I) return who_am_i(c, out);
    if (!zk_op_of(op)->request->read(body, &r)) return ZK_MARSHALLINGERROR;
    switch (op) {
    case ZK_OP_SYNC: zk_write_text(out, r.sync.path); return ZK_OK;
    case ZK_OP_ADD_WATCH: return watching_add(c, &r.add_watch, out);
    case ZK_OP_CHECK_WATCHES: return watching_find(c, &r.check_watches, false);
    case ZK_OP_REMOVE_WATCHES: return watching_find(c, &r.check_watches, true);
    default: return read_one(c, op, &r, out, &none, &all);
    }
}

enum request_status request_answer(struct connection *c, const struct zk_request_header *header,
                                   struct zk_in *body) {
    struct server *s = c->server;
    const struct zk_op *op = zk_op_of(header->type);
    if (header->type == ZK_OP_PING) {
        if (session_is_out_of_touch(c)) return REQUEST_REFUSED;
        /* In the middle of an entry its zxid is there, and its events are not. */
        reply(c, ZK_XID_PING, s->applying.begun ? c->last_zxid : s->tree.zxid, ZK_OK);
        return REQUEST_ANSWERED;
    }
    if (header->type == ZK_OP_AUTH)
        return authenticate(c, header, body) ? REQUEST_ANSWERED : REQUEST_REFUSED;
    if (header->type == ZK_OP_CHECK) { /* it is only for a multi */
        reply(c, header->xid, s->tree.zxid, ZK_UNIMPLEMENTED);
        return REQUEST_ANSWERED;
    }
    bool known = op && (op->kind == ZK_KIND_READ || op->kind == ZK_KIND_BARRIER ||
                        op->number == ZK_OP_WHO_AM_I);
    if (!known) {
        bool sasl = header->type == ZK_OP_SASL; /* it is not supported */
        reply(c, header->xid, sasl ? 0 : -1, sasl ? ZK_AUTHFAILED : ZK_UNIMPLEMENTED);
        return REQUEST_REFUSED;
    }
    if (header->type == ZK_OP_SET_WATCHES || header->type == ZK_OP_SET_WATCHES2)
        return restore_watches(c, header, body);
    if (is_list(header->type)) return answer_list(c, header, body);
    size_t begun = reply_begin(c);
    int32_t err = answer(c, header->type, body, &c->stream.out);
    reply_end(c, begun, header->xid, s->tree.zxid, err);
    c->untimed++;
    return REQUEST_ANSWERED;
}
