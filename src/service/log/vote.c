#include "service/log/vote.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/crc32c.h"
#include "service/log/file.h"

static const char MAGIC[16] = "conclave vote 2", MAGIC_1[16] = "conclave vote 1";
static const char NAME[] = VOTE_NAME, UNFINISHED[] = "new." VOTE_NAME;

enum { FLAG_WITHHELD = 1, COPY_AT = 4096 /* in a block of its own, as disks lose whole ones */ };

struct form {
    char magic[16];
    uint64_t term, voted_for, directory_id, server_id, ensemble_id;
    uint32_t flags, crc; /* of all before it */
};
struct form_1 {
    char magic[16];
    uint64_t term, voted_for, directory_id;
    uint32_t server_id, crc; /* programs that had only this version wrote 0, and did not look */
};
_Static_assert(sizeof(struct form) == 64 && sizeof(struct form_1) == 48, "it is what is on disk");

static uint32_t crc_of(const struct form *form) {
    return crc32c(0, form, offsetof(struct form, crc));
}

/* False: this copy is damaged, or there is none. */
static bool read_form(const unsigned char *bytes, size_t size, struct form *form) {
    struct form_1 old;
    if (size == sizeof old && memcmp(bytes, MAGIC_1, sizeof MAGIC_1) == 0) {
        memcpy(&old, bytes, sizeof old);
        *form = (struct form){.term = old.term,
                              .voted_for = old.voted_for,
                              .directory_id = old.directory_id,
                              .server_id = old.server_id};
        return old.crc == crc32c(0, &old, offsetof(struct form_1, crc)) && old.directory_id;
    }
    if (size != sizeof *form || memcmp(bytes, MAGIC, sizeof MAGIC) != 0) return false;
    memcpy(form, bytes, sizeof *form);
    return form->crc == crc_of(form) && form->directory_id;
}

static bool read_copy(int file, off_t at, struct form *form) {
    unsigned char bytes[sizeof *form];
    ssize_t size = pread(file, bytes, sizeof bytes, at);
    return size > 0 && read_form(bytes, (size_t)size, form);
}

/* Version 1 has no copy, and version 2 had none at first. */
static bool has_copy(int file, const struct form *first) {
    struct stat about;
    bool is_short = fstat(file, &about) == 0 && about.st_size == (off_t)sizeof *first;
    return memcmp(first->magic, MAGIC, sizeof MAGIC) == 0 && !is_short;
}

/* Both copies were written before the file got its name, so whichever is intact is what was
 * written last. */
static bool read_any(int file, struct form *form, bool *mended) {
    struct form copy;
    bool first = read_copy(file, 0, form), second = read_copy(file, COPY_AT, &copy);
    bool whole = first && !has_copy(file, form);
    if (first && second && memcmp(form, &copy, sizeof copy) != 0) return false;
    if (!first && second) *form = copy;
    *mended = !whole && first != second;
    return first || second;
}

static int complain(struct vote *vote, const char *name, const char *what) {
    snprintf(vote->message, sizeof vote->message, "%s/%s: %s: %s", vote->path, name, what,
             file_error(errno));
    return -1;
}

int vote_read(struct vote *vote, int directory, const char *path) {
    struct form form;
    *vote = (struct vote){.directory = directory, .path = path};
    int file = file_open(directory, NAME, O_RDONLY);
    if (file < 0) return errno == ENOENT ? 0 : complain(vote, NAME, "cannot be read");
    errno = 0;
    bool known = read_any(file, &form, &vote->mended);
    int status = known || !errno ? 0 : complain(vote, NAME, "cannot be read");
    close(file);
    if (status != 0) return status;
    if (!known) {
        snprintf(
            vote->message, sizeof vote->message,
            "%s/%s: damaged, so this server no longer knows its vote and does not start; a "
            "standalone server can do without the file: delete it; a member of an ensemble has to "
            "be removed ('conclave ensemble remove') and to join again with an empty directory",
            path, NAME);
        return -1;
    }
    vote->term = form.term;
    vote->voted_for = form.voted_for;
    vote->directory_id = form.directory_id;
    vote->server_id = form.server_id;
    vote->ensemble_id = form.ensemble_id;
    vote->withheld = form.flags & FLAG_WITHHELD;
    return 0;
}

static int write_file(struct vote *vote, const void *bytes, size_t size) {
    int file = file_open(vote->directory, UNFINISHED, O_WRONLY | O_CREAT | O_TRUNC);
    if (file < 0) return complain(vote, UNFINISHED, "cannot be created");
    ssize_t written = write(file, bytes, size);
    int status = 0;
    if (written >= 0 && (size_t)written < size) errno = ENOSPC;
    if (written != (ssize_t)size || fsync(file) != 0)
        status = complain(vote, UNFINISHED, "cannot be written");
    close(file);
    return status;
}

static int write_1(struct vote *vote) {
    struct form_1 form = {.term = vote->term,
                          .voted_for = vote->voted_for,
                          .directory_id = vote->directory_id,
                          .server_id = (uint32_t)vote->server_id};
    memcpy(form.magic, MAGIC_1, sizeof MAGIC_1);
    form.crc = crc32c(0, &form, offsetof(struct form_1, crc));
    return write_file(vote, &form, sizeof form);
}

static int write_2(struct vote *vote) {
    unsigned char bytes[COPY_AT + sizeof(struct form)] = {0};
    struct form form = {.term = vote->term,
                        .voted_for = vote->voted_for,
                        .directory_id = vote->directory_id,
                        .server_id = vote->server_id,
                        .ensemble_id = vote->ensemble_id,
                        .flags = vote->withheld ? FLAG_WITHHELD : 0};
    memcpy(form.magic, MAGIC, sizeof MAGIC);
    form.crc = crc_of(&form);
    memcpy(bytes, &form, sizeof form);
    memcpy(bytes + COPY_AT, &form, sizeof form);
    return write_file(vote, bytes, sizeof bytes);
}

int vote_write(struct vote *vote) {
    while (!vote->directory_id)
        if (getrandom(&vote->directory_id, sizeof vote->directory_id, 0) < 0)
            return complain(vote, UNFINISHED, "no random number for the directory's id");
    bool needs_2 = vote->ensemble_id || vote->withheld;
    if ((needs_2 ? write_2(vote) : write_1(vote)) != 0) return -1;
    if (renameat(vote->directory, UNFINISHED, vote->directory, NAME) != 0 ||
        fsync(vote->directory) != 0)
        return complain(vote, NAME, "cannot be written");
    return 0;
}
