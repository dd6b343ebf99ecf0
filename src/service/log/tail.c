/* What the end of a segment is: whole, torn by a crash, or damaged.
 *
 * A batch is written only after the one before it was durable, so a crash leaves at most one that
 * is not complete, and nobody was told that it was done.  It is recognized by what is missing:
 * disks write sectors, and one that was never written still holds the zeros of the new file.  A
 * batch that has all of its sectors and a wrong checksum was written in full, and whether it was
 * acknowledged before it was damaged cannot be known: so it may have been. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "service/log/internal.h"

__attribute__((format(printf, 3, 4))) static void judged(struct tail *tail, enum log_state state,
                                                         const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(tail->what, sizeof tail->what, format, arguments);
    va_end(arguments);
    tail->state = state;
}

static void raise(uint64_t *last, const struct raft_batch *batch) {
    if (batch->count && raft_batch_last(batch) > *last) *last = raft_batch_last(batch);
}

/* ---- Batches after the damage ---- */

struct later {       /* than what is damaged */
    bool batch;      /* a good batch is there */
    unsigned header; /* this many batches have at least a good header */
};

static struct later look_further(struct segment_view *view, uint64_t offset, uint64_t *last) {
    struct later found = {0};
    struct batch_place place;
    struct raft_batch batch;
    uint64_t end;
    while ((offset = segment_next_magic(view, offset + 8)) < view->size) {
        if (segment_batch(view, offset, &batch, &end)) {
            raise(last, &batch);
            found.batch = true;
        } else if (!segment_is_old(view) && segment_batch_place(view, offset, &place)) {
            raise(last, &place.batch);
            found.header++;
        }
    }
    return found;
}

/* ---- One batch ---- */

static uint32_t zero_sectors(struct segment_view *view, uint64_t offset, uint64_t end) {
    uint32_t count = 0;
    for (uint64_t next; offset < end; offset = next) {
        next = offset - offset % SECTOR + SECTOR;
        if (next > end) next = end;
        count += segment_is_zero(view, offset, next);
    }
    return count;
}

/* Whether a part of the batch was never written. */
static bool is_incomplete(struct segment_view *view, uint64_t offset,
                          const struct batch_place *place) {
    uint64_t end = place->end < view->size ? place->end : view->size;
    bool has_no_end = !segment_is_old(view) && segment_is_zero(view, end - 8, end);
    return has_no_end || zero_sectors(view, offset, end) > place->zero_sectors;
}

/* The same where there is no good header: it lacks its first word or its last, or nothing of the
 * batch comes after it, not even the end mark. */
static bool header_is_incomplete(struct segment_view *view, uint64_t offset) {
    uint32_t first, last;
    uint64_t end = segment_header_ends(view, offset, &first, &last);
    return !first || !last || (!segment_is_old(view) && segment_is_zero(view, end, view->size));
}

static void judge_batch(struct segment_view *view, uint64_t offset, struct tail *tail) {
    static const char torn[] =
        "the last batch, at offset %" PRIu64
        ", was never completed, as a crash leaves it before it is acknowledged";
    struct batch_place place;
    bool is_cut =
        header_is_incomplete(view, offset); /* of version 2 it may look good all the same */
    if (!segment_batch_place(view, offset, &place) || (is_cut && segment_is_old(view))) {
        if (is_cut)
            judged(tail, LOG_TORN, torn, offset);
        else
            judged(tail, LOG_END_DAMAGED,
                   "what is at offset %" PRIu64 " was written and is no batch", offset);
        return;
    }
    raise(&tail->last, &place.batch);
    if (place.end < view->size && !segment_is_zero(view, place.end, view->size))
        judged(tail, LOG_END_DAMAGED,
               "the batch at offset %" PRIu64 " is damaged, and so is what was written after it",
               offset);
    else if (is_incomplete(view, offset, &place))
        judged(tail, LOG_TORN, torn, offset);
    else
        judged(tail, LOG_END_DAMAGED,
               "the last batch, at offset %" PRIu64 ", was written in full and is damaged", offset);
}

/* ---- The end ---- */

void tail_judge(struct segment_view *view, const struct log_end *end, bool is_last,
                uint64_t durable_end, struct tail *tail) {
    uint64_t offset = end->offset;
    bool is_short = view->size < view->header.size;
    *tail = (struct tail){.state = LOG_WHOLE, .last = end->next_index - 1};
    bool is_zero = segment_is_zero(view, offset, view->size);
    if (is_zero && is_last && is_short)
        judged(tail, LOG_END_DAMAGED,
               "the file ends at offset %" PRIu64 " instead of %" PRIu64 ": it was cut short",
               view->size, view->header.size);
    else if (is_zero && is_last && durable_end > offset)
        judged(tail, LOG_END_DAMAGED, "nothing is at offset %" PRIu64 ", where a batch was durable",
               offset);
    if (is_zero) return;
    struct later later = look_further(view, offset, &tail->last);
    if (!is_last || later.batch)
        judged(tail, LOG_DAMAGED, "damaged at offset %" PRIu64 " (entry %" PRIu64 ")", offset,
               end->next_index);
    else if (later.header)
        judged(tail, LOG_END_DAMAGED,
               "the last %u batches, from offset %" PRIu64 " on, are damaged", later.header + 1,
               offset);
    else if (durable_end > offset)
        judged(tail, LOG_END_DAMAGED, "what is at offset %" PRIu64 " is damaged, and was durable",
               offset);
    else
        judge_batch(view, offset, tail);
    if (is_short && tail->state == LOG_TORN)
        judged(tail, LOG_END_DAMAGED,
               "the file ends at offset %" PRIu64 " instead of %" PRIu64 ": it was cut short",
               view->size, view->header.size);
    if (view->error && tail->state != LOG_WHOLE) {
        size_t used = strlen(tail->what);
        snprintf(tail->what + used, sizeof tail->what - used,
                 " (offset %" PRIu64 " cannot be read: %s)", view->error_offset,
                 strerror(view->error));
    }
}
