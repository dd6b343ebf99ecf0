#include "raft/window.h"

static bool has_nature(uint64_t term, enum raft_kind kind) {
    return term <= UINT64_MAX >> 1 && (kind == RAFT_NORMAL || kind == RAFT_CONFIG);
}

static uint64_t nature_of(uint64_t term, enum raft_kind kind) {
    cv_assert(has_nature(term, kind));
    return term << 1 | (kind == RAFT_CONFIG);
}

static enum raft_kind kind_of(uint64_t nature) { return nature & 1 ? RAFT_CONFIG : RAFT_NORMAL; }

/* ---- Opening ---- */

static void make_room(struct window *w, size_t more) {
    w->place = grown(w->place, &w->room, w->forgotten + w->count + more + 1, sizeof *w->place);
}

static struct window_place *places(const struct window *w) { return w->place + w->forgotten; }

void window_open(struct window *w, uint64_t after) {
    *w = (struct window){.after = after};
    make_room(w, 0);
    places(w)[0].begin = 0;
}

void window_close(struct window *w) {
    free(w->place);
    bytes_close(&w->bytes);
    *w = (struct window){0};
}

void window_reset(struct window *w, uint64_t after) {
    w->after = after;
    w->count = w->forgotten = w->gone = w->bytes.used = 0;
    w->base = places(w)[0].begin = 0;
}

/* ---- At the end ---- */

static const unsigned char *byte_at(const struct window *w, uint64_t begin) {
    return w->bytes.at + (begin - w->base);
}

static void drop_from(struct window *w, uint64_t first) {
    w->count = (size_t)(first - 1 - w->after);
    w->bytes.used = (size_t)(places(w)[w->count].begin - w->base);
}

static bool is_whole(const struct raft_batch *batch) {
    struct raft_entry entry;
    size_t at = 0;
    uint32_t count = 0;
    if (!has_nature(batch->term, batch->kind)) return false;
    if (batch->kind == RAFT_CONFIG && batch->count > 1) return false;
    while (raft_next(batch, &at, &entry)) count++;
    return at == batch->size && count == batch->count;
}

bool window_append(struct window *w, const struct raft_batch *batch) {
    cv_assert(batch->first > w->after && batch->first <= window_last(w) + 1);
    if (!is_whole(batch)) return false;
    drop_from(w, batch->first);
    make_room(w, batch->count);
    uint64_t nature = nature_of(batch->term, batch->kind);
    struct window_place *place = places(w) + w->count;
    struct raft_entry entry;
    uint64_t begin = place->begin;
    for (size_t at = 0; raft_next(batch, &at, &entry);) {
        place->nature = nature;
        (++place)->begin = begin + at;
    }
    bytes_add(&w->bytes, batch->bytes, batch->size);
    w->count += batch->count;
    return true;
}

unsigned char *window_room(struct window *w, size_t most) {
    return bytes_reserve(&w->bytes, RAFT_SIZE_BYTES + most) + RAFT_SIZE_BYTES;
}

uint64_t window_add(struct window *w, uint64_t term, enum raft_kind kind, size_t size) {
    uint32_t stored = (uint32_t)size;
    cv_assert(stored == size);
    memcpy(bytes_extend(&w->bytes, RAFT_SIZE_BYTES + size), &stored, sizeof stored);
    make_room(w, 1);
    struct window_place *place = places(w) + w->count++;
    place->nature = nature_of(term, kind);
    place[1].begin = place->begin + RAFT_SIZE_BYTES + size;
    return window_last(w);
}

/* ---- At the beginning ---- */

/* What is left is moved when it is less than what is gone: so each byte is moved less than once on
 * average. */
static void move_up(struct window *w) {
    size_t left = window_bytes(w);
    if (left < w->gone) {
        memmove(w->bytes.at, w->bytes.at + w->gone, left);
        w->base += w->gone;
        w->bytes.used = left;
        w->gone = 0;
    }
    if (w->count + 1 < w->forgotten) {
        memmove(w->place, places(w), (w->count + 1) * sizeof *w->place);
        w->forgotten = 0;
    }
}

void window_trim(struct window *w, uint64_t index) {
    if (index <= w->after) return;
    cv_assert(index <= window_last(w));
    size_t fewer = (size_t)(index - w->after);
    w->after = index;
    w->count -= fewer;
    w->forgotten += fewer;
    w->gone = (size_t)(places(w)[0].begin - w->base);
    move_up(w);
}

/* ---- Looking ---- */

static struct window_place *place_of(const struct window *w, uint64_t index) {
    cv_assert(index > w->after && index <= window_last(w));
    return places(w) + (index - w->after - 1);
}

void window_entry(const struct window *w, uint64_t index, struct raft_entry *entry) {
    const struct window_place *place = place_of(w, index);
    *entry = (struct raft_entry){.index = index,
                                 .term = place->nature >> 1,
                                 .kind = kind_of(place->nature),
                                 .bytes = byte_at(w, place->begin) + RAFT_SIZE_BYTES,
                                 .size = (size_t)(place[1].begin - place->begin) - RAFT_SIZE_BYTES};
}

void window_read(const struct window *w, uint64_t index, size_t bytes_max,
                 struct raft_batch *batch) {
    const struct window_place *first = place_of(w, index), *end = places(w) + w->count;
    const struct window_place *next = first + 1;
    if (kind_of(first->nature) == RAFT_NORMAL)
        while (next < end && next->nature == first->nature &&
               next[1].begin - first->begin <= bytes_max)
            next++;
    *batch = (struct raft_batch){.first = index,
                                 .term = first->nature >> 1,
                                 .count = (uint32_t)(next - first),
                                 .kind = kind_of(first->nature),
                                 .bytes = byte_at(w, first->begin),
                                 .size = (size_t)(next->begin - first->begin)};
}

size_t window_span(const struct window *w, uint64_t first, uint64_t last) {
    if (first > last) return 0;
    return (size_t)(place_of(w, last)[1].begin - place_of(w, first)->begin);
}
