/* A directory of its own for a test, and files as a whole. */
#ifndef CV_TESTS_FILE_HELP_H
#define CV_TESTS_FILE_HELP_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/bytes.h"

struct place {
    char path[64];
    int directory;
};

static inline void place_open(struct place *place) {
    strcpy(place->path, "/tmp/conclave-test.XXXXXX");
    assert_non_null(mkdtemp(place->path));
    place->directory = open(place->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_true(place->directory >= 0);
}

/* Calls for each file; how many there were. */
static inline size_t each_file(const struct place *place, void (*each)(int, const char *)) {
    size_t count = 0;
    DIR *listing = opendir(place->path);
    assert_non_null(listing);
    for (struct dirent *found; (found = readdir(listing));) {
        if (found->d_name[0] == '.') continue;
        if (each) each(place->directory, found->d_name);
        count++;
    }
    closedir(listing);
    return count;
}

static inline void remove_file(int directory, const char *name) {
    assert_int_equal(unlinkat(directory, name, 0), 0);
}

static inline void place_close(struct place *place) {
    each_file(place, remove_file);
    close(place->directory);
    assert_int_equal(rmdir(place->path), 0);
}

static inline struct bytes file_read(const struct place *place, const char *name) {
    struct stat about;
    int file = openat(place->directory, name, O_RDONLY | O_CLOEXEC);
    assert_true(file >= 0 && fstat(file, &about) == 0);
    size_t size = (size_t)about.st_size;
    struct bytes bytes = {malloc(size + 1), size, size + 1};
    assert_non_null(bytes.at);
    assert_int_equal(read(file, bytes.at, size), size);
    close(file);
    return bytes;
}

static inline void file_write(const struct place *place, const char *name, const void *bytes,
                              size_t size) {
    unlinkat(place->directory, name, 0); /* to overwrite it would wait for the disk */
    int file = openat(place->directory, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    assert_true(file >= 0);
    assert_int_equal(write(file, bytes, size), size);
    close(file);
}

static inline bool file_exists(const struct place *place, const char *name) {
    return faccessat(place->directory, name, F_OK, 0) == 0;
}

/* No file may be longer from now on: as good as a full disk, and anybody can have one. */
static inline void limit_files(rlim_t bytes) {
    struct rlimit limit;
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
    limit.rlim_cur = bytes < limit.rlim_max ? bytes : limit.rlim_max;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

#endif
