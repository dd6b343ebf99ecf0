#include "service/log/reader.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "service/log/internal.h"

struct log_reader {
    struct log log; /* for its directory and its messages; nothing is written to it */
    struct segment_view view;
    uint64_t sequence; /* of the segment in view */
    bool viewing;
    uint64_t offset; /* of the next batch */
    uint64_t next_index;
    struct window entries; /* from next_index on, and perhaps some before it */
    uint64_t term;         /* of the entry before those in `entries` */
    uint64_t term_start;   /* the first entry of that term, as far as this segment goes back */
    uint64_t commit_index; /* as the batches say */
    bool at_end;           /* of what was written so far */
};

/* ---- Segments ---- */

/* The last segment that begins with an entry or before it; 0: there is none. */
static uint64_t find_segment(int directory, uint64_t index) {
    int copy = openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *listing = copy < 0 ? NULL : fdopendir(copy);
    uint64_t sequence, best = 0;
    if (!listing) return 0;
    for (struct dirent *found; (found = readdir(listing));) {
        struct segment_header header;
        if (segment_is_named(found->d_name, &sequence) && sequence > best &&
            segment_read_header(directory, sequence, &header) && header.next_index <= index)
            best = sequence;
    }
    closedir(listing);
    return best;
}

static void stop_viewing(struct log_reader *r) {
    if (r->viewing) segment_close(&r->view);
    r->viewing = false;
}

static bool view_segment(struct log_reader *r, uint64_t sequence) {
    stop_viewing(r);
    bool good = segment_open(&r->log, &r->view, sequence) == 0;
    r->viewing = true;
    r->sequence = sequence;
    return good;
}

struct log_reader *log_reader_open(int directory, const char *path, uint64_t index) {
    uint64_t sequence = find_segment(directory, index);
    if (!sequence) return NULL;
    struct log_reader *r = calloc(1, sizeof *r);
    cv_assert(r);
    r->log = (struct log){.directory = directory, .path = path, .file = -1, .mark_file = -1};
    if (!view_segment(r, sequence)) {
        log_reader_close(r);
        return NULL;
    }
    r->next_index = index;
    r->offset = r->view.begin;
    r->term = r->view.header.term;
    r->term_start = r->view.header.next_index;
    r->commit_index = r->view.header.commit_index;
    window_open(&r->entries, r->view.header.next_index - 1);
    return r;
}

void log_reader_close(struct log_reader *r) {
    if (!r) return;
    stop_viewing(r);
    window_close(&r->entries);
    free(r);
}

uint64_t log_reader_next_index(const struct log_reader *r) { return r->next_index; }

/* ---- Batches ---- */

/* Drops entries that are not wanted any more. */
static void trim(struct log_reader *r) {
    struct raft_entry last;
    uint64_t index =
        r->next_index - 1 < window_last(&r->entries) ? r->next_index - 1 : window_last(&r->entries);
    if (index <= r->entries.after) return;
    window_entry(&r->entries, index, &last);
    if (last.term != r->term) r->term_start = r->entries.after + 1;
    r->term = last.term;
    window_trim(&r->entries, index);
}

/* Adds a batch, which may replace entries; -1: ones that it must not. */
static int add(struct log_reader *r, const struct raft_batch *batch) {
    if (batch->first > window_last(&r->entries) + 1) return -1;
    if (batch->first <= r->entries.after) {
        if (batch->first <= r->commit_index) return -1;
        window_reset(&r->entries, batch->first - 1); /* still on the way to next_index */
    }
    if (!window_append(&r->entries, batch)) return -1;
    if (batch->commit_index > r->commit_index) r->commit_index = batch->commit_index;
    trim(r);
    return 0;
}

/* Goes on to the next segment; -1: it does not continue this one. */
static int next_segment(struct log_reader *r, const struct segment_header *header) {
    uint64_t index = window_last(&r->entries) + 1;
    if (header->previous_end != r->offset || header->next_index != index) return -1;
    if (!view_segment(r, r->sequence + 1)) return -1;
    r->offset = r->view.begin;
    return 0;
}

static bool next_batch(struct log_reader *r, struct raft_batch *batch) {
    return r->viewing && segment_batch(&r->view, r->offset, batch, &r->offset);
}

static int read_batch(struct log_reader *r) {
    struct raft_batch batch;
    struct segment_header header;
    if (next_batch(r, &batch)) return add(r, &batch);
    /* Once there is a next segment, nothing is added to this one; so it is looked at again. */
    bool follows = segment_read_header(r->log.directory, r->sequence + 1, &header);
    if (!view_segment(r, r->sequence)) return -1;
    if (next_batch(r, &batch)) return add(r, &batch);
    if (follows) return next_segment(r, &header);
    r->at_end = true; /* or damaged: then what is wanted is missing */
    stop_viewing(r);
    return 0;
}

/* ---- Reading ---- */

/* Up to where entries that were read will not be replaced. */
static uint64_t settled(const struct log_reader *r, uint64_t last) {
    uint64_t end = window_last(&r->entries);
    if (!r->at_end && end > r->commit_index) end = r->commit_index;
    return end < last ? end : last;
}

static bool has_enough(const struct log_reader *r, uint64_t last, size_t bytes) {
    uint64_t end = settled(r, last);
    return r->at_end || end == last || last < r->next_index ||
           (end >= r->next_index && window_span(&r->entries, r->next_index, end) >= bytes);
}

static int read_enough(struct log_reader *r, uint64_t last, size_t bytes) {
    r->at_end = false;
    trim(r);
    while (!has_enough(r, last, bytes))
        if (read_batch(r) != 0) return -1;
    return 0;
}

struct log_reader *log_reader_open_after(int directory, const char *path, uint64_t index,
                                         uint64_t term) {
    for (uint64_t first = index + 1;;) {
        struct log_reader *r = log_reader_open(directory, path, first);
        bool good = r && read_enough(r, first, 1) == 0 && settled(r, first) == first;
        if (good && r->term <= term) return r;
        if (good) first = r->term_start < first ? r->term_start : first - 1;
        log_reader_close(r);
        if (!good) return NULL;
    }
}

int log_reader_next(struct log_reader *r, uint64_t last, size_t bytes_max, struct raft_batch *batch,
                    uint64_t *previous_term) {
    *batch = (struct raft_batch){.first = r->next_index};
    if (read_enough(r, last, bytes_max) != 0) return -1;
    uint64_t end = settled(r, last);
    if (end < r->next_index) return last < r->next_index ? 0 : -1;
    cv_assert(r->entries.after == r->next_index - 1);
    size_t bytes = window_span(&r->entries, r->next_index, end);
    window_read(&r->entries, r->next_index, bytes < bytes_max ? bytes : bytes_max, batch);
    *previous_term = r->term;
    r->next_index += batch->count;
    return 0;
}
