#include "service/log/spare.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/statvfs.h>

#include "base/assert.h"
#include "base/grow.h"
#include "service/log/internal.h"

/* ---- Making one ready ---- */

/* An old segment is overwritten early, while the disk has nothing else to do for it; another file
 * is made only if none became free by then. */
bool spare_is_wanted(const struct log *log, struct spare_work *work) {
    uint64_t used = log->end.offset;
    bool is_stale = log->spare == SPARE_STALE, is_missing = log->spare == SPARE_MISSING;
    if (log->file < 0 || log->read_only) return false;
    if (!(is_stale && used >= log->size / 4) && !(is_missing && used >= log->size / 2))
        return false;
    work->directory = log->directory;
    work->size = log->segment_bytes;
    work->reserve = log_size_without_spare(log);
    work->no_sync = log->no_sync;
    work->file = -1;
    work->error = 0;
    atomic_init(&work->stop, false);
    return true;
}

/* Bit by bit, so that the log's own writes need not wait for all of it. */
static int overwrite(struct spare_work *work, int file) {
    enum { PIECE = 1 << 22 };
    for (uint64_t at = 0, end; at < work->size; at = end) {
        end = work->size - at < PIECE ? work->size : at + PIECE;
        if (atomic_load(&work->stop)) {
            errno = ECANCELED;
            return -1;
        }
        if (segment_write_zeros(file, at, end) != 0 || (!work->no_sync && fdatasync(file) != 0))
            return -1;
    }
    return 0;
}

/* If the log needs a segment before the spare is ready, it has to find room for one. */
static int check_room(const struct spare_work *work, int file) {
    enum { BLOCK = 512 };
    struct stat about;
    struct statvfs disk;
    if (fstat(file, &about) != 0 || fstatvfs(file, &disk) != 0) return -1;
    uint64_t has = (uint64_t)about.st_blocks * BLOCK, room = disk.f_bavail * disk.f_frsize;
    uint64_t needed = work->reserve + (has < work->size ? work->size - has : 0);
    if (!disk.f_blocks || room >= needed) return 0; /* some disks do not say how large they are */
    errno = ENOSPC;
    return -1;
}

static int make_ready(struct spare_work *work, int file) {
    if (!work->no_sync && fsync(work->directory) != 0) return -1; /* its old name is gone */
    if (check_room(work, file) != 0) return -1;
    if (ftruncate(file, (off_t)work->size) != 0) return -1;
    if ((errno = posix_fallocate(file, 0, (off_t)work->size)) != 0) return -1;
    if (overwrite(work, file) != 0) return -1;
    return work->no_sync ? 0 : fsync(file);
}

/* What is not the log's alone is not overwritten. */
static int open_own(int directory) {
    struct stat about;
    if (fstatat(directory, SPARE_NAME, &about, AT_SYMLINK_NOFOLLOW) == 0 &&
        (!S_ISREG(about.st_mode) || about.st_nlink > 1))
        unlinkat(directory, SPARE_NAME, 0);
    return file_open(directory, SPARE_NAME, O_RDWR | O_CREAT | O_NOFOLLOW);
}

void spare_prepare(struct spare_work *work) {
    int file = open_own(work->directory);
    if (file >= 0 && make_ready(work, file) == 0) {
        work->file = file;
        return;
    }
    work->error = errno;
    if (file < 0) return;
    close(file);
    unlinkat(work->directory, SPARE_NAME, 0);
}

void spare_take(struct log *log, struct spare_work *work) {
    log->spare = work->file >= 0 ? SPARE_READY : SPARE_GIVEN_UP;
    log->spare_file = work->file;
    log->spare_size = work->size;
}

bool spare_is_ready(struct log *log) {
    struct stat made, found;
    if (log->spare != SPARE_READY) return false;
    if (fstat(log->spare_file, &made) == 0 &&
        fstatat(log->directory, SPARE_NAME, &found, AT_SYMLINK_NOFOLLOW) == 0 &&
        found.st_ino == made.st_ino && found.st_dev == made.st_dev)
        return true;
    close(log->spare_file);
    log->spare = SPARE_MISSING;
    return false;
}

/* ---- Removing segments ---- */

void log_forget(struct log *log, uint64_t index, struct log_removal *removal) {
    size_t unneeded = log_first_needed(log, index);
    *removal = (struct log_removal){.directory = log->directory,
                                    .recycles = log->spare == SPARE_MISSING,
                                    .spare_size = log->segment_bytes};
    if (unneeded == log->segments) return;
    removal->sequence =
        grown(removal->sequence, &removal->room, unneeded, sizeof *removal->sequence);
    for (size_t i = 0; i < unneeded; i++)
        removal->sequence[removal->count++] = log->segment[i].sequence;
    log->segments -= unneeded;
    memmove(log->segment, log->segment + unneeded, log->segments * sizeof *log->segment);
}

static bool recycle(struct log_removal *removal, const char *name) {
    struct stat about;
    if (!removal->recycles || removal->recycled) return false;
    if (fstatat(removal->directory, name, &about, AT_SYMLINK_NOFOLLOW) != 0 ||
        !S_ISREG(about.st_mode) || about.st_nlink > 1 ||
        (uint64_t)about.st_size != removal->spare_size)
        return false;
    removal->recycled = renameat(removal->directory, name, removal->directory, SPARE_NAME) == 0;
    return removal->recycled;
}

void log_remove(struct log_removal *removal) {
    char name[SEGMENT_NAME_SIZE];
    for (size_t i = 0; i < removal->count; i++) {
        segment_name(name, removal->sequence[i]);
        if (recycle(removal, name) || unlinkat(removal->directory, name, 0) == 0) continue;
        if (errno != ENOENT && !removal->error) removal->error = errno;
    }
}

void log_removed(struct log *log, struct log_removal *removal) {
    if (removal->recycled) log->spare = SPARE_STALE;
    if (removal->error) {
        errno = removal->error;
        log_fail_errno(log, "cannot be removed", "log.*");
    }
    free(removal->sequence);
    removal->sequence = NULL;
}
