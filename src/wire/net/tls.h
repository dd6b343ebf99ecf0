/* TLS for streams.  With a session, what a stream receives is decrypted before on_bytes, and what
 * it sends is encrypted by net_flush; nothing else of a stream differs.
 *
 * OpenSSL never sees the socket: it reads from the bytes received and writes into a buffer, so that
 * only the loop waits.  Sessions are not resumed: each connection is authenticated anew, and a
 * certificate is worth nothing from the moment it expires. */
#ifndef CV_WIRE_NET_TLS_H
#define CV_WIRE_NET_TLS_H

#include "wire/net/stream.h"

enum tls_clients { TLS_CLIENTS_ANY, TLS_CLIENTS_CHECKED_IF_SHOWN, TLS_CLIENTS_CERTIFIED };

struct tls_files { /* PEM; all but the first two may be empty */
    const char *certificate, *key, *key_password, *authorities;
    const char *password_file; /* its first line is the password, whatever key_password is */
};

struct tls; /* what all sessions share */

/* NULL: a file cannot be used; it has logged which, and why. */
struct tls *tls_open(const struct tls_files *files, enum tls_clients clients);
/* The same with a pre-shared key of TLS 1.3, derived from the content of a file, instead of
 * certificates.  Only its owner may read the file.  It holds 16 bytes or more; a line feed at the
 * end does not count. */
struct tls *tls_open_key(const char *path);
/* Reads its files again: sessions that begin from now on use what is there.  Those that have begun
 * go on as they are.  False: a file cannot be used, it has logged which, and all is as it was. */
bool tls_reload(struct tls *tls);
/* When its certificate expires, in seconds since 1970; 0: it has none. */
int64_t tls_expiry(const struct tls *tls);
void tls_close(struct tls *tls);
/* Both ends are authenticated. */
bool tls_is_mutual(const struct tls *tls);

/* The first byte of every connection with TLS. */
enum { TLS_FIRST_BYTE = 0x16 };

/* The stream uses TLS from here on, and its on_secured will be called.  False: no memory. */
bool tls_begin(struct tls *tls, struct net_stream *stream);
/* The same for the dialer's end, once it is connected.  The server's certificate is checked as
 * those of clients are, against the authorities alone. */
bool tls_begin_as_client(struct tls *tls, struct net_stream *stream);
/* Why a session failed; NULL: it did not, as far as we know.  The other end may refuse us after
 * on_secured reported success. */
const char *tls_failure(const struct net_stream *stream);
/* Appends the subject of the client's certificate in the format of RFC 2253.  False: it has shown
 * no certificate, or one with an empty subject. */
bool tls_subject(const struct net_stream *stream, struct bytes *subject);

/* ---- For streams themselves ---- */

void tls_receive(struct net_stream *stream, const unsigned char *bytes, size_t size);
/* Encrypts what is in `out` and returns what is to be sent instead; NULL: the session failed. */
struct bytes *tls_seal(struct net_stream *stream);
void tls_end(struct net_stream *stream);

#endif
