/* Other servers: frames from them, links to them, their addresses. */
#include <unistd.h>

#include "base/logger.h"
#include "service/ensemble/codec.h"
#include "service/ensemble/core.h"
#include "service/ensemble/internal.h"

/* ---- Sending ---- */

struct bytes *peers_begin(struct ensemble *e, uint8_t to, uint32_t type, enum link_lane lane,
                          uint16_t *version) {
    struct bytes *out = e->links && e->peer[to].up ? link_begin(e->links, to, type, lane) : NULL;
    *version = out ? link_version(e->links, to) : 0;
    return out;
}

void peers_end(struct ensemble *e, uint8_t to) { link_end(e->links, to); }

/* Entries come in order, and so does what is said about them; all else may overtake. */
static enum link_lane lane_of(const struct raft_message *m) {
    const struct raft_append_entries *append = &m->append_entries;
    bool is_bulk =
        m->type == RAFT_INSTALL_SNAPSHOT ||
        (m->type == RAFT_APPEND_ENTRIES && (append->entry_count || append->commit_notification));
    return is_bulk ? LINK_BULK : LINK_URGENT;
}

void peers_send(struct ensemble *e, const struct raft_message *m, const void *payload,
                size_t size) {
    uint16_t version;
    struct bytes *out = peers_begin(e, m->to, FRAME_MESSAGE, lane_of(m), &version);
    if (!out) return; /* as if it were lost on the way */
    codec_write_message(out, version, m);
    bytes_add(out, payload, size);
    peers_end(e, m->to);
}

/* Also when no session was heard from: that it is acknowledged is what this server wants to know.
 * A leader of an older version acknowledges nothing; all that is known of it is that it is heard.
 */
void ensemble_touch_sessions(struct ensemble *e, const int64_t *sessions, size_t count) {
    uint16_t version;
    uint8_t leader = e->raft.leader;
    struct contact *contact = &e->contact;
    if (ensemble_leads(e)) contact->last_us = e->clock->monotonic_us;
    struct bytes *out = !ensemble_leads(e) ? peers_begin(e, leader, FRAME_TYPE_touch_sessions,
                                                         LINK_URGENT, &version)
                                           : NULL;
    if (!out) return;
    struct frame_touch_sessions frame = {.number = ++contact->number};
    contact->sent_us[frame.number % REPORTS_KEPT] = e->clock->monotonic_us;
    if (version < CODEC_VERSION_TOUCHED) contact->last_us = e->clock->monotonic_us;
    codec_write_touch_sessions(out, version, &frame);
    for (size_t i = 0; i < count; i++) codec_write_u64(out, version, (uint64_t)sessions[i]);
    peers_end(e, leader);
    peers_flush(e);
}

uint64_t ensemble_out_of_touch_us(const struct ensemble *e) {
    if (e->standalone || ensemble_leads(e)) return 0;
    return e->clock->monotonic_us - e->contact.last_us;
}

/* Sends a frame without a payload. */
#define SEND(E, TO, NAME, ...)                                                                     \
    do {                                                                                           \
        uint16_t version_;                                                                         \
        struct bytes *out_ = peers_begin(E, TO, FRAME_TYPE_##NAME, LINK_URGENT, &version_);        \
        if (!out_) break;                                                                          \
        codec_write_##NAME(out_, version_, &(struct frame_##NAME){__VA_ARGS__});                   \
        peers_end(E, TO);                                                                          \
    } while (0)

void peers_tell_memory(struct ensemble *e, uint8_t to) { SEND(e, to, memory, e->memory_is_short); }

void peers_ask_to_forward(struct ensemble *e, uint8_t to) {
    SEND(e, to, forward_again, e->raft.term);
}

void peers_ask_read_index(struct ensemble *e, uint64_t number) {
    SEND(e, e->raft.leader, read_index_request, number);
}

void peers_answer_read_index(struct ensemble *e, uint8_t to, uint64_t number, uint64_t index) {
    SEND(e, to, read_index_response, number, index);
}

void peers_ask_transfer(struct ensemble *e, uint8_t transferee) {
    SEND(e, e->raft.leader, transfer_leadership, transferee);
    peers_flush(e);
}

void peers_flush(struct ensemble *e) {
    if (e->links) links_flush(e->links);
}

/* ---- Receiving: nothing is believed before it is checked ----
 *
 * Each returns false when no server of an ensemble would have sent the frame. */

bool peers_entries_are_applicable(const struct raft_batch *batch) {
    struct raft_entry entry;
    struct tree_entry parts;
    uint32_t count = 0;
    for (size_t at = 0; at < batch->size; count++) {
        if (!raft_next(batch, &at, &entry)) return false;
        struct zk_in in = zk_in_of(entry.bytes, entry.size);
        if (batch->kind == RAFT_NORMAL && !tree_read_entry(&in, &parts)) return false;
    }
    return count == batch->count;
}

/* What is committed here was acknowledged to clients, so it is not given up. */
static void stop_contradicted(const struct ensemble *e, const struct raft_message *m) {
    logger_error(
        "the leader's log contradicts what is committed here, so this server stops; one of "
        "the two has data of another ensemble, or has lost some: compare the data of all "
        "members before any of it is deleted",
        LOGGER_INT("leader", member_number(m->from)), LOGGER_UINT("term", m->term),
        LOGGER_UINT("prev_log_index", m->append_entries.prev_log_index),
        LOGGER_UINT("commit_index", e->raft.commit_index));
    _exit(ENSEMBLE_EXIT_FAILED);
}

/* A server that comes back, or stands for election, and is no member by what is committed, may not
 * know it.  One that is leaving is told when this leader does not go on with it. */
static void tell_removed(struct ensemble *e, uint8_t id) {
    const struct raft *raft = &e->raft;
    bool removed = raft->config.count && raft->config_index <= raft->commit_index &&
                   !raft_find_member(&raft->config, id) && !e->peer[id].left_index;
    if (removed && !e->removed) SEND(e, id, removed, raft->config_index);
}

void peers_tell_removed(struct ensemble *e) {
    for (uint32_t id = 1; id <= MEMBER_ID_MAX; id++)
        if (e->peer[id].guest && e->peer[id].up) tell_removed(e, (uint8_t)id);
}

static bool receive_message(struct ensemble *e, uint8_t from, uint16_t version, struct zk_in in) {
    struct raft_message m;
    struct raft_out out = {0};
    struct raft_config config;
    if (!codec_read_message(&in, version, from, e->raft.self, &m)) return false;
    if (e->mend) { /* as if it were down */
        if (m.type == RAFT_APPEND_ENTRIES) mend_leader_heard(e, from, m.term);
        return true;
    }
    struct message_payload payload = {.message = &m, .chunk = in};
    bool is_append = m.type == RAFT_APPEND_ENTRIES;
    const struct raft_append_entries *append = &m.append_entries;
    if (is_append)
        payload.batch = (struct raft_batch){.first = append->prev_log_index + 1,
                                            .term = append->entries_term,
                                            .count = append->entry_count,
                                            .kind = (enum raft_kind)append->entry_kind,
                                            .bytes = in.at,
                                            .size = zk_left(&in)};
    bool is_config = is_append && append->entry_kind == RAFT_CONFIG;
    if (!is_append && m.type != RAFT_INSTALL_SNAPSHOT && zk_left(&in)) return false;
    if (is_append && !peers_entries_are_applicable(&payload.batch)) return false;
    if (is_config && !members_read_entry(&payload.batch, &config, &payload.members)) return false;
    if (leaving_answered(e, &m)) return true;
    if (m.type == RAFT_REQUEST_VOTE) tell_removed(e, from);
    if (m.type == RAFT_APPEND_ENTRIES_RESPONSE) catch_up_answered(e, &m);
    if (m.type == RAFT_APPEND_ENTRIES_RESPONSE) identity_answered(e, &m);
    bool valid = core_receive(e, &m, is_config ? &config : NULL, &out);
    if (out.contradiction) stop_contradicted(e, &m);
    if (valid && m.term == e->raft.term) e->peer[from].heard_us = e->clock->monotonic_us;
    if (valid && is_append) e->leader_commit = append->leader_commit;
    if (valid && e->removed && m.from == e->raft.leader &&
        raft_find_member(&e->raft.config, e->raft.self))
        change_readmitted(e);
    ensemble_perform(e, &out, &payload); /* a refused message may bring a newer term all the same */
    return valid;
}

/* Proposals of another server's clients, from the next sequence number of this term on.  Those
 * before it are in the log already, and those after a gap will be forwarded again with it. */
static bool receive_forward(struct ensemble *e, uint8_t from, uint16_t version, struct zk_in in) {
    struct frame_forward frame;
    struct raft_entry entry;
    struct tree_entry parts;
    struct peer_state *peer = &e->peer[from];
    if (!codec_read_forward(&in, version, &frame)) return false;
    struct raft_batch batch = {.bytes = in.at, .size = zk_left(&in)};
    /* Meant for the leader of another term: its sender notices, and forwards it again. */
    if (frame.term != e->raft.term) return true;
    if (!room_for_forwarded(e)) {
        peer->forwards_again = e->forwards_again = true;
        return true;
    }
    bool urgent = !replicate_is_quorum_with(e, from);
    size_t at = 0;
    ensemble_wake(e);
    while (raft_next(&batch, &at, &entry)) {
        struct zk_in bytes = zk_in_of(entry.bytes, entry.size);
        if (!tree_read_entry(&bytes, &parts) || tree_server_of(parts.incarnation) != from)
            return false;
        if (peer->incarnation != parts.incarnation || peer->sequence < frame.applied_sequence)
            peer->incarnation = parts.incarnation, peer->sequence = frame.applied_sequence;
        if (parts.sequence <= peer->sequence) continue;
        if (parts.sequence > peer->sequence + 1) return true;
        if (!ensemble_append(e, entry.bytes, entry.size)) return true;
        peer->sequence = parts.sequence;
        peer->index = e->raft.last_index;
        if (urgent) e->urgent_index = e->raft.last_index;
    }
    return at == batch.size;
}

static bool receive_memory(struct ensemble *e, uint8_t from, uint16_t version, struct zk_in in) {
    struct frame_memory frame;
    if (!codec_read_memory(&in, version, &frame) || zk_left(&in) || frame.is_short > 1)
        return false;
    room_heard(e, from, frame.is_short);
    return true;
}

static bool receive_forward_again(struct ensemble *e, uint8_t from, uint16_t version,
                                  struct zk_in in) {
    struct frame_forward_again frame;
    if (!codec_read_forward_again(&in, version, &frame) || zk_left(&in)) return false;
    if (from != e->raft.leader || frame.term != e->raft.term) return true;
    e->forwarded_sequence = outbox_applied(&e->outbox);
    ensemble_wake(e);
    return true;
}

static bool receive_touch_sessions(struct ensemble *e, uint8_t from, uint16_t version,
                                   struct zk_in in) {
    struct frame_touch_sessions frame;
    uint64_t session;
    if (!codec_read_touch_sessions(&in, version, &frame)) return false;
    while (codec_read_u64(&in, version, &session))
        e->callbacks->session_touched(e->owner, (int64_t)session);
    if (zk_left(&in)) return false;
    if (frame.number && ensemble_leads(e)) SEND(e, from, sessions_touched, frame.number);
    return true;
}

static bool receive_sessions_touched(struct ensemble *e, uint8_t from, uint16_t version,
                                     struct zk_in in) {
    struct frame_sessions_touched frame;
    struct contact *contact = &e->contact;
    if (!codec_read_sessions_touched(&in, version, &frame) || zk_left(&in)) return false;
    if (from != e->raft.leader || frame.number > contact->number ||
        frame.number + REPORTS_KEPT <= contact->number)
        return true; /* of another leader, or late */
    uint64_t sent_us = contact->sent_us[frame.number % REPORTS_KEPT];
    if (sent_us > contact->last_us) contact->last_us = sent_us;
    return true;
}

static bool receive_read_index_request(struct ensemble *e, uint8_t from, uint16_t version,
                                       struct zk_in in) {
    struct frame_read_index_request frame;
    if (!codec_read_read_index_request(&in, version, &frame) || zk_left(&in)) return false;
    read_index_requested(e, from, frame.number);
    return true;
}

static bool receive_read_index_response(struct ensemble *e, uint8_t from, uint16_t version,
                                        struct zk_in in) {
    struct frame_read_index_response frame;
    if (!codec_read_read_index_response(&in, version, &frame) || zk_left(&in)) return false;
    if (e->mend)
        mend_leader_confirmed(e, from, frame.number);
    else
        read_index_answered(e, frame.number, frame.index);
    return true;
}

static bool receive_transfer_leadership(struct ensemble *e, uint8_t from, uint16_t version,
                                        struct zk_in in) {
    struct frame_transfer_leadership frame;
    struct raft_out out = {0};
    (void)from;
    if (!codec_read_transfer_leadership(&in, version, &frame) || zk_left(&in)) return false;
    if (frame.transferee && frame.transferee <= MEMBER_ID_MAX &&
        ensemble_member(e, (uint8_t)frame.transferee).synced)
        core_transfer_leadership(e, (uint8_t)frame.transferee, &out);
    ensemble_perform(e, &out, NULL);
    return true;
}

static bool receive_introduction(struct ensemble *e, uint8_t from, uint16_t version,
                                 struct zk_in in) {
    struct frame_introduction frame;
    return codec_read_introduction(&in, version, &frame) &&
           identity_introduced(e, from, version, &frame,
                               (struct zk_text){(const char *)in.at, (int32_t)zk_left(&in)});
}

/* The leader sends nothing more to this server, so its clients have to go elsewhere.  One that
 * was down when it was removed hears of it from any server of the ensemble: that one has a
 * committed entry which is not in this log, so this server cannot be elected anyway, and need not
 * stand.  One without data waits to be added, and one with a leader knows better: the other's
 * configuration may be an old one. */
static bool receive_removed(struct ensemble *e, uint8_t from, uint16_t version, struct zk_in in) {
    struct frame_removed frame;
    if (!codec_read_removed(&in, version, &frame) || zk_left(&in)) return false;
    bool dismissed = from == e->raft.leader && !frame.config_index;
    bool news = e->raft.last_index && frame.config_index >= e->raft.config_index &&
                (!e->raft.leader || from == e->raft.leader);
    if (!dismissed && !news) return true;
    change_removed(e);
    e->callbacks->leader_changed(e->owner, ENSEMBLE_REMOVED);
    return true;
}

static bool receive_mend_request(struct ensemble *e, uint8_t from, uint16_t version,
                                 struct zk_in in) {
    struct frame_mend_request frame;
    if (!codec_read_mend_request(&in, version, &frame) || zk_left(&in)) return false;
    if (!frame.first || frame.last < frame.first || frame.last > RAFT_INDEX_MAX) return false;
    mend_help(e, from, &frame);
    return true;
}

static bool receive_mend_response(struct ensemble *e, uint8_t from, uint16_t version,
                                  struct zk_in in) {
    struct frame_mend_response frame;
    return codec_read_mend_response(&in, version, &frame) && mend_answered(e, from, &frame, in);
}

static bool receive_mend_chunk_request(struct ensemble *e, uint8_t from, uint16_t version,
                                       struct zk_in in) {
    struct frame_mend_chunk_request frame;
    if (!codec_read_mend_chunk_request(&in, version, &frame) || zk_left(&in)) return false;
    mend_help_chunk(e, from, &frame);
    return true;
}

static bool receive_mend_chunk(struct ensemble *e, uint8_t from, uint16_t version,
                               struct zk_in in) {
    struct frame_mend_chunk frame;
    return codec_read_mend_chunk(&in, version, &frame) && mend_chunk_received(e, from, &frame, in);
}

static void frame_received(void *owner, uint64_t from, uint16_t version, uint32_t type,
                           const unsigned char *bytes, size_t size) {
    struct ensemble *e = owner;
    struct zk_in in = zk_in_of(bytes, size);
    bool valid = false, heard = from && from <= MEMBER_ID_MAX;
    enum busy_kind before = busy_with(e->busy, BUSY_MEMBERS);
    clock_read(e->clock);
    /* A server that is no member is not believed, whatever its term. */
    if (heard && !e->peer[from].linked && !e->peer[from].guest)
        heard = type == FRAME_TYPE_introduction;
    if (heard && e->peer[from].doubted) heard = type == FRAME_TYPE_introduction;
    switch (heard ? type : 0) {
    case FRAME_MESSAGE: valid = receive_message(e, (uint8_t)from, version, in); break;
#define RECEIVE(TYPE, NAME)                                                                        \
    case TYPE: valid = receive_##NAME(e, (uint8_t)from, version, in); break;
        FRAMES(RECEIVE)
    }
    if (!valid) e->statistics.frames_refused++;
    busy_with(e->busy, before);
}

/* A large message is on its way: that is no silence, of a leader or of a follower.  But each says
 * something complete before long. */
static void part_received(void *owner, uint64_t from) {
    enum { WHOLE_MESSAGE_US = 10000000 };
    struct ensemble *e = owner;
    struct raft_out out = {0};
    if (!from || from > MEMBER_ID_MAX) return;
    clock_read(e->clock);
    mend_part_received(e, (uint8_t)from);
    if (e->clock->monotonic_us - e->peer[from].heard_us > WHOLE_MESSAGE_US) return;
    core_peer_alive(e, (uint8_t)from, &out);
    if (out.timer) ensemble_perform(e, &out, NULL);
}

/* ---- Links ---- */

static void drop_link(struct ensemble *e, uint8_t id) {
    links_drop(e->links, id);
    e->peer[id].up = e->peer[id].guest = false;
}

/* A server that was no member by what was known when it introduced itself dials again, and does so
 * once more. */
void peers_end_unanswered(struct ensemble *e) {
    for (uint32_t id = 1; id <= MEMBER_ID_MAX; id++) {
        struct peer_state *peer = &e->peer[id];
        if (!peer->introduced || peer->linked || peer->guest) continue;
        drop_link(e, (uint8_t)id);
        peer->introduced = false;
    }
}

void peers_dismiss(struct ensemble *e, uint8_t id) {
    SEND(e, id, removed);
    peers_flush(e);
    drop_link(e, id);
}

/* It dials again, and hears why. */
void peers_refuse(struct ensemble *e, uint8_t id) {
    drop_link(e, id);
    e->peer[id].introduced = false;
    peers_update(e);
}

/* A server that is no longer in the configuration.  A leader goes on with it while it has clients.
 * A follower may have got to an old configuration only, and goes on as long as the other does. */
static void unlist(struct ensemble *e, uint8_t id) {
    e->peer[id].directory = 0; /* if it is added again, it is another one */
    catch_up_forget(e, id);
    if (leaving_begin(e, id)) return;
    if (ensemble_leads(e))
        peers_dismiss(e, id);
    else if (!e->peer[id].introduced)
        drop_link(e, id);
    else
        e->peer[id].guest = true;
}

static void link_up(void *owner, uint64_t id) {
    struct ensemble *e = owner;
    e->peer[id].up = true;
    e->peer[id].rejected = false;
    identity_introduce(e, (uint8_t)id);
    if (e->peer[id].guest) tell_removed(e, (uint8_t)id);
    if (e->memory_is_short) room_tell(e, (uint8_t)id);
    core_peer_connected(e, (uint8_t)id);
    catch_up_link_up(e, (uint8_t)id);
    ensemble_note_leader(e);
    ensemble_wake(e);
}

static void link_down(void *owner, uint64_t id, enum link_reason reason) {
    struct ensemble *e = owner;
    struct raft_out out = {0};
    clock_read(e->clock);
    e->peer[id].up = false;
    e->peer[id].rejected = reason == LINK_REJECTED;
    if (reason == LINK_BROKEN) core_peer_disconnected(e, (uint8_t)id);
    if (reason == LINK_REFUSED) core_peer_down(e, (uint8_t)id, &out);
    if (e->raft.leader == id) e->forwarded_sequence = outbox_applied(&e->outbox);
    ensemble_note_leader(e);
    ensemble_perform(e, &out, NULL);
}

/* The operator may know better than a configuration that is out of date, until the server says
 * itself where it is. */
static void learn_from_settings(struct ensemble *e, uint64_t id) {
    const struct member *set = member_list_find(&e->settings->members, (int32_t)id);
    links_learn(e->links, id, set ? set->host : NULL, set ? set->peer_port : 0);
}

static void link_incoming(void *owner, uint64_t id, bool here, uint64_t incarnation) {
    struct ensemble *e = owner;
    struct peer_state *peer = &e->peer[id];
    if (!here && peer->guest) drop_link(e, (uint8_t)id);
    if (!here) identity_gone(e, (uint8_t)id);
    if (!here) learn_from_settings(e, id);
    if (!here) room_heard(e, (uint8_t)id, false);
    if (!here || peer->process == incarnation) return;
    peer->process = incarnation;
    identity_restarted(e, (uint8_t)id);
    core_peer_restarted(e, (uint8_t)id);
    ensemble_wake(e);
}

static void link_drained(void *owner, uint64_t id) {
    (void)id;
    ensemble_wake(owner);
}

/* ---- Addresses ---- */

/* An operator can correct an address in the settings; one from the data must not keep a server from
 * starting, because the ensemble may need this server. */
static bool is_from_settings(const struct ensemble *e, const struct member *m) {
    const struct member *set = member_list_find(&e->settings->members, m->id);
    return set && set->peer_port == m->peer_port && strcmp(set->host, m->host) == 0;
}

/* Its link may have ended with that. */
static void was_moved(struct ensemble *e, uint32_t id) {
    if (!e->peer[id].up || link_version(e->links, id)) return;
    e->peer[id].up = false;
    core_peer_disconnected(e, (uint8_t)id);
    if (e->raft.leader == id) e->forwarded_sequence = outbox_applied(&e->outbox);
}

void peers_redial(struct ensemble *e) {
    links_redial(e->links);
    for (uint32_t id = 1; id <= MEMBER_ID_MAX; id++) was_moved(e, id);
}

/* False: the address cannot be used, and is from the settings. */
static bool set_address(struct ensemble *e, uint32_t id, const struct member *m) {
    const char *problem = links_set(e->links, id, m->host, m->peer_port);
    was_moved(e, id);
    bool fatal = problem && is_from_settings(e, m);
    if (problem)
        logger_log(fatal ? LOGGER_ERROR : LOGGER_WARNING,
                   fatal ? "the address of a server cannot be used, so this server does not start"
                         : "the address of a server cannot be used; there is no link to it",
                   LOGGER_INT("peer", member_number((int32_t)id)), LOGGER_STRING("host", m->host),
                   LOGGER_INT("port", m->peer_port), LOGGER_STRING("reason", problem));
    return !fatal;
}

bool peers_update(struct ensemble *e) {
    struct member_list in_force;
    struct raft_config config;
    char why[256];
    bool usable = true;
    bool known = members_read(e->members.text.at, e->members.text.used, &config, &in_force, why,
                              sizeof why) &&
                 config.count;
    /* A server that is to join knows others by its settings only.  The first configurations that it
     * replays may be older than these, and have no id of the ensemble by which a leader that they
     * do not name could prove itself. */
    const struct member_list *given = &e->settings->members;
    bool joins = !known || (e->settings->join && !e->vote.ensemble_id);
    for (uint32_t id = 1; id <= MEMBER_ID_MAX; id++) {
        const struct member *m = known ? member_list_find(&in_force, (int32_t)id) : NULL;
        if (!m && joins) m = member_list_find(given, (int32_t)id);
        if (id == e->raft.self) continue;
        /* It was removed meanwhile, and says anew whose data it has. */
        if (m && !e->peer[id].linked && !e->peer[id].directory) drop_link(e, (uint8_t)id);
        if (m) usable &= set_address(e, id, m);
        if (m && !e->peer[id].introduced) learn_from_settings(e, id);
        if (!m && e->peer[id].linked) unlist(e, (uint8_t)id);
        if (m) e->peer[id].guest = false, e->peer[id].left_index = 0;
        e->peer[id].linked = m != NULL;
    }
    identity_review(e);
    return usable;
}

static int open_credentials(struct ensemble *e) {
    const struct settings *set = e->settings;
    struct tls_files files = {.certificate = set->peer_certificate,
                              .key = set->peer_key,
                              .key_password = set->peer_key_password,
                              .password_file = set->peer_password_file,
                              .authorities = set->peer_authorities};
    if (*set->peer_secret)
        e->tls = tls_open_key(set->peer_secret);
    else if (*set->peer_certificate)
        e->tls = tls_open(&files, TLS_CLIENTS_CERTIFIED);
    else
        return 0;
    return e->tls ? 0 : ENSEMBLE_EXIT_FAILED;
}

bool ensemble_reload_credentials(struct ensemble *e) { return !e->tls || tls_reload(e->tls); }

int64_t ensemble_certificate_expiry(const struct ensemble *e) {
    return e->tls ? tls_expiry(e->tls) : 0;
}

int peers_open(struct ensemble *e) {
    const struct member *self = member_list_find(&e->settings->members, e->raft.self);
    if (!e->settings->members.count) return 0;
    if (!self) {
        logger_error("this server is not among those of --ensemble, so it does not start",
                     LOGGER_INT("server", member_number(e->raft.self)));
        return ENSEMBLE_EXIT_FAILED;
    }
    int status = open_credentials(e);
    if (status) return status;
    uint32_t timeout_ms = (uint32_t)e->settings->election_timeout_ms;
    struct links_config config = {.loop = e->loop,
                                  .id = e->raft.self,
                                  .ensemble = e->vote.ensemble_id,
                                  .incarnation = identity_incarnation(e),
                                  .seed = e->incarnation,
                                  .tls = e->tls,
                                  .insecure = e->settings->insecure,
                                  .silence_ms = timeout_ms,
                                  .frame_ms = 2 * timeout_ms,
                                  .owner = e,
                                  .is_expected = identity_is_expected,
                                  .on_frame = frame_received,
                                  .on_part = part_received,
                                  .on_up = link_up,
                                  .on_down = link_down,
                                  .on_incoming = link_incoming,
                                  .on_drained = link_drained};
    int32_t port = self->peer_port;
    e->links = links_open(&config);
    const char *problem = links_listen(e->links, self->host, &port);
    if (problem) {
        logger_error("the server cannot listen for other servers at this address, so it does not "
                     "start",
                     LOGGER_STRING("host", self->host), LOGGER_INT("port", port),
                     LOGGER_STRING("reason", problem));
        return ENSEMBLE_EXIT_FAILED;
    }
    return peers_update(e) ? 0 : ENSEMBLE_EXIT_FAILED;
}
