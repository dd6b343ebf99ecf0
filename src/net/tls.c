#include "net/tls.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <sys/stat.h>

#include "base/assert.h"
#include "base/utf8.h"

struct tls {
    SSL_CTX *context;
    BIO_METHOD *method;
};

struct tls_session {
    SSL *ssl;
    const unsigned char *received; /* while tls_receive runs: what is not opened yet */
    size_t received_size;
    struct bytes sealed;
    bool secured; /* the handshake is done */
};

/* ---- Where OpenSSL reads and writes ---- */

static int bio_read(BIO *bio, char *to, int room) {
    struct tls_session *session = BIO_get_data(bio);
    BIO_clear_retry_flags(bio);
    if (!session->received_size) {
        BIO_set_retry_read(bio);
        return -1;
    }
    size_t size = session->received_size < (size_t)room ? session->received_size : (size_t)room;
    memcpy(to, session->received, size);
    session->received += size;
    session->received_size -= size;
    return (int)size;
}

static int bio_write(BIO *bio, const char *from, int size) {
    struct tls_session *session = BIO_get_data(bio);
    BIO_clear_retry_flags(bio);
    bytes_add(&session->sealed, from, (size_t)size);
    return size;
}

static long bio_control(BIO *bio, int command, long number, void *pointer) {
    (void)bio, (void)number, (void)pointer;
    return command == BIO_CTRL_FLUSH;
}

static BIO_METHOD *make_method(void) {
    BIO_METHOD *method = BIO_meth_new(BIO_TYPE_SOURCE_SINK | BIO_get_new_index(), "net_stream");
    if (method) {
        BIO_meth_set_read(method, bio_read);
        BIO_meth_set_write(method, bio_write);
        BIO_meth_set_ctrl(method, bio_control);
    }
    return method;
}

/* ---- The files ---- */

/* Asked by OpenSSL, which would turn to the terminal if nobody answered. */
static int give_password(char *to, int room, int writing, void *context) {
    const char *password = context;
    size_t size = strlen(password);
    (void)writing;
    if (!size || size > (size_t)room) return -1;
    memcpy(to, password, size);
    return (int)size;
}

/* OpenSSL's own words are for those who know OpenSSL. */
static const char *why_not(void) {
    unsigned long error = ERR_peek_error(); /* the cause; those behind it say who was told */
    int reason = ERR_GET_REASON(error);
    const char *text = ERR_reason_error_string(error);
    if (!text) text = "it is not understood";
    switch (ERR_GET_LIB(error)) {
    case ERR_LIB_SYS: return strerror(reason);
    case ERR_LIB_PEM: return reason == PEM_R_NO_START_LINE ? "nothing of that kind in it" : text;
    case ERR_LIB_OSSL_DECODER: return "nothing of that kind in it";
    case ERR_LIB_CRYPTO:
        return reason == ERR_R_INTERRUPTED_OR_CANCELLED ? "it needs a password" : text;
    case ERR_LIB_EVP:
    case ERR_LIB_PKCS12:
    case ERR_LIB_PROV: return "it is damaged, or the password is wrong";
    default: return text;
    }
}

static bool refused(const char *path, const char *what, tls_say *say) {
    say("error", "%s: cannot be used as %s: %s", path, what, why_not());
    ERR_clear_error();
    return false;
}

static void warn_of_certificate(SSL_CTX *context, const char *path, tls_say *say) {
    X509 *certificate = SSL_CTX_get0_certificate(context);
    if (X509_cmp_current_time(X509_get0_notAfter(certificate)) < 0)
        say("warning", "%s: the certificate has expired; clients will refuse it", path);
    else if (X509_cmp_current_time(X509_get0_notBefore(certificate)) > 0)
        say("warning", "%s: the certificate is not valid yet; clients will refuse it", path);
}

static void warn_of_key(const char *path, tls_say *say) {
    struct stat file;
    if (stat(path, &file) == 0 && file.st_mode & S_IRWXO)
        say("warning", "%s: everybody on this machine may read or change this private key", path);
}

static bool load_own(SSL_CTX *context, const struct tls_files *files, tls_say *say) {
    const char *certificate = files->certificate, *key = files->key;
    SSL_CTX_set_default_passwd_cb(context, give_password);
    SSL_CTX_set_default_passwd_cb_userdata(context, (void *)files->key_password);
    if (SSL_CTX_use_certificate_chain_file(context, certificate) != 1)
        return refused(certificate, "certificate", say);
    warn_of_certificate(context, certificate, say);
    bool good = SSL_CTX_use_PrivateKey_file(context, key, SSL_FILETYPE_PEM) == 1;
    if (!good && ERR_GET_REASON(ERR_peek_last_error()) != X509_R_KEY_VALUES_MISMATCH)
        return refused(key, "private key", say);
    warn_of_key(key, say);
    /* Asked for again, since a key of another kind is taken without a look at the certificate. */
    good = SSL_CTX_check_private_key(context) == 1;
    if (!good) say("error", "%s: is not the key of the certificate in %s", key, certificate);
    SSL_CTX_set_default_passwd_cb_userdata(context, ""); /* it does not outlive its use */
    ERR_clear_error();
    return good;
}

/* Whose certificates are taken; their names are told to clients, who may have several. */
static bool load_authorities(SSL_CTX *context, const struct tls_files *files, tls_say *say) {
    if (SSL_CTX_load_verify_file(context, files->authorities) != 1)
        return refused(files->authorities, "authorities", say);
    STACK_OF(X509_NAME) *names = SSL_load_client_CA_file(files->authorities);
    if (!names) return refused(files->authorities, "authorities", say);
    SSL_CTX_set_client_CA_list(context, names);
    return true;
}

/* ---- What all share ---- */

static bool set_rules(SSL_CTX *context, enum tls_clients clients) {
    static const int modes[] = {
        [TLS_CLIENTS_ANY] = SSL_VERIFY_NONE,
        [TLS_CLIENTS_CHECKED_IF_SHOWN] = SSL_VERIFY_PEER,
        [TLS_CLIENTS_CERTIFIED] = SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT,
    };
    SSL_CTX_set_options(context,
                        SSL_OP_NO_COMPRESSION | SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_TICKET);
    SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
    SSL_CTX_set_num_tickets(context, 0);
    SSL_CTX_set_mode(context, SSL_MODE_RELEASE_BUFFERS);
    SSL_CTX_set_verify(context, modes[clients], NULL);
    return SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION) == 1 &&
           SSL_CTX_set_cipher_list(context, "ECDHE+AESGCM:ECDHE+CHACHA20") == 1;
}

struct tls *tls_open(const struct tls_files *files, enum tls_clients clients, tls_say *say) {
    struct tls *tls = calloc(1, sizeof *tls);
    cv_assert(tls);
    tls->method = make_method();
    tls->context = SSL_CTX_new(TLS_server_method());
    bool good = tls->method && tls->context && set_rules(tls->context, clients);
    if (!good) say("error", "TLS cannot be started: %s", why_not());
    if (good && load_own(tls->context, files, say) &&
        (clients == TLS_CLIENTS_ANY || load_authorities(tls->context, files, say)))
        return tls;
    tls_close(tls);
    return NULL;
}

void tls_close(struct tls *tls) {
    if (!tls) return;
    SSL_CTX_free(tls->context);
    BIO_meth_free(tls->method);
    free(tls);
}

/* ---- Sessions ---- */

bool tls_begin(struct tls *tls, struct net_stream *stream) {
    struct tls_session *session = calloc(1, sizeof *session);
    SSL *ssl = SSL_new(tls->context);
    BIO *bio = BIO_new(tls->method);
    if (!session || !ssl || !bio) {
        free(session);
        SSL_free(ssl);
        BIO_free(bio);
        return false;
    }
    BIO_set_data(bio, session);
    BIO_set_init(bio, 1);
    SSL_set_bio(ssl, bio, bio);
    SSL_set_accept_state(ssl);
    session->ssl = ssl;
    stream->tls = session;
    return true;
}

void tls_end(struct net_stream *stream) {
    struct tls_session *session = stream->tls;
    if (!session) return;
    SSL_free(session->ssl);
    bytes_close(&session->sealed);
    free(session);
    stream->tls = NULL;
}

static const char *why_broken(const SSL *ssl) {
    long verdict = SSL_get_verify_result(ssl);
    const char *text = ERR_reason_error_string(ERR_peek_error());
    if (verdict != X509_V_OK) return X509_verify_cert_error_string(verdict);
    return text ? text : "it makes no sense";
}

/* The other end is told why, if it listens. */
static void break_off(struct net_stream *stream) {
    if (!stream->tls->secured) stream->on_secured(stream, why_broken(stream->tls->ssl));
    ERR_clear_error();
    net_flush(stream);
    if (!stream->closing) stream->on_end(stream);
}

/* Both return whether there may be more; a session that ends or is broken is dealt with.  An error
 * that somebody else has left in OpenSSL's queue would be taken for one of theirs. */

static bool shake_hands(struct net_stream *stream) {
    struct tls_session *session = stream->tls;
    ERR_clear_error();
    int result = SSL_do_handshake(session->ssl);
    session->secured = result == 1;
    if (session->secured)
        stream->on_secured(stream, NULL);
    else if (SSL_get_error(session->ssl, result) != SSL_ERROR_WANT_READ)
        break_off(stream);
    return session->secured;
}

static bool open_record(struct net_stream *stream) {
    unsigned char plain[SSL3_RT_MAX_PLAIN_LENGTH];
    struct tls_session *session = stream->tls;
    ERR_clear_error();
    int size = SSL_read(session->ssl, plain, sizeof plain);
    if (size > 0) {
        stream->on_bytes(stream, plain, (size_t)size);
        return true;
    }
    int error = SSL_get_error(session->ssl, size);
    if (error == SSL_ERROR_ZERO_RETURN)
        stream->on_end(stream);
    else if (error != SSL_ERROR_WANT_READ)
        break_off(stream);
    return false;
}

void tls_receive(struct net_stream *stream, const unsigned char *bytes, size_t size) {
    enum { UNTAKEN_MAX = 1 << 16 };
    struct tls_session *session = stream->tls;
    session->received = bytes;
    session->received_size = size;
    bool more = session->secured || shake_hands(stream);
    while (more && !stream->closing && !stream->over) more = open_record(stream);
    session->received_size = 0;
    if (session->sealed.used) net_flush(stream); /* the protocol's own answers */
    /* Who makes us answer and does not take the answers is not to fill the memory. */
    if (!stream->closing && session->sealed.used > UNTAKEN_MAX) stream->on_end(stream);
}

struct bytes *tls_seal(struct net_stream *stream) {
    struct tls_session *session = stream->tls;
    struct bytes *out = &stream->out;
    size_t sealed;
    ERR_clear_error();
    if (out->used && SSL_write_ex(session->ssl, out->at, out->used, &sealed) != 1) return NULL;
    net_shrink(out);
    bool told = SSL_get_shutdown(session->ssl) & SSL_SENT_SHUTDOWN;
    if (stream->over && session->secured && !told) SSL_shutdown(session->ssl);
    return &session->sealed;
}

/* ---- Names ----
 *
 * As Java writes them, letter for letter, since ACLs made there hold such names: the last part
 * first, short words for a few kinds only, more escapes than need be. */

static void add_text(struct bytes *out, const char *text) { bytes_add(out, text, strlen(text)); }

static bool is_blank(unsigned char letter) { return letter == ' ' || letter == '\r'; }

static void add_escaped(struct bytes *out, const unsigned char *at, size_t size) {
    size_t first = 0, end = size;
    while (first < end && is_blank(at[first])) first++;
    while (end > first && is_blank(at[end - 1])) end--;
    for (size_t i = 0; i < size; i++) {
        if (!at[i]) {
            add_text(out, "\\00");
            continue;
        }
        if (i < first || i >= end || strchr(",=+<>#;\"\\", at[i])) add_text(out, "\\");
        bytes_add(out, &at[i], 1);
    }
}

/* "#" and its encoding in hexadecimal: for what has no text, or a kind without a word. */
static void add_encoded(struct bytes *out, const ASN1_STRING *value) {
    static const char digits[] = "0123456789abcdef";
    unsigned char *encoding = NULL;
    int size = i2d_ASN1_PRINTABLE(value, &encoding);
    add_text(out, "#");
    for (int i = 0; i < size; i++) {
        bytes_add(out, &digits[encoding[i] >> 4], 1);
        bytes_add(out, &digits[encoding[i] & 15], 1);
    }
    OPENSSL_free(encoding);
}

static const char *word_of(const ASN1_OBJECT *kind) {
    switch (OBJ_obj2nid(kind)) {
    case NID_commonName: return "CN";
    case NID_countryName: return "C";
    case NID_localityName: return "L";
    case NID_stateOrProvinceName: return "ST";
    case NID_streetAddress: return "STREET";
    case NID_organizationName: return "O";
    case NID_organizationalUnitName: return "OU";
    case NID_domainComponent: return "DC";
    case NID_userId: return "UID";
    default: return NULL;
    }
}

static bool is_utf8(const char *at, size_t size) {
    for (const char *end = at + size; at < end;)
        if (!*at)
            at++;
        else if (utf8_next(&at) == UTF8_BROKEN)
            return false;
    return true;
}

/* Java takes the bytes of all of these for UTF-8.  Where they are not, it loses letters, and two
 * names may look the same: those are encoded here. */
static bool is_text(const ASN1_STRING *value) {
    switch (ASN1_STRING_type(value)) {
    case V_ASN1_UTF8STRING:
    case V_ASN1_PRINTABLESTRING:
    case V_ASN1_T61STRING:
    case V_ASN1_IA5STRING:
    case V_ASN1_GENERALSTRING:
    case V_ASN1_BMPSTRING:
        return is_utf8((const char *)ASN1_STRING_get0_data(value),
                       (size_t)ASN1_STRING_length(value));
    default: return false;
    }
}

static void add_part(struct bytes *out, const X509_NAME_ENTRY *entry) {
    const ASN1_OBJECT *kind = X509_NAME_ENTRY_get_object(entry);
    const ASN1_STRING *value = X509_NAME_ENTRY_get_data(entry);
    const char *word = word_of(kind);
    char number[128];
    if (!word) OBJ_obj2txt(number, sizeof number, kind, 1);
    add_text(out, word ? word : number);
    add_text(out, "=");
    if (word && is_text(value))
        add_escaped(out, ASN1_STRING_get0_data(value), (size_t)ASN1_STRING_length(value));
    else
        add_encoded(out, value);
}

/* Parts that stand side by side share the number of their set. */
static int set_of(const X509_NAME *name, int part) {
    return X509_NAME_ENTRY_set(X509_NAME_get_entry(name, part));
}

static void add_name(struct bytes *out, const X509_NAME *name) {
    int count = X509_NAME_entry_count(name);
    for (int end = count, first; end > 0; end = first) {
        for (first = end - 1; first && set_of(name, first - 1) == set_of(name, end - 1);) first--;
        for (int i = first; i < end; i++) {
            if (i > first || end < count) add_text(out, i > first ? "+" : ",");
            add_part(out, X509_NAME_get_entry(name, i));
        }
    }
}

bool tls_subject(const struct net_stream *stream, struct bytes *subject) {
    const SSL *ssl = stream->tls->ssl;
    const X509 *certificate = SSL_get0_peer_certificate(ssl);
    if (!certificate || SSL_get_verify_result(ssl) != X509_V_OK) return false;
    add_name(subject, X509_get_subject_name(certificate));
    return subject->used > 0;
}
