#include "service/log/transfer.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/assert.h"
#include "service/log/file.h"

static const char INCOMING[] = "incoming.";
enum { NAME_SIZE = 64 };

/* ---- Sending ---- */

int sending_open(struct sending *s, struct snapshots *from, uint64_t index) {
    char name[SNAPSHOT_NAME_SIZE];
    struct stat about;
    *s = (struct sending){.index = index};
    s->file = file_open(from->directory, snapshot_name(name, index), O_RDONLY);
    if (s->file >= 0 && fstat(s->file, &about) == 0) {
        s->size = (uint64_t)about.st_size;
        return 0;
    }
    snprintf(from->message, sizeof from->message, "%s/%s: cannot be read: %s", from->path, name,
             file_error(errno));
    sending_close(s);
    return -1;
}

void sending_close(struct sending *s) {
    if (s->file >= 0) close(s->file);
    s->file = -1;
}

long sending_read(const struct sending *s, uint64_t offset, void *bytes, size_t max_size) {
    ssize_t done;
    if (offset >= s->size) return 0;
    if (max_size > s->size - offset) max_size = (size_t)(s->size - offset);
    do done = pread(s->file, bytes, max_size, (off_t)offset);
    while (done < 0 && errno == EINTR);
    return done;
}

/* ---- Receiving ---- */

static char *incoming_name(char name[NAME_SIZE], const struct receiving *r) {
    snprintf(name, NAME_SIZE, "%s%016" PRIx64 ".%016" PRIx64, INCOMING, r->index, r->size);
    return name;
}

static int complain(struct receiving *r, const char *what, int error) {
    char name[NAME_SIZE];
    snprintf(r->message, sizeof r->message, "%s/%s: %s%s%s", r->path, incoming_name(name, r), what,
             error ? ": " : "", error ? file_error(error) : "");
    return -1;
}

/* A file that cannot be removed now will be removed by the next transfer. */
static void remove_others(const struct receiving *r) {
    char own[NAME_SIZE];
    int copy = openat(r->directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *listing = copy < 0 ? NULL : fdopendir(copy);
    if (!listing) return;
    incoming_name(own, r);
    for (struct dirent *found; (found = readdir(listing));)
        if (strncmp(found->d_name, INCOMING, sizeof INCOMING - 1) == 0 &&
            strcmp(found->d_name, own) != 0)
            unlinkat(r->directory, found->d_name, 0);
    closedir(listing);
}

int receiving_open(struct receiving *r, int directory, const char *path, uint64_t index,
                   uint64_t size) {
    char name[NAME_SIZE];
    struct stat about;
    *r = (struct receiving){
        .directory = directory, .path = path, .file = -1, .index = index, .size = size};
    if (!size || size > INT64_MAX)
        return complain(r, "a snapshot cannot have that size; the sender is at fault", 0);
    remove_others(r);
    r->file = file_open(directory, incoming_name(name, r), O_WRONLY | O_CREAT);
    if (r->file < 0 || fstat(r->file, &about) != 0) {
        complain(r, "cannot be created", errno);
        receiving_close(r);
        return -1;
    }
    r->offset = (uint64_t)about.st_size;
    if (r->offset <= size) return 0;
    r->offset = 0;
    if (ftruncate(r->file, 0) == 0) return 0;
    complain(r, "cannot be cut", errno);
    receiving_close(r);
    return -1;
}

void receiving_close(struct receiving *r) {
    if (r->file >= 0) close(r->file);
    r->file = -1;
}

enum receiving_answer receiving_add(struct receiving *r, uint64_t offset, const void *bytes,
                                    size_t size) {
    const unsigned char *from = bytes;
    if (offset != r->offset) return RECEIVING_WRONG_OFFSET;
    if (size > r->size - r->offset) return complain(r, "a chunk reaches beyond its end", 0);
    while (size) {
        ssize_t done = pwrite(r->file, from, size, (off_t)r->offset);
        if (done < 0 && errno == EINTR) continue;
        if (done <= 0) return complain(r, "cannot be written", done ? errno : EIO);
        r->offset += (uint64_t)done;
        from += done;
        size -= (size_t)done;
    }
    return RECEIVING_TAKEN;
}

static int decode_all(struct receiving *r, uint64_t *term, receiving_decode_fn *decode,
                      void *context) {
    char name[NAME_SIZE];
    struct snapshots from = {.directory = r->directory, .path = r->path};
    uint64_t index;
    struct snapshot_reader *reader = snapshot_open_as(&from, incoming_name(name, r), &index, term);
    bool good = reader && index == r->index && decode(context, reader) == 0;
    bool whole = reader && snapshot_close(reader) == 0;
    return good && whole
               ? 0
               : complain(r,
                          "the received file is not that snapshot; it is discarded and sent again",
                          0);
}

static int begin_anew(struct receiving *r) {
    r->offset = 0;
    if (ftruncate(r->file, 0) != 0) complain(r, "cannot be cut", errno);
    return -1;
}

int receiving_check(struct receiving *r, uint64_t *term, receiving_decode_fn *decode,
                    void *context) {
    cv_assert(r->offset == r->size);
    int status = fsync(r->file) == 0 ? 0 : complain(r, "cannot be written", errno);
    if (!status) status = decode_all(r, term, decode, context);
    return status ? begin_anew(r) : 0;
}

static int give_name(struct receiving *r) {
    char name[NAME_SIZE], own[SNAPSHOT_NAME_SIZE];
    if (renameat(r->directory, incoming_name(name, r), r->directory,
                 snapshot_name(own, r->index)) != 0)
        return complain(r, "cannot be given its name", errno);
    if (fsync(r->directory) != 0) { /* nothing may rely on a name that is not durable */
        complain(r, "cannot be given its name", errno);
        if (renameat(r->directory, own, r->directory, name) != 0) unlinkat(r->directory, own, 0);
        return -1;
    }
    receiving_close(r);
    return 0;
}

int receiving_end(struct receiving *r) { return give_name(r) == 0 ? 0 : begin_anew(r); }
