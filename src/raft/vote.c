#include "raft/vote.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/crc32c.h"

static const char MAGIC[16] = "conclave vote 1";
static const char NAME[] = VOTE_NAME, UNFINISHED[] = "new." VOTE_NAME;

struct form {
    char magic[16];
    uint64_t term, server, directory_number;
    uint32_t reserved, crc; /* of all before it */
};
_Static_assert(sizeof(struct form) == 48, "it is what is on disk");

static uint32_t crc_of(const struct form *form) {
    return crc32c(0, form, offsetof(struct form, crc));
}

static int complain(struct vote *vote, const char *name, const char *what) {
    snprintf(vote->message, sizeof vote->message, "%s/%s: %s: %s", vote->path, name, what,
             strerror(errno));
    return -1;
}

int vote_read(struct vote *vote, int directory, const char *path) {
    unsigned char bytes[sizeof(struct form) + 1]; /* one more, to see that there is none */
    struct form form;
    *vote = (struct vote){.directory = directory, .path = path};
    int file = openat(directory, NAME, O_RDONLY | O_CLOEXEC);
    if (file < 0) return errno == ENOENT ? 0 : complain(vote, NAME, "cannot be read");
    ssize_t size = read(file, bytes, sizeof bytes);
    int status = size < 0 ? complain(vote, NAME, "cannot be read") : 0;
    close(file);
    if (status != 0) return status;
    memcpy(&form, bytes, sizeof form);
    if (size != sizeof form || memcmp(form.magic, MAGIC, sizeof MAGIC) != 0 ||
        form.crc != crc_of(&form) || !form.directory_number) {
        snprintf(
            vote->message, sizeof vote->message,
            "%s/%s: damaged, so this server does not know whom it voted for; a server alone can "
            "do without the file; a member of an ensemble has to be removed by the others "
            "('conclave ensemble remove'), and to join with an empty directory under a new "
            "number",
            path, NAME);
        return -1;
    }
    vote->term = form.term;
    vote->server = form.server;
    vote->directory_number = form.directory_number;
    return 0;
}

static int write_file(struct vote *vote, const struct form *form) {
    int file = openat(vote->directory, UNFINISHED, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0640);
    if (file < 0) return complain(vote, UNFINISHED, "cannot be created");
    ssize_t size = write(file, form, sizeof *form);
    int status = 0;
    if (size >= 0 && size < (ssize_t)sizeof *form) errno = ENOSPC;
    if (size != sizeof *form || fsync(file) != 0)
        status = complain(vote, UNFINISHED, "cannot be written");
    close(file);
    return status;
}

int vote_write(struct vote *vote) {
    while (!vote->directory_number)
        if (getrandom(&vote->directory_number, sizeof vote->directory_number, 0) < 0)
            return complain(vote, UNFINISHED, "no random number");
    struct form form = {
        .term = vote->term, .server = vote->server, .directory_number = vote->directory_number};
    memcpy(form.magic, MAGIC, sizeof MAGIC);
    form.crc = crc_of(&form);
    if (write_file(vote, &form) != 0) return -1;
    if (renameat(vote->directory, UNFINISHED, vote->directory, NAME) != 0 ||
        fsync(vote->directory) != 0)
        return complain(vote, NAME, "cannot be written");
    return 0;
}
