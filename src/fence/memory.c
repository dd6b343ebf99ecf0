#include "fence/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/crc32c.h"
#include "fence/rule.h"

/* The first line, a line "TOKEN LOCK" for each lock, and a last line with the checksum of all
 * before it.  The name of a lock has no newline. */
static const char MAGIC[] = "conclave fence 1\n", SUM[] = "crc32c ";
enum { SUM_SIZE = sizeof SUM - 1 + 8 + 1, FILE_MAX = 16 << 20 };

static int complain(struct fence_memory *memory, const char *what) {
    snprintf(memory->message, sizeof memory->message, "%s: %s: %s", memory->path, what,
             strerror(errno));
    return -1;
}

static int damaged(struct fence_memory *memory) {
    snprintf(memory->message, sizeof memory->message,
             "%s: damaged, so the tokens that were let through are not known; delete it when no "
             "holder from before can write any more",
             memory->path);
    return -1;
}

static struct fence_memory_entry *entry_of(const struct fence_memory *memory, const char *lock) {
    for (size_t i = 0; i < memory->count; i++)
        if (strcmp(memory->entries[i].lock, lock) == 0) return &memory->entries[i];
    return NULL;
}

static void add(struct fence_memory *memory, const char *lock, size_t size, int64_t token) {
    memory->entries =
        grown(memory->entries, &memory->room, memory->count + 1, sizeof *memory->entries);
    char *name = strndup(lock, size);
    cv_assert(name);
    memory->entries[memory->count++] = (struct fence_memory_entry){name, token};
}

static int parse(struct fence_memory *memory, const char *text, size_t size) {
    char sum[SUM_SIZE + 1];
    size_t start = sizeof MAGIC - 1;
    if (size < start + SUM_SIZE || memcmp(text, MAGIC, start) != 0) return damaged(memory);
    size_t end = size - SUM_SIZE;
    snprintf(sum, sizeof sum, "%s%08" PRIx32 "\n", SUM, crc32c(0, text, end));
    if (memcmp(text + end, sum, SUM_SIZE) != 0) return damaged(memory);
    while (start < end) {
        const char *line = text + start, *stop = memchr(line, '\n', end - start);
        const char *space = stop ? memchr(line, ' ', (size_t)(stop - line)) : NULL;
        int64_t token;
        if (!space || !fence_parse_token(line, (size_t)(space - line), &token))
            return damaged(memory);
        add(memory, space + 1, (size_t)(stop - space - 1), token);
        start = (size_t)(stop + 1 - text);
    }
    return 0;
}

static const char *base_of(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static int open_directory(const char *path) {
    char folder[4096];
    int size = (int)(base_of(path) - path);
    snprintf(folder, sizeof folder, "%.*s", size ? size : 1, size ? path : ".");
    return open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

static int take_guard(struct fence_memory *memory) {
    char name[300];
    snprintf(name, sizeof name, "%s.lock", base_of(memory->path));
    memory->guard = openat(memory->directory, name, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (memory->guard < 0) return complain(memory, "the lock file beside it cannot be made");
    if (flock(memory->guard, LOCK_EX | LOCK_NB) == 0) return 0;
    snprintf(memory->message, sizeof memory->message,
             "%s: another fence is using it; give each its own (--state)", memory->path);
    return -1;
}

int fence_memory_open(struct fence_memory *memory, const char *path) {
    struct bytes text = {0};
    ssize_t size = 0;
    *memory = (struct fence_memory){.path = path, .guard = -1};
    memory->directory = open_directory(path);
    if (memory->directory < 0) return complain(memory, "its directory cannot be opened");
    if (take_guard(memory) != 0) return -1;
    int file = openat(memory->directory, base_of(path), O_RDONLY | O_CLOEXEC);
    if (file < 0) return errno == ENOENT ? 0 : complain(memory, "cannot be read");
    do {
        unsigned char *room = bytes_reserve(&text, 1 << 16);
        size = read(file, room, 1 << 16);
        if (size > 0) text.used += (size_t)size;
    } while (size > 0 && text.used <= FILE_MAX);
    int status = size < 0 ? complain(memory, "cannot be read")
                          : parse(memory, (const char *)text.at, text.used);
    close(file);
    bytes_close(&text);
    return status;
}

void fence_memory_close(struct fence_memory *memory) {
    for (size_t i = 0; i < memory->count; i++) free(memory->entries[i].lock);
    free(memory->entries);
    if (memory->guard >= 0) close(memory->guard);
    if (memory->directory >= 0) close(memory->directory);
}

int64_t fence_memory_of(const struct fence_memory *memory, const char *lock) {
    const struct fence_memory_entry *entry = entry_of(memory, lock);
    return entry ? entry->token : 0;
}

static void print(const struct fence_memory *memory, struct bytes *text) {
    char number[48];
    bytes_add(text, MAGIC, sizeof MAGIC - 1);
    for (size_t i = 0; i < memory->count; i++) {
        const struct fence_memory_entry *entry = &memory->entries[i];
        if (!entry->token) continue; /* it could not be written */
        int size = snprintf(number, sizeof number, "%" PRId64 " ", entry->token);
        bytes_add(text, number, (size_t)size);
        bytes_add(text, entry->lock, strlen(entry->lock));
        bytes_add(text, "\n", 1);
    }
    snprintf(number, sizeof number, "%s%08" PRIx32 "\n", SUM, crc32c(0, text->at, text->used));
    bytes_add(text, number, SUM_SIZE);
}

static int write_file(struct fence_memory *memory, const char *name, const struct bytes *text) {
    int file = openat(memory->directory, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (file < 0) return complain(memory, "cannot be written");
    ssize_t written = write(file, text->at, text->used);
    int status = 0;
    if (written >= 0 && (size_t)written < text->used) errno = ENOSPC;
    if (written != (ssize_t)text->used || fsync(file) != 0)
        status = complain(memory, "cannot be written");
    close(file);
    return status;
}

int fence_memory_raise(struct fence_memory *memory, const char *lock, int64_t token) {
    struct fence_memory_entry *entry = entry_of(memory, lock);
    struct bytes text = {0};
    char unfinished[300];
    if (entry && entry->token >= token) return 0;
    int64_t before = entry ? entry->token : 0;
    if (!entry) add(memory, lock, strlen(lock), token);
    entry = entry_of(memory, lock);
    entry->token = token;
    print(memory, &text);
    snprintf(unfinished, sizeof unfinished, "%s.new", base_of(memory->path));
    int status = write_file(memory, unfinished, &text);
    bytes_close(&text);
    if (status == 0 &&
        (renameat(memory->directory, unfinished, memory->directory, base_of(memory->path)) != 0 ||
         fsync(memory->directory) != 0))
        status = complain(memory, "cannot be written");
    if (status != 0) entry->token = before; /* so that the next attempt writes again */
    return status;
}
