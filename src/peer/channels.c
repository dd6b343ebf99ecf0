/* Channels over links: what a frame holds, and what the links of a process say about it.
 *
 * Frames, all numbers little-endian:
 *   MESSAGE    the receiver's incarnation, number, acknowledged number; kind, body
 *   RECEIVED   the receiver's incarnation, acknowledged number
 *   HEARTBEAT  kind, body: of the failure detector, a datagram: neither kept nor acknowledged
 *   CUT_OFF    messages to this incarnation of the receiver are lost
 * Those of runs are in peer/runs.c. */
#include <stdio.h>

#include "base/little.h"
#include "base/logger.h"
#include "peer/internal.h"

enum {
    MESSAGE_HEAD = 24,
    RECEIVED_SIZE = 16,
    KIND_SIZE = 4,
    HEARTBEATS_UNSENT_MAX = 64 << 10, /* bytes that a link may have unsent, and heartbeats go out */
    UNSENT_MAX = 1 << 20,             /* the same for messages: the others are in the channel */
    WARN_EVERY_MS = 1000,
    WAIT_FOR_EACH_MS = 200, /* how much longer a link may take for each process of the group */
};

/* A peer that sends nonsense cannot fill the log with it. */
static void warn(struct peer *peer, cv_pid from, const char *what) {
    uint64_t now = uv_now(peer->config.loop);
    if (peer->warned_ms && now - peer->warned_ms < WARN_EVERY_MS) return;
    peer->warned_ms = now;
    logger_warning("a message of a peer is refused", LOGGER_UINT("peer", from),
                   LOGGER_STRING("reason", what));
}

/* ---- Out ---- */

struct bytes *channels_begin(struct peer *peer, cv_pid p, enum peer_frame type) {
    return peer->other[p].up ? link_begin(peer->links, p, type, LINK_URGENT) : NULL;
}

/* Gives the link what the channel has, as far as it goes.  While it has something unsent, that and
 * what is added may go out at any time. */
static void pump(struct peer *peer, cv_pid p) {
    struct channel *channel = &peer->other[p].channel;
    if (link_unsent(peer->links, p)) peer_flush_record(peer);
    while (channel_waits(channel) && link_unsent(peer->links, p) < UNSENT_MAX) {
        struct bytes *frame = channels_begin(peer, p, FRAME_MESSAGE);
        uint64_t number = 0;
        uint32_t size = 0;
        if (!frame) return;
        const unsigned char *message = channel_next(channel, &number, &size);
        unsigned char *head = bytes_extend(frame, MESSAGE_HEAD);
        put64(head, channel->incarnation);
        put64(head + 8, number);
        put64(head + 16, channel->received);
        bytes_add(frame, message, size);
        link_end(peer->links, p);
        channel->reported = channel->received;
    }
    peer->full |= channel_waits(channel);
}

static void report_received(struct peer *peer, cv_pid p) {
    struct channel *channel = &peer->other[p].channel;
    if (!channel->incarnation || channel->reported == channel->received) return;
    struct bytes *frame = channels_begin(peer, p, FRAME_RECEIVED);
    if (!frame) return;
    unsigned char *head = bytes_extend(frame, RECEIVED_SIZE);
    put64(head, channel->incarnation);
    put64(head + 8, channel->received);
    link_end(peer->links, p);
    channel->reported = channel->received;
}

static void report_all(uv_timer_t *timer) {
    struct peer *peer = timer->data;
    for (cv_pid p = 1; p <= peer->group->processes; p++)
        if (p != peer->self) report_received(peer, p);
}

static void tell_cut_off(struct peer *peer, cv_pid p) {
    struct bytes *frame = channels_begin(peer, p, FRAME_CUT_OFF);
    if (!frame) return;
    put64(bytes_extend(frame, 8), peer->other[p].channel.incarnation);
    link_end(peer->links, p);
}

/* A process that is away for so long that what was sent to it cannot be kept has to restart: a
 * message that is lost without a crash is nothing that algorithms expect. */
static void cut_off(struct peer *peer, cv_pid p) {
    struct other *other = &peer->other[p];
    logger_error("a peer has not received what was sent to it for so long that it is cut off; it "
                 "has to restart",
                 LOGGER_UINT("peer", p), LOGGER_UINT("bytes", channel_backlog(&other->channel)));
    channel_give_up(&other->channel);
    other->cut_off = true;
    tell_cut_off(peer, p);
}

static void send_message(struct peer *peer, cv_pid to, const struct cv_send *send) {
    struct other *other = &peer->other[to];
    if (other->cut_off) return;
    unsigned char *at = channel_push(&other->channel, KIND_SIZE + send->size);
    put32(at, send->kind);
    codec_write(&peer->machine[ALGORITHM].codec, send->kind, send + 1, send->size, at + KIND_SIZE);
    recorder_sent(&peer->recorder, to, other->channel.last);
    if (channel_backlog(&other->channel) > BACKLOG_MAX) cut_off(peer, to);
    pump(peer, to);
}

static void send_heartbeat(struct peer *peer, cv_pid to, const struct cv_send *send) {
    if (link_unsent(peer->links, to) > HEARTBEATS_UNSENT_MAX) return;
    struct bytes *frame = channels_begin(peer, to, FRAME_HEARTBEAT);
    if (!frame) return;
    unsigned char *at = bytes_extend(frame, KIND_SIZE + send->size);
    put32(at, send->kind);
    codec_write(&peer->machine[DETECTOR].codec, send->kind, send + 1, send->size, at + KIND_SIZE);
    link_end(peer->links, to);
}

void channels_send(struct peer *peer, enum peer_machine m, const struct cv_send *send) {
    cv_pid first = send->to, last = send->to;
    if (send->to >= CV_SERVERS) {
        first = 1;
        last = send->to == CV_SERVERS ? peer->group->servers : peer->group->processes;
    }
    for (cv_pid to = first; to <= last; to++) {
        if (to == peer->self && send->to >= CV_SERVERS) continue;
        if (!to || to > peer->group->processes ||
            (m == ALGORITHM && !group_reaches(peer->group, peer->self, to)))
            warn(peer, peer->self, "it is for nobody; one that was received must have been forged");
        else if (m == DETECTOR)
            send_heartbeat(peer, to, send);
        else
            send_message(peer, to, send);
    }
}

/* ---- In ---- */

/* Kind and body, for one of the machines. */
static void step_by(struct peer *peer, enum peer_machine m, cv_pid from, const unsigned char *bytes,
                    size_t size) {
    uint32_t kind = get32(bytes);
    struct cv_event event = {.type = CV_RECV,
                             .from = from,
                             .kind = (uint16_t)kind,
                             .size = (uint32_t)(size - KIND_SIZE),
                             .body = peer->body};
    const char *wrong =
        codec_read(&peer->machine[m].codec, kind, bytes + KIND_SIZE, size - KIND_SIZE, peer->body);
    if (!wrong && m == ALGORITHM && !group_reaches(peer->group, from, peer->self))
        wrong = "it is not of a neighbour";
    if (wrong) return warn(peer, from, wrong);
    peer_step(peer, m, &event);
}

static void refuse_acknowledgement(struct peer *peer, cv_pid from) {
    if (!peer->resumed) return warn(peer, from, "it acknowledges what was not sent");
    peer_fail(peer, "another peer has received more of it than it knows of: its data was put back "
                    "from a copy");
}

static void receive_message(struct peer *peer, cv_pid from, const unsigned char *bytes,
                            size_t size) {
    struct other *other = &peer->other[from];
    if (size < MESSAGE_HEAD + KIND_SIZE) return warn(peer, from, "it is too short");
    if (get64(bytes) != peer->incarnation) return; /* for this process as it was before a crash */
    if (!channel_acknowledge(&other->channel, get64(bytes + 16)))
        return refuse_acknowledgement(peer, from);
    peer->arriving = get64(bytes + 8);
    switch (channel_arrived(&other->channel, peer->arriving)) {
    case CHANNEL_DUPLICATE: return;
    case CHANNEL_WRONG: return warn(peer, from, "another one is missing before it");
    case CHANNEL_NEW: break;
    }
    peer->messages++;
    if (!uv_is_active((uv_handle_t *)&peer->acknowledge))
        uv_timer_start(&peer->acknowledge, report_all, ACKNOWLEDGE_MS, 0);
    step_by(peer, ALGORITHM, from, bytes + MESSAGE_HEAD, size - MESSAGE_HEAD);
    if (other->channel.received - other->channel.reported >= ACKNOWLEDGE_AFTER)
        report_received(peer, from);
}

static void receive_heartbeat(struct peer *peer, cv_pid from, const unsigned char *bytes,
                              size_t size) {
    if (!peer->machine[DETECTOR].code || !peer->begun) return;
    if (size < KIND_SIZE) return warn(peer, from, "it is too short");
    step_by(peer, DETECTOR, from, bytes, size);
}

static void received(void *owner, uint64_t from, uint16_t version, uint32_t type,
                     const unsigned char *bytes, size_t size) {
    struct peer *peer = owner;
    cv_pid p = (cv_pid)from;
    const struct other *other = &peer->other[p];
    const char *wrong = NULL;
    (void)version;
    if (peer->closing || peer->over) return;
    bool met = other->channel.incarnation && other->channel.incarnation == other->incarnation;
    if (!met && type != FRAME_RUN && type != FRAME_HEARTBEAT) return; /* it is of another run */
    if (other->cut_off && (type == FRAME_MESSAGE || type == FRAME_RECEIVED)) return;
    switch (type) {
    case FRAME_MESSAGE: receive_message(peer, p, bytes, size); break;
    case FRAME_HEARTBEAT: receive_heartbeat(peer, p, bytes, size); break;
    case FRAME_RECEIVED:
        if (size != RECEIVED_SIZE) return warn(peer, p, "it has the wrong size");
        if (get64(bytes) != peer->incarnation) return;
        if (!channel_acknowledge(&peer->other[p].channel, get64(bytes + 8)))
            refuse_acknowledgement(peer, p);
        break;
    case FRAME_DONE: wrong = runs_hear_done(peer, p, bytes, size); break;
    case FRAME_RUN: wrong = runs_hear(peer, p, bytes, size); break;
    case FRAME_CUT_OFF:
        if (size == 8 && get64(bytes) == peer->incarnation)
            peer_fail(peer, "another peer could not keep what it had for this one, which was away "
                            "for too long");
        break;
    default: wrong = "it is of a kind that does not exist";
    }
    if (wrong) warn(peer, p, wrong);
}

/* ---- What the links say ---- */

static void link_came(void *owner, uint64_t id) {
    struct peer *peer = owner;
    struct other *other = &peer->other[id];
    cv_pid p = (cv_pid)id;
    other->up = true;
    other->gone = false;
    channel_rewind(&other->channel);
    runs_introduce(peer, p);
    if (other->cut_off) tell_cut_off(peer, p);
    runs_tell_done(peer, p);
    pump(peer, p);
    report_received(peer, p);
}

static void link_went(void *owner, uint64_t id, enum link_reason reason) {
    struct peer *peer = owner;
    struct other *other = &peer->other[id];
    other->up = false;
    other->gone = reason == LINK_REFUSED && !other->here; /* nobody listens there */
    runs_look_whether_over(peer);
}

static void other_came(void *owner, uint64_t id, bool here, uint64_t incarnation) {
    struct peer *peer = owner;
    struct other *other = &peer->other[id];
    cv_pid p = (cv_pid)id;
    if (here && other->parted) {
        links_drop(peer->links, id);
        return;
    }
    other->here = here;
    if (!here || peer->closing) return;
    if (incarnation < other->incarnation) {
        logger_warning("a connection of an earlier run of a peer is refused; if that peer was just "
                       "started, the clock of its machine was set back",
                       LOGGER_UINT("peer", id));
        links_drop(peer->links, id);
        other->up = other->here = false;
        links_set(peer->links, id, peer->group->member[p].host, peer->group->member[p].port);
        return;
    }
    other->gone = other->begun = false;
    other->incarnation = incarnation;
}

/* Messages pass between two processes that have begun the same run. */
void channels_meet(struct peer *peer, cv_pid p) {
    struct other *other = &peer->other[p];
    uint64_t incarnation = other->incarnation;
    if (!peer->begun || !other->begun || other->run != peer->run) return;
    peer->met = true;
    if (!other->channel.incarnation) other->cut_off = false; /* it has missed nothing */
    if (incarnation != other->channel.incarnation) recorder_met(&peer->recorder, p, incarnation);
    if (channel_meet(&other->channel, incarnation)) {
        logger_info("a peer has restarted", LOGGER_UINT("peer", p));
        other->cut_off = other->done = other->knows_us_done = false;
        other->awaited = 0;
        if (!other->suspected) { /* else it is trusted again by its heartbeat */
            peer_suspect(peer, p, true);
            peer_suspect(peer, p, false);
        }
    }
    runs_tell_done(peer, p);
    pump(peer, p);
}

void channels_renew(struct peer *peer) {
    for (cv_pid p = 1; p <= peer->group->processes; p++) {
        struct other *other = &peer->other[p];
        channel_free(&other->channel);
        other->awaited = 0;
        other->up = other->cut_off = other->done = other->knows_us_done = other->stays = false;
    }
    links_set_incarnation(peer->links, peer->incarnation);
    links_redial(peer->links);
}

void peer_part(struct peer *peer, cv_pid p, bool cut) {
    if (!p || p > peer->group->processes || p == peer->self || peer->closing) return;
    struct other *other = &peer->other[p];
    if (other->parted == cut) return;
    other->parted = cut;
    if (cut) {
        links_drop(peer->links, p);
        other->up = other->here = false;
    } else {
        links_set(peer->links, p, peer->group->member[p].host, peer->group->member[p].port);
    }
}

static void drained(void *owner, uint64_t id) { pump(owner, (cv_pid)id); }

static bool is_expected(void *owner, uint64_t id, uint64_t ensemble, uint32_t directory) {
    const struct peer *peer = owner;
    (void)ensemble, (void)directory;
    return id && id <= peer->group->processes && id != peer->self;
}

void peer_flush(struct peer *peer) {
    peer_flush_record(peer);
    links_flush(peer->links);
}

/* A link that takes all at once never says that it is drained. */
static void pump_all(struct peer *peer) {
    while (peer->full) {
        peer->full = false;
        for (cv_pid p = 1; p <= peer->group->processes; p++)
            if (peer->other[p].up && !link_unsent(peer->links, p)) pump(peer, p);
        peer_flush(peer);
    }
}

static void flush(uv_prepare_t *prepare) {
    runs_look(prepare->data);
    peer_flush(prepare->data);
    pump_all(prepare->data);
}

/* ---- Opening and closing ---- */

int channels_open(struct peer *peer, char error[PEER_ERROR_MAX]) {
    const struct group *group = peer->group;
    /* A whole group that starts on one machine waits for its processors, not for the network. */
    uint32_t wait_ms = group->processes * WAIT_FOR_EACH_MS;
    struct links_config config = {.loop = peer->config.loop,
                                  .id = peer->self,
                                  .ensemble = group->identity,
                                  .incarnation = peer->incarnation,
                                  .seed = rng_next(&peer->rng),
                                  .tls = peer->config.tls,
                                  .insecure = peer->config.insecure,
                                  .of_group = true,
                                  .incoming_max = group->processes,
                                  .unauthenticated_max =
                                      LINK_UNAUTHENTICATED_MAX + group->processes,
                                  .connect_ms = LINK_CONNECT_MS + wait_ms,
                                  .handshake_ms = LINK_HANDSHAKE_MS + wait_ms,
                                  .owner = peer,
                                  .is_expected = is_expected,
                                  .on_frame = received,
                                  .on_up = link_came,
                                  .on_down = link_went,
                                  .on_incoming = other_came,
                                  .on_drained = drained};
    int32_t port = group->member[peer->self].port;
    uv_prepare_init(peer->config.loop, &peer->flush);
    uv_timer_init(peer->config.loop, &peer->acknowledge);
    uv_timer_init(peer->config.loop, &peer->runs);
    peer->flush.data = peer->acknowledge.data = peer->runs.data = peer;
    peer->handles += 3;
    peer->links = links_open(&config);
    cv_pid of = peer->self;
    const char *problem = links_listen(peer->links, group->member[of].host, &port);
    for (cv_pid p = 1; p <= group->processes && !problem; p++)
        if (p != peer->self)
            problem = links_set(peer->links, of = p, group->member[p].host, group->member[p].port);
    if (problem)
        snprintf(error, PEER_ERROR_MAX, "%.300s:%d: %.300s", group->member[of].host,
                 group->member[of].port, problem);
    else
        uv_prepare_start(&peer->flush, flush);
    return problem ? -1 : 0;
}

void channels_close(struct peer *peer) {
    if (peer->links) links_close(peer->links);
    peer->links = NULL;
}
