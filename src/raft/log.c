#include "raft/log.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/crc32c.h"

static const char MAGIC[16] = "conclave log 1\n";

struct segment_header {
    char magic[16];
    uint64_t key, first;
    uint32_t reserved, crc; /* of all before it */
};
struct batch_header {
    uint32_t crc; /* of the key, the rest of the header and the entries */
    uint32_t size;
    uint64_t first, term;
    uint32_t count, mark;
};
_Static_assert(sizeof(struct segment_header) == 40, "it is what is on disk");
_Static_assert(sizeof(struct batch_header) == 32, "it is what is on disk");
/* So that looking for a batch can be quick.  It is mixed with the segment's key, which nobody
 * outside knows: clients cannot write what looks like a batch. */
enum { MARK = 0x68637462 };

enum { NAME_SIZE = 32 };

static char *segment_name(char name[NAME_SIZE], uint64_t first) {
    snprintf(name, NAME_SIZE, "log.%016" PRIx64, first);
    return name;
}

static uint64_t padded(uint64_t size) { return (size + 7) & ~(uint64_t)7; }

static uint32_t batch_crc(uint64_t key, const struct batch_header *header, const void *entries) {
    uint32_t crc = crc32c(0, &key, sizeof key);
    crc = crc32c(crc, &header->size, sizeof *header - sizeof header->crc);
    return crc32c(crc, entries, header->size);
}

__attribute__((format(printf, 2, 3))) static int fail(struct log *log, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(log->message, sizeof log->message, format, arguments);
    va_end(arguments);
    return -1;
}

static int fail_errno(struct log *log, const char *what, const char *name) {
    return fail(log, "%s/%s: %s: %s", log->path, name, what, strerror(errno));
}

/* ---- Finding the segments ---- */

static int by_first(const void *a, const void *b) {
    const struct log_segment *x = a, *y = b;
    return x->first < y->first ? -1 : x->first > y->first;
}

static bool is_segment(const char *name, uint64_t *first) {
    char again[NAME_SIZE];
    return sscanf(name, "log.%16" SCNx64, first) == 1 &&
           strcmp(name, segment_name(again, *first)) == 0;
}

static int list_segments(struct log *log) {
    int copy = openat(log->directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *listing = copy < 0 ? NULL : fdopendir(copy);
    if (!listing) return fail_errno(log, "cannot be listed", ".");
    for (struct dirent *found; (found = readdir(listing));) {
        uint64_t first;
        if (!is_segment(found->d_name, &first)) continue;
        log->segment =
            grown(log->segment, &log->segment_room, log->segments + 1, sizeof *log->segment);
        log->segment[log->segments++] = (struct log_segment){.first = first};
    }
    closedir(listing);
    if (log->segments) qsort(log->segment, log->segments, sizeof *log->segment, by_first);
    return 0;
}

/* ---- Reading one ---- */

struct view { /* of a segment in memory */
    int file;
    const unsigned char *base;
    uint64_t size, key;
    char name[NAME_SIZE];
};

/* The batch at a place, if there is one. */
static bool batch_at(const struct view *view, uint64_t at, struct raft_batch *batch) {
    struct batch_header header;
    if (view->size < sizeof header || at > view->size - sizeof header) return false;
    memcpy(&header, view->base + at, sizeof header);
    if (header.mark != (MARK ^ (uint32_t)view->key) ||
        header.size > view->size - at - sizeof header)
        return false;
    const unsigned char *entries = view->base + at + sizeof header;
    if (header.crc != batch_crc(view->key, &header, entries)) return false;
    *batch = (struct raft_batch){.first = header.first,
                                 .term = header.term,
                                 .count = header.count,
                                 .bytes = entries,
                                 .size = header.size};
    return true;
}

/* Whether there is any batch from a place on; *last is raised to its last entry. */
static bool any_batch_from(const struct view *view, uint64_t at, uint64_t *last) {
    struct raft_batch batch;
    bool any = false;
    for (; at < view->size; at += 8) {
        if (!batch_at(view, at, &batch)) continue;
        if (batch.first + batch.count > *last) *last = batch.first + batch.count - 1;
        any = true;
    }
    return any;
}

/* Room that was never written need not be read: the file system knows where it is. */
static bool all_zero(const struct view *view, uint64_t at) {
    while (at < view->size) {
        off_t data = lseek(view->file, (off_t)at, SEEK_DATA);
        if (data < 0 && errno == ENXIO) return true;
        off_t hole = data < 0 ? -1 : lseek(view->file, data, SEEK_HOLE);
        uint64_t end = hole < 0 ? view->size : (uint64_t)hole;
        for (at = data < 0 ? at : (uint64_t)data; at < end && at < view->size; at++)
            if (view->base[at]) return false;
    }
    return true;
}

static int read_header(struct log *log, struct view *view, uint64_t first) {
    struct segment_header header;
    if (view->size < sizeof header)
        return fail(log, "%s/%s: is too short for a segment of the log", log->path, view->name);
    memcpy(&header, view->base, sizeof header);
    if (memcmp(header.magic, MAGIC, sizeof MAGIC) != 0 || header.first != first ||
        header.crc != crc32c(0, &header, offsetof(struct segment_header, crc)))
        return fail(log,
                    "%s/%s: its header is damaged (offset 0); 'conclave recover' says what can be "
                    "saved",
                    log->path, view->name);
    view->key = header.key;
    return 0;
}

static int map(struct log *log, struct view *view, uint64_t first) {
    struct stat about;
    segment_name(view->name, first);
    view->file = openat(log->directory, view->name, O_RDONLY | O_CLOEXEC);
    if (view->file < 0 || fstat(view->file, &about) != 0)
        return fail_errno(log, "cannot be read", view->name);
    view->size = (uint64_t)about.st_size;
    view->base = view->size ? mmap(NULL, view->size, PROT_READ, MAP_PRIVATE, view->file, 0)
                            : (const unsigned char *)"";
    if (view->base == MAP_FAILED) return fail_errno(log, "cannot be mapped", view->name);
    return read_header(log, view, first);
}

static void unmap(struct view *view) {
    if (view->size && view->base != MAP_FAILED) munmap((void *)view->base, view->size);
    if (view->file >= 0) close(view->file);
}

/* Goes over the batches of a segment; *at is where they end. */
static int replay_segment(struct log *log, const struct view *view, uint64_t after,
                          log_replay_fn *replay, void *context, uint64_t *at) {
    struct raft_batch batch;
    *at = sizeof(struct segment_header);
    for (; batch_at(view, *at, &batch); *at += padded(sizeof(struct batch_header) + batch.size)) {
        if (batch.first != log->next)
            return fail(log,
                        "%s/%s: entry %" PRIu64 " is at offset %" PRIu64 " where %" PRIu64
                        " belongs; 'conclave recover' says what can be saved",
                        log->path, view->name, batch.first, *at, log->next);
        log->next += batch.count;
        if (log->next > after + 1 && replay(context, &batch) != 0) return -1;
    }
    return 0;
}

/* ---- Opening ---- */

/* Cuts the last segment at a place, and gives it back the room it had. */
static int cut_segment(struct log *log, const struct view *view, uint64_t at) {
    int file = openat(log->directory, view->name, O_RDWR | O_CLOEXEC);
    if (file < 0) return fail_errno(log, "cannot be written", view->name);
    int status = 0;
    if (ftruncate(file, (off_t)at) != 0 ||
        (errno = posix_fallocate(file, 0, (off_t)view->size)) != 0 || fdatasync(file) != 0)
        status = fail_errno(log, "cannot be cut", view->name);
    close(file);
    return status;
}

/* What follows the last good batch of a segment: nothing, a torn batch, or damage. */
static int judge_end(struct log *log, const struct view *view, uint64_t at, bool is_last,
                     bool *cut) {
    uint64_t last = 0;
    if (all_zero(view, at)) return 0;
    if (!is_last || any_batch_from(view, at, &last))
        return fail(log,
                    "%s/%s: damaged at offset %" PRIu64 " (entry %" PRIu64
                    "), and there is more behind it; 'conclave recover' says what can be saved",
                    log->path, view->name, at, log->next);
    *cut = true;
    if (log->read_only) return 0;
    if (cut_segment(log, view, at) != 0) return -1;
    fail(log, "%s/%s: cut at offset %" PRIu64 ": the last batch was not written to its end",
         log->path, view->name, at);
    return 0;
}

static int open_last(struct log *log, uint64_t at, uint64_t size) {
    char name[NAME_SIZE];
    segment_name(name, log->segment[log->segments - 1].first);
    log->file = openat(log->directory, name, O_WRONLY | O_CLOEXEC);
    if (log->file < 0) return fail_errno(log, "cannot be written", name);
    log->at = at;
    log->size = size;
    return 0;
}

static int replay_all(struct log *log, uint64_t after, log_replay_fn *replay, void *context,
                      bool *cut) {
    size_t i = 0;
    while (i + 1 < log->segments && log->segment[i + 1].first <= after + 1) i++;
    if (i < log->segments) log->next = log->segment[i].first;
    if (log->next > after + 1)
        return fail(log,
                    "%s: the log begins with entry %" PRIu64 ", but %" PRIu64
                    " is the first that is not in a snapshot",
                    log->path, log->next, after + 1);
    for (; i < log->segments; i++) {
        struct view view = {0};
        uint64_t at = 0;
        bool is_last = i + 1 == log->segments;
        int status = map(log, &view, log->segment[i].first);
        if (!status && log->segment[i].first != log->next)
            status = fail(log, "%s: entries %" PRIu64 " to %" PRIu64 " are missing", log->path,
                          log->next, log->segment[i].first - 1);
        log->segment[i].key = view.key;
        if (!status) status = replay_segment(log, &view, after, replay, context, &at);
        if (!status) status = judge_end(log, &view, at, is_last, cut);
        if (!status && is_last && !log->read_only) status = open_last(log, at, view.size);
        unmap(&view);
        if (status) return status;
    }
    return 0;
}

int log_open(struct log *log, int directory, const char *path, uint64_t after,
             log_replay_fn *replay, void *context, bool *cut) {
    struct log settings = *log;
    *log = (struct log){.directory = directory,
                        .path = path,
                        .segment_bytes = settings.segment_bytes,
                        .no_sync = settings.no_sync,
                        .read_only = settings.read_only,
                        .file = -1,
                        .next = after + 1};
    *cut = false;
    if (list_segments(log) != 0 || replay_all(log, after, replay, context, cut) != 0) return -1;
    /* A snapshot may be newer than all of the log: what comes next goes into a segment of its own.
     */
    if (log->next <= after) {
        log->next = after + 1;
        if (log->file >= 0) close(log->file);
        log->file = -1;
    }
    return 0;
}

void log_close(struct log *log) {
    if (log->file >= 0) close(log->file);
    free(log->segment);
    log->file = -1;
    log->segment = NULL;
}

/* ---- Looking at it, and what a person decides then ---- */

static void examine(struct log *log, uint64_t first, bool is_last, struct log_finding *found) {
    struct view view = {0};
    struct raft_batch batch;
    *found = (struct log_finding){.first = first, .next = first, .last = first};
    if (map(log, &view, first) != 0) {
        found->state = LOG_UNREADABLE;
    } else {
        found->at = sizeof(struct segment_header);
        while (batch_at(&view, found->at, &batch) && batch.first == found->next) {
            found->next += batch.count;
            found->at += padded(sizeof(struct batch_header) + batch.size);
        }
        found->last = found->next - 1;
        bool more = !all_zero(&view, found->at);
        bool behind = more && any_batch_from(&view, found->at, &found->last);
        found->state = !more ? LOG_WHOLE : behind || !is_last ? LOG_DAMAGED : LOG_TORN;
    }
    unmap(&view);
}

int log_examine(struct log *log, int directory, const char *path, log_finding_fn *tell,
                void *context) {
    *log = (struct log){.directory = directory, .path = path, .file = -1};
    if (list_segments(log) != 0) return -1;
    for (size_t i = 0; i < log->segments; i++) {
        char name[NAME_SIZE];
        struct log_finding found;
        examine(log, log->segment[i].first, i + 1 == log->segments, &found);
        found.name = segment_name(name, found.first);
        tell(context, &found);
    }
    return 0;
}

int log_cut(struct log *log, uint64_t first, uint64_t at) {
    struct view view = {0};
    int status = map(log, &view, first);
    if (!status) status = cut_segment(log, &view, at);
    unmap(&view);
    return status;
}

int log_set_aside(struct log *log, uint64_t first) {
    char name[NAME_SIZE], aside[NAME_SIZE + 16];
    snprintf(aside, sizeof aside, "damaged.%s", segment_name(name, first));
    if (renameat2(log->directory, name, log->directory, aside, RENAME_NOREPLACE) != 0 ||
        fsync(log->directory) != 0)
        return fail_errno(log, "cannot be renamed to damaged.*", name);
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
    char name[NAME_SIZE];
    struct segment_header header = {.first = log->next};
    uint64_t size = sizeof header + least;
    if (size < log->segment_bytes) size = log->segment_bytes;
    memcpy(header.magic, MAGIC, sizeof MAGIC);
    if (getrandom(&header.key, sizeof header.key, 0) != sizeof header.key)
        return fail_errno(log, "no random number", unfinished);
    header.crc = crc32c(0, &header, offsetof(struct segment_header, crc));
    int file = openat(log->directory, unfinished, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0640);
    if (file < 0) return fail_errno(log, "cannot be created", unfinished);
    struct iovec part = {&header, sizeof header};
    segment_name(name, header.first);
    if ((errno = posix_fallocate(file, 0, (off_t)size)) != 0 || write_all(file, &part, 1, 0) != 0 ||
        fsync(file) != 0 || renameat(log->directory, unfinished, log->directory, name) != 0 ||
        fsync(log->directory) != 0) {
        fail_errno(log, "cannot be written", unfinished);
        close(file);
        return -1;
    }
    if (log->file >= 0) close(log->file);
    log->segment = grown(log->segment, &log->segment_room, log->segments + 1, sizeof *log->segment);
    log->segment[log->segments++] = (struct log_segment){header.first, header.key};
    log->file = file;
    log->at = sizeof header;
    log->size = size;
    return 0;
}

int log_append(struct log *log, const struct raft_batch *batch) {
    struct batch_header header = {.size = (uint32_t)batch->size,
                                  .first = batch->first,
                                  .term = batch->term,
                                  .count = batch->count};
    uint64_t size = padded(sizeof header + batch->size);
    cv_assert(batch->first == log->next && header.size == batch->size);
    if ((log->file < 0 || size > log->size - log->at) && new_segment(log, size) != 0) return -1;
    uint64_t key = log->segment[log->segments - 1].key;
    header.mark = MARK ^ (uint32_t)key;
    header.crc = batch_crc(key, &header, batch->bytes);
    struct iovec parts[] = {{&header, sizeof header}, {(void *)batch->bytes, batch->size}};
    char name[NAME_SIZE];
    segment_name(name, log->segment[log->segments - 1].first);
    if (write_all(log->file, parts, 2, log->at) != 0)
        return fail_errno(log, "cannot be written", name);
    if (!log->no_sync && fdatasync(log->file) != 0)
        return fail_errno(log, "cannot be made durable", name);
    log->at += size;
    log->next += batch->count;
    log->bytes_written += size;
    log->syncs++;
    return 0;
}

int log_trim(struct log *log, uint64_t index) {
    size_t gone = 0;
    char name[NAME_SIZE];
    while (gone + 1 < log->segments && log->segment[gone + 1].first <= index + 1) gone++;
    for (size_t i = 0; i < gone; i++)
        if (unlinkat(log->directory, segment_name(name, log->segment[i].first), 0) != 0 &&
            errno != ENOENT)
            return fail_errno(log, "cannot be removed", name);
    log->segments -= gone;
    memmove(log->segment, log->segment + gone, log->segments * sizeof *log->segment);
    return 0;
}
