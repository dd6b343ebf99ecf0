/* Connections: frames as they arrive, and which of them wait for which.
 *
 * The buffer of a connection has three parts:
 *
 *   [0 ... answered) [answered ... scanned)                         [scanned ... used)
 *   answered          writes that are proposed, and reads between   not read yet
 *
 * Writes are proposed as soon as they are met, so a client that sends many at once has them written
 * at once.  A read after a write is passed over, and answered when the writes before it have been
 * applied and before the next one of that client is. */
#include <stdlib.h>

#include "service/server/internal.h"

enum {
    HANDSHAKE_MAX = 1024, /* bytes */
};

/* ---- The requests ---- */

/* The frame at an offset of the buffer: 1, or 0: it is not complete, or -1: its size is refused. */
static int frame_at(const struct connection *c, size_t at, struct zk_in *frame) {
    struct zk_in received = zk_in_of(c->in.at + at, c->in.used - at);
    bool is_stranger = c->state == CONNECTION_NEW; /* who keeps no more than a handshake here */
    int32_t max = c->server->settings.packet_bytes_max;
    return zk_next_frame(&received, is_stranger && max > HANDSHAKE_MAX ? HANDSHAKE_MAX : max,
                         frame);
}

static size_t end_of(const struct connection *c, const struct zk_in *frame) {
    return (size_t)(frame->end - c->in.at);
}

/* In an ensemble a sync does too: the writes that it waits for may not have arrived here yet. */
static bool goes_through_log(const struct server *s, const struct zk_op *op) {
    return op && (op->kind == ZK_KIND_WRITE || op->number == ZK_OP_CLOSE_SESSION ||
                  (op->kind == ZK_KIND_BARRIER && !ensemble_is_standalone(s->ensemble)));
}

/* ---- Turns ----
 *
 * However much clients ask for at once, an iteration of the loop does so much of it: a step is a
 * request, or some of its bytes or of its answer's.  And none of them has more than its share of
 * the steps at a time, as long as others may wait. */

static size_t *steps_left(struct server *s) {
    return s->connections.resuming ? &s->steps.resume : &s->steps.ask;
}

static size_t share_of_steps(const struct server *s) {
    enum { LEAST = 64 };
    return LEAST + (size_t)s->settings.loop_steps / ((size_t)s->connections.count + 1);
}

void connection_wait(struct connection *c) { c->waits = c->server->connections.deferred = true; }

static bool must_wait_for_turn(struct connection *c) {
    if (c->turn && *steps_left(c->server)) return false;
    connection_wait(c);
    return true;
}

static void take_steps(struct connection *c, size_t bytes) {
    tree_step_over(bytes, &c->turn);
    tree_step_over(bytes, steps_left(c->server));
}

/* Backpressure: connections wait until the outbox has room again. */
static bool must_wait(struct connection *c) {
    const struct connections *all = &c->server->connections;
    bool others_wait = all->backpressure && !all->resuming;
    if (!ensemble_is_full(c->server->ensemble) && !others_wait) return false;
    return c->waits = c->server->connections.backpressure = true;
}

/* What was not sent to those that have been ended is freed at the end of the iteration. */
static bool must_wait_for_memory(struct connection *c) {
    const struct connections *all = &c->server->connections;
    if (!all->discarded || all->unsent + all->discarded <= all->unsent_max) return false;
    connection_wait(c);
    return true;
}

/* Nobody sees the tree in the middle of an entry, nor a change before the event that tells of it.
 */
static bool must_wait_for_entry(struct connection *c) {
    if (!c->server->applying.begun) return false;
    connection_wait(c);
    return true;
}

static bool reads_are_linearizable(const struct server *s) {
    return s->settings.linearizable && !ensemble_is_standalone(s->ensemble);
}

/* What is passed over has to be answered before the next entry is applied, and a setWatches may
 * take as long as its client does to take the events. */
static bool may_be_passed(const struct server *s, const struct zk_op *op) {
    bool is_read = op && (op->kind == ZK_KIND_READ || op->kind == ZK_KIND_BARRIER) &&
                   op->number != ZK_OP_SET_WATCHES && op->number != ZK_OP_SET_WATCHES2;
    return op && ((is_read && !reads_are_linearizable(s)) || op->number == ZK_OP_PING);
}

/* What is passed over delays everybody's entries if another write of its client is proposed after
 * it: so only what takes little lets one be, and what has come to take much ends its client. */

static size_t passed_steps_max(const struct server *s) {
    enum { OF_ALL = 1 << 16, LEAST = 16 };
    return LEAST + OF_ALL / ((size_t)s->connections.count + 1);
}

static size_t steps_of_read(const struct connection *c, const struct zk_op *op, struct zk_in body) {
    union zk_request r = {0};
    if (!op || op->kind != ZK_KIND_READ || !op->request->read(&body, &r)) return 1;
    return tree_expected_steps(&c->server->tree, op->number, &r);
}

/* Writes before a read may make what it reads as long as they are. */
static size_t steps_of_writes(const struct connection *c, int32_t op) {
    enum { CREATE_BYTES = 64 };
    size_t bytes = c->scanned - c->answered;
    bool lists = op == ZK_OP_GET_CHILDREN || op == ZK_OP_GET_CHILDREN2;
    return lists ? bytes / CREATE_BYTES : op == ZK_OP_GET_DATA ? bytes / TREE_STEP_BYTES : 0;
}

/* Others may have made more nodes meanwhile. */
static bool delays_for_long(struct connection *c, size_t steps) {
    enum { TIMES = 4 };
    if (c->delayed_steps + steps <= TIMES * passed_steps_max(c->server)) return false;
    c->server->statistics.refused[REFUSED_delay]++;
    connection_end(c);
    return true;
}

/* A linearizable read waits for a read index that was requested after it arrived. */
static bool may_be_served(struct connection *c, const struct zk_op *op) {
    struct server *s = c->server;
    if (!op || op->kind != ZK_KIND_READ || !reads_are_linearizable(s) || c->read_only) return true;
    if (c->read_index && c->scanned < c->read_index_end)
        return ensemble_read_index_reached(s->ensemble, c->read_index);
    c->read_index = ensemble_request_read_index(s->ensemble);
    c->read_index_end = c->in.used;
    return false;
}

void connections_serve_reads(struct server *s) {
    for (uint32_t i = 1; i <= s->connections.slots; i++) {
        struct connection *c = s->connections.at[i];
        if (c && c->read_index && c->state == CONNECTION_OPEN &&
            ensemble_read_index_reached(s->ensemble, c->read_index))
            connection_process(c);
    }
}

static void note_request(struct connection *c, const struct zk_request_header *header) {
    c->received++;
    c->server->statistics.received++;
    c->last_op = header->type;
    if (header->xid >= 0) c->last_xid = header->xid; /* others are the client library's own */
    c->last_answer_us = c->server->clock.monotonic_us;
}

/* A reconfig where there are no members to change, as ZooKeeper answers it. */
static bool has_no_members(const struct connection *c, const struct zk_request_header *header) {
    return header->type == ZK_OP_RECONFIG && c->server->settings.reconfig &&
           ensemble_is_standalone(c->server->ensemble);
}

/* False: it waits. */
static bool answer(struct connection *c, const struct zk_request_header *header,
                   struct zk_in *body) {
    size_t before = c->stream.out.used;
    enum request_status status = request_answer(c, header, body);
    if (status == REQUEST_WAITS) return false;
    take_steps(c, c->stream.out.used > before ? c->stream.out.used - before : 0);
    note_request(c, header);
    if (status == REQUEST_REFUSED) connection_end_after(c);
    return true;
}

/* Handles the frame at `scanned`; false when nothing after it may be looked at yet. */
static bool handle(struct connection *c, struct zk_in *frame) {
    struct zk_request_header header;
    size_t end = end_of(c, frame);
    if (!zk_read_request_header(frame, &header)) {
        connection_end(c);
        return false;
    }
    const struct zk_op *op = zk_op_of(header.type);
    if (c->reconfiguring) return false; /* all requests after it wait */
    if (goes_through_log(c->server, op) && c->read_only) {
        if (must_wait_for_entry(c)) return false;
        note_request(c, &header);
        c->server->statistics.refused[REFUSED_read_only]++;
        reply_end(c, reply_begin(c), header.xid, c->server->tree.zxid, ZK_NOTREADONLY);
        if (header.type == ZK_OP_CLOSE_SESSION) connection_end_after(c);
        c->answered = end;
    } else if (goes_through_log(c->server, op)) {
        if (c->waiting >= (uint32_t)c->server->settings.outstanding_max) return false;
        if (!c->waiting) c->passed_steps = c->delayed_steps = 0;
        if (c->passed_steps > passed_steps_max(c->server) || must_wait(c)) return false;
        note_request(c, &header);
        take_steps(c, zk_left(frame));
        int32_t err = has_no_members(c, &header) ? ZK_UNIMPLEMENTED : cost_judge(c, op, *frame);
        if (err)
            propose_error(c->server, c, header.xid, err);
        else
            propose(c->server, c, c->session_id, header.xid, header.type, *frame);
        c->waiting++;
        c->reconfiguring = header.type == ZK_OP_RECONFIG;
        if (header.type == ZK_OP_CLOSE_SESSION) c->state = CONNECTION_CLOSING;
    } else if (c->waiting) {
        if (!may_be_passed(c->server, op)) return false;
        c->passed_steps += steps_of_read(c, op, *frame) + steps_of_writes(c, header.type);
    } else if (!may_be_served(c, op) || (header.type != ZK_OP_PING && must_wait_for_entry(c))) {
        return false;
    } else {
        if (!answer(c, &header, frame)) return false;
        c->answered = end;
    }
    c->scanned = end;
    c->met_us = c->received_us;
    return true;
}

/* Reads are timed together, from when the last bytes arrived: reading a clock for each would cost
 * more than some of them do. */
static void time_reads(struct connection *c) {
    if (!c->untimed) return;
    uint64_t us = clock_monotonic_us() - c->received_us;
    tally_add(&c->latency, us, c->untimed);
    summary_add(&c->server->statistics.reads, us, c->untimed);
    c->untimed = 0;
}

/* Whether it has sent a request, and not only a part of one, that is not answered. */
bool connection_awaits_answer(const struct connection *c) {
    struct zk_in frame;
    return c->answered < c->scanned || frame_at(c, c->scanned, &frame) == 1;
}

/* Answers the reads that were passed over, up to the next write; false: nothing after them may be
 * looked at yet.  If there is another write after them, they are answered before any further entry
 * is applied (`delays_entries`). */
static bool answer_passed(struct connection *c) {
    struct zk_in frame;
    struct zk_request_header header;
    while (c->passed && c->answered < c->scanned && frame_at(c, c->answered, &frame) == 1) {
        size_t end = end_of(c, &frame);
        zk_read_request_header(&frame, &header);
        const struct zk_op *op = zk_op_of(header.type);
        if (goes_through_log(c->server, op)) break;
        if (!connection_takes_answers(c) || must_wait_for_turn(c) || must_wait_for_memory(c) ||
            (header.type != ZK_OP_PING && must_wait_for_entry(c)))
            return false;
        size_t steps = steps_of_read(c, op, frame);
        if (c->waiting && delays_for_long(c, steps)) return false;
        if (!answer(c, &header, &frame)) return false;
        if (c->waiting) c->delayed_steps += steps;
        c->answered = end;
        connection_bound_answers(c);
        if (c->stream.closing) return false;
    }
    c->passed = false;
    return true;
}

static void process(struct connection *c) {
    if (c->shakes_hands) {
        connection_shake_hands(c);
        return;
    }
    while (answer_passed(c) && (c->state == CONNECTION_NEW || c->state == CONNECTION_OPEN) &&
           net_unsent(&c->stream) <=
               CONNECTION_UNSENT_MAX) { /* a client that takes no answers has to wait */
        struct zk_in frame;
        if (c->state == CONNECTION_NEW && c->in.used >= 4 &&
            c->server->admin->answer_word(c, c->in.at))
            return;
        int status = frame_at(c, c->scanned, &frame);
        if (status < 0) {
            c->server->statistics.refused[REFUSED_size]++;
            connection_end(c);
            return;
        }
        if (status == 0 || must_wait_for_turn(c) || must_wait_for_memory(c)) break;
        if (c->state == CONNECTION_NEW) {
            c->answered = c->scanned = end_of(c, &frame);
            session_connect(c, &frame);
        } else if (!handle(c, &frame)) {
            break;
        }
        connection_bound_answers(c);
        if (c->stream.closing) break;
    }
    time_reads(c);
    if (!c->stream.closing) connection_tidy(c);
}

void connection_process(struct connection *c) {
    struct busy *busy = &c->server->work;
    enum busy_kind before = busy_with(busy, BUSY_REQUESTS);
    c->waits = false;
    c->turn = share_of_steps(c->server);
    process(c);
    if (!c->stream.closing) connection_count_received(c, c->in.room);
    connection_count_delay(c, !c->stream.closing && c->passed && c->waiting);
    busy_with(busy, before);
}

void connection_count_delay(struct connection *c, bool delays) {
    c->server->connections.delaying += (delays ? 1U : 0U) - (c->delays_entries ? 1U : 0U);
    c->delays_entries = delays;
}

void connection_answered(struct connection *c) {
    struct zk_in frame;
    int status = frame_at(c, c->answered, &frame);
    cv_assert(c->waiting && status == 1);
    c->waiting--;
    c->reconfiguring = false;
    c->answered = end_of(c, &frame);
    c->passed = true;
    connection_process(c);
}

static void resume(struct connection *c) {
    if (c->state != CONNECTION_ENDING) connection_process(c);
}

/* Those first that entries wait for.  The next time begins with the first for which this one has no
 * steps, or no room for its writes. */
void connections_resume(struct server *s) {
    struct connections *all = &s->connections;
    s->entries_yield = false;
    bool wait_for_room = all->backpressure && ensemble_is_full(s->ensemble);
    bool wait_for_entry = all->deferred && s->applying.begun;
    if ((!all->backpressure || wait_for_room) && (!all->deferred || wait_for_entry)) return;
    all->backpressure = wait_for_room;
    all->deferred = wait_for_entry;
    all->resuming = true;
    uint32_t slots = all->slots, served = 0;
    for (uint32_t i = 1; i <= slots && all->delaying; i++)
        if (all->at[i] && all->at[i]->delays_entries) resume(all->at[i]);
    for (uint32_t i = 0; i < slots; i++) {
        struct connection *c = all->at[(all->resumed + i) % slots + 1];
        bool is_over = !s->steps.resume || !s->steps.handshakes || ensemble_is_full(s->ensemble);
        if (served == i && !is_over) served++;
        if (c && c->waits) resume(c);
    }
    if (slots) all->resumed = (all->resumed + (served < slots ? served : 1)) % slots;
    all->resuming = false;
}

void connection_receive(struct connection *c, const unsigned char *bytes, size_t size) {
    clock_read(&c->server->clock);
    c->received_us = c->server->clock.monotonic_us;
    c->server->statistics.bytes_received += size;
    session_touch(c); /* also when it waits after a write that takes its time */
    if (!c->in.used) c->met_us = c->received_us;
    bytes_add(&c->in, bytes, size);
    connection_process(c);
}
