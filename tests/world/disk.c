/* Disks.  Files are real ones in memory; what was changed and not synced is remembered with what
 * was there before, and a power failure takes it back: all of it, none, or parts, torn anywhere.
 * Data may reach the disk in any order; the entries of a directory do so in theirs. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "world.h"

enum { DESCRIPTORS_MAX = 1024 };

/* Whose descriptors they are, by number. */
static struct opened {
    struct machine *machine;
    bool is_directory;
} opened[DESCRIPTORS_MAX];

int __real_open(const char *path, int flags, ...);
int __real_openat(int directory, const char *path, int flags, ...);
int __real_close(int fd);
int __real_closedir(DIR *listing);
ssize_t __real_pwritev(int fd, const struct iovec *parts, int count, off_t at);
ssize_t __real_pwrite(int fd, const void *bytes, size_t size, off_t at);
ssize_t __real_write(int fd, const void *bytes, size_t size);
int __real_ftruncate(int fd, off_t size);
int __real_posix_fallocate(int fd, off_t at, off_t size);
int __real_fsync(int fd);
int __real_fdatasync(int fd);
int __real_renameat(int from, const char *name, int to, const char *to_name);
int __real_unlinkat(int directory, const char *name, int flags);

/* ---- Descriptors ---- */

static struct machine *owner_of(int fd) {
    return !world || world->in_child || fd < 0 || fd >= DESCRIPTORS_MAX ? NULL : opened[fd].machine;
}

static int own(int fd, int flags) {
    if (fd < 0 || !machine_now() || world->in_child) return fd;
    cv_assert(fd < DESCRIPTORS_MAX);
    opened[fd] = (struct opened){machine_now(), flags & O_DIRECTORY};
    return fd;
}

int __wrap_open(const char *path, int flags, ...) {
    return own(__real_open(path, flags, 0640), flags);
}

int __wrap_close(int fd) {
    if (owner_of(fd)) opened[fd].machine = NULL;
    return __real_close(fd);
}

int __wrap_closedir(DIR *listing) {
    if (owner_of(dirfd(listing))) opened[dirfd(listing)].machine = NULL;
    return __real_closedir(listing);
}

void disk_process_ended(struct machine *m) {
    for (int fd = 0; fd < DESCRIPTORS_MAX; fd++)
        if (opened[fd].machine == m) __wrap_close(fd);
}

/* ---- What has changed ---- */

static struct change *add_change(struct disk *disk, enum change_kind kind) {
    disk->change = grown(disk->change, &disk->change_room, disk->changes + 1, sizeof *disk->change);
    struct change *change = &disk->change[disk->changes++];
    *change = (struct change){.kind = kind};
    return change;
}

static void free_change(struct disk *disk, struct change *change) {
    char name[32];
    bytes_close(&change->before);
    bytes_close(&change->after);
    snprintf(name, sizeof name, "%u", change->kept);
    if (change->kept) __real_unlinkat(disk->graveyard_directory, name, 0);
}

static struct file *file_of(struct disk *disk, int fd) {
    struct stat about;
    char path[32];
    cv_assert(fstat(fd, &about) == 0);
    for (struct file *file = disk->files; file; file = file->next)
        if (file->inode == about.st_ino) return file;
    struct file *file = calloc(1, sizeof *file);
    cv_assert(file);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    file->descriptor = __real_open(path, O_RDWR | O_CLOEXEC);
    cv_assert(file->descriptor >= 0);
    file->inode = about.st_ino;
    file->next = disk->files;
    return disk->files = file;
}

/* Before a stretch of a file becomes something else. */
static struct change *note_data(struct machine *m, int fd, uint64_t at, uint64_t size) {
    struct stat about;
    cv_assert(fstat(fd, &about) == 0);
    struct change *change = add_change(&m->disk, CHANGE_DATA);
    change->file = file_of(&m->disk, fd);
    change->at = at;
    change->size_before = change->size_after = (uint64_t)about.st_size;
    uint64_t there = at < change->size_before ? change->size_before - at : 0;
    if (there > size) there = size;
    unsigned char *to = bytes_extend(&change->before, there);
    cv_assert(pread(change->file->descriptor, to, there, (off_t)at) == (ssize_t)there);
    return change;
}

static void note_written(struct machine *m, int fd, uint64_t at, const struct iovec *parts,
                         int count) {
    uint64_t size = 0;
    for (int i = 0; i < count; i++) size += parts[i].iov_len;
    struct change *change = note_data(m, fd, at, size);
    for (int i = 0; i < count; i++) bytes_add(&change->after, parts[i].iov_base, parts[i].iov_len);
    if (at + size > change->size_before) change->size_after = at + size;
}

static void forget_changes(struct disk *disk, size_t up_to, const struct file *file) {
    size_t kept = 0;
    for (size_t i = 0; i < disk->changes; i++) {
        struct change *change = &disk->change[i];
        bool gone = i < up_to && (file ? change->file == file : change->kind != CHANGE_DATA);
        if (gone)
            free_change(disk, change);
        else
            disk->change[kept++] = *change;
    }
    disk->changes = kept;
}

static void forget_file(struct disk *disk, struct file *file) {
    struct file **at = &disk->files;
    for (size_t i = 0; i < disk->changes; i++)
        if (disk->change[i].file == file) return;
    while (*at != file) at = &(*at)->next;
    *at = file->next;
    __real_close(file->descriptor);
    free(file);
}

/* ---- Writing ---- */

/* A full disk: what has room already can be written. */
static bool has_room(struct machine *m, int fd, uint64_t end) {
    struct stat about;
    if (!m->disk.full) return true;
    bool has = fstat(fd, &about) == 0 && end <= (uint64_t)about.st_size;
    m->refused |= !has;
    return has;
}

ssize_t __wrap_pwritev(int fd, const struct iovec *parts, int count, off_t at) {
    struct machine *m = owner_of(fd);
    uint64_t size = 0;
    for (int i = 0; i < count; i++) size += parts[i].iov_len;
    if (!m) return __real_pwritev(fd, parts, count, at);
    if (!has_room(m, fd, (uint64_t)at + size)) return errno = ENOSPC, -1;
    note_written(m, fd, (uint64_t)at, parts, count);
    return __real_pwritev(fd, parts, count, at);
}

ssize_t __wrap_pwrite(int fd, const void *bytes, size_t size, off_t at) {
    struct iovec part = {(void *)bytes, size};
    return __wrap_pwritev(fd, &part, 1, at);
}

ssize_t __wrap_write(int fd, const void *bytes, size_t size) {
    struct machine *m = owner_of(fd);
    if (world && world->in_child && machine_now()->disk.full) return errno = ENOSPC, -1;
    if (!m) return __real_write(fd, bytes, size);
    struct iovec part = {(void *)bytes, size};
    off_t at = lseek(fd, 0, SEEK_CUR);
    ssize_t done = __wrap_pwritev(fd, &part, 1, at);
    if (done > 0) lseek(fd, at + done, SEEK_SET);
    return done;
}

int __wrap_ftruncate(int fd, off_t size) {
    struct machine *m = owner_of(fd);
    if (m) note_data(m, fd, (uint64_t)size, UINT64_MAX)->size_after = (uint64_t)size;
    return __real_ftruncate(fd, size);
}

int __wrap_posix_fallocate(int fd, off_t at, off_t size) {
    struct machine *m = owner_of(fd);
    if (!m) return __real_posix_fallocate(fd, at, size);
    if (!has_room(m, fd, (uint64_t)(at + size))) return ENOSPC;
    struct change *change = note_data(m, fd, (uint64_t)at, 0);
    if ((uint64_t)(at + size) > change->size_after) change->size_after = (uint64_t)(at + size);
    return __real_ftruncate(fd, (off_t)change->size_after); /* without a system call per page */
}

/* ---- Entries of the directory ---- */

static bool exists(int directory, const char *name) {
    return faccessat(directory, name, F_OK, 0) == 0;
}

/* Keeps what has that name, under a number, for as long as it may have to come back. */
static unsigned bury(struct disk *disk, int directory, const char *name) {
    char number[32];
    if (!exists(directory, name)) return 0;
    snprintf(number, sizeof number, "%u", ++disk->buried);
    cv_assert(linkat(directory, name, disk->graveyard_directory, number, 0) == 0);
    return disk->buried;
}

static void name_change(struct change *change, const char *name, const char *to) {
    snprintf(change->name, sizeof change->name, "%s", name);
    snprintf(change->to, sizeof change->to, "%s", to);
}

int __wrap_openat(int directory, const char *name, int flags, ...) {
    struct machine *m = owner_of(directory);
    if (!m) return own(__real_openat(directory, name, flags, 0640), flags);
    bool is_new = flags & O_CREAT && !exists(directory, name);
    if (is_new && m->disk.full && rng_chance(&world->disk, 0.5))
        return m->refused = true, errno = ENOSPC, -1;
    int fd = __real_openat(directory, name, flags & ~O_TRUNC, 0640);
    if (fd < 0) return fd;
    if (is_new) name_change(add_change(&m->disk, CHANGE_CREATE), name, "");
    own(fd, flags);
    if (flags & O_TRUNC && !is_new) __wrap_ftruncate(fd, 0);
    return fd;
}

int __wrap_renameat(int from, const char *name, int to, const char *to_name) {
    struct machine *m = owner_of(from);
    if (m) {
        unsigned kept = bury(&m->disk, to, to_name);
        struct change *change = add_change(&m->disk, CHANGE_RENAME);
        name_change(change, name, to_name);
        change->kept = kept;
    }
    return __real_renameat(from, name, to, to_name);
}

int __wrap_unlinkat(int directory, const char *name, int flags) {
    struct machine *m = owner_of(directory);
    if (m) {
        unsigned kept = bury(&m->disk, directory, name);
        struct change *change = add_change(&m->disk, CHANGE_UNLINK);
        name_change(change, name, "");
        change->kept = kept;
    }
    return __real_unlinkat(directory, name, flags);
}

/* ---- Syncing: what was changed before it began is safe when it has ended ---- */

static int sync_file(int fd) {
    struct machine *m = owner_of(fd);
    if (world && world->in_child) return 0;
    if (!m) return __real_fsync(fd);
    struct disk *disk = &m->disk;
    size_t up_to = disk->changes;
    struct file *file = opened[fd].is_directory ? NULL : file_of(disk, fd);
    nanos length = random_time(&world->disk, disk->sync_least, disk->sync_most);
    if (rng_chance(&world->disk, 0.002)) length += random_time(&world->disk, 10 * MS, 400 * MS);
    if (m->fate && rng_chance(&world->disk, 0.25))
        faults_doom(m, world->now + rng_below(&world->disk, length));
    task_sleep(length);
    forget_changes(disk, up_to, file);
    if (file) forget_file(disk, file);
    return 0;
}

int __wrap_fsync(int fd) { return sync_file(fd); }
int __wrap_fdatasync(int fd) { return sync_file(fd); }

/* It has synced the directory, and with it what others changed there. */
void disk_wrap_child_done(struct machine *m) { forget_changes(&m->disk, m->disk.changes, NULL); }

/* ---- Power failures ---- */

static void take_back_data(const struct change *change) {
    int fd = change->file->descriptor;
    cv_assert(__real_ftruncate(fd, (off_t)change->size_before) == 0);
    ssize_t done = __real_pwrite(fd, change->before.at, change->before.used, (off_t)change->at);
    cv_assert(done == (ssize_t)change->before.used);
}

/* All of it, or a part. */
static void bring_back_data(const struct change *change) {
    int fd = change->file->descriptor;
    struct stat about;
    size_t size = change->after.used, skipped = 0;
    if (rng_chance(&world->disk, 0.5) && size) {
        world->coverage.torn_changes++;
        size = rng_below(&world->disk, size + 1);
        if (rng_chance(&world->disk, 0.3)) skipped = rng_below(&world->disk, size + 1);
    }
    cv_assert(fstat(fd, &about) == 0);
    bool sized = change->size_after < change->size_before || !change->after.used;
    if (sized) cv_assert(__real_ftruncate(fd, (off_t)change->size_after) == 0);
    if (size == skipped) return;
    ssize_t done = __real_pwrite(fd, change->after.at + skipped, size - skipped,
                                 (off_t)(change->at + skipped));
    cv_assert(done == (ssize_t)(size - skipped));
}

static void take_back_entry(struct disk *disk, int directory, const struct change *change) {
    char number[32];
    snprintf(number, sizeof number, "%u", change->kept);
    if (change->kind == CHANGE_RENAME)
        __real_renameat(directory, change->to, directory, change->name);
    if (change->kind == CHANGE_CREATE) __real_unlinkat(directory, change->name, 0);
    if (change->kept)
        linkat(disk->graveyard_directory, number, directory,
               change->kind == CHANGE_RENAME ? change->to : change->name, 0);
}

/* `share`: of the entries' changes, how many are kept, the first ones. */
static void lose_entries(struct disk *disk, double share) {
    size_t entries = 0;
    int directory = __real_open(disk->path, O_RDONLY | O_DIRECTORY);
    for (size_t i = 0; i < disk->changes; i++) entries += disk->change[i].kind != CHANGE_DATA;
    size_t kept = (size_t)((double)entries * share + 0.5);
    for (size_t i = disk->changes; i-- > 0 && entries > kept;) {
        if (disk->change[i].kind == CHANGE_DATA) continue;
        take_back_entry(disk, directory, &disk->change[i]);
        world->coverage.lost_changes++;
        entries--;
    }
    __real_close(directory);
}

void disk_crash(struct machine *m) {
    struct disk *disk = &m->disk;
    double share = rng_chance(&world->disk, 0.2) ? 0 : rng_unit(&world->disk);
    disk_process_ended(m);
    for (size_t i = disk->changes; i-- > 0;)
        if (disk->change[i].kind == CHANGE_DATA) take_back_data(&disk->change[i]);
    for (size_t i = 0; i < disk->changes; i++) {
        if (disk->change[i].kind != CHANGE_DATA) continue;
        if (rng_chance(&world->disk, share))
            bring_back_data(&disk->change[i]);
        else
            world->coverage.lost_changes++;
    }
    lose_entries(disk, share);
    for (size_t i = 0; i < disk->changes; i++) free_change(disk, &disk->change[i]);
    disk->changes = 0;
    while (disk->files) forget_file(disk, disk->files);
}

void disk_unfinish(struct machine *m, uint64_t index) {
    char name[SNAPSHOT_NAME_SIZE];
    struct stat about;
    int directory = __real_open(m->disk.path, O_RDONLY | O_DIRECTORY);
    __real_renameat(directory, snapshot_name(name, index), directory, "new.snapshot");
    int fd = __real_openat(directory, "new.snapshot", O_RDWR);
    if (fd >= 0 && fstat(fd, &about) == 0)
        __real_ftruncate(fd, (off_t)rng_below(&world->disk, (uint64_t)about.st_size + 1));
    if (fd >= 0) __real_close(fd);
    __real_close(directory);
}

/* ---- Rot ---- */

bool disk_rot(struct machine *m) {
    char first[DISK_NAME_MAX] = "", last[DISK_NAME_MAX] = "";
    struct stat about;
    unsigned char byte;
    int directory = __real_open(m->disk.path, O_RDONLY | O_DIRECTORY);
    DIR *listing = fdopendir(directory);
    for (struct dirent *found; (found = readdir(listing));) {
        if (strncmp(found->d_name, "log.", 4) != 0) continue;
        if (strcmp(found->d_name, last) > 0) snprintf(last, sizeof last, "%.60s", found->d_name);
        if (!*first || strcmp(found->d_name, first) < 0)
            snprintf(first, sizeof first, "%.60s", found->d_name);
    }
    bool found = strcmp(first, last) != 0;
    int fd = found ? __real_openat(directory, first, O_RDWR) : -1;
    if (found && fstat(fd, &about) == 0) {
        off_t at = (off_t)rng_below(&world->disk, (uint64_t)about.st_size / 2);
        cv_assert(pread(fd, &byte, 1, at) == 1);
        byte ^= (unsigned char)(1u << rng_below(&world->disk, 8));
        cv_assert(__real_pwrite(fd, &byte, 1, at) == 1);
    }
    if (fd >= 0) __real_close(fd);
    __real_closedir(listing);
    return found;
}

/* ---- Opening ---- */

void disk_open(struct disk *disk, const char *path, const char *graveyard) {
    snprintf(disk->path, sizeof disk->path, "%s", path);
    snprintf(disk->graveyard, sizeof disk->graveyard, "%s", graveyard);
    cv_assert(mkdir(path, 0700) == 0 && mkdir(graveyard, 0700) == 0);
    disk->graveyard_directory = __real_open(graveyard, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    cv_assert(disk->graveyard_directory >= 0);
    disk->sync_least = 50 * US;
    disk->sync_most = 500 * US;
}
