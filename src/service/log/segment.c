#include "service/log/internal.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>

#include "base/assert.h"
#include "base/crc32c.h"
#include "service/log/file.h"

static const char MAGIC[16] = "conclave log 3\n", OLD_MAGIC[16] = "conclave log 2\n";

/* Makes the search for a batch quick.  It is mixed with the segment's key, which no client knows,
 * so that clients cannot write bytes that look like a batch. */
enum { BATCH_MAGIC = 0x68637462, MAGIC_BITS_MIN = 8 };
/* No flip of a few bits makes a byte of it zero. */
static const char END_MARK[8] = "<-batch.";

struct old_segment_header { /* of version 2: it is read, and not written any more */
    char magic[16];
    uint64_t key, sequence, next_index, commit_index, term, previous_end;
    uint32_t reserved, crc;
};
struct old_batch_header {
    uint32_t crc; /* of the key, the rest of the header and the entries */
    uint32_t size;
    uint64_t first, term, commit_index;
    uint32_t count, kind, reserved, magic;
};
_Static_assert(sizeof(struct old_segment_header) == 72, "it is what is on disk");
_Static_assert(sizeof(struct old_batch_header) == 48, "it is what is on disk");

int log_fail(struct log *log, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(log->message, sizeof log->message, format, arguments);
    va_end(arguments);
    return -1;
}

int log_fail_errno(struct log *log, const char *what, const char *name) {
    return log_fail(log, "%s/%s: %s: %s", log->path, name, what, file_error(errno));
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

static uint32_t key_crc(uint64_t key) { return crc32c(0, &key, sizeof key); }
static uint32_t magic_of(uint64_t key) { return BATCH_MAGIC ^ (uint32_t)key; }

int segment_begin(struct segment_header *header, struct log *log, uint64_t sequence, uint64_t size,
                  const struct log_end *end) {
    *header = (struct segment_header){.sequence = sequence,
                                      .next_index = end->next_index,
                                      .commit_index = end->commit_index,
                                      .term = end->term,
                                      .previous_end = end->offset,
                                      .size = size};
    memcpy(header->magic, MAGIC, sizeof MAGIC);
    do /* a magic that looks like nothing written would not do */
        if (getrandom(&header->key, sizeof header->key, 0) != sizeof header->key) return -1;
    while (__builtin_popcount(magic_of(header->key)) < MAGIC_BITS_MIN);
    if (!log->origin) log->origin = (uint32_t)(header->key >> 32) | 1;
    header->origin = log->origin;
    header->crc = header_crc(header);
    return 0;
}

size_t segment_header_form(const struct segment_header *header,
                           unsigned char bytes[sizeof(struct segment_header)]) {
    struct old_segment_header old = {.key = header->key,
                                     .sequence = header->sequence,
                                     .next_index = header->next_index,
                                     .commit_index = header->commit_index,
                                     .term = header->term,
                                     .previous_end = header->previous_end};
    memcpy(bytes, header, sizeof *header);
    if (header->size) return sizeof *header;
    memcpy(old.magic, OLD_MAGIC, sizeof OLD_MAGIC);
    old.crc = crc32c(0, &old, offsetof(struct old_segment_header, crc));
    memcpy(bytes, &old, sizeof old);
    return sizeof old;
}

static bool take_old_header(const void *bytes, struct segment_header *header) {
    struct old_segment_header old;
    memcpy(&old, bytes, sizeof old);
    *header = (struct segment_header){.key = old.key,
                                      .sequence = old.sequence,
                                      .next_index = old.next_index,
                                      .commit_index = old.commit_index,
                                      .term = old.term,
                                      .previous_end = old.previous_end};
    return old.crc == crc32c(0, &old, offsetof(struct old_segment_header, crc));
}

/* The header of either version; false: it is damaged, or of another segment. */
static bool take_header(const void *bytes, size_t size, uint64_t sequence,
                        struct segment_header *header) {
    bool good = false;
    if (size >= sizeof(struct old_segment_header) && memcmp(bytes, OLD_MAGIC, sizeof MAGIC) == 0) {
        good = take_old_header(bytes, header);
    } else if (size >= sizeof *header && memcmp(bytes, MAGIC, sizeof MAGIC) == 0) {
        memcpy(header, bytes, sizeof *header);
        good = header->crc == header_crc(header) && header->size >= sizeof *header &&
               header->size <= INT64_MAX;
    }
    return good && header->sequence == sequence && header->next_index > 0 &&
           header->next_index <= LOG_INDEX_MAX && header->commit_index < header->next_index;
}

/* ---- Opening ---- */

int segment_open(struct log *log, struct segment_view *view, uint64_t sequence) {
    struct stat about;
    *view = (struct segment_view){0};
    segment_name(view->name, sequence);
    view->file = file_open(log->directory, view->name, O_RDONLY);
    if (view->file < 0 || fstat(view->file, &about) != 0) {
        view->error = errno;
        return log_fail_errno(log, "cannot be read", view->name);
    }
    view->size = (uint64_t)about.st_size;
    if (view->size < sizeof(struct old_segment_header))
        return log_fail(log, "%s/%s: is too short for a segment: its entries are lost; " LOG_ADVICE,
                        log->path, view->name);
    size_t size = view->size < sizeof view->header ? view->size : sizeof view->header;
    if (!take_header(segment_bytes(view, 0, size), size, sequence, &view->header))
        return log_fail(log,
                        "%s/%s: its header is damaged (offset 0%s%s), so its entries cannot be "
                        "read; " LOG_ADVICE,
                        log->path, view->name, view->error ? ", " : "",
                        view->error ? strerror(view->error) : "");
    /* Nothing is written beyond the size in its header. */
    if (!segment_is_old(view) && view->size > view->header.size) view->size = view->header.size;
    view->begin =
        segment_is_old(view) ? sizeof(struct old_segment_header) : sizeof(struct segment_header);
    return 0;
}

void segment_close(struct segment_view *view) {
    if (view->file >= 0) close(view->file);
    free(view->part);
}

bool segment_read_header(int directory, uint64_t sequence, struct segment_header *header) {
    char name[SEGMENT_NAME_SIZE], bytes[sizeof *header];
    int file = file_open(directory, segment_name(name, sequence), O_RDONLY);
    if (file < 0) return false;
    ssize_t size = pread(file, bytes, sizeof bytes, 0);
    int error = size < 0 ? errno : 0;
    close(file);
    errno = error;
    return size > 0 && take_header(bytes, (size_t)size, sequence, header);
}

/* ---- Reading ---- */

enum { PART = 1 << 20, BLOCK = 4096, UNREADABLE = 0xdb };

/* What cannot be read becomes bytes that are no zeros and have no checksum: damage. */
static void read_block(struct segment_view *view, uint64_t offset, unsigned char *to, size_t size) {
    for (size_t done = 0; done < size;) {
        ssize_t got = pread(view->file, to + done, size - done, (off_t)(offset + done));
        if (got < 0 && errno == EINTR) continue;
        if (got > 0) {
            done += (size_t)got;
            continue;
        }
        if (!view->error) view->error_offset = offset + done;
        if (!view->error) view->error = got < 0 ? errno : EIO; /* it has become shorter */
        memset(to + done, UNREADABLE, size - done);
        return;
    }
}

static void read_part(struct segment_view *view, uint64_t offset, size_t size) {
    size_t done = 0;
    while (done < size) { /* as much as there is at once, and block by block around an error */
        ssize_t got = pread(view->file, view->part + done, size - done, (off_t)(offset + done));
        if (got > 0) {
            done += (size_t)got;
            continue;
        }
        size_t block = BLOCK - (size_t)((offset + done) % BLOCK);
        if (block > size - done) block = size - done;
        read_block(view, offset + done, view->part + done, block);
        done += block;
    }
}

const unsigned char *segment_bytes(struct segment_view *view, uint64_t offset, size_t size) {
    uint64_t end = offset + size;
    cv_assert(end <= view->size && end >= offset);
    if (offset < view->part_offset || end > view->part_offset + view->part_size) {
        uint64_t from = offset / BLOCK * BLOCK, left = view->size - from;
        size_t wanted = (size_t)(end - from);
        if (wanted < PART) wanted = left < PART ? (size_t)left : PART;
        if (wanted > view->part_room) {
            free(view->part);
            view->part = malloc(wanted);
            cv_assert(view->part);
            view->part_room = wanted;
        }
        view->part_offset = from;
        view->part_size = wanted;
        read_part(view, from, wanted);
    }
    return view->part + (offset - view->part_offset);
}

static bool is_zero(const unsigned char *at, size_t size) {
    return !size || (!at[0] && memcmp(at, at + 1, size - 1) == 0);
}

static bool part_is_zero(struct segment_view *view, uint64_t offset, uint64_t end) {
    for (; offset < end; offset += BLOCK - offset % BLOCK) {
        uint64_t size = BLOCK - offset % BLOCK;
        if (size > end - offset) size = end - offset;
        if (!is_zero(segment_bytes(view, offset, (size_t)size), (size_t)size)) return false;
    }
    return true;
}

/* Preallocated bytes that were never written need not be read: the file system knows them. */
bool segment_is_zero(struct segment_view *view, uint64_t offset, uint64_t end) {
    if (end > view->size) end = view->size;
    while (offset < end) {
        off_t data = lseek(view->file, (off_t)offset, SEEK_DATA);
        if (data < 0 && errno == ENXIO) return true;
        off_t hole = data < 0 ? -1 : lseek(view->file, data, SEEK_HOLE);
        uint64_t from = data < 0 ? offset : (uint64_t)data;
        uint64_t to = hole < 0 || (uint64_t)hole > end ? end : (uint64_t)hole;
        if (from >= end) return true;
        if (!part_is_zero(view, from, to)) return false;
        offset = to;
    }
    return true;
}

/* ---- Its batches ---- */

static size_t batch_header_size(const struct segment_view *view) {
    return segment_is_old(view) ? sizeof(struct old_batch_header) : sizeof(struct batch_header);
}

static bool has_room(const struct segment_view *view, uint64_t offset, uint64_t size) {
    return offset <= view->size && size <= view->size - offset;
}

static bool old_batch_place(struct segment_view *view, uint64_t offset, struct batch_place *place) {
    struct old_batch_header header;
    memcpy(&header, segment_bytes(view, offset, sizeof header), sizeof header);
    if (header.magic != magic_of(view->header.key)) return false;
    *place = (struct batch_place){.batch = {.first = header.first,
                                            .term = header.term,
                                            .commit_index = header.commit_index,
                                            .count = header.count,
                                            .kind = header.kind,
                                            .size = header.size},
                                  .entries = offset + sizeof header,
                                  .end = offset + segment_room(header.size, true),
                                  .crc_seed = crc32c(key_crc(view->header.key), &header.size,
                                                     sizeof header - sizeof header.crc),
                                  .entries_crc = header.crc};
    return has_room(view, place->entries, header.size);
}

static uint32_t batch_header_crc(uint64_t key, const struct batch_header *header) {
    return crc32c(key_crc(key), header, offsetof(struct batch_header, crc));
}

bool segment_batch_place(struct segment_view *view, uint64_t offset, struct batch_place *place) {
    struct batch_header header;
    if (!has_room(view, offset, batch_header_size(view))) return false;
    if (segment_is_old(view)) return old_batch_place(view, offset, place);
    memcpy(&header, segment_bytes(view, offset, sizeof header), sizeof header);
    if (header.magic != magic_of(view->header.key) ||
        header.crc != batch_header_crc(view->header.key, &header))
        return false;
    *place = (struct batch_place){.batch = {.first = header.first,
                                            .term = header.term,
                                            .commit_index = header.commit_index,
                                            .count = header.count,
                                            .kind = header.kind,
                                            .size = header.size},
                                  .entries = offset + sizeof header,
                                  .end = offset + segment_room(header.size, false),
                                  .crc_seed = key_crc(view->header.key),
                                  .entries_crc = header.entries_crc,
                                  .zero_sectors = header.zero_sectors,
                                  .previous_term = header.previous_term};
    return true;
}

bool segment_batch(struct segment_view *view, uint64_t offset, struct raft_batch *batch,
                   uint64_t *end) {
    struct batch_place place;
    if (!segment_batch_place(view, offset, &place)) return false;
    if (!has_room(view, place.entries, place.batch.size)) return false;
    const unsigned char *entries = segment_bytes(view, place.entries, place.batch.size);
    if (place.entries_crc != crc32c(place.crc_seed, entries, place.batch.size)) return false;
    *batch = place.batch;
    batch->bytes = entries;
    *end = place.end;
    return true;
}

uint64_t segment_next_magic(struct segment_view *view, uint64_t offset) {
    size_t at = segment_is_old(view) ? offsetof(struct old_batch_header, magic)
                                     : offsetof(struct batch_header, magic);
    uint32_t magic = magic_of(view->header.key);
    for (; has_room(view, offset, batch_header_size(view)); offset += 8)
        if (memcmp(segment_bytes(view, offset + at, sizeof magic), &magic, sizeof magic) == 0)
            return offset;
    return view->size;
}

uint64_t segment_header_ends(struct segment_view *view, uint64_t offset, uint32_t *first,
                             uint32_t *last) {
    size_t size = batch_header_size(view);
    *first = *last = 0;
    if (!has_room(view, offset, size)) return view->size;
    const unsigned char *bytes = segment_bytes(view, offset, size);
    memcpy(first, bytes, sizeof *first);
    memcpy(last, bytes + size - sizeof *last, sizeof *last);
    return offset + size;
}

/* ---- Writing ---- */

uint64_t segment_room(uint64_t entries_size, bool is_old) {
    if (is_old) return (sizeof(struct old_batch_header) + entries_size + 7) & ~(uint64_t)7;
    return ((sizeof(struct batch_header) + entries_size + 7) & ~(uint64_t)7) + sizeof END_MARK;
}

/* Only whole sectors of entries can be zero: the first and the last sector of a batch are not. */
static uint32_t zero_sectors(const struct raft_batch *batch, uint64_t offset) {
    uint64_t entries = offset + sizeof(struct batch_header), end = entries + batch->size;
    uint32_t count = 0;
    for (uint64_t at = (entries + SECTOR - 1) / SECTOR * SECTOR; at < end; at += SECTOR) {
        uint64_t size = end - at < SECTOR ? end - at : SECTOR;
        bool has_mark = at + SECTOR > end && (end + 7) / 8 * 8 < at + SECTOR;
        count += !has_mark && is_zero(batch->bytes + (at - entries), (size_t)size);
    }
    return count;
}

static size_t batch_header_form(unsigned char *to, uint64_t key, const struct raft_batch *batch,
                                uint64_t previous_term, uint64_t offset) {
    struct batch_header header = {.magic = magic_of(key),
                                  .size = (uint32_t)batch->size,
                                  .first = batch->first,
                                  .term = batch->term,
                                  .commit_index = batch->commit_index,
                                  .count = batch->count,
                                  .kind = batch->kind,
                                  .zero_sectors = zero_sectors(batch, offset),
                                  .entries_crc = crc32c(key_crc(key), batch->bytes, batch->size),
                                  .previous_term = (uint32_t)previous_term};
    header.crc = batch_header_crc(key, &header);
    memcpy(to, &header, sizeof header);
    return sizeof header;
}

static size_t old_batch_header_form(unsigned char *to, uint64_t key,
                                    const struct raft_batch *batch) {
    struct old_batch_header header = {.size = (uint32_t)batch->size,
                                      .first = batch->first,
                                      .term = batch->term,
                                      .commit_index = batch->commit_index,
                                      .count = batch->count,
                                      .kind = batch->kind,
                                      .magic = magic_of(key)};
    uint32_t crc = crc32c(key_crc(key), &header.size, sizeof header - sizeof header.crc);
    header.crc = crc32c(crc, batch->bytes, batch->size);
    memcpy(to, &header, sizeof header);
    return sizeof header;
}

void segment_batch_form(struct batch_form *form, uint64_t key, const struct raft_batch *batch,
                        uint64_t previous_term, uint64_t offset, bool is_old) {
    *form = (struct batch_form){0};
    cv_assert(batch->size <= UINT32_MAX);
    form->header_size = is_old ? old_batch_header_form(form->header, key, batch)
                               : batch_header_form(form->header, key, batch, previous_term, offset);
    form->end_size = segment_room(batch->size, is_old) - form->header_size - batch->size;
    if (!is_old) memcpy(form->end + form->end_size - sizeof END_MARK, END_MARK, sizeof END_MARK);
}

/* In pieces that the system does not keep in large pages: to sync a part of one costs more. */
int segment_write_zeros(int file, uint64_t from, uint64_t end) {
    static const unsigned char zeros[1 << 16];
    while (from < end) {
        size_t size = end - from < sizeof zeros ? (size_t)(end - from) : sizeof zeros;
        ssize_t done = pwrite(file, zeros, size, (off_t)from);
        if (done < 0 && errno == EINTR) continue;
        if (done <= 0) return -1;
        from += (uint64_t)done;
    }
    return 0;
}

/* What is zero already is not written, so that most of a segment stays as it was allocated.  The
 * file never becomes shorter: a short one is a sign of damage. */
int segment_cut(struct log *log, struct segment_view *view, uint64_t offset) {
    int file = file_open(log->directory, view->name, O_RDWR), status = 0;
    uint64_t size = view->header.size > view->size ? view->header.size : view->size, end;
    if (file < 0) return log_fail_errno(log, "cannot be written", view->name);
    for (uint64_t at = offset; !status && at < view->size; at = end) {
        end = at + PART - at % PART;
        if (end > view->size) end = view->size;
        if (!segment_is_zero(view, at, end)) status = segment_write_zeros(file, at, end);
    }
    if (status || (errno = posix_fallocate(file, 0, (off_t)size)) != 0 ||
        (!log->no_sync && fdatasync(file) != 0))
        status = log_fail_errno(log, "cannot be cut", view->name);
    close(file);
    return status;
}
