/* Bytes over a socket that does not block, with TLS if wanted. */
#ifndef CV_CLIENT_TRANSPORT_H
#define CV_CLIENT_TRANSPORT_H

#include <stdbool.h>
#include <sys/socket.h>
#include <sys/types.h>

#include "base/bytes.h"
#include "conclave.h"

enum { REASON_MAX = 200 };

/* What an event of the client's epoll descriptor is about. */
enum source { SOURCE_SOCKET, SOURCE_TIMER, SOURCE_WAKE };

struct address {
    struct sockaddr_storage at;
    socklen_t size;
};

struct tls_client; /* what all connections of a client share */
struct tls_session;

struct transport {
    int fd, epoll; /* fd -1: none */
    bool blocked;  /* waits until the socket takes more */
    struct tls_session *tls;
    char reason[REASON_MAX]; /* after -1 */
};

int transport_dial(struct transport *transport, const struct address *address);
int transport_connected(struct transport *transport); /* is it?  1, 0: not yet, -1: never */
/* How many bytes were taken, perhaps 0; or -1. */
ssize_t transport_write(struct transport *transport, const void *bytes, size_t size);
/* How many bytes were received; 0: none now; -1: the end. */
ssize_t transport_read(struct transport *transport, void *bytes, size_t size);
/* What was not sent yet is not to be sent after the end, when it is taken for lost. */
void transport_abandon(struct transport *transport);
void transport_close(struct transport *transport);

/* ---- For TLS: the same without it ---- */

ssize_t transport_send(struct transport *transport, const void *bytes, size_t size);
ssize_t transport_receive(struct transport *transport, void *bytes, size_t size);

/* ---- tls.c ---- */

/* NULL: `reason` says why not. */
struct tls_client *tls_client_open(const struct cv_tls *options, char reason[REASON_MAX]);
void tls_client_close(struct tls_client *context);
/* For a connection to that host.  NULL: no memory. */
struct tls_session *tls_client_begin(struct tls_client *context, const char *host);
bool tls_client_is_begun(const struct tls_session *tls);
int tls_client_shake_hands(struct transport *transport); /* as transport_connected */
ssize_t tls_client_write(struct transport *transport, const void *bytes, size_t size);
ssize_t tls_client_read(struct transport *transport, void *bytes, size_t size);
void tls_client_end(struct tls_session *tls);

#endif
