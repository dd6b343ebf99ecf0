/* Authentication: what a connection proves of itself. */
#include "service/server/internal.h"

#include <openssl/evp.h>
#include <openssl/sha.h>

struct zk_clients connection_identities(const struct connection *c) {
    return (struct zk_clients){c->identities.at, c->identities.used, c->identity_count};
}

bool connection_add_identity(struct connection *c, const char *scheme, struct zk_text id) {
    struct zk_client known, added = {zk_text_of(scheme), id};
    for (struct zk_clients left = connection_identities(c); zk_clients_next(&left, &known);)
        if (zk_text_equal(known.scheme, added.scheme) && zk_text_equal(known.user, added.user))
            return true;
    if (c->identities.used + zk_size_client(&added) > CONNECTION_IDENTITIES_MAX) return false;
    zk_write_client(&c->identities, &added);
    c->identity_count++;
    return true;
}

/* "user:" and the hash of "user:password": what ACLs of the scheme digest hold. */
static bool digest_of(struct zk_text secret, struct bytes *digest) {
    unsigned char hash[SHA_DIGEST_LENGTH], *text;
    unsigned size;
    if (EVP_Digest(secret.at, (size_t)secret.size, hash, &size, EVP_sha1(), NULL) != 1)
        return false;
    const char *colon = memchr(secret.at, ':', (size_t)secret.size);
    size_t user = colon ? (size_t)(colon - secret.at) : (size_t)secret.size;
    bytes_add(digest, secret.at, user);
    bytes_add(digest, ":", 1);
    text = bytes_reserve(digest, 4 * ((SHA_DIGEST_LENGTH + 2) / 3) + 1);
    digest->used += (size_t)EVP_EncodeBlock(text, hash, SHA_DIGEST_LENGTH);
    return true;
}

static bool prove_digest(struct connection *c, struct zk_text secret) {
    struct bytes digest = {0};
    const char *super = c->server->settings.super_digest;
    bool good = secret.size >= 0 && digest_of(secret, &digest);
    struct zk_text id = {(const char *)digest.at, (int32_t)digest.used};
    if (good && *super && zk_text_equal(id, zk_text_of(super)))
        good = connection_add_identity(c, "super", (struct zk_text){"", 0});
    if (good) good = connection_add_identity(c, "digest", id);
    bytes_close(&digest);
    return good;
}

bool identity_prove(struct connection *c, const struct zk_auth_request *r) {
    if (zk_text_equal(r->scheme, zk_text_of("digest"))) return prove_digest(c, r->auth);
    return zk_text_equal(r->scheme, zk_text_of("ip")); /* it has that already */
}
