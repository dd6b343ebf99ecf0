#include "wire/net/tls.h"

#include <errno.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <sys/stat.h>

#include "base/assert.h"
#include "base/logger.h"
#include "base/utf8.h"
#include "wire/net/tls_key.h"

struct tls {
    SSL_CTX *context;
    BIO_METHOD *method;
    bool shared; /* a pre-shared key is used */
    unsigned char secret[TLS_KEY_SIZE];
    enum tls_clients clients;
    char *file[5]; /* as in struct tls_files; of a pre-shared key only the first */
};

struct tls_session {
    SSL *ssl;
    const unsigned char *received; /* while tls_receive runs: what is not decrypted yet */
    size_t received_size;
    struct bytes sealed;
    bool secured; /* the handshake is done */
    bool shared;  /* it has to use the pre-shared key */
    const char *failure;
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

/* Without this callback OpenSSL would ask on the terminal. */
static int give_password(char *to, int room, int writing, void *context) {
    const char *password = context;
    size_t size = strlen(password);
    (void)writing;
    if (!size || size > (size_t)room) return -1;
    memcpy(to, password, size);
    return (int)size;
}

/* Replaces texts of OpenSSL that only its developers understand. */
static const char *why_not(void) {
    unsigned long error = ERR_peek_error(); /* the cause; later ones only name the callers */
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

static void not_started(void) {
    logger_error("TLS cannot be started", LOGGER_STRING("reason", why_not()));
}

static bool refused(const char *path, const char *purpose) {
    logger_error("a file for TLS cannot be used", LOGGER_STRING("path", path),
                 LOGGER_STRING("purpose", purpose), LOGGER_STRING("reason", why_not()));
    ERR_clear_error();
    return false;
}

static void warn_of_certificate(SSL_CTX *context, const char *path) {
    X509 *certificate = SSL_CTX_get0_certificate(context);
    if (X509_cmp_current_time(X509_get0_notAfter(certificate)) < 0)
        logger_warning("the certificate has expired; clients will refuse it: replace it",
                       LOGGER_STRING("path", path));
    else if (X509_cmp_current_time(X509_get0_notBefore(certificate)) > 0)
        logger_warning("the certificate is not valid yet; clients will refuse it until it is",
                       LOGGER_STRING("path", path));
}

static void warn_if_open(const char *path, const char *purpose) {
    struct stat file;
    if (stat(path, &file) == 0 && file.st_mode & S_IRWXO)
        logger_warning("everybody on this machine may read or change a private key, or its "
                       "password; change the file's mode (chmod 600)",
                       LOGGER_STRING("path", path), LOGGER_STRING("purpose", purpose));
}

static bool load_own(SSL_CTX *context, const struct tls_files *files, const char *password) {
    const char *certificate = files->certificate, *key = files->key;
    SSL_CTX_set_default_passwd_cb(context, give_password);
    SSL_CTX_set_default_passwd_cb_userdata(context, (void *)password);
    if (SSL_CTX_use_certificate_chain_file(context, certificate) != 1)
        return refused(certificate, "certificate");
    warn_of_certificate(context, certificate);
    bool good = SSL_CTX_use_PrivateKey_file(context, key, SSL_FILETYPE_PEM) == 1;
    if (!good && ERR_GET_REASON(ERR_peek_last_error()) != X509_R_KEY_VALUES_MISMATCH)
        return refused(key, "private key");
    warn_if_open(key, "private key");
    if (files->password_file && *files->password_file)
        warn_if_open(files->password_file, "password");
    /* Checked again, since a key of another type is loaded without a look at the certificate. */
    good = SSL_CTX_check_private_key(context) == 1;
    if (!good)
        logger_error("the private key is not the key of the certificate",
                     LOGGER_STRING("path", key), LOGGER_STRING("certificate", certificate));
    SSL_CTX_set_default_passwd_cb_userdata(context, ""); /* the caller's text may be freed */
    ERR_clear_error();
    return good;
}

enum { PASSWORD_MAX = 1024 };

static bool read_password(const char *path, char password[PASSWORD_MAX]) {
    FILE *file = fopen(path, "re");
    const char *why = file ? "it is empty, or its first line is too long" : strerror(errno);
    bool good = file && fgets(password, PASSWORD_MAX, file) &&
                (strchr(password, '\n') || feof(file)) && password[strcspn(password, "\r\n")];
    if (file) fclose(file);
    if (!good)
        logger_error("a file for TLS cannot be used", LOGGER_STRING("path", path),
                     LOGGER_STRING("purpose", "password"), LOGGER_STRING("reason", why));
    password[strcspn(password, "\r\n")] = 0;
    return good;
}

static bool load_own_with_password(SSL_CTX *context, const struct tls_files *files) {
    char password[PASSWORD_MAX] = "";
    bool from_file = files->password_file && *files->password_file;
    bool good = !from_file || read_password(files->password_file, password);
    const char *given = files->key_password ? files->key_password : "";
    good = good && load_own(context, files, from_file ? password : given);
    OPENSSL_cleanse(password, sizeof password);
    return good;
}

/* The names of the authorities are sent to clients, which may have to choose a certificate. */
static bool load_authorities(SSL_CTX *context, const struct tls_files *files) {
    if (SSL_CTX_load_verify_file(context, files->authorities) != 1)
        return refused(files->authorities, "authorities");
    STACK_OF(X509_NAME) *names = SSL_load_client_CA_file(files->authorities);
    if (!names) return refused(files->authorities, "authorities");
    SSL_CTX_set_client_CA_list(context, names);
    return true;
}

/* ---- A pre-shared key ---- */

/* The identity of the key, the same at both ends. */
static const unsigned char secret_name[] = {'c', 'o', 'n', 'c', 'l', 'a', 'v', 'e'};

/* To OpenSSL, an external pre-shared key is a session to resume. */
static SSL_SESSION *session_of_secret(SSL *ssl) {
    static const unsigned char suite[] = {0x13, 0x01}; /* TLS_AES_128_GCM_SHA256 */
    const struct tls *tls = SSL_CTX_get_app_data(SSL_get_SSL_CTX(ssl));
    SSL_SESSION *session = SSL_SESSION_new();
    if (session && SSL_SESSION_set1_master_key(session, tls->secret, sizeof tls->secret) == 1 &&
        SSL_SESSION_set_cipher(session, SSL_CIPHER_find(ssl, suite)) == 1 &&
        SSL_SESSION_set_protocol_version(session, TLS1_3_VERSION) == 1 &&
        SSL_SESSION_set1_id_context(session, secret_name, sizeof secret_name) == 1)
        return session;
    SSL_SESSION_free(session);
    return NULL;
}

static int offer_secret(SSL *ssl, const EVP_MD *digest, const unsigned char **name, size_t *size,
                        SSL_SESSION **session) {
    (void)digest; /* there is only one cipher suite, so it is that one's */
    *name = secret_name;
    *size = sizeof secret_name;
    *session = session_of_secret(ssl);
    return *session != NULL;
}

static int find_secret(SSL *ssl, const unsigned char *name, size_t size, SSL_SESSION **session) {
    bool known = size == sizeof secret_name && memcmp(name, secret_name, size) == 0;
    *session = known ? session_of_secret(ssl) : NULL;
    return !known || *session;
}

static bool share_secret(struct tls *tls, const char *path) {
    SSL_CTX *context = tls->context;
    tls->shared = true;
    if (!tls_key_read(path, tls->secret)) return false;
    SSL_CTX_set_app_data(context, tls);
    SSL_CTX_set_psk_use_session_callback(context, offer_secret);
    SSL_CTX_set_psk_find_session_callback(context, find_secret);
    bool good = SSL_CTX_set_session_id_context(context, secret_name, sizeof secret_name) == 1 &&
                SSL_CTX_set_min_proto_version(context, TLS1_3_VERSION) == 1 &&
                SSL_CTX_set_ciphersuites(context, "TLS_AES_128_GCM_SHA256") == 1;
    if (!good) not_started();
    return good;
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

static struct tls *make_tls(enum tls_clients clients) {
    struct tls *tls = calloc(1, sizeof *tls);
    cv_assert(tls);
    tls->method = make_method();
    tls->context = SSL_CTX_new(TLS_method());
    if (tls->method && tls->context && set_rules(tls->context, clients)) return tls;
    not_started();
    tls_close(tls);
    return NULL;
}

static void remember(struct tls *tls, enum tls_clients clients, const struct tls_files *files) {
    const char *from[] = {files->certificate, files->key, files->key_password, files->authorities,
                          files->password_file};
    tls->clients = clients;
    for (size_t i = 0; i < sizeof from / sizeof *from; i++) {
        tls->file[i] = strdup(from[i] ? from[i] : "");
        cv_assert(tls->file[i]);
    }
}

struct tls *tls_open(const struct tls_files *files, enum tls_clients clients) {
    struct tls *tls = make_tls(clients);
    if (tls && load_own_with_password(tls->context, files) &&
        (clients == TLS_CLIENTS_ANY || load_authorities(tls->context, files))) {
        remember(tls, clients, files);
        return tls;
    }
    tls_close(tls);
    return NULL;
}

struct tls *tls_open_key(const char *path) {
    /* Without authorities no certificate can be shown instead of the key. */
    struct tls *tls = make_tls(TLS_CLIENTS_CERTIFIED);
    if (tls && share_secret(tls, path)) {
        remember(tls, TLS_CLIENTS_CERTIFIED, &(struct tls_files){.certificate = path});
        return tls;
    }
    tls_close(tls);
    return NULL;
}

/* A session has its own hold on the context that it began with. */
bool tls_reload(struct tls *tls) {
    struct tls_files files = {tls->file[0], tls->file[1], tls->file[2], tls->file[3], tls->file[4]};
    struct tls *fresh =
        tls->shared ? tls_open_key(files.certificate) : tls_open(&files, tls->clients);
    if (!fresh) return false;
    SSL_CTX *before = tls->context;
    tls->context = fresh->context;
    fresh->context = before;
    memcpy(tls->secret, fresh->secret, sizeof tls->secret);
    SSL_CTX_set_app_data(tls->context, tls);
    tls_close(fresh);
    return true;
}

int64_t tls_expiry(const struct tls *tls) {
    X509 *certificate = SSL_CTX_get0_certificate(tls->context);
    int days, seconds;
    if (!certificate || ASN1_TIME_diff(&days, &seconds, NULL, X509_get0_notAfter(certificate)) != 1)
        return 0;
    return (int64_t)time(NULL) + (int64_t)days * 86400 + seconds;
}

void tls_close(struct tls *tls) {
    if (!tls) return;
    SSL_CTX_free(tls->context);
    BIO_meth_free(tls->method);
    OPENSSL_cleanse(tls->secret, sizeof tls->secret);
    if (tls->file[2]) OPENSSL_cleanse(tls->file[2], strlen(tls->file[2]));
    for (size_t i = 0; i < sizeof tls->file / sizeof *tls->file; i++) free(tls->file[i]);
    free(tls);
}

bool tls_is_mutual(const struct tls *tls) {
    return SSL_CTX_get_verify_mode(tls->context) & SSL_VERIFY_FAIL_IF_NO_PEER_CERT;
}

/* ---- Sessions ---- */

static bool begin(struct tls *tls, struct net_stream *stream) {
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
    session->ssl = ssl;
    session->shared = tls->shared;
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

const char *tls_failure(const struct net_stream *stream) {
    return stream->tls ? stream->tls->failure : NULL;
}

/* With another key the acceptor fails to verify the binder, and the dialer gets its alert. */
static bool is_key_mismatch(const struct tls_session *session) {
    int reason = ERR_GET_REASON(ERR_peek_error());
    return session->shared && (reason == SSL_R_BINDER_DOES_NOT_VERIFY ||
                               reason == SSL_R_SSLV3_ALERT_ILLEGAL_PARAMETER);
}

static const char *why_broken(const struct tls_session *session) {
    long verdict = SSL_get_verify_result(session->ssl);
    const char *text = ERR_reason_error_string(ERR_peek_error());
    if (is_key_mismatch(session))
        return "the two servers have different keys; give both the same --peer-key";
    if (verdict != X509_V_OK && !session->shared) return X509_verify_cert_error_string(verdict);
    return text ? text : "what was received is not valid TLS";
}

/* Flushes OpenSSL's alert, which tells the other end why. */
static void break_off(struct net_stream *stream) {
    struct tls_session *session = stream->tls;
    session->failure = why_broken(session);
    if (!session->secured) stream->on_secured(stream, session->failure);
    ERR_clear_error();
    net_flush(stream);
    if (!stream->closing) stream->on_end(stream);
}

/* do_handshake and open_record return whether there may be more; they handle sessions that end or
 * fail.  They clear OpenSSL's error queue first: SSL_get_error would see older errors in it. */

static bool do_handshake(struct net_stream *stream) {
    struct tls_session *session = stream->tls;
    ERR_clear_error();
    int result = SSL_do_handshake(session->ssl);
    session->secured = result == 1 && (!session->shared || SSL_session_reused(session->ssl));
    if (session->secured)
        stream->on_secured(stream, NULL);
    else if (SSL_get_error(session->ssl, result) != SSL_ERROR_WANT_READ)
        break_off(stream);
    return session->secured;
}

bool tls_begin(struct tls *tls, struct net_stream *stream) {
    if (!begin(tls, stream)) return false;
    SSL_set_accept_state(stream->tls->ssl);
    return true;
}

bool tls_begin_as_client(struct tls *tls, struct net_stream *stream) {
    if (!begin(tls, stream)) return false;
    SSL_set_connect_state(stream->tls->ssl);
    do_handshake(stream);
    net_flush(stream);
    return true;
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
    enum { UNSENT_MAX = 1 << 16 };
    struct tls_session *session = stream->tls;
    session->received = bytes;
    session->received_size = size;
    bool more = session->secured || do_handshake(stream);
    while (more && !stream->closing && !stream->over) more = open_record(stream);
    session->received_size = 0;
    if (session->sealed.used) net_flush(stream); /* records of TLS itself */
    /* A client that provokes answers and does not read them must not fill the memory. */
    if (!stream->closing && session->sealed.used > UNSENT_MAX) stream->on_end(stream);
}

struct bytes *tls_seal(struct net_stream *stream) {
    struct tls_session *session = stream->tls;
    struct bytes *out = &stream->out;
    size_t sealed;
    ERR_clear_error();
    if (out->used && SSL_write_ex(session->ssl, out->at, out->used, &sealed) != 1) return NULL;
    net_shrink(out);
    bool close_notify_sent = SSL_get_shutdown(session->ssl) & SSL_SENT_SHUTDOWN;
    if (stream->over && session->secured && !close_notify_sent) SSL_shutdown(session->ssl);
    return &session->sealed;
}

/* ---- Subjects ----
 *
 * Exactly as Java formats them, since existing ACLs hold such names: the last RDN first, keywords
 * for a few attribute types only, more escapes than necessary. */

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

/* "#" and the DER encoding in hexadecimal: for values without text, and types without keyword. */
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

static const char *keyword_of(const ASN1_OBJECT *kind) {
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

/* Java decodes the bytes of all of these as UTF-8.  Where they are not, it loses letters, and two
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
    const char *keyword = keyword_of(kind);
    char number[128];
    if (!keyword) OBJ_obj2txt(number, sizeof number, kind, 1);
    add_text(out, keyword ? keyword : number);
    add_text(out, "=");
    if (keyword && is_text(value))
        add_escaped(out, ASN1_STRING_get0_data(value), (size_t)ASN1_STRING_length(value));
    else
        add_encoded(out, value);
}

/* The attributes of a multi-valued RDN share the number of their set. */
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
