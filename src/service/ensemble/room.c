/* How much memory entries may take, those that wait and those that members may lack; and what
 * members say to each other when there is too little. */
#include "base/logger.h"
#include "service/ensemble/codec.h"
#include "service/ensemble/internal.h"
#include "wire/net/link.h"

enum {
    UNAPPLIED_MAX = 64 << 20, /* bytes that a leader appends before some are applied */
    OUTBOX_MAX = 16 << 20,    /* bytes */
};

/* Buffers grow by doubling, and what was trimmed leaves them when it is half of them: each of the
 * parts may take four times what is in it. */
enum { UNAPPLIED_PART = 8, KEPT_PART = 8, IN_FLIGHT_PART = 8, OUTBOX_PART = 16, SHRINK_PART = 2 };

static size_t least_of(size_t a, size_t b) { return a < b ? a : b; }

void ensemble_limit_memory(struct ensemble *e, size_t bytes) { e->memory_max = bytes; }

size_t ensemble_memory(const struct ensemble *e) {
    size_t bytes = window_memory(&e->log) + window_memory(&e->outbox.entries) +
                   e->outbox.room * sizeof *e->outbox.proposal + e->disk.batch_copy.used;
    for (uint32_t id = 1; e->links && id <= MEMBER_ID_MAX; id++)
        if (e->peer[id].linked) bytes += link_unsent(e->links, id);
    return bytes;
}

bool ensemble_is_full(const struct ensemble *e) {
    return window_bytes(&e->outbox.entries) > least_of(OUTBOX_MAX, e->memory_max / OUTBOX_PART);
}

static size_t unapplied_max(const struct ensemble *e) {
    return least_of(UNAPPLIED_MAX, e->memory_max / UNAPPLIED_PART);
}

static bool can_append(const struct ensemble *e, size_t more) {
    size_t unapplied = window_span(&e->log, e->applied_index + 1, e->raft.last_index);
    return ensemble_leads(e) && !e->raft.transferee && unapplied <= unapplied_max(e) + more;
}

bool ensemble_can_append(const struct ensemble *e) { return can_append(e, 0); }

/* What followers may have under way, with the last frame of each, is taken while this server
 * applies as quickly as they do.  If not, they are told when there is room again. */
bool room_for_forwarded(const struct ensemble *e) {
    return can_append(e, (size_t)e->raft.config.count * 2 * FORWARDED_MAX);
}

/* What is durable here is acknowledged, and the leader sends more: not before some of what is
 * committed is applied, if that is much, as all of it has to be kept until then. */
bool room_for_received(const struct ensemble *e) {
    return e->applied_index >= e->raft.commit_index ||
           window_span(&e->log, e->applied_index + 1, e->raft.durable_index) <= unapplied_max(e);
}

/* Members have as much memory as each other. */
size_t room_in_flight(const struct ensemble *e) {
    return least_of((size_t)e->settings->inflight_bytes, e->memory_max / IN_FLIGHT_PART);
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

/* ---- What members say to each other ---- */

static bool understands(const struct ensemble *e, uint8_t id) {
    return e->links && e->peer[id].up && link_version(e->links, id) >= CODEC_VERSION_MEMORY;
}

void room_tell(struct ensemble *e, uint8_t id) {
    if (understands(e, id)) peers_tell_memory(e, id);
}

void ensemble_tell_memory(struct ensemble *e, bool is_short) {
    if (e->memory_is_short == is_short) return;
    e->memory_is_short = is_short;
    for (uint32_t id = 1; id <= MEMBER_ID_MAX; id++) room_tell(e, (uint8_t)id);
}

void room_heard(struct ensemble *e, uint8_t from, bool is_short) {
    if (e->peer[from].memory_is_short == is_short) return;
    e->peer[from].memory_is_short = is_short;
    is_short ? e->short_members++ : e->short_members--;
    if (is_short)
        logger_warning("the memory of another server is short, so requests that need more are "
                       "refused here, too",
                       LOGGER_INT("server", member_number(from)));
    else
        logger_info("that server has enough memory again",
                    LOGGER_INT("server", member_number(from)));
}

bool ensemble_memory_is_short(const struct ensemble *e) {
    for (uint32_t id = 1; e->links && e->short_members && id <= MEMBER_ID_MAX; id++)
        if (e->peer[id].linked && e->peer[id].memory_is_short) return true;
    return false;
}

void room_ask_to_forward(struct ensemble *e) {
    if (!e->forwards_again || !room_for_forwarded(e)) return;
    e->forwards_again = false;
    for (uint32_t id = 1; id <= MEMBER_ID_MAX; id++) {
        if (!e->peer[id].forwards_again) continue;
        e->peer[id].forwards_again = false;
        if (understands(e, (uint8_t)id)) peers_ask_to_forward(e, (uint8_t)id);
    }
}
