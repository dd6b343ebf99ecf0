/* Work on files that nobody waits for, one at a time, by a thread: snapshots and segments that are
 * not needed any more are removed, and the next segment of the log is made ready.  All of it takes
 * from milliseconds to seconds, in which the loop goes on. */
#include "base/logger.h"
#include "service/ensemble/internal.h"
#include "service/log/snapshot.h"

/* ---- By the thread ---- */

/* The log is kept from an older snapshot on, in case newer ones cannot be read. */
static void remove_old(struct tidying *t) {
    struct snapshots found;
    size_t kept = 0;
    if (snapshots_list(&found, t->data_directory, t->data_path) != 0) return;
    while (kept < found.count && found.index[kept] >= t->base) kept++;
    if (!kept) return; /* nothing would be left to start from */
    snapshots_trim(&found, kept);
    log_remove(&t->removal);
}

static void tidy(uv_work_t *work) {
    struct tidying *t = work->data;
    if (t->kind == TIDY_REMOVES)
        remove_old(t);
    else
        spare_prepare(&t->spare);
}

static void tidied(uv_work_t *work, int status) {
    struct tidying *t = work->data;
    (void)status;
    t->running = false;
}

/* ---- By the loop ---- */

/* The log is told what the thread has done. */
static void settle(struct ensemble *e) {
    struct tidying *t = &e->disk.tidying;
    struct log *log = &e->disk.log;
    enum tidy_kind kind = t->kind;
    t->kind = TIDY_NOTHING;
    if (kind == TIDY_REMOVES) {
        log_removed(log, &t->removal);
        if (t->removal.error)
            logger_warning("old segments of the log cannot be removed; they only take room",
                           LOGGER_STRING("reason", log->message));
    } else if (kind == TIDY_PREPARES) {
        spare_take(log, &t->spare);
        if (t->spare.error && !e->draining)
            logger_warning("the next file of the log cannot be made ready ahead of need; it is "
                           "tried again later, and writes take longer until then",
                           LOGGER_STRING("file", SPARE_NAME),
                           LOGGER_STRING("reason", file_error(t->spare.error)));
    }
}

static bool begin_removal(struct ensemble *e) {
    struct tidying *t = &e->disk.tidying;
    if (!e->snapshotting.trim_index) return false;
    t->base = e->snapshotting.trim_index;
    t->data_directory = e->disk.data_directory;
    t->data_path = e->settings->data_dir;
    e->snapshotting.trim_index = 0;
    log_forget(&e->disk.log, t->base, &t->removal);
    t->kind = TIDY_REMOVES;
    return true;
}

static bool begin_spare(struct ensemble *e) {
    struct tidying *t = &e->disk.tidying;
    if (!spare_is_wanted(&e->disk.log, &t->spare)) return false;
    t->kind = TIDY_PREPARES;
    return true;
}

void tidy_advance(struct ensemble *e) {
    struct tidying *t = &e->disk.tidying;
    if (t->running || e->disk.writing || e->draining) return;
    settle(e);
    if (!begin_removal(e) && !begin_spare(e)) return;
    t->running = true;
    t->work.data = t;
    uv_queue_work(e->loop, &t->work, tidy, tidied);
}

void tidy_drain(struct ensemble *e) { atomic_store(&e->disk.tidying.spare.stop, true); }

void tidy_close(struct ensemble *e) { settle(e); }
