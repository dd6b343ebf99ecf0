#include "service/log/salvage.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/grow.h"
#include "service/log/internal.h"

struct salvage_scan {
    uint64_t next;              /* the log held no entry from here on, as far as is known */
    uint64_t start, start_term; /* the entry before those of the segments, and its term */
    bool uncertain;             /* something unknown was written after the last piece ... */
    uint64_t certain_commit;    /* ... which replaced nothing up to here */
    uint64_t vote_term;
};

/* ---- Pieces ---- */

static uint64_t last_of(const struct salvage_piece *p) { return p->first + p->count - 1; }

static struct salvage_piece *push(struct salvage *s, struct salvage_piece piece) {
    s->piece = grown(s->piece, &s->room, s->pieces + 1, sizeof *s->piece);
    s->piece[s->pieces] = piece;
    return &s->piece[s->pieces++];
}

static void push_hole(struct salvage *s, uint64_t first, uint64_t last, uint64_t term) {
    if (first <= last)
        push(s, (struct salvage_piece){.first = first, .count = last - first + 1, .term = term});
}

static void insert(struct salvage *s, size_t at, struct salvage_piece rest) {
    if (!rest.count) return;
    push(s, rest);
    memmove(s->piece + at + 1, s->piece + at, (s->pieces - 1 - at) * sizeof *s->piece);
    s->piece[at] = rest;
}

/* A part of a piece, or nothing of it. */
static struct salvage_piece clipped(const struct salvage_piece *p, uint64_t first, uint64_t last) {
    struct salvage_piece part = *p;
    if (first > part.first) part.first = first;
    if (last > last_of(p)) last = last_of(p);
    part.count = last < part.first ? 0 : last - part.first + 1;
    return part;
}

/* All entries from an index on may have been replaced. */
static void keep_dropped(struct salvage *s, uint64_t index) {
    for (size_t i = s->pieces; i-- > 0 && last_of(&s->piece[i]) >= index;) {
        if (!s->piece[i].intact) continue;
        s->dropped = grown(s->dropped, &s->dropped_room, s->dropped_count + 1, sizeof *s->dropped);
        s->dropped[s->dropped_count++] = clipped(&s->piece[i], index, UINT64_MAX);
    }
}

/* Drops all entries from an index on. */
static void truncate_at(struct salvage *s, uint64_t index) {
    while (s->pieces && s->piece[s->pieces - 1].first >= index) s->pieces--;
    struct salvage_piece *end = s->pieces ? &s->piece[s->pieces - 1] : NULL;
    if (end && last_of(end) >= index) end->count = index - end->first;
}

static struct salvage_piece *find(const struct salvage *s, uint64_t index) {
    size_t low = 0, high = s->pieces;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (last_of(&s->piece[middle]) < index)
            low = middle + 1;
        else
            high = middle;
    }
    return low < s->pieces && s->piece[low].first <= index ? &s->piece[low] : NULL;
}

static uint64_t known_term(const struct salvage *s, uint64_t index) {
    const struct salvage_piece *p = find(s, index);
    if (p) return p->term;
    return index == s->scan->start ? s->scan->start_term : 0;
}

/* ---- What was written ---- */

static void note(struct salvage *s, size_t segment, const char *what, uint64_t offset) {
    char name[SEGMENT_NAME_SIZE];
    s->damaged[segment] = true;
    if (*s->what) return;
    snprintf(s->what, sizeof s->what, "%s/%s: %s (offset %" PRIu64 ", after entry %" PRIu64 ")",
             s->log.path, segment_name(name, s->log.segment[segment].sequence), what, offset,
             s->scan->next - 1);
}

static void become_uncertain(struct salvage *s) {
    if (!s->scan->uncertain) s->scan->certain_commit = s->commit_index;
    s->scan->uncertain = true;
}

/* The entry of that term at `index` comes next, after something unknown.  What was unknown may have
 * replaced what came before it. */
static void confirm(struct salvage *s, uint64_t index, uint64_t term) {
    struct salvage_scan *scan = s->scan;
    uint64_t limit = scan->certain_commit > s->after ? scan->certain_commit : s->after;
    for (size_t i = s->pieces; term && i-- > 0;) {
        const struct salvage_piece *p = &s->piece[i];
        if (p->term != term || p->first >= index) continue;
        uint64_t same = last_of(p) < index ? last_of(p) : index - 1;
        if (same > limit) limit = same;
        break;
    }
    if (scan->start < index && term && scan->start_term == term && scan->start > limit)
        limit = scan->start;
    if (limit >= index) limit = index - 1;
    if (limit >= scan->next) limit = scan->next - 1;
    keep_dropped(s, limit + 1);
    truncate_at(s, limit + 1);
    uint64_t first = s->pieces ? salvage_last(s) + 1 : limit + 1;
    push_hole(s, first, index - 1, 0);
    scan->uncertain = false;
    scan->next = index;
}

/* The log had that entry when the next one was written, whatever it was. */
static void add_known(struct salvage *s, uint64_t index, uint64_t term) {
    if (!index || (index < s->scan->next && known_term(s, index) == term)) {
        truncate_at(s, index + 1); /* with it all before it are confirmed */
    } else {
        become_uncertain(s);
        confirm(s, index, term);
        truncate_at(s, index);
        push_hole(s, index, index, term);
    }
    s->scan->uncertain = false;
    s->scan->next = index + 1;
}

static void add(struct salvage *s, const struct raft_batch *batch, uint64_t previous_term,
                bool intact, uint64_t sequence, uint64_t offset) {
    struct salvage_scan *scan = s->scan;
    if (batch->first > scan->next) become_uncertain(s);
    if (scan->uncertain && previous_term) add_known(s, batch->first - 1, previous_term);
    if (scan->uncertain) confirm(s, batch->first, batch->term);
    uint64_t before = batch->first > 1 ? known_term(s, batch->first - 1) : 0;
    if (batch->first <= s->commit_index && batch->first < scan->next) s->illogical = true;
    if (before > batch->term) s->illogical = true;
    truncate_at(s, batch->first);
    push(s, (struct salvage_piece){.first = batch->first,
                                   .count = batch->count,
                                   .term = batch->term,
                                   .intact = intact,
                                   .sequence = sequence,
                                   .offset = offset});
    scan->next = batch->first + batch->count;
    uint64_t commit = batch->commit_index < scan->next ? batch->commit_index : scan->next - 1;
    if (commit > s->commit_index) s->commit_index = commit;
}

/* The log ended with that entry here, says the header of a segment. */
static void add_header(struct salvage *s, const struct segment_header *header) {
    add_known(s, header->next_index - 1, header->term);
    if (header->commit_index > s->commit_index) s->commit_index = header->commit_index;
}

/* ---- Segments ---- */

static bool is_sane(const struct raft_batch *batch) {
    return batch->count && batch->first && batch->term && batch->first <= LOG_INDEX_MAX &&
           (batch->kind == RAFT_NORMAL || (batch->kind == RAFT_CONFIG && batch->count == 1)) &&
           batch->size / RAFT_SIZE_BYTES >= batch->count;
}

static bool known_place(struct segment_view *view, uint64_t offset, struct batch_place *place) {
    return !segment_is_old(view) && segment_batch_place(view, offset, place) &&
           is_sane(&place->batch);
}

/* The next place at which there is a batch, or at least its header. */
static uint64_t next_known(struct segment_view *view, uint64_t offset) {
    struct raft_batch batch;
    struct batch_place place;
    uint64_t end;
    while ((offset = segment_next_magic(view, offset + 8)) < view->size)
        if (segment_batch(view, offset, &batch, &end) || known_place(view, offset, &place)) break;
    return offset;
}

static enum log_state judge_tail(struct salvage *s, struct segment_view *view, uint64_t offset,
                                 struct tail *tail) {
    struct log_end end = {.next_index = s->scan->next, .offset = offset};
    tail_judge(view, &end, true, log_durable_end(&s->log, &view->header), tail);
    return tail->state;
}

/* Reads its batches; returns where they end. */
static uint64_t scan_batches(struct salvage *s, struct segment_view *view, size_t segment,
                             bool is_last, bool *torn) {
    struct raft_batch batch;
    struct batch_place place;
    struct tail tail;
    uint64_t sequence = view->header.sequence, offset = view->begin, next;
    while (offset < view->size) {
        if (segment_batch(view, offset, &batch, &next) && is_sane(&batch)) {
            segment_batch_place(view, offset, &place);
            add(s, &batch, place.previous_term, true, sequence, offset);
            offset = next;
        } else if (known_place(view, offset, &place)) {
            bool at_end = place.end >= view->size || segment_is_zero(view, place.end, view->size);
            *torn = is_last && at_end && judge_tail(s, view, offset, &tail) == LOG_TORN;
            if (*torn) break;
            note(s, segment, "a batch is damaged", offset);
            add(s, &place.batch, place.previous_term, false, sequence, offset);
            offset = place.end;
        } else if ((next = next_known(view, offset)) < view->size) {
            note(s, segment, "it is damaged", offset);
            become_uncertain(s);
            offset = next;
        } else {
            break;
        }
    }
    return offset;
}

/* The last entries before the end are damaged, and no header is left.  If the last that is known is
 * of the newest term that this server has seen, then so are they; the mark says how many. */
static void bound_tail(struct salvage *s, struct segment_view *view) {
    const struct log_mark *mark = &s->log.mark;
    struct salvage_scan *scan = s->scan;
    uint64_t term = scan->next > 1 ? known_term(s, scan->next - 1) : 0;
    s->tail_lost = true;
    if (!term || term != scan->vote_term || mark->next_index <= scan->next) return;
    if (!view || mark->sequence != view->header.sequence || mark->key != view->header.key) return;
    push_hole(s, scan->next, mark->next_index - 1, term);
    scan->next = mark->next_index;
    bool is_short = view->size < view->header.size;
    s->tail_lost = is_short || !segment_is_zero(view, mark->offset, view->size);
}

static void scan_last(struct salvage *s, struct segment_view *view, size_t segment,
                      uint64_t offset) {
    struct tail tail;
    if (judge_tail(s, view, offset, &tail) == LOG_WHOLE || tail.state == LOG_TORN) return;
    note(s, segment, "its end is damaged", offset);
    become_uncertain(s);
    bound_tail(s, view);
    s->scan->uncertain = false;
}

/* -1: a segment cannot be opened, and may be good. */
static int scan_segments(struct salvage *s, size_t first) {
    uint64_t end = 0;
    for (size_t i = first; i < s->log.segments; i++) {
        struct segment_view view;
        bool is_last = i + 1 == s->log.segments, torn = false;
        if (segment_open(&s->log, &view, s->log.segment[i].sequence) != 0) {
            if (view.file < 0 && file_may_be_good(view.error)) return -1;
            note(s, i, "its header is damaged", 0);
            become_uncertain(s);
            if (is_last) s->tail_lost = true;
            segment_close(&view);
            end = 0;
            continue;
        }
        bool follows = i > first && end && view.header.previous_end == end &&
                       s->log.segment[i - 1].sequence + 1 == view.header.sequence;
        if (i > first && !follows) become_uncertain(s);
        if (i > first && !follows && !*s->what) note(s, i - 1, "its end is missing", end);
        if (i > first && !follows) s->damaged[i - 1] = true;
        add_header(s, &view.header);
        end = scan_batches(s, &view, i, is_last, &torn);
        if (is_last && !torn) scan_last(s, &view, i, end);
        segment_close(&view);
    }
    uint64_t last = s->log.segments ? s->log.segment[s->log.segments - 1].sequence : 0;
    if (s->log.mark.sequence <= last) return 0;
    s->tail_lost = true;
    if (!*s->what)
        snprintf(s->what, sizeof s->what, "%s: the last segment of the log is missing",
                 s->log.path);
    return 0;
}

/* ---- The log as a whole ---- */

static uint64_t next_known_term(const struct salvage *s, uint64_t index) {
    for (size_t i = 0; i < s->pieces; i++)
        if (s->piece[i].first > index && s->piece[i].term) return s->piece[i].term;
    return 0;
}

/* What comes before the snapshot's entry, or does not continue it, is of no use. */
static void fit_to_snapshot(struct salvage *s) {
    struct salvage_scan *scan = s->scan;
    uint64_t term = s->after && s->after < scan->next ? known_term(s, s->after) : 0;
    bool reaches = scan->next > s->after;
    bool differs = s->after && reaches && term && term != s->term;
    bool unknown = s->after && reaches && !term && s->after >= scan->start &&
                   s->commit_index < s->after && salvage_last(s) > s->after &&
                   next_known_term(s, s->after) != s->term; /* else it is of that leader, too */
    if (differs && s->commit_index >= s->after) s->illogical = true;
    if (unknown) s->tail_lost = true;
    if (!reaches || differs || unknown) s->pieces = 0;
    size_t gone = 0;
    while (gone < s->pieces && last_of(&s->piece[gone]) <= s->after) gone++;
    s->pieces -= gone;
    if (s->pieces) memmove(s->piece, s->piece + gone, s->pieces * sizeof *s->piece);
    struct salvage_piece *p = s->pieces ? &s->piece[0] : NULL;
    if (p && p->first <= s->after) {
        p->count -= s->after + 1 - p->first;
        p->first = s->after + 1;
    }
    if (p && p->first > s->after + 1) { /* the log begins later */
        uint64_t missing = p->first - s->after - 1;
        insert(s, 0, (struct salvage_piece){.first = s->after + 1, .count = missing});
    }
    scan->start = s->after;
    scan->start_term = s->term;
    if (s->commit_index < s->after) s->commit_index = s->after;
}

/* The snapshot that is damaged held entries that the log lacks. */
static void add_lost_snapshot(struct salvage *s) {
    struct salvage_scan *scan = s->scan;
    if (s->lost_snapshot < scan->next) return;
    if (!*s->what)
        snprintf(s->what, sizeof s->what,
                 "%s: the snapshot of entry %" PRIu64 " is damaged, and the log ends before it",
                 s->log.path, s->lost_snapshot);
    become_uncertain(s);
    confirm(s, s->lost_snapshot + 1, 0);
    if (s->commit_index < s->lost_snapshot) s->commit_index = s->lost_snapshot;
}

static void neighbours(const struct salvage *s, size_t i, uint64_t *min, uint64_t *max) {
    uint64_t first = s->piece[i].first;
    *min = i ? s->piece[i - 1].term : known_term(s, first - 1);
    if (first == 1) *min = 1; /* the lowest that there is */
    *max = 0;
    for (size_t j = i + 1; j < s->pieces && !*max; j++) *max = s->piece[j].term;
    if (!*max) *max = s->scan->vote_term; /* none is newer */
}

/* Two entries of one index and term are the same, so what was dropped may be what is lost. */
static void take_back(struct salvage *s, const struct salvage_piece *dropped) {
    for (size_t i = 0; i < s->pieces; i++) {
        struct salvage_piece hole = s->piece[i];
        if (hole.intact || hole.term != dropped->term || !dropped->intact) continue;
        struct salvage_piece part = clipped(dropped, hole.first, last_of(&hole));
        if (!part.count) continue;
        struct salvage_piece before = clipped(&hole, hole.first, part.first - 1);
        struct salvage_piece after = clipped(&hole, last_of(&part) + 1, UINT64_MAX);
        s->piece[i] = part;
        insert(s, i + 1, after);
        insert(s, i, before);
    }
}

static void bound_terms(struct salvage *s) {
    uint64_t min, max;
    for (size_t i = 0; i < s->pieces; i++) /* data that was restored may have newer ones */
        if (s->piece[i].term > s->scan->vote_term) s->scan->vote_term = 0;
    if (s->term > s->scan->vote_term) s->scan->vote_term = 0;
    for (size_t i = 0; i < s->pieces; i++) {
        if (s->piece[i].term) continue;
        neighbours(s, i, &min, &max);
        if (min && min == max) s->piece[i].term = min;
    }
    for (size_t i = 0; i < s->dropped_count; i++) take_back(s, &s->dropped[i]);
}

int salvage_open(struct salvage *s, int directory, const char *path, uint64_t after, uint64_t term,
                 uint64_t lost_snapshot, uint64_t vote_term) {
    *s = (struct salvage){.after = after, .term = term, .lost_snapshot = lost_snapshot};
    s->log = (struct log){.directory = directory, .path = path, .file = -1, .mark_file = -1};
    if (mark_read(&s->log) != 0 || log_list_segments(&s->log) != 0) return -1;
    s->damaged = calloc(s->log.segments + 1, sizeof *s->damaged);
    s->scan = calloc(1, sizeof *s->scan);
    cv_assert(s->damaged && s->scan);
    *s->scan = (struct salvage_scan){.next = after + 1, .vote_term = vote_term};
    size_t first = log_first_needed(&s->log, after);
    if (first == s->log.segments) first = 0;
    while (first < s->log.segments && !s->log.segment[first].next_index) first++;
    struct segment_header header;
    if (first < s->log.segments &&
        segment_read_header(directory, s->log.segment[first].sequence, &header)) {
        s->scan->next = header.next_index;
        s->scan->start = header.next_index - 1;
        s->scan->start_term = header.term;
        s->commit_index = header.commit_index;
    }
    for (size_t i = 0; i < s->log.segments; i++)
        if (!s->log.segment[i].next_index) note(s, i, "its header is damaged", 0);
    if (first == s->log.segments && s->log.segments) s->tail_lost = true;
    if (first < s->log.segments && s->scan->start > after) {
        if (!*s->what)
            snprintf(s->what, sizeof s->what,
                     "%s: the log begins after entry %" PRIu64 ", the first that no snapshot holds",
                     path, after + 1);
        push_hole(s, s->scan->start, s->scan->start, s->scan->start_term);
    }
    if (scan_segments(s, first) != 0) return -1;
    add_lost_snapshot(s);
    bound_terms(s);
    fit_to_snapshot(s);
    bound_terms(s);
    return 0;
}

void salvage_close(struct salvage *s) {
    for (size_t i = 0; i < s->pieces; i++) free((void *)s->piece[i].filled.bytes);
    if (s->view) segment_close(s->view);
    free(s->view);
    free(s->piece);
    free(s->dropped);
    free(s->damaged);
    free(s->scan);
    log_close(&s->log);
    *s = (struct salvage){.log = {.file = -1, .mark_file = -1}};
}

/* ---- What it has ---- */

bool salvage_is_whole(const struct salvage *s) { return !salvage_lacking(s); }

uint64_t salvage_lacking(const struct salvage *s) {
    uint64_t count = 0;
    for (size_t i = 0; i < s->pieces; i++) count += s->piece[i].intact ? 0 : s->piece[i].count;
    return count;
}

uint64_t salvage_term_at(const struct salvage *s, uint64_t index) {
    return index == s->after ? s->term : known_term(s, index);
}

uint64_t salvage_run(const struct salvage *s, uint64_t index) {
    const struct salvage_piece *p = find(s, index);
    return p && p->term ? last_of(p) - index + 1 : 0;
}

/* The batch of an intact piece. */
static bool read_piece(struct salvage *s, const struct salvage_piece *p, struct raft_batch *batch) {
    struct segment_view *view = s->view;
    uint64_t end;
    *batch = p->filled;
    if (p->filled.bytes) return true;
    if (!view || view->header.sequence != p->sequence) {
        if (view) segment_close(view);
        if (!view) view = s->view = calloc(1, sizeof *view);
        cv_assert(view);
        if (segment_open(&s->log, view, p->sequence) != 0) view->header.sequence = 0;
    }
    bool good = view->header.sequence == p->sequence && segment_batch(view, p->offset, batch, &end);
    return good && batch->term == p->term && batch->first <= p->first &&
           raft_batch_last(batch) >= last_of(p);
}

/* Leaves the entries from first to last, or less; false: the batch is malformed. */
static bool clip(struct raft_batch *batch, uint64_t first, uint64_t last, size_t bytes_max) {
    struct raft_entry entry;
    size_t at = 0, begin;
    uint64_t index = batch->first;
    for (; index < first; index++)
        if (!raft_next(batch, &at, &entry)) return false;
    for (begin = at; index <= last; index++) {
        size_t before = at;
        if (!raft_next(batch, &at, &entry)) return false;
        if (index > first && at - begin > bytes_max) {
            at = before;
            break;
        }
    }
    batch->first = first;
    batch->count = (uint32_t)(index - first);
    batch->bytes += begin;
    batch->size = at - begin;
    return true;
}

bool salvage_read(struct salvage *s, uint64_t index, uint64_t last, size_t bytes_max,
                  struct raft_batch *batch) {
    struct salvage_piece *p = find(s, index);
    if (!p || !p->intact || last < index) return false;
    if (!read_piece(s, p, batch)) { /* by now */
        p->intact = false;
        for (size_t i = 0; i < s->dropped_count; i++)
            if (s->dropped[i].sequence == p->sequence && s->dropped[i].offset == p->offset)
                s->dropped[i].intact = false;
        return false;
    }
    return clip(batch, index, last < last_of(p) ? last : last_of(p), bytes_max);
}

bool salvage_read_dropped(struct salvage *s, uint64_t index, uint64_t last, size_t bytes_max,
                          struct raft_batch *batch) {
    const struct salvage_piece *newest = NULL;
    for (size_t i = 0; i < s->dropped_count; i++) {
        const struct salvage_piece *p = &s->dropped[i];
        bool has = p->intact && p->first <= index && index <= last_of(p);
        if (has && (!newest || p->term > newest->term)) newest = p;
    }
    if (!newest || last < index || !read_piece(s, newest, batch)) return false;
    return clip(batch, index, last < last_of(newest) ? last : last_of(newest), bytes_max);
}

/* ---- What it lacks ---- */

bool salvage_find_hole(const struct salvage *s, uint64_t from, struct salvage_hole *hole) {
    for (size_t i = 0; i < s->pieces; i++) {
        const struct salvage_piece *p = &s->piece[i];
        if (p->intact || last_of(p) < from) continue;
        *hole = (struct salvage_hole){p->first, last_of(p), p->term, 0, 0, 0, 0};
        for (size_t j = i + 1; j < s->pieces && !hole->pin_index; j++)
            if (s->piece[j].term) {
                hole->pin_index = s->piece[j].first;
                hole->pin_term = s->piece[j].term;
            }
        neighbours(s, i, &hole->term_min, &hole->term_max);
        return true;
    }
    return false;
}

uint64_t salvage_recognize(const struct salvage *s, const struct salvage_hole *hole,
                           const struct raft_batch *batch, bool pinned, uint64_t commit_index) {
    if (!batch->count || batch->first != hole->first || batch->term < hole->term_min) return 0;
    if (hole->term_max && batch->term > hole->term_max) return 0;
    uint64_t last = raft_batch_last(batch);
    if (hole->term) return batch->term == hole->term ? last : 0;
    if (pinned) return last;
    if (last > s->commit_index) last = s->commit_index;
    if (last > commit_index) last = commit_index;
    return last >= hole->first ? last : 0;
}

void salvage_fill(struct salvage *s, const struct raft_batch *batch, uint64_t last) {
    struct salvage_piece *p = find(s, batch->first), rest;
    struct raft_batch taken = *batch;
    cv_assert(p && !p->intact && p->first == batch->first);
    if (last > last_of(p)) last = last_of(p);
    if (last > raft_batch_last(batch)) last = raft_batch_last(batch);
    if (!clip(&taken, batch->first, last, SIZE_MAX)) return;
    unsigned char *copy = malloc(taken.size);
    cv_assert(copy);
    memcpy(copy, taken.bytes, taken.size);
    taken.bytes = copy;
    rest = (struct salvage_piece){.first = last + 1, .count = last_of(p) - last, .term = p->term};
    *p = (struct salvage_piece){.first = batch->first,
                                .count = taken.count,
                                .term = batch->term,
                                .intact = true,
                                .filled = taken};
    insert(s, (size_t)(p - s->piece) + 1, rest);
    bound_terms(s);
}

void salvage_learn(struct salvage *s, uint64_t first, uint64_t count, uint64_t term) {
    struct salvage_piece *p = find(s, first), rest;
    if (!p || p->intact || p->term || p->first != first || !count) return;
    if (count > p->count) count = p->count;
    rest = (struct salvage_piece){.first = first + count, .count = p->count - count};
    p->count = count;
    p->term = term;
    insert(s, (size_t)(p - s->piece) + 1, rest);
    bound_terms(s);
}

/* ---- The end ---- */

void salvage_cut(struct salvage *s, uint64_t index) {
    truncate_at(s, index);
    if (s->commit_index > salvage_last(s)) s->commit_index = salvage_last(s);
}
