/* Writing the log.
 *
 * A quick disk is waited for: a thread would take longer.  After a slow write a thread writes the
 * next batch, and everything else goes on meanwhile.  So it does when the batch begins a segment,
 * which is several syncs. */
#include <unistd.h>

#include "base/logger.h"
#include "service/ensemble/core.h"
#include "service/ensemble/internal.h"

enum {
    BATCH_MAX = 16 << 20,   /* bytes of one batch of the log */
    DEFERRED_MAX = 1 << 20, /* bytes that are committed and wait for more */
    GROUP_DELAY_US_MAX = 100,
};

static void write_batch(uv_work_t *work) {
    struct ensemble *e = work->data;
    uint64_t begun = uv_hrtime();
    e->disk.failed = log_append(&e->disk.log, &e->disk.batch) != 0;
    e->disk.write_us = (uv_hrtime() - begun) / 1000;
}

static void batch_durable(struct ensemble *e) {
    struct disk *d = &e->disk;
    struct raft_out out = {0};
    if (d->failed) {
        logger_error(
            "the log cannot be written, so the server stops; what was not acknowledged "
            "may be lost, nothing else is; make room on the disk or replace it, and start it again",
            LOGGER_STRING("reason", d->log.message));
        _exit(ENSEMBLE_EXIT_FAILED); /* nothing may be sent to anybody any more */
    }
    clock_read(e->clock);
    summary_add(&e->statistics.syncs, d->write_us, 1);
    e->statistics.log_bytes += d->batch.size;
    if (d->write_us > (uint64_t)e->settings->sync_warning_ms * 1000) {
        e->statistics.slow_syncs++;
        logger_warning("the disk is slow; writes wait for it",
                       LOGGER_UINT("duration_ms", d->write_us / 1000),
                       LOGGER_UINT("entries", d->batch.count));
    }
    core_entries_durable(e, raft_batch_last(&d->batch), d->batch.term, &out);
    ensemble_perform(e, &out, NULL);
}

static void thread_done(uv_work_t *work, int status) {
    struct ensemble *e = work->data;
    (void)status;
    e->disk.writing = false;
    if (e->draining) return; /* the links are gone, and so are the clients */
    batch_durable(e);
    ensemble_advance(e);
}

/* What was committed without this member is to be durable here too, but nobody waits for it. */
static bool may_be_deferred(const struct ensemble *e) {
    return e->raft.last_index <= e->raft.commit_index && !e->deferral_over && !e->draining &&
           window_span(&e->log, e->raft.durable_index + 1, e->raft.last_index) < DEFERRED_MAX;
}

static bool must_wait_for_room(const struct ensemble *e) {
    return !e->draining && !room_for_received(e);
}

bool disk_has_work(const struct ensemble *e) {
    return !e->disk.writing && e->raft.durable_index < e->raft.last_index && !may_be_deferred(e) &&
           !must_wait_for_room(e);
}

bool disk_write(struct ensemble *e) {
    struct disk *d = &e->disk;
    if (d->writing || e->raft.durable_index == e->raft.last_index || must_wait_for_room(e))
        return false;
    if (may_be_deferred(e)) {
        replicate_defer(e);
        return false;
    }
    window_read(&e->log, e->raft.durable_index + 1, BATCH_MAX, &d->batch);
    /* What a server alone has made durable is committed. */
    d->batch.commit_index =
        ensemble_is_standalone(e) ? raft_batch_last(&d->batch) : e->raft.commit_index;
    d->work.data = e;
    /* Until all members have this version, each of them can go back to the one before. */
    d->log.old_format = !ensemble_is_standalone(e) && !e->vote.ensemble_id;
    bool is_quick = d->write_us <= (uint64_t)e->settings->sync_wait_us &&
                    !log_begins_segment(&d->log, &d->batch);
    if (is_quick || e->draining) {
        enum busy_kind before = busy_with(e->busy, BUSY_DISK);
        write_batch(&d->work);
        busy_with(e->busy, before);
        batch_durable(e);
        return true;
    }
    d->batch_copy.used = 0; /* the window may move while the thread writes */
    bytes_add(&d->batch_copy, d->batch.bytes, d->batch.size);
    d->batch.bytes = d->batch_copy.at;
    d->writing = true;
    uv_queue_work(e->loop, &d->work, write_batch, thread_done);
    return false;
}

bool ensemble_delays_commit(struct ensemble *e, bool served_reads) {
    struct disk *d = &e->disk;
    uint64_t entries = e->raft.last_index - e->raft.durable_index + outbox_last(&e->outbox) -
                       e->forwarded_sequence;
    uint64_t now_us = uv_hrtime() / 1000;
    if (!entries || d->writing || e->draining || d->write_us > (uint64_t)e->settings->sync_wait_us)
        return false;
    if (d->delayed_entries) { /* until more have come, or the delay is over */
        if (entries == d->delayed_entries && now_us < d->delayed_until_us) return true;
        d->delayed_entries = 0;
        return false;
    }
    if (!served_reads) return false;
    uint64_t delay_us = d->write_us / 2;
    d->delayed_entries = entries;
    d->delayed_until_us = now_us + (delay_us < GROUP_DELAY_US_MAX ? delay_us : GROUP_DELAY_US_MAX);
    return true;
}
