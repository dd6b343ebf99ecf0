#include "client/sasl.h"

#include <openssl/evp.h>
#include <stdarg.h>
#include <stdio.h>

enum { MD5_SIZE = 16, VALUE_MAX = 1024 };

/* ---- Directives: name=value or name="value", parted by commas ---- */

static bool is_name(struct zk_text name, const char *wanted) {
    return zk_text_equal(name, zk_text_of(wanted));
}

/* Takes the next directive; false: there is none, or it is malformed.  A quoted value may hold
 * anything after a backslash. */
static bool next_directive(struct zk_text *left, struct zk_text *name, char value[VALUE_MAX]) {
    const char *at = left->at, *end = left->at + (left->size > 0 ? left->size : 0);
    size_t used = 0;
    while (at < end && (*at == ',' || *at == ' ' || *at == '\t')) at++;
    const char *equals = at < end ? memchr(at, '=', (size_t)(end - at)) : NULL;
    if (!equals) return false;
    *name = (struct zk_text){at, (int32_t)(equals - at)};
    at = equals + 1;
    bool quoted = at < end && *at == '"';
    for (at += quoted; at < end && *at != (quoted ? '"' : ','); at++) {
        if (quoted && *at == '\\' && at + 1 < end) at++;
        if (used + 1 == VALUE_MAX || !*at) return false;
        value[used++] = *at;
    }
    value[used] = 0;
    if (quoted && at == end) return false;
    at += quoted;
    *left = (struct zk_text){at, (int32_t)(end - at)};
    return true;
}

static bool find(struct zk_text token, const char *wanted, char value[VALUE_MAX]) {
    struct zk_text name;
    while (next_directive(&token, &name, value))
        if (is_name(name, wanted)) return true;
    value[0] = 0;
    return false;
}

/* ---- Hashes ---- */

static bool md5(const struct bytes *from, unsigned char to[MD5_SIZE]) {
    return EVP_Digest(from->at, from->used, to, NULL, EVP_md5(), NULL) == 1;
}

static void hex(const unsigned char from[MD5_SIZE], char to[MD5_HEX]) {
    for (int i = 0; i < MD5_SIZE; i++) snprintf(to + 2 * i, 3, "%02x", from[i]);
}

/* Texts with colons between them; NULL ends the list. */
static void join(struct bytes *to, const char *first, ...) {
    va_list texts;
    va_start(texts, first);
    for (const char *text = first; text; text = va_arg(texts, const char *)) {
        if (text != first) bytes_add(to, ":", 1);
        bytes_add(to, text, strlen(text));
    }
    va_end(texts);
}

static const char COUNT[] = "00000001";

/* A1 of the RFC, hashed: the password, bound to both nonces. */
static bool hash_secret(const struct sasl_identity *who, const char *realm, const char *nonce,
                        char to[MD5_HEX]) {
    struct bytes text = {0};
    unsigned char digest[MD5_SIZE];
    join(&text, who->user, realm, who->password, NULL);
    bool done = md5(&text, digest);
    explicit_bzero(text.at, text.used);
    text.used = 0;
    bytes_add(&text, digest, sizeof digest);
    bytes_add(&text, ":", 1);
    join(&text, nonce, who->client_nonce, NULL);
    done = done && md5(&text, digest);
    hex(digest, to);
    bytes_close(&text);
    return done;
}

/* `method` is AUTHENTICATE for us, and empty for the server. */
static bool respond(const struct sasl_identity *who, const char *secret, const char *nonce,
                    const char *method, char to[MD5_HEX]) {
    struct bytes text = {0};
    unsigned char digest[MD5_SIZE];
    char second[MD5_HEX];
    join(&text, method, who->uri, NULL);
    bool done = md5(&text, digest);
    hex(digest, second);
    text.used = 0;
    join(&text, secret, nonce, COUNT, who->client_nonce, "auth", second, NULL);
    done = done && md5(&text, digest);
    hex(digest, to);
    bytes_close(&text);
    return done;
}

/* ---- Tokens ---- */

static void add_quoted(struct bytes *to, const char *name, const char *value) {
    bytes_add(to, name, strlen(name));
    bytes_add(to, "=\"", 2);
    for (; *value; value++) {
        if (*value == '"' || *value == '\\') bytes_add(to, "\\", 1);
        bytes_add(to, value, 1);
    }
    bytes_add(to, "\",", 2);
}

bool sasl_answer(const struct sasl_identity *who, struct zk_text challenge, struct bytes *answer,
                 char proof[MD5_HEX]) {
    char realm[VALUE_MAX], nonce[VALUE_MAX], value[VALUE_MAX], secret[MD5_HEX], response[MD5_HEX];
    if (!find(challenge, "nonce", nonce) || !nonce[0]) return false;
    if (find(challenge, "qop", value) && !strstr(value, "auth")) return false;
    if (find(challenge, "algorithm", value) && strcmp(value, "md5-sess") != 0) return false;
    bool utf8 = find(challenge, "charset", value);
    find(challenge, "realm", realm);
    if (!hash_secret(who, realm, nonce, secret) ||
        !respond(who, secret, nonce, "AUTHENTICATE", response) ||
        !respond(who, secret, nonce, "", proof))
        return false;
    if (utf8) bytes_add(answer, "charset=utf-8,", 14);
    add_quoted(answer, "username", who->user);
    add_quoted(answer, "realm", realm);
    add_quoted(answer, "nonce", nonce);
    add_quoted(answer, "cnonce", who->client_nonce);
    add_quoted(answer, "digest-uri", who->uri);
    char rest[128];
    int size =
        snprintf(rest, sizeof rest, "nc=%s,maxbuf=65536,response=%s,qop=auth", COUNT, response);
    bytes_add(answer, rest, (size_t)size);
    explicit_bzero(secret, sizeof secret);
    return true;
}

bool sasl_is_proven(struct zk_text token, const char *proof) {
    char value[VALUE_MAX];
    return find(token, "rspauth", value) && strcmp(value, proof) == 0;
}
