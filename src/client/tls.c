/* TLS 1.2 and 1.3 by OpenSSL, which never sees the socket: it reads what was received from one
 * buffer, and writes what is to be sent to another. */
#include <arpa/inet.h>
#include <errno.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <stdlib.h>

#include "client/transport.h"

enum { PIECE = 1 << 14, BACKLOG_MAX = 1 << 18 };

struct tls_client {
    SSL_CTX *of;
    bool any_host;
};

struct tls_session {
    SSL *ssl;
    BIO *received, *sealed;
    bool begun, ended;
    struct bytes out; /* sealed, and not taken by the socket yet */
    size_t out_sent;
};

/* ---- What all connections share ---- */

static struct tls_client *refuse(struct tls_client *context, char reason[REASON_MAX],
                                 const char *what, const char *file) {
    unsigned long error = ERR_peek_last_error();
    const char *why = ERR_reason_error_string(error);
    snprintf(reason, REASON_MAX, "%s%s: %s", file, what, why ? why : strerror(errno));
    ERR_clear_error();
    tls_client_close(context);
    return NULL;
}

struct tls_client *tls_client_open(const struct cv_tls *options, char reason[REASON_MAX]) {
    struct tls_client *context = calloc(1, sizeof *context);
    if (context) context->of = SSL_CTX_new(TLS_client_method());
    if (!context || !context->of) return refuse(context, reason, "TLS cannot be used", "");
    context->any_host = options->any_host;
    SSL_CTX_set_min_proto_version(context->of, TLS1_2_VERSION);
    SSL_CTX_set_verify(context->of, SSL_VERIFY_PEER, NULL);
    SSL_CTX_set_mode(context->of,
                     SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    if (options->authorities
            ? SSL_CTX_load_verify_locations(context->of, options->authorities, NULL) != 1
            : SSL_CTX_set_default_verify_paths(context->of) != 1)
        return refuse(context, reason, ", the authorities of TLS",
                      options->authorities ? options->authorities : "the system's");
    if (options->certificate &&
        SSL_CTX_use_certificate_chain_file(context->of, options->certificate) != 1)
        return refuse(context, reason, ", the certificate", options->certificate);
    const char *key = options->key ? options->key : options->certificate;
    if (key && SSL_CTX_use_PrivateKey_file(context->of, key, SSL_FILETYPE_PEM) != 1)
        return refuse(context, reason, ", the key", key);
    return context;
}

void tls_client_close(struct tls_client *context) {
    if (!context) return;
    SSL_CTX_free(context->of);
    free(context);
}

/* ---- One connection ---- */

/* The name or address that the certificate must be for. */
static bool expect_host(struct tls_session *tls, const char *host) {
    struct in6_addr address;
    bool literal =
        inet_pton(AF_INET, host, &address) == 1 || inet_pton(AF_INET6, host, &address) == 1;
    X509_VERIFY_PARAM *wanted = SSL_get0_param(tls->ssl);
    if (literal) return X509_VERIFY_PARAM_set1_ip_asc(wanted, host) == 1;
    X509_VERIFY_PARAM_set_hostflags(wanted, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
    return X509_VERIFY_PARAM_set1_host(wanted, host, 0) == 1;
}

static bool name_host(struct tls_session *tls, const char *host) { /* SNI: no addresses */
    struct in6_addr address;
    if (inet_pton(AF_INET, host, &address) == 1 || inet_pton(AF_INET6, host, &address) == 1)
        return true;
    return SSL_set_tlsext_host_name(tls->ssl, host) == 1;
}

struct tls_session *tls_client_begin(struct tls_client *context, const char *host) {
    struct tls_session *tls = calloc(1, sizeof *tls);
    if (!tls) return NULL;
    tls->ssl = SSL_new(context->of);
    tls->received = BIO_new(BIO_s_mem());
    tls->sealed = BIO_new(BIO_s_mem());
    if (!tls->ssl || !tls->received || !tls->sealed) {
        BIO_free(tls->received);
        BIO_free(tls->sealed);
        SSL_free(tls->ssl);
        free(tls);
        return NULL;
    }
    BIO_set_mem_eof_return(tls->received, -1);
    SSL_set_bio(tls->ssl, tls->received, tls->sealed);
    SSL_set_connect_state(tls->ssl);
    if (name_host(tls, host) && (context->any_host || expect_host(tls, host))) return tls;
    tls_client_end(tls);
    return NULL;
}

bool tls_client_is_begun(const struct tls_session *tls) { return tls->begun; }

void tls_client_end(struct tls_session *tls) {
    SSL_free(tls->ssl);
    bytes_close(&tls->out);
    ERR_clear_error();
    free(tls);
}

static int fail(struct transport *transport) {
    long verdict = SSL_get_verify_result(transport->tls->ssl);
    const char *why = ERR_reason_error_string(ERR_peek_last_error());
    snprintf(transport->reason, sizeof transport->reason, "TLS: %s",
             verdict != X509_V_OK ? X509_verify_cert_error_string(verdict)
             : why                ? why
                                  : "the server does not speak it");
    ERR_clear_error();
    return -1;
}

/* Gives the socket what is sealed; -1: the connection has ended. */
static int drain(struct transport *transport) {
    struct tls_session *tls = transport->tls;
    int part;
    while ((part = BIO_read(tls->sealed, bytes_reserve(&tls->out, PIECE), PIECE)) > 0)
        tls->out.used += (size_t)part;
    while (tls->out_sent < tls->out.used) {
        ssize_t sent =
            transport_send(transport, tls->out.at + tls->out_sent, tls->out.used - tls->out_sent);
        if (sent < 0) return -1;
        if (sent == 0) break;
        tls->out_sent += (size_t)sent;
    }
    if (tls->out_sent == tls->out.used) tls->out.used = tls->out_sent = 0;
    return 0;
}

/* Gives OpenSSL what the socket has: 1, 0: nothing; -1: the end. */
static int fill(struct transport *transport) {
    unsigned char piece[PIECE];
    ssize_t part = transport_receive(transport, piece, sizeof piece);
    if (part > 0 && BIO_write(transport->tls->received, piece, (int)part) != part) return -1;
    return part < 0 ? -1 : part > 0;
}

int tls_client_shake_hands(struct transport *transport) {
    struct tls_session *tls = transport->tls;
    tls->begun = true;
    for (;;) {
        ERR_clear_error();
        int status = SSL_do_handshake(tls->ssl);
        int error = SSL_get_error(tls->ssl, status);
        if (drain(transport) < 0) return -1;
        if (status == 1) return 1;
        if (error != SSL_ERROR_WANT_READ) return fail(transport);
        int filled = fill(transport);
        if (filled < 0 && SSL_get_state(tls->ssl) == TLS_ST_CW_CLNT_HELLO)
            snprintf(transport->reason, sizeof transport->reason,
                     "TLS: the server does not speak it");
        if (filled <= 0) return filled;
    }
}

ssize_t tls_client_write(struct transport *transport, const void *bytes, size_t size) {
    struct tls_session *tls = transport->tls;
    size_t taken = 0;
    if (tls->out.used - tls->out_sent < BACKLOG_MAX && size) {
        ERR_clear_error();
        size_t most = size < BACKLOG_MAX ? size : BACKLOG_MAX;
        int status = SSL_write_ex(tls->ssl, bytes, most, &taken);
        if (status != 1 && SSL_get_error(tls->ssl, status) != SSL_ERROR_WANT_READ)
            return fail(transport);
        if (status != 1) taken = 0;
    }
    return drain(transport) < 0 ? -1 : (ssize_t)taken;
}

ssize_t tls_client_read(struct transport *transport, void *bytes, size_t size) {
    struct tls_session *tls = transport->tls;
    for (;;) {
        size_t taken = 0;
        ERR_clear_error();
        int status = SSL_read_ex(tls->ssl, bytes, size, &taken);
        if (status == 1) return (ssize_t)taken;
        int error = SSL_get_error(tls->ssl, status);
        if (error == SSL_ERROR_ZERO_RETURN) {
            snprintf(transport->reason, sizeof transport->reason,
                     "the server has closed the connection");
            return -1;
        }
        if (error != SSL_ERROR_WANT_READ) return fail(transport);
        if (drain(transport) < 0) return -1; /* an answer of TLS's own, such as new keys */
        int filled = fill(transport);
        if (filled <= 0) return filled;
    }
}
