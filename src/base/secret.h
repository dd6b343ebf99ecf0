/* Secrets in files: the key that servers share, and the token of an administrator. */
#ifndef CV_BASE_SECRET_H
#define CV_BASE_SECRET_H

#include <stdbool.h>
#include <stddef.h>

enum { SECRET_MIN = 16, SECRET_MAX = 4095 }; /* bytes */

/* Without line feeds at its end. */
struct secret {
    unsigned char at[SECRET_MAX + 1];
    size_t size;
};

/* NULL, or why the file cannot be used: others than its owner may read it, it belongs to a third
 * person, or it is too short or too long. */
const char *secret_read(const char *path, struct secret *secret);
/* Whether it might be guessed, by its size and its letters: a password rather than a key. */
bool secret_is_weak(const struct secret *secret);
void secret_forget(struct secret *secret);
/* Takes a time that tells nothing of the secret but its size. */
bool secret_equals(const struct secret *secret, const char *text, size_t size);

/* Makes a file that only its owner can read, with a new secret in it: a line of visible ASCII.  The
 * file is there when it is complete.  Returns 0 or an errno; EEXIST: there is such a file, and it
 * stays as it is. */
int secret_make(const char *path);

#endif
