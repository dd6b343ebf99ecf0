/* Frames between the servers of an ensemble. */
#include "server/server.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "messages are sent as they lie");
_Static_assert(sizeof(struct raft_message) == 72, "without padding");

enum peer_frame {
    PEER_RAFT = 1, /* a message of the core, then its entries */
    PEER_FORWARD,  /* its term, the last number decided, then entries to put forward */
    PEER_TOUCH,    /* sessions that have been heard of */
    PEER_ASK,      /* what is decided?  The question's number */
    PEER_ANSWER,   /* that number, and an index */
    PEER_TRANSFER, /* the server that is to lead */
    PEER_DISMISS,  /* you are no member any more */
};

enum {
    UNSENT_MAX = 4 << 20,      /* bytes that a link is given before it has taken some */
    UNANSWERED_MAX = 16 << 20, /* bytes of entries that a member has not said it has */
    APPEND_MAX = 1 << 20,      /* bytes of entries in one message */
};

/* ---- Sending ---- */

void peers_send_with(struct server *s, const struct raft_message *m, const void *bytes,
                     size_t size) {
    struct bytes *out = link_begin(s->replica.links, m->to, PEER_RAFT);
    if (!out) return; /* as good as lost on the way */
    bytes_add(out, m, sizeof *m);
    bytes_add(out, bytes, size);
    link_end(s->replica.links, m->to);
}

void peers_send(struct server *s, const struct raft_message *m) { peers_send_with(s, m, NULL, 0); }

static bool has_too_much(const struct server *s, const struct raft_peer *peer, uint8_t id) {
    const struct replica *r = &s->replica;
    if (link_unsent(r->links, id) > UNSENT_MAX) return true;
    uint64_t first = peer->match > r->log.after ? peer->match + 1 : r->log.after + 1;
    return peer->mode == RAFT_STREAM &&
           window_span(&r->log, first, peer->next - 1) > UNANSWERED_MAX;
}

/* Whether that server and the leader are enough to decide. */
static bool is_enough(const struct replica *r, uint8_t id) {
    const struct raft_config *config = &r->raft.config;
    int self = raft_place(config, r->raft.self), other = raft_place(config, id);
    return self >= 0 && other >= 0 && r->up[id] && raft_is_quorum(config, 1u << self | 1u << other);
}

/* Up to which entry a member gets them now.  What the clients of one other server want is decided
 * when that one has it, if it is enough: the rest get it then, in one message with the news, and
 * nobody waits for their disks.  But not for long: see replica_be_patient. */
static uint64_t last_for(const struct replica *r, uint8_t id) {
    const struct raft_peer *peer = raft_peer(&r->raft, id);
    bool at_once = r->for_all >= peer->next || r->came_from[id].index >= peer->next;
    if (peer->mode != RAFT_STREAM || peer->due || r->hurry || at_once) return r->raft.last;
    return r->raft.committed;
}

/* None of that server's clients waits for it: what is decided comes last, and no pledge before. */
static bool can_wait(const struct replica *r, const struct raft_message *m, bool urgent_only) {
    uint64_t decided = raft_peer_decided(raft_peer(&r->raft, m->to));
    if (decided < r->came_from[m->to].index) return false;
    if (m->count) return urgent_only && m->index + m->count <= r->raft.committed;
    return m->flags & RAFT_NEWS && (urgent_only || decided >= r->raft.committed);
}

static void replicate_to(struct server *s, uint8_t id, bool urgent_only) {
    struct replica *r = &s->replica;
    const struct raft_peer *peer = raft_peer(&r->raft, id);
    struct raft_message m;
    struct raft_batch batch;
    while (!has_too_much(s, peer, id) && raft_append_for(&r->raft, id, last_for(r, id), &m)) {
        if (can_wait(r, &m, urgent_only)) return;
        if (m.count) {
            size_t bytes = window_span(&r->log, m.index + 1, m.index + m.count);
            window_read(&r->log, m.index + 1, bytes < APPEND_MAX ? bytes : APPEND_MAX, &batch);
            m.kind = (uint8_t)batch.kind;
            m.count = batch.count;
            peers_send_with(s, &m, batch.bytes, batch.size);
        } else {
            peers_send(s, &m);
        }
        raft_sent(&r->raft, &m);
    }
    if (peer->next <= r->raft.last && last_for(r, id) < r->raft.last) replica_be_patient(s);
}

void peers_replicate(struct server *s, bool urgent_only) {
    const struct raft_config *config = &s->replica.raft.config;
    if (!s->replica.links || !replica_leads(s)) return;
    for (uint32_t i = 0; i < config->count; i++)
        if (s->replica.up[config->at[i].id]) replicate_to(s, config->at[i].id, urgent_only);
}

bool peers_can_forward(const struct server *s) {
    const struct replica *r = &s->replica;
    return r->links && r->up[r->raft.leader] && link_unsent(r->links, r->raft.leader) <= UNSENT_MAX;
}

bool peers_forward(struct server *s, const struct raft_batch *batch) {
    struct replica *r = &s->replica;
    if (!peers_can_forward(s)) return false;
    struct bytes *out = link_begin(r->links, r->raft.leader, PEER_FORWARD);
    if (!out) return false;
    bytes_add(out, (uint64_t[]){r->raft.term, r->outbox.after}, 2 * sizeof(uint64_t));
    bytes_add(out, batch->bytes, batch->size);
    link_end(r->links, r->raft.leader);
    return true;
}

static void send_numbers(struct server *s, uint8_t to, enum peer_frame type,
                         const uint64_t *numbers, size_t count) {
    struct replica *r = &s->replica;
    struct bytes *out = r->links && r->up[to] ? link_begin(r->links, to, type) : NULL;
    if (!out) return;
    bytes_add(out, numbers, count * sizeof *numbers);
    link_end(r->links, to);
}

void peers_touch(struct server *s, const int64_t *sessions, size_t count) {
    if (count)
        send_numbers(s, s->replica.raft.leader, PEER_TOUCH, (const uint64_t *)sessions, count);
}

void peers_ask_fresh(struct server *s, uint64_t number) {
    send_numbers(s, s->replica.raft.leader, PEER_ASK, &number, 1);
}

void peers_answer_fresh(struct server *s, uint8_t to, uint64_t number, uint64_t index) {
    send_numbers(s, to, PEER_ANSWER, (uint64_t[]){number, index}, 2);
}

void peers_ask_transfer(struct server *s, uint8_t to) {
    send_numbers(s, s->replica.raft.leader, PEER_TRANSFER, &(uint64_t){to}, 1);
    peers_flush(s);
}

void peers_flush(struct server *s) {
    if (s->replica.links) links_flush(s->replica.links);
}

/* ---- Receiving: nothing that came is believed before it was looked at ---- */

/* As many entries as it says, each of them one that can be applied. */
static bool is_whole(const struct raft_batch *batch) {
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

/* The entries from an index on. */
static struct raft_batch from_index(struct raft_batch batch, uint64_t index) {
    struct raft_entry entry;
    size_t at = 0;
    uint32_t skipped = (uint32_t)(index - batch.first);
    for (uint32_t i = 0; i < skipped; i++) raft_next(&batch, &at, &entry);
    batch.first = index;
    batch.count -= skipped;
    batch.bytes += at;
    batch.size -= at;
    return batch;
}

/* Who does not have what it once said was durable has lost its data, and with them its vote: only a
 * person can put that right. */
static void note_loss(struct server *s, const struct raft_message *m) {
    struct replica *r = &s->replica;
    const struct raft_peer *peer = raft_peer(&r->raft, m->from);
    bool lost = m->type == RAFT_APPENDED && m->flags & RAFT_REJECTED && replica_leads(s) && peer &&
                m->term == r->raft.term && peer->mode == RAFT_PROBE && m->other + 1 == peer->next &&
                m->index < peer->match;
    if (!lost || r->came_from[m->from].lost) return;
    r->came_from[m->from].lost = true;
    server_say("error",
               "server %u has lost its data: remove it, and let it join under a new number",
               m->from);
}

/* False: no server of an ensemble would have sent it. */
static bool take_message(struct server *s, uint64_t from, const unsigned char *bytes, size_t size) {
    struct replica *r = &s->replica;
    struct raft_message m;
    struct raft_out out = {0};
    struct raft_config config;
    struct zk_text members;
    if (size < sizeof m) return false;
    memcpy(&m, bytes, sizeof m);
    struct raft_batch batch = {.first = m.index + 1,
                               .term = m.entries_term,
                               .count = m.count,
                               .kind = (enum raft_kind)m.kind,
                               .bytes = bytes + sizeof m,
                               .size = size - sizeof m};
    if (m.type == RAFT_CHUNK || m.type == RAFT_CHUNKED) batch.size = 0;
    bool is_config = m.type == RAFT_APPEND && m.kind == RAFT_CONFIG;
    if (m.from != from || !is_whole(&batch)) return false;
    if (is_config && !members_read_entry(&batch, &config, &members)) return false;
    note_loss(s, &m);
    if (!raft_receive(&r->raft, &m, is_config ? &config : NULL, &out)) return false;
    if (r->dismissed && m.from == r->raft.leader) change_readmitted(s);
    if (out.take) {
        struct raft_batch taken = from_index(batch, out.take_first);
        cv_assert(window_append(&r->log, &taken));
        if (is_config) members_take(r, members.at, (size_t)members.size);
        if (is_config) peers_update(s);
    }
    replica_perform(s, &out);
    if (out.chunk) install_message(s, &m, bytes + sizeof m, size - sizeof m);
    return true;
}

/* Entries that the clients of another server ask for: the next numbers of those that have come in
 * this term.  What came before is in the log, and what is behind a gap will come again with it; all
 * up to `after` its sender has seen decided. */
static bool take_forwarded(struct server *s, uint64_t from, const unsigned char *bytes,
                           size_t size) {
    struct forwarded {
        uint64_t term, after;
    } frame;
    struct raft_batch batch = {.bytes = bytes + sizeof frame, .size = size - sizeof frame};
    struct raft_entry entry;
    struct tree_entry parts;
    struct replica *r = &s->replica;
    struct came_from *came = &r->came_from[from];
    if (size < sizeof frame) return false;
    memcpy(&frame, bytes, sizeof frame);
    /* To the leader that it was, or is not yet: its sender notices, and puts it forward again. */
    if (frame.term != r->raft.term || !replica_can_lead_more(s)) return true;
    bool for_all = !is_enough(r, (uint8_t)from);
    size_t at = 0;
    server_wake(s);
    while (raft_next(&batch, &at, &entry)) {
        struct zk_in in = zk_in_of(entry.bytes, entry.size);
        if (!tree_read_entry(&in, &parts) || tree_server_of(parts.life) != from) return false;
        if (came->life != parts.life || came->number < frame.after)
            came->life = parts.life, came->number = frame.after;
        if (parts.number <= came->number) continue;
        if (parts.number > came->number + 1) return true;
        if (!replica_lead_entry(s, entry.bytes, entry.size)) return true;
        came->number = parts.number;
        came->index = r->raft.last;
        if (for_all) r->for_all = r->raft.last;
    }
    return at == batch.size;
}

static bool take_touched(struct server *s, const unsigned char *bytes, size_t size) {
    for (size_t at = 0; size - at >= sizeof(int64_t); at += sizeof(int64_t)) {
        int64_t session;
        memcpy(&session, bytes + at, sizeof session);
        session_heard(s, session);
    }
    return size % sizeof(int64_t) == 0;
}

static bool take_question(struct server *s, uint64_t from, const unsigned char *bytes,
                          size_t size) {
    uint64_t number;
    if (size != sizeof number) return false;
    memcpy(&number, bytes, sizeof number);
    fresh_asked(s, (uint8_t)from, number);
    return true;
}

static bool take_transfer(struct server *s, const unsigned char *bytes, size_t size) {
    struct raft_out out = {0};
    uint64_t to;
    if (size != sizeof to) return false;
    memcpy(&to, bytes, sizeof to);
    if (to && to <= SETTINGS_ID_MAX) raft_transfer(&s->replica.raft, (uint8_t)to, &out);
    replica_perform(s, &out);
    return true;
}

/* Nobody will say more to it, so its clients are better off elsewhere. */
static bool take_dismissal(struct server *s, uint64_t from, size_t size) {
    if (size || from != s->replica.raft.leader) return false;
    s->replica.dismissed = true;
    server_say("warning", "this server is no longer a member: it can be ended, or added again");
    sessions_without_leader(s);
    return true;
}

static bool take_answer(struct server *s, const unsigned char *bytes, size_t size) {
    uint64_t numbers[2];
    if (size != sizeof numbers) return false;
    memcpy(numbers, bytes, sizeof numbers);
    fresh_answered(s, numbers[0], numbers[1]);
    return true;
}

static void frame_came(void *owner, uint64_t from, uint32_t type, const unsigned char *bytes,
                       size_t size) {
    struct server *s = owner;
    bool good = false;
    server_read_clock(s);
    switch (type) {
    case PEER_RAFT: good = take_message(s, from, bytes, size); break;
    case PEER_FORWARD: good = take_forwarded(s, from, bytes, size); break;
    case PEER_TOUCH: good = take_touched(s, bytes, size); break;
    case PEER_ASK: good = take_question(s, from, bytes, size); break;
    case PEER_TRANSFER: good = take_transfer(s, bytes, size); break;
    case PEER_ANSWER: good = take_answer(s, bytes, size); break;
    case PEER_DISMISS: good = take_dismissal(s, from, size); break;
    }
    if (!good) s->statistics.frames_refused++;
}

/* ---- Coming and going ---- */

static void link_up(void *owner, uint64_t id) {
    struct server *s = owner;
    s->replica.up[id] = true;
    raft_found(&s->replica.raft, (uint8_t)id);
    replica_note_leader(s);
    server_wake(s);
}

static void link_down(void *owner, uint64_t id, enum link_reason reason) {
    struct server *s = owner;
    struct raft_out out = {0};
    server_read_clock(s);
    s->replica.up[id] = false;
    if (reason == LINK_BROKEN) raft_lost(&s->replica.raft, (uint8_t)id);
    if (reason == LINK_REFUSED) raft_gone(&s->replica.raft, (uint8_t)id, &out);
    if (s->replica.raft.leader == id) s->replica.fed = s->replica.outbox.after;
    replica_note_leader(s);
    replica_perform(s, &out);
}

static void link_drained(void *owner, uint64_t id) {
    (void)id;
    server_wake(owner);
}

/* ---- Who they are ---- */

/* One that was typed is the user's to correct; one that the data brings must not keep a server from
 * starting, for the others would miss it. */
static bool was_typed(struct server *s, const struct settings_member *m) {
    const struct settings_member *typed = settings_member(&s->settings, m->id);
    return typed && typed->peer_port == m->peer_port && strcmp(typed->host, m->host) == 0;
}

bool peers_update(struct server *s) {
    struct replica *r = &s->replica;
    struct settings *now = malloc(sizeof *now);
    struct raft_config config;
    char why[256];
    bool all_good = true;
    cv_assert(now);
    bool known =
        members_read(r->members.text.at, r->members.text.used, &config, now, why, sizeof why) &&
        config.count;
    const struct settings *named = known ? now : &s->settings; /* who joins knows others by name */
    for (uint32_t id = 1; id <= SETTINGS_ID_MAX; id++) {
        const struct settings_member *m = NULL;
        for (unsigned i = 0; i < named->member_count; i++)
            if (named->members[i].id == (int32_t)id) m = &named->members[i];
        if (id == r->raft.self) continue;
        const char *problem = m ? links_set(r->links, id, m->host, m->peer_port) : NULL;
        bool fatal = problem && was_typed(s, m);
        if (problem)
            server_say(fatal ? "error" : "warning", "server %u at %s: %s", id, m->host, problem);
        all_good &= !fatal;
        if (!m && r->linked[id]) {
            if (replica_leads(s)) send_numbers(s, (uint8_t)id, PEER_DISMISS, NULL, 0);
            peers_flush(s);
            links_drop(r->links, id);
            r->up[id] = false;
        }
        r->linked[id] = m != NULL;
    }
    free(now);
    return all_good;
}

static int open_credentials(struct server *s) {
    const struct settings *set = &s->settings;
    struct tls_files files = {set->peer_certificate, set->peer_key, "", set->peer_authorities};
    if (*set->peer_secret)
        s->peer_tls = tls_open_key(set->peer_secret, server_say);
    else if (*set->peer_certificate)
        s->peer_tls = tls_open(&files, TLS_CLIENTS_CERTIFIED, server_say);
    else
        return 0;
    return s->peer_tls ? 0 : SERVER_EXIT_TLS;
}

int peers_open(struct server *s) {
    struct replica *r = &s->replica;
    struct settings_member *self = settings_member(&s->settings, r->raft.self);
    if (!s->settings.member_count) return 0;
    if (!self) {
        server_say("error", "server %u is not among those of --ensemble", r->raft.self);
        return SERVER_EXIT_NETWORK;
    }
    int status = open_credentials(s);
    if (status) return status;
    struct links_config config = {.loop = &s->loop,
                                  .id = r->raft.self,
                                  .ensemble = 0,
                                  .incarnation = r->life,
                                  .seed = r->life,
                                  .tls = s->peer_tls,
                                  .insecure = s->settings.insecure,
                                  .say = server_say,
                                  .owner = s,
                                  .on_frame = frame_came,
                                  .on_up = link_up,
                                  .on_down = link_down,
                                  .on_drained = link_drained};
    r->links = links_open(&config);
    const char *problem = links_listen(r->links, self->host, &self->peer_port);
    if (problem) {
        server_say("error", "%s:%d: cannot listen for other servers: %s", self->host,
                   self->peer_port, problem);
        return SERVER_EXIT_NETWORK;
    }
    return peers_update(s) ? 0 : SERVER_EXIT_NETWORK;
}

void peers_close(struct server *s) {
    if (s->replica.links) links_close(s->replica.links);
    s->replica.links = NULL;
}
