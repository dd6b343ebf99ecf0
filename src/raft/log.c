#include "raft/log.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/grow.h"
#include "raft/segment.h"

/* ---- Finding the segments ---- */

static int by_sequence(const void *a, const void *b) {
    const struct log_segment *x = a, *y = b;
    return x->sequence < y->sequence ? -1 : x->sequence > y->sequence;
}

static void add_segment(struct log *log, uint64_t sequence, const struct segment_header *header) {
    log->segment = grown(log->segment, &log->segment_room, log->segments + 1, sizeof *log->segment);
    log->segment[log->segments++] =
        (struct log_segment){sequence, header ? header->key : 0, header ? header->next : 0};
}

static int list_segments(struct log *log) {
    int copy = openat(log->directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *listing = copy < 0 ? NULL : fdopendir(copy);
    if (!listing) return log_fail_errno(log, "cannot be listed", ".");
    for (struct dirent *found; (found = readdir(listing));) {
        struct segment_header header;
        uint64_t sequence;
        if (!segment_is_named(found->d_name, &sequence)) continue;
        bool good = segment_read_header(log->directory, sequence, &header);
        add_segment(log, sequence, good ? &header : NULL);
    }
    closedir(listing);
    if (log->segments) qsort(log->segment, log->segments, sizeof *log->segment, by_sequence);
    return 0;
}

/* The last segment with all that a snapshot of that entry needs; `segments`: there is none. */
static size_t segment_behind(const struct log *log, uint64_t index) {
    for (size_t i = log->segments; i-- > 0;)
        if (log->segment[i].next && log->segment[i].next <= index + 1) return i;
    return log->segments;
}

/* ---- How batches and segments follow each other ---- */

static struct log_end beginning_of(const struct segment_view *view) {
    return (struct log_end){.next = view->header.next,
                            .committed = view->header.committed,
                            .term = view->header.term,
                            .at = sizeof view->header};
}

/* What is wrong with a batch at the end of a log; NULL: nothing is. */
static const char *why_not(const struct log_end *end, const struct raft_batch *batch) {
    if (!batch->count || batch->size / RAFT_SIZE_BYTES < batch->count ||
        (batch->kind != RAFT_NORMAL && (batch->kind != RAFT_CONFIG || batch->count > 1)))
        return "holds what is no entry";
    if (batch->first > end->next) return "leaves out entries before it";
    if (batch->first <= end->committed) return "replaces entries that were decided";
    if (batch->first == end->next && batch->term < end->term) return "is of an earlier term";
    if (batch->count > LOG_INDEX_MAX - batch->first || batch->committed > raft_batch_last(batch))
        return "decides entries that are not there";
    return NULL;
}

static void follow(struct log_end *end, const struct raft_batch *batch) {
    end->next = batch->first + batch->count;
    if (batch->committed > end->committed) end->committed = batch->committed;
    end->term = batch->term;
    end->at += segment_room(batch->size);
}

static bool leads_on(const struct log_end *end, const struct segment_header *header) {
    return header->before && header->before == end->at && header->next == end->next &&
           header->term == end->term && header->committed >= end->committed;
}

/* ---- Replaying ---- */

struct replay {
    uint64_t after, term; /* of the snapshot */
    uint64_t term_there;  /* of the same entry in the log, if it reaches so far */
    log_replay_fn *tell;
    void *context;
    bool *cut;
};

/* Without the entries that are in the snapshot; false: it holds what is no entry. */
static bool clip(struct raft_batch *batch, uint64_t after) {
    struct raft_entry entry;
    size_t at = 0;
    for (; batch->first <= after; batch->first++, batch->count--)
        if (!raft_next(batch, &at, &entry)) return false;
    batch->bytes += at;
    batch->size -= at;
    return true;
}

static int tell_nothing(struct replay *r) {
    struct raft_batch nothing = {.first = r->after + 1, .term = r->term};
    return r->tell(r->context, &nothing);
}

/* `last` is what the log had before. */
static int tell(struct replay *r, uint64_t last, struct raft_batch batch) {
    if (batch.first <= r->after) r->term_there = batch.term;
    if (raft_batch_last(&batch) <= r->after) return last > r->after ? tell_nothing(r) : 0;
    if (!clip(&batch, r->after)) return -1;
    return r->tell(r->context, &batch);
}

static int replay_segment(struct log *log, const struct segment_view *view, struct replay *r) {
    struct log_end *end = &log->end;
    struct raft_batch batch;
    while (segment_batch(view, end->at, &batch)) {
        const char *why = why_not(end, &batch);
        uint64_t last = end->next - 1;
        if (why)
            return log_fail(
                log, "%s/%s: the batch at offset %" PRIu64 " (entry %" PRIu64 ") %s; " LOG_ADVICE,
                log->path, view->name, end->at, batch.first, why);
        follow(end, &batch);
        if (tell(r, last, batch) != 0) return -1;
    }
    return 0;
}

/* What follows the last good batch of a segment: nothing, a torn batch, or damage. */
static int judge_end(struct log *log, const struct segment_view *view, bool is_last, bool *cut) {
    uint64_t last = 0, at = log->end.at;
    if (segment_is_zero(view, at)) return 0;
    if (!is_last || segment_any_batch(view, at, &last))
        return log_fail(log,
                        "%s/%s: damaged at offset %" PRIu64 " (entry %" PRIu64
                        "), and there is more behind it; " LOG_ADVICE,
                        log->path, view->name, at, log->end.next);
    *cut = true;
    if (log->read_only) return 0;
    if (segment_cut(log, view, at) != 0) return -1;
    log_fail(log, "%s/%s: cut at offset %" PRIu64 ": the last batch was not written to its end",
             log->path, view->name, at);
    return 0;
}

/* A process that was killed may have left what can be read and is not durable: from now on it is.
 */
static int open_last(struct log *log, const struct segment_view *view) {
    log->file = openat(log->directory, view->name, O_WRONLY | O_CLOEXEC);
    if (log->file < 0) return log_fail_errno(log, "cannot be written", view->name);
    if (!log->no_sync && fdatasync(log->file) != 0)
        return log_fail_errno(log, "cannot be made durable", view->name);
    log->size = view->size;
    return 0;
}

/* Where a segment is to be read, `end` is what the one before it came to. */
static int join(struct log *log, size_t i, bool is_first, const struct segment_header *header) {
    const struct log_segment *segment = &log->segment[i];
    char name[SEGMENT_NAME_SIZE];
    if (is_first) return 0;
    if (segment[-1].sequence + 1 != segment->sequence)
        return log_fail(log, "%s/%s: is missing; " LOG_ADVICE, log->path,
                        segment_name(name, segment[-1].sequence + 1));
    if (!leads_on(&log->end, header))
        return log_fail(log,
                        "%s/%s: does not go on from the segment before it, which ends at offset "
                        "%" PRIu64 " with entry %" PRIu64 ": entries are missing; " LOG_ADVICE,
                        log->path, segment_name(name, segment->sequence), log->end.at,
                        log->end.next - 1);
    return 0;
}

static int replay_one(struct log *log, size_t i, bool is_first, struct replay *r) {
    struct segment_view view;
    bool is_last = i + 1 == log->segments;
    int status = segment_map(log, &view, log->segment[i].sequence);
    if (!status) status = join(log, i, is_first, &view.header);
    if (!status) {
        log->end = beginning_of(&view);
        if (is_first) r->term_there = view.header.term;
        status = replay_segment(log, &view, r);
    }
    if (!status) status = judge_end(log, &view, is_last, r->cut);
    if (!status && is_last && !log->read_only) status = open_last(log, &view);
    segment_unmap(&view);
    return status;
}

/* Goes on behind the snapshot if the log does not lead there, or leads elsewhere: entries of a
 * leader that did not prevail, which a snapshot from another server has overtaken. */
static int agree(struct log *log, struct replay *r) {
    uint64_t next = log->end.next;
    if (next > r->after && r->term_there == r->term) return 0;
    if (next > r->after && log->end.committed >= r->after)
        return log_fail(log,
                        "%s: entry %" PRIu64 " is of term %" PRIu64 " here, and of %" PRIu64
                        " in the snapshot; " LOG_ADVICE,
                        log->path, r->after, r->term_there, r->term);
    log_reset(log, r->after, r->term);
    return next > r->after + 1 ? tell_nothing(r) : 0;
}

static int no_beginning(struct log *log, uint64_t after) {
    struct segment_view view;
    int status = segment_map(log, &view, log->segment[0].sequence);
    segment_unmap(&view);
    if (status) return status;
    return log_fail(log,
                    "%s: the log begins behind entry %" PRIu64
                    ", which is the first that is not in a snapshot; " LOG_ADVICE,
                    log->path, after + 1);
}

static int replay_all(struct log *log, struct replay *r) {
    size_t first = segment_behind(log, r->after);
    if (!log->segments) return 0;
    if (first == log->segments) return no_beginning(log, r->after);
    for (size_t i = first; i < log->segments; i++)
        if (replay_one(log, i, i == first, r) != 0) return -1;
    return agree(log, r);
}

int log_open(struct log *log, int directory, const char *path, uint64_t after, uint64_t term,
             log_replay_fn *replay, void *context, bool *cut) {
    struct log settings = *log;
    struct replay r = {
        .after = after, .term = term, .tell = replay, .context = context, .cut = cut};
    *log = (struct log){.directory = directory,
                        .path = path,
                        .segment_bytes = settings.segment_bytes,
                        .no_sync = settings.no_sync,
                        .read_only = settings.read_only,
                        .file = -1};
    *cut = false;
    log_reset(log, after, term);
    if (list_segments(log) != 0 || replay_all(log, &r) != 0) return -1;
    if (log->end.committed < after) log->end.committed = after;
    return 0;
}

void log_close(struct log *log) {
    if (log->file >= 0) close(log->file);
    free(log->segment);
    log->file = -1;
    log->segment = NULL;
}

/* ---- Looking at it, and what a person decides then ---- */

/* `end` is that of the segment before it, and then its own. */
static void examine(struct log *log, uint64_t sequence, bool is_last, struct log_end *end,
                    struct log_finding *found) {
    struct segment_view view;
    struct raft_batch batch;
    *found = (struct log_finding){.sequence = sequence, .state = LOG_UNREADABLE};
    if (segment_map(log, &view, sequence) == 0) {
        found->leads_on = leads_on(end, &view.header);
        *end = beginning_of(&view);
        found->begins = found->first = end->next;
        while (segment_batch(&view, end->at, &batch) && !why_not(end, &batch)) {
            if (batch.first < found->first) found->first = batch.first;
            follow(end, &batch);
        }
        found->next = end->next;
        found->last = end->next - 1;
        found->at = end->at;
        bool more = !segment_is_zero(&view, end->at);
        bool behind = more && segment_any_batch(&view, end->at, &found->last);
        found->state = !more ? LOG_WHOLE : behind || !is_last ? LOG_DAMAGED : LOG_TORN;
    } else {
        *end = (struct log_end){0};
    }
    segment_unmap(&view);
}

int log_examine(struct log *log, int directory, const char *path, log_finding_fn *tell_of,
                void *context) {
    struct log_end end = {0};
    *log = (struct log){.directory = directory, .path = path, .file = -1};
    if (list_segments(log) != 0) return -1;
    for (size_t i = 0; i < log->segments; i++) {
        char name[SEGMENT_NAME_SIZE];
        struct log_finding found;
        uint64_t sequence = log->segment[i].sequence;
        examine(log, sequence, i + 1 == log->segments, &end, &found);
        if (i && log->segment[i - 1].sequence + 1 != sequence) found.leads_on = false;
        found.name = segment_name(name, sequence);
        tell_of(context, &found);
    }
    return 0;
}

int log_cut(struct log *log, uint64_t sequence, uint64_t at) {
    struct segment_view view;
    int status = segment_map(log, &view, sequence);
    if (!status) status = segment_cut(log, &view, at);
    segment_unmap(&view);
    return status;
}

int log_set_aside(struct log *log, uint64_t sequence) {
    char name[SEGMENT_NAME_SIZE], aside[SEGMENT_NAME_SIZE + 16];
    snprintf(aside, sizeof aside, "damaged.%s", segment_name(name, sequence));
    if (renameat2(log->directory, name, log->directory, aside, RENAME_NOREPLACE) != 0 ||
        fsync(log->directory) != 0)
        return log_fail_errno(log, "cannot be renamed to damaged.*", name);
    return 0;
}

/* ---- Writing ---- */

static int write_all(int file, struct iovec *parts, int count, uint64_t at) {
    while (count) {
        ssize_t done = pwritev(file, parts, count, (off_t)at);
        if (done < 0 && errno == EINTR) continue;
        if (done <= 0) return -1;
        at += (uint64_t)done;
        for (; count && (size_t)done >= parts->iov_len; parts++, count--)
            done -= (ssize_t)parts->iov_len;
        if (!count) break;
        parts->iov_base = (char *)parts->iov_base + done;
        parts->iov_len -= (size_t)done;
    }
    return 0;
}

/* A new segment is complete under another name before it gets its own. */
static int new_segment(struct log *log, uint64_t least) {
    static const char unfinished[] = "new.log";
    char name[SEGMENT_NAME_SIZE];
    struct segment_header header;
    uint64_t sequence = log->segments ? log->segment[log->segments - 1].sequence + 1 : 1;
    uint64_t size = sizeof header + least;
    if (size < log->segment_bytes) size = log->segment_bytes;
    if (segment_begin(&header, sequence, &log->end) != 0)
        return log_fail_errno(log, "no random number", unfinished);
    int file = openat(log->directory, unfinished, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0640);
    if (file < 0) return log_fail_errno(log, "cannot be created", unfinished);
    struct iovec part = {&header, sizeof header};
    segment_name(name, sequence);
    if ((errno = posix_fallocate(file, 0, (off_t)size)) != 0 || write_all(file, &part, 1, 0) != 0 ||
        (!log->no_sync && fsync(file) != 0) ||
        renameat(log->directory, unfinished, log->directory, name) != 0 ||
        (!log->no_sync && fsync(log->directory) != 0)) {
        log_fail_errno(log, "cannot be written", unfinished);
        close(file);
        return -1;
    }
    if (log->file >= 0) close(log->file);
    add_segment(log, sequence, &header);
    log->file = file;
    log->end.at = sizeof header;
    log->size = size;
    return 0;
}

int log_append(struct log *log, const struct raft_batch *batch) {
    struct raft_batch kept = *batch;
    char name[SEGMENT_NAME_SIZE];
    uint64_t size = segment_room(batch->size);
    if (kept.committed > raft_batch_last(&kept)) kept.committed = raft_batch_last(&kept);
    cv_assert(!why_not(&log->end, &kept));
    if ((log->file < 0 || size > log->size - log->end.at) && new_segment(log, size) != 0) return -1;
    const struct log_segment *segment = &log->segment[log->segments - 1];
    struct batch_header header = segment_batch_header(segment->key, &kept);
    struct iovec parts[] = {{&header, sizeof header}, {(void *)kept.bytes, kept.size}};
    segment_name(name, segment->sequence);
    if (write_all(log->file, parts, 2, log->end.at) != 0)
        return log_fail_errno(log, "cannot be written", name);
    if (!log->no_sync && fdatasync(log->file) != 0)
        return log_fail_errno(log, "cannot be made durable", name);
    follow(&log->end, &kept);
    log->bytes_written += size;
    log->syncs++;
    return 0;
}

void log_reset(struct log *log, uint64_t after, uint64_t term) {
    if (log->file >= 0) close(log->file);
    log->file = -1;
    log->end = (struct log_end){.next = after + 1, .committed = after, .term = term};
}

int log_trim(struct log *log, uint64_t index) {
    size_t gone = segment_behind(log, index);
    char name[SEGMENT_NAME_SIZE];
    if (gone == log->segments) return 0;
    for (size_t i = 0; i < gone; i++)
        if (unlinkat(log->directory, segment_name(name, log->segment[i].sequence), 0) != 0 &&
            errno != ENOENT)
            return log_fail_errno(log, "cannot be removed", name);
    log->segments -= gone;
    memmove(log->segment, log->segment + gone, log->segments * sizeof *log->segment);
    return 0;
}
