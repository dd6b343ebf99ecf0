/* A leader's help for members that need entries which are no longer in memory (RAFT_SNAPSHOT).
 *
 * Those entries come from the log on disk, read by a thread, as AppendEntries that the core does
 * not know of: it learns from the responses how far the member has come, and goes on from memory.
 * A member that needs what is not in the log any more gets a snapshot first. */
#include "service/ensemble/catch_up.h"

#include <stdlib.h>

#include "base/logger.h"

enum {
    BATCH = 256 << 10,    /* bytes of entries in one message */
    AGAIN_US = 2000000,   /* what was not answered for so long */
    LET_GO_US = 60000000, /* without a link for so long */
};

static struct catch_up *catch_up_of(struct ensemble *e) {
    if (!e->catch_up) e->catch_up = calloc(1, sizeof *e->catch_up);
    cv_assert(e->catch_up);
    return e->catch_up;
}

bool catch_up_is_active(const struct ensemble *e) {
    const struct catch_up *c = e->catch_up;
    for (unsigned id = 1; c && id <= MEMBER_ID_MAX; id++)
        if (c->snapshot[id].open || c->log[id].reader || c->log[id].job) return true;
    return false;
}

/* ---- Entries from the log ---- */

/* Begins anew at a position, or where the member says that it is. */
static void restart(struct from_log *to) {
    log_reader_close(to->reader);
    if (to->job) to->job->ensemble = NULL;
    *to = (struct from_log){.impossible = to->impossible};
}

static void read_log(uv_work_t *work) {
    struct log_job *job = work->data;
    if (!job->reader)
        job->reader =
            log_reader_open_after(job->directory, job->path, job->position, job->position_term);
    job->failed = !job->reader || log_reader_next(job->reader, job->last, BATCH, &job->batch,
                                                  &job->previous_term) != 0;
}

static void send_batch(struct ensemble *e, const struct log_job *job) {
    const struct raft *raft = &e->raft;
    const struct raft_batch *batch = &job->batch;
    struct from_log *to = &e->catch_up->log[job->id];
    struct raft_message m = {
        .type = RAFT_APPEND_ENTRIES, .from = raft->self, .to = job->id, .term = raft->term};
    m.append_entries =
        (struct raft_append_entries){.prev_log_index = batch->first - 1,
                                     .prev_log_term = job->previous_term,
                                     .leader_commit = raft->commit_index,
                                     .entries_term = batch->term,
                                     .round = raft->round,
                                     .entry_count = batch->count,
                                     .entry_kind = (uint8_t)batch->kind,
                                     .lease = raft->leases_enabled && !raft->lease_revoked};
    peers_send(e, &m, batch->bytes, batch->size);
    if (!to->sent_index) to->before_index = batch->first - 1;
    to->sent_index = raft_batch_last(batch);
    to->in_flight[to->count++] = to->sent_index;
}

static void log_was_read(uv_work_t *work, int status) {
    struct log_job *job = work->data;
    struct ensemble *e = job->ensemble;
    (void)status;
    if (!e || e->draining || !e->catch_up) {
        log_reader_close(job->reader);
        free(job);
        return;
    }
    struct from_log *to = &e->catch_up->log[job->id];
    clock_read(e->clock);
    to->job = NULL;
    to->reader = job->reader;
    if (!ensemble_leads(e) || job->term != e->raft.term) {
        restart(to);
    } else if (job->failed) {
        restart(to);
        to->impossible = true;
    } else if (job->batch.count) {
        if (!to->sent_index)
            logger_debug("a server gets entries from the log on disk",
                         LOGGER_INT("peer", member_number(job->id)),
                         LOGGER_UINT("first_index", job->batch.first));
        send_batch(e, job);
    }
    free(job);
    ensemble_wake(e);
}

static void begin_job(struct ensemble *e, uint8_t id, struct from_log *to) {
    struct log_job *job = calloc(1, sizeof *job);
    cv_assert(job);
    *job = (struct log_job){.ensemble = e,
                            .id = id,
                            .directory = e->disk.log_directory,
                            .path = e->settings->log_dir,
                            .position = to->position,
                            .position_term = to->position_term,
                            .last = e->raft.snapshot_index,
                            .term = e->raft.term,
                            .reader = to->reader};
    job->work.data = job;
    to->reader = NULL;
    to->job = job;
    uv_queue_work(e->loop, &job->work, read_log, log_was_read);
}

/* The core's heartbeats ask about an entry that the member does not have, so its responses say
 * where it is. */
static void send_entries(struct ensemble *e, uint8_t id, struct from_log *to) {
    uint64_t now = e->clock->monotonic_us;
    const struct raft_peer *peer = raft_find_peer(&e->raft, id);
    while (to->count && to->in_flight[0] <= peer->match_index) {
        to->before_index = to->in_flight[0];
        memmove(to->in_flight, to->in_flight + 1, --to->count * sizeof *to->in_flight);
        to->progress_us = now;
        to->agreed = true;
    }
    if (to->count && now - to->progress_us > AGAIN_US && !link_bulk_waits(e->links, id))
        restart(to);
    unsigned in_flight_max = to->agreed ? BATCHES_IN_FLIGHT : 1; /* the first is a probe */
    if (to->job || !to->position_term || to->count >= in_flight_max) return;
    if (to->sent_index >= e->raft.snapshot_index || !link_takes_bulk(e->links, id)) return;
    if (!to->count) to->progress_us = now;
    begin_job(e, id, to);
}

/* Whether entries after this one are under way; otherwise it was a heartbeat that said so. */
static bool is_in_flight(const struct from_log *to, uint64_t index) {
    bool is = to->sent_index && index == to->before_index;
    for (unsigned i = 0; i + 1 < to->count; i++) is |= index == to->in_flight[i];
    return is;
}

void catch_up_answered(struct ensemble *e, const struct raft_message *m) {
    const struct raft_append_entries_response *response = &m->append_entries_response;
    const struct raft_peer *peer = raft_find_peer(&e->raft, m->from);
    if (!ensemble_leads(e) || m->term != e->raft.term || !peer || peer->mode != RAFT_SNAPSHOT ||
        !response->rejected)
        return;
    struct from_log *to = &catch_up_of(e)->log[m->from];
    uint64_t refused = is_in_flight(to, response->rejected_index) ? response->rejected_index : 0;
    if (refused) restart(to);
    if (to->sent_index || to->job) return;
    if (refused) to->refused = refused;
    if (to->refused && response->match_index >= to->refused) return; /* the answer to a heartbeat */
    if (to->position != response->match_index) to->impossible = false;
    to->position = response->match_index;
    to->position_term = response->match_term ? response->match_term : 1;
}

/* ---- All ---- */

static void finish(struct catch_up *c, uint8_t id) {
    restart(&c->log[id]);
    c->log[id].impossible = false;
    catch_up_close_snapshot(&c->snapshot[id]);
}

void catch_up_advance(struct ensemble *e) {
    const struct raft *raft = &e->raft;
    uint64_t now = e->clock->monotonic_us;
    for (uint32_t i = 0; i < raft->config.count; i++) {
        uint8_t id = raft->config.at[i].id;
        bool wants = raft->role == RAFT_LEADER && id != raft->self && e->links &&
                     raft->peer[i].mode == RAFT_SNAPSHOT;
        if (!wants && !e->catch_up) continue;
        struct catch_up *c = catch_up_of(e);
        struct from_snapshot *snapshot = &c->snapshot[id];
        if (!wants) {
            finish(c, id);
            continue;
        }
        /* The member may have this much already, and still need more. */
        if (snapshot->open && snapshot->file.index <= raft->peer[i].match_index) finish(c, id);
        /* An open transfer holds a file and memory for entries (room_for_kept), which a member that
         * is lost or refused would take for as long as this server leads.  After a link that comes
         * back later it begins anew, with the newest snapshot. */
        if (e->peer[id].up)
            c->up_us[id] = now;
        else if (now - c->up_us[id] > LET_GO_US)
            finish(c, id);
        if (!e->peer[id].up) continue;
        if (c->log[id].impossible)
            catch_up_send_snapshot(e, id, snapshot);
        else
            send_entries(e, id, &c->log[id]);
    }
}

void catch_up_forget(struct ensemble *e, uint8_t id) {
    if (e->catch_up) finish(e->catch_up, id);
}

void catch_up_link_up(struct ensemble *e, uint8_t id) {
    if (!e->catch_up) return;
    restart(&e->catch_up->log[id]);
    e->catch_up->snapshot[id].sent = e->catch_up->snapshot[id].offset;
    e->catch_up->snapshot[id].answered = false;
}

void catch_up_close(struct ensemble *e) {
    struct catch_up *c = e->catch_up;
    for (unsigned id = 1; c && id <= MEMBER_ID_MAX; id++) finish(c, (uint8_t)id);
    if (c && c->verify) c->verify->ensemble = NULL;
    free(c);
    e->catch_up = NULL;
}
