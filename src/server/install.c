/* Snapshots from and to other servers: for a member that needs entries which are no longer in
 * memory anywhere.  One chunk at a time: the next is sent when the last was answered. */
#include "server/server.h"

#include <unistd.h>

#include "raft/transfer.h"
#include "store/data.h"

enum {
    CHUNK = 256 << 10,
    AGAIN_MS = 500, /* a chunk that was not answered */
};

struct outgoing {
    struct sending file;
    bool open;
    uint64_t term, offset; /* of the snapshot; of the next chunk */
    uint64_t sent_us;      /* 0: the next may go */
};

struct install {
    struct outgoing to[SETTINGS_ID_MAX + 1];
    struct receiving from;
    bool receiving;
};

static struct install *install_of(struct server *s) {
    struct replica *r = &s->replica;
    if (!r->install) r->install = calloc(1, sizeof *r->install);
    cv_assert(r->install);
    return r->install;
}

static void close_outgoing(struct outgoing *to) {
    if (to->open) sending_close(&to->file);
    *to = (struct outgoing){0};
}

bool install_is_sending(const struct server *s) {
    const struct install *install = s->replica.install;
    for (unsigned id = 1; install && id <= SETTINGS_ID_MAX; id++)
        if (install->to[id].open) return true;
    return false;
}

void install_close(struct server *s) {
    struct install *install = s->replica.install;
    for (unsigned id = 1; install && id <= SETTINGS_ID_MAX; id++) close_outgoing(&install->to[id]);
    if (install && install->receiving) receiving_close(&install->from);
    free(install);
    s->replica.install = NULL;
}

/* ---- Sending ---- */

/* The newest, if entries from there on are in memory; else a new one is made. */
static bool open_outgoing(struct server *s, struct outgoing *to) {
    struct snapshots found;
    if (snapshots_list(&found, s->data_directory, s->settings.data_dir) != 0 || !found.count ||
        found.index[0] < s->replica.raft.base) {
        store_snapshot(s, true);
        return false;
    }
    struct snapshot_reader *reader = snapshot_open(&found, found.index[0], &to->term);
    if (!reader) return false;
    snapshot_close(reader); /* only its header was wanted */
    to->open = sending_open(&to->file, &found, found.index[0]) == 0;
    if (!to->open) server_say("warning", "%s", found.message);
    return to->open;
}

static void send_chunk(struct server *s, uint8_t id, struct outgoing *to) {
    static const unsigned char nothing[1];
    unsigned char *bytes = malloc(CHUNK);
    cv_assert(bytes);
    long size = sending_read(&to->file, to->offset, bytes, CHUNK);
    struct raft_message m = {.type = RAFT_CHUNK,
                             .from = s->replica.raft.self,
                             .to = id,
                             .term = s->replica.raft.term,
                             .index = to->file.index,
                             .index_term = to->term,
                             .other = to->offset,
                             .entries_term = to->file.size};
    if (size >= 0) {
        peers_send_with(s, &m, size ? bytes : nothing, (size_t)size);
        to->sent_us = s->clock_us;
    } else {
        close_outgoing(to);
    }
    free(bytes);
}

void install_turn(struct server *s) {
    const struct raft *raft = &s->replica.raft;
    for (uint32_t i = 0; i < raft->config.count; i++) {
        uint8_t id = raft->config.at[i].id;
        bool wants = raft->role == RAFT_LEADER && id != raft->self && s->replica.up[id] &&
                     raft->peer[i].mode == RAFT_SNAPSHOT;
        if (!wants && !s->replica.install) continue;
        struct outgoing *to = &install_of(s)->to[id];
        /* It may have one already that the entries in memory do not go on from. */
        if (!wants || (to->open && to->file.index <= raft->peer[i].match)) close_outgoing(to);
        if (!wants) continue;
        bool waits = to->sent_us && s->clock_us - to->sent_us < AGAIN_MS * 1000;
        if (!waits && (to->open || open_outgoing(s, to))) send_chunk(s, id, to);
    }
}

static void chunk_answered(struct server *s, const struct raft_message *m) {
    struct outgoing *to = &install_of(s)->to[m->from];
    if (!to->open || to->file.index != m->index || m->other > to->file.size) return;
    to->offset = m->other;
    if (m->other < to->file.size) to->sent_us = 0;
    install_turn(s);
}

/* ---- Receiving ---- */

/* What was put forward here may be in the snapshot; nobody waits for it any more. */
static void forget_what_is_in_it(struct server *s) {
    struct replica *r = &s->replica;
    const struct tree_origin *own = &s->tree.origin[tree_server_of(r->life)];
    if (own->life == r->life && own->number > r->outbox.after) commit_forget(s, own->number);
    if (s->lives) memset(s->live, 0, s->lives * sizeof *s->live);
    sessions_renew(s);
}

static void load(struct server *s, uint64_t index, uint64_t term) {
    struct replica *r = &s->replica;
    struct snapshots found = {.directory = s->data_directory, .path = s->settings.data_dir};
    struct raft_config config;
    struct raft_out out = {0};
    bool goes_on = index <= window_last(&r->log) && index >= r->raft.base &&
                   raft_term_of(&r->raft, index) == term;
    bool written = goes_on && r->raft.saved >= index; /* in the log, so that it can go on there */
    for (uint32_t i = 1; i <= s->connection_places; i++) /* they missed what changed */
        if (s->connection[i]) connection_end(s->connection[i]);
    if (data_load(&s->tree, &found, index, &term) != 0 || !members_of_tree(s, &config)) {
        server_say("error", "%s", found.message);
        _exit(SERVER_EXIT_DISK);
    }
    cv_assert(raft_installed(&r->raft, index, term, &config, &out));
    if (goes_on)
        window_trim(&r->log, index);
    else
        window_reset(&r->log, index);
    if (!written) log_reset(&s->log, index, term);
    r->applied = s->index_at_snapshot = index;
    r->applied_term = term;
    forget_what_is_in_it(s);
    peers_update(s);
    server_say("info", "a snapshot has come index=%llu nodes=%u", (unsigned long long)index,
               s->tree.nodes);
    replica_perform(s, &out);
}

static void chunk_came(struct server *s, const struct raft_message *m, const unsigned char *bytes,
                       size_t size) {
    struct install *install = install_of(s);
    struct receiving *from = &install->from;
    uint64_t term;
    bool same = install->receiving && from->index == m->index && from->size == m->entries_term;
    if (!same) {
        if (install->receiving) receiving_close(from);
        install->receiving = receiving_open(from, s->data_directory, s->settings.data_dir, m->index,
                                            m->entries_term) == 0;
    }
    bool failed =
        !install->receiving || receiving_add(from, m->other, bytes, size) == RECEIVING_FAILED;
    if (!failed && from->offset == from->size && !s->saving) { /* the log is not in use */
        failed = receiving_end(from, &term) != 0;
        if (!failed) {
            install->receiving = false;
            receiving_close(from);
            load(s, m->index, term);
            return;
        }
    }
    if (failed) { /* without an answer it comes again, but not at once */
        server_say("error", "a snapshot that is coming: %s", from->message);
        return;
    }
    struct raft_message answer = {.type = RAFT_CHUNKED,
                                  .from = s->replica.raft.self,
                                  .to = m->from,
                                  .term = s->replica.raft.term,
                                  .index = m->index,
                                  .other = from->offset};
    peers_send(s, &answer);
}

void install_message(struct server *s, const struct raft_message *m, const unsigned char *bytes,
                     size_t size) {
    if (m->type == RAFT_CHUNKED)
        chunk_answered(s, m);
    else
        chunk_came(s, m, bytes, size);
}
