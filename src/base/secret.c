#include "base/secret.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- Reading ---- */

static const char *judge(int file) {
    struct stat status;
    if (fstat(file, &status) != 0) return strerror(errno);
    if (!S_ISREG(status.st_mode) || status.st_mode & (S_IRWXG | S_IRWXO))
        return "it must be a file that only its owner can read (chmod 600)";
    if (status.st_uid != geteuid() && status.st_uid != 0)
        return "it belongs to another user, who can read it; it must belong to the one who starts "
               "this program, or to root (chown)";
    return NULL;
}

static const char *read_all(int file, struct secret *s) {
    ssize_t size = read(file, s->at, sizeof s->at);
    if (size < 0) return strerror(errno);
    if (size > SECRET_MAX) return "it must hold less than 4096 bytes";
    while (size > 0 && (s->at[size - 1] == '\n' || s->at[size - 1] == '\r')) size--;
    if (size < SECRET_MIN) return "it must hold 16 bytes or more";
    s->size = (size_t)size;
    return NULL;
}

const char *secret_read(const char *path, struct secret *secret) {
    *secret = (struct secret){0};
    int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (file < 0) return strerror(errno);
    const char *problem = judge(file);
    if (!problem) problem = read_all(file, secret);
    if (problem) secret_forget(secret);
    close(file);
    return problem;
}

/* The bits of a letter, in tenths, if all of the same kinds are as likely. */
static unsigned tenths_of_bits(const struct secret *s) {
    unsigned digits = 0, small = 0, large = 0, others = 0;
    for (size_t i = 0; i < s->size; i++) {
        unsigned char c = s->at[i];
        if (c < ' ' || c > '~') return 80;
        digits |= c >= '0' && c <= '9';
        small |= c >= 'a' && c <= 'z';
        large |= c >= 'A' && c <= 'Z';
        others |= c < '0' || (c > '9' && c < 'A') || (c > 'Z' && c < 'a') || c > 'z';
    }
    if (others) return 60;
    if (small + large == 0) return 33;
    return small + large + digits == 1 ? 47 : small && large ? 57 : 51;
}

bool secret_is_weak(const struct secret *s) {
    enum { BITS_MIN = 112, DIFFERENT_MIN = 8 };
    bool seen[256] = {0};
    unsigned different = 0;
    for (size_t i = 0; i < s->size; i++) {
        different += !seen[s->at[i]];
        seen[s->at[i]] = true;
    }
    return different < DIFFERENT_MIN || s->size * tenths_of_bits(s) < BITS_MIN * 10;
}

void secret_forget(struct secret *secret) { explicit_bzero(secret, sizeof *secret); }

bool secret_equals(const struct secret *secret, const char *text, size_t size) {
    volatile unsigned char difference = 0;
    if (size != secret->size) return false;
    for (size_t i = 0; i < size; i++) difference |= secret->at[i] ^ (unsigned char)text[i];
    return !difference;
}

/* ---- Making ---- */

static int write_new(int file) {
    enum { RANDOM = 32 };
    unsigned char random[RANDOM];
    char text[2 * RANDOM + 2];
    if (getrandom(random, sizeof random, 0) != sizeof random) return EIO;
    for (size_t i = 0; i < RANDOM; i++) snprintf(text + 2 * i, 3, "%02x", random[i]);
    text[2 * RANDOM] = '\n';
    ssize_t written = write(file, text, 2 * RANDOM + 1);
    int error = written < 0 ? errno : written != 2 * RANDOM + 1 ? ENOSPC : 0;
    explicit_bzero(random, sizeof random);
    explicit_bzero(text, sizeof text);
    return error ? error : fsync(file) != 0 ? errno : 0;
}

int secret_make(const char *path) {
    size_t room = strlen(path) + 8;
    char *temporary = malloc(room);
    if (!temporary) return ENOMEM;
    snprintf(temporary, room, "%s.XXXXXX", path);
    int file = mkostemp(temporary, O_CLOEXEC); /* its mode is 600 */
    int error = file < 0 ? errno : write_new(file);
    if (!error && link(temporary, path) != 0) error = errno;
    if (file >= 0) {
        unlink(temporary);
        close(file);
    }
    free(temporary);
    return error;
}
