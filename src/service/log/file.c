#include "service/log/file.h"

#include <stdio.h>

int file_open(int directory, const char *name, int flags) {
    struct stat about;
    int file = openat(directory, name, flags | O_CLOEXEC | O_NONBLOCK, 0640);
    if (file < 0) {
        if (errno == EISDIR || errno == ENXIO) errno = EMEDIUMTYPE;
        return -1;
    }
    if (fstat(file, &about) == 0 && S_ISREG(about.st_mode)) return file;
    close(file);
    errno = EMEDIUMTYPE;
    return -1;
}

const char *file_error(int error) {
    return error == EMEDIUMTYPE ? "it is no regular file; remove what has its name"
                                : strerror(error);
}

bool file_may_be_good(int error) {
    switch (error) {
    case EACCES:
    case EPERM:
    case EMFILE:
    case ENFILE:
    case ENOMEM:
    case ENOBUFS:
    case EAGAIN:
    case ESTALE:
    case ETIMEDOUT: return true;
    default: return false;
    }
}

int file_set_aside(int directory, const char *name) {
    enum { TRIES = 1000 };
    char aside[256];
    int status = -1;
    errno = EEXIST;
    for (int i = 0; i < TRIES && status != 0 && errno == EEXIST; i++) {
        int used = snprintf(aside, sizeof aside, "damaged.%s", name);
        if (i) snprintf(aside + used, sizeof aside - (size_t)used, ".%d", i);
        status = renameat2(directory, name, directory, aside, RENAME_NOREPLACE);
    }
    return status;
}
