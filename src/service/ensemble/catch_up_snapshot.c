/* InstallSnapshot, the sender's side.  A snapshot is read as a whole before it is sent, by a
 * thread: a damaged one would be refused at its end, again and again.  Chunks are in flight as the
 * link carries them; install.c is the receiver's side. */
#include "base/logger.h"
#include "service/ensemble/catch_up.h"

enum {
    CHUNK = 256 << 10,
    IN_FLIGHT_MAX = 4 << 20,  /* bytes */
    UNSENT_MAX = 1 << 20,     /* bytes, on links that do not say what they carry */
    AGAIN_US = 500000,        /* what was not answered for so long */
    AGAIN_TIMES = 8,          /* then it is asked whether the snapshot is damaged */
    UNREADABLE_US = 10000000, /* then one that cannot be read is tried again */
};

void catch_up_close_snapshot(struct from_snapshot *to) {
    if (to->open) sending_close(&to->file);
    *to = (struct from_snapshot){0};
}

/* ---- Verifying ---- */

static void verify(uv_work_t *work) {
    struct verify_job *job = work->data;
    unsigned char part[4096];
    struct snapshot_reader *reader = snapshot_open(&job->from, job->index, &job->term);
    while (reader && snapshot_read(reader, part, sizeof part) == 0) continue;
    job->good = reader && snapshot_close(reader) == 0;
    if (job->good || !reader) return;
    job->from.error = 0;
    snprintf(job->from.message, sizeof job->from.message, "%s: its checksum is wrong",
             job->from.path);
}

static void is_unreadable(struct ensemble *e, const char *reason) {
    logger_error("a snapshot that another server needs cannot be read; it is tried again in a "
                 "moment, and the server waits for it; check the disk",
                 LOGGER_STRING("reason", reason));
    e->catch_up->unreadable_until_us = e->clock->monotonic_us + UNREADABLE_US;
}

/* One that cannot be opened may be good, and one that cannot be renamed is found again.  If the one
 * that took its place is damaged too, there is no end to that. */
static void is_damaged(struct ensemble *e, const struct verify_job *job) {
    struct catch_up *c = e->catch_up;
    uint64_t now = e->clock->monotonic_us, before_us = c->damaged_us;
    bool replaced = !file_may_be_good(job->from.error) &&
                    snapshots_replace_damaged(e, job->index, job->from.message);
    c->damaged_us = now;
    if (!replaced || (before_us && now - before_us < UNREADABLE_US))
        is_unreadable(e, job->from.message);
}

static void verified(uv_work_t *work, int status) {
    struct verify_job *job = work->data;
    struct ensemble *e = job->ensemble;
    (void)status;
    if (e && !e->draining) {
        clock_read(e->clock);
        e->catch_up->verify = NULL;
        if (job->good) {
            e->catch_up->verified_index = job->index;
            e->catch_up->verified_term = job->term;
        } else {
            is_damaged(e, job);
        }
        ensemble_wake(e);
    }
    free(job);
}

static void begin_verifying(struct ensemble *e, const struct snapshots *found) {
    struct verify_job *job = calloc(1, sizeof *job);
    cv_assert(job);
    *job = (struct verify_job){.ensemble = e, .from = *found, .index = found->index[0]};
    job->work.data = job;
    e->catch_up->verify = job;
    uv_queue_work(e->loop, &job->work, verify, verified);
}

/* ---- Sending ---- */

/* Opens the newest snapshot, which the log on disk continues.  A new one is taken if the member has
 * that much, or if it is from before this was an ensemble, and names no members. */
static bool open_snapshot(struct ensemble *e, uint8_t id, struct from_snapshot *to) {
    struct catch_up *c = e->catch_up;
    struct snapshots found;
    if (c->verify || e->clock->monotonic_us < c->unreadable_until_us) return false;
    if (snapshots_list(&found, e->disk.data_directory, e->settings->data_dir) != 0 ||
        !found.count || found.index[0] <= raft_find_peer(&e->raft, id)->match_index ||
        found.index[0] < e->first_members_index) {
        snapshots_take(e, true);
        return false;
    }
    if (found.index[0] != c->verified_index) {
        begin_verifying(e, &found);
        return false;
    }
    to->term = c->verified_term;
    to->open = sending_open(&to->file, &found, found.index[0]) == 0;
    e->statistics.snapshots_sent += to->open;
    to->progress_us = e->clock->monotonic_us;
    if (!to->open) is_unreadable(e, found.message);
    return to->open;
}

/* False: it can no longer be read. */
static bool send_chunk(struct ensemble *e, uint8_t id, struct from_snapshot *to) {
    unsigned char *bytes = malloc(CHUNK);
    cv_assert(bytes);
    long size = sending_read(&to->file, to->sent, bytes, CHUNK);
    if (size < 0) is_unreadable(e, strerror(errno));
    if (!size && to->sent < to->file.size) {
        is_unreadable(e, "the file has become shorter");
        size = -1;
    }
    struct raft_message m = {.type = RAFT_INSTALL_SNAPSHOT,
                             .from = e->raft.self,
                             .to = id,
                             .term = e->raft.term,
                             .install_snapshot = {.last_included_index = to->file.index,
                                                  .last_included_term = to->term,
                                                  .offset = to->sent,
                                                  .file_size = to->file.size}};
    if (size >= 0) {
        peers_send(e, &m, bytes, (size_t)size);
        to->sent += (uint64_t)size;
        to->asked = true;
    }
    free(bytes);
    return size >= 0;
}

/* The first answer says where an earlier attempt has come to. */
static bool may_send(const struct ensemble *e, uint8_t id, const struct from_snapshot *to) {
    uint64_t in_flight = to->sent - to->offset;
    if (!to->answered) return !to->asked;
    return to->sent < to->file.size && in_flight < IN_FLIGHT_MAX && link_takes_bulk(e->links, id) &&
           link_unsent(e->links, id) < UNSENT_MAX;
}

void catch_up_send_snapshot(struct ensemble *e, uint8_t id, struct from_snapshot *to) {
    uint64_t now = e->clock->monotonic_us;
    if (!to->open && !open_snapshot(e, id, to)) return;
    bool good = true;
    while (good && may_send(e, id, to)) good = send_chunk(e, id, to);
    if (good && now - to->progress_us > AGAIN_US && !link_bulk_waits(e->links, id)) {
        to->progress_us = now;
        to->sent = to->offset;
        good = ++to->repeats < AGAIN_TIMES &&
               send_chunk(e, id, to); /* an empty one if it has all: it may be busy */
    }
    if (good) return;
    catch_up_close_snapshot(to);
    e->catch_up->verified_index = 0; /* what is wrong with it will be found */
}

void catch_up_chunk_answered(struct ensemble *e, const struct raft_message *m) {
    const struct raft_install_snapshot_response *response = &m->install_snapshot_response;
    struct from_snapshot *to = e->catch_up ? &e->catch_up->snapshot[m->from] : NULL;
    if (!to || !to->open || to->file.index != response->last_included_index ||
        response->next_offset > to->file.size)
        return;
    if (response->next_offset != to->offset || !to->answered) {
        to->progress_us = e->clock->monotonic_us;
        to->repeats = 0;
    }
    if (response->next_offset < to->offset) { /* it has discarded what it had: is that damaged? */
        catch_up_close_snapshot(to);
        e->catch_up->verified_index = 0;
    } else {
        to->answered = true;
        to->offset = response->next_offset;
        if (to->sent < to->offset) to->sent = to->offset;
    }
    ensemble_wake(e);
}
