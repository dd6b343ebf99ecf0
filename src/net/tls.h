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

struct tls; /* what all sessions of a server share */

/* NULL when a file will not do; it has said which, and why. */
struct tls *tls_open(const struct tls_files *files, enum tls_clients clients, tls_say *say);
void tls_close(struct tls *tls);

/* The first byte of every connection with TLS. */
enum { TLS_FIRST_BYTE = 0x16 };

/* The stream speaks TLS from here on, and its on_secured will be called.  False: no memory. */
bool tls_begin(struct tls *tls, struct net_stream *stream);
/* Appends whom the client's certificate names, as RFC 2253 writes it.  False: it showed none, or
 * one without a name. */
bool tls_subject(const struct net_stream *stream, struct bytes *subject);

/* ---- For streams themselves ---- */

void tls_receive(struct net_stream *stream, const unsigned char *bytes, size_t size);
/* Seals what is in `out` and returns what is to be sent instead; NULL: the session is broken. */
struct bytes *tls_seal(struct net_stream *stream);
void tls_end(struct net_stream *stream);

#endif
