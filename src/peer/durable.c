#include "peer/durable.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/crc32c.h"

/* A slot: its head, then the prefix as the process has it in memory.  The byte order is in the
 * magic: a file is not moved to a machine of another. */
enum { MAGIC = 0x43565031, SLOTS = 2, SLOT_ALIGN = 4096, OTHER_SIZE_MAX = 1 << 24 };
struct slot_head {
    uint32_t magic, checksum; /* of what follows it */
    uint32_t process, size;
    uint64_t group, sequence, incarnation;
    uint32_t condition, run;
};
enum condition { RUNS, ENDED /* the run before, for good; the prefix is empty */, SUSPENDED };
_Static_assert(sizeof(struct slot_head) == 48, "no padding");

static size_t slot_bytes(const struct durable *durable) {
    return sizeof(struct slot_head) + durable->size;
}
static size_t slot_room(const struct durable *durable) {
    return (slot_bytes(durable) + SLOT_ALIGN - 1) & ~(size_t)(SLOT_ALIGN - 1);
}

static uint32_t checksum_of(const unsigned char *slot, size_t size) {
    const size_t from = offsetof(struct slot_head, process);
    return crc32c(0, slot + from, size - from);
}

static enum durable_found fail(struct durable *durable, char *error, const char *path,
                               const char *why) {
    snprintf(error, DURABLE_ERROR_MAX, "%.120s: %s", path, why);
    durable_close(durable);
    return DURABLE_FAILED;
}

/* Whether a slot is whole; what it says is in `head`. */
static bool read_slot(const struct durable *durable, unsigned index, unsigned char *slot,
                      struct slot_head *head) {
    size_t size = slot_bytes(durable);
    ssize_t got = pread(durable->fd, slot, size, (off_t)(index * slot_room(durable)));
    memset(head, 0, sizeof *head);
    if (got < (ssize_t)sizeof *head) return false;
    memcpy(head, slot, sizeof *head);
    return got == (ssize_t)size && head->magic == MAGIC && head->size == durable->size &&
           head->checksum == checksum_of(slot, size);
}

int durable_sync_directory(const char *path) {
    char *copy = strdup(path);
    cv_assert(copy);
    int fd = open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int failed = fd < 0 || fsync(fd) ? errno : 0;
    if (fd >= 0) close(fd);
    free(copy);
    return failed;
}

/* Whether what others have left, with a prefix of that size, has ended for good: it binds nobody
 * any more, and the file is ours. */
static bool take_over(struct durable *durable, uint32_t size) {
    const struct durable former = {.fd = durable->fd, .size = size};
    struct slot_head head, newest = {0};
    unsigned char *slot = malloc(slot_bytes(&former));
    cv_assert(slot);
    for (unsigned i = 0; i < SLOTS; i++)
        if (read_slot(&former, i, slot, &head) && head.sequence >= newest.sequence) newest = head;
    free(slot);
    durable->incarnation = newest.incarnation;
    durable->run = newest.run;
    return newest.condition == ENDED && ftruncate(durable->fd, 0) == 0;
}

#define REMEDY "; give another directory (--data), or delete it if all of that group has ended"

static enum durable_found read_newest(struct durable *durable, const char *path, void *prefix,
                                      char *error) {
    unsigned char *slot = malloc(slot_bytes(durable));
    bool found = false;
    uint32_t condition = RUNS;
    const char *wrong = NULL;
    uint32_t other_size = durable->size;
    cv_assert(slot);
    for (unsigned i = 0; i < SLOTS; i++) {
        struct slot_head head;
        if (!read_slot(durable, i, slot, &head)) {
            if (head.magic != MAGIC || head.size == durable->size) continue;
            wrong = "it was written by another algorithm, or with other options" REMEDY;
            other_size = head.size < OTHER_SIZE_MAX ? head.size : 0;
            continue;
        }
        if (head.group != durable->group || head.process != durable->process)
            wrong = "it belongs to another group or another process" REMEDY;
        else if (!found || head.sequence > durable->sequence) {
            found = true;
            durable->sequence = head.sequence;
            durable->incarnation = head.incarnation;
            durable->run = head.run;
            condition = head.condition;
            memcpy(prefix, slot + sizeof head, durable->size);
        }
    }
    free(slot);
    if (found)
        return condition == ENDED       ? DURABLE_NEW
               : condition == SUSPENDED ? DURABLE_SUSPENDED
                                        : DURABLE_FOUND;
    if (wrong && take_over(durable, other_size)) {
        memset(prefix, 0, durable->size);
        return DURABLE_NEW;
    }
    return fail(durable, error, path,
                wrong ? wrong : "it is damaged, so what this process has promised is lost");
}

bool durable_lock(int fd) {
    enum { TRIES = 200, STEP_US = 10000 };
    for (int i = 0; i < TRIES; i++) {
        if (flock(fd, LOCK_EX | LOCK_NB) == 0) return true;
        if (errno != EWOULDBLOCK) return false;
        usleep(STEP_US);
    }
    return false;
}

enum durable_found durable_open(struct durable *durable, const char *path, uint64_t group,
                                uint32_t process, void *prefix, uint32_t size,
                                char error[DURABLE_ERROR_MAX]) {
    struct stat found;
    *durable = (struct durable){.fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600),
                                .group = group,
                                .process = process,
                                .size = size};
    if (durable->fd < 0) return fail(durable, error, path, strerror(errno));
    durable->slot = calloc(1, slot_bytes(durable));
    cv_assert(durable->slot);
    if (!durable_lock(durable->fd)) return fail(durable, error, path, "another process uses it");
    if (fstat(durable->fd, &found) != 0) return fail(durable, error, path, strerror(errno));
    if (found.st_size) {
        enum durable_found result = read_newest(durable, path, prefix, error);
        if (result != DURABLE_FAILED)
            memcpy(durable->slot + sizeof(struct slot_head), prefix, durable->size);
        return result;
    }
    int failed = durable_sync_directory(path);
    return failed ? fail(durable, error, path, strerror(failed)) : DURABLE_NEW;
}

static int write_slot(struct durable *durable, const void *prefix, enum condition condition) {
    if (durable->fd < 0) return 0;
    struct slot_head head = {.magic = MAGIC,
                             .process = durable->process,
                             .size = durable->size,
                             .group = durable->group,
                             .sequence = ++durable->sequence,
                             .incarnation = durable->incarnation,
                             .condition = condition,
                             .run = durable->run};
    size_t size = slot_bytes(durable);
    if (prefix) memcpy(durable->slot + sizeof head, prefix, durable->size);
    memcpy(durable->slot, &head, sizeof head);
    head.checksum = checksum_of(durable->slot, size);
    memcpy(durable->slot, &head, sizeof head);
    off_t at = (off_t)(durable->sequence % SLOTS * slot_room(durable));
    ssize_t written = pwrite(durable->fd, durable->slot, size, at);
    if (written != (ssize_t)size) return written < 0 ? errno : ENOSPC;
    return fdatasync(durable->fd) ? errno : 0;
}

int durable_write(struct durable *durable, const void *prefix) {
    return write_slot(durable, prefix, RUNS);
}

int durable_end(struct durable *durable, uint32_t next_run) {
    durable->run = next_run;
    if (durable->fd >= 0) memset(durable->slot, 0, slot_bytes(durable));
    return write_slot(durable, NULL, ENDED);
}

int durable_suspend(struct durable *durable) { return write_slot(durable, NULL, SUSPENDED); }

void durable_close(struct durable *durable) {
    if (durable->fd >= 0) close(durable->fd);
    free(durable->slot);
    *durable = (struct durable){.fd = -1};
}
