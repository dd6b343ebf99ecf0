/* Disks.  Files are real ones in memory.  Changes that were not synced are kept together with what
 * was there before, and a power failure reverts all of them, none, or some, torn anywhere.  Data
 * may reach the disk in any order; the entries of a directory reach it in their order.
 *
 * A sync may fail.  Then the system takes for written what was not: it can be read until the power
 * fails, and no later sync makes it durable, unless it is written again. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "service/log/spare.h"
#include "world.h"

enum { DESCRIPTORS_MAX = 1024 };

/* Whose descriptors they are, by number. */
static struct opened {
    struct machine *machine;
    bool is_directory;
    uint64_t inode; /* 0: not asked yet */
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
ssize_t __real_pread(int fd, void *bytes, size_t size, off_t at);
ssize_t __real_read(int fd, void *bytes, size_t size);
int __real_renameat(int from, const char *name, int to, const char *to_name);
int __real_unlinkat(int directory, const char *name, int flags);

/* ---- Descriptors ---- */

static struct machine *owner_of(int fd) {
    return !world || world->in_child || fd < 0 || fd >= DESCRIPTORS_MAX ? NULL : opened[fd].machine;
}

static int own(int fd, int flags) {
    if (fd < 0 || !machine_now() || world->in_child) return fd;
    cv_assert(fd < DESCRIPTORS_MAX);
    opened[fd] = (struct opened){.machine = machine_now(), .is_directory = flags & O_DIRECTORY};
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
    m->disk.syncing = m->disk.syncs = 0;
}

/* ---- What has changed ---- */

static struct change *add_change(struct disk *disk, enum change_kind kind) {
    disk->change = grown(disk->change, &disk->change_room, disk->changes + 1, sizeof *disk->change);
    struct change *change = &disk->change[disk->changes++];
    *change = (struct change){.kind = kind, .number = ++disk->numbered};
    return change;
}

static void free_change(struct disk *disk, struct change *change) {
    char name[32];
    bytes_close(&change->before);
    bytes_close(&change->after);
    snprintf(name, sizeof name, "%u", change->kept);
    if (change->kept) __real_unlinkat(disk->graveyard_directory, name, 0);
}

static uint64_t inode_of(int fd) {
    struct stat about;
    if (opened[fd].inode) return opened[fd].inode;
    cv_assert(fstat(fd, &about) == 0);
    return opened[fd].inode = about.st_ino;
}

static struct file *file_of(struct disk *disk, int fd) {
    uint64_t inode = inode_of(fd);
    for (struct file *file = disk->files; file; file = file->next)
        if (file->inode == inode) return file;
    struct file *file = calloc(1, sizeof *file);
    cv_assert(file);
    file->descriptor = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    cv_assert(file->descriptor >= 0);
    file->inode = inode;
    file->next = disk->files;
    return disk->files = file;
}

/* Called before a range of a file changes. */
static struct change *record_data(struct machine *m, int fd, uint64_t at, uint64_t size) {
    struct stat about;
    cv_assert(fstat(fd, &about) == 0);
    struct change *change = add_change(&m->disk, CHANGE_DATA);
    change->file = file_of(&m->disk, fd);
    change->at = at;
    change->size_before = change->size_after = (uint64_t)about.st_size;
    uint64_t there = at < change->size_before ? change->size_before - at : 0;
    if (there > size) there = size;
    unsigned char *to = bytes_extend(&change->before, there);
    cv_assert(__real_pread(change->file->descriptor, to, there, (off_t)at) == (ssize_t)there);
    return change;
}

static bool overlap(const struct change *a, uint64_t at, uint64_t size) {
    return a->at < at + size && at < a->at + a->after.used;
}

/* The last write to the same place, if it is not durable either; NULL: there is none. */
static struct change *same_place(struct disk *disk, int fd, uint64_t at, uint64_t size) {
    struct file *file = file_of(disk, fd);
    for (size_t i = disk->changes; i-- > 0;) {
        struct change *change = &disk->change[i];
        if (change->file != file || (change->after.used && !overlap(change, at, size))) continue;
        bool same = change->at == at && change->after.used == size && !change->dropped;
        return same && change->number > disk->syncing ? change : NULL;
    }
    return NULL;
}

static void record_write(struct machine *m, int fd, uint64_t at, const struct iovec *parts,
                         int count) {
    uint64_t size = 0;
    for (int i = 0; i < count; i++) size += parts[i].iov_len;
    struct change *change = same_place(&m->disk, fd, at, size);
    if (change)
        change->after.used = 0;
    else
        change = record_data(m, fd, at, size);
    for (int i = 0; i < count; i++) bytes_add(&change->after, parts[i].iov_base, parts[i].iov_len);
    if (at + size > change->size_before) change->size_after = at + size;
}

static bool is_of(const struct change *change, const struct file *file) {
    return file ? change->file == file : change->kind != CHANGE_DATA;
}

/* Bytes after the end of a file are gone, and do not come back when it grows again. */
static void clip(struct bytes *bytes, uint64_t at, uint64_t size) {
    uint64_t left = at < size ? size - at : 0;
    if (bytes->used > left) bytes->used = (size_t)left;
}

/* A change is durable: power failures do not go back behind it.  Of what was dropped before it only
 * bytes that were not written again since are uncertain, and not the size of the file. */
static void write_over(struct disk *disk, size_t written) {
    const struct change *change = &disk->change[written];
    for (size_t i = 0; i < written; i++) {
        struct change *old = &disk->change[i];
        if (!old->dropped || old->file != change->file || old->kind != CHANGE_DATA) continue;
        old->size_before = old->size_after = change->size_after;
        clip(&old->before, old->at, change->size_after);
        clip(&old->after, old->at, change->size_after);
        while (old->before.used < old->after.used) bytes_add(&old->before, "", 1);
        for (size_t j = 0; j < change->after.used; j++) {
            uint64_t at = change->at + j;
            if (at >= old->at && at < old->at + old->before.used)
                old->before.at[at - old->at] = change->after.at[j];
            if (at >= old->at && at < old->at + old->after.used)
                old->after.at[at - old->at] = change->after.at[j];
        }
    }
}

static void forget_changes(struct disk *disk, uint64_t up_to, struct file *file) {
    size_t kept = 0;
    bool any = false; /* the entries of a directory are written together */
    for (size_t i = 0; i < disk->changes && disk->change[i].number <= up_to; i++) {
        struct change *change = &disk->change[i];
        if (!is_of(change, file) || change->dropped) continue;
        if (file) write_over(disk, i);
        if (file) file->synced_size = change->size_after;
        any = true;
    }
    if (file) file->synced |= any;
    for (size_t i = 0; i < disk->changes; i++) {
        struct change *change = &disk->change[i];
        bool gone =
            change->number <= up_to && is_of(change, file) && (!change->dropped || (!file && any));
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

/* On a full disk only space that a file has already can be written. */
static bool has_room(struct machine *m, int fd, uint64_t end) {
    struct stat about;
    if (!m->disk.full) return true;
    bool has = fstat(fd, &about) == 0 && end <= (uint64_t)about.st_size;
    m->refused |= !has;
    return has;
}

static bool is_spare(const struct machine *m, int fd) {
    struct stat spare, written;
    int directory = __real_open(m->disk.path, O_RDONLY | O_DIRECTORY);
    bool same = fstatat(directory, SPARE_NAME, &spare, 0) == 0 && fstat(fd, &written) == 0 &&
                spare.st_ino == written.st_ino;
    __real_close(directory);
    return same;
}

/* A crash may bring a name back that was not gone durably. */
static void check_name_is_gone(const struct machine *m, int fd) {
    for (size_t i = 0; i < m->disk.changes; i++) {
        const struct change *change = &m->disk.change[i];
        if (change->kind == CHANGE_RENAME && strcmp(change->to, SPARE_NAME) == 0 && is_spare(m, fd))
            violated("server %u overwrites a segment whose name may come back", m->number);
    }
}

/* What a failed sync has dropped, and was not written again since, is not on the disk. */
static void check_is_on_disk(const struct machine *m, int directory, const char *name) {
    struct stat about;
    if (fstatat(directory, name, &about, 0) != 0) return;
    for (size_t i = 0; i < m->disk.changes; i++) {
        const struct change *change = &m->disk.change[i];
        if (change->kind != CHANGE_DATA || !change->dropped || !change->after.used ||
            change->file->inode != about.st_ino)
            continue;
        if (change->before.used < change->after.used ||
            memcmp(change->before.at, change->after.at, change->after.used) != 0)
            violated("server %u makes a segment of a file that is not on the disk", m->number);
    }
}

ssize_t __wrap_pwritev(int fd, const struct iovec *parts, int count, off_t at) {
    struct machine *m = owner_of(fd);
    uint64_t size = 0;
    for (int i = 0; i < count; i++) size += parts[i].iov_len;
    if (!m) return __real_pwritev(fd, parts, count, at);
    if (!has_room(m, fd, (uint64_t)at + size)) return errno = ENOSPC, -1;
    check_name_is_gone(m, fd);
    record_write(m, fd, (uint64_t)at, parts, count);
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
    if (m) record_data(m, fd, (uint64_t)size, UINT64_MAX)->size_after = (uint64_t)size;
    return __real_ftruncate(fd, size);
}

int __wrap_posix_fallocate(int fd, off_t at, off_t size) {
    struct machine *m = owner_of(fd);
    if (!m) return __real_posix_fallocate(fd, at, size);
    if (!has_room(m, fd, (uint64_t)(at + size))) return ENOSPC;
    struct change *change = record_data(m, fd, (uint64_t)at, 0);
    if ((uint64_t)(at + size) > change->size_after) change->size_after = (uint64_t)(at + size);
    return __real_ftruncate(fd, (off_t)change->size_after); /* without a system call per page */
}

/* ---- Reading: a sector may have become unreadable ---- */

static bool is_unreadable(int fd, uint64_t at, size_t size) {
    const struct machine *m = owner_of(fd);
    if (!m || !m->disk.bad_inode) return false;
    bool bad = inode_of(fd) == m->disk.bad_inode && at < m->disk.bad_at + SECTOR &&
               m->disk.bad_at < at + size;
    world->coverage.read_errors += bad;
    return bad;
}

ssize_t __wrap_pread(int fd, void *bytes, size_t size, off_t at) {
    if (is_unreadable(fd, (uint64_t)at, size)) return errno = EIO, -1;
    return __real_pread(fd, bytes, size, at);
}

ssize_t __wrap_read(int fd, void *bytes, size_t size) {
    if (owner_of(fd) && is_unreadable(fd, (uint64_t)lseek(fd, 0, SEEK_CUR), size))
        return errno = EIO, -1;
    return __real_read(fd, bytes, size);
}

/* ---- Entries of the directory ---- */

static bool exists(int directory, const char *name) {
    return faccessat(directory, name, F_OK, 0) == 0;
}

/* Links a file into the graveyard, under a number, for as long as it may have to come back. */
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
    if (flags & O_WRONLY) flags ^= O_WRONLY | O_RDWR; /* its changes are read, too */
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
        bool recycles = strcmp(to_name, SPARE_NAME) == 0;
        if (recycles) judge_removal(m, name);
        world->coverage.recycled_segments += recycles;
        world->coverage.used_spares += strcmp(name, SPARE_NAME) == 0;
        if (strcmp(name, SPARE_NAME) == 0) check_is_on_disk(m, from, name);
        unsigned kept = bury(&m->disk, to, to_name);
        struct change *change = add_change(&m->disk, CHANGE_RENAME);
        name_change(change, name, to_name);
        change->kept = kept;
    }
    return __real_renameat(from, name, to, to_name);
}

bool disk_may_forget(const struct disk *disk, const char *name) {
    for (size_t i = 0; i < disk->changes; i++)
        if (disk->change[i].dropped && strcmp(disk->change[i].to, name) == 0) return true;
    return false;
}

int __wrap_unlinkat(int directory, const char *name, int flags) {
    struct machine *m = owner_of(directory);
    if (m) {
        judge_removal(m, name);
        unsigned kept = bury(&m->disk, directory, name);
        struct change *change = add_change(&m->disk, CHANGE_UNLINK);
        name_change(change, name, "");
        change->kept = kept;
    }
    return __real_unlinkat(directory, name, flags);
}

/* ---- Syncing: changes from before its begin are durable at its end ---- */

static int fail_sync(struct machine *m, uint64_t up_to, struct file *file) {
    struct disk *disk = &m->disk;
    if (file) file->synced = false;
    for (size_t i = 0; i < disk->changes && disk->change[i].number <= up_to; i++)
        if (is_of(&disk->change[i], file)) disk->change[i].dropped = true;
    m->refused = true;
    faults_sync_failed(m);
    return errno = EIO, -1;
}

static bool fails(const struct machine *m) {
    return m->disk.failing && rng_chance(&world->disk, 0.3);
}

static int sync_file(int fd) {
    struct machine *m = owner_of(fd);
    if (world && world->in_child && machine_now())
        return fails(machine_now()) ? errno = EIO, -1 : 0;
    if (!m) return __real_fsync(fd);
    struct disk *disk = &m->disk;
    uint64_t up_to = disk->numbered;
    struct file *file = opened[fd].is_directory ? NULL : file_of(disk, fd);
    nanos length = random_time(&world->disk, disk->sync_min, disk->sync_max);
    if (rng_chance(&world->disk, 0.002)) length += random_time(&world->disk, 10 * MS, 400 * MS);
    length += disk->stall;
    disk->stall = 0;
    if (m->fate && rng_chance(&world->disk, 0.25))
        faults_doom(m, world->now + rng_below(&world->disk, length));
    disk->syncing = up_to;
    disk->syncs++;
    task_sleep(length);
    if (!--disk->syncs) disk->syncing = 0;
    if (fails(m)) return fail_sync(m, up_to, file);
    forget_changes(disk, up_to, file);
    if (file) forget_file(disk, file);
    return 0;
}

int __wrap_fsync(int fd) { return sync_file(fd); }
int __wrap_fdatasync(int fd) { return sync_file(fd); }

/* The child has synced the directory, and with it all changes there. */
void disk_wrap_child_done(struct machine *m) { forget_changes(&m->disk, m->disk.numbered, NULL); }

/* ---- Power failures ---- */

static void revert_data(const struct change *change) {
    int fd = change->file->descriptor;
    cv_assert(__real_ftruncate(fd, (off_t)change->size_before) == 0);
    ssize_t done = __real_pwrite(fd, change->before.at, change->before.used, (off_t)change->at);
    cv_assert(done == (ssize_t)change->before.used);
}

/* Disks write whole sectors.  The log has to recognize also parts of one, of whole words, but in
 * its version 2, which says too little of its batches for that. */
static size_t tear(const struct change *change, size_t size) {
    static const char OLD[] = "conclave log 2";
    char magic[sizeof OLD - 1] = "";
    size_t torn = rng_below(&world->disk, size + 1);
    __real_pread(change->file->descriptor, magic, sizeof magic, 0);
    uint64_t unit = memcmp(magic, OLD, sizeof magic) == 0 ? SECTOR : sizeof(uint64_t);
    uint64_t boundary = (change->at + torn) / unit * unit;
    return torn == size ? size : boundary > change->at ? (size_t)(boundary - change->at) : 0;
}

/* All of it, or a part. */
static void reapply_data(const struct change *change) {
    int fd = change->file->descriptor;
    struct stat about;
    size_t size = change->after.used, skipped = 0;
    if (rng_chance(&world->disk, 0.5) && size) {
        world->coverage.torn_changes++;
        size = tear(change, size);
        if (rng_chance(&world->disk, 0.3)) skipped = tear(change, size);
    }
    cv_assert(fstat(fd, &about) == 0);
    bool sized = change->size_after < change->size_before || !change->after.used;
    if (sized) cv_assert(__real_ftruncate(fd, (off_t)change->size_after) == 0);
    if (size == skipped) return;
    ssize_t done = __real_pwrite(fd, change->after.at + skipped, size - skipped,
                                 (off_t)(change->at + skipped));
    cv_assert(done == (ssize_t)(size - skipped));
}

static void revert_entry(struct disk *disk, int directory, const struct change *change) {
    char number[32];
    snprintf(number, sizeof number, "%u", change->kept);
    if (change->kind == CHANGE_RENAME)
        __real_renameat(directory, change->to, directory, change->name);
    if (change->kind == CHANGE_CREATE) __real_unlinkat(directory, change->name, 0);
    if (change->kept)
        linkat(disk->graveyard_directory, number, directory,
               change->kind == CHANGE_RENAME ? change->to : change->name, 0);
}

/* Keeps the first changes of directory entries, up to that share. */
static void lose_entries(struct disk *disk, double share) {
    size_t entries = 0;
    int directory = __real_open(disk->path, O_RDONLY | O_DIRECTORY);
    for (size_t i = 0; i < disk->changes; i++) entries += disk->change[i].kind != CHANGE_DATA;
    size_t kept = (size_t)((double)entries * share + 0.5);
    for (size_t i = disk->changes; i-- > 0 && entries > kept;) {
        if (disk->change[i].kind == CHANGE_DATA) continue;
        revert_entry(disk, directory, &disk->change[i]);
        world->coverage.lost_changes++;
        entries--;
    }
    __real_close(directory);
}

/* A file whose last change was synced has the size that it had then, whatever failed before. */
static void check_sizes(const struct disk *disk) {
    for (const struct file *file = disk->files; file; file = file->next) {
        struct stat about;
        bool changed = !file->synced;
        for (size_t i = 0; i < disk->changes; i++)
            changed |= disk->change[i].file == file && !disk->change[i].dropped;
        cv_assert(fstat(file->descriptor, &about) == 0);
        cv_assert(changed || (uint64_t)about.st_size == file->synced_size);
    }
}

void disk_crash(struct machine *m) {
    struct disk *disk = &m->disk;
    double share = rng_chance(&world->disk, 0.2) ? 0 : rng_unit(&world->disk);
    disk_process_ended(m);
    for (size_t i = disk->changes; i-- > 0;)
        if (disk->change[i].kind == CHANGE_DATA) revert_data(&disk->change[i]);
    for (size_t i = 0; i < disk->changes; i++) {
        if (disk->change[i].kind != CHANGE_DATA) continue;
        if (rng_chance(&world->disk, disk->change[i].dropped ? share / 2 : share))
            reapply_data(&disk->change[i]);
        else
            world->coverage.lost_changes++;
    }
    lose_entries(disk, share);
    check_sizes(disk);
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

/* ---- Opening ---- */

void disk_open(struct disk *disk, const char *path, const char *graveyard) {
    snprintf(disk->path, sizeof disk->path, "%s", path);
    snprintf(disk->graveyard, sizeof disk->graveyard, "%s", graveyard);
    cv_assert(mkdir(path, 0700) == 0 && mkdir(graveyard, 0700) == 0);
    disk->graveyard_directory = __real_open(graveyard, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    cv_assert(disk->graveyard_directory >= 0);
    disk->sync_min = 50 * US;
    disk->sync_max = 500 * US;
}
