/* How much memory entries may take: those that wait, and those that members may lack. */
#include "service/ensemble/internal.h"
#include "wire/net/link.h"

enum {
    UNAPPLIED_MAX = 64 << 20, /* bytes that a leader appends before some are applied */
    OUTBOX_MAX = 16 << 20,    /* bytes */
};

/* Buffers grow by doubling, and what was trimmed leaves them when it is half of them: each of the
 * parts may take four times what is in it. */
enum { UNAPPLIED_PART = 8, KEPT_PART = 8, OUTBOX_PART = 16, SHRINK_PART = 2 };

static size_t least_of(size_t a, size_t b) { return a < b ? a : b; }

void ensemble_limit_memory(struct ensemble *e, size_t bytes) { e->memory_max = bytes; }

size_t ensemble_memory(const struct ensemble *e) {
    size_t bytes = window_memory(&e->log) + window_memory(&e->outbox.entries) +
                   e->outbox.room * sizeof *e->outbox.proposal + e->disk.batch_copy.used;
    for (uint32_t id = 1; e->links && id <= SETTINGS_ID_MAX; id++)
        if (e->peer[id].linked) bytes += link_unsent(e->links, id);
    return bytes;
}

bool ensemble_is_full(const struct ensemble *e) {
    return window_bytes(&e->outbox.entries) > least_of(OUTBOX_MAX, e->memory_max / OUTBOX_PART);
}

static bool can_append(const struct ensemble *e, size_t more) {
    size_t unapplied = window_span(&e->log, e->applied_index + 1, e->raft.last_index);
    return ensemble_leads(e) && !e->raft.transferee &&
           unapplied <= least_of(UNAPPLIED_MAX, e->memory_max / UNAPPLIED_PART) + more;
}

bool ensemble_can_append(const struct ensemble *e) { return can_append(e, 0); }

/* What followers may have under way, with the last frame of each, is always taken: it would be long
 * until they forward it again. */
bool room_for_forwarded(const struct ensemble *e) {
    return can_append(e, (size_t)e->raft.config.count * 2 * FORWARDED_MAX);
}

/* A member that a snapshot or the log on disk is sent to needs more than one that lags a little. */
size_t room_for_kept(const struct ensemble *e) {
    size_t bytes = (size_t)e->settings->kept_bytes * (catch_up_is_active(e) ? 4 : 1);
    return least_of(bytes, e->memory_max / KEPT_PART);
}

void room_shrink(struct ensemble *e) {
    struct bytes *copy = &e->disk.batch_copy;
    size_t max = e->memory_max / SHRINK_PART;
    window_shrink(&e->log, max);
    window_shrink(&e->outbox.entries, max);
    if (copy->room > max && !e->disk.writing) bytes_shrink(copy);
}
