#include "wire/net/tls_key.h"

#include <openssl/core_names.h>
#include <openssl/kdf.h>
#include <openssl/params.h>

#include "base/logger.h"
#include "base/secret.h"

/* HKDF with SHA-256. */
static bool derive(struct secret *key, unsigned char secret[TLS_KEY_SIZE]) {
    char purpose[] = "conclave links 1";
    OSSL_PARAM parameters[] = {
        OSSL_PARAM_construct_utf8_string(OSSL_KDF_PARAM_DIGEST, "SHA256", 0),
        OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_KEY, key->at, key->size),
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

bool tls_key_read(const char *path, unsigned char secret[TLS_KEY_SIZE]) {
    struct secret key;
    const char *problem = secret_read(path, &key);
    if (problem)
        logger_error("the shared key cannot be used", LOGGER_STRING("path", path),
                     LOGGER_STRING("reason", problem));
    else if (secret_is_weak(&key))
        logger_warning("the shared key can be guessed; whoever does can read and change "
                       "everything: 'conclave key' makes a better one",
                       LOGGER_STRING("path", path));
    bool good = !problem && derive(&key, secret);
    secret_forget(&key);
    if (!problem && !good)
        logger_error("TLS cannot be started", LOGGER_STRING("reason", "OpenSSL has no HKDF"));
    return good;
}
