#include "net/tls_key.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/kdf.h>
#include <openssl/params.h>
#include <sys/stat.h>
#include <unistd.h>

/* Says why not, if the file is not one that only its owner sees. */
static bool is_private(int file, const char *path, tls_say *say) {
    struct stat status;
    if (file < 0 || fstat(file, &status) != 0) {
        say("error", "%s: cannot be used as key: %s", path, strerror(errno));
        return false;
    }
    bool good = S_ISREG(status.st_mode) && !(status.st_mode & (S_IRWXG | S_IRWXO));
    if (!good)
        say("error",
            "%s: cannot be used as key: it must be a file that only its owner can read (chmod 600)",
            path);
    return good;
}

/* Returns how many bytes of key there are, at most `room`; -1: it has said why not. */
static ssize_t read_key(const char *path, unsigned char *key, size_t room, tls_say *say) {
    enum { LEAST = 16 };
    int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    ssize_t size = -1;
    if (is_private(file, path, say)) {
        size = read(file, key, room);
        if (size < 0) say("error", "%s: cannot be used as key: %s", path, strerror(errno));
        bool all = size < (ssize_t)room;
        while (size > 0 && (key[size - 1] == '\n' || key[size - 1] == '\r')) size--;
        if (size >= 0 && (size < LEAST || !all)) {
            say("error",
                "%s: cannot be used as key: it must hold %d bytes or more, and less than %zu", path,
                LEAST, room);
            size = -1;
        }
    }
    if (file >= 0) close(file);
    return size;
}

/* HKDF with SHA-256. */
static bool derive(unsigned char *key, size_t size, unsigned char secret[TLS_KEY_SIZE]) {
    char purpose[] = "conclave links 1";
    OSSL_PARAM parameters[] = {
        OSSL_PARAM_construct_utf8_string(OSSL_KDF_PARAM_DIGEST, "SHA256", 0),
        OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_KEY, key, size),
        OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_INFO, purpose, sizeof purpose - 1),
        OSSL_PARAM_construct_end(),
    };
    EVP_KDF *kdf = EVP_KDF_fetch(NULL, "HKDF", NULL);
    EVP_KDF_CTX *context = EVP_KDF_CTX_new(kdf);
    bool good = context && EVP_KDF_derive(context, secret, TLS_KEY_SIZE, parameters) == 1;
    EVP_KDF_CTX_free(context);
    EVP_KDF_free(kdf);
    return good;
}

bool tls_key_read(const char *path, unsigned char secret[TLS_KEY_SIZE], tls_say *say) {
    unsigned char key[4096];
    ssize_t size = read_key(path, key, sizeof key, say);
    bool good = size >= 0 && derive(key, (size_t)size, secret);
    OPENSSL_cleanse(key, sizeof key);
    if (size >= 0 && !good) say("error", "TLS cannot be started: HKDF is missing");
    return good;
}
