/* A directory in memory for files that are made from random bytes. */
#ifndef CV_FUZZ_FILES_H
#define CV_FUZZ_FILES_H

#include <dirent.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/crc32c.h"

static char fuzz_path[] = "/dev/shm/conclave-fuzz.XXXXXX";
static int fuzz_directory = -1;

static inline void fuzz_empty(void) {
    DIR *listing = opendir(fuzz_path);
    cv_assert(listing);
    for (struct dirent *found; (found = readdir(listing));)
        if (found->d_name[0] != '.') unlinkat(fuzz_directory, found->d_name, 0);
    closedir(listing);
}

static void fuzz_leave(void) {
    fuzz_empty();
    rmdir(fuzz_path);
}

/* Writes the only file of the directory. */
static inline void fuzz_file(const char *name, const void *bytes, size_t size) {
    if (fuzz_directory < 0) {
        cv_assert(mkdtemp(fuzz_path));
        fuzz_directory = open(fuzz_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        cv_assert(fuzz_directory >= 0);
        atexit(fuzz_leave);
    }
    fuzz_empty();
    int file = openat(fuzz_directory, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    cv_assert(file >= 0 && write(file, bytes, size) == (ssize_t)size);
    close(file);
}

#endif
