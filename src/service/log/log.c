#include "service/log/log.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/uio.h>

#include "base/grow.h"
#include "service/log/internal.h"
#include "service/log/spare.h"

static const char UNFINISHED[] = "new.log";

/* ---- Finding the segments ---- */

static int by_sequence(const void *a, const void *b) {
    const struct log_segment *x = a, *y = b;
    return x->sequence < y->sequence ? -1 : x->sequence > y->sequence;
}

static void add_segment(struct log *log, uint64_t sequence, const struct segment_header *header) {
    log->segment = grown(log->segment, &log->segment_room, log->segments + 1, sizeof *log->segment);
    log->segment[log->segments++] =
        (struct log_segment){sequence, header ? header->key : 0, header ? header->next_index : 0};
}

int log_list_segments(struct log *log) {
    int copy = openat(log->directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *listing = copy < 0 ? NULL : fdopendir(copy);
    if (!listing) return log_fail_errno(log, "cannot be listed", ".");
    uint64_t newest = 0;
    int status = 0;
    for (struct dirent *found; !status && (found = readdir(listing));) {
        struct segment_header header;
        uint64_t sequence;
        if (!segment_is_named(found->d_name, &sequence)) continue;
        bool good = segment_read_header(log->directory, sequence, &header);
        if (!good && file_may_be_good(errno))
            status = log_fail_errno(log, "cannot be read", found->d_name);
        add_segment(log, sequence, good ? &header : NULL);
        if (!good || !header.origin || sequence < newest) continue;
        newest = sequence;
        log->origin = header.origin;
    }
    closedir(listing);
    if (log->segments) qsort(log->segment, log->segments, sizeof *log->segment, by_sequence);
    return status;
}

size_t log_first_needed(const struct log *log, uint64_t index) {
    for (size_t i = log->segments; i-- > 0;)
        if (log->segment[i].next_index && log->segment[i].next_index <= index + 1) return i;
    return log->segments;
}

/* ---- How batches and segments follow each other ---- */

static struct log_end state_at_start(const struct segment_view *view) {
    return (struct log_end){.next_index = view->header.next_index,
                            .commit_index = view->header.commit_index,
                            .term = view->header.term,
                            .offset = view->begin};
}

/* Why a batch cannot follow; NULL: it can. */
static const char *fault_of(const struct log_end *end, const struct raft_batch *batch) {
    if (!batch->count || batch->size / RAFT_SIZE_BYTES < batch->count ||
        (batch->kind != RAFT_NORMAL && (batch->kind != RAFT_CONFIG || batch->count > 1)))
        return "is malformed";
    if (batch->first > end->next_index) return "comes after a gap";
    if (batch->first <= end->commit_index) return "replaces committed entries";
    if (batch->first == end->next_index && batch->term < end->term) return "is of an earlier term";
    if (batch->count > LOG_INDEX_MAX - batch->first || batch->commit_index > raft_batch_last(batch))
        return "commits entries that do not exist";
    return NULL;
}

static void advance(struct log_end *end, const struct raft_batch *batch, uint64_t offset) {
    end->next_index = batch->first + batch->count;
    if (batch->commit_index > end->commit_index) end->commit_index = batch->commit_index;
    end->term = batch->term;
    end->offset = offset;
}

static bool continues(const struct log_end *end, const struct segment_header *header) {
    return header->previous_end && header->previous_end == end->offset &&
           header->next_index == end->next_index && header->term == end->term &&
           header->commit_index >= end->commit_index;
}

/* ---- Replaying ---- */

struct replay {
    uint64_t after, term; /* of the snapshot */
    uint64_t log_term;    /* of the same entry in the log, if it reaches so far */
    log_replay_fn *replay;
    void *context;
    enum log_state *end;
    uint64_t last_batch; /* its offset in the segment that is being read; 0: none */
};

/* Drops the entries that are in the snapshot; false: the batch is malformed. */
static bool clip(struct raft_batch *batch, uint64_t after) {
    struct raft_entry entry;
    size_t at = 0;
    for (; batch->first <= after; batch->first++, batch->count--)
        if (!raft_next(batch, &at, &entry)) return false;
    batch->bytes += at;
    batch->size -= at;
    return true;
}

/* An empty batch: it removes all entries after the snapshot. */
static int replay_nothing(struct replay *r) {
    struct raft_batch nothing = {.first = r->after + 1, .term = r->term};
    return r->replay(r->context, &nothing);
}

/* `last` is the last entry that the log had before the batch. */
static int replay_batch(struct replay *r, uint64_t last, struct raft_batch batch) {
    if (batch.first <= r->after) r->log_term = batch.term;
    if (raft_batch_last(&batch) <= r->after) return last > r->after ? replay_nothing(r) : 0;
    if (!clip(&batch, r->after)) return -1;
    return r->replay(r->context, &batch);
}

static int replay_segment(struct log *log, struct segment_view *view, struct replay *r) {
    struct log_end *end = &log->end;
    struct raft_batch batch;
    uint64_t next;
    r->last_batch = 0;
    while (segment_batch(view, end->offset, &batch, &next)) {
        const char *fault = fault_of(end, &batch);
        uint64_t last = end->next_index - 1;
        if (fault)
            return log_fail(log,
                            "%s/%s: the batch at offset %" PRIu64 " (entry %" PRIu64
                            ") %s, so the log cannot be trusted from there on; " LOG_ADVICE,
                            log->path, view->name, end->offset, batch.first, fault);
        r->last_batch = end->offset;
        advance(end, &batch, next);
        if (replay_batch(r, last, batch) != 0) return -1;
    }
    return 0;
}

uint64_t log_durable_end(const struct log *log, const struct segment_header *header) {
    const struct log_mark *mark = &log->mark;
    if (mark->sequence == header->sequence)
        return mark->key == header->key ? mark->offset : UINT64_MAX; /* it is another segment */
    return mark->sequence > header->sequence ? UINT64_MAX : 0;
}

/* The log ends where it was read to. */
static void end_is_damaged(struct log *log, const struct replay *r) {
    *r->end = LOG_END_DAMAGED;
    log->end_damaged = true;
    log->damaged_from = log->end.offset;
    log->last_batch = r->last_batch;
}

/* Decides what follows the last good batch of a segment: nothing, a torn batch, or damage. */
static int check_end(struct log *log, struct segment_view *view, bool is_last, struct replay *r) {
    struct tail tail;
    tail_judge(view, &log->end, is_last, log_durable_end(log, &view->header), &tail);
    *r->end = tail.state;
    if (tail.state == LOG_WHOLE) return 0;
    if (tail.state == LOG_DAMAGED)
        return log_fail(log,
                        "%s/%s: %s, although more of the log follows: entries are "
                        "lost; " LOG_ADVICE,
                        log->path, view->name, tail.what);
    if (tail.state == LOG_TORN) {
        log_fail(log, "%s/%s: %s", log->path, view->name, tail.what);
        return log->read_only ? 0 : segment_cut(log, view, log->end.offset);
    }
    end_is_damaged(log, r);
    log_fail(log,
             "%s/%s: %s: entries from %" PRIu64 " on are lost, and may have been "
             "acknowledged; " LOG_ADVICE,
             log->path, view->name, tail.what, log->end.next_index);
    return log->read_only ? -1 : 0;
}

/* Writes what a segment holds once more.  An earlier process may have left it in the system's
 * memory only: not written yet, or not written because the disk failed, which the system tells one
 * process and then takes the bytes for written. */
static int rewrite(struct log *log, struct segment_view *view, uint64_t from, uint64_t end) {
    if (end > view->size) end = view->size;
    for (uint64_t at = from; at < end;) {
        enum { PIECE = 1 << 20 };
        size_t size = end - at < PIECE ? (size_t)(end - at) : PIECE;
        ssize_t done = pwrite(log->file, segment_bytes(view, at, size), size, (off_t)at);
        if (done < 0 && errno == EINTR) continue;
        if (done <= 0) return -1;
        at += (uint64_t)done;
    }
    return fdatasync(log->file);
}

/* The same for its name, which is of use only now: nothing was written to it. */
static int rename_again(struct log *log, const char *name) {
    return renameat(log->directory, name, log->directory, UNFINISHED) != 0 ||
                   renameat(log->directory, UNFINISHED, log->directory, name) != 0
               ? -1
               : fsync(log->directory);
}

/* Opens the last segment for more batches.  Only its last batch may not be durable yet: the one
 * before it was, when the last was written. */
static int open_last(struct log *log, struct segment_view *view, uint64_t last_batch) {
    struct stat about;
    bool is_new = !last_batch && log->mark.sequence < view->header.sequence;
    if (log->file >= 0) close(log->file);
    log->file = file_open(log->directory, view->name, O_RDWR);
    if (log->file < 0 || fstat(log->file, &about) != 0)
        return log_fail_errno(log, "cannot be written", view->name);
    if (!log->no_sync &&
        ((is_new && rename_again(log, view->name) != 0) ||
         rewrite(log, view, last_batch ? last_batch : log->end.offset, log->end.offset) != 0))
        return log_fail_errno(log, "cannot be made durable", view->name);
    log->size = view->size;
    log->inode = about.st_ino;
    log->old_segment = segment_is_old(view);
    if (!log->no_sync) mark_move(log, false); /* without it, less is known of the next damage */
    return 0;
}

/* Checks that a segment continues the one before it, which ends at log->end. */
static int join(struct log *log, size_t i, bool is_first, const struct segment_header *header) {
    const struct log_segment *segment = &log->segment[i];
    char name[SEGMENT_NAME_SIZE];
    if (is_first) return 0;
    if (segment[-1].sequence + 1 != segment->sequence)
        return log_fail(log, "%s/%s: is missing, and its entries are lost; " LOG_ADVICE, log->path,
                        segment_name(name, segment[-1].sequence + 1));
    if (!continues(&log->end, header))
        return log_fail(log,
                        "%s/%s: does not continue the segment before it, which ends at offset "
                        "%" PRIu64 " with entry %" PRIu64 ": entries are missing; " LOG_ADVICE,
                        log->path, segment_name(name, segment->sequence), log->end.offset,
                        log->end.next_index - 1);
    return 0;
}

static int replay_one(struct log *log, size_t i, bool is_first, struct replay *r) {
    struct segment_view view;
    bool is_last = i + 1 == log->segments;
    int status = segment_open(log, &view, log->segment[i].sequence);
    if (!status) status = join(log, i, is_first, &view.header);
    if (!status) {
        log->end = state_at_start(&view);
        if (is_first) r->log_term = view.header.term;
        status = replay_segment(log, &view, r);
    }
    if (!status) status = check_end(log, &view, is_last, r);
    if (!status && is_last && !log->read_only && *r->end != LOG_END_DAMAGED)
        status = open_last(log, &view, r->last_batch);
    segment_close(&view);
    return status;
}

/* Continues after the snapshot if the log ends before it, or holds another entry there: entries of
 * a former leader that were never committed, which a snapshot from another server has overtaken. */
static int reconcile(struct log *log, struct replay *r) {
    uint64_t next = log->end.next_index;
    if (next > r->after && r->log_term == r->term) return 0;
    if (next > r->after && log->end.commit_index >= r->after)
        return log_fail(
            log,
            "%s: entry %" PRIu64 " is committed with term %" PRIu64 ", but of term %" PRIu64
            " in the snapshot: the two are of different servers or ensembles; " LOG_ADVICE,
            log->path, r->after, r->log_term, r->term);
    log_reset(log, r->after, r->term);
    return next > r->after + 1 ? replay_nothing(r) : 0;
}

static int fail_at_start(struct log *log, uint64_t after) {
    struct segment_view view;
    int status = segment_open(log, &view, log->segment[0].sequence);
    segment_close(&view);
    if (status) return status;
    return log_fail(log,
                    "%s: the log begins after entry %" PRIu64
                    ", the first that no snapshot holds: entries are missing; " LOG_ADVICE,
                    log->path, after + 1);
}

static uint64_t last_sequence(const struct log *log) {
    return log->segments ? log->segment[log->segments - 1].sequence : 0;
}

/* The segment that the mark names must be there. */
static int check_mark(struct log *log, struct replay *r) {
    char name[SEGMENT_NAME_SIZE];
    if (log->mark.sequence <= last_sequence(log)) return 0;
    end_is_damaged(log, r);
    log_fail(log,
             "%s/%s: is missing, and was the end of the log up to entry %" PRIu64
             ": entries from %" PRIu64 " on are lost, and may have been acknowledged; " LOG_ADVICE,
             log->path, segment_name(name, log->mark.sequence), log->mark.next_index - 1,
             log->end.next_index);
    return log->read_only ? -1 : 0;
}

static int replay_all(struct log *log, struct replay *r) {
    size_t first = log_first_needed(log, r->after);
    if (log->segments && first == log->segments) return fail_at_start(log, r->after);
    for (size_t i = first; i < log->segments; i++)
        if (replay_one(log, i, i == first, r) != 0) return -1;
    if (check_mark(log, r) != 0) return -1;
    return log->segments ? reconcile(log, r) : 0;
}

int log_open(struct log *log, int directory, const char *path, uint64_t after, uint64_t term,
             log_replay_fn *replay, void *context, enum log_state *end) {
    struct log settings = *log;
    struct replay r = {
        .after = after, .term = term, .replay = replay, .context = context, .end = end};
    *log = (struct log){.directory = directory,
                        .path = path,
                        .segment_bytes = settings.segment_bytes,
                        .old_format = settings.old_format,
                        .no_sync = settings.no_sync,
                        .read_only = settings.read_only,
                        .file = -1,
                        .mark_file = -1};
    *end = LOG_WHOLE;
    log_reset(log, after, term);
    /* The mark before the segments: another process may be writing. */
    if (mark_read(log) != 0 || log_list_segments(log) != 0 || replay_all(log, &r) != 0) return -1;
    if (log->end.commit_index < after) log->end.commit_index = after;
    if (faccessat(directory, SPARE_NAME, F_OK, 0) == 0) log->spare = SPARE_STALE;
    return 0;
}

/* The mark comes last, so all of this can be repeated. */
int log_give_up_end(struct log *log) {
    struct segment_view view;
    log->end_damaged = false;
    if (!log->segments) return mark_move(log, true);
    int status = segment_open(log, &view, last_sequence(log));
    if (!status) status = segment_cut(log, &view, log->damaged_from);
    if (!status && log->end.offset == log->damaged_from)
        status = open_last(log, &view, log->last_batch);
    if (log->size < view.header.size) log->size = view.header.size; /* it has its size again */
    segment_close(&view);
    return status ? status : mark_move(log, true);
}

void log_close(struct log *log) {
    if (log->file >= 0) close(log->file);
    if (log->mark_file >= 0) close(log->mark_file);
    if (log->spare == SPARE_READY) close(log->spare_file);
    free(log->segment);
    log->file = log->mark_file = -1;
    log->spare = SPARE_MISSING;
    log->segment = NULL;
}

/* ---- Inspecting and repairing ---- */

/* `end` is that of the segment before it, and afterwards its own. */
static void examine(struct log *log, uint64_t sequence, struct log_end *end,
                    struct log_finding *found, struct tail *tail) {
    struct segment_view view;
    struct raft_batch batch;
    uint64_t next;
    bool is_last = sequence == last_sequence(log);
    *found = (struct log_finding){.sequence = sequence, .state = LOG_UNREADABLE, .what = ""};
    if (segment_open(log, &view, sequence) == 0) {
        found->continues = continues(end, &view.header);
        *end = state_at_start(&view);
        found->start_index = found->first = end->next_index;
        while (segment_batch(&view, end->offset, &batch, &next) && !fault_of(end, &batch)) {
            if (batch.first < found->first) found->first = batch.first;
            advance(end, &batch, next);
        }
        found->next_index = end->next_index;
        found->offset = end->offset;
        tail_judge(&view, end, is_last, log_durable_end(log, &view.header), tail);
        bool illogical = segment_batch(&view, end->offset, &batch, &next);
        found->state = illogical ? LOG_DAMAGED : tail->state;
        found->last = tail->last;
        found->what = tail->what;
    } else {
        *end = (struct log_end){0};
    }
    segment_close(&view);
}

static void report_missing(struct log *log, log_finding_fn *report, void *context) {
    char name[SEGMENT_NAME_SIZE];
    struct log_finding missing = {.sequence = log->mark.sequence,
                                  .last = log->mark.next_index - 1,
                                  .state = LOG_MISSING,
                                  .what = "it is missing, and was the end of the log"};
    missing.name = segment_name(name, missing.sequence);
    report(context, &missing);
}

int log_examine(struct log *log, int directory, const char *path, log_finding_fn *report,
                void *context) {
    struct log_end end = {0};
    *log = (struct log){.directory = directory, .path = path, .file = -1, .mark_file = -1};
    if (mark_read(log) != 0 || log_list_segments(log) != 0) return -1;
    for (size_t i = 0; i < log->segments; i++) {
        char name[SEGMENT_NAME_SIZE];
        struct log_finding found;
        struct tail tail;
        uint64_t sequence = log->segment[i].sequence;
        examine(log, sequence, &end, &found, &tail);
        if (i && log->segment[i - 1].sequence + 1 != sequence) found.continues = false;
        found.name = segment_name(name, sequence);
        report(context, &found);
    }
    if (log->mark.sequence > last_sequence(log)) report_missing(log, report, context);
    return 0;
}

int log_cut(struct log *log, uint64_t sequence, uint64_t offset) {
    struct segment_view view;
    int status = segment_open(log, &view, sequence);
    if (!status) status = segment_cut(log, &view, offset);
    segment_close(&view);
    return status;
}

int log_forget_mark(struct log *log) {
    if ((unlinkat(log->directory, MARK_NAME, 0) != 0 && errno != ENOENT) ||
        fsync(log->directory) != 0)
        return log_fail_errno(log, "cannot be removed", MARK_NAME);
    return 0;
}

int log_set_aside(struct log *log, uint64_t sequence) {
    char name[SEGMENT_NAME_SIZE];
    if (file_set_aside(log->directory, segment_name(name, sequence)) != 0 ||
        fsync(log->directory) != 0)
        return log_fail_errno(log, "cannot be renamed to damaged.*", name);
    return 0;
}

/* ---- Writing ---- */

int log_write_all(int file, struct iovec *parts, int count, uint64_t at) {
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

uint64_t log_size_without_spare(const struct log *log) {
    enum { SMALL = 1 << 22 };
    return log->segment_bytes < SMALL ? log->segment_bytes : SMALL;
}

/* A new segment is complete under another name before it gets its own. */
static int new_segment(struct log *log, uint64_t min_bytes) {
    char name[SEGMENT_NAME_SIZE];
    struct segment_header header;
    unsigned char form[sizeof header];
    struct stat about;
    uint64_t sequence = log->segments ? log->segment[log->segments - 1].sequence + 1 : 1;
    uint64_t size = sizeof header + min_bytes;
    bool is_ready = spare_is_ready(log) && size <= log->spare_size;
    uint64_t min_size = is_ready ? log->spare_size : log_size_without_spare(log);
    const char *unfinished = is_ready ? SPARE_NAME : UNFINISHED;
    if (size < min_size) size = min_size;
    if (segment_begin(&header, log, sequence, log->old_format ? 0 : size, &log->end) != 0)
        return log_fail_errno(log, "no random number for its key", unfinished);
    int file = is_ready ? log->spare_file
                        : file_open(log->directory, UNFINISHED, O_RDWR | O_CREAT | O_TRUNC);
    if (file < 0) return log_fail_errno(log, "cannot be created", unfinished);
    if (is_ready || log->spare == SPARE_GIVEN_UP) log->spare = SPARE_MISSING;
    struct iovec part = {form, segment_header_form(&header, form)};
    uint64_t begin = part.iov_len;
    segment_name(name, sequence);
    if ((errno = posix_fallocate(file, 0, (off_t)size)) != 0 ||
        log_write_all(file, &part, 1, 0) != 0 || fstat(file, &about) != 0 ||
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
    log->end.offset = begin;
    log->old_segment = log->old_format;
    log->size = size;
    log->inode = about.st_ino;
    return log->no_sync ? 0 : mark_move(log, true);
}

/* A file that was removed can be written and synced as ever. */
static int check_place(struct log *log, const char *name) {
    struct stat file, here, there;
    if (fstatat(log->directory, name, &file, 0) != 0 || file.st_ino != log->inode)
        return log_fail(log, "%s/%s: was removed or replaced while the server was writing to it",
                        log->path, name);
    if (fstat(log->directory, &here) != 0 || stat(log->path, &there) != 0 ||
        here.st_ino != there.st_ino || here.st_dev != there.st_dev)
        return log_fail(log, "%s: was removed, moved or replaced while the server was using it",
                        log->path);
    return 0;
}

bool log_begins_segment(const struct log *log, const struct raft_batch *batch) {
    bool is_over = log->file < 0 || (log->old_segment && !log->old_format);
    return is_over || segment_room(batch->size, log->old_segment) > log->size - log->end.offset;
}

int log_append(struct log *log, const struct raft_batch *batch) {
    struct raft_batch kept = *batch;
    char name[SEGMENT_NAME_SIZE];
    uint64_t size = segment_room(batch->size, log->old_segment);
    if (kept.commit_index > raft_batch_last(&kept)) kept.commit_index = raft_batch_last(&kept);
    cv_assert(!log->end_damaged && !fault_of(&log->end, &kept));
    if (log_begins_segment(log, batch)) {
        size = segment_room(batch->size, log->old_format);
        if (new_segment(log, size) != 0) return -1;
    }
    const struct log_segment *segment = &log->segment[log->segments - 1];
    struct batch_form form;
    uint64_t previous_term = kept.first == log->end.next_index ? log->end.term : 0;
    segment_batch_form(&form, segment->key, &kept, previous_term, log->end.offset,
                       log->old_segment);
    struct iovec parts[] = {{form.header, form.header_size},
                            {(void *)kept.bytes, kept.size},
                            {form.end, form.end_size}};
    segment_name(name, segment->sequence);
    if (log_write_all(log->file, parts, 3, log->end.offset) != 0)
        return log_fail_errno(log, "cannot be written", name);
    if (!log->no_sync && fdatasync(log->file) != 0)
        return log_fail_errno(log, "cannot be made durable", name);
    if (check_place(log, name) != 0) return -1;
    advance(&log->end, &kept, log->end.offset + size);
    if (!log->no_sync) mark_move(log, false); /* without it, less is known of the next damage */
    log->bytes_written += size;
    log->syncs++;
    return 0;
}

void log_reset(struct log *log, uint64_t after, uint64_t term) {
    if (log->file >= 0) close(log->file);
    log->file = -1;
    log->end = (struct log_end){.next_index = after + 1, .commit_index = after, .term = term};
}

int log_trim(struct log *log, uint64_t index) {
    struct log_removal removal;
    log_forget(log, index, &removal);
    log_remove(&removal);
    log_removed(log, &removal);
    return removal.error ? -1 : 0;
}
