/* Disks that lose what was synced: bits flip in any file, sectors cannot be read, files are gone.
 */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/crc32c.h"
#include "service/log/vote.h"
#include "world.h"

int __real_open(const char *path, int flags, ...);
int __real_openat(int directory, const char *name, int flags, ...);
int __real_close(int fd);
int __real_closedir(DIR *listing);
ssize_t __real_pread(int fd, void *bytes, size_t size, off_t at);
ssize_t __real_pwrite(int fd, const void *bytes, size_t size, off_t at);
int __real_unlinkat(int directory, const char *name, int flags);

enum { FILES_MAX = 64, TAIL = 100, VOTE_SIZE = 64, VOTE_COPY_AT = 4096 };

struct listing {
    char name[FILES_MAX][DISK_NAME_MAX]; /* in their order */
    unsigned count;
};

/* The files whose names begin so. */
static void list_files(const struct machine *m, const char *prefix, struct listing *to) {
    DIR *directory = fdopendir(__real_open(m->disk.path, O_RDONLY | O_DIRECTORY));
    to->count = 0;
    for (struct dirent *found; (found = readdir(directory));) {
        if (*found->d_name == '.' || strncmp(found->d_name, prefix, strlen(prefix)) != 0) continue;
        if (to->count == FILES_MAX) break;
        unsigned at = to->count++;
        for (; at && strcmp(to->name[at - 1], found->d_name) > 0; at--)
            memcpy(to->name[at], to->name[at - 1], DISK_NAME_MAX);
        snprintf(to->name[at], DISK_NAME_MAX, "%.63s", found->d_name);
    }
    __real_closedir(directory);
}

/* The end of what is not zero: segments are preallocated. */
static uint64_t used_size(int fd) {
    unsigned char bytes[4096];
    struct stat about;
    cv_assert(fstat(fd, &about) == 0);
    uint64_t end = 0;
    for (uint64_t at = 0; at < (uint64_t)about.st_size; at += sizeof bytes) {
        ssize_t size = __real_pread(fd, bytes, sizeof bytes, (off_t)at);
        for (ssize_t i = 0; i < size; i++)
            if (bytes[i]) end = at + (uint64_t)i + 1;
    }
    return end;
}

static bool damage(struct machine *m, const char *name, bool unreadable) {
    unsigned char byte;
    struct stat about;
    int directory = __real_open(m->disk.path, O_RDONLY | O_DIRECTORY);
    int fd = __real_openat(directory, name, O_RDWR);
    __real_close(directory);
    if (fd < 0) return false;
    uint64_t size = used_size(fd);
    uint64_t tail = rng_chance(&world->disk, 0.5) && size > TAIL ? TAIL : size; /* often the end */
    off_t at = size ? (off_t)(size - tail + rng_below(&world->disk, tail)) : 0;
    if (strcmp(name, VOTE_NAME) == 0 && tail == size && size > VOTE_SIZE) at %= VOTE_SIZE;
    if (size && unreadable) {
        cv_assert(fstat(fd, &about) == 0);
        m->disk.bad_inode = about.st_ino;
        m->disk.bad_at = (uint64_t)at;
    } else if (size) {
        cv_assert(__real_pread(fd, &byte, 1, at) == 1);
        byte ^= (unsigned char)(1u << rng_below(&world->disk, 8));
        cv_assert(__real_pwrite(fd, &byte, 1, at) == 1);
    }
    if (size) trace("", "%s of server %u is damaged at %lld", name, m->number, (long long)at);
    __real_close(fd);
    return size;
}

bool disk_rot_old(struct machine *m) {
    struct listing segments;
    list_files(m, "log.", &segments);
    return segments.count > 1 && damage(m, segments.name[0], false);
}

static bool is_intact(const unsigned char *form, size_t size) {
    uint32_t crc;
    memcpy(&crc, form + size - sizeof crc, sizeof crc);
    return crc == crc32c(0, form, size - sizeof crc);
}

/* Whether one of its copies is intact, and in sectors that can be read.  (By the bytes, as it is
 * the server's part to find that out.) */
static bool vote_is_known(const struct machine *m) {
    unsigned char bytes[VOTE_COPY_AT + VOTE_SIZE];
    struct stat about;
    const struct disk *disk = &m->disk;
    int directory = __real_open(disk->path, O_RDONLY | O_DIRECTORY);
    int fd = __real_openat(directory, VOTE_NAME, O_RDONLY);
    cv_assert(fd >= 0 && fstat(fd, &about) == 0);
    ssize_t size = __real_pread(fd, bytes, sizeof bytes, 0);
    for (ssize_t i = 0; i < size; i++)
        if (about.st_ino == disk->bad_inode && (uint64_t)i - disk->bad_at < SECTOR)
            bytes[i] ^= 0xff;
    __real_close(fd);
    __real_close(directory);
    if (size < (ssize_t)sizeof bytes) return is_intact(bytes, (size_t)size); /* it has no copy */
    return is_intact(bytes, VOTE_SIZE) || is_intact(bytes + VOTE_COPY_AT, VOTE_SIZE);
}

bool disk_rot(struct machine *m, bool unreadable) {
    struct listing files;
    uint64_t chosen = rng_below(&world->disk, 5);
    if (chosen == 4) chosen = 1; /* snapshots twice as often: not every disk has one */
    list_files(m, chosen == 0 ? "vote" : chosen == 1 ? "snapshot." : "log.", &files);
    if (!files.count) return false;
    unsigned last = files.count - 1;
    unsigned which = chosen == 3 && last ? (unsigned)rng_below(&world->disk, last) : last;
    if (!damage(m, files.name[which], unreadable)) return false;
    if (chosen == 0 && vote_is_known(m)) { /* by a copy: nothing is lost */
        world->coverage.mended_votes++;
        return false;
    }
    world->coverage.vote_rots += chosen == 0;
    world->coverage.snapshot_rots += chosen == 1;
    world->coverage.last_rots += chosen >= 2 && which == last;
    world->coverage.rots += chosen >= 2 && which < last;
    return true;
}

void disk_wipe(struct machine *m, bool but_the_vote) {
    struct listing files;
    list_files(m, "", &files);
    int directory = __real_open(m->disk.path, O_RDONLY | O_DIRECTORY);
    for (unsigned i = 0; i < files.count; i++)
        if (!but_the_vote || strcmp(files.name[i], "vote") != 0)
            __real_unlinkat(directory, files.name[i], 0);
    __real_close(directory);
    trace("", "the disk of server %u is wiped%s", m->number, but_the_vote ? ", but its vote" : "");
}
