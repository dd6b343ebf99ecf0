/* TLS for streams.  With a session, what a stream receives is opened before on_bytes sees it, and
 * what it is to send is sealed by net_flush; nothing else of a stream differs.
 *
 * OpenSSL never sees the socket: it reads from the bytes that have come and writes into a buffer,
 * so the loop stays the only one that waits.  Sessions are not resumed: each connection proves anew
 * who it is, and a certificate that has run out is worth nothing from that moment on. */
#ifndef CV_NET_TLS_H
#define CV_NET_TLS_H

#include "net/stream.h"

enum tls_clients { TLS_CLIENTS_ANY, TLS_CLIENTS_CHECKED_IF_SHOWN, TLS_CLIENTS_CERTIFIED };

struct tls_files { /* PEM; texts may be empty, but for the first two */
    const char *certificate, *key, *key_password, *authorities;
};

/* Takes a level, "error" or "warning", and a text. */
typedef __attribute__((format(printf, 2, 3))) void tls_say(const char *level, const char *format,
                                                           ...);

struct tls; /* what all sessions share */

/* NULL when a file will not do; it has said which, and why. */
struct tls *tls_open(const struct tls_files *files, enum tls_clients clients, tls_say *say);
/* The same, but both ends prove that they know what is in a file, and show no certificate: TLS 1.3
 * with a key made of it.  The file is its owner's alone and holds 16 bytes or more; a line feed
 * at the end is none of them. */
struct tls *tls_open_key(const char *path, tls_say *say);
void tls_close(struct tls *tls);
/* No session comes about unless both ends have proven who they are. */
bool tls_is_mutual(const struct tls *tls);

/* The first byte of every connection with TLS. */
enum { TLS_FIRST_BYTE = 0x16 };

/* The stream speaks TLS from here on, and its on_secured will be called.  False: no memory. */
bool tls_begin(struct tls *tls, struct net_stream *stream);
/* The same for the end that has dialed, which speaks first; it is connected.  The certificate that
 * the other end shows is checked as those of clients would be, by the authorities alone. */
bool tls_begin_as_client(struct tls *tls, struct net_stream *stream);
/* Why a session broke; NULL: it did not, as far as we know.  The other end may have refused us
 * after on_secured found all well. */
const char *tls_failure(const struct net_stream *stream);
/* Appends whom the client's certificate names, as RFC 2253 writes it.  False: it showed none, or
 * one without a name. */
bool tls_subject(const struct net_stream *stream, struct bytes *subject);

/* ---- For streams themselves ---- */

void tls_receive(struct net_stream *stream, const unsigned char *bytes, size_t size);
/* Seals what is in `out` and returns what is to be sent instead; NULL: the session is broken. */
struct bytes *tls_seal(struct net_stream *stream);
void tls_end(struct net_stream *stream);

#endif
