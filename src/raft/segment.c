#include "raft/segment.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/crc32c.h"

static const char MAGIC[16] = "conclave log 2\n";

/* So that looking for a batch can be quick.  It is mixed with the segment's key, which nobody
 * outside knows: clients cannot write what looks like a batch. */
enum { MARK = 0x68637462 };

int log_fail(struct log *log, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(log->message, sizeof log->message, format, arguments);
    va_end(arguments);
    return -1;
}

int log_fail_errno(struct log *log, const char *what, const char *name) {
    return log_fail(log, "%s/%s: %s: %s", log->path, name, what, strerror(errno));
}

/* ---- Names and headers ---- */

char *segment_name(char name[SEGMENT_NAME_SIZE], uint64_t sequence) {
    snprintf(name, SEGMENT_NAME_SIZE, "log.%016" PRIx64, sequence);
    return name;
}

bool segment_is_named(const char *name, uint64_t *sequence) {
    char again[SEGMENT_NAME_SIZE];
    return sscanf(name, "log.%16" SCNx64, sequence) == 1 &&
           strcmp(name, segment_name(again, *sequence)) == 0;
}

static uint32_t header_crc(const struct segment_header *header) {
    return crc32c(0, header, offsetof(struct segment_header, crc));
}

int segment_begin(struct segment_header *header, uint64_t sequence, const struct log_end *end) {
    *header = (struct segment_header){.sequence = sequence,
                                      .next = end->next,
                                      .committed = end->committed,
                                      .term = end->term,
                                      .before = end->at};
    memcpy(header->magic, MAGIC, sizeof MAGIC);
    if (getrandom(&header->key, sizeof header->key, 0) != sizeof header->key) return -1;
    header->crc = header_crc(header);
    return 0;
}

static bool is_good_header(const struct segment_header *header, uint64_t sequence) {
    return memcmp(header->magic, MAGIC, sizeof MAGIC) == 0 && header->sequence == sequence &&
           header->crc == header_crc(header) && header->next > 0 && header->next <= LOG_INDEX_MAX &&
           header->committed < header->next;
}

static uint32_t batch_crc(uint64_t key, const struct batch_header *header, const void *entries) {
    uint32_t crc = crc32c(0, &key, sizeof key);
    crc = crc32c(crc, &header->size, sizeof *header - sizeof header->crc);
    return crc32c(crc, entries, header->size);
}

struct batch_header segment_batch_header(uint64_t key, const struct raft_batch *batch) {
    struct batch_header header = {.size = (uint32_t)batch->size,
                                  .first = batch->first,
                                  .term = batch->term,
                                  .committed = batch->committed,
                                  .count = batch->count,
                                  .kind = batch->kind,
                                  .mark = MARK ^ (uint32_t)key};
    cv_assert(header.size == batch->size);
    header.crc = batch_crc(key, &header, batch->bytes);
    return header;
}

/* ---- Opening one ---- */

int segment_map(struct log *log, struct segment_view *view, uint64_t sequence) {
    struct stat about;
    *view = (struct segment_view){0};
    segment_name(view->name, sequence);
    view->file = openat(log->directory, view->name, O_RDONLY | O_CLOEXEC);
    if (view->file < 0 || fstat(view->file, &about) != 0)
        return log_fail_errno(log, "cannot be read", view->name);
    view->size = (uint64_t)about.st_size;
    view->base = view->size ? mmap(NULL, view->size, PROT_READ, MAP_PRIVATE, view->file, 0)
                            : (const unsigned char *)"";
    if (view->base == MAP_FAILED) return log_fail_errno(log, "cannot be mapped", view->name);
    if (view->size < sizeof view->header)
        return log_fail(log, "%s/%s: is too short for a segment of the log; " LOG_ADVICE, log->path,
                        view->name);
    memcpy(&view->header, view->base, sizeof view->header);
    if (!is_good_header(&view->header, sequence))
        return log_fail(log, "%s/%s: its header is damaged (offset 0); " LOG_ADVICE, log->path,
                        view->name);
    return 0;
}

void segment_unmap(struct segment_view *view) {
    if (view->size && view->base != MAP_FAILED) munmap((void *)view->base, view->size);
    if (view->file >= 0) close(view->file);
}

bool segment_read_header(int directory, uint64_t sequence, struct segment_header *header) {
    char name[SEGMENT_NAME_SIZE];
    int file = openat(directory, segment_name(name, sequence), O_RDONLY | O_CLOEXEC);
    if (file < 0) return false;
    bool whole = pread(file, header, sizeof *header, 0) == sizeof *header;
    close(file);
    return whole && is_good_header(header, sequence);
}

/* ---- What is in it ---- */

bool segment_batch(const struct segment_view *view, uint64_t at, struct raft_batch *batch) {
    struct batch_header header;
    if (view->size < sizeof header || at > view->size - sizeof header) return false;
    memcpy(&header, view->base + at, sizeof header);
    if (header.mark != (MARK ^ (uint32_t)view->header.key) ||
        header.size > view->size - at - sizeof header)
        return false;
    const unsigned char *entries = view->base + at + sizeof header;
    if (header.crc != batch_crc(view->header.key, &header, entries)) return false;
    *batch = (struct raft_batch){.first = header.first,
                                 .term = header.term,
                                 .committed = header.committed,
                                 .count = header.count,
                                 .kind = header.kind,
                                 .bytes = entries,
                                 .size = header.size};
    return true;
}

bool segment_any_batch(const struct segment_view *view, uint64_t at, uint64_t *last) {
    struct raft_batch batch;
    bool any = false;
    for (; at < view->size; at += 8) {
        if (!segment_batch(view, at, &batch)) continue;
        if (raft_batch_last(&batch) > *last) *last = raft_batch_last(&batch);
        any = true;
    }
    return any;
}

/* Room that was never written need not be read: the file system knows where it is. */
bool segment_is_zero(const struct segment_view *view, uint64_t at) {
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

int segment_cut(struct log *log, const struct segment_view *view, uint64_t at) {
    int file = openat(log->directory, view->name, O_RDWR | O_CLOEXEC);
    if (file < 0) return log_fail_errno(log, "cannot be written", view->name);
    int status = 0;
    if (ftruncate(file, (off_t)at) != 0 ||
        (errno = posix_fallocate(file, 0, (off_t)view->size)) != 0 ||
        (!log->no_sync && fdatasync(file) != 0))
        status = log_fail_errno(log, "cannot be cut", view->name);
    close(file);
    return status;
}
