#include "service/log/window.h"

static bool fits_term_kind(uint64_t term, enum raft_kind kind) {
    return term <= UINT64_MAX >> 1 && (kind == RAFT_NORMAL || kind == RAFT_CONFIG);
}

static uint64_t term_kind_of(uint64_t term, enum raft_kind kind) {
    cv_assert(fits_term_kind(term, kind));
    return term << 1 | (kind == RAFT_CONFIG);
}

static enum raft_kind kind_of(uint64_t term_kind) {
    return term_kind & 1 ? RAFT_CONFIG : RAFT_NORMAL;
}

/* ---- Opening ---- */

static void make_room(struct window *w, size_t more) {
    w->slot =
        grown(w->slot, &w->slot_room, w->trimmed_slots + w->count + more + 1, sizeof *w->slot);
}

static struct window_slot *slots(const struct window *w) { return w->slot + w->trimmed_slots; }

void window_open(struct window *w, uint64_t after) {
    *w = (struct window){.after = after};
    make_room(w, 0);
    slots(w)[0].begin = 0;
}

void window_close(struct window *w) {
    free(w->slot);
    bytes_close(&w->bytes);
    *w = (struct window){0};
}

void window_reset(struct window *w, uint64_t after) {
    w->after = after;
    w->count = w->trimmed_slots = w->trimmed_bytes = w->bytes.used = 0;
    w->bytes_begin = slots(w)[0].begin = 0;
}

/* ---- At the end ---- */

static const unsigned char *byte_at(const struct window *w, uint64_t begin) {
    return w->bytes.at + (begin - w->bytes_begin);
}

static void drop_from(struct window *w, uint64_t first) {
    w->count = (size_t)(first - 1 - w->after);
    w->bytes.used = (size_t)(slots(w)[w->count].begin - w->bytes_begin);
}

static bool is_whole(const struct raft_batch *batch) {
    struct raft_entry entry;
    size_t at = 0;
    uint32_t count = 0;
    if (!fits_term_kind(batch->term, batch->kind)) return false;
    if (batch->kind == RAFT_CONFIG && batch->count > 1) return false;
    while (raft_next(batch, &at, &entry)) count++;
    return at == batch->size && count == batch->count;
}

bool window_append(struct window *w, const struct raft_batch *batch) {
    cv_assert(batch->first > w->after && batch->first <= window_last(w) + 1);
    if (!is_whole(batch)) return false;
    drop_from(w, batch->first);
    make_room(w, batch->count);
    uint64_t term_kind = term_kind_of(batch->term, batch->kind);
    struct window_slot *slot = slots(w) + w->count;
    struct raft_entry entry;
    uint64_t begin = slot->begin;
    for (size_t at = 0; raft_next(batch, &at, &entry);) {
        slot->term_kind = term_kind;
        (++slot)->begin = begin + at;
    }
    bytes_add(&w->bytes, batch->bytes, batch->size);
    w->count += batch->count;
    return true;
}

unsigned char *window_room(struct window *w, size_t max_size) {
    return bytes_reserve(&w->bytes, RAFT_SIZE_BYTES + max_size) + RAFT_SIZE_BYTES;
}

uint64_t window_add(struct window *w, uint64_t term, enum raft_kind kind, size_t size) {
    uint32_t stored = (uint32_t)size;
    cv_assert(stored == size);
    memcpy(bytes_extend(&w->bytes, RAFT_SIZE_BYTES + size), &stored, sizeof stored);
    make_room(w, 1);
    struct window_slot *slot = slots(w) + w->count++;
    slot->term_kind = term_kind_of(term, kind);
    slot[1].begin = slot->begin + RAFT_SIZE_BYTES + size;
    return window_last(w);
}

/* ---- At the beginning ---- */

/* Moves the rest to the front when it is smaller than what was trimmed: so each byte is moved less
 * than once on average. */
static void compact(struct window *w) {
    size_t left = window_bytes(w);
    if (left < w->trimmed_bytes) {
        memmove(w->bytes.at, w->bytes.at + w->trimmed_bytes, left);
        w->bytes_begin += w->trimmed_bytes;
        w->bytes.used = left;
        w->trimmed_bytes = 0;
    }
    if (w->count + 1 < w->trimmed_slots) {
        memmove(w->slot, slots(w), (w->count + 1) * sizeof *w->slot);
        w->trimmed_slots = 0;
    }
}

void window_trim(struct window *w, uint64_t index) {
    if (index <= w->after) return;
    cv_assert(index <= window_last(w));
    size_t trimmed = (size_t)(index - w->after);
    w->after = index;
    w->count -= trimmed;
    w->trimmed_slots += trimmed;
    w->trimmed_bytes = (size_t)(slots(w)[0].begin - w->bytes_begin);
    compact(w);
}

void window_shrink(struct window *w, size_t max) {
    if (w->bytes.room > max) bytes_shrink(&w->bytes);
    if (w->slot_room * sizeof *w->slot > max)
        w->slot = shrunk(w->slot, &w->slot_room, w->trimmed_slots + w->count + 1, sizeof *w->slot);
}

/* ---- Reading ---- */

static struct window_slot *slot_of(const struct window *w, uint64_t index) {
    cv_assert(index > w->after && index <= window_last(w));
    return slots(w) + (index - w->after - 1);
}

void window_entry(const struct window *w, uint64_t index, struct raft_entry *entry) {
    const struct window_slot *slot = slot_of(w, index);
    *entry = (struct raft_entry){.index = index,
                                 .term = slot->term_kind >> 1,
                                 .kind = kind_of(slot->term_kind),
                                 .bytes = byte_at(w, slot->begin) + RAFT_SIZE_BYTES,
                                 .size = (size_t)(slot[1].begin - slot->begin) - RAFT_SIZE_BYTES};
}

void window_read(const struct window *w, uint64_t index, size_t bytes_max,
                 struct raft_batch *batch) {
    const struct window_slot *first = slot_of(w, index), *end = slots(w) + w->count;
    const struct window_slot *next = first + 1;
    if (kind_of(first->term_kind) == RAFT_NORMAL)
        while (next < end && next->term_kind == first->term_kind &&
               next[1].begin - first->begin <= bytes_max)
            next++;
    *batch = (struct raft_batch){.first = index,
                                 .term = first->term_kind >> 1,
                                 .count = (uint32_t)(next - first),
                                 .kind = kind_of(first->term_kind),
                                 .bytes = byte_at(w, first->begin),
                                 .size = (size_t)(next->begin - first->begin)};
}

size_t window_span(const struct window *w, uint64_t first, uint64_t last) {
    if (first > last) return 0;
    return (size_t)(slot_of(w, last)[1].begin - slot_of(w, first)->begin);
}
